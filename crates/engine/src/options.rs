//! How an engine is opened.

use pagestore::DictionaryOptions;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wal::{FlushPolicy, OnDiskFull};

/// Called once with a description when the log or the data could not be made durable. The
/// process must stop; recovery is the repair.
pub type OnFatal = Arc<dyn Fn(&str) + Send + Sync>;

/// Settings. [`EngineOptions::new`] gives those of a server; simulations use tiny ones.
#[derive(Clone)]
pub struct EngineOptions {
    /// Directory of the database: `wal/`, `data/`, `tmp/` are in it. Initialised if empty.
    pub datadir: PathBuf,
    /// Memory for pages and what is known of each of them, bytes.
    pub buffer_pool_bytes: usize,
    /// What commits wait for until a transaction says otherwise.
    pub flush_policy: FlushPolicy,
    /// Memory for former versions of rows, bytes. What is more goes to files in `tmp/`; when they
    /// cannot grow, the statement that wants more fails with `OutOfMemory` and nothing else is
    /// affected.
    pub undo_budget_bytes: u64,
    /// Memory for the locks of transactions that hold more than a few hundred, all together, bytes.
    /// When it is used up, whoever wants another one is rolled back (`LockTableFull`).
    pub lock_memory_bytes: u64,
    /// Whether a lock that is not granted in time rolls back the transaction, not the statement.
    pub rollback_on_timeout: bool,
    /// Unit of undo memory, bytes; a power of two.
    pub undo_chunk_bytes: usize,
    /// Memory that index builds sort in, all together, before they spill to `tmp/`, bytes.
    pub sort_buffer_bytes: usize,
    /// Ring of the log, bytes; a power of two.
    pub log_ring_bytes: usize,
    /// First log file, bytes; later ones double.
    pub first_log_file_bytes: u64,
    /// Largest log file, bytes.
    pub max_log_file_bytes: u64,
    /// The least size of the log's blocks where the device takes smaller ones, bytes; a power of
    /// two from 512 to 4,096.
    pub log_block_bytes_min: usize,
    /// The log since the oldest page not yet written may grow to this before commits are slowed
    /// down, bytes; half of it is aimed at. It bounds the time of a recovery.
    pub log_cap_bytes: u64,
    /// Share of the buffer pool that may be dirty before pages are written whatever the log says.
    pub dirty_share_max: f64,
    /// Fibers that compress and write pages; absent: one for each core.
    pub flushers: Option<usize>,
    /// Log of which recovery keeps the changes of unfinished transactions in memory at a time.
    pub recovery_window_bytes: u64,
    /// Segment of the page store, bytes; counts at creation. 0: by the size of the file system, so
    /// that the segments kept in reserve and those half full are a small part of it, and that
    /// there are never very many.
    pub segment_bytes: u64,
    /// Segments in one data file; counts at creation.
    pub segments_per_file: u32,
    /// Longest group of pages written at once, bytes.
    pub group_bytes: usize,
    /// When compression dictionaries are made.
    pub dictionaries: DictionaryOptions,
    /// How many page numbers there can be.
    pub max_pages: u64,
    /// Whether the buffer pool asks for huge pages.
    pub huge_pages: bool,
    /// Log2 of the page size of trees whose keys and rows do not ask for more.
    pub page_class: u8,
    /// Time between checkpoints.
    pub checkpoint_interval: Duration,
    /// Time between purge rounds.
    pub purge_interval: Duration,
    /// Time between looks at how old the estimates of tables are.
    pub statistics_interval: Duration,
    /// Pause between two leaves of the sweep for deleted entries of former runs.
    pub sweep_pause: Duration,
    /// See [`OnFatal`].
    pub on_fatal: OnFatal,
    /// Told of damage that was met where no statement waits for an answer.
    pub on_damage: Arc<dyn Fn(&str) + Send + Sync>,
    /// See [`OnDiskFull`].
    pub on_disk_full: OnDiskFull,
}

impl EngineOptions {
    /// Server defaults.
    pub fn new(datadir: impl Into<PathBuf>, buffer_pool_bytes: usize) -> Self {
        Self {
            datadir: datadir.into(),
            buffer_pool_bytes,
            flush_policy: FlushPolicy::EveryCommit,
            undo_budget_bytes: (buffer_pool_bytes as u64 / 20).max(16 << 20),
            lock_memory_bytes: (buffer_pool_bytes as u64 / 2).max(256 << 20),
            rollback_on_timeout: false,
            undo_chunk_bytes: 256 << 10,
            sort_buffer_bytes: (buffer_pool_bytes / 32).clamp(1 << 20, 64 << 20),
            log_ring_bytes: (buffer_pool_bytes / 64).next_power_of_two().clamp(4 << 20, 16 << 20),
            first_log_file_bytes: 16 << 20,
            max_log_file_bytes: 64 << 20,
            log_block_bytes_min: 512,
            log_cap_bytes: 512 << 20,
            dirty_share_max: 0.9,
            flushers: None,
            recovery_window_bytes: 32 << 20,
            segment_bytes: 0,
            segments_per_file: 64,
            group_bytes: 1 << 20,
            dictionaries: DictionaryOptions::default(),
            max_pages: 1 << 30,
            huge_pages: true,
            page_class: 13,
            checkpoint_interval: Duration::from_secs(1),
            purge_interval: Duration::from_millis(20),
            statistics_interval: Duration::from_secs(1),
            sweep_pause: Duration::from_millis(2),
            on_fatal: Arc::new(|_| {}),
            on_damage: Arc::new(|_| {}),
            on_disk_full: Arc::new(|_| {}),
        }
    }
}

impl std::fmt::Debug for EngineOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("EngineOptions")
            .field("datadir", &self.datadir)
            .field("buffer_pool_bytes", &self.buffer_pool_bytes)
            .field("flush_policy", &self.flush_policy)
            .finish_non_exhaustive()
    }
}
