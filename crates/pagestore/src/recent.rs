//! Deltas in memory: those that were written or read of late, so that a page that has one is read
//! by one request. A delta takes about a tenth of a frame and saves as many reads.
//!
//! 1. What is here of a page is the newest delta that was written of it: who publishes a copy of a
//!    page, moves its delta or frees it says so here before its latch is given back. A reader asks
//!    for the delta at the place that the translation array names; anything else is none.
//! 2. The bytes are those on disk, but for the zeroes at their end, until the page is read: then
//!    its base is there, too, and what the delta shares with it is left out (short_delta.rs). The
//!    page that base and delta give is verified at every read, and one that fails is read again
//!    from the disk alone.
//! 3. The memory is chunks of the pool, filled in turn. When the last is full the first is filled
//!    anew: of what is the newest of its page, what was found since it stands there stays before
//!    all else, three fourths of the chunk at most: CLOCK, a chunk at a time.
//! 4. Chunks come while pages are read whose deltas are not here and would be worth more here than
//!    the pages in their place: while a delta goes from here unread after less reads of pages than
//!    there would be deltas in the pool's memory. A page goes from a pool of n frames after some n
//!    reads, and saves a read as a delta does; so where both are asked for alike, that is where a
//!    byte is worth as much here as there. They go back when it is clearly worth less, or when
//!    deltas are hardly asked for any more.

use crate::blob::{self, BLOB_HEADER_BYTES};
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
/// No more than this part of what the pool lends until deltas are found here ...
const UNPROVEN_PART: usize = 2;
/// ... at least one in so many that are asked for.
const PROVEN_PART: u64 = 50;
/// Of a chunk that is filled anew so many fourths may stay.
const KEPT_FOURTHS: usize = 3;
/// Chunks go back when what goes from here went unread for so many times as long as is worth it.
const LONG: u64 = 3;
/// More memory is wanted while one in so many pages read had its delta read beside it ...
const WANTED_PART: u64 = 10;
/// ... and less when not one in so many had a delta, here or there.
const UNUSED_PART: u64 = 20;
/// So much of what it may be it grows at a time.
const GROWTH_PART: usize = 16;
/// Looks at fewer pages read than this decide nothing.
const READS_LEAST: u64 = 100;

/// Added to a delta's length in front of it: it was found since it stands there.
const FOUND: u32 = 1 << 31;
/// As [`FOUND`]: it is a short one.
const SHORT: u32 = 1 << 30;

/// A delta in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remembered<Bytes = Vec<u8>> {
    /// The blob as it is on disk (delta.rs).
    Written(Bytes),
    /// Without what the base has, too (short_delta.rs).
    Short(Bytes),
}

