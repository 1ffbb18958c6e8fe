//! Opening an engine: a new database, or recovery of an existing one.
//!
//! ```text
//! lock -> superblock -> raise the epoch -> mapping of pages (pagestore::recover)
//!      -> analysis: one pass over the log to its proven end
//!      -> log and page store opened -> redo -> allocation map, unallocated pages dropped
//!      -> prepared transactions continued -> losers undone -> trees nobody names dropped
//!      -> checkpoint -> background fibers
//! ```
//!
//! 1. Nothing is written before the superblock carries the raised epoch, so what a former run
//!    left behind the end of the log can never be taken for ours (amendment 1).
//! 2. The log must reach every position known to have been durable: the superblock's and the
//!    highest LSN of any page on disk. If not, opening fails and says where (amendment 2).
//! 3. Undoing losers logs compensation records; a crash in between continues after them.
//! 4. A database whose creation did not finish (the marker file is there) is created anew.

use crate::analysis::Analysis;
use crate::background::Background;
use crate::core::{Core, DICTIONARY_TREE, FIRST_TREE};
use crate::counters::Counters;
use crate::losers::LogRange;
use crate::options::EngineOptions;
use crate::redo::Redo;
use crate::{Engine, checkpoint, dictionary, losers};
use base::{Lsn, PageId, TreeId, TrxId};
use btree::Tree;
use engine_api::EngineError;
use pagestore::{PageStore, StoreError, StoreOptions, Superblock};
use runtime::file::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use txn::{TransactionSystem, TxnOptions};
use wal::{LogEnd, ReadError, Reader, Wal, WalOptions};

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another server has it open.
    #[error("the data directory {0} is in use by another server")]
    Locked(PathBuf),
    /// A system call failed.
    #[error("{action} {path}: {source}", path = path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The log cannot be read or ends too early.
    #[error(transparent)]
    Log(#[from] ReadError),
    /// The log cannot be opened for writing.
    #[error(transparent)]
    Wal(#[from] wal::WalError),
    /// The page store refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something that everything depends on is damaged.
    #[error("damaged database: {0}")]
    Damaged(String),
    /// The dictionary or the undo of an unfinished transaction failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

type Result<T> = std::result::Result<T, OpenError>;

/// What a start did.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoverySummary {
    /// The database was created by this start.
    pub created: bool,
    /// The last shutdown was clean.
    pub was_clean: bool,
    /// Records read.
    pub records: u64,
    /// Page ops applied.
    pub redone: u64,
    /// Transactions that had not ended.
    pub losers: u64,
    /// Transactions that were prepared: they wait for their commit or rollback.
    pub prepared: u64,
    /// Changes of those that had not ended, undone.
    pub undone: u64,
    /// Trees nobody named, dropped.
    pub orphan_trees: u64,
    /// Time taken, microseconds.
    pub micros: u64,
    /// Of it: finding the pages, reading the log, redo, undoing losers.
    pub phase_micros: [u64; 4],
}

/// Directories and files of a database.
pub(crate) struct Places {
    pub(crate) log: PathBuf,
    pub(crate) data: PathBuf,
    temporary: PathBuf,
    pub(crate) lock: PathBuf,
    marker: PathBuf,
}

impl Places {
    pub(crate) fn new(datadir: &Path) -> Self {
        Self {
            log: datadir.join("wal"),
            data: datadir.join("data"),
            temporary: datadir.join("tmp"),
            lock: datadir.join("engine.lock"),
            marker: datadir.join("creating"),
        }
    }

    /// Keeps other servers out while the file returned is open.
    pub(crate) fn lock_exclusively(&self, datadir: &Path) -> Result<File> {
        let lock = OpenOptions::new().create(true).open(&self.lock);
        let lock = io("open", &self.lock, lock)?;
        if !io("lock", &self.lock, lock.try_lock_exclusive())? {
            return Err(OpenError::Locked(datadir.to_owned()));
        }
        Ok(lock)
    }
}

fn io<T>(action: &'static str, path: &Path, result: std::io::Result<T>) -> Result<T> {
    result.map_err(|source| OpenError::Io { action, path: path.to_owned(), source })
}

/// The current file of the log and the next one come on top of what the log's cap allows: so each
/// is a small part of it, but has room for two of the longest batches.
const LOG_FILE_BYTES_MIN: u64 = 8 << 20;
const LOG_FILE_PARTS: u64 = 16;

fn log_options(options: &EngineOptions, uuid: [u8; 16]) -> WalOptions {
    let mut log = WalOptions::new(uuid);
    let part_bytes = (options.log_cap_bytes / LOG_FILE_PARTS).max(LOG_FILE_BYTES_MIN);
    log.ring_bytes = options.log_ring_bytes;
    log.first_file_bytes = options.first_log_file_bytes.min(part_bytes);
    log.max_file_bytes = options.max_log_file_bytes.min(part_bytes);
    log.block_bytes_min = options.log_block_bytes_min;
    log.kept_bytes = options.log_cap_bytes + 2 * log.max_file_bytes;
    log.policy = options.flush_policy;
    log.on_fatal = options.on_fatal.clone();
    log.on_disk_full = options.on_disk_full.clone();
    log
}

fn store_options(options: &EngineOptions, places: &Places) -> StoreOptions {
    let mut store = StoreOptions::new(places.data.clone());
    store.pool_bytes = options.buffer_pool_bytes;
    store.segment_bytes = options.segment_bytes;
    store.log_cap_bytes = options.log_cap_bytes;
    store.dirty_share_max = options.dirty_share_max;
    store.flushers = options.flushers.unwrap_or_else(runtime::worker_count);
    store.segments_per_file = options.segments_per_file;
    store.group_bytes = options.group_bytes;
    store.max_pages = options.max_pages;
    store.huge_pages = options.huge_pages;
    store.dictionaries = options.dictionaries;
    store.page_check = Some(btree::check_page);
    store.page_order = Some(btree::page_order);
    store.on_fatal = options.on_fatal.clone();
    store
}

/// The engine's own bytes in the superblock: `version u8 (1) | root of the dictionary u64 |
/// its page class u8 | oldest log needed u64 | flags u8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) root: PageId,
    pub(crate) class: u8,
    /// Where the analysis of the log begins.
    pub(crate) scan: Lsn,
    /// Flag 1: there may be deleted entries that no queue of purge leads to.
    pub(crate) wants_sweep: bool,
}

