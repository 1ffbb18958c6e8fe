//! Errors of the rooms below turned into those of the border.

use btree::TreeError;
use engine_api::EngineError;
use pagestore::StoreError;
use txn::{LockError, TxnError, UndoFull};
use wal::WalError;

/// An error of the log.
pub(crate) fn from_log(error: &WalError) -> EngineError {
    match error {
        WalError::DiskFull => EngineError::DiskFull,
        WalError::TooLarge { .. } => EngineError::RowTooLarge,
        other => EngineError::Failed(other.to_string()),
    }
}

/// An error of a tree; `object` names the table and index.
pub(crate) fn from_tree(error: TreeError, object: impl FnOnce() -> String) -> EngineError {
    match error {
        TreeError::KeyTooLong { limit_bytes, .. } => EngineError::KeyTooLong { limit_bytes },
        TreeError::ValueTooLong { .. } => EngineError::RowTooLarge,
        TreeError::Damaged { .. } | TreeError::NotAscending => {
            EngineError::Corrupt { object: object(), detail: error.to_string() }
        }
        TreeError::Store(error) => from_store(&error, object),
        TreeError::Log(error) => from_log(&error),
    }
}

/// An error of the page store.
pub(crate) fn from_store(error: &StoreError, object: impl FnOnce() -> String) -> EngineError {
    match error {
        StoreError::DiskFull => EngineError::DiskFull,
        StoreError::Corrupt { .. } | StoreError::NoSuchPage(_) => {
            EngineError::Corrupt { object: object(), detail: error.to_string() }
        }
        other => EngineError::Failed(other.to_string()),
    }
}

/// No memory for undo.
pub(crate) fn from_undo(error: UndoFull) -> EngineError {
    EngineError::OutOfMemory(error.to_string())
}

/// An error of the transaction system.
pub(crate) fn from_txn(error: &TxnError) -> EngineError {
    match error {
        TxnError::Log(error) => from_log(error),
        TxnError::Undo(error) => from_undo(*error),
    }
}

/// A lock that was not granted.
pub(crate) fn from_lock(error: LockError) -> EngineError {
    match error {
        LockError::Timeout => EngineError::LockWaitTimeout,
        LockError::Deadlock => EngineError::Deadlock,
        LockError::Unavailable => EngineError::LockNotAvailable,
        LockError::Cancelled => EngineError::Cancelled,
        LockError::TableFull => EngineError::LockTableFull,
    }
}
