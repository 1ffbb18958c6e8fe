//! ALTER TABLE. Indexes are built and dropped in place; a change of columns copies the rows into
//! new trees while the table is locked.

use super::column::{self, column};
use super::table::{check_auto_increment, forbid_null, options};
use super::{DdlContext, foreign, index, lock_names, unsupported};
use crate::store::store;
use crate::{ExecError, Outcome};
use catalog::CatalogError;
use engine_api::{
    ColumnDefinition, KeyRange, LockMode, LockWait, RowBuffer, ScanDirection, ScanOptions,
    TableDefinition, Transaction,
};
use expr::{EvalContext, ResultType};
use std::sync::Arc;
use syntax::ast::{
    AlterAction, AlterTable, ColumnPlace, ColumnSpecification, ForeignKey, IndexSpecification,
};
use types::convert::ColumnPlace as StoredPlace;
use types::row::RowView;
use types::{SqlError, Value, ValueRef, codes};

/// What the actions amount to.
#[derive(Default)]
struct Work {
    /// The definition as it will be, without the indexes to be added.
    columns: Vec<(ColumnDefinition, Option<usize>)>,
    copy: bool,
    add: Vec<IndexSpecification>,
    drop: Vec<String>,
    rename_indexes: Vec<(String, String)>,
    auto_increment: Option<u64>,
    add_foreign: Vec<ForeignKey>,
    drop_foreign: Vec<String>,
}

/// Runs an ALTER TABLE.
pub fn run(context: &mut DdlContext<'_>, alter: &AlterTable) -> Result<Outcome, ExecError> {
    let (schema, name) = context.resolve(&alter.table)?;
    let (schema, name) = (schema.to_string(), name.to_string());
    // Before the definition is read: what is planned below is for the table as it stays.
    let renamed = alter.actions.iter().filter_map(|action| match action {
        AlterAction::Rename(to) => Some(to),
        _ => None,
    });
    let names: Vec<_> = renamed.chain([&alter.table]).collect();
    lock_names(context, &names)?;
    let parents = new_parents(&schema, alter);
    context.catalog.lock_family(context.locks, &[(&schema, &name)], &parents)?;
    let entry = match context.catalog.find(&schema, &name) {
        Ok(found) => found.base()?,
        Err(error @ CatalogError::NoSuchTable(..)) if alter.if_exists => {
            context.note(error);
            return Ok(Outcome::default());
        }
        Err(error) => return Err(error.into()),
    };
    let mut planned = (**entry.definition()).clone();
    let work = plan(context, alter, &mut planned)?;
    let mut copied = 0;
    let mut followers = Vec::new();
    if changes_definition(alter) {
        let catalog = context.catalog.clone();
        let locks = std::mem::take(context.locks);
        let mut locks_of_session = locks;
        let result = catalog.change_table(
            &mut locks_of_session,
            &schema,
            &name,
            &mut |transaction, table| {
                let before = table.clone();
                copied = apply(context, transaction, table, &planned, &work)?;
                let keys = &mut table.foreign_keys;
                keys.retain(|key| !work.drop_foreign.contains(&key.name));
                followers = foreign::check_altered(context, &before, table)?;
                let own = |t: &TableDefinition| t.schema == schema && t.name == name;
                if let Some(at) = followers.iter().position(own) {
                    table.foreign_keys = followers.swap_remove(at).foreign_keys;
                }
                let checked =
                    foreign::add_to_table(context, transaction, table, &work.add_foreign)?;
                copied = copied.max(checked);
                let engine = context.catalog.engine().clone();
                foreign::drop_superseded(&engine, transaction, table)
            },
        );
        if result.is_ok() {
            context.catalog.store_definitions(followers)?;
        }
        *context.locks = locks_of_session;
        result?;
    }
    if let Some(value) = work.auto_increment {
        context.catalog.find(&schema, &name)?.base()?.handle()?.set_auto_increment(value)?;
    }
    for action in &alter.actions {
        if let AlterAction::Rename(to) = action {
            let (to_schema, to) = context.resolve(to)?;
            let (to_schema, to) = (to_schema.to_string(), to.to_string());
            let catalog = context.catalog.clone();
            catalog.rename_table(context.locks, (&schema, &name), (&to_schema, &to))?;
        }
    }
    Ok(Outcome {
        affected_rows: copied,
        info: match changes_definition(alter) {
            true => {
                let warnings = context.eval.warning_count();
                format!("Records: {copied}  Duplicates: 0  Warnings: {warnings}")
            }
            false => String::new(),
        },
        ..Outcome::default()
    })
}

