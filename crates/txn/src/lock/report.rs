//! What transactions lock and wait for, and the last deadlock, as data for those who look.
//!
//! A report is put together from one queue after another while everybody goes on: what it says of
//! one key is of one moment, different keys may be of different ones. The last deadlock is put
//! together while its members wait, from their own requests only: searches exclude each other, and
//! a walk over all that is locked would keep them.

use super::gap::GapConflict;
use super::queue::{Queue, Request};
use super::{LockMode, LockTable, WaitPoint};
use crate::owner::{Label, Owner};
use crate::system::TransactionSystem;
use base::TreeId;
use runtime::Instant;
use runtime::sync::Mutex;
use std::sync::Arc;

/// A transaction that has locked or written something.
#[derive(Clone, Debug)]
pub struct TransactionView {
    /// Its number.
    pub number: u64,
    /// Whose it is.
    pub label: Label,
    /// When it first locked or wrote.
    pub started: Instant,
    /// Since when it waits for a lock.
    pub waits_since: Option<Instant>,
    /// Explicit locks that it holds; as a member of a deadlock those it has taken.
    pub locks: u64,
    /// Changes of entries that were not undone.
    pub modified: u64,
    /// By which the victim of a deadlock is chosen.
    pub weight: u64,
}

impl TransactionView {
    fn of(owner: &Owner, locks: u64) -> Self {
        Self {
            number: owner.number(),
            label: owner.label(),
            started: owner.started(),
            waits_since: owner.waits_since(),
            locks,
            modified: owner.modified(),
            weight: owner.weight(),
        }
    }
}

/// What a lock is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockPart {
    /// The key.
    Record,
    /// The interval with the key, which somebody else wants to insert.
    Gap {
        /// The smallest key beyond it; `None`: it has no end.
        end: Option<Vec<u8>>,
    },
    /// The key, to insert it.
    InsertIntention,
}

/// A lock held or wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockView {
    /// Number of the transaction.
    pub transaction: u64,
    /// Tree of the key; zero for the wait for another transaction's end.
    pub tree: TreeId,
    /// The key.
    pub key: Vec<u8>,
    /// Shared or exclusive.
    pub mode: LockMode,
    /// What of the key.
    pub part: LockPart,
    /// Held.
    pub is_granted: bool,
}

/// Everything that is locked where somebody waits.
#[derive(Clone, Debug, Default)]
pub struct LockingView {
    /// By number.
    pub transactions: Vec<TransactionView>,
    /// Locks of keys that somebody waits for.
    pub locks: Vec<LockView>,
    /// Positions in `locks`: a lock that is waited for, and one that keeps it waiting.
    pub waits: Vec<(usize, usize)>,
}

/// One transaction of a deadlock.
#[derive(Clone, Debug)]
pub struct DeadlockMember {
    /// As it was then.
    pub transaction: TransactionView,
    /// The statement that waited, as the source given to the table told it.
    pub statement: Vec<u8>,
    /// What it waited for.
    pub wanted: Option<LockView>,
    /// The lock of the next member that kept it waiting.
    pub conflicting: Option<LockView>,
}

/// A cycle of waits.
#[derive(Clone, Debug)]
pub struct DeadlockView {
    /// Microseconds since 1970.
    pub at_micros: i64,
    /// The same moment.
    pub at: Instant,
    /// Each waited for the next, the last for the first.
    pub members: Vec<DeadlockMember>,
    /// Position of the one that was chosen to give up.
    pub victim: usize,
}

/// Tells the statement that a connection executes.
type StatementSource = dyn Fn(u32) -> Vec<u8> + Send + Sync;

/// The last deadlock, and who knows statements.
#[derive(Default)]
pub(crate) struct LastDeadlock {
    last: Mutex<Option<Arc<DeadlockView>>>,
    source: Mutex<Option<Arc<StatementSource>>>,
}

impl LastDeadlock {
    /// A cycle whose members all wait, as it is now.
    pub(super) fn describe(
        &self,
        table: &LockTable,
        cycle: &[Arc<Owner>],
        victim: usize,
    ) -> DeadlockView {
        let source = self.source.lock().clone();
        let next = cycle.iter().cycle().skip(1);
        let members = cycle.iter().zip(next).map(|(owner, blocker)| {
            let (wanted, conflicting) = table.conflict(owner, blocker).unzip();
            let connection = owner.label().connection;
            DeadlockMember {
                transaction: TransactionView::of(owner, owner.locks_taken()),
                statement: source.as_ref().map(|tell| tell(connection)).unwrap_or_default(),
                wanted,
                conflicting,
            }
        });
        DeadlockView {
            at_micros: runtime::wall_clock_micros(),
            at: runtime::now(),
            members: members.collect(),
            victim,
        }
    }

    /// It was the last one.
    pub(super) fn remember(&self, view: DeadlockView) {
        *self.last.lock() = Some(Arc::new(view));
    }
}

impl Queue {
    fn view(&self, request: &Request) -> LockView {
        LockView {
            transaction: request.owner.number(),
            tree: self.tree,
            key: self.key.to_vec(),
            mode: request.mode,
            part: LockPart::Record,
            is_granted: request.granted,
        }
    }
}

