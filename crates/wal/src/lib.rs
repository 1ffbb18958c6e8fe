//! Gannet: the `wal` room. The one log: reservation, group commit, reading, recovery scan.
//!
//! ```text
//! fiber:   permit = wal.admit(bytes)?            // may park: before any latch
//!          latch pages ... apply ...
//!          lsn = wal.append(&permit, &record)    // never parks: fetch-add, copy, publish
//!          page.mark_dirty(lsn) ... unlatch
//!          wal.wait_commit(lsn.end)?             // parks; one fiber leads, the others follow
//! ```
//!
//! A log sequence number is a byte position in the stream of records; it starts at
//! [`FIRST_LSN`] and never goes back. The LSN in a page header is the END of the record that
//! changed the page last, so "the log is durable up to it" means "the page may be written".
//!
//! * `record`: the record format, shared by every room that logs.
//! * `ring`: lock-free reservation and completion.
//! * `wal`: the interface; `room`: admission; `leading`: leader and followers, poisoning.
//! * `format`, `sector`, `files`: batches, file headers, preallocation, recycling; `spares`: how
//!   much of the file system files that hold no log may take; `space_notice`: who waits is told of.
//! * `reader`, `verify`: recovery scan and offline check, telling a torn tail from rot.
//!
//! The log knows nothing of pages, trees or transactions beyond the bytes of a record header.

pub mod counters;
mod files;
mod format;
#[cfg(fuzzing)]
pub mod fuzzing;
mod leading;
mod listing;
mod reader;
pub mod record;
mod ring;
mod room;
mod sector;
mod space_notice;
mod spares;
mod types;
mod verify;
mod wal;
mod writer;

pub use reader::{ReadCounts, ReadError, Reader, Record};
pub use record::{
    LogicalUndo, PageOpView, RecordBuilder, RecordError, RecordKind, RecordView, UndoKind,
};
pub use room::{Claim, Permit};
pub use space_notice::SpaceNotice;
pub use types::{
    FIRST_LSN, FlushPolicy, LogEnd, LsnRange, OnDiskFull, OnFatal, WalError, WalOptions,
};
pub use verify::{Finding, Region, RegionKind, VerifyReport, verify};
pub use wal::Wal;
