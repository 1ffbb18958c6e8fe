//! Rows that come from the sessions: processes, variables, status, privileges.

use super::{Row, Scope};
use crate::Result;
use types::{Decimal, Value};

fn pairs(pairs: Vec<(String, String)>) -> Vec<Row> {
    let row = |(name, value): (String, String)| {
        vec![Value::text(name.to_ascii_uppercase()), Value::text(value)]
    };
    pairs.into_iter().map(row).collect()
}

pub(super) fn global_variables(scope: &Scope<'_>) -> Result<Vec<Row>> {
    Ok(pairs(scope.session.variables(true)))
}

pub(super) fn session_variables(scope: &Scope<'_>) -> Result<Vec<Row>> {
    Ok(pairs(scope.session.variables(false)))
}

pub(super) fn global_status(scope: &Scope<'_>) -> Result<Vec<Row>> {
    Ok(pairs(scope.session.status(true)))
}

pub(super) fn session_status(scope: &Scope<'_>) -> Result<Vec<Row>> {
    Ok(pairs(scope.session.status(false)))
}

pub(super) fn process_list(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let optional = |text: Option<String>| text.map_or(Value::Null, Value::text);
    let zero = || Value::Decimal(Decimal::new(0, 3));
    let rows = scope.session.processes().into_iter().map(|process| {
        let info = optional(process.info);
        vec![
            Value::Int(process.id as i64),
            Value::text(process.user),
            Value::text(process.host),
            optional(process.schema),
            Value::text(process.command),
            Value::Int((process.time_ms / 1000) as i64),
            Value::text(process.state),
            info.clone(),
            Value::Decimal(Decimal::new(i128::from(process.time_ms) * 1000, 3)),
            Value::Int(0),
            Value::Int(0),
            zero(),
            Value::Int(process.memory_bytes as i64),
            Value::Int(process.memory_bytes as i64),
            Value::Int(0),
            Value::Int(process.id as i64),
            info,
            Value::Int(0),
        ]
    });
    Ok(rows.collect())
}
