//! What servers and driver used, by second.

use super::{Shown, shaded, shown, span};
use crate::account::{Counters, Figures, Sample, between};
use crate::report::plot::{Axis, Bin, Figure, Frame, Swatch, bins, colour, time_unit};
use crate::results::{Experiment, Run, Step};

const POINTS: usize = 300;
/// A million bytes.
const MEGA: f64 = 1e6;

/// Written bytes for each subject, then processors, memory and space of all.
pub(super) fn figures(experiment: &Experiment, step: Step) -> Vec<Figure> {
    let shown = shown(experiment, step);
    let written: Vec<Written> =
        shown.iter().filter_map(|(_, name, run)| Written::of(name, run)).collect();
    let most = written.iter().map(|written| written.most).fold(0.0, f64::max);
    let mut found: Vec<Figure> = written.iter().map(|written| written.figure(most)).collect();
    found.extend(devices(&shown));
    found.extend(processors(&shown));
    let resident = |sample: &Sample| Some(sample.server?.resident_bytes as f64 / MEGA);
    found.extend(gauge(&shown, "Resident memory of the server", "MB", resident));
    let space = |sample: &Sample| Some(sample.allocated_bytes? as f64 / MEGA);
    found.extend(gauge(&shown, "Space allocated below the data directory", "MB", space));
    found
}

/// How much a sum grew in each second from `begin` on.
fn each_second(points: &[(f64, f64)], begin: f64, end: f64) -> Vec<f64> {
    let seconds = (end - begin).max(0.0) as usize;
    let at = |second: usize| begin + second as f64;
    (0..seconds).map(|second| between(points, at(second), at(second + 1)).max(0.0)).collect()
}

fn counted(run: &Run, of: impl Fn(&Counters) -> Option<u64>) -> Option<Vec<f64>> {
    let points: Vec<(f64, f64)> =
        run.counters.iter().filter_map(|(at, c)| Some((*at, of(c)? as f64))).collect();
    let (begin, end) = span(run);
    (points.len() > 1).then(|| each_second(&points, begin, end))
}

fn sampled(run: &Run, of: impl Fn(&Sample) -> Option<f64>) -> Option<Vec<f64>> {
    let points: Vec<(f64, f64)> =
        run.samples.iter().filter_map(|sample| Some((sample.seconds, of(sample)?))).collect();
    let (begin, end) = span(run);
    (points.len() > 1).then(|| each_second(&points, begin, end))
}

/// What is written, by what it is for: classes, names, bytes by second, from below.
fn parts(run: &Run) -> Vec<(&'static str, &'static str, Vec<f64>)> {
    let process = sampled(run, |sample| Some(sample.server?.written_bytes as f64));
    let log = counted(run, |counters| counters.log_bytes);
    let mut found: Vec<(&str, &str, Vec<f64>)> = Vec::new();
    let Some(log) = log else {
        return process.map(|all| ("area s3", "the server's process", all)).into_iter().collect();
    };
    found.push(("area s0", "log", log));
    let data = counted(run, |counters| counters.data_bytes);
    found.extend(data.map(|data| ("area s1", "data", data)));
    let doublewrite = counted(run, |counters| counters.doublewrite_bytes);
    found.extend(doublewrite.map(|copies| ("area s2", "doublewrite", copies)));
    if let Some(process) = process {
        let known = |second: usize| found.iter().map(|part| part.2[second]).sum::<f64>();
        let rest = process.iter().enumerate().map(|(second, all)| (all - known(second)).max(0.0));
        found.push(("area s3", "other, as the system counts", rest.collect()));
    }
    found.retain(|part| part.2.iter().sum::<f64>() > 0.0);
    found
}

/// Bytes written during a run.
struct Written<'a> {
    name: &'a str,
    run: &'a Shown<'a>,
    /// Classes, names and bytes a second, from below.
    parts: Vec<(&'static str, &'static str, Vec<Bin>)>,
    /// The highest of all, MB/s.
    most: f64,
}

impl<'a> Written<'a> {
    /// `None` if nothing is written, or nothing is known of it.
    fn of(name: &'a str, run: &'a Shown<'a>) -> Option<Self> {
        let begin = span(run).0;
        let parts: Vec<_> = parts(run)
            .into_iter()
            .map(|(class, word, values)| (class, word, bins(&values, begin, POINTS)))
            .collect();
        let places = parts.first()?.2.len();
        let total = |place: usize| parts.iter().map(|part| part.2[place].mean).sum::<f64>();
        let most = (0..places).map(total).fold(0.0, f64::max) / MEGA;
        if most <= 0.0 {
            return None;
        }
        Some(Self { name, run, parts, most })
    }

