//! The tables of a report, as cells; HTML and Markdown draw them.

use super::{comparisons, parity};
use crate::results::{Experiment, Run};
use crate::statistics::median;
use crate::statistics::ratio::{Ratio, Verdict};
use crate::statistics::steady;

/// A table.
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<Cell>>,
}

/// A cell.
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) mark: Mark,
}

/// How a cell is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Plain,
    Better,
    Worse,
    Bad,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, mark: Mark::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

fn millis(micros: u64) -> String {
    format!("{:.2}", micros as f64 / 1000.0)
}

/// All tables, in their order; empty ones are left out.
pub(super) fn tables(experiment: &Experiment) -> Vec<Table> {
    let tables = [
        ratios(experiment),
        cells(experiment),
        costs(experiment),
        operations(experiment),
        errors(experiment),
        settings(experiment),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn head(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

/// More is better for throughput, less for the others.
fn ratio_cell(ratio: &Ratio, more_is_better: bool) -> Cell {
    let text = match ratio.high.is_finite() {
        true => format!("{:.2} ({:.2} to {:.2})", ratio.ratio, ratio.low, ratio.high),
        false => format!("{:.2} (too few runs)", ratio.ratio),
    };
    let mark = match (ratio.verdict, more_is_better) {
        (Verdict::NotDistinguishable, _) => Mark::Plain,
        (Verdict::Higher, true) | (Verdict::Lower, false) => Mark::Better,
        _ => Mark::Worse,
    };
    Cell { text, mark }
}

fn ratios(experiment: &Experiment) -> Table {
    let row = |comparison: super::Comparison| {
        let word = match comparison.throughput.verdict {
            Verdict::Higher => "faster",
            Verdict::Lower => "slower",
            Verdict::NotDistinguishable => "not distinguishable",
        };
        let cpu = comparison.cpu.map_or_else(|| "–".into(), |ratio| ratio_cell(&ratio, false));
        vec![
            comparison.clients.to_string().into(),
            ratio_cell(&comparison.throughput, true),
            ratio_cell(&comparison.latency, false),
            cpu,
            word.into(),
        ]
    };
    let names: Vec<&str> = experiment.servers.iter().map(|server| server.name.as_str()).collect();
    let which = match names.as_slice() {
        [a, b] => format!("{b} is, over {a}"),
        _ => String::new(),
    };
    Table {
        title: "Ratios with 95 % intervals",
        head: vec![
            "clients".into(),
            "operations/s".into(),
            "95th percentile".into(),
            "server CPU per operation".into(),
            which,
        ],
        rows: comparisons(experiment).into_iter().map(row).collect(),
    }
}

/// Each server with each number of clients.
fn each_cell(experiment: &Experiment) -> impl Iterator<Item = (&str, u32, Vec<&Run>)> {
    experiment.client_counts().into_iter().flat_map(move |clients| {
        experiment.servers.iter().enumerate().map(move |(number, server)| {
            (server.name.as_str(), clients, experiment.cell(number, clients))
        })
    })
}

fn middle(runs: &[&Run], of: impl Fn(&Run) -> f64) -> f64 {
    median(&runs.iter().map(|run| of(run)).collect::<Vec<_>>())
}

fn cells(experiment: &Experiment) -> Table {
    let rows = each_cell(experiment).map(|(name, clients, runs)| {
        let quantile = |place: usize| middle(&runs, |run| run.micros[place] as f64) as u64;
        let stalled: usize = runs.iter().map(|run| run.stalls().below_half).sum();
        let longest = runs.iter().map(|run| run.stalls().longest).max().unwrap_or(0);
        let seconds: usize = runs.iter().map(|run| run.seconds.len()).sum();
        let unsteady = runs.iter().any(|run| run.trend().verdict == steady::Verdict::NotSteady);
        vec![
            name.into(),
            clients.to_string().into(),
            runs.len().to_string().into(),
            format!("{:.1}", middle(&runs, Run::throughput)).into(),
            millis(quantile(0)).into(),
            millis(quantile(1)).into(),
            millis(quantile(2)).into(),
            millis(quantile(3)).into(),
            millis(quantile(4)).into(),
            Cell {
                text: format!("{stalled} of {seconds} s, longest {longest} s"),
                mark: if stalled > 0 { Mark::Worse } else { Mark::Plain },
            },
            if unsteady { "no".into() } else { "yes".into() },
        ]
    });
    let words = [
        "server",
        "clients",
        "runs",
        "operations/s",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "p99.9 ms",
        "longest ms",
        "below half of the median",
        "steady",
    ];
    Table {
        title: "Throughput and latency (medians of the runs)",
        head: head(&words),
        rows: rows.collect(),
    }
}

fn costs(experiment: &Experiment) -> Table {
    let rows = each_cell(experiment).filter_map(|(name, clients, runs)| {
        let known: Vec<_> = runs.iter().filter_map(|run| run.server_cost).collect();
        if known.is_empty() {
            return None;
        }
        let of = |value: fn(&crate::results::Cost) -> f64| {
            median(&known.iter().map(value).collect::<Vec<_>>())
        };
        let driver = middle(&runs, |run| run.client_cost.map_or(f64::NAN, |c| c.cpu_micros()));
        let number = |value: f64| Cell::from(format!("{value:.1}"));
        Some(vec![
            name.into(),
            clients.to_string().into(),
            number(of(|cost| cost.user_micros)),
            number(of(|cost| cost.system_micros)),
            number(of(|cost| cost.switches)),
            number(of(|cost| cost.read_bytes / 1024.0)),
            number(of(|cost| cost.written_bytes / 1024.0)),
            number(of(|cost| cost.resident_bytes as f64 / (1 << 20) as f64)),
            number(driver),
        ])
    });
    let words = [
        "server",
        "clients",
        "user us",
        "system us",
        "switches",
        "read KiB",
        "written KiB",
        "resident MiB",
        "driver us",
    ];
    Table { title: "Cost of an operation to the server", head: head(&words), rows: rows.collect() }
}

fn operations(experiment: &Experiment) -> Table {
    let mut rows = Vec::new();
    for (name, clients, runs) in each_cell(experiment) {
        let Some(run) = runs.first().filter(|run| run.operations.len() > 1) else { continue };
        for operation in &run.operations {
            rows.push(vec![
                name.into(),
                clients.to_string().into(),
                operation.name.as_str().into(),
                operation.completed.to_string().into(),
                operation.failed.to_string().into(),
                operation.retried.to_string().into(),
                millis(operation.micros[0]).into(),
                millis(operation.micros[1]).into(),
                millis(operation.micros[2]).into(),
                millis(operation.micros[4]).into(),
            ]);
        }
    }
    let words = [
        "server",
        "clients",
        "operation",
        "completed",
        "failed",
        "retried",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "longest ms",
    ];
    Table { title: "Operations (first run of each)", head: head(&words), rows }
}

fn errors(experiment: &Experiment) -> Table {
    let mut rows = Vec::new();
    for (name, clients, runs) in each_cell(experiment) {
        for (number, state, count) in runs.iter().flat_map(|run| &run.errors) {
            let what = match number {
                0 => "connection lost".to_string(),
                number => number.to_string(),
            };
            let cells = [name, &clients.to_string(), &what, state, &count.to_string()];
            rows.push(cells.into_iter().map(Cell::from).collect());
        }
    }
    let words = ["server", "clients", "error", "SQLSTATE", "times"];
    Table { title: "Errors that were not retried", head: head(&words), rows }
}

fn settings(experiment: &Experiment) -> Table {
    let row = |(name, a, b, is_equal, is_vital): (&str, String, String, bool, bool)| {
        let mark = match (is_equal, is_vital) {
            (true, _) => Mark::Plain,
            (false, true) => Mark::Bad,
            (false, false) => Mark::Worse,
        };
        vec![name.into(), Cell { text: a, mark }, Cell { text: b, mark }]
    };
    let mut words = vec!["variable".to_string()];
    words.extend(experiment.servers.iter().map(|server| server.name.clone()));
    Table {
        title: "Settings in effect",
        head: words,
        rows: parity(experiment).into_iter().map(row).collect(),
    }
}
