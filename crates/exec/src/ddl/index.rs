//! Indexes: as written, CREATE INDEX, DROP INDEX.

use super::compression::{Operation, check_writable};
use super::table::{forbid_null, is_primary};
use super::{DdlContext, foreign, lock_names, unsupported};
use crate::{ExecError, Outcome};
use catalog::CatalogError;
use engine_api::{DuplicateKey, Engine, IndexDefinition, IndexPart, TableDefinition, Transaction};
use std::sync::Arc;
use syntax::ast::{
    AlterAction, AlterTable, ColumnSpecification, CreateIndex, DropIndex, IndexKind,
    IndexPartSpecification, IndexSpecification, TableName,
};
use types::row::RowView;
use types::{SqlError, ValueRef, codes};

/// Longest part and longest index, in bytes.
const KEY_BYTES_MAX: u64 = 3072;
const PARTS_MAX: usize = 32;
const INDEXES_MAX: usize = 65;

/// The indexes that a column's own words ask for.
pub fn of_column(column: &ColumnSpecification) -> Vec<IndexSpecification> {
    let make = |kind: IndexKind| IndexSpecification {
        kind,
        symbol: None,
        name: None,
        if_not_exists: false,
        parts: vec![IndexPartSpecification {
            column: column.name.clone(),
            prefix: None,
            descending: false,
        }],
        using: None,
        comment: None,
        key_block_size: None,
        ignored: None,
        other: Vec::new(),
    };
    let wanted = [(column.primary_key, IndexKind::Primary), (column.unique, IndexKind::Unique)];
    wanted.into_iter().filter(|(asked, _)| *asked).map(|(_, kind)| make(kind)).collect()
}

/// Adds all indexes of a new table: the clustered one first.
pub fn add_all(
    table: &mut TableDefinition,
    written: &[IndexSpecification],
) -> Result<(), ExecError> {
    let mut primary = written.iter().filter(|index| is_primary(index));
    let first = primary.next();
    if primary.next().is_some() {
        return Err(SqlError::new(&codes::MULTIPLE_PRI_KEY, &[]).into());
    }
    table.hidden_row_id = first.is_none();
    match first {
        Some(index) => {
            let index = definition(table, index)?;
            for part in &index.parts {
                forbid_null(table, part.column);
            }
            table.indexes.push(index);
        }
        None => table.indexes.push(hidden()),
    }
    for index in written.iter().filter(|index| !is_primary(index)) {
        let index = definition(table, index)?;
        table.indexes.push(index);
    }
    if table.indexes.len() > INDEXES_MAX {
        return Err(SqlError::new(&codes::TOO_MANY_KEYS, &[&(INDEXES_MAX - 1)]).into());
    }
    Ok(())
}

/// The clustered index of a table without a primary key.
pub fn hidden() -> IndexDefinition {
    IndexDefinition::hidden()
}

/// An index of `table` as written, checked.
pub fn definition(
    table: &TableDefinition,
    written: &IndexSpecification,
) -> Result<IndexDefinition, ExecError> {
    match written.kind {
        IndexKind::FullText => return Err(unsupported("FULLTEXT indexes")),
        IndexKind::Spatial => return Err(unsupported("SPATIAL indexes")),
        IndexKind::Plain | IndexKind::Unique | IndexKind::Primary => {}
    }
    let mut parts: Vec<IndexPart> = Vec::with_capacity(written.parts.len());
    let mut bytes = 0;
    for part in &written.parts {
        let made = index_part(table, part, written.kind)?;
        if parts.iter().any(|other| other.column == made.column) {
            return Err(SqlError::new(&codes::DUP_FIELDNAME, &[&part.column]).into());
        }
        bytes += part_bytes(table, &made);
        parts.push(made);
    }
    if parts.len() > PARTS_MAX {
        return Err(SqlError::new(&codes::TOO_MANY_KEY_PARTS, &[&PARTS_MAX]).into());
    }
    if bytes > KEY_BYTES_MAX {
        return Err(SqlError::new(&codes::TOO_LONG_KEY, &[&KEY_BYTES_MAX]).into());
    }
    let comment = written.comment.as_deref().unwrap_or_default();
    Ok(IndexDefinition {
        name: index_name(table, written)?,
        unique: written.kind != IndexKind::Plain,
        primary: is_primary(written),
        parts,
        comment: String::from_utf8_lossy(comment).into_owned(),
        ..hidden()
    })
}

