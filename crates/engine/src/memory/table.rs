//! Tables and scans of the model.

use crate::counters::first_and_after;
use crate::keys::TableKeys;
use crate::memory::state::{Blocked, Shared, State};
use crate::memory::{MemoryTransaction, own};
use crate::range::Interval;
use base::TreeId;
use engine_api::{
    Cursor, DuplicateKey, EngineError, Isolation, KeyRange, LockMode, LockWait, Result, RowBatch,
    RowBuffer, ScanDirection, ScanOptions, Statistics, Table, TableDefinition, TableFinding,
    Transaction,
};
use std::ops::Bound;
use std::sync::Arc;

pub(crate) struct MemoryTable {
    shared: Arc<Shared>,
    definition: Arc<TableDefinition>,
    keys: Arc<TableKeys>,
}

type Nested = Result<std::result::Result<(), DuplicateKey>>;

/// Locks an entry exclusively and runs `f` with the state.
pub(crate) fn lock_and<R>(
    shared: &Shared,
    trx: &mut MemoryTransaction,
    tree: TreeId,
    key: &[u8],
    f: impl FnOnce(&mut State, &mut MemoryTransaction) -> Result<R>,
) -> Result<R> {
    let mut state = shared.lock();
    if lock_row(&mut state, trx, tree, key, true)? {
        f(&mut state, trx)
    } else {
        Err(EngineError::LockWaitTimeout)
    }
}

/// One try; false when another transaction holds the row.
fn lock_row(
    state: &mut State,
    trx: &mut MemoryTransaction,
    tree: TreeId,
    key: &[u8],
    exclusive: bool,
) -> Result<bool> {
    let checks =
        trx.options.snapshot_isolation && trx.options.isolation == Isolation::RepeatableRead;
    let snapshot = trx.snapshot.filter(|_| checks);
    match state.try_lock(trx.id, tree, key, exclusive, snapshot) {
        Ok(()) => Ok(true),
        Err(Blocked::Held) => Ok(false),
        Err(Blocked::ChangedSince) => Err(trx.conflict(state)),
    }
}

/// A live row with the same own parts in a unique index; the transaction's and committed ones.
fn duplicate(
    state: &State,
    keys: &TableKeys,
    position: usize,
    tree: TreeId,
    key: &[u8],
) -> Result<Option<DuplicateKey>> {
    let split = keys.split(position, key)?;
    if split.has_null {
        return Ok(None);
    }
    let interval = Interval::new(&KeyRange::prefix(key[..split.own_bytes].to_vec()));
    for other in state.trees[&tree].range(interval.low.clone()..).map(|(key, _)| key) {
        if !interval.before_end(other) {
            break;
        }
        if state.read(tree, other, u64::MAX, 0).is_some() {
            return keys.duplicate(position, other).map(Some);
        }
    }
    Ok(None)
}

/// Fills a new index from the rows that are there.
pub(crate) fn build(
    state: &mut State,
    trx: &mut MemoryTransaction,
    table: &TableDefinition,
    position: usize,
) -> Nested {
    let keys = TableKeys::new(table);
    let clustered = table.indexes[0].tree;
    let tree = table.indexes[position].tree;
    let rows: Vec<Vec<u8>> = state.trees[&clustered].keys().cloned().collect();
    let mut secondary = Vec::new();
    for key in rows {
        let Some(payload) = state.read(clustered, &key, u64::MAX, trx.id) else { continue };
        let row = RowBuffer { payload: payload.to_vec(), key };
        keys.secondary_key(position, &row, &mut secondary)?;
        if table.indexes[position].unique
            && let Some(found) = duplicate(state, &keys, position, tree, &secondary)?
        {
            return Ok(Err(found));
        }
        state.write(trx, tree, &secondary, Some(Vec::new()));
    }
    Ok(Ok(()))
}

impl MemoryTable {
    pub(crate) fn new(shared: Arc<Shared>, definition: Arc<TableDefinition>) -> Self {
        let keys = Arc::new(TableKeys::new(&definition));
        Self { shared, definition, keys }
    }

    fn tree(&self, position: usize) -> TreeId {
        self.definition.indexes[position].tree
    }

