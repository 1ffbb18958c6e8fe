//! Snappy's block format. The compressor's table is kept per thread.

use crate::{Codec, CodecId, DecompressError};
use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};
use std::cell::RefCell;

/// Snappy, which has no levels.
#[derive(Debug)]
pub(crate) struct Snappy;

thread_local! {
    /// Borrowed only within one call. The encoder asks for room for the worst case.
    static KEPT: RefCell<(Encoder, Vec<u8>)> = RefCell::new((Encoder::new(), Vec::new()));
}

impl Codec for Snappy {
    fn id(&self) -> CodecId {
        CodecId::Snappy
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        KEPT.with_borrow_mut(|(encoder, room)| {
            room.resize(room.len().max(max_compress_len(source.len())), 0);
            let size = encoder.compress(source, room).ok()?;
            target.get_mut(..size)?.copy_from_slice(&room[..size]);
            Some(size)
        })
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        if decompress_len(source) != Ok(target.len()) {
            return Err(DecompressError("the snappy block has another length"));
        }
        match Decoder::new().decompress(source, target) {
            Ok(_) => Ok(()),
            Err(_) => Err(DecompressError("damaged snappy block")),
        }
    }
}
