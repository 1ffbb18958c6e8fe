//! What a storage engine is to SQL.
//!
//! The executor sees engines only through these traits; an engine sees no SQL text, no
//! expressions and no connections. Rows cross the border encoded: a [`RowBuffer`] holds the
//! clustered key and the payload as `types::row::RowLayout` (computed from the
//! [`TableDefinition`]) lays them out, keys as memcmp bytes.
//!
//! Rules of the border:
//! 1. Every call may park the calling fiber; the caller holds no latch and no lock guard.
//! 2. A duplicate key is an expected outcome, not an error: nested results.
//! 3. [`EngineError::Deadlock`] and [`EngineError::WriteConflict`] mean the transaction has
//!    been rolled back by the engine as a whole; every other error leaves it as it was before
//!    the failed call, and the caller rolls back to its statement savepoint.
//! 4. When `commit` returns `Ok` the transaction is durable (unless its options say less).
//! 5. Before the answer of a read leaves the server the caller calls
//!    [`Transaction::wait_read_durable`]: nothing not yet durable may be seen by a client.

mod column_statistics;
mod error;
mod report;
mod rows;
mod schema;
mod traits;

pub use column_statistics::{ColumnStatistics, VALUE_BYTES, place_between};
pub use error::{EngineError, Result};
pub use report::{
    DeadlockMember, DeadlockReport, LockReport, LockedPart, LockingReport, TransactionReport,
};
pub use rows::{RowBatch, RowBuffer, RowRef};
pub use schema::{
    COMPRESSED, COMPRESSED_BLOCK_CLASSES, COMPRESSED_BLOCKS_KIB, ColumnDefault, ColumnDefinition,
    ForeignKeyDefinition, IndexDefinition, IndexPart, PARTITION_BY, PARTITION_COMMENTS,
    PARTITION_COUNT, PARTITION_NAMES, PARTITION_VALUES, PLAIN_OPTIONS, ReferentialAction,
    TableDefinition, TableOptions,
};
pub use traits::{
    Capabilities, CompressionCounts, Cursor, DuplicateKey, Engine, FlushPolicy, Isolation,
    KeyRange, LockMode, LockWait, PreparedTransaction, ReadGate, Savepoint, ScanDirection,
    ScanOptions, StatementSource, Statistics, StorageUse, Table, TableFinding, TableSizes,
    Transaction, TransactionOptions,
};
