//! Sizes of files, functions and lines, tests not counted.

use super::source::SourceFile;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 70;
const LINE_COLUMNS: usize = 100;

/// What is longer than it may be.
pub fn check(files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files {
        let length = file.length_without_tests();
        if length > FILE_LINES {
            findings.push(format!("{}: {length} lines, the limit is {FILE_LINES}", file.path));
        }
        for function in file.functions.iter().filter(|f| !f.in_test) {
            if function.length > FUNCTION_LINES {
                findings.push(format!(
                    "{}:{}: `{}` has {} lines, the limit is {FUNCTION_LINES}",
                    file.path, function.line, function.name, function.length
                ));
            }
        }
        for (number, line) in file.lines.iter().enumerate() {
            if line.chars().count() > LINE_COLUMNS && !file.test[number] {
                findings.push(format!("{}:{}: over {LINE_COLUMNS} columns", file.path, number + 1));
            }
        }
    }
    findings
}
