//! Connections with something to read that nobody runs yet, where a worker without work finds
//! them. Those in open transactions go first, unless a new one has waited for too long.
//!
//! Invariants:
//! 1. A task is in one backlog, or belongs to the worker that took it out and that runs it.
//! 2. Only the owner of a backlog touches its table of places. A thief leaves the number of the
//!    place that a stolen task had; the owner fetches the numbers at its next push.
//! 3. Nothing is stolen that the owner does not offer.
//! 4. A task is in the backlog and offered before its owner looks for sleepers, and a worker says
//!    that it sleeps before it looks into the backlogs for the last time. Both use sequentially
//!    consistent operations: either the owner sees the sleeper, or the sleeper sees the task.

use base::primitives::{AtomicBool, AtomicUsize, Mutex, Ordering, lock};
use std::collections::VecDeque;

/// What waits in a backlog.
pub(crate) trait Queued {
    /// It is in an open transaction.
    fn is_urgent(&self) -> bool;
    /// When it came, in ticks.
    fn since_ticks(&self) -> u64;
}

/// The backlog of one worker.
pub(crate) struct Backlog<T> {
    state: Mutex<State<T>>,
    length: AtomicUsize,
    urgent_length: AtomicUsize,
    offered: AtomicBool,
}

struct State<T> {
    urgent: VecDeque<T>,
    new: VecDeque<T>,
    /// Places whose tasks were stolen.
    left: Vec<u32>,
}

impl<T: Queued> State<T> {
    fn len(&self) -> usize {
        self.urgent.len() + self.new.len()
    }

    fn pop(&mut self, kick_up_ticks: u64) -> Option<T> {
        let has_waited = |task: &T| task.since_ticks() < kick_up_ticks;
        if !self.urgent.is_empty() && !self.new.front().is_some_and(has_waited) {
            return self.urgent.pop_front();
        }
        self.new.pop_front()
    }
}

impl<T: Queued> Backlog<T> {
    pub(crate) fn new() -> Self {
        let state = State { urgent: VecDeque::new(), new: VecDeque::new(), left: Vec::new() };
        Self {
            state: Mutex::new(state),
            length: AtomicUsize::new(0),
            urgent_length: AtomicUsize::new(0),
            offered: AtomicBool::new(false),
        }
    }

    fn note_lengths(&self, state: &State<T>) {
        self.urgent_length.store(state.urgent.len(), Ordering::Relaxed);
        self.length.store(state.len(), Ordering::SeqCst);
    }

    /// Whether a task of an open transaction waits; as [`Backlog::len`].
    #[inline]
    pub(crate) fn has_urgent(&self) -> bool {
        self.urgent_length.load(Ordering::Relaxed) > 0
    }

    /// Shows every task that waits, with its position.
    pub(crate) fn visit(&self, mut visitor: impl FnMut(usize, &T)) {
        let state = lock(&self.state);
        let tasks = state.urgent.iter().chain(&state.new);
        tasks.enumerate().for_each(|(position, task)| visitor(position, task));
    }

