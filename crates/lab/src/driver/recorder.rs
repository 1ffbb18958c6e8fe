//! What happened, by operation and by second.
//!
//! 1. Every end of an operation is counted once, in the second in which it ended.
//! 2. Latency is from the intended start: in an open load that of the schedule, in a closed one
//!    when the client was free. Service time is from when the client sent it.
//! 3. Only what ended in the measured time is counted.

use hdrhistogram::Histogram;
use runtime::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Latencies are kept from 1 us to 1 h, to three digits.
const MAX_MICROS: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

/// Latencies in microseconds.
pub type Latencies = Histogram<u64>;

fn latencies() -> Latencies {
    Histogram::new_with_bounds(1, MAX_MICROS, DIGITS).expect("bounds that the library accepts")
}

fn add(histogram: &mut Latencies, duration: Duration) {
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

/// One second of all operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Completed, by operation.
    pub completed: Vec<u64>,
    /// Ended with an error.
    pub failed: u64,
    /// Performed again.
    pub retried: u64,
    /// Latency in microseconds: quantiles 0.5, 0.95, 0.99, 0.999, 1.
    pub micros: [u64; 5],
}

/// The quantiles of [`Second::micros`].
pub const QUANTILES: [f64; 5] = [0.5, 0.95, 0.99, 0.999, 1.0];

/// How an operation ended.
pub enum End {
    /// As it should.
    Completed,
    /// With an error of the server, by number and SQLSTATE; 0 for a lost connection.
    Failed(u16, String),
}

/// See the module.
pub struct Recorder {
    begin: Instant,
    measured: Duration,
    operations: Vec<Operation>,
    seconds: Vec<Second>,
    /// Latencies of the second that is not over.
    current: Latencies,
    current_second: usize,
    errors: BTreeMap<(u16, String), u64>,
    /// How much later than asked clients woke: the driver's own lateness.
    lateness: Latencies,
}

/// What was recorded.
pub struct Record {
    /// By operation.
    pub operations: Vec<Operation>,
    /// By second.
    pub seconds: Vec<Second>,
    /// How often each error came, by number and SQLSTATE.
    pub errors: BTreeMap<(u16, String), u64>,
    /// How much later than asked clients woke.
    pub lateness: Latencies,
}

impl Recorder {
    /// Counts from `begin` on for so long.
    pub fn new(names: &[&'static str], begin: Instant, measured: Duration) -> Self {
        let operation = |name: &&'static str| Operation {
            name,
            latency: latencies(),
            service: latencies(),
            failed: 0,
            retried: 0,
        };
        Self {
            begin,
            measured,
            operations: names.iter().map(operation).collect(),
            seconds: Vec::new(),
            current: latencies(),
            current_second: 0,
            errors: BTreeMap::new(),
            lateness: latencies(),
        }
    }

    /// Counts an operation that has just ended.
    pub fn add(
        &mut self,
        operation: usize,
        intended: Instant,
        sent: Instant,
        end: Instant,
        how: End,
        retries: u64,
    ) {
        if end < self.begin || end - self.begin >= self.measured {
            return;
        }
        let second = (end - self.begin).as_secs() as usize;
        self.advance(second);
        let count = self.operations.len();
        let cell = &mut self.seconds[second];
        let totals = &mut self.operations[operation];
        cell.retried += retries;
        totals.retried += retries;
        match how {
            End::Completed => {
                cell.completed.resize(count, 0);
                cell.completed[operation] += 1;
                add(&mut totals.latency, end - intended);
                add(&mut totals.service, end - sent);
                add(&mut self.current, end - intended);
            }
            End::Failed(number, state) => {
                cell.failed += 1;
                totals.failed += 1;
                *self.errors.entry((number, state)).or_default() += 1;
            }
        }
    }

    /// Counts how late a client woke.
    pub fn add_lateness(&mut self, late: Duration) {
        add(&mut self.lateness, late);
    }

    /// Begins a second, and ends those before it.
    fn advance(&mut self, second: usize) {
        let empty = Second { completed: vec![0; self.operations.len()], ..Second::default() };
        if second > self.current_second {
            self.end_second();
        }
        self.current_second = second;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, empty);
        }
    }

    fn end_second(&mut self) {
        if let Some(cell) = self.seconds.get_mut(self.current_second) {
            cell.micros = QUANTILES.map(|share| self.current.value_at_quantile(share));
        }
        self.current.reset();
    }

    /// The last completed second's figures, for a line of progress.
    pub fn last_second(&self) -> Option<(usize, &Second)> {
        let last = self.current_second.checked_sub(1)?;
        Some((last, self.seconds.get(last)?))
    }

    /// What was recorded, with a cell for every second of the measured time.
    pub fn finish(mut self) -> Record {
        let seconds = self.measured.as_secs() as usize;
        if seconds > 0 {
            self.advance(seconds - 1);
            self.end_second();
        }
        self.seconds.truncate(seconds);
        let Self { operations, seconds, errors, lateness, .. } = self;
        Record { operations, seconds, errors, lateness }
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

    #[test]
    fn ends_are_counted_in_their_second_and_only_in_the_measured_time() {
        let mut recorder = Recorder::new(&["read", "write"], at(1000), Duration::from_secs(3));
        for (operation, end) in [(0, 999), (0, 1000), (1, 1999), (0, 3500), (1, 4000)] {
            recorder.add(operation, at(end - 5), at(end - 2), at(end), End::Completed, 0);
        }
        recorder.add(0, at(1), at(1), at(3600), End::Failed(1213, "40001".into()), 2);
        let record = recorder.finish();
        assert_eq!(record.completed_per_second(), [2, 0, 1]);
        assert_eq!(record.seconds[0].completed, [1, 1]);
        assert_eq!((record.seconds[2].failed, record.seconds[2].retried), (1, 2));
        assert_eq!(record.errors[&(1213, "40001".to_string())], 1);
        assert_eq!(record.seconds[0].micros, [5003; 5], "three digits of 5 ms");
        assert_eq!(record.seconds[1].micros, [0; 5]);
        assert_eq!(record.operations[0].service.max(), 2000);
        assert_eq!(record.latency().len(), 3);
    }
}
