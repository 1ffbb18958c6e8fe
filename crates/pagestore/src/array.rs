//! The translation array: page number to latch and place, one load away.
//!
//! 1. Entries are zeroed memory at the start: unlatched, version 0, no place.
//! 2. The array is reserved for every possible page number once and never moves; memory is used
//!    only for the numbers that were touched. Page numbers are handed out densely.
//! 3. Beside each entry stands where the page's delta is, whether the page is resident or not: of
//!    the newest full copy, whose place the entry or the frame's descriptor has, and the delta,
//!    both or the former alone give the page. It changes only under the page's latch: exclusively,
//!    or shared by the holder of the page's flush ticket.

use crate::error::StoreError;
use crate::latch::Latch;
use crate::location::{Location, Place};
use base::PageId;
use base::primitives::{AtomicU64, Ordering};
use runtime::mapping::Mapping;

/// One page's latch and place, 16 bytes.
#[derive(Debug)]
#[repr(C, align(16))]
pub(crate) struct PageEntry {
    pub(crate) latch: Latch,
    place: AtomicU64,
}

impl PageEntry {
    #[cfg(all(test, loom))]
    pub(crate) fn new(place: Place) -> Self {
        Self { latch: Latch::default(), place: AtomicU64::new(place.0) }
    }

    /// Where the page is now. Acquire: what the frame held when it was published is visible.
    #[inline]
    pub(crate) fn place(&self) -> Place {
        Place(self.place.load(Ordering::Acquire))
    }

    /// Publishes a new place. The latch must be held exclusively.
    #[inline]
    pub(crate) fn set_place(&self, place: Place) {
        self.place.store(place.0, Ordering::Release);
    }

    /// Replaces `old` by `new` unless the place changed; how reference marks are set and cleared
    /// without the latch. A marked location word cannot result: `old` is resident.
    #[inline]
    pub(crate) fn exchange(&self, old: Place, new: Place) -> bool {
        self.place.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// Where a page's delta is; 8 bytes, zeroed memory at the start: no delta.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct DeltaWord(AtomicU64);

impl DeltaWord {
    /// Where the delta is, [`Location::NONE`] if there is none.
    #[inline]
    pub(crate) fn location(&self) -> Location {
        Location::from_word(self.0.load(Ordering::Acquire))
    }

    /// Sets where the delta is and returns where it was.
    pub(crate) fn replace(&self, location: Location) -> Location {
        Location::from_word(self.0.swap(location.word(), Ordering::AcqRel))
    }

    /// Replaces `old` by `new` unless the delta is elsewhere by now.
    pub(crate) fn exchange(&self, old: Location, new: Location) -> bool {
        let (old, new) = (old.word(), new.word());
        self.0.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// The array over all page numbers.
#[derive(Debug)]
pub(crate) struct TranslationArray {
    region: Mapping,
    deltas: Mapping,
    capacity: u64,
    /// One more than the largest number that ever had a place.
    high_water: AtomicU64,
}

impl TranslationArray {
    /// An array for `capacity` page numbers.
    pub(crate) fn new(capacity: u64) -> Result<TranslationArray, StoreError> {
        let bytes = usize::try_from(capacity * size_of::<PageEntry>() as u64)
            .map_err(|_| StoreError::PagesExhausted(capacity))?;
        let map = |bytes| {
            Mapping::anonymous(bytes, false)
                .map_err(|error| StoreError::io("translation array", &error))
        };
        let deltas = map(capacity as usize * size_of::<DeltaWord>())?;
        Ok(TranslationArray {
            region: map(bytes)?,
            deltas,
            capacity,
            high_water: AtomicU64::new(0),
        })
    }

    /// How many page numbers there can be.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The entry of a page. Panics beyond the capacity: page numbers from disk are checked when
    /// they are decoded, numbers in memory come from the allocation map.
    #[inline]
    pub(crate) fn entry(&self, pid: PageId) -> &PageEntry {
        base::invariant!(pid.get() < self.capacity, "page {pid} beyond the translation array");
        // SAFETY: in bounds by the check; the region is zeroed, aligned to a system page, lives
        // as long as self and is only accessed through these entries, whose fields are atomics
        // for which all-zero bytes are valid.
        unsafe { &*self.region.as_ptr().cast::<PageEntry>().add(pid.get() as usize) }
    }

    /// Where the page's delta is (invariant 3). Panics beyond the capacity.
    pub(crate) fn delta(&self, pid: PageId) -> &DeltaWord {
        base::invariant!(pid.get() < self.capacity, "page {pid} beyond the translation array");
        // SAFETY: as for `entry`, in the region of the delta words.
        unsafe { &*self.deltas.as_ptr().cast::<DeltaWord>().add(pid.get() as usize) }
    }

    /// The entry, or `None` beyond the capacity.
    #[inline]
    pub(crate) fn get(&self, pid: PageId) -> Option<&PageEntry> {
        (pid.get() < self.capacity).then(|| self.entry(pid))
    }

    /// Remembers that `pid` has a place.
    pub(crate) fn raise_high_water(&self, pid: PageId) {
        self.high_water.fetch_max(pid.get() + 1, Ordering::Relaxed);
    }

    /// One more than the largest page number in use so far.
    pub(crate) fn high_water(&self) -> u64 {
        self.high_water.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_16_bytes_and_empty() {
        assert_eq!(size_of::<PageEntry>(), 16);
        let array = TranslationArray::new(1 << 20).expect("small");
        assert_eq!(array.entry(PageId::new(5)).place(), Place::NONE);
        assert!(array.get(PageId::new(1 << 20)).is_none());
        let word = array.delta(PageId::new(5));
        let [first, second] = [128, 192].map(|offset| Location::new(offset, 64, 13, 1));
        assert_eq!((word.replace(first), word.location()), (Location::NONE, first));
        assert!(!word.exchange(second, first) && word.exchange(first, second));
        assert_eq!(array.delta(PageId::new(6)).location(), Location::NONE);
        array.raise_high_water(PageId::new(9));
        array.raise_high_water(PageId::new(3));
        assert_eq!(array.high_water(), 10);
    }
}
