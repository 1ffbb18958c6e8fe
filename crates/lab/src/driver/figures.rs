//! Figures of seconds and of intervals.

use super::recorder::{Latencies, add, latencies};
use crate::results::{Point, Statements};
use base::Random;
use std::time::Duration;

impl Statements {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    pub(super) fn add(&mut self, more: Self) {
        self.reads += more.reads;
        self.writes += more.writes;
        self.others += more.others;
    }
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
    /// Connections that were opened again.
    pub reconnected: u64,
    /// Latency in microseconds: quantiles 0.5, 0.95, 0.99, 0.999, 1.
    pub micros: [u64; 5],
    /// Latencies by coarse bucket (see [`bucket_of`]), those that have any, in their order.
    pub buckets: Vec<(u8, u64)>,
}

/// The quantiles of [`Second::micros`].
pub const QUANTILES: [f64; 5] = [0.5, 0.95, 0.99, 0.999, 1.0];

/// Coarse buckets of a doubling of latency.
const BUCKETS_PER_DOUBLING: f64 = 4.0;

/// The coarse bucket of a latency: four for every doubling, from 1 us on.
pub fn bucket_of(micros: u64) -> u8 {
    ((micros.max(1) as f64).log2() * BUCKETS_PER_DOUBLING) as u8
}

/// Where a coarse bucket begins, microseconds.
pub fn bucket_begin_micros(bucket: u8) -> f64 {
    (f64::from(bucket) / BUCKETS_PER_DOUBLING).exp2()
}

/// Latencies by bucket, in the order of the buckets.
pub(super) fn buckets(latencies: &Latencies) -> Vec<(u8, u64)> {
    let mut found: Vec<(u8, u64)> = Vec::new();
    for value in latencies.iter_recorded() {
        let bucket = bucket_of(value.value_iterated_to());
        match found.last_mut() {
            Some((last, count)) if *last == bucket => *count += value.count_at_value(),
            _ => found.push((bucket, value.count_at_value())),
        }
    }
    found
}

/// Operations that are kept of a run, and of a second at most.
const POINTS: u64 = 6000;
const POINTS_PER_SECOND: u64 = 24;

/// Some operations of a second, each with the same chance.
pub(super) struct Sample {
    pub(super) points: Vec<Point>,
    /// How many there were.
    pub(super) seen: u64,
    /// How many are kept.
    most: usize,
    random: Random,
}

impl Sample {
    pub(super) fn new(measured: Duration) -> Self {
        let most = (POINTS / measured.as_secs().max(1)).clamp(1, POINTS_PER_SECOND) as usize;
        Self { points: Vec::with_capacity(most), seen: 0, most, random: Random::new(0) }
    }

    pub(super) fn add(&mut self, since_begin: Duration, latency: Duration) {
        self.seen += 1;
        let point = Point {
            millis: since_begin.as_millis() as u32,
            micros: (latency.as_micros() as u64).max(1),
        };
        if self.points.len() < self.most {
            self.points.push(point);
            return;
        }
        let place = self.random.below(self.seen) as usize;
        if let Some(kept) = self.points.get_mut(place) {
            *kept = point;
        }
    }
}

/// Some seconds of a run, for a line of progress.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Since the begin of the warm-up, at the interval's end.
    pub end: Duration,
    /// How long it was.
    pub length: Duration,
    /// Whether it ended in the warm-up.
    pub is_warm_up: bool,
    /// Operations completed.
    pub completed: u64,
    /// Ended with an error.
    pub failed: u64,
    /// Performed again after conflicts.
    pub retried: u64,
    /// Connections that were opened again.
    pub reconnected: u64,
    /// Statements sent.
    pub statements: Statements,
    /// Latencies of what completed.
    pub latency: Latencies,
}

impl Interval {
    pub(super) fn new() -> Self {
        Self {
            end: Duration::ZERO,
            length: Duration::ZERO,
            is_warm_up: true,
            completed: 0,
            failed: 0,
            retried: 0,
            reconnected: 0,
            statements: Statements::default(),
            latency: latencies(),
        }
    }

    pub(super) fn complete(&mut self, latency: Duration) {
        self.completed += 1;
        add(&mut self.latency, latency);
    }

    /// A count as one of a second.
    pub fn each_second(&self, count: u64) -> f64 {
        count as f64 / self.length.as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_buckets_double_every_four() {
        assert_eq!([0, 1, 2, 4, 1024].map(bucket_of), [0, 0, 4, 8, 40]);
        assert_eq!(bucket_begin_micros(40), 1024.0);
        assert_eq!(bucket_of(3_600_000_000), 126);
    }
}