/// A chunk of the pool with deltas one behind the other.
struct Filled {
    memory: Lent,
    /// Counts up with every filling of a chunk, and may begin anew: far fewer are there at a time.
    number: u32,
    end: usize,
    /// [`Ring::pages_read`] when it was begun.
    since: u64,
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
        Spot { page: pid.get() as u32, at: Spot::place(filling, start) }
    }

    /// [`Spot::at`].
    fn place(filling: u32, start: usize) -> u32 {
        filling << START_BITS | (start / UNIT_BYTES) as u32
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
    /// Pages read from disk, as of the last look.
    pages_read: u64,
    /// Bytes put here since the last look, and of how many deltas.
    put: (u64, u64),
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

    /// The delta of a page, which was found from now on.
    fn find(&mut self, frames: &Frames, pid: PageId, place: Location) -> Option<Remembered> {
        let spot = self.spot(frames, pid)?;
        let record = record_at(frames, &mut self.fillings, spot)?;
        let is_there = u64_at(record, 8) == place.word() || mutant!("stale_recent_delta");
        let length = delta_bytes(record);
        let bytes = record.get(HEAD_BYTES..HEAD_BYTES + length)?;
        let kind = u32_at(record, 16) & SHORT;
        let found = is_there.then(|| match kind {
            0 => Remembered::Written(with_padding(bytes)),
            _ => Remembered::Short(bytes.to_vec()),
        });
        put(record, 16, &(length as u32 | kind | FOUND).to_le_bytes());
        found
    }

    fn insert<Bytes: AsRef<[u8]>>(
        &mut self,
        frames: &Frames,
        pid: PageId,
        place: Location,
        delta: &Remembered<Bytes>,
    ) {
        let (bytes, kind) = match delta {
            Remembered::Written(bytes) => (blob::without_padding(bytes.as_ref()), 0),
            Remembered::Short(bytes) => (bytes.as_ref(), SHORT),
        };
        let length = record_bytes(bytes.len());
        let chunk_bytes = frames.chunk_bytes();
        let is_full = |filled: &Filled| filled.end + length > chunk_bytes;
        if self.fillings.back().is_none_or(is_full) && !self.begin_filling(frames) {
            return;
        }
        let Some(filled) = self.fillings.back_mut() else { return };
        let record = &mut frames.lent_bytes(&mut filled.memory)[filled.end..];
        if record.len() < length {
            return;
        }
        put(record, 0, &pid.get().to_le_bytes());
        put(record, 8, &place.word().to_le_bytes());
        put(record, 16, &(bytes.len() as u32 | kind).to_le_bytes());
        put(record, HEAD_BYTES, bytes);
        let spot = Spot::new(pid, filled.number, filled.end);
        filled.end += length;
        self.put = (self.put.0 + length as u64, self.put.1 + 1);
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

    /// Begins with an empty chunk, or with the oldest filled one and what of it stays; `false` if
    /// there is neither.
    fn begin_filling(&mut self, frames: &Frames) -> bool {
        let kept_max = frames.chunk_bytes() / 4 * KEPT_FOURTHS;
        let empty = self.empty.pop().map(|memory| (memory, 0));
        let begun = empty.or_else(|| self.empty_oldest(frames, kept_max, true));
        match begun {
            Some((memory, end)) => self.push(memory, end),
            None => return false,
        }
        true
    }

    fn push(&mut self, memory: Lent, end: usize) {
        self.count = self.count.wrapping_add(1);
        self.fillings.push_back(Filled { memory, number: self.count, end, since: self.pages_read });
    }

    /// Forgets what stands in the oldest chunk but for what was found there, and the newest deltas
    /// of other pages as well if they are asked for, up to so many bytes: that moves to its begin,
    /// for the next filling ([`Ring::push`]). Returns the chunk and where that ends.
    fn empty_oldest(
        &mut self,
        frames: &Frames,
        kept_max: usize,
        keeps_others: bool,
    ) -> Option<(Lent, usize)> {
        let Filled { mut memory, number, end, .. } = self.fillings.pop_front()?;
        let bytes = frames.lent_bytes(&mut memory);
        let records = self.newest_in(&bytes[..end], number);
        let found = found_bytes(&records);
        let all: usize = records.iter().map(|record| record.bytes).sum();
        let others_max = if keeps_others { kept_max.saturating_sub(found) } else { 0 };
        // The first have been here for longest.
        let mut found_to_go = found.saturating_sub(kept_max);
        let mut others_to_go = (all - found).saturating_sub(others_max);
        let mut kept = 0;
        for Record { spot, bytes: length, is_found } in records {
            let Ok(mut entry) = self.spots.find_entry(spot.hash(), |other| *other == spot) else {
                continue;
            };
            let to_go = if is_found { &mut found_to_go } else { &mut others_to_go };
            if *to_go > 0 {
                probe!("pagestore_recent_deltas_forgotten");
                *to_go = to_go.saturating_sub(length);
                entry.remove();
                continue;
            }
            let start = spot.start();
            let not_found = u32_at(bytes, start + 16) & !FOUND;
            put(bytes, start + 16, &not_found.to_le_bytes());
            bytes.copy_within(start..start + length, kept);
            *entry.get_mut() = Spot { at: Spot::place(self.count.wrapping_add(1), kept), ..spot };
            kept += length;
        }
        Some((memory, kept))
    }

    /// So many reads of pages are as long as a delta should go unread before it goes from here
    /// (invariant 4).
    fn worth(&mut self, frames: &Frames) -> u64 {
        let (bytes, count) = std::mem::take(&mut self.put);
        match count {
            0 => u64::MAX / LONG,
            count => frames.page_bytes() as u64 * count / bytes,
        }
    }

    /// Gives a chunk back to the pool. The oldest one stays, as one that is filled anew, if more
    /// than so much of it was found since it stands there.
    fn give_back(&mut self, frames: &Frames, found_max: usize) {
        let chunk_bytes = frames.chunk_bytes();
        if self.empty.is_empty() && self.found_in_oldest(frames) > found_max {
            if let Some((memory, end)) = self.empty_oldest(frames, chunk_bytes, false) {
                self.push(memory, end);
            }
        } else if let Some(memory) =
            self.empty.pop().or_else(|| Some(self.empty_oldest(frames, 0, false)?.0))
        {
            probe!("pagestore_recent_deltas_given_back");
            frames.take_back(memory);
        }
    }

    /// Bytes of the oldest chunk that were found since they stand there.
    fn found_in_oldest(&mut self, frames: &Frames) -> usize {
        let Some(mut oldest) = self.fillings.pop_front() else { return 0 };
        let records = {
            let filling = &frames.lent_bytes(&mut oldest.memory)[..oldest.end];
            self.newest_in(filling, oldest.number)
        };
        self.fillings.push_front(oldest);
        found_bytes(&records)
    }

    /// What stands in a filling and is the newest delta of its page.
    fn newest_in(&self, filling: &[u8], number: u32) -> Vec<Record> {
        let mut records = Vec::new();
        let mut start = 0;
        while start < filling.len() {
            let record = &filling[start..];
            let spot = Spot::new(PageId::new(u64_at(record, 0)), number, start);
            let bytes = record_bytes(delta_bytes(record));
            if self.spots.find(spot.hash(), |other| *other == spot).is_some() {
                records.push(Record { spot, bytes, is_found: u32_at(record, 16) & FOUND != 0 });
            }
            start += bytes;
        }
        records
    }
}

/// A delta in a chunk.
struct Record {
    spot: Spot,
    /// With what stands in front of it.
    bytes: usize,
    is_found: bool,
}

/// Bytes of those that were found.
fn found_bytes(records: &[Record]) -> usize {
    records.iter().filter(|record| record.is_found).map(|record| record.bytes).sum()
}

fn hash(pid: PageId) -> u64 {
    // Page numbers are spread well enough by a multiplication.
    let mixed = u64::from(pid.get() as u32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
}

/// A delta as it is on disk.
fn with_padding(bytes: &[u8]) -> Vec<u8> {
    let length = blob::blob_bytes(bytes.len() - BLOB_HEADER_BYTES);
    let mut blob = Vec::with_capacity(length);
    blob.extend_from_slice(bytes);
    blob.resize(length, 0);
    blob
}

/// What a delta takes in a chunk.
fn record_bytes(delta_bytes: usize) -> usize {
    (HEAD_BYTES + delta_bytes).next_multiple_of(UNIT_BYTES)
}

/// The length of the delta behind a record's head.
fn delta_bytes(record: &[u8]) -> usize {
    (u32_at(record, 16) & !(FOUND | SHORT)) as usize
}

/// What begins at a spot.
fn record_at<'a>(
    frames: &'a Frames,
    fillings: &'a mut VecDeque<Filled>,
    spot: Spot,
) -> Option<&'a mut [u8]> {
    let first = fillings.front()?.number;
    let place = spot.filling().wrapping_sub(first) as usize % FILLINGS_MAX;
    let filled = fillings.get_mut(place)?;
    frames.lent_bytes(&mut filled.memory).get_mut(spot.start()..)
}

