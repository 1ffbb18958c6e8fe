//! The frame of a plot, and what is drawn in it.

use super::axis::Axis;
use super::escaped;
use std::fmt::Write;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 44.0;
/// A character of a tick is about so wide.
const CHARACTER: f64 = 7.0;

/// Two axes and a size.
pub(crate) struct Frame {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Of the whole plot, in units of which the width has 900.
    pub(crate) height: f64,
}

/// A plot that is being drawn.
pub(crate) struct Drawing {
    frame: Frame,
    out: String,
}

impl Frame {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let right = LEFT + self.x.share(x) * (WIDTH - LEFT - RIGHT);
        let bottom = self.height - BOTTOM;
        (right, bottom - self.y.share(y) * (bottom - TOP))
    }

    /// Begins with the grid; what follows lies on it.
    pub(crate) fn draw(self, label: &str) -> Drawing {
        let mut out = format!(
            "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {}\">",
            escaped(label),
            self.height
        );
        let right = WIDTH - RIGHT;
        let mut last = f64::INFINITY;
        for (value, text) in self.y.marks() {
            let y = self.at((self.x.low, value)).1;
            let _infallible = write!(out, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/>");
            // Ticks of a log scale may lie too near each other.
            if last - y >= 13.0 {
                let _infallible = write!(
                    out,
                    "<text class=\"tick e\" x=\"{}\" y=\"{:.1}\">{text}</text>",
                    LEFT - 7.0,
                    y + 4.0
                );
                last = y;
            }
        }
        Drawing { frame: self, out }
    }
}

