//! Horizontal bars with their names and figures beside them.

use super::{escaped, short};
use std::fmt::Write;

const WIDTH: f64 = 900.0;
const NAMES: f64 = 190.0;
const FIGURES: f64 = 190.0;
const ROW: f64 = 26.0;
const BAR: f64 = 16.0;
/// Characters of a name that have room.
const NAME_CHARACTERS: usize = 26;

/// A bar of one or several parts.
pub(crate) struct Bar {
    pub(crate) name: String,
    /// Classes and lengths, from the left.
    pub(crate) parts: Vec<(String, f64)>,
    /// Beside it; with its unit.
    pub(crate) figure: String,
    /// A mark at this length, such as another way to measure the same.
    pub(crate) mark: Option<f64>,
}

impl Bar {
    fn length(&self) -> f64 {
        self.parts.iter().map(|part| part.1).sum()
    }
}

/// All bars at one scale, which is written below with its unit.
pub(crate) fn bars(label: &str, unit: &str, all: &[Bar]) -> String {
    let longest =
        all.iter().map(|bar| bar.length().max(bar.mark.unwrap_or(0.0))).fold(1e-12, f64::max);
    let height = all.len() as f64 * ROW + 34.0;
    let room = WIDTH - NAMES - FIGURES;
    let mut out = format!(
        "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {height}\">",
        escaped(label)
    );
    for (number, bar) in all.iter().enumerate() {
        let top = number as f64 * ROW + 4.0;
        let mut left = NAMES;
        let name: String = bar.name.chars().take(NAME_CHARACTERS).collect();
        let _infallible = write!(
            out,
            "<text class=\"name e\" x=\"{}\" y=\"{:.1}\">{}</text>",
            NAMES - 8.0,
            top + BAR - 4.0,
            escaped(&name)
        );
        for (class, length) in &bar.parts {
            let width = length / longest * room;
            let _infallible = write!(
                out,
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
                 height=\"{BAR}\"/>"
            );
            left += width;
        }
        if let Some(mark) = bar.mark {
            let x = NAMES + mark / longest * room;
            let _infallible =
                write!(out, "<path class=\"axis\" d=\"M{x:.1} {:.1}v{}\"/>", top - 3.0, BAR + 6.0);
            left = left.max(x);
        }
        let _infallible = write!(
            out,
            "<text class=\"figure\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left + 6.0,
            top + BAR - 4.0,
            escaped(&bar.figure)
        );
    }
    let bottom = height - 26.0;
    let _infallible = write!(
        out,
        "<path class=\"axis\" d=\"M{NAMES} 0V{bottom}H{}\"/>\
         <text class=\"tick m\" x=\"{NAMES}\" y=\"{y}\">0</text>\
         <text class=\"tick m\" x=\"{}\" y=\"{y}\">{} {}</text></svg>",
        NAMES + room,
        NAMES + room,
        short(longest),
        escaped(unit),
        y = bottom + 16.0
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_room() {
        let bar = |length| Bar {
            name: "a".into(),
            parts: vec![("c0".into(), length / 2.0), ("c1".into(), length / 2.0)],
            figure: "x".into(),
            mark: None,
        };
        let svg = bars("load", "seconds", &[bar(10.0), bar(5.0)]);
        assert_eq!(svg.matches("width=\"260.0\"").count(), 2);
        assert_eq!(svg.matches("width=\"130.0\"").count(), 2);
        assert!(svg.contains("10 seconds") && !bars("", "", &[]).contains("NaN"));
    }
}
