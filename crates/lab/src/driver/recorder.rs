//! What happened, by operation and by second.
//!
//! 1. Every end of an operation is counted once, in the second in which it ended.
//! 2. Latency is from the intended start: in an open load that of the schedule, in a closed one
//!    when the client was free. Service time is from when the client sent it.
//! 3. Only what ended in the measured time is counted in the operations' totals; the seconds of
//!    the warm-up are kept apart.
//! 4. A second's latencies are also kept as a coarse histogram, so that a heat map can be drawn,
//!    and of each measured second a few operations are kept as they were, each with the same
//!    chance (Vitter's algorithm R, 1985).

use super::figures::{Interval, QUANTILES, Sample, Second, buckets};
use super::fine::Fine;
use crate::results::{Point, Statements};
use hdrhistogram::Histogram;
use runtime::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Latencies are kept from 1 us to 1 h, to three digits.
const MAX_MICROS: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

/// Latencies in microseconds.
pub type Latencies = Histogram<u64>;

pub(super) fn latencies() -> Latencies {
    Histogram::new_with_bounds(1, MAX_MICROS, DIGITS).expect("bounds that the library accepts")
}

pub(super) fn add(histogram: &mut Latencies, duration: Duration) {
    histogram.saturating_record((duration.as_micros() as u64).clamp(1, MAX_MICROS));
}

/// Of one operation in the measured time.
#[derive(Clone)]
pub struct Operation {
    /// Its name.
    pub name: &'static str,
    /// From the intended start to the end.
    pub latency: Latencies,
    /// From the sending to the end.
    pub service: Latencies,
    /// Ended with an error.
    pub failed: u64,
    /// Performed again after a conflict.
    pub retried: u64,
}

/// How an operation ended.
pub enum End {
    /// As it should.
    Completed,
    /// With an error of the server, by number and SQLSTATE; 0 for a lost connection.
    Failed(u16, String),
}

/// An operation that has ended.
pub struct Ended {
    /// Its number.
    pub operation: usize,
    /// When it was meant to begin.
    pub intended: Instant,
    /// When it did.
    pub sent: Instant,
    /// When it ended.
    pub end: Instant,
    /// How.
    pub how: End,
    /// How often it was performed again.
    pub retries: u64,
    /// What was sent for it.
    pub statements: Statements,
}

/// See the module.
pub struct Recorder {
    /// Begin of the warm-up.
    begin: Instant,
    /// Begin of the measured time.
    measured_begin: Instant,
    measured: Duration,
    operations: Vec<Operation>,
    /// Seconds of the warm-up, whole ones back from its end, and of the measured time.
    cells: Vec<Second>,
    warm_up_cells: usize,
    points: Vec<Point>,
    fine: Fine,
    sample: Sample,
    /// Latencies of the second that is not over.
    current: Latencies,
    current_cell: usize,
    errors: BTreeMap<(u16, String), u64>,
    messages: BTreeMap<u16, String>,
    statements: Statements,
    reconnected: u64,
    lateness: Latencies,
    interval: Option<Box<Interval>>,
}

/// What was recorded.
#[derive(Clone)]
pub struct Record {
    /// By operation.
    pub operations: Vec<Operation>,
    /// By second of the warm-up.
    pub warm_up: Vec<Second>,
    /// By second of the measured time.
    pub seconds: Vec<Second>,
    /// Some of the operations of the measured time.
    pub points: Vec<Point>,
    /// In tenths of a second.
    pub fine: Fine,
    /// How often each error came, by number and SQLSTATE; number 0 is a lost connection.
    pub errors: BTreeMap<(u16, String), u64>,
    /// The first text of each error.
    pub messages: BTreeMap<u16, String>,
    /// Statements sent in the measured time.
    pub statements: Statements,
    /// Connections that were opened again in the measured time.
    pub reconnected: u64,
    /// How much later than asked the driver itself woke: its clients, and a fiber that does
    /// nothing but wake a hundred times a second.
    pub lateness: Latencies,
}

impl Recorder {
    /// Counts from `begin` on: the warm-up, then the measured time. `watched` also keeps
    /// intervals for lines of progress.
    pub fn new(
        names: &[&'static str],
        (begin, warm_up, measured): (Instant, Duration, Duration),
        watched: bool,
    ) -> Self {
        let operation = |name: &&'static str| Operation {
            name,
            latency: latencies(),
            service: latencies(),
            failed: 0,
            retried: 0,
        };
        Self {
            begin,
            measured_begin: begin + warm_up,
            measured,
            operations: names.iter().map(operation).collect(),
            cells: Vec::new(),
            warm_up_cells: warm_up.as_secs_f64().ceil() as usize,
            points: Vec::new(),
            fine: Fine::default(),
            sample: Sample::new(measured),
            current: latencies(),
            current_cell: 0,
            errors: BTreeMap::new(),
            messages: BTreeMap::new(),
            statements: Statements::default(),
            reconnected: 0,
            lateness: latencies(),
            interval: watched.then(|| Box::new(Interval::new())),
        }
    }

