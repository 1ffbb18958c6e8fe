//! Latency: as a heat map and as quantiles over time, operation by operation, and as a curve of
//! percentiles.

use super::{Shown, cells, shaded, shown, span};
use crate::report::plot::{Axis, Bin, Figure, Frame, Swatch, bins, colour, time_unit};
use crate::results::{Experiment, Run, Second, Step};

const MILLIS: f64 = 1000.0;
const UNIT: &str = "milliseconds";
/// Columns of a heat map, of the step that is shown open and of others.
const COLUMNS: [usize; 2] = [150, 75];
/// Shades of a heat map.
const SHADES: usize = 8;
/// Coarse buckets of a doubling of latency, as they are recorded.
const BUCKETS_PER_DOUBLING: f64 = 4.0;
const POINTS: usize = 450;
/// Places of a curve of percentiles for each tenth of what is left over.
const PLACES_PER_NINE: usize = 40;

/// The curve for all subjects, and the others for each, at the same scales.
pub(super) fn figures(experiment: &Experiment, step: Step, is_main: bool) -> Vec<Figure> {
    let mut found: Vec<Figure> = percentiles(&cells(experiment, step), step).into_iter().collect();
    let shown = shown(experiment, step);
    let columns = COLUMNS[usize::from(!is_main)];
    let runs = || shown.iter().map(|(_, _, run)| run);
    let buckets = || runs().flat_map(|run| seconds(run)).flat_map(|second| &second.buckets);
    let ends = buckets().flat_map(|(bucket, _)| [*bucket, bucket + 1]);
    let heat = Axis::log(UNIT, ends.map(|bucket| bucket_millis(f64::from(bucket))));
    let drawn = runs().flat_map(|run| LINES.iter().flat_map(|line| line_of(run, line.0)));
    let lines = Axis::log(UNIT, drawn.map(|point| point.1));
    let dots = Axis::log(UNIT, runs().flat_map(|run| points(run)).map(|point| point.1));
    for (subject, name, run) in &shown {
        found.extend(heat_map(name, run, &heat, columns));
        found.extend(quantiles(name, run, &lines));
        found.extend(scatter((*subject, name), run, &dots));
    }
    found
}

/// Those of the warm-up and of the measured time.
fn seconds(run: &Run) -> impl Iterator<Item = &Second> {
    run.warm_up.iter().chain(&run.seconds)
}

fn bucket_millis(bucket: f64) -> f64 {
    (bucket / BUCKETS_PER_DOUBLING).exp2() / MILLIS
}

fn time_axis(run: &Run) -> (Axis, f64) {
    let (begin, end) = span(run);
    let (unit, name) = time_unit(end - begin);
    let title = format!("{name} since the measured time began");
    (Axis::span(&title, begin / unit, end / unit), unit)
}

fn heat_map(name: &str, run: &Shown<'_>, y: &Axis, columns: usize) -> Option<Figure> {
    let seconds: Vec<&Second> = seconds(run).collect();
    let width = seconds.len().div_ceil(columns).max(1);
    let counted: Vec<Vec<u64>> = seconds
        .chunks(width)
        .map(|part| {
            let mut counts = vec![0; usize::from(u8::MAX) + 1];
            for (bucket, count) in part.iter().flat_map(|second| &second.buckets) {
                counts[usize::from(*bucket)] += count;
            }
            counts
        })
        .collect();
    let most = counted.iter().flatten().copied().max().filter(|most| *most > 0)?;
    let used = |bucket: &usize| counted.iter().any(|column| column[*bucket] > 0);
    let first = (0..=usize::from(u8::MAX)).find(used)?;
    let last = (0..=usize::from(u8::MAX)).rev().find(used)?;
    let (x, unit) = time_axis(run);
    let title = format!("{name}: latency over time, run {}", run.number);
    let mut drawing = Frame { x, y: y.clone(), height: 300.0 }.draw(&title);
    let shade = |count: u64| {
        let share = (count as f64).ln() / (most as f64).ln().max(1e-9);
        ((share * SHADES as f64) as usize).min(SHADES - 1)
    };
    let begin = -(run.warm_up.len() as f64);
    for level in 0..SHADES {
        let cells = counted.iter().enumerate().flat_map(|(column, counts)| {
            let from = begin + (column * width) as f64;
            let to = (from + width as f64).min(run.seconds.len() as f64);
            let wanted = (first..=last)
                .filter(move |bucket| counts[*bucket] > 0 && shade(counts[*bucket]) == level);
            wanted.map(move |bucket| {
                let at = |bucket: usize| bucket_millis(bucket as f64);
                [from / unit, to / unit, at(bucket), at(bucket + 1)]
            })
        });
        drawing.cells(&format!("heat h{level}"), cells);
    }
    drawing.events(&run.events.iter().map(|event| event.seconds / unit).collect::<Vec<_>>());
    let legend = [0, SHADES / 2, SHADES - 1]
        .map(|level| {
            let from = (most as f64).powf(level as f64 / SHADES as f64).ceil();
            (
                Swatch::Area(format!("heat h{level}")),
                format!("{from:.0} or more operations in a cell"),
            )
        })
        .into();
    let mut note = format!("A cell is {width} s wide and a fifth of its latency high.");
    if begin < 0.0 {
        note.push_str(" What is before 0 is not measured.");
    }
    Some(Figure { title, legend, svg: drawing.finish(), note })
}

/// Names and classes of the quantiles of a second.
const LINES: [(usize, &str, &str); 4] =
    [(4, "longest", "text"), (2, "p99", "q2"), (1, "p95", "q1"), (0, "median", "q0")];

