//! The storage engine: tables and indexes over pages, log and versions.
//!
//! [`memory::MemoryEngine`] is a small engine without a disk that obeys the same border; tests
//! compare the real one with it.

mod keys;
pub mod memory;
mod range;
