//! Assignment of a value to a column: conversion, and what becomes of its issues.

use expr::{EvalContext, ResultType};
use types::convert::{self, ColumnPlace};
use types::{ColumnType, SqlError, Value, ValueRef};

/// Converts a value for a column. What was lost is an error where warnings are errors (strict
/// mode), a warning elsewhere.
pub fn store(
    value: ValueRef<'_>,
    from: &ResultType,
    column: &ColumnType,
    place: &ColumnPlace<'_>,
    eval: &EvalContext,
) -> Result<Value, SqlError> {
    let stored = convert::store(value, &from.column_type, column, &eval.store_settings());
    if let Some(issue) = &stored.issue {
        if issue.is_error() && eval.warnings_are_errors.get() {
            return Err(issue.error(place));
        }
        eval.push_warning(issue.warning(place));
    }
    Ok(stored.value.into_owned())
}
