//! Sizes with a ratchet: what is over the limit stands in `docs/tidy-ratchet.txt` with its
//! size, and may only shrink.

use super::source::SourceFile;
use std::collections::BTreeMap;
use std::path::Path;

const FILE_LINES: usize = 500;
const FILE_LINES_MAX: usize = 1000;
const FUNCTION_LINES: usize = 70;
const FUNCTION_LINES_MAX: usize = 200;
const LINE_COLUMNS: usize = 100;
const RATCHET: &str = "docs/tidy-ratchet.txt";

/// Checks lengths of files, functions and lines.
pub fn check(root: &Path, files: &[SourceFile]) -> Result<Vec<String>, String> {
    let path = root.join(RATCHET);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{RATCHET}: {e}"))?;
    let mut allowed = read_ratchet(&text)?;
    let mut findings = Vec::new();
    for file in files {
        let length = file.length_without_tests();
        if length > FILE_LINES_MAX {
            findings.push(format!("{}: {length} lines, {FILE_LINES_MAX} is the most", file.path));
        }
        compare(&mut findings, &mut allowed, file.path.clone(), length, FILE_LINES);
        for function in file.functions.iter().filter(|f| !f.in_test) {
            let name = format!("{}#{}", file.path, function.name);
            compare(&mut findings, &mut allowed, name, function.length, FUNCTION_LINES);
            if function.length > FUNCTION_LINES_MAX {
                findings.push(format!("{}:{}: an endless function", file.path, function.line));
            }
        }
        for (number, line) in file.lines.iter().enumerate() {
            if line.chars().count() > LINE_COLUMNS && !file.test[number] {
                findings.push(format!("{}:{}: over {LINE_COLUMNS} columns", file.path, number + 1));
            }
        }
    }
    for name in allowed.keys() {
        findings.push(format!("{RATCHET}: `{name}` is within the limit or gone; take it out"));
    }
    Ok(findings)
}

fn compare(
    findings: &mut Vec<String>,
    allowed: &mut BTreeMap<String, usize>,
    name: String,
    length: usize,
    limit: usize,
) {
    if length <= limit {
        return;
    }
    match allowed.remove(&name) {
        None => findings.push(format!("{name}: {length} lines, the limit is {limit}")),
        Some(most) if length > most => {
            findings
                .push(format!("{name}: grew from {most} to {length} lines; it may only shrink"));
        }
        Some(_) => {}
    }
}

fn read_ratchet(text: &str) -> Result<BTreeMap<String, usize>, String> {
    let mut allowed = BTreeMap::new();
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with("# ")) {
        let (length, name) = line.split_once(' ').ok_or(format!("{RATCHET}: bad line: {line}"))?;
        let length = length.parse().map_err(|_| format!("{RATCHET}: bad line: {line}"))?;
        allowed.insert(name.to_string(), length);
    }
    Ok(allowed)
}
