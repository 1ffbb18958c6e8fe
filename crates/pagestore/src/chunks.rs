//! What changed of a page since its newest full copy on disk, found by comparing fingerprints.
//!
//! A page of any size class is 128 chunks; a set of chunks is a number, chunk n its bit n.
//!
//! 1. A chunk's fingerprint is a keyed hash of 64 bits. Bytes 0..8 of a page, its LSN, take no
//!    part: they change with every record, and whoever writes a delta names the LSN anyway.
//! 2. Fingerprints are taken of a page as its copy on disk or on its way there has it, before the
//!    first byte changes (`Shared::before_change`), so nobody who changes pages has to tell what.
//! 3. A frame's fingerprints are taken, compared and given back only under the page's latch:
//!    exclusively, or shared by the holder of its flush ticket.
//! 4. There is room for a part of the pool's pages. A page that found none is written in full.

use crate::error::StoreError;
use crate::header::{PID_OFFSET, class_bytes};
use runtime::mapping::Mapping;
use runtime::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Chunks of a page, whatever its size.
pub(crate) const CHUNKS: usize = 128;
/// Fingerprints take one of so many parts of what frames take.
pub(crate) const FINGERPRINT_PARTS: usize = 16;
/// Bytes of the fingerprints of one page.
const SLOT_BYTES: usize = CHUNKS * 8;
/// Makes a second key of the random one: odd, its bits without a pattern.
const SECOND_KEY: u64 = 0x9E37_79B9_7F4A_7C15;

/// Bytes of a chunk of a page of the class.
pub(crate) const fn chunk_bytes(class: u8) -> usize {
    class_bytes(class) / CHUNKS
}

/// The numbers in a set of chunks, ascending.
pub(crate) fn chunks_of(set: u128) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let number = (rest != 0).then(|| rest.trailing_zeros() as usize);
        rest &= rest.wrapping_sub(1);
        number
    })
}

/// Fingerprints of some of the pool's pages.
#[derive(Debug)]
pub(crate) struct Fingerprints {
    region: Mapping,
    free: Mutex<FreeSlots>,
    key: u64,
}

#[derive(Debug)]
struct FreeSlots {
    given_back: Vec<u32>,
    /// Slots from here on were never used, so they take no memory.
    untouched: u32,
    end: u32,
}

impl Fingerprints {
    /// Room for fingerprints beside frames of so many bytes. `key` is random.
    pub(crate) fn new(frame_bytes: usize, key: u64) -> Result<Fingerprints, StoreError> {
        let slots = (frame_bytes / FINGERPRINT_PARTS / SLOT_BYTES).max(1);
        let region = Mapping::anonymous(slots * SLOT_BYTES, false)
            .map_err(|error| StoreError::io("fingerprints", &error))?;
        let free = FreeSlots { given_back: Vec::new(), untouched: 0, end: slots as u32 };
        Ok(Fingerprints { region, free: Mutex::new(free), key })
    }

    /// Room for one page, if there is any left.
    pub(crate) fn take(&self) -> Option<u32> {
        let mut free = self.free.lock();
        if let Some(slot) = free.given_back.pop() {
            return Some(slot);
        }
        let slot = free.untouched;
        (slot < free.end).then(|| {
            free.untouched += 1;
            slot
        })
    }

    /// The page needs its room no longer.
    pub(crate) fn give_back(&self, slot: u32) {
        self.free.lock().given_back.push(slot);
    }

    fn slot(&self, slot: u32) -> &[AtomicU64; CHUNKS] {
        base::invariant!((slot as usize + 1) * SLOT_BYTES <= self.region.len(), "slot {slot}");
        // SAFETY: in bounds by the check; the region is zeroed, aligned to a system page, lives
        // as long as self and is accessed only through these slots, whose words are atomics for
        // which any bytes are valid.
        unsafe { &*self.region.as_ptr().cast::<[AtomicU64; CHUNKS]>().add(slot as usize) }
    }

    /// Takes the fingerprints of all chunks of a page.
    pub(crate) fn record(&self, slot: u32, page: &[u8]) {
        for (word, print) in self.slot(slot).iter().zip(prints(page, self.key)) {
            word.store(print, Ordering::Relaxed);
        }
    }