    /// Counts an operation that has just ended.
    pub fn add(&mut self, ended: Ended) {
        let Some(cell) = self.cell_of(ended.end) else { return };
        self.advance(cell);
        let is_measured = cell >= self.warm_up_cells;
        let count = self.operations.len();
        let latency = ended.end - ended.intended;
        let totals = &mut self.operations[ended.operation];
        let cell = &mut self.cells[cell];
        cell.retried += ended.retries;
        if is_measured {
            totals.retried += ended.retries;
            self.statements.add(ended.statements);
        }
        if let Some(interval) = &mut self.interval {
            interval.retried += ended.retries;
            interval.statements.add(ended.statements);
        }
        match ended.how {
            End::Completed => {
                cell.completed.resize(count, 0);
                cell.completed[ended.operation] += 1;
                add(&mut self.current, latency);
                if is_measured {
                    add(&mut totals.latency, latency);
                    add(&mut totals.service, ended.end - ended.sent);
                    self.sample.add(ended.end - self.measured_begin, latency);
                    self.fine.add(ended.end - self.measured_begin);
                }
                if let Some(interval) = &mut self.interval {
                    interval.complete(latency);
                }
            }
            End::Failed(number, state) => {
                cell.failed += 1;
                if is_measured {
                    totals.failed += 1;
                    *self.errors.entry((number, state)).or_default() += 1;
                }
                if let Some(interval) = &mut self.interval {
                    interval.failed += 1;
                }
            }
        }
    }

    /// Keeps the text of an error, the first of its number.
    pub fn add_message(&mut self, number: u16, text: impl FnOnce() -> String) {
        self.messages.entry(number).or_insert_with(text);
    }

    /// Counts a connection that was opened again.
    pub fn add_reconnected(&mut self, now: Instant) {
        let Some(cell) = self.cell_of(now) else { return };
        self.advance(cell);
        self.cells[cell].reconnected += 1;
        self.reconnected += u64::from(cell >= self.warm_up_cells);
        if let Some(interval) = &mut self.interval {
            interval.reconnected += 1;
        }
    }

    /// Counts how late the driver woke.
    pub fn add_lateness(&mut self, late: Duration) {
        add(&mut self.lateness, late);
    }

    /// The cell of a moment; `None` when it is not within the run.
    fn cell_of(&self, now: Instant) -> Option<usize> {
        if now >= self.measured_begin {
            let second = (now - self.measured_begin).as_secs() as usize;
            return (now - self.measured_begin < self.measured)
                .then_some(self.warm_up_cells + second);
        }
        let before = (self.measured_begin - now).as_secs_f64().ceil() as usize;
        self.warm_up_cells.checked_sub(before)
    }

    /// Begins a second, and ends the one before it.
    fn advance(&mut self, cell: usize) {
        if cell > self.current_cell {
            self.end_second();
            self.current_cell = cell;
        }
        if self.cells.len() <= cell {
            let empty = Second { completed: vec![0; self.operations.len()], ..Second::default() };
            self.cells.resize(cell + 1, empty);
        }
    }

    fn end_second(&mut self) {
        if let Some(cell) = self.cells.get_mut(self.current_cell) {
            cell.micros = QUANTILES.map(|share| self.current.value_at_quantile(share));
            cell.buckets = buckets(&self.current);
        }
        self.current.reset();
        self.points.append(&mut self.sample.points);
        self.sample.seen = 0;
    }

    /// What happened since the last call, if the recorder is watched.
    pub fn take_interval(&mut self, now: Instant) -> Option<Interval> {
        let interval = self.interval.as_mut()?;
        let mut next = Interval::new();
        next.end = now - self.begin;
        let mut ended = std::mem::replace(&mut **interval, next);
        ended.length = (now - self.begin).saturating_sub(ended.end);
        ended.end = now - self.begin;
        ended.is_warm_up = now < self.measured_begin;
        Some(ended)
    }

