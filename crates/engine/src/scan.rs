//! Scans of an index, clustered or secondary, forward or backward.
//!
//! 1. Entries are copied a leaf at a time and judged one by one; the reader's floor, published
//!    when the cursor was made, keeps the undo they lead to.
//! 2. A secondary entry has its own versions: the snapshot sees the entry exactly when the row it
//!    sees has that key. So a covering scan needs no look at the row.
//! 3. Reads of what is newest (locking reads, READ UNCOMMITTED) look at entry and row at
//!    different times; they compare the entry's key with the row's before they give it.

use crate::error::from_tree;
use crate::range::Interval;
use crate::read::sees_live;
use crate::table::{ROWS_READ, TableParts, effective_lock};
use crate::transaction::{EngineTransaction, own};
use btree::{Batch, DELETED, Direction};
use engine_api::{
    Cursor, Isolation, LockWait, Result, RowBuffer, ScanDirection, ScanOptions, Transaction,
};
use std::ops::Bound;
use std::sync::Arc;
use txn::{LockMode, Seen, WordState};

/// Entries of the first batch; later ones double up to the limit.
const FIRST_BATCH: usize = 16;
const BATCH_ENTRIES: usize = 256;
const BATCH_BYTES: usize = 64 << 10;

/// A scan in progress.
pub(crate) struct EngineCursor {
    table: Arc<TableParts>,
    position: usize,
    covering: bool,
    lock: Option<LockMode>,
    wait: LockWait,
    cursor: btree::Cursor,
    batch: Batch,
    next: usize,
    batch_entries: usize,
    /// Changes of the transaction when the batch was read.
    changes: u64,
    done: bool,
    key: Vec<u8>,
    row_key: Vec<u8>,
}

/// What an entry of the batch is to the reader.
enum Judged {
    Skip,
    /// Visible; for the clustered index the row's payload is in place.
    Visible,
    /// Must be locked and read again.
    Candidate,
}

impl EngineCursor {
    pub(crate) fn new(
        table: Arc<TableParts>,
        trx: &mut EngineTransaction,
        options: ScanOptions,
    ) -> Self {
        let lock = effective_lock(trx, options.lock);
        match lock {
            None => {
                trx.reader();
            }
            Some(_) => trx.trx.protect_reads(),
        }
        let interval = Interval::new(&options.range);
        let forward = options.direction == ScanDirection::Forward;
        let direction = if forward { Direction::Forward } else { Direction::Backward };
        let mut cursor = table.trees[options.index].cursor(direction);
        let low = Bound::Included(interval.low.as_slice());
        let high = interval.high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let (start, stop) = if forward { (low, high) } else { (high, low) };
        cursor.seek(start);
        cursor.stop_at(stop);
        Self {
            position: options.index,
            covering: options.covering && options.index != 0,
            lock,
            wait: options.lock_wait,
            cursor,
            batch: trx.buffers.take_batch(),
            next: 0,
            batch_entries: FIRST_BATCH,
            changes: 0,
            done: interval.empty,
            key: Vec::new(),
            row_key: Vec::new(),
            table,
        }
    }

