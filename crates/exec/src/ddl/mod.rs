//! Statements that define databases, tables and indexes.
//!
//! A definition is built and checked first ([`table`], [`column`], [`index`]); then the catalog
//! makes the change durable in one transaction of its own. Nothing has changed when it fails.

mod alter;
mod alter_check;
mod alter_copy;
mod alter_partition;
mod alter_plan;
mod check;
mod column;
mod compression;
mod computed;
mod foreign;
mod index;
mod partition;
mod partition_values;
mod select;
mod table;

use crate::spill::Spill;
use crate::{ExecError, Outcome};
use base::memory::MemoryAccount;
use catalog::information_schema::SessionTables;
use catalog::{
    Catalog, CatalogError, MetadataLockSet, SchemaOptions, TableEntry, TableRef, TemporaryTables,
    UserPrivileges,
};
use engine_api::{TableDefinition, Transaction};
use expr::EvalContext;
use runtime::CancelToken;
use std::sync::Arc;
use syntax::ast::{
    AlterDatabase, CreateDatabase, CreateTable, DatabaseOptions, DropDatabase, DropTable,
    Statement, TableName,
};
use types::{Charset, CollationId, SqlError, codes, collation};

/// What a definition statement has at hand.
pub struct DdlContext<'a> {
    /// Definitions.
    pub catalog: &'a Arc<Catalog>,
    /// Metadata locks of the session.
    pub locks: &'a mut MetadataLockSet,
    /// Settings and warnings.
    pub eval: &'a mut EvalContext,
    /// Current database.
    pub schema: Option<&'a str>,
    /// Memory of the statement.
    pub memory: &'a Arc<MemoryAccount>,
    /// Tells that it was killed.
    pub cancel: &'a CancelToken,
    /// The session's temporary tables.
    pub temporary: &'a mut TemporaryTables,
    /// The session's transaction, if one is open.
    pub transaction: Option<&'a mut dyn Transaction>,
    /// The SELECT of CREATE TABLE.
    pub query: Option<CreateQuery<'a>>,
}

/// The SELECT of CREATE TABLE, and what running it needs besides.
#[derive(Clone, Copy)]
pub struct CreateQuery<'a> {
    /// Its plan.
    pub plan: &'a plan::Prepared,
    /// Where what is too large for memory goes.
    pub spill: &'a Arc<Spill>,
    /// Who runs it.
    pub user: &'a UserPrivileges,
    /// What the sessions know, for information_schema.
    pub session: &'a dyn SessionTables,
    /// max_recursive_iterations.
    pub recursion_limit: u64,
}

impl DdlContext<'_> {
    /// The database and name that a table name means.
    fn resolve<'n>(&'n self, name: &'n TableName) -> Result<(&'n str, &'n str), ExecError> {
        let schema = name.schema.as_deref().or(self.schema);
        let schema = schema.ok_or_else(|| SqlError::new(&codes::NO_DB_ERROR, &[]))?;
        Ok((schema, &name.name))
    }

    /// What a table name means: a temporary table before one of the catalog.
    fn find(&self, schema: &str, name: &str) -> Result<TableRef, CatalogError> {
        match self.temporary.find(schema, name) {
            Some(entry) => Ok(TableRef::Base(entry.clone())),
            None => self.catalog.find(schema, name),
        }
    }

    /// Changes a table as [`Catalog::change_table`] does, or a temporary one. `edit` gets this
    /// context without the locks, or without the temporary tables.
    fn change_table(
        &mut self,
        schema: &str,
        name: &str,
        edit: &mut dyn FnMut(
            &mut Self,
            &mut dyn Transaction,
            &mut TableDefinition,
        ) -> Result<(), ExecError>,
    ) -> Result<Arc<TableEntry>, ExecError> {
        let catalog = self.catalog.clone();
        if self.temporary.find(schema, name).is_some() {
            let mut temporary = std::mem::take(self.temporary);
            let changed = catalog.change_temporary(
                &mut temporary,
                (schema, name),
                &mut |transaction, table| edit(self, transaction, table),
            );
            *self.temporary = temporary;
            return changed;
        }
        let mut locks = std::mem::take(self.locks);
        let changed = catalog.change_table(&mut locks, schema, name, &mut |transaction, table| {
            edit(self, transaction, table)
        });
        *self.locks = locks;
        changed
    }

    fn tick(&self) -> Result<(), ExecError> {
        runtime::yield_if_due();
        if self.cancel.is_cancelled() {
            return Err(SqlError::new(&codes::QUERY_INTERRUPTED, &[]).into());
        }
        Ok(())
    }

    fn note(&self, error: CatalogError) {
        self.note_sql(&SqlError::from(error));
    }

    fn note_sql(&self, error: &SqlError) {
        let warning = types::Warning::from(error);
        self.eval.push_warning(types::Warning { level: types::Level::Note, ..warning });
    }
}

