//! Which workers have the connections: as few as are enough.
//!
//! A statement costs a microsecond or two, waking a thread for it costs several, and commits and
//! answers that meet on one worker share their system calls. So:
//! 1. A worker's load is the CPU time of its thread in the last window, by the kernel's account. A
//!    worker that has not closed a window for some time sleeps and has none.
//! 2. New connections go to the first worker that is not full.
//! 3. A worker offers its backlog to others when it is full, when the backlog would wait for long
//!    (see `turn`), or behind a slice that was used up.
//! 4. What comes in while a long statement runs goes to a worker that has none, if one has time.
//! 5. When two workers together are far from full, and nothing had to be spread for a while,
//!    connections go to the first of the two as their statements come in. What is far from full
//!    stays so after the move, so nothing swings.

use super::group::{Group, RealTwin};
use crate::clock::thread_cpu_nanos;
use crate::worker::Worker;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Length of a window.
const WINDOW_NANOS: u64 = 10_000_000;

/// A worker that uses so much of a core is full.
const FULL_PERMILLE: u32 = 900;

/// Two workers that use so much of a core together become one.
const TOGETHER_PERMILLE: u32 = 750;

/// After connections had to be spread they are not brought together for so long.
const MERGE_AFTER_NANOS: u64 = 100_000_000;

/// What other workers know of one.
#[derive(Default)]
pub(crate) struct Load {
    permille: AtomicU32,
    /// When the window ended.
    at_nanos: AtomicU64,
    has_long: AtomicBool,
}

impl Load {
    fn permille(&self, now_nanos: u64) -> u32 {
        let age = now_nanos.saturating_sub(self.at_nanos.load(Ordering::Relaxed));
        if age > 3 * WINDOW_NANOS { 0 } else { self.permille.load(Ordering::Relaxed) }
    }

    fn has_time(&self, now_nanos: u64) -> bool {
        self.permille(now_nanos) < FULL_PERMILLE && !self.has_long.load(Ordering::Relaxed)
    }
}

/// A worker's own account.
#[derive(Default)]
pub(crate) struct Balance {
    begin_nanos: Cell<u64>,
    cpu_nanos: Cell<u64>,
    is_full: Cell<bool>,
    merges_into: Cell<Option<usize>>,
}

impl Balance {
    /// Once a turn: tells the others what has changed.
    #[inline]
    pub(super) fn look(&self, worker: &Worker, group: &Group) {
        let load = &group.loads[worker.number];
        if worker.has_long() != load.has_long.load(Ordering::Relaxed) {
            load.has_long.store(worker.has_long(), Ordering::Relaxed);
        }
        let now = worker.turn_time().as_nanos();
        if now.saturating_sub(self.begin_nanos.get()) >= WINDOW_NANOS {
            self.close_window(worker.number, group, now);
        }
    }

    #[cold]
    fn close_window(&self, number: usize, group: &Group, now_nanos: u64) {
        let cpu_nanos = thread_cpu_nanos();
        let length = now_nanos - self.begin_nanos.replace(now_nanos);
        let used = cpu_nanos.saturating_sub(self.cpu_nanos.replace(cpu_nanos));
        let permille = (used.min(length) * 1000 / length) as u32;
        group.loads[number].permille.store(permille, Ordering::Relaxed);
        group.loads[number].at_nanos.store(now_nanos, Ordering::Relaxed);
        self.is_full.set(permille >= FULL_PERMILLE);
        self.merges_into.set(group.merges_into(number, permille, now_nanos));
    }

    /// The worker has used nearly all of a core.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.is_full.get()
    }

    /// Where connections go that come in.
    #[inline]
    pub(super) fn merges_into(&self) -> Option<usize> {
        self.merges_into.get()
    }
}

impl Group {
    fn merges_into(&self, number: usize, permille: u32, now_nanos: u64) -> Option<usize> {
        let since_spread = now_nanos.saturating_sub(self.spread_at_nanos.load(Ordering::Relaxed));
        if number >= self.worker_count() || since_spread < MERGE_AFTER_NANOS {
            return None;
        }
        let fits = |load: &Load| load.permille(now_nanos) + permille < TOGETHER_PERMILLE;
        (0..number).find(|&other| fits(&self.loads[other]) && self.loads[other].has_time(now_nanos))
    }

    /// Connections went to a worker because another one had too much.
    pub(super) fn note_spread(&self, worker: &Worker) {
        self.spread_at_nanos.store(worker.turn_time().as_nanos(), Ordering::Relaxed);
    }

    /// The worker for a new connection; the next one after `last` when all are full.
    pub(super) fn home_of_new(&self, last: usize, now_nanos: u64) -> usize {
        let count = self.worker_count();
        let first = (0..count).find(|&number| self.loads[number].has_time(now_nanos));
        first.unwrap_or((last + 1) % count)
    }

    /// A worker with time and without a long statement, for what comes in behind one.
    pub(super) fn relief_for(&self, worker: &Worker) -> Option<usize> {
        let now = worker.turn_time().as_nanos();
        self.others(worker.number).find(|&other| self.loads[other].has_time(now))
    }
}

impl RealTwin {
    /// Offers the backlog to the other workers if that is called for; wakes one then.
    pub(super) fn offer_backlog(&self, worker: &Worker, is_called_for: bool) {
        self.backlog(worker).offer(is_called_for);
        if is_called_for {
            self.group.wake_another(worker.number);
        }
    }
}
