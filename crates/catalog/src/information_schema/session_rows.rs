//! Rows that come from the sessions: processes, variables, status, privileges.

use super::VirtualType::{LongText, Varchar};
use super::columns::{optional, required};
use super::{Row, Scope, VirtualColumn};
use crate::Result;
use types::{Decimal, Value};

pub(super) const SYSTEM_VARIABLES: &[VirtualColumn] = &[
    required("VARIABLE_NAME", Varchar(64)),
    optional("SESSION_VALUE", Varchar(2048)),
    optional("GLOBAL_VALUE", Varchar(2048)),
    required("GLOBAL_VALUE_ORIGIN", Varchar(64)),
    optional("DEFAULT_VALUE", Varchar(2048)),
    required("VARIABLE_SCOPE", Varchar(64)),
    required("VARIABLE_TYPE", Varchar(64)),
    required("VARIABLE_COMMENT", Varchar(2048)),
    optional("NUMERIC_MIN_VALUE", Varchar(21)),
    optional("NUMERIC_MAX_VALUE", Varchar(21)),
    optional("NUMERIC_BLOCK_SIZE", Varchar(21)),
    optional("ENUM_VALUE_LIST", LongText),
    required("READ_ONLY", Varchar(3)),
    optional("COMMAND_LINE_ARGUMENT", Varchar(64)),
    optional("GLOBAL_VALUE_PATH", Varchar(2048)),
];

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

pub(super) fn system_variables(scope: &Scope<'_>) -> Result<Vec<Row>> {
    Ok(scope.session.system_variables())
}

pub(super) fn global_status(scope: &Scope<'_>) -> Result<Vec<Row>> {
    Ok(pairs(scope.session.status(true)))
}

pub(super) fn session_status(scope: &Scope<'_>) -> Result<Vec<Row>> {
    Ok(pairs(scope.session.status(false)))
}

pub(super) fn process_list(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let text_or_null = |text: Option<String>| text.map_or(Value::Null, Value::text);
    let zero = || Value::Decimal(Decimal::new(0, 3));
    let rows = scope.session.processes().into_iter().map(|process| {
        let info = text_or_null(process.info);
        vec![
            Value::Int(process.id as i64),
            Value::text(process.user),
            Value::text(process.host),
            text_or_null(process.schema),
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
            Value::Int(process.query_id as i64),
            info,
            Value::Int(0),
        ]
    });
    Ok(rows.collect())
}
