//! Where everything lies inside a node. `docs/file-format.md` shows the same table for readers.
//!
//! ```text
//!   0 .. 32   common page header (owned by pagestore)
//!  32 .. 128  node header
//! 128 ..      slots, 8 bytes each, in key order, growing upward
//!      .. end heap: fences and entries, growing downward
//! ```

use pagestore::header::HEADER_BYTES;

/// Level of the node: 0 is a leaf. One byte.
pub const LEVEL: usize = HEADER_BYTES;
/// Node flags: [`HAS_LOWER`], [`HAS_UPPER`]. One byte.
pub const NODE_FLAGS: usize = LEVEL + 1;
/// How many inserts in a row landed just behind the one before, saturating. One byte.
pub const ASCENDING: usize = NODE_FLAGS + 1;
/// Number of slots. u16, after one reserved byte.
pub const COUNT: usize = ASCENDING + 2;
/// Offset of the lowest used heap byte. u16.
pub const HEAP: usize = COUNT + 2;
/// Live heap bytes: entries and fences, without holes. u16.
pub const USED: usize = HEAP + 2;
/// Length of the prefix that all keys of the node share and no entry stores. u16.
pub const PREFIX_LEN: usize = USED + 2;
/// Offset and length of the lower fence (inclusive bound). 2 x u16.
pub const LOWER_OFFSET: usize = PREFIX_LEN + 2;
/// See [`LOWER_OFFSET`].
pub const LOWER_LEN: usize = LOWER_OFFSET + 2;
/// Offset and length of the upper fence (exclusive bound). 2 x u16.
pub const UPPER_OFFSET: usize = LOWER_LEN + 2;
/// See [`UPPER_OFFSET`].
pub const UPPER_LEN: usize = UPPER_OFFSET + 2;
/// Slot of the latest insert, plus one; 0 when there is none. u16.
pub const LAST_INSERT: usize = UPPER_LEN + 2;
/// Bytes that all suffixes have in common and that heads leave out. u16.
pub const HEAD_SKIP: usize = LAST_INSERT + 2;
/// Inner nodes: the child right of the last separator. u64.
pub const UPPER_CHILD: usize = HEAD_SKIP + 2;
/// Sixteen heads of evenly spaced slots, u32 each: one cache line that narrows the search.
pub const HINTS: usize = UPPER_CHILD + 8;
/// Number of hints.
pub const HINT_COUNT: usize = 16;
/// First slot.
pub const SLOTS: usize = HINTS + 4 * HINT_COUNT;
/// Bytes of a slot: offset u16 | suffix length u16 | head u32.
pub const SLOT_BYTES: usize = 8;

/// Node flag: the node has a lower fence; without it the range begins at minus infinity.
pub const HAS_LOWER: u8 = 1;
/// Node flag: the node has an upper fence; without it the range ends at plus infinity.
pub const HAS_UPPER: u8 = 2;

/// Bytes of a leaf entry besides its key suffix and payload: flags u8 | word u64 | length u16.
pub const LEAF_HEADER_BYTES: usize = 11;
/// Bytes of an inner entry besides its key suffix: the child's page id.
pub const CHILD_BYTES: usize = 6;

/// Greatest number of levels a tree may have; a deeper descent means a damaged tree.
pub const MAX_LEVELS: usize = 40;

const _: () = assert!(HEADER_BYTES == 32 && SLOTS == 128 && HINTS.is_multiple_of(64));

/// Longest key a tree of this page size takes: two fences and two entries always fit.
pub const fn max_key_bytes(page_bytes: usize) -> usize {
    page_bytes / 8
}

/// Largest leaf entry (slot, header, key, payload) kept inside the leaf; larger payloads go to
/// overflow pages.
pub const fn max_inline_bytes(page_bytes: usize) -> usize {
    page_bytes / 4
}
