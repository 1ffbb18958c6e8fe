//! A worker: the scheduler of one thread, shared by both twins.
//!
//! Invariants:
//! 1. A fiber runs only on the worker that started it. (LLVM may keep the address of a
//!    thread-local across a suspension, which is right only on the same thread.)
//! 2. No borrow of a `RefCell` in here is held while a fiber is resumed or suspended.
//! 3. A slot in state `InOperation` has parts in flight that may write into the fiber's memory;
//!    it is not resumed for good, nor unwound, before they have all ended.
//! 4. A ready fiber is in the ready queue exactly once, and only ready fibers are.
//! 5. When `halting` is set no fiber is resumed except to unwind it, and no call parks.

mod turns;
mod waiting;
mod wall;

use crate::admission::{Admission, Figures};
use crate::fiber::{FiberSlot, FiberState};
use crate::mailbox::{FiberId, Mailbox, Message, Signal};
use crate::park::{Unparker, WaitClass};
use crate::quiescent::Deferred;
use crate::real::RealTwin;
use crate::sim::SimTwin;
use crate::slice::Slice;
use crate::stack::StackPool;
use crate::timer::Timers;
use crate::{FiberPanic, Instant, ready::ReadyQueue};
use base::invariant;
use corosensei::stack::Stack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parks that a fiber may try while it is unwound; more can only be an endless loop.
const REFUSALS_MAX: u32 = 100_000;

/// Which twin the worker belongs to.
#[expect(clippy::large_enum_variant, reason = "one per worker, never moved after the start")]
pub(crate) enum Twin {
    Real(RealTwin),
    Sim(SimTwin),
}

/// Whom a timer wakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimerTarget {
    Fiber(FiberId),
    /// An idle connection, by its place.
    Connection(u32),
}

/// Parks by class of all workers that have ended.
pub(crate) struct WaitStatistics {
    pub(crate) parks: [AtomicU64; WaitClass::COUNT],
}

pub(crate) static WAITS: WaitStatistics =
    WaitStatistics { parks: [const { AtomicU64::new(0) }; WaitClass::COUNT] };

/// See the head of the file.
pub(crate) struct Worker {
    pub(crate) number: usize,
    pub(crate) mailbox: &'static Mailbox,
    pub(crate) twin: Twin,
    pub(crate) timers: RefCell<Timers<TimerTarget>>,
    pub(crate) deferred: Deferred,
    current: Cell<*const FiberSlot>,
    #[expect(clippy::vec_box, reason = "a slot must not move when the vector grows")]
    slots: RefCell<Vec<Box<FiberSlot>>>,
    free: RefCell<Vec<u32>>,
    ready: RefCell<ReadyQueue>,
    stacks: RefCell<StackPool>,
    messages: RefCell<Vec<Message>>,
    pub(crate) admission: Admission,
    live: Cell<usize>,
    halting: Cell<bool>,
    /// Parks refused while the present fiber was unwound.
    refusals: Cell<u32>,
    stopping: Cell<bool>,
    turn: Cell<u32>,
    slice: Slice,
    turn_time: Cell<Instant>,
    wall_clock: wall::WallClock,
}

thread_local! {
    static WORKER: Cell<*const Worker> = const { Cell::new(std::ptr::null()) };
}

/// Never inlined, so that the address of the thread-local is computed at every call (a fiber
/// never changes its thread, so this is a second line of defence).
#[inline(never)]
fn worker_pointer() -> *const Worker {
    WORKER.get()
}

/// The worker of this thread. Panics outside a runtime.
#[inline]
pub(crate) fn current() -> &'static Worker {
    try_current().expect("this call works only inside a runtime (Runtime::run, Simulation::run)")
}

/// The worker of this thread, if it is one.
#[inline]
pub(crate) fn try_current() -> Option<&'static Worker> {
    // SAFETY: the pointer is set by `Installed` while the worker is alive and installed on this
    // thread; every fiber and message of the worker ends before that.
    unsafe { worker_pointer().as_ref() }
}

