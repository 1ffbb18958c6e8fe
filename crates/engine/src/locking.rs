//! Reads that keep what they have read from changing and from growing: REPEATABLE READ's and
//! SERIALIZABLE's locking reads, with InnoDB's rules of which gaps and entries are locked.
//!
//! 1. An entry that a scan passes is locked with the gap before it (next-key). Of a whole clustered
//!    key the entry alone is locked; so is the first entry of a clustered scan that begins with
//!    exactly its key. Nothing is locked behind the only entry that a unique value can have.
//! 2. Where one value was asked for, the first entry behind it is not locked, only the gap before
//!    it. Behind a range the entry is locked too; under snapshot isolation, where that could only
//!    be a conflict over a row that is not read, it is not. Its row is not locked in an index that
//!    is not the clustered one.
//! 3. A scan backward locks the gap behind its first entry as well.
//! 4. What is not there is locked as the gap where it would be; not where the transaction is one
//!    statement that looks for this key alone, and is over.
//! 5. A gap is locked before the entry is waited for, and only while nothing was inserted since the
//!    entries were read; otherwise they are read again.
//! 6. An entry of a secondary index is locked by its own key, then the row by the clustered one. A
//!    covering scan that reads under shared locks leaves the row alone.

use crate::error::from_tree;
use crate::lock_entry::{EntryLock, behind};
use crate::range::{Interval, after_prefix};
use crate::read::sees_live;
use crate::table::{ROWS_READ, TableParts};
use crate::transaction::{EngineTransaction, own};
use btree::{Batch, DELETED, Direction};
use engine_api::{
    Cursor, LockWait, Result, RowBatch, RowBuffer, ScanDirection, ScanOptions, Transaction,
};
use std::ops::Bound;
use std::sync::Arc;
use txn::{LockMode, WordState};

/// Entries of the first batch; later ones double up to the limit.
const FIRST_BATCH: usize = 2;
const BATCH_ENTRIES: usize = 256;
const BATCH_BYTES: usize = 32 << 10;

/// How an entry is locked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Entry and the gap before it.
    NextKey,
    /// The entry alone.
    Entry,
    /// The gap alone.
    Gap,
}

/// A scan in progress.
pub(crate) struct LockingCursor {
    table: Arc<TableParts>,
    position: usize,
    covering: bool,
    mode: LockMode,
    wait: LockWait,
    interval: Interval,
    forward: bool,
    /// All keys with one prefix were asked for.
    exact: bool,
    /// The smallest key asked for is asked for itself.
    starts_at_low: bool,
    cursor: btree::Cursor,
    batch: Batch,
    next: usize,
    batch_entries: usize,
    inserts: u64,
    started: bool,
    done: bool,
    /// Where the entries not yet looked at begin: forward the smallest key, backward the key above
    /// (`None`: the end of the tree).
    place: Option<Vec<u8>>,
    /// Where the gap not yet locked begins, in the same way.
    edge: Option<Vec<u8>>,
    /// The gap up to this entry was locked before the entry was read.
    secured: Option<Vec<u8>>,
    key: Vec<u8>,
    row_key: Vec<u8>,
    row: RowBuffer,
}

impl LockingCursor {
    pub(crate) fn new(
        table: Arc<TableParts>,
        trx: &mut EngineTransaction,
        options: ScanOptions,
        mode: LockMode,
    ) -> Self {
        trx.trx.protect_reads();
        let interval = Interval::new(&options.range);
        let forward = options.direction == ScanDirection::Forward;
        let direction = if forward { Direction::Forward } else { Direction::Backward };
        let mut cursor = table.trees[options.index].cursor(direction);
        cursor.leave_values();
        let range = &options.range;
        Self {
            position: options.index,
            covering: options.covering && options.index != 0,
            mode,
            wait: options.lock_wait,
            forward,
            exact: !interval.low.is_empty() && after_prefix(&interval.low) == interval.high,
            starts_at_low: matches!(range.lower, Bound::Included(_)),
            cursor,
            batch: trx.core.take_batch(),
            next: 0,
            batch_entries: FIRST_BATCH,
            inserts: 0,
            started: false,
            done: interval.empty,
            place: None,
            edge: None,
            secured: None,
            interval,
            key: Vec::new(),
            row_key: Vec::new(),
            row: RowBuffer::default(),
            table,
        }
    }

    fn start(&mut self, trx: &mut EngineTransaction) -> Result<()> {
        self.started = true;
        trx.trx.watch_gaps(self.table.trees[self.position].id());
        if self.forward {
            self.edge = match self.interval.low.is_empty() {
                true => None,
                false => self.table.key_below(self.position, &self.interval.low)?,
            };
            self.edge = self.edge.as_deref().map(behind);
            self.place = Some(self.interval.low.clone());
        } else if let Some(high) = &self.interval.high {
            self.edge = self.table.key_from(self.position, high)?;
            self.place = Some(high.clone());
        }
        Ok(())
    }

