//! The errors an engine can give; `session` maps them to MySQL's numbers in one place.

use thiserror::Error;

/// Result of an engine call.
pub type Result<T> = std::result::Result<T, EngineError>;

/// Why an engine call failed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum EngineError {
    /// A cycle of waits; this transaction was chosen and rolled back (1213, 40001).
    #[error("deadlock found when trying to get lock")]
    Deadlock,
    /// Under snapshot isolation the row was changed after the snapshot; rolled back (1213).
    #[error("the row was changed by a transaction that committed after this snapshot")]
    WriteConflict,
    /// A lock was not granted within the transaction's limit (1205).
    #[error("lock wait timeout exceeded")]
    LockWaitTimeout,
    /// The same, and `innodb_rollback_on_timeout` has rolled the transaction back (1205).
    #[error("lock wait timeout exceeded, the transaction was rolled back")]
    TimedOutAndRolledBack,
    /// No memory for more locks; the transaction was rolled back (1206).
    #[error("the total number of locks exceeds the lock table size")]
    LockTableFull,
    /// NOWAIT and the row is locked (1205 in MariaDB).
    #[error("the row is locked and NOWAIT was asked")]
    LockNotAvailable,
    /// The statement was killed or timed out while it waited.
    #[error("the statement was cancelled")]
    Cancelled,
    /// A page or row of this object is damaged; other objects keep working.
    #[error("'{object}' is corrupt: {detail}")]
    Corrupt {
        /// Table or index.
        object: String,
        /// What was found, with page and offset where known.
        detail: String,
    },
    /// The device or quota is full; the change was not made.
    #[error("no space left for data or log")]
    DiskFull,
    /// The log or the data could not be made durable; the server is stopping.
    #[error("storage has failed and stopped: {0}")]
    Failed(String),
    /// A rollback was cut short (a page cannot be read): the transaction's changes are neither
    /// there nor gone. It takes nothing more until it is rolled back as a whole (1181).
    #[error("a part of the transaction could not be undone: ROLLBACK ends it")]
    HalfUndone,
    /// The encoded row exceeds what a page tree can hold.
    #[error("row size too large")]
    RowTooLarge,
    /// The encoded key exceeds the limit of the tree's page class.
    #[error("key too long, {limit_bytes} bytes is the limit")]
    KeyTooLong {
        /// Largest key in bytes.
        limit_bytes: usize,
    },
    /// Memory budget of the statement or server exceeded.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// `innodb_read_only_compressed`: rows of this table are not to be changed (4047).
    #[error("tables with compressed rows are read only")]
    ReadOnly,
    /// The engine has no such ability.
    #[error("not supported: {0}")]
    Unsupported(&'static str),
}

impl EngineError {
    /// Whether the engine has rolled back the whole transaction before it told the error.
    pub fn has_ended_transaction(&self) -> bool {
        matches!(
            self,
            Self::Deadlock
                | Self::WriteConflict
                | Self::LockTableFull
                | Self::TimedOutAndRolledBack
        )
    }
}
