//! Key ranges of the border turned into half-open byte intervals.

use engine_api::KeyRange;
use std::ops::Bound;

/// All keys `k` with `low <= k` and, when there is a `high`, `k < high`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Smallest key that belongs.
    pub low: Vec<u8>,
    /// Smallest key beyond the end; `None` has no end.
    pub high: Option<Vec<u8>>,
    /// Nothing can be in it (a bound excludes every key).
    pub empty: bool,
}

impl Interval {
    /// The interval of a range whose bounds are key prefixes.
    pub fn new(range: &KeyRange) -> Self {
        let mut empty = false;
        let low = match &range.lower {
            Bound::Unbounded => Vec::new(),
            Bound::Included(prefix) => prefix.clone(),
            Bound::Excluded(prefix) => after_prefix(prefix).unwrap_or_else(|| {
                empty = true;
                Vec::new()
            }),
        };
        let high = match &range.upper {
            Bound::Unbounded => None,
            Bound::Included(prefix) => after_prefix(prefix),
            Bound::Excluded(prefix) => Some(prefix.clone()),
        };
        let empty = empty || high.as_ref().is_some_and(|high| *high <= low);
        Self { low, high, empty }
    }

    /// Whether `key` is below the end.
    #[inline]
    pub fn before_end(&self, key: &[u8]) -> bool {
        self.high.as_ref().is_none_or(|high| key < high.as_slice())
    }
}

/// The smallest key greater than every key that begins with `prefix`; `None` when there is none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_prefixes() {
        let range =
            KeyRange { lower: Bound::Excluded(vec![1, 0xff]), upper: Bound::Included(vec![3]) };
        let interval = Interval::new(&range);
        assert_eq!(interval.low, vec![2]);
        assert_eq!(interval.high, Some(vec![4]));
        assert!(interval.before_end(&[3, 255, 255]) && !interval.before_end(&[4]));
    }

    #[test]
    fn the_last_prefix_has_no_end() {
        assert_eq!(after_prefix(&[0xff, 0xff]), None);
        assert_eq!(Interval::new(&KeyRange::prefix(vec![0xff])).high, None);
        let none = KeyRange { lower: Bound::Excluded(vec![0xff]), upper: Bound::Unbounded };
        assert!(Interval::new(&none).empty);
    }
}
