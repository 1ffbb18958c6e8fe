//! Bars: how long loads took, and what data take.

use crate::account::FileKind;
use crate::report::plot::{Bar, Figure, Swatch, bars, colour};
use crate::report::words::bytes;
use crate::results::Experiment;

/// Loads, then space at each moment.
pub(super) fn figures(experiment: &Experiment) -> Vec<Figure> {
    loads(experiment).into_iter().chain(spaces(experiment)).collect()
}

fn loads(experiment: &Experiment) -> Option<Figure> {
    let bar = |(number, subject): (usize, &crate::results::Subject)| {
        let load = subject.load?;
        Some(Bar {
            name: subject.name.clone(),
            parts: vec![(format!("area {}", colour(number)), load.seconds)],
            figure: format!(
                "{:.1} s, {:.0} rows/s",
                load.seconds,
                load.rows as f64 / load.seconds.max(1e-9)
            ),
            mark: None,
        })
    };
    let all: Vec<Bar> = experiment.subjects.iter().enumerate().filter_map(bar).collect();
    if all.is_empty() {
        return None;
    }
    let title = "Time to load, indexes included: shorter is better".to_string();
    let svg = bars(&title, "seconds", &all);
    Some(Figure { title, legend: Vec::new(), svg, note: String::new() })
}

/// One for each moment that any subject has, in the order of the first that has it.
fn spaces(experiment: &Experiment) -> Vec<Figure> {
    let mut moments: Vec<&str> = Vec::new();
    for space in experiment.subjects.iter().flat_map(|subject| &subject.spaces) {
        if !moments.contains(&space.moment.as_str()) {
            moments.push(&space.moment);
        }
    }
    moments.into_iter().filter_map(|moment| space_at(experiment, moment)).collect()
}

fn space_at(experiment: &Experiment, moment: &str) -> Option<Figure> {
    let mut is_told = false;
    let mut kinds = [false; FileKind::ALL.len()];
    let mut all = Vec::new();
    for subject in &experiment.subjects {
        let Some(space) = subject.spaces.iter().find(|space| space.moment == moment) else {
            continue;
        };
        let name = subject.name.clone();
        if let Some(files) = &space.files {
            let parts = files.by_kind.iter().enumerate().filter(|(_, length)| **length > 0);
            let part = |(kind, length): (usize, &u64)| {
                kinds[kind] = true;
                (format!("area s{kind}"), *length as f64 / 1e6)
            };
            all.push(Bar {
                name,
                parts: parts.map(part).collect(),
                figure: bytes(files.allocated_bytes as f64),
                mark: Some(files.apparent_bytes as f64 / 1e6),
            });
            continue;
        }
        is_told = true;
        let told: u64 = space.tables.iter().map(|table| table.data_bytes + table.index_bytes).sum();
        all.push(Bar {
            name,
            parts: vec![("area told".into(), told as f64 / 1e6)],
            figure: format!("{}, as it says", bytes(told as f64)),
            mark: None,
        });
    }
    if all.is_empty() {
        return None;
    }
    let words = FileKind::ALL.iter().enumerate().filter(|(kind, _)| kinds[*kind]);
    let mut legend: Vec<(Swatch, String)> = words
        .map(|(kind, word)| (Swatch::Area(format!("area s{kind}")), word.word().to_string()))
        .collect();
    let mut note = String::new();
    if kinds.iter().any(|is_used| *is_used) {
        note.push_str(
            "Bars: allocated on the device. Strokes: what the files say of their length.",
        );
    }
    if is_told {
        let text = "what the server says of its tables".to_string();
        legend.push((Swatch::Area("area told".into()), text));
        note.push_str(
            " Where the data directory cannot be read, information_schema.TABLES is shown.",
        );
    }
    let title = format!("Space {moment}");
    let svg = bars(&title, "MB", &all);
    Some(Figure { title, legend, svg, note })
}
