//! LZO1X. A library decompresses; the compressor is here, since the library's follows all earlier
//! places with the same three bytes, hundreds of them in a page of text.
//!
//! A block is literals and matches in turn, and the end mark. A match says its length (four bytes
//! and more, by this compressor) and its distance in two bytes or more, in three forms for three
//! ranges of distances; up to three literals behind it are announced in two bits of its last byte
//! but one, more by bytes of their own:
//!
//! ```text
//! literals  first of the block, to 238   17 + n
//!           to 3                         in the match before: its last byte but one |= n
//!           to 18                        n - 3
//!           more                         0, rest of n - 18
//! match     length to 8, distance to 2K  (length - 1) << 5 | low 3 bits of distance - 1 << 2,
//!                                        its high bits
//!           distance to 16K              0x20 | length - 2 (0 and the rest of length - 33),
//!                                        (distance - 1) << 2 in two bytes
//!           distance to 48K              0x10 | bit 14 of distance - 16K >> 11 | length - 2 (0 and
//!                                        the rest of length - 9), (distance - 16K) << 2
//! end       0x11 0 0
//! ```
//!
//! The rest of a length is a zero for each 255 of it, and one to 255 at the end.

use crate::{Codec, CodecId, DecompressError};
use std::cell::RefCell;

/// LZO, which has no levels.
#[derive(Debug)]
pub(crate) struct Lzo;

/// Places that are remembered, by the hash of the bytes there.
const PLACES: usize = 1 << PLACES_BITS;
const PLACES_BITS: u32 = 13;
/// Literals without a match after which one byte more is passed over at a time.
const PATIENCE_BITS: u32 = 5;
const SHORT_LENGTH_MAX: usize = 8;
const SHORT_DISTANCE_MAX: usize = 0x800;
const MIDDLE_DISTANCE_MAX: usize = 0x4000;
const DISTANCE_MAX: usize = 0xBFFF;
const END: [u8; 3] = [0x11, 0, 0];

thread_local! {
    /// Borrowed only within one call.
    static KEPT_PLACES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

impl Codec for Lzo {
    fn id(&self) -> CodecId {
        CodecId::Lzo
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        KEPT_PLACES.with_borrow_mut(|places| {
            places.clear();
            places.resize(PLACES, 0);
            compress(source, target, places)
        })
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        match lzokay::decompress::decompress(source, target) {
            Ok(size) if size == target.len() => Ok(()),
            Ok(_) => Err(DecompressError("the lzo block is too short")),
            Err(_) => Err(DecompressError("damaged lzo block")),
        }
    }
}

/// Takes the latest place with the same four bytes wherever there is one. Every place is zero at
/// the beginning: what is there is compared anyway.
fn compress(source: &[u8], target: &mut [u8], places: &mut [u32]) -> Option<usize> {
    let mut block = Block { bytes: target, end: 0 };
    let (mut literals_at, mut at) = (0, 1);
    while let Some(four) = four_at(source, at) {
        let earlier = std::mem::replace(&mut places[slot(four)], at as u32) as usize;
        if at - earlier > DISTANCE_MAX || four_at(source, earlier) != Some(four) {
            at += 1 + ((at - literals_at) >> PATIENCE_BITS);
            continue;
        }
        let length = same_bytes(&source[earlier..], &source[at..]);
        block.literals(&source[literals_at..at])?;
        block.copy(at - earlier, length)?;
        at += length;
        literals_at = at;
        if let Some(four) = four_at(source, at - 2) {
            places[slot(four)] = (at - 2) as u32;
        }
    }
    block.literals(&source[literals_at..])?;
    block.push(&END)?;
    Some(block.end)
}

fn four_at(source: &[u8], at: usize) -> Option<[u8; 4]> {
    source.get(at..)?.first_chunk().copied()
}

fn slot(four: [u8; 4]) -> usize {
    (u32::from_le_bytes(four).wrapping_mul(0x9E37_79B1) >> (u32::BITS - PLACES_BITS)) as usize
}

/// How many bytes both begin with.
fn same_bytes(one: &[u8], other: &[u8]) -> usize {
    let words = one.chunks_exact(8).zip(other.chunks_exact(8));
    let same = 8 * words.take_while(|(one, other)| one == other).count();
    let rest = one[same..].iter().zip(&other[same..]);
    same + rest.take_while(|(one, other)| one == other).count()
}

/// A compressed block; what does not fit is `None`.
struct Block<'t> {
    bytes: &'t mut [u8],
    end: usize,
}

