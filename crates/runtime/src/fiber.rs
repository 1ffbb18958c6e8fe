//! One fiber's place in its worker.

use crate::cancel::CancelToken;
use crate::mailbox::FiberId;
use crate::park::{WaitClass, Wake};
use crate::stack::FiberStack;
use crate::timer::TimerId;
use corosensei::{Coroutine, Yielder};
use std::cell::{Cell, RefCell};

/// What a fiber is doing.
///
/// ```text
/// Free -start-> Ready -run-> Running -park-> Parked -unpark/cancel/timer-> Ready
///                               |-----io wait-> InOperation -all parts done/timer-> Ready
///                               |-----yield---> Ready
///                               '-----return--> Free
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FiberState {
    Free,
    Ready,
    Running,
    Parked,
    /// Waits for the end of an operation that uses its memory; nothing else wakes it.
    InOperation,
}

/// Parts an operation of one fiber can have in flight (a write and its linked sync).
pub(crate) const PARTS: usize = 2;

/// What a resumed fiber touches of its stack at once, about.
const INNERMOST_BYTES: usize = 768;

/// A slot for a fiber; reused, and never moved in memory.
pub(crate) struct FiberSlot {
    pub(crate) index: u32,
    pub(crate) generation: Cell<u32>,
    pub(crate) name: Cell<&'static str>,
    pub(crate) home: Cell<usize>,
    pub(crate) state: Cell<FiberState>,
    pub(crate) coroutine: RefCell<Option<Coroutine<(), (), (), FiberStack>>>,
    /// Lowest address of the stack, where its guard page begins; 0 without a stack.
    pub(crate) guard: Cell<usize>,
    pub(crate) yielder: Cell<*const Yielder<(), ()>>,
    /// An address of its stack near which it stopped last; 0 before.
    pub(crate) stopped_at: Cell<usize>,
    /// An unpark came while the fiber was not parked.
    pub(crate) unparked: Cell<bool>,
    /// It executes a statement, which is counted by [`crate::admission`].
    pub(crate) is_statement: Cell<bool>,
    /// It has used up a slice since it was last parked.
    pub(crate) is_long: Cell<bool>,
    pub(crate) wake: Cell<Wake>,
    pub(crate) wait_class: Cell<WaitClass>,
    pub(crate) cancellable: Cell<bool>,
    pub(crate) timer: Cell<TimerId>,
    pub(crate) parts_in_flight: Cell<u8>,
    pub(crate) results: [Cell<i32>; PARTS],
    pub(crate) cancel: RefCell<Option<CancelToken>>,
}

impl FiberSlot {
    pub(crate) fn new(index: u32) -> Self {
        Self {
            index,
            generation: Cell::new(0),
            name: Cell::new(""),
            home: Cell::new(0),
            state: Cell::new(FiberState::Free),
            coroutine: RefCell::new(None),
            guard: Cell::new(0),
            yielder: Cell::new(std::ptr::null()),
            stopped_at: Cell::new(0),
            unparked: Cell::new(false),
            is_statement: Cell::new(false),
            is_long: Cell::new(false),
            wake: Cell::new(Wake::Unparked),
            wait_class: Cell::new(WaitClass::Other),
            cancellable: Cell::new(false),
            timer: Cell::new(TimerId::NONE),
            parts_in_flight: Cell::new(0),
            results: [Cell::new(0), Cell::new(0)],
            cancel: RefCell::new(None),
        }
    }

    pub(crate) fn id(&self) -> FiberId {
        FiberId { slot: self.index, generation: self.generation.get() }
    }

    /// Asks for the memory of its innermost frames, to which it returns when it is resumed.
    #[inline]
    pub(crate) fn prefetch_stack(&self) {
        let address = self.stopped_at.get();
        if address != 0 {
            crate::prefetch::lines((address - INNERMOST_BYTES / 4) as *const u8, INNERMOST_BYTES);
        }
    }

    /// Says what the fiber waits for to whoever looks at its token.
    #[inline]
    pub(crate) fn tell_waiting(&self, class: Option<WaitClass>) {
        if let Some(token) = &*self.cancel.borrow() {
            token.set_wait_class(class);
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.borrow().as_ref().is_some_and(CancelToken::is_cancelled)
    }
}
