//! Reading a page that may change under the reader.
//!
//! The search code of a node is written once over [`PageRead`] and runs both on plain bytes (held
//! under a latch) and on an [`OptimisticPage`] whose bytes may be torn by a concurrent writer.
//!
//! 1. No read is ever out of bounds: an offset from a torn page yields some bytes, never a panic.
//! 2. What was read counts only after the page's version has been validated.

use pagestore::OptimisticPage;
use std::cmp::Ordering;

/// Bounded little-endian loads from a page.
pub trait PageRead {
    /// Size of the page in bytes.
    fn page_bytes(&self) -> usize;
    /// One byte; anything out of bounds.
    fn u8_at(&self, offset: usize) -> u8;
    /// Two bytes; anything out of bounds.
    fn u16_at(&self, offset: usize) -> u16;
    /// Four bytes; anything out of bounds.
    fn u32_at(&self, offset: usize) -> u32;
    /// Eight bytes; anything out of bounds.
    fn u64_at(&self, offset: usize) -> u64;
    /// Compares `length` bytes of the page with `other`, as memcmp and then by length.
    fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Ordering;
    /// Appends `length` bytes to `out`; out of bounds appends nothing.
    fn append_to(&self, offset: usize, length: usize, out: &mut Vec<u8>);
}

/// `length` bytes at `offset`, or nothing if they do not lie inside the page.
pub fn slice(page: &[u8], offset: usize, length: usize) -> &[u8] {
    offset.checked_add(length).and_then(|end| page.get(offset..end)).unwrap_or(&[])
}

fn array<const N: usize>(page: &[u8], offset: usize) -> [u8; N] {
    page.get(offset..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}

/// Up to seven bytes as a big-endian number.
#[inline]
fn first_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl PageRead for [u8] {
    fn page_bytes(&self) -> usize {
        self.len()
    }
    #[inline]
    fn u8_at(&self, offset: usize) -> u8 {
        self.get(offset).copied().unwrap_or(0)
    }
    #[inline]
    fn u16_at(&self, offset: usize) -> u16 {
        u16::from_le_bytes(array(self, offset))
    }
    #[inline]
    fn u32_at(&self, offset: usize) -> u32 {
        u32::from_le_bytes(array(self, offset))
    }
    #[inline]
    fn u64_at(&self, offset: usize) -> u64 {
        u64::from_le_bytes(array(self, offset))
    }
    #[inline]
    fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Ordering {
        slice(self, offset, length).cmp(other)
    }
    #[inline]
    fn append_to(&self, offset: usize, length: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(slice(self, offset, length));
    }
}

impl PageRead for OptimisticPage<'_> {
    #[inline]
    fn page_bytes(&self) -> usize {
        OptimisticPage::page_bytes(self)
    }
    #[inline]
    fn u8_at(&self, offset: usize) -> u8 {
        OptimisticPage::u8_at(self, offset)
    }
    #[inline]
    fn u16_at(&self, offset: usize) -> u16 {
        OptimisticPage::u16_at(self, offset)
    }
    #[inline]
    fn u32_at(&self, offset: usize) -> u32 {
        OptimisticPage::u32_at(self, offset)
    }
    #[inline]
    fn u64_at(&self, offset: usize) -> u64 {
        OptimisticPage::u64_at(self, offset)
    }
    #[inline]
    fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Ordering {
        // Whole words, and for the rest a masked word: no copies through memory.
        let length = if offset.saturating_add(length) <= self.page_bytes() { length } else { 0 };
        let common = length.min(other.len());
        let mut at = 0;
        while at + 8 <= common {
            let ours = u64::swap_bytes(OptimisticPage::u64_at(self, offset + at));
            let theirs = u64::from_be_bytes(array(other, at));
            if ours != theirs {
                return ours.cmp(&theirs);
            }
            at += 8;
        }
        if at < common {
            let unused_bits = 64 - 8 * (common - at);
            let ours = u64::swap_bytes(OptimisticPage::u64_at(self, offset + at)) >> unused_bits;
            let theirs = first_bytes(&other[at..common]);
            if ours != theirs {
                return ours.cmp(&theirs);
            }
        }
        length.cmp(&other.len())
    }
    #[inline]
    fn append_to(&self, offset: usize, length: usize, out: &mut Vec<u8>) {
        OptimisticPage::append_to(self, offset, length, out);
    }
}
