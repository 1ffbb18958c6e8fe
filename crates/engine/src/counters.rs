//! AUTO_INCREMENT counters and hidden row ids.
//!
//! 1. A counter's new value is in the log before a value below it is used: a commit that used it
//!    is durable only with it, so no value is ever given twice.
//! 2. Records of one counter are appended in the order of its changes; the last one counts.
//! 3. Every checkpoint may write all counters as one record; the log is kept from the latest such
//!    record on.
//! 4. Hidden row ids are not logged: the next is one above the greatest key of the tree.
//!
//! Meta records begin with a tag byte:
//! `1 | table u64 | next u64`, `2 | next tree u32`,
//! `3 | next tree u32 | count u32 | (table u64 | next u64) * count`.

use crate::core::Core;
use crate::error::{from_log, from_tree};
use crate::statistics::Estimates;
use base::{TableId, TrxId};
use btree::{Batch, Direction, Tree};
use engine_api::Result;
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use wal::{LsnRange, RecordBuilder, RecordKind, Wal};

const TAG_COUNTER: u8 = 1;
const TAG_NEXT_TREE: u8 = 2;
const TAG_ALL: u8 = 3;

/// Workers share the cells of a table's changes beyond so many.
const CHANGE_CELLS: usize = 4;
/// A cell tells of its changes each time there are so many.
const CHANGES_TOLD: u64 = 16;

/// Changes counted by some of the workers; a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct ChangeCell(AtomicU64);

/// Counters of one table, shared by all its open handles.
#[derive(Debug)]
pub(crate) struct TableCounters {
    table: TableId,
    next: Mutex<u64>,
    row_id: AtomicU64,
    /// What the cells have told: read by every statement, so rarely written.
    changes: AtomicU64,
    change_cells: [ChangeCell; CHANGE_CELLS],
    pub(crate) estimates: Estimates,
}

/// Counters of all tables, and the next tree number.
#[derive(Debug)]
pub(crate) struct Counters {
    tables: Mutex<BTreeMap<TableId, Arc<TableCounters>>>,
    next_tree: AtomicU32,
}

/// What recovery gathered.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecoveredCounters {
    next: BTreeMap<TableId, u64>,
    next_tree: u32,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

impl RecoveredCounters {
    /// Takes in the logical part of a Meta record; `None` when malformed.
    pub(crate) fn note(&mut self, logical: &[u8]) -> Option<()> {
        match *logical.first()? {
            TAG_COUNTER => {
                self.next.insert(TableId::new(u64_at(logical, 1)?), u64_at(logical, 9)?);
            }
            TAG_NEXT_TREE => self.next_tree = self.next_tree.max(u32_at(logical, 1)?),
            TAG_ALL => {
                self.next_tree = self.next_tree.max(u32_at(logical, 1)?);
                self.next.clear();
                for at in (0..u32_at(logical, 5)? as usize).map(|item| 9 + item * 16) {
                    self.next.insert(TableId::new(u64_at(logical, at)?), u64_at(logical, at + 8)?);
                }
            }
            _ => return None,
        }
        Some(())
    }

    pub(crate) fn raise_next_tree(&mut self, next_tree: u32) {
        self.next_tree = self.next_tree.max(next_tree);
    }
}

impl Counters {
    pub(crate) fn new(recovered: RecoveredCounters) -> Self {
        let counters = |(table, next)| (table, TableCounters::new(table, next));
        Self {
            tables: Mutex::new(recovered.next.into_iter().map(counters).collect()),
            next_tree: AtomicU32::new(recovered.next_tree),
        }
    }

    pub(crate) fn of(&self, table: TableId) -> Arc<TableCounters> {
        self.tables.lock().entry(table).or_insert_with(|| TableCounters::new(table, 0)).clone()
    }

    /// Those of all tables.
    pub(crate) fn all(&self) -> Vec<Arc<TableCounters>> {
        self.tables.lock().values().cloned().collect()
    }

    pub(crate) fn forget(&self, table: TableId) {
        self.tables.lock().remove(&table);
    }

    /// Hands out a tree number, which is never used again.
    pub(crate) fn take_tree(&self, wal: &Arc<Wal>) -> Result<u32> {
        let number = self.next_tree.fetch_add(1, Ordering::SeqCst);
        let mut record = RecordBuilder::new(RecordKind::Meta, TrxId::ZERO);
        record.logical(&[TAG_NEXT_TREE]);
        record.logical(&(number + 1).to_le_bytes());
        let permit = wal.admit(record.stream_len()).map_err(|error| from_log(&error))?;
        wal.append(&permit, &record);
        Ok(number)
    }

    pub(crate) fn next_tree(&self) -> u32 {
        self.next_tree.load(Ordering::SeqCst)
    }

    /// Writes all counters as one record; nothing that a recovery needs of them is before it.
    pub(crate) fn write_all(&self, wal: &Arc<Wal>) -> Result<LsnRange> {
        let tables = self.all();
        let room = 64 + 16 * tables.len();
        let permit = wal.admit_internal(room).map_err(|error| from_log(&error))?;
        // Held over the append, so that no later value gets before the record (rule 2).
        let guards: Vec<_> = tables.iter().map(|it| (it.table, it.next.lock())).collect();
        let mut record = RecordBuilder::new(RecordKind::Meta, TrxId::ZERO);
        record.logical(&[TAG_ALL]);
        record.logical(&self.next_tree().to_le_bytes());
        let used = guards.iter().filter(|(_, next)| **next > 0).count();
        record.logical(&(used as u32).to_le_bytes());
        for (table, next) in guards.iter().filter(|(_, next)| **next > 0) {
            record.logical(&table.get().to_le_bytes());
            record.logical(&next.to_le_bytes());
        }
        Ok(wal.append(&permit, &record))
    }
}

