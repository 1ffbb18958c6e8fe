//! The traits: [`Engine`] makes [`Transaction`]s and opens [`Table`]s; a table gives
//! [`Cursor`]s.

use crate::{
    ColumnStatistics, DeadlockReport, EngineError, LockingReport, Result, RowBatch, RowBuffer,
    TableDefinition,
};
use base::{TreeId, TrxId};
use std::any::Any;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// Isolation levels of the standard, with MySQL's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Sees changes not yet committed.
    ReadUncommitted,
    /// A new snapshot per statement.
    ReadCommitted,
    /// One snapshot per transaction.
    RepeatableRead,
    /// Reads lock what they read.
    Serializable,
}

/// `innodb_flush_log_at_trx_commit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushPolicy {
    /// 0: written and synced once a second.
    EverySecond,
    /// 1: written and synced before the commit returns.
    Synchronous,
    /// 2: written before the commit returns, synced once a second.
    WriteOnly,
}

/// What a transaction is begun with.
#[derive(Clone, Debug)]
pub struct TransactionOptions {
    /// Level.
    pub isolation: Isolation,
    /// REPEATABLE READ refuses to change rows changed after its snapshot (1213).
    pub snapshot_isolation: bool,
    /// START TRANSACTION READ ONLY.
    pub read_only: bool,
    /// `innodb_lock_wait_timeout`.
    pub lock_wait_timeout: Duration,
    /// Durability of the commit.
    pub flush_policy: FlushPolicy,
    /// Connection it is of, for reports; 0 for the server's own.
    pub connection: u32,
    /// It is one statement: nothing follows that depends on what the statement did not find.
    pub ends_with_statement: bool,
}

/// Row lock that a read takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Consistent read from the snapshot.
    None,
    /// LOCK IN SHARE MODE.
    Shared,
    /// FOR UPDATE, and the reads of UPDATE and DELETE: latest committed version.
    Exclusive,
}

/// What a locking read does when the row is locked by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    /// Wait up to the transaction's limit.
    Wait,
    /// Wait up to so many seconds.
    Seconds(u32),
    /// Fail at once.
    NoWait,
    /// Leave the row out.
    SkipLocked,
}

/// Direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanDirection {
    /// Ascending key bytes.
    Forward,
    /// Descending key bytes.
    Backward,
}

/// An interval of memcmp keys of one index. A bound is a prefix of index keys: an included
/// lower bound starts at the first key with that prefix, an included upper bound ends after the
/// last key with that prefix; excluded bounds leave all keys with the prefix out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Low end.
    pub lower: Bound<Vec<u8>>,
    /// High end.
    pub upper: Bound<Vec<u8>>,
}

impl KeyRange {
    /// The whole index.
    pub fn all() -> Self {
        Self { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// All keys that begin with `prefix`.
    pub fn prefix(prefix: Vec<u8>) -> Self {
        Self { lower: Bound::Included(prefix.clone()), upper: Bound::Included(prefix) }
    }
}

/// How to scan.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// Position in `TableDefinition::indexes`.
    pub index: usize,
    /// Which keys.
    pub range: KeyRange,
    /// Order.
    pub direction: ScanDirection,
    /// Row locks taken.
    pub lock: LockMode,
    /// On a locked row.
    pub lock_wait: LockWait,
    /// Give only the index key (no fetch of the clustered row); the caller decodes columns
    /// from it.
    pub covering: bool,
}

impl ScanOptions {
    /// A forward scan of whole rows that takes no locks.
    pub fn plain(index: usize, range: KeyRange) -> Self {
        Self {
            index,
            range,
            direction: ScanDirection::Forward,
            lock: LockMode::None,
            lock_wait: LockWait::Wait,
            covering: false,
        }
    }

    /// All rows of a table, in the order of its clustered index, without locks.
    pub fn whole_table() -> Self {
        Self::plain(0, KeyRange::all())
    }
}

/// A unique index already holds the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    /// Position in `TableDefinition::indexes`.
    pub index: usize,
    /// Clustered key of the row that holds it.
    pub clustered_key: Vec<u8>,
}

/// A point to roll back to within a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint(pub u64);

/// What an engine can do; the planner and DDL ask.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// BEGIN and ROLLBACK mean something.
    pub transactions: bool,
    /// Secondary indexes.
    pub secondary_indexes: bool,
    /// Largest key in bytes.
    pub key_bytes_max: usize,
}

/// Estimates about a table; cheap to read, never exact.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Rows.
    pub rows: u64,
    /// Bytes of the clustered tree's pages, uncompressed.
    pub data_bytes: u64,
    /// Bytes of the other trees' pages, uncompressed.
    pub index_bytes: u64,
    /// Per index, per number of leading parts: estimated number of distinct values.
    pub distinct: Vec<Vec<u64>>,
}

