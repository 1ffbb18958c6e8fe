//! Statements, under every combination of the parser's options.
#![no_main]

use libfuzzer_sys::fuzz_target;
use syntax::ParseOptions;

fuzz_target!(|bytes: &[u8]| {
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
    if let Ok(parsed) = syntax::parse(text, &options) {
        assert!(parsed.end > 0 && parsed.end <= text.len());
    }
});