    /// What was recorded, with a cell for every second of the measured time; in a run that ended
    /// early for every one until then.
    pub fn finish(mut self, end: Instant) -> Record {
        let ran = end.max(self.measured_begin) - self.measured_begin;
        let seconds = ran.min(self.measured).as_secs() as usize;
        let cells = self.warm_up_cells + seconds;
        if let Some(last) = cells.checked_sub(1) {
            self.advance(last);
        }
        self.end_second();
        self.fine.finish(ran.min(self.measured));
        self.cells.truncate(cells);
        let measured = self.cells.split_off(self.warm_up_cells.min(self.cells.len()));
        Record {
            operations: self.operations,
            warm_up: self.cells,
            seconds: measured,
            points: self.points,
            fine: self.fine,
            errors: self.errors,
            messages: self.messages,
            statements: self.statements,
            reconnected: self.reconnected,
            lateness: self.lateness,
        }
    }
}

impl Record {
    /// Operations completed in each second.
    pub fn completed_per_second(&self) -> Vec<u64> {
        self.seconds.iter().map(|second| second.completed.iter().sum()).collect()
    }

    /// Latencies of all operations together.
    pub fn latency(&self) -> Latencies {
        let mut all = latencies();
        for operation in &self.operations {
            all.add(&operation.latency).expect("the same bounds");
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn ended(operation: usize, intended: u64, end: u64) -> Ended {
        Ended {
            operation,
            intended: at(intended),
            sent: at(end - 2),
            end: at(end),
            how: End::Completed,
            retries: 0,
            statements: Statements { reads: 1, ..Statements::default() },
        }
    }

    fn recorder() -> Recorder {
        let times = (at(500), Duration::from_millis(500), Duration::from_secs(3));
        Recorder::new(&["read", "write"], times, true)
    }

    #[test]
    fn ends_are_counted_in_their_second_and_only_in_the_measured_time() {
        let mut recorder = recorder();
        for (operation, end) in [(0, 999), (0, 1000), (1, 1999), (0, 3500), (1, 4000)] {
            recorder.add(ended(operation, end - 5, end));
        }
        let how = End::Failed(1213, "40001".into());
        recorder.add(Ended { how, retries: 2, ..ended(0, 1, 3600) });
        let record = recorder.finish(at(5000));
        assert_eq!(record.completed_per_second(), [2, 0, 1]);
        assert_eq!(record.warm_up.len(), 1);
        assert_eq!(record.warm_up[0].completed, [1, 0]);
        assert_eq!(record.seconds[0].completed, [1, 1]);
        assert_eq!((record.seconds[2].failed, record.seconds[2].retried), (1, 2));
        assert_eq!(record.errors[&(1213, "40001".to_string())], 1);
        assert_eq!(record.seconds[0].micros, [5003; 5], "three digits of 5 ms");
        assert_eq!(record.seconds[1].micros, [0; 5]);
        assert_eq!(record.seconds[0].buckets, [(49, 2)], "4.87 ms to 5.79 ms");
        let points: Vec<_> = record.points.iter().map(|p| (p.millis, p.micros)).collect();
        assert_eq!(points, [(0, 5000), (999, 5000), (2500, 5000)]);
        assert_eq!(record.operations[0].service.max(), 2000);
        assert_eq!(record.latency().len(), 3);
        assert_eq!(record.statements.reads, 4);
    }

    #[test]
    fn a_run_that_ended_early_has_no_seconds_after_its_end() {
        let mut recorder = recorder();
        recorder.add(ended(0, 1100, 1200));
        assert_eq!(recorder.finish(at(2500)).completed_per_second(), [1]);
    }

    #[test]
    fn intervals_follow_one_another() {
        let mut recorder = recorder();
        recorder.add(ended(0, 600, 700));
        let first = recorder.take_interval(at(900)).expect("watched");
        assert_eq!((first.completed, first.is_warm_up), (1, true));
        recorder.add(ended(0, 1000, 1100));
        recorder.add(ended(0, 1000, 1200));
        let second = recorder.take_interval(at(1300)).expect("watched");
        assert_eq!((second.completed, second.is_warm_up), (2, false));
        assert_eq!(second.length, Duration::from_millis(400));
        assert_eq!(second.each_second(second.completed), 5.0);
    }

    #[test]
    fn every_operation_of_a_second_has_the_same_chance_to_be_kept() {
        let times = (at(0), Duration::ZERO, Duration::from_secs(1));
        let mut recorder = Recorder::new(&["read"], times, false);
        for number in 0..10_000 {
            let end = Instant::from_nanos(1_000_000 + number * 99_000);
            let ended = Ended { intended: at(0), sent: at(0), end, ..ended(0, 0, 2) };
            recorder.add(ended);
        }
        let points = recorder.finish(at(1000)).points;
        assert_eq!(points.len(), 24);
        let mean = points.iter().map(|p| f64::from(p.millis)).sum::<f64>() / 24.0;
        assert!((300.0..700.0).contains(&mean), "{mean}");
    }
}
