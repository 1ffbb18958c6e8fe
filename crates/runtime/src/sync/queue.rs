//! Waiting for conditions.

use super::Mutex;
use crate::{Instant, Unparker, WaitClass, Wake};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[derive(Debug, Default)]
struct Waiters {
    next_ticket: u64,
    queue: VecDeque<(u64, Unparker)>,
}

/// Fibers that wait for a condition somebody else makes true, first come first served.
///
/// The waker first makes the condition true, then calls [`WaitQueue::wake_one`] or
/// [`WaitQueue::wake_all`]; no wake-up is lost, because a waiter is in the queue before it looks
/// at the condition for the last time.
#[derive(Debug, Default)]
pub struct WaitQueue {
    waiters: Mutex<Waiters>,
    length: AtomicUsize,
}

impl WaitQueue {
    /// An empty queue.
    pub const fn new() -> Self {
        let waiters = Waiters { next_ticket: 0, queue: VecDeque::new() };
        Self { waiters: Mutex::new(waiters), length: AtomicUsize::new(0) }
    }

    /// Parks until `condition` holds (`Unparked`), or the deadline comes, or the cancel token is
    /// set. The condition is evaluated by this fiber only, without any lock held.
    pub fn wait_until(
        &self,
        class: WaitClass,
        deadline: Option<Instant>,
        condition: impl FnMut() -> bool,
    ) -> Wake {
        self.wait(class, deadline, true, condition)
    }

    /// As [`WaitQueue::wait_until`], but a cancelled token does not end the wait.
    pub fn wait_until_uncancellable(
        &self,
        class: WaitClass,
        deadline: Option<Instant>,
        condition: impl FnMut() -> bool,
    ) -> Wake {
        self.wait(class, deadline, false, condition)
    }

    fn wait(
        &self,
        class: WaitClass,
        deadline: Option<Instant>,
        cancellable: bool,
        mut condition: impl FnMut() -> bool,
    ) -> Wake {
        loop {
            if condition() {
                return Wake::Unparked;
            }
            let ticket = self.enter();
            // The condition may take what it waits for, so once it held it is not asked again.
            let holds = condition();
            let wake = match (holds, cancellable) {
                (true, _) => Wake::Unparked,
                (false, true) => crate::park(class, deadline),
                (false, false) => crate::park_uncancellable(class, deadline),
            };
            let was_woken = !self.leave(ticket);
            if !holds && wake == Wake::Unparked {
                continue;
            }
            let holds = holds || condition();
            if was_woken {
                // The wake-up was perhaps meant for something that somebody else can use.
                self.wake_one();
            }
            return if holds { Wake::Unparked } else { wake };
        }
    }

    fn enter(&self) -> u64 {
        let unparker = crate::current_unparker();
        let mut waiters = self.waiters.lock();
        waiters.next_ticket += 1;
        let ticket = waiters.next_ticket;
        waiters.queue.push_back((ticket, unparker));
        self.length.store(waiters.queue.len(), Ordering::SeqCst);
        drop(waiters);
        // Orders being in the queue before the last look at the condition; the waker's fence
        // orders the condition before its look at the queue.
        std::sync::atomic::fence(Ordering::SeqCst);
        ticket
    }

    /// Leaves the queue; false when a waker took the ticket out already.
    fn leave(&self, ticket: u64) -> bool {
        let mut waiters = self.waiters.lock();
        let place = waiters.queue.iter().position(|waiter| waiter.0 == ticket);
        if let Some(place) = place {
            waiters.queue.remove(place);
            self.length.store(waiters.queue.len(), Ordering::SeqCst);
        }
        place.is_some()
    }

    /// Wakes the fiber that has waited longest; false when nobody waits.
    pub fn wake_one(&self) -> bool {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.length.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let mut waiters = self.waiters.lock();
        let first = waiters.queue.pop_front();
        self.length.store(waiters.queue.len(), Ordering::SeqCst);
        drop(waiters);
        first.inspect(|waiter| waiter.1.unpark()).is_some()
    }

    /// Wakes everybody who waits now; returns how many.
    pub fn wake_all(&self) -> usize {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.length.load(Ordering::SeqCst) == 0 {
            return 0;
        }
        let mut waiters = self.waiters.lock();
        let all = std::mem::take(&mut waiters.queue);
        self.length.store(0, Ordering::SeqCst);
        drop(waiters);
        all.iter().for_each(|waiter| waiter.1.unpark());
        all.len()
    }

    /// How many fibers wait.
    pub fn waiting(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }
}

/// A flag that fibers wait for.
#[derive(Debug, Default)]
pub struct Event {
    is_set: AtomicBool,
    queue: WaitQueue,
}

impl Event {
    /// An event that is not set.
    pub const fn new() -> Self {
        Self { is_set: AtomicBool::new(false), queue: WaitQueue::new() }
    }

    /// Sets it and wakes all waiters.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        self.queue.wake_all();
    }

    /// Makes it not set.
    pub fn reset(&self) {
        self.is_set.store(false, Ordering::SeqCst);
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }

    /// Parks until it is set.
    pub fn wait(&self, class: WaitClass, deadline: Option<Instant>) -> Wake {
        self.queue.wait_until(class, deadline, || self.is_set())
    }

    /// As [`Event::wait`], but a cancelled token does not end the wait.
    pub fn wait_uncancellable(&self, class: WaitClass, deadline: Option<Instant>) -> Wake {
        self.queue.wait_until_uncancellable(class, deadline, || self.is_set())
    }

    /// Parks until it is set and resets it: one waiter per `set`. The way of a background worker
    /// that is told that there is work.
    pub fn take(&self, class: WaitClass, deadline: Option<Instant>) -> Wake {
        self.queue.wait_until(class, deadline, || self.is_set.swap(false, Ordering::SeqCst))
    }
}
