//! Waiting and leading.
//!
//! There is no log thread. Whoever waits and finds no leader takes the [`Writer`] and leads: it
//! writes what is published, wakes everybody whose position was reached, gives the writer back
//! and wakes one fiber that still waits, which leads next. While a leader's write is under way,
//! others append and queue; that queue is the next group.
//!
//! A leader whose group is small beside the last ones lets what is ready on its worker run first:
//! who is about to commit joins it, and one flush for all of them costs what a flush for one
//! costs. No timers are involved, and a leader never waits for somebody who might not come.
//!
//! The invariants are those of `wal`, by number.

use crate::counters::{WAITS, count_group};
use crate::types::{FlushPolicy, WalError};
use crate::wal::Wal;
use crate::writer::Writer;
use base::{invariant, probe};
use runtime::{Unparker, WaitClass};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The background fiber flushes and leaves its note this often.
const BACKGROUND_PERIOD: Duration = Duration::from_secs(1);
/// A leader spins this often for a record being copied on another core before it yields.
const COPY_SPINS: u32 = 200;

/// A leader lets others run first at most so often.
const GATHER_YIELDS: u32 = 4;

/// What a fiber waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    Durable(u64),
    Written(u64),
    /// The log itself says that everything below is durable.
    Noted(u64),
    /// Room in the ring; whether it came is known to the waiter alone.
    Room,
}

/// A fiber in the queue for its goal.
#[derive(Debug)]
pub(crate) struct Waiter {
    goal: Goal,
    unparker: Unparker,
}

/// The writer and who waits for it.
#[derive(Debug)]
pub(crate) struct FlushState {
    /// Absent while a leader has it.
    pub(crate) writer: Option<Box<Writer>>,
    pub(crate) waiters: Vec<Waiter>,
    /// Those whom the last flush let go on; empty between flushes, kept for its memory.
    pub(crate) satisfied: Vec<Unparker>,
    /// Fibers that waited when the last flush ended, for it or for the next.
    pub(crate) active: usize,
}

impl FlushState {
    pub(crate) fn new(writer: Writer) -> FlushState {
        FlushState {
            writer: Some(Box::new(writer)),
            waiters: Vec::new(),
            satisfied: Vec::new(),
            active: 0,
        }
    }
}

impl Wal {
    pub(crate) fn is_reached(&self, goal: Goal) -> bool {
        match goal {
            Goal::Durable(lsn) => self.durable.load(Ordering::Acquire) >= lsn,
            Goal::Written(lsn) => self.written.load(Ordering::Acquire) >= lsn,
            Goal::Noted(lsn) => self.noted.load(Ordering::Acquire) >= lsn,
            Goal::Room => false,
        }
    }

    pub(crate) fn wait(&self, goal: Goal) -> Result<(), WalError> {
        if self.is_reached(goal) {
            return Ok(());
        }
        WAITS.add(1);
        loop {
            self.check_poison()?;
            if self.try_lead(goal) {
                if self.is_reached(goal) {
                    return Ok(());
                }
                continue;
            }
            if self.is_reached(goal) {
                return Ok(());
            }
            runtime::park_uncancellable(WaitClass::LogDurable, None);
            if self.is_reached(goal) {
                return Ok(());
            }
            // Woken to lead, or for nothing: the place in the queue is taken again if need be.
            let here = runtime::current_unparker();
            self.flush.lock().waiters.retain(|waiter| waiter.unparker != here);
        }
    }

    /// Leads one flush if nobody else does; otherwise queues the caller for its goal and returns
    /// false, and the caller parks. Room is queued for elsewhere.
    pub(crate) fn try_lead(&self, goal: Goal) -> bool {
        let mut state = self.flush.lock();
        // Between the caller's look and the lock a leader may have finished (invariant 3).
        if self.is_reached(goal) || self.poison.get().is_some() {
            return !matches!(goal, Goal::Room);
        }
        let has_work = |writer: &Writer| match goal {
            Goal::Room => self.ring.tail() > writer.sealed,
            _ => true,
        };
        if state.writer.as_deref().is_some_and(has_work)
            && let Some(mut writer) = state.writer.take()
        {
            let active = state.active;
            drop(state);
            let mut guard = LeaderGuard { wal: self, is_finished: false };
            if matches!(goal, Goal::Durable(_)) {
                self.gather(active);
            }
            let result = self.lead(&mut writer, goal);
            guard.is_finished = true;
            self.finish(writer, result);
            return true;
        }
        if !matches!(goal, Goal::Room) {
            state.waiters.push(Waiter { goal, unparker: runtime::current_unparker() });
        }
        false
    }

    /// Lets others join the group while it is less than half of those who were `active` around
    /// the last flush, as long as the log grows by that.
    fn gather(&self, active: usize) {
        for _ in 0..GATHER_YIELDS {
            if 2 * (self.flush.lock().waiters.len() + 1) >= active {
                return;
            }
            let before = self.ring.tail();
            runtime::yield_now();
            if self.ring.tail() == before {
                return;
            }
            probe!("wal.gathered");
        }
    }