    /// Reads the next batch; false at the end.
    fn fill(&mut self, trx: &EngineTransaction) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        self.next = 0;
        self.changes = trx.trx.undo_count();
        let more = self.cursor.next_batch(&mut self.batch, self.batch_entries, BATCH_BYTES);
        self.batch_entries = (self.batch_entries * 2).min(BATCH_ENTRIES);
        let more = more.map_err(|error| from_tree(error, || self.table.object(self.position)))?;
        self.done = !more;
        Ok(more)
    }

    /// Judges the entry at `self.next - 1` for a plain read. The clustered row goes to `row`.
    fn judge_plain(&self, trx: &mut EngineTransaction, row: &mut RowBuffer) -> Result<Judged> {
        let item = self.batch.get(self.next - 1);
        let entry = item.entry;
        let reader = trx.reader();
        let EngineTransaction { trx: inner, buffers, core, .. } = trx;
        let at = (entry.flags, entry.word, entry.payload);
        let (flags, payload) = match inner.version(&reader, at, &mut buffers.older) {
            Seen::Current => (entry.flags, entry.payload),
            Seen::Older { flags } => (flags, buffers.older.as_slice()),
            Seen::Absent => return Ok(Judged::Skip),
            Seen::Damaged => {
                return Err(self.table.corrupt(self.position, "undo does not fit the entry"));
            }
        };
        if flags & DELETED != 0 {
            let tree = self.table.trees[self.position].id();
            core.visit_deleted(tree, item.key, entry.flags, entry.word);
            return Ok(Judged::Skip);
        }
        if self.position == 0 {
            row.payload.clear();
            row.payload.extend_from_slice(payload);
        }
        Ok(Judged::Visible)
    }

    /// Judges the entry at `self.next - 1` for a locking read.
    fn judge_locking(&self, trx: &mut EngineTransaction) -> Result<Judged> {
        let item = self.batch.get(self.next - 1);
        let entry = item.entry;
        if entry.flags & DELETED == 0 {
            return Ok(Judged::Candidate);
        }
        match trx.trx.word_state(entry.word) {
            WordState::Active(_) | WordState::Stale => return Ok(Judged::Candidate),
            WordState::Committed(at) => {
                // The snapshot may still have what was deleted.
                if let Some(limit) = trx.conflict_snapshot().filter(|limit| at > *limit) {
                    let at = (entry.flags, entry.word, entry.payload);
                    if sees_live(&mut trx.trx, limit, at, &mut trx.buffers.older) {
                        return Err(trx.write_conflict());
                    }
                }
            }
            WordState::Frozen | WordState::Own => {}
        }
        let tree = self.table.trees[self.position].id();
        trx.core.visit_deleted(tree, item.key, entry.flags, entry.word);
        Ok(Judged::Skip)
    }

    /// Fetches the row of the visible or candidate entry whose key is `self.key`.
    fn fetch(&mut self, trx: &mut EngineTransaction, row: &mut RowBuffer) -> Result<bool> {
        let split = match self.position {
            0 => 0,
            position => self.table.keys.split(position, &self.key)?.own_bytes,
        };
        let clustered = &self.key[split..];
        let found = match self.lock {
            Some(mode) => self.table.read_locked(trx, clustered, mode, self.wait, row)?,
            None => self.table.read_plain(trx, clustered, row)?,
        };
        row.key.clear();
        row.key.extend_from_slice(clustered);
        if self.position == 0 {
            return Ok(found);
        }
        let newest = self.lock.is_some()
            || trx.options.isolation == Isolation::ReadUncommitted
            || self.changes != trx.trx.undo_count();
        if !newest {
            return if found { Ok(true) } else { Err(self.table.corrupt(self.position, "no row")) };
        }
        if !found {
            return Ok(false);
        }
        self.table.keys.secondary_key(self.position, row, &mut self.row_key)?;
        if self.row_key != self.key {
            if self.lock.is_some() && std::mem::take(&mut trx.last_lock_is_new) {
                trx.trx.unlock(self.table.trees[0].id(), &row.key);
            }
            return Ok(false);
        }
        Ok(true)
    }

    /// Looks at the next entry; `None` if it gives no row.
    fn step(&mut self, trx: &mut EngineTransaction, row: &mut RowBuffer) -> Result<bool> {
        let judged = match self.lock {
            None => self.judge_plain(trx, row)?,
            Some(_) => self.judge_locking(trx)?,
        };
        let item = self.batch.get(self.next - 1);
        match judged {
            Judged::Skip => return Ok(false),
            Judged::Visible if self.position == 0 || self.covering => {
                row.key.clear();
                row.key.extend_from_slice(item.key);
                if self.position != 0 {
                    row.payload.clear();
                }
                return Ok(true);
            }
            Judged::Visible | Judged::Candidate => {
                self.key.clear();
                self.key.extend_from_slice(item.key);
            }
        }
        let found = self.fetch(trx, row)?;
        if found && self.covering {
            row.key.clear();
            row.key.extend_from_slice(&self.key);
            row.payload.clear();
        }
        Ok(found)
    }
}

impl Cursor for EngineCursor {
    fn next(&mut self, trx: &mut dyn Transaction, row: &mut RowBuffer) -> Result<bool> {
        let trx = own(trx);
        loop {
            if self.next >= self.batch.len() && !self.fill(trx)? {
                trx.buffers.give_back_batch(std::mem::take(&mut self.batch));
                self.next = 0;
                return Ok(false);
            }
            self.next += 1;
            if self.step(trx, row)? {
                ROWS_READ.add(1);
                return Ok(true);
            }
        }
    }
}
