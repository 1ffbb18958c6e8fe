//! Statements, under every combination of the parser's options.
#![no_main]

mod seeds;

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use syntax::{Fingerprint, ParseOptions};

fuzz_target!(
    init: seeds::write(statements()),
    |bytes: &[u8]| {
        let Some((first, text)) = bytes.split_first() else { return };
        let bit = |number: u8| first & (1 << number) != 0;
        let options = ParseOptions {
            ansi_quotes: bit(0),
            pipes_as_concat: bit(1),
            no_backslash_escapes: bit(2),
            high_not_precedence: bit(3),
            ignore_space: bit(4),
            parameters: bit(5),
            latin1_identifiers: bit(6),
        };
        let _ = Fingerprint::default().read(text, &options);
        if let Ok(parsed) = syntax::parse(text, &options) {
            assert!(parsed.end > 0 && parsed.end <= text.len());
        }
    }
);

/// Every line of the SQL tests is one to begin with.
fn statements() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/sql")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the SQL tests").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "test") {
                let text = std::fs::read_to_string(path).expect("a test file");
                let lines = text.lines().filter(|line| !line.starts_with('#'));
                all.extend(lines.map(|line| [&[0], line.as_bytes()].concat()));
            }
        }
    }
    all
}
