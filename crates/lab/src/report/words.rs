//! Figures as words of a report.

/// Bytes with a unit of tenfolds: `1.5 GB`.
pub(crate) fn bytes(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e12 => (value / 1e12, "TB"),
        v if v >= 1e9 => (value / 1e9, "GB"),
        v if v >= 1e6 => (value / 1e6, "MB"),
        v if v >= 1e3 => (value / 1e3, "kB"),
        _ => (value, "B"),
    };
    format!("{} {unit}", figure(scaled))
}

/// A number with three digits that count, or all before the point.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "–".into(),
        0.0 => "0".into(),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.2}"),
        v if v >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

/// Microseconds as milliseconds.
pub(crate) fn millis(micros: f64) -> String {
    format!("{:.2}", micros / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let wanted = ["0", "1234567", "12.3", "0.50", "0.0123", "1.0e-5", "–"];
        let found = [0.0, 1_234_567.0, 12.34, 0.5, 0.0123, 0.000_01, f64::NAN].map(figure);
        assert_eq!(found, wanted);
        assert_eq!([999.0, 1.5e9, 20_000.0].map(bytes), ["999 B", "1.50 GB", "20.0 kB"]);
    }
}
