//! An open table: rows in the clustered tree, one tree a secondary index.
//!
//! Order of a change: the clustered entry first (it is the row's lock), then the secondary
//! entries in order of their indexes. What fails half way is undone to where the call began.

use crate::core::Core;
use crate::counters::TableCounters;
use crate::error::from_tree;
use crate::keys::TableKeys;
use crate::locking::LockingCursor;
use crate::range::Interval;
use crate::scan::EngineCursor;
use crate::transaction::{EngineTransaction, own};
use crate::write::{Intent, Written, write_entry};
use base::TrxId;
use base::metrics::Counter;
use btree::{LeafHint, Tree};
use engine_api::{
    ColumnStatistics, CompressionCounts, Cursor, DuplicateKey, EngineError, KeyRange, LockMode,
    LockWait, Result, RowBuffer, ScanOptions, Statistics, StorageUse, Table, TableDefinition,
    TableFinding, TableSizes, Transaction,
};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What `Table` calls that may meet a duplicate return.
pub(crate) type Nested = Result<std::result::Result<(), DuplicateKey>>;

/// The parts of an open table, shared with its cursors.
pub(crate) struct TableParts {
    pub(crate) core: Arc<Core>,
    pub(crate) definition: Arc<TableDefinition>,
    has_compressed_rows: bool,
    pub(crate) keys: TableKeys,
    /// By position in the definition; the first is the clustered tree.
    pub(crate) trees: Vec<Tree>,
    pub(crate) counters: Arc<TableCounters>,
    /// Page of the clustered tree's last leaf when a row was last put there, 0 for none: rows that
    /// come in order need no search.
    append_leaf: AtomicU64,
    /// Pages that the store had read when leaves were last asked for ahead.
    pub(crate) misses_seen: AtomicU64,
}

static ROWS_INSERTED: Counter = Counter::new("rows_inserted", "rows inserted");
static ROWS_UPDATED: Counter = Counter::new("rows_updated", "rows updated");
static ROWS_DELETED: Counter = Counter::new("rows_deleted", "rows deleted");
/// Rows given to readers, by key or by scan.
pub(crate) static ROWS_READ: Counter = Counter::new("rows_read", "rows read");

/// See the head of the file.
pub(crate) struct EngineTable(Arc<TableParts>);

impl Deref for EngineTable {
    type Target = Arc<TableParts>;

    fn deref(&self) -> &Arc<TableParts> {
        &self.0
    }
}

impl EngineTable {
    pub(crate) fn new(core: Arc<Core>, definition: Arc<TableDefinition>) -> Result<Self> {
        let trees = definition.indexes.iter().map(|index| {
            let (id, root, class) = (index.tree, index.root, index.page_class);
            core.open_tree(id, root, class)
        });
        let trees: Vec<Tree> = trees.collect();
        let counters = core.counters.of(definition.id);
        if definition.hidden_row_id {
            counters.prepare_row_ids(&core, &trees[0])?;
        }
        let keys = TableKeys::new(&definition);
        let [append_leaf, misses_seen] = [0, 0].map(AtomicU64::new);
        let class = definition.options.compressed_block_class();
        for index in &definition.indexes {
            core.store.count_compression(index.tree, class);
        }
        let has_compressed_rows = class.is_some();
        let parts = TableParts {
            core,
            definition,
            has_compressed_rows,
            keys,
            trees,
            counters,
            append_leaf,
            misses_seen,
        };
        let parts = Arc::new(parts);
        parts.adopt();
        Ok(Self(parts))
    }
}

impl TableParts {
    /// `innodb_read_only_compressed` forbids changes of such a table.
    fn refuse_when_read_only(&self) -> Result<()> {
        let is_forbidden =
            self.has_compressed_rows && self.core.compressed_rows_read_only.load(Ordering::Relaxed);
        match is_forbidden {
            true => Err(EngineError::ReadOnly),
            false => Ok(()),
        }
    }

    /// Name of the table and an index, for messages.
    pub(crate) fn object(&self, position: usize) -> String {
        let definition = &self.definition;
        let index = definition.indexes.get(position).map_or("?", |index| index.name.as_str());
        format!("{}.{} index {index}", definition.schema, definition.name)
    }

    pub(crate) fn corrupt(&self, position: usize, detail: impl Into<String>) -> EngineError {
        EngineError::Corrupt { object: self.object(position), detail: detail.into() }
    }

