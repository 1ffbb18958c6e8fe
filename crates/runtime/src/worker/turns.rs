//! Turns of a worker's loop: when one began, and what runs next in it.

use super::{Twin, Worker};
use crate::Instant;
use crate::clock::{ticks, ticks_per_microsecond, wall_micros};

/// Behind so much of a turn the wall clock is read again.
const WALL_MICROS_MAX: u64 = 1000;

/// A reading of the wall clock.
#[derive(Clone, Copy, Default)]
pub(super) struct WallReading {
    turn: u32,
    at_ticks: u64,
    micros: i64,
}

impl Worker {
    /// Begins a turn of the loop and its time slice.
    pub(crate) fn next_turn(&self) {
        self.turn.set(self.turn.get().wrapping_add(1));
        self.slice.begin();
        self.turn_time.set(Instant::from_nanos(crate::clock::monotonic_nanos()));
        self.admission.figures.turn_ticks.set(self.slice.begin_ticks());
    }

    /// Whether the time of this turn is over.
    pub(crate) fn is_turn_over(&self) -> bool {
        self.slice.is_over()
    }

    /// Microseconds of the wall clock (real twin): its first reading in a turn and what the cycle
    /// counter says has passed since. Every statement asks, and reading the clock waits for all
    /// memory that was asked for before.
    pub(crate) fn wall_micros(&self) -> i64 {
        let WallReading { turn, at_ticks, micros } = self.wall_reading.get();
        let now = ticks();
        // A tick too many to the microsecond, so that the next reading is never behind.
        let passed = now.saturating_sub(at_ticks) / (ticks_per_microsecond() + 1);
        if turn == self.turn.get() && passed <= WALL_MICROS_MAX {
            return micros + passed as i64;
        }
        let micros = wall_micros();
        self.wall_reading.set(WallReading { turn: self.turn.get(), at_ticks: now, micros });
        micros
    }

    /// When the present turn began, in ticks.
    #[inline]
    pub(crate) fn turn_ticks(&self) -> u64 {
        self.slice.begin_ticks()
    }

    /// See [`crate::turn_time`].
    #[inline]
    pub(crate) fn turn_time(&self) -> Instant {
        match &self.twin {
            Twin::Real(_) => self.turn_time.get(),
            Twin::Sim(sim) => sim.now(),
        }
    }

    /// Takes the next fiber out of the ready queue (real twin).
    #[inline]
    pub(crate) fn pop_ready(&self) -> Option<u32> {
        let mut ready = self.ready.borrow_mut();
        let next = ready.pop(self.turn.get())?;
        // Those that run after it have waited while others used the caches.
        let (second, third) = (ready.ahead(0), ready.ahead(1));
        drop(ready);
        if let Some(slot) = third {
            crate::prefetch(self.slot(slot));
        }
        if let Some(slot) = second {
            self.slot(slot).prefetch_stack();
        }
        Some(next)
    }

    /// Takes a fiber that has used up slices, when nothing else is ready (real twin).
    #[inline]
    pub(crate) fn pop_long(&self) -> Option<u32> {
        self.ready.borrow_mut().pop_long(self.turn.get())
    }
}
