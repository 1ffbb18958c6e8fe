//! Reading the log back: recovery, checkpoints, replication.
//!
//! The log ends at the first place where no batch continues it: the next batch must carry the
//! LSN reached, the checksum of the batch before (`chain`), no lower epoch, and intact
//! checksums. What may stand there instead, and how it is told apart:
//!
//! | found behind the last batch | what it is | answer |
//! |---|---|---|
//! | zeroes, older log of a recycled file | never written | end |
//! | half a batch | torn by the crash, never acknowledged | end |
//! | an intact batch of an earlier epoch or another chain | stale tail of a former run | end |
//! | damage, but something says that log behind it was durable | rot | [`ReadError::LogRot`] |
//! | a sector that is neither empty nor sealed | rot of the last batch | [`ReadError::TailRot`] |
//!
//! "Something" is every intact batch and file header anywhere behind the end, and the caller's
//! own knowledge (superblock, page headers). Who knows that nothing can be there says so
//! ([`Reader::complete_at`]): after a clean shutdown, and when the end was proven before.
//!
//! Stale batches cannot accuse falsely: what they say
//! was durable was found by the recovery that made them stale.
//!
//! Of the last batch nothing says so: it may have been acknowledged an instant before the process
//! died. But a torn write leaves sectors as they were or as they should be, and every one of them
//! vouches for itself (`sector`); one that does not has rotted, and what it held may have been
//! acknowledged. What remains indistinguishable is a device that acknowledged a sync and has put
//! some of its sectors nowhere.
//!
//! Invariants:
//! 1. Nothing behind a gap is ever returned.
//! 2. The end is only returned when no evidence of durability lies above it, and no damage where
//!    the next batch would be.

use crate::format::{self, BatchHeader};
use crate::listing::{self, LogFile, open_file};
use crate::sector::SECTOR_BYTES;
use crate::types::LogEnd;
use base::{Lsn, probe};
use runtime::file::{AlignedBuf, DIRECT_ALIGNMENT, File};
use std::io;
use std::path::{Path, PathBuf};

mod proof;

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
    /// Where the log seems to end stands what no torn write leaves there.
    #[error(
        "log rot in {file} at offset {offset}, in the batch behind LSN {end}, the last one: the \
         sector is neither what was written nor what stood there before, and commits in the \
         batch may have been acknowledged; 512 zero bytes there give the batch up",
        file = file.display()
    )]
    TailRot {
        /// The file.
        file: PathBuf,
        /// Offset of the damaged sector, bytes.
        offset: u64,
        /// Where the readable log ends.
        end: Lsn,
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
    #[error(
        "the log in {dir} does not reach back to LSN {from} (first: {first:?})",
        dir = dir.display()
    )]
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
        source: io::Error,
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

/// Bytes read ahead from a file.
const WINDOW_BYTES: usize = 1 << 20;

/// A file with the part of it that is in memory.
#[derive(Debug)]
struct Window {
    log: LogFile,
    file: File,
    buffer: AlignedBuf,
    start: u64,
    filled: usize,
}

impl Window {
    fn open(log: LogFile, buffer: AlignedBuf) -> Result<Window, ReadError> {
        let file = open_file(&log.path).map_err(|source| io_error("open", &log.path, source))?;
        Ok(Window { log, file, buffer, start: 0, filled: 0 })
    }

    /// `len` bytes at `offset`, or `None` where the file does not reach that far.
    fn bytes(&mut self, offset: u64, len: usize) -> Result<Option<&[u8]>, ReadError> {
        if offset + len as u64 > self.log.len {
            return Ok(None);
        }
        let inside = offset >= self.start && offset + len as u64 <= self.start + self.filled as u64;
        if !inside {
            let start = offset - offset % DIRECT_ALIGNMENT as u64;
            let wanted = (offset - start) as usize + len.max(WINDOW_BYTES);
            let wanted = wanted.next_multiple_of(DIRECT_ALIGNMENT);
            let wanted = wanted.min((self.log.len - start) as usize);
            self.buffer.resize(wanted);
            self.filled = 0;
            self.file
                .read_at(&mut self.buffer[..wanted], start)
                .map_err(|source| io_error("read", &self.log.path, source))?;
            (self.start, self.filled) = (start, wanted);
        }
        let at = (offset - self.start) as usize;
        Ok(Some(&self.buffer[at..at + len]))
    }
}

fn io_error(action: &'static str, file: &Path, source: io::Error) -> ReadError {
    ReadError::Io { action, file: file.to_path_buf(), source }
}

/// Numbers of what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Batches, empty ones included.
    pub batches: u64,
    /// Bytes of the batches in the files.
    pub file_bytes: u64,
}