impl Anchor {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend_from_slice(&self.root.get().to_le_bytes());
        bytes.push(self.class);
        bytes.extend_from_slice(&self.scan.get().to_le_bytes());
        bytes.push(u8::from(self.wants_sweep));
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&version, rest) = bytes.split_first()?;
        let (root, rest) = rest.split_first_chunk::<8>()?;
        let (&class, rest) = rest.split_first()?;
        let (scan, rest) = rest.split_first_chunk::<8>()?;
        let (&flags, _) = rest.split_first()?;
        let root = PageId::checked(u64::from_le_bytes(*root))?;
        let scan = Lsn::new(u64::from_le_bytes(*scan));
        (version == 1).then_some(Self { root, class, scan, wants_sweep: flags & 1 != 0 })
    }
}

fn transactions(options: &EngineOptions, wal: &Arc<Wal>, base: u64, first: u64) -> TxnOptions {
    TxnOptions {
        workers: runtime::worker_count(),
        undo_chunk_bytes: options.undo_chunk_bytes,
        undo_budget_bytes: options.undo_budget_bytes,
        lock_memory_bytes: options.lock_memory_bytes,
        undo_directory: Some(Places::new(&options.datadir).temporary),
        undo_base: base,
        first_id: TrxId::new(first),
        start: wal.end(),
    }
}

/// A store as large as its file system has about so many segments.
const SEGMENTS_WANTED: u64 = 16_384;
/// What a new store finds free shall hold about so many segments: those kept in reserve and those
/// half full are a small part of it then.
const SEGMENTS_FREE: u64 = 128;
/// Bounds of the size of segments.
const SEGMENT_BYTES_MIN: u64 = 4 << 20;
const SEGMENT_BYTES_MAX: u64 = 64 << 20;

/// Opens the database in `options.datadir`, creating it in an empty directory.
pub(crate) fn open(options: EngineOptions) -> Result<(Engine, RecoverySummary)> {
    let begun = runtime::now();
    let places = Places::new(&options.datadir);
    for directory in [&options.datadir, &places.log, &places.data, &places.temporary] {
        io("create directory", directory, runtime::fs::create_dir_all(directory))?;
    }
    // The directories themselves must survive a crash before what is in them counts, and so must
    // names that a killed process made and did not come to sync.
    for directory in [&options.datadir, &places.log, &places.data] {
        io("sync", directory, runtime::fs::sync_dir(directory))?;
    }
    if let Some(parent) = options.datadir.parent().filter(|it| !it.as_os_str().is_empty()) {
        io("sync", parent, runtime::fs::sync_dir(parent))?;
    }
    let lock = places.lock_exclusively(&options.datadir)?;
    remove_files(&places.temporary)?;
    let is_unfinished = io("look for", &places.marker, runtime::fs::exists(&places.marker))?;
    let superblock = if is_unfinished { None } else { Superblock::load_durably(&places.data)? };
    let (engine, mut summary) = match superblock {
        Some(superblock) => recover(options, &places, superblock, lock)?,
        None => create(options, &places, lock, is_unfinished)?,
    };
    summary.micros = begun.elapsed().as_micros() as u64;
    Ok((engine, summary))
}

