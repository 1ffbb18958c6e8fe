//! ALTER TABLE. Indexes are built and dropped in place; a change of columns copies the rows into
//! new trees while the table is locked.

use super::alter_copy::copy;
use super::alter_plan::{Work, plan};
use super::table::check_auto_increment;
use super::{DdlContext, foreign, index, lock_names};
use crate::{ExecError, Outcome};
use catalog::CatalogError;
use engine_api::{Engine, TableDefinition, Transaction};
use expr::EvalContext;
use plan::physical::{RowCheck, RowCheckKind};
use runtime::CancelToken;
use std::sync::Arc;
use std::time::Duration;
use syntax::ast::{AlterAction, AlterTable, TableName};
use types::{SqlError, codes};

/// What a change works with.
pub(super) struct Scene<'a> {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) cancel: CancelToken,
    pub(super) planned: &'a TableDefinition,
    pub(super) work: &'a Work,
    /// What rows which are copied must fulfil.
    pub(super) checks: Vec<RowCheck>,
    /// Rows of which this is true are not copied.
    pub(super) leaves_out: Option<expr::Expr>,
    /// Only rows of which this is true count.
    pub(super) counts: Option<expr::Expr>,
}

impl Scene<'_> {
    pub(super) fn tick(&self) -> Result<(), ExecError> {
        runtime::yield_if_due();
        if self.cancel.is_cancelled() {
            return Err(SqlError::new(&codes::QUERY_INTERRUPTED, &[]).into());
        }
        Ok(())
    }
}

/// Runs an ALTER TABLE.
pub fn run(context: &mut DdlContext<'_>, alter: &AlterTable) -> Result<Outcome, ExecError> {
    let (schema, name) = context.resolve(&alter.table)?;
    let (schema, name) = (schema.to_string(), name.to_string());
    lock_tables(context, alter, (&schema, &name))?;
    let entry = match context.find(&schema, &name) {
        Ok(found) => found.base()?,
        Err(error @ CatalogError::NoSuchTable(..)) if alter.if_exists => {
            let warning = types::Warning::from(&SqlError::from(error));
            context.eval.push_warning(types::Warning { level: types::Level::Error, ..warning });
            return Ok(Outcome::default());
        }
        Err(error) => return Err(error.into()),
    };
    let mut planned = (**entry.definition()).clone();
    let mut work = plan(context, alter, &mut planned)?;
    if changes_definition(alter) {
        super::compression::check_writable(
            context,
            &planned,
            super::compression::Operation::Alter,
        )?;
    }
    if entry.is_temporary() && changes_definition(alter) {
        (work.copy, work.reports) = (true, true);
    }
    let mut reports = work.reports || work.ignore;
    let mut copied = (0, 0);
    if changes_definition(alter) {
        let scene = Scene {
            engine: context.catalog.engine().clone(),
            cancel: context.cancel.clone(),
            planned: &planned,
            work: &work,
            checks: new_checks(context, &planned, &work)?,
            leaves_out: in_partitions(context, entry.definition(), &work.leave_out)?,
            counts: in_partitions(context, entry.definition(), &work.counted)?,
        };
        let mut followers = Vec::new();
        let changed = context.change_table(&schema, &name, &mut |context, transaction, table| {
            let before = table.clone();
            copied = apply(&scene, transaction, table, context.eval)?;
            let (checked, changed) = foreign_keys(context, transaction, &before, table, &work)?;
            reports |= checked > 0;
            copied.0 = copied.0.max(checked);
            followers = changed;
            Ok(())
        });
        changed?;
        context.catalog.store_definitions(followers)?;
    }
    if let Some(value) = work.auto_increment {
        context.find(&schema, &name)?.base()?.handle()?.set_auto_increment(value)?;
    }
    for action in &alter.actions {
        if let AlterAction::Rename(to) = action {
            let from = TableName { schema: Some(schema.clone()), name: name.clone() };
            super::rename(context, &from, to)?;
        }
    }
    if only_names(alter) || truncates(alter) {
        return Ok(Outcome::default());
    }
    // What MariaDB does in place or at once changes no rows in its eyes.
    Ok(outcome(context, if reports { copied } else { (0, 0) }))
}

/// Locks the table, its new name and the parents of new foreign keys, before the definition is
/// read: what is planned afterwards is for the table as it stays.
fn lock_tables(
    context: &mut DdlContext<'_>,
    alter: &AlterTable,
    (schema, name): (&str, &str),
) -> Result<(), ExecError> {
    let renamed = alter.actions.iter().filter_map(|action| match action {
        AlterAction::Rename(to) => Some(to),
        _ => None,
    });
    let names: Vec<_> = renamed.chain([&alter.table]).collect();
    let timeout = context.locks.timeout();
    if let Some(seconds) = alter.wait_seconds {
        context.locks.set_timeout(Duration::from_secs(seconds));
    }
    let locked = lock_names(context, &names);
    context.locks.set_timeout(timeout);
    locked?;
    if context.temporary.find(schema, name).is_none() {
        let parents = new_parents(schema, alter);
        context.catalog.lock_family(context.locks, &[(schema, name)], &parents)?;
    }
    Ok(())
}

