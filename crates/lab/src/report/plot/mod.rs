//! Plots as SVG within HTML.
//!
//! 1. Titles, legends and notes are HTML, which finds its own places: no label can lie on another.
//!    In the SVG are only ticks, axis titles and numbered marks.
//! 2. Colours are classes of the style sheet, so that light and dark are the reader's choice.
//! 3. A series of any length is drawn with as many points as there are places for
//!    ([`bins`]): the file stays small, and no extreme is lost.

mod axis;
mod bars;
mod frame;

pub(super) use axis::{Axis, short};
pub(super) use bars::{Bar, bars};
pub(super) use frame::Frame;

use std::fmt::Write;

/// Colours for subjects in the style sheet.
pub(super) const COLOURS: usize = 8;

/// The class of a subject's colour.
pub(super) fn colour(subject: usize) -> String {
    format!("c{}", subject % COLOURS)
}

/// A plot with its words.
pub(super) struct Figure {
    pub(super) title: String,
    /// Classes and names; those of lines are drawn as a stroke, of areas as a square.
    pub(super) legend: Vec<(Swatch, String)>,
    pub(super) svg: String,
    /// Below it; empty for nothing.
    pub(super) note: String,
}

/// How a legend shows what is drawn.
pub(super) enum Swatch {
    /// With these classes.
    Line(String),
    /// With these classes.
    Area(String),
    /// A triangle of this class.
    Mark(String),
    /// Dots with these classes.
    Dots(String),
}

impl Figure {
    /// As HTML.
    pub(super) fn html(&self) -> String {
        let mut out = format!("<figure><figcaption>{}</figcaption>", escaped(&self.title));
        if !self.legend.is_empty() {
            out.push_str("<ul class=\"legend\">");
            for (swatch, name) in &self.legend {
                let (class, drawn) = match swatch {
                    Swatch::Line(class) => (class, "<path d=\"M1 6h20\"/>"),
                    Swatch::Area(class) => (class, "<path d=\"M4 0h12v12h-12z\"/>"),
                    Swatch::Dots(class) => (class, "<path d=\"M4 6h0M11 4h0M17 8h0\"/>"),
                    Swatch::Mark(class) => (class, "<path d=\"M11 1l5 10h-10z\"/>"),
                };
                let _infallible = write!(
                    out,
                    "<li><svg class=\"{class}\" viewBox=\"0 0 22 12\">{drawn}</svg>{}</li>",
                    escaped(name)
                );
            }
            out.push_str("</ul>");
        }
        out.push_str(&self.svg);
        if !self.note.is_empty() {
            let _infallible = write!(out, "<p class=\"note\">{}</p>", escaped(&self.note));
        }
        out.push_str("</figure>");
        out
    }
}

/// Text within markup.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Some values of a series that lie together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bin {
    /// The middle of their places.
    pub(super) at: f64,
    pub(super) least: f64,
    pub(super) mean: f64,
    pub(super) most: f64,
}

/// Values at places `begin`, `begin + 1`..., in no more bins than `most`.
pub(super) fn bins(values: &[f64], begin: f64, most: usize) -> Vec<Bin> {
    let width = values.len().div_ceil(most.max(1)).max(1);
    let bin = |(number, part): (usize, &[f64])| Bin {
        at: begin + (number * width) as f64 + part.len() as f64 / 2.0,
        least: part.iter().copied().fold(f64::INFINITY, f64::min),
        mean: part.iter().sum::<f64>() / part.len() as f64,
        most: part.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    };
    values.chunks(width).enumerate().map(bin).collect()
}

/// A unit of time that suits a length in seconds: seconds in it, and its name.
pub(super) fn time_unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        s if s > 3.0 * 3600.0 => (3600.0, "hours"),
        s if s > 900.0 => (60.0, "minutes"),
        _ => (1.0, "seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_lose_no_extreme() {
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        let bins = bins(&values, -10.0, 100);
        assert_eq!(bins.len(), 100);
        let first = Bin { at: -5.0, least: 0.0, mean: 4.5, most: 9.0 };
        assert_eq!((bins[0], bins[99].most), (first, 999.0));
        assert_eq!(super::bins(&[], 0.0, 9).len(), 0);
    }

    #[test]
    fn names_are_text_not_markup() {
        let figure = Figure {
            title: "a <b>".into(),
            legend: vec![(Swatch::Line("line c0".into()), "x & y".into())],
            svg: String::new(),
            note: "\"n\"".into(),
        };
        let html = figure.html();
        let wanted = ["a &lt;b&gt;", "x &amp; y", "&quot;n&quot;"];
        assert!(wanted.iter().all(|text| html.contains(text)), "{html}");
    }
}
