//! Options, errors and positions of the log.

use crate::sector::SECTOR_BYTES;
use base::Lsn;
use runtime::file::DIRECT_ALIGNMENT;
use std::fmt;
use std::sync::Arc;

/// Where the stream of a new database begins; smaller LSNs mean "none".
pub const FIRST_LSN: Lsn = Lsn::new(4096);

/// Where a record lies in the stream. `end` is what goes into page headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LsnRange {
    /// Position of the record's first byte.
    pub start: Lsn,
    /// Position behind the record (and its padding): the start of the next one.
    pub end: Lsn,
}

/// What a commit waits for (`innodb_flush_log_at_trx_commit`). Page writes always wait for
/// durability, whatever the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FlushPolicy {
    /// 0: nothing; the log is written and synced once a second.
    EverySecond = 0,
    /// 1: written and synced before the commit is acknowledged.
    EveryCommit = 1,
    /// 2: written to the device before the commit is acknowledged, synced once a second.
    WriteEveryCommit = 2,
}

impl FlushPolicy {
    /// The policy with this number (values above 2 mean 1, as 3 does in MariaDB).
    pub fn from_u64(number: u64) -> FlushPolicy {
        match number {
            0 => FlushPolicy::EverySecond,
            2 => FlushPolicy::WriteEveryCommit,
            _ => FlushPolicy::EveryCommit,
        }
    }
}

/// Called once, with a description, when a write or sync of the log has failed. The process
/// must stop: what the device kept is unknown, only recovery can tell.
pub type OnFatal = Arc<dyn Fn(&str) + Send + Sync>;

/// Called with a sentence for the operator, once a minute at most, when a full disk refuses
/// something, or makes wait what cannot be refused (a commit, a rollback, a start).
pub type OnDiskFull = Arc<dyn Fn(&str) + Send + Sync>;

/// Settings of a log. The defaults are for a server; simulations use tiny ones.
#[derive(Clone)]
pub struct WalOptions {
    /// Identity of the database; every file and batch carries it.
    pub database_uuid: [u8; 16],
    /// In-memory ring, bytes; a power of two of at least 4 KiB.
    pub ring_bytes: usize,
    /// Size of the first file, bytes; later files double up to `max_file_bytes`.
    pub first_file_bytes: u64,
    /// Largest size of a file, bytes.
    pub max_file_bytes: u64,
    /// A batch is sealed at this many bytes (or at one record, if that is longer).
    pub max_batch_bytes: usize,
    /// Batches begin and end at multiples of this, or of what the device takes if that is more; a
    /// power of two from 512 to 65,536.
    pub block_bytes_min: usize,
    /// Recycled files are kept for reuse as long as all files together take at most so many bytes,
    /// and as long as the log is expected to need them.
    pub kept_bytes: u64,
    /// What a commit waits for; can be changed later.
    pub policy: FlushPolicy,
    /// See [`OnFatal`].
    pub on_fatal: OnFatal,
    /// See [`OnDiskFull`].
    pub on_disk_full: OnDiskFull,
}

impl WalOptions {
    /// Server defaults for this database.
    pub fn new(database_uuid: [u8; 16]) -> WalOptions {
        WalOptions {
            database_uuid,
            ring_bytes: 16 << 20,
            first_file_bytes: 16 << 20,
            max_file_bytes: 256 << 20,
            max_batch_bytes: 1 << 20,
            block_bytes_min: SECTOR_BYTES,
            kept_bytes: 2 << 30,
            policy: FlushPolicy::EveryCommit,
            on_fatal: Arc::new(|_| {}),
            on_disk_full: Arc::new(|_| {}),
        }
    }
}

impl WalOptions {
    /// No file has longer blocks than that, whatever its device takes.
    pub(crate) fn block_bytes_max(&self) -> usize {
        self.block_bytes_min.max(DIRECT_ALIGNMENT)
    }
}

impl fmt::Debug for WalOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WalOptions")
            .field("ring_bytes", &self.ring_bytes)
            .field("first_file_bytes", &self.first_file_bytes)
            .field("max_file_bytes", &self.max_file_bytes)
            .field("max_batch_bytes", &self.max_batch_bytes)
            .field("block_bytes_min", &self.block_bytes_min)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// Where a scan found the log to end: what [`crate::Wal::open`] continues from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// Behind the last record.
    pub lsn: Lsn,
    /// Number of the file that holds the end.
    pub file_sequence: u64,
    /// Where in that file the next batch goes, bytes.
    pub file_offset: u64,
    /// Highest recovery epoch seen.
    pub epoch: u32,
    /// Checksum of the last batch, which the next one names.
    pub chain: u32,
}

/// Why the log refuses.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WalError {
    /// A write or sync failed earlier; nothing is accepted any more.
    #[error("the log failed earlier and accepts nothing more: {detail}")]
    Poisoned {
        /// What failed first.
        detail: Arc<str>,
    },
    /// No space for the next log file; retried, and cleared when space returns.
    #[error("no space left on the device for the log")]
    DiskFull,
    /// A record larger than the ring can ever hold.
    #[error("a record of {bytes} bytes exceeds the limit of {limit} bytes")]
    TooLarge {
        /// Bytes asked for.
        bytes: usize,
        /// [`crate::Wal::max_record_bytes`].
        limit: usize,
    },
    /// Opening: the given epoch is not above the one found in the log.
    #[error("recovery epoch {given} is not above {found}, found in the log")]
    StaleEpoch {
        /// Epoch passed in.
        given: u32,
        /// Highest epoch in the log.
        found: u32,
    },
    /// Creating or opening failed.
    #[error("log {path}: {detail}")]
    Open {
        /// File or directory.
        path: String,
        /// What happened.
        detail: String,
    },
}
