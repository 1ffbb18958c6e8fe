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

/// Every order of an owner and a thief; see `cargo xtask model`.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::mailbox::Mailbox;
    use base::planted;
    use base::primitives::{explore, thread};
    use std::sync::Arc;

    /// The owner pushes a task and wakes a sleeper; the other worker sleeps only when there is
    /// nothing to steal, as `turn::sleep` does.
    fn a_sleeper_steals() {
        let shared = Arc::new((Backlog::new(), Mailbox::new()));
        let owner = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.0.push((7, Some(3)));
                shared.1.wake();
            })
        };
        let (backlog, mailbox) = &*shared;
        let stolen = loop {
            let stolen = backlog.steal(|task| task.1.take());
            if !stolen.is_empty() {
                break stolen;
            }
            if mailbox.begin_sleep() {
                if backlog.len() == 0 || planted!("backlog_no_second_look") {
                    mailbox.wait();
                }
                mailbox.end_sleep();
            }
        };
        assert_eq!(Vec::from(stolen), [(7, None)]);
        owner.join().expect("no panic");
    }

    #[test]
    fn a_sleeper_finds_a_backlog_or_is_woken() {
        explore(3, None, a_sleeper_steals);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn a_sleeper_that_does_not_look_again_is_found() {
        explore(3, Some("backlog_no_second_look"), a_sleeper_steals);
    }

    #[test]
    fn every_task_is_run_once_and_every_place_comes_back() {
        explore(3, None, || {
            let backlog = Arc::new(Backlog::new());
            let thief = {
                let backlog = backlog.clone();
                thread::spawn(move || {
                    let stolen = backlog.steal(|task: &mut (u32, Option<u32>)| task.1.take());
                    stolen.into_iter().map(|task| task.0).collect::<Vec<_>>()
                })
            };
            let mut left = Vec::new();
            let mut run = Vec::new();
            for number in 0..3 {
                left.extend(backlog.push((number, Some(number))));
            }
            while let Some(task) = backlog.pop() {
                run.push(task.0);
            }
            let stolen = thief.join().expect("no panic");
            left.extend(backlog.push((9, None)));
            assert_eq!(left, stolen, "the owner hears of what was stolen, and of nothing else");
            run.extend(stolen);
            run.sort_unstable();
            assert_eq!(run, [0, 1, 2]);
        });
    }
}
