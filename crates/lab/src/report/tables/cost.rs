//! What an operation costs.

use super::{Cell, Table, each_cell, head, middle, plain_ratio, step_cells};
use crate::account::{Worn, between};
use crate::report::words::{bytes, figure};
use crate::results::{Cost, Experiment, Run, Subject};
use crate::statistics::median;

/// A figure of the cost of a run's operations.
struct Column {
    word: &'static str,
    of: fn(&Run) -> Option<f64>,
}

fn server(run: &Run, of: fn(&Cost) -> f64) -> Option<f64> {
    Some(of(&run.server_cost?))
}

const COLUMNS: [Column; 13] = [
    Column { word: "CPU us", of: |run| server(run, Cost::cpu_micros) },
    Column { word: "user us", of: |run| server(run, |cost| cost.user_micros) },
    Column { word: "kernel us", of: |run| server(run, |cost| cost.system_micros) },
    Column { word: "switches", of: |run| server(run, |cost| cost.switches) },
    Column { word: "read KB", of: |run| server(run, |cost| cost.read_bytes / 1000.0) },
    Column { word: "written KB", of: |run| server(run, |cost| cost.written_bytes / 1000.0) },
    Column { word: "log KB", of: |run| Some(run.server_cost?.log_bytes? / 1000.0) },
    Column { word: "syncs", of: |run| run.server_cost?.syncs },
    Column { word: "network KB", of: |run| Some(run.server_cost?.network_bytes? / 1000.0) },
    Column { word: "driver CPU us", of: |run| Some(run.client_cost?.cpu_micros()) },
    Column { word: "cores", of: |run| server(run, |cost| cost.cores) },
    Column { word: "resident MB", of: |run| server(run, |cost| cost.resident_bytes as f64 / 1e6) },
    Column { word: "open files", of: |run| server(run, |cost| cost.open_files as f64) },
];

/// The median of the runs that have the figure.
fn known(runs: &[&Run], of: fn(&Run) -> Option<f64>) -> f64 {
    median(&runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>())
}

pub(super) fn absolute(experiment: &Experiment) -> Table {
    let mut cells = each_cell(experiment);
    cells.retain(|(_, _, runs)| !are_idle(runs));
    let is_known =
        |column: &&Column| cells.iter().any(|(_, _, runs)| known(runs, column.of).is_finite());
    let columns: Vec<&Column> = COLUMNS.iter().filter(is_known).collect();
    let row = |(subject, step, runs): &(usize, crate::results::Step, Vec<&Run>)| {
        let mut row: Vec<Cell> = vec![experiment.subjects[*subject].name.as_str().into()];
        row.extend(step_cells(experiment, *step));
        row.extend(columns.iter().map(|column| Cell::from(figure(known(runs, column.of)))));
        row
    };
    let words: Vec<&str> = columns.iter().map(|column| column.word).collect();
    let rows = if columns.is_empty() { Vec::new() } else { cells.iter().map(row).collect() };
    Table::new("What an operation costs", &head(&["server"], experiment, &words), rows).noted(
        "Medians of the runs, for one operation; cores, resident memory and open files are of the \
         server's process as a whole. Read and written: what its process asked of devices. Log, \
         syncs and network: as the server counts them.",
    )
}

pub(super) fn relative(experiment: &Experiment) -> Table {
    let mut rows = Vec::new();
    // What is of the process as a whole is no cost of an operation.
    let is_cost = |column: &&Column| !["cores", "open files"].contains(&column.word);
    let columns: Vec<&Column> = COLUMNS.iter().filter(is_cost).collect();
    for step in experiment.steps() {
        let first = experiment.cell(0, step);
        for (number, subject) in experiment.subjects.iter().enumerate().skip(1) {
            let runs = experiment.cell(number, step);
            if first.is_empty() || runs.is_empty() || are_idle(&first) || are_idle(&runs) {
                continue;
            }
            let mut row: Vec<Cell> = vec![subject.name.as_str().into()];
            row.extend(step_cells(experiment, step));
            let throughput =
                middle(&runs, Run::throughput) / middle(&first, Run::throughput).max(1e-9);
            row.push(plain_ratio(throughput));
            row.extend(columns.iter().map(|column| {
                let (a, b) = (known(&first, column.of), known(&runs, column.of));
                // A ratio to what is next to nothing is one of chance; the next table has both.
                if a < 0.05 { "–".into() } else { plain_ratio(b / a) }
            }));
            rows.push(row);
        }
    }
    let mut words = vec!["operations/s"];
    words.extend(columns.iter().map(|column| column.word));
    let first = experiment.subjects.first().map_or("", |subject| subject.name.as_str());
    Table::new(
        &format!("Efficiency: what an operation costs relative to {first}"),
        &head(&["server"], experiment, &words),
        rows,
    )
    .noted("Blue: above 1.05. Yellow: below 0.95. But for operations/s, less is better.")
}