    /// Inserts the clustered entry, waiting for whoever has the key.
    fn insert_clustered(&self, trx: &mut EngineTransaction, row: &RowBuffer) -> Nested {
        let snapshot = trx.conflict_snapshot();
        let last = self.append_leaf.load(Ordering::Relaxed);
        let mut is_locked = false;
        loop {
            let intent = Intent::Insert(&row.payload);
            trx.buffers.leaf = LeafHint::of_page(&self.trees[0], last);
            match write_entry(trx, &self.trees[0], &row.key, intent, snapshot)? {
                Written::Done => {
                    let leaf = trx.buffers.leaf;
                    if leaf.is_last() && leaf.page_number() != last {
                        self.append_leaf.store(leaf.page_number(), Ordering::Relaxed);
                    }
                    return Ok(Ok(()));
                }
                Written::Exists if self.lock_duplicate(trx, 0, &row.key)? => {
                    return Ok(Err(DuplicateKey { index: 0, clustered_key: row.key.clone() }));
                }
                // Locked now; it may have changed before.
                Written::Exists => is_locked = true,
                Written::Busy(other) => {
                    // No lock is kept of what another has written (invariant 8 of txn's locks).
                    if std::mem::take(&mut is_locked) {
                        trx.trx.unlock(self.trees[0].id(), &row.key);
                    }
                    self.wait_for(trx, other)?;
                }
                Written::GapLocked => self.wait_to_insert(trx, 0, &row.key)?,
                Written::Conflict | Written::Missing | Written::EntryLocked => {
                    return Err(trx.write_conflict());
                }
            }
        }
    }

    /// Others keep the key out by locks of gaps.
    #[cold]
    pub(crate) fn wait_to_insert(
        &self,
        trx: &mut EngineTransaction,
        position: usize,
        key: &[u8],
    ) -> Result<()> {
        let rule = trx.wait_rule();
        let waited = trx.trx.wait_to_insert(self.trees[position].id(), key, rule);
        trx.locked(waited)
    }

    pub(crate) fn wait_for(&self, trx: &mut EngineTransaction, other: TrxId) -> Result<()> {
        let rule = trx.wait_rule();
        let waited = trx.trx.wait_for(other, rule);
        trx.locked(waited)
    }

    /// Changes an entry that must be there and that nobody else can have changed.
    fn change_held(
        &self,
        trx: &mut EngineTransaction,
        position: usize,
        key: &[u8],
        intent: Intent<'_>,
    ) -> Result<()> {
        loop {
            match write_entry(trx, &self.trees[position], key, intent, None)? {
                Written::Done => return Ok(()),
                Written::Busy(other) => {
                    base::probe!("engine.change_without_lock");
                    self.wait_for(trx, other)?;
                }
                Written::GapLocked => self.wait_to_insert(trx, position, key)?,
                Written::EntryLocked => {
                    let (tree, mode) = (self.trees[position].id(), txn::LockMode::Exclusive);
                    let rule = trx.wait_rule();
                    let locked = trx.trx.lock(tree, key, mode, rule);
                    trx.locked(locked)?;
                }
                other => {
                    let detail = format!("entry to change: {other:?}");
                    return Err(self.corrupt(position, detail));
                }
            }
        }
    }

    /// Inserts a secondary entry; for a unique index under the lock of its own parts, so that
    /// two inserts of the same value cannot both find none.
    fn insert_secondary(&self, trx: &mut EngineTransaction, position: usize, key: &[u8]) -> Nested {
        if self.definition.indexes[position].unique {
            let split = self.keys.split(position, key)?;
            if !split.has_null {
                return self.insert_unique(trx, position, key, split.own_bytes);
            }
        }
        self.change_held(trx, position, key, Intent::Insert(&[])).map(Ok)
    }

    fn insert_row(&self, trx: &mut EngineTransaction, row: &RowBuffer) -> Nested {
        if self.trees.len() > 1 && self.is_read_from_disk() {
            self.read_leaves_ahead(trx, row, 1..self.trees.len())?;
        }
        if let Err(found) = self.insert_clustered(trx, row)? {
            return Ok(Err(found));
        }
        for position in 1..self.trees.len() {
            let mut key = std::mem::take(&mut trx.buffers.key);
            let result = self
                .keys
                .secondary_key(position, row, &mut key)
                .and_then(|()| self.insert_secondary(trx, position, &key));
            trx.buffers.key = key;
            if !matches!(result, Ok(Ok(()))) {
                return result;
            }
        }
        Ok(Ok(()))
    }

    /// Whether the row's entry in the index stays as it is, as far as that is seen without making
    /// both.
    fn is_kept(&self, position: usize, old: &RowBuffer, new: &RowBuffer) -> bool {
        old.key == new.key && self.keys.is_same(position, old, new)
    }

