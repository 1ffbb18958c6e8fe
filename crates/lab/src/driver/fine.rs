//! When operations ended, in tenths of a second, and how long none did.
//!
//! Counted is the measured time alone: gaps begin and end within it, those at its edges included.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The length of an interval.
const TENTH: Duration = Duration::from_millis(100);

/// The longest time without the end of any operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// When it ended, seconds since the measured time began.
    pub until_seconds: f64,
    /// How long it was.
    pub micros: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Fine {
    /// Operations completed in each tenth of a second.
    pub tenths: Vec<u32>,
    /// The longest gap.
    pub gap: Gap,
    last: Duration,
}

impl Fine {
    /// An operation has completed, so long after the measured time began.
    pub(super) fn add(&mut self, at: Duration) {
        let cell = (at.as_micros() / TENTH.as_micros()) as usize;
        if self.tenths.len() <= cell {
            self.tenths.resize(cell + 1, 0);
        }
        self.tenths[cell] += 1;
        self.gap_until(at);
    }

    /// The measured time is over.
    pub(super) fn finish(&mut self, length: Duration) {
        self.gap_until(length);
        self.tenths.resize((length.as_micros() / TENTH.as_micros()) as usize, 0);
    }

    fn gap_until(&mut self, at: Duration) {
        let micros = at.saturating_sub(self.last).as_micros() as u64;
        if micros > self.gap.micros {
            self.gap = Gap { until_seconds: at.as_secs_f64(), micros };
        }
        self.last = self.last.max(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_and_the_longest_gap() {
        let mut fine = Fine::default();
        for millis in [10, 20, 120, 90, 430, 440] {
            fine.add(Duration::from_millis(millis));
        }
        assert_eq!(fine.gap, Gap { until_seconds: 0.43, micros: 310_000 });
        fine.finish(Duration::from_millis(1000));
        assert_eq!(fine.tenths, [3, 1, 0, 0, 2, 0, 0, 0, 0, 0]);
        assert_eq!(fine.gap, Gap { until_seconds: 1.0, micros: 560_000 }, "that at the end counts");
    }

    #[test]
    fn nothing_at_all_is_one_gap() {
        let mut fine = Fine::default();
        fine.finish(Duration::from_secs(2));
        assert_eq!((fine.tenths.len(), fine.gap.micros), (20, 2_000_000));
    }
}
