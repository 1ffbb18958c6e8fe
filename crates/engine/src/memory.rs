//! A small engine in memory: the same border as the real one, none of its machinery.
//!
//! 1. One mutex guards everything; it is never held across a park.
//! 2. Every tree maps a key to its versions, newest last; a version without a commit number
//!    belongs to an active transaction and is the only one of that transaction it may pop.
//! 3. A snapshot is the last commit number at the time it was taken.
//! 4. Row locks are kept to the end of the transaction. There is no waiting: a conflict is
//!    `LockWaitTimeout` at once.
//!
//! It is the model that simulations compare the real engine with, and what SQL layers run on in
//! their own tests. Nothing is ever written to a device.

mod state;
mod table;

use crate::memory::state::{DICTIONARY_TREE, Shared, State, Undo};
use base::{IndexId, PageId, TableId, TreeId, TrxId};
use engine_api::{
    Capabilities, DuplicateKey, Engine, EngineError, Isolation, ReadGate, Result, Savepoint, Table,
    TableDefinition, Transaction, TransactionOptions,
};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// The engine; clones share their data.
#[derive(Clone, Default)]
pub struct MemoryEngine {
    shared: Arc<Shared>,
}

impl MemoryEngine {
    /// An empty engine.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A transaction of [`MemoryEngine`].
pub(crate) struct MemoryTransaction {
    shared: Arc<Shared>,
    options: TransactionOptions,
    id: u64,
    snapshot: Option<u64>,
    undo: Vec<Undo>,
    dropped: Vec<TreeId>,
    finished: bool,
}

pub(crate) fn own(trx: &mut dyn Transaction) -> &mut MemoryTransaction {
    trx.as_any_mut().downcast_mut().expect("a memory engine is given its own transactions")
}

impl MemoryTransaction {
    /// The snapshot to read from, taken now if there is none.
    fn snapshot(&mut self, state: &mut State) -> u64 {
        if self.options.isolation == Isolation::ReadUncommitted {
            return u64::MAX;
        }
        *self.snapshot.get_or_insert_with(|| state.take_snapshot(self.id))
    }

    fn undo_to(&mut self, state: &mut State, length: usize) {
        while self.undo.len() > length {
            let step = self.undo.pop().expect("longer than the savepoint");
            state.undo(step);
        }
    }

    /// Error for a conflict that has been rolled back as a whole.
    fn conflict(&mut self, state: &mut State) -> EngineError {
        self.undo_to(state, 0);
        state.release(self.id);
        self.snapshot = None;
        EngineError::WriteConflict
    }

    fn finish(&mut self, commit: bool) {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        if commit {
            state.commit(&self.undo);
            self.undo.clear();
            for tree in self.dropped.drain(..) {
                state.trees.remove(&tree);
            }
        } else {
            self.undo_to(&mut state, 0);
        }
        state.release(self.id);
        self.finished = true;
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        if !self.finished {
            self.finish(false);
        }
    }
}

/// Nothing here is durable, so nothing waits.
struct Open;

impl ReadGate for Open {
    fn wait_durable(&self) -> Result<()> {
        Ok(())
    }
}

impl Transaction for MemoryTransaction {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn id(&self) -> TrxId {
        if self.undo.is_empty() { TrxId::ZERO } else { TrxId::new(self.id) }
    }

    fn has_written(&self) -> bool {
        !self.undo.is_empty()
    }

    fn open_snapshot(&mut self) {
        let shared = self.shared.clone();
        self.snapshot(&mut shared.lock());
    }

    fn begin_statement(&mut self) -> Savepoint {
        if self.options.isolation != Isolation::RepeatableRead {
            self.snapshot = None;
        }
        self.savepoint()
    }

    fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.undo.len() as u64)
    }

    fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let shared = self.shared.clone();
        self.undo_to(&mut shared.lock(), savepoint.0 as usize);
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.finish(true);
        Ok(())
    }

    fn rollback(mut self: Box<Self>) -> Result<()> {
        self.finish(false);
        Ok(())
    }

    fn wait_read_durable(&mut self) -> Result<()> {
        Ok(())
    }

    fn end_unchanged(&mut self) -> Result<bool> {
        // The model makes a value for every transaction.
        Ok(false)
    }

    fn commit_and_keep(&mut self) -> Result<bool> {
        self.finish(true);
        Ok(false)
    }

    fn set_options(&mut self, options: TransactionOptions) {
        self.options = options;
    }

    fn read_gate(&mut self) -> Arc<dyn ReadGate> {
        Arc::new(Open)
    }

    fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.options.lock_wait_timeout = timeout;
    }

    fn read_present(&mut self, _: bool) {}
}

