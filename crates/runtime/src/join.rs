//! Starting fibers and waiting for their end.

use crate::park::{Unparker, WaitClass, Wake};
use crate::worker;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A fiber ended by a panic.
pub struct FiberPanic {
    name: &'static str,
    payload: Box<dyn Any + Send>,
}

impl FiberPanic {
    pub(crate) fn new(name: &'static str, payload: Box<dyn Any + Send>) -> Self {
        Self { name, payload }
    }

    /// The panic's message, as far as it is text.
    pub fn message(&self) -> &str {
        message_of(&*self.payload)
    }

    /// Goes on with the panic in the caller.
    pub fn resume(self) -> ! {
        resume_unwind(self.payload)
    }
}

impl fmt::Debug for FiberPanic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for FiberPanic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "fiber '{}' panicked: {}", self.name, self.message())
    }
}

impl std::error::Error for FiberPanic {}

fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(not text)")
}

/// Runs `f` and returns its panic as an error. Use this instead of `std::panic::catch_unwind`
/// inside fibers: when a runtime ends it unwinds its parked fibers, and that passes through.
pub fn catch_panic<T>(f: impl FnOnce() -> T) -> Result<T, FiberPanic> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
        let here = worker::try_current();
        if here.is_some_and(|worker| worker.is_halting()) {
            resume_unwind(payload);
        }
        FiberPanic::new(here.map_or("", |worker| worker.current_name()), payload)
    })
}

enum State<T> {
    Running(Option<Unparker>),
    Ended(Result<T, FiberPanic>),
    Taken,
}

pub(crate) struct Packet<T> {
    state: Mutex<State<T>>,
}

impl<T> Packet<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Running(None)) })
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the fiber's function and stores what comes of it.
    pub(crate) fn run(self: Arc<Self>, f: impl FnOnce() -> T) {
        let result = catch_panic(f);
        if let Err(panic) = &result
            && Arc::strong_count(&self) == 1
        {
            worker::current().unobserved_panic(panic);
        }
        let former = std::mem::replace(&mut *self.lock(), State::Ended(result));
        if let State::Running(Some(joiner)) = former {
            joiner.unpark();
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        !matches!(*self.lock(), State::Running(_))
    }

    /// What the fiber left, once.
    pub(crate) fn take(&self) -> Option<Result<T, FiberPanic>> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Ended(result) => Some(result),
            other => {
                *state = other;
                None
            }
        }
    }

    fn set_joiner(&self, joiner: Unparker) {
        if let State::Running(place) = &mut *self.lock() {
            *place = Some(joiner);
        }
    }
}

/// Waits for a fiber's end. Dropping it lets the fiber go on alone.
pub struct JoinHandle<T> {
    packet: Arc<Packet<T>>,
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "JoinHandle(ended: {})", self.is_finished())
    }
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(packet: Arc<Packet<T>>) -> Self {
        Self { packet }
    }

    /// Parks until the fiber has ended; not cancellable. `Err` when it panicked.
    pub fn join(self) -> Result<T, FiberPanic> {
        loop {
            if let Some(result) = self.packet.take() {
                return result;
            }
            self.packet.set_joiner(crate::current_unparker());
            if !self.packet.is_ended()
                && crate::park_uncancellable(WaitClass::Join, None) == Wake::Cancelled
            {
                return Err(FiberPanic::new("", Box::new("the runtime is ending")));
            }
        }
    }

    /// Whether the fiber has ended.
    pub fn is_finished(&self) -> bool {
        self.packet.is_ended()
    }
}
