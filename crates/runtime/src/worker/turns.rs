//! Turns of a worker's loop: when one began, and what runs next in it.

use super::{Twin, Worker};
use crate::Instant;
use crate::clock::{ticks, ticks_per_microsecond, wall_micros};

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

    /// Microseconds of the wall clock (real twin).
    pub(crate) fn wall_micros(&self) -> i64 {
        self.wall_clock.micros(self.turn.get(), ticks_per_microsecond(), ticks, wall_micros)
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
