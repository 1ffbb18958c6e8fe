//! When operations are meant to begin.
//!
//! 1. An intended start never depends on when an operation before it ended: a server that pauses
//!    makes operations late, it does not make them fewer (no coordinated omission).
//! 2. Starts are counted, not gaps added: the n-th start of a uniform load is when n operations
//!    should have begun, however the rate changed on the way; rounding does not move the rate.
//! 3. A schedule is decided by its profile and its seed alone.

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

/// Operations a second as time goes on: straight lines between points; before the first as there,
/// after the last as there. Two points of one time are a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Seconds and rates a second, in the order of time.
    points: Vec<(f64, f64)>,
}

impl Profile {
    /// Always the same.
    pub fn constant(rate_per_second: f64) -> Self {
        Self { points: vec![(0.0, rate_per_second)] }
    }

    /// From one rate to another within a time.
    pub fn ramp(from: f64, to: f64, within: Duration) -> Self {
        Self { points: vec![(0.0, from), (within.as_secs_f64(), to)] }
    }

    /// One rate after the other, each for so long.
    pub fn steps(rates: &[f64], each: Duration) -> Self {
        let each = each.as_secs_f64();
        let step = |(number, &rate): (usize, &f64)| {
            [(number as f64 * each, rate), ((number + 1) as f64 * each, rate)]
        };
        Self { points: rates.iter().enumerate().flat_map(step).collect() }
    }

    /// The same, so much later; until then the first rate.
    pub fn delayed(mut self, by: Duration) -> Self {
        for point in &mut self.points {
            point.0 += by.as_secs_f64();
        }
        self
    }

    /// The same with all rates multiplied.
    pub fn scaled(mut self, factor: f64) -> Self {
        for point in &mut self.points {
            point.1 *= factor;
        }
        self
    }

    /// What is asked at a time, a second.
    pub fn rate_at(&self, at: Duration) -> f64 {
        let at = at.as_secs_f64();
        let next = self.points.partition_point(|point| point.0 <= at);
        match (next.checked_sub(1).map(|before| self.points[before]), self.points.get(next)) {
            (Some(before), Some(after)) => {
                let share = (at - before.0) / (after.0 - before.0);
                before.1 + share * (after.1 - before.1)
            }
            (Some(last), None) => last.1,
            (None, first) => first.map_or(0.0, |point| point.1),
        }
    }

    /// Operations a second on average of a time.
    pub fn mean(&self, from: Duration, to: Duration) -> f64 {
        let mut cuts = vec![from.as_secs_f64()];
        let inside = |time: &f64| *time > from.as_secs_f64() && *time < to.as_secs_f64();
        cuts.extend(self.points.iter().map(|point| point.0).filter(inside));
        cuts.push(to.as_secs_f64());
        // The rate is straight between cuts, so that in the middle of two is their mean.
        let piece = |pair: &[f64]| {
            let middle = Duration::from_secs_f64((pair[0] + pair[1]) / 2.0);
            (pair[1] - pair[0]) * self.rate_at(middle)
        };
        cuts.windows(2).map(piece).sum::<f64>() / (to - from).as_secs_f64().max(1e-9)
    }

    /// Whole seconds at which steps begin, the first of them 0.
    pub fn steps_within(&self, time: Duration) -> Vec<u64> {
        let is_step = |pair: &&[(f64, f64)]| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1;
        let inside = |second: &u64| *second > 0 && *second < time.as_secs();
        let steps = self.points.windows(2).filter(is_step).map(|pair| pair[1].0 as u64);
        std::iter::once(0).chain(steps.filter(inside)).collect()
    }

    /// Whether there is something to do at the end, and no rate is negative.
    pub fn is_valid(&self) -> bool {
        let all = self.points.iter().all(|point| point.1 >= 0.0 && point.1.is_finite());
        all && self.points.last().is_some_and(|point| point.1 > 0.0)
    }
}

/// Intended starts, without end, as times since the begin.
#[derive(Clone, Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    random: Random,
    profile: Profile,
    /// How many operations should have begun at the next start.
    count: f64,
    /// The point where the line begins on which the next start lies, with the count there.
    line: usize,
    line_count: f64,
}

impl Schedule {
    /// By a profile. Panics when it is not valid.
    pub fn new(arrivals: Arrivals, mut profile: Profile, seed: u64) -> Self {
        assert!(profile.is_valid(), "rates are not negative, and the last is above 0");
        let first = profile.points[0];
        if first.0 > 0.0 {
            profile.points.insert(0, (0.0, first.1));
        }
        let random = Random::new(seed);
        Self { arrivals, random, profile, count: 0.0, line: 0, line_count: 0.0 }
    }