/// Whether nothing is known of what an operation costs: there was none.
fn are_idle(runs: &[&Run]) -> bool {
    runs.iter().all(|run| run.is_idle())
}

/// Bytes of a mean row: those of the load's statements, or what the server says of its tables.
fn row_bytes(subject: &Subject) -> Option<f64> {
    if let Some(load) = subject.load.filter(|load| load.rows > 0) {
        return Some(load.bytes as f64 / load.rows as f64);
    }
    let tables = &subject.spaces.last()?.tables;
    let rows: u64 = tables.iter().map(|table| table.rows).sum();
    let data: u64 = tables.iter().map(|table| table.data_bytes).sum();
    (rows > 0).then(|| data as f64 / rows as f64)
}

pub(super) fn amplification(experiment: &Experiment) -> Table {
    let mut rows = Vec::new();
    for (number, step, runs) in each_cell(experiment) {
        let subject = &experiment.subjects[number];
        let changed = known(&runs, |run| run.server_cost?.rows_changed);
        // Runs that change next to nothing have nothing to amplify.
        let Some(mean) = row_bytes(subject).filter(|_| changed >= 0.01) else { continue };
        let logical = changed * mean;
        let process = known(&runs, |run| Some(run.server_cost?.written_bytes));
        let device = known(&runs, device_bytes);
        let times = |written: f64| match written.is_finite() {
            true => Cell::from(format!("{:.1} ({})", written / logical, bytes(written))),
            false => "–".into(),
        };
        let mut row: Vec<Cell> = vec![subject.name.as_str().into()];
        row.extend(step_cells(experiment, step));
        row.extend([
            figure(changed).into(),
            bytes(logical).into(),
            times(known(&runs, |run| run.server_cost?.log_bytes)),
            times(process),
            times(device),
        ]);
        rows.push(row);
    }
    let after = ["rows changed", "logical bytes", "log", "server's process", "device"];
    Table::new("Write amplification of an operation", &head(&["server"], experiment, &after), rows)
        .noted(
            "Logical bytes are an estimate: rows changed, as the server counts them, times the \
             mean row of the load. The others are multiples of them, with the bytes behind. The \
             device's are of all processes together.",
        )
}

/// What the devices say of their own wear, of all runs of a step together.
pub(super) fn wear(experiment: &Experiment) -> Table {
    let mut rows = Vec::new();
    for (number, step, runs) in each_cell(experiment) {
        let worn: Vec<&Worn> =
            runs.iter().filter_map(|run| run.wear.as_ref()?.as_ref().ok()).collect();
        let (Some(first), Some(last)) = (worn.first(), worn.last()) else { continue };
        let written: u64 = worn.iter().map(|worn| worn.written_bytes()).sum();
        let flash: Option<u64> = worn.iter().map(|worn| worn.flash_bytes()).sum();
        let times = flash.filter(|_| written > 0).map(|flash| flash as f64 / written as f64);
        let used = [first.before, last.after].map(|wear| wear.used_percent);
        let or_dash = |text: Option<String>| Cell::from(text.unwrap_or_else(|| "–".into()));
        let mut row: Vec<Cell> = vec![experiment.subjects[number].name.as_str().into()];
        row.extend(step_cells(experiment, step));
        row.extend([
            bytes(written as f64).into(),
            or_dash(flash.map(|flash| bytes(flash as f64))),
            or_dash(times.map(figure)),
            or_dash(used[0].zip(used[1]).map(|(from, to)| format!("{from} % to {to} %"))),
        ]);
        rows.push(row);
    }
    let after = ["written to the device", "to its flash", "flash / device", "life used"];
    Table::new("What the device says of its own wear", &head(&["server"], experiment, &after), rows)
        .noted(
            "By SMART, of all that anybody wrote from before the warm-up until after the measured \
             time; the life that is used as its maker counts it.",
        )
}

/// Why the first device that says nothing of its wear does so.
pub(super) fn wear_unknown(experiment: &Experiment) -> Option<&str> {
    experiment.runs.iter().find_map(|run| run.wear.as_ref()?.as_ref().err()).map(String::as_str)
}

/// Bytes written to the device for each operation.
fn device_bytes(run: &Run) -> Option<f64> {
    let points: Vec<(f64, f64)> = run
        .samples
        .iter()
        .filter_map(|sample| Some((sample.seconds, sample.device?.written_bytes as f64)))
        .collect();
    let completed: u64 = run.completed().iter().sum();
    (points.len() > 1 && completed > 0)
        .then(|| between(&points, 0.0, run.seconds.len() as f64) / completed as f64)
}
