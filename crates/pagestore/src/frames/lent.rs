//! Chunks of the pool that hold something else than pages for a while.
//!
//! 1. A lent chunk belongs to whoever has its [`Lent`], of which there is one: no class has its
//!    frames, and no page stands there.
//! 2. A chunk is lent when its last page has left, as a frame is taken (`FrameDescriptor::take`).

use super::{CHUNK_UNASSIGNED, Frames};
use crate::header::{CLASS_MAX, CLASS_MIN, class_bytes};
use base::primitives::{AtomicUsize, Ordering, fence};
use runtime::sync::Mutex;

/// Class of a chunk that is lent.
const CHUNK_LENT: u8 = 0x40;
/// A pool of fewer chunks lends none.
const CHUNKS_LEAST: usize = 8;
/// At most so many fourths of the chunks are lent.
const LENT_FOURTHS: usize = 3;

/// A chunk that is lent (invariant 1).
#[derive(Debug)]
pub(crate) struct Lent(u32);

/// Chunks that are lent, or will be.
#[derive(Debug, Default)]
pub(super) struct Lending {
    /// So many of the chunks that are being emptied are to be lent.
    asked: AtomicUsize,
    /// Emptied and not fetched yet.
    ready: Mutex<Vec<Lent>>,
    count: AtomicUsize,
}

impl Frames {
    /// Length of a chunk.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.memory.len() / self.chunk_class.len()
    }

    /// How many chunks may be lent in all.
    pub(crate) fn lent_most(&self) -> usize {
        let chunks = self.chunk_class.len();
        if chunks < CHUNKS_LEAST { 0 } else { chunks * LENT_FOURTHS / 4 }
    }

    /// Bytes of the chunks that are there for pages.
    pub(crate) fn page_bytes(&self) -> usize {
        self.bytes() - self.lending.count.load(Ordering::Relaxed) * self.chunk_bytes()
    }

    /// Begins to empty so many chunks of the class that has most, for [`Frames::borrowed`]. What
    /// was asked before and has not come is given up.
    pub(crate) fn borrow_chunks(&self, count: usize) {
        let size =
            |&class: &u8| self.counts(class).total.load(Ordering::Relaxed) * class_bytes(class);
        let Some(class) = (CLASS_MIN..=CLASS_MAX).max_by_key(size) else { return };
        let keep = self.chunk_class.len() - self.lent_most();
        let begun = (0..count).map_while(|_| self.start_drain(class, keep)).count();
        self.lending.asked.store(begun, Ordering::Relaxed);
    }

    /// The chunks that were emptied since the last call.
    pub(crate) fn borrowed(&self) -> Vec<Lent> {
        std::mem::take(&mut *self.lending.ready.lock())
    }

    /// Sets aside a chunk without pages if chunks are asked for.
    pub(super) fn lend(&self, chunk: u32) -> bool {
        let asked = &self.lending.asked;
        let less = |asked: usize| asked.checked_sub(1);
        if asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
            return false;
        }
        self.chunk_class[chunk as usize].store(CHUNK_LENT, Ordering::Relaxed);
        fence(Ordering::Release);
        self.lending.count.fetch_add(1, Ordering::Relaxed);
        self.lending.ready.lock().push(Lent(chunk));
        true
    }

    /// The bytes of a lent chunk.
    pub(crate) fn lent_bytes<'a>(&'a self, lent: &'a mut Lent) -> &'a mut [u8] {
        let start = self.address(lent.0 * self.chunk_units);
        // SAFETY: the chunk lies within the mapping, which lives as long as self. Nobody else has
        // this chunk's memory (invariant 1), and the borrow of its only `Lent` is exclusive;
        // optimistic readers of pages that were here do atomic loads and fail to validate
        // (invariant 2).
        unsafe { std::slice::from_raw_parts_mut(start, self.chunk_bytes()) }
    }

    /// Gives a lent chunk back: any class may have it.
    pub(crate) fn take_back(&self, lent: Lent) {
        self.chunk_class[lent.0 as usize].store(CHUNK_UNASSIGNED, Ordering::Relaxed);
        self.lending.count.fetch_sub(1, Ordering::Relaxed);
        self.unassigned.lock().push(lent.0);
    }
}