    /// When so many operations should have begun, in seconds. Counts must not fall.
    fn time_of(&mut self, count: f64) -> f64 {
        loop {
            let (begin, rate) = self.profile.points[self.line];
            let wanted = count - self.line_count;
            let Some(&(end, end_rate)) = self.profile.points.get(self.line + 1) else {
                return begin + wanted / rate;
            };
            let on_line = (rate + end_rate) / 2.0 * (end - begin);
            if wanted <= on_line && on_line > 0.0 {
                // rate * t + slope * t^2 / 2 = wanted, in the form that does not cancel.
                let slope = (end_rate - rate) / (end - begin);
                let root = (rate * rate + 2.0 * slope * wanted).max(0.0).sqrt();
                return begin + 2.0 * wanted / (rate + root).max(f64::MIN_POSITIVE);
            }
            self.line_count += on_line;
            self.line += 1;
        }
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.count += match self.arrivals {
            Arrivals::Uniform => 1.0,
            Arrivals::Poisson => -(1.0 - self.random.fraction()).ln(),
        };
        Some(Duration::from_nanos((self.time_of(self.count) * 1e9).round() as u64))
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
                let schedule = Schedule::new(arrivals, Profile::constant(rate), 5);
                let last = schedule.take(count).last().expect("one");
                let achieved = count as f64 / last.as_secs_f64();
                assert!((achieved / rate - 1.0).abs() < 0.002, "{arrivals:?} {rate}: {achieved}");
            }
        }
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let schedule = Schedule::new(Arrivals::Poisson, Profile::constant(1000.0), 2);
        let starts: Vec<Duration> = schedule.take(200_000).collect();
        let gaps: Vec<f64> = starts.windows(2).map(|w| (w[1] - w[0]).as_secs_f64() * 1e3).collect();
        for (limit, wanted) in [(0.1, 0.0952), (1.0, 0.6321), (3.0, 0.9502)] {
            let below = gaps.iter().filter(|&&gap| gap < limit).count() as f64;
            let share = below / gaps.len() as f64;
            assert!((share - wanted).abs() < 0.004, "gaps below {limit} ms: {share}");
        }
    }

    /// Starts from second to second.
    fn counts(schedule: Schedule, seconds: u64) -> Vec<usize> {
        let starts: Vec<Duration> =
            schedule.take_while(|start| *start <= Duration::from_secs(seconds)).collect();
        let within = |second: u64| {
            let (from, to) = (Duration::from_secs(second), Duration::from_secs(second + 1));
            starts.iter().filter(|start| **start > from && **start <= to).count()
        };
        (0..seconds).map(within).collect()
    }

    #[test]
    fn a_ramp_rises_by_the_same_each_second() {
        let second = Duration::from_secs(1);
        let profile = Profile::ramp(100.0, 500.0, 4 * second).delayed(second);
        assert_eq!(profile.mean(second, 5 * second), 300.0);
        let uniform = Schedule::new(Arrivals::Uniform, profile.clone(), 1);
        assert_eq!(counts(uniform, 6), [100, 150, 250, 350, 450, 500]);
        let poisson = counts(Schedule::new(Arrivals::Poisson, profile.scaled(100.0), 1), 6);
        for (found, wanted) in poisson.iter().zip([100, 150, 250, 350, 450, 500]) {
            assert!((*found as f64 / f64::from(wanted * 100) - 1.0).abs() < 0.03, "{poisson:?}");
        }
    }

    #[test]
    fn steps_take_effect_at_once_and_the_last_stays() {
        let profile = Profile::steps(&[10.0, 0.0, 1000.0], Duration::from_secs(2));
        assert_eq!(profile.rate_at(Duration::from_secs(1)), 10.0);
        assert_eq!(profile.rate_at(Duration::from_secs(2)), 0.0);
        assert_eq!(profile.mean(Duration::ZERO, Duration::from_secs(6)), 2020.0 / 6.0);
        let schedule = Schedule::new(Arrivals::Uniform, profile, 1);
        assert_eq!(counts(schedule, 7), [10, 10, 0, 0, 1000, 1000, 1000]);
        assert!(!Profile::steps(&[5.0, 0.0], Duration::from_secs(1)).is_valid());
        assert!(!Profile::constant(-1.0).is_valid());
    }
}