/// A feature that is understood but not built yet.
pub(crate) fn unsupported(feature: &str) -> ExecError {
    SqlError::new(&codes::NOT_SUPPORTED_YET, &[&feature]).into()
}

/// Runs a definition statement; none if it is not one.
pub fn execute(
    context: &mut DdlContext<'_>,
    statement: &Statement,
) -> Result<Option<Outcome>, ExecError> {
    let outcome = match statement {
        Statement::CreateTable(create) => create_table(context, create)?,
        Statement::DropTable(drop) => drop_tables(context, drop)?,
        Statement::TruncateTable(name) => {
            let (schema, name) = context.resolve(name)?;
            let (schema, name) = (schema.to_string(), name.to_string());
            truncate(context, &schema, &name)?;
            Outcome::default()
        }
        Statement::RenameTable(pairs) => {
            let names: Vec<&TableName> = pairs.iter().flat_map(|(from, to)| [from, to]).collect();
            lock_names(context, &names)?;
            rename_all(context, pairs)?;
            Outcome::default()
        }
        Statement::CreateIndex(create) => index::create(context, create)?,
        Statement::DropIndex(drop) => index::drop(context, drop)?,
        Statement::AlterTable(alter) => alter::run(context, alter)?,
        Statement::CreateDatabase(create) => create_database(context, create)?,
        Statement::AlterDatabase(alter) => alter_database(context, alter)?,
        Statement::DropDatabase(drop) => drop_database(context, drop)?,
        _ => return Ok(None),
    };
    Ok(Some(outcome))
}

/// Locks everything that the statement is going to change, in one order.
pub(crate) fn lock_names(
    context: &mut DdlContext<'_>,
    names: &[&TableName],
) -> Result<(), ExecError> {
    let mut resolved = Vec::with_capacity(names.len());
    for name in names {
        let schema = name.schema.as_deref().or(context.schema);
        let schema = schema.ok_or_else(|| SqlError::new(&codes::NO_DB_ERROR, &[]))?;
        if context.temporary.find(schema, &name.name).is_none() {
            resolved.push((schema, name.name.as_str()));
        }
    }
    Ok(context.catalog.lock_family(context.locks, &resolved, &[])?)
}

/// RENAME TABLE: when one of them cannot be renamed, those before it get their names back.
fn rename_all(
    context: &mut DdlContext<'_>,
    pairs: &[(TableName, TableName)],
) -> Result<(), ExecError> {
    for (done, (from, to)) in pairs.iter().enumerate() {
        if let Err(error) = rename(context, from, to) {
            for (from, to) in pairs[..done].iter().rev() {
                rename(context, to, from)?;
            }
            return Err(error);
        }
    }
    Ok(())
}

fn rename(context: &mut DdlContext<'_>, from: &TableName, to: &TableName) -> Result<(), ExecError> {
    let owned = |(schema, name): (&str, &str)| (schema.to_string(), name.to_string());
    let (from, to) = (owned(context.resolve(from)?), owned(context.resolve(to)?));
    let (from, to) = ((from.0.as_str(), from.1.as_str()), (to.0.as_str(), to.1.as_str()));
    if context.temporary.find(from.0, from.1).is_some() {
        return Ok(context.catalog.rename_temporary(context.temporary, from, to)?);
    }
    Ok(context.catalog.rename_table(context.locks, from, to)?)
}

/// TRUNCATE: new trees under the old definition.
fn truncate(context: &mut DdlContext<'_>, schema: &str, name: &str) -> Result<(), ExecError> {
    if context.temporary.find(schema, name).is_none() {
        context.catalog.lock_family(context.locks, &[(schema, name)], &[])?;
        foreign::check_may_truncate(context, schema, name)?;
    }
    let engine = context.catalog.engine().clone();
    context.change_table(schema, name, &mut |context, trx, definition| {
        compression::check_rows_writable(context, definition)?;
        engine.drop_table(trx, definition)?;
        definition.id = base::TableId(0);
        Ok(engine.create_table(trx, definition)?)
    })?;
    Ok(())
}

