//! Code whose panic must end the process.

use crate::worker;

/// While this guard lives, a panic ends the process: the code holds a write latch or has changed
/// half of something, and recovery is the only repair. In a simulation it ends the simulation.
///
/// ```
/// let guard = runtime::abort_on_panic("page 7 is being split");
/// // ... change the page ...
/// drop(guard);
/// ```
#[must_use = "the guard protects only while it lives"]
pub fn abort_on_panic(what: &'static str) -> AbortOnPanic {
    AbortOnPanic { what, was_panicking: std::thread::panicking() }
}

/// See [`abort_on_panic`].
#[derive(Debug)]
pub struct AbortOnPanic {
    what: &'static str,
    /// The guard was made by a destructor during an earlier panic; only a later one counts.
    was_panicking: bool,
}

impl Drop for AbortOnPanic {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() && !self.was_panicking {
            fatal(self.what);
        }
    }
}

#[cold]
fn fatal(what: &str) {
    match worker::try_current() {
        Some(worker) if worker.is_halting() => {}
        Some(worker) if worker.sim().is_some() => {
            if let Some(sim) = worker.sim() {
                sim.end_by_panic(format!("panic while {what}"));
            }
        }
        Some(_) => {
            eprintln!("panic while {what}: the process ends, recovery is the repair");
            std::process::abort();
        }
        None => {}
    }
}