/// What an index takes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageUse {
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// Pages.
    pub pages: u64,
    /// Bytes of these pages uncompressed.
    pub raw_bytes: u64,
    /// Bytes of their copies on the device; pages that were never written have none.
    pub stored_bytes: u64,
    /// Dead bytes beside these copies that collection has not given back yet.
    pub garbage_bytes: u64,
}

/// What compression has taken, of tables with `ROW_FORMAT=COMPRESSED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompressionCounts {
    /// Pages that a codec was tried on ...
    pub tried_pages: u64,
    /// ... those of them that were written compressed, since that gained something ...
    pub compressed_pages: u64,
    /// ... and nanoseconds of all tries.
    pub compress_nanos: u64,
    /// Pages that were decompressed ...
    pub decompressed_pages: u64,
    /// ... and nanoseconds that took.
    pub decompress_nanos: u64,
}

/// Sizes of a table for listings. Exact, and cheap to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSizes {
    /// Bytes of the pages of the clustered tree, uncompressed.
    pub data_bytes: u64,
    /// Bytes of the pages of the other trees, uncompressed.
    pub index_bytes: u64,
    /// Of the dead and unused bytes of the store's files the share that falls to the table by the
    /// number of its pages.
    pub free_bytes: u64,
}

/// A finding of CHECK TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFinding {
    /// Object.
    pub object: String,
    /// Sentence.
    pub detail: String,
}

/// A transaction that was prepared in a former run.
pub struct PreparedTransaction {
    /// The name it was prepared under.
    pub name: Vec<u8>,
    /// To be committed or rolled back.
    pub transaction: Box<dyn Transaction>,
    /// Trees of indexes that it has changed.
    pub trees: Vec<TreeId>,
}

/// Tells the statement that a connection executes. It must not park.
pub type StatementSource = dyn Fn(u32) -> Vec<u8> + Send + Sync;

/// A storage engine.
pub trait Engine: Send + Sync {
    /// Name in SHOW ENGINES.
    fn name(&self) -> &'static str;
    /// Abilities.
    fn capabilities(&self) -> Capabilities;
    /// Starts a transaction; takes no snapshot yet.
    fn begin(&self, options: TransactionOptions) -> Box<dyn Transaction>;

    /// Creates the trees of a table and fills in its ids, within `trx` (undone if it rolls
    /// back or is lost in a crash).
    fn create_table(&self, trx: &mut dyn Transaction, table: &mut TableDefinition) -> Result<()>;
    /// Gives the table's space back once `trx` has committed and no reader needs it.
    fn drop_table(&self, trx: &mut dyn Transaction, table: &TableDefinition) -> Result<()>;
    /// Builds index `position` of `table` from its rows; ids are filled in. The caller keeps
    /// writers away. A duplicate in a unique index is reported with its clustered key.
    fn build_index(
        &self,
        trx: &mut dyn Transaction,
        table: &mut TableDefinition,
        position: usize,
    ) -> Result<std::result::Result<(), DuplicateKey>>;
    /// Drops the tree of one secondary index once `trx` has committed.
    fn drop_index(
        &self,
        trx: &mut dyn Transaction,
        table: &TableDefinition,
        position: usize,
    ) -> Result<()>;
    /// Remembers the options of `table` that concern its storage; they hold for pages written
    /// after `trx` has committed.
    fn change_options(&self, trx: &mut dyn Transaction, table: &TableDefinition) -> Result<()>;
    /// Algorithm and level (1 to 9, 0 for the algorithm's own) of tables whose
    /// [`crate::TableOptions::codec`] is [`crate::COMPRESSED`], for pages written from now on.
    fn set_compressed(&self, _algorithm: &str, _level: i32) {}
    /// What compression of the tables with `ROW_FORMAT=COMPRESSED` has taken since the server was
    /// started, by [`crate::TableOptions::compressed_block_class`]; dropped tables count on. With
    /// `resets` they count from 0 again.
    fn compression_counts(
        &self,
        _resets: bool,
    ) -> [CompressionCounts; crate::COMPRESSED_BLOCK_CLASSES] {
        Default::default()
    }
    /// `innodb_read_only_compressed`: rows of tables with `ROW_FORMAT=COMPRESSED` are not changed.
    fn set_compressed_rows_read_only(&self, _is_read_only: bool) {}
    /// Whether that is so.
    fn are_compressed_rows_read_only(&self) -> bool {
        false
    }
    /// Share of the buffer pool, from 0 to 1, that may hold changes that are not on the device
    /// before pages are written whatever the log says.
    fn set_dirty_share_max(&self, _share: f64) {}
    /// Opens a table for reading and writing. Cheap; the caller caches the result by version.
    fn open_table(&self, table: Arc<TableDefinition>) -> Result<Arc<dyn Table>>;