fn create_table(context: &mut DdlContext<'_>, create: &CreateTable) -> Result<Outcome, ExecError> {
    let (schema, name) = context.resolve(&create.name)?;
    let (schema, name) = (schema.to_string(), name.to_string());
    check_like(context, create, (&schema, &name))?;
    let mut exists = match create.temporary {
        true => context.temporary.find(&schema, &name).is_some(),
        false => context.catalog.find(&schema, &name).is_ok(),
    };
    let is_there = exists && create.if_not_exists;
    if !create.temporary && !is_there {
        // Only a name that is not there is waited for: those who use a table do not matter.
        let keys = create.foreign_keys.iter().map(|key| foreign::parent_of(&schema, key));
        let inline = create.columns.iter().filter_map(foreign::of_column);
        let inline = inline.map(|key| foreign::parent_of(&schema, &key));
        let parents: Vec<_> = keys.chain(inline).collect();
        context.catalog.lock_family(context.locks, &[(&schema, &name)], &parents)?;
        exists = context.catalog.find(&schema, &name).is_ok();
    }
    if exists && !create.or_replace {
        if !create.if_not_exists {
            return Err(CatalogError::TableExists(name).into());
        }
        context.note(CatalogError::TableExists(name));
        return Ok(Outcome::default());
    }
    if let Some(query) = context.query {
        select::check_not_used(create, &schema, query.plan)?;
    }
    let (mut definition, counter) = match &create.like {
        Some(other) => {
            let (other_schema, other) = context.resolve(other)?;
            let entry = context.find(other_schema, other)?.base()?;
            let mut definition = (**entry.definition()).clone();
            definition.indexes.iter_mut().for_each(|index| index.repeats_key = false);
            (TableDefinition { foreign_keys: Vec::new(), ..definition }, None)
        }
        None => table::definition(context, create, &schema)?,
    };
    definition.schema = schema.clone();
    definition.name = name.clone();
    definition.id = base::TableId(0);
    definition.created_micros = runtime::wall_clock_micros();
    compression::check_writable(context, &definition, compression::Operation::Create)?;
    check_foreign_keys(context, create, &definition)?;
    if create.or_replace && exists && !create.temporary {
        foreign::check_may_drop(context, &schema, &name)?;
    }
    if !create.temporary {
        foreign::check_waiting_children(context, &definition)?;
    }
    if create.or_replace && exists {
        match create.temporary {
            true => _ = context.temporary.leave(&schema, &name),
            false => context.catalog.drop_table(context.locks, &schema, &name)?,
        }
    }
    let (entry, outcome) = match context.query {
        Some(query) => select::create_filled(context, create, definition, query)?,
        None => (create_empty(context, create.temporary, definition)?, Outcome::default()),
    };
    if let Some(counter) = counter {
        let handle = entry.handle()?;
        handle.set_auto_increment(counter.max(handle.next_auto_increment()))?;
    }
    drop_left(context)?;
    Ok(outcome)
}

/// Fails with 1066 if a table is to be like itself.
fn check_like(
    context: &DdlContext<'_>,
    create: &CreateTable,
    own: (&str, &str),
) -> Result<(), ExecError> {
    match &create.like {
        Some(other) if !create.temporary && context.resolve(other)? == own => {
            Err(SqlError::new(&codes::NONUNIQ_TABLE, &[&own.1]).into())
        }
        _ => Ok(()),
    }
}

/// Temporary tables have no foreign keys, and rows of a SELECT are not checked.
fn check_foreign_keys(
    context: &DdlContext<'_>,
    create: &CreateTable,
    table: &TableDefinition,
) -> Result<(), ExecError> {
    if table.foreign_keys.is_empty() {
        return Ok(());
    }
    if create.temporary {
        let text = format!(
            "Can't create table `{}`.`{}` (errno: 150 \"Foreign key constraint is incorrectly \
             formed\")",
            table.schema, table.name
        );
        return Err(SqlError::with_message(&codes::CANT_CREATE_TABLE, text).into());
    }
    match context.query {
        Some(_) => Err(unsupported("foreign keys in CREATE TABLE ... SELECT")),
        None => Ok(()),
    }
}

fn create_empty(
    context: &mut DdlContext<'_>,
    temporary: bool,
    definition: TableDefinition,
) -> Result<Arc<TableEntry>, ExecError> {
    Ok(match temporary {
        true => context.catalog.create_temporary(context.temporary, definition)?,
        false => context.catalog.create_table(context.locks, definition)?,
    })
}

/// Drops temporary tables whose names are gone, unless a rollback may still need them.
fn drop_left(context: &mut DdlContext<'_>) -> Result<(), ExecError> {
    if context.transaction.is_none() {
        context.catalog.drop_left(context.temporary)?;
    }
    Ok(())
}

