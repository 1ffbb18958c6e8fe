//! Reading a page without holding anything.
//!
//! 1. The frame is read by relaxed loads of whole aligned words at masked offsets: never outside
//!    the page, never forming a reference to the bytes.
//! 2. What was read counts only after [`OptimisticPage::validate`]: the latch's version is that
//!    from before the first load.
//!
//! On soundness: an exclusive holder's plain stores may run while an optimistic reader loads the
//! same words. The language has no bytewise atomic copy for the writer's side yet; the reader's
//! side is atomic, is discarded unless the version agrees, and the compiler cannot see both sides
//! in one place, which is what every seqlock in the field relies on.

use crate::array::PageEntry;
use crate::error::Retry;
use crate::guard::ExclusivePage;
use crate::header;
use crate::latch::Version;
use crate::location::Place;
use crate::store::Shared;
use base::{Lsn, PageId};
use std::cmp::Ordering as Compared;
use std::sync::atomic::{AtomicU64, Ordering};

/// A page read without holding anything; see the head of this file.
#[derive(Clone, Copy)]
pub struct OptimisticPage<'a> {
    shared: &'a Shared,
    entry: &'a PageEntry,
    pid: PageId,
    words: *const AtomicU64,
    /// Page size in bytes minus one.
    mask: usize,
    version: Version,
    place: Place,
}

impl std::fmt::Debug for OptimisticPage<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "OptimisticPage({}, {:?})", self.pid, self.version)
    }
}

impl<'a> OptimisticPage<'a> {
    /// The page as it stands now, unless it is held exclusively or not in memory.
    #[inline]
    pub(crate) fn new(shared: &'a Shared, pid: PageId) -> Result<Self, Retry> {
        let entry = shared.array.get(pid).ok_or(Retry::Miss(pid))?;
        let version = match entry.latch.optimistic() {
            Some(version) => version,
            None => wait_for_version(entry)?,
        };
        let place = entry.place();
        if !place.is_resident() {
            let stable = entry.latch.validate(version);
            return Err(if stable { Retry::Miss(pid) } else { Retry::Restart });
        }
        if !place.is_referenced() {
            entry.exchange(place, place.with_reference());
        }
        let words = shared.frames.address(place.frame()).cast::<AtomicU64>().cast_const();
        Ok(Self { shared, entry, pid, words, mask: place.bytes() - 1, version, place })
    }

    /// Number of the page.
    #[inline]
    pub fn pid(&self) -> PageId {
        self.pid
    }

    /// Size of the page in bytes.
    #[inline]
    pub fn page_bytes(&self) -> usize {
        self.mask + 1
    }

    /// Asks for the memory of so many bytes, see [`runtime::prefetch`]; those that leave the page
    /// are another page's or nobody's.
    #[inline]
    pub fn prefetch(&self, offset: usize, bytes: usize) {
        let start = self.words.cast::<u8>().wrapping_add(offset & self.mask);
        runtime::prefetch_bytes(start, bytes);
    }

    /// The aligned word number `index`, taken modulo the page's size.
    #[inline]
    fn word(&self, index: usize) -> u64 {
        let index = index & (self.mask >> 3);
        // SAFETY: invariant 1: the masked index lies within the frame, frame memory is never
        // unmapped (frames.rs invariant 1), is 4 KiB aligned, and the load is atomic.
        u64::from_le(unsafe { (*self.words.add(index)).load(Ordering::Relaxed) })
    }

    /// `BYTES` bytes at any offset, as the low end of a word.
    #[inline]
    fn bytes_at<const BYTES: usize>(&self, offset: usize) -> u64 {
        let shift = (offset & 7) * 8;
        let low = self.word(offset >> 3) >> shift;
        if shift + BYTES * 8 <= 64 {
            low
        } else {
            low | self.word((offset >> 3) + 1) << (64 - shift)
        }
    }

    /// One byte. Offsets beyond the page wrap around: whoever meets one fails to validate.
    #[inline]
    pub fn u8_at(&self, offset: usize) -> u8 {
        self.bytes_at::<1>(offset) as u8
    }

