//! Ratios of rounds: each client has two slices in a round, there and back.

use super::median;
use std::fmt;
use std::ops::Range;

/// Slices of one client in a round.
const SLICES: usize = 2;
/// Parts of 1 that an interval may be wide: as far apart as limits of 5 % are.
const WIDTH_MAX: f64 = 0.1;

/// The median of the ratios of all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The middle one.
    pub median: f64,
    /// Lower end of the 95 % interval of the median; 0 where there are too few rounds for one.
    pub low: f64,
    /// Upper end; infinite where there are too few rounds.
    pub high: f64,
}

impl Ratio {
    /// `other` over `base`; the slices of each in the order of time.
    pub fn of_rounds(base: &[f64], other: &[f64]) -> Ratio {
        let of_round =
            |(base, other): (&[f64], &[f64])| other.iter().sum::<f64>() / base.iter().sum::<f64>();
        Self::of(base.chunks(SLICES).zip(other.chunks(SLICES)).map(of_round).collect())
    }

    /// The median of these, one for each round.
    pub fn of(mut ratios: Vec<f64>) -> Ratio {
        ratios.sort_by(f64::total_cmp);
        let (low, high) = match outside(ratios.len()) {
            Some(count) => (ratios[count], ratios[ratios.len() - 1 - count]),
            None => (0.0, f64::INFINITY),
        };
        Ratio { median: median(&ratios), low, high }
    }

    /// Whether it lies within limits.
    pub fn verdict(&self, limits: &Range<f64>) -> Verdict {
        let is_narrow = self.high - self.low <= WIDTH_MAX;
        match limits.contains(&self.median) {
            true if is_narrow => Verdict::Kept,
            false if self.high < limits.start || self.low > limits.end => Verdict::Missed,
            _ => Verdict::CannotTell,
        }
    }
}

/// What can be said of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The median is within them, and the interval is not wider than they are.
    Kept,
    /// The whole interval is beyond them.
    Missed,
    /// Another calibration might say either.
    CannotTell,
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.3} ({:.3}..{:.3})", self.median, self.low, self.high))
    }
}

/// How many of the sorted values lie outside a 95 % interval of their median on either side,
/// whatever they are distributed like: each is above the median with probability 1/2 (W. J.
/// Conover, Practical Nonparametric Statistics, section 3.2). None if there are too few values.
fn outside(values: usize) -> Option<usize> {
    let mut ways = 1.0;
    let mut below = 0.0;
    let mut count = None;
    for at in 0..values {
        // `ways` is the number of choices of `at` values out of all.
        below += ways * 0.5_f64.powi(values as i32);
        if below > 0.025 {
            break;
        }
        count = Some(at);
        ways *= (values - at) as f64 / (at + 1) as f64;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that becomes half as fast in the middle changes no ratio, where the ratio of
    /// the medians of all runs would depend on who ran when.
    #[test]
    fn a_slow_time_meets_both_sides_of_a_round() {
        let speed = |round: usize| if round < 5 { 1.0 } else { 0.5 };
        let runs = |rate: f64| (0..20).map(|run| rate * speed(run / SLICES)).collect::<Vec<f64>>();
        let ratio = Ratio::of_rounds(&runs(1000.0), &runs(1100.0));
        assert!((ratio.median - 1.1).abs() < 1e-9, "{ratio}");
        assert!((ratio.high - ratio.low).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn a_wide_interval_decides_nothing() {
        let verdict = |median, low, high| Ratio { median, low, high }.verdict(&(0.95..1.05));
        assert_eq!(verdict(1.04, 1.0, 1.06), Verdict::Kept);
        assert_eq!(verdict(1.0, 0.9, 1.1), Verdict::CannotTell);
        assert_eq!(verdict(1.0, 0.0, f64::INFINITY), Verdict::CannotTell);
        assert_eq!(verdict(1.06, 1.03, 1.09), Verdict::CannotTell);
        assert_eq!(verdict(1.08, 1.06, 1.2), Verdict::Missed);
        assert_eq!(verdict(0.93, 0.90, 0.94), Verdict::Missed);
    }

    /// From the table of the sign test.
    #[test]
    fn intervals_need_six_values() {
        let expected =
            [(5, None), (6, Some(0)), (8, Some(0)), (9, Some(1)), (16, Some(3)), (20, Some(5))];
        for (values, count) in expected {
            assert_eq!(outside(values), count, "{values}");
        }
    }
}
