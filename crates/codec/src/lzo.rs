//! LZO1X. The dictionary of the compressor (half a megabyte) is kept per thread.

use crate::{Codec, CodecId, DecompressError};
use lzokay::compress::{Dict, compress_no_alloc};
use std::cell::RefCell;

/// LZO, which has no levels.
#[derive(Debug)]
pub(crate) struct Lzo;

thread_local! {
    /// Borrowed only within one call.
    static DICTIONARY: RefCell<Option<Box<Dict>>> = const { RefCell::new(None) };
}

impl Codec for Lzo {
    fn id(&self) -> CodecId {
        CodecId::Lzo
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        DICTIONARY.with_borrow_mut(|kept| {
            compress_no_alloc(source, target, kept.get_or_insert_with(Dict::new)).ok()
        })
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        match lzokay::decompress::decompress(source, target) {
            Ok(size) if size == target.len() => Ok(()),
            Ok(_) => Err(DecompressError("the lzo block is too short")),
            Err(_) => Err(DecompressError("damaged lzo block")),
        }
    }
}
