//! The locks of a transaction: of entries, and of gaps between them.

use super::Transaction;
use crate::lock::{Acquired, LockError, LockMode, WaitRule};
use base::{TreeId, TrxId};

impl Transaction {
    /// Takes an explicit lock. Held to the end of the transaction.
    pub fn lock(
        &mut self,
        tree: TreeId,
        key: &[u8],
        mode: LockMode,
        rule: WaitRule,
    ) -> Result<Acquired, LockError> {
        loop {
            let owner = self.owner().clone();
            let locks = &self.system.locks;
            let result = locks.acquire(&owner, &mut self.held, (tree, key), mode, rule);
            match result {
                // A stale wake-up ended the wait: ask again.
                Err(LockError::Unavailable) if rule != WaitRule::Never => {}
                result => return result,
            }
        }
    }

    /// From now on inserts into the tree are counted; how many there were. Comes before the
    /// entries are read between which gaps are to be locked.
    pub fn watch_gaps(&mut self, tree: TreeId) -> u64 {
        let owner = self.owner().clone();
        self.system.locks.gaps.watch(&owner, &mut self.watched, tree)
    }

    /// Keeps others from inserting keys from `low` to before `high` (`None`: all greater ones) to
    /// the end of the transaction. With `inserts` only if no more were counted in the watched
    /// tree; else false, and nothing is locked. Never waits; an error when there is no memory.
    pub fn lock_gap(
        &mut self,
        tree: TreeId,
        low: &[u8],
        high: Option<&[u8]>,
        mode: LockMode,
        inserts: Option<u64>,
    ) -> Result<bool, LockError> {
        let owner = self.owner.as_ref().expect("whoever watches a tree is registered");
        self.system.locks.gaps.lock(owner, tree, (low, high), mode, inserts)
    }

    /// Whether somebody may have locked gaps of the tree.
    #[inline]
    pub fn is_watched(&self, tree: TreeId) -> bool {
        self.system.locks.gaps.is_watched(tree)
    }

    /// Whether no other transaction keeps the key of a watched tree out. Asked under the latch of
    /// the key's leaf; the key is counted as inserted.
    pub fn may_insert(&self, tree: TreeId, key: &[u8]) -> bool {
        self.system.locks.gaps.may_insert(self.owner.as_ref(), tree, key)
    }

    /// Whether another transaction has locked this entry. Asked under the latch of its leaf.
    pub fn is_locked_by_other(&self, tree: TreeId, key: &[u8]) -> bool {
        self.system.locks.is_locked_by_other(self.owner.as_ref(), tree, key)
    }

    /// Waits while others keep the key out; returns perhaps earlier: the caller asks again.
    pub fn wait_to_insert(
        &mut self,
        tree: TreeId,
        key: &[u8],
        rule: WaitRule,
    ) -> Result<(), LockError> {
        let owner = self.owner().clone();
        self.system.locks.wait_to_insert(&owner, tree, key, rule)
    }

    /// Gives the explicit lock that was taken last on a key back early. Only for whom
    /// [`Self::lock`] has told that it was taken, and not there already.
    pub fn unlock(&mut self, tree: TreeId, key: &[u8]) {
        if let Some(owner) = &self.owner {
            self.system.locks.release_newest(owner, &mut self.held, tree, key);
        }
    }

    /// The row whose lock was taken last has been changed: its version word keeps others out, so
    /// the explicit lock is given back unless somebody waits in its queue. A transaction that
    /// changes many rows holds few explicit locks.
    pub fn unlock_changed(&mut self, tree: TreeId, key: &[u8]) {
        if let Some(owner) = &self.owner {
            self.system.locks.release_last_if_alone(owner, &mut self.held, tree, key);
        }
    }

    /// The row is about to get back the version from before this transaction: makes the lock that
    /// its version word was an explicit one, so that nobody else comes in between. Waits while
    /// others hold a lock of the row and have not read the word yet.
    pub fn keep_locked(&mut self, tree: TreeId, key: &[u8]) -> Result<(), LockError> {
        let owner = self.owner().clone();
        self.system.locks.keep(&owner, &mut self.held, (tree, key))
    }

    /// The entry of a lock just taken is written by `other`, which still runs: waits behind it
    /// in the queue of the key. Afterwards the caller locks it and looks again.
    pub fn wait_behind(
        &mut self,
        other: TrxId,
        tree: TreeId,
        key: &[u8],
        rule: WaitRule,
    ) -> Result<(), LockError> {
        let Some(holder) = self.system.owner(other) else { return Ok(()) };
        let owner = self.owner().clone();
        let held = &mut self.held;
        match self.system.locks.wait_behind(&owner, held, &holder, (tree, key), rule) {
            Ok(_) => Ok(()),
            // A stale wake-up: the caller locks and looks again.
            Err(LockError::Unavailable) if rule != WaitRule::Never => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits until `other`, which wrote a word that is in the way, has ended.
    pub fn wait_for(&mut self, other: TrxId, rule: WaitRule) -> Result<(), LockError> {
        let Some(target) = self.system.owner(other) else {
            // It is between publishing its end and leaving the table, or has left it.
            return Ok(());
        };
        let owner = self.owner().clone();
        self.system.locks.wait_for_transaction(&owner, &target, rule)
    }
}
