//! The charts of a report.

use super::svg::{Chart, Line};
use crate::results::{Experiment, Run};
use crate::statistics::median;

/// Latencies are shown in milliseconds.
const MILLIS: f64 = 1000.0;

/// All charts, in their order.
pub(super) fn charts(experiment: &Experiment) -> Vec<Chart> {
    let mut charts = Vec::new();
    let counts = experiment.client_counts();
    if counts.len() > 1 {
        let throughput =
            by_clients(experiment, "Throughput by clients", "operations/s", false, |run| {
                run.throughput()
            });
        let latency = by_clients(
            experiment,
            "95th percentile of latency by clients",
            "milliseconds",
            true,
            |run| run.micros[1] as f64 / MILLIS,
        );
        charts.extend([throughput, latency]);
    }
    for clients in counts {
        charts.push(throughput_by_second(experiment, clients));
        for server in 0..experiment.servers.len() {
            charts.extend(latency_by_second(experiment, server, clients));
        }
    }
    charts
}

fn by_clients(
    experiment: &Experiment,
    title: &str,
    unit: &str,
    log_y: bool,
    of: impl Fn(&Run) -> f64,
) -> Chart {
    let line = |(number, server): (usize, &crate::results::Server)| {
        let point = |clients: u32| {
            let values: Vec<f64> = experiment.cell(number, clients).into_iter().map(&of).collect();
            (f64::from(clients), median(&values))
        };
        Line {
            name: server.name.clone(),
            points: experiment.client_counts().into_iter().map(point).collect(),
            colour: number,
            is_dashed: false,
        }
    };
    Chart {
        title: format!("{title} (medians of the rounds)"),
        x: "clients".into(),
        y: unit.into(),
        log_x: true,
        log_y,
        lines: experiment.servers.iter().enumerate().map(line).collect(),
    }
}

/// Of every run; the first round of a server is drawn full, the others dashed.
fn throughput_by_second(experiment: &Experiment, clients: u32) -> Chart {
    let mut lines = Vec::new();
    for (number, server) in experiment.servers.iter().enumerate() {
        for (place, run) in experiment.cell(number, clients).into_iter().enumerate() {
            let points = run
                .seconds
                .iter()
                .zip(0..)
                .map(|(second, at)| (f64::from(at), second.completed as f64));
            lines.push(Line {
                name: if place == 0 { server.name.clone() } else { String::new() },
                points: points.collect(),
                colour: number,
                is_dashed: place > 0,
            });
        }
    }
    Chart {
        title: format!("Throughput by second, {clients} clients"),
        x: "seconds since the measured time began".into(),
        y: "operations/s".into(),
        log_x: false,
        log_y: false,
        lines,
    }
}

/// Quantiles of the first run of a cell.
fn latency_by_second(experiment: &Experiment, server: usize, clients: u32) -> Option<Chart> {
    let run = *experiment.cell(server, clients).first()?;
    let quantile = |place: usize, name: &str| {
        let points = run.seconds.iter().zip(0..).filter(|(second, _)| second.completed > 0);
        Line {
            name: name.into(),
            points: points
                .map(|(second, at)| (f64::from(at), second.micros[place] as f64 / MILLIS))
                .collect(),
            colour: place + 1,
            is_dashed: place == 4,
        }
    };
    let names = ["median", "95 %", "99 %", "99.9 %", "longest"];
    Some(Chart {
        title: format!("Latency by second, {}, {clients} clients", experiment.servers[server].name),
        x: "seconds since the measured time began".into(),
        y: "milliseconds".into(),
        log_x: false,
        log_y: true,
        lines: (0..names.len()).map(|place| quantile(place, names[place])).collect(),
    })
}