fn index_part(
    table: &TableDefinition,
    written: &IndexPartSpecification,
    index: IndexKind,
) -> Result<IndexPart, ExecError> {
    // A plain index may hold a part of each value; a unique one would then say too much.
    let prefix_if_needed = index == IndexKind::Plain;
    let name = &written.column;
    let missing = || SqlError::new(&codes::KEY_COLUMN_DOES_NOT_EXIST, &[name]);
    let position = table.column_position(name).ok_or_else(missing)?;
    let column_type = &table.columns[position].column_type;
    let kind = column_type.kind;
    let length = u64::from(column_type.length);
    let prefix = match written.prefix {
        Some(0) => {
            let message = format!("Key part '{name}' length cannot be 0");
            return Err(SqlError::with_message(&codes::WRONG_SUB_KEY, message).into());
        }
        Some(_) if !kind.is_string() => {
            return Err(SqlError::new(&codes::WRONG_SUB_KEY, &[]).into());
        }
        Some(prefix) if !kind.is_large() && prefix > length => {
            return Err(SqlError::new(&codes::WRONG_SUB_KEY, &[]).into());
        }
        Some(prefix) if !kind.is_large() && prefix == length => None,
        Some(prefix) => Some(prefix.min(KEY_BYTES_MAX) as u32),
        None if kind.is_large() && prefix_if_needed => {
            Some((KEY_BYTES_MAX / u64::from(column_type.collation.charset().max_bytes())) as u32)
        }
        None if kind.is_large() => {
            return Err(SqlError::new(&codes::BLOB_KEY_WITHOUT_LENGTH, &[name]).into());
        }
        None => None,
    };
    Ok(IndexPart { column: position, prefix, descending: written.descending })
}

/// Bytes that a part takes by the rule that tables are judged by: characters times the longest
/// character.
fn part_bytes(table: &TableDefinition, part: &IndexPart) -> u64 {
    let column_type = &table.columns[part.column].column_type;
    if !column_type.kind.is_string() {
        return 8;
    }
    let characters = part.prefix.unwrap_or(column_type.length);
    u64::from(characters) * u64::from(column_type.collation.charset().max_bytes())
}

fn index_name(table: &TableDefinition, written: &IndexSpecification) -> Result<String, ExecError> {
    if is_primary(written) {
        return Ok("PRIMARY".into());
    }
    let taken =
        |name: &str| table.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name));
    if let Some(name) = written.name.as_ref().or(written.symbol.as_ref()) {
        if name.is_empty() || name.eq_ignore_ascii_case("primary") || name.ends_with(' ') {
            return Err(SqlError::new(&codes::WRONG_NAME_FOR_INDEX, &[name]).into());
        }
        if taken(name) {
            return Err(SqlError::new(&codes::DUP_KEYNAME, &[name]).into());
        }
        return Ok(name.clone());
    }
    let base = written.parts.first().map_or("", |part| part.column.as_str());
    let mut name = base.to_string();
    let mut number = 2;
    while taken(&name) || name.eq_ignore_ascii_case("primary") {
        name = format!("{base}_{number}");
        number += 1;
    }
    Ok(name)
}

fn done(context: &DdlContext<'_>) -> Outcome {
    let info = format!("Records: 0  Duplicates: 0  Warnings: {}", context.eval.warning_count());
    Outcome { info, ..Outcome::default() }
}

/// A change of a temporary table's indexes copies it, as ALTER TABLE does.
fn alter(
    context: &mut DdlContext<'_>,
    table: &TableName,
    action: AlterAction,
) -> Result<Outcome, ExecError> {
    let alter = AlterTable {
        online: false,
        ignore: false,
        if_exists: false,
        table: table.clone(),
        wait_seconds: None,
        actions: vec![action],
    };
    super::alter::run(context, &alter)
}

/// CREATE INDEX.
pub fn create(context: &mut DdlContext<'_>, create: &CreateIndex) -> Result<Outcome, ExecError> {
    lock_names(context, &[&create.table])?;
    let (schema, name) = context.resolve(&create.table)?;
    let (schema, name) = (schema.to_string(), name.to_string());
    if context.temporary.find(&schema, &name).is_some() {
        let action = AlterAction::AddIndex(Box::new(create.index.clone()));
        return alter(context, &create.table, action);
    }
    if create.index.if_not_exists
        && let Some(index) = &create.index.name
    {
        let table = context.find(&schema, &name)?.base()?;
        if table.definition().indexes.iter().any(|i| i.name.eq_ignore_ascii_case(index)) {
            let error = SqlError::new(&codes::DUP_KEYNAME, &[index]);
            let warning = types::Warning::from(&error);
            context.eval.push_warning(types::Warning { level: types::Level::Note, ..warning });
            return Ok(done(context));
        }
    }
    let engine = context.catalog.engine().clone();
    let zone = context.eval.settings.time_zone;
    context.change_table(&schema, &name, &mut |context, transaction, table| {
        check_writable(context, table, Operation::Alter)?;
        if create.or_replace
            && let Some(index) = &create.index.name
            && position(table, index).is_some()
        {
            remove(&engine, transaction, table, index)?;
        }
        build(&engine, transaction, table, &create.index, zone)?;
        foreign::drop_superseded(&engine, transaction, table)
    })?;
    Ok(done(context))
}

