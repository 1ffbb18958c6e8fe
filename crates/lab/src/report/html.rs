//! The report as one file.

use super::charts::{Section, sections};
use super::plot::escaped;
use super::tables::{Cell, Mark, Table, tables};
use super::{headlines, warnings};
use crate::results::{Experiment, Subject, without_passwords};
use std::fmt::Write;
use types::DateTime;

const STYLE: &str = include_str!("style.css");

/// Longer texts are broken into lines.
const LONG_CHARACTERS: usize = 44;

/// The report.
pub fn html(experiment: &Experiment) -> String {
    let names: Vec<&str> = experiment.subjects.iter().map(|s| s.name.as_str()).collect();
    let title = format!("{}: {}", experiment.workload, names.join("; "));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{title}</title><style>{STYLE}\
         </style></head><body><h1>{title}</h1>",
        title = escaped(&title)
    );
    put_subjects(&mut out, experiment);
    put_warnings(&mut out, experiment);
    for sentence in headlines(experiment) {
        let _infallible = write!(out, "<p class=\"box headline\">{}</p>", escaped(&sentence));
    }
    put_verification(&mut out, experiment);
    let (above, below) = tables(experiment);
    above.iter().for_each(|table| put_table(&mut out, table));
    sections(experiment).iter().for_each(|section| put_section(&mut out, section));
    if !below.is_empty() {
        out.push_str("<h2>Details</h2>");
    }
    below.iter().for_each(|table| put_table(&mut out, table));
    put_reproduction(&mut out, experiment);
    out.push_str("</body></html>\n");
    out
}

fn put_subjects(out: &mut String, experiment: &Experiment) {
    for subject in &experiment.subjects {
        let variant = match &subject.origin {
            Some(origin) if !origin.variant.is_empty() => format!(", {}", origin.variant),
            _ => String::new(),
        };
        let _infallible = write!(
            out,
            "<p class=\"sub\">{}: {}{}</p>",
            escaped(&subject.name),
            escaped(&subject.version),
            escaped(&variant)
        );
    }
}

fn put_warnings(out: &mut String, experiment: &Experiment) {
    let (grave, others): (Vec<_>, Vec<_>) =
        warnings(experiment).into_iter().partition(|warning| warning.is_grave);
    for warning in grave {
        let _infallible = write!(out, "<p class=\"box banner\">{}</p>", escaped(&warning.text));
    }
    if others.is_empty() {
        return;
    }
    out.push_str("<div class=\"box odd\"><ul>");
    for warning in others {
        let _infallible = write!(out, "<li>{}</li>", escaped(&warning.text));
    }
    out.push_str("</ul></div>");
}

/// What was found of a subject's data after the runs.
pub(super) fn verified(subject: &Subject) -> &'static str {
    match subject.violations.as_deref() {
        None => "not verified",
        Some([]) => "VERIFIED",
        Some(_) => "FAILED",
    }
}

fn put_verification(out: &mut String, experiment: &Experiment) {
    for subject in &experiment.subjects {
        let (class, text) = match subject.violations.as_deref() {
            None => ("box odd", "nobody looked at its data after the runs.".to_string()),
            Some([]) => {
                ("box verified", "after the runs its data keep all rules of the workload.".into())
            }
            Some(broken) => ("box bad", format!("its data break {} rules.", broken.len())),
        };
        let _infallible = write!(
            out,
            "<p class=\"{class}\">{}: <b>{}</b>: {}</p>",
            escaped(&subject.name),
            verified(subject),
            escaped(&text)
        );
    }
}

/// Which columns have texts: those are written from the left, with what stands above them.
fn long_columns(table: &Table) -> Vec<bool> {
    let is_text = |cell: Option<&Cell>| cell.is_some_and(|c| c.text.len() > LONG_CHARACTERS);
    let of = |column| table.rows.iter().any(|row| is_text(row.get(column)));
    (0..table.head.len()).map(of).collect()
}

