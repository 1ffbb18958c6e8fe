//! ALTER TABLE by copying: the new definition, and each row in it.

use super::alter::{Scene, rename_indexes};
use super::alter_plan::Work;
use super::index;
use super::table::{check_auto_increment, forbid_null};
use crate::ExecError;
use crate::change::breaks_check;
use engine_api::{ColumnDefinition, RowBuffer, ScanOptions, TableDefinition, Transaction};
use expr::{EvalContext, ResultType};
use std::sync::Arc;
use types::convert::ColumnPlace as StoredPlace;
use types::row::RowView;
use types::{SqlError, Value, ValueRef, codes};

/// The definition with the new columns and indexes.
fn copied_definition(
    table: &TableDefinition,
    planned: &TableDefinition,
    work: &Work,
) -> Result<TableDefinition, ExecError> {
    let mut new = table.clone();
    new.id = base::TableId(0);
    new.collation = planned.collation;
    new.options = planned.options.clone();
    new.columns = work.columns.iter().map(|(column, _)| column.clone()).collect();
    let moved = |old: usize| work.columns.iter().position(|(_, source)| *source == Some(old));
    for name in &work.drop {
        if index::position(&new, name).is_none() {
            let arguments: [&dyn std::fmt::Display; 2] = [&"INDEX", name];
            return Err(SqlError::new(&codes::CANT_DROP_FIELD_OR_KEY, &arguments).into());
        }
        new.indexes.retain(|index| !index.name.eq_ignore_ascii_case(name));
    }
    if work.drop_primary {
        new.indexes[0].parts.clear();
        new.indexes[0].primary = false;
    }
    for index in &mut new.indexes {
        let parts = index.parts.iter().filter_map(|part| {
            moved(part.column).map(|column| engine_api::IndexPart { column, ..*part })
        });
        index.parts = parts.collect();
        index.repeats_key = false;
    }
    let clustered_lost = new.indexes[0].parts.is_empty();
    new.indexes.retain(|index| !index.parts.is_empty());
    rename_indexes(&mut new, work)?;
    for written in &work.add {
        let made = index::definition(&new, written)?;
        if made.primary {
            if new.indexes.first().is_some_and(|index| index.primary) {
                return Err(SqlError::new(&codes::MULTIPLE_PRI_KEY, &[]).into());
            }
            new.indexes.insert(0, made);
        } else {
            new.indexes.push(made);
        }
    }
    new.hidden_row_id = !new.indexes.first().is_some_and(|index| index.primary);
    if new.hidden_row_id && clustered_lost {
        new.indexes.insert(0, index::hidden());
    }
    for part in new.indexes[0].parts.clone() {
        forbid_null(&mut new, part.column);
    }
    check_auto_increment(&new)?;
    super::table::check_primary(&new)?;
    super::partition::check_indexes(&new)?;
    Ok(new)
}

/// Copies the rows into new trees.
pub(super) fn copy(
    scene: &Scene<'_>,
    transaction: &mut dyn Transaction,
    table: &mut TableDefinition,
    eval: &mut EvalContext,
) -> Result<(u64, u64), ExecError> {
    let (engine, work) = (&scene.engine, scene.work);
    let mut new = copied_definition(table, scene.planned, work)?;
    engine.create_table(transaction, &mut new)?;
    let source = engine.open_table(Arc::new(table.clone()))?;
    let target = engine.open_table(Arc::new(new.clone()))?;
    let (source_layout, layout) = (table.row_layout(), new.row_layout());
    let mut cursor = source.scan(transaction, ScanOptions::whole_table())?;
    let (mut old, mut row) = (RowBuffer::default(), RowBuffer::default());
    let strict = eval.settings.sql_mode.is_strict() && !work.ignore;
    eval.warnings_are_errors.set(strict);
    scene.cancel.set_phase(crate::phase::COPYING);
    let (mut read, mut duplicates, mut counter) = (0, 0, 0);
    while cursor.next(transaction, &mut old)? {
        scene.tick()?;
        eval.row_number.set(read + 1);
        let view = RowView::new(&source_layout, &old.key, &old.payload);
        if is_true(eval, scene.leaves_out.as_ref(), &view, table)? == Some(true) {
            continue;
        }
        let counts = is_true(eval, scene.counts.as_ref(), &view, table)? != Some(false);
        let mut values = converted(eval, &view, table, work, &mut counter)?;
        if let Some(computed) = &work.computed {
            let is_new = |column: usize| work.columns[column].1.is_none();
            crate::change::compute(eval, &new, computed, is_new, &mut values)?;
        }
        if breaks_check(eval, &scene.checks, &values, table, work.ignore)? {
            continue;
        }
        read += u64::from(counts);
        let references: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        row.key.clear();
        layout.encode(&references, &mut row.key, &mut row.payload)?;
        if let Err(duplicate) = target.insert(transaction, &mut row)? {
            if work.ignore {
                duplicates += 1;
                continue;
            }
            return Err(crate::change::duplicate_in(eval, &new, &values, &duplicate).into());
        }
        eval.reset_arena();
    }
    drop(cursor);
    if new.auto_increment_column().is_some() {
        let next = source.next_auto_increment().max(target.next_auto_increment());
        target.set_auto_increment(next.max(counter + 1))?;
    }
    engine.drop_table(transaction, table)?;
    *table = new;
    Ok((read, duplicates))
}

