//! Settings, sizes, and the order of the runs.

use super::{Cell, Mark, Table};
use crate::report::parity;
use crate::report::words::{bytes, figure, millis};
use crate::results::{Experiment, Weight};

pub(super) fn loads(experiment: &Experiment) -> Table {
    let row = |subject: &crate::results::Subject| {
        let load = subject.load?;
        let seconds = load.seconds.max(1e-9);
        Some(vec![
            subject.name.as_str().into(),
            format!("{:.1}", load.seconds).into(),
            load.rows.to_string().into(),
            bytes(load.bytes as f64).into(),
            format!("{:.0}", load.rows as f64 / seconds).into(),
            format!("{:.1}", load.bytes as f64 / 1e6 / seconds).into(),
        ])
    };
    let words = ["server", "seconds", "rows", "statements", "rows/s", "MB/s"];
    Table::new("Load", &words, experiment.subjects.iter().filter_map(row).collect())
}

pub(super) fn spaces(experiment: &Experiment) -> Table {
    let mut rows = Vec::new();
    for subject in &experiment.subjects {
        for space in &subject.spaces {
            let told: u64 = space.tables.iter().map(|t| t.data_bytes + t.index_bytes).sum();
            let file = |of: fn(&crate::account::Space) -> u64| match &space.files {
                Some(files) => Cell::from(bytes(of(files) as f64)),
                None => "not readable here".into(),
            };
            rows.push(vec![
                subject.name.as_str().into(),
                space.moment.as_str().into(),
                file(|files| files.allocated_bytes),
                file(|files| files.apparent_bytes),
                bytes(told as f64).into(),
            ]);
            for table in &space.tables {
                let name = format!("{}: {}", space.moment, table.name);
                let text = format!(
                    "{} rows, {} and {} of indexes",
                    table.rows,
                    bytes(table.data_bytes as f64),
                    bytes(table.index_bytes as f64)
                );
                let cells = [subject.name.as_str(), &name, "", "", &text];
                rows.push(cells.into_iter().map(Cell::from).collect());
            }
        }
    }
    let words = ["server", "when", "allocated", "length of files", "as the server says"];
    Table::new("Space", &words, rows).folded()
}

/// Files of the last moment that have a line each.
const FILES: usize = 12;

pub(super) fn files(experiment: &Experiment) -> Table {
    let mut rows = Vec::new();
    for subject in &experiment.subjects {
        let Some(space) = subject.spaces.last() else { continue };
        for file in space.files.iter().flat_map(|files| &files.files).take(FILES) {
            rows.push(vec![
                subject.name.as_str().into(),
                file.name.as_str().into(),
                crate::account::FileKind::of(&file.name).word().into(),
                bytes(file.allocated_bytes as f64).into(),
                bytes(file.apparent_bytes as f64).into(),
            ]);
        }
    }
    let words = ["server", "file", "what for", "allocated", "length"];
    Table::new("The largest files, at the end", &words, rows).folded()
}

pub(super) fn parity_table(experiment: &Experiment) -> Table {
    let row = |row: crate::results::ParityRow| {
        let mark = match (row.equal, row.forbids(), row.weight) {
            (true, ..) | (_, _, Weight::Information) => Mark::Plain,
            (false, true, _) => Mark::Bad,
            (false, false, _) => Mark::Odd,
        };
        let what = match row.meaning.is_empty() {
            true => row.what.clone(),
            false => format!("{}: {}", row.what, row.meaning),
        };
        let mut cells = vec![Cell::from(what)];
        cells.extend(
            row.values
                .into_iter()
                .map(|value| Cell { text: value.unwrap_or_else(|| "–".into()), mark }),
        );
        cells.push(
            match row.weight {
                Weight::Durability => "durability",
                Weight::Memory => "memory",
                Weight::Behaviour => "behaviour",
                Weight::Information => "information",
            }
            .into(),
        );
        cells.push(row.note.into());
        cells
    };
    let mut words = vec!["setting"];
    words.extend(experiment.subjects.iter().map(|subject| subject.name.as_str()));
    words.extend(["weight", "note"]);
    let mut rows: Vec<Vec<Cell>> = parity(experiment).into_iter().map(row).collect();
    let command = |subject: &crate::results::Subject| match &subject.origin {
        Some(origin) => Cell::from(origin.command_line.join(" ")),
        None => "was there already".into(),
    };
    if experiment.subjects.iter().any(|subject| subject.origin.is_some()) {
        let mut cells = vec![Cell::from("started as")];
        cells.extend(experiment.subjects.iter().map(command));
        cells.extend(["information".into(), "".into()]);
        rows.push(cells);
    }
    Table::new("Settings in effect", &words, rows).noted(
        "Red: unequal durability or memory, which void a comparison. Yellow: unequal otherwise.",
    )
}

pub(super) fn order(experiment: &Experiment) -> Table {
    let row = |(number, run): (usize, &crate::results::Run)| {
        vec![
            Cell::from((number + 1).to_string()),
            experiment.subjects[run.subject].name.as_str().into(),
            run.step().label().into(),
            (run.round + 1).to_string().into(),
            run.beginning.as_deref().unwrap_or("warm").into(),
            run.seconds.len().to_string().into(),
            figure(run.throughput()).into(),
            millis(run.micros[1] as f64).into(),
            run.limit.as_ref().map_or_else(|| "–".into(), |limit| limit.word().into()),
            run.lateness_micros.map_or_else(|| "–".into(), |l| millis(l[2] as f64).into()),
        ]
    };
    let words = [
        "run",
        "server",
        "step",
        "round",
        "begun",
        "seconds",
        "operations/s",
        "p95 ms",
        "limited by",
        "driver late p99 ms",
    ];
    let rows = experiment.runs.iter().enumerate().map(row).collect();
    Table::new("The runs in their order", &words, rows).folded()
}

pub(super) fn machine(experiment: &Experiment) -> Table {
    let row = |(name, value): (&String, &String)| vec![name.as_str().into(), value.as_str().into()];
    let mut rows: Vec<Vec<Cell>> = experiment.machine.iter().map(row).collect();
    if let Some(why) = super::cost::wear_unknown(experiment) {
        rows.push(vec!["wear of the device".into(), format!("not known: {why}").into()]);
    }
    Table::new("The machine", &["what", "value"], rows).folded()
}
