//! Gannet: the `base` room. What every other room may use and nothing that knows another room.
//!
//! Identifiers as newtypes, checksums, seeded random numbers, invariants, fault points
//! ([`buggify!`]), coverage marks ([`probe!`]), what power failures leave ([`Survival`]), the
//! registry of metrics and memory accounts.
//! `base` starts no thread, reads no clock and touches no file.

pub mod buggify;
pub mod checksum;
pub mod difference;
mod ids;
mod invariant;
pub mod memory;
pub mod metrics;
pub mod mutant;
pub mod primitives;
pub mod probe;
mod random;
mod survival;
pub mod under_way;

pub use ids::{IndexId, Lsn, PageId, TableId, TreeId, TrxId};
#[doc(hidden)]
pub use invariant::invariant_failed;
pub use memory::{MemoryAccount, MemoryExceeded};
pub use random::Random;
pub use survival::Survival;