/// The name of the current fiber if the address is in its guard page. Async-signal-safe.
pub(crate) fn name_of_overflowed_fiber(address: usize) -> Option<&'static str> {
    let slot = try_current()?.current.get();
    // SAFETY: a current slot is alive; the thread is stopped in it.
    let slot = unsafe { slot.as_ref() }?;
    StackPool::guard_range(slot.guard.get()).contains(&address).then(|| slot.name.get())
}

/// Makes a worker this thread's worker until dropped.
pub(crate) struct Installed {
    former: *const Worker,
}

impl Installed {
    pub(crate) fn new(worker: &Worker) -> Self {
        Self { former: WORKER.replace(worker) }
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        WORKER.set(self.former);
    }
}

impl Worker {
    /// A worker that reads `mailbox`, which its maker gives back when the worker has gone.
    pub(crate) fn new(
        number: usize,
        mailbox: &'static Mailbox,
        stack_bytes: usize,
        figures: Arc<Figures>,
        twin: Twin,
    ) -> Self {
        Self {
            number,
            mailbox,
            twin,
            timers: RefCell::new(Timers::new()),
            deferred: Deferred::new(),
            current: Cell::new(std::ptr::null()),
            slots: RefCell::new(Vec::new()),
            free: RefCell::new(Vec::new()),
            ready: RefCell::new(ReadyQueue::default()),
            stacks: RefCell::new(StackPool::new(stack_bytes)),
            messages: RefCell::new(Vec::new()),
            admission: Admission::new(figures),
            live: Cell::new(0),
            halting: Cell::new(false),
            refusals: Cell::new(0),
            stopping: Cell::new(false),
            turn: Cell::new(0),
            slice: Slice::new(),
            turn_time: Cell::new(Instant::from_nanos(crate::clock::monotonic_nanos())),
            wall_clock: wall::WallClock::default(),
        }
    }

    pub(crate) fn sim(&self) -> Option<&SimTwin> {
        match &self.twin {
            Twin::Sim(sim) => Some(sim),
            Twin::Real(_) => None,
        }
    }

    /// The present time of this worker's twin.
    pub(crate) fn now(&self) -> Instant {
        match &self.twin {
            Twin::Real(_) => Instant::from_nanos(crate::clock::monotonic_nanos()),
            Twin::Sim(sim) => sim.now(),
        }
    }

    // ---- fibers ----

    #[inline(always)]
    fn slot_pointer(&self, index: u32) -> *const FiberSlot {
        &raw const *self.slots.borrow()[index as usize]
    }

    #[inline(always)]
    fn slot(&self, index: u32) -> &FiberSlot {
        // SAFETY: slots are boxed and freed only with the worker.
        unsafe { &*self.slot_pointer(index) }
    }

    #[inline(always)]
    fn current_slot(&self) -> &FiberSlot {
        // SAFETY: as in `slot`; null outside fibers.
        let slot = unsafe { self.current.get().as_ref() };
        slot.expect("this call works only inside a fiber")
    }

    pub(crate) fn in_fiber(&self) -> bool {
        !self.current.get().is_null()
    }

