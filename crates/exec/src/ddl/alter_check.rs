//! CHECK constraints in ALTER TABLE.

use super::alter_plan::{Work, drop_foreign, find};
use super::{DdlContext, check, computed, index};
use crate::ExecError;
use engine_api::TableDefinition;
use syntax::ast::AlterAction;
use types::{SqlError, codes};

/// Puts the CHECK constraints that were written into the columns and options.
pub(super) fn add_checks(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    work: &mut Work,
) -> Result<(), ExecError> {
    if work.column_checks.is_empty() && work.add_checks.is_empty() {
        return Ok(());
    }
    let mut altered = table.clone();
    altered.columns = work.columns.iter().map(|(column, _)| column.clone()).collect();
    for written in std::mem::take(&mut work.column_checks) {
        let check = check::of_column(context, &altered.columns, &written)?;
        if let Some(at) = find(work, &written.name) {
            work.columns[at].0.check = check;
        }
    }
    for written in std::mem::take(&mut work.add_checks) {
        check::add(context, &mut altered, written.name.as_deref(), &written.expression)?;
    }
    if table.options.checks.len() < altered.options.checks.len() {
        table.options.checks = altered.options.checks;
        (work.copy, work.reports) = (true, true);
    }
    Ok(())
}

/// ADD CHECK and DROP CONSTRAINT.
pub(super) fn plan_constraint(
    context: &DdlContext<'_>,
    action: &AlterAction,
    table: &mut TableDefinition,
    work: &mut Work,
) -> Result<(), ExecError> {
    match action {
        AlterAction::DropConstraint { name, .. }
            if table.options.checks.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) =>
        {
            table.options.checks.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        }
        AlterAction::DropConstraint { name, .. }
            if index::position(table, name).is_some_and(|at| table.indexes[at].unique) =>
        {
            work.drop.push(name.clone());
        }
        AlterAction::DropConstraint { name, if_exists } => {
            drop_foreign(context, table, work, (name, "CONSTRAINT"), *if_exists)?;
        }
        AlterAction::AddCheck(written) => {
            let is_known = |name: &String| {
                let mut known = table.options.checks.iter();
                known.any(|(known, _)| known.eq_ignore_ascii_case(name))
            };
            match written.name.as_ref().filter(|name| written.if_not_exists && is_known(name)) {
                Some(name) => {
                    let arguments: [&dyn std::fmt::Display; 2] = [&"CHECK", name];
                    context.note_sql(&SqlError::new(&codes::DUP_CONSTRAINT_NAME, &arguments));
                }
                None => work.add_checks.push((**written).clone()),
            }
        }
        _ => {}
    }
    Ok(())
}

/// Constraints that read no other column than one that is dropped go with it.
pub(super) fn drop_own_checks(table: &mut TableDefinition, work: &Work, name: &str) {
    let reads = |text: &str, name: &str| text.contains(&catalog::describe::quote_name(name));
    table.options.checks.retain(|(_, condition)| {
        !reads(condition, name)
            || work.columns.iter().any(|(column, _)| reads(condition, &column.name))
    });
}

/// Constraints follow a column that is renamed.
pub(super) fn rename_in_checks(table: &mut TableDefinition, work: &mut Work, from: &str, to: &str) {
    let of_columns = work.columns.iter_mut().map(|(column, _)| &mut column.check);
    let of_table = table.options.checks.iter_mut().map(|(_, condition)| condition);
    for condition in of_columns.chain(of_table) {
        *condition = computed::renamed(condition, from, to);
    }
}
