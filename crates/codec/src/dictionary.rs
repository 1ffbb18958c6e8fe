//! Zstandard with a dictionary: bytes that many pages have in common, known to both sides.
//!
//! What is made with a dictionary is read with exactly that one; a frame carries the number that
//! the library has given it, so another one is noticed.

use crate::library::{self, ReadingDictionary, WritingDictionary};
use crate::zstandard::{compress_by, decompress_by, library_level};
use crate::{Codec, CodecId, DecompressError, Search};
use std::fmt;
use std::sync::Arc;

/// A dictionary made ready for reading.
pub struct Dictionary {
    prepared: ReadingDictionary,
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Dictionary({} bytes)", self.bytes())
    }
}

impl Dictionary {
    /// Copies `content` and makes it ready; `None` if it is no dictionary.
    pub fn new(content: &[u8]) -> Option<Dictionary> {
        Some(Dictionary { prepared: ReadingDictionary::new(content)? })
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        self.prepared.bytes()
    }

    /// Fills the whole of `target` from what was compressed with this dictionary; see
    /// [`Codec::decompress`].
    pub fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        decompress_by(target.len(), |context| {
            context.decompress_with(source, target, &self.prepared)
        })
    }
}

/// Zstandard of one level with a dictionary.
struct WithDictionary {
    number: u16,
    prepared: WritingDictionary,
    reader: Arc<Dictionary>,
}

impl fmt::Debug for WithDictionary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "WithDictionary({}, {} bytes)", self.number, self.prepared.bytes())
    }
}

/// Zstandard with a dictionary, at a level as in [`crate::codec`], looking for what came before by
/// `search`. `number`, not 0, is what stands for the dictionary on disk; `reader` is of the same
/// `content`. `None` if that is no dictionary.
pub fn with_dictionary(
    level: i32,
    search: Search,
    number: u16,
    content: &[u8],
    reader: Arc<Dictionary>,
) -> Option<Arc<dyn Codec>> {
    let settings = search.settings(library_level(level), content.len());
    let prepared = WritingDictionary::new(content, settings)?;
    Some(Arc::new(WithDictionary { number, prepared, reader }))
}

impl Codec for WithDictionary {
    fn id(&self) -> CodecId {
        CodecId::Zstd
    }

    fn dictionary(&self) -> u16 {
        self.number
    }

    fn held_bytes(&self) -> usize {
        self.prepared.bytes()
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        compress_by(|context| context.compress_with(source, target, &self.prepared))
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        self.reader.decompress(source, target)
    }
}

