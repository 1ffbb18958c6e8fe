//! Values too large for a leaf: a small tree of pages that belong to one entry.
//!
//! ```text
//! reference (the leaf entry's stored payload, 24 bytes):
//!   length u64 | stamp u64 | root pid u48 | class u8 | levels u8
//! page body (from byte 32):
//!   stamp u64 | level u8 | 3 reserved | content length u32 | ordinal u32 | 4 reserved | content
//! ```
//!
//! A page of level 0 holds a piece of the value; a page of a higher level holds the numbers (6
//! bytes each) of the pages below it, in order. `levels` counts the levels above 0.
//!
//! 1. The pages of a value are written once and never changed; replacing a value writes new pages
//!    and frees the old ones in the record that changes the leaf.
//! 2. Every page of a value carries its random stamp, so a reader that follows an outdated
//!    reference into a page that was freed and reused notices and starts over.
//! 3. A page becomes allocated only in the record that makes the leaf point to the value; after a
//!    crash before that record, recovery drops the pages as unallocated.

use crate::page_read::{PageRead, slice};
use crate::redo::{self, RedoError, op, page_type};
use base::{PageId, TreeId};
use pagestore::header::{CLASS_MAX, HEADER_BYTES, class_bytes};

/// Offset of the stamp in an overflow page.
pub const STAMP: usize = HEADER_BYTES;
/// Offset of the level.
pub const LEVEL: usize = STAMP + 8;
/// Offset of the content length.
pub const LENGTH: usize = LEVEL + 4;
/// Offset of the ordinal: the page's position among those of its level.
pub const ORDINAL: usize = LENGTH + 4;
/// Offset of the content.
pub const CONTENT: usize = ORDINAL + 8;
/// Bytes of a page number in an index page.
pub const PID_BYTES: usize = 6;
/// Bytes of a reference.
pub const REFERENCE_BYTES: usize = 24;

/// Content bytes of an overflow page of this class.
pub const fn content_bytes(class: u8) -> usize {
    class_bytes(class) - CONTENT
}

/// Smallest class, from the tree's own on, whose page takes the whole value; else the largest.
pub fn class_for(tree_class: u8, length: usize) -> u8 {
    (tree_class..CLASS_MAX).find(|class| content_bytes(*class) >= length).unwrap_or(CLASS_MAX)
}

/// What the leaf stores in place of an overflow value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Length of the value in bytes.
    pub length: u64,
    /// Stamp that all its pages carry.
    pub stamp: u64,
    /// The topmost page.
    pub root: PageId,
    /// Size class of all its pages.
    pub class: u8,
    /// Levels of index pages.
    pub levels: u8,
}

impl Reference {
    /// As stored.
    pub fn encode(&self) -> [u8; REFERENCE_BYTES] {
        let mut bytes = [0; REFERENCE_BYTES];
        bytes[..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.stamp.to_le_bytes());
        bytes[16..22].copy_from_slice(&self.root.get().to_le_bytes()[..6]);
        bytes[22] = self.class;
        bytes[23] = self.levels;
        bytes
    }

    /// Parses a stored reference; `None` if it cannot be one.
    pub fn decode(bytes: &[u8]) -> Option<Reference> {
        let bytes: &[u8; REFERENCE_BYTES] = bytes.try_into().ok()?;
        let word = bytes.u64_at(16);
        let reference = Reference {
            length: bytes.u64_at(0),
            stamp: bytes.u64_at(8),
            root: PageId::checked(word & PageId::MAX.get())?,
            class: bytes[22],
            levels: bytes[23],
        };
        let plausible = pagestore::header::class_is_valid(reference.class) && bytes[23] < 8;
        plausible.then_some(reference)
    }

    /// Length of the value that a stored reference stands for; 0 if it cannot be one.
    pub fn value_bytes(stored: &[u8]) -> usize {
        Reference::decode(stored).map_or(0, |reference| reference.length as usize)
    }

    /// Number of pages of each level, from level 0 upward; the last is 1.
    pub fn pages_per_level(&self) -> Vec<u64> {
        pages_per_level(self.class, self.length)
    }
}

/// Number of pages of each level for a value of `length` bytes.
pub fn pages_per_level(class: u8, length: u64) -> Vec<u64> {
    let content = content_bytes(class) as u64;
    let fan_out = content / PID_BYTES as u64;
    let mut levels = vec![length.div_ceil(content).max(1)];
    while let Some(&last) = levels.last()
        && last > 1
    {
        levels.push(last.div_ceil(fan_out));
    }
    levels
}

/// Encodes the op that writes one overflow page.
pub fn encode_page(
    out: &mut Vec<u8>,
    (tree, class): (TreeId, u8),
    (stamp, level, ordinal): (u64, u8, u32),
    content: &[u8],
) {
    redo::encode_format(out, tree, class_bytes(class));
    out.extend_from_slice(&stamp.to_le_bytes());
    out.push(level);
    out.extend_from_slice(&ordinal.to_le_bytes());
    out.extend_from_slice(content);
}

/// Applies what [`encode_page`] wrote behind tree and class.
pub(crate) fn apply(page: &mut [u8], tree: TreeId, payload: &[u8]) -> Result<(), RedoError> {
    let malformed = RedoError::Payload(op::OVERFLOW);
    let (fixed, content) = payload.split_first_chunk::<13>().ok_or(malformed)?;
    if content.len() > page.len() - CONTENT {
        return Err(malformed);
    }
    page[HEADER_BYTES..].fill(0);
    page[STAMP..LEVEL + 1].copy_from_slice(&fixed[..9]);
    page[LENGTH..ORDINAL].copy_from_slice(&(content.len() as u32).to_le_bytes());
    page[ORDINAL..ORDINAL + 4].copy_from_slice(&fixed[9..]);
    page[CONTENT..CONTENT + content.len()].copy_from_slice(content);
    redo::write_header(page, tree, page_type::OVERFLOW);
    Ok(())
}

/// The content of an overflow page, if the page is the one expected.
pub fn content(page: &[u8], (stamp, level, ordinal): (u64, u8, u32)) -> Option<&[u8]> {
    let expected = pagestore::header::page_type(page) == page_type::OVERFLOW
        && page.u64_at(STAMP) == stamp
        && page.u8_at(LEVEL) == level
        && page.u32_at(ORDINAL) == ordinal;
    let length = page.u32_at(LENGTH) as usize;
    (expected && length <= page.len() - CONTENT).then(|| slice(page, CONTENT, length))
}
