//! Zstandard. Contexts are expensive to make; each thread keeps one for each way.

use crate::library::{Compressor, Decompressor, Settings};
use crate::{Codec, CodecId, DecompressError, Search};
use std::cell::RefCell;
use std::sync::Arc;

/// The library's levels for ours: 6 is what a library does unless told otherwise, which is 3 here,
/// and 9 is worth its time only for pages that are written once.
const LEVELS: [i32; 10] = [1, 1, 1, 2, 2, 3, 3, 6, 9, 15];

/// Zstandard with a level.
#[derive(Debug)]
pub(crate) struct Zstandard {
    library_level: i32,
    /// In place of the library's own for the level and the length of what is compressed.
    settings: Option<Settings>,
}

impl Zstandard {
    /// For pages of which nothing is known.
    pub(crate) fn new(level: i32) -> Zstandard {
        Zstandard::searching(level, Search::untried(level))
    }

    fn searching(level: i32, search: Search) -> Zstandard {
        let library_level = library_level(level);
        let settings = (search != Search::ByLevel).then(|| search.settings(library_level, 0));
        Zstandard { library_level, settings }
    }
}

/// Zstandard that looks for what came before in a certain way, at a level as in [`crate::codec`].
pub fn searching(level: i32, search: Search) -> Arc<dyn Codec> {
    Arc::new(Zstandard::searching(level, search))
}

/// The library's level for ours.
pub(crate) fn library_level(level: i32) -> i32 {
    LEVELS[level.clamp(0, 9) as usize]
}

thread_local! {
    /// Borrowed only within one call.
    static COMPRESSOR: RefCell<Option<Compressor>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
}

/// Compresses with this thread's context; `None` also if there is no memory for one.
pub(crate) fn compress_by<T>(compress: impl FnOnce(&mut Compressor) -> Option<T>) -> Option<T> {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Compressor::new();
        }
        compress(kept.as_mut()?)
    })
}

/// Fills the whole of a target of `length` with this thread's context.
pub(crate) fn decompress_by(
    length: usize,
    decompress: impl FnOnce(&mut Decompressor) -> Option<usize>,
) -> Result<(), DecompressError> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Decompressor::new();
        }
        let Some(context) = kept else { return Err(DecompressError("no memory for zstd")) };
        match decompress(context) {
            Some(size) if size == length => Ok(()),
            Some(_) => Err(DecompressError("the zstd frame is too short")),
            None => Err(DecompressError("damaged zstd frame, or of another dictionary")),
        }
    })
}

impl Codec for Zstandard {
    fn id(&self) -> CodecId {
        CodecId::Zstd
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        compress_by(|context| match self.settings {
            Some(settings) => context.compress_by(source, target, settings),
            None => context.compress(source, target, self.library_level),
        })
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        decompress(source, target)
    }
}

/// Fills `target`; see [`Codec::decompress`].
pub(crate) fn decompress(source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
    decompress_by(target.len(), |context| context.decompress(source, target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing;

    #[test]
    fn digits_by_chance_gain_by_longer_matches() {
        let mut random = base::Random::new(8);
        let mut digits = |_| b'0' + random.below(10) as u8;
        let pages: Vec<Vec<u8>> = (0..20).map(|_| (0..8192).map(&mut digits).collect()).collect();
        let (mut packed, mut back) = (vec![0; 9000], vec![0; 8192]);
        let mut bytes = |search| {
            let packer = searching(6, search);
            let mut sizes = pages.iter().map(|page| {
                let size = packer.compress(page, &mut packed).expect("room enough");
                packer.decompress(&packed[..size], &mut back).expect("our own bytes");
                assert!(back == *page, "{search:?}");
                size
            });
            sizes.by_ref().sum::<usize>()
        };
        let by_level = bytes(Search::ByLevel);
        let longest = bytes(Search::OneTable { match_bytes_min: 7 });
        let (chosen, least) = Search::choose(6, &mut bytes);
        assert_eq!(chosen, Search::Skipping { match_bytes_min: 6 });
        for bytes in [longest, least] {
            assert!(bytes * 20 < by_level * 19, "{bytes} bytes, {by_level} by the level alone");
        }
    }

    #[test]
    fn long_pages_are_searched_from_end_to_end() {
        let mut random = base::Random::new(9);
        let mut page = vec![0; 32 << 10];
        random.fill(&mut page[..16 << 10]);
        page.copy_within(..16 << 10, 16 << 10);
        let mut packed = vec![0; 40 << 10];
        let packer = searching(6, Search::OneTable { match_bytes_min: 5 });
        let size = packer.compress(&page, &mut packed).expect("room enough");
        assert!(size < 17 << 10, "{size} bytes");
        let mut back = vec![0; page.len()];
        packer.decompress(&packed[..size], &mut back).expect("our own bytes");
        assert!(back == page);
    }

    #[test]
    fn the_context_of_a_thread_stays_small() {
        let pages = fuzzing::records(3, 32 << 10);
        let mut packed = vec![0; 64 << 10];
        for level in 0..=9 {
            for length in [4 << 10, 8 << 10, 32 << 10] {
                let packer = Zstandard::new(level);
                assert!(packer.compress(&pages[..length], &mut packed).is_some());
                let bytes = compress_by(|context| Some(context.bytes())).expect("it is there");
                let limit = if level < 9 { 640 << 10 } else { 1 << 20 };
                assert!(bytes <= limit, "level {level}, pages of {length}: {bytes} bytes");
            }
        }
    }
}
