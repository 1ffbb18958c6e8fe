//! What others can reach of a transaction: to wait for it, to choose it as a victim.

use crate::lock::{HeldLock, WaitPoint};
use runtime::sync::Mutex;
use runtime::{Instant, Unparker, WaitClass};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The wait goes on.
pub(crate) const WAITING: u8 = 0;
/// The wait is over: granted, or the awaited transaction has ended.
pub(crate) const GRANTED: u8 = 1;
/// Chosen as the victim of a deadlock.
pub(crate) const VICTIM: u8 = 2;

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
    outcome: AtomicU8,
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
            outcome: AtomicU8::new(GRANTED),
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

    pub(crate) fn add_weight(&self, amount: u64) {
        self.locked.fetch_add(amount, Ordering::Relaxed);
    }

    /// An undo record was added.
    pub(crate) fn add_change(&self) {
        self.modified.fetch_add(1, Ordering::Relaxed);
    }

    /// A change was undone; what it weighed stays.
    pub(crate) fn take_change_back(&self) {
        self.modified.fetch_sub(1, Ordering::Relaxed);
        self.locked.fetch_add(1, Ordering::Relaxed);
    }

    /// Undo records there are.
    pub(crate) fn modified(&self) -> u64 {
        self.modified.load(Ordering::Relaxed)
    }

    /// Undo records and locks: the smallest of a cycle is the victim.
    pub(crate) fn weight(&self) -> u64 {
        self.locked.load(Ordering::Relaxed) + self.modified()
    }

    /// What this transaction waits for; `None` when it runs or its wait has been decided.
    pub(crate) fn wait_point(&self) -> Option<WaitPoint> {
        if self.outcome.load(Ordering::Acquire) != WAITING {
            return None;
        }
        self.wait.lock().as_ref().map(|wait| wait.point.clone())
    }

    /// Since when it waits, if it does.
    pub(crate) fn waits_since(&self) -> Option<Instant> {
        if self.outcome.load(Ordering::Acquire) != WAITING {
            return None;
        }
        self.wait.lock().as_ref().map(|wait| wait.since)
    }

    pub(crate) fn begin_wait(&self, point: WaitPoint) {
        let (unparker, since) = (runtime::current_unparker(), runtime::now());
        *self.wait.lock() = Some(Wait { point, unparker, since });
        self.outcome.store(WAITING, Ordering::Release);
    }

    pub(crate) fn end_wait(&self) -> u8 {
        let outcome = self.outcome.swap(GRANTED, Ordering::AcqRel);
        *self.wait.lock() = None;
        outcome
    }

    /// Decides a wait, once; true when this call did.
    pub(crate) fn decide(&self, outcome: u8) -> bool {
        let first = self
            .outcome
            .compare_exchange(WAITING, outcome, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if first && let Some(wait) = self.wait.lock().as_ref() {
            wait.unparker.unpark();
        }
        first
    }

    pub(crate) fn outcome(&self) -> u8 {
        self.outcome.load(Ordering::Acquire)
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
