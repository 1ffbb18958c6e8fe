//! What a sample says of the values of one column: frequent values, and ranges that hold equal
//! shares of the others.
//!
//! 1. Values are in key form, ascending: they compare as bytes. Long ones are cut to
//!    [`VALUE_BYTES`], so two long values may be taken for one.
//! 2. A value is either among the common ones or in a range, never in both.
//! 3. Shares are of all rows, those with NULL included.

use std::ops::Bound;

/// Bytes of a value that count.
pub const VALUE_BYTES: usize = 40;
/// Most values that are counted one by one.
const COMMON_MAX: usize = 64;
/// Most ranges of the other values.
const RANGES_MAX: usize = 64;
/// What lies between two ends of which a sample has met nothing is taken for this share of one
/// range: who takes it for nothing reads whole tables for each of the rows that are there after
/// all.
const UNMET: f64 = 0.125;

/// Estimates about the values of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnStatistics {
    /// Share of rows with NULL.
    pub nulls: f64,
    /// Different values of the whole table, NULL not counted.
    pub distinct: f64,
    /// Frequent values in ascending order, with the share of rows that have them.
    common: Vec<(Box<[u8]>, f64)>,
    /// Ends of the ranges: the smallest of the other values, and the greatest of each range.
    bounds: Vec<Box<[u8]>>,
    /// Share of rows whose value lies in the ranges.
    in_ranges: f64,
}

impl ColumnStatistics {
    /// Statistics of a sample: `values` without NULL, in any order, each with the number of the
    /// page that it is from, `nulls` more rows with NULL, out of a table of `rows`.
    pub fn of_sample(mut values: Vec<(Box<[u8]>, u32)>, nulls: usize, rows: f64) -> Self {
        let sampled = values.len() + nulls;
        if sampled == 0 {
            return Self::default();
        }
        values.sort_unstable();
        let share = |count: usize| count as f64 / sampled as f64;
        let distinct = distinct_of(&values, rows * share(values.len()));
        let values: Vec<Box<[u8]>> = values.into_iter().map(|(value, _)| value).collect();
        let runs = runs_of(&values);
        let mut frequent: Vec<usize> = (0..runs.len()).collect();
        if runs.len() > COMMON_MAX {
            let average = values.len() as f64 / runs.len() as f64;
            frequent.retain(|at| runs[*at].1 >= 3 && runs[*at].1 as f64 > 1.5 * average);
            frequent.sort_by_key(|at| std::cmp::Reverse(runs[*at].1));
            frequent.truncate(COMMON_MAX);
            frequent.sort_unstable();
        } else if sampled as f64 * 1.01 < rows {
            // What was met once in a sample of many may be one of many.
            frequent.retain(|at| runs[*at].1 >= 2);
        }
        let common = frequent.iter().map(|at| (values[runs[*at].0].clone(), share(runs[*at].1)));
        let common: Vec<(Box<[u8]>, f64)> = common.collect();
        let mut others = Vec::with_capacity(values.len());
        for (at, (first, count)) in runs.iter().enumerate() {
            if frequent.binary_search(&at).is_err() {
                others.extend(values[*first..first + count].iter().map(Box::as_ref));
            }
        }
        let in_ranges = share(others.len());
        let bounds = bounds_of(&others);
        Self { nulls: share(nulls), distinct, common, bounds, in_ranges }
    }

