//! What all parts of a running engine share.

use crate::buffers::Buffers;
use crate::checkpoint::CheckpointState;
use crate::counters::Counters;
use crate::drops::Drops;
use crate::error::from_log;
use crate::options::EngineOptions;
use crate::purge::Revisits;
use crate::sort::SortMemory;
use crate::thinning::Thinning;
use base::{PageId, TreeId};
use btree::{Batch, DELETED, Tree};
use engine_api::{EngineError, Result};
use pagestore::PageStore;
use runtime::file::File;
use runtime::sync::{Event, FiberMutex, Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use txn::{TransactionSystem, WordState};
use wal::{SpaceNotice, Wal, WalError};

/// Tree of the dictionary.
pub(crate) const DICTIONARY_TREE: TreeId = TreeId::new(2);
/// Tree numbers below are reserved.
pub(crate) const FIRST_TREE: u32 = 16;
/// Sets of buffers kept for reuse.
const BUFFERS_KEPT: usize = 256;
/// Batches of scans kept for reuse, and how large each may be.
const BATCHES_KEPT: usize = 64;
const BATCH_BYTES_KEPT: usize = 128 << 10;
/// What grows waits so long for space that collection or a checkpoint may give back.
const GROWTH_WAIT_MAX: Duration = Duration::from_secs(2);
/// Undoing takes as much of the log as what is undone, and blocks that are not full.
const UNDO_PARTS: u64 = 2;
/// Between two looks for it.
const GROWTH_WAIT_STEP: Duration = Duration::from_millis(20);

struct OpenTree {
    tree: Tree,
    name: String,
    /// Its keys are the row locks of a table.
    is_clustered: bool,
}

/// The running parts of an engine.
pub(crate) struct Core {
    pub(crate) options: EngineOptions,
    pub(crate) wal: Arc<Wal>,
    pub(crate) store: PageStore,
    pub(crate) txn: Arc<TransactionSystem>,
    pub(crate) counters: Counters,
    pub(crate) revisits: Revisits,
    pub(crate) drops: Drops,
    pub(crate) thinning: Thinning,
    /// `innodb_read_only_compressed`.
    pub(crate) compressed_rows_read_only: AtomicBool,
    /// Deleted entries of former runs may be anywhere: the sweep has not come to its end.
    pub(crate) sweep_pending: AtomicBool,
    /// Told to the background fibers.
    pub(crate) purge_wanted: Event,
    pub(crate) checkpoint_wanted: Event,
    pub(crate) statistics_wanted: Event,
    /// Tells the operator of a full disk.
    space_notice: SpaceNotice,
    dictionary: Tree,
    trees: RwLock<BTreeMap<TreeId, OpenTree>>,
    #[expect(clippy::vec_box, reason = "they go in and out as one pointer")]
    buffers: Mutex<Vec<Box<Buffers>>>,
    /// Batches of scans that came to their end.
    batches: Mutex<Vec<Batch>>,
    stopping: AtomicBool,
    /// Held by a purge round, and by a check that wants none.
    pub(crate) purging: FiberMutex<()>,
    /// One checkpoint at a time; the state of the last.
    pub(crate) checkpointing: FiberMutex<CheckpointState>,
    /// Shared by all index builds.
    pub(crate) sort_memory: Arc<SortMemory>,
    /// Keeps a second server out.
    _lock: File,
}

impl Core {
    pub(crate) fn new(
        options: EngineOptions,
        wal: Arc<Wal>,
        store: PageStore,
        txn: Arc<TransactionSystem>,
        counters: Counters,
        dictionary: Tree,
        lock: File,
    ) -> Arc<Self> {
        Arc::new(Self {
            sort_memory: SortMemory::new(options.sort_buffer_bytes),
            space_notice: SpaceNotice::new(options.on_disk_full.clone()),
            options,
            wal,
            store,
            txn,
            counters,
            revisits: Revisits::default(),
            drops: Drops::default(),
            thinning: Thinning::default(),
            compressed_rows_read_only: AtomicBool::new(false),
            sweep_pending: AtomicBool::new(false),
            purge_wanted: Event::new(),
            checkpoint_wanted: Event::new(),
            statistics_wanted: Event::new(),
            dictionary,
            trees: RwLock::new(BTreeMap::new()),
            buffers: Mutex::new(Vec::new()),
            batches: Mutex::new(Vec::new()),
            stopping: AtomicBool::new(false),
            purging: FiberMutex::new(()),
            checkpointing: FiberMutex::new(CheckpointState::default()),
            _lock: lock,
        })
    }

    pub(crate) fn dictionary(&self) -> &Tree {
        &self.dictionary
    }

    /// Makes a tree known under a name for messages.
    pub(crate) fn add_tree(&self, tree: Tree, name: String, is_clustered: bool) {
        self.trees.write().insert(tree.id(), OpenTree { tree, name, is_clustered });
    }

    /// The tree with this number.
    pub(crate) fn tree(&self, id: TreeId) -> Result<Tree> {
        if id == DICTIONARY_TREE {
            return Ok(self.dictionary.clone());
        }
        let tree = self.trees.read().get(&id).map(|open| open.tree.clone());
        tree.ok_or_else(|| EngineError::Corrupt {
            object: format!("tree {id}"),
            detail: "the tree is not known".to_owned(),
        })
    }

    /// The tree of an index as its definition names it.
    pub(crate) fn open_tree(&self, id: TreeId, root: PageId, class: u8) -> Tree {
        match self.tree(id) {
            Ok(tree) => tree,
            Err(_) => Tree::open(self.store.clone(), self.wal.clone(), id, root, class),
        }
    }

    /// Whether a key of this tree stands for a row.
    pub(crate) fn is_clustered(&self, id: TreeId) -> bool {
        self.trees.read().get(&id).is_some_and(|open| open.is_clustered)
    }

    /// Forgets the names of all trees.
    pub(crate) fn forget_trees(&self) {
        self.trees.write().clear();
    }

    /// Numbers of all known trees.
    pub(crate) fn tree_ids(&self) -> Vec<TreeId> {
        self.trees.read().keys().copied().collect()
    }

    /// Name of a tree for messages.
    pub(crate) fn tree_name(&self, id: TreeId) -> String {
        if id == DICTIONARY_TREE {
            return "dictionary".to_owned();
        }
        let name = self.trees.read().get(&id).map(|open| open.name.clone());
        name.unwrap_or_else(|| format!("tree {id}"))
    }

    /// Forgets a tree that nothing durable names any more; its pages are given back later.
    pub(crate) fn drop_tree(&self, id: TreeId) {
        self.trees.write().remove(&id);
        self.store.forget_tree(id);
        self.drops.push(id);
    }

    /// A reader met a deleted entry: if no queued commit leads to it, purge is told.
    #[inline]
    pub(crate) fn visit_deleted(&self, tree: TreeId, key: &[u8], flags: u8, word: u64) {
        if flags & DELETED != 0 && self.txn.undo().word_state(word, 0) == WordState::Frozen {
            self.revisit(tree, key, word);
        }
    }

    /// Purge shall look at this deleted entry again.
    #[cold]
    pub(crate) fn revisit(&self, tree: TreeId, key: &[u8], word: u64) {
        self.revisits.push(tree, key, word);
    }

    pub(crate) fn take_buffers(&self) -> Box<Buffers> {
        let kept = self.buffers.lock().pop();
        kept.unwrap_or_else(|| Box::new(Buffers::new()))
    }

    pub(crate) fn give_back_buffers(&self, buffers: Box<Buffers>) {
        let mut kept = self.buffers.lock();
        if kept.len() < BUFFERS_KEPT && buffers.is_worth_keeping() {
            kept.push(buffers);
        }
    }

    /// An empty batch for a scan.
    pub(crate) fn take_batch(&self) -> Batch {
        self.batches.lock().pop().unwrap_or_default()
    }

    /// A scan has ended: its batch serves another one.
    pub(crate) fn give_back_batch(&self, mut batch: Batch) {
        batch.clear();
        if batch.bytes_mut().capacity() > BATCH_BYTES_KEPT {
            return;
        }
        let mut kept = self.batches.lock();
        if kept.len() < BATCHES_KEPT {
            kept.push(batch);
        }
    }

    /// The engine is being shut down: no new changes.
    pub(crate) fn begin_stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.purge_wanted.set();
        self.checkpoint_wanted.set();
        self.statistics_wanted.set();
        self.drops.wake();
        self.thinning.wake();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// What makes the database larger is refused in time, so that what was acknowledged can be
    /// written, and deletes have room to work.
    #[inline]
    pub(crate) fn refuse_when_short_of_space(&self) -> Result<()> {
        if self.is_short_of_space() {
            return self.wait_for_space();
        }
        Ok(())
    }

    fn is_short_of_space(&self) -> bool {
        self.store.is_short_of_space() || self.wal.is_short_of_space()
    }

    /// Waits for what collection and checkpoints give back, for a while; not where only deletes
    /// would help.
    #[cold]
    fn wait_for_space(&self) -> Result<()> {
        let begun = runtime::now();
        while self.is_short_of_space() {
            // The log asks for space again only when it is asked.
            self.wal.retry_space();
            // What deletes have left of a page takes less than the page did, once it is written.
            self.store.hasten_for_space();
            let is_over = begun.elapsed() >= GROWTH_WAIT_MAX || self.is_stopping();
            if is_over || self.store.is_at_its_end() {
                base::probe!("engine.growth_refused");
                self.tell_of_refusal();
                return Err(EngineError::DiskFull);
            }
            base::probe!("engine.growth_waited_for_space");
            self.checkpoint_wanted.set();
            runtime::sleep(GROWTH_WAIT_STEP);
        }
        Ok(())
    }

    #[cold]
    fn tell_of_refusal(&self) {
        self.space_notice.tell(|| {
            let datadir = &self.options.datadir;
            let size = runtime::fs::file_system_size(datadir);
            let left_kib = size.map_or(0, |size| size.available_bytes >> 10);
            format!(
                "the disk is full: statements that add data are refused (error 1114) until the \
                 file system of {}, which has {left_kib} KiB left, has more room, or DELETE, DROP \
                 or TRUNCATE have made some; what is left is kept for these",
                datadir.display()
            )
        });
    }

    /// Where the disk may become full so much may be logged only that there is room for undoing it:
    /// all that was logged since the oldest transaction that has not ended, at most. A transaction
    /// that has logged `own_bytes` asks.
    #[inline]
    pub(crate) fn refuse_what_cannot_be_undone(&self, own_bytes: u64) -> Result<()> {
        match self.wal.bytes_for_undo(own_bytes) {
            Some(left) => self.refuse_beyond(left),
            None => Ok(()),
        }
    }

    #[cold]
    fn refuse_beyond(&self, left: u64) -> Result<()> {
        if self.note_undoable() <= left {
            return Ok(());
        }
        base::probe!("engine.waits_for_log");
        self.checkpoint_wanted.set();
        let is_enough = || {
            let left = self.wal.bytes_for_undo(u64::MAX);
            left.is_none_or(|left| self.note_undoable() <= left)
        };
        self.wal.wait_for_files(is_enough).map_err(|error| {
            if matches!(error, WalError::DiskFull) {
                self.tell_of_refusal();
            }
            from_log(&error)
        })
    }

    /// Bytes that undoing all transactions would log at most; the log keeps them free.
    pub(crate) fn note_undoable(&self) -> u64 {
        let logged = self.wal.end().get().saturating_sub(self.txn.oldest_active_lsn().get());
        let bytes = UNDO_PARTS * logged;
        self.wal.keep_for_undo(bytes);
        bytes
    }

    pub(crate) fn refuse_when_stopping(&self) -> Result<()> {
        if self.is_stopping() {
            return Err(EngineError::Failed("the engine is shutting down".to_owned()));
        }
        Ok(())
    }
}
