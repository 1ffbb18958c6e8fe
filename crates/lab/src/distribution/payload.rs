//! Bytes that compress about as well as those of a social network: pieces of a motif among fresh
//! random bytes.

use base::Random;
use std::ops::Range;

const MOTIF_BYTES: usize = 512;
const CHUNK_BYTES: usize = 128;

/// What the bytes of a payload are like.
#[derive(Clone, Debug)]
pub struct Texture {
    /// The values of bytes.
    pub bytes: Range<u8>,
    /// The share of chunks that are fresh.
    pub uniqueness: f64,
}

/// Payloads of links: they compress to about 30 %.
pub const LINK: Texture = Texture { bytes: 32..100, uniqueness: 0.225 };
/// Payloads of nodes: they compress to about 60 %.
pub const NODE: Texture = Texture { bytes: 50..220, uniqueness: 0.63 };

/// A source of payloads with a motif of its own.
#[derive(Clone, Debug)]
pub struct Payload {
    texture: Texture,
    motif: Vec<u8>,
}

impl Payload {
    /// The motif is drawn at once.
    pub fn new(texture: Texture, random: &mut Random) -> Self {
        let motif = (0..MOTIF_BYTES).map(|_| fresh(&texture.bytes, random)).collect();
        Self { texture, motif }
    }

    /// Appends so many bytes.
    pub fn append(&self, out: &mut Vec<u8>, bytes: usize, random: &mut Random) {
        let mut left = bytes;
        while left > 0 {
            let chunk = left.min(CHUNK_BYTES);
            if random.chance(self.texture.uniqueness) {
                out.extend((0..chunk).map(|_| fresh(&self.texture.bytes, random)));
            } else {
                let start = random.index(MOTIF_BYTES - chunk + 1);
                out.extend_from_slice(&self.motif[start..start + chunk]);
            }
            left -= chunk;
        }
    }
}

fn fresh(bytes: &Range<u8>, random: &mut Random) -> u8 {
    random.range(u64::from(bytes.start)..u64::from(bytes.end)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_of_the_texture_and_as_many_as_asked() {
        let mut random = Random::new(2);
        for texture in [LINK, NODE] {
            let payload = Payload::new(texture.clone(), &mut random);
            let mut out = Vec::new();
            for bytes in [0, 1, 127, 128, 129, 5000] {
                out.clear();
                payload.append(&mut out, bytes, &mut random);
                assert_eq!(out.len(), bytes);
                assert!(out.iter().all(|byte| texture.bytes.contains(byte)));
            }
        }
    }

    #[test]
    fn the_share_of_fresh_chunks_is_the_uniqueness() {
        let mut random = Random::new(4);
        for texture in [LINK, NODE] {
            let uniqueness = texture.uniqueness;
            let payload = Payload::new(texture, &mut random);
            let mut out = Vec::new();
            payload.append(&mut out, CHUNK_BYTES * 20_000, &mut random);
            let is_copy = |chunk: &[u8]| payload.motif.windows(chunk.len()).any(|m| m == chunk);
            let chunks = out.chunks(CHUNK_BYTES);
            let fresh = chunks.filter(|chunk| !is_copy(&chunk[..16])).count() as f64 / 20_000.0;
            assert!((fresh - uniqueness).abs() < 0.015, "{fresh} instead of {uniqueness}");
        }
    }
}
