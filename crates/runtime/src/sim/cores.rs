//! How long a simulation's workers wait for cores: as long as it is told.

use crate::clock::Instant;
use crate::worker::{self, Twin};
use std::cell::Cell;
use std::time::Duration;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct CoreWait {
    /// When the share was set, and how long they had waited until then.
    at: Cell<Instant>,
    waited: Cell<Duration>,
    permille: Cell<u32>,
}

impl CoreWait {
    /// How long they have waited until now.
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        self.waited.get() + (now - self.at.get()) * self.permille.get() / 1000
    }

    fn set(&self, now: Instant, permille: u32) {
        self.waited.set(self.waited(now));
        self.at.set(now);
        self.permille.set(permille);
    }
}

/// From now on the workers of this simulation wait for cores so many thousandths of the time, by
/// what [`crate::pressure`] says. Nothing takes longer by that.
pub fn set_core_wait(permille: u32) {
    let worker = worker::current();
    if let Twin::Sim(sim) = &worker.twin {
        sim.core_wait.set(sim.now(), permille);
    }
}
