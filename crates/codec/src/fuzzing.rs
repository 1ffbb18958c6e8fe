//! What no bytes may make a decoder do: for the fuzz target (`--cfg fuzzing`) and the tests.

use crate::{ALL, codec, decompress};
use base::Random;

/// Bytes before and behind the target that are watched.
const GUARD_BYTES: usize = 64;

/// Decodes bytes from anywhere: the first names the codec, the next two the length that somebody
/// claims, the others are compressed or not. Nothing outside the target may change, and what was
/// there before must not show in the outcome. Returns whether they were decoded.
pub fn decode(bytes: &[u8]) -> bool {
    let Some((&[number, low, high], packed)) = bytes.split_first_chunk() else { return false };
    let id = ALL[usize::from(number) % ALL.len()];
    let length = usize::from(u16::from_le_bytes([low, high]));
    let decoded_over = |before: u8| {
        let mut room = vec![before; length + 2 * GUARD_BYTES];
        let target = &mut room[GUARD_BYTES..GUARD_BYTES + length];
        let outcome = decompress(id, packed, target).map(|()| target.to_vec());
        let (front, rest) = room.split_at(GUARD_BYTES);
        let mut guards = front.iter().chain(&rest[length..]);
        assert!(guards.all(|&byte| byte == before), "{id} wrote beside its target");
        outcome
    };
    let outcome = decoded_over(0xA5);
    assert!(decoded_over(0x5A) == outcome, "{id} left a part of the target as it was");
    outcome.is_ok()
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
    for id in ALL {
        for length in [64u16, 4096, 8192] {
            let page = sample(&mut random, usize::from(length));
            let mut packed = vec![0; page.len() * 2 + 200];
            let size = codec(id, 0).compress(&page, &mut packed).expect("room enough");
            let [low, high] = length.to_le_bytes();
            seeds.push([&[id as u8, low, high], &packed[..size]].concat());
        }
    }
    seeds
}