    /// The dictionary: a small transactional key-value tree in which the catalog keeps its
    /// definitions. Reads see the latest committed value and `trx`'s own.
    fn dictionary_get(&self, trx: &mut dyn Transaction, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Sets a key.
    fn dictionary_put(&self, trx: &mut dyn Transaction, key: &[u8], value: &[u8]) -> Result<()>;
    /// Removes a key.
    fn dictionary_delete(&self, trx: &mut dyn Transaction, key: &[u8]) -> Result<()>;
    /// All pairs whose key begins with `prefix`, in key order.
    fn dictionary_scan(
        &self,
        trx: &mut dyn Transaction,
        prefix: &[u8],
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>>;

    /// Named counters and gauges for SHOW STATUS, in MySQL's `Innodb_` names where they exist.
    fn status(&self) -> Vec<(&'static str, u64)>;

    /// Transactions that have locked or changed something, and who waits for whom.
    fn locking(&self) -> LockingReport {
        LockingReport::default()
    }
    /// The last deadlock there was.
    fn last_deadlock(&self) -> Option<DeadlockReport> {
        None
    }
    /// Transactions that were prepared before this run and have not ended; each is given once.
    fn take_prepared(&self) -> Vec<PreparedTransaction> {
        Vec::new()
    }
    /// Whom to ask for the statements of a deadlock's members.
    fn set_statement_source(&self, _source: Arc<StatementSource>) {}
}

/// Holds back rows that go to the client before their statement has ended.
pub trait ReadGate: Send + Sync {
    /// Parks until everything that the transaction has seen up to now is durable. Cheap when it
    /// is. Not cancellable.
    fn wait_durable(&self) -> Result<()>;
}

/// A transaction. Dropping it without `commit` rolls it back.
pub trait Transaction: Send {
    /// For the engine's own downcast.
    fn as_any_mut(&mut self) -> &mut dyn Any;
    /// Id; zero until it has written.
    fn id(&self) -> TrxId;
    /// Whether it has changed anything.
    fn has_written(&self) -> bool;
    /// Takes the snapshot now (START TRANSACTION WITH CONSISTENT SNAPSHOT).
    fn open_snapshot(&mut self);
    /// A new statement begins: READ COMMITTED drops its snapshot. Returns the point to which a
    /// failed statement is rolled back.
    fn begin_statement(&mut self) -> Savepoint;
    /// A point for SAVEPOINT.
    fn savepoint(&mut self) -> Savepoint;
    /// Undoes all changes after the point. Locks are kept.
    fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()>;
    /// Makes it durable. On an error the transaction may or may not be durable only if the
    /// error is `Failed`; otherwise it has been rolled back.
    fn commit(self: Box<Self>) -> Result<()>;
    /// First phase of two: when it returns, neither a crash nor a drop of the value undoes what
    /// was changed; [`Engine::take_prepared`] gives it back in the next run under this name. Only
    /// commit or rollback may follow. A transaction that has changed nothing is not kept.
    fn prepare(&mut self, _name: &[u8]) -> Result<()> {
        Err(EngineError::Unsupported("XA PREPARE"))
    }
    /// Ends a transaction that has changed nothing and keeps the value for the next one:
    /// afterwards it is as [`Engine::begin`] makes one, with the former options. False, and
    /// nothing is ended, if there are changes to commit.
    fn end_unchanged(&mut self) -> Result<bool>;
    /// As [`Transaction::commit`], keeping the value as [`Transaction::end_unchanged`] does. False
    /// if the engine does not keep it: then, and after an error, it is only to be dropped.
    fn commit_and_keep(&mut self) -> Result<bool>;
    /// Sets the options of a transaction that has done nothing yet.
    fn set_options(&mut self, options: TransactionOptions);
    /// Undoes everything.
    fn rollback(self: Box<Self>) -> Result<()>;
    /// A statement ends: parks until everything this transaction has seen is durable. No cursor
    /// is used after it.
    fn wait_read_durable(&mut self) -> Result<()>;
    /// What a part of an answer must pass before it leaves while its statement still reads.
    fn read_gate(&mut self) -> Arc<dyn ReadGate>;
    /// Plain reads of this statement serve its changes (INSERT ... SELECT, a subquery of an
    /// UPDATE): where that is not a matter of one snapshot they lock shared what they read.
    fn lock_plain_reads(&mut self) {}
    /// This statement reads one row by its key and nothing else: where the transaction ends with
    /// it and there is no such row, nobody need be kept from inserting one.
    fn read_one_key(&mut self) {}
    /// Rows that inserts of this statement find in their way will be read under an exclusive lock:
    /// they are not locked shared before.
    fn expect_duplicates(&mut self) {}
    /// Changes the limit for later lock waits.
    fn set_lock_wait_timeout(&mut self, timeout: Duration);
    /// While it is on, locking reads take the newest committed version whatever the snapshot is:
    /// what a foreign key asks about is what is there now, so it conflicts with no commit.
    fn read_present(&mut self, on: bool);
}

/// An open table.
pub trait Table: Send + Sync {
    /// Its definition.
    fn definition(&self) -> &Arc<TableDefinition>;

    /// Inserts a row. With a hidden row id `row.key` is empty and is filled in.
    fn insert(
        &self,
        trx: &mut dyn Transaction,
        row: &mut RowBuffer,
    ) -> Result<std::result::Result<(), DuplicateKey>>;
    /// Replaces `old`, as it was read under an exclusive lock, by `new`. Only indexes whose
    /// columns differ are touched.
    fn update(
        &self,
        trx: &mut dyn Transaction,
        old: &RowBuffer,
        new: &RowBuffer,
    ) -> Result<std::result::Result<(), DuplicateKey>>;
    /// Deletes a row that was read under an exclusive lock.
    fn delete(&self, trx: &mut dyn Transaction, row: &RowBuffer) -> Result<()>;

    /// The row with this clustered key is to be read soon: asks for memory that this will need.
    /// Costs something, waits for nothing.
    fn prefetch(&self, clustered_key: &[u8]) {
        let _nothing_known = clustered_key;
    }

    /// Reads the row with this clustered key into `row`; false if there is none (or it is
    /// locked and `wait` is `SkipLocked`).
    fn get(
        &self,
        trx: &mut dyn Transaction,
        clustered_key: &[u8],
        lock: LockMode,
        wait: LockWait,
        row: &mut RowBuffer,
    ) -> Result<bool>;
    /// Opens a scan. It reads from `trx`'s snapshot (`LockMode::None`) or the latest versions.
    fn scan(&self, trx: &mut dyn Transaction, options: ScanOptions) -> Result<Box<dyn Cursor>>;
    /// READ COMMITTED: gives back the lock of a row that the statement did not want after all.
    fn unlock_row(&self, trx: &mut dyn Transaction, row: &RowBuffer);

    /// Reserves `count` values of the AUTO_INCREMENT counter that are `offset + n * increment`
    /// and returns the first. Survives crashes: a value is never given twice.
    fn reserve_auto_increment(&self, count: u64, increment: u64, offset: u64) -> Result<u64>;
    /// A row with this explicit value was inserted: the counter moves past it.
    fn observe_auto_increment(&self, value: u64) -> Result<()>;
    /// Next value that would be given, for SHOW CREATE TABLE.
    fn next_auto_increment(&self) -> u64;
    /// ALTER TABLE ... AUTO_INCREMENT, TRUNCATE.
    fn set_auto_increment(&self, value: u64) -> Result<()>;

    /// Estimates.
    fn statistics(&self) -> Statistics;
    /// What each index takes up, in the definition's order. Looks at each page's entry in memory.
    fn storage(&self) -> Vec<StorageUse> {
        Vec::new()
    }
    /// What compression of each index has taken, in the definition's order; 0 everywhere if the
    /// table has no `ROW_FORMAT=COMPRESSED`. With `resets` they count from 0 again.
    fn compression_counts(&self, _resets: bool) -> Vec<CompressionCounts> {
        Vec::new()
    }
    /// Sizes for listings.
    fn sizes(&self) -> TableSizes {
        let Statistics { data_bytes, index_bytes, .. } = self.statistics();
        TableSizes { data_bytes, index_bytes, free_bytes: 0 }
    }
    /// OPTIMIZE TABLE: closes up what deletes have left sparse. Others go on using the table.
    fn compact(&self) -> Result<()> {
        Ok(())
    }
    /// Estimates about the values of a column, if there are any.
    fn column_statistics(&self, _column: usize) -> Option<Arc<ColumnStatistics>> {
        None
    }
    /// Estimates are made anew when they are asked for next.
    fn forget_statistics(&self) {}
    /// Rows changed since the table was opened: how old estimates are. Very cheap.
    fn changes(&self) -> u64;
    /// Estimated number of keys in a range of an index.
    fn estimate_range(&self, index: usize, range: &KeyRange) -> u64;
    /// CHECK TABLE: order, links and agreement of the indexes.
    fn check(&self) -> Result<Vec<TableFinding>>;
}

/// A scan in progress.
pub trait Cursor: Send {
    /// The next row into `row`; false at the end.
    fn next(&mut self, trx: &mut dyn Transaction, row: &mut RowBuffer) -> Result<bool>;
    /// Replaces the content of `rows` by the next rows, at least one; false at the end. A plain
    /// read gives what lies together, so rows may have been read that are not wanted in the end;
    /// a locking read gives one row, so that no row is locked ahead of the statement's wish.
    fn next_rows(&mut self, trx: &mut dyn Transaction, rows: &mut RowBatch) -> Result<bool>;
}