    /// Appends them as a record:
    /// `nulls f64 | distinct f64 | common count u16 | values, each with its share f64
    /// | bound count u16 | values | in ranges f64`, value = `length u8 | bytes`, little-endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let value = |value: &[u8], out: &mut Vec<u8>| {
            out.push(value.len() as u8);
            out.extend_from_slice(value);
        };
        out.extend_from_slice(&self.nulls.to_le_bytes());
        out.extend_from_slice(&self.distinct.to_le_bytes());
        out.extend_from_slice(&(self.common.len() as u16).to_le_bytes());
        for (key, share) in &self.common {
            value(key, out);
            out.extend_from_slice(&share.to_le_bytes());
        }
        out.extend_from_slice(&(self.bounds.len() as u16).to_le_bytes());
        self.bounds.iter().for_each(|bound| value(bound, out));
        out.extend_from_slice(&self.in_ranges.to_le_bytes());
    }

    /// Reads what [`ColumnStatistics::encode`] has written off the front of `bytes`; none if it
    /// is not that.
    pub fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let nulls = f64::from_le_bytes(take(bytes)?);
        let distinct = f64::from_le_bytes(take(bytes)?);
        let count = u16::from_le_bytes(take(bytes)?);
        let common = (0..count).map(|_| Some((value(bytes)?, f64::from_le_bytes(take(bytes)?))));
        let common = common.collect::<Option<Vec<_>>>()?;
        let count = u16::from_le_bytes(take(bytes)?);
        let bounds = (0..count).map(|_| value(bytes)).collect::<Option<Vec<_>>>()?;
        let in_ranges = f64::from_le_bytes(take(bytes)?);
        let is_sound = [nulls, distinct, in_ranges].iter().all(|number| number.is_finite());
        is_sound.then_some(Self { nulls, distinct, common, bounds, in_ranges })
    }

    /// Share of rows that equal a value.
    pub fn equal(&self, key: &[u8]) -> f64 {
        let key = cut(key);
        if let Ok(at) = self.common.binary_search_by(|(value, _)| (**value).cmp(key)) {
            return self.common[at].1;
        }
        let others = (self.distinct - self.common.len() as f64).max(1.0);
        self.in_ranges / others
    }

    /// Share of rows that have the commonest value.
    pub fn most_common(&self) -> f64 {
        self.common.iter().map(|(_, share)| *share).fold(0.0, f64::max)
    }

    /// Share of rows that equal some one value of which nothing is known.
    pub fn equal_unknown(&self) -> f64 {
        (1.0 - self.nulls) / self.distinct.max(1.0)
    }

    /// Share of rows between two ends.
    pub fn between(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> f64 {
        let below = |key: &[u8], inclusive| self.below(cut(key), inclusive);
        let from = match lower {
            Bound::Unbounded => 0.0,
            Bound::Included(key) => below(key, false),
            Bound::Excluded(key) => below(key, true),
        };
        let to = match upper {
            Bound::Unbounded => 1.0 - self.nulls,
            Bound::Included(key) => below(key, true),
            Bound::Excluded(key) => below(key, false),
        };
        (to - from).max(self.unmet())
    }

    /// The least share that a range of values is taken for.
    fn unmet(&self) -> f64 {
        match self.bounds.len() {
            0 => 0.0,
            bounds => UNMET * self.in_ranges / bounds as f64,
        }
    }

    fn below(&self, key: &[u8], inclusive: bool) -> f64 {
        let counts = |value: &[u8]| value < key || (inclusive && value == key);
        let common = self.common.iter().take_while(|(value, _)| counts(value));
        let common: f64 = common.map(|(_, share)| share).sum();
        let (Some(first), Some(last)) = (self.bounds.first(), self.bounds.last()) else {
            return common;
        };
        if key < &**first {
            return common;
        }
        if key >= &**last {
            return common + self.in_ranges;
        }
        let ranges = (self.bounds.len() - 1).max(1) as f64;
        let range = self.bounds.partition_point(|bound| &**bound <= key) - 1;
        let within = self
            .bounds
            .get(range + 1)
            .map_or(0.0, |end| place_between(&self.bounds[range], end, key));
        common + self.in_ranges * (range as f64 + within) / ranges
    }
}

/// The next `N` bytes.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

/// A value behind its length.
fn value(bytes: &mut &[u8]) -> Option<Box<[u8]>> {
    let [length] = take(bytes)?;
    let (value, rest) = bytes.split_at_checked(length.into())?;
    *bytes = rest;
    Some(value.into())
}

fn cut(key: &[u8]) -> &[u8] {
    &key[..key.len().min(VALUE_BYTES)]
}

