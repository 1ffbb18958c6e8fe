//! CHECK constraints and partitions: kept as text, bound for each plan that writes into their
//! table.

use crate::bind::{Result, unsupported};
use crate::context::PlanContext;
use crate::physical::{ResultColumn, RowCheck, RowCheckKind};
use crate::prepared::filter;
use catalog::Partitions;
use engine_api::{ColumnDefinition, TableDefinition};
use expr::{Expr, ResultType};
use syntax::ParseOptions;
use syntax::ast::{Expression, Statement};

/// The columns of a row as a frame has them.
pub(crate) fn result_columns(columns: &[ColumnDefinition]) -> Vec<ResultColumn> {
    let column = |column: &ColumnDefinition| ResultColumn {
        name: column.name.clone(),
        org_name: column.name.clone(),
        table: String::new(),
        org_table: String::new(),
        schema: String::new(),
        result: ResultType::column(column.column_type, column.nullable),
        flags: 0,
    };
    columns.iter().map(column).collect()
}

/// A condition over columns as SHOW CREATE TABLE has it: names between backticks.
pub fn check_text(
    context: &mut PlanContext<'_>,
    columns: &[ColumnDefinition],
    condition: &Expression,
) -> Result<String> {
    Ok(bind(context, &result_columns(columns), condition)?.to_string())
}

fn bind(
    context: &mut PlanContext<'_>,
    columns: &[ResultColumn],
    condition: &Expression,
) -> Result<Expr> {
    filter(condition, columns, context).map_err(|mut error| {
        error.message = error.message.replace("in 'WHERE'", "in 'CHECK'");
        error
    })
}

/// An expression over the columns of a table, by its text.
pub(crate) fn bind_text(
    context: &mut PlanContext<'_>,
    table: &TableDefinition,
    text: &str,
) -> Result<Expr> {
    bind(context, &result_columns(&table.columns), &parse_kept(text)?)
}

/// Parses an expression that is kept in a definition.
pub(crate) fn parse_kept(text: &str) -> Result<Expression> {
    let options = ParseOptions { kept: true, ..ParseOptions::default() };
    let statement = syntax::parse(format!("DO {text}").as_bytes(), &options);
    let Ok(Statement::Do(mut expressions)) = statement.map(|parsed| parsed.statement) else {
        return Err(unsupported("this expression of a table"));
    };
    match (expressions.pop(), expressions.is_empty()) {
        (Some(expression), true) => Ok(expression),
        _ => Err(unsupported("this expression of a table")),
    }
}

/// The condition that a row is in one of the partitions named.
pub fn partition_condition(
    context: &mut PlanContext<'_>,
    table: &TableDefinition,
    partitions: &[usize],
) -> Result<Expr> {
    let text = Partitions::of(table).unwrap_or_default().condition(partitions);
    bind_text(context, table, &text)
}

/// What rows of a table must fulfil: its constraints, then its partitions.
pub fn checks(context: &mut PlanContext<'_>, table: &TableDefinition) -> Result<Vec<RowCheck>> {
    if !table.has_checks() {
        return Ok(Vec::new());
    }
    let mut bound = Vec::new();
    for (name, text) in table.checks() {
        let condition = bind_text(context, table, &format!("({text})"))?;
        bound.push(RowCheck { condition, kind: RowCheckKind::Constraint(name) });
    }
    if let Some(partitions) = Partitions::of(table)
        && let Some(text) = partitions.any()
    {
        let condition = bind_text(context, table, &text)?;
        let value = partitions.function().map(|text| bind_text(context, table, text));
        let kind = RowCheckKind::NoPartition(value.transpose()?);
        bound.push(RowCheck { condition, kind });
    }
    Ok(bound)
}
