//! When operations are meant to begin.
//!
//! 1. An intended start never depends on when an operation before it ended: a server that pauses
//!    makes operations late, it does not make them fewer (no coordinated omission).
//! 2. Gaps are added up in fractions of a nanosecond, so that rounding does not move the rate.
//! 3. A schedule is decided by its rate and its seed alone.

use base::Random;
use std::time::Duration;

/// How gaps between intended starts are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Independent arrivals: exponential gaps.
    Poisson,
    /// Equal gaps.
    Uniform,
}

/// Intended starts, without end, as times since the begin.
#[derive(Clone, Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    random: Random,
    mean_gap_nanos: f64,
    next_nanos: f64,
}

impl Schedule {
    /// So many a second on average. Panics when the rate is not above 0.
    pub fn new(arrivals: Arrivals, rate_per_second: f64, seed: u64) -> Self {
        assert!(rate_per_second > 0.0, "a rate is above 0");
        let mean_gap_nanos = 1e9 / rate_per_second;
        Self { arrivals, random: Random::new(seed), mean_gap_nanos, next_nanos: 0.0 }
    }

    /// From the next start on, so many a second.
    pub fn set_rate(&mut self, rate_per_second: f64) {
        assert!(rate_per_second > 0.0, "a rate is above 0");
        self.mean_gap_nanos = 1e9 / rate_per_second;
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let factor = match self.arrivals {
            Arrivals::Uniform => 1.0,
            Arrivals::Poisson => -(1.0 - self.random.fraction()).ln(),
        };
        self.next_nanos += self.mean_gap_nanos * factor;
        Some(Duration::from_nanos(self.next_nanos as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_within_two_parts_in_a_thousand() {
        for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
            for rate in [7.0, 1000.0, 333_333.0] {
                let count = 4_000_000;
                let last = Schedule::new(arrivals, rate, 5).take(count).last().expect("one");
                let achieved = count as f64 / last.as_secs_f64();
                assert!((achieved / rate - 1.0).abs() < 0.002, "{arrivals:?} {rate}: {achieved}");
            }
        }
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let starts: Vec<Duration> =
            Schedule::new(Arrivals::Poisson, 1000.0, 2).take(200_000).collect();
        let gaps: Vec<f64> = starts.windows(2).map(|w| (w[1] - w[0]).as_secs_f64() * 1e3).collect();
        for (limit, wanted) in [(0.1, 0.0952), (1.0, 0.6321), (3.0, 0.9502)] {
            let below = gaps.iter().filter(|&&gap| gap < limit).count() as f64;
            let share = below / gaps.len() as f64;
            assert!((share - wanted).abs() < 0.004, "gaps below {limit} ms: {share}");
        }
    }

    #[test]
    fn a_change_of_rate_takes_effect_at_the_next_start() {
        let mut schedule = Schedule::new(Arrivals::Uniform, 10.0, 0);
        assert_eq!(schedule.next(), Some(Duration::from_millis(100)));
        schedule.set_rate(100.0);
        assert_eq!(schedule.next(), Some(Duration::from_millis(110)));
    }
}