impl Engine for MemoryEngine {
    fn name(&self) -> &'static str {
        "MEMORY MODEL"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { transactions: true, secondary_indexes: true, key_bytes_max: 3072 }
    }

    fn begin(&self, options: TransactionOptions) -> Box<dyn Transaction> {
        let id = self.shared.lock().next_transaction();
        Box::new(MemoryTransaction {
            shared: self.shared.clone(),
            options,
            id,
            snapshot: None,
            undo: Vec::new(),
            dropped: Vec::new(),
            finished: false,
        })
    }

    fn create_table(&self, trx: &mut dyn Transaction, table: &mut TableDefinition) -> Result<()> {
        let trx = own(trx);
        let mut state = self.shared.lock();
        table.id = TableId::new(state.next_id());
        for index in &mut table.indexes {
            let tree = state.create_tree();
            index.id = IndexId::new(tree.get());
            index.tree = tree;
            index.root = PageId::new(u64::from(tree.get()));
            index.page_class = 13;
            trx.undo.push(Undo::Tree(tree));
        }
        Ok(())
    }

    fn drop_table(&self, trx: &mut dyn Transaction, table: &TableDefinition) -> Result<()> {
        own(trx).dropped.extend(table.indexes.iter().map(|index| index.tree));
        Ok(())
    }

    fn build_index(
        &self,
        trx: &mut dyn Transaction,
        table: &mut TableDefinition,
        position: usize,
    ) -> Result<std::result::Result<(), DuplicateKey>> {
        let trx = own(trx);
        let mut state = self.shared.lock();
        let tree = state.create_tree();
        trx.undo.push(Undo::Tree(tree));
        let index = &mut table.indexes[position];
        index.id = IndexId::new(tree.get());
        index.tree = tree;
        index.root = PageId::new(u64::from(tree.get()));
        index.page_class = 13;
        table::build(&mut state, trx, table, position)
    }

    fn change_options(&self, _trx: &mut dyn Transaction, _table: &TableDefinition) -> Result<()> {
        Ok(())
    }

    fn drop_index(
        &self,
        trx: &mut dyn Transaction,
        table: &TableDefinition,
        position: usize,
    ) -> Result<()> {
        own(trx).dropped.push(table.indexes[position].tree);
        Ok(())
    }

    fn open_table(&self, table: Arc<TableDefinition>) -> Result<Arc<dyn Table>> {
        Ok(Arc::new(table::MemoryTable::new(self.shared.clone(), table)))
    }

    fn dictionary_get(&self, trx: &mut dyn Transaction, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let trx = own(trx);
        Ok(self.shared.lock().read(DICTIONARY_TREE, key, u64::MAX - 1, trx.id).map(<[u8]>::to_vec))
    }

    fn dictionary_put(&self, trx: &mut dyn Transaction, key: &[u8], value: &[u8]) -> Result<()> {
        table::lock_and(&self.shared, own(trx), DICTIONARY_TREE, key, |state, trx| {
            state.write(trx, DICTIONARY_TREE, key, Some(value.to_vec()));
            Ok(())
        })
    }

    fn dictionary_delete(&self, trx: &mut dyn Transaction, key: &[u8]) -> Result<()> {
        table::lock_and(&self.shared, own(trx), DICTIONARY_TREE, key, |state, trx| {
            state.write(trx, DICTIONARY_TREE, key, None);
            Ok(())
        })
    }

    fn dictionary_scan(
        &self,
        trx: &mut dyn Transaction,
        prefix: &[u8],
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let trx = own(trx);
        let state = self.shared.lock();
        let tree = &state.trees[&DICTIONARY_TREE];
        let keys = tree.range(prefix.to_vec()..).map(|(key, _)| key);
        Ok(keys
            .take_while(|key| key.starts_with(prefix))
            .filter_map(|key| {
                let value = state.read(DICTIONARY_TREE, key, u64::MAX - 1, trx.id)?;
                Some((key.clone(), value.to_vec()))
            })
            .collect())
    }

    fn status(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
