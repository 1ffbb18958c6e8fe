//! Row locks: explicit ones in a sharded table, and waiting.
//!
//! Invariants:
//! 1. A queue holds the requests of one key in order of arrival; a request waits while a granted
//!    one, or one that arrived earlier and waits, conflicts with it. A transaction that already
//!    holds a lock of the key waits only for holders (conversion).
//! 2. A transaction waits for at most one thing at a time: a request in a queue, or the end of
//!    another transaction that holds the row by its version word.
//! 3. Every wait is registered before the search for a cycle begins, and searches exclude each
//!    other: of two waits that close a cycle together the later search sees it.
//! 4. The search follows all blockers of a waiter, not one remembered edge.
//! 5. Whoever takes a request out of a queue grants what can be granted then.
//! 6. A cycle has a member that others wait for because of what it holds, and the wait that
//!    closes the cycle is of such a member: whoever only stands ahead of others in a queue was
//!    there before them. So a transaction that never held anything begins to wait without a
//!    search, and a queue of many such waiters (one hot row) costs each of them the same.
//! 7. New edges begin at the transaction that begins to wait, with one exception: who finds that a
//!    row is held by its version word makes that lock explicit, and from then on everybody in the
//!    queue waits for its holder, who may wait himself. Such a cycle need not pass through the one
//!    who found the word (nor end with him as its victim), so the search starts at the holder, too.
//! 8. An explicit lock of one transaction on a row that another has written and not committed lasts
//!    only until the word is read: then its holder queues behind the writer. So a writer that wants
//!    its lock as an explicit one waits ahead of everybody, and nobody comes in between.
//!
//! Modes are those of InnoDB's record locks; the table of conflicts is in [`mode`]. A gap lock is
//! an interval of keys, see [`gap`]; a next-key lock is a record lock and the interval up to it,
//! taken before the record is waited for, so that the wait keeps inserts out as InnoDB's does.

mod deadlock;
mod gap;
mod held;
mod mode;
mod queue;
pub mod report;
mod table;

#[cfg(test)]
mod tests;

pub(crate) use gap::WatchedTrees;
pub(crate) use held::{HeldLock, HeldLocks};
pub use mode::LockMode;
pub(crate) use table::KeyBytes;
pub use table::LockTable;

use crate::owner::Owner;
use base::TreeId;
use runtime::Instant;
use std::sync::Arc;

/// What a transaction waits for.
#[derive(Clone, Debug)]
pub(crate) enum WaitPoint {
    /// A request of its own in the queue of this key. `can_fail`: the transaction may be told to
    /// give up.
    Lock { hash: u64, tree: TreeId, key: KeyBytes, can_fail: bool },
    /// The end of this transaction.
    Transaction(Arc<Owner>),
    /// That nobody's interval contains this key, which it inserts.
    Gap { tree: TreeId, key: KeyBytes },
}

/// What to do when a lock cannot be had at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitRule {
    /// Wait until the deadline.
    Until(Instant),
    /// Give up.
    Never,
}

/// Why a lock was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// The deadline came.
    #[error("lock wait timeout exceeded")]
    Timeout,
    /// The wait closed a cycle and this transaction was chosen to give up.
    #[error("deadlock found")]
    Deadlock,
    /// It would have to wait and must not.
    #[error("the lock is held by another transaction")]
    Unavailable,
    /// The statement was cancelled.
    #[error("the wait was cancelled")]
    Cancelled,
    /// There is no memory for more locks.
    #[error("the total number of locks exceeds the lock table size")]
    TableFull,
}

/// How a lock came to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// It was held before.
    Already,
    /// Granted at once.
    Now,
    /// Granted after a wait: what was read before is out of date.
    AfterWait,
}
