//! Reading the log back: recovery, checkpoints, replication.

use crate::types::LogEnd;
use base::Lsn;
use std::path::{Path, PathBuf};

/// Why the log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Acknowledged log is missing: the readable log ends below a position that was durable.
    #[error(
        "log rot in {file} at offset {offset}: the readable log ends at LSN {end}, but LSN \
         {durable} was durable",
        file = file.display()
    )]
    LogRot {
        /// File in which reading stopped.
        file: PathBuf,
        /// Offset at which reading stopped, bytes.
        offset: u64,
        /// Where the readable log ends.
        end: Lsn,
        /// A position known to have been durable.
        durable: Lsn,
    },
    /// A batch is intact by its checksum, but its content is not a sequence of records.
    #[error("malformed record in {file} at LSN {lsn}: {detail}", file = file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Where the record should begin.
        lsn: Lsn,
        /// What is wrong.
        detail: String,
    },
    /// No file holds the position to start from.
    #[error("the log in {dir} does not reach back to LSN {from} (first: {first:?})", dir = dir.display())]
    Missing {
        /// The directory.
        dir: PathBuf,
        /// The position asked for.
        from: Lsn,
        /// The first position there is.
        first: Option<Lsn>,
    },
    /// A system call failed.
    #[error("{action} {file}: {source}", file = file.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file.
        file: PathBuf,
        /// The error.
        source: std::io::Error,
    },
}

/// One record as read.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Where it begins.
    pub start: Lsn,
    /// Where it ends: the LSN of the pages it changed.
    pub end: Lsn,
    /// Its bytes, for [`crate::RecordView::parse`].
    pub bytes: &'a [u8],
}

/// Reads records in order from a position to the end of the log.
#[derive(Debug)]
pub struct Reader {
    end: LogEnd,
}

impl Reader {
    /// Opens the log in `dir` for reading from `from`, the start of a record (or the end of the
    /// log). `known_durable` is the highest position known to have been durable from elsewhere:
    /// the superblock's durable LSN and the highest LSN in any page header found on disk.
    /// Reading past a log that ends below it is [`ReadError::LogRot`].
    pub fn open(
        dir: &Path,
        _database_uuid: [u8; 16],
        from: Lsn,
        _known_durable: Lsn,
    ) -> Result<Reader, ReadError> {
        Err(ReadError::Missing { dir: dir.to_path_buf(), from, first: None })
    }

    /// The next record, or `None` at the proven end of the log.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        Ok(None)
    }

    /// Where the log ends: known once [`Reader::next_record`] has returned `None`.
    pub fn end(&self) -> Option<LogEnd> {
        Some(self.end)
    }
}
