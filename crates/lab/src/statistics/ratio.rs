//! Is one of two servers faster? Runs come in rounds of A B B A, so that what drifts meets both.
//!
//! 1. The unit of evidence is a run, never a second within one: seconds of a run depend on each
//!    other, and a noisy neighbour meets many of them.
//! 2. What is compared are the medians of runs, as a ratio, on a logarithmic scale.
//! 3. The interval is the studentised bootstrap's (Efron and Tibshirani, "An Introduction to the
//!    Bootstrap", 1993, 12.5): with few runs, quantiles of plain resampled means are too narrow.
//! 4. A verdict needs three things: an interval without 1, ranks of the runs that chance gives in
//!    at most one of twenty comparisons (Mann and Whitney, 1947, exactly), and a difference that is
//!    worth a word.

use super::median;
use base::Random;

/// How often runs are drawn again.
const RESAMPLES: usize = 4000;
/// A smaller difference is none.
pub const LEAST_DIFFERENCE: f64 = 0.01;
/// How likely ranks may be by chance.
const CHANCE_MAX: f64 = 0.05;

/// What can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The figures of B are higher.
    Higher,
    /// The figures of B are lower.
    Lower,
    /// The runs do not tell.
    NotDistinguishable,
}

/// B over A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Of the medians.
    pub ratio: f64,
    /// Lower end of the 95 % interval; 0 where there are too few runs for one.
    pub low: f64,
    /// Upper end; infinite where there are too few runs.
    pub high: f64,
    /// What follows.
    pub verdict: Verdict,
}

/// Compares figures of runs, all above 0. Needs three runs of each for an interval.
pub fn compare(a: &[f64], b: &[f64], seed: u64) -> Ratio {
    let ratio = median(b) / median(a);
    if a.len() < 3 || b.len() < 3 {
        let verdict = Verdict::NotDistinguishable;
        return Ratio { ratio, low: 0.0, high: f64::INFINITY, verdict };
    }
    let chance = chance_of_ranks(a, b);
    let logarithms = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<_>>();
    let (a, b) = (logarithms(a), logarithms(b));
    let center = mean(&b) - mean(&a);
    let error = standard_error(&a, &b);
    let mut random = Random::new(seed);
    let mut scores: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let (a, b) = (resample(&a, &mut random), resample(&b, &mut random));
            let again = standard_error(&a, &b);
            // A sample of one run repeated has no error of its own and says nothing.
            (again > 0.0).then(|| (mean(&b) - mean(&a) - center) / again)
        })
        .collect();
    scores.sort_by(f64::total_cmp);
    let score = |share: f64| match scores.len() {
        0 => 0.0,
        count => scores[((count - 1) as f64 * share) as usize],
    };
    let end = |share: f64| (center - score(share) * error).exp();
    let (low, high) = (end(0.975), end(0.025));
    let verdict = if chance > CHANCE_MAX {
        Verdict::NotDistinguishable
    } else if low > 1.0 && ratio >= 1.0 + LEAST_DIFFERENCE {
        Verdict::Higher
    } else if high < 1.0 && ratio <= 1.0 - LEAST_DIFFERENCE {
        Verdict::Lower
    } else {
        Verdict::NotDistinguishable
    };
    Ratio { ratio, low, high, verdict }
}

/// The probability, if both came from one source, that the ranks of the values differ at least as
/// much as they do, in either direction. Equal values are half a win for each, rounded to what
/// chance gives more often.
fn chance_of_ranks(a: &[f64], b: &[f64]) -> f64 {
    let halves = |a: f64, b: f64| usize::from(a < b) + usize::from(a <= b);
    let wins: usize = b.iter().map(|&b| a.iter().map(|&a| halves(a, b)).sum::<usize>()).sum();
    let fewest = wins.min(2 * a.len() * b.len() - wins).div_ceil(2);
    let ways = ways_by_wins(a.len(), b.len());
    let total: f64 = ways.iter().sum();
    (2.0 * ways[..=fewest].iter().sum::<f64>() / total).min(1.0)
}

/// In how many orders of so many values of A and B there are 0, 1, 2... pairs in which B is above:
/// the coefficients of the Gaussian binomial, the product of (1 - q^(m+i)) / (1 - q^i).
fn ways_by_wins(a: usize, b: usize) -> Vec<f64> {
    let mut ways = vec![0.0; a * b + 1];
    ways[0] = 1.0;
    for factor in 1..=b {
        for wins in (a + factor..ways.len()).rev() {
            ways[wins] -= ways[wins - a - factor];
        }
        for wins in factor..ways.len() {
            ways[wins] += ways[wins - factor];
        }
    }
    ways
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Of the difference of two means.
fn standard_error(a: &[f64], b: &[f64]) -> f64 {
    let part = |values: &[f64]| {
        let middle = mean(values);
        let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
        squares / (values.len() - 1) as f64 / values.len() as f64
    };
    (part(a) + part(b)).sqrt()
}

fn resample(values: &[f64], random: &mut Random) -> Vec<f64> {
    values.iter().map(|_| *random.pick(values)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::normal;

    /// Runs of a server whose figures scatter by a share.
    fn runs(count: usize, figure: f64, scatter: f64, random: &mut Random) -> Vec<f64> {
        (0..count).map(|_| figure * (1.0 + scatter * normal(random))).collect()
    }

    fn told(runs_each: usize, factor: f64, scatter: f64, verdict: Verdict) -> f64 {
        let trials = 400;
        let mut random = Random::new(99);
        let hits = (0..trials).filter(|&trial| {
            let a = runs(runs_each, 1000.0, scatter, &mut random);
            let b = runs(runs_each, 1000.0 * factor, scatter, &mut random);
            compare(&a, &b, trial).verdict == verdict
        });
        hits.count() as f64 / trials as f64
    }

    #[test]
    fn the_same_server_is_not_distinguishable_from_itself() {
        for runs_each in [6, 8, 12] {
            for scatter in [0.01, 0.05, 0.2] {
                let share = told(runs_each, 1.0, scatter, Verdict::NotDistinguishable);
                assert!(share >= 0.95, "{runs_each} runs, scatter {scatter}: {share}");
            }
        }
    }

    #[test]
    fn ranks_have_their_exact_chances() {
        assert_eq!(ways_by_wins(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(ways_by_wins(6, 6).iter().sum::<f64>(), 924.0);
        assert_eq!(chance_of_ranks(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 0.1);
        assert_eq!(chance_of_ranks(&[1.0, 4.0], &[2.0, 3.0]), 1.0);
        // Counted as losses, equal values would make it 0.1 in one direction.
        assert_eq!(chance_of_ranks(&[1.0, 2.0, 2.0], &[1.0, 1.0, 1.0]), 0.4);
        assert_eq!(chance_of_ranks(&[1.0, 1.0, 1.0], &[1.0, 2.0, 2.0]), 0.4);
    }

    #[test]
    fn a_real_difference_is_seen() {
        assert!(told(6, 1.1, 0.02, Verdict::Higher) > 0.99);
        assert!(told(6, 0.9, 0.02, Verdict::Lower) > 0.99);
        assert!(told(6, 1.005, 0.001, Verdict::NotDistinguishable) > 0.99);
    }

    #[test]
    fn two_runs_of_each_say_nothing() {
        let ratio = compare(&[1.0, 1.0], &[2.0, 2.0], 0);
        assert_eq!((ratio.ratio, ratio.verdict), (2.0, Verdict::NotDistinguishable));
    }
}
