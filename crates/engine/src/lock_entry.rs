//! Locks of entries of secondary indexes, and of what is not there. See `locking`.

use crate::error::from_tree;
use crate::read::sees_live;
use crate::table::TableParts;
use crate::transaction::EngineTransaction;
use btree::{Batch, DELETED, Direction};
use engine_api::{LockWait, Result, RowBuffer};
use std::ops::Bound;
use txn::{Acquired, LockError, LockMode, WaitRule, WordState};

/// What became of the lock of a secondary entry.
pub(crate) enum EntryLock {
    Live,
    Dead,
    Skipped,
}

/// The smallest key greater than `key`.
pub(crate) fn behind(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

impl TableParts {
    fn neighbour(
        &self,
        position: usize,
        direction: Direction,
        start: Bound<&[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let mut cursor = self.trees[position].cursor(direction);
        cursor.leave_values();
        cursor.seek(start);
        let mut batch = Batch::new();
        let more = cursor.next_batch(&mut batch, 1, 1);
        let more = more.map_err(|error| from_tree(error, || self.object(position)))?;
        Ok(more.then(|| batch.get(0).key.to_vec()))
    }

    /// The greatest key below `key` that an entry has, deleted ones included.
    pub(crate) fn key_below(&self, position: usize, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.neighbour(position, Direction::Backward, Bound::Excluded(key))
    }

    /// The smallest key from `key` on that an entry has, deleted ones included.
    pub(crate) fn key_from(&self, position: usize, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.neighbour(position, Direction::Forward, Bound::Included(key))
    }

    /// The row with this clustered key was not there: locks the gap where it would be, and looks
    /// again.
    #[cold]
    pub(crate) fn lock_absence(
        &self,
        trx: &mut EngineTransaction,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
        row: &mut RowBuffer,
    ) -> Result<bool> {
        let tree = self.trees[0].id();
        trx.trx.watch_gaps(tree);
        let low = self.key_below(0, key)?.as_deref().map(behind).unwrap_or_default();
        let mut high = self.key_from(0, key)?;
        if high.as_deref() == Some(key) {
            high = Some(behind(key));
        }
        let locked = trx.trx.lock_gap(tree, &low, high.as_deref(), mode, None);
        trx.locked(locked)?;
        self.read_locked(trx, key, mode, wait, row)
    }

    /// Locks an entry of a secondary index and looks at it.
    pub(crate) fn lock_entry(
        &self,
        trx: &mut EngineTransaction,
        position: usize,
        key: &[u8],
        (mode, wait): (LockMode, LockWait),
    ) -> Result<EntryLock> {
        let rule = trx.wait_rule_of(wait);
        let tree = self.trees[position].id();
        let mut is_new = false;
        loop {
            match trx.trx.lock(tree, key, mode, rule) {
                Err(LockError::Unavailable) if wait == LockWait::SkipLocked => {
                    return Ok(EntryLock::Skipped);
                }
                result => is_new |= trx.locked(result)? != Acquired::Already,
            }
            match self.entry_state(trx, position, key)? {
                WordState::Active(_) if rule == WaitRule::Never => {
                    if is_new {
                        trx.trx.unlock(tree, key);
                    }
                    return match wait {
                        LockWait::SkipLocked => Ok(EntryLock::Skipped),
                        _ => trx.locked(Err(LockError::Unavailable)),
                    };
                }
                WordState::Active(other) => {
                    let waited = trx.trx.wait_behind(other, tree, key, rule);
                    trx.locked(waited)?;
                }
                WordState::Stale => runtime::yield_now(),
                state => return self.judge_entry(trx, state),
            }
        }
    }

    /// Who wrote the entry, which is left in the transaction's buffer.
    fn entry_state(
        &self,
        trx: &mut EngineTransaction,
        position: usize,
        key: &[u8],
    ) -> Result<WordState> {
        let EngineTransaction { trx: inner, buffers, .. } = trx;
        let entry = &mut buffers.entry;
        let found = self.trees[position].get(key, entry);
        if !found.map_err(|error| from_tree(error, || self.object(position)))? {
            entry.flags = DELETED;
            return Ok(WordState::Frozen);
        }
        Ok(inner.word_state(entry.word))
    }

    fn judge_entry(&self, trx: &mut EngineTransaction, state: WordState) -> Result<EntryLock> {
        let dead = trx.buffers.entry.flags & DELETED != 0;
        if let (WordState::Committed(at), Some(limit)) = (state, trx.conflict_snapshot())
            && at > limit
        {
            let buffers = &mut *trx.buffers;
            let entry = &buffers.entry;
            let at = (entry.flags, entry.word, entry.payload.as_slice());
            if !dead || sees_live(&mut trx.trx, limit, at, &mut buffers.older) {
                return Err(trx.write_conflict());
            }
        }
        Ok(if dead { EntryLock::Dead } else { EntryLock::Live })
    }
}