    /// Reads the next batch; false at the end of the tree.
    fn fill(&mut self, trx: &mut EngineTransaction) -> Result<bool> {
        trx.refuse_when_half_undone()?;
        self.next = 0;
        self.inserts = trx.trx.watch_gaps(self.table.trees[self.position].id());
        self.cursor.seek(match (&self.place, self.forward) {
            (Some(key), true) => Bound::Included(key.as_slice()),
            (Some(key), false) => Bound::Excluded(key.as_slice()),
            (None, _) => Bound::Unbounded,
        });
        let more = self.cursor.next_batch(&mut self.batch, self.batch_entries, BATCH_BYTES);
        self.batch_entries = (self.batch_entries * 2).min(BATCH_ENTRIES);
        more.map_err(|error| from_tree(error, || self.table.object(self.position)))
    }

    /// Locks the gap between the edge and the entry (`None`: the end of the tree), and the entry's
    /// own key if it is `included`. False: the entries are to be read again.
    fn lock_gap(
        &mut self,
        trx: &mut EngineTransaction,
        entry: Option<&[u8]>,
        included: bool,
    ) -> Result<bool> {
        let tree = self.table.trees[self.position].id();
        let (low, high) = if self.forward {
            let high = entry.map(|key| if included { behind(key) } else { key.to_vec() });
            (self.edge.clone().unwrap_or_default(), high)
        } else {
            let below = match entry {
                None => None,
                Some(_) if self.next + 1 < self.batch.len() => {
                    Some(self.batch.get(self.next + 1).key.to_vec())
                }
                Some(key) => self.table.key_below(self.position, key)?,
            };
            (below.as_deref().map(behind).unwrap_or_default(), self.edge.clone())
        };
        let is_secured = self.secured.take().is_some_and(|key| Some(key.as_slice()) == entry);
        let inserts = (!is_secured).then_some(self.inserts);
        let locked = trx.trx.lock_gap(tree, &low, high.as_deref(), self.mode, inserts);
        if trx.locked(locked)? {
            return Ok(true);
        }
        base::probe!("engine.gap_read_again");
        let locked = trx.trx.lock_gap(tree, &low, high.as_deref(), self.mode, None);
        trx.locked(locked)?;
        self.secured = entry.map(<[u8]>::to_vec);
        self.batch.clear();
        self.next = 0;
        Ok(false)
    }

    /// How the entry `key` is locked, and whether it is behind the range.
    fn extent(&self, trx: &EngineTransaction, key: &[u8], dead: bool) -> (Extent, bool) {
        let low = &self.interval.low;
        let beyond = match self.forward {
            true => !self.interval.before_end(key),
            false => key < low.as_slice(),
        };
        if beyond {
            let gap = self.exact && self.forward || trx.options.snapshot_isolation;
            return (if gap { Extent::Gap } else { Extent::NextKey }, true);
        }
        let alone = !dead
            && self.position == 0
            && key == low.as_slice()
            && (self.exact || self.forward && self.starts_at_low);
        (if alone { Extent::Entry } else { Extent::NextKey }, false)
    }

    /// Whether the entry is the only one that can have the value asked for.
    fn is_only(&self, key: &[u8]) -> Result<bool> {
        let low = &self.interval.low;
        if !self.exact || self.position == 0 {
            return Ok(self.exact && key == low.as_slice());
        }
        if !self.table.definition.indexes[self.position].unique {
            return Ok(false);
        }
        let split = self.table.keys.split(self.position, key)?;
        Ok(split.own_bytes == low.len() && !split.has_null)
    }

    /// Goes on behind the entry at `self.next`; with `locked` its gap is done with.
    fn pass(&mut self, key: &[u8], locked: bool) {
        self.next += 1;
        let place = if self.forward { behind(key) } else { key.to_vec() };
        if locked {
            self.edge = Some(place.clone());
        }
        self.place = Some(place);
    }

    /// Looks at the next entry; true if `row` is one that was asked for.
    fn step(&mut self, trx: &mut EngineTransaction, row: &mut RowBuffer) -> Result<bool> {
        if self.next >= self.batch.len() && !self.fill(trx)? {
            self.done = self.lock_gap(trx, None, false)?;
            return Ok(false);
        }
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.extend_from_slice(self.batch.get(self.next).key);
        let result = self.take(trx, &key, row);
        self.key = key;
        result
    }