/// Whether a spot is that of the page.
fn is_of(frames: &Frames, fillings: &mut VecDeque<Filled>, spot: Spot, pid: PageId) -> bool {
    spot.page == pid.get() as u32
        && record_at(frames, fillings, spot).is_some_and(|record| u64_at(record, 0) == pid.get())
}

impl RecentDeltas {
    /// Whether anything can be remembered.
    pub(crate) fn has_memory(&self) -> bool {
        self.has_memory.load(Ordering::Relaxed)
    }

    /// The delta of a page, if it is here. Never parks, like all that follows.
    pub(crate) fn find(&self, frames: &Frames, pid: PageId, place: Location) -> Option<Remembered> {
        if !self.has_memory() {
            return None;
        }
        self.ring.lock().find(frames, pid, place)
    }

    /// Remembers the newest delta of a page whose latch the caller holds.
    pub(crate) fn remember<Bytes: AsRef<[u8]>>(
        &self,
        frames: &Frames,
        pid: PageId,
        place: Location,
        delta: &Remembered<Bytes>,
    ) {
        if self.has_memory() {
            self.ring.lock().insert(frames, pid, place, delta);
        }
    }

    /// The page has no delta any more, or none that may be used from here.
    pub(crate) fn forget(&self, frames: &Frames, pid: PageId) {
        if self.has_memory() {
            self.ring.lock().forget(frames, pid);
        }
    }

