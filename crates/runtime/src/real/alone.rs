//! When a worker may wait for the device itself.
//!
//! A durable write by the ring ends in a thread of the kernel, which then wakes the worker: two
//! hand-overs more than a write by system call, a fifth of the latency of a fast device. But who
//! waits in a system call does nothing else. So:
//! 1. A worker does it only while one connection alone has run on it for some time, and nothing
//!    else waits. What comes meanwhile for others waits for one write, once: then the worker is
//!    not alone any more.
//! 2. It does it only while the device has been quick. After a slow write the device has to show
//!    anew that it is.

use super::group::RealTwin;
use crate::clock::ticks_per_microsecond;
use crate::worker::Worker;
use std::cell::Cell;

/// So long no other connection has run.
const ALONE_MICROS: u64 = 10_000;

/// A quick device writes durably within this, on average.
const QUICK_NANOS: u64 = 250_000;

/// What a worker knows of its connections and of the device.
pub(crate) struct Alone {
    /// The connection that ran last, by the address of its task.
    last: Cell<usize>,
    /// When another one ran.
    other_ticks: Cell<u64>,
    write_nanos: Cell<u64>,
}

impl Alone {
    pub(super) fn new() -> Self {
        // The device has shown nothing yet.
        let write_nanos = Cell::new(4 * QUICK_NANOS);
        Self { last: Cell::new(0), other_ticks: Cell::new(0), write_nanos }
    }

    /// A connection is about to run.
    #[inline]
    pub(super) fn note_run(&self, task: usize, now_ticks: u64) {
        if self.last.replace(task) != task {
            self.other_ticks.set(now_ticks);
        }
    }

    /// A durable write took so long.
    pub(super) fn note_write(&self, nanos: u64) {
        let mean = self.write_nanos.get();
        let next = if nanos > 4 * QUICK_NANOS { nanos } else { mean - mean / 8 + nanos / 8 };
        self.write_nanos.set(next);
    }

    /// Whether both rules hold, as far as they are about connections and the device.
    fn may_wait(&self, now_ticks: u64, ticks_per_microsecond: u64) -> bool {
        let since_other = now_ticks.saturating_sub(self.other_ticks.get());
        since_other > ALONE_MICROS * ticks_per_microsecond && self.write_nanos.get() < QUICK_NANOS
    }
}

impl RealTwin {
    /// Whether the current fiber may keep the worker waiting for the device, see `alone`.
    pub(super) fn may_wait_for_device(&self, worker: &Worker) -> bool {
        let waits = worker.has_ready() || worker.mailbox.is_filled();
        let is_alone = !waits && self.backlog(worker).len() == 0;
        is_alone && self.alone.may_wait(worker.turn_ticks(), ticks_per_microsecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_connection_and_a_quick_device() {
        let alone = Alone::new();
        alone.note_run(1, 0);
        assert!(!alone.may_wait(20_000, 1), "nothing is known of the device");
        (0..40).for_each(|_| alone.note_write(100_000));
        assert!(alone.may_wait(20_000, 1));
        alone.note_run(1, 20_000);
        assert!(alone.may_wait(20_001, 1), "the same connection");
        alone.note_run(2, 21_000);
        assert!(!alone.may_wait(30_000, 1), "another one ran");
        assert!(alone.may_wait(31_001, 1));
        alone.note_write(900_000_000);
        (0..50).for_each(|_| alone.note_write(100_000));
        assert!(!alone.may_wait(40_000, 1), "a stall is not forgotten at once");
        (0..50).for_each(|_| alone.note_write(100_000));
        assert!(alone.may_wait(40_000, 1));
    }
}
