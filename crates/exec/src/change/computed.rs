//! What a row that is written computes: defaults that are expressions, generated columns.
//!
//! 1. Values of generated columns follow from the row as it is written; VIRTUAL ones are kept in
//!    it like STORED ones, so that row and indexes always have the same.
//! 2. They are computed after everything else of the row is known, before CHECK constraints.

use crate::ExecError;
use crate::context::Exec;
use crate::store::store;
use engine_api::TableDefinition;
use expr::{Columns, EvalContext, Expr};
use plan::physical::{Computed, GeneratedColumn, Refused};
use types::convert::ColumnPlace;
use types::{Value, codes};

/// 1906 for generated columns that the statement gives values.
pub fn refuse_values<'r>(
    exec: &Exec<'_>,
    table: &TableDefinition,
    refused: impl IntoIterator<Item = &'r Refused>,
) -> Result<(), ExecError> {
    for Refused { column, parameter } in refused {
        let parameter = parameter.and_then(|number| exec.eval.parameters.get(number));
        if parameter.is_some_and(Value::is_null) {
            continue;
        }
        let arguments: [&dyn std::fmt::Display; 2] = [&table.columns[*column].name, &table.name];
        exec.eval.warn(&codes::WARNING_NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN, &arguments)?;
    }
    Ok(())
}

/// Gives the generated columns of a row their values.
#[inline]
pub fn compute_generated(
    eval: &EvalContext,
    table: &TableDefinition,
    computed: Option<&Computed>,
    values: &mut Vec<Value>,
) -> Result<(), ExecError> {
    match computed {
        None => Ok(()),
        Some(computed) => compute_each(eval, table, &computed.generated, values),
    }
}

#[expect(clippy::ptr_arg, reason = "a slice is no `dyn Columns`")]
fn compute_each(
    eval: &EvalContext,
    table: &TableDefinition,
    generated: &[GeneratedColumn],
    values: &mut Vec<Value>,
) -> Result<(), ExecError> {
    for one in generated {
        let compute = || computed_value(eval, table, (one.column, &one.value), values);
        let value = if one.quiet { quietly(eval, compute) } else { compute() }?;
        values[one.column] = value;
    }
    Ok(())
}

/// Evaluates without warnings, and without errors that are warnings elsewhere.
fn quietly<T>(eval: &EvalContext, evaluate: impl FnOnce() -> T) -> T {
    let strict = eval.warnings_are_errors.replace(false);
    let before = eval.warning_count();
    let value = evaluate();
    eval.drop_warnings_after(before);
    eval.warnings_are_errors.set(strict);
    value
}

/// Gives a row its computed values: defaults that are expressions where `wants` says that a column
/// has no other value, then generated columns.
pub fn compute(
    eval: &EvalContext,
    table: &TableDefinition,
    computed: &Computed,
    wants: impl Fn(usize) -> bool,
    values: &mut Vec<Value>,
) -> Result<(), ExecError> {
    for (column, expr) in computed.defaults.iter().filter(|(column, _)| wants(*column)) {
        values[*column] = computed_value(eval, table, (*column, expr), values)?;
    }
    compute_each(eval, table, &computed.generated, values)
}

/// The value of an expression over a row as a column holds it.
fn computed_value(
    eval: &EvalContext,
    table: &TableDefinition,
    (column, expr): (usize, &Expr),
    values: &dyn Columns,
) -> Result<Value, ExecError> {
    let value = expr.eval(eval, values)?;
    let column = &table.columns[column];
    if value.is_null() {
        if column.nullable {
            return Ok(Value::Null);
        }
        eval.warn(&codes::BAD_NULL_ERROR, &[&column.name])?;
        return Ok(super::zero_of(&column.column_type));
    }
    let place = ColumnPlace {
        schema: &table.schema,
        table: &table.name,
        column: &column.name,
        row: eval.row_number.get(),
    };
    Ok(store(value, &expr.result, &column.column_type, &place, eval)?)
}
