//! Foreign keys as written become definitions; changes of definitions that they forbid.
//!
//! What is checked, and in which order, is MariaDB's: the keys' own form first (1072, 1239), then
//! what InnoDB asks (1005 with errno 150 or 121, the reason as a warning).

use super::{DdlContext, index};
use crate::ExecError;
use catalog::{CatalogError, QualifiedName, constraint_in_table, constraint_text};
use engine_api::{
    Engine, ForeignKeyDefinition, KeyRange, ReferentialAction, RowBuffer, ScanOptions, Table,
    TableDefinition, Transaction,
};
use std::sync::Arc;
use syntax::ast::{self, ColumnSpecification, IndexKind, IndexSpecification, TableName};
use types::row::RowView;
use types::{ColumnType, Level, SqlError, ValueRef, Warning, codes};

type Done = Result<(), ExecError>;

/// The foreign key that a column's REFERENCES asks for.
pub fn of_column(column: &ColumnSpecification) -> Option<ast::ForeignKey> {
    let references = column.references.clone()?;
    let part = ast::IndexPartSpecification {
        column: column.name.clone(),
        prefix: None,
        descending: false,
    };
    Some(ast::ForeignKey {
        symbol: None,
        name: None,
        if_not_exists: false,
        columns: vec![part],
        references,
    })
}

fn action(written: Option<ast::ReferentialAction>) -> ReferentialAction {
    use ast::ReferentialAction as A;
    match written {
        // InnoDB takes SET DEFAULT for RESTRICT.
        None | Some(A::Restrict | A::SetDefault) => ReferentialAction::Restrict,
        Some(A::Cascade) => ReferentialAction::Cascade,
        Some(A::SetNull) => ReferentialAction::SetNull,
        Some(A::NoAction) => ReferentialAction::NoAction,
    }
}

/// Database and name of a written key's parent.
pub fn parent_of(child_schema: &str, written: &ast::ForeignKey) -> QualifiedName {
    let parent: &TableName = &written.references.table;
    let schema = parent.schema.clone().unwrap_or_else(|| child_schema.to_string());
    (schema, parent.name.clone())
}

/// What is being done, for the text of errors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// CREATE TABLE.
    Create,
    /// ALTER TABLE.
    Alter,
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Alter => "Alter",
        }
    }
}

/// Error 1005 with its reason: a warning before, one behind.
fn cannot_create(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    errno: (u16, &str),
    reason: String,
) -> ExecError {
    let warn = |code: u16, message: String| {
        context.eval.push_warning(Warning { level: Level::Warning, code, message });
    };
    let (number, words) = errno;
    warn(number, reason);
    let full = format!("{number} \"{words}\"");
    let error = SqlError::new(&codes::CANT_CREATE_TABLE, &[&table.schema, &table.name, &full]);
    context.eval.push_warning(Warning::from(&error));
    match number {
        121 => warn(1022, codes::DUP_KEY.message(&[&table.name])),
        _ => warn(1215, codes::CANNOT_ADD_FOREIGN.message(&[&table.name])),
    }
    error.into()
}

fn badly_formed(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    (operation, columns): (Operation, &str),
    with: &str,
    reason: &str,
) -> ExecError {
    let text = format!(
        "{}  table `{}`.`{}` {with}foreign key ({columns}) constraint failed. {reason}",
        operation.word(),
        table.schema,
        table.name
    );
    cannot_create(context, table, (150, "Foreign key constraint is incorrectly formed"), text)
}

/// The index that a written key needs for its own columns, before it is known whether another
/// index serves; none if there is one already.
pub fn needed_index(
    table: &mut TableDefinition,
    written: &ast::ForeignKey,
) -> Result<Option<IndexSpecification>, ExecError> {
    let mut columns = Vec::with_capacity(written.columns.len());
    for part in &written.columns {
        let position = table.column_position(&part.column);
        let missing = || SqlError::new(&codes::KEY_COLUMN_DOES_NOT_EXIST, &[&part.column]);
        columns.push(position.ok_or_else(missing)?);
    }
    let references = &written.references.columns;
    if !references.is_empty() && references.len() != columns.len() {
        let name = written.symbol.as_deref().or(written.name.as_deref());
        let name = name.unwrap_or("foreign key without name");
        let reason = "Key reference and table reference don't match";
        return Err(SqlError::new(&codes::WRONG_FK_DEF, &[&name, &reason]).into());
    }
    let is_whole = written.columns.iter().all(|part| part.prefix.is_none());
    let name = written.symbol.clone().or_else(|| written.name.clone());
    if let Some(at) = table.index_over(&columns).filter(|_| is_whole) {
        let found = &table.indexes[at];
        if !found.generated || found.parts.len() > columns.len() || name.is_none() {
            return Ok(None);
        }
        // The newer name counts, as if the former index gave way to a new one.
        let name = name.unwrap_or_default();
        let mut others = table.indexes.iter().enumerate().filter(|(other, _)| *other != at);
        if others.any(|(_, other)| other.name.eq_ignore_ascii_case(&name)) {
            return Err(SqlError::new(&codes::DUP_KEYNAME, &[&name]).into());
        }
        let mut renamed = table.indexes.remove(at);
        renamed.name = name;
        table.indexes.push(renamed);
        return Ok(None);
    }
    Ok(Some(IndexSpecification {
        kind: IndexKind::Plain,
        symbol: None,
        name,
        if_not_exists: false,
        parts: written.columns.clone(),
        using: None,
        comment: None,
        key_block_size: None,
        ignored: None,
        other: Vec::new(),
    }))
}