/// Parents of the foreign keys that are added.
fn new_parents(schema: &str, alter: &AlterTable) -> Vec<catalog::QualifiedName> {
    let of_action = |action: &AlterAction| match action {
        AlterAction::AddForeignKey(key) => Some(foreign::parent_of(schema, key)),
        AlterAction::AddColumn { column, .. } => {
            foreign::of_column(column).map(|key| foreign::parent_of(schema, &key))
        }
        _ => None,
    };
    alter.actions.iter().filter_map(of_action).collect()
}

/// Whether anything but a rename or the counter is asked for.
fn changes_definition(alter: &AlterTable) -> bool {
    let only_names = |action: &AlterAction| {
        matches!(action, AlterAction::Rename(_) | AlterAction::Keys(_) | AlterAction::Hint(..))
    };
    !alter.actions.iter().all(only_names)
}

fn plan(
    context: &DdlContext<'_>,
    alter: &AlterTable,
    table: &mut TableDefinition,
) -> Result<Work, ExecError> {
    let kept = table.columns.iter().cloned().enumerate().map(|(at, c)| (c, Some(at)));
    let mut work = Work { columns: kept.collect(), ..Work::default() };
    for action in &alter.actions {
        plan_action(context, action, table, &mut work)?;
    }
    Ok(work)
}

fn plan_action(
    context: &DdlContext<'_>,
    action: &AlterAction,
    table: &mut TableDefinition,
    work: &mut Work,
) -> Result<(), ExecError> {
    match action {
        AlterAction::AddColumn { column: written, place, if_not_exists } => {
            add_column(context, table, work, (written, place), *if_not_exists)?;
        }
        AlterAction::ChangeColumn { name, column: written, place, if_exists } => {
            change_column(context, table, work, name, (written, place), *if_exists)?;
        }
        AlterAction::DropColumn { name, if_exists } => {
            let Some(at) = find(work, name) else {
                return missing_column(name, *if_exists);
            };
            if work.columns.len() == 1 {
                return Err(SqlError::new(&codes::CANT_REMOVE_ALL_FIELDS, &[]).into());
            }
            work.columns.remove(at);
            work.copy = true;
        }
        AlterAction::RenameColumn { name, to } => {
            let Some(at) = find(work, name) else { return missing_column(name, false) };
            work.columns[at].0.name.clone_from(to);
            work.copy = true;
        }
        AlterAction::AlterDefault { name, default } => {
            let Some(at) = find(work, name) else { return missing_column(name, false) };
            let made = &mut work.columns[at].0;
            let (column_type, nullable) = (made.column_type, made.nullable && default.is_some());
            made.default =
                column::default(context.eval, name, &column_type, nullable, default.as_ref())?;
            table.columns[at].default = made.default.clone();
        }
        AlterAction::AddIndex(written) => {
            work.copy |= written.kind == syntax::ast::IndexKind::Primary;
            work.add.push((**written).clone());
        }
        AlterAction::DropIndex { name, .. } => work.drop.push(name.clone()),
        AlterAction::RenameIndex { name, to } => {
            work.rename_indexes.push((name.clone(), to.clone()));
        }
        AlterAction::Options(written) => {
            let read = options(written, table.collation, table.options.clone())?;
            table.collation = read.collation;
            table.options = read.kept;
            work.auto_increment = read.auto_increment;
        }
        AlterAction::Force => work.copy = true,
        AlterAction::AddForeignKey(written) => work.add_foreign.push((**written).clone()),
        AlterAction::DropForeignKey { name, if_exists } => {
            drop_foreign(context, table, work, (name, "FOREIGN KEY"), *if_exists)?;
        }
        AlterAction::DropConstraint { name, if_exists } => {
            drop_foreign(context, table, work, (name, "CONSTRAINT"), *if_exists)?;
        }
        AlterAction::Rename(_) | AlterAction::Keys(_) | AlterAction::Hint(..) => {}
        other => return Err(unsupported(&format!("ALTER TABLE {other:?}"))),
    }
    Ok(())
}

