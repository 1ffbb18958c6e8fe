//! Foreign keys of tables that have rows: their indexes are built, and every row is checked.

use super::{DdlContext, Done, Operation, add_key, needed_index};
use crate::ExecError;
use crate::ddl::index;
use catalog::{CatalogError, constraint_in_table};
use engine_api::{
    Engine, ForeignKeyDefinition, KeyRange, RowBuffer, ScanOptions, Table, TableDefinition,
    Transaction,
};
use std::sync::Arc;
use syntax::ast;
use types::row::RowView;
use types::{Level, SqlError, ValueRef, Warning, codes};

/// Drops indexes that were made for foreign keys and that a written one replaces.
pub fn drop_superseded(
    engine: &Arc<dyn Engine>,
    transaction: &mut dyn Transaction,
    table: &mut TableDefinition,
) -> Done {
    while let Some(position) = superseded(table) {
        engine.drop_index(transaction, table, position).map_err(CatalogError::from)?;
        table.indexes.remove(position);
    }
    Ok(())
}

/// A generated index whose columns another index begins with.
pub fn superseded(table: &TableDefinition) -> Option<usize> {
    table.indexes.iter().enumerate().position(|(at, index)| {
        let columns: Vec<usize> = index.parts.iter().map(|part| part.column).collect();
        let serves = |(other_at, other): (usize, &engine_api::IndexDefinition)| {
            let mut pairs = other.parts.iter().zip(&columns);
            other_at != at
                && !(other.generated && other_at > at)
                && other.parts.len() >= columns.len()
                && pairs.all(|(part, column)| part.column == *column && part.prefix.is_none())
        };
        index.generated && table.indexes.iter().enumerate().any(serves)
    })
}

/// Adds written keys to a table that has rows: their indexes are built, the rows checked.
/// Returns the number of rows.
pub fn add_to_table(
    context: &mut DdlContext<'_>,
    transaction: &mut dyn Transaction,
    table: &mut TableDefinition,
    written: &[ast::ForeignKey],
) -> Result<u64, ExecError> {
    let engine = context.catalog.engine().clone();
    let mut rows = 0;
    for key in written {
        let name = key.symbol.as_ref().or(key.name.as_ref());
        let taken = |name: &String| {
            table.foreign_keys.iter().any(|other| other.name.eq_ignore_ascii_case(name))
        };
        if key.if_not_exists && name.is_some_and(taken) {
            let error = SqlError::new(&codes::DUP_KEYNAME, &[&name.map_or("", String::as_str)]);
            let note = Warning { level: Level::Note, ..Warning::from(&error) };
            context.eval.push_warning(note);
            continue;
        }
        let before: Vec<String> = table.foreign_keys.iter().map(|k| k.name.clone()).collect();
        if let Some(wanted) = needed_index(table, key)? {
            let zone = context.eval.settings.time_zone;
            index::build(&engine, transaction, table, &wanted, zone)?;
            if let Some(built) = table.indexes.last_mut() {
                built.generated = true;
            }
        }
        add_key(context, table, key, Operation::Alter)?;
        let added = table.foreign_keys.iter().find(|key| !before.contains(&key.name)).cloned();
        if let Some(added) = added.filter(|_| context.eval.settings.foreign_key_checks) {
            rows = check_rows(context, transaction, table, &added)?;
        }
    }
    Ok(rows)
}

/// Every row of the child has its parent (1452).
fn check_rows(
    context: &DdlContext<'_>,
    transaction: &mut dyn Transaction,
    table: &TableDefinition,
    key: &ForeignKeyDefinition,
) -> Result<u64, ExecError> {
    let engine = context.catalog.engine();
    let child = engine.open_table(Arc::new(table.clone()))?;
    let is_itself = key.parent_schema == table.schema && key.parent_table == table.name;
    let parent: Arc<dyn Table> = match is_itself {
        true => child.clone(),
        false => {
            let entry = context.catalog.find_base(&key.parent_schema, &key.parent_table);
            let Some(entry) = entry else { return Ok(0) };
            entry.handle()?.clone()
        }
    };
    let definition = parent.definition().clone();
    let columns: Vec<usize> =
        key.parent_columns.iter().filter_map(|name| definition.column_position(name)).collect();
    let Some(index) = definition.index_over(&columns) else { return Ok(0) };
    let parent_layout = definition.index_layout(&definition.row_layout(), index);
    let layout = table.row_layout();
    let own = table.foreign_key_columns(key);
    let mut cursor = child.scan(transaction, ScanOptions::whole_table())?;
    let (mut row, mut found, mut rows) = (RowBuffer::default(), RowBuffer::default(), 0);
    while cursor.next(transaction, &mut row)? {
        context.tick()?;
        rows += 1;
        let view = RowView::new(&layout, &row.key, &row.payload);
        let values: Vec<ValueRef<'_>> = own.iter().map(|at| view.get(*at)).collect();
        if values.iter().any(|value| value.is_null()) {
            continue;
        }
        let mut prefix = Vec::new();
        parent_layout.push_values(&values, &mut prefix)?;
        let mut lookup =
            parent.scan(transaction, ScanOptions::plain(index, KeyRange::prefix(prefix)))?;
        if !lookup.next(transaction, &mut found)? {
            let text = constraint_in_table(table, key, false);
            return Err(SqlError::new(&codes::NO_REFERENCED_ROW_2, &[&text]).into());
        }
    }
    Ok(rows)
}
