//! How a store is set up.

use codec::CodecId;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Called once, with a reason, when a write or sync of data failed. The process must stop: what
/// the device holds is unknown, only a new start can tell.
pub type OnFatal = Arc<dyn Fn(&str) + Send + Sync>;

/// Verifies the body of a page after it was read: the owner's own rules, beyond checksums. Gets
/// the whole page and returns what is wrong.
pub type PageCheck = fn(&[u8]) -> Result<(), &'static str>;

/// What a page's owner sorts the pages of a tree by, from their bytes: pages that are written
/// together come to lie in this order, so that they can be read together.
pub type PageOrder = fn(&[u8]) -> u64;

/// When compression dictionaries are made for trees whose codec has them (Zstandard).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DictionaryOptions {
    /// A tree is looked at when so many bytes of its pages were written, and again after four
    /// times as much each time; 0: no dictionary is made.
    pub after_bytes: u64,
    /// A dictionary takes the place of another if on pages that it was not made from it saves this
    /// share of the bytes ...
    pub least_gain: f64,
    /// ... and is a tree's first if it saves this share.
    pub least_gain_first: f64,
}

impl Default for DictionaryOptions {
    fn default() -> DictionaryOptions {
        DictionaryOptions { after_bytes: 4 << 20, least_gain: 0.06, least_gain_first: 0.01 }
    }
}

/// Settings of a store. The defaults are for a server; simulations use tiny ones.
#[derive(Clone)]
pub struct StoreOptions {
    /// Directory of superblock and segments (`DIR/data`).
    pub dir: PathBuf,
    /// Memory for pages and what is known of each of them, in bytes.
    pub pool_bytes: usize,
    /// Whether the pool asks for huge pages.
    pub huge_pages: bool,
    /// How many page numbers there can be; memory is used only for those in use. Rounded up.
    pub max_pages: u64,
    /// Size of a segment in bytes, a multiple of 4096; used at creation, later the superblock's.
    pub segment_bytes: u64,
    /// Segments in one data file; used at creation.
    pub segments_per_file: u32,
    /// Longest group in bytes, at most 4 MiB and a quarter of a segment.
    pub group_bytes: usize,
    /// Fibers that write pages.
    pub flushers: usize,
    /// Codec of trees without one of their own, and its level (0: the codec's default).
    pub codec: (CodecId, i32),
    /// See [`DictionaryOptions`].
    pub dictionaries: DictionaryOptions,
    /// Pages that LZ4 has written, as cores were short, are compressed as their trees ask for when
    /// cores have not been short for so long; until then slowly. A load is short of cores now and
    /// then, not all the time.
    pub catch_up_after: Duration,
    /// Whether of a page that changed little only that is written.
    pub writes_deltas: bool,
    /// Share of the segment space that live pages should fill: below it, collection begins.
    pub target_utilisation: f64,
    /// The log may grow to this many bytes before writers are slowed down.
    pub log_cap_bytes: u64,
    /// Share of the pool that may be dirty before pages are written whatever the log says.
    pub dirty_share_max: f64,
    /// Free segments kept allocated for reuse rather than given back to the file system.
    pub spare_segments: usize,
    /// See [`PageCheck`].
    pub page_check: Option<PageCheck>,
    /// See [`PageOrder`]; none: by their numbers.
    pub page_order: Option<PageOrder>,
    /// See [`OnFatal`].
    pub on_fatal: OnFatal,
}

impl StoreOptions {
    /// Server defaults for this directory.
    pub fn new(dir: impl Into<PathBuf>) -> StoreOptions {
        StoreOptions {
            dir: dir.into(),
            pool_bytes: 512 << 20,
            huge_pages: true,
            max_pages: 1 << 30,
            segment_bytes: 64 << 20,
            segments_per_file: 64,
            group_bytes: 1 << 20,
            flushers: 2,
            codec: (CodecId::Lz4, 0),
            dictionaries: DictionaryOptions::default(),
            catch_up_after: Duration::from_secs(10),
            writes_deltas: true,
            target_utilisation: 0.70,
            log_cap_bytes: 1 << 30,
            dirty_share_max: 0.9,
            spare_segments: 4,
            page_check: None,
            page_order: None,
            on_fatal: Arc::new(|_| {}),
        }
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StoreOptions")
            .field("dir", &self.dir)
            .field("pool_bytes", &self.pool_bytes)
            .field("segment_bytes", &self.segment_bytes)
            .field("group_bytes", &self.group_bytes)
            .field("codec", &self.codec)
            .finish_non_exhaustive()
    }
}
