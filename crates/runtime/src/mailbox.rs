//! What other threads send to a worker.
//!
//! Invariants:
//! 1. A message is in the queue before the owner is told; the owner looks into the queue after it
//!    said that it sleeps. Both use sequentially consistent operations, so either the sender sees
//!    the sleeper and wakes it, or the sleeper sees the message and does not sleep.
//! 2. Only the sender that turns `sleeping` from true to false writes the wake-up descriptor, so
//!    a batch of messages costs one system call. Every change of `sleeping` is a swap, owner's and
//!    senders' alike, so that all of them stand in one order.
//! 3. A mailbox is never freed. It goes back to a pool and serves a later worker; fiber numbers
//!    continue, so a message for a fiber of the former worker fits no fiber of the later one.

use crate::bell::Bell;
use base::planted;
use base::primitives::{self, AtomicBool, AtomicU32, AtomicU64, Ordering, fence, lock};
use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};

/// Names a fiber of one worker: slot and the number of its use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FiberId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// What happened to a fiber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    /// Somebody unparked it.
    Unpark,
    /// Its cancel token was set.
    Cancel,
    /// Its deadline came.
    Timer,
    /// An operation of it ended with this result (negative: an error number).
    Io { part: u8, result: i32 },
}

/// A fiber to be started, from another thread.
pub(crate) struct NewFiber {
    pub(crate) name: &'static str,
    pub(crate) body: Box<dyn FnOnce() + Send>,
}

/// A message to a worker.
pub(crate) enum Message {
    Signal(FiberId, Signal),
    Start(NewFiber),
    Stop,
}

/// See the head of the file.
pub(crate) struct Mailbox {
    queue: primitives::Mutex<Vec<Message>>,
    filled: AtomicBool,
    sleeping: AtomicBool,
    bell: Bell,
    next_generation: AtomicU32,
    /// The quiescent epoch that the worker has passed, or [`OFFLINE`].
    pub(crate) passed_epoch: AtomicU64,
}

/// A worker that sleeps or has ended holds no pointers.
pub(crate) const OFFLINE: u64 = u64::MAX;

static POOL: Mutex<Vec<&'static Mailbox>> = Mutex::new(Vec::new());

