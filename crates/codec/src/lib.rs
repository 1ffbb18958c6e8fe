//! Gannet: the `codec` room. Page compression behind one trait.
//!
//! The codec of a page is stored with its bytes, so that changing a tree's codec needs no
//! rebuild. Codecs know nothing of pages: bytes in, bytes out, the exact length known on both
//! sides. Decompression never reads or writes outside the slices it is given, whatever they hold.

mod bzip2;
mod dictionary;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod library;
mod lz4;
mod lzma;
mod lzo;
mod search;
mod snappy;
mod zlib;
mod zstandard;

pub use dictionary::{Dictionary, train, with_dictionary};
pub use search::Search;
use std::fmt;
pub use zstandard::searching;

/// Names a codec on disk. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum CodecId {
    /// The bytes as they are.
    None = 0,
    /// LZ4 block format: a few microseconds a page both ways.
    Lz4 = 1,
    /// Zstandard: better ratio, about five times the time of LZ4.
    Zstd = 2,
    /// zlib: what MariaDB compresses with unless told otherwise.
    Zlib = 3,
    /// LZO1X: about as fast as LZ4 to decompress.
    Lzo = 4,
    /// LZMA: small and slow.
    Lzma = 5,
    /// bzip2: small and slow both ways.
    Bzip2 = 6,
    /// Snappy: about as fast as LZ4.
    Snappy = 7,
}

/// All codecs, by their numbers.
pub const ALL: [CodecId; 8] = [
    CodecId::None,
    CodecId::Lz4,
    CodecId::Zstd,
    CodecId::Zlib,
    CodecId::Lzo,
    CodecId::Lzma,
    CodecId::Bzip2,
    CodecId::Snappy,
];

impl CodecId {
    /// The codec with this number on disk.
    pub fn from_number(number: u8) -> Option<CodecId> {
        ALL.get(usize::from(number)).copied()
    }

