//! Values, metadata and warnings of expressions, as a live MariaDB 10.11 gave them.
//! `bless.py` writes the expectations.

mod support;

use expr::Settings;
use support::{Fixture, context, parse, printed, shown_metadata};
use types::{CollationId, SqlMode};

/// One expression with what is expected.
struct Case {
    line: usize,
    text: String,
    expected: String,
    warnings: Vec<String>,
    settings: Settings,
}

fn cases(data: &str) -> Vec<Case> {
    let mut settings = Settings::default();
    let mut cases: Vec<Case> = Vec::new();
    for (i, line) in data.lines().enumerate() {
        if let Some(sql) = line.strip_prefix("##") {
            let mode = sql.trim().strip_prefix("set sql_mode=").expect("a sql_mode");
            settings.sql_mode = match mode {
                "default" => SqlMode::DEFAULT,
                list => SqlMode::parse(list.trim_matches('\'')).expect("known modes"),
            };
        } else if line.starts_with('#') || line.trim().is_empty() {
            continue;
        } else if let Some(warning) = line.strip_prefix("  ") {
            let case = cases.last_mut().expect("a warning follows an expression");
            case.warnings.push(warning.to_string());
        } else {
            let (text, expected) = line.split_once(" => ").unwrap_or((line, "(unblessed)"));
            cases.push(Case {
                line: i + 1,
                text: text.to_string(),
                expected: expected.to_string(),
                warnings: Vec::new(),
                settings: settings.clone(),
            });
        }
    }
    cases
}

/// What this room says of an expression: the line and its warnings.
fn outcome(case: &Case, fixture: &Fixture) -> (String, Vec<String>) {
    let mut context = context();
    let zone = context.settings.time_zone;
    context.settings = case.settings.clone();
    context.settings.time_zone = zone;
    let settings = context.settings.clone();
    let result = parse(&case.text, fixture, &settings).and_then(|expr| {
        let expr = expr.named(&case.text);
        let value = expr.eval_result(&context, &fixture.values)?;
        let metadata = expr.result.metadata(CollationId::UTF8MB4_GENERAL_CI);
        Ok(format!("{} : {}", printed(value, &expr.result, &context), shown_metadata(&metadata)))
    });
    let mut warnings: Vec<String> = context
        .warnings()
        .iter()
        .map(|w| {
            format!("{} {} {}", w.level.name(), w.code, support::escaped(w.message.as_bytes()))
        })
        .collect();
    warnings.dedup();
    match result {
        Ok(line) => (line, warnings),
        Err(error) => {
            warnings.push(format!(
                "Error {} {}",
                error.code,
                support::escaped(error.message.as_bytes())
            ));
            ("ERROR".to_string(), warnings)
        }
    }
}

#[test]
fn expressions_agree_with_mariadb() {
    let fixture = Fixture::new();
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .expect("the data directory exists")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".txt") && !name.starts_with("store"))
        .filter(|name| !name.starts_with("aggregates"))
        .collect();
    names.sort();
    let only = std::env::var("ONLY").unwrap_or_default();
    let (mut checked, mut failures) = (0, Vec::new());
    for name in names.iter().filter(|name| name.contains(&only)) {
        let data = std::fs::read_to_string(format!("{directory}/{name}")).expect("readable");
        let before = failures.len();
        let cases = cases(&data);
        checked += cases.len();
        for case in &cases {
            let (line, warnings) = outcome(case, &fixture);
            if line != case.expected || warnings != case.warnings {
                failures.push(format!(
                    "{name}:{}: {}\n  expected {} {:?}\n  found    {line} {warnings:?}",
                    case.line, case.text, case.expected, case.warnings
                ));
            }
        }
        println!("{name}: {} expressions, {} differ", cases.len(), failures.len() - before);
    }
    assert!(checked > 0, "no expressions");
    assert!(failures.is_empty(), "{} of {checked}:\n{}", failures.len(), failures.join("\n"));
}