    /// Two bytes, little-endian, at any alignment.
    #[inline]
    pub fn u16_at(&self, offset: usize) -> u16 {
        self.bytes_at::<2>(offset) as u16
    }

    /// Four bytes, little-endian, at any alignment.
    #[inline]
    pub fn u32_at(&self, offset: usize) -> u32 {
        self.bytes_at::<4>(offset) as u32
    }

    /// Six bytes, little-endian: a page number.
    #[inline]
    pub fn u48_at(&self, offset: usize) -> u64 {
        self.bytes_at::<6>(offset) & PageId::MAX.get()
    }

    /// Eight bytes, little-endian, at any alignment.
    #[inline]
    pub fn u64_at(&self, offset: usize) -> u64 {
        self.bytes_at::<8>(offset)
    }

    /// Copies bytes from `offset` on into `out` (at most a page). Every word is loaded once.
    #[inline]
    pub fn copy_bytes(&self, offset: usize, out: &mut [u8]) {
        let shift = (offset & 7) * 8;
        let mut index = offset >> 3;
        let mut word = self.word(index);
        let mut next = || {
            index += 1;
            let low = word >> shift;
            word = self.word(index);
            // Two steps, since a shift by 64 is none.
            low | (word << 1) << (63 - shift)
        };
        let mut chunks = out.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&next().to_le_bytes());
        }
        let rest = chunks.into_remainder();
        if !rest.is_empty() {
            rest.copy_from_slice(&next().to_le_bytes()[..rest.len()]);
        }
    }

    /// Appends `length` bytes from `offset` on to `out`; nothing if they leave the page.
    #[inline]
    pub fn append_to(&self, offset: usize, length: usize, out: &mut Vec<u8>) {
        if offset.saturating_add(length) <= self.page_bytes() {
            let start = out.len();
            out.resize(start + length, 0);
            self.copy_bytes(offset, &mut out[start..]);
        }
    }

    /// Compares `length` bytes from `offset` on with `other`, bytewise and then by length. Bytes
    /// that leave the page compare as the empty string.
    #[inline]
    pub fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Compared {
        let length = if offset.saturating_add(length) <= self.page_bytes() { length } else { 0 };
        let common = length.min(other.len());
        let mut position = 0;
        for chunk in other[..common].chunks(8) {
            let mut theirs = [0u8; 8];
            theirs[..chunk.len()].copy_from_slice(chunk);
            let mut ours = self.u64_at(offset + position).to_le_bytes();
            ours[chunk.len()..].fill(0);
            if ours != theirs {
                return u64::from_be_bytes(ours).cmp(&u64::from_be_bytes(theirs));
            }
            position += chunk.len();
        }
        length.cmp(&other.len())
    }

    /// LSN of the page.
    pub fn page_lsn(&self) -> Lsn {
        Lsn::new(self.u64_at(header::PAGE_LSN_OFFSET))
    }

    /// Whether everything read so far belongs to one state of the page.
    #[inline]
    pub fn validate(&self) -> Result<(), Retry> {
        if self.entry.latch.validate(self.version) { Ok(()) } else { Err(Retry::Restart) }
    }

    /// Holds the page exclusively if it did not change since this view was taken.
    #[inline]
    pub fn upgrade(self) -> Result<ExclusivePage<'a>, Retry> {
        if !self.entry.latch.upgrade(self.version) {
            return Err(Retry::Restart);
        }
        Ok(ExclusivePage::under_latch(self.shared, self.entry, self.pid, self.place))
    }
}

/// A short wait for an exclusive holder, who never parks meanwhile.
#[cold]
fn wait_for_version(entry: &PageEntry) -> Result<Version, Retry> {
    for _ in 0..64 {
        std::hint::spin_loop();
        if let Some(version) = entry.latch.optimistic() {
            return Ok(version);
        }
    }
    Err(Retry::Restart)
}