/// Segment size of a new store.
fn segment_bytes(options: &EngineOptions, directory: &Path) -> u64 {
    if options.segment_bytes != 0 {
        return options.segment_bytes;
    }
    let Ok(size) = runtime::fs::file_system_size(directory) else { return SEGMENT_BYTES_MAX };
    (size.total_bytes / SEGMENTS_WANTED)
        .min(size.available_bytes / SEGMENTS_FREE)
        .max(1)
        .checked_next_power_of_two()
        .map_or(SEGMENT_BYTES_MAX, |bytes| bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX))
}

fn remove_files(directory: &Path) -> Result<()> {
    for name in io("list", directory, runtime::fs::read_dir(directory))? {
        let path = directory.join(name);
        io("remove", &path, runtime::fs::remove_file(&path))?;
    }
    io("sync", directory, runtime::fs::sync_dir(directory))
}

fn create(
    options: EngineOptions,
    places: &Places,
    lock: File,
    is_unfinished: bool,
) -> Result<(Engine, RecoverySummary)> {
    for directory in [&places.log, &places.data] {
        let names = io("list", directory, runtime::fs::read_dir(directory))?;
        if !is_unfinished && !names.is_empty() {
            let found = directory.display();
            return Err(OpenError::Damaged(format!("no superblock, but files in {found}")));
        }
    }
    let marker = OpenOptions::new().create(true).open(&places.marker);
    let marker = io("create", &places.marker, marker)?;
    io("sync", &places.marker, marker.sync_data())?;
    io("sync", &options.datadir, runtime::fs::sync_dir(&options.datadir))?;
    remove_files(&places.log)?;
    remove_files(&places.data)?;
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&runtime::random_u64().to_le_bytes());
    uuid[8..].copy_from_slice(&runtime::random_u64().to_le_bytes());
    let segment_bytes = segment_bytes(&options, &places.data);
    let mut superblock = Superblock::new(uuid, segment_bytes, options.segments_per_file);
    superblock.redo_lsn = wal::FIRST_LSN;
    superblock.durable_lsn = wal::FIRST_LSN;
    let wal = Wal::create(&places.log, log_options(&options, uuid), superblock.epoch)?;
    let store = PageStore::create(store_options(&options, places), wal.clone(), superblock)?;
    let class = options.page_class;
    let dictionary = Tree::create(store.clone(), wal.clone(), DICTIONARY_TREE, class)
        .map_err(|error| crate::error::from_tree(error, || "dictionary".to_owned()))?;
    let txn = TransactionSystem::new(wal.clone(), &transactions(&options, &wal, 0, 1));
    let mut counters = crate::counters::RecoveredCounters::default();
    counters.raise_next_tree(FIRST_TREE);
    let counters = Counters::new(counters);
    let core = Core::new(options, wal, store, txn, counters, dictionary, lock);
    checkpoint::checkpoint(&core, false)?;
    io("remove", &places.marker, runtime::fs::remove_file(&places.marker))?;
    io("sync", &core.options.datadir, runtime::fs::sync_dir(&core.options.datadir))?;
    let summary = RecoverySummary { created: true, was_clean: true, ..Default::default() };
    let prepared = runtime::sync::Mutex::default();
    Ok((Engine { background: Background::start(&core), core, prepared }, summary))
}