    fn update_row(&self, trx: &mut EngineTransaction, old: &RowBuffer, new: &RowBuffer) -> Nested {
        if self.trees.len() > 1 && self.is_read_from_disk() {
            let changed = (1..self.trees.len()).filter(|&at| !self.is_kept(at, old, new));
            // The first leaf is asked for by its change at once.
            self.read_leaves_ahead(trx, new, changed.clone())?;
            self.read_leaves_ahead(trx, old, changed.skip(1))?;
        }
        if old.key == new.key {
            if old.payload != new.payload {
                self.change_held(trx, 0, &old.key, Intent::Update(&new.payload))?;
            }
        } else {
            self.change_held(trx, 0, &old.key, Intent::Delete)?;
            if let Err(found) = self.insert_clustered(trx, new)? {
                return Ok(Err(found));
            }
        }
        let mut old_key = std::mem::take(&mut trx.buffers.key);
        let mut new_key = std::mem::take(&mut trx.buffers.other_key);
        let result = self.update_secondary(trx, (old, &mut old_key), (new, &mut new_key));
        trx.buffers.key = old_key;
        trx.buffers.other_key = new_key;
        result
    }

    fn update_secondary(
        &self,
        trx: &mut EngineTransaction,
        (old, old_key): (&RowBuffer, &mut Vec<u8>),
        (new, new_key): (&RowBuffer, &mut Vec<u8>),
    ) -> Nested {
        for position in 1..self.trees.len() {
            if self.is_kept(position, old, new) {
                continue;
            }
            self.keys.secondary_key(position, old, old_key)?;
            self.keys.secondary_key(position, new, new_key)?;
            if old_key == new_key {
                continue;
            }
            self.change_held(trx, position, old_key, Intent::Delete)?;
            if let Err(found) = self.insert_secondary(trx, position, new_key)? {
                return Ok(Err(found));
            }
        }
        Ok(Ok(()))
    }

    fn delete_row(&self, trx: &mut EngineTransaction, row: &RowBuffer) -> Result<()> {
        if self.trees.len() > 2 && self.is_read_from_disk() {
            self.read_leaves_ahead(trx, row, 2..self.trees.len())?;
        }
        self.change_held(trx, 0, &row.key, Intent::Delete)?;
        for position in 1..self.trees.len() {
            let mut key = std::mem::take(&mut trx.buffers.key);
            let result = self
                .keys
                .secondary_key(position, row, &mut key)
                .and_then(|()| self.change_held(trx, position, &key, Intent::Delete));
            trx.buffers.key = key;
            result?;
        }
        Ok(())
    }

    /// Runs a change of the row at `key`; unless all of it succeeds, nothing of it stays.
    fn whole<T>(
        &self,
        trx: &mut EngineTransaction,
        key: &[u8],
        change: impl FnOnce(&mut EngineTransaction) -> Result<std::result::Result<T, DuplicateKey>>,
    ) -> Result<std::result::Result<T, DuplicateKey>> {
        trx.prepare_write()?;
        let before = trx.trx.undo_count();
        let result = change(trx);
        let changed = matches!(result, Ok(Ok(_))) && trx.trx.undo_count() > before;
        if changed && std::mem::take(&mut trx.last_lock_is_new) {
            trx.trx.unlock_changed(self.trees[0].id(), key);
        }
        self.counters.note_change();
        let rolled_back = result.as_ref().is_err_and(EngineError::has_ended_transaction);
        if !matches!(result, Ok(Ok(_))) && !rolled_back {
            trx.undo_to(before, true)?;
        }
        result
    }
}

impl Table for EngineTable {
    fn storage(&self) -> Vec<StorageUse> {
        let of = |index| crate::storage::storage_of(&self.core.store, index);
        self.definition.indexes.iter().map(of).collect()
    }

    fn compression_counts(&self, resets: bool) -> Vec<CompressionCounts> {
        let of = |index| crate::storage::counts_of(&self.core.store, index, resets);
        self.definition.indexes.iter().map(of).collect()
    }

    fn compact(&self) -> Result<()> {
        for (position, tree) in self.trees.iter().enumerate() {
            crate::thinning::close_up(&self.core, tree)
                .map_err(|error| from_tree(error, || self.object(position)))?;
        }
        Ok(())
    }

    fn sizes(&self) -> TableSizes {
        let space = self.core.store.space();
        let mut sizes = TableSizes::default();
        let mut own_pages = 0;
        for (position, index) in self.definition.indexes.iter().enumerate() {
            let pages = space.pages_of(index.tree);
            let sum = if position == 0 { &mut sizes.data_bytes } else { &mut sizes.index_bytes };
            *sum += pages << index.page_class;
            own_pages += pages;
        }
        let (live, allocated) = self.core.store.space_in_use();
        let share = own_pages as f64 / space.pages().max(1) as f64;
        sizes.free_bytes = (allocated.saturating_sub(live) as f64 * share) as u64;
        sizes
    }

    fn definition(&self) -> &Arc<TableDefinition> {
        &self.definition
    }

