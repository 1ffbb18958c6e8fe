//! The simulated twin: one thread, one seed, the whole program.
//!
//! ```
//! use runtime::sim::{SimConfig, Simulation};
//! let mut simulation = Simulation::new(SimConfig::new(7));
//! let sum = simulation.run(|| {
//!     let fibers: Vec<_> = (0..4u64).map(|n| runtime::spawn("add", move || n)).collect();
//!     fibers.into_iter().map(|fiber| fiber.join().expect("no panic")).sum::<u64>()
//! });
//! assert_eq!(sum.expect("no crash"), 6);
//! ```
//!
//! Invariants:
//! 1. Everything that happens is decided by the seed and the program: which fiber runs, how long
//!    operations take, which faults occur, what a crash leaves. Two runs have one [trace hash].
//!    (The program must do its part: no other threads, no order taken from a `HashMap` with a
//!    random hasher, no addresses used as data.)
//! 2. Virtual time advances by small steps while fibers run and jumps to the next timer when none
//!    can, so a simulation never sleeps.
//! 3. When nothing can run and no timer is set the simulation ends with [`SimEnd::Deadlock`].
//!
//! [trace hash]: Simulation::trace_hash

mod cores;
mod disk;
mod driver;
mod faults;
mod file;
mod image;
mod namespace;
mod net;

pub use cores::set_pressure;
pub use disk::{CrashKind, Disk, DiskConfig, DiskStatistics};
pub(crate) use driver::SimTwin;
pub use driver::{SimConfig, SimEnd, Simulation, crash_now, disk, interleave_point, trace};
pub use faults::{Faults, Operation};
pub(crate) use file::{SimFile, on_names};
pub(crate) use namespace::Namespace;
pub(crate) use net::{SimListener, SimStream};
