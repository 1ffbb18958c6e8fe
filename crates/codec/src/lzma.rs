//! LZMA without a header: the properties are fixed, the dictionary is as long as the page, and an
//! end mark tells a page that is too short from a damaged one.

use crate::{Codec, CodecId, DecompressError};
use lzma_rust2::{LzmaOptions, LzmaReader, LzmaWriter};
use std::io::{Cursor, Read, Write};

/// Level unless a table says otherwise: the library's default.
const DEFAULT_LEVEL: i32 = 6;

/// The format's shortest dictionary.
const DICTIONARY_BYTES_MIN: usize = 4096;

/// LZMA with a level of 1 to 9.
#[derive(Debug)]
pub(crate) struct Lzma {
    level: i32,
}

impl Lzma {
    pub(crate) fn new(level: i32) -> Lzma {
        Lzma { level: if level == 0 { DEFAULT_LEVEL } else { level.clamp(1, 9) } }
    }
}

fn dictionary_bytes(page_bytes: usize) -> u32 {
    page_bytes.max(DICTIONARY_BYTES_MIN) as u32
}

impl Codec for Lzma {
    fn id(&self) -> CodecId {
        CodecId::Lzma
    }

    fn compress(&self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        let mut options = LzmaOptions::with_preset(self.level as u32);
        options.dict_size = dictionary_bytes(source.len());
        // A write beyond the end of `target` fails, which is how a page that does not fit shows.
        let mut writer = LzmaWriter::new_no_header(Cursor::new(target), &options, true).ok()?;
        writer.write_all(source).ok()?;
        Some(writer.finish().ok()?.position() as usize)
    }

    fn decompress(&self, source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
        decompress(source, target)
    }
}

/// Fills `target`; see [`Codec::decompress`].
pub(crate) fn decompress(source: &[u8], target: &mut [u8]) -> Result<(), DecompressError> {
    const DAMAGED: DecompressError = DecompressError("damaged lzma stream");
    let (lc, lp, pb) = (LzmaOptions::LC_DEFAULT, LzmaOptions::LP_DEFAULT, LzmaOptions::PB_DEFAULT);
    let dictionary = dictionary_bytes(target.len());
    let unknown = u64::MAX;
    let mut reader =
        LzmaReader::new(source, unknown, lc, lp, pb, dictionary, None).map_err(|_| DAMAGED)?;
    reader.read_exact(target).map_err(|_| DAMAGED)?;
    match reader.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(DecompressError("the lzma stream is too long")),
        Err(_) => Err(DAMAGED),
    }
}
