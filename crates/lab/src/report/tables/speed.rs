//! Throughput and latency.

use super::{
    Cell, Mark, Table, comparisons, each_cell, head, middle, plain_ratio, ratio_cell, step_cells,
};
use crate::report::metric;
use crate::report::words::{figure, millis};
use crate::results::{Experiment, Run};
use crate::statistics::ratio::Verdict;
use crate::statistics::steady;

pub(super) fn ratios(experiment: &Experiment) -> Table {
    let dash = || Cell::from("–");
    let row = |comparison: super::super::Comparison| {
        let word = match comparison.throughput.verdict {
            Verdict::Higher => "faster",
            Verdict::Lower => "slower",
            Verdict::NotDistinguishable => "not distinguishable",
        };
        let mut row: Vec<Cell> = vec![experiment.subjects[comparison.subject].name.as_str().into()];
        row.extend(step_cells(experiment, comparison.step));
        row.extend([
            word.into(),
            ratio_cell(&comparison.throughput),
            ratio_cell(&comparison.latency),
            comparison.cpu.as_ref().map_or_else(dash, ratio_cell),
            comparison.written.as_ref().map_or_else(dash, ratio_cell),
        ]);
        row
    };
    let after =
        ["throughput is", "operations/s", "p95 latency", "server CPU/op", "written bytes/op"];
    let first = experiment.subjects.first().map_or("", |subject| subject.name.as_str());
    Table::new(
        &format!("Ratios to {first}, with 95 % intervals"),
        &head(&["server"], experiment, &after),
        comparisons(experiment).into_iter().map(row).collect(),
    )
    .noted(
        "Blue: above 1.05. Yellow: below 0.95. More is better for operations/s, less for the \
         others. A verdict needs an interval without 1, ranks of the runs that chance does not \
         explain, and a difference of 1 %.",
    )
}

pub(super) fn cells(experiment: &Experiment) -> Table {
    let metric = metric(experiment);
    let row = |(subject, step, runs): (usize, _, Vec<&Run>)| {
        let quantile = |place: usize| millis(middle(&runs, |run| run.micros[place] as f64));
        let throughputs = || runs.iter().map(|run| run.throughput());
        let least = throughputs().fold(f64::INFINITY, f64::min);
        let most = throughputs().fold(0.0, f64::max);
        let mut row: Vec<Cell> = vec![experiment.subjects[subject].name.as_str().into()];
        row.extend(step_cells(experiment, step));
        row.push(runs.len().to_string().into());
        if let Some((_, operation)) = metric {
            row.push(figure(middle(&runs, |run| a_minute(run, operation))).into());
        }
        row.push(figure(middle(&runs, Run::throughput)).into());
        row.push(format!("{} to {}", figure(least), figure(most)).into());
        row.extend((0..5).map(|place| Cell::from(quantile(place))));
        row
    };
    let mut after = vec!["runs"];
    after.extend(metric.map(|(name, _)| name));
    after.extend(["operations/s", "least to most"]);
    after.extend(["p50 ms", "p95 ms", "p99 ms", "p99.9 ms", "longest ms"]);
    let note = match metric {
        Some(_) => "Medians of the runs. NOPM: new orders a minute, of a workload like TPC-C.",
        None => "Medians of the runs.",
    };
    Table::new(
        "Throughput and latency",
        &head(&["server"], experiment, &after),
        each_cell(experiment).into_iter().map(row).collect(),
    )
    .noted(note)
}

/// Completed operations of a kind in a minute.
fn a_minute(run: &Run, operation: &str) -> f64 {
    let of_kind = run.operations.iter().filter(|o| o.name == operation);
    let completed: u64 = of_kind.map(|o| o.completed).sum();
    completed as f64 * 60.0 / run.seconds.len().max(1) as f64
}

pub(super) fn stability(experiment: &Experiment) -> Table {
    let row = |(subject, step, runs): (usize, _, Vec<&Run>)| {
        let seconds: usize = runs.iter().map(|run| run.seconds.len()).sum();
        let sum = |of: fn(&crate::statistics::stall::Stalls) -> usize| {
            let count: usize = runs.iter().map(|run| of(&run.stalls())).sum();
            let mark = if count > 0 { Mark::Odd } else { Mark::Plain };
            Cell { text: format!("{count} of {seconds}"), mark }
        };
        let longest = runs.iter().map(|run| run.stalls().longest).max().unwrap_or(0);
        let trends: Vec<_> = runs.iter().map(|run| run.trend()).collect();
        let unsteady = trends.iter().filter(|t| t.verdict == steady::Verdict::NotSteady).count();
        let short = trends.iter().filter(|t| t.verdict == steady::Verdict::TooShort).count();
        let steadiness = match (unsteady, short) {
            (0, 0) => "steady".into(),
            (0, _) => Cell::from("too short to tell"),
            (count, _) => {
                Cell { text: format!("{count} of {} not steady", runs.len()), mark: Mark::Odd }
            }
        };
        let mut row: Vec<Cell> = vec![experiment.subjects[subject].name.as_str().into()];
        row.extend(step_cells(experiment, step));
        row.extend([
            sum(|stalls| stalls.below_half),
            sum(|stalls| stalls.below_tenth),
            sum(|stalls| stalls.empty),
            format!("{longest} s").into(),
            millis(runs.iter().map(|run| run.micros[4]).max().unwrap_or(0) as f64).into(),
            format!("{:.1} %", middle(&runs, |run| run.stalls().variation) * 100.0).into(),
            steadiness,
        ]);
        row
    };
    let after = [
        "s below 50 %",
        "s below 10 %",
        "s without any",
        "longest stall",
        "longest ms",
        "variation",
        "steady?",
    ];
    Table::new(
        "Stalls and steadiness",
        &head(&["server"], experiment, &after),
        each_cell(experiment).into_iter().map(row).collect(),
    )
    .noted(
        "Seconds below shares of the run's median throughput, of all runs together. Variation: \
         standard deviation over mean of the seconds, median of the runs.",
    )
}

