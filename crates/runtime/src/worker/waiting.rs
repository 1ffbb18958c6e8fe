//! How fibers of a worker wait and are woken. The states are drawn at [`FiberState`].

use super::{REFUSALS_MAX, TimerTarget, Twin, Worker};
use crate::Instant;
use crate::cancel::CancelToken;
use crate::fiber::{FiberSlot, FiberState};
use crate::mailbox::{FiberId, Signal};
use crate::park::{WaitClass, Wake};
use crate::timer::TimerId;
use base::invariant;

impl Worker {
    #[inline(always)]
    fn switch_out(&self, slot: &FiberSlot) {
        crate::sync::assert_none_held();
        assert!(!std::thread::panicking(), "a fiber must not wait while it unwinds from a panic");
        let here = 0_u8;
        slot.stopped_at.set(&raw const here as usize);
        // SAFETY: set when the fiber began; we are on its stack.
        unsafe { (*slot.yielder.get()).suspend(()) };
    }

    #[inline(always)]
    pub(crate) fn park(
        &self,
        class: WaitClass,
        deadline: Option<Instant>,
        cancellable: bool,
    ) -> Wake {
        let slot = self.current_slot();
        if self.halting.get() {
            return self.refuse_to_park();
        }
        if cancellable && slot.is_cancelled() {
            return Wake::Cancelled;
        }
        if slot.unparked.take() {
            return Wake::Unparked;
        }
        if let Some(deadline) = deadline {
            if deadline <= self.now() {
                return Wake::TimedOut;
            }
            self.arm(slot, deadline);
        }
        slot.cancellable.set(cancellable);
        self.wait(slot, FiberState::Parked, class)
    }

    /// Invariant 5. A destructor that waits in a loop would never end.
    #[cold]
    fn refuse_to_park(&self) -> Wake {
        self.refusals.set(self.refusals.get() + 1);
        if self.refusals.get() > REFUSALS_MAX {
            let name = self.current_name();
            eprintln!("a destructor of fiber '{name}' waits in a runtime that is ending");
            std::process::abort();
        }
        Wake::Cancelled
    }

    #[inline(always)]
    fn wait(&self, slot: &FiberSlot, state: FiberState, class: WaitClass) -> Wake {
        slot.wait_class.set(class);
        slot.is_long.set(false);
        self.admission.figures.parks[class as usize].add(1);
        if slot.is_statement.get() {
            self.admission.pause(class);
        }
        slot.tell_waiting(Some(class));
        slot.state.set(state);
        self.switch_out(slot);
        slot.tell_waiting(None);
        slot.wake.get()
    }

    /// Announces that the current fiber begins an operation of this many parts.
    pub(crate) fn begin_operation(&self, parts: u8) {
        let slot = self.current_slot();
        invariant!(slot.parts_in_flight.get() == 0, "3: one operation at a time");
        slot.parts_in_flight.set(parts);
    }

    /// Waits until all parts of the current fiber's operation have ended, or the deadline comes
    /// (`TimedOut`; the operation goes on and must be waited for again).
    pub(crate) fn wait_operation(&self, class: WaitClass, deadline: Option<Instant>) -> Wake {
        let slot = self.current_slot();
        if slot.parts_in_flight.get() == 0 {
            return Wake::Unparked;
        }
        if let Some(deadline) = deadline {
            self.arm(slot, deadline);
        }
        self.wait(slot, FiberState::InOperation, class)
    }

    /// The result of a part of the current fiber's last operation.
    pub(crate) fn operation_result(&self, part: usize) -> i32 {
        self.current_slot().results[part].get()
    }

    /// Lets the other ready fibers run first.
    #[inline(always)]
    pub(crate) fn yield_now(&self) {
        if self.halting.get() || !self.in_fiber() {
            return;
        }
        let slot = self.current_slot();
        self.make_ready(slot, false);
        self.switch_out(slot);
    }