    pub(crate) fn current_name(&self) -> &'static str {
        if self.in_fiber() { self.current_slot().name.get() } else { "" }
    }

    pub(crate) fn current_home(&self) -> usize {
        if self.in_fiber() { self.current_slot().home.get() } else { self.number }
    }

    pub(crate) fn current_unparker(&self) -> Unparker {
        Unparker::new(self.mailbox, self.current_slot().id())
    }

    pub(crate) fn current_fiber(&self) -> FiberId {
        self.current_slot().id()
    }

    pub(crate) fn live_fibers(&self) -> usize {
        self.live.get()
    }

    /// Starts a fiber on this worker; it runs when its turn comes.
    pub(crate) fn start<F: FnOnce() + 'static>(
        &self,
        name: &'static str,
        home: usize,
        body: F,
    ) -> FiberId {
        if self.halting.get() {
            // Invariant 5; whoever joins it is told that the runtime is ending.
            return FiberId { slot: u32::MAX, generation: 0 };
        }
        let slot = self.slot(self.prepare(name, home, body));
        self.make_ready(slot, false);
        slot.id()
    }

    /// A new fiber that is not queued: the caller runs it at once.
    pub(crate) fn prepare<F: FnOnce() + 'static>(
        &self,
        name: &'static str,
        home: usize,
        body: F,
    ) -> u32 {
        let stack = self.stacks.borrow_mut().take().expect("memory for a fiber's stack");
        let index = self.take_slot();
        let slot = self.slot(index);
        let place: *const FiberSlot = slot;
        slot.guard.set(stack.limit().get());
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            // SAFETY: the slot outlives the coroutine stored in it.
            unsafe { (*place).yielder.set(yielder) };
            body();
        });
        slot.generation.set(self.mailbox.next_generation());
        slot.name.set(name);
        slot.home.set(home);
        slot.stopped_at.set(0);
        slot.unparked.set(false);
        slot.is_long.set(false);
        slot.is_statement.set(false);
        *slot.coroutine.borrow_mut() = Some(coroutine);
        self.live.set(self.live.get() + 1);
        slot.state.set(FiberState::Ready);
        index
    }

    /// As [`Worker::prepare`], for a fiber that executes a statement and takes a slot for it.
    pub(crate) fn prepare_statement<F: FnOnce() + 'static>(
        &self,
        name: &'static str,
        body: F,
    ) -> u32 {
        let index = self.prepare(name, self.number, body);
        self.slot(index).is_statement.set(true);
        self.admission.begin(self.slice.begin_ticks());
        index
    }

    fn take_slot(&self) -> u32 {
        if let Some(index) = self.free.borrow_mut().pop() {
            return index;
        }
        let mut slots = self.slots.borrow_mut();
        let index = slots.len() as u32;
        slots.push(Box::new(FiberSlot::new(index)));
        index
    }

    #[inline(always)]
    fn make_ready(&self, slot: &FiberSlot, hot: bool) {
        slot.state.set(FiberState::Ready);
        match &self.twin {
            Twin::Sim(sim) => sim.push_ready(slot.index),
            Twin::Real(_) if hot => self.ready.borrow_mut().push_hot(slot.index, self.turn.get()),
            Twin::Real(_) => self.ready.borrow_mut().push(slot.index, self.turn.get()),
        }
    }

    pub(crate) fn ready_count(&self) -> usize {
        self.ready.borrow().len()
    }

    /// Whether fibers wait for others ([`crate::ready::ReadyQueue::is_crowded`]).
    pub(crate) fn is_crowded(&self) -> bool {
        self.ready.borrow().is_crowded()
    }

    /// Whether a fiber that has used up a slice waits for the next one.
    pub(crate) fn has_long(&self) -> bool {
        self.ready.borrow().has_long()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.borrow().is_empty()
    }

    /// Resumes a ready fiber until it parks, yields or ends. True for a long one, which has had
    /// a slice of its own.
    #[inline]
    pub(crate) fn run_fiber(&self, index: u32) -> bool {
        let slot = self.slot(index);
        let is_long = slot.is_long.get();
        if is_long {
            self.slice.begin();
        }
        debug_assert_eq!(slot.state.get(), FiberState::Ready, "invariant 4");
        slot.state.set(FiberState::Running);
        self.slice.begin_run();
        self.resume(slot);
        self.deferred.pass_point(self);
        is_long
    }

    #[inline(always)]
    fn resume(&self, slot: &FiberSlot) {
        let former = self.current.replace(slot);
        // SAFETY: only this function borrows the coroutine while the fiber runs (invariant 2 is
        // about the worker's own cells); `RefCell` would count a borrow across the switch.
        let coroutine = unsafe { &mut *slot.coroutine.as_ptr() };
        let result = coroutine.as_mut().map(|coroutine| coroutine.resume(()));
        self.current.set(former);
        if let Some(CoroutineResult::Return(())) = result {
            self.release(slot);
        }
    }

    fn release(&self, slot: &FiberSlot) {
        if let Some(coroutine) = slot.coroutine.borrow_mut().take() {
            self.stacks.borrow_mut().put(coroutine.into_stack());
        }
        if slot.is_statement.get() {
            self.admission.end();
        }
        invariant!(slot.parts_in_flight.get() == 0, "3: a fiber ended within an operation");
        slot.cancel.borrow_mut().take();
        slot.state.set(FiberState::Free);
        slot.generation.set(0);
        self.free.borrow_mut().push(slot.index);
        self.live.set(self.live.get() - 1);
    }

    /// Unwinds every fiber that is left and drops what they hold.
    pub(crate) fn halt(&self) {
        self.halting.set(true);
        let count = self.slots.borrow().len() as u32;
        for index in 0..count {
            let slot = self.slot(index);
            if slot.state.get() == FiberState::Free {
                continue;
            }
            self.disarm(slot);
            self.refusals.set(0);
            let former = self.current.replace(slot);
            let coroutine = slot.coroutine.borrow_mut().take();
            if let Some(mut coroutine) = coroutine {
                coroutine.force_unwind();
                self.stacks.borrow_mut().put(coroutine.into_stack());
            }
            self.current.set(former);
            slot.parts_in_flight.set(0);
            slot.cancel.borrow_mut().take();
            slot.state.set(FiberState::Free);
        }
        self.live.set(0);
        self.deferred.run_all();
    }

    pub(crate) fn is_halting(&self) -> bool {
        self.halting.get()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// A fiber without a joiner panicked.
    pub(crate) fn unobserved_panic(&self, panic: &FiberPanic) {
        if let Twin::Sim(sim) = &self.twin {
            sim.end_by_panic(panic.to_string());
        }
    }

    // ---- between fibers ----

    /// Handles what other threads sent.
    pub(crate) fn take_messages(&self) {
        if !self.mailbox.is_filled() {
            return;
        }
        let mut messages = self.messages.take();
        self.mailbox.take_into(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Signal(fiber, signal) => self.deliver(fiber, signal, false),
                Message::Start(fiber) => {
                    self.start(fiber.name, self.number, fiber.body);
                }
                Message::Stop => self.stopping.set(true),
            }
        }
        self.messages.replace(messages);
    }

    /// Fires the timers that are due.
    pub(crate) fn fire_timers(&self, now: Instant) {
        loop {
            let due = self.timers.borrow_mut().pop_due(now.as_nanos());
            match due {
                Some(TimerTarget::Fiber(fiber)) => self.deliver(fiber, Signal::Timer, false),
                Some(TimerTarget::Connection(place)) => {
                    if let Twin::Real(real) = &self.twin {
                        real.connection_timer(self, place, now);
                    }
                }
                None => return,
            }
        }
    }

    /// When the next timer is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.timers.borrow().next_deadline().map(Instant::from_nanos)
    }

    /// Before a sleep; returns after how long there is something to tidy up again.
    pub(crate) fn tidy_up(&self, now_nanos: u64) -> Option<u64> {
        let mut stacks = self.stacks.borrow_mut();
        self.admission.figures.idle_stacks.set(stacks.trim(now_nanos) as u64);
        self.admission.figures.sleeps.add(1);
        stacks.trim_within_nanos()
    }

    /// Parks of this class by all workers of this runtime.
    pub(crate) fn parks_of_all(&self, class: WaitClass) -> u64 {
        match &self.twin {
            Twin::Real(real) => real.group.parks(class),
            Twin::Sim(_) => self.admission.figures.parks[class as usize].get(),
        }
    }

    /// Text about every fiber that waits, for a deadlock report.
    pub(crate) fn describe_fibers(&self) -> String {
        let slots = self.slots.borrow();
        let waiting = slots.iter().filter(|slot| slot.state.get() != FiberState::Free);
        let lines = waiting.map(|slot| {
            let (name, class) = (slot.name.get(), slot.wait_class.get());
            format!("  {} '{name}' {:?} {class:?}\n", slot.index, slot.state.get())
        });
        lines.collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // What it counted stays in the sum of the process.
        for (own, common) in self.admission.figures.parks.iter().zip(&WAITS.parks) {
            common.fetch_add(own.get(), Ordering::Relaxed);
        }
    }
}
