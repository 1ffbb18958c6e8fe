//! Zstandard where its safe binding does not reach: compression with dictionaries whose tables have
//! a size of our choice, reading with one of many dictionaries after the other, and training that
//! takes little memory.
//!
//! 1. Every pointer is of the library's own making and is freed once, by the drop of its owner.
//! 2. Every length handed on is that of the slice whose pointer goes with it.

use std::ptr::{NonNull, null_mut};
use zstd::zstd_safe::zstd_sys as sys;

/// A table of a dictionary has at most two to this many places of four bytes. A dictionary has
/// 16 KiB; the library would take 64 Ki places, and pages would be half a percent smaller at most.
const DICTIONARY_TABLE_LOG: u32 = 14;
/// What is compressed has about this size: the library chooses by it.
const TYPICAL_BYTES: u64 = 8192;
/// Two to this many bytes before a byte are looked at: no page is longer.
const WINDOW_LOG: u32 = 15;
/// Training counts sequences in two to this many places, of ten bytes in all. The library's choice
/// is 20: 10 MiB for a sample of one, and dictionaries that are no better.
const TRAINING_TABLE_LOG: u32 = 17;
/// Length of the sequences counted: as the library does by itself.
const TRAINING_SEQUENCE_BYTES: u32 = 8;
/// Length of the pieces that a dictionary is made of. The library would try 50, 537, 1,024, 1,511
/// and 1,998 for five times the time, and most often take one that is worse than this.
const TRAINING_PIECE_BYTES: u32 = 128;
/// The level that a dictionary's statistics are made for.
const TRAINING_LEVEL: i32 = 3;

/// `ZSTD_c_literalCompressionMode`, and its `ZSTD_ps_enable`.
const SINGLE_BYTES: sys::ZSTD_cParameter = sys::ZSTD_cParameter::ZSTD_c_experimentalParam5;
const COMPRESSED: i32 = 1;
/// The smallest table that the library takes.
const TABLE_LOG_MIN: u32 = 6;

/// The one table for so many bytes that are compressed without a dictionary has a place for two of
/// them: pages are as small as with two or four times that, within a quarter of a percent, and take
/// less time.
fn table_log(bytes: usize) -> u32 {
    bytes.next_power_of_two().ilog2().saturating_sub(1).max(TABLE_LOG_MIN)
}

/// What the library has written, if it has not failed.
fn written(code: usize) -> Option<usize> {
    // SAFETY: takes a number.
    let has_failed = unsafe { sys::ZSTD_isError(code) } != 0;
    (!has_failed).then_some(code)
}

/// What the library does at a level, or what was chosen in place of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings(sys::ZSTD_compressionParameters);

/// The library's own for a level and a dictionary of so many bytes; 0: none.
pub(crate) fn settings(library_level: i32, dictionary_bytes: usize) -> Settings {
    // SAFETY: takes numbers, and gives settings.
    Settings(unsafe { sys::ZSTD_getCParams(library_level, TYPICAL_BYTES, dictionary_bytes) })
}

impl Settings {
    pub(crate) fn in_one_table(self, match_bytes_min: u8) -> Settings {
        self.searching(sys::ZSTD_strategy::ZSTD_fast, match_bytes_min)
    }

    pub(crate) fn in_two_tables(self, match_bytes_min: u8) -> Settings {
        self.searching(sys::ZSTD_strategy::ZSTD_dfast, match_bytes_min)
    }

    /// Goes on by such steps, and keeps two to `table_log` places at most.
    pub(crate) fn skipping(mut self, step: u32, table_log: u32) -> Settings {
        self.0.targetLength = step;
        self.0.hashLog = self.0.hashLog.min(table_log);
        self
    }

    fn searching(mut self, strategy: sys::ZSTD_strategy, match_bytes_min: u8) -> Settings {
        self.0.strategy = strategy;
        self.0.minMatch = match_bytes_min.into();
        // Anything else makes the library skip places.
        self.0.targetLength = 0;
        // The library makes it as small as what is compressed.
        self.0.windowLog = self.0.windowLog.max(WINDOW_LOG);
        self
    }
}

/// Memory for one compression at a time, of any level, with or without a dictionary. It grows to
/// what the dearest level used needs.
pub(crate) struct Compressor(NonNull<sys::ZSTD_CCtx>);

impl Compressor {
    /// `None` if there is no memory.
    pub(crate) fn new() -> Option<Compressor> {
        // SAFETY: gives a context that is ours, or null.
        NonNull::new(unsafe { sys::ZSTD_createCCtx() }).map(Compressor)
    }

