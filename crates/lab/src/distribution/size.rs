//! Sizes of payloads, and of lists.

use super::normal;
use base::Random;

/// The log-normal distribution of deviation 1, cut to whole bytes below a maximum.
#[derive(Clone, Copy, Debug)]
pub struct LogNormal {
    logarithm_of_median: f64,
    max_bytes: u64,
}

impl LogNormal {
    /// Half of the sizes are below the median; all are below `max_bytes`.
    pub fn new(median_bytes: f64, max_bytes: u64) -> Self {
        Self { logarithm_of_median: median_bytes.ln(), max_bytes }
    }

    /// A size in bytes.
    pub fn draw(&self, random: &mut Random) -> usize {
        let size = (self.logarithm_of_median + normal(random)).exp();
        (size as u64).min(self.max_bytes - 1) as usize
    }
}

/// The number of trials until the first success, cut to `1..max`.
#[derive(Clone, Copy, Debug)]
pub struct Geometric {
    /// Probability of success.
    pub success: f64,
    /// Above the largest number drawn.
    pub max: u64,
    /// Added to what the inverse of the distribution gives: LinkBench adds 1, by mistake.
    pub added: u64,
}

impl Geometric {
    /// A number.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let trials = ((1.0 - random.fraction()).ln() / (1.0 - self.success).ln()).ceil();
        ((trials as u64).max(1) + self.added).min(self.max - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 400_000;

    fn mean(mut draw: impl FnMut(&mut Random) -> f64) -> f64 {
        let mut random = Random::new(11);
        (0..DRAWS).map(|_| draw(&mut random)).sum::<f64>() / DRAWS as f64
    }

    #[test]
    fn payloads_have_the_means_of_the_specification() {
        for (median, max, wanted) in [(8.0, 256, 13.2 - 0.5), (128.0, 1 << 20, 210.5)] {
            let sizes = LogNormal::new(median, max);
            let mean = mean(|random| sizes.draw(random) as f64);
            assert!((mean - wanted).abs() < wanted * 0.03, "median {median}: mean {mean}");
        }
    }

    #[test]
    fn half_of_the_sizes_are_below_the_median() {
        let sizes = LogNormal::new(128.0, 1 << 20);
        let below = mean(|random| f64::from(sizes.draw(random) < 128));
        assert!((below - 0.5).abs() < 0.005, "{below}");
    }

    #[test]
    fn lists_have_the_lengths_of_the_specification() {
        for (added, least, wanted) in [(0, 1, 2.6), (1, 2, 3.62)] {
            let lengths = Geometric { success: 0.382, max: 128, added };
            let mean = mean(|random| {
                let length = lengths.draw(random);
                assert!((least..128).contains(&length));
                length as f64
            });
            assert!((mean - wanted).abs() < 0.03, "mean {mean}");
        }
    }
}
