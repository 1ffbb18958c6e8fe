//! The engine as the border sees it.

use crate::background::Background;
use crate::core::Core;
use crate::error::{from_log, from_store};
use crate::options::EngineOptions;
use crate::recovery::{OpenError, RecoverySummary};
use crate::transaction::{EngineTransaction, own};
use crate::{build, checkpoint, ddl, dictionary, drops, purge, report, statistics, status};
use engine_api::{
    COMPRESSED_BLOCK_CLASSES, Capabilities, CompressionCounts, DeadlockReport, DuplicateKey,
    LockingReport, PreparedTransaction, Result as ApiResult, StatementSource, Table,
    TableDefinition, Transaction, TransactionOptions,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Deleted rows are removed, and dropped trees given back, for so long each at a shutdown.
const PURGE_AT_CLOSE: Duration = Duration::from_secs(5);

/// The storage engine. Opened by [`Engine::open`], ended by [`Engine::close`].
pub struct Engine {
    pub(crate) core: Arc<Core>,
    pub(crate) background: Background,
    /// Prepared before this start, and not asked for yet.
    pub(crate) prepared: runtime::sync::Mutex<Vec<PreparedTransaction>>,
}

impl Engine {
    /// Opens the database in `options.datadir`: creates it in an empty directory, recovers it
    /// otherwise. Transactions that had not committed are rolled back when this returns.
    pub fn open(options: EngineOptions) -> Result<(Arc<Self>, RecoverySummary), OpenError> {
        let (engine, summary) = crate::recovery::open(options)?;
        Ok((Arc::new(engine), summary))
    }

    /// Ends the engine in order: everything is written, the next start has nothing to redo.
    /// Transactions that still run are refused further changes; end them before.
    pub fn close(&self) -> ApiResult<()> {
        statistics::save_all(&self.core);
        self.core.begin_stop();
        self.background.join();
        purge::finish(&self.core, PURGE_AT_CLOSE)?;
        drops::finish(&self.core, PURGE_AT_CLOSE);
        let store_error = |error| from_store(&error, || "data".to_owned());
        self.core.store.flush_until(self.core.wal.end()).map_err(store_error)?;
        checkpoint::checkpoint(&self.core, true)?;
        self.core.wal.close().map_err(|error| from_log(&error))?;
        self.core.store.close().map_err(store_error)
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

    fn change_options(&self, trx: &mut dyn Transaction, table: &TableDefinition) -> ApiResult<()> {
        ddl::change_options(own(trx), table)
    }

    fn set_dirty_share_max(&self, share: f64) {
        self.core.store.set_dirty_share_max(share);
    }

    fn set_compressed(&self, algorithm: &str, level: i32) {
        crate::storage::set_compressed(&self.core.store, algorithm, level);
    }

    fn compression_counts(&self, resets: bool) -> [CompressionCounts; COMPRESSED_BLOCK_CLASSES] {
        self.core.store.compression_of_classes(resets).map(crate::storage::counts)
    }

    fn set_compressed_rows_read_only(&self, is_read_only: bool) {
        self.core.compressed_rows_read_only.store(is_read_only, Ordering::Relaxed);
    }

    fn are_compressed_rows_read_only(&self) -> bool {
        self.core.compressed_rows_read_only.load(Ordering::Relaxed)
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

    fn locking(&self) -> LockingReport {
        report::locking(&self.core)
    }

    fn last_deadlock(&self) -> Option<DeadlockReport> {
        let view = self.core.txn.locks().last_deadlock()?;
        Some(report::deadlock(&self.core, &view))
    }

    fn take_prepared(&self) -> Vec<PreparedTransaction> {
        std::mem::take(&mut *self.prepared.lock())
    }

    fn set_statement_source(&self, source: Arc<StatementSource>) {
        self.core.txn.locks().set_statement_source(source);
    }
}