impl Drawing {
    /// A line through points in the order of x.
    pub(crate) fn line(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for point in points {
            let (x, y) = self.frame.at(point);
            let letter = if path.is_empty() { "M" } else { "L" };
            let _infallible = write!(path, "{letter}{x:.1} {y:.1}");
        }
        if !path.is_empty() {
            let _infallible = write!(self.out, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    /// The area between two lines: x, lower and upper y.
    pub(crate) fn band(&mut self, class: &str, points: &[(f64, f64, f64)]) {
        let mut path = String::new();
        let upper = points.iter().map(|point| (point.0, point.2));
        let lower = points.iter().rev().map(|point| (point.0, point.1));
        for point in upper.chain(lower) {
            let (x, y) = self.frame.at(point);
            let letter = if path.is_empty() { "M" } else { "L" };
            let _infallible = write!(path, "{letter}{x:.1} {y:.1}");
        }
        if !path.is_empty() {
            let _infallible = write!(self.out, "<path class=\"{class}\" d=\"{path}z\"/>");
        }
    }

    /// A rectangle over the whole height.
    pub(crate) fn shade(&mut self, class: &str, from: f64, to: f64) {
        let (left, bottom) = self.frame.at((from, self.frame.y.low));
        let (right, top) = self.frame.at((to, self.frame.y.high));
        let width = right - left;
        let _infallible = write!(
            self.out,
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
             height=\"{:.1}\"/>",
            bottom - top
        );
    }

    /// Rectangles of one class: from x to x, from y to y.
    pub(crate) fn cells(&mut self, class: &str, cells: impl Iterator<Item = [f64; 4]>) {
        let mut path = String::new();
        for [left, right, low, high] in cells {
            let (x, y) = self.frame.at((left, high));
            let (to_x, to_y) = self.frame.at((right, low));
            let (width, height) = (to_x - x, to_y - y);
            let _infallible = write!(path, "M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
        }
        if !path.is_empty() {
            let _infallible = write!(self.out, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    /// Dots.
    pub(crate) fn dots(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for point in points {
            let (x, y) = self.frame.at(point);
            let _infallible = write!(path, "M{x:.1} {y:.1}h0");
        }
        if !path.is_empty() {
            let _infallible = write!(self.out, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    /// Circles that tell what they are when a pointer rests on them.
    pub(crate) fn circles(&mut self, class: &str, points: &[(f64, f64, String)]) {
        for (x, y, text) in points {
            let (x, y) = self.frame.at((*x, *y));
            let _infallible = write!(
                self.out,
                "<circle class=\"{class}\" r=\"3.2\" cx=\"{x:.1}\" cy=\"{y:.1}\"><title>{}\
                 </title></circle>",
                escaped(text)
            );
        }
    }

    /// Vertical whiskers: x, lower and upper y.
    pub(crate) fn whiskers(&mut self, class: &str, points: impl Iterator<Item = (f64, f64, f64)>) {
        for (x, low, high) in points {
            let (at, from) = self.frame.at((x, low));
            let to = self.frame.at((x, high)).1;
            let _infallible = write!(
                self.out,
                "<path class=\"{class}\" d=\"M{:.1} {from:.1}h8m-4 0V{to:.1}m-4 0h8\"/>",
                at - 4.0
            );
        }
    }

    /// Triangles on the lower end.
    pub(crate) fn triangles(&mut self, class: &str, places: impl Iterator<Item = f64>) {
        let mut path = String::new();
        for place in places {
            let (x, y) = self.frame.at((place, self.frame.y.low));
            let _infallible = write!(path, "M{x:.1} {:.1}l4 8h-8z", y - 8.0);
        }
        if !path.is_empty() {
            let _infallible = write!(self.out, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    /// Vertical lines with numbers above them; where two are near each other only the first has
    /// one.
    pub(crate) fn events(&mut self, places: &[f64]) {
        let mut last = f64::NEG_INFINITY;
        for (number, place) in places.iter().enumerate() {
            let (x, bottom) = self.frame.at((*place, self.frame.y.low));
            let _infallible =
                write!(self.out, "<path class=\"event\" d=\"M{x:.1} {TOP}V{bottom:.1}\"/>");
            let text = (number + 1).to_string();
            if x - last > (text.len() + 1) as f64 * CHARACTER {
                let _infallible = write!(
                    self.out,
                    "<text class=\"event m\" x=\"{x:.1}\" y=\"{}\">{text}</text>",
                    TOP - 5.0
                );
                last = x;
            }
        }
    }

    /// The axes over what was drawn; the SVG.
    pub(crate) fn finish(mut self) -> String {
        let (right, bottom) = (WIDTH - RIGHT, self.frame.height - BOTTOM);
        let _infallible =
            write!(self.out, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>");
        let mut end = f64::NEG_INFINITY;
        for (value, text) in self.frame.x.marks() {
            let x = self.frame.at((value, self.frame.y.low)).0;
            let half = text.chars().count() as f64 * CHARACTER / 2.0;
            let _infallible = write!(self.out, "<path class=\"axis\" d=\"M{x:.1} {bottom}v4\"/>");
            if x - half < end + 6.0 {
                continue;
            }
            end = x + half;
            let _infallible = write!(
                self.out,
                "<text class=\"tick m\" x=\"{x:.1}\" y=\"{}\">{text}</text>",
                bottom + 17.0
            );
        }
        let _infallible = write!(
            self.out,
            "<text class=\"label m\" x=\"{}\" y=\"{}\">{}</text><text class=\"label m\" \
             transform=\"translate(14 {}) rotate(-90)\">{}</text></svg>",
            (LEFT + right) / 2.0,
            self.frame.height - 8.0,
            escaped(&self.frame.x.title),
            (TOP + bottom) / 2.0,
            escaped(&self.frame.y.title)
        );
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame {
            x: Axis::log_of("clients", &[4.0, 64.0, 4096.0]),
            y: Axis::linear("operations/s", [0.0, 1234.0].into_iter()),
            height: 280.0,
        }
    }

    #[test]
    fn what_is_drawn_stays_within_the_frame() {
        let mut drawing = frame().draw("a <title>");
        drawing.line("line", [(4.0, 0.0), (64.0, 1234.0), (9000.0, 9e9)].into_iter());
        let start = drawing.out.find("<path class=\"line\" d=\"M").expect("a line") + 23;
        let points: Vec<&str> =
            drawing.out[start..].split('"').next().expect("its end").split('L').collect();
        assert_eq!(points.len(), 3);
        for point in points {
            let (x, y) = point.split_once(' ').expect("a pair");
            let (x, y): (f64, f64) = (x.parse().expect("x"), y.parse().expect("y"));
            assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{point}");
            assert!((TOP..=280.0 - BOTTOM).contains(&y), "{point}");
        }
        let svg = drawing.finish();
        assert!(svg.contains("a &lt;title&gt;") && !svg.contains("NaN"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let mut drawing = frame().draw("");
        let before = drawing.out.clone();
        drawing.line("line", std::iter::empty());
        drawing.band("band", &[]);
        drawing.cells("heat", std::iter::empty());
        drawing.dots("dots", std::iter::empty());
        drawing.triangles("stall", std::iter::empty());
        drawing.events(&[]);
        assert_eq!(drawing.out, before);
    }

    #[test]
    fn ticks_that_would_touch_are_left_out() {
        let ticks: Vec<f64> = (1..=4096).map(f64::from).collect();
        let x = Axis::log_of("clients", &ticks);
        let svg = Frame { x, ..frame() }.draw("").finish();
        assert!(svg.matches("tick m").count() < 40);
    }
}
