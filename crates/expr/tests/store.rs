//! Values stored into columns, strict and not, as a live MariaDB 10.11 stored them.

mod support;

use support::{Fixture, column_type, context, escaped, parse, settings_of_store};
use types::convert::{ColumnPlace, store};
use types::{ColumnType, SqlMode};

/// Stores the value of an expression; the outcome as `bless.py` writes it.
fn outcome(text: &str, target: &ColumnType, strict: bool, fixture: &Fixture) -> String {
    let mode = if strict { SqlMode::DEFAULT } else { SqlMode::EMPTY };
    let mut context = context();
    context.settings.sql_mode = mode;
    let settings = context.settings.clone();
    let expr = match parse(text, fixture, &settings) {
        Ok(expr) => expr::Builder::new(&settings).for_column(expr, target),
        Err(error) => return format!("(none); Error {} {}", error.code, error.message),
    };
    let value = expr.eval_result(&context, &fixture.values).expect("constants evaluate");
    let source = expr.result.column_type;
    let stored = store(value, &source, target, &settings_of_store(mode));
    let place = ColumnPlace { schema: "sbtest", table: "st", column: "c", row: 1 };
    let mut parts = Vec::new();
    match &stored.issue {
        Some(issue) if strict && issue.is_error() => {
            parts.push("(none)".to_string());
            let error = issue.error(&place);
            parts.push(format!("Error {} {}", error.code, escaped(error.message.as_bytes())));
        }
        issue => {
            let value = stored.value.as_ref();
            let mut bytes = types::text::to_text(value, target, context.settings.time_zone);
            if target.kind.is_string() {
                let mut converted = Vec::new();
                let charset = target.collation.charset();
                charset.convert(&bytes, types::Charset::Utf8mb4, &mut converted);
                bytes = converted;
            }
            parts.push(if value.is_null() { "NULL".to_string() } else { escaped(&bytes) });
            parts.extend(issue.as_ref().map(|issue| {
                let warning = issue.warning(&place);
                format!(
                    "{} {} {}",
                    warning.level.name(),
                    warning.code,
                    escaped(warning.message.as_bytes())
                )
            }));
        }
    }
    parts.join("; ")
}

#[test]
fn stored_values_agree_with_mariadb() {
    let fixture = Fixture::new();
    let data = include_str!("data/store.txt");
    let mut target = ColumnType::NULL;
    let (mut checked, mut failures) = (0, Vec::new());
    for (i, line) in data.lines().enumerate() {
        if let Some(name) = line.strip_suffix(':') {
            target = column_type(name);
            continue;
        }
        let Some((text, expected)) = line.split_once(" => ") else { continue };
        checked += 1;
        let text = text.trim();
        let found = format!(
            "{} | {}",
            outcome(text, &target, true, &fixture),
            outcome(text, &target, false, &fixture)
        );
        if found != expected {
            let kind = target.kind;
            failures.push(format!(
                "line {} {kind:?} {text}\n  expected {expected}\n  found    {found}",
                i + 1
            ));
        }
    }
    println!("{checked} values stored");
    assert!(checked > 1000);
    assert!(failures.is_empty(), "{} of {checked}:\n{}", failures.len(), failures.join("\n"));
}
