//! Statements and what they parse to, as data. Each file of `tests/data` holds a statement a
//! line; the answer stands beside it in `*.out`. `GANNET_BLESS=1` writes the answers anew.

use std::fs;
use std::path::PathBuf;
use syntax::{ParseOptions, parse};

/// The debug form without what says nothing.
fn compact(text: &str) -> String {
    let mut text = text.to_string();
    loop {
        let before = text.len();
        for (start, values) in [(", ", ""), ("{ ", "{ ")] {
            text = drop_empty_fields(&text, start, values);
        }
        if text.len() == before {
            return text.replace("{ }", "").replace(" ,", ",");
        }
    }
}

fn drop_empty_fields(text: &str, start: &str, keep: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(start) {
        let field = &rest[at + start.len()..];
        let name =
            field.len() - field.trim_start_matches(|c: char| c == '_' || c.is_alphanumeric()).len();
        let value = ["None", "false", "[]", "Default"].iter().find(|value| {
            field[name..].strip_prefix(": ").is_some_and(|v| {
                v.strip_prefix(**value).is_some_and(|after| after.starts_with([',', ' ']))
            })
        });
        match value {
            Some(value) if name > 0 => {
                result.push_str(&rest[..at]);
                result.push_str(keep);
                rest = &field[name + 2 + value.len()..];
                if !keep.is_empty() {
                    rest = rest.strip_prefix(", ").unwrap_or(rest);
                }
            }
            _ => {
                result.push_str(&rest[..at + start.len()]);
                rest = field;
            }
        }
    }
    result + rest
}

/// One line of printable text.
fn printable(text: &str) -> String {
    let escape = |c: char| -> String {
        if c.is_control() { c.escape_default().collect() } else { c.to_string() }
    };
    text.chars().map(escape).collect()
}

fn answer(line: &str) -> String {
    printable(&raw_answer(line))
}

fn raw_answer(line: &str) -> String {
    match parse(
        line.as_bytes(),
        &ParseOptions { parameters: line.contains('?'), ..ParseOptions::default() },
    ) {
        Ok(parsed) => {
            let rest = &line[parsed.end..];
            let rest = if rest.trim().is_empty() { String::new() } else { format!(" | {rest}") };
            format!("{}{rest}", compact(&format!("{:?}", parsed.statement)))
        }
        Err(error) => format!("{error}"),
    }
}

#[test]
fn statements_parse_as_recorded() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("test data")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "sql"))
        .collect();
    files.sort();
    assert!(files.len() >= 5, "test data is missing");
    let mut differences = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("readable");
        let answers: Vec<String> = text.lines().map(answer).collect();
        let recorded = file.with_extension("out");
        if std::env::var_os("GANNET_BLESS").is_some() {
            fs::write(&recorded, answers.join("\n") + "\n").expect("writable");
            continue;
        }
        let expected = fs::read_to_string(&recorded).unwrap_or_default();
        let mut expected = expected.lines();
        for (line, answer) in text.lines().zip(&answers) {
            if expected.next() != Some(answer.as_str()) {
                differences.push(format!("{}: {line}\n  {answer}", file.display()));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