impl Mailbox {
    /// A mailbox for a new worker.
    pub(crate) fn take() -> &'static Self {
        let pooled = POOL.lock().unwrap_or_else(PoisonError::into_inner).pop();
        pooled.unwrap_or_else(|| Box::leak(Box::new(Self::new())))
    }

    pub(crate) fn new() -> Self {
        Self {
            queue: primitives::Mutex::new(Vec::new()),
            filled: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            bell: Bell::new(),
            next_generation: AtomicU32::new(1),
            passed_epoch: AtomicU64::new(OFFLINE),
        }
    }

    /// Gives the mailbox back when its worker ends.
    pub(crate) fn give_back(&'static self) {
        self.sleeping.store(false, Ordering::SeqCst);
        self.passed_epoch.store(OFFLINE, Ordering::SeqCst);
        self.take_into(&mut Vec::new());
        POOL.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// The descriptor that wakes the owner, made at the first call and kept for ever.
    pub(crate) fn wake_descriptor(&self) -> std::io::Result<RawFd> {
        self.bell.descriptor()
    }

    /// A number for a fiber, unique (up to 32 bits) among all that ever used this mailbox.
    #[inline]
    pub(crate) fn next_generation(&self) -> u32 {
        let next = self.next_generation.load(Ordering::Relaxed);
        self.next_generation.store(next.wrapping_add(1), Ordering::Relaxed);
        next
    }

    /// Sends one message from any thread.
    pub(crate) fn send(&self, message: Message) {
        lock(&self.queue).push(message);
        self.filled.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Wakes the owner if it sleeps and nobody else wakes it already; true if so.
    pub(crate) fn wake(&self) -> bool {
        if !planted!("mailbox_no_fence") {
            fence(Ordering::SeqCst);
        }
        let wakes =
            self.sleeping.load(Ordering::SeqCst) && self.sleeping.swap(false, Ordering::SeqCst);
        if wakes {
            self.bell.ring();
        }
        wakes
    }

    /// Whether a message may wait.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Relaxed)
    }

    /// Moves all waiting messages, oldest first, into an empty vector. Only the owner calls this.
    pub(crate) fn take_into(&self, messages: &mut Vec<Message>) {
        debug_assert!(messages.is_empty());
        let mut queue = lock(&self.queue);
        self.filled.store(false, Ordering::SeqCst);
        std::mem::swap(&mut *queue, messages);
    }

    /// The owner is about to sleep. False when a message came in between (invariant 1).
    pub(crate) fn begin_sleep(&self) -> bool {
        self.sleeping.swap(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.filled.load(Ordering::SeqCst) && !planted!("mailbox_no_second_look") {
            self.end_sleep();
            return false;
        }
        true
    }

    /// What the event loop does while it sleeps.
    #[cfg(all(test, loom))]
    pub(crate) fn wait(&self) {
        self.bell.wait();
    }

    /// Whether the owner sleeps; may be out of date.
    pub(crate) fn is_sleeping(&self) -> bool {
        self.sleeping.load(Ordering::Relaxed)
    }

    /// The owner is awake again.
    pub(crate) fn end_sleep(&self) {
        self.sleeping.swap(false, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use base::Random;

    /// Sleeps as a worker does; false after two minutes without a wake-up.
    fn sleep(descriptor: RawFd) -> bool {
        let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        let mut count = [0u8; 8];
        // SAFETY: one valid pollfd, eight valid bytes.
        unsafe {
            let woken = libc::poll(&mut poll, 1, 120_000) == 1;
            woken && libc::read(descriptor, count.as_mut_ptr().cast(), 8) == 8
        }
    }

    #[test]
    fn no_wake_up_is_lost() {
        const SENDERS: u64 = 3;
        const EACH: u32 = 20_000;
        let mailbox = Mailbox::take();
        let descriptor = mailbox.wake_descriptor().expect("an eventfd");
        let senders: Vec<_> = (0..SENDERS)
            .map(|seed| {
                std::thread::spawn(move || {
                    let mut random = Random::new(seed);
                    for number in 0..EACH {
                        let fiber = FiberId { slot: seed as u32, generation: number };
                        mailbox.send(Message::Signal(fiber, Signal::Unpark));
                        for _ in 0..random.below(300) {
                            std::hint::spin_loop();
                        }
                    }
                })
            })
            .collect();
        let (mut next, mut messages) = ([0; SENDERS as usize], Vec::new());
        while next.iter().any(|&number| number < EACH) {
            mailbox.take_into(&mut messages);
            for message in messages.drain(..) {
                let Message::Signal(fiber, _) = message else { panic!("nobody sends others") };
                assert_eq!(next[fiber.slot as usize], fiber.generation, "in order, all of them");
                next[fiber.slot as usize] += 1;
            }
            if next.iter().any(|&number| number < EACH) && mailbox.begin_sleep() {
                assert!(sleep(descriptor), "a wake-up is lost");
                mailbox.end_sleep();
            }
        }
        senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
        mailbox.give_back();
    }
}

/// Every order of a sleeping owner and its senders; see `cargo xtask model`.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use base::primitives::{explore, thread};
    use std::sync::Arc;

    /// Two senders with a message each, one of them waking the owner once more for nothing; the
    /// owner sleeps until it has both.
    fn sleep_until_all_came() {
        let mailbox = Arc::new(Mailbox::new());
        let senders: Vec<_> = (0..2)
            .map(|slot| {
                let mailbox = mailbox.clone();
                thread::spawn(move || {
                    let fiber = FiberId { slot, generation: 1 };
                    mailbox.send(Message::Signal(fiber, Signal::Unpark));
                })
            })
            .collect();
        let (mut messages, mut received) = (Vec::new(), 0);
        loop {
            if mailbox.is_filled() {
                mailbox.take_into(&mut messages);
                received += messages.drain(..).count();
            }
            if received == 2 {
                break;
            }
            if mailbox.begin_sleep() {
                mailbox.wait();
                mailbox.end_sleep();
            }
        }
        senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
    }

    #[test]
    fn no_wake_up_is_lost() {
        explore(3, None, sleep_until_all_came);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn an_owner_that_does_not_look_again_is_found() {
        explore(3, Some("mailbox_no_second_look"), sleep_until_all_came);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn a_sender_without_its_fence_is_found() {
        explore(3, Some("mailbox_no_fence"), sleep_until_all_came);
    }
}
