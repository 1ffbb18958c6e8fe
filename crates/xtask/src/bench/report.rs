//! Medians with their spread, and limits that hold or do not.

use crate::Outcome;
use std::fmt;

/// The middle of some values, with the least and the most.
#[derive(Clone, Copy)]
pub struct Spread {
    /// The median.
    pub median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    /// Of a figure of every run.
    pub fn of<T>(runs: &[T], figure: impl Fn(&T) -> f64) -> Self {
        let mut values: Vec<f64> = runs.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (values.first(), values.last()) else {
            return Self { median: f64::NAN, least: f64::NAN, most: f64::NAN };
        };
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => (values[middle - 1] + values[middle]) / 2.0,
        };
        Self { median, least, most }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.median.abs() < 100.0 { 1 } else { 0 };
        write!(
            formatter,
            "{:.digits$} ({:.digits$}..{:.digits$})",
            self.median, self.least, self.most
        )
    }
}

/// Limits and what was measured.
#[derive(Default)]
pub struct Limits {
    lines: Vec<String>,
    broken: usize,
}

impl Limits {
    /// `value` may be at most `limit`.
    pub fn at_most(&mut self, what: &str, value: f64, limit: f64) {
        self.add(what, value, "<=", limit, value <= limit);
    }

    /// `value` must be at least `limit`.
    pub fn at_least(&mut self, what: &str, value: f64, limit: f64) {
        self.add(what, value, ">=", limit, value >= limit);
    }

    fn add(&mut self, what: &str, value: f64, sign: &str, limit: f64, holds: bool) {
        self.broken += usize::from(!holds);
        let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
        self.lines.push(format!("  {what:62} {value:9.2} {sign} {limit:<8} {verdict}"));
    }

    /// Prints all limits; an error when one does not hold.
    pub fn finish(self) -> Outcome {
        println!("\nlimits:");
        self.lines.iter().for_each(|line| println!("{line}"));
        match self.broken {
            0 => Ok(()),
            count => Err(format!("{count} of {} limits do not hold", self.lines.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0], |v| *v).to_string(), "2.0 (1.0..3.0)");
        assert_eq!(Spread::of(&[4.0, 1.0], |v| *v).median, 2.5);
        assert!(Spread::of(&[], |v: &f64| *v).median.is_nan());
    }

    #[test]
    fn a_limit_that_does_not_hold_fails() {
        let mut limits = Limits::default();
        limits.at_most("a", 1.0, 1.0);
        limits.at_least("b", f64::NAN, 1.0);
        assert_eq!(limits.finish(), Err("1 of 2 limits do not hold".to_string()));
    }
}
