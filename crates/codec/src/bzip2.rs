//! bzip2, in one block.

use crate::{Codec, CodecId, DecompressError};
use bzip2::{Action, Compress, Compression, Decompress, Status};

/// Size of a block in units of 100,000 bytes: more than any page has.
const BLOCK: u32 = 1;

/// bzip2, whose levels are sizes of blocks and so mean nothing for pages.
#[derive(Debug)]
pub(crate) struct Bzip2;

impl Codec for Bzip2 {
    fn id(&self) -> CodecId {
        CodecId::Bzip2
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        let mut stream = Compress::new(Compression::new(BLOCK), 0);
        match stream.compress(source, target, Action::Finish) {
            Ok(Status::StreamEnd) => Some(stream.total_out() as usize),
            _ => None,
        }
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        let mut stream = Decompress::new(false);
        let length = target.len() as u64;
        // The end of the stream is seen only by asking on, for nothing more.
        let mut status = stream.decompress(source, target);
        if status == Ok(Status::Ok) && stream.total_out() == length {
            let rest = source.get(stream.total_in() as usize..).unwrap_or_default();
            status = stream.decompress(rest, &mut [0]);
        }
        match status {
            Ok(Status::StreamEnd) if stream.total_out() == length => Ok(()),
            Ok(_) => Err(DecompressError("the bzip2 stream has another length")),
            Err(_) => Err(DecompressError("damaged bzip2 stream")),
        }
    }
}