impl Block<'_> {
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        self.bytes.get_mut(self.end..self.end + bytes.len())?.copy_from_slice(bytes);
        self.end += bytes.len();
        Some(())
    }

    /// What of a length did not go into the first byte; at least one.
    fn push_rest(&mut self, mut rest: usize) -> Option<()> {
        while rest > 255 {
            self.push(&[0])?;
            rest -= 255;
        }
        self.push(&[rest as u8])
    }

    /// Literals at the beginning, or behind a match.
    fn literals(&mut self, literals: &[u8]) -> Option<()> {
        match (self.end, literals.len()) {
            (_, 0) => return Some(()),
            (0, count @ ..=238) => self.push(&[17 + count as u8])?,
            (end @ 2.., count @ ..=3) => self.bytes[end - 2] |= count as u8,
            (_, count @ ..=18) => self.push(&[count as u8 - 3])?,
            (_, count) => {
                self.push(&[0])?;
                self.push_rest(count - 18)?;
            }
        }
        self.push(literals)
    }

    /// A match of at least three bytes.
    fn copy(&mut self, distance: usize, length: usize) -> Option<()> {
        let before = distance - 1;
        if length <= SHORT_LENGTH_MAX && distance <= SHORT_DISTANCE_MAX {
            let first = (length - 1) << 5 | (before & 7) << 2;
            return self.push(&[first as u8, (before >> 3) as u8]);
        }
        let (first, length_max, place) = match distance.checked_sub(MIDDLE_DISTANCE_MAX) {
            None | Some(0) => (0x20, 33, before),
            Some(far) => (0x10 | (far >> 11 & 8) as u8, 9, far),
        };
        if length <= length_max {
            self.push(&[first | (length - 2) as u8])?;
        } else {
            self.push(&[first])?;
            self.push_rest(length - length_max)?;
        }
        self.push(&[(place << 2) as u8, (place >> 6) as u8])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    fn assert_comes_back(source: &[u8], told: &str) -> usize {
        let mut packed = vec![0; source.len() + source.len() / 16 + 64];
        let size = Lzo.compress(source, &mut packed).expect("room enough");
        let mut back = vec![0xAA; source.len()];
        Lzo.decompress(&packed[..size], &mut back)
            .unwrap_or_else(|error| panic!("{told}: {error}"));
        assert!(back == source, "{told}");
        size
    }

    fn noise(random: &mut Random, length: usize) -> Vec<u8> {
        (0..length).map(|_| random.next_u64() as u8).collect()
    }

    #[test]
    fn every_form_of_literals_and_matches_comes_back() {
        let mut random = Random::new(7);
        let distances = [4, 5, 0x7FF, 0x800, 0x801, 0x3FFF, 0x4000, 0x4001, 0x7FFF, 0x8001, 0xBFFF];
        for distance in distances {
            for length in [4, 5, 8, 9, 10, 33, 34, 288, 289, 700] {
                for literals in [0, 1, 3, 4, 18, 19, 273, 274, 800] {
                    let mut source = noise(&mut random, distance);
                    (0..length).for_each(|_| source.push(source[source.len() - distance]));
                    source.extend(noise(&mut random, literals));
                    // A second match stands behind literals of every length.
                    source.extend_from_within(..64.min(distance));
                    let told = format!("distance {distance}, {length} bytes, {literals} literals");
                    assert_comes_back(&source, &told);
                }
            }
        }
    }

    #[test]
    fn short_sources_come_back() {
        let mut random = Random::new(8);
        for length in 0..300 {
            assert_comes_back(&noise(&mut random, length), "noise");
            let size = assert_comes_back(&vec![7; length], "one byte");
            assert!(size <= 12, "{length} equal bytes take {size}");
        }
    }

    #[test]
    fn every_target_that_is_too_short_is_refused() {
        let page = crate::fuzzing::sample(&mut Random::new(9), 2000);
        let size = assert_comes_back(&page, "sample");
        for room in 0..size {
            assert_eq!(Lzo.compress(&page, &mut vec![0; room]), None, "{room} of {size}");
        }
    }
}