    /// The name that options use.
    pub fn name(self) -> &'static str {
        match self {
            CodecId::None => "none",
            CodecId::Lz4 => "lz4",
            CodecId::Zstd => "zstd",
            CodecId::Zlib => "zlib",
            CodecId::Lzo => "lzo",
            CodecId::Lzma => "lzma",
            CodecId::Bzip2 => "bzip2",
            CodecId::Snappy => "snappy",
        }
    }

    /// The codec with this name.
    pub fn from_name(name: &str) -> Option<CodecId> {
        ALL.into_iter().find(|codec| codec.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for CodecId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Compressed bytes that do not give back what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecompressError(pub &'static str);

impl fmt::Display for DecompressError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot decompress: {}", self.0)
    }
}

impl std::error::Error for DecompressError {}

/// A way to make pages smaller.
pub trait Codec: Send + Sync + fmt::Debug {
    /// What stands for it on disk.
    fn id(&self) -> CodecId;

    /// What stands on disk for the dictionary that it needs to read again what it makes; 0: none.
    fn dictionary(&self) -> u16 {
        0
    }

    /// Memory that it holds for itself alone.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Compresses `source` into the start of `target` and returns how many bytes that took, or
    /// `None` if it does not fit: the caller then stores the bytes as they are. A `target`
    /// shorter than `source` asks for a minimal gain. Never parks.
    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize>;

    /// Fills the whole of `target` from `source`, or says why that cannot be. On an error
    /// `target` holds anything. Never parks, never panics.
    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError>;
}

/// The codec with this id. `level`, from 1 (fast) to 9 (small), matters to zlib, LZMA and
/// Zstandard; 0 is what this store does unless told otherwise.
pub fn codec(id: CodecId, level: i32) -> Box<dyn Codec> {
    match id {
        CodecId::None => Box::new(Raw),
        CodecId::Lz4 => Box::new(lz4::Lz4),
        CodecId::Zstd => Box::new(zstandard::Zstandard::new(level)),
        CodecId::Zlib => Box::new(zlib::Zlib::new(level)),
        CodecId::Lzo => Box::new(lzo::Lzo),
        CodecId::Lzma => Box::new(lzma::Lzma::new(level)),
        CodecId::Bzip2 => Box::new(bzip2::Bzip2),
        CodecId::Snappy => Box::new(snappy::Snappy),
    }
}

/// Decompresses what the codec `id` has made; see [`Codec::decompress`].
pub fn decompress(id: CodecId, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
    match id {
        CodecId::None => Raw.decompress(source, target),
        CodecId::Lz4 => lz4::Lz4.decompress(source, target),
        CodecId::Zstd => zstandard::decompress(source, target),
        CodecId::Zlib => zlib::decompress(source, target),
        CodecId::Lzo => lzo::Lzo.decompress(source, target),
        CodecId::Lzma => lzma::decompress(source, target),
        CodecId::Bzip2 => bzip2::Bzip2.decompress(source, target),
        CodecId::Snappy => snappy::Snappy.decompress(source, target),
    }
}

/// No compression.
#[derive(Debug)]
struct Raw;

impl Codec for Raw {
    fn id(&self) -> CodecId {
        CodecId::None
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        target.get_mut(..source.len())?.copy_from_slice(source);
        Some(source.len())
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        if source.len() != target.len() {
            return Err(DecompressError("the length differs"));
        }
        target.copy_from_slice(source);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::{self, sample};
    use base::Random;

    #[test]
    fn round_trip_at_exact_lengths() {
        let mut random = Random::new(1);
        for id in ALL {
            for level in [0, 3] {
                for length in [1, 64, 4095, 4096, 8192, 32768] {
                    let codec = codec(id, level);
                    let page = sample(&mut random, length);
                    let mut packed = vec![0; length * 2 + 200];
                    let size = codec.compress(&page, &mut packed).expect("room enough");
                    let mut back = vec![0xAA; length];
                    decompress(id, &packed[..size], &mut back).expect("our own bytes");
                    assert!(back == page, "{id} {length}");
                    let mut shorter = vec![0; length - 1];
                    assert!(decompress(id, &packed[..size], &mut shorter).is_err());
                    let mut longer = vec![0; length + 1];
                    assert!(decompress(id, &packed[..size], &mut longer).is_err());
                    assert_eq!(codec.id(), id);
                }
            }
        }
    }

    #[test]
    fn nothing_comes_back_as_nothing() {
        for id in ALL {
            let mut packed = [0; 64];
            let size = codec(id, 0).compress(&[], &mut packed).expect("room enough");
            assert_eq!(decompress(id, &packed[..size], &mut []), Ok(()), "{id}");
            assert!(decompress(id, &packed[..size], &mut [0]).is_err(), "{id}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut random = Random::new(2);
        let noise: Vec<u8> = (0..8192).map(|_| random.next_u64() as u8).collect();
        for id in ALL {
            let mut target = vec![0; 8192 * 9 / 10];
            assert_eq!(codec(id, 0).compress(&noise, &mut target), None, "{id}");
        }
        let zeroes = vec![0; 8192];
        let mut target = vec![0; 100];
        assert!(codec(CodecId::Zstd, 0).compress(&zeroes, &mut target).is_some());
        assert!(codec(CodecId::Lz4, 0).compress(&zeroes, &mut target).is_some());
    }

    #[test]
    fn hostile_bytes_never_panic_and_stay_in_bounds() {
        let mut random = Random::new(3);
        for (number, seed) in fuzzing::seeds().iter().enumerate() {
            assert!(fuzzing::decode(seed), "seed {number} is sound");
            let mut refused = 0;
            for _ in 0..1_000 {
                let mut bytes = seed.clone();
                // The number of the codec stays; the length that is claimed may change, too.
                let mut rest = bytes.split_off(1);
                match random.one_in(20) {
                    true => random.fill(&mut rest[2..]),
                    false => random.damage(&mut rest),
                }
                bytes.append(&mut rest);
                refused += usize::from(!fuzzing::decode(&bytes));
            }
            assert!(refused > 100, "seed {number}: {refused}");
        }
    }

    /// Eleven digits and a dash in turn, or words, some of them far more often than others.
    fn rows(of_digits: bool, length: usize) -> Vec<u8> {
        let mut random = Random::new(6);
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let number = match of_digits {
                true => random.below(100_000_000_000),
                false => 1 << random.below(30),
            };
            bytes.extend_from_slice(
                match of_digits {
                    true => format!("{number:011}-").into_bytes(),
                    false => format!("word{:x} ", random.below(number)).into_bytes(),
                }
                .as_slice(),
            );
        }
        bytes.truncate(length);
        bytes
    }

    /// Bytes of the pages compressed, and the time that it takes.
    fn compressed(id: CodecId, pages: &[u8]) -> (usize, std::time::Duration) {
        let (codec, mut target) = (codec(id, 0), vec![0; 2 * PAGE_BYTES]);
        let begin = std::time::Instant::now();
        let sizes = pages.chunks(PAGE_BYTES).map(|page| codec.compress(page, &mut target));
        (sizes.map(|size| size.expect("room enough")).sum(), begin.elapsed())
    }

    const PAGE_BYTES: usize = 8192;

    /// `cargo test --release -p gannet-codec -- --ignored --nocapture speeds`: codecs for every page
    /// (LZ4, LZO, Snappy) should be within a few times of each other.
    #[test]
    #[ignore = "a measurement"]
    fn speeds() {
        for (kind, pages) in [("digits", rows(true, 4 << 20)), ("words", rows(false, 4 << 20))] {
            for id in ALL {
                let (size, time) = compressed(id, &pages);
                let share = size as f64 / pages.len() as f64;
                let speed = pages.len() as f64 / 1e6 / time.as_secs_f64();
                println!("{kind} {id}: {speed:.1} MB/s, {share:.3} of their bytes");
            }
        }
    }

    #[test]
    fn names_and_numbers() {
        for id in ALL {
            assert_eq!(CodecId::from_number(id as u8), Some(id));
            assert_eq!(CodecId::from_name(&id.to_string().to_uppercase()), Some(id));
        }
        assert_eq!((CodecId::from_number(99), CodecId::from_name("lzw")), (None, None));
    }
}
