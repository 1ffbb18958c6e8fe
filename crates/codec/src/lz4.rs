//! LZ4, block format, by the reference library.

use crate::{Codec, CodecId, DecompressError};
use lzzzz::lz4;

/// The block of no bytes.
const EMPTY: [u8; 1] = [0];

/// LZ4 without a level.
#[derive(Debug)]
pub(crate) struct Lz4;

impl Codec for Lz4 {
    fn id(&self) -> CodecId {
        CodecId::Lz4
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        if source.is_empty() {
            // The binding would write none, which is no block.
            target.first_chunk_mut().map(|start| *start = EMPTY)?;
            return Some(EMPTY.len());
        }
        lz4::compress(source, target, lz4::ACC_LEVEL_DEFAULT).ok()
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        match lz4::decompress(source, target) {
            Ok(size) if size == target.len() => Ok(()),
            Ok(_) => Err(DecompressError("the lz4 block is too short")),
            Err(_) => Err(DecompressError("damaged lz4 block")),
        }
    }
}
