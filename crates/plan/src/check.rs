//! CHECK constraints: kept as text, bound for each plan that writes into their table.

use crate::bind::{Result, unsupported};
use crate::context::PlanContext;
use crate::physical::ResultColumn;
use crate::prepared::filter;
use engine_api::{ColumnDefinition, TableDefinition};
use expr::{Expr, ResultType};
use syntax::ParseOptions;
use syntax::ast::{Expression, Statement};

fn result_columns(columns: &[ColumnDefinition]) -> Vec<ResultColumn> {
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

/// The constraints of a table with their names.
pub fn checks(
    context: &mut PlanContext<'_>,
    table: &TableDefinition,
) -> Result<Vec<(String, Expr)>> {
    if !table.has_checks() {
        return Ok(Vec::new());
    }
    let columns = result_columns(&table.columns);
    let mut bound = Vec::new();
    for (name, text) in table.checks() {
        let statement = syntax::parse(format!("DO ({text})").as_bytes(), &ParseOptions::default());
        let Ok(Statement::Do(conditions)) = statement.map(|parsed| parsed.statement) else {
            return Err(unsupported("this CHECK constraint"));
        };
        for condition in &conditions {
            bound.push((name.clone(), bind(context, &columns, condition)?));
        }
    }
    Ok(bound)
}