    fn insert(&self, trx: &mut dyn Transaction, row: &mut RowBuffer) -> Nested {
        if self.definition.hidden_row_id {
            row.key.clear();
            row.key.extend_from_slice(&self.counters.next_row_id().to_be_bytes());
        }
        let row = &*row;
        self.refuse_when_read_only()?;
        self.core.refuse_when_short_of_space()?;
        self.core.refuse_what_cannot_be_undone(own(trx).logged_bytes)?;
        ROWS_INSERTED.add(1);
        self.whole(own(trx), &row.key, |trx| self.insert_row(trx, row))
    }

    fn update(&self, trx: &mut dyn Transaction, old: &RowBuffer, new: &RowBuffer) -> Nested {
        self.refuse_when_read_only()?;
        self.core.refuse_when_short_of_space()?;
        self.core.refuse_what_cannot_be_undone(own(trx).logged_bytes)?;
        ROWS_UPDATED.add(1);
        self.whole(own(trx), &old.key, |trx| self.update_row(trx, old, new))
    }

    fn delete(&self, trx: &mut dyn Transaction, row: &RowBuffer) -> Result<()> {
        self.refuse_when_read_only()?;
        self.core.refuse_what_cannot_be_undone(own(trx).logged_bytes)?;
        ROWS_DELETED.add(1);
        let deleted = self.whole(own(trx), &row.key, |trx| self.delete_row(trx, row).map(Ok))?;
        deleted.map_err(|_| self.corrupt(0, "duplicate met by a delete"))
    }

    fn prefetch(&self, clustered_key: &[u8]) {
        self.trees[0].prefetch_leaf(clustered_key);
    }

    fn get(
        &self,
        trx: &mut dyn Transaction,
        clustered_key: &[u8],
        lock: LockMode,
        wait: LockWait,
        row: &mut RowBuffer,
    ) -> Result<bool> {
        let trx = own(trx);
        trx.refuse_when_half_undone()?;
        let found = match effective_lock(trx, lock) {
            None => self.read_plain(trx, clustered_key, row)?,
            Some(mode) => {
                self.read_locked(trx, clustered_key, mode, wait, row)?
                    || trx.locks_gaps()
                        && !trx.forgets_absence
                        && wait != LockWait::SkipLocked
                        && self.lock_absence(trx, clustered_key, mode, wait, row)?
            }
        };
        if found {
            ROWS_READ.add(1);
            row.key.clear();
            row.key.extend_from_slice(clustered_key);
        }
        Ok(found)
    }

    fn scan(&self, trx: &mut dyn Transaction, options: ScanOptions) -> Result<Box<dyn Cursor>> {
        let trx = own(trx);
        trx.refuse_when_half_undone()?;
        match effective_lock(trx, options.lock).filter(|_| trx.locks_gaps()) {
            Some(mode) => Ok(Box::new(LockingCursor::new(self.0.clone(), trx, options, mode))),
            None => Ok(Box::new(EngineCursor::new(self.0.clone(), trx, options))),
        }
    }

    fn unlock_row(&self, trx: &mut dyn Transaction, row: &RowBuffer) {
        let trx = own(trx);
        if !trx.locks_gaps() && std::mem::take(&mut trx.last_lock_is_new) {
            trx.trx.unlock(self.trees[0].id(), &row.key);
        }
    }

    fn reserve_auto_increment(&self, count: u64, increment: u64, offset: u64) -> Result<u64> {
        self.counters.reserve(&self.core, count, increment, offset)
    }

    fn observe_auto_increment(&self, value: u64) -> Result<()> {
        self.counters.observe(&self.core, value)
    }

    fn next_auto_increment(&self) -> u64 {
        self.counters.next()
    }

    fn set_auto_increment(&self, value: u64) -> Result<()> {
        self.counters.set(&self.core, value)
    }

    fn statistics(&self) -> Statistics {
        self.collect_statistics()
    }

    fn column_statistics(&self, column: usize) -> Option<Arc<ColumnStatistics>> {
        self.column_estimates(column)
    }

    fn forget_statistics(&self) {
        *self.counters.estimates.statistics.lock() = None;
        *self.counters.estimates.columns.lock() = None;
    }

    fn changes(&self) -> u64 {
        self.counters.changes()
    }

    fn estimate_range(&self, index: usize, range: &KeyRange) -> u64 {
        self.estimate(index, &Interval::new(range))
    }

    fn check(&self) -> Result<Vec<TableFinding>> {
        self.check_table()
    }
}

/// The lock that a read takes: SERIALIZABLE turns plain reads into shared locks.
pub(crate) fn effective_lock(trx: &EngineTransaction, lock: LockMode) -> Option<txn::LockMode> {
    match lock {
        LockMode::None if !trx.plain_reads_lock() => None,
        LockMode::None | LockMode::Shared => Some(txn::LockMode::Shared),
        LockMode::Exclusive => Some(txn::LockMode::Exclusive),
    }
}