/// The first number that a generated name may have.
fn next_number(table: &TableDefinition) -> u64 {
    let prefix = format!("{}_ibfk_", table.name);
    let numbers = table.foreign_keys.iter().filter_map(|key| {
        key.name.strip_prefix(prefix.as_str()).and_then(|number| number.parse::<u64>().ok())
    });
    numbers.max().unwrap_or(0) + 1
}

/// Adds a written key, whose index is there, to a definition. `checks`: foreign_key_checks.
pub fn add_key(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    written: &ast::ForeignKey,
    operation: Operation,
) -> Done {
    let name = written.symbol.clone().or_else(|| written.name.clone());
    let name = name.unwrap_or_else(|| format!("{}_ibfk_{}", table.name, next_number(table)));
    let positions: Vec<usize> =
        written.columns.iter().filter_map(|part| table.column_position(&part.column)).collect();
    let own_names = || positions.iter().map(|at| table.columns[*at].name.clone()).collect();
    let (parent_schema, parent_table) = parent_of(&table.schema, written);
    let key = ForeignKeyDefinition {
        name,
        columns: positions.iter().map(|at| table.columns[*at].id).collect(),
        parent_schema,
        parent_table,
        parent_columns: match written.references.columns.is_empty() {
            true => own_names(),
            false => written.references.columns.clone(),
        },
        on_delete: action(written.references.on_delete),
        on_update: action(written.references.on_update),
    };
    let taken = table.foreign_keys.iter().any(|other| other.name.eq_ignore_ascii_case(&key.name));
    if taken || context.catalog.has_foreign_key(&table.schema, &key.name, &table.name) {
        let text = format!(
            "CREATE or ALTER TABLE `{}`.`{}` failed: duplicate name, {}",
            table.schema,
            table.name,
            constraint_text(table, &key, false)
        );
        let errno = (121, "Duplicate key on write or update");
        return Err(cannot_create(context, table, errno, text));
    }
    super::computed::check_key(table, &key, &positions)?;
    check_parent(context, table, &key, &positions, operation)?;
    table.foreign_keys.push(key);
    table.foreign_keys.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(())
}

/// What InnoDB asks of parent and child when a key is made.
fn check_parent(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    key: &ForeignKeyDefinition,
    positions: &[usize],
    operation: Operation,
) -> Done {
    let names: Vec<&str> = positions.iter().map(|at| table.columns[*at].name.as_str()).collect();
    let names = names.join(", ");
    let fails = |reason: &str| badly_formed(context, table, (operation, &names), "with ", reason);
    let set_null = [key.on_delete, key.on_update].contains(&ReferentialAction::SetNull);
    if let Some(at) = positions.iter().find(|at| set_null && !table.columns[**at].nullable) {
        let column = &table.columns[*at].name;
        return Err(fails(&format!(
            "You have defined a SET NULL condition but column '{column}' is defined as NOT NULL."
        )));
    }
    let is_itself = key.parent_schema == table.schema && key.parent_table == table.name;
    let entry = context.catalog.find_base(&key.parent_schema, &key.parent_table);
    let parent: &TableDefinition = match (&entry, is_itself) {
        (_, true) => table,
        (Some(entry), false) => entry.definition(),
        (None, false) if context.eval.settings.foreign_key_checks => {
            return Err(fails(&format!(
                "Referenced table `{}`.`{}` not found in the data dictionary.",
                key.parent_schema, key.parent_table
            )));
        }
        (None, false) => return Ok(()),
    };
    let mut columns = Vec::with_capacity(positions.len());
    for name in &key.parent_columns {
        let Some(at) = parent.column_position(name) else {
            let reason = format!("Column {name} was not found.");
            return Err(badly_formed(context, table, (operation, &names), "", &reason));
        };
        columns.push(at);
    }
    if table.index_over(positions).is_none() {
        return Err(fails(
            "There is only prefix index in the referenced table where the referenced columns \
             appear as the first columns.",
        ));
    }
    for (own, other) in positions.iter().zip(&columns) {
        let (own, other) = (&table.columns[*own], &parent.columns[*other]);
        if !are_comparable(&own.column_type, &other.column_type) {
            return Err(fails(&format!(
                "Field type or character set for column '{}' does not match referenced column \
                 '{}'.",
                own.name, other.name
            )));
        }
    }
    if parent.index_over(&columns).is_none() && context.eval.settings.foreign_key_checks {
        return Err(fails(
            "There is no index in the referenced table where the referenced columns appear as \
             the first columns.",
        ));
    }
    Ok(())
}

