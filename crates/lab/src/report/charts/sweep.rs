//! Throughput and latency over what was varied.

use crate::report::plot::{Axis, Figure, Frame, Swatch, colour};
use crate::results::{Experiment, Run, Step};
use crate::statistics::median;

/// Latencies are shown in milliseconds.
const MILLIS: f64 = 1000.0;

/// A figure of a run that is drawn over the steps.
struct Drawn {
    title: &'static str,
    y: &'static str,
    is_log: bool,
    of: fn(&Run) -> f64,
}

const DRAWN: [Drawn; 2] = [
    Drawn { title: "Throughput", y: "operations/s", is_log: false, of: Run::throughput },
    Drawn {
        title: "95th percentile of latency",
        y: "milliseconds",
        is_log: true,
        of: |run| run.micros[1] as f64 / MILLIS,
    },
];

/// Both of [`DRAWN`]; none of a single step.
pub(super) fn figures(experiment: &Experiment) -> Vec<Figure> {
    let steps = experiment.steps();
    if steps.len() < 2 {
        return Vec::new();
    }
    let is_of_rates = steps.iter().all(|step| step.clients == steps[0].clients);
    let place = |step: &Step| match step.rate {
        Some(rate) if is_of_rates => rate,
        _ => f64::from(step.clients),
    };
    let x = if is_of_rates { "operations/s asked for" } else { "clients" };
    DRAWN.iter().map(|drawn| figure(experiment, drawn, x, &place)).collect()
}

fn figure(experiment: &Experiment, drawn: &Drawn, x: &str, place: &dyn Fn(&Step) -> f64) -> Figure {
    let steps = experiment.steps();
    let mut places: Vec<f64> = steps.iter().map(place).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let all = experiment.runs.iter().map(drawn.of);
    let y = match drawn.is_log {
        true => Axis::log(drawn.y, all),
        false => Axis::linear(drawn.y, all),
    };
    let frame = Frame { x: Axis::log_of(x, &places), y, height: 330.0 };
    let title = format!("{} by {x}: medians of the rounds, least and greatest", drawn.title);
    let mut drawing = frame.draw(&title);
    let mut legend = Vec::new();
    for (number, subject) in experiment.subjects.iter().enumerate() {
        let mut points: Vec<(f64, [f64; 3])> = steps
            .iter()
            .map(|step| {
                let mut runs = experiment.cell(number, *step);
                // Without operations there is no latency.
                runs.retain(|run| !(drawn.is_log && run.is_idle()));
                let values: Vec<f64> = runs.into_iter().map(drawn.of).collect();
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = values.iter().copied().fold(0.0, f64::max);
                (place(step), [least, median(&values), most])
            })
            .filter(|point| point.1[1].is_finite())
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let c = colour(number);
        drawing.line(&format!("line {c}"), points.iter().map(|p| (p.0, p.1[1])));
        let spread = points.iter().filter(|p| p.1[2] > p.1[0] * 1.001);
        drawing.whiskers(&format!("line thin {c}"), spread.map(|p| (p.0, p.1[0], p.1[2])));
        let text = |p: &(f64, [f64; 3])| {
            let text = format!("{}: {} {x}: {:.2} {}", subject.name, p.0, p.1[1], drawn.y);
            (p.0, p.1[1], text)
        };
        drawing.circles(&format!("dot {c}"), &points.iter().map(text).collect::<Vec<_>>());
        legend.push((Swatch::Line(format!("line {c}")), subject.name.clone()));
    }
    Figure { title, legend, svg: drawing.finish(), note: String::new() }
}
