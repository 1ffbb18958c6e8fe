//! Zstandard. Contexts are expensive to make and are kept per thread, one per level in use.

use crate::{Codec, CodecId, DecompressError};
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// The library's levels for ours: 6 is what a library does unless told otherwise, which is 3 here,
/// and 9 is worth its time only for pages that are written once.
const LEVELS: [i32; 10] = [1, 1, 1, 2, 2, 3, 3, 6, 9, 15];

/// Zstandard with a level.
#[derive(Debug)]
pub(crate) struct Zstandard {
    level: i32,
}

impl Zstandard {
    pub(crate) fn new(level: i32) -> Zstandard {
        Zstandard { level: library_level(level) }
    }
}

/// The library's level for ours.
pub(crate) fn library_level(level: i32) -> i32 {
    LEVELS[level.clamp(0, 9) as usize]
}

thread_local! {
    /// Borrowed only within one call.
    static COMPRESSORS: RefCell<Vec<(i32, Compressor<'static>)>> =
        const { RefCell::new(Vec::new()) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

impl Codec for Zstandard {
    fn id(&self) -> CodecId {
        CodecId::Zstd
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        COMPRESSORS.with_borrow_mut(|kept| {
            let place = match kept.iter().position(|(level, _)| *level == self.level) {
                Some(place) => place,
                None => {
                    kept.push((self.level, Compressor::new(self.level).ok()?));
                    kept.len() - 1
                }
            };
            kept[place].1.compress_to_buffer(source, target).ok()
        })
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        decompress(source, target)
    }
}

/// Fills `target`; see [`Codec::decompress`].
pub(crate) fn decompress(source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Decompressor::new().ok();
        }
        let Some(context) = kept else { return Err(DecompressError("no memory for zstd")) };
        match context.decompress_to_buffer(source, target) {
            Ok(size) if size == target.len() => Ok(()),
            Ok(_) => Err(DecompressError("the zstd frame is too short")),
            Err(_) => Err(DecompressError("damaged zstd frame")),
        }
    })
}