    /// Compresses into the start of `target`; `None` if it does not fit.
    pub(crate) fn compress(
        &mut self,
        source: &[u8],
        target: &mut [u8],
        library_level: i32,
    ) -> Option<usize> {
        // SAFETY: our context, used by nobody else; two slices with their lengths.
        written(unsafe {
            sys::ZSTD_compressCCtx(
                self.0.as_ptr(),
                target.as_mut_ptr().cast(),
                target.len(),
                source.as_ptr().cast(),
                source.len(),
                library_level,
            )
        })
    }

    /// The same with settings of our choice.
    pub(crate) fn compress_by(
        &mut self,
        source: &[u8],
        target: &mut [u8],
        settings: Settings,
    ) -> Option<usize> {
        let mut settings = settings.0;
        if settings.strategy == sys::ZSTD_strategy::ZSTD_fast {
            settings.hashLog = settings.hashLog.min(table_log(source.len()));
        }
        self.reset()?;
        // SAFETY: our context, used by nobody else. Settings that the library refuses are an error.
        written(unsafe { sys::ZSTD_CCtx_setCParams(self.0.as_ptr(), settings) })?;
        self.compress_as_set(source, target)
    }

    /// The same with a dictionary and the settings that it was made ready for.
    pub(crate) fn compress_with(
        &mut self,
        source: &[u8],
        target: &mut [u8],
        dictionary: &WritingDictionary,
    ) -> Option<usize> {
        self.reset()?;
        // SAFETY: our context; the dictionary outlives the use of it, which ends with the reset.
        written(unsafe { sys::ZSTD_CCtx_refCDict(self.0.as_ptr(), dictionary.0.as_ptr()) })?;
        let size = self.compress_as_set(source, target);
        self.reset()?;
        size
    }

    /// Forgets settings and dictionary. Single bytes are compressed whatever the search: by itself
    /// the library leaves them as they are where it skips places.
    fn reset(&mut self) -> Option<()> {
        let both = sys::ZSTD_ResetDirective::ZSTD_reset_session_and_parameters;
        // SAFETY: our context, used by nobody else.
        unsafe {
            written(sys::ZSTD_CCtx_reset(self.0.as_ptr(), both))?;
            written(sys::ZSTD_CCtx_setParameter(self.0.as_ptr(), SINGLE_BYTES, COMPRESSED))?;
        }
        Some(())
    }

    fn compress_as_set(&mut self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        // SAFETY: our context, used by nobody else; two slices with their lengths.
        written(unsafe {
            sys::ZSTD_compress2(
                self.0.as_ptr(),
                target.as_mut_ptr().cast(),
                target.len(),
                source.as_ptr().cast(),
                source.len(),
            )
        })
    }

    /// What it takes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        // SAFETY: our context.
        unsafe { sys::ZSTD_sizeof_CCtx(self.0.as_ptr()) }
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: ours, and not used any more.
        unsafe { sys::ZSTD_freeCCtx(self.0.as_ptr()) };
    }
}

/// A dictionary made ready for compression with some settings.
pub(crate) struct WritingDictionary(NonNull<sys::ZSTD_CDict>);

// SAFETY: nothing changes it after it was made; the library lets threads share it.
unsafe impl Send for WritingDictionary {}
// SAFETY: as above.
unsafe impl Sync for WritingDictionary {}

impl WritingDictionary {
    /// Copies `content`; `None` if it is no dictionary.
    pub(crate) fn new(content: &[u8], settings: Settings) -> Option<WritingDictionary> {
        let mut settings = settings.0;
        settings.hashLog = settings.hashLog.min(DICTIONARY_TABLE_LOG);
        settings.chainLog = settings.chainLog.min(DICTIONARY_TABLE_LOG);
        let own_memory =
            sys::ZSTD_customMem { customAlloc: None, customFree: None, opaque: null_mut() };
        // SAFETY: a slice with its length, which is copied; gives a dictionary that is ours, or
        // null.
        let made = unsafe {
            sys::ZSTD_createCDict_advanced(
                content.as_ptr().cast(),
                content.len(),
                sys::ZSTD_dictLoadMethod_e::ZSTD_dlm_byCopy,
                sys::ZSTD_dictContentType_e::ZSTD_dct_auto,
                settings,
                own_memory,
            )
        };
        NonNull::new(made).map(WritingDictionary)
    }

    /// What it takes.
    pub(crate) fn bytes(&self) -> usize {
        // SAFETY: our dictionary.
        unsafe { sys::ZSTD_sizeof_CDict(self.0.as_ptr()) }
    }
}

impl Drop for WritingDictionary {
    fn drop(&mut self) {
        // SAFETY: ours, and not used any more.
        unsafe { sys::ZSTD_freeCDict(self.0.as_ptr()) };
    }
}

/// Memory for reading one frame at a time, with or without a dictionary.
pub(crate) struct Decompressor(NonNull<sys::ZSTD_DCtx>);

