//! The engine as the border sees it.

use crate::background::Background;
use crate::core::{Core, DICTIONARY_TREE, FIRST_TREE};
use crate::counters::{Counters, RecoveredCounters};
use crate::error::{from_log, from_store, from_tree};
use crate::options::EngineOptions;
use crate::transaction::{EngineTransaction, own};
use crate::{build, ddl, dictionary, status};
use base::TrxId;
use btree::Tree;
use engine_api::{
    Capabilities, DuplicateKey, Result as ApiResult, Table, TableDefinition, Transaction,
    TransactionOptions,
};
use pagestore::PageStore;
use std::sync::Arc;
use txn::{TransactionSystem, TxnOptions};
use wal::{Wal, WalOptions};

/// The storage engine. Opened by [`Engine::open`], ended by [`Engine::close`].
pub struct Engine {
    pub(crate) core: Arc<Core>,
    pub(crate) background: Background,
}

impl Engine {
    /// An engine whose log is in `options.datadir`/wal (which must be empty) and whose pages stay
    /// in memory: for tests of the rooms above and as a yardstick. It cannot be opened again.
    pub fn volatile(options: EngineOptions) -> ApiResult<Arc<Self>> {
        let mut log = WalOptions::new([0; 16]);
        log.policy = options.flush_policy;
        let wal = Wal::create(&options.datadir.join("wal"), log, 1);
        let wal = wal.map_err(|error| from_log(&error))?;
        let pages = (options.buffer_pool_bytes >> options.page_class).max(1 << 16) as u64;
        let store = PageStore::volatile(options.buffer_pool_bytes, pages)
            .map_err(|error| from_store(&error, || "data".to_owned()))?;
        let class = options.page_class;
        let dictionary = Tree::create(store.clone(), wal.clone(), DICTIONARY_TREE, class)
            .map_err(|error| from_tree(error, || "dictionary".to_owned()))?;
        let txn = TransactionSystem::new(
            wal.clone(),
            &TxnOptions {
                workers: runtime::worker_count(),
                undo_chunk_bytes: options.undo_chunk_bytes,
                undo_budget_bytes: options.undo_budget_bytes,
                undo_base: 0,
                first_id: TrxId::new(1),
                start: wal.end(),
            },
        );
        let mut counters = RecoveredCounters::default();
        counters.raise_next_tree(FIRST_TREE);
        let counters = Counters::new(counters);
        let core = Core::new(options, wal, store, txn, counters, dictionary, None);
        let background = Background::start(&core);
        Ok(Arc::new(Self { core, background }))
    }

    /// Ends the background fibers.
    pub fn stop(&self) {
        self.core.begin_stop();
        self.background.join();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Engine({:?})", self.core.options)
    }
}

impl engine_api::Engine for Engine {
    fn name(&self) -> &'static str {
        "InnoDB"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { transactions: true, secondary_indexes: true, key_bytes_max: 3072 }
    }

    fn begin(&self, options: TransactionOptions) -> Box<dyn Transaction> {
        Box::new(EngineTransaction::new(self.core.clone(), options))
    }

    fn create_table(
        &self,
        trx: &mut dyn Transaction,
        table: &mut TableDefinition,
    ) -> ApiResult<()> {
        ddl::create_table(own(trx), table)
    }

    fn drop_table(&self, trx: &mut dyn Transaction, table: &TableDefinition) -> ApiResult<()> {
        ddl::drop_table(own(trx), table)
    }

    fn build_index(
        &self,
        trx: &mut dyn Transaction,
        table: &mut TableDefinition,
        position: usize,
    ) -> ApiResult<std::result::Result<(), DuplicateKey>> {
        build::build_index(own(trx), table, position)
    }

    fn drop_index(
        &self,
        trx: &mut dyn Transaction,
        table: &TableDefinition,
        position: usize,
    ) -> ApiResult<()> {
        ddl::drop_index(own(trx), table, position)
    }

    fn open_table(&self, table: Arc<TableDefinition>) -> ApiResult<Arc<dyn Table>> {
        Ok(Arc::new(crate::table::EngineTable::new(self.core.clone(), table)?))
    }

    fn dictionary_get(&self, trx: &mut dyn Transaction, key: &[u8]) -> ApiResult<Option<Vec<u8>>> {
        dictionary::get(own(trx), &dictionary::catalog_key(key))
    }

    fn dictionary_put(&self, trx: &mut dyn Transaction, key: &[u8], value: &[u8]) -> ApiResult<()> {
        dictionary::set(own(trx), &dictionary::catalog_key(key), Some(value))
    }

    fn dictionary_delete(&self, trx: &mut dyn Transaction, key: &[u8]) -> ApiResult<()> {
        dictionary::set(own(trx), &dictionary::catalog_key(key), None)
    }

    fn dictionary_scan(
        &self,
        trx: &mut dyn Transaction,
        prefix: &[u8],
    ) -> ApiResult<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut pairs = dictionary::scan(own(trx), &dictionary::catalog_key(prefix))?;
        for (key, _) in &mut pairs {
            key.remove(0);
        }
        Ok(pairs)
    }

    fn status(&self) -> Vec<(&'static str, u64)> {
        status::named(&self.core)
    }
}
