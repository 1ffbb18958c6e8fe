//! Rows about keys and what refers to them.

use super::rows::{for_each_index, for_each_table, text};
use super::{Row, Scope};
use crate::foreign::action_words;
use crate::{Result, TableEntry};
use engine_api::{ForeignKeyDefinition, ReferentialAction, TableDefinition};
use types::Value;

/// Calls `each` for every foreign key in scope.
fn for_each_key(
    scope: &Scope<'_>,
    mut each: impl FnMut(&TableDefinition, &ForeignKeyDefinition),
) -> Result<()> {
    for_each_table(scope, |_, table| {
        let definition = table.definition();
        definition.foreign_keys.iter().for_each(|key| each(definition, key));
        Ok(())
    })
}

pub(super) fn key_column_usage(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let row = |table: &TableDefinition, key: &str, column: usize, sequence: usize| {
        vec![
            text("def"),
            text(&table.schema),
            text(key),
            text("def"),
            text(&table.schema),
            text(&table.name),
            text(&table.columns[column].name),
            Value::Int(sequence as i64 + 1),
        ]
    };
    for_each_index(scope, |_, table: &TableEntry, _, index| {
        let definition = table.definition();
        for (sequence, part) in index.parts.iter().enumerate().filter(|_| index.unique) {
            let mut made = row(definition, &index.name, part.column, sequence);
            made.extend(std::iter::repeat_n(Value::Null, 4));
            rows.push(made);
        }
    })?;
    for_each_key(scope, |table, key| {
        let columns = table.foreign_key_columns(key).into_iter().zip(&key.parent_columns);
        for (sequence, (column, parent)) in columns.enumerate() {
            let mut made = row(table, &key.name, column, sequence);
            made.push(Value::Int(sequence as i64 + 1));
            made.extend([text(&key.parent_schema), text(&key.parent_table), text(parent)]);
            rows.push(made);
        }
    })?;
    Ok(rows)
}

/// The index of the parent that a key relies on.
fn parent_index(scope: &Scope<'_>, key: &ForeignKeyDefinition) -> Option<String> {
    let entry = scope.catalog.find_base(&key.parent_schema, &key.parent_table)?;
    let parent = entry.definition();
    let columns = key.parent_columns.iter().map(|name| parent.column_position(name));
    let columns: Option<Vec<usize>> = columns.collect();
    let position = parent.index_over(&columns?)?;
    Some(parent.indexes[position].name.clone())
}

pub(super) fn referential_constraints(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for_each_key(scope, |table, key| {
        rows.push(vec![
            text("def"),
            text(&table.schema),
            text(&key.name),
            text("def"),
            text(&key.parent_schema),
            parent_index(scope, key).map_or(Value::Null, Value::text),
            text("NONE"),
            text(action_words(key.on_update)),
            text(action_words(key.on_delete)),
            text(&table.name),
            text(&key.parent_table),
        ]);
    })?;
    Ok(rows)
}

/// The bits of InnoDB's TYPE.
fn type_bits(key: &ForeignKeyDefinition) -> u64 {
    let bits = |action, base: u64| match action {
        ReferentialAction::Restrict => 0,
        ReferentialAction::Cascade => base,
        ReferentialAction::SetNull => base << 1,
        ReferentialAction::NoAction => match base {
            1 => 16,
            _ => 32,
        },
    };
    bits(key.on_delete, 1) | bits(key.on_update, 4)
}

pub(super) fn innodb_sys_foreign(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for_each_key(scope, |table, key| {
        rows.push(vec![
            text(format!("{}/{}", table.schema, key.name)),
            text(format!("{}/{}", table.schema, table.name)),
            text(format!("{}/{}", key.parent_schema, key.parent_table)),
            Value::UInt(key.columns.len() as u64),
            Value::UInt(type_bits(key)),
        ]);
    })?;
    Ok(rows)
}

pub(super) fn innodb_sys_foreign_columns(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for_each_key(scope, |table, key| {
        let columns = table.foreign_key_columns(key).into_iter().zip(&key.parent_columns);
        for (position, (column, parent)) in columns.enumerate() {
            rows.push(vec![
                text(format!("{}/{}", table.schema, key.name)),
                text(&table.columns[column].name),
                text(parent),
                Value::UInt(position as u64),
            ]);
        }
    })?;
    Ok(rows)
}
