//! Axes: from values to places, and the values that are written beside them.

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Equal differences have equal widths.
    Linear,
    /// Equal ratios have equal widths.
    Log,
    /// Shares below 1 by their distance from it: 0.9, 0.99 and 0.999 have equal distances.
    Nines,
}

/// An axis of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// With its unit.
    pub(crate) title: String,
    pub(crate) scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Values that are written; round ones if there are none.
    pub(crate) ticks: Vec<f64>,
}

/// Ticks of a linear axis, about.
const TICKS: f64 = 6.0;

impl Axis {
    /// From 0, or from the least value if that is below.
    pub(crate) fn linear(title: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = bounds(values);
        let high = if high > low.min(0.0) { high } else { low.min(0.0) + 1.0 };
        let high = high + (high - low.min(0.0)) * 0.04;
        let low = low.min(0.0);
        Self { title: title.into(), scale: Scale::Linear, low, high, ticks: Vec::new() }
    }

    /// Exactly from one value to another.
    pub(crate) fn span(title: &str, low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { title: title.into(), scale: Scale::Linear, low, high, ticks: Vec::new() }
    }

    /// Around the values above 0; those not above it lie on the lower end.
    pub(crate) fn log(title: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = bounds(values.filter(|value| *value > 0.0));
        let (low, high) = if high > 0.0 { (low, high) } else { (1.0, 10.0) };
        // Between the neighbours among 1, 2, 5, 10, 20...: no value lies on the frame.
        let (low, high) = (below(low * 0.98), above(high * 1.02));
        Self { title: title.into(), scale: Scale::Log, low, high, ticks: Vec::new() }
    }

    /// Exactly around values of which each is written.
    pub(crate) fn log_of(title: &str, values: &[f64]) -> Self {
        let (low, high) = bounds(values.iter().copied());
        let margin = if high > low { (high / low).powf(0.04) } else { 1.5 };
        Self {
            title: title.into(),
            scale: Scale::Log,
            low: low / margin,
            high: high * margin,
            ticks: values.to_vec(),
        }
    }

    /// From 0 to a share with so many nines.
    pub(crate) fn nines(title: &str, most: f64) -> Self {
        let all = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999_999, 0.999_999_9];
        let ticks = all.into_iter().filter(|share| *share <= most).collect();
        Self { title: title.into(), scale: Scale::Nines, low: 0.0, high: most, ticks }
    }

    /// Where a value lies, from 0 to 1.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let scaled = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Log => value.max(1e-12).ln(),
            Scale::Nines => -(1.0 - value).max(1e-12).log10(),
        };
        let span = (scaled(self.high) - scaled(self.low)).max(1e-12);
        (scaled(value) - scaled(self.low)) / span
    }

    /// Values to be written, ascending, with their texts.
    pub(crate) fn marks(&self) -> Vec<(f64, String)> {
        let values = match (self.ticks.is_empty(), self.scale) {
            (false, _) => self.ticks.clone(),
            (true, Scale::Log) => self.log_ticks(),
            (true, _) => self.linear_ticks(),
        };
        let text = |value: f64| match self.scale {
            Scale::Nines => percent(value),
            _ => short(value),
        };
        values.into_iter().map(|value| (value, text(value))).collect()
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let step = above_or_equal((self.high - self.low) / TICKS);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|number| number as f64 * step).collect()
    }

    /// Tenfolds, or 1, 2 and 5 where there are few of them.
    fn log_ticks(&self) -> Vec<f64> {
        let tenfolds = (self.high / self.low).log10();
        let factors: &[f64] = if tenfolds > 3.2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let all = (first..=last)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
        all.filter(|v| *v >= self.low * 0.9999 && *v <= self.high * 1.0001).collect()
    }
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let known = values.filter(|value| value.is_finite());
    let (low, high) =
        known.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low.is_finite() { (low, high) } else { (0.0, 0.0) }
}

const STEPS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

/// The next of 1, 2, 5, 10, 20... at or above.
fn above_or_equal(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1e-9).log10().floor());
    let steps = STEPS.map(|factor| factor * power);
    steps.into_iter().find(|step| *step >= value * 0.9999).unwrap_or(power * 10.0)
}

fn above(value: f64) -> f64 {
    above_or_equal(value)
}

fn below(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1e-9).log10().floor());
    let steps = STEPS.map(|factor| factor * power);
    steps.into_iter().rev().find(|step| *step <= value * 1.0001).unwrap_or(power)
}

/// A share as people say it: `99.9 %`.
fn percent(share: f64) -> String {
    let text = format!("{:.6}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A number as people read it on an axis: `1.5k`, `20M`.
pub(crate) fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        v if v < 0.01 => 4,
        v if v < 1.0 => 3,
        v if v < 10.0 => 2,
        _ => 1,
    };
    let text = format!("{scaled:.digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{}{unit}", if text.is_empty() || text == "-0" { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<String> {
        axis.marks().into_iter().map(|mark| mark.1).collect()
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::linear("", [0.0, 1234.0].into_iter());
        assert_eq!(texts(&axis), ["0", "500", "1000"]);
        let axis = Axis::log("", [0.0, 0.3, 70.0].into_iter());
        assert_eq!(texts(&axis), ["0.2", "0.5", "1", "2", "5", "10", "20", "50", "100"]);
        let axis = Axis::log("", [1.0, 50_000.0].into_iter());
        assert_eq!(texts(&axis), ["1", "10", "100", "1000", "10k", "100k"]);
        let axis = Axis::nines("", 0.9995);
        assert_eq!(texts(&axis), ["0 %", "50 %", "90 %", "99 %", "99.9 %"]);
        assert_eq!(
            [0.0, 950.0, 12_500.0, 3e6, 0.25].map(short),
            ["0", "950", "12.5k", "3M", "0.25"]
        );
    }

    #[test]
    fn every_value_lies_within() {
        let axes = [
            Axis::linear("", [3.0, 9.0].into_iter()),
            Axis::linear("", std::iter::empty()),
            Axis::log("", [3.0, 9.0].into_iter()),
            Axis::log("", std::iter::empty()),
            Axis::log_of("", &[4.0]),
            Axis::nines("", 0.99),
            Axis::span("", 5.0, 5.0),
        ];
        for axis in axes {
            for value in [-1.0, 0.0, 1.0, 3.0, 9.0, 1e9] {
                let share = axis.share(value);
                assert!((0.0..=1.0).contains(&share), "{axis:?}: {value} at {share}");
            }
        }
    }

    #[test]
    fn equal_ratios_are_equally_wide() {
        let axis = Axis::log_of("", &[4.0, 16.0, 64.0]);
        let gaps = [axis.share(16.0) - axis.share(4.0), axis.share(64.0) - axis.share(16.0)];
        assert!((gaps[0] - gaps[1]).abs() < 1e-9);
    }
}