/// What held the runs up.
pub(super) fn limits(experiment: &Experiment) -> Table {
    let row = |(subject, step, runs): (usize, _, Vec<&Run>)| {
        let limits: Vec<_> = runs.iter().filter_map(|run| run.limit.as_ref()).collect();
        let first = limits.first()?;
        let mut words: Vec<&str> = limits.iter().map(|limit| limit.word()).collect();
        words.sort_unstable();
        words.dedup();
        let mut row: Vec<Cell> = vec![experiment.subjects[subject].name.as_str().into()];
        row.extend(step_cells(experiment, step));
        row.extend([words.join(", ").into(), first.why().into()]);
        Some(row)
    };
    Table::new(
        "What limited the runs",
        &head(&["server"], experiment, &["limited by", "because"]),
        each_cell(experiment).into_iter().filter_map(row).collect(),
    )
    .noted(
        "By the accounts of driver, machine, device and locks; the figures are those of the first \
         run.",
    )
}

/// p95 and its ratios by step, if there are several.
pub(super) fn by_step(experiment: &Experiment) -> Table {
    let names: Vec<&str> = experiment.subjects.iter().map(|s| s.name.as_str()).collect();
    let over: Vec<String> =
        names.iter().skip(1).map(|name| format!("{name} / {}", names[0])).collect();
    let mut words: Vec<&str> = head(&[], experiment, &names);
    words.extend(over.iter().map(String::as_str));
    let steps = experiment.steps();
    let row = |step: &crate::results::Step| {
        let p95: Vec<f64> = (0..names.len())
            .map(|subject| middle(&experiment.cell(subject, *step), |run| run.micros[1] as f64))
            .collect();
        let mut row = step_cells(experiment, *step);
        row.extend(p95.iter().map(|micros| match micros.is_finite() {
            true => Cell::from(millis(*micros)),
            false => "–".into(),
        }));
        row.extend(p95.iter().skip(1).map(|micros| plain_ratio(micros / p95[0])));
        row
    };
    let rows = if steps.len() > 1 { steps.iter().map(row).collect() } else { Vec::new() };
    Table::new("95th percentile of latency, milliseconds", &words, rows)
}

pub(super) fn operations(experiment: &Experiment) -> Table {
    let mut rows = Vec::new();
    for (subject, step, runs) in each_cell(experiment) {
        let Some(first) = runs.first() else { continue };
        for place in 0..first.operations.len() {
            let all: Vec<_> = runs.iter().filter_map(|run| run.operations.get(place)).collect();
            let sum = |of: fn(&crate::results::Operation) -> u64| -> u64 {
                all.iter().map(|operation| of(operation)).sum()
            };
            let completed = sum(|operation| operation.completed);
            let total: u64 =
                runs.iter().flat_map(|run| run.operations.iter().map(|o| o.completed)).sum();
            let quantile = |q: usize| {
                let values: Vec<f64> = all.iter().map(|o| o.micros[q] as f64).collect();
                Cell::from(millis(crate::statistics::median(&values)))
            };
            let service: Vec<f64> = all.iter().map(|o| o.service_micros[1] as f64).collect();
            let mut row: Vec<Cell> = vec![experiment.subjects[subject].name.as_str().into()];
            row.extend(step_cells(experiment, step));
            row.extend([
                first.operations[place].name.as_str().into(),
                completed.to_string().into(),
                format!("{:.2} %", completed as f64 * 100.0 / total.max(1) as f64).into(),
                sum(|operation| operation.failed).to_string().into(),
                sum(|operation| operation.retried).to_string().into(),
            ]);
            row.extend([0, 1, 2, 3, 4].map(quantile));
            row.push(millis(crate::statistics::median(&service)).into());
            rows.push(row);
        }
    }
    let after = [
        "operation",
        "completed",
        "share",
        "failed",
        "retried",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "p99.9 ms",
        "longest ms",
        "service p95 ms",
    ];
    Table::new("Operations", &head(&["server"], experiment, &after), rows).noted(
        "Counts of all runs together, medians of their quantiles. Latency is from when an \
         operation was to begin, service from when it was sent.",
    )
}