/// Adds an index to a definition and builds it from the rows.
pub fn build(
    engine: &Arc<dyn Engine>,
    transaction: &mut dyn Transaction,
    table: &mut TableDefinition,
    written: &IndexSpecification,
    zone: types::TimeZone,
) -> Result<(), ExecError> {
    let index = definition(table, written)?;
    table.indexes.push(index);
    super::partition::check_indexes(table)?;
    let position = table.indexes.len() - 1;
    if let Err(duplicate) = engine.build_index(transaction, table, position)? {
        return Err(duplicate_in_build(engine, transaction, table, &duplicate, zone)?.into());
    }
    Ok(())
}

/// Error 1062 with the values of the row that has them a second time.
fn duplicate_in_build(
    engine: &Arc<dyn Engine>,
    transaction: &mut dyn Transaction,
    table: &TableDefinition,
    duplicate: &DuplicateKey,
    zone: types::TimeZone,
) -> Result<SqlError, ExecError> {
    let mut before = table.clone();
    before.indexes.truncate(duplicate.index);
    let handle = engine.open_table(Arc::new(before))?;
    let mut row = engine_api::RowBuffer::default();
    let (lock, wait) = (engine_api::LockMode::None, engine_api::LockWait::Wait);
    handle.get(transaction, &duplicate.clustered_key, lock, wait, &mut row)?;
    let layout = table.row_layout();
    let view = RowView::new(&layout, &row.key, &row.payload);
    let index = &table.indexes[duplicate.index];
    let mut text = Vec::new();
    for (number, part) in index.parts.iter().enumerate() {
        if number > 0 {
            text.push(b'-');
        }
        let column_type = &table.columns[part.column].column_type;
        match view.get(part.column) {
            ValueRef::Null => text.extend_from_slice(b"NULL"),
            value => types::text::write_text(value, column_type, zone, &mut text),
        }
    }
    let entry = String::from_utf8_lossy(&text).into_owned();
    Ok(crate::change::duplicate_entry(&entry, &index.name))
}

/// DROP INDEX.
pub fn drop(context: &mut DdlContext<'_>, drop: &DropIndex) -> Result<Outcome, ExecError> {
    lock_names(context, &[&drop.table])?;
    let (schema, name) = context.resolve(&drop.table)?;
    let (schema, name) = (schema.to_string(), name.to_string());
    let is_primary = drop.name.eq_ignore_ascii_case("primary");
    if is_primary || context.temporary.find(&schema, &name).is_some() {
        let action = AlterAction::DropIndex { name: drop.name.clone(), if_exists: drop.if_exists };
        return alter(context, &drop.table, action);
    }
    let table = context.find(&schema, &name)?.base()?;
    let exists = position(table.definition(), &drop.name).is_some();
    if !exists && drop.if_exists {
        let error = SqlError::new(&codes::CANT_DROP_FIELD_OR_KEY, &[&"INDEX", &drop.name]);
        let warning = types::Warning::from(&error);
        context.eval.push_warning(types::Warning { level: types::Level::Note, ..warning });
        return Ok(done(context));
    }
    let engine = context.catalog.engine().clone();
    context.change_table(&schema, &name, &mut |context, transaction, table| {
        check_writable(context, table, Operation::Alter)?;
        let before = table.clone();
        remove(&engine, transaction, table, &drop.name)?;
        foreign::check_altered(context, &before, table).map(|_| ())
    })?;
    Ok(done(context))
}

/// Position of a secondary index by name.
pub fn position(table: &TableDefinition, name: &str) -> Option<usize> {
    let found = table.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name));
    found.filter(|at| *at > 0)
}

/// Takes a secondary index out of a definition and drops its tree.
pub fn remove(
    engine: &Arc<dyn Engine>,
    transaction: &mut dyn Transaction,
    table: &mut TableDefinition,
    name: &str,
) -> Result<(), ExecError> {
    if name.eq_ignore_ascii_case("primary") {
        return Err(unsupported("DROP PRIMARY KEY"));
    }
    let Some(position) = position(table, name) else {
        let arguments: [&dyn std::fmt::Display; 2] = [&"INDEX", &name];
        return Err(SqlError::new(&codes::CANT_DROP_FIELD_OR_KEY, &arguments).into());
    };
    engine.drop_index(transaction, table, position).map_err(CatalogError::from)?;
    table.indexes.remove(position);
    super::table::check_auto_increment(table)
}