/// Where each run of equal values begins, and its length.
fn runs_of(values: &[Box<[u8]>]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, value) in values.iter().enumerate() {
        match runs.last_mut() {
            Some((first, count)) if values[*first] == *value => *count += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

/// Different values of the whole table: the estimator of Haas and Stokes ("Duj1"), which takes
/// the values met once as a hint to those not met. A value counts once a page: values that lie
/// together are met together, or not at all.
fn distinct_of(values: &[(Box<[u8]>, u32)], rows: f64) -> f64 {
    let (mut found, mut met, mut once) = (0.0, 0.0, 0.0);
    let mut at = 0;
    while let Some((value, _)) = values.get(at) {
        let end = at + values[at..].partition_point(|(other, _)| other == value);
        let pages = 1 + values[at..end].windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
        found += 1.0;
        met += pages as f64;
        once += if pages == 1 { 1.0 } else { 0.0 };
        at = end;
    }
    let scale = rows / (values.len() as f64).max(1.0);
    if found == 0.0 || scale <= 1.01 {
        return found;
    }
    let estimate = met * found / (met - once + once / scale);
    estimate.clamp(found, rows)
}

/// Ends of ranges that hold equally many of the sorted values.
fn bounds_of(values: &[&[u8]]) -> Vec<Box<[u8]>> {
    let Some(last) = values.len().checked_sub(1) else { return Vec::new() };
    let ranges = RANGES_MAX.min(last.max(1));
    (0..=ranges).map(|number| values[number * last / ranges].into()).collect()
}

/// Where `key` lies between two ends, from 0 to 1, by the bytes behind what both have in common;
/// 1 if the ends do not differ.
pub fn place_between(low: &[u8], high: &[u8], key: &[u8]) -> f64 {
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let number = |bytes: &[u8]| {
        (0..7).fold(0u64, |sum, at| {
            sum << 8 | u64::from(bytes.get(common + at).copied().unwrap_or(0))
        }) as f64
    };
    let (low, high, key) = (number(low), number(high), number(key));
    if high <= low { 1.0 } else { ((key - low) / (high - low)).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Box<[u8]> {
        number.to_be_bytes().into()
    }

    fn near(got: f64, wanted: f64, tolerance: f64) {
        assert!((got - wanted).abs() <= tolerance, "{got} is not {wanted}");
    }

    #[test]
    fn few_values_are_counted_one_by_one() {
        let values = (0..1000).map(|n| (key(if n < 900 { 7 } else { n % 10 }), 0)).collect();
        let known = ColumnStatistics::of_sample(values, 1000, 2000.0);
        near(known.nulls, 0.5, 1e-9);
        near(known.distinct, 10.0, 1e-9);
        near(known.equal(&key(7)), 0.455, 1e-9);
        near(known.equal(&key(3)), 0.005, 1e-9);
        near(known.equal(&key(300)), 0.0, 1e-9);
        let (three, seven) = (key(3), key(7));
        near(known.between(Bound::Included(&three), Bound::Excluded(&seven)), 0.02, 1e-9);
        near(known.between(Bound::Unbounded, Bound::Unbounded), 0.5, 1e-9);
    }

    #[test]
    fn many_values_lie_in_ranges() {
        let values = (0..3000).map(|n| (key(n * 100), n / 100)).collect();
        let known = ColumnStatistics::of_sample(values, 0, 300_000.0);
        near(known.distinct, 300_000.0, 1.0);
        let (low, high) = (key(60_000), key(150_000));
        near(known.between(Bound::Included(&low), Bound::Excluded(&high)), 0.3, 0.005);
        near(known.between(Bound::Unbounded, Bound::Included(&low)), 0.2, 0.005);
        let beyond = known.between(Bound::Excluded(&key(500_000)), Bound::Unbounded);
        assert!((0.001..0.003).contains(&beyond), "not met is not nothing: {beyond}");
        near(known.equal(&low), 1.0 / 300_000.0, 1e-9);
    }

    #[test]
    fn frequent_values_stand_out_of_the_ranges() {
        let value = |n| if n % 4 == 0 { 50_000 } else { n * 37 };
        let values = (0..4000).map(|n| (key(value(n)), n / 100)).collect();
        let known = ColumnStatistics::of_sample(values, 0, 100_000.0);
        near(known.equal(&key(50_000)), 0.25, 0.01);
        assert!(known.equal(&key(37)) < 0.001);
        let (low, high) = (key(0), key(74_000));
        near(known.between(Bound::Included(&low), Bound::Excluded(&high)), 0.625, 0.02);
    }

    #[test]
    fn values_that_lie_together_are_many() {
        // Ten rows a value, of 100,000 rows 40 pages of 100.
        let rows = (0..4000).map(|n| (key((n / 100 * 2500 + n % 100) / 10), n / 100));
        let known = ColumnStatistics::of_sample(rows.collect(), 0, 100_000.0);
        near(known.distinct, 10_000.0, 500.0);
        let rows = (0..4000).map(|n| (key(n * 7919 % 50), n / 100));
        let known = ColumnStatistics::of_sample(rows.collect(), 0, 100_000.0);
        near(known.distinct, 50.0, 0.1);
    }

    #[test]
    fn nothing_sampled_says_nothing() {
        let known = ColumnStatistics::of_sample(Vec::new(), 0, 0.0);
        assert_eq!(known, ColumnStatistics::default());
        assert_eq!(known.equal(b"x"), 0.0);
    }

    #[test]
    fn values_that_differ_late_are_cut() {
        let long = vec![1u8; VALUE_BYTES + 9];
        let value: Box<[u8]> = long[..VALUE_BYTES].into();
        let known = ColumnStatistics::of_sample(vec![(value, 0); 10], 0, 10.0);
        near(known.equal(&long), 1.0, 1e-9);
    }
}
