//! Values and metadata of aggregates, as a live MariaDB 10.11 gave them.

mod support;

use expr::aggregate::{Aggregate, AggregateFunction, ConcatOptions};
use expr::{Builder, Settings};
use support::{Fixture, GROUPED_ROWS, context, parse, printed, shown_metadata};
use types::{CollationId, SqlError};

fn function(name: &str) -> AggregateFunction {
    use AggregateFunction as F;
    match name {
        "count" => F::Count,
        "sum" => F::Sum,
        "avg" => F::Average,
        "min" => F::Minimum,
        "max" => F::Maximum,
        "bit_and" => F::BitAnd,
        "bit_or" => F::BitOr,
        "bit_xor" => F::BitXor,
        "std" => F::StandardDeviation,
        "stddev_samp" => F::SampleStandardDeviation,
        "variance" => F::Variance,
        "var_samp" => F::SampleVariance,
        "group_concat" => F::GroupConcat,
        other => panic!("unknown aggregate {other}"),
    }
}

/// Splits at commas outside parentheses and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn bind(text: &str, fixture: &Fixture, settings: &Settings) -> Result<Aggregate, SqlError> {
    let builder = Builder::new(settings);
    let (name, rest) = text.split_once('(').expect("a call");
    let mut inner = rest.strip_suffix(')').expect("a call");
    if inner == "*" {
        let none = ConcatOptions::default();
        return builder.aggregate(AggregateFunction::CountRows, false, Vec::new(), none);
    }
    let mut concat = ConcatOptions::default();
    if let Some((head, limit)) = inner.split_once(" limit ") {
        let most = builder.integer(limit.parse().expect("a number"));
        concat.limit = Some((None, Some(most)));
        inner = head;
    }
    if let Some((head, separator)) = inner.split_once(" separator ") {
        concat.separator = Some(separator.trim_matches('\'').as_bytes().to_vec());
        inner = head;
    }
    if let Some((head, key)) = inner.split_once(" order by ") {
        let (key, descending) = match key.strip_suffix(" desc") {
            Some(key) => (key, true),
            None => (key, false),
        };
        concat.order_by.push((parse(key, fixture, settings)?, descending));
        inner = head;
    }
    let (inner, distinct) = match inner.strip_prefix("distinct ") {
        Some(rest) => (rest, true),
        None => (inner, false),
    };
    let arguments: Result<Vec<_>, _> =
        split(inner).into_iter().map(|part| parse(part, fixture, settings)).collect();
    builder.aggregate(function(name), distinct, arguments?, concat)
}

fn outcome(text: &str, rows: &[Fixture]) -> String {
    let context = context();
    let settings = context.settings.clone();
    let computed = bind(text, &rows[0], &settings).and_then(|aggregate| {
        let mut accumulator = aggregate.accumulator();
        for row in rows {
            accumulator.update(&aggregate, &context, &row.values)?;
        }
        let value = accumulator.value(&aggregate, &context)?;
        let metadata = aggregate.result.metadata(CollationId::UTF8MB4_GENERAL_CI);
        let shown = printed(value.as_ref(), &aggregate.result, &context);
        Ok(format!("{shown} : {}", shown_metadata(&metadata)))
    });
    computed.unwrap_or_else(|error| format!("ERROR {error}"))
}

#[test]
fn aggregates_agree_with_mariadb() {
    let rows: Vec<_> = (0..GROUPED_ROWS.len()).map(Fixture::grouped).collect();
    let (mut checked, mut failures) = (0, Vec::new());
    for line in include_str!("data/aggregates.txt").lines() {
        let Some((text, expected)) = line.split_once(" => ") else { continue };
        checked += 1;
        let found = outcome(text, &rows);
        if found != expected {
            failures.push(format!("{text}\n  expected {expected}\n  found    {found}"));
        }
    }
    println!("{checked} aggregates");
    assert!(checked > 40);
    assert!(failures.is_empty(), "{} of {checked}:\n{}", failures.len(), failures.join("\n"));
}