fn drop_foreign(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    work: &mut Work,
    (name, kind): (&str, &str),
    if_exists: bool,
) -> Result<(), ExecError> {
    let known = table.foreign_keys.iter().position(|key| key.name.eq_ignore_ascii_case(name));
    if let Some(at) = known {
        let key = table.foreign_keys.remove(at);
        work.drop_foreign.push(key.name);
        return Ok(());
    }
    let error = SqlError::new(&codes::CANT_DROP_FIELD_OR_KEY, &[&kind, &name]);
    if !if_exists {
        return Err(error.into());
    }
    let note = types::Warning { level: types::Level::Note, ..types::Warning::from(&error) };
    context.eval.push_warning(note);
    Ok(())
}

fn add_column(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    work: &mut Work,
    (written, place): (&ColumnSpecification, &ColumnPlace),
    if_not_exists: bool,
) -> Result<(), ExecError> {
    if find(work, &written.name).is_some() {
        if if_not_exists {
            return Ok(());
        }
        return Err(SqlError::new(&codes::DUP_FIELDNAME, &[&written.name]).into());
    }
    let mut made = column(context.eval, written, table.collation)?;
    made.id = next_id(work);
    let end = work.columns.len();
    let at = place_of(work, place, end)?;
    work.columns.insert(at, (made, None));
    work.add_foreign.extend(foreign::of_column(written));
    work.add.extend(index::of_column(written));
    work.copy = true;
    Ok(())
}

fn change_column(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    work: &mut Work,
    name: &str,
    (written, place): (&ColumnSpecification, &ColumnPlace),
    if_exists: bool,
) -> Result<(), ExecError> {
    let Some(at) = find(work, name) else {
        return missing_column(name, if_exists);
    };
    let mut made = column(context.eval, written, table.collation)?;
    made.id = work.columns[at].0.id;
    let source = work.columns.remove(at).1;
    let to = place_of(work, place, at)?;
    work.columns.insert(to, (made, source));
    work.add.extend(index::of_column(written));
    work.copy = true;
    Ok(())
}

fn find(work: &Work, name: &str) -> Option<usize> {
    work.columns.iter().position(|(column, _)| column.name.eq_ignore_ascii_case(name))
}

fn next_id(work: &Work) -> u32 {
    work.columns.iter().map(|(column, _)| column.id).max().unwrap_or(0) + 1
}

fn missing_column(name: &str, if_exists: bool) -> Result<(), ExecError> {
    if if_exists {
        return Ok(());
    }
    let arguments: [&dyn std::fmt::Display; 2] = [&"COLUMN", &name];
    Err(SqlError::new(&codes::CANT_DROP_FIELD_OR_KEY, &arguments).into())
}

fn place_of(work: &Work, place: &ColumnPlace, default: usize) -> Result<usize, ExecError> {
    match place {
        ColumnPlace::Default => Ok(default),
        ColumnPlace::First => Ok(0),
        ColumnPlace::After(name) => find(work, name).map(|at| at + 1).ok_or_else(|| {
            let arguments: [&dyn std::fmt::Display; 2] = [name, &"table"];
            SqlError::new(&codes::BAD_FIELD_ERROR, &arguments).into()
        }),
    }
}

