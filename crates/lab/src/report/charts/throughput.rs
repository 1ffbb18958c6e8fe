//! Throughput by second, one plot for each subject at the same scale.

use super::{Shown, cells, note_of, representative, shaded, shown, span};
use crate::report::plot::{Axis, Figure, Frame, Swatch, bins, colour, time_unit};
use crate::results::{Experiment, Run, Second, Step};
use crate::statistics::median;

/// Points of a line.
const POINTS: usize = 450;

/// One for each subject, and of each kind of operation if there are several.
pub(super) fn figures(experiment: &Experiment, step: Step) -> Vec<Figure> {
    let cells = cells(experiment, step);
    let runs = cells.iter().flat_map(|(_, _, runs)| runs);
    let drawn = runs.flat_map(|run| bins(&completed(&run.seconds), 0.0, POINTS));
    let most = drawn.map(|bin| bin.mean).fold(1.0, f64::max);
    let mut found: Vec<Figure> = cells
        .iter()
        .filter_map(|(subject, name, runs)| {
            let shown = representative(experiment, runs)?;
            let is_measured = !shown.seconds.is_empty();
            is_measured.then(|| figure((*subject, name), runs, shown, most))
        })
        .collect();
    let shown = shown(experiment, step);
    found.extend(shown.iter().filter_map(|(_, name, shown)| by_operation(name, shown)));
    found
}

fn completed(seconds: &[Second]) -> Vec<f64> {
    seconds.iter().map(|second| second.completed as f64).collect()
}

/// The share of values below is `share`.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(place).copied().unwrap_or(0.0)
}

fn figure((subject, name): (usize, &str), runs: &[&Run], shown: Shown<'_>, most: f64) -> Figure {
    let (begin, end) = span(&shown);
    let (unit, unit_name) = time_unit(end - begin);
    let x = |second: f64| second / unit;
    let frame = Frame {
        x: Axis::span(&format!("{unit_name} since the measured time began"), x(begin), x(end)),
        y: Axis::linear("operations/s", [most].into_iter()),
        height: 220.0,
    };
    let title = format!("{name}: throughput by second");
    let mut drawing = frame.draw(&title);
    let c = colour(subject);
    for phase in shaded(&shown) {
        drawing.shade("phase", x(phase.begin.max(begin)), x(phase.end.min(end)));
    }
    let mut all: Vec<f64> = runs.iter().flat_map(|run| completed(&run.seconds)).collect();
    let middle = median(&all);
    let (low, high) = (quantile(&mut all, 0.25), quantile(&mut all, 0.75));
    let measured = shown.seconds.len() as f64;
    drawing.band(&format!("band {c}"), &[(x(0.0), low, high), (x(measured), low, high)]);
    for run in runs.iter().filter(|run| !std::ptr::eq(**run, shown.run)) {
        let bins = bins(&completed(&run.seconds), 0.0, POINTS);
        drawing.line(&format!("line faint {c}"), bins.iter().map(|bin| (x(bin.at), bin.mean)));
    }
    let mut values = completed(&shown.warm_up);
    values.extend(completed(&shown.seconds));
    let bins = bins(&values, begin, POINTS);
    if values.len() > POINTS {
        let extremes: Vec<_> = bins.iter().map(|bin| (x(bin.at), bin.least, bin.most)).collect();
        drawing.band(&format!("band {c}"), &extremes);
    }
    drawing.line(&format!("line {c}"), bins.iter().map(|bin| (x(bin.at), bin.mean)));
    drawing.line("line dashed text", [(x(0.0), middle), (x(measured), middle)].into_iter());
    let own = median(&completed(&shown.seconds));
    let stalled = (0..).zip(&shown.seconds).filter(|(_, s)| (s.completed as f64) < own / 2.0);
    let stalled: Vec<f64> = stalled.map(|(second, _)| x(f64::from(second) + 0.5)).collect();
    drawing.triangles("stall", stalled.iter().copied());
    drawing.events(&shown.events.iter().map(|event| x(event.seconds)).collect::<Vec<_>>());
    let mut legend = vec![
        (Swatch::Line(format!("line {c}")), format!("{name}, run {}", shown.number)),
        (Swatch::Line("line dashed text".into()), format!("median of all rounds: {middle:.0}")),
        (
            Swatch::Area(format!("band {c}")),
            format!("middle half of all seconds: {low:.0} to {high:.0}"),
        ),
    ];
    if runs.len() > 1 {
        let others = match runs.len() - 1 {
            1 => "its other run".to_string(),
            others => format!("its other {others} runs"),
        };
        legend.insert(1, (Swatch::Line(format!("line faint {c}")), others));
    }
    if !stalled.is_empty() {
        let text = format!("below half of the median: {} s", stalled.len());
        legend.push((Swatch::Mark("stall".into()), text));
    }
    Figure { title, legend, svg: drawing.finish(), note: note_of(&shown) }
}

/// The kinds of operations that have a line of their own; the others are together.
const KINDS: usize = 7;

fn by_operation(name: &str, shown: &Shown<'_>) -> Option<Figure> {
    if shown.operations.len() < 2 || shown.seconds.is_empty() {
        return None;
    }
    let mut kinds: Vec<(usize, &str)> =
        shown.operations.iter().map(|operation| operation.name.as_str()).enumerate().collect();
    kinds.sort_by_key(|(number, _)| std::cmp::Reverse(shown.operations[*number].completed));
    let rarer = kinds.split_off(kinds.len().min(KINDS)).len();
    // Of every server in the same order, so in the same colours.
    kinds.sort_unstable();
    let (unit, unit_name) = time_unit(shown.seconds.len() as f64);
    let series = |kind: usize| {
        let of = |second: &Second| second.by_operation.get(kind).copied().unwrap_or(0) as f64;
        bins(&shown.seconds.iter().map(of).collect::<Vec<_>>(), 0.0, POINTS)
    };
    let drawn: Vec<_> = kinds.iter().map(|(kind, name)| (name, series(*kind))).collect();
    let most = drawn.iter().flat_map(|(_, bins)| bins.iter().map(|bin| bin.mean));
    let frame = Frame {
        x: Axis::span(
            &format!("{unit_name} since the measured time began"),
            0.0,
            shown.seconds.len() as f64 / unit,
        ),
        y: Axis::linear("operations/s", most),
        height: 240.0,
    };
    let title = format!("{name}: operations by kind and second, run {}", shown.number);
    let mut drawing = frame.draw(&title);
    let mut legend = Vec::new();
    for (number, (kind, bins)) in drawn.iter().enumerate() {
        let class = format!("line thin {}", colour(number));
        drawing.line(&class, bins.iter().map(|bin| (bin.at / unit, bin.mean)));
        legend.push((Swatch::Line(class), kind.to_string()));
    }
    drawing.events(&shown.events.iter().map(|event| event.seconds / unit).collect::<Vec<_>>());
    let note = match rarer {
        0 => String::new(),
        more => format!("{more} rarer kinds are in the table of operations only."),
    };
    Some(Figure { title, legend, svg: drawing.finish(), note })
}
