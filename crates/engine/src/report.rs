//! What the engine tells of locks: the transaction system's view in the border's words.
//!
//! An insert that waits for a gap, and the gap, are shown at the entry that follows the key, as
//! InnoDB does, which locks gaps by the record behind them.

use crate::core::Core;
use btree::{Batch, Direction};
use engine_api::{
    DeadlockMember, DeadlockReport, Isolation, LockReport, LockedPart, LockingReport,
    TransactionOptions, TransactionReport,
};
use runtime::Instant;
use std::ops::Bound;
use txn::{DeadlockView, Label, LockMode, LockPart, LockView, TransactionView};

const LEVELS: [Isolation; 4] = [
    Isolation::ReadUncommitted,
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

/// What others shall see of a transaction with these options.
pub(crate) fn label(options: &TransactionOptions) -> Label {
    Label { connection: options.connection, level: options.isolation as u8 }
}

fn transaction(view: &TransactionView, now: Instant) -> TransactionReport {
    let micros = |since: Instant| now.since(since).as_micros() as u64;
    TransactionReport {
        id: view.number,
        connection: view.label.connection,
        isolation: LEVELS[usize::from(view.label.level) % LEVELS.len()],
        age_micros: micros(view.started),
        waiting_micros: view.waits_since.map(micros),
        locks: view.locks,
        modified: view.modified,
        weight: view.weight,
    }
}

/// The entry that follows `key` in its tree, the one of `key` itself included.
fn entry_behind(core: &Core, view: &LockView) -> Option<Vec<u8>> {
    let tree = core.tree(view.tree).ok()?;
    let mut cursor = tree.cursor(Direction::Forward);
    cursor.leave_values();
    cursor.seek(Bound::Included(&view.key));
    let mut batch = Batch::new();
    let found = cursor.next_batch(&mut batch, 1, 1).unwrap_or(false);
    found.then(|| batch.get(0).key.to_vec())
}

fn lock(core: &Core, view: &LockView) -> LockReport {
    let (part, key) = match &view.part {
        LockPart::Record => (LockedPart::Record, Some(view.key.clone())),
        LockPart::InsertIntention => (LockedPart::InsertIntention, entry_behind(core, view)),
        LockPart::Gap { end } => {
            let entry = entry_behind(core, view);
            let includes = |end: &Vec<u8>| entry.as_ref().is_some_and(|entry| entry < end);
            let both = end.as_ref().is_none_or(includes);
            (if both { LockedPart::NextKey } else { LockedPart::Gap }, entry)
        }
    };
    LockReport {
        transaction: view.transaction,
        tree: view.tree,
        key: key.filter(|key| !key.is_empty()),
        is_exclusive: view.mode == LockMode::Exclusive,
        part,
        is_granted: view.is_granted,
    }
}

/// Who runs and who waits for whom.
pub(crate) fn locking(core: &Core) -> LockingReport {
    let (view, now) = (core.txn.locking(), runtime::now());
    LockingReport {
        transactions: view.transactions.iter().map(|it| transaction(it, now)).collect(),
        locks: view.locks.iter().map(|it| lock(core, it)).collect(),
        waits: view.waits,
    }
}

/// The last deadlock.
pub(crate) fn deadlock(core: &Core, view: &DeadlockView) -> DeadlockReport {
    let members = view.members.iter().map(|member| DeadlockMember {
        transaction: transaction(&member.transaction, view.at),
        statement: member.statement.clone(),
        wanted: member.wanted.as_ref().map(|it| lock(core, it)),
        conflicting: member.conflicting.as_ref().map(|it| lock(core, it)),
    });
    DeadlockReport { at_micros: view.at_micros, members: members.collect(), victim: view.victim }
}