/// Makes the change within the catalog's transaction; returns the number of rows copied.
fn apply(
    context: &mut DdlContext<'_>,
    transaction: &mut dyn Transaction,
    table: &mut TableDefinition,
    planned: &TableDefinition,
    work: &Work,
) -> Result<u64, ExecError> {
    let engine = context.catalog.engine().clone();
    if work.copy {
        return copy(context, transaction, table, planned, work);
    }
    table.collation = planned.collation;
    table.options = planned.options.clone();
    table.columns.clone_from(&planned.columns);
    for name in &work.drop {
        index::remove(&engine, transaction, table, name)?;
    }
    for (name, to) in &work.rename_indexes {
        let at = index::position(table, name);
        let arguments: [&dyn std::fmt::Display; 2] = [&"INDEX", name];
        let missing = || SqlError::new(&codes::CANT_DROP_FIELD_OR_KEY, &arguments);
        let at = at.ok_or_else(missing)?;
        table.indexes[at].name.clone_from(to);
    }
    for written in &work.add {
        let zone = context.eval.settings.time_zone;
        index::build(&engine, transaction, table, written, zone)?;
    }
    check_auto_increment(table)?;
    Ok(0)
}

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
    for index in &mut new.indexes {
        let parts = index.parts.iter().filter_map(|part| {
            moved(part.column).map(|column| engine_api::IndexPart { column, ..*part })
        });
        index.parts = parts.collect();
    }
    let clustered_lost = new.indexes[0].parts.is_empty();
    new.indexes.retain(|index| !index.parts.is_empty());
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
    Ok(new)
}

fn copy(
    context: &mut DdlContext<'_>,
    transaction: &mut dyn Transaction,
    table: &mut TableDefinition,
    planned: &TableDefinition,
    work: &Work,
) -> Result<u64, ExecError> {
    let engine = context.catalog.engine().clone();
    let mut new = copied_definition(table, planned, work)?;
    engine.create_table(transaction, &mut new)?;
    let source = engine.open_table(Arc::new(table.clone()))?;
    let target = engine.open_table(Arc::new(new.clone()))?;
    let (source_layout, layout) = (table.row_layout(), new.row_layout());
    let options = ScanOptions {
        index: 0,
        range: KeyRange::all(),
        direction: ScanDirection::Forward,
        lock: LockMode::None,
        lock_wait: LockWait::Wait,
        covering: false,
    };
    let mut cursor = source.scan(transaction, options)?;
    let (mut old, mut row) = (RowBuffer::default(), RowBuffer::default());
    let mut copied = 0;
    context.eval.warnings_are_errors.set(context.eval.settings.sql_mode.is_strict());
    context.cancel.set_phase(crate::phase::COPYING);
    while cursor.next(transaction, &mut old)? {
        context.tick()?;
        context.eval.row_number.set(copied + 1);
        let view = RowView::new(&source_layout, &old.key, &old.payload);
        let values = converted(context.eval, &view, table, work, copied)?;
        let references: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        layout.encode(&references, &mut row.key, &mut row.payload)?;
        if let Err(duplicate) = target.insert(transaction, &mut row)? {
            let name = &new.indexes[duplicate.index].name;
            return Err(crate::change::duplicate_entry("", name).into());
        }
        copied += 1;
        context.eval.reset_arena();
    }
    drop(cursor);
    if new.auto_increment_column().is_some() {
        let next = source.next_auto_increment().max(target.next_auto_increment());
        target.set_auto_increment(next)?;
    }
    engine.drop_table(transaction, table)?;
    *table = new;
    Ok(copied)
}

/// The values of a row under the new columns.
fn converted(
    eval: &EvalContext,
    view: &RowView<'_>,
    table: &TableDefinition,
    work: &Work,
    copied: u64,
) -> Result<Vec<Value>, ExecError> {
    let mut values = Vec::with_capacity(work.columns.len());
    for (column, source) in &work.columns {
        let value = match source {
            Some(at) => match view.get(*at) {
                ValueRef::Null if column.nullable => Value::Null,
                ValueRef::Null => {
                    return Err(SqlError::new(&codes::BAD_NULL_ERROR, &[&column.name]).into());
                }
                value => {
                    let from = ResultType::column(table.columns[*at].column_type, true);
                    let place = StoredPlace {
                        schema: &table.schema,
                        table: &table.name,
                        column: &column.name,
                        row: eval.row_number.get(),
                    };
                    store(value, &from, &column.column_type, &place, eval)?
                }
            },
            None if column.auto_increment => Value::UInt(copied + 1),
            None => crate::change::column_filler(eval, column)?,
        };
        values.push(value);
    }
    Ok(values)
}