fn drop_tables(context: &mut DdlContext<'_>, drop: &DropTable) -> Result<Outcome, ExecError> {
    if !drop.temporary {
        lock_names(context, &drop.names.iter().collect::<Vec<_>>())?;
    }
    let (mut missing, mut refused) = (Vec::new(), None);
    for name in &drop.names {
        let (schema, name) = context.resolve(name)?;
        let (schema, name) = (schema.to_string(), name.to_string());
        if context.temporary.leave(&schema, &name) {
            continue;
        }
        if drop.temporary {
            missing.push((schema, name));
            continue;
        }
        if let Err(error) = foreign::check_may_drop(context, &schema, &name) {
            refused.get_or_insert(error);
            continue;
        }
        match context.catalog.drop_table(context.locks, &schema, &name) {
            Ok(()) => {}
            Err(CatalogError::UnknownTable(..) | CatalogError::UnknownDatabase(_)) => {
                missing.push((schema, name));
            }
            Err(error) => return Err(error.into()),
        }
    }
    drop_left(context)?;
    if let Some(error) = refused {
        return Err(error);
    }
    if missing.is_empty() {
        return Ok(Outcome::default());
    }
    let names: Vec<String> = missing.iter().map(|(s, n)| format!("{s}.{n}")).collect();
    let error = SqlError::new(&codes::BAD_TABLE_ERROR, &[&names.join(",")]);
    if !drop.if_exists {
        return Err(error.into());
    }
    context.note_sql(&error);
    Ok(Outcome::default())
}

/// The collation that CHARACTER SET and COLLATE name together.
pub(crate) fn collation_of(
    charset: Option<&str>,
    collate: Option<&str>,
    default: CollationId,
) -> Result<CollationId, ExecError> {
    let charset = match charset {
        None => None,
        Some(name) => Some(
            Charset::by_name(name)
                .ok_or_else(|| SqlError::new(&codes::UNKNOWN_CHARACTER_SET, &[&name]))?,
        ),
    };
    let Some(name) = collate else {
        return Ok(charset.map_or(default, |charset| collation::default_of(charset).id));
    };
    let found = collation::by_name(name);
    let found = found.ok_or_else(|| SqlError::new(&codes::UNKNOWN_COLLATION, &[&name]))?;
    match charset {
        Some(charset) if charset != found.charset => {
            let arguments: [&dyn std::fmt::Display; 2] = [&found.name, &charset.name()];
            Err(SqlError::new(&codes::COLLATION_CHARSET_MISMATCH, &arguments).into())
        }
        _ => Ok(found.id),
    }
}

fn schema_options(options: &DatabaseOptions) -> Result<SchemaOptions, ExecError> {
    let default = SchemaOptions::default();
    let (charset, collate) = (options.charset.as_deref(), options.collation.as_deref());
    let comment = options.comment.as_deref().unwrap_or_default();
    Ok(SchemaOptions {
        collation: collation_of(charset, collate, default.collation)?,
        comment: String::from_utf8_lossy(comment).into_owned(),
    })
}

fn create_database(
    context: &mut DdlContext<'_>,
    create: &CreateDatabase,
) -> Result<Outcome, ExecError> {
    let options = schema_options(&create.options)?;
    if create.or_replace && context.catalog.schema(&create.name).is_some() {
        context.catalog.drop_schema(context.locks, &create.name)?;
    }
    match context.catalog.create_schema(context.locks, &create.name, options) {
        Err(error @ CatalogError::DatabaseExists(_)) if create.if_not_exists => {
            context.note(error);
            Ok(Outcome::default())
        }
        Err(error) => Err(error.into()),
        Ok(()) => Ok(Outcome { affected_rows: 1, ..Outcome::default() }),
    }
}

fn alter_database(
    context: &mut DdlContext<'_>,
    alter: &AlterDatabase,
) -> Result<Outcome, ExecError> {
    let name = alter.name.as_deref().or(context.schema);
    let name = name.ok_or_else(|| SqlError::new(&codes::NO_DB_ERROR, &[]))?.to_string();
    let options = schema_options(&alter.options)?;
    context.catalog.alter_schema(context.locks, &name, options)?;
    Ok(Outcome { affected_rows: 1, ..Outcome::default() })
}

fn drop_database(context: &mut DdlContext<'_>, drop: &DropDatabase) -> Result<Outcome, ExecError> {
    foreign::check_may_drop_schema(context, &drop.name)?;
    match context.catalog.drop_schema(context.locks, &drop.name) {
        Ok(tables) => Ok(Outcome { affected_rows: tables as u64, ..Outcome::default() }),
        Err(error @ CatalogError::DatabaseMissing(_)) if drop.if_exists => {
            context.note(error);
            Ok(Outcome::default())
        }
        Err(error) => Err(error.into()),
    }
}