    /// The delta of a page whose latch the caller holds has another place on disk.
    pub(crate) fn relocate(&self, frames: &Frames, pid: PageId, [from, to]: [Location; 2]) {
        if !self.has_memory() {
            return;
        }
        let mut ring = self.ring.lock();
        if let Some(delta) = ring.find(frames, pid, from) {
            ring.insert(frames, pid, to, &delta);
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
        ring.pages_read = reads.pages;
        let worth = ring.worth(frames);
        let age = ring.fillings.front().map_or(0, |oldest| reads.pages - oldest.since);
        let most = frames.lent_most().min(FILLINGS_MAX - 1);
        let is_proven = ring.chunks() < most / UNPROVEN_PART || found * PROVEN_PART >= deltas;
        let is_enough = pages >= READS_LEAST || pages > 0 && buggify_with!(0.9);
        let left = most.saturating_sub(ring.chunks());
        let is_short = deltas * WANTED_PART > pages && ring.empty.is_empty();
        let is_wanted = is_enough && is_short && age < worth && is_proven && left > 0;
        if is_wanted && !buggify_with!(0.3) {
            let step = (most / GROWTH_PART).max(1).min(left);
            frames.borrow_chunks(step);
        } else if is_enough && ((deltas + found) * UNUSED_PART < pages || buggify_with!(0.5)) {
            ring.give_back(frames, usize::MAX);
        } else if is_enough && age > LONG * worth {
            ring.give_back(frames, frames.chunk_bytes() / 2);
        }
        self.has_memory.store(ring.chunks() > 0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL_BYTES: usize = 1 << 20;
    /// More than until a pool of 29 chunks has lent all that it may: one look asks for a chunk, the
    /// next one has it.
    const LOOKS: u64 = 64;

    fn place(number: u64) -> Location {
        Location::new(64 * (1 + number), 640, 13, 0)
    }

    /// Those of odd numbers are as they were written; their last three bytes are padding.
    fn delta(number: u64) -> Remembered {
        if number.is_multiple_of(2) {
            return Remembered::Short(vec![number as u8; 640]);
        }
        let mut bytes = vec![number as u8; 637];
        put(&mut bytes, 4, &(637 - BLOB_HEADER_BYTES as u32).to_le_bytes());
        bytes.resize(640, 0);
        Remembered::Written(bytes)
    }

    /// What of the pool may be lent.
    fn part_bytes(frames: &Frames) -> usize {
        frames.lent_most() * frames.chunk_bytes()
    }

    /// A full pool, and what pages are read whose deltas are not in memory until it has grown; it
    /// knows of no delta then.
    fn grown() -> (Frames, RecentDeltas) {
        let frames = Frames::new(POOL_BYTES, false, 1).expect("small");
        let taken: Vec<u32> = std::iter::from_fn(|| frames.take_free(13)).collect();
        taken.iter().for_each(|&frame| frames.give_back(frame, 13));
        let recent = RecentDeltas::default();
        // The numbers of fillings begin anew on the way.
        recent.ring.lock().count = u32::MAX - 2;
        for second in 1..=LOOKS {
            let reads = Reads { pages: 100 * second, deltas: 50 * second, found: 5 * second };
            recent.look(&frames, reads);
            let draining = frames.draining.lock().clone();
            draining.into_iter().for_each(|chunk| frames.finish_drain(chunk));
            // Those that come are used at once, so that what goes was not here for long.
            for number in 0..(2 * POOL_BYTES / 640) as u64 {
                recent.remember(&frames, PageId::new(1 << 20 | number), place(0), &delta(1));
            }
        }
        for number in 0..(2 * POOL_BYTES / 640) as u64 {
            recent.forget(&frames, PageId::new(1 << 20 | number));
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
        let read = 100 * LOOKS;
        recent.remember(&frames, PageId::new(7), place(7), &delta(7));
        for second in 1..=LOOKS {
            let found = 5 * LOOKS + 100 * second;
            let reads = Reads { pages: read + 1_000 * second, deltas: read / 2, found };
            recent.look(&frames, reads);
        }
        assert_eq!(frames.page_bytes(), without, "a tenth is in use");
        assert!(recent.find(&frames, PageId::new(7), place(7)).is_some());
        for second in 1..=LOOKS {
            let reads = Reads {
                pages: read + 1_000 * (LOOKS + second),
                deltas: read / 2 + 10 * second,
                found: 105 * LOOKS,
            };
            recent.look(&frames, reads);
        }
        assert_eq!(frames.page_bytes(), frames.bytes());
        assert_eq!(frames.take_free(13).map(|_| ()), Some(()), "any class has it again");
        assert!(recent.find(&frames, PageId::new(7), place(7)).is_none());
    }

    #[test]
    fn what_pages_would_save_more_in_goes_back_but_not_what_is_found() {
        for is_found in [false, true] {
            let (frames, recent) = grown();
            let [fit, read] = [part_bytes(&frames) as u64 / record_bytes(640) as u64, 100 * LOOKS];
            (0..fit).for_each(|number| {
                recent.remember(&frames, PageId::new(number), place(number), &delta(number));
            });
            for second in 1..=LOOKS {
                for number in (0..fit).filter(|_| is_found) {
                    recent.find(&frames, PageId::new(number), place(number));
                }
                // One is put here now and then, and far more pages are read than would fit.
                recent.remember(&frames, PageId::new(1 << 20), place(second), &delta(second));
                let [pages, deltas] = [100_000 * second, 10_000 * second].map(|n| read + n);
                recent.look(&frames, Reads { pages, deltas, found: deltas });
            }
            let is_lent = frames.page_bytes() < frames.bytes();
            assert_eq!(is_lent, is_found, "found {is_found}");
        }
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
        assert!(left.len() as u64 > fit * 3 / 4 && left.len() as u64 <= fit, "{}", left.len());
        let of_old = left.iter().filter(|&&number| number < fit).count();
        assert!(of_old * 5 < left.len(), "most of what is old went: {of_old} of {}", left.len());
        assert!(recent.ring.lock().spots.len() as u64 <= fit, "nothing is kept of what went");
    }
}
