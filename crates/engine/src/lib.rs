//! The storage engine: tables and indexes over pages, log and versions.
//!
//! ```text
//! Engine::open           recovery, or a new database in an empty directory
//! engine_api::Engine     transactions, tables, dictionary (the border to SQL)
//! table, read, scan      rows: changes, reads by key, scans
//! write, rollback        one entry: versions and locks decided under its latch; undoing it
//! ddl, build, shape      trees of tables; index builds; what the engine knows of tables
//! purge, checkpoint      background work
//! offline                `gannet check`
//! recovery               redo, undo of what did not commit, leftovers
//! ```
//!
//! [`memory::MemoryEngine`] is a small engine without a disk that obeys the same border; tests
//! compare the real one with it.

mod ahead;
mod analysis;
mod background;
mod buffers;
mod build;
mod check;
mod checkpoint;
mod core;
mod counters;
mod ddl;
mod dictionary;
mod drops;
mod engine;
mod error;
mod keys;
mod lock_entry;
mod locking;
mod losers;
pub mod memory;
pub mod offline;
mod options;
mod prepared;
mod purge;
mod range;
mod read;
mod recovery;
mod redo;
mod report;
mod rollback;
mod scan;
mod shape;
mod sort;
mod statistics;
mod status;
mod storage;
mod table;
mod thinning;
mod transaction;
mod unique;
mod write;

#[cfg(test)]
mod tests;

pub use crate::engine::Engine;
pub use options::{EngineOptions, OnFatal};
pub use pagestore::{DictionaryOptions, FLUSHERS_MAX};
pub use recovery::{OpenError, RecoverySummary};