/// Whether values of one column can be looked up as keys of the other.
fn are_comparable(one: &ColumnType, other: &ColumnType) -> bool {
    use types::TypeKind as K;
    let family = |kind: K| match kind {
        K::Char | K::VarChar => K::VarChar,
        K::Binary | K::VarBinary => K::VarBinary,
        kind => kind,
    };
    let same_family = family(one.kind) == family(other.kind);
    match family(one.kind) {
        K::VarChar => same_family && one.collation == other.collation,
        K::VarBinary => same_family && (one.kind == other.kind),
        K::Decimal => same_family && (one.precision, one.scale) == (other.precision, other.scale),
        _ => same_family && one.unsigned == other.unsigned && one.scale == other.scale,
    }
}

/// A table that comes into being under a name that others refer to must suit them.
pub fn check_waiting_children(context: &DdlContext<'_>, parent: &TableDefinition) -> Done {
    if !context.eval.settings.foreign_key_checks {
        return Ok(());
    }
    for (schema, name) in context.catalog.children(&parent.schema, &parent.name) {
        let Some(entry) = context.catalog.find_base(&schema, &name) else { continue };
        let child = entry.definition();
        for key in &child.foreign_keys {
            if key.parent_schema != parent.schema || key.parent_table != parent.name {
                continue;
            }
            let columns: Option<Vec<usize>> =
                key.parent_columns.iter().map(|name| parent.column_position(name)).collect();
            let suits = columns.is_some_and(|columns| {
                let own = child.foreign_key_columns(key);
                let mut pairs = own.iter().zip(&columns);
                parent.index_over(&columns).is_some()
                    && pairs.all(|(own, other)| {
                        let (own, other) = (&child.columns[*own], &parent.columns[*other]);
                        are_comparable(&own.column_type, &other.column_type)
                    })
            });
            if !suits {
                let words = "150 \"Foreign key constraint is incorrectly formed\"";
                let names: [&dyn std::fmt::Display; 3] = [&parent.schema, &parent.name, &words];
                let error = SqlError::new(&codes::CANT_CREATE_TABLE, &names);
                context.eval.push_warning(Warning::from(&error));
                let message = codes::CANNOT_ADD_FOREIGN.message(&[&parent.name]);
                context.eval.push_warning(Warning { level: Level::Warning, code: 1215, message });
                return Err(error.into());
            }
        }
    }
    Ok(())
}

/// Error 1451 in the short form that definitions get.
pub fn is_parent() -> SqlError {
    let text = "Cannot delete or update a parent row: a foreign key constraint fails";
    SqlError::with_message(&codes::ROW_IS_REFERENCED_2, text)
}

/// Fails with 1451 if another table refers to this one.
pub fn check_may_drop(context: &DdlContext<'_>, schema: &str, name: &str) -> Done {
    let checks = context.eval.settings.foreign_key_checks;
    if checks && context.catalog.child_besides((schema, name), &[]).is_some() {
        return Err(is_parent().into());
    }
    Ok(())
}

/// Fails with 1451 if a table outside of the database refers to one inside.
pub fn check_may_drop_schema(context: &DdlContext<'_>, name: &str) -> Done {
    let Some(schema) = context.catalog.schema(name) else { return Ok(()) };
    let inside: Vec<QualifiedName> =
        schema.tables().map(|t| (name.to_string(), t.definition().name.clone())).collect();
    if !context.eval.settings.foreign_key_checks {
        return Ok(());
    }
    for table in &inside {
        if context.catalog.child_besides((name, &table.1), &inside).is_some() {
            return Err(is_parent().into());
        }
    }
    Ok(())
}

/// Fails with 1701 if another table refers to this one.
pub fn check_may_truncate(context: &DdlContext<'_>, schema: &str, name: &str) -> Done {
    if !context.eval.settings.foreign_key_checks {
        return Ok(());
    }
    let Some((child, key)) = context.catalog.child_besides((schema, name), &[]) else {
        return Ok(());
    };
    let text = constraint_in_table(child.definition(), &key, true);
    Err(SqlError::new(&codes::TRUNCATE_ILLEGAL_FK, &[&text]).into())
}

