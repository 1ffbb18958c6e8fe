//! Deltas in memory: those that were written or read of late, so that a page that has one is read
//! by one request. A delta takes about a tenth of a frame and saves as many reads.
//!
//! 1. What is here of a page is the newest delta that was written of it: who publishes a copy of a
//!    page, moves its delta or frees it says so here before its latch is given back. A reader asks
//!    for the delta at the place that the translation array names; anything else is none.
//! 2. The bytes are those on disk. The page that base and delta give is verified at every read, and
//!    one that fails is read again from the disk alone.
//! 3. The memory is chunks of the pool, filled in turn. When the last is full the first is emptied,
//!    whatever stands there; what is read in the older half is put in front again.
//! 4. Chunks come while pages are read whose deltas are not here, up to a quarter of the pool, and
//!    go back when deltas are hardly asked for any more.

use crate::bytes::{put, u32_at, u64_at};
use crate::frames::{CHUNK_BYTES_MAX, Frames, Lent};
use crate::location::Location;
use base::{PageId, buggify_with, mutant, probe};
use hashbrown::HashTable;
use runtime::sync::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// Before the bytes of a delta: page number, place on disk, length.
const HEAD_BYTES: usize = 20;
/// A delta begins at a multiple of so many bytes, so that its place in memory is a short number.
const UNIT_BYTES: usize = 16;
/// Of that number so many bits are the place within a chunk, the others the filling.
const START_BITS: u32 = 17;
const _: () = assert!(CHUNK_BYTES_MAX / UNIT_BYTES <= 1 << START_BITS);
/// So many fillings can be told apart, and there are never more chunks.
const FILLINGS_MAX: usize = 1 << (u32::BITS - START_BITS);
/// At most this part of the pool's chunks.
const POOL_PART: usize = 4;
/// More memory is wanted while one in so many pages read had its delta read beside it ...
const WANTED_PART: u64 = 10;
/// ... and less when not one in so many had a delta, here or there.
const UNUSED_PART: u64 = 20;
/// So much of what it may be it grows at a time.
const GROWTH_PART: usize = 16;
/// Looks at fewer pages read than this decide nothing.
const READS_LEAST: u64 = 100;

/// A chunk of the pool with deltas one behind the other.
struct Filled {
    memory: Lent,
    /// Counts up with every filling of a chunk, and may begin anew: far fewer are there at a time.
    number: u32,
    end: usize,
}

/// Where a page's delta stands. There is one for every few hundred bytes of deltas, outside of the
/// pool, so it is kept short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    /// The lower half of the page's number; the whole one stands in front of the delta.
    page: u32,
    /// [`Filled::number`] and the place in it, in units.
    at: u32,
}

impl Spot {
    fn new(pid: PageId, filling: u32, start: usize) -> Spot {
        Spot { page: pid.get() as u32, at: filling << START_BITS | (start / UNIT_BYTES) as u32 }
    }

    /// The filling's number, as far as it is known.
    fn filling(self) -> u32 {
        self.at >> START_BITS
    }

    fn start(self) -> usize {
        (self.at & ((1 << START_BITS) - 1)) as usize * UNIT_BYTES
    }

    fn hash(&self) -> u64 {
        hash(PageId::new(u64::from(self.page)))
    }
}

#[derive(Default)]
struct Ring {
    /// The one that is being filled is the last.
    fillings: VecDeque<Filled>,
    /// Chunks to be filled yet.
    empty: Vec<Lent>,
    /// The newest [`Filled::number`].
    count: u32,
    /// The newest delta of each page: no two spots are of one page, and where each says one stands.
    spots: HashTable<Spot>,
}

/// Counters at the last look.
#[derive(Default)]
struct Looked {
    pages_read: u64,
    deltas_read: u64,
    deltas_found: u64,
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct RecentDeltas {
    ring: Mutex<Ring>,
    looked: Mutex<Looked>,
    /// Whether there is any memory: without, nobody takes the lock.
    has_memory: AtomicBool,
}

/// What pages and deltas were read since the store was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads {
    pub(crate) pages: u64,
    pub(crate) deltas: u64,
    /// Deltas found here.
    pub(crate) found: u64,
}

impl Ring {
    fn chunks(&self) -> usize {
        self.fillings.len() + self.empty.len()
    }

