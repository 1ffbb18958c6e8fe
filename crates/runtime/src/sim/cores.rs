//! How long a simulation's workers wait for cores, and fibers for workers: as long as it is told.

use crate::Pressure;
use crate::clock::Instant;
use crate::worker::{self, Twin};
use std::cell::Cell;
use std::time::Duration;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Cores {
    core_wait: Waited,
    crowded: Waited,
}

/// A time that grows with the clock, by a share of it.
#[derive(Debug, Default)]
struct Waited {
    /// When the share was set, and how long it had been until then.
    at: Cell<Instant>,
    before: Cell<Duration>,
    permille: Cell<u32>,
}

impl Cores {
    /// What [`crate::pressure`] says.
    pub(crate) fn pressure(&self, now: Instant) -> Pressure {
        Pressure { core_wait: self.core_wait.until(now), crowded: self.crowded.until(now) }
    }
}

impl Waited {
    fn until(&self, now: Instant) -> Duration {
        self.before.get() + (now - self.at.get()) * self.permille.get() / 1000
    }

    fn set(&self, now: Instant, permille: u32) {
        self.before.set(self.until(now));
        self.at.set(now);
        self.permille.set(permille);
    }
}

/// From now on the workers of this simulation wait for cores so many thousandths of the time, and
/// are crowded so many, by what [`crate::pressure`] says. Nothing takes longer by that.
pub fn set_pressure(core_wait_permille: u32, crowded_permille: u32) {
    let worker = worker::current();
    if let Twin::Sim(sim) = &worker.twin {
        sim.cores.core_wait.set(sim.now(), core_wait_permille);
        sim.cores.crowded.set(sim.now(), crowded_permille);
    }
}
