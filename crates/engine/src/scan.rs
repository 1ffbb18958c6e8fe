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
    Cursor, Isolation, LockWait, Result, RowBatch, RowBuffer, ScanDirection, ScanOptions,
    Transaction,
};
use std::ops::Bound;
use std::sync::Arc;
use txn::{LockMode, Seen, WordState};

/// Entries of the first batch; later ones double up to the limit.
const FIRST_BATCH: usize = 16;
const BATCH_ENTRIES: usize = 512;
/// Most rows of a batch that must be fetched one by one.
const FETCHED_ROWS: usize = 256;
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
    /// Rows that the next call of `next_rows` gives if it must fetch them one by one.
    rows_wanted: usize,
    row: RowBuffer,
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
        // A range with two ends is wanted as a whole, of others often only the first rows are.
        let bounded = !interval.low.is_empty() && interval.high.is_some();
        cursor.seek(start);
        cursor.stop_at(stop);
        Self {
            position: options.index,
            covering: options.covering && options.index != 0,
            lock,
            wait: options.lock_wait,
            cursor,
            batch: trx.core.take_batch(),
            next: 0,
            batch_entries: if bounded { BATCH_ENTRIES } else { FIRST_BATCH },
            changes: 0,
            done: interval.empty,
            key: Vec::new(),
            row_key: Vec::new(),
            rows_wanted: 1,
            row: RowBuffer::default(),
            table,
        }
    }

    /// Reads the next batch; false at the end.
    fn fill(&mut self, trx: &EngineTransaction) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        trx.refuse_when_half_undone()?;
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
        let buffers = &mut **buffers;
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
        let mut clustered = std::mem::take(&mut row.key);
        if self.position == 0 {
            clustered.clear();
            clustered.extend_from_slice(&self.key);
        } else {
            self.table.keys.clustered_key(self.position, &self.key, &mut clustered)?;
        }
        let found = match self.lock {
            Some(mode) => self.table.read_locked(trx, &clustered, mode, self.wait, row),
            None => self.table.read_plain(trx, &clustered, row),
        };
        row.key = clustered;
        let found = found?;
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
        trx.has_waited = false;
        let found = self.fetch(trx, row)?;
        if trx.has_waited {
            // What came behind the row meanwhile is seen.
            self.cursor.seek(Bound::Excluded(&self.key));
            self.batch.clear();
            self.next = 0;
            self.done = false;
        }
        if found && self.covering {
            row.key.clear();
            row.key.extend_from_slice(&self.key);
            row.payload.clear();
        }
        Ok(found)
    }
}

impl EngineCursor {
    /// Whether the entries themselves are what the reader gets.
    fn gives_entries(&self) -> bool {
        self.lock.is_none() && (self.position == 0 || self.covering)
    }

    /// Rows that must be looked at one by one. A plain read gives more from call to call: few are
    /// read in vain if the reader wants few.
    fn next_fetched(&mut self, trx: &mut dyn Transaction, rows: &mut RowBatch) -> Result<bool> {
        rows.clear();
        let wanted = self.rows_wanted;
        if self.lock.is_none() {
            self.rows_wanted = (wanted * 2).min(FETCHED_ROWS);
        }
        let mut row = std::mem::take(&mut self.row);
        let mut result = Ok(true);
        while rows.len() < wanted && rows.byte_len() < BATCH_BYTES {
            result = self.next(trx, &mut row);
            if !matches!(result, Ok(true)) {
                break;
            }
            rows.push(row.as_row());
        }
        self.row = row;
        result.map(|_| !rows.is_empty())
    }

    /// Judges the rest of the batch for a plain read and moves what is visible, with the memory
    /// it lies in, into `rows`.
    fn take_visible(&mut self, trx: &mut EngineTransaction, rows: &mut RowBatch) -> Result<()> {
        rows.clear();
        let reader = trx.reader();
        let EngineTransaction { trx: inner, buffers, core, .. } = trx;
        let buffers = &mut **buffers;
        let tree = self.table.trees[self.position].id();
        // Older versions follow behind the entries' own bytes.
        let own_bytes = self.batch.byte_len();
        rows.reserve(self.batch.len() - self.next);
        for index in self.next..self.batch.len() {
            let (flags, word) = self.batch.state(index);
            let (key, mut payload) = self.batch.place(index);
            let stored = self.batch.payload(index);
            let flags = match inner.version(&reader, (flags, word, stored), &mut buffers.older) {
                Seen::Current => flags,
                Seen::Absent => continue,
                Seen::Older { flags } => {
                    let kept = rows.bytes_mut();
                    let start = own_bytes + kept.len();
                    kept.extend_from_slice(&buffers.older);
                    payload = start..own_bytes + kept.len();
                    flags
                }
                Seen::Damaged => {
                    return Err(self.table.corrupt(self.position, "undo does not fit the entry"));
                }
            };
            if flags & DELETED != 0 {
                let item = self.batch.get(index);
                core.visit_deleted(tree, item.key, item.entry.flags, word);
                continue;
            }
            // In a covering scan the key is all there is.
            rows.push_place(key, if self.position == 0 { payload } else { 0..0 });
        }
        let bytes = self.batch.bytes_mut();
        bytes.extend_from_slice(rows.bytes_mut());
        std::mem::swap(bytes, rows.bytes_mut());
        self.batch.clear();
        self.next = 0;
        Ok(())
    }
}

impl Cursor for EngineCursor {
    fn next_rows(&mut self, trx: &mut dyn Transaction, rows: &mut RowBatch) -> Result<bool> {
        if !self.gives_entries() {
            return self.next_fetched(trx, rows);
        }
        let trx = own(trx);
        loop {
            if self.next >= self.batch.len() && !self.fill(trx)? {
                // The memory goes back to where the next scan finds it.
                rows.clear();
                std::mem::swap(self.batch.bytes_mut(), rows.bytes_mut());
                trx.core.give_back_batch(std::mem::take(&mut self.batch));
                self.next = 0;
                return Ok(false);
            }
            self.take_visible(trx, rows)?;
            if !rows.is_empty() {
                ROWS_READ.add(rows.len() as u64);
                return Ok(true);
            }
        }
    }

    fn next(&mut self, trx: &mut dyn Transaction, row: &mut RowBuffer) -> Result<bool> {
        let trx = own(trx);
        loop {
            if self.next >= self.batch.len() && !self.fill(trx)? {
                trx.core.give_back_batch(std::mem::take(&mut self.batch));
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