impl Decompressor {
    /// `None` if there is no memory.
    pub(crate) fn new() -> Option<Decompressor> {
        // SAFETY: gives a context that is ours, or null.
        NonNull::new(unsafe { sys::ZSTD_createDCtx() }).map(Decompressor)
    }

    /// Decompresses into the start of `target` and returns how many bytes that took; `None` if it
    /// is damaged or does not fit.
    pub(crate) fn decompress(&mut self, source: &[u8], target: &mut [u8]) -> Option<usize> {
        // SAFETY: our context, used by nobody else; two slices with their lengths.
        written(unsafe {
            sys::ZSTD_decompressDCtx(
                self.0.as_ptr(),
                target.as_mut_ptr().cast(),
                target.len(),
                source.as_ptr().cast(),
                source.len(),
            )
        })
    }

    /// The same with a dictionary. The library takes one that it has not used just before for one
    /// that is not in the processor's caches: it fetches all of it and takes a decoder for such,
    /// a tenth of the time of a page, a fifth of what changed of one. It is told of the dictionary
    /// once before.
    pub(crate) fn decompress_with(
        &mut self,
        source: &[u8],
        target: &mut [u8],
        dictionary: &ReadingDictionary,
    ) -> Option<usize> {
        // SAFETY: our context, used by nobody else; our dictionary, which outlives both calls. What
        // the context keeps of it is only compared when a frame is begun, and each use of the
        // context begins one. Two slices with their lengths.
        unsafe {
            written(sys::ZSTD_decompressBegin_usingDDict(self.0.as_ptr(), dictionary.0.as_ptr()))?;
            written(sys::ZSTD_decompress_usingDDict(
                self.0.as_ptr(),
                target.as_mut_ptr().cast(),
                target.len(),
                source.as_ptr().cast(),
                source.len(),
                dictionary.0.as_ptr(),
            ))
        }
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: ours, and not used any more.
        unsafe { sys::ZSTD_freeDCtx(self.0.as_ptr()) };
    }
}

/// A dictionary made ready for reading.
pub(crate) struct ReadingDictionary(NonNull<sys::ZSTD_DDict>);

// SAFETY: nothing changes it after it was made; the library lets threads share it.
unsafe impl Send for ReadingDictionary {}
// SAFETY: as above.
unsafe impl Sync for ReadingDictionary {}

impl ReadingDictionary {
    /// Copies `content`; `None` if it is no dictionary.
    pub(crate) fn new(content: &[u8]) -> Option<ReadingDictionary> {
        // SAFETY: a slice with its length, which is copied; gives a dictionary that is ours, or
        // null.
        let made = unsafe { sys::ZSTD_createDDict(content.as_ptr().cast(), content.len()) };
        let made = NonNull::new(made).map(ReadingDictionary)?;
        // SAFETY: our dictionary. Whatever has no number is one of bare bytes.
        let number = unsafe { sys::ZSTD_getDictID_fromDDict(made.0.as_ptr()) };
        (number != 0).then_some(made)
    }

    /// What it takes.
    pub(crate) fn bytes(&self) -> usize {
        // SAFETY: our dictionary.
        unsafe { sys::ZSTD_sizeof_DDict(self.0.as_ptr()) }
    }
}

impl Drop for ReadingDictionary {
    fn drop(&mut self) {
        // SAFETY: ours, and not used any more.
        unsafe { sys::ZSTD_freeDDict(self.0.as_ptr()) };
    }
}

/// Makes a dictionary of at most `bytes_max` from samples, one behind the other in `samples`.
/// `None` if they are too few or have nothing in common.
pub(crate) fn train(samples: &[u8], sizes: &[usize], bytes_max: usize) -> Option<Vec<u8>> {
    base::invariant!(sizes.iter().sum::<usize>() == samples.len(), "sizes of other samples");
    let settings = sys::ZDICT_fastCover_params_t {
        k: TRAINING_PIECE_BYTES,
        d: TRAINING_SEQUENCE_BYTES,
        f: TRAINING_TABLE_LOG,
        steps: 1,
        nbThreads: 1,
        splitPoint: 0.0,
        accel: 1,
        shrinkDict: 0,
        shrinkDictMaxRegression: 0,
        zParams: sys::ZDICT_params_t {
            compressionLevel: TRAINING_LEVEL,
            notificationLevel: 0,
            dictID: 0,
        },
    };
    let mut content = vec![0; bytes_max];
    // SAFETY: slices with their lengths; the sizes add up to the samples, as was looked at above.
    let code = unsafe {
        sys::ZDICT_trainFromBuffer_fastCover(
            content.as_mut_ptr().cast(),
            content.len(),
            samples.as_ptr().cast(),
            sizes.as_ptr(),
            sizes.len() as u32,
            settings,
        )
    };
    content.truncate(written(code)?);
    Some(content)
}
