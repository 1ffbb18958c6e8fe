//! B+trees over the page store: ordered byte keys to entries of flags, version word and payload.
//!
//! `btree` knows bytes only: no SQL types, no transactions, no visibility. What a key, a flag or a
//! version word means belongs to the caller.
//!
//! ```text
//! Tree::create / open       a tree is a root page that keeps its number for life
//! Tree::get                 optimistic lookup, copies the entry
//! Tree::modify              a closure decides under the leaf's latch; one log record a change
//! Tree::cursor              forward or backward, a batch of entries of one leaf at a time
//! BulkLoader                sorted entries into an empty tree, bottom-up
//! Tree::verify, statistics, estimate_range, sample_leaf
//! apply, is_format          redo of the tree's page ops (codes 0x20..=0x29)
//! check_page                what a node's bytes alone can tell, for the page store's reads
//! page_order                what leaves are sorted by that the page store writes together
//! ```
//!
//! * Keys compare as bytes (memcmp, then length). The longest key is an eighth of the page size.
//! * A node's range is `[lower fence, upper fence)`; nodes have no links to siblings.
//! * Payloads beyond a quarter of the page (with their key) go to overflow pages, transparently.
//! * Dropping a tree is the page store's `drop_tree`: it frees all extents of the tree at once.
//!
//! The bytes are in `docs/file-format.md`; the rules of each part at the head of its file.

#![warn(missing_docs)]

pub mod build;
mod bulk;
pub mod counters;
mod cursor;
mod descent;
pub mod edit;
mod entry;
mod error;
mod expected;
pub mod layout;
mod merge;
mod modify;
pub mod node;
pub mod overflow;
mod page_read;
pub mod redo;
mod scratch;
mod sparse;
pub mod split;
mod statistics;
mod structure;
mod tree;
mod value;
mod verify;

pub use bulk::{BulkLoader, BulkSummary};
pub use cursor::{Cursor, Direction};
pub use descent::LeafHint;
pub use entry::{Batch, BatchEntry, DELETED, EntryBuffer, EntryRef};
pub use error::TreeError;
pub use modify::{Change, LogPart, Modified};
pub use node::page_order;
pub use page_read::PageRead;
pub use redo::{RedoError, apply, format_class, is_format};
pub use statistics::TreeStatistics;
pub use tree::Tree;
pub use verify::{Finding, MAX_FINDINGS, Verification, check_page};
