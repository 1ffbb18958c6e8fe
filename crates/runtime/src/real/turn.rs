//! A worker's turns: what is ready, then what has happened, then perhaps sleep; and how work goes
//! from a worker that has too much to one that has none.
//!
//! 1. Connections are what moves: one that has something to read waits in its worker's backlog
//!    until that worker starts a fiber for it. A fiber, once begun, stays.
//! 2. A worker without anything to do takes the older half of a backlog that another one offers
//!    before it sleeps.
//! 3. A worker offers its backlog and wakes a sleeper when the backlog would wait longer than
//!    [`SHARE_MICROS`] (at the pace of its last fibers), when it is full (see `balance`), and
//!    behind a slice that was used up. Below that a wake-up costs more than it brings.

use super::connections::Connections;
use super::group::RealTwin;
use crate::clock::{Instant, monotonic_nanos, ticks, ticks_per_microsecond};
use crate::quiescent::Epoch;
use crate::worker::Worker;
use std::cell::Cell;

/// A backlog that would wait longer than this is shared with a worker that sleeps.
const SHARE_MICROS: u64 = 1000;

/// What a fiber's run is taken for before any was seen.
const RUN_MICROS: u64 = 20;

/// Fibers run between two looks at what has happened, at most.
const FIBERS_PER_TURN: u32 = 64;

/// What a worker remembers of its last turns.
pub(crate) struct Pace {
    /// Mean ticks of a fiber's run with its part of the hand-over, the last ones counting most.
    ticks_per_run: Cell<u64>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { ticks_per_run: Cell::new(RUN_MICROS * ticks_per_microsecond()) }
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
    let is_crowded = worker.is_crowded() || real.backlog(worker).len() > 1;
    let (runs, was_long) = run_ready(worker, real);
    worker.deferred.pass_point(worker);
    worker.deferred.collect(real.group.mailboxes.iter().copied());
    // Timers fill the backlog too: what is looked at for the sleep comes after them.
    worker.fire_timers(Instant::from_nanos(monotonic_nanos()));
    let backlog = real.backlog(worker).len();
    if backlog > 0 && was_long {
        real.offer_backlog(worker, true);
    }
    real.balance.look(worker, &real.group);
    let is_busy = backlog > 0 || worker.has_ready() || worker.mailbox.is_filled();
    if is_busy {
        worker.admission.figures.polls.add(1);
        real.event_loop.poll(worker, None);
    }
    let passed = ticks() - begin;
    real.pace.note_runs(runs, passed);
    if is_crowded {
        worker.admission.figures.crowded_ticks.add(passed);
    }
    if !is_busy && !Connections::steal(worker, real) {
        // What the turn has asked for is handed over by the call in which the worker sleeps.
        sleep(worker, real);
    }
}

/// Runs ready fibers for one slice, so that completions are looked at often enough. Fibers and
/// connections of the backlog take turns, so that neither starves the other. Gives how many ran,
/// and whether the last one used up a slice.
fn run_ready(worker: &Worker, real: &RealTwin) -> (u32, bool) {
    let backlog = real.backlog(worker).len();
    let waits_long = || real.pace.is_long(backlog + worker.ready_count());
    real.offer_backlog(worker, backlog > 0 && (real.balance.is_full() || waits_long()));
    let (mut count, mut was_long) = (0, false);
    while let Some(slot) = next_fiber(worker, real, count % 2 == 1) {
        was_long = worker.run_fiber(slot);
        count += 1;
        if was_long || count == FIBERS_PER_TURN || (count % 4 == 0 && worker.is_turn_over()) {
            break;
        }
    }
    (count, was_long)
}

#[inline]
fn next_fiber(worker: &Worker, real: &RealTwin, new_first: bool) -> Option<u32> {
    let new = new_first.then(|| Connections::start_next(worker, real)).flatten();
    new.or_else(|| worker.pop_ready())
        .or_else(|| Connections::start_next(worker, real))
        .or_else(|| worker.pop_long())
}

fn sleep(worker: &Worker, real: &RealTwin) {
    if !worker.mailbox.begin_sleep() {
        return real.event_loop.poll(worker, None);
    }
    // Invariant 4 of `backlog`: the last look is after the announcement.
    if real.group.is_backlog_elsewhere(worker.number) {
        worker.mailbox.end_sleep();
        return real.event_loop.poll(worker, None);
    }
    let now = monotonic_nanos();
    let until_tidy = worker.tidy_up(now).unwrap_or(u64::MAX);
    Epoch::go_offline(worker.mailbox);
    let until_timer =
        worker.next_deadline().map_or(u64::MAX, |it| it.as_nanos().saturating_sub(now));
    // Somebody has to look again when the other workers have passed the epoch.
    let limit = if worker.deferred.is_empty() { u64::MAX } else { 1_000_000 };
    real.event_loop.poll(worker, Some(until_timer.min(limit).min(until_tidy)));
    real.group.epoch.go_online(worker.mailbox);
    worker.mailbox.end_sleep();
}
