//! What an engine tells of its transactions and locks to those who look, and of the last deadlock.

use crate::Isolation;
use base::TreeId;

/// A transaction that has locked or changed something.
#[derive(Clone, Debug)]
pub struct TransactionReport {
    /// Its id.
    pub id: u64,
    /// Connection; 0 for the server's own.
    pub connection: u32,
    /// Level.
    pub isolation: Isolation,
    /// Microseconds since it first locked or changed something.
    pub age_micros: u64,
    /// Microseconds since it began to wait for a lock; none if it does not.
    pub waiting_micros: Option<u64>,
    /// Explicit locks that it holds.
    pub locks: u64,
    /// Entries changed, those of secondary indexes counted too.
    pub modified: u64,
    /// By which the victim of a deadlock is chosen.
    pub weight: u64,
}

/// What of a key a lock is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedPart {
    /// The key.
    Record,
    /// The interval before it.
    Gap,
    /// Both.
    NextKey,
    /// A place in the interval, to insert there.
    InsertIntention,
}

/// A lock held or wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockReport {
    /// The transaction.
    pub transaction: u64,
    /// `IndexDefinition::tree` of the index; zero for the wait for a transaction's end.
    pub tree: TreeId,
    /// Key of the index; none for the end of the index.
    pub key: Option<Vec<u8>>,
    /// Exclusive, not shared.
    pub is_exclusive: bool,
    /// What of the key.
    pub part: LockedPart,
    /// Held.
    pub is_granted: bool,
}

/// Who waits for whom.
#[derive(Clone, Debug, Default)]
pub struct LockingReport {
    /// In order of id.
    pub transactions: Vec<TransactionReport>,
    /// Locks of keys that somebody waits for.
    pub locks: Vec<LockReport>,
    /// Positions in `locks`: one that is waited for, and one that keeps it waiting.
    pub waits: Vec<(usize, usize)>,
}

/// A transaction in a deadlock.
#[derive(Clone, Debug)]
pub struct DeadlockMember {
    /// As it was then; ages are those at the time of the deadlock.
    pub transaction: TransactionReport,
    /// Statement that waited.
    pub statement: Vec<u8>,
    /// What it waited for.
    pub wanted: Option<LockReport>,
    /// The next member's lock, which kept it waiting.
    pub conflicting: Option<LockReport>,
}

/// A cycle of waits.
#[derive(Clone, Debug)]
pub struct DeadlockReport {
    /// When, microseconds since 1970.
    pub at_micros: i64,
    /// Each waited for the next, the last for the first.
    pub members: Vec<DeadlockMember>,
    /// Position of the one that was rolled back.
    pub victim: usize,
}
