//! CHECK constraints of definitions: bound once to see that they can be, kept as text.

use super::DdlContext;
use crate::ExecError;
use catalog::{Account, Authentication, HostPattern, MetadataLockSet, UserPrivileges};
use engine_api::{ColumnDefinition, TableDefinition};
use expr::{Expr, ResultType};
use plan::physical::RowCheck;
use plan::{PlanContext, SystemVariables};
use std::time::Duration;
use syntax::ast::{ColumnSpecification, CreateTable, Expression, SystemVariable};
use types::{SqlError, Value, codes};

/// Variables of the session are no part of a constraint.
struct NoVariables;

impl SystemVariables for NoVariables {
    fn read(&self, variable: &SystemVariable) -> Result<(Value, ResultType), SqlError> {
        Err(SqlError::new(&codes::UNKNOWN_SYSTEM_VARIABLE, &[&variable.name]))
    }
}

/// Plans something that needs no table and no right.
pub fn with_planning<T>(
    context: &DdlContext<'_>,
    plan: impl FnOnce(&mut PlanContext<'_>) -> Result<T, SqlError>,
) -> Result<T, ExecError> {
    let account = Account { user: String::new(), host: HostPattern(String::new()) };
    let user = UserPrivileges::new(account, Authentication::Locked);
    let mut locks = MetadataLockSet::new(Duration::ZERO);
    let mut planning = PlanContext {
        locked: None,
        catalog: context.catalog,
        locks: &mut locks,
        user: &user,
        temporary: None,
        database: context.schema,
        eval: context.eval,
        variables: &NoVariables,
        stat_tables: plan::StatTables::default(),
        parameters: &[],
        values: &[],
    };
    Ok(plan(&mut planning)?)
}

/// A condition over columns as SHOW CREATE TABLE has it.
pub fn text(
    context: &DdlContext<'_>,
    columns: &[ColumnDefinition],
    condition: &Expression,
) -> Result<String, ExecError> {
    with_planning(context, |planning| plan::check_text(planning, columns, condition))
}

/// The constraints of a table, to be evaluated over its rows.
pub fn bound(
    context: &DdlContext<'_>,
    table: &TableDefinition,
) -> Result<Vec<RowCheck>, ExecError> {
    with_planning(context, |planning| plan::checks(planning, table))
}

/// The value of a constant; 1054 for columns.
pub fn constant(
    context: &DdlContext<'_>,
    expression: &Expression,
) -> Result<(Value, ResultType), ExecError> {
    let bound = with_planning(context, |planning| plan::constant(expression, planning));
    let bound = bound.map_err(|mut error| {
        error.sql.message = error.sql.message.replace("in 'WHERE'", "in 'PARTITION BY'");
        error
    })?;
    Ok((bound.eval(context.eval, &expr::NoColumns)?.to_owned(), bound.result))
}

/// The condition that a row is in one of these partitions.
pub fn in_partitions(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    partitions: &[usize],
) -> Result<Expr, ExecError> {
    with_planning(context, |planning| plan::partition_condition(planning, table, partitions))
}

/// The conditions written with a column as one text.
pub fn of_column(
    context: &DdlContext<'_>,
    columns: &[ColumnDefinition],
    written: &ColumnSpecification,
) -> Result<String, ExecError> {
    let mut texts = Vec::with_capacity(written.checks.len());
    for condition in &written.checks {
        texts.push(text(context, columns, condition)?);
    }
    Ok(texts.join(" and "))
}

/// Puts the constraints of a new table into its definition.
pub fn put(
    context: &DdlContext<'_>,
    create: &CreateTable,
    table: &mut TableDefinition,
) -> Result<(), ExecError> {
    for written in create.columns.iter().filter(|written| !written.checks.is_empty()) {
        let check = of_column(context, &table.columns, written)?;
        if let Some(position) = table.column_position(&written.name) {
            table.columns[position].check = check;
        }
    }
    for check in &create.checks {
        add(context, table, check.name.as_deref(), &check.expression)?;
    }
    Ok(())
}

/// Adds a constraint of the table, named by number without a name.
pub fn add(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    name: Option<&str>,
    condition: &Expression,
) -> Result<(), ExecError> {
    let condition = text(context, &table.columns, condition)?;
    let checks = &mut table.options.checks;
    let is_taken = |name: &str| checks.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let name = match name {
        Some(name) if is_taken(name) => {
            return Err(SqlError::new(&codes::DUP_CONSTRAINT_NAME, &[&"CHECK", &name]).into());
        }
        Some(name) => name.to_string(),
        None => {
            let mut names = (1..).map(|number| format!("CONSTRAINT_{number}"));
            names.find(|name| !is_taken(name)).expect("there are more numbers than constraints")
        }
    };
    checks.push((name, condition));
    Ok(())
}