/// What a change of a table means for the foreign keys around it. Fails if one of them needs
/// what is taken away; the children that follow new names of columns come back changed.
pub fn check_altered(
    context: &DdlContext<'_>,
    before: &TableDefinition,
    after: &TableDefinition,
) -> Result<Vec<TableDefinition>, ExecError> {
    for key in &after.foreign_keys {
        check_own_key(context, before, after, key)?;
    }
    let mut changed = Vec::new();
    for (schema, name) in context.catalog.children(&before.schema, &before.name) {
        let Some(entry) = context.catalog.find_base(&schema, &name) else { continue };
        let is_itself = schema == before.schema && name == before.name;
        let mut child = if is_itself { after.clone() } else { (**entry.definition()).clone() };
        let mut differs = false;
        let count = child.foreign_keys.len();
        for number in 0..count {
            let key = &child.foreign_keys[number];
            if key.parent_schema == before.schema && key.parent_table == before.name {
                let names = check_child_key(context, (before, after), &child, key)?;
                differs |= names != key.parent_columns;
                child.foreign_keys[number].parent_columns = names;
            }
        }
        if differs {
            child.version += 1;
            changed.push(child);
        }
    }
    Ok(changed)
}

/// The index that a key uses is gone.
fn needs_index(table: &TableDefinition, columns: &[usize]) -> ExecError {
    let name = table.index_over(columns).map_or("", |at| table.indexes[at].name.as_str());
    SqlError::new(&codes::DROP_INDEX_FK, &[&name]).into()
}

fn check_own_key(
    context: &DdlContext<'_>,
    before: &TableDefinition,
    after: &TableDefinition,
    key: &ForeignKeyDefinition,
) -> Done {
    let old = before.foreign_key_columns(key);
    let new = after.foreign_key_columns(key);
    if new.len() != key.columns.len() {
        let lost = old.iter().find(|at| after.column_of_id(before.columns[**at].id).is_none());
        if before.index_over(&old).is_some() {
            return Err(needs_index(before, &old));
        }
        let name = lost.map_or("", |at| before.columns[*at].name.as_str());
        return Err(SqlError::new(&codes::FK_COLUMN_CANNOT_DROP, &[&name, &key.name]).into());
    }
    if after.index_over(&new).is_none() && before.index_over(&old).is_some() {
        return Err(needs_index(before, &old));
    }
    for (old, new) in old.iter().zip(&new) {
        let (old, new) = (&before.columns[*old], &after.columns[*new]);
        if !are_comparable(&old.column_type, &new.column_type)
            && context.eval.settings.foreign_key_checks
        {
            let arguments: [&dyn std::fmt::Display; 2] = [&old.name, &key.name];
            return Err(SqlError::new(&codes::FK_COLUMN_CANNOT_CHANGE, &arguments).into());
        }
        let sets_null = [key.on_delete, key.on_update].contains(&ReferentialAction::SetNull);
        if sets_null && !new.nullable {
            let arguments: [&dyn std::fmt::Display; 2] = [&new.name, &key.name];
            return Err(SqlError::new(&codes::FK_COLUMN_NOT_NULL, &arguments).into());
        }
    }
    Ok(())
}

/// The names of the parent's columns after its change.
fn check_child_key(
    context: &DdlContext<'_>,
    (before, after): (&TableDefinition, &TableDefinition),
    child: &TableDefinition,
    key: &ForeignKeyDefinition,
) -> Result<Vec<String>, ExecError> {
    let old: Option<Vec<usize>> =
        key.parent_columns.iter().map(|name| before.column_position(name)).collect();
    let checks = context.eval.settings.foreign_key_checks;
    let Some(old) = old else { return Ok(key.parent_columns.clone()) };
    let mut new = Vec::with_capacity(old.len());
    for at in &old {
        let column = &before.columns[*at];
        let Some(moved) = after.column_of_id(column.id) else {
            if !checks {
                return Ok(key.parent_columns.clone());
            }
            if before.index_over(&old).is_some() {
                return Err(needs_index(before, &old));
            }
            let table = format!("`{}`.`{}`", child.schema, child.name);
            let arguments: [&dyn std::fmt::Display; 3] = [&column.name, &key.name, &table];
            return Err(SqlError::new(&codes::FK_COLUMN_CANNOT_DROP_CHILD, &arguments).into());
        };
        let changed = &after.columns[moved];
        if checks && !are_comparable(&column.column_type, &changed.column_type) {
            let table = format!("{}.{}", child.schema, child.name);
            let arguments: [&dyn std::fmt::Display; 3] = [&column.name, &key.name, &table];
            return Err(SqlError::new(&codes::FK_COLUMN_CANNOT_CHANGE_CHILD, &arguments).into());
        }
        new.push(moved);
    }
    if checks && after.index_over(&new).is_none() && before.index_over(&old).is_some() {
        return Err(needs_index(before, &old));
    }
    Ok(new.iter().map(|at| after.columns[*at].name.clone()).collect())
}

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
