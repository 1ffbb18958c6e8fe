//! What can go wrong in the page store.

use base::PageId;

/// Why a latch-level operation could not finish; the driver ([`crate::run_with_retry`]) acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Contended or changed underneath: start the operation over.
    Restart,
    /// The page is not in memory: [`crate::PageStore::load`] it, then start over.
    Miss(PageId),
    /// No free frame of this size class: [`crate::PageStore::reserve_frames`], then start over.
    Frames(u8),
}

/// Errors of the page store.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The page's bytes on disk are damaged, twice read. Contained: other pages keep serving.
    #[error("page {pid} is corrupt: {detail}")]
    Corrupt {
        /// The page.
        pid: PageId,
        /// What did not agree, with file and offset.
        detail: String,
    },
    /// The page does not exist: it is neither in memory nor has a location.
    #[error("page {0} does not exist")]
    NoSuchPage(PageId),
    /// A region that the whole store depends on is damaged; the store refuses to open.
    #[error("damaged store: {file} at offset {offset}: {detail}")]
    Damaged {
        /// File name within the data directory.
        file: String,
        /// Byte offset of the damaged region.
        offset: u64,
        /// What did not agree.
        detail: String,
    },
    /// The directory holds something this version cannot open.
    #[error("incompatible store: {0}")]
    Incompatible(String),
    /// The disk is full; writers may try again when space has returned.
    #[error("no space left for data pages")]
    DiskFull,
    /// Every page number is in use.
    #[error("page numbers exhausted: the limit is {0}")]
    PagesExhausted(u64),
    /// The pool is too small for what is pinned and dirty at once.
    #[error("buffer pool exhausted: no frame of {0} bytes could be freed")]
    PoolExhausted(usize),
    /// A write or sync failed earlier; the store must be reopened.
    #[error("the page store stopped after a failed write: {0}")]
    Poisoned(String),
    /// Reading, opening or listing files failed.
    #[error("i/o error on {file}: {detail}")]
    Io {
        /// File name.
        file: String,
        /// The system's message.
        detail: String,
    },
}

impl StoreError {
    pub(crate) fn io(file: &str, error: &std::io::Error) -> StoreError {
        StoreError::Io { file: file.to_owned(), detail: error.to_string() }
    }
}
