//! Stalls: what an average hides.

use super::median;

/// What a series of operations per interval says about stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalls {
    /// Intervals measured.
    pub intervals: usize,
    /// Below half of the median.
    pub below_half: usize,
    /// Below a tenth of it.
    pub below_tenth: usize,
    /// Without any operation.
    pub empty: usize,
    /// The most intervals below half of the median behind each other.
    pub longest: usize,
    /// Standard deviation over mean.
    pub variation: f64,
}

impl Stalls {
    /// Of operations completed in each interval, of equal lengths.
    pub fn of(completed: &[u64]) -> Self {
        let values: Vec<f64> = completed.iter().map(|&count| count as f64).collect();
        if values.is_empty() {
            return Self::default();
        }
        let middle = median(&values);
        let below = |share: f64| values.iter().filter(|&&value| value < middle * share).count();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / values.len() as f64).sqrt();
        Self {
            intervals: values.len(),
            below_half: below(0.5),
            below_tenth: below(0.1),
            empty: completed.iter().filter(|&&count| count == 0).count(),
            longest: longest(&values, middle / 2.0),
            variation: if mean > 0.0 { deviation / mean } else { 0.0 },
        }
    }

    /// The share of intervals below half of the median.
    pub fn share(&self) -> f64 {
        self.below_half as f64 / self.intervals.max(1) as f64
    }
}

fn longest(values: &[f64], limit: f64) -> usize {
    let stretches = values.split(|&value| value >= limit);
    stretches.map(<[f64]>::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_line_has_none() {
        let stalls = Stalls::of(&[1000; 60]);
        assert_eq!(stalls, Stalls { intervals: 60, ..Stalls::default() });
    }

    #[test]
    fn stalls_are_counted_by_depth_and_length() {
        let mut series = vec![1000; 60];
        series[10..14].copy_from_slice(&[499, 99, 0, 0]);
        series[30] = 500;
        let stalls = Stalls::of(&series);
        let counts = (stalls.below_half, stalls.below_tenth, stalls.empty, stalls.longest);
        assert_eq!(counts, (4, 3, 2, 4));
        assert!((stalls.share() - 4.0 / 60.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_measured_is_no_stall() {
        assert_eq!(Stalls::of(&[]), Stalls::default());
        assert_eq!(Stalls::of(&[0, 0]).empty, 2);
    }
}