    /// How many tasks wait; may be out of date for anybody but the owner.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::SeqCst)
    }

    /// The owner offers what waits to others, or does so no longer.
    #[inline]
    pub(crate) fn offer(&self, offered: bool) {
        if self.offered.load(Ordering::Relaxed) != offered {
            self.offered.store(offered, Ordering::SeqCst);
        }
    }

    /// Whether there is something to steal.
    #[inline]
    pub(crate) fn is_offered(&self) -> bool {
        self.offered.load(Ordering::SeqCst) && self.len() > 0
    }

    /// The owner adds a task, and gets the places whose tasks were stolen since the last time.
    pub(crate) fn push(&self, task: T) -> Vec<u32> {
        let mut state = lock(&self.state);
        match task.is_urgent() {
            true => state.urgent.push_back(task),
            false => state.new.push_back(task),
        }
        self.note_lengths(&state);
        std::mem::take(&mut state.left)
    }

    /// The owner takes the task whose turn it is: the urgent one that has waited longest, or a
    /// new one that came before `kick_up_ticks`, or the oldest new one. Shows the visitor those
    /// that are likely to be taken next, with their distance, up to `ahead` of them.
    #[inline]
    pub(crate) fn pop_and_look_ahead(
        &self,
        kick_up_ticks: u64,
        ahead: usize,
        mut visitor: impl FnMut(usize, &T),
    ) -> Option<T> {
        if self.len() == 0 {
            return None;
        }
        let mut state = lock(&self.state);
        let task = state.pop(kick_up_ticks);
        self.note_lengths(&state);
        let next = state.urgent.iter().chain(&state.new).take(ahead);
        next.enumerate().for_each(|(distance, task)| visitor(distance, task));
        task
    }

    #[cfg(test)]
    fn pop(&self, kick_up_ticks: u64) -> Option<T> {
        self.pop_and_look_ahead(kick_up_ticks, 0, |_, _| {})
    }

    /// Somebody else takes the half whose turn comes first, rounded up, of what is offered.
    /// `leave` takes the task's place off it.
    pub(crate) fn steal(&self, leave: impl Fn(&mut T) -> Option<u32>) -> VecDeque<T> {
        if !self.is_offered() {
            return VecDeque::new();
        }
        let mut state = lock(&self.state);
        let count = state.len().div_ceil(2);
        let mut stolen: VecDeque<T> = std::iter::from_fn(|| state.pop(0)).take(count).collect();
        state.left.extend(stolen.iter_mut().filter_map(leave));
        self.note_lengths(&state);
        stolen
    }

    /// Takes everything out, when the owner ends.
    pub(crate) fn clear(&self) -> VecDeque<T> {
        let mut state = lock(&self.state);
        let mut tasks = std::mem::take(&mut state.urgent);
        tasks.append(&mut state.new);
        self.note_lengths(&state);
        tasks
    }
}

/// Tasks of tests: number, place, and when they came; even numbers from 1000 on are urgent.
#[cfg(test)]
impl Queued for (u32, Option<u32>) {
    fn is_urgent(&self) -> bool {
        self.0 >= 1000 && self.0.is_multiple_of(2)
    }

    fn since_ticks(&self) -> u64 {
        u64::from(self.0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn open_transactions_first_unless_somebody_has_waited_too_long() {
        let backlog = Backlog::new();
        for number in [1, 3, 1000, 1002, 1004, 5, 1006] {
            backlog.push((number, None));
        }
        assert!(backlog.has_urgent());
        let mut ahead = Vec::new();
        let first = backlog.pop_and_look_ahead(0, 4, |distance, task| {
            ahead.push((distance, task.0));
        });
        assert_eq!(first, Some((1000, None)));
        assert_eq!(ahead, [(0, 1002), (1, 1004), (2, 1006), (3, 1)]);
        let mut seen = Vec::new();
        backlog.visit(|position, task| seen.push((position, task.0)));
        assert_eq!(seen, [(0, 1002), (1, 1004), (2, 1006), (3, 1), (4, 3), (5, 5)]);
        let next = |kick_up| backlog.pop(kick_up).map(|task| task.0);
        assert_eq!(next(0), Some(1002));
        assert_eq!(next(2), Some(1), "it came before 2");
        assert_eq!(next(2), Some(1004), "3 may still wait");
        assert_eq!(next(0), Some(1006));
        assert_eq!((next(0), next(0), next(0)), (Some(3), Some(5), None));
        assert!(!backlog.has_urgent());
    }

    #[test]
    fn the_older_half_is_stolen_and_its_places_come_back() {
        let backlog = Backlog::new();
        for number in 0..5u32 {
            assert!(backlog.push((number, Some(number + 100))).is_empty());
        }
        assert!(backlog.steal(|task| task.1.take()).is_empty(), "it is not offered");
        backlog.offer(true);
        let stolen = backlog.steal(|task| task.1.take());
        assert_eq!(Vec::from(stolen), [(0, None), (1, None), (2, None)]);
        assert_eq!(backlog.pop(0), Some((3, Some(103))));
        assert_eq!(backlog.len(), 1);
        assert_eq!(backlog.push((5, None)), [100, 101, 102], "the owner gets the places once");
        assert!(backlog.push((6, None)).is_empty());
        assert_eq!(backlog.clear().len(), 3);
        assert!(backlog.pop(0).is_none() && backlog.steal(|task| task.1.take()).is_empty());
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
                shared.0.offer(true);
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
                if !backlog.is_offered() || planted!("backlog_no_second_look") {
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
            backlog.offer(true);
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
            while let Some(task) = backlog.pop(0) {
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