    fn take(
        &mut self,
        trx: &mut EngineTransaction,
        key: &[u8],
        row: &mut RowBuffer,
    ) -> Result<bool> {
        let dead = self.is_dead(trx, key)?;
        let (extent, beyond) = self.extent(trx, key, dead);
        if self.wait == LockWait::SkipLocked && !dead && extent != Extent::Gap {
            let found = self.lock_row(trx, key, beyond, row)?;
            if found && extent == Extent::NextKey && !self.lock_gap(trx, Some(key), true)? {
                return Ok(false);
            }
            self.pass(key, true);
            self.done = beyond;
            return Ok(found && !beyond);
        }
        if extent != Extent::Entry && !self.lock_gap(trx, Some(key), extent != Extent::Gap)? {
            return Ok(false);
        }
        self.pass(key, extent != Extent::Entry || !self.exact);
        self.done = beyond;
        if dead || extent == Extent::Gap {
            return Ok(false);
        }
        let found = self.lock_row(trx, key, beyond, row)?;
        self.done |= found && self.is_only(key)?;
        Ok(found && !beyond)
    }

    /// Whether the entry at `self.next` has been deleted, by a commit or by this transaction.
    fn is_dead(&self, trx: &mut EngineTransaction, key: &[u8]) -> Result<bool> {
        let entry = self.batch.get(self.next).entry;
        if entry.flags & DELETED == 0 {
            return Ok(false);
        }
        match trx.trx.word_state(entry.word) {
            WordState::Active(_) | WordState::Stale => return Ok(false),
            WordState::Committed(at) => {
                // The snapshot may still have what was deleted.
                let in_range = self.interval.before_end(key) && key >= &self.interval.low[..];
                let limit = trx.conflict_snapshot().filter(|limit| in_range && at > *limit);
                if let Some(limit) = limit {
                    let at = (entry.flags, entry.word, entry.payload);
                    if sees_live(&mut trx.trx, limit, at, &mut trx.buffers.older) {
                        return Err(trx.write_conflict());
                    }
                }
            }
            WordState::Frozen | WordState::Own => {}
        }
        let tree = self.table.trees[self.position].id();
        trx.core.visit_deleted(tree, key, entry.flags, entry.word);
        Ok(true)
    }

    /// Locks the entry and its row, and reads it. False if there is none (any more), or it is to
    /// be skipped.
    fn lock_row(
        &mut self,
        trx: &mut EngineTransaction,
        key: &[u8],
        beyond: bool,
        row: &mut RowBuffer,
    ) -> Result<bool> {
        if self.position == 0 {
            let found = self.table.read_locked(trx, key, self.mode, self.wait, row)?;
            row.key.clear();
            row.key.extend_from_slice(key);
            return Ok(found);
        }
        match self.table.lock_entry(trx, self.position, key, (self.mode, self.wait))? {
            EntryLock::Live => {}
            EntryLock::Dead | EntryLock::Skipped => return Ok(false),
        }
        let covered = self.covering && self.mode == LockMode::Shared;
        if covered || beyond {
            self.give_entry(key, row);
            return Ok(true);
        }
        let mut clustered = std::mem::take(&mut row.key);
        self.table.keys.clustered_key(self.position, key, &mut clustered)?;
        let found = self.table.read_locked(trx, &clustered, self.mode, self.wait, row);
        row.key = clustered;
        if !found? {
            return Ok(false);
        }
        self.table.keys.secondary_key(self.position, row, &mut self.row_key)?;
        if self.row_key != key {
            return Ok(false);
        }
        if self.covering {
            self.give_entry(key, row);
        }
        Ok(true)
    }

    fn give_entry(&self, key: &[u8], row: &mut RowBuffer) {
        row.key.clear();
        row.key.extend_from_slice(key);
        row.payload.clear();
    }
}

impl Cursor for LockingCursor {
    fn next(&mut self, trx: &mut dyn Transaction, row: &mut RowBuffer) -> Result<bool> {
        let trx = own(trx);
        if !self.started && !self.done {
            self.start(trx)?;
        }
        while !self.done {
            if self.step(trx, row)? {
                ROWS_READ.add(1);
                return Ok(true);
            }
        }
        trx.core.give_back_batch(std::mem::take(&mut self.batch));
        Ok(false)
    }

    fn next_rows(&mut self, trx: &mut dyn Transaction, rows: &mut RowBatch) -> Result<bool> {
        rows.clear();
        let mut row = std::mem::take(&mut self.row);
        let result = self.next(trx, &mut row);
        if matches!(result, Ok(true)) {
            rows.push(row.as_row());
        }
        self.row = row;
        result
    }
}
