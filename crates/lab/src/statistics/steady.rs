//! Had the run settled? A warm-up that went on into the measurement, or a pool that filled during
//! it, shows as a trend.

use super::median;

/// A change over the measured time that is called steady, as a share of the median.
const STEADY_CHANGE: f64 = 0.05;
/// Means of so many parts are looked at, so that single seconds do not decide; a shorter series
/// does not tell.
const PARTS: usize = 12;

/// How a series moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Change from begin to end by the trend line, as a share of the median.
    pub change: f64,
    /// What that means.
    pub verdict: Verdict,
}

/// See [`Trend::verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No more than a twentieth, or not told apart from scatter.
    Steady,
    /// It moved.
    NotSteady,
    /// Too few intervals to tell.
    TooShort,
}

/// The trend of operations per interval: the median of the slopes between all pairs of parts (Theil
/// and Sen), and whether so many pairs rise or fall that chance does not explain it (Mann and
/// Kendall, 5 %).
pub fn trend(completed: &[u64]) -> Trend {
    let parts = parts(completed);
    let middle = median(&parts);
    let count = parts.len();
    if count < PARTS || middle <= 0.0 {
        return Trend { change: 0.0, verdict: Verdict::TooShort };
    }
    let (mut slopes, mut score) = (Vec::new(), 0.0);
    for later in 1..count {
        for earlier in 0..later {
            let rise = parts[later] - parts[earlier];
            slopes.push(rise / (later - earlier) as f64);
            score += if rise == 0.0 { 0.0 } else { rise.signum() };
        }
    }
    let change = median(&slopes) * (count - 1) as f64 / middle;
    let count = count as f64;
    let variance = count * (count - 1.0) * (2.0 * count + 5.0) / 18.0;
    let is_chance = (f64::abs(score) - 1.0).max(0.0) / variance.sqrt() < 1.96;
    let is_steady = change.abs() <= STEADY_CHANGE || is_chance;
    Trend { change, verdict: if is_steady { Verdict::Steady } else { Verdict::NotSteady } }
}

/// Means of stretches of equal length; what does not fill one stretch at the begin is left out.
fn parts(completed: &[u64]) -> Vec<f64> {
    let length = (completed.len() / PARTS).max(1);
    let skipped = completed.len() % length;
    let stretches = completed[skipped..].chunks(length);
    stretches.map(|part| part.iter().sum::<u64>() as f64 / length as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::normal;
    use base::Random;

    fn series(seconds: usize, scatter: f64, seed: u64, rate: impl Fn(f64) -> f64) -> Vec<u64> {
        let mut random = Random::new(seed);
        let at = |second: usize| second as f64 / seconds as f64;
        (0..seconds)
            .map(|second| (rate(at(second)) * (1.0 + scatter * normal(&mut random))) as u64)
            .collect()
    }

    #[test]
    fn a_scattered_flat_line_is_steady() {
        let steady = (0..200)
            .filter(|&seed| trend(&series(120, 0.2, seed, |_| 10_000.0)).verdict == Verdict::Steady)
            .count();
        assert!(steady >= 190, "{steady} of 200");
    }

    #[test]
    fn a_falling_line_is_not() {
        for seed in 0..50 {
            let trend = trend(&series(120, 0.05, seed, |at| 10_000.0 * (1.0 - 0.3 * at)));
            assert!(trend.verdict == Verdict::NotSteady && trend.change < -0.2, "{trend:?}");
        }
    }

    #[test]
    fn a_warm_up_that_went_on_is_seen() {
        let trend = trend(&series(60, 0.05, 3, |at| 10_000.0 * (1.0 - (-5.0 * at).exp())));
        assert!(trend.verdict == Verdict::NotSteady && trend.change > 0.05, "{trend:?}");
    }

    #[test]
    fn too_short_a_run_is_not_called_steady() {
        assert_eq!(trend(&[5, 5, 5]).verdict, Verdict::TooShort);
    }
}