impl TableCounters {
    fn new(table: TableId, next: u64) -> Arc<Self> {
        Arc::new(Self {
            table,
            next: Mutex::new(next),
            row_id: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            change_cells: Default::default(),
            estimates: Estimates::default(),
        })
    }

    /// A row was changed: estimates grow old.
    pub(crate) fn note_change(&self) {
        let cell = &self.change_cells[runtime::current_worker() % CHANGE_CELLS];
        if (cell.0.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(CHANGES_TOLD) {
            self.changes.fetch_add(CHANGES_TOLD, Ordering::Relaxed);
        }
    }

    /// Rows changed since the start, but for a few of the last ones.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Rows changed since the start.
    pub(crate) fn all_changes(&self) -> u64 {
        self.change_cells.iter().map(|cell| cell.0.load(Ordering::Relaxed)).sum()
    }

    /// Changes the counter under its lock; logged when it changed.
    fn change<T>(&self, core: &Core, change: impl FnOnce(&mut u64) -> T) -> Result<T> {
        let permit = core.wal.admit(64).map_err(|error| from_log(&error))?;
        let mut next = self.next.lock();
        let before = *next;
        let result = change(&mut next);
        if *next != before {
            let mut record = RecordBuilder::new(RecordKind::Meta, TrxId::ZERO);
            record.logical(&[TAG_COUNTER]);
            record.logical(&self.table.get().to_le_bytes());
            record.logical(&next.to_le_bytes());
            core.wal.append(&permit, &record);
        }
        Ok(result)
    }

    pub(crate) fn reserve(
        &self,
        core: &Core,
        count: u64,
        increment: u64,
        offset: u64,
    ) -> Result<u64> {
        self.change(core, |next| {
            let (first, after) = first_and_after((*next).max(1), count, increment, offset);
            *next = after;
            first
        })
    }

    pub(crate) fn observe(&self, core: &Core, value: u64) -> Result<()> {
        if value < *self.next.lock() {
            return Ok(());
        }
        self.change(core, |next| *next = (*next).max(value.saturating_add(1)))
    }

    pub(crate) fn set(&self, core: &Core, value: u64) -> Result<()> {
        self.change(core, |next| *next = value.max(1))
    }

    pub(crate) fn next(&self) -> u64 {
        (*self.next.lock()).max(1)
    }

    /// Makes sure that row ids begin above those in the tree.
    pub(crate) fn prepare_row_ids(&self, core: &Core, tree: &Tree) -> Result<()> {
        let mut batch = Batch::new();
        let found = tree.cursor(Direction::Backward).next_batch(&mut batch, 1, 1);
        found.map_err(|error| from_tree(error, || core.tree_name(tree.id())))?;
        if let Some(last) = batch.iter().next() {
            let bytes = last.key.first_chunk::<8>().copied().unwrap_or_default();
            self.row_id.fetch_max(u64::from_be_bytes(bytes), Ordering::SeqCst);
        }
        Ok(())
    }

    pub(crate) fn next_row_id(&self) -> u64 {
        self.row_id.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// First value `offset + n * increment` at or after `next`, and the counter after `count` values.
pub(crate) fn first_and_after(next: u64, count: u64, increment: u64, offset: u64) -> (u64, u64) {
    let increment = increment.max(1);
    let first = if next <= offset {
        offset.max(1)
    } else {
        offset.saturating_add((next - offset).div_ceil(increment).saturating_mul(increment))
    };
    (first, first.saturating_add(increment.saturating_mul(count.max(1) - 1)).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovered_counters_follow_the_log() {
        let mut counters = RecoveredCounters::default();
        let one = |next: u64| {
            let mut bytes = vec![TAG_COUNTER];
            bytes.extend(7u64.to_le_bytes());
            bytes.extend(next.to_le_bytes());
            bytes
        };
        counters.note(&one(9)).unwrap();
        counters.note(&one(4)).unwrap();
        assert_eq!(counters.next[&TableId::new(7)], 4, "ALTER TABLE may lower it");
        let mut all = vec![TAG_ALL];
        all.extend(30u32.to_le_bytes());
        all.extend(1u32.to_le_bytes());
        all.extend(8u64.to_le_bytes());
        all.extend(2u64.to_le_bytes());
        counters.note(&all).unwrap();
        assert_eq!((counters.next.len(), counters.next_tree), (1, 30));
        assert!(counters.note(&all[..20]).is_none() && counters.note(&[]).is_none());
    }

    #[test]
    fn values_keep_offset_and_increment() {
        assert_eq!(first_and_after(1, 3, 1, 1), (1, 4));
        assert_eq!(first_and_after(4, 1, 10, 5), (5, 6));
        assert_eq!(first_and_after(6, 2, 10, 5), (15, 26));
        assert_eq!(first_and_after(u64::MAX, 2, 1, 1), (u64::MAX, u64::MAX));
    }
}