    fn figure(&self, most: f64) -> Figure {
        let (begin, end) = span(self.run);
        let (unit, unit_name) = time_unit(end - begin);
        let frame = Frame {
            x: Axis::span(
                &format!("{unit_name} since the measured time began"),
                begin / unit,
                end / unit,
            ),
            y: Axis::linear("MB/s", [most].into_iter()),
            height: 240.0,
        };
        let title = format!("{}: bytes written by second, run {}", self.name, self.run.number);
        let mut drawing = frame.draw(&title);
        let mut legend = Vec::new();
        for phase in shaded(self.run) {
            drawing.shade("phase", phase.begin.max(begin) / unit, phase.end.min(end) / unit);
        }
        let mut below = vec![0.0; self.parts[0].2.len()];
        for (class, word, bins) in &self.parts {
            let area: Vec<(f64, f64, f64)> = bins
                .iter()
                .zip(&mut below)
                .map(|(bin, below)| {
                    let from = *below;
                    *below += bin.mean / MEGA;
                    (bin.at / unit, from, *below)
                })
                .collect();
            drawing.band(class, &area);
            legend.push((Swatch::Area(class.to_string()), word.to_string()));
        }
        let events = self.run.events.iter().map(|event| event.seconds / unit);
        drawing.events(&events.collect::<Vec<_>>());
        Figure { title, legend, svg: drawing.finish(), note: String::new() }
    }
}

/// What all processes together write to the devices with the data.
fn devices(shown: &[(usize, &str, Shown<'_>)]) -> Option<Figure> {
    let (axis, unit) = time_of(shown);
    let line = |(subject, name, run): &(usize, &str, Shown<'_>)| {
        let written = sampled(run, |sample| Some(sample.device?.written_bytes as f64))?;
        let bins = bins(&written, span(run).0, POINTS).into_iter();
        let points = bins.map(|bin| (bin.at / unit, bin.mean / MEGA)).collect();
        Some((format!("line {}", colour(*subject)), name.to_string(), points))
    };
    let lines = shown.iter().filter_map(line).collect();
    let title = "Bytes written to the device of the data by second, by all processes together";
    together(title, "MB/s", (axis, unit), lines)
}

fn processors(shown: &[(usize, &str, Shown<'_>)]) -> Option<Figure> {
    let cores = |run: &Run, of: fn(&Sample) -> Option<Figures>| {
        let begin = span(run).0;
        let micros = sampled(run, |sample| Some(of(sample)?.cpu_micros() as f64))?;
        let cores: Vec<f64> = micros.into_iter().map(|micros| micros / 1e6).collect();
        Some(bins(&cores, begin, POINTS))
    };
    let mut lines = Vec::new();
    for (subject, name, run) in shown {
        let c = colour(*subject);
        let server = cores(run, |sample| sample.server);
        lines.extend(server.map(|bins| (format!("line {c}"), name.to_string(), bins)));
        let driver = cores(run, |sample| sample.client);
        let text = format!("driver, with {name}");
        lines.extend(driver.map(|bins| (format!("line dashed {c}"), text, bins)));
    }
    let x = time_of(shown);
    let unit = x.1;
    let points = lines.into_iter().map(|(class, name, bins)| {
        (class, name, bins.iter().map(|bin| (bin.at / unit, bin.mean)).collect())
    });
    together("Processors used by second", "processors", x, points.collect())
}

/// What is not a sum: drawn as it was.
fn gauge(
    shown: &[(usize, &str, Shown<'_>)],
    title: &str,
    unit: &str,
    of: fn(&Sample) -> Option<f64>,
) -> Option<Figure> {
    let x = time_of(shown);
    let line = |(subject, name, run): &(usize, &str, Shown<'_>)| {
        let known: Vec<(f64, f64)> =
            run.samples.iter().filter_map(|s| Some((s.seconds / x.1, of(s)?))).collect();
        let every = known.len().div_ceil(POINTS).max(1);
        let points: Vec<(f64, f64)> = known.into_iter().step_by(every).collect();
        (format!("line {}", colour(*subject)), name.to_string(), points)
    };
    let lines = shown.iter().map(line).filter(|line| line.2.len() > 1);
    together(title, unit, x.clone(), lines.collect())
}

/// The axis of time of several runs, and its unit in seconds.
fn time_of(shown: &[(usize, &str, Shown<'_>)]) -> (Axis, f64) {
    let begin = shown.iter().map(|(_, _, run)| span(run).0).fold(0.0, f64::min);
    let end = shown.iter().map(|(_, _, run)| span(run).1).fold(1.0, f64::max);
    let (unit, name) = time_unit(end - begin);
    (Axis::span(&format!("{name} since the measured time began"), begin / unit, end / unit), unit)
}

fn together(
    title: &str,
    unit: &str,
    (x, _): (Axis, f64),
    lines: Vec<(String, String, Vec<(f64, f64)>)>,
) -> Option<Figure> {
    let all = lines.iter().flat_map(|line| line.2.iter().map(|point| point.1));
    let y = Axis::linear(unit, all.collect::<Vec<_>>().into_iter());
    if lines.is_empty() {
        return None;
    }
    let title = title.to_string();
    let mut drawing = Frame { x, y, height: 240.0 }.draw(&title);
    let mut legend = Vec::new();
    for (class, name, points) in lines {
        drawing.line(&class, points.into_iter());
        legend.push((Swatch::Line(class), name));
    }
    Some(Figure { title, legend, svg: drawing.finish(), note: String::new() })
}
