//! Line charts as SVG: axes with units, a legend, colours by CSS so that light and dark work.

use std::fmt::Write;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
const TICKS: f64 = 6.0;
/// Colours of the style sheet.
pub const COLOURS: usize = 6;

/// A line.
#[derive(Clone, Debug)]
pub struct Line {
    /// In the legend; empty for none there.
    pub name: String,
    /// x and y, in the order of x.
    pub points: Vec<(f64, f64)>,
    /// Which colour of the style sheet, from 0.
    pub colour: usize,
    /// Thin and dashed: a bound, a quantile.
    pub is_dashed: bool,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// With its unit.
    pub x: String,
    /// With its unit.
    pub y: String,
    /// Doublings of x have the same width.
    pub log_x: bool,
    /// Tenfolds of y have the same height.
    pub log_y: bool,
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// One axis: from values to places.
struct Axis {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Axis {
    fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.log { value.max(self.low).ln() } else { value };
        let span = (scale(self.high) - scale(self.low)).max(1e-12);
        self.from + (scale(value) - scale(self.low)) / span * (self.to - self.from)
    }

    /// Round values along the axis.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let mut ticks = Vec::new();
            let mut value = 10f64.powf(self.low.log10().floor());
            while value <= self.high * 1.0001 {
                ticks.extend([value].into_iter().filter(|v| *v >= self.low * 0.9999));
                value *= 10.0;
            }
            return ticks;
        }
        let step = step((self.high - self.low) / TICKS);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|number| number as f64 * step).collect()
    }
}

/// The next of 1, 2, 5, 10, 20... at or above.
fn step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.max(1e-9).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step >= rough * 0.9999).unwrap_or(power * 10.0)
}

/// A number as people read it on an axis: `1.5k`, `20M`.
pub fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = if scaled.fract().abs() < 1e-9 {
        0
    } else if scaled.abs() < 1.0 {
        3
    } else {
        1
    };
    let text = format!("{scaled:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

/// Text within markup.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Chart {
    /// The markup; a line of text if there is nothing to draw.
    pub fn svg(&self) -> String {
        if self.lines.iter().all(|line| line.points.is_empty()) {
            return format!(
                "<p class=\"none\">{}: nothing was measured.</p>",
                escaped(&self.title)
            );
        }
        let (x, y) = self.axes();
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\
             <text class=\"title\" x=\"{LEFT}\" y=\"16\">{}</text>",
            escaped(&self.title),
            escaped(&self.title)
        );
        self.draw_axes(&mut out, &x, &y);
        for line in &self.lines {
            draw_line(&mut out, line, &x, &y);
        }
        self.draw_legend(&mut out);
        out.push_str("</svg>");
        out
    }

    fn axes(&self) -> (Axis, Axis) {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let least = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(f64::INFINITY, f64::min);
        let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0, f64::max);
        let (low_x, high_x) = (least(|p| p.0), most(|p| p.0));
        let positive = points().map(|p| p.1).filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
        let high_y = most(|p| p.1).max(1e-9);
        let low_y = if self.log_y && positive.is_finite() {
            10f64.powf(positive.log10().floor())
        } else {
            0.0
        };
        let high_y = if self.log_y { high_y.max(low_y * 10.0) } else { high_y * 1.05 };
        let x = Axis {
            low: low_x,
            high: if high_x > low_x { high_x } else { low_x + 1.0 },
            log: self.log_x,
            from: LEFT,
            to: WIDTH - RIGHT,
        };
        (x, Axis { low: low_y, high: high_y, log: self.log_y, from: HEIGHT - BOTTOM, to: TOP })
    }

    fn draw_axes(&self, out: &mut String, x: &Axis, y: &Axis) {
        let bottom = HEIGHT - BOTTOM;
        for tick in y.ticks() {
            let place = y.place(tick);
            let _infallible = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{place:.1}\" y2=\"{place:.1}\"/>\
                 <text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                place + 4.0,
                short(tick)
            );
        }
        // Where x doubles, the values that were measured are the ticks.
        let mut ticks = if self.log_x {
            self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)).collect()
        } else {
            x.ticks()
        };
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        for tick in ticks {
            let _infallible = write!(
                out,
                "<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x.place(tick),
                bottom + 16.0,
                short(tick)
            );
        }
        let _infallible = write!(
            out,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
             <text class=\"label\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\
             <text class=\"label\" text-anchor=\"middle\" \
             transform=\"translate(14 {}) rotate(-90)\">{}</text>",
            WIDTH - RIGHT,
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 8.0,
            escaped(&self.x),
            (TOP + bottom) / 2.0,
            escaped(&self.y)
        );
    }

    fn draw_legend(&self, out: &mut String) {
        let mut right = WIDTH - RIGHT;
        for line in self.lines.iter().rev().filter(|line| !line.name.is_empty()) {
            // About as wide as its characters; the style sheet's font is 12 units high.
            right -= line.name.chars().count() as f64 * 6.6 + 30.0;
            let _infallible = write!(
                out,
                "<line class=\"line c{}{}\" x1=\"{right:.1}\" x2=\"{:.1}\" y1=\"12\" y2=\"12\"/>\
                 <text class=\"legend\" x=\"{:.1}\" y=\"16\">{}</text>",
                line.colour % COLOURS,
                if line.is_dashed { " dashed" } else { "" },
                right + 18.0,
                right + 22.0,
                escaped(&line.name)
            );
        }
    }
}

