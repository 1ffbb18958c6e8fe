//! A worker's turns: what is ready, then what has happened, then perhaps sleep; and how work goes
//! from a worker that has too much to one that has none.
//!
//! 1. Connections are what moves: one that has something to read waits in its worker's backlog
//!    until that worker starts a fiber for it. A fiber, once begun, stays.
//! 2. A worker without anything to do takes the older half of another's backlog before it sleeps.
//! 3. A worker with a backlog wakes a sleeper when the backlog would wait longer than
//!    [`SHARE_MICROS`] (at the pace of its last fibers), and at the end of any slice that left
//!    some of the backlog over. Below that a wake-up costs more than it brings.

use super::connections::Connections;
use super::group::RealTwin;
use crate::clock::{Instant, monotonic_nanos, ticks, ticks_per_microsecond};
use crate::quiescent::Epoch;
use crate::worker::Worker;
use std::cell::Cell;

/// A backlog that would wait longer than this is shared with a worker that sleeps.
const SHARE_MICROS: u64 = 50;

/// Fibers run between two looks at what has happened, at most.
const FIBERS_PER_TURN: u32 = 64;

/// After this many spins without success only every 32nd sleep is preceded by one.
const FAILED_SPINS_MAX: u32 = 8;

/// What a worker remembers of its last turns.
pub(crate) struct Pace {
    /// Mean ticks of a fiber's run with its part of the hand-over, the last ones counting most.
    ticks_per_run: Cell<u64>,
    failed_spins: Cell<u32>,
    spin_micros: u64,
    /// Until when (in ticks) the next search for work goes on in any case.
    eager_until: Cell<u64>,
}

impl Pace {
    pub(super) fn new(spin_micros: u64) -> Self {
        // Nothing known yet: slow enough for a backlog of one to be shared.
        let ticks_per_run = Cell::new(2 * SHARE_MICROS * ticks_per_microsecond());
        let (failed_spins, eager_until) = (Cell::new(0), Cell::new(0));
        Self { ticks_per_run, failed_spins, spin_micros, eager_until }
    }

    /// See [`crate::expect_soon`].
    pub(crate) fn expect_soon(&self, limit: std::time::Duration) {
        if self.spin_micros > 0 {
            let limit = limit.as_micros() as u64 * ticks_per_microsecond();
            self.eager_until.set(ticks() + limit);
        }
    }

    /// Whether a worker without work looks for some before it sleeps. If not, its sleep hands over
    /// what the last turn asked for.
    fn may_spin(&self) -> bool {
        let failed = self.failed_spins.get();
        self.spin_micros > 0 && (failed <= FAILED_SPINS_MAX || failed.is_multiple_of(32))
    }

    /// A turn ran so many fibers and handed over what they asked for.
    fn note_runs(&self, count: u32, ticks: u64) {
        if count > 0 {
            let former = self.ticks_per_run.get();
            self.ticks_per_run.set(former - former / 8 + ticks / u64::from(count) / 8);
        }
    }

    /// Whether what stands behind the first of `count` runs would wait for long.
    fn is_long(&self, count: usize) -> bool {
        let others = count.saturating_sub(1) as u64;
        others * self.ticks_per_run.get() > SHARE_MICROS * ticks_per_microsecond()
    }
}

/// One turn of the loop.
pub(super) fn turn(worker: &Worker, real: &RealTwin) {
    worker.next_turn();
    worker.take_messages();
    if worker.is_stopping() {
        return;
    }
    let begin = ticks();
    let runs = run_ready(worker, real);
    worker.deferred.pass_point(worker);
    worker.deferred.collect(real.group.mailboxes.iter().copied());
    let backlog = real.backlog(worker).len();
    if backlog > 0 {
        real.group.wake_another(worker.number);
    }
    worker.fire_timers(Instant::from_nanos(monotonic_nanos()));
    let is_busy = backlog > 0 || worker.has_ready() || worker.mailbox.is_filled();
    if is_busy || real.pace.may_spin() {
        worker.admission.figures.polls.add(1);
        real.event_loop.poll(worker, None);
        real.pace.note_runs(runs, ticks() - begin);
    }
    if !is_busy && !find_work(worker, real) {
        sleep(worker, real);
    }
}

/// Runs ready fibers for one slice, so that completions are looked at often enough. Fibers and
/// connections of the backlog take turns, so that neither starves the other.
fn run_ready(worker: &Worker, real: &RealTwin) -> u32 {
    let backlog = real.backlog(worker).len();
    if backlog > 0 && real.pace.is_long(backlog + worker.ready_count()) {
        real.group.wake_another(worker.number);
    }
    let mut count = 0;
    while let Some(slot) = next_fiber(worker, real, count % 2 == 1) {
        let was_long = worker.run_fiber(slot);
        count += 1;
        if was_long || count == FIBERS_PER_TURN || (count % 4 == 0 && worker.is_turn_over()) {
            break;
        }
    }
    count
}

#[inline]
fn next_fiber(worker: &Worker, real: &RealTwin, new_first: bool) -> Option<u32> {
    let new = new_first.then(|| Connections::start_next(worker, real)).flatten();
    new.or_else(|| worker.pop_ready())
        .or_else(|| Connections::start_next(worker, real))
        .or_else(|| worker.pop_long())
}

fn has_work(worker: &Worker, real: &RealTwin) -> bool {
    worker.has_ready() || real.backlog(worker).len() > 0
}

/// Looks for work for a short time; true when some came.
fn find_work(worker: &Worker, real: &RealTwin) -> bool {
    if has_work(worker, real) || Connections::steal(worker, real) {
        return true;
    }
    let failed = real.pace.failed_spins.get();
    let eager_until = real.pace.eager_until.replace(0);
    if !real.pace.may_spin() {
        if eager_until == 0 {
            real.pace.failed_spins.set(failed.wrapping_add(1));
            return false;
        }
        // The turn has left this to the sleep that does not come now.
        real.event_loop.poll(worker, None);
    }
    let micros = real.pace.spin_micros;
    let end = eager_until.max(ticks() + micros * ticks_per_microsecond());
    while ticks() < end {
        if worker.mailbox.is_filled() || real.event_loop.has_completions() {
            real.event_loop.poll(worker, None);
            real.pace.failed_spins.set(0);
            if !has_work(worker, real) && !worker.mailbox.is_filled() && ticks() < eager_until {
                // A step of what is expected, not its end.
                continue;
            }
            return true;
        }
        if Connections::steal(worker, real) {
            real.pace.failed_spins.set(0);
            return true;
        }
        for _ in 0..16 {
            std::hint::spin_loop();
        }
    }
    real.pace.failed_spins.set(failed.wrapping_add(1));
    false
}

fn sleep(worker: &Worker, real: &RealTwin) {
    if !worker.mailbox.begin_sleep() {
        return real.event_loop.poll(worker, None);
    }
    // Invariant 3 of `backlog`: the last look is after the announcement.
    if real.group.is_backlog_elsewhere(worker.number) {
        worker.mailbox.end_sleep();
        return real.event_loop.poll(worker, None);
    }
    worker.tidy_up();
    Epoch::go_offline(worker.mailbox);
    let now = monotonic_nanos();
    let until_timer =
        worker.next_deadline().map_or(u64::MAX, |it| it.as_nanos().saturating_sub(now));
    // Somebody has to look again when the other workers have passed the epoch.
    let limit = if worker.deferred.is_empty() { u64::MAX } else { 1_000_000 };
    real.event_loop.poll(worker, Some(until_timer.min(limit)));
    real.group.epoch.go_online(worker.mailbox);
    worker.mailbox.end_sleep();
}