/// A batch's place, for tools that list what is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchPlace {
    /// Number of the file.
    pub(crate) file_sequence: u64,
    /// Where the batch begins, bytes.
    pub(crate) offset: u64,
    /// Bytes of the sectors with header and records, without padding.
    pub(crate) len: u64,
}

/// Reads records in order from a position to the end of the log.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    database_uuid: [u8; 16],
    /// All files with a `wal-` name, by sequence.
    logs: Vec<LogFile>,
    /// Index in `logs` of the file being read.
    current: usize,
    window: Window,
    block_bytes: usize,
    /// Offset of the next batch.
    offset: u64,
    /// LSN at the end of the batches read.
    lsn: u64,
    chain: u32,
    epoch: u32,
    from: u64,
    known_durable: u64,
    /// Nothing above was ever durable.
    complete_at: Option<u64>,
    payload: Payload,
    counts: ReadCounts,
    /// Places of the batches read, if asked for.
    places: Option<Vec<BatchPlace>>,
    end: Option<LogEnd>,
}

/// The records of one batch that were not returned yet.
#[derive(Debug, Default)]
struct Payload {
    bytes: Vec<u8>,
    at: usize,
    start_lsn: u64,
}

impl Reader {
    /// Opens the log in `dir` for reading from `from`, the start of a record (or the end of the
    /// log). `known_durable` is the highest position known to have been durable from elsewhere:
    /// the superblock's durable LSN and the highest LSN in any page header found on disk.
    /// Reading past a log that ends below it is [`ReadError::LogRot`].
    pub fn open(
        dir: &Path,
        database_uuid: [u8; 16],
        from: Lsn,
        known_durable: Lsn,
    ) -> Result<Reader, ReadError> {
        let listing =
            listing::list(dir, &database_uuid).map_err(|source| io_error("list", dir, source))?;
        let logs = listing.logs;
        let begun = |log: &LogFile| log.header.map(|header| header.first_lsn);
        let holds_from = |log: &LogFile| begun(log).is_some_and(|first| first <= from.get());
        let Some(current) = logs.iter().rposition(holds_from) else {
            let first = logs.iter().filter_map(begun).min().map(Lsn::new);
            return Err(ReadError::Missing { dir: dir.to_path_buf(), from, first });
        };
        let log = logs[current].clone();
        let header = log.header.expect("the position was chosen by its header");
        let window = Window::open(log, AlignedBuf::zeroed(0))?;
        Ok(Reader {
            dir: dir.to_path_buf(),
            database_uuid,
            logs,
            current,
            window,
            block_bytes: header.block_bytes,
            offset: header.block_bytes as u64,
            lsn: header.first_lsn,
            chain: header.chain,
            epoch: header.epoch,
            from: from.get(),
            known_durable: known_durable.get(),
            complete_at: None,
            payload: Payload::default(),
            counts: ReadCounts::default(),
            places: None,
            end: None,
        })
    }

    /// The caller knows that no log above `lsn` was durable when it asks: a clean shutdown ended
    /// there, or another reader has proven the end. A log that reaches so far need not be searched
    /// for traces of more behind its end, which takes a look at every block of the files.
    pub fn complete_at(mut self, lsn: Lsn) -> Reader {
        self.complete_at = Some(lsn.get());
        self
    }