    /// Where the delta of a page stands.
    fn spot(&mut self, frames: &Frames, pid: PageId) -> Option<Spot> {
        let Ring { fillings, spots, .. } = self;
        spots.find(hash(pid), |spot| is_of(frames, fillings, *spot, pid)).copied()
    }

    /// The bytes of a page's delta, and whether they are among the older half.
    fn find(&mut self, frames: &Frames, pid: PageId, place: Location) -> Option<(Vec<u8>, bool)> {
        let spot = self.spot(frames, pid)?;
        let age = self.count.wrapping_sub(spot.filling()) as usize % FILLINGS_MAX;
        let is_old = age * 2 > self.chunks();
        let record = record_at(frames, &mut self.fillings, spot)?;
        let is_there = u64_at(record, 8) == place.word() || mutant!("stale_recent_delta");
        let bytes = record.get(HEAD_BYTES..HEAD_BYTES + u32_at(record, 16) as usize)?;
        is_there.then(|| (bytes.to_vec(), is_old))
    }

    fn insert(&mut self, frames: &Frames, pid: PageId, place: Location, bytes: &[u8]) {
        let length = record_bytes(bytes.len());
        let chunk_bytes = frames.chunk_bytes();
        let is_full = |filled: &Filled| filled.end + length > chunk_bytes;
        if self.fillings.back().is_none_or(is_full) {
            let Some(memory) = self.next_chunk(frames) else { return };
            self.count = self.count.wrapping_add(1);
            self.fillings.push_back(Filled { memory, number: self.count, end: 0 });
        }
        let Some(filled) = self.fillings.back_mut() else { return };
        let record = &mut frames.lent_bytes(&mut filled.memory)[filled.end..];
        if record.len() < length {
            return;
        }
        put(record, 0, &pid.get().to_le_bytes());
        put(record, 8, &place.word().to_le_bytes());
        put(record, 16, &(bytes.len() as u32).to_le_bytes());
        put(record, HEAD_BYTES, bytes);
        let spot = Spot::new(pid, filled.number, filled.end);
        filled.end += length;
        let Ring { fillings, spots, .. } = self;
        let is_it = |spot: &Spot| is_of(frames, fillings, *spot, pid);
        match spots.find_mut(hash(pid), is_it) {
            Some(former) => *former = spot,
            None => drop(spots.insert_unique(hash(pid), spot, Spot::hash)),
        }
    }

    fn forget(&mut self, frames: &Frames, pid: PageId) {
        let Ring { fillings, spots, .. } = self;
        let is_it = |spot: &Spot| is_of(frames, fillings, *spot, pid);
        if let Ok(found) = spots.find_entry(hash(pid), is_it) {
            found.remove();
        }
    }

    /// An empty chunk, or the oldest filled one without what stood there.
    fn next_chunk(&mut self, frames: &Frames) -> Option<Lent> {
        self.empty.pop().or_else(|| self.clear_oldest(frames))
    }

    /// Forgets what stands in the oldest chunk.
    fn clear_oldest(&mut self, frames: &Frames) -> Option<Lent> {
        let Filled { mut memory, number, end } = self.fillings.pop_front()?;
        let bytes = &frames.lent_bytes(&mut memory)[..end];
        let mut start = 0;
        while start < end {
            let record = &bytes[start..];
            let pid = PageId::new(u64_at(record, 0));
            let spot = Spot::new(pid, number, start);
            if let Ok(found) = self.spots.find_entry(hash(pid), |found| *found == spot) {
                found.remove();
            }
            start += record_bytes(u32_at(record, 16) as usize);
        }
        probe!("pagestore_recent_deltas_forgotten");
        Some(memory)
    }
}

fn hash(pid: PageId) -> u64 {
    // Page numbers are spread well enough by a multiplication.
    let mixed = u64::from(pid.get() as u32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
}

/// What a delta takes in a chunk.
fn record_bytes(delta_bytes: usize) -> usize {
    (HEAD_BYTES + delta_bytes).next_multiple_of(UNIT_BYTES)
}

/// What begins at a spot.
fn record_at<'a>(
    frames: &'a Frames,
    fillings: &'a mut VecDeque<Filled>,
    spot: Spot,
) -> Option<&'a [u8]> {
    let first = fillings.front()?.number;
    let place = spot.filling().wrapping_sub(first) as usize % FILLINGS_MAX;
    let filled = fillings.get_mut(place)?;
    frames.lent_bytes(&mut filled.memory).get(spot.start()..)
}

