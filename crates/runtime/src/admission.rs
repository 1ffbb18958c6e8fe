//! Admission: how many statements one worker executes at once, and who comes next.
//!
//! Invariants:
//! 1. A statement holds a slot of its worker from the start of its fiber to its end, except while
//!    the fiber waits, for whatever: a lock, the log, a page, a client, time.
//! 2. Only statements that have not begun are held back. One that has begun takes its slot again
//!    when it is woken, even if that makes more than the limit, so what others wait for is never
//!    kept back by the limit: no deadlock can go through it.
//! 3. When the gate is closed at least one statement of the worker is ready to run (1 and the
//!    limit being at least 1), so a worker with a closed gate never sleeps and needs no wake-up.
//! 4. Statements of open transactions go first, and past the limit up to twice of it: they hold
//!    what others wait for. A new statement that has waited for the kick-up time goes before them.
//! 5. A gate that stayed closed for the stall time lets one more statement in: neither a limit
//!    set too low nor long statements in all slots stop the rest for ever.
//! 6. The worker writes its figures, everybody reads them. They are relaxed: counts to look at,
//!    never to decide for another worker.
//!
//! The times are those of the worker's turns, so that no statement costs a look at the clock.

use crate::clock::ticks_per_microsecond;
use crate::park::WaitClass;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// What administrators set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdmissionSettings {
    /// Statements in execution at once, over all workers, those that wait not counted.
    pub statements_max: u32,
    /// A worker that held back all statements for this long lets one more in.
    pub stall_limit: Duration,
    /// A new statement that waited for this long goes before those of open transactions.
    pub kick_up: Duration,
    /// Queueing times by the clock, not by the beginning of the worker's turn.
    pub exact_times: bool,
}

/// The settings as workers read them.
pub(crate) struct SharedSettings {
    limit: AtomicU32,
    stall_ticks: AtomicU64,
    kick_up_ticks: AtomicU64,
    exact_times: AtomicBool,
}

impl SharedSettings {
    /// No limit, until [`SharedSettings::set`].
    pub(crate) fn new() -> Self {
        Self {
            limit: AtomicU32::new(u32::MAX / 2),
            stall_ticks: AtomicU64::new(500_000 * ticks_per_microsecond()),
            kick_up_ticks: AtomicU64::new(1_000_000 * ticks_per_microsecond()),
            exact_times: AtomicBool::new(false),
        }
    }

    pub(crate) fn set(&self, settings: &AdmissionSettings, workers: usize) {
        let ticks = |time: Duration| {
            let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            micros.saturating_mul(ticks_per_microsecond())
        };
        let share = settings.statements_max.div_ceil(workers.max(1) as u32);
        self.limit.store(share.clamp(1, u32::MAX / 2), Ordering::Relaxed);
        self.stall_ticks.store(ticks(settings.stall_limit), Ordering::Relaxed);
        self.kick_up_ticks.store(ticks(settings.kick_up), Ordering::Relaxed);
        self.exact_times.store(settings.exact_times, Ordering::Relaxed);
    }

    pub(crate) fn stall_ticks(&self) -> u64 {
        self.stall_ticks.load(Ordering::Relaxed)
    }

    pub(crate) fn kick_up_ticks(&self) -> u64 {
        self.kick_up_ticks.load(Ordering::Relaxed)
    }

    pub(crate) fn exact_times(&self) -> bool {
        self.exact_times.load(Ordering::Relaxed)
    }
}

/// A number that one thread writes and all read.
#[derive(Default)]
pub(crate) struct Figure(AtomicU64);

impl Figure {
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn add(&self, amount: u64) {
        self.set(self.get().wrapping_add(amount));
    }

    #[inline]
    pub(crate) fn subtract(&self, amount: u64) {
        self.set(self.get().wrapping_sub(amount));
    }
}

/// What one worker counts (invariant 6).
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Figures {
    pub(crate) connections: Figure,
    pub(crate) statements: Figure,
    pub(crate) active: Figure,
    pub(crate) idle_stacks: Figure,
    pub(crate) turn_ticks: Figure,
    pub(crate) crowded_ticks: Figure,
    pub(crate) begun: Figure,
    pub(crate) begun_by_stall: Figure,
    pub(crate) sleeps: Figure,
    pub(crate) woken_for_backlog: Figure,
    pub(crate) throttles: Figure,
    pub(crate) slices: Figure,
    pub(crate) polls: Figure,
    pub(crate) stolen: Figure,
    /// 1 while it keeps to a core of its own.
    pub(crate) own_core: Figure,
    pub(crate) parks: [Figure; WaitClass::COUNT],
    pub(crate) statement_waits: [Figure; WaitClass::COUNT],
}

/// The gate of one worker. See the head of the file.
pub(crate) struct Admission {
    pub(crate) figures: Arc<Figures>,
    /// The turn in which a statement was let in last.
    last_ticks: Cell<u64>,
    closed: Cell<bool>,
}

impl Admission {
    pub(crate) fn new(figures: Arc<Figures>) -> Self {
        Self { figures, last_ticks: Cell::new(0), closed: Cell::new(false) }
    }

    /// Whether one more statement may begin in the turn that began at `now`, if one of an open
    /// transaction (`urgent`) or any waits.
    #[inline]
    pub(crate) fn is_open(&self, settings: &SharedSettings, urgent: bool, now: u64) -> bool {
        let limit = u64::from(settings.limit.load(Ordering::Relaxed)) << u32::from(urgent);
        self.figures.active.get() < limit || self.is_stalled(settings, now)
    }

    #[cold]
    fn is_stalled(&self, settings: &SharedSettings, now: u64) -> bool {
        let stalled = now.saturating_sub(self.last_ticks.get()) > settings.stall_ticks();
        if stalled {
            self.figures.begun_by_stall.add(1);
        } else if !self.closed.replace(true) {
            self.figures.throttles.add(1);
        }
        stalled
    }