/// TRUNCATE PARTITION tells nothing of records.
fn truncates(alter: &AlterTable) -> bool {
    matches!(alter.actions[..], [AlterAction::TruncatePartitions(_)])
}

/// What is true of the rows of some partitions.
fn in_partitions(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    partitions: &[usize],
) -> Result<Option<expr::Expr>, ExecError> {
    match partitions {
        [] => Ok(None),
        some => super::check::in_partitions(context, table, some).map(Some),
    }
}

/// The constraints of the table as it will be; 1054 for one whose column is gone.
fn new_checks(
    context: &DdlContext<'_>,
    planned: &TableDefinition,
    work: &Work,
) -> Result<Vec<RowCheck>, ExecError> {
    let columns = work.columns.iter().map(|(column, _)| column.clone()).collect();
    let altered = TableDefinition { columns, ..planned.clone() };
    if !work.copy || !altered.has_checks() {
        return Ok(Vec::new());
    }
    let mut checks = super::check::bound(context, &altered)?;
    if !work.reports && !work.ignore {
        // What MariaDB does without copying it does without looking at the rows.
        checks.retain(|check| !matches!(check.kind, RowCheckKind::Constraint(_)));
    }
    Ok(checks)
}

fn outcome(context: &DdlContext<'_>, (records, duplicates): (u64, u64)) -> Outcome {
    let warnings = context.eval.warning_count();
    Outcome {
        affected_rows: records,
        info: format!("Records: {records}  Duplicates: {duplicates}  Warnings: {warnings}"),
        ..Outcome::default()
    }
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

/// What becomes of foreign keys when a table has been altered: the number of rows that were
/// checked, and the definitions of other tables that follow.
fn foreign_keys(
    context: &mut DdlContext<'_>,
    transaction: &mut dyn Transaction,
    before: &TableDefinition,
    table: &mut TableDefinition,
    work: &Work,
) -> Result<(u64, Vec<TableDefinition>), ExecError> {
    let keys = &mut table.foreign_keys;
    keys.retain(|key| !work.drop_foreign.contains(&key.name));
    let mut followers = foreign::check_altered(context, before, table)?;
    let own = |t: &TableDefinition| t.schema == before.schema && t.name == before.name;
    if let Some(at) = followers.iter().position(own) {
        table.foreign_keys = followers.swap_remove(at).foreign_keys;
    }
    let checked = foreign::add_to_table(context, transaction, table, &work.add_foreign)?;
    let engine = context.catalog.engine().clone();
    foreign::drop_superseded(&engine, transaction, table)?;
    Ok((checked, followers))
}

/// Whether nothing is asked for but another name, or what needs no change at all.
fn only_names(alter: &AlterTable) -> bool {
    let is_name =
        |action: &AlterAction| matches!(action, AlterAction::Rename(_) | AlterAction::Keys(_));
    !alter.actions.is_empty() && alter.actions.iter().all(is_name)
}

/// Whether anything but a rename or the counter is asked for.
fn changes_definition(alter: &AlterTable) -> bool {
    let only_names = |action: &AlterAction| {
        matches!(action, AlterAction::Rename(_) | AlterAction::Keys(_) | AlterAction::Hint(..))
    };
    !alter.actions.iter().all(only_names)
}

/// Makes the change within the catalog's transaction; returns the number of rows read and of
/// those left out as duplicates.
fn apply(
    scene: &Scene<'_>,
    transaction: &mut dyn Transaction,
    table: &mut TableDefinition,
    eval: &mut EvalContext,
) -> Result<(u64, u64), ExecError> {
    let (engine, planned, work) = (&scene.engine, scene.planned, scene.work);
    if work.copy {
        return copy(scene, transaction, table, eval);
    }
    table.collation = planned.collation;
    if table.options.codec != planned.options.codec {
        table.options.codec.clone_from(&planned.options.codec);
        engine.change_options(transaction, table)?;
    }
    table.options = planned.options.clone();
    table.columns = work.columns.iter().map(|(column, _)| column.clone()).collect();
    for name in &work.drop {
        index::remove(engine, transaction, table, name)?;
    }
    rename_indexes(table, work)?;
    for written in &work.add {
        index::build(engine, transaction, table, written, eval.settings.time_zone)?;
    }
    check_auto_increment(table)?;
    super::partition::check_indexes(table)?;
    Ok((0, 0))
}

/// RENAME INDEX.
pub(super) fn rename_indexes(table: &mut TableDefinition, work: &Work) -> Result<(), ExecError> {
    for (name, to) in &work.rename_indexes {
        let arguments: [&dyn std::fmt::Display; 2] = [name, &table.name];
        let missing = || SqlError::new(&codes::KEY_DOES_NOT_EXISTS, &arguments);
        let at = index::position(table, name).ok_or_else(missing)?;
        if to.eq_ignore_ascii_case("primary") {
            return Err(SqlError::new(&codes::WRONG_NAME_FOR_INDEX, &[to]).into());
        }
        if index::position(table, to).is_some_and(|other| other != at) {
            return Err(SqlError::new(&codes::DUP_KEYNAME, &[to]).into());
        }
        table.indexes[at].name.clone_from(to);
    }
    Ok(())
}
