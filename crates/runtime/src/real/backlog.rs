//! Connections with something to read that nobody runs yet, where a worker without work finds
//! them.
//!
//! Invariants:
//! 1. A task is in one backlog, or belongs to the worker that took it out and that runs it.
//! 2. Only the owner of a backlog touches its table of places. A thief leaves the number of the
//!    place that a stolen task had; the owner fetches the numbers at its next push.
//! 3. A task is in the backlog before its owner looks for sleepers, and a worker says that it
//!    sleeps before it looks into the backlogs for the last time. Both use sequentially
//!    consistent operations: either the owner sees the sleeper, or the sleeper sees the task.

use base::primitives::{AtomicUsize, Mutex, Ordering, lock};
use std::collections::VecDeque;

/// The backlog of one worker.
pub(crate) struct Backlog<T> {
    state: Mutex<State<T>>,
    length: AtomicUsize,
}

struct State<T> {
    tasks: VecDeque<T>,
    /// Places whose tasks were stolen.
    left: Vec<u32>,
}

impl<T> Backlog<T> {
    pub(crate) fn new() -> Self {
        let state = State { tasks: VecDeque::new(), left: Vec::new() };
        Self { state: Mutex::new(state), length: AtomicUsize::new(0) }
    }

    /// How many tasks wait; may be out of date for anybody but the owner.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::SeqCst)
    }

    /// The owner adds a task, and gets the places whose tasks were stolen since the last time.
    pub(crate) fn push(&self, task: T) -> Vec<u32> {
        let mut state = lock(&self.state);
        state.tasks.push_back(task);
        self.length.store(state.tasks.len(), Ordering::SeqCst);
        std::mem::take(&mut state.left)
    }

    /// The owner takes the task that has waited longest.
    #[inline]
    pub(crate) fn pop(&self) -> Option<T> {
        if self.len() == 0 {
            return None;
        }
        let mut state = lock(&self.state);
        let task = state.tasks.pop_front();
        self.length.store(state.tasks.len(), Ordering::SeqCst);
        task
    }

    /// Somebody else takes the older half, rounded up. `leave` takes the task's place off it.
    pub(crate) fn steal(&self, leave: impl Fn(&mut T) -> Option<u32>) -> VecDeque<T> {
        if self.len() == 0 {
            return VecDeque::new();
        }
        let mut state = lock(&self.state);
        let count = state.tasks.len().div_ceil(2);
        let mut stolen: VecDeque<T> = state.tasks.drain(..count).collect();
        state.left.extend(stolen.iter_mut().filter_map(leave));
        self.length.store(state.tasks.len(), Ordering::SeqCst);
        stolen
    }

    /// Takes everything out, when the owner ends.
    pub(crate) fn clear(&self) -> VecDeque<T> {
        let mut state = lock(&self.state);
        self.length.store(0, Ordering::SeqCst);
        std::mem::take(&mut state.tasks)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_older_half_is_stolen_and_its_places_come_back() {
        let backlog = Backlog::new();
        for number in 0..5u32 {
            assert!(backlog.push((number, Some(number + 100))).is_empty());
        }
        let stolen = backlog.steal(|task| task.1.take());
        assert_eq!(Vec::from(stolen), [(0, None), (1, None), (2, None)]);
        assert_eq!(backlog.pop(), Some((3, Some(103))));
        assert_eq!(backlog.len(), 1);
        assert_eq!(backlog.push((5, None)), [100, 101, 102], "the owner gets the places once");
        assert!(backlog.push((6, None)).is_empty());
        assert_eq!(backlog.clear().len(), 3);
        assert!(backlog.pop().is_none() && backlog.steal(|task| task.1.take()).is_empty());
    }
}