    /// Yields when the fiber has used up its slice.
    #[inline]
    pub(crate) fn yield_if_due(&self) {
        let due = match &self.twin {
            Twin::Real(_) => self.slice.is_due(),
            Twin::Sim(sim) => sim.is_slice_over(),
        };
        if due {
            self.yield_slice();
        }
    }

    /// The slice is over: who has used it up is long and gives way to those who have not.
    fn yield_slice(&self) {
        if self.halting.get() || !self.in_fiber() {
            return;
        }
        let slot = self.current_slot();
        match &self.twin {
            Twin::Real(_) if slot.is_long.get() || self.slice.is_used_up() => {
                slot.is_long.set(true);
                self.admission.figures.slices.add(1);
                slot.state.set(FiberState::Ready);
                self.ready.borrow_mut().push_long(slot.index, self.turn.get());
            }
            _ => self.make_ready(slot, false),
        }
        self.switch_out(slot);
    }

    fn arm(&self, slot: &FiberSlot, deadline: Instant) {
        let target = TimerTarget::Fiber(slot.id());
        slot.timer.set(self.timers.borrow_mut().insert(deadline.as_nanos(), target));
    }

    pub(super) fn disarm(&self, slot: &FiberSlot) {
        let timer = slot.timer.replace(TimerId::NONE);
        if timer != TimerId::NONE {
            self.timers.borrow_mut().remove(timer);
        }
    }

    fn wake(&self, slot: &FiberSlot, wake: Wake, hot: bool) {
        self.disarm(slot);
        slot.wake.set(wake);
        if slot.is_statement.get() {
            self.admission.resume();
        }
        self.make_ready(slot, hot);
    }

    /// Tells a fiber of this worker what happened. `hot`: the waker runs on this worker now.
    pub(crate) fn deliver(&self, fiber: FiberId, signal: Signal, hot: bool) {
        let slot = match self.slots.borrow().get(fiber.slot as usize) {
            Some(slot) => &raw const **slot,
            None => return,
        };
        // SAFETY: as in `slot`.
        let slot = unsafe { &*slot };
        if slot.generation.get() != fiber.generation {
            return;
        }
        let state = slot.state.get();
        match signal {
            Signal::Unpark if state == FiberState::Parked => self.wake(slot, Wake::Unparked, hot),
            Signal::Unpark => slot.unparked.set(true),
            Signal::Cancel => {
                if state == FiberState::Parked && slot.cancellable.get() && slot.is_cancelled() {
                    self.wake(slot, Wake::Cancelled, hot);
                }
            }
            Signal::Timer => {
                slot.timer.set(TimerId::NONE);
                if matches!(state, FiberState::Parked | FiberState::InOperation) {
                    self.wake(slot, Wake::TimedOut, false);
                }
            }
            Signal::Io { part, result } => self.complete_part(fiber.slot, part, result),
        }
    }

    /// A part of the operation of the fiber in this slot has ended. (A slot with parts in flight
    /// keeps its fiber, so no generation is needed.)
    pub(crate) fn complete_part(&self, index: u32, part: u8, result: i32) {
        let slot = self.slot(index);
        let left = slot.parts_in_flight.get().checked_sub(1);
        let left = left.expect("invariant 3: a part ends that had begun");
        slot.results[part as usize].set(result);
        slot.parts_in_flight.set(left);
        if left == 0 && slot.state.get() == FiberState::InOperation {
            self.wake(slot, Wake::Unparked, false);
        }
    }

    /// Whether any fiber has parts of an operation in flight.
    pub(crate) fn has_operations(&self) -> bool {
        self.slots.borrow().iter().any(|slot| slot.parts_in_flight.get() > 0)
    }

    pub(crate) fn set_cancel_token(&self, token: Option<CancelToken>) -> Option<CancelToken> {
        self.current_slot().cancel.replace(token)
    }

    pub(crate) fn is_current_cancelled(&self) -> bool {
        self.in_fiber() && self.current_slot().is_cancelled()
    }

    pub(crate) fn cancel_token(&self) -> Option<CancelToken> {
        self.current_slot().cancel.borrow().clone()
    }
}