/// Whether a spot is that of the page.
fn is_of(frames: &Frames, fillings: &mut VecDeque<Filled>, spot: Spot, pid: PageId) -> bool {
    spot.page == pid.get() as u32
        && record_at(frames, fillings, spot).is_some_and(|record| u64_at(record, 0) == pid.get())
}

impl RecentDeltas {
    /// The delta of a page, if it is here. Never parks, like all that follows.
    pub(crate) fn find(&self, frames: &Frames, pid: PageId, place: Location) -> Option<Vec<u8>> {
        if !self.has_memory.load(Ordering::Relaxed) {
            return None;
        }
        let mut ring = self.ring.lock();
        let (bytes, is_old) = ring.find(frames, pid, place)?;
        if is_old {
            ring.insert(frames, pid, place, &bytes);
        }
        Some(bytes)
    }

    /// Remembers the newest delta of a page whose latch the caller holds.
    pub(crate) fn remember(&self, frames: &Frames, pid: PageId, place: Location, bytes: &[u8]) {
        if self.has_memory.load(Ordering::Relaxed) {
            self.ring.lock().insert(frames, pid, place, bytes);
        }
    }

    /// The page has no delta any more, or none that may be used from here.
    pub(crate) fn forget(&self, frames: &Frames, pid: PageId) {
        if self.has_memory.load(Ordering::Relaxed) {
            self.ring.lock().forget(frames, pid);
        }
    }

    /// The delta of a page whose latch the caller holds has another place on disk.
    pub(crate) fn relocate(&self, frames: &Frames, pid: PageId, [from, to]: [Location; 2]) {
        if !self.has_memory.load(Ordering::Relaxed) {
            return;
        }
        let mut ring = self.ring.lock();
        if let Some((bytes, _)) = ring.find(frames, pid, from) {
            ring.insert(frames, pid, to, &bytes);
        }
    }

