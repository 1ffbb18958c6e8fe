//! LZ4, block format, by `lz4_flex` in its safe form.

use crate::{Codec, CodecId, DecompressError};
use lz4_flex::block;
use std::cell::RefCell;

/// LZ4 without a level.
#[derive(Debug)]
pub(crate) struct Lz4;

thread_local! {
    /// The encoder wants room for the worst case; borrowed only within one call.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Codec for Lz4 {
    fn id(&self) -> CodecId {
        CodecId::Lz4
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        let worst = block::get_maximum_output_size(source.len());
        if target.len() >= worst {
            return block::compress_into(source, target).ok();
        }
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.len() < worst {
                scratch.resize(worst, 0);
            }
            let size = block::compress_into(source, scratch).ok()?;
            target.get_mut(..size)?.copy_from_slice(&scratch[..size]);
            Some(size)
        })
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        match block::decompress_into(source, target) {
            Ok(size) if size == target.len() => Ok(()),
            Ok(_) => Err(DecompressError("the lz4 block is too short")),
            Err(_) => Err(DecompressError("damaged lz4 block")),
        }
    }
}