fn recover(
    options: EngineOptions,
    places: &Places,
    mut superblock: Superblock,
    lock: File,
) -> Result<(Engine, RecoverySummary)> {
    let Some(anchor) = Anchor::decode(&superblock.engine) else {
        return Err(OpenError::Damaged("the superblock does not name the dictionary".to_owned()));
    };
    let mut summary = RecoverySummary { was_clean: superblock.is_clean, ..Default::default() };
    let under_way = base::under_way::begin("engine.redo");
    let former = superblock.clone();
    superblock.epoch += 1;
    superblock.is_clean = false;
    superblock.store(&places.data)?;
    let mut clock = runtime::now();
    let mut lap = || {
        let micros = clock.elapsed().as_micros() as u64;
        clock = runtime::now();
        micros
    };
    let store_options = store_options(&options, places);
    let pages = pagestore::recover(&store_options, &superblock)?;
    let mapping = lap();
    let known_durable = former.durable_lsn.max(pages.max_page_lsn());
    let mut analysis = Analysis::new(options.recovery_window_bytes);
    let end = analyse(&mut analysis, places, &former, anchor.scan, known_durable)?;
    let wal =
        Wal::open(&places.log, log_options(&options, superblock.uuid), superblock.epoch, end)?;
    let store = PageStore::open(store_options, wal.clone(), pages)?;
    let reading = lap();
    let log = LogRange { directory: &places.log, uuid: former.uuid, end: end.lsn };
    let pool_pages = options.buffer_pool_bytes >> options.page_class;
    let redo = Redo { store: &store, analysis: &analysis, pool_pages };
    summary.records = analysis.records;
    summary.redone = redo.run(&log, former.redo_lsn)?;
    store.finish_recovery()?;
    drop(under_way);
    let _under_way = base::under_way::begin("engine.undo");
    let redoing = lap();

    let (root, class) = (anchor.root, anchor.class);
    let dictionary = Tree::open(store.clone(), wal.clone(), DICTIONARY_TREE, root, class);
    let undo_base = analysis.undo_high_water.max(former.next_undo_address);
    let undo_base = if base::mutant!("undo_base_forgotten") { 0 } else { undo_base };
    let first_id = analysis.next_trx.max(former.next_trx);
    let txn =
        TransactionSystem::new(wal.clone(), &transactions(&options, &wal, undo_base, first_id));
    let mut counters = std::mem::take(&mut analysis.counters);
    counters.raise_next_tree(former.next_tree.min(u64::from(u32::MAX)) as u32);
    let counters = Counters::new(counters);
    let core = Core::new(options, wal, store, txn, counters, dictionary, lock);
    know_trees(&core, true)?;
    let prepared = crate::prepared::continue_all(&core, &log, &mut analysis)?;
    summary.prepared = prepared.len() as u64;
    summary.losers = analysis.losers.len() as u64;
    summary.undone = losers::undo(&core, &log, &mut analysis)?;
    summary.phase_micros = [mapping, reading, redoing, lap()];
    know_trees(&core, false)?;
    core.store.start_catching_up();
    summary.orphan_trees = drop_orphans(&core);
    // The queue of purge is lost with the process (amendment 16).
    core.sweep_pending.store(!former.is_clean || anchor.wants_sweep, Ordering::Relaxed);
    checkpoint::checkpoint(&core, false)?;
    let prepared = runtime::sync::Mutex::new(prepared);
    Ok((Engine { background: Background::start(&core), core, prepared }, summary))
}

/// First pass over the log, from the oldest record needed to its end.
fn analyse(
    analysis: &mut Analysis,
    places: &Places,
    superblock: &Superblock,
    scan_lsn: Lsn,
    known_durable: Lsn,
) -> Result<LogEnd> {
    let mut reader = Reader::open(&places.log, superblock.uuid, scan_lsn, known_durable)?;
    if superblock.is_clean {
        reader = reader.complete_at(known_durable);
    }
    while let Some(record) = reader.next_record()? {
        let at = record.start;
        analysis
            .note(&record)
            .map_err(|detail| OpenError::Damaged(format!("log record at {at}: {detail}")))?;
        runtime::yield_if_due();
    }
    let end = reader.end();
    end.ok_or_else(|| OpenError::Damaged("the log has no end".to_owned()))
}

/// Makes the trees of all tables known: with `all` also those that a loser has created or
/// dropped, for undoing its changes.
fn know_trees(core: &Arc<Core>, all: bool) -> Result<()> {
    core.forget_trees();
    for table in dictionary::shapes(core, all)? {
        for (position, index) in table.indexes.iter().enumerate() {
            let name = format!("{}.{} index {}", table.schema, table.name, index.name);
            let (store, wal) = (core.store.clone(), core.wal.clone());
            crate::storage::set_codec(&store, index.tree, &table.options.codec);
            let tree = Tree::open(store, wal, index.tree, index.root, index.page_class);
            core.add_tree(tree, name, position == 0);
        }
    }
    Ok(())
}

/// Queues trees that own pages but that nobody names: creations and drops cut off by a crash.
fn drop_orphans(core: &Arc<Core>) -> u64 {
    let known = core.tree_ids();
    let is_orphan = |tree: &TreeId| tree.get() >= FIRST_TREE && !known.contains(tree);
    let orphans: Vec<TreeId> = core.store.space().trees().into_iter().filter(is_orphan).collect();
    for &tree in &orphans {
        core.drop_tree(tree);
    }
    orphans.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_log_are_small_parts_of_its_cap() {
        let mut options = EngineOptions::new("nowhere", 64 << 20);
        let cases = [(1, 8, 8), (192, 12, 12), (512, 16, 32), (1024, 16, 64), (4096, 16, 64)];
        for (cap_mib, first_mib, longest_mib) in cases {
            options.log_cap_bytes = cap_mib << 20;
            let log = log_options(&options, [0; 16]);
            assert_eq!(
                (log.first_file_bytes >> 20, log.max_file_bytes >> 20),
                (first_mib, longest_mib)
            );
            assert!(log.max_file_bytes >= 2 * log.max_batch_bytes as u64);
        }
    }
}