/// Makes a dictionary of at most `bytes_max` from samples, one behind the other in `samples`. It
/// takes some hundred milliseconds a megabyte, so not where a fiber runs, and 2 MiB of memory.
/// `None` if the samples are too few or have nothing in common.
pub fn train(samples: &[u8], sizes: &[usize], bytes_max: usize) -> Option<Vec<u8>> {
    library::train(samples, sizes, bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{codec, decompress, fuzzing};
    use base::Random;

    #[test]
    fn pages_come_back_by_their_dictionary_and_by_no_other() {
        let [one, other] = [1, 2].map(fuzzing::dictionary);
        let pages = fuzzing::records(3, 4096 * 20);
        for level in [0, 3, 9] {
            let packer = fuzzing::packer(level, 7, &one).expect("a dictionary");
            let stranger = Dictionary::new(&other).expect("a dictionary");
            assert_eq!((packer.id(), packer.dictionary()), (CodecId::Zstd, 7));
            let (mut with, mut without) = (0, 0);
            for page in pages.chunks(4096) {
                let mut packed = vec![0; 8192];
                let size = packer.compress(page, &mut packed).expect("room enough");
                with += size;
                let mut back = vec![0xAA; page.len()];
                packer.decompress(&packed[..size], &mut back).expect("our own bytes");
                assert!(back == page);
                for length in [page.len() - 1, page.len() + 1] {
                    assert!(packer.decompress(&packed[..size], &mut vec![0; length]).is_err());
                }
                assert!(stranger.decompress(&packed[..size], &mut back).is_err());
                assert!(decompress(CodecId::Zstd, &packed[..size], &mut back).is_err());
                assert_eq!(packer.compress(page, &mut packed[..size - 1]), None);
                without += codec(CodecId::Zstd, level).compress(page, &mut packed).expect("room");
            }
            assert!(with * 10 < without * 9, "{with} bytes with it, {without} without");
        }
    }

    #[test]
    fn whatever_was_searched_for_comes_back() {
        let content = fuzzing::dictionary(1);
        let reader = Arc::new(Dictionary::new(&content).expect("a dictionary"));
        let pages = fuzzing::records(3, 4096 * 20);
        let (mut packed, mut back) = (vec![0; 8192], vec![0; 4096]);
        let mut bytes = |search| {
            let packer = with_dictionary(6, search, 1, &content, reader.clone()).expect("one");
            let sizes = pages.chunks(4096).map(|page| {
                let size = packer.compress(page, &mut packed).expect("room enough");
                reader.decompress(&packed[..size], &mut back).expect("our own bytes");
                assert!(back == page, "{search:?}");
                size
            });
            sizes.sum::<usize>()
        };
        let by_level = bytes(Search::ByLevel);
        let (_, least) = Search::choose(6, &mut bytes);
        assert!(least * 100 <= by_level * 102, "{least} bytes, {by_level} by the level alone");
    }

    #[test]
    fn what_is_no_dictionary_is_refused() {
        let mut random = Random::new(4);
        let sound = fuzzing::dictionary(1);
        assert!(Dictionary::new(&sound).is_some());
        assert!(Dictionary::new(&[]).is_none() && Dictionary::new(&sound[..20]).is_none());
        let mut noise = vec![0; 5000];
        random.fill(&mut noise);
        assert!(Dictionary::new(&noise).is_none());
        let reader = Arc::new(Dictionary::new(&sound).expect("a dictionary"));
        assert!(with_dictionary(1, Search::ByLevel, 1, &sound[..20], reader).is_none());
        assert_eq!(train(&noise[..100], &[50, 50], 4096), None, "too little");
        // Damage behind a checksum that is right all the same never does harm.
        let page = &fuzzing::records(9, 4096);
        let packer = fuzzing::packer(1, 1, &sound).expect("a dictionary");
        let mut packed = vec![0; 8192];
        let size = packer.compress(page, &mut packed).expect("room enough");
        for _ in 0..2_000 {
            let mut damaged = sound.clone();
            random.damage(&mut damaged);
            if let Some(dictionary) = Dictionary::new(&damaged) {
                let _ = dictionary.decompress(&packed[..size], &mut vec![0; page.len()]);
            }
        }
    }

    #[test]
    fn a_dictionary_that_is_ready_takes_little() {
        let content = fuzzing::dictionary_of(1, 8192 * 100, 16 << 10);
        assert_eq!(content.len(), 16 << 10);
        let reader = Arc::new(Dictionary::new(&content).expect("a dictionary"));
        assert!(reader.bytes() <= 48 << 10, "{} bytes for reading", reader.bytes());
        for level in 0..=9 {
            for search in [0, 17, 24, 36].map(Search::from_number) {
                let packer = with_dictionary(level, search, 1, &content, reader.clone());
                let bytes = packer.expect("one").held_bytes();
                let is_little = (16 << 10..=160 << 10).contains(&bytes);
                assert!(is_little, "level {level}, {search:?}: {bytes} bytes");
            }
        }
    }

    /// `cargo test --release -p gannet-codec -- --ignored --nocapture time_of_a_dictionary`
    #[test]
    #[ignore = "a measurement"]
    fn time_of_a_dictionary() {
        let pages = fuzzing::records(3, 8192 * 2000);
        let begin = std::time::Instant::now();
        let content = fuzzing::dictionary_of(1, 8192 * 100, 16 << 10);
        println!("training on 800 KiB: {:.0} ms", begin.elapsed().as_secs_f64() * 1000.0);
        for level in [1, 4, 6] {
            let with = fuzzing::packer(level, 1, &content).expect("a dictionary");
            let without: Arc<dyn Codec> = Arc::from(codec(CodecId::Zstd, level));
            for round in 0..6 {
                let (name, codec) = match round % 2 {
                    0 => ("without", &without),
                    _ => ("with", &with),
                };
                let mut packed = vec![vec![0; 8192]; pages.len() / 8192];
                let begin = std::time::Instant::now();
                let sizes = pages.chunks(8192).zip(&mut packed);
                let sizes = sizes.map(|(page, packed)| codec.compress(page, packed).expect("room"));
                let sizes: Vec<usize> = sizes.collect();
                let compressed = begin.elapsed().as_secs_f64() * 1e6 / sizes.len() as f64;
                let (begin, mut back) = (std::time::Instant::now(), vec![0; 8192]);
                for (packed, &size) in packed.iter().zip(&sizes) {
                    codec.decompress(&packed[..size], &mut back).expect("our own");
                }
                let restored = begin.elapsed().as_secs_f64() * 1e6 / sizes.len() as f64;
                let bytes = sizes.iter().sum::<usize>() / sizes.len();
                println!(
                    "level {level} {name}: {bytes} bytes, {compressed:.1} us, back {restored:.1} us"
                );
            }
        }
    }
}