/// Whether a condition over the former columns is true of a row; none without a condition.
fn is_true(
    eval: &EvalContext,
    condition: Option<&expr::Expr>,
    row: &RowView<'_>,
    table: &TableDefinition,
) -> Result<Option<bool>, ExecError> {
    let Some(condition) = condition else { return Ok(None) };
    let values: Vec<Value> = (0..table.columns.len()).map(|at| row.get(at).to_owned()).collect();
    Ok(Some(condition.eval_bool(eval, &values)? == Some(true)))
}

/// The values of a row under the new columns.
fn converted(
    eval: &EvalContext,
    view: &RowView<'_>,
    table: &TableDefinition,
    work: &Work,
    counter: &mut u64,
) -> Result<Vec<Value>, ExecError> {
    let mut values = Vec::with_capacity(work.columns.len());
    for (column, source) in &work.columns {
        if column.is_generated() {
            values.push(Value::Null);
            continue;
        }
        let value = match source {
            Some(at) => match view.get(*at) {
                ValueRef::Null if column.nullable => Value::Null,
                ValueRef::Null if column.auto_increment => next_value(counter),
                ValueRef::Null => {
                    let arguments: [&dyn std::fmt::Display; 2] =
                        [&column.name, &eval.row_number.get()];
                    eval.warn(&codes::WARN_DATA_TRUNCATED, &arguments)?;
                    crate::change::zero_of(&column.column_type)
                }
                ValueRef::Int(0) | ValueRef::UInt(0)
                    if column.auto_increment && !table.columns[*at].auto_increment =>
                {
                    next_value(counter)
                }
                value => {
                    let old_type = table.columns[*at].column_type;
                    let padded = old_type.zerofill && column.column_type.kind.is_string();
                    let text = padded
                        .then(|| types::text::to_text(value, &old_type, eval.settings.time_zone));
                    let value = text.as_deref().map_or(value, ValueRef::Bytes);
                    let from = ResultType::column(old_type, true);
                    let place = StoredPlace {
                        schema: &table.schema,
                        table: &table.name,
                        column: &column.name,
                        row: eval.row_number.get(),
                    };
                    let stored = store_copied(value, &from, column, &place, eval)?;
                    if column.auto_increment {
                        observe(counter, &stored);
                    }
                    stored
                }
            },
            None if column.auto_increment => next_value(counter),
            None => crate::change::column_filler(eval, column)?,
        };
        values.push(value);
    }
    Ok(values)
}

/// The next value of an AUTO_INCREMENT column.
fn next_value(counter: &mut u64) -> Value {
    *counter += 1;
    Value::UInt(*counter)
}

fn observe(counter: &mut u64, value: &Value) {
    let seen = match value {
        Value::Int(value) => u64::try_from(*value).unwrap_or(0),
        Value::UInt(value) => *value,
        _ => 0,
    };
    *counter = seen.max(*counter);
}

/// Converts a value of a row that is copied. What is told about values that do not fit is what
/// MariaDB tells when it copies a field to another.
fn store_copied(
    value: ValueRef<'_>,
    from: &ResultType,
    column: &ColumnDefinition,
    place: &StoredPlace<'_>,
    eval: &EvalContext,
) -> Result<Value, SqlError> {
    let to = &column.column_type;
    let stored = types::convert::store(value, &from.column_type, to, &eval.store_settings());
    if let Some(issue) = &stored.issue {
        let mut error = issue.error(place);
        if error.code == codes::DATA_TOO_LONG.number {
            let arguments: [&dyn std::fmt::Display; 2] = [&column.name, &place.row];
            error = SqlError::new(&codes::WARN_DATA_TRUNCATED, &arguments);
        } else if let (true, ValueRef::Bytes(text)) = (to.kind.is_integer(), value)
            && error.code == codes::TRUNCATED_WRONG_VALUE_FOR_FIELD.number
        {
            let text = String::from_utf8_lossy(text);
            let arguments: [&dyn std::fmt::Display; 2] = [&"INTEGER", &text];
            error = SqlError::new(&codes::TRUNCATED_WRONG_VALUE, &arguments);
        }
        if issue.is_error() && eval.warnings_are_errors.get() {
            return Err(error);
        }
        let level = issue.warning(place).level;
        eval.push_warning(types::Warning { level, ..types::Warning::from(&error) });
    }
    Ok(stored.value.into_owned())
}
