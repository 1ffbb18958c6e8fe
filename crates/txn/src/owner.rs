//! What others can reach of a transaction: to wait for it, to choose it as a victim.
//!
//! 1. The word of a wait holds the number of the wait and its outcome. A wait is decided once, and
//!    who decides one that he looked at before names its number: a later wait is not his.
//! 2. Only the transaction itself begins and ends its waits; the number grows with each.

use crate::lock::{HeldLock, WaitPoint};
use runtime::sync::Mutex;
use runtime::{Instant, Unparker, WaitClass};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The wait goes on.
pub(crate) const WAITING: u8 = 0;
/// The wait is over: granted, or the awaited transaction has ended.
pub(crate) const GRANTED: u8 = 1;
/// Chosen as the victim of a deadlock.
pub(crate) const VICTIM: u8 = 2;

/// Bits of the word of a wait that hold the outcome; above them is the number of the wait.
const OUTCOME_BITS: u32 = 2;
const OUTCOME_MASK: u64 = (1 << OUTCOME_BITS) - 1;

/// Names one wait of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitNumber(u64);

impl WaitNumber {
    fn word(self, outcome: u8) -> u64 {
        self.0 << OUTCOME_BITS | u64::from(outcome)
    }
}

/// Whose a transaction is and how it reads: nothing that matters here, only for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// Connection; 0 for the server's own.
    pub connection: u32,
    /// Isolation level as a number that its giver understands.
    pub level: u8,
}

/// A wait that has been registered.
#[derive(Debug)]
struct Wait {
    point: WaitPoint,
    unparker: Unparker,
    since: Instant,
}

/// The shared part of a transaction that has locked or written something.
#[derive(Debug)]
pub struct Owner {
    number: u64,
    label: Label,
    started: Instant,
    /// Number and outcome of the last wait (invariant 1).
    wait_word: AtomicU64,
    /// Locks taken; with `modified` the weight by which the victim of a cycle is chosen.
    locked: AtomicU64,
    /// Undo records.
    modified: AtomicU64,
    wait: Mutex<Option<Wait>>,
    /// Transactions waiting for this one to end; `None` once it has.
    followers: Mutex<Option<Vec<Arc<Owner>>>>,
    /// Locks that waiters made explicit for this transaction; `None` once it has ended.
    inherited: Mutex<Option<Vec<HeldLock>>>,
}

impl Owner {
    pub(crate) fn new(number: u64, label: Label) -> Arc<Self> {
        Arc::new(Self {
            number,
            label,
            started: runtime::turn_time(),
            wait_word: AtomicU64::new(u64::from(GRANTED)),
            locked: AtomicU64::new(0),
            modified: AtomicU64::new(0),
            wait: Mutex::new(None),
            followers: Mutex::new(Some(Vec::new())),
            inherited: Mutex::new(Some(Vec::new())),
        })
    }

    /// The transaction's id.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whose it is.
    pub(crate) fn label(&self) -> Label {
        self.label
    }