    /// Asks for more memory or gives some back (invariant 4). Called about once a second.
    pub(crate) fn look(&self, frames: &Frames, reads: Reads) {
        let mut looked = self.looked.lock();
        let pages = reads.pages - looked.pages_read;
        let deltas = reads.deltas - looked.deltas_read;
        let found = reads.found - looked.deltas_found;
        *looked = Looked {
            pages_read: reads.pages,
            deltas_read: reads.deltas,
            deltas_found: reads.found,
        };
        let mut ring = self.ring.lock();
        ring.empty.append(&mut frames.borrowed());
        let most = frames.lent_most(POOL_PART).min(FILLINGS_MAX - 1);
        let is_enough = pages >= READS_LEAST || pages > 0 && buggify_with!(0.9);
        if is_enough && deltas * WANTED_PART > pages && !buggify_with!(0.3) {
            let step = (most / GROWTH_PART).max(1).min(most.saturating_sub(ring.chunks()));
            frames.borrow_chunks(step);
        } else if is_enough
            && ((deltas + found) * UNUSED_PART < pages || buggify_with!(0.5))
            && let Some(chunk) = ring.empty.pop().or_else(|| ring.clear_oldest(frames))
        {
            probe!("pagestore_recent_deltas_given_back");
            frames.take_back(chunk);
        }
        self.has_memory.store(ring.chunks() > 0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL_BYTES: usize = 1 << 20;
    const CHUNKS: usize = 32;

    fn place(number: u64) -> Location {
        Location::new(64 * (1 + number), 640, 13, 0)
    }

    fn delta(number: u64) -> Vec<u8> {
        vec![number as u8; 640]
    }

    /// What of the pool may be lent.
    fn part_bytes(frames: &Frames) -> usize {
        frames.lent_most(POOL_PART) * frames.chunk_bytes()
    }

    /// A full pool, and what pages are read whose deltas are not in memory until it has grown.
    fn grown() -> (Frames, RecentDeltas) {
        let frames = Frames::new(POOL_BYTES, false, 1).expect("small");
        let taken: Vec<u32> = std::iter::from_fn(|| frames.take_free(13)).collect();
        taken.iter().for_each(|&frame| frames.give_back(frame, 13));
        let recent = RecentDeltas::default();
        // The numbers of fillings begin anew on the way.
        recent.ring.lock().count = u32::MAX - 2;
        for second in 1..=CHUNKS as u64 {
            recent.look(&frames, Reads { pages: 1_000 * second, deltas: 500 * second, found: 0 });
            let draining = frames.draining.lock().clone();
            draining.into_iter().for_each(|chunk| frames.finish_drain(chunk));
        }
        (frames, recent)
    }

    #[test]
    fn memory_comes_when_deltas_are_read_and_goes_when_not() {
        let (frames, recent) = grown();
        let without = frames.bytes() - part_bytes(&frames);
        assert_eq!(frames.page_bytes(), without);
        let count = std::iter::from_fn(|| frames.take_free(13)).count();
        assert_eq!(count, without / 8192, "no page has a lent frame");
        let read = 1_000 * CHUNKS as u64;
        recent.remember(&frames, PageId::new(7), place(7), &delta(7));
        for second in 1..=CHUNKS as u64 {
            let found = 100 * second;
            let reads = Reads { pages: read + 1_000 * second, deltas: read / 2, found };
            recent.look(&frames, reads);
        }
        assert_eq!(frames.page_bytes(), without, "a tenth is in use");
        assert!(recent.find(&frames, PageId::new(7), place(7)).is_some());
        for second in 1..=CHUNKS as u64 {
            let reads = Reads {
                pages: read * 2 + 1_000 * second,
                deltas: read / 2 + 10 * second,
                found: 100 * CHUNKS as u64,
            };
            recent.look(&frames, reads);
        }
        assert_eq!(frames.page_bytes(), frames.bytes());
        assert_eq!(frames.take_free(13).map(|_| ()), Some(()), "any class has it again");
        assert!(recent.find(&frames, PageId::new(7), place(7)).is_none());
    }

    #[test]
    fn only_the_delta_at_its_place_is_found() {
        let (frames, recent) = grown();
        let [pid, other] = [7, 8].map(PageId::new);
        recent.remember(&frames, pid, place(1), &delta(1));
        assert_eq!(recent.find(&frames, pid, place(1)), Some(delta(1)));
        assert_eq!(recent.find(&frames, pid, place(2)), None);
        assert_eq!(recent.find(&frames, other, place(1)), None);
        recent.relocate(&frames, pid, [place(1), place(3)]);
        assert_eq!(recent.find(&frames, pid, place(1)), None);
        assert_eq!(recent.find(&frames, pid, place(3)), Some(delta(1)));
        recent.remember(&frames, pid, place(4), &delta(4));
        recent.relocate(&frames, pid, [place(3), place(5)]);
        assert_eq!(recent.find(&frames, pid, place(4)), Some(delta(4)), "what moved is the former");
        recent.forget(&frames, pid);
        assert_eq!(recent.find(&frames, pid, place(4)), None);
    }

    #[test]
    fn pages_whose_numbers_end_alike_are_told_apart() {
        let (frames, recent) = grown();
        let [low, high] = [7, 7 + (1 << 32)].map(PageId::new);
        recent.remember(&frames, low, place(1), &delta(1));
        recent.remember(&frames, high, place(2), &delta(2));
        assert_eq!(recent.find(&frames, low, place(1)), Some(delta(1)));
        assert_eq!(recent.find(&frames, high, place(2)), Some(delta(2)));
        recent.forget(&frames, high);
        assert_eq!(recent.find(&frames, low, place(1)), Some(delta(1)));
        assert_eq!(recent.find(&frames, high, place(2)), None);
        assert_eq!(recent.ring.lock().spots.len(), 1);
    }

    #[test]
    fn the_oldest_go_but_for_what_is_read() {
        let (frames, recent) = grown();
        let remember = |number| {
            recent.remember(&frames, PageId::new(number), place(number), &delta(number));
        };
        let find = |number| recent.find(&frames, PageId::new(number), place(number));
        let fit = (part_bytes(&frames) / record_bytes(640)) as u64;
        for number in 0..3 * fit {
            remember(number);
            assert_eq!(find(0), Some(delta(0)), "it is read all the time");
        }
        let left: Vec<u64> = (0..3 * fit).filter(|&number| find(number).is_some()).collect();
        assert!(left.len() as u64 > fit / 2 && left.len() as u64 <= fit, "{}", left.len());
        assert!(left[1..].iter().all(|&number| number > fit), "the oldest went first");
        assert!(recent.ring.lock().spots.len() as u64 <= fit, "nothing is kept of what went");
    }
}
