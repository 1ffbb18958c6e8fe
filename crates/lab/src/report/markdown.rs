//! The summary as Markdown.

use super::tables::{Mark, tables};
use super::warnings;
use crate::results::Experiment;
use std::fmt::Write;

/// Headline, warnings, tables.
pub fn markdown(experiment: &Experiment) -> String {
    let names: Vec<&str> = experiment.servers.iter().map(|server| server.name.as_str()).collect();
    let mut out = format!("# {}: {}\n\n", names.join(" and "), experiment.workload);
    for server in &experiment.servers {
        let verified = match server.violations.as_deref() {
            None => "not verified",
            Some([]) => "VERIFIED",
            Some(_) => "FAILED verification",
        };
        let _infallible = writeln!(out, "- {}: {}, {verified}", server.name, server.version);
    }
    for warning in warnings(experiment) {
        let _infallible = writeln!(out, "- **{warning}**");
    }
    for table in tables(experiment) {
        let _infallible = write!(out, "\n## {}\n\n| {} |\n|", table.title, table.head.join(" | "));
        table.head.iter().for_each(|_| out.push_str("---|"));
        out.push('\n');
        for row in &table.rows {
            out.push('|');
            for cell in row {
                let text = cell.text.replace('|', "\\|");
                let _infallible = match cell.mark {
                    Mark::Plain => write!(out, " {text} |"),
                    _ => write!(out, " **{text}** |"),
                };
            }
            out.push('\n');
        }
    }
    let _infallible = write!(
        out,
        "\nReproduce with `{}`, seed {}.\n",
        experiment.command.join(" "),
        experiment.seed
    );
    out
}