/// One of [`LINES`] over time, in milliseconds.
fn line_of(run: &Run, place: usize) -> Vec<(f64, f64)> {
    let values: Vec<f64> =
        seconds(run).map(|second| second.micros[place] as f64 / MILLIS).collect();
    let bins = bins(&values, -(run.warm_up.len() as f64), POINTS).into_iter();
    let value = |bin: &Bin| if place == 4 { bin.most } else { bin.mean };
    bins.filter(|bin| value(bin) > 0.0).map(|bin| (bin.at, value(&bin))).collect()
}

fn quantiles(name: &str, run: &Shown<'_>, y: &Axis) -> Option<Figure> {
    if seconds(run).all(|second| second.completed == 0) {
        return None;
    }
    let (x, unit) = time_axis(run);
    let title = format!("{name}: quantiles of latency by second, run {}", run.number);
    let mut drawing = Frame { x, y: y.clone(), height: 260.0 }.draw(&title);
    let (begin, end) = span(run);
    for phase in shaded(run) {
        drawing.shade("phase", phase.begin.max(begin) / unit, phase.end.min(end) / unit);
    }
    let mut legend = Vec::new();
    for (place, text, class) in LINES {
        let class = format!("line thin {class}");
        let points = line_of(run, place).into_iter();
        drawing.line(&class, points.map(|(at, value)| (at / unit, value)));
        legend.push((Swatch::Line(class), text.to_string()));
    }
    drawing.events(&run.events.iter().map(|event| event.seconds / unit).collect::<Vec<_>>());
    Some(Figure { title, legend, svg: drawing.finish(), note: String::new() })
}

/// Operations that were drawn by lot: seconds and milliseconds.
fn points(run: &Run) -> impl Iterator<Item = (f64, f64)> {
    run.points.iter().map(|p| (f64::from(p.millis) / 1000.0, p.micros as f64 / MILLIS))
}

fn scatter((subject, name): (usize, &str), run: &Shown<'_>, y: &Axis) -> Option<Figure> {
    if run.points.is_empty() {
        return None;
    }
    let end = run.seconds.len() as f64;
    let (unit, unit_name) = time_unit(end);
    let x = Axis::span(&format!("{unit_name} since the measured time began"), 0.0, end / unit);
    let title = format!("{name}: response times, run {}", run.number);
    let mut drawing = Frame { x, y: y.clone(), height: 260.0 }.draw(&title);
    let c = colour(subject);
    drawing.dots(&format!("dots {c}"), points(run).map(|(at, millis)| (at / unit, millis)));
    drawing.events(&run.events.iter().map(|event| event.seconds / unit).collect::<Vec<_>>());
    let text = "operations of each second, drawn by lot".to_string();
    let legend = vec![(Swatch::Dots(format!("dots {c}")), text)];
    Some(Figure { title, legend, svg: drawing.finish(), note: String::new() })
}

/// Latency at a share, of counts of each latency in their order.
fn at_share(counts: &[(u64, u64)], total: u64, share: f64) -> f64 {
    let wanted = (share * total as f64).ceil().max(1.0) as u64;
    let mut seen = 0;
    let found = counts.iter().find(|(_, count)| {
        seen += count;
        seen >= wanted
    });
    found.or(counts.last()).map_or(0.0, |(micros, _)| *micros as f64 / MILLIS)
}

/// The curve of percentiles, of all rounds together.
fn percentiles(cells: &[(usize, &str, Vec<&Run>)], step: Step) -> Option<Figure> {
    let mut curves = Vec::new();
    let mut most: f64 = 0.9;
    for (subject, name, runs) in cells {
        let mut counts: Vec<(u64, u64)> = runs.iter().flat_map(|run| run.latencies()).collect();
        counts.sort_unstable();
        let total: u64 = counts.iter().map(|count| count.1).sum();
        if total == 0 {
            continue;
        }
        let last = 1.0 - 1.0 / total as f64;
        most = most.max(last);
        let nines = (total as f64).log10();
        let places = (nines * PLACES_PER_NINE as f64) as usize;
        let shares = (0..places)
            .map(|place| 1.0 - 10f64.powf(-(place as f64) / PLACES_PER_NINE as f64))
            .chain([last]);
        let points: Vec<(f64, f64)> =
            shares.map(|share| (share, at_share(&counts, total, share))).collect();
        curves.push((*subject, *name, points));
    }
    if curves.is_empty() {
        return None;
    }
    let y = Axis::log(UNIT, curves.iter().flat_map(|c| c.2.iter().map(|p| p.1)));
    let title = "Latency by percentile, all rounds together".to_string();
    let frame = Frame { x: Axis::nines("share of operations", most), y, height: 320.0 };
    let mut drawing = frame.draw(&title);
    let mut legend = Vec::new();
    for (subject, name, points) in curves {
        let class = format!("line {}", colour(subject));
        drawing.line(&class, points.into_iter());
        legend.push((Swatch::Line(class), name.to_string()));
    }
    let note = match step.rate {
        Some(_) => "Latency counts from when an operation was to begin, not from when it did.",
        None => "",
    };
    Some(Figure { title, legend, svg: drawing.finish(), note: note.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_counts() {
        let counts = [(1000, 90), (2000, 9), (50_000, 1)];
        let at = |share| at_share(&counts, 100, share);
        assert_eq!([at(0.0), at(0.5), at(0.9)], [1.0, 1.0, 1.0]);
        assert_eq!([at(0.91), at(0.99), at(0.995), at(1.0)], [2.0, 2.0, 50.0, 50.0]);
    }
}
