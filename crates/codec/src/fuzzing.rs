//! What no bytes may make a decoder do: for the fuzz target (`--cfg fuzzing`) and the tests.

use crate::{ALL, Codec, DecompressError, Dictionary, Search};
use crate::{codec, decompress, train, with_dictionary};
use base::Random;
use std::sync::{Arc, OnceLock};

/// Bytes before and behind the target that are watched.
const GUARD_BYTES: usize = 64;

/// Decodes bytes from anywhere: the first names the codec (the last one is Zstandard with a
/// dictionary), the next two the length that somebody claims, the others are compressed or not.
/// Nothing outside the target may change, and what was there before must not show in the outcome.
/// Returns whether they were decoded.
pub fn decode(bytes: &[u8]) -> bool {
    let Some((&[number, low, high], packed)) = bytes.split_first_chunk() else { return false };
    let id = ALL.get(usize::from(number) % (ALL.len() + 1)).copied();
    let decompress = |packed: &[u8], target: &mut [u8]| match id {
        Some(id) => decompress(id, packed, target),
        None => decompress_with_dictionary(packed, target),
    };
    let length = usize::from(u16::from_le_bytes([low, high]));
    let decoded_over = |before: u8| {
        let mut room = vec![before; length + 2 * GUARD_BYTES];
        let target = &mut room[GUARD_BYTES..GUARD_BYTES + length];
        let outcome = decompress(packed, target).map(|()| target.to_vec());
        let (front, rest) = room.split_at(GUARD_BYTES);
        let mut guards = front.iter().chain(&rest[length..]);
        assert!(guards.all(|&byte| byte == before), "{id:?} wrote beside its target");
        outcome
    };
    let outcome = decoded_over(0xA5);
    assert!(decoded_over(0x5A) == outcome, "{id:?} left a part of the target as it was");
    outcome.is_ok()
}

fn decompress_with_dictionary(packed: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
    static PREPARED: OnceLock<Option<Dictionary>> = OnceLock::new();
    let prepared = PREPARED.get_or_init(|| Dictionary::new(&dictionary(1)));
    prepared.as_ref().expect("a dictionary").decompress(packed, target)
}

/// Rows of fields with names and words, some of them far more often than others.
pub fn records(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let number = random.next_u32();
        bytes.extend_from_slice(format!("{{\"customer\": {number}, \"remark\": \"").as_bytes());
        for _ in 0..random.below(12) {
            let scale = random.below(11);
            let rank = random.below(1 << scale);
            // Every word looks like nothing before it.
            let letters = (rank + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24;
            bytes.extend_from_slice(format!("{letters:x} ").as_bytes());
        }
        bytes.extend_from_slice(b"\", \"state\": \"delivered\"}\n");
    }
    bytes.truncate(length);
    bytes
}

/// A dictionary for [`records`].
pub fn dictionary(seed: u64) -> Vec<u8> {
    dictionary_of(seed, 200 << 10, 8 << 10)
}

/// The same from so many bytes of records, at most `bytes_max` long.
pub fn dictionary_of(seed: u64, sample_bytes: usize, bytes_max: usize) -> Vec<u8> {
    let samples = records(seed, sample_bytes);
    let sizes: Vec<usize> = samples.chunks(4096).map(<[u8]>::len).collect();
    train(&samples, &sizes, bytes_max).expect("samples with much in common")
}

/// Zstandard with a dictionary of this content, if it is one.
pub fn packer(level: i32, number: u16, content: &[u8]) -> Option<Arc<dyn Codec>> {
    let reader = Arc::new(Dictionary::new(content)?);
    with_dictionary(level, Search::ByLevel, number, content, reader)
}

/// Something like a page: runs, text, noise.
pub fn sample(random: &mut Random, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let run = 1 + random.below(60) as usize;
        match random.below(3) {
            0 => bytes.resize(bytes.len() + run, random.next_u64() as u8),
            1 => bytes.extend_from_slice(b"customer 0000117 Aroundthecorner street"),
            _ => (0..run).for_each(|_| bytes.push(random.next_u64() as u8)),
        }
    }
    bytes.truncate(length);
    bytes
}

/// Sound bytes of every codec, to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = Random::new(5);
    let mut seeds = Vec::new();
    let mut push = |number: u8, codec: &dyn Codec| {
        for length in [64u16, 4096, 8192] {
            let page = sample(&mut random, usize::from(length));
            let mut packed = vec![0; page.len() * 2 + 200];
            let size = codec.compress(&page, &mut packed).expect("room enough");
            let [low, high] = length.to_le_bytes();
            seeds.push([&[number, low, high], &packed[..size]].concat());
        }
    };
    ALL.into_iter().for_each(|id| push(id as u8, &*codec(id, 0)));
    let with_dictionary = packer(0, 1, &dictionary(1)).expect("a dictionary");
    push(ALL.len() as u8, &*with_dictionary);
    seeds
}
