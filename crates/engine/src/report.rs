//! What the engine tells of locks: the transaction system's view in the border's words.

use crate::core::Core;
use engine_api::{
    DeadlockMember, DeadlockReport, Isolation, LockReport, LockedPart, LockingReport,
    TransactionOptions, TransactionReport,
};
use runtime::Instant;
use txn::{DeadlockView, Label, LockKind, LockMode, LockView, TransactionView};

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

fn lock(view: &LockView) -> LockReport {
    let part = match view.kind {
        LockKind::Record => LockedPart::Record,
        LockKind::Gap => LockedPart::Gap,
        LockKind::NextKey => LockedPart::NextKey,
        LockKind::InsertIntention => LockedPart::InsertIntention,
    };
    LockReport {
        transaction: view.transaction,
        tree: view.tree,
        key: Some(view.key.clone()).filter(|key| !key.is_empty()),
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
        locks: view.locks.iter().map(lock).collect(),
        waits: view.waits,
    }
}

/// The last deadlock.
pub(crate) fn deadlock(view: &DeadlockView) -> DeadlockReport {
    let members = view.members.iter().map(|member| DeadlockMember {
        transaction: transaction(&member.transaction, view.at),
        statement: member.statement.clone(),
        wanted: member.wanted.as_ref().map(lock),
        conflicting: member.conflicting.as_ref().map(lock),
    });
    DeadlockReport { at_micros: view.at_micros, members: members.collect(), victim: view.victim }
}
