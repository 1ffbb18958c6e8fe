//! Memory reclamation by quiescent states.
//!
//! Invariants:
//! 1. Code that follows shared pointers without a lock keeps none of them across a scheduling
//!    point (park, yield, I/O, the end of the fiber).
//! 2. A worker stores the common epoch as passed at every scheduling point; it stores `OFFLINE`
//!    while it sleeps, with a sequentially consistent fence on either side.
//! 3. A deferred function carries an epoch raised after its object was unlinked, and runs when
//!    every worker has passed that epoch or is offline. So nobody can hold the object any more.

use crate::mailbox::{Mailbox, OFFLINE};
use crate::worker::{self, Twin, Worker};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Runs `f` after every worker has passed a scheduling point, so after the last fiber that may
/// have seen an object unlinked before this call has let go of it. `f` runs between fibers on
/// this worker and must not park. What is still waiting when the runtime ends is run then.
pub fn defer(f: impl FnOnce() + Send + 'static) {
    let worker = worker::current();
    let epoch = match &worker.twin {
        Twin::Real(real) => real.group.epoch.raise(),
        Twin::Sim(_) => 0,
    };
    worker.deferred.queue.borrow_mut().push_back((epoch, Box::new(f)));
}

/// How many deferred functions of this worker still wait.
pub fn pending() -> usize {
    worker::current().deferred.queue.borrow().len()
}

/// The epoch common to the workers of one runtime.
pub(crate) struct Epoch(AtomicU64);

impl Epoch {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(1))
    }

    fn raise(&self) -> u64 {
        let raised = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        fence(Ordering::SeqCst);
        raised
    }

    /// Invariant 2: called by the owner of the mailbox between two fibers.
    #[inline]
    pub(crate) fn pass(&self, mailbox: &Mailbox) {
        let epoch = self.0.load(Ordering::Acquire);
        if mailbox.passed_epoch.load(Ordering::Relaxed) != epoch {
            mailbox.passed_epoch.store(epoch, Ordering::Release);
        }
    }

    /// The worker is going to sleep: it holds no pointers.
    pub(crate) fn go_offline(mailbox: &Mailbox) {
        mailbox.passed_epoch.store(OFFLINE, Ordering::Release);
    }

    /// The worker woke up. The fence orders the announcement before its first look at shared
    /// memory, as the fence in `raise` orders unlinking before looking at the announcement.
    pub(crate) fn go_online(&self, mailbox: &Mailbox) {
        mailbox.passed_epoch.store(self.0.load(Ordering::Acquire), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
}

type Function = Box<dyn FnOnce() + Send>;

/// The functions one worker has deferred, oldest first.
pub(crate) struct Deferred {
    queue: RefCell<VecDeque<(u64, Function)>>,
    running: Cell<bool>,
}

impl Deferred {
    pub(crate) fn new() -> Self {
        Self { queue: RefCell::new(VecDeque::new()), running: Cell::new(false) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.borrow().is_empty()
    }

    /// A scheduling point of the worker.
    #[inline]
    pub(crate) fn pass_point(&self, worker: &Worker) {
        match &worker.twin {
            Twin::Real(real) => real.group.epoch.pass(worker.mailbox),
            Twin::Sim(_) => self.run_up_to(u64::MAX),
        }
    }

    /// Runs what all of `mailboxes` have passed; the caller has just passed a point itself.
    pub(crate) fn collect<'a>(&self, mailboxes: impl Iterator<Item = &'a Mailbox>) {
        if self.is_empty() {
            return;
        }
        fence(Ordering::SeqCst);
        let passed = mailboxes.map(|it| it.passed_epoch.load(Ordering::Acquire)).min();
        self.run_up_to(passed.unwrap_or(OFFLINE));
    }

    /// Runs everything: no fiber is left.
    pub(crate) fn run_all(&self) {
        self.run_up_to(u64::MAX);
    }

    fn run_up_to(&self, epoch: u64) {
        if self.is_empty() || self.running.replace(true) {
            return;
        }
        loop {
            let mut queue = self.queue.borrow_mut();
            if queue.front().is_none_or(|front| front.0 > epoch) {
                break;
            }
            let function = queue.pop_front();
            drop(queue);
            if let Some((_, function)) = function {
                function();
            }
        }
        self.running.set(false);
    }
}