    /// A statement begins.
    #[inline]
    pub(crate) fn begin(&self, now: u64) {
        self.last_ticks.set(now);
        self.closed.set(false);
        self.figures.begun.add(1);
        self.figures.statements.add(1);
        self.figures.active.add(1);
    }

    /// A statement that has its slot begins to wait.
    #[inline]
    pub(crate) fn pause(&self, class: WaitClass) {
        self.figures.statement_waits[class as usize].add(1);
        self.figures.active.subtract(1);
    }

    /// A statement that waited can run again.
    #[inline]
    pub(crate) fn resume(&self) {
        self.figures.active.add(1);
    }

    /// A statement ends, with its slot.
    #[inline]
    pub(crate) fn end(&self) {
        self.figures.statements.subtract(1);
        self.figures.active.subtract(1);
    }
}

/// A worker as administrators see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkerFigures {
    /// Connections that belong to it.
    pub connections: u64,
    /// Statements that have begun and not ended.
    pub statements: u64,
    /// Those of them that do not wait.
    pub active: u64,
    /// It has nothing to do and sleeps.
    pub is_asleep: bool,
    /// Stacks without a fiber.
    pub idle_stacks: u64,
    /// Connections that wait for their turn.
    pub queued: u64,
    /// It has work and has not come to the next turn for longer than the stall limit.
    pub is_stalled: bool,
    /// Statements begun.
    pub begun: u64,
    /// Those begun past the limit because the gate was closed for too long.
    pub begun_by_stall: u64,
    /// Times it slept.
    pub sleeps: u64,
    /// Times it woke another worker because of its backlog.
    pub woken_for_backlog: u64,
    /// Times its gate closed.
    pub throttles: u64,
    /// Time slices that were used up.
    pub slices: u64,
    /// Looks for completions without sleeping.
    pub polls: u64,
    /// Connections taken from other workers.
    pub stolen: u64,
    /// It keeps to a core of its own.
    pub has_own_core: bool,
}

impl WorkerFigures {
    pub(crate) fn of(figures: &Figures) -> Self {
        Self {
            connections: figures.connections.get(),
            statements: figures.statements.get(),
            active: figures.active.get(),
            is_asleep: false,
            idle_stacks: figures.idle_stacks.get(),
            queued: 0,
            is_stalled: false,
            begun: figures.begun.get(),
            begun_by_stall: figures.begun_by_stall.get(),
            sleeps: figures.sleeps.get(),
            woken_for_backlog: figures.woken_for_backlog.get(),
            throttles: figures.throttles.get(),
            slices: figures.slices.get(),
            polls: figures.polls.get(),
            stolen: figures.stolen.get(),
            has_own_core: figures.own_core.get() != 0,
        }
    }
}

/// A connection that waits for its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuedConnection {
    /// The worker that has it.
    pub worker: usize,
    /// Its place in the queue, from 0.
    pub position: usize,
    /// It is in an open transaction.
    pub urgent: bool,
    /// Its number, see [`crate::net::Connection::id`].
    pub id: u64,
    /// How long it has waited, in microseconds.
    pub waited_micros: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn gate(statements_max: u32) -> (Admission, SharedSettings) {
        let settings = SharedSettings::new();
        let chosen = AdmissionSettings {
            statements_max,
            stall_limit: SECOND,
            kick_up: SECOND,
            exact_times: false,
        };
        settings.set(&chosen, 2);
        (Admission::new(Arc::default()), settings)
    }

    #[test]
    fn statements_that_wait_give_their_slot_and_take_it_back() {
        let (gate, settings) = gate(4);
        gate.begin(1);
        assert!(gate.is_open(&settings, false, 1));
        gate.begin(1);
        assert!(!gate.is_open(&settings, false, 1), "two slots for one of two workers");
        gate.pause(WaitClass::RowLock);
        assert!(gate.is_open(&settings, false, 1));
        gate.begin(1);
        gate.resume();
        assert_eq!(gate.figures.active.get(), 3, "who has begun is never held back");
        assert!(!gate.is_open(&settings, false, 1));
        gate.end();
        gate.end();
        assert!(gate.is_open(&settings, false, 1));
        gate.end();
        assert_eq!((gate.figures.active.get(), gate.figures.statements.get()), (0, 0));
    }

    #[test]
    fn open_transactions_pass_up_to_twice_the_limit() {
        let (gate, settings) = gate(2);
        gate.begin(1);
        assert!(!gate.is_open(&settings, false, 1) && gate.is_open(&settings, true, 1));
        gate.begin(1);
        assert!(!gate.is_open(&settings, true, 1));
    }

    #[test]
    fn a_stalled_gate_lets_one_in() {
        let (gate, settings) = gate(1);
        let second = 1_000_000 * ticks_per_microsecond();
        gate.begin(second);
        assert!(!gate.is_open(&settings, false, 2 * second));
        assert!(!gate.is_open(&settings, false, 2 * second), "still the same throttle");
        assert!(gate.is_open(&settings, false, 2 * second + 1));
        gate.begin(2 * second + 1);
        assert!(!gate.is_open(&settings, false, 2 * second + 2), "one in a stall time");
        assert_eq!(gate.figures.begun_by_stall.get(), 1);
        assert_eq!(gate.figures.throttles.get(), 2);
    }

    #[test]
    fn the_limit_is_at_least_one_for_each_worker() {
        let (gate, settings) = gate(0);
        assert!(gate.is_open(&settings, false, 1));
        gate.begin(1);
        assert!(!gate.is_open(&settings, false, 1));
    }
}
