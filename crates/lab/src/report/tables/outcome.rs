//! What failed, and what a workload says of its runs.

use super::{Cell, Mark, Table, each_cell, head, step_cells};
use crate::results::{Experiment, Run};
use std::collections::BTreeMap;

pub(super) fn failures(experiment: &Experiment) -> Table {
    let row = |(subject, step, runs): (usize, _, Vec<&Run>)| {
        let sum = |of: &dyn Fn(&Run) -> u64| runs.iter().map(|run| of(run)).sum::<u64>();
        let completed = sum(&|run| run.operations.iter().map(|o| o.completed).sum());
        let failed = sum(&|run| run.failed_and_retried().0);
        let retried = sum(&|run| run.failed_and_retried().1);
        let reconnected = sum(&|run| run.seconds.iter().map(|s| s.reconnected).sum());
        let ratio = (failed + retried) as f64 / (completed + failed + retried).max(1) as f64;
        let odd = |count: u64| Cell {
            text: count.to_string(),
            mark: if count > 0 { Mark::Odd } else { Mark::Plain },
        };
        let mut row: Vec<Cell> = vec![experiment.subjects[subject].name.as_str().into()];
        row.extend(step_cells(experiment, step));
        row.extend([
            completed.to_string().into(),
            odd(failed),
            retried.to_string().into(),
            odd(reconnected),
            format!("{:.3} %", ratio * 100.0).into(),
        ]);
        row
    };
    let after = ["completed", "failed", "tried again", "connected again", "abort ratio"];
    Table::new(
        "Failures and retries",
        &head(&["server"], experiment, &after),
        each_cell(experiment).into_iter().map(row).collect(),
    )
    .noted(
        "Of all runs together. Tried again: after deadlocks and waits for locks that took too \
         long. Abort ratio: the share of tries that did not complete.",
    )
}

pub(super) fn errors(experiment: &Experiment) -> Table {
    let mut rows = Vec::new();
    for (subject, step, runs) in each_cell(experiment) {
        let mut counts: BTreeMap<(u16, &str), u64> = BTreeMap::new();
        for (number, state, count) in runs.iter().flat_map(|run| &run.errors) {
            *counts.entry((*number, state)).or_default() += count;
        }
        for ((number, state), count) in counts {
            let message = runs.iter().find_map(|run| run.messages.get(&number)).cloned();
            let what = match number {
                0 => "connection lost".to_string(),
                number => number.to_string(),
            };
            let mut row: Vec<Cell> = vec![experiment.subjects[subject].name.as_str().into()];
            row.extend(step_cells(experiment, step));
            row.extend([
                what.into(),
                if state.is_empty() { "–".into() } else { state.into() },
                count.to_string().into(),
                message.unwrap_or_default().into(),
            ]);
            rows.push(row);
        }
    }
    let after = ["error", "SQLSTATE", "times", "the first of them"];
    Table::new("Errors that were not tried again", &head(&["server"], experiment, &after), rows)
}

pub(super) fn findings(experiment: &Experiment) -> Table {
    let mut rows = Vec::new();
    for (subject, step, runs) in each_cell(experiment) {
        for (run, finding) in runs.iter().flat_map(|run| run.findings.iter().map(move |f| (run, f)))
        {
            let mut row: Vec<Cell> = vec![experiment.subjects[subject].name.as_str().into()];
            row.extend(step_cells(experiment, step));
            let (text, mark) = if finding.met { ("yes", Mark::Plain) } else { ("NO", Mark::Bad) };
            row.extend([
                (run.round + 1).to_string().into(),
                finding.name.as_str().into(),
                finding.wanted.as_str().into(),
                finding.found.as_str().into(),
                Cell { text: text.into(), mark },
            ]);
            rows.push(row);
        }
    }
    let after = ["round", "what", "wanted", "found", "met"];
    Table::new("What the workload wants", &head(&["server"], experiment, &after), rows)
}
