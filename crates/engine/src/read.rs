//! Reading one row by its clustered key: from a snapshot, or its newest version under a lock.
//!
//! 1. The snapshot (or the floor that protects a read of the newest version) is taken before the
//!    page is read.
//! 2. A locking read locks first, then reads; an entry that another active transaction has
//!    written is waited for and read again.
//! 3. Under snapshot isolation a row changed or deleted by a commit after the snapshot is a
//!    conflict, provided the snapshot has the row.
//! 4. A lock taken for a row that is not there is given back.

use crate::error::from_tree;
use crate::table::TableParts;
use crate::transaction::EngineTransaction;
use base::Lsn;
use btree::DELETED;
use engine_api::{LockWait, Result, RowBuffer};
use txn::{Acquired, LockError, LockMode, Reader, Seen, WaitRule, WordState};

/// What became of one try of a locking read.
enum Look {
    Found,
    Missing,
    Again,
    /// Another transaction has the row.
    Busy(base::TrxId),
    Conflict,
}

impl TableParts {
    /// Reads the version that the transaction's isolation level shows.
    pub(crate) fn read_plain(
        &self,
        trx: &mut EngineTransaction,
        key: &[u8],
        row: &mut RowBuffer,
    ) -> Result<bool> {
        let reader = trx.reader();
        let EngineTransaction { trx: inner, buffers, core, .. } = trx;
        let buffers = &mut **buffers;
        let entry = &mut buffers.entry;
        let found = self.trees[0].get(key, entry);
        if !found.map_err(|error| from_tree(error, || self.object(0)))? {
            return Ok(false);
        }
        let at = (entry.flags, entry.word, entry.payload.as_slice());
        let (flags, payload) = match inner.version(&reader, at, &mut buffers.older) {
            Seen::Current => (entry.flags, &mut entry.payload),
            Seen::Older { flags } => (flags, &mut buffers.older),
            Seen::Absent => return Ok(false),
            Seen::Damaged => return Err(self.corrupt(0, "undo does not fit the row")),
        };
        if flags & DELETED != 0 {
            core.visit_deleted(self.trees[0].id(), key, entry.flags, entry.word);
            return Ok(false);
        }
        std::mem::swap(&mut row.payload, payload);
        Ok(true)
    }

    /// Locks the row and reads its newest version. False if there is none, or it is locked by
    /// another transaction and `wait` says to skip it. `row.key` is left alone.
    pub(crate) fn read_locked(
        &self,
        trx: &mut EngineTransaction,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
        row: &mut RowBuffer,
    ) -> Result<bool> {
        let rule = trx.wait_rule_of(wait);
        let tree = self.trees[0].id();
        let mut is_new = false;
        loop {
            match trx.trx.lock(tree, key, mode, rule) {
                Err(LockError::Unavailable) if wait == LockWait::SkipLocked => return Ok(false),
                result => {
                    let acquired = trx.locked(result)?;
                    is_new |= acquired != Acquired::Already;
                    trx.has_waited |= acquired == Acquired::AfterWait;
                }
            }
            trx.last_lock_is_new = is_new;
            let looked = self.look(trx, key, row);
            if !matches!(looked, Ok(Look::Found)) && is_new {
                match looked {
                    Ok(Look::Busy(_)) if rule != WaitRule::Never => {}
                    _ => trx.trx.unlock(tree, key),
                }
            }
            match looked? {
                Look::Found => return Ok(true),
                Look::Missing => return Ok(false),
                Look::Conflict => return Err(trx.write_conflict()),
                Look::Busy(_) if wait == LockWait::SkipLocked => return Ok(false),
                Look::Busy(_) if wait == LockWait::NoWait => {
                    return trx.locked(Err(LockError::Unavailable));
                }
                Look::Busy(other) => {
                    let waited = trx.trx.wait_behind(other, tree, key, rule);
                    trx.locked(waited)?;
                    trx.has_waited = true;
                }
                Look::Again => runtime::yield_now(),
            }
        }
    }

    /// Reads the newest version, whose lock is held.
    fn look(&self, trx: &mut EngineTransaction, key: &[u8], row: &mut RowBuffer) -> Result<Look> {
        let conflict = trx.conflict_snapshot();
        let EngineTransaction { trx: inner, buffers, core, .. } = trx;
        let buffers = &mut **buffers;
        inner.protect_reads();
        let entry = &mut buffers.entry;
        let found = self.trees[0].get_near(key, entry, &mut buffers.leaf);
        if !found.map_err(|error| from_tree(error, || self.object(0)))? {
            return Ok(Look::Missing);
        }
        let is_deleted = entry.flags & DELETED != 0;
        match inner.word_state(entry.word) {
            WordState::Active(other) => return Ok(Look::Busy(other)),
            WordState::Stale => return Ok(Look::Again),
            WordState::Committed(at) if conflict.is_some_and(|limit| at > limit) => {
                let limit = conflict.unwrap_or(Lsn::MAX);
                let at = (entry.flags, entry.word, entry.payload.as_slice());
                if !is_deleted || sees_live(inner, limit, at, &mut buffers.older) {
                    return Ok(Look::Conflict);
                }
            }
            _ => {}
        }
        if is_deleted {
            core.visit_deleted(self.trees[0].id(), key, entry.flags, entry.word);
            return Ok(Look::Missing);
        }
        std::mem::swap(&mut row.payload, &mut entry.payload);
        Ok(Look::Found)
    }
}

/// Whether a snapshot sees a live version of an entry.
pub(crate) fn sees_live(
    trx: &mut txn::Transaction,
    snapshot: Lsn,
    (flags, word, payload): (u8, u64, &[u8]),
    older: &mut Vec<u8>,
) -> bool {
    let reader = Reader { snapshot, own_header: trx.header(), uncommitted: false };
    match trx.version(&reader, (flags, word, payload), older) {
        Seen::Current => flags & DELETED == 0,
        Seen::Older { flags } => flags & DELETED == 0,
        Seen::Absent | Seen::Damaged => false,
    }
}
