//! Gannet: the `pagestore` room. Pages by number, in memory and on flash.
//!
//! Pages are never overwritten on disk: flushers compress dirty pages, or what changed of them,
//! and append that in groups to segments; the translation array says where each page is. See
//! `docs/file-format.md` for the bytes and the head of each file for its rules.
//!
//! `pagestore` knows no keys and no transactions: a page is a header of 32 bytes ([`header`]) and
//! a body that belongs to somebody else.

mod accounts;
mod ahead;
mod array;
mod background;
mod blob;
mod bytes;
mod catch_up;
mod check;
mod checkpoint;
mod chunks;
mod codecs;
mod collect;
mod compression_counts;
mod counters;
mod debt;
mod delta;
mod dictionaries;
mod dictionary_file;
mod dirty;
mod disk;
mod error;
mod evict;
mod files;
mod flush;
mod frames;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod governor;
mod group;
mod guard;
pub mod header;
mod latch;
mod load;
mod location;
mod log_cap;
mod mapping;
#[cfg(all(test, loom))]
mod model;
mod newest;
mod optimistic;
mod options;
mod outgoing;
mod pace;
mod packing;
mod recent;
pub mod redo;
mod reserve;
mod scan;
mod segment;
mod segments;
mod short_delta;
pub mod space;
mod store;
mod superblock;
mod training;
mod window;
mod writer;

pub use background::{FLUSHERS_MAX, PaceFigures};
pub use check::{CheckReport, Finding, Region, RegionKind, check};
pub use codecs::Compression;
pub use compression_counts::{COUNTED_CLASSES, CompressionCounts};
pub use counters::StoreCounters;
pub use dictionaries::DictionaryUsage;
pub use error::{Retry, StoreError};
pub use frames::PoolFigures;
pub use guard::{ExclusivePage, Pin, SharedPage};
pub use location::Location;
pub use mapping::{Recovered, recover};
pub use optimistic::OptimisticPage;
pub use options::{DictionaryOptions, OnFatal, PageCheck, PageOrder, StoreOptions};
pub use space::{MapChange, Reservation, Space, TreeUsage};
pub use store::PageStore;
pub use superblock::{ENGINE_BYTES_MAX, SUPERBLOCK_FILE, Superblock};
