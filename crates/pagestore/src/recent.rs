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
//! 4. Chunks come while pages are read whose deltas are not here, and a byte here is asked for as
//!    often as one of the pool's pages: a delta that is found saves a read, as does a page that the
//!    clock's hand finds used since it came by last. They go back when it is asked for clearly less
//!    often, or when deltas are hardly asked for any more.

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
/// This part of what the pool lends comes without a proof of its worth.
const UNPROVEN_PART: usize = 8;
/// Of a chunk that is filled anew so many fourths may stay.
const KEPT_FOURTHS: usize = 3;
/// Chunks go back when a byte of a page is asked for so many times as often as one here.
const CLEARLY: u64 = 2;
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
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct RecentDeltas {
    ring: Mutex<Ring>,
    /// Counters at the last look.
    looked: Mutex<Reads>,
    /// Whether there is any memory: without, nobody takes the lock.
    has_memory: AtomicBool,
}

/// What pages and deltas were asked for since the store was opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reads {
    /// Pages read from disk.
    pub(crate) pages: u64,
    /// Deltas read from disk.
    pub(crate) deltas: u64,
    /// Deltas found here.
    pub(crate) found: u64,
    /// Pages that the clock's hand found used.
    pub(crate) pages_used: u64,
}

impl Reads {
    /// What came since `former`.
    fn since(self, former: Reads) -> Reads {
        Reads {
            pages: self.pages - former.pages,
            deltas: self.deltas - former.deltas,
            found: self.found - former.found,
            pages_used: self.pages_used - former.pages_used,
        }
    }
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
        let begun = empty.or_else(|| self.empty_oldest(frames, kept_max));
        match begun {
            Some((memory, end)) => self.push(memory, end),
            None => return false,
        }
        true
    }

    fn push(&mut self, memory: Lent, end: usize) {
        self.count = self.count.wrapping_add(1);
        self.fillings.push_back(Filled { memory, number: self.count, end });
    }

    /// Forgets what stands in the oldest chunk but for what was found there, and the newest deltas
    /// of other pages as well if they are asked for, up to so many bytes: that moves to its begin,
    /// for the next filling ([`Ring::push`]). Returns the chunk and where that ends.
    fn empty_oldest(&mut self, frames: &Frames, kept_max: usize) -> Option<(Lent, usize)> {
        let Filled { mut memory, number, end, .. } = self.fillings.pop_front()?;
        let bytes = frames.lent_bytes(&mut memory);
        let records = self.newest_in(&bytes[..end], number);
        let found = found_bytes(&records);
        let all: usize = records.iter().map(|record| record.bytes).sum();
        let others_max = kept_max.saturating_sub(found);
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

    /// Gives a chunk back to the pool.
    fn give_back(&mut self, frames: &Frames) {
        let memory = self.empty.pop().or_else(|| Some(self.empty_oldest(frames, 0)?.0));
        if let Some(memory) = memory {
            probe!("pagestore_recent_deltas_given_back");
            frames.take_back(memory);
        }
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
        let of_late = reads.since(std::mem::replace(&mut *self.looked.lock(), reads));
        let mut ring = self.ring.lock();
        ring.empty.append(&mut frames.borrowed());
        let most = frames.lent_most().min(FILLINGS_MAX - 1);
        let left = most.saturating_sub(ring.chunks());
        let is_unproven = ring.chunks() < most / UNPROVEN_PART;
        // How often bytes are asked for, here and in pages, times all bytes (invariant 4).
        let [here, pages] = [ring.chunks() * frames.chunk_bytes(), frames.page_bytes()];
        let worth = u128::from(of_late.found) * pages as u128;
        let worth_of_pages = u128::from(of_late.pages_used) * here as u128;
        let is_enough = of_late.pages >= READS_LEAST || of_late.pages > 0 && buggify_with!(0.9);
        let is_short = of_late.deltas * WANTED_PART > of_late.pages && ring.empty.is_empty();
        let is_worth_more = is_unproven || worth > worth_of_pages;
        let is_worth_less = !is_unproven && worth * u128::from(CLEARLY) < worth_of_pages;
        let is_unused = (of_late.deltas + of_late.found) * UNUSED_PART < of_late.pages;
        if is_enough && is_short && is_worth_more && left > 0 && !buggify_with!(0.3) {
            frames.borrow_chunks((most / GROWTH_PART).max(1).min(left));
        } else if is_enough && (is_unused || is_worth_less || buggify_with!(0.5)) {
            ring.give_back(frames);
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

    /// Its last three bytes are padding.
    fn delta(number: u64) -> Remembered {
        let mut bytes = vec![number as u8; 637];
        put(&mut bytes, 4, &(637 - BLOB_HEADER_BYTES as u32).to_le_bytes());
        bytes.resize(640, 0);
        Remembered::Written(bytes)
    }

    /// What of the pool may be lent.
    fn part_bytes(frames: &Frames) -> usize {
        frames.lent_most() * frames.chunk_bytes()
    }

    /// A look behind which chunks are emptied and filled.
    fn look(frames: &Frames, recent: &RecentDeltas, reads: Reads) {
        recent.look(frames, reads);
        let draining = frames.draining.lock().clone();
        draining.into_iter().for_each(|chunk| frames.finish_drain(chunk));
        for number in 0..(2 * POOL_BYTES / 640) as u64 {
            recent.remember(frames, PageId::new(1 << 20 | number), place(0), &delta(1));
        }
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
            let [pages, deltas, found] = [100, 50, 5].map(|each| each * second);
            look(&frames, &recent, Reads { pages, deltas, found, pages_used: 0 });
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
            let pages = read + 1_000 * second;
            recent.look(&frames, Reads { pages, deltas: read / 2, found, pages_used: 0 });
        }
        assert_eq!(frames.page_bytes(), without, "a tenth is in use");
        assert!(recent.find(&frames, PageId::new(7), place(7)).is_some());
        for second in 1..=LOOKS {
            let reads = Reads {
                pages: read + 1_000 * (LOOKS + second),
                deltas: read / 2 + 10 * second,
                found: 105 * LOOKS,
                pages_used: 0,
            };
            recent.look(&frames, reads);
        }
        assert_eq!(frames.page_bytes(), frames.bytes());
        assert_eq!(frames.take_free(13).map(|_| ()), Some(()), "any class has it again");
        assert!(recent.find(&frames, PageId::new(7), place(7)).is_none());
    }

    #[test]
    fn memory_goes_where_a_byte_is_asked_for_more_often() {
        let (frames, recent) = grown();
        let mut reads = Reads { pages: 100 * LOOKS, ..Reads::default() };
        reads = Reads { deltas: reads.pages / 2, found: reads.pages / 20, ..reads };
        let all = frames.bytes() / frames.chunk_bytes();
        let mut lent_with = |pages_used: u64| {
            for _ in 0..LOOKS {
                let [pages, deltas] = [reads.pages + 1_000, reads.deltas + 200];
                let found = reads.found + 300;
                reads = Reads { pages, deltas, found, pages_used: reads.pages_used + pages_used };
                look(&frames, &recent, reads);
            }
            (frames.bytes() - frames.page_bytes()) / frames.chunk_bytes()
        };
        let most = frames.lent_most();
        assert_eq!((all, most), (29, 21));
        // 300 deltas are found in 21 chunks, and there are 8 for pages.
        assert_eq!(lent_with(100), most, "as often as in pages");
        assert_eq!(lent_with(200), most, "less often, but not clearly");
        assert_eq!(lent_with(300), 19, "half as often");
        assert_eq!(lent_with(3_000), 4);
        assert_eq!(lent_with(1_000_000), 1, "what comes without a proof");
        // Pages have those that went back.
        let taken: Vec<u32> = std::iter::from_fn(|| frames.take_free(13)).collect();
        taken.iter().for_each(|&frame| frames.give_back(frame, 13));
        assert_eq!(lent_with(0), most);
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
