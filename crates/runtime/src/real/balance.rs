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
//! 6. A worker whose fibers read files is full at half of that. A transaction of theirs comes back
//!    to it after each read, some forty times, and stands in its queue each time: at nine tenths of
//!    a core these queues take longer than the device, and the rate never rises to what would be
//!    full. What a wake-up costs is little beside a read.

use super::group::{Group, RealTwin};
use super::own_core::OwnCore;
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

/// Files are read if there are so many reads in a window.
const READS_MANY: u32 = 10;

/// Where files are read, a worker counts as using so many times what it uses.
const READING_FACTOR: u32 = 2;

/// After connections had to be spread they are not brought together for so long.
const MERGE_AFTER_NANOS: u64 = 100_000_000;

/// What other workers know of one.
#[derive(Default)]
struct Load {
    /// Of a core, more where files are read (rule 6).
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

/// What the workers know of each other.
pub(super) struct Loads {
    of_workers: Vec<Load>,
    /// Workers that take connections: the first ones.
    regular: usize,
    /// When connections went to another worker last because there was too much for one.
    spread_at_nanos: AtomicU64,
}

impl Loads {
    /// Of `count` workers, of which `regular` take connections.
    pub(super) fn new(count: usize, regular: usize) -> Self {
        let of_workers = (0..count).map(|_| Load::default()).collect();
        Self { of_workers, regular, spread_at_nanos: AtomicU64::new(0) }
    }

    /// The worker that takes what comes in for `number`, which uses so much of a core (rule 5).
    fn merges_into(&self, number: usize, permille: u32, now_nanos: u64) -> Option<usize> {
        let since_spread = now_nanos.saturating_sub(self.spread_at_nanos.load(Ordering::Relaxed));
        if number >= self.regular || since_spread < MERGE_AFTER_NANOS {
            return None;
        }
        let takes = |other: &usize| {
            let load = &self.of_workers[*other];
            load.permille(now_nanos) + permille < TOGETHER_PERMILLE && load.has_time(now_nanos)
        };
        (0..number).find(takes)
    }

    /// The first worker with time.
    fn with_time(&self, now_nanos: u64) -> Option<usize> {
        (0..self.regular).find(|&number| self.of_workers[number].has_time(now_nanos))
    }
}

/// A worker's own account.
#[derive(Default)]
pub(crate) struct Balance {
    begin_nanos: Cell<u64>,
    cpu_nanos: Cell<u64>,
    /// Reads of files begun since the window began.
    reads: Cell<u32>,
    is_full: Cell<bool>,
    merges_into: Cell<Option<usize>>,
    own_core: OwnCore,
}

impl Balance {
    /// A fiber reads a file.
    #[inline]
    pub(super) fn note_read(&self) {
        self.reads.set(self.reads.get().saturating_add(1));
    }