    /// Tells a duplicate in any index; secondary keys equal to `old`'s are left out.
    fn find_duplicate(
        &self,
        state: &State,
        row: &RowBuffer,
        old: Option<&RowBuffer>,
    ) -> Result<Option<DuplicateKey>> {
        if old.is_none_or(|old| old.key != row.key)
            && state.read(self.tree(0), &row.key, u64::MAX, 0).is_some()
        {
            return Ok(Some(DuplicateKey { index: 0, clustered_key: row.key.clone() }));
        }
        let (mut key, mut old_key) = (Vec::new(), Vec::new());
        for (position, index) in self.definition.indexes.iter().enumerate().skip(1) {
            if !index.unique {
                continue;
            }
            self.keys.secondary_key(position, row, &mut key)?;
            let found = duplicate(state, &self.keys, position, index.tree, &key)?;
            if let (Some(old), Some(found)) = (old, &found) {
                self.keys.secondary_key(position, old, &mut old_key)?;
                let same = found.clustered_key == old.key
                    && state.read(index.tree, &old_key, u64::MAX, 0).is_some();
                if same {
                    continue;
                }
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn put_secondary(
        &self,
        state: &mut State,
        trx: &mut MemoryTransaction,
        row: &RowBuffer,
        present: bool,
    ) -> Result<()> {
        let mut key = Vec::new();
        for position in 1..self.definition.indexes.len() {
            self.keys.secondary_key(position, row, &mut key)?;
            state.write(trx, self.tree(position), &key, present.then(Vec::new));
        }
        Ok(())
    }

    fn insert_now(
        &self,
        state: &mut State,
        trx: &mut MemoryTransaction,
        row: &RowBuffer,
    ) -> Nested {
        if let Some(found) = self.find_duplicate(state, row, None)? {
            return Ok(Err(found));
        }
        state.write(trx, self.tree(0), &row.key, Some(row.payload.clone()));
        self.put_secondary(state, trx, row, true)?;
        Ok(Ok(()))
    }

    fn update_now(
        &self,
        state: &mut State,
        trx: &mut MemoryTransaction,
        old: &RowBuffer,
        new: &RowBuffer,
    ) -> Nested {
        if let Some(found) = self.find_duplicate(state, new, Some(old))? {
            return Ok(Err(found));
        }
        self.put_secondary(state, trx, old, false)?;
        if old.key != new.key {
            state.write(trx, self.tree(0), &old.key, None);
        }
        state.write(trx, self.tree(0), &new.key, Some(new.payload.clone()));
        self.put_secondary(state, trx, new, true)?;
        Ok(Ok(()))
    }

    fn row_id(&self) -> u64 {
        let mut state = self.shared.lock();
        let next = state.row_ids.entry(self.definition.id.get()).or_insert(0);
        *next += 1;
        *next
    }
}

impl Table for MemoryTable {
    fn definition(&self) -> &Arc<TableDefinition> {
        &self.definition
    }

    fn insert(&self, trx: &mut dyn Transaction, row: &mut RowBuffer) -> Nested {
        if self.definition.hidden_row_id {
            row.key = self.row_id().to_be_bytes().to_vec();
        }
        lock_and(&self.shared, own(trx), self.tree(0), &row.key, |state, trx| {
            self.insert_now(state, trx, row)
        })
    }

    fn update(&self, trx: &mut dyn Transaction, old: &RowBuffer, new: &RowBuffer) -> Nested {
        let trx = own(trx);
        lock_and(&self.shared, trx, self.tree(0), &old.key, |_, _| Ok(()))?;
        lock_and(&self.shared, trx, self.tree(0), &new.key, |state, trx| {
            self.update_now(state, trx, old, new)
        })
    }

    fn delete(&self, trx: &mut dyn Transaction, row: &RowBuffer) -> Result<()> {
        lock_and(&self.shared, own(trx), self.tree(0), &row.key, |state, trx| {
            state.write(trx, self.tree(0), &row.key, None);
            self.put_secondary(state, trx, row, false)
        })
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
        let mut state = self.shared.lock();
        match read_row(&mut state, trx, self.tree(0), clustered_key, lock, row)? {
            Some(found) => Ok(found),
            None if wait == LockWait::SkipLocked => Ok(false),
            None if wait == LockWait::NoWait => Err(EngineError::LockNotAvailable),
            None => Err(EngineError::LockWaitTimeout),
        }
    }

    fn scan(&self, trx: &mut dyn Transaction, options: ScanOptions) -> Result<Box<dyn Cursor>> {
        let trx = own(trx);
        if options.lock == LockMode::None && trx.options.isolation != Isolation::Serializable {
            trx.snapshot(&mut self.shared.lock());
        }
        let mut interval = Interval::new(&options.range);
        if interval.empty {
            interval.high = Some(Vec::new());
        }
        Ok(Box::new(MemoryCursor {
            table: Self {
                shared: self.shared.clone(),
                definition: self.definition.clone(),
                keys: self.keys.clone(),
            },
            tree: self.tree(options.index),
            interval,
            position: None,
            options,
        }))
    }

    fn unlock_row(&self, trx: &mut dyn Transaction, row: &RowBuffer) {
        let trx = own(trx);
        self.shared.lock().unlock(trx.id, self.tree(0), &row.key);
    }

    fn reserve_auto_increment(&self, count: u64, increment: u64, offset: u64) -> Result<u64> {
        let mut state = self.shared.lock();
        let next = state.auto_increment.entry(self.definition.id.get()).or_insert(1);
        let (first, after) = first_and_after(*next, count, increment, offset);
        *next = after;
        Ok(first)
    }

    fn observe_auto_increment(&self, value: u64) -> Result<()> {
        let mut state = self.shared.lock();
        let next = state.auto_increment.entry(self.definition.id.get()).or_insert(1);
        *next = (*next).max(value.saturating_add(1));
        Ok(())
    }

    fn next_auto_increment(&self) -> u64 {
        *self.shared.lock().auto_increment.entry(self.definition.id.get()).or_insert(1)
    }

    fn set_auto_increment(&self, value: u64) -> Result<()> {
        self.shared.lock().auto_increment.insert(self.definition.id.get(), value.max(1));
        Ok(())
    }

    fn changes(&self) -> u64 {
        0
    }

    fn statistics(&self) -> Statistics {
        let state = self.shared.lock();
        let rows = state.trees.get(&self.tree(0)).map_or(0, |tree| tree.len() as u64);
        let distinct = self.definition.indexes.iter().map(|index| {
            index
                .parts
                .iter()
                .enumerate()
                .map(|(n, _)| (rows >> (index.parts.len() - 1 - n)).max(1))
        });
        Statistics {
            rows,
            data_bytes: rows * 100,
            index_bytes: rows * 20,
            distinct: distinct.map(Iterator::collect).collect(),
        }
    }

    fn estimate_range(&self, index: usize, range: &KeyRange) -> u64 {
        let state = self.shared.lock();
        let interval = Interval::new(range);
        if interval.empty {
            return 0;
        }
        let keys = state.trees[&self.tree(index)].range(interval.low.clone()..);
        keys.take_while(|(key, _)| interval.before_end(key)).count() as u64
    }

    fn check(&self) -> Result<Vec<TableFinding>> {
        Ok(Vec::new())
    }
}

/// Reads one clustered row; `None` when it is locked by another transaction.
fn read_row(
    state: &mut State,
    trx: &mut MemoryTransaction,
    tree: TreeId,
    key: &[u8],
    lock: LockMode,
    row: &mut RowBuffer,
) -> Result<Option<bool>> {
    let serializable = trx.options.isolation == Isolation::Serializable;
    let snapshot = if lock == LockMode::None && !serializable {
        trx.snapshot(state)
    } else {
        if !lock_row(state, trx, tree, key, lock == LockMode::Exclusive)? {
            return Ok(None);
        }
        u64::MAX
    };
    let Some(payload) = state.read(tree, key, snapshot, trx.id) else { return Ok(Some(false)) };
    row.payload.clear();
    row.payload.extend_from_slice(payload);
    row.key.clear();
    row.key.extend_from_slice(key);
    Ok(Some(true))
}

struct MemoryCursor {
    table: MemoryTable,
    tree: TreeId,
    interval: Interval,
    /// Last key looked at.
    position: Option<Vec<u8>>,
    options: ScanOptions,
}

impl MemoryCursor {
    fn next_key(&self, state: &State) -> Option<Vec<u8>> {
        let tree = state.trees.get(&self.tree)?;
        let low = Bound::Included(self.interval.low.clone());
        let high = self.interval.high.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let position = self.position.clone();
        match self.options.direction {
            ScanDirection::Forward => {
                let from = position.map_or(low, Bound::Excluded);
                let (key, _) = tree.range((from, Bound::Unbounded)).next()?;
                self.interval.before_end(key).then(|| key.clone())
            }
            ScanDirection::Backward => {
                let to = position.map_or(high, Bound::Excluded);
                let (key, _) = tree.range((Bound::Unbounded, to)).next_back()?;
                (*key >= self.interval.low).then(|| key.clone())
            }
        }
    }

    /// Whether the snapshot (or, for a locking read, the newest state) has the index entry.
    fn entry_visible(&self, state: &mut State, trx: &mut MemoryTransaction, key: &[u8]) -> bool {
        let plain =
            self.options.lock == LockMode::None && trx.options.isolation != Isolation::Serializable;
        let snapshot = if plain { trx.snapshot(state) } else { u64::MAX };
        state.read(self.tree, key, snapshot, trx.id).is_some()
    }
}

impl Cursor for MemoryCursor {
    fn next_rows(&mut self, trx: &mut dyn Transaction, rows: &mut RowBatch) -> Result<bool> {
        rows.clear();
        let mut row = RowBuffer::default();
        let found = self.next(trx, &mut row)?;
        if found {
            rows.push(row.as_row());
        }
        Ok(found)
    }

    fn next(&mut self, trx: &mut dyn Transaction, row: &mut RowBuffer) -> Result<bool> {
        loop {
            let key = {
                let mut state = self.table.shared.lock();
                let Some(key) = self.next_key(&state) else { return Ok(false) };
                self.position = Some(key.clone());
                if !self.entry_visible(&mut state, own(trx), &key) {
                    continue;
                }
                key
            };
            let position = self.options.index;
            let mut clustered = Vec::new();
            match position {
                0 => clustered.extend_from_slice(&key),
                _ => self.table.keys.clustered_key(position, &key, &mut clustered)?,
            }
            let (lock, wait) = (self.options.lock, self.options.lock_wait);
            if !self.table.get(trx, &clustered, lock, wait, row)? {
                continue;
            }
            if position != 0 && self.options.covering {
                row.key = key;
                row.payload.clear();
            }
            return Ok(true);
        }
    }
}
