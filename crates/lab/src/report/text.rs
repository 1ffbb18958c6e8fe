//! The summary for a terminal.

use super::html::verified;
use super::tables::{Table, tables};
use super::{headlines, warnings};
use crate::results::Experiment;
use std::fmt::Write;

/// Tables of the report that are shown on a terminal, from the first.
const TABLES: usize = 3;

/// Headlines, warnings, and the first tables.
pub fn text(experiment: &Experiment) -> String {
    let mut out = format!("\n{}\n", experiment.workload);
    for subject in &experiment.subjects {
        let _infallible =
            writeln!(out, "  {}: {}, {}", subject.name, subject.version, verified(subject));
    }
    for warning in warnings(experiment) {
        let word = if warning.is_grave { "WARNING" } else { "note" };
        let _infallible = writeln!(out, "{word}: {}", warning.text);
    }
    for table in tables(experiment).0.iter().take(TABLES) {
        put_table(&mut out, table);
    }
    out.push('\n');
    for sentence in headlines(experiment) {
        let _infallible = writeln!(out, "{sentence}");
    }
    out
}

/// Columns as wide as their widest cell; the first to the left, the others to the right.
fn put_table(out: &mut String, table: &Table) {
    let texts = || table.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()));
    let mut widths: Vec<usize> = table.head.iter().map(|word| word.chars().count()).collect();
    for row in texts() {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = (*width).max(text.chars().count());
        }
    }
    let _infallible = writeln!(out, "\n{}", table.title);
    let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
    for row in std::iter::once(head).chain(texts().map(Iterator::collect)) {
        let mut line = String::new();
        for (column, (text, width)) in row.iter().zip(&widths).enumerate() {
            let _infallible = match column {
                0 => write!(line, "  {text:<width$}"),
                _ => write!(line, "  {text:>width$}"),
            };
        }
        let _infallible = writeln!(out, "{}", line.trim_end());
    }
}
