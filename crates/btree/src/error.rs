//! What can go wrong in a tree.

use crate::redo::RedoError;
use base::{PageId, TreeId};
use pagestore::StoreError;
use wal::WalError;

/// Errors of tree operations. Expected outcomes (a missing key, an existing one) are results.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TreeError {
    /// The key is longer than the tree's page size allows.
    #[error("key of {key_bytes} bytes is longer than the {limit_bytes} bytes this tree takes")]
    KeyTooLong {
        /// Length of the key in bytes.
        key_bytes: usize,
        /// Longest key in bytes.
        limit_bytes: usize,
    },
    /// The payload is longer than a record of the log can carry.
    #[error("value of {value_bytes} bytes is longer than the {limit_bytes} bytes a record takes")]
    ValueTooLong {
        /// Length of the value in bytes.
        value_bytes: usize,
        /// Longest value in bytes.
        limit_bytes: usize,
    },
    /// A page of the tree holds what it must not. Contained: other trees keep serving.
    #[error("tree {tree}, page {pid} is damaged: {detail}")]
    Damaged {
        /// The tree.
        tree: TreeId,
        /// The page at which it showed.
        pid: PageId,
        /// What does not agree.
        detail: String,
    },
    /// A bulk load was given keys out of order.
    #[error("bulk load needs strictly ascending keys and an empty tree")]
    NotAscending,
    /// The page store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] WalError),
}

impl TreeError {
    /// A damaged page found by an op that does not apply.
    pub(crate) fn damaged(tree: TreeId, pid: PageId, error: RedoError) -> TreeError {
        TreeError::Damaged { tree, pid, detail: error.to_string() }
    }
}
