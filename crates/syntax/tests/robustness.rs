//! No text makes the parser panic, run away or use more stack than a fiber has.

use base::Random;
use std::fs;
use std::path::PathBuf;
use syntax::{Fingerprint, ParseErrorKind, ParseOptions, parse};

fn corpus() -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).expect("test data") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|e| e == "sql") {
            let text = fs::read(path).expect("readable");
            lines.extend(text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
        }
    }
    lines.sort();
    lines
}

/// Cuts, doubles, exchanges and replaces bytes and pieces.
fn mutate(random: &mut Random, text: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(3) {
        let length = text.len().max(1) as u64;
        let at = random.below(length) as usize;
        let end = (at + random.below(20) as usize).min(text.len());
        match random.below(6) {
            0 => text.truncate(at),
            1 => drop(text.drain(at.min(end)..end)),
            2 => text.insert(at.min(text.len()), random.below(256) as u8),
            3 => {
                let piece = text[at.min(end)..end].to_vec();
                text.splice(at.min(end)..at.min(end), piece);
            }
            4 => text.extend_from_slice(other),
            _ => {
                let special = b"()'\"`*/;,.@?-#\\!{}\0";
                let byte = special[random.below(special.len() as u64) as usize];
                text.insert(at.min(text.len()), byte);
            }
        }
    }
}

#[test]
fn mutated_statements_are_answered() {
    let lines = corpus();
    let rounds: u64 =
        std::env::var("GANNET_SIM_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(4) * 10_000;
    let mut random = Random::new(42);
    let mut fingerprint = Fingerprint::default();
    let (mut parsed, mut refused) = (0u64, 0u64);
    for _ in 0..rounds {
        let pick = |random: &mut Random| &lines[random.below(lines.len() as u64) as usize];
        let mut text = pick(&mut random).clone();
        let other = pick(&mut random).clone();
        mutate(&mut random, &mut text, &other);
        let options = ParseOptions {
            ansi_quotes: random.below(8) == 0,
            no_backslash_escapes: random.below(8) == 0,
            latin1_identifiers: random.below(8) == 0,
            parameters: random.below(2) == 0,
            ..ParseOptions::default()
        };
        let readable = fingerprint.read(&text, &options);
        match parse(&text, &options) {
            Ok(statement) => {
                parsed += 1;
                assert!(statement.end <= text.len());
                assert!(readable || statement.end < text.len());
                let _ = format!("{:?}", statement.statement);
            }
            Err(_) => refused += 1,
        }
    }
    println!("{parsed} parsed, {refused} refused");
    assert!(parsed > rounds / 20 && refused > rounds / 20, "{parsed} parsed, {refused} refused");
}

/// Half of what a fiber has in this profile.
const STACK_BYTES: usize = 256 << 10;

fn on_small_stack(text: String) -> Result<(), ParseErrorKind> {
    let run = move || {
        let parsed = parse(text.as_bytes(), &ParseOptions::default());
        parsed.map(drop).map_err(|error| error.kind)
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run);
    thread.expect("a thread").join().expect("no overflow")
}

#[test]
fn nesting_is_bounded() {
    let nested = |open: &str, middle: &str, close: &str, count: usize| {
        format!("SELECT {}{middle}{}", open.repeat(count), close.repeat(count))
    };
    let too_deep = Err(ParseErrorKind::TooDeep);
    assert_eq!(on_small_stack(nested("(", "1", ")", 60)), Ok(()));
    let queries = nested("(SELECT ", "1", ")", 15);
    assert_eq!(on_small_stack(queries), Ok(()));
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("-", "1", ""),
        ("NOT ", "1", ""),
        ("f(", "1", ")"),
        ("CASE WHEN ", "1", " THEN 1 END"),
        ("(SELECT ", "1", ")"),
        ("1 + (", "1", ")"),
        ("EXISTS (SELECT ", "1", ")"),
        ("CAST(", "1", " AS CHAR)"),
        ("INTERVAL ", "1", " DAY + d"),
    ] {
        assert_eq!(on_small_stack(nested(open, middle, close, 100_000)), too_deep, "{open}");
    }
    let joins = format!("SELECT * FROM a{}", " LEFT JOIN a ON 1".repeat(10_000));
    assert_eq!(on_small_stack(joins), too_deep);
    let tables = format!("SELECT * FROM {}a{}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(on_small_stack(tables), too_deep);
    assert_eq!(on_small_stack(format!("SELECT 1{}", " - 1".repeat(10_000))), too_deep);
}

#[test]
fn long_flat_statements_parse() {
    let ors = format!("SELECT * FROM t WHERE a = 0{}", " OR a = 1".repeat(5_000));
    assert_eq!(on_small_stack(ors), Ok(()));
    let unions = format!("SELECT 1{}", " UNION SELECT 1".repeat(10_000));
    assert_eq!(on_small_stack(unions), Ok(()));
    let rows = format!("INSERT INTO t VALUES (0){}", ", (1, 'x')".repeat(50_000));
    assert_eq!(on_small_stack(rows), Ok(()));
    let list = format!("SELECT * FROM t WHERE a IN (0{})", ", 1".repeat(50_000));
    assert_eq!(on_small_stack(list), Ok(()));
}
