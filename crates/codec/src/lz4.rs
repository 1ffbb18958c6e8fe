//! LZ4, block format, by the reference library.

use crate::{Codec, CodecId, DecompressError};
use lzzzz::lz4;

/// The block of no bytes.
const EMPTY: [u8; 1] = [0];

/// How fast [`Lz4::IN_A_HURRY`] gives up where nothing matches. For pages of rows of digits, which
/// gain little, it takes a sixth of the time, for others two thirds (compression.md among the
/// designs).
const HURRY: i32 = 8;

/// LZ4 without a level.
#[derive(Debug)]
pub(crate) struct Lz4 {
    /// By how much longer steps it searches on where nothing matches.
    acceleration: i32,
}

impl Lz4 {
    pub(crate) const USUAL: Lz4 = Lz4 { acceleration: lz4::ACC_LEVEL_DEFAULT };
    pub(crate) const IN_A_HURRY: Lz4 = Lz4 { acceleration: HURRY };
}

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
        lz4::compress(source, target, self.acceleration).ok()
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        match lz4::decompress(source, target) {
            Ok(size) if size == target.len() => Ok(()),
            Ok(_) => Err(DecompressError("the lz4 block is too short")),
            Err(_) => Err(DecompressError("damaged lz4 block")),
        }
    }
}
