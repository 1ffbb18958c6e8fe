//! The summary as Markdown.

use super::html::{command_line, utc, verified};
use super::tables::{Mark, tables};
use super::{headlines, warnings};
use crate::results::Experiment;
use std::fmt::Write;

/// Headlines, warnings, tables.
pub fn markdown(experiment: &Experiment) -> String {
    let names: Vec<&str> = experiment.subjects.iter().map(|s| s.name.as_str()).collect();
    let mut out = format!("# {}: {}\n\n", experiment.workload, names.join("; "));
    for subject in &experiment.subjects {
        let _infallible =
            writeln!(out, "- {}: {}, {}", subject.name, subject.version, verified(subject));
    }
    for sentence in headlines(experiment) {
        let _infallible = writeln!(out, "- {sentence}");
    }
    for warning in warnings(experiment) {
        let _infallible = writeln!(out, "- **{}**", warning.text);
    }
    let (above, below) = tables(experiment);
    for table in above.into_iter().chain(below) {
        let _infallible = write!(out, "\n## {}\n\n| {} |\n|", table.title, table.head.join(" | "));
        table.head.iter().for_each(|_| out.push_str("---|"));
        out.push('\n');
        for row in &table.rows {
            out.push('|');
            for cell in row {
                let text = cell.text.replace('|', "\\|").replace('\n', " ");
                let _infallible = match cell.mark {
                    Mark::Odd | Mark::Bad => write!(out, " **{text}** |"),
                    _ => write!(out, " {text} |"),
                };
            }
            out.push('\n');
        }
        if !table.note.is_empty() {
            let _infallible = writeln!(out, "\n{}", table.note);
        }
    }
    let _infallible = write!(
        out,
        "\nReproduce with `{}`, seed {}; begun {}.\n",
        command_line(&experiment.command),
        experiment.seed,
        utc(experiment.began_micros)
    );
    out
}