impl GapConflict {
    /// The insert that waits, and the interval that keeps it waiting.
    fn views(self) -> (LockView, LockView) {
        let (tree, key) = (self.tree, self.key.to_vec());
        let wanted = LockView {
            transaction: self.waiter,
            tree,
            key: key.clone(),
            mode: LockMode::Exclusive,
            part: LockPart::InsertIntention,
            is_granted: false,
        };
        let part = LockPart::Gap { end: self.end };
        let (transaction, mode) = (self.holder, self.mode);
        (wanted, LockView { transaction, tree, key, mode, part, is_granted: true })
    }
}

/// The position of a lock in the list, to which it is added unless it is there.
fn place(locks: &mut Vec<LockView>, lock: LockView) -> usize {
    locks.iter().position(|it| *it == lock).unwrap_or_else(|| {
        locks.push(lock);
        locks.len() - 1
    })
}

impl LockTable {
    /// Locks of the keys that somebody waits for, and who waits for which, by position.
    fn contended(&self) -> (Vec<LockView>, Vec<(usize, usize)>) {
        let (mut locks, mut waits) = (Vec::new(), Vec::new());
        for shard in &self.shards {
            for queue in shard.lock().iter().filter(|it| it.requests.iter().any(|it| !it.granted)) {
                let first = locks.len();
                locks.extend(queue.requests.iter().map(|it| queue.view(it)));
                for (at, waiting) in queue.requests.iter().enumerate().filter(|(_, it)| !it.granted)
                {
                    for blocker in queue.blockers(&waiting.owner, waiting.mode, at) {
                        let same = |it: &Request| std::ptr::eq(it, blocker);
                        let other = queue.requests.iter().position(same).unwrap_or(at);
                        waits.push((first + at, first + other));
                    }
                }
            }
        }
        for conflict in self.gaps.conflicts() {
            let (wanted, held) = conflict.views();
            waits.push((place(&mut locks, wanted), place(&mut locks, held)));
        }
        (locks, waits)
    }

    /// Explicit locks granted to each of these transactions.
    fn granted_to(&self, numbers: &[u64]) -> Vec<u64> {
        let mut counts = vec![0; numbers.len()];
        for shard in &self.shards {
            let shard = shard.lock();
            for request in shard.iter().flat_map(|it| &it.requests).filter(|it| it.granted) {
                if let Ok(at) = numbers.binary_search(&request.owner.number()) {
                    counts[at] += 1;
                }
            }
        }
        counts
    }

    /// What the waiting `owner` wants, and the lock of `blocker` that it waits for.
    fn conflict(&self, owner: &Arc<Owner>, blocker: &Arc<Owner>) -> Option<(LockView, LockView)> {
        let (hash, tree, key) = match owner.wait_point()? {
            WaitPoint::Lock { hash, tree, key, .. } => (hash, tree, key),
            WaitPoint::Gap { tree, key } => {
                return self.gaps.conflict(owner, blocker, tree, &key).map(GapConflict::views);
            }
            WaitPoint::Transaction(_) => return None,
        };
        let shard = self.shard(hash).lock();
        let queue = shard.find(hash, |it| it.is_for(tree, &key))?;
        let waits = |it: &Request| !it.granted && Arc::ptr_eq(&it.owner, owner);
        let at = queue.requests.iter().position(waits)?;
        let request = &queue.requests[at];
        let mut blockers = queue.blockers(owner, request.mode, at);
        let other = blockers.find(|it| Arc::ptr_eq(&it.owner, blocker))?;
        Some((queue.view(request), queue.view(other)))
    }

    /// The last deadlock there was.
    pub fn last_deadlock(&self) -> Option<Arc<DeadlockView>> {
        self.deadlocks.last.lock().clone()
    }

    /// Gives the table somebody to ask for the statement of a connection. He must not park.
    pub fn set_statement_source(&self, source: Arc<StatementSource>) {
        *self.deadlocks.source.lock() = Some(source);
    }
}

impl TransactionSystem {
    /// Who runs, who waits for whom.
    pub fn locking(&self) -> LockingView {
        let owners = self.owners();
        let numbers: Vec<u64> = owners.iter().map(|owner| owner.number()).collect();
        let counts = self.locks.granted_to(&numbers);
        let (mut locks, mut waits) = self.locks.contended();
        for owner in &owners {
            if let Some(WaitPoint::Transaction(target)) = owner.wait_point() {
                let mode = LockMode::Exclusive;
                let lock = |transaction, is_granted| {
                    let (tree, key, part) = (TreeId::default(), Vec::new(), LockPart::Record);
                    LockView { transaction, tree, key, mode, part, is_granted }
                };
                waits.push((locks.len(), locks.len() + 1));
                locks.push(lock(owner.number(), false));
                locks.push(lock(target.number(), true));
            }
        }
        let views = owners.iter().zip(counts);
        let transactions = views.map(|(owner, locks)| TransactionView::of(owner, locks)).collect();
        LockingView { transactions, locks, waits }
    }
}