    /// Once a turn: tells the others what has changed.
    #[inline]
    pub(super) fn look(&self, worker: &Worker, group: &Group) {
        let load = &group.loads.of_workers[worker.number];
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
        let reads = self.reads.replace(0);
        self.own_core.close_window(number, group, now_nanos, reads);
        let permille = permille(used, length, reads);
        let load = &group.loads.of_workers[number];
        load.permille.store(permille, Ordering::Relaxed);
        load.at_nanos.store(now_nanos, Ordering::Relaxed);
        self.is_full.set(permille >= FULL_PERMILLE);
        self.merges_into.set(group.loads.merges_into(number, permille, now_nanos));
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

/// The load of a worker that used so much of a window and began so many reads of files in it.
fn permille(used_nanos: u64, length_nanos: u64, reads: u32) -> u32 {
    let factor = if reads >= READS_MANY { READING_FACTOR } else { 1 };
    (used_nanos.min(length_nanos) * 1000 / length_nanos) as u32 * factor
}

impl Group {
    /// Connections went to a worker because another one had too much.
    pub(super) fn note_spread(&self, worker: &Worker) {
        self.loads.spread_at_nanos.store(worker.turn_time().as_nanos(), Ordering::Relaxed);
    }

    /// The worker for a new connection; the next one after `last` when all are full.
    pub(super) fn home_of_new(&self, last: usize, now_nanos: u64) -> usize {
        self.loads.with_time(now_nanos).unwrap_or((last + 1) % self.worker_count())
    }

    /// A worker with time and without a long statement, for what comes in behind one.
    pub(super) fn relief_for(&self, worker: &Worker) -> Option<usize> {
        let now = worker.turn_time().as_nanos();
        self.others(worker.number).find(|&other| self.loads.of_workers[other].has_time(now))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule 6.
    #[test]
    fn who_reads_files_is_full_earlier() {
        let load =
            |percent: u64, reads| permille(WINDOW_NANOS * percent / 100, WINDOW_NANOS, reads);
        assert!(load(72, 0) < FULL_PERMILLE && load(72, READS_MANY - 1) < FULL_PERMILLE);
        assert!(load(72, READS_MANY) >= FULL_PERMILLE);
        assert!(load(44, 1000) < FULL_PERMILLE, "two of these have time");
        assert!(2 * load(44, 1000) > TOGETHER_PERMILLE, "and do not become one");
        assert_eq!(load(130, 0), 1000, "an account that came late");
    }

    const MILLISECOND: u64 = 1_000_000;
    const NOW: u64 = 5_000 * MILLISECOND;

    /// Three workers and a reserved one, which have used so much of a core until now.
    fn loads(permilles: [u32; 3]) -> Loads {
        let loads = Loads::new(4, 3);
        for (load, permille) in loads.of_workers.iter().zip(permilles) {
            load.permille.store(permille, Ordering::Relaxed);
            load.at_nanos.store(NOW, Ordering::Relaxed);
        }
        loads
    }

    #[test]
    fn what_was_spread_stays_apart_for_a_tenth_of_a_second() {
        let loads = loads([100, 100, 100]);
        for spread_ms in [5_000, 4_999, 4_950, 4_901] {
            loads.spread_at_nanos.store(spread_ms * MILLISECOND, Ordering::Relaxed);
            assert_eq!(loads.merges_into(1, 100, NOW), None, "spread at {spread_ms} ms");
        }
        for spread_ms in [4_900, 4_850, 0] {
            loads.spread_at_nanos.store(spread_ms * MILLISECOND, Ordering::Relaxed);
            assert_eq!(loads.merges_into(1, 100, NOW), Some(0), "spread at {spread_ms} ms");
        }
        // A worker whose turn began before the other's is no reason to do it at once.
        loads.spread_at_nanos.store(NOW + MILLISECOND, Ordering::Relaxed);
        assert_eq!(loads.merges_into(1, 100, NOW), None);
    }

    #[test]
    fn workers_merge_into_an_earlier_one_if_both_are_far_from_full() {
        let busy = loads([500, 300, 100]);
        assert_eq!(busy.merges_into(0, 500, NOW), None, "there is no earlier one");
        assert_eq!(busy.merges_into(1, 249, NOW), Some(0));
        assert_eq!(busy.merges_into(1, 250, NOW), None, "three quarters of a core together");
        assert_eq!(busy.merges_into(2, 300, NOW), Some(1), "the first is too busy for it");
        assert_eq!(busy.merges_into(3, 0, NOW), None, "the reserved worker keeps what it has");
        // Who has not told anything for three windows sleeps.
        assert_eq!(busy.merges_into(1, 700, NOW + 30 * MILLISECOND), None);
        assert_eq!(busy.merges_into(1, 700, NOW + 31 * MILLISECOND), Some(0));
        busy.of_workers[0].has_long.store(true, Ordering::Relaxed);
        assert_eq!(busy.merges_into(1, 100, NOW), None, "it runs a long statement");
    }

    #[test]
    fn new_connections_go_to_the_first_worker_that_is_not_full() {
        assert_eq!(loads([900, 899, 0]).with_time(NOW), Some(1));
        assert_eq!(loads([950, 1000, 900]).with_time(NOW), None);
    }
}