    /// When it first locked or wrote.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Only the transaction itself counts, so no read-modify-write is needed.
    fn count(cell: &AtomicU64, change: impl FnOnce(u64) -> u64) {
        cell.store(change(cell.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    pub(crate) fn add_weight(&self, amount: u64) {
        Self::count(&self.locked, |it| it + amount);
    }

    /// An undo record was added.
    pub(crate) fn add_change(&self) {
        Self::count(&self.modified, |it| it + 1);
    }

    /// A change was undone; what it weighed stays.
    pub(crate) fn take_change_back(&self) {
        Self::count(&self.locked, |it| it + 1);
        Self::count(&self.modified, |it| it - 1);
    }

    /// Locks taken up to now, those given back included.
    pub(crate) fn locks_taken(&self) -> u64 {
        self.locked.load(Ordering::Relaxed)
    }

    /// Undo records there are.
    pub(crate) fn modified(&self) -> u64 {
        self.modified.load(Ordering::Relaxed)
    }

    /// Undo records and locks: the smallest of a cycle is the victim.
    pub(crate) fn weight(&self) -> u64 {
        self.locked.load(Ordering::Relaxed) + self.modified()
    }

    /// What keeps it from being the victim of a deadlock: its weight, unless it waits while it
    /// undoes changes and could not give up.
    pub(crate) fn reluctance(&self) -> u64 {
        match self.wait.lock().as_ref() {
            Some(Wait { point: WaitPoint::Lock { can_fail: false, .. }, .. }) => u64::MAX,
            _ => self.weight(),
        }
    }

    /// What this transaction waits for; `None` when it runs or its wait has been decided.
    pub(crate) fn wait_point(&self) -> Option<WaitPoint> {
        self.wait_number()?;
        self.wait.lock().as_ref().map(|wait| wait.point.clone())
    }

    /// The wait that goes on now, if one does.
    pub(crate) fn wait_number(&self) -> Option<WaitNumber> {
        let word = self.wait_word.load(Ordering::Acquire);
        (word & OUTCOME_MASK == u64::from(WAITING)).then_some(WaitNumber(word >> OUTCOME_BITS))
    }

    /// Since when it waits, if it does.
    pub(crate) fn waits_since(&self) -> Option<Instant> {
        self.wait_number()?;
        self.wait.lock().as_ref().map(|wait| wait.since)
    }

    pub(crate) fn begin_wait(&self, point: WaitPoint) {
        let (unparker, since) = (runtime::current_unparker(), runtime::now());
        *self.wait.lock() = Some(Wait { point, unparker, since });
        let number = (self.wait_word.load(Ordering::Relaxed) >> OUTCOME_BITS) + 1;
        self.wait_word.store(WaitNumber(number).word(WAITING), Ordering::Release);
    }

    pub(crate) fn end_wait(&self) -> u8 {
        let granted = u64::from(GRANTED);
        let settle = |word| Some(word & !OUTCOME_MASK | granted);
        let settled = self.wait_word.fetch_update(Ordering::AcqRel, Ordering::Acquire, settle);
        *self.wait.lock() = None;
        (settled.unwrap_or(granted) & OUTCOME_MASK) as u8
    }

    /// Decides the wait that goes on, once; true when this call did.
    pub(crate) fn decide(&self, outcome: u8) -> bool {
        self.wait_number().is_some_and(|number| self.decide_wait(number, outcome))
    }

    /// Decides this wait and no other; true when this call did.
    pub(crate) fn decide_wait(&self, number: WaitNumber, outcome: u8) -> bool {
        let (waiting, decided) = (number.word(WAITING), number.word(outcome));
        let first = self
            .wait_word
            .compare_exchange(waiting, decided, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if first && let Some(wait) = self.wait.lock().as_ref() {
            wait.unparker.unpark();
        }
        first
    }

    pub(crate) fn outcome(&self) -> u8 {
        (self.wait_word.load(Ordering::Acquire) & OUTCOME_MASK) as u8
    }

    /// Asks to be woken at this transaction's end; false when it has ended.
    pub(crate) fn follow(&self, follower: &Arc<Owner>) -> bool {
        match &mut *self.followers.lock() {
            Some(followers) => {
                followers.push(follower.clone());
                true
            }
            None => false,
        }
    }

    pub(crate) fn unfollow(&self, follower: &Arc<Owner>) {
        if let Some(followers) = &mut *self.followers.lock() {
            followers.retain(|other| !Arc::ptr_eq(other, follower));
        }
    }

    /// Adds a lock to release at the end; false when the transaction has ended.
    pub(crate) fn inherit(&self, lock: HeldLock) -> bool {
        match &mut *self.inherited.lock() {
            Some(locks) => {
                locks.push(lock);
                true
            }
            None => false,
        }
    }

    /// No lock can be added from now on; those added are to be released.
    pub(crate) fn end_inheritance(&self) -> Vec<HeldLock> {
        self.inherited.lock().take().unwrap_or_default()
    }

    /// The transaction has ended: everybody who waited for it goes on.
    pub(crate) fn end(&self) {
        let followers = self.followers.lock().take();
        for follower in followers.into_iter().flatten() {
            follower.decide(GRANTED);
        }
    }

    /// Parks until the wait is decided or ended from outside; true when decided.
    pub(crate) fn park(&self, deadline: runtime::Instant) -> runtime::Wake {
        loop {
            if self.outcome() != WAITING {
                return runtime::Wake::Unparked;
            }
            match runtime::park(WaitClass::RowLock, Some(deadline)) {
                runtime::Wake::Unparked => {}
                other => return other,
            }
        }
    }
}