fn put_table(out: &mut String, table: &Table) {
    let title = escaped(&table.title);
    let _infallible = match table.is_folded {
        true => write!(out, "<details><summary><h3>{title}</h3></summary>"),
        false => write!(out, "<h3>{title}</h3>"),
    };
    out.push_str("<div class=\"scroll\"><table><tr>");
    let is_long = long_columns(table);
    for (word, is_long) in table.head.iter().zip(&is_long) {
        let class = if *is_long { " class=\"long\"" } else { "" };
        let _infallible = write!(out, "<th{class}>{}</th>", escaped(word));
    }
    out.push_str("</tr>");
    for row in &table.rows {
        out.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let mark = match cell.mark {
                Mark::Plain => "",
                Mark::Above => "above",
                Mark::Below => "below",
                Mark::Odd => "odd",
                Mark::Bad => "bad",
            };
            let long = if is_long.get(column) == Some(&true) { "long" } else { "" };
            let class = [mark, long].join(" ");
            let _infallible = match class.trim() {
                "" => write!(out, "<td>{}</td>", escaped(&cell.text)),
                class => write!(out, "<td class=\"{class}\">{}</td>", escaped(&cell.text)),
            };
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div>");
    if !table.note.is_empty() {
        let _infallible = write!(out, "<p class=\"note\">{}</p>", escaped(&table.note));
    }
    if table.is_folded {
        out.push_str("</details>");
    }
}

fn put_section(out: &mut String, section: &Section) {
    let _infallible = write!(out, "<h2>{}</h2>", escaped(&section.title));
    section.figures.iter().for_each(|figure| out.push_str(&figure.html()));
    for (title, figures) in &section.folded {
        let _infallible = write!(out, "<details><summary>{}</summary>", escaped(title));
        figures.iter().for_each(|figure| out.push_str(&figure.html()));
        out.push_str("</details>");
    }
}

fn put_reproduction(out: &mut String, experiment: &Experiment) {
    let began = match experiment.began_micros {
        0 => String::new(),
        micros => format!(" Begun {}.", utc(micros)),
    };
    let _infallible = write!(
        out,
        "<h2>How to reproduce</h2><pre>{}</pre><p class=\"sub\">Seed {}.{began} All figures are in \
         run.json beside this file, by second in series.csv, latencies in hdr/.</p>",
        escaped(&command_line(&experiment.command)),
        experiment.seed
    );
    if let Some(spec) = &experiment.spec {
        let _infallible = write!(
            out,
            "<details><summary>The description it was run from</summary><pre>{}</pre></details>",
            escaped(&without_passwords(spec))
        );
    }
}

/// Words as a shell wants them.
pub(super) fn command_line(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let words = words.iter().map(|word| without_passwords(word));
    let quoted = words.map(|word| match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A moment as people write it; empty outside the years 0 to 9999.
pub(super) fn utc(micros: i64) -> String {
    DateTime::from_epoch_micros(micros).map(|moment| format!("{moment} UTC")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_people_do() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(1_709_210_096_999_999), "2024-02-29 12:34:56 UTC");
    }

    #[test]
    fn a_column_of_texts_is_written_from_the_left() {
        let row = |text: &str| vec![Cell::from("8"), Cell::from(text)];
        let long = "the processors of the machine were busy all of the time";
        let table = Table {
            title: "x".into(),
            head: vec!["clients".into(), "because".into()],
            rows: vec![row("short"), row(long)],
            note: String::new(),
            is_folded: false,
        };
        let mut out = String::new();
        put_table(&mut out, &table);
        assert!(out.contains("<th>clients</th><th class=\"long\">because</th>"), "{out}");
        assert!(out.contains("<td>8</td><td class=\"long\">short</td>"), "{out}");
    }

    #[test]
    fn a_command_line_can_be_pasted() {
        let words = ["run", "--dsn", "A=mysql://x@h/d", "--options", "it's a b", ""];
        let line = command_line(&words.map(String::from));
        assert_eq!(line, "run --dsn A=mysql://x@h/d --options 'it'\\''s a b' ''");
    }
}