fn draw_line(out: &mut String, line: &Line, x: &Axis, y: &Axis) {
    let places: Vec<String> = line
        .points
        .iter()
        .map(|point| format!("{:.1},{:.1}", x.place(point.0), y.place(point.1)))
        .collect();
    let class =
        format!("line c{}{}", line.colour % COLOURS, if line.is_dashed { " dashed" } else { "" });
    let _infallible = write!(out, "<polyline class=\"{class}\" points=\"{}\"/>", places.join(" "));
    if line.points.len() <= 16 {
        for point in &line.points {
            let _infallible = write!(
                out,
                "<circle class=\"{class}\" r=\"3\" cx=\"{:.1}\" cy=\"{:.1}\"/>",
                x.place(point.0),
                y.place(point.1)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>, log_x: bool) -> Chart {
        Chart {
            title: "a <title>".into(),
            x: "seconds".into(),
            y: "operations/s".into(),
            log_x,
            log_y: false,
            lines: vec![Line { name: "A".into(), points, colour: 0, is_dashed: false }],
        }
    }

    #[test]
    fn points_stay_within_the_frame() {
        for log_x in [false, true] {
            let svg = chart(vec![(4.0, 0.0), (64.0, 1234.0), (4096.0, 900.0)], log_x).svg();
            let start = svg.find("points=\"").expect("a line") + 8;
            let end = start + svg[start..].find('"').expect("its end");
            for point in svg[start..end].split(' ') {
                let (x, y) = point.split_once(',').expect("a pair");
                let (x, y): (f64, f64) = (x.parse().expect("x"), y.parse().expect("y"));
                assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{point}");
                assert!((TOP..=HEIGHT - BOTTOM).contains(&y), "{point}");
            }
            assert!(svg.contains("a &lt;title&gt;") && !svg.contains("NaN"));
        }
    }

    #[test]
    fn one_point_and_none_can_be_drawn() {
        assert!(!chart(vec![(1.0, 5.0)], false).svg().contains("NaN"));
        assert!(chart(Vec::new(), false).svg().contains("nothing was measured"));
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis { low: 0.0, high: 1234.0, log: false, from: 0.0, to: 1.0 };
        assert_eq!(axis.ticks(), [0.0, 500.0, 1000.0]);
        assert_eq!([0.0, 950.0, 12_500.0, 3e6].map(short), ["0", "950", "12.5k", "3M"]);
    }
}
