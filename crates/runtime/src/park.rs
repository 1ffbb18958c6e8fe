//! Parking: how a fiber waits, and how it is woken.

use crate::clock::Instant;
use crate::mailbox::{FiberId, Mailbox, Message, Signal};
use crate::worker;
use std::fmt;

/// What a parked fiber waits for; shown in the process list and counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum WaitClass {
    /// Nothing in particular.
    Other,
    /// A time to come.
    Sleep,
    /// Another fiber's end.
    Join,
    /// Bytes from or to a client.
    Network,
    /// A file read.
    FileRead,
    /// A file write.
    FileWrite,
    /// A file sync.
    FileSync,
    /// Work on a helper thread.
    Helper,
    /// A page being read by another fiber.
    PageRead,
    /// A free frame in the buffer pool.
    FreeFrame,
    /// The log being durable up to a commit.
    LogDurable,
    /// Room in the log, or back-pressure of the page store.
    LogSpace,
    /// A row or gap lock.
    RowLock,
    /// A metadata lock.
    MetadataLock,
    /// A mutex that is held across waits.
    FiberMutex,
    /// Admission of a statement.
    Admission,
    /// A background worker without work.
    Idle,
}

impl WaitClass {
    /// Number of classes.
    pub const COUNT: usize = Self::Idle as usize + 1;

    /// All classes in order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Other,
        Self::Sleep,
        Self::Join,
        Self::Network,
        Self::FileRead,
        Self::FileWrite,
        Self::FileSync,
        Self::Helper,
        Self::PageRead,
        Self::FreeFrame,
        Self::LogDurable,
        Self::LogSpace,
        Self::RowLock,
        Self::MetadataLock,
        Self::FiberMutex,
        Self::Admission,
        Self::Idle,
    ];
}

/// Why [`park`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// [`Unparker::unpark`] was called since the last park; perhaps for an earlier reason, so the
    /// caller looks at its condition again.
    Unparked,
    /// The deadline came.
    TimedOut,
    /// The fiber's cancel token is set, or the runtime is ending.
    Cancelled,
}

/// Waits until the current fiber is unparked, its deadline comes or its token is cancelled.
///
/// An unpark before the park is not lost: the park returns at once. Loops are the rule:
/// `while !condition() { park(..) }`. No latch, guard or borrow may be held (checked for this
/// crate's own guards in debug builds).
#[inline]
pub fn park(class: WaitClass, deadline: Option<Instant>) -> Wake {
    worker::current().park(class, deadline, true)
}

/// As [`park`], but a cancelled token does not end the wait. For waits that decide what is
/// durable, and for cleaning up under a cancelled token.
#[inline]
pub fn park_uncancellable(class: WaitClass, deadline: Option<Instant>) -> Wake {
    worker::current().park(class, deadline, false)
}

/// The handle by which others wake the current fiber. Panics outside a fiber.
#[inline]
pub fn current_unparker() -> Unparker {
    worker::current().current_unparker()
}

/// Wakes one fiber. Small and `Copy`; outliving its fiber is harmless.
#[derive(Clone, Copy)]
pub struct Unparker {
    mailbox: &'static Mailbox,
    fiber: FiberId,
}

impl Unparker {
    pub(crate) fn new(mailbox: &'static Mailbox, fiber: FiberId) -> Self {
        Self { mailbox, fiber }
    }

    /// Makes the fiber's present park return, or the next one if it is not parked. From any
    /// worker or thread.
    #[inline]
    pub fn unpark(&self) {
        self.signal(Signal::Unpark);
    }

    /// Whether the fiber belongs to the worker that asks: waking it is only an entry in a queue.
    #[inline]
    pub fn is_local(&self) -> bool {
        worker::try_current().is_some_and(|here| std::ptr::eq(here.mailbox, self.mailbox))
    }

    pub(crate) fn cancel(&self) {
        self.signal(Signal::Cancel);
    }

    #[inline]
    pub(crate) fn signal(&self, signal: Signal) {
        match worker::try_current() {
            Some(here) if std::ptr::eq(here.mailbox, self.mailbox) => {
                here.deliver(self.fiber, signal, true);
            }
            _ => self.mailbox.send(Message::Signal(self.fiber, signal)),
        }
    }
}

impl PartialEq for Unparker {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.mailbox, other.mailbox) && self.fiber == other.fiber
    }
}

impl Eq for Unparker {}

impl fmt::Debug for Unparker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Unparker({}/{})", self.fiber.slot, self.fiber.generation)
    }
}
