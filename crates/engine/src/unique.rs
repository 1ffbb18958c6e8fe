//! Inserts into unique indexes, and the locks of what stands in their way.
//!
//! 1. Two inserts of one value are kept apart by the lock of the value (the index's own parts).
//!    It is held only while nothing is waited for: whoever has the value locked otherwise may want
//!    to insert it, too.
//! 2. A duplicate is locked shared before it is told, exclusively if the statement will replace or
//!    change it: in a secondary index with the gap before it, as InnoDB does at every level.
//! 3. A value that this transaction deleted and inserts again is locked with the gaps around it.

use crate::error::from_tree;
use crate::lock_entry::behind;
use crate::range::after_prefix;
use crate::table::{Nested, TableParts};
use crate::transaction::EngineTransaction;
use crate::write::{Intent, Written, write_entry};
use base::TrxId;
use btree::{Batch, DELETED, Direction};
use engine_api::Result;
use std::ops::Bound;
use txn::{Acquired, LockError, LockMode, WaitRule, WordState};

/// What stands in the way of a value.
enum Obstacle {
    /// Nothing.
    Free,
    /// A live entry, which is locked now; its key.
    Duplicate(Vec<u8>),
    /// An entry that this transaction has written.
    Busy(TrxId),
    /// A live entry that another transaction has locked.
    Locked(Vec<u8>),
}

impl TableParts {
    pub(crate) fn insert_unique(
        &self,
        trx: &mut EngineTransaction,
        position: usize,
        key: &[u8],
        own_bytes: usize,
    ) -> Nested {
        let (tree, value) = (&self.trees[position], &key[..own_bytes]);
        loop {
            let rule = trx.wait_rule();
            let locked = trx.trx.lock(tree.id(), value, LockMode::Exclusive, rule);
            let is_new = trx.locked(locked)? != Acquired::Already;
            let result = match self.find_obstacle(trx, position, value) {
                Ok(Obstacle::Free) => {
                    write_entry(trx, tree, key, Intent::Insert(&[]), None).map(Err)
                }
                other => other.map(Ok),
            };
            // From here on the uncommitted entry itself keeps others out.
            if is_new {
                trx.trx.unlock(tree.id(), value);
            }
            match result? {
                Err(Written::Done) => return Ok(Ok(())),
                Err(Written::GapLocked) => self.wait_to_insert(trx, position, key)?,
                Err(Written::Busy(other)) | Ok(Obstacle::Busy(other)) => {
                    self.wait_for(trx, other)?;
                }
                Err(other) => {
                    return Err(self.corrupt(position, format!("entry to insert: {other:?}")));
                }
                Ok(Obstacle::Duplicate(entry)) => {
                    return self.keys.duplicate(position, &entry).map(Err);
                }
                Ok(Obstacle::Locked(entry)) => {
                    let mode = duplicate_mode(trx);
                    let rule = trx.wait_rule();
                    let locked = trx.trx.lock(tree.id(), &entry, mode, rule);
                    trx.locked(locked)?;
                }
                Ok(Obstacle::Free) => {}
            }
        }
    }

    fn find_obstacle(
        &self,
        trx: &mut EngineTransaction,
        position: usize,
        value: &[u8],
    ) -> Result<Obstacle> {
        let tree = &self.trees[position];
        let mut batch = Batch::new();
        let mut deleted = false;
        let mut cursor = tree.cursor(Direction::Forward);
        cursor.seek(Bound::Included(value));
        if let Some(end) = after_prefix(value) {
            cursor.stop_at(Bound::Excluded(&end));
        }
        loop {
            let more = cursor.next_batch(&mut batch, 8, 16 << 10);
            if !more.map_err(|error| from_tree(error, || self.object(position)))? {
                break;
            }
            for item in batch.iter() {
                match trx.trx.word_state(item.entry.word) {
                    WordState::Active(other) => return Ok(Obstacle::Busy(other)),
                    WordState::Stale => {
                        runtime::yield_now();
                        return self.find_obstacle(trx, position, value);
                    }
                    WordState::Own if item.entry.flags & DELETED != 0 => {
                        self.lock_with_gap(trx, position, item.key)?;
                        deleted = true;
                    }
                    _ if item.entry.flags & DELETED != 0 => {}
                    _ => return self.meet_duplicate(trx, position, item.key),
                }
            }
        }
        if deleted && let Some(end) = after_prefix(value) {
            self.lock_behind(trx, position, &end)?;
        }
        Ok(Obstacle::Free)
    }

    fn meet_duplicate(
        &self,
        trx: &mut EngineTransaction,
        position: usize,
        key: &[u8],
    ) -> Result<Obstacle> {
        let (tree, mode) = (self.trees[position].id(), duplicate_mode(trx));
        self.lock_with_gap(trx, position, key)?;
        match trx.trx.lock(tree, key, mode, WaitRule::Never) {
            Err(LockError::Unavailable) => Ok(Obstacle::Locked(key.to_vec())),
            Ok(Acquired::Already) => Ok(Obstacle::Duplicate(key.to_vec())),
            result => {
                // It may have changed before it was locked: the next look finds it locked.
                trx.locked(result)?;
                let own_bytes = self.keys.split(position, key)?.own_bytes;
                self.find_obstacle(trx, position, &key[..own_bytes])
            }
        }
    }

    /// Locks the gap before an entry and its key against inserts.
    fn lock_with_gap(
        &self,
        trx: &mut EngineTransaction,
        position: usize,
        key: &[u8],
    ) -> Result<()> {
        let tree = self.trees[position].id();
        trx.trx.watch_gaps(tree);
        let low = self.key_below(position, key)?.as_deref().map(behind).unwrap_or_default();
        let locked = trx.trx.lock_gap(tree, &low, Some(&behind(key)), duplicate_mode(trx), None);
        trx.locked(locked).map(|_| ())
    }

    /// Locks the gap from `from` to the entry that follows.
    fn lock_behind(&self, trx: &mut EngineTransaction, position: usize, from: &[u8]) -> Result<()> {
        let high = self.key_from(position, from)?;
        let tree = self.trees[position].id();
        let locked = trx.trx.lock_gap(tree, from, high.as_deref(), duplicate_mode(trx), None);
        trx.locked(locked).map(|_| ())
    }

    /// Locks the row that an insert has found in its way; true when it was locked before, so that
    /// it is certainly still there. Rows that will be replaced are locked by whoever does that.
    #[cold]
    pub(crate) fn lock_duplicate(
        &self,
        trx: &mut EngineTransaction,
        position: usize,
        key: &[u8],
    ) -> Result<bool> {
        if trx.expects_duplicates {
            return Ok(true);
        }
        let rule = trx.wait_rule();
        let tree = self.trees[position].id();
        let locked = trx.trx.lock(tree, key, LockMode::Shared, rule);
        Ok(trx.locked(locked)? == Acquired::Already)
    }
}

fn duplicate_mode(trx: &EngineTransaction) -> LockMode {
    if trx.expects_duplicates { LockMode::Exclusive } else { LockMode::Shared }
}