    /// The chunks of the page that are not what they were.
    pub(crate) fn changed(&self, slot: u32, page: &[u8]) -> u128 {
        let pairs = self.slot(slot).iter().zip(prints(page, self.key)).enumerate();
        pairs.fold(0, |set, (number, (word, print))| {
            set | u128::from(word.load(Ordering::Relaxed) != print) << number
        })
    }
}

/// The fingerprints of a page's chunks (invariant 1).
fn prints(page: &[u8], key: u64) -> impl Iterator<Item = u64> {
    let chunks = page.chunks_exact(page.len() / CHUNKS).enumerate();
    // The factors of a product may change places: with one key for both, words could, too.
    let start = fold(key, SECOND_KEY);
    chunks.map(move |(number, chunk)| {
        let mut print = start ^ number as u64;
        for (at, pair) in chunk.as_chunks::<16>().0.iter().enumerate() {
            let pair = u128::from_le_bytes(*pair);
            let skip = number == 0 && at * 16 < PID_OFFSET;
            let low = if skip { 0 } else { pair as u64 };
            print = fold(low ^ key, (pair >> 64) as u64 ^ print);
        }
        print
    })
}

/// Both halves of a product: every bit of either factor reaches every bit of the result.
#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::put;
    use base::Random;

    fn noise(class: u8, seed: u64) -> Vec<u8> {
        let mut page = vec![0; class_bytes(class)];
        Random::new(seed).fill(&mut page);
        page
    }

    #[test]
    fn every_changed_byte_marks_its_chunk_but_for_the_lsn() {
        for class in 12..=15 {
            let prints = Fingerprints::new(1 << 20, 0x9E37_79B9_7F4A_7C15).expect("memory");
            let slot = prints.take().expect("room");
            for page in [noise(class, 3), vec![0; class_bytes(class)]] {
                prints.record(slot, &page);
                assert_eq!(prints.changed(slot, &page), 0);
                let mut other = page.clone();
                for place in 0..page.len() {
                    other[place] ^= 1 << (place % 8);
                    let expected = match place {
                        0..8 => 0,
                        _ => 1 << (place / chunk_bytes(class)),
                    };
                    assert_eq!(prints.changed(slot, &other), expected, "byte {place}");
                    other[place] = page[place];
                }
            }
        }
    }

    #[test]
    fn bytes_that_change_places_are_noticed() {
        let prints = Fingerprints::new(1 << 20, 77).expect("memory");
        let slot = prints.take().expect("room");
        let page = noise(13, 5);
        prints.record(slot, &page);
        let mut other = page.clone();
        other[640..704].rotate_left(16);
        assert_eq!(prints.changed(slot, &other), 1 << 10);
        other[640..704].rotate_right(16);
        other.swap(1000, 5000);
        assert_eq!(prints.changed(slot, &other), 1 << 15 | 1 << 78);
    }

    #[test]
    fn words_that_change_roles_are_noticed() {
        let prints = Fingerprints::new(1 << 20, 77).expect("memory");
        let slot = prints.take().expect("room");
        for number in 0..CHUNKS {
            let mut page = noise(12, 5);
            let (one, other) = (0x0876_0000_0008_03be_u64, 0x1234_u64);
            let at = number * chunk_bytes(12) + 16 * usize::from(number == 0);
            put(&mut page, at, &one.to_le_bytes());
            put(&mut page, at + 8, &other.to_le_bytes());
            prints.record(slot, &page);
            put(&mut page, at, &(other ^ number as u64).to_le_bytes());
            put(&mut page, at + 8, &(one ^ number as u64).to_le_bytes());
            assert_eq!(prints.changed(slot, &page), 1 << number, "chunk {number}");
        }
    }

    #[test]
    fn room_is_bounded_and_comes_back() {
        let prints = Fingerprints::new(64 << 10, 1).expect("memory");
        let slots: Vec<u32> = std::iter::from_fn(|| prints.take()).collect();
        assert_eq!(slots.len(), (64 << 10) / FINGERPRINT_PARTS / SLOT_BYTES);
        prints.give_back(slots[2]);
        assert_eq!(prints.take(), Some(slots[2]));
        assert_eq!(prints.take(), None);
    }

    #[test]
    fn sets_are_walked_upwards() {
        assert_eq!(chunks_of(0).count(), 0);
        assert_eq!(chunks_of(1 << 127 | 0b101).collect::<Vec<_>>(), [0, 2, 127]);
        assert_eq!(chunks_of(u128::MAX).count(), CHUNKS);
    }
}
