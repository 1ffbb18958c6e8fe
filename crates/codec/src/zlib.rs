//! zlib, by libdeflate: whole pages at once. Contexts are kept per thread, one per level in use.

use crate::{Codec, CodecId, DecompressError};
use libdeflater::{CompressionLvl, Compressor, Decompressor};
use std::cell::RefCell;

/// Level unless a table says otherwise: zlib's own default.
const DEFAULT_LEVEL: i32 = 6;

/// zlib with a level of 1 to 9.
#[derive(Debug)]
pub(crate) struct Zlib {
    level: i32,
}

impl Zlib {
    pub(crate) fn new(level: i32) -> Zlib {
        Zlib { level: if level == 0 { DEFAULT_LEVEL } else { level.clamp(1, 9) } }
    }
}

thread_local! {
    /// Borrowed only within one call.
    static COMPRESSORS: RefCell<Vec<(i32, Compressor)>> = const { RefCell::new(Vec::new()) };
    static DECOMPRESSOR: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
}

impl Codec for Zlib {
    fn id(&self) -> CodecId {
        CodecId::Zlib
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        COMPRESSORS.with_borrow_mut(|kept| {
            let place = match kept.iter().position(|(level, _)| *level == self.level) {
                Some(place) => place,
                None => {
                    let level = CompressionLvl::new(self.level).ok()?;
                    kept.push((self.level, Compressor::new(level)));
                    kept.len() - 1
                }
            };
            kept[place].1.zlib_compress(source, target).ok()
        })
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        decompress(source, target)
    }
}

/// Fills `target`; see [`Codec::decompress`].
pub(crate) fn decompress(source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let context = kept.get_or_insert_with(Decompressor::new);
        match context.zlib_decompress(source, target) {
            Ok(size) if size == target.len() => Ok(()),
            Ok(_) => Err(DecompressError("the zlib stream is too short")),
            Err(_) => Err(DecompressError("damaged zlib stream")),
        }
    })
}
