//! Latencies in buckets that grow with the value: 32 for every doubling, so a quantile is known
//! to about 3 %, as in Gil Tene's HdrHistogram.

const BITS: u32 = 5;
const PART: u64 = 1 << BITS;

/// Counts of values.
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let buckets = vec![0; bucket(u64::MAX) + 1];
        Self { buckets, count: 0, sum: 0, max: 0 }
    }
}

/// Values below 32 have a bucket each; then the five bits behind the highest one choose.
fn bucket(value: u64) -> usize {
    let shift = (63 - value.max(1).leading_zeros()).saturating_sub(BITS);
    (u64::from(shift) * PART + (value >> shift)) as usize
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let shift = (bucket as u64 / PART).saturating_sub(1);
    let top = bucket as u64 - shift * PART;
    (top << shift) | ((1 << shift) - 1)
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        self.buckets[bucket(value)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean, exact.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value that the given share (0 to 1) of all does not exceed.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (number, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper(number).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_a_thirtieth_wide() {
        let mut last = 0;
        for value in (0..100_000).chain([1 << 40, u64::MAX / 3, u64::MAX]) {
            let number = bucket(value);
            assert!(number >= last && upper(number) >= value, "{value}");
            assert!(upper(number) - value <= value / 30, "{value}");
            last = number;
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|value| histogram.add(value * 1000));
        let near = |share: f64, wanted: u64| {
            let got = histogram.quantile(share);
            assert!(got >= wanted && got <= wanted + wanted / 30, "{share}: {got}");
        };
        near(0.5, 500_000);
        near(0.95, 950_000);
        near(0.99, 990_000);
        assert_eq!(histogram.quantile(1.0), 1_000_000);
        assert_eq!(histogram.mean(), 500_500.0);
    }
}
