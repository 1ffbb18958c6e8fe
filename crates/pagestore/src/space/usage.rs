//! What trees take up, raw and on disk, and the garbage that lies beside their copies.

use super::{EXTENT_PAGES, Space};
use crate::header::class_bytes;
use crate::location::Location;
use crate::store::PageStore;
use base::{PageId, TreeId};
use std::sync::atomic::Ordering;

/// Pages of a tree and their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TreeUsage {
    /// Pages.
    pub pages: u64,
    /// Bytes of these pages in memory, where none is compressed.
    pub raw_bytes: u64,
    /// Bytes of their copies and deltas on disk. Pages that were never written have none.
    pub stored_bytes: u64,
    /// Garbage in the segments where the copies lie, shared out among the live copies of each
    /// segment: what collecting them would give back.
    pub garbage_bytes: f64,
}

impl TreeUsage {
    /// `garbage` has bytes of garbage for each live byte, by segment.
    fn add(&mut self, store: &PageStore, pid: PageId, garbage: &[f64], segment_bytes: u64) {
        let shared = store.shared();
        let Some(entry) = shared.array.get(pid) else { return };
        let place = entry.place();
        let (location, raw_bytes) = match place.is_resident() {
            true => {
                let descriptor = shared.frames.descriptor(place.frame());
                let word = descriptor.location.load(Ordering::Relaxed);
                (Location::from_word(word), place.bytes())
            }
            false => (place.location(), class_bytes(place.location().class())),
        };
        self.pages += 1;
        self.raw_bytes += raw_bytes as u64;
        let copies = [location, shared.array.delta(pid).location()].into_iter();
        for copy in copies.filter(|copy| !copy.is_none()) {
            let length = u64::from(copy.length_bytes());
            self.stored_bytes += length;
            let segment = (copy.offset_bytes() / segment_bytes.max(1)) as usize;
            self.garbage_bytes += garbage.get(segment).copied().unwrap_or(0.0) * length as f64;
        }
    }
}

impl Space<'_> {
    /// What a tree takes up. Looks at every page's place, reads none; what is being written
    /// meanwhile may be counted as it was before.
    pub fn usage(&self, tree: TreeId) -> TreeUsage {
        let extents = self.mirror().allocated_of(tree);
        let (garbage, segment_bytes) = match &self.store.shared().disk {
            Some(disk) => {
                let table = disk.table.lock();
                (table.garbage_shares(), table.segment_bytes)
            }
            None => (Vec::new(), 0),
        };
        let mut usage = TreeUsage::default();
        for (first, allocated) in extents {
            let is_set = |bit: &u64| allocated[(bit / 64) as usize] >> (bit % 64) & 1 == 1;
            for bit in (0..EXTENT_PAGES).filter(is_set) {
                let pid = PageId::new(first.get() + bit);
                usage.add(self.store, pid, &garbage, segment_bytes);
            }
            runtime::yield_if_due();
        }
        usage
    }

    /// Allocated page numbers of all trees.
    pub fn pages(&self) -> u64 {
        self.mirror().pages()
    }
}
