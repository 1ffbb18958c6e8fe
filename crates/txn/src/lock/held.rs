//! The locks that a transaction holds, and the memory that they take.
//!
//! 1. The first [`FREE_LOCKS`] of a transaction are not accounted for: most have fewer, and the
//!    account is common to all. From there on a transaction pays for as many as it has.
//! 2. What was paid is given back when the transaction ends, not with the single lock.

use super::LockError;
use super::table::KeyBytes;
use base::{MemoryAccount, TreeId};

/// Locks, or intervals, of a transaction that nobody counts.
pub(super) const FREE_LOCKS: usize = 256;

/// A lock in its queue and in the list of its holder, with what hash table and vector leave empty.
const LOCK_BYTES: usize = 256;

/// One lock that is held.
#[derive(Debug)]
pub(crate) struct HeldLock {
    pub(super) hash: u64,
    pub(super) tree: TreeId,
    pub(super) key: KeyBytes,
}

impl HeldLock {
    pub(super) fn is_for(&self, hash: u64, tree: TreeId, key: &[u8]) -> bool {
        self.hash == hash && self.tree == tree && self.key.as_slice() == key
    }

    /// What the key takes beyond the place that every lock has for one, here and in the queue.
    fn long_key_bytes(&self) -> usize {
        if self.key.spilled() { 2 * self.key.len() } else { 0 }
    }
}

/// Locks a transaction holds or has held, for releasing them.
#[derive(Debug)]
pub(crate) struct HeldLocks {
    pub(super) locks: Vec<HeldLock>,
    /// More than these are paid for first.
    paid_locks: usize,
    charged_bytes: u64,
}

impl HeldLocks {
    pub(crate) fn new() -> Self {
        Self { locks: Vec::new(), paid_locks: FREE_LOCKS, charged_bytes: 0 }
    }

    /// Makes sure that another lock may be taken.
    #[inline]
    pub(super) fn make_room(&mut self, account: &MemoryAccount) -> Result<(), LockError> {
        if self.locks.len() < self.paid_locks {
            return Ok(());
        }
        self.pay(account)
    }

    #[cold]
    fn pay(&mut self, account: &MemoryAccount) -> Result<(), LockError> {
        let more = self.paid_locks;
        let newest = &self.locks[self.locks.len().saturating_sub(more / 2)..];
        // The next keys will be as long as the last ones.
        let long = 2 * newest.iter().map(HeldLock::long_key_bytes).sum::<usize>();
        let bytes = (more * LOCK_BYTES + long) as u64;
        account.charge(bytes).map_err(|_| {
            base::probe!("txn.lock.table_full");
            LockError::TableFull
        })?;
        self.charged_bytes += bytes;
        self.paid_locks += more;
        Ok(())
    }

    /// The transaction has ended and given all locks back.
    pub(super) fn give_back(&mut self, account: &MemoryAccount) {
        if self.charged_bytes > 0 {
            account.release(self.charged_bytes);
            *self = Self::new();
        }
    }
}