    /// The next record, or `None` at the proven end of the log.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        loop {
            if self.payload.at < self.payload.bytes.len() {
                let payload = &self.payload;
                let start = payload.start_lsn + payload.at as u64;
                let (len, stream_len) = format::split_record(&payload.bytes[payload.at..])
                    .map_err(|error| self.malformed(start, error.to_string()))?;
                let at = self.payload.at;
                self.payload.at += stream_len;
                let end = start + stream_len as u64;
                if start < self.from {
                    if end > self.from {
                        return Err(self.malformed(start, format!("runs over LSN {}", self.from)));
                    }
                    continue;
                }
                let bytes = &self.payload.bytes[at..at + len];
                return Ok(Some(Record { start: Lsn::new(start), end: Lsn::new(end), bytes }));
            }
            if self.end.is_some() || !self.next_batch()? {
                return Ok(None);
            }
            runtime::yield_if_due();
        }
    }

    /// Where the log ends: known once [`Reader::next_record`] has returned `None`.
    pub fn end(&self) -> Option<LogEnd> {
        self.end
    }

    /// What was read so far.
    pub fn counts(&self) -> ReadCounts {
        self.counts
    }

    fn malformed(&self, lsn: u64, detail: String) -> ReadError {
        ReadError::Malformed { file: self.window.log.path.clone(), lsn: Lsn::new(lsn), detail }
    }

    /// Reads the batch that continues the log; false at the end.
    fn next_batch(&mut self) -> Result<bool, ReadError> {
        loop {
            if let Some(header) = self.continuing_header()? {
                let len = header.file_bytes(self.block_bytes);
                let (offset, lsn) = (self.offset, self.lsn);
                if let Some(batch) = self.window.bytes(offset, len)?
                    && header.body_is_intact(batch)
                {
                    self.payload.bytes.clear();
                    if header.end_lsn() > self.from {
                        format::copy_payload(batch, header.payload_len, &mut self.payload.bytes);
                    }
                    self.payload.at = 0;
                    self.payload.start_lsn = lsn;
                    self.offset += len as u64;
                    self.lsn = header.end_lsn();
                    self.chain = header.seal;
                    self.epoch = header.epoch;
                    self.note_place(&header, offset);
                    self.counts.batches += 1;
                    self.counts.file_bytes += len as u64;
                    return Ok(true);
                }
                probe!("wal.torn_batch");
            }
            // Also behind a torn batch: the run after the crash may have gone on in a new file
            // instead of in its place.
            if !self.enter_next_file()? {
                self.finish()?;
                return Ok(false);
            }
        }
    }

    fn note_place(&mut self, header: &BatchHeader, offset: u64) {
        let file_sequence = self.logs[self.current].sequence;
        if let Some(places) = &mut self.places {
            places.push(BatchPlace { file_sequence, offset, len: header.sector_bytes() as u64 });
        }
    }

    /// From now on remember the place of every batch.
    pub(crate) fn keep_places(&mut self) {
        self.places = Some(Vec::new());
    }

    /// The places remembered.
    pub(crate) fn take_places(&mut self) -> Vec<BatchPlace> {
        self.places.take().unwrap_or_default()
    }

    /// The header at the present offset, if it continues the log.
    fn continuing_header(&mut self) -> Result<Option<BatchHeader>, ReadError> {
        let uuid = self.database_uuid;
        let Some(bytes) = self.window.bytes(self.offset, SECTOR_BYTES)? else {
            return Ok(None);
        };
        let Some(header) = BatchHeader::decode(bytes, &uuid) else { return Ok(None) };
        let continues = header.start_lsn == self.lsn
            && header.chain == self.chain
            && header.epoch >= self.epoch;
        // Older log of a recycled file lies below the end; what a former run wrote above it is
        // what a reader that trusts intact checksums would replay.
        if !continues && header.start_lsn >= self.lsn {
            probe!("wal.stale_tail");
        }
        let is_stale_accepted =
            base::mutant!("stale_tail_accepted") && header.start_lsn >= self.lsn;
        if !continues && !is_stale_accepted {
            return Ok(None);
        }
        Ok(Some(header))
    }

    /// Goes on in the next file if it continues the log.
    fn enter_next_file(&mut self) -> Result<bool, ReadError> {
        let sequence = self.logs[self.current].sequence + 1;
        let Some(index) = self.logs.iter().position(|log| log.sequence == sequence) else {
            return Ok(false);
        };
        let log = &self.logs[index];
        let Some(header) = log.header else { return Ok(false) };
        let continues = header.first_lsn == self.lsn
            && header.chain == self.chain
            && header.epoch >= self.epoch;
        if !continues {
            return Ok(false);
        }
        let buffer = std::mem::replace(&mut self.window.buffer, AlignedBuf::zeroed(0));
        self.window = Window::open(log.clone(), buffer)?;
        self.current = index;
        self.block_bytes = header.block_bytes;
        self.offset = header.block_bytes as u64;
        self.epoch = header.epoch;
        Ok(true)
    }

    /// Proves that the log ends here (invariant 2).
    fn finish(&mut self) -> Result<(), ReadError> {
        let (file, offset) = (self.window.log.path.clone(), self.offset);
        let is_complete = self.complete_at.is_some_and(|lsn| self.lsn >= lsn);
        let evidence = if is_complete { 0 } else { self.evidence()? };
        let durable = self.known_durable.max(evidence);
        if self.lsn < self.from.max(durable) {
            return Err(ReadError::LogRot {
                file,
                offset,
                end: Lsn::new(self.lsn),
                durable: Lsn::new(self.from.max(durable)),
            });
        }
        let trusts = is_complete || base::mutant!("tail_rot_accepted");
        if !trusts && let Some((file, offset)) = self.damage_at_end()? {
            probe!("wal.tail_rot");
            return Err(ReadError::TailRot { file, offset, end: Lsn::new(self.lsn) });
        }
        self.end = Some(LogEnd {
            lsn: Lsn::new(self.lsn),
            file_sequence: self.logs[self.current].sequence,
            file_offset: offset,
            epoch: self.epoch,
            chain: self.chain,
        });
        Ok(())
    }

    /// The directory read.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}
