//! What the mutex guards: trees of versions, locks, counters.

use crate::memory::MemoryTransaction;
use base::TreeId;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The tree of the dictionary.
pub(crate) const DICTIONARY_TREE: TreeId = TreeId::new(1);

/// One version of an entry.
pub(crate) struct Version {
    writer: u64,
    /// Commit number; zero while the writer is active.
    commit: u64,
    /// `None`: deleted.
    value: Option<Vec<u8>>,
}

pub(crate) type Tree = BTreeMap<Vec<u8>, Vec<Version>>;

/// How to take one change back.
pub(crate) enum Undo {
    Entry(TreeId, Vec<u8>),
    Tree(TreeId),
}

#[derive(Default)]
struct RowLock {
    exclusive: bool,
    owners: Vec<u64>,
}

#[derive(Default)]
pub(crate) struct Shared(Mutex<State>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct State {
    pub(crate) trees: HashMap<TreeId, Tree>,
    /// Per table: the next AUTO_INCREMENT value and the next hidden row id.
    pub(crate) auto_increment: HashMap<u64, u64>,
    pub(crate) row_ids: HashMap<u64, u64>,
    locks: HashMap<(TreeId, Vec<u8>), RowLock>,
    held: HashMap<u64, Vec<(TreeId, Vec<u8>)>>,
    snapshots: HashMap<u64, u64>,
    last_commit: u64,
    last_transaction: u64,
    last_id: u64,
    last_tree: u32,
}

impl Default for State {
    fn default() -> Self {
        Self {
            trees: HashMap::from([(DICTIONARY_TREE, Tree::new())]),
            auto_increment: HashMap::new(),
            row_ids: HashMap::new(),
            locks: HashMap::new(),
            held: HashMap::new(),
            snapshots: HashMap::new(),
            last_commit: 0,
            last_transaction: 0,
            last_id: 0,
            last_tree: 16,
        }
    }
}

/// Why an entry cannot be written or locked now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// Another transaction holds it.
    Held,
    /// It was changed after the snapshot.
    ChangedSince,
}

impl State {
    pub(crate) fn next_transaction(&mut self) -> u64 {
        self.last_transaction += 1;
        self.last_transaction
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(crate) fn create_tree(&mut self) -> TreeId {
        self.last_tree += 1;
        let tree = TreeId::new(self.last_tree);
        self.trees.insert(tree, Tree::new());
        tree
    }

    pub(crate) fn take_snapshot(&mut self, trx: u64) -> u64 {
        self.snapshots.insert(trx, self.last_commit);
        self.last_commit
    }

    /// The value that a snapshot sees: its own, or the newest committed up to it. The snapshot
    /// `u64::MAX` sees uncommitted values too.
    pub(crate) fn read(&self, tree: TreeId, key: &[u8], snapshot: u64, trx: u64) -> Option<&[u8]> {
        let versions = self.trees.get(&tree)?.get(key)?;
        let visible = versions.iter().rev().find(|version| {
            version.writer == trx
                || snapshot == u64::MAX
                || (version.commit != 0 && version.commit <= snapshot)
        })?;
        visible.value.as_deref()
    }

    /// Locks an entry for `trx`, or says why not. `snapshot` is given when a change after it is
    /// a conflict.
    pub(crate) fn try_lock(
        &mut self,
        trx: u64,
        tree: TreeId,
        key: &[u8],
        exclusive: bool,
        snapshot: Option<u64>,
    ) -> Result<(), Blocked> {
        let newest = self.trees.get(&tree).and_then(|tree| tree.get(key)?.last());
        if let Some(newest) = newest
            && newest.writer != trx
        {
            if newest.commit == 0 {
                return Err(Blocked::Held);
            }
            if snapshot.is_some_and(|snapshot| newest.commit > snapshot) {
                return Err(Blocked::ChangedSince);
            }
        }
        let lock = self.locks.entry((tree, key.to_vec())).or_default();
        let others = lock.owners.iter().any(|&owner| owner != trx);
        if others && (exclusive || lock.exclusive) {
            return Err(Blocked::Held);
        }
        lock.exclusive |= exclusive;
        if !lock.owners.contains(&trx) {
            lock.owners.push(trx);
            self.held.entry(trx).or_default().push((tree, key.to_vec()));
        }
        Ok(())
    }

    /// Gives one lock back.
    pub(crate) fn unlock(&mut self, trx: u64, tree: TreeId, key: &[u8]) {
        let at = (tree, key.to_vec());
        if let Some(lock) = self.locks.get_mut(&at) {
            lock.owners.retain(|&owner| owner != trx);
            if lock.owners.is_empty() {
                self.locks.remove(&at);
            }
        }
        if let Some(held) = self.held.get_mut(&trx) {
            held.retain(|held| *held != at);
        }
    }

    /// Gives all locks and the snapshot of a transaction back.
    pub(crate) fn release(&mut self, trx: u64) {
        for (tree, key) in self.held.remove(&trx).unwrap_or_default() {
            self.unlock(trx, tree, &key);
        }
        self.snapshots.remove(&trx);
    }

    /// Adds a version; the caller has the lock.
    pub(crate) fn write(
        &mut self,
        trx: &mut MemoryTransaction,
        tree: TreeId,
        key: &[u8],
        value: Option<Vec<u8>>,
    ) {
        let versions = self.trees.entry(tree).or_default().entry(key.to_vec()).or_default();
        versions.push(Version { writer: trx.id, commit: 0, value });
        trx.undo.push(Undo::Entry(tree, key.to_vec()));
    }

    pub(crate) fn undo(&mut self, step: Undo) {
        match step {
            Undo::Tree(tree) => {
                self.trees.remove(&tree);
            }
            Undo::Entry(tree, key) => {
                let Some(tree) = self.trees.get_mut(&tree) else { return };
                if let Some(versions) = tree.get_mut(&key) {
                    versions.pop();
                    if versions.is_empty() {
                        tree.remove(&key);
                    }
                }
            }
        }
    }

    /// Gives every change its commit number and forgets versions nobody can read.
    pub(crate) fn commit(&mut self, changes: &[Undo]) {
        if changes.is_empty() {
            return;
        }
        self.last_commit += 1;
        let keep_all = !self.snapshots.is_empty();
        for change in changes {
            let Undo::Entry(tree, key) = change else { continue };
            let Some(tree) = self.trees.get_mut(tree) else { continue };
            let Some(versions) = tree.get_mut(key) else { continue };
            for version in versions.iter_mut().filter(|version| version.commit == 0) {
                version.commit = self.last_commit;
            }
            if !keep_all {
                versions.drain(..versions.len() - 1);
                if versions[0].value.is_none() {
                    tree.remove(key);
                }
            }
        }
    }
}
