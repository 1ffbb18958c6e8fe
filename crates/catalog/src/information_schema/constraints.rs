//! Rows about constraints.

use super::rows::{for_each_table, text};
use super::{Row, Scope};
use crate::Result;
use engine_api::TableDefinition;

pub(super) fn table_constraints(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let row = |table: &TableDefinition, name: &str, kind: &str| {
        vec![
            text("def"),
            text(&table.schema),
            text(name),
            text(&table.schema),
            text(&table.name),
            text(kind),
        ]
    };
    let mut rows = Vec::new();
    for_each_table(scope, |_, table| {
        let definition = table.definition();
        let indexes = crate::describe::shown_indexes(definition);
        for (_, index) in indexes.into_iter().filter(|(_, index)| index.unique) {
            let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE" };
            rows.push(row(definition, &index.name, kind));
        }
        let keys = definition.foreign_keys.iter();
        rows.extend(keys.map(|key| row(definition, &key.name, "FOREIGN KEY")));
        let columns = definition.columns.iter().filter(|column| !column.check.is_empty());
        rows.extend(columns.map(|column| row(definition, &column.name, "CHECK")));
        let checks = definition.options.checks.iter();
        rows.extend(checks.map(|(name, _)| row(definition, name, "CHECK")));
        Ok(())
    })?;
    Ok(rows)
}

/// CHECK constraints: those of columns bear their column's name.
pub(super) fn check_constraints(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let row = |table: &TableDefinition, name: &str, level: &str, condition: &str| {
        vec![
            text("def"),
            text(&table.schema),
            text(&table.name),
            text(name),
            text(level),
            text(condition),
        ]
    };
    let mut rows = Vec::new();
    for_each_table(scope, |_, table| {
        let definition = table.definition();
        for column in definition.columns.iter().filter(|column| !column.check.is_empty()) {
            rows.push(row(definition, &column.name, "Column", &column.check));
        }
        for (name, condition) in &definition.options.checks {
            rows.push(row(definition, name, "Table", condition));
        }
        Ok(())
    })?;
    Ok(rows)
}