    /// One flush, with a sync if the goal asks for it or somebody else does.
    pub(crate) fn lead(&self, writer: &mut Writer, goal: Goal) -> io::Result<()> {
        let sealed_goal = match goal {
            Goal::Durable(lsn) | Goal::Written(lsn) | Goal::Noted(lsn) => lsn,
            Goal::Room => writer.sealed + 1,
        };
        if writer.sealed < sealed_goal {
            self.await_published(writer.sealed);
        }
        let sync = match goal {
            Goal::Durable(_) | Goal::Noted(_) => true,
            // Whoever waits for more has its sync with this write.
            Goal::Written(_) => self.is_sync_wanted(),
            Goal::Room => self.is_sync_wanted() || self.policy() == FlushPolicy::EveryCommit,
        };
        match goal {
            Goal::Noted(lsn) if writer.sealed >= lsn => writer.write_note(),
            _ => writer.flush(&self.ring, sync, || self.grant_room()),
        }
    }

    fn is_sync_wanted(&self) -> bool {
        let wants_sync = |waiter: &Waiter| matches!(waiter.goal, Goal::Durable(_) | Goal::Noted(_));
        self.flush.lock().waiters.iter().any(wants_sync)
    }

    /// Waits until the record at `position`, which is reserved, has been copied.
    pub(crate) fn await_published(&self, position: u64) {
        let mut spins = 0;
        while self.ring.published(position, 1) == position {
            invariant!(position < self.ring.tail(), "1: somebody waits for log never appended");
            spins += 1;
            if spins < COPY_SPINS {
                std::hint::spin_loop();
            } else {
                runtime::yield_now();
            }
        }
    }

    /// Publishes what a leader has achieved, gives the writer back and wakes.
    pub(crate) fn finish(&self, writer: Box<Writer>, result: io::Result<()>) {
        if let Err(error) = &result {
            self.set_poison(&format!("writing the log failed: {error}"), true);
        } else {
            self.written.store(writer.sealed, Ordering::Release);
            self.durable.store(writer.durable, Ordering::Release);
            self.noted.store(writer.noted, Ordering::Release);
            let (writes, nanos) = writer.synced_writes;
            self.synced_writes.store(writes, Ordering::Relaxed);
            self.synced_write_nanos.store(nanos, Ordering::Relaxed);
            self.remaining_file_bytes.store(writer.remaining_file_bytes(), Ordering::Relaxed);
        }
        let sealed = writer.sealed;
        let mut state = self.flush.lock();
        state.writer = Some(writer);
        let is_poisoned = self.poison.get().is_some();
        let mut woken = std::mem::take(&mut state.satisfied);
        state.waiters.retain(|waiter| {
            let is_done = is_poisoned || self.is_reached(waiter.goal);
            if is_done {
                woken.push(waiter.unparker);
            }
            !is_done
        });
        let satisfied = woken.len() + 1;
        state.active = satisfied + state.waiters.len();
        // Invariant 2: the next leader; one of this worker spares a message to another.
        let successor = match state.waiters.iter().position(|it| it.unparker.is_local()) {
            Some(local) => Some(state.waiters.swap_remove(local).unparker),
            None => state.waiters.pop().map(|waiter| waiter.unparker),
        };
        drop(state);
        woken.iter().for_each(Unparker::unpark);
        count_group(satisfied);
        match successor {
            Some(successor) => successor.unpark(),
            None if self.room_waiters.load(Ordering::SeqCst) > 0 && self.ring.tail() > sealed => {
                self.wake_first_room_waiter();
            }
            None => {}
        }
        woken.clear();
        self.flush.lock().satisfied = woken;
    }

    /// Invariant 4.
    pub(crate) fn set_poison(&self, detail: &str, tell: bool) {
        if self.poison.set(Arc::from(detail)).is_ok() && tell {
            (self.options.on_fatal)(detail);
        }
        for waiter in self.room.lock().iter() {
            waiter.unparker.unpark();
        }
    }
}

/// Poisons the log if the leader does not come back: the writer is lost with it.
struct LeaderGuard<'a> {
    wal: &'a Wal,
    is_finished: bool,
}

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.wal.set_poison("the flush leader panicked", false);
            for waiter in self.wal.flush.lock().waiters.drain(..) {
                waiter.unparker.unpark();
            }
        }
    }
}

/// Once a second: makes everything durable (policies 0 and 2, and records of transactions still
/// open), then leaves a note of it and gives back files that are not needed.
pub(crate) fn background(wal: &Weak<Wal>) {
    if let Some(wal) = wal.upgrade() {
        *wal.background.lock() = Some(runtime::current_unparker());
    }
    loop {
        let until = runtime::now() + BACKGROUND_PERIOD;
        let is_closing = || wal.upgrade().is_none_or(|wal| wal.closing.load(Ordering::SeqCst));
        while !is_closing() && runtime::now() < until {
            runtime::park(WaitClass::Idle, Some(until));
        }
        let Some(wal) = wal.upgrade() else { return };
        let is_over = wal.closing.load(Ordering::SeqCst);
        if is_over || wal.wait(Goal::Noted(wal.end().get())).is_err() {
            return;
        }
        if wal.files.release_spares().is_err() {
            probe!("wal.idle_spare_not_removed");
        }
    }
}
