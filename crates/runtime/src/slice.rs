//! Time slices: how long the fibers of a worker run between two looks at what has happened.

use crate::clock::{ticks, ticks_per_microsecond};
use std::cell::Cell;

/// How long the fibers of one turn may run together before [`crate::yield_if_due`] yields.
const SLICE_MICROS: u64 = 150;

/// Calls of [`crate::yield_if_due`] between two looks at the clock, at most.
const CALLS_PER_LOOK_MAX: u32 = 16;

/// When the present turn's time is over, and how often to look at the clock for that. Looks are
/// spaced by the speed of the caller's loop.
pub(crate) struct Slice {
    begin_ticks: Cell<u64>,
    end_ticks: Cell<u64>,
    calls_left: Cell<u32>,
    calls_per_look: Cell<u32>,
    looked_ticks: Cell<u64>,
    /// The first look of the fiber that runs; 0 before it.
    first_look_ticks: Cell<u64>,
    ticks_per_microsecond: u64,
}

impl Slice {
    pub(crate) fn new() -> Self {
        Self {
            begin_ticks: Cell::new(0),
            end_ticks: Cell::new(0),
            calls_left: Cell::new(1),
            calls_per_look: Cell::new(1),
            looked_ticks: Cell::new(0),
            first_look_ticks: Cell::new(0),
            ticks_per_microsecond: ticks_per_microsecond(),
        }
    }

    /// A turn begins.
    pub(crate) fn begin(&self) {
        let now = ticks();
        self.begin_ticks.set(now);
        self.end_ticks.set(now + SLICE_MICROS * self.ticks_per_microsecond);
        self.looked_ticks.set(now);
    }

    /// A fiber is resumed.
    #[inline]
    pub(crate) fn begin_run(&self) {
        self.first_look_ticks.set(0);
    }

    /// Whether the fiber that runs, and for which [`Slice::is_due`] was true just now, has used
    /// most of a slice by itself. One that only began late in a turn has not.
    pub(crate) fn is_used_up(&self) -> bool {
        let used = self.looked_ticks.get().saturating_sub(self.first_look_ticks.get());
        used > SLICE_MICROS / 2 * self.ticks_per_microsecond
    }

    /// When the turn began, or the slice of a long fiber in it.
    #[inline]
    pub(crate) fn begin_ticks(&self) -> u64 {
        self.begin_ticks.get()
    }

    /// Whether the turn's time is over.
    pub(crate) fn is_over(&self) -> bool {
        ticks() >= self.end_ticks.get()
    }

    /// As `is_over`, but mostly without a look at the clock.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        let left = self.calls_left.get() - 1;
        self.calls_left.set(left);
        left == 0 && self.look()
    }

    #[inline(never)]
    fn look(&self) -> bool {
        let now = ticks();
        if self.first_look_ticks.get() == 0 {
            self.first_look_ticks.set(now);
        }
        let passed = now.saturating_sub(self.looked_ticks.replace(now));
        let calls = self.calls_per_look.get();
        // Fewer at once when the loop became slow, more step by step when it is fast.
        let calls = if passed > 15 * self.ticks_per_microsecond {
            1
        } else {
            (calls * 2).min(CALLS_PER_LOOK_MAX)
        };
        self.calls_per_look.set(calls);
        self.calls_left.set(calls);
        now >= self.end_ticks.get()
    }
}
