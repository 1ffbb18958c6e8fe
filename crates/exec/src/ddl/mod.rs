//! Statements that define databases, tables and indexes.
//!
//! A definition is built and checked first ([`table`], [`column`], [`index`]); then the catalog
//! makes the change durable in one transaction of its own. Nothing has changed when it fails.

mod alter;
mod column;
mod foreign;
mod index;
mod table;

use crate::{ExecError, Outcome};
use base::memory::MemoryAccount;
use catalog::{Catalog, CatalogError, MetadataLockSet, SchemaOptions};
use engine_api::TableDefinition;
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
}

impl DdlContext<'_> {
    /// The database and name that a table name means.
    fn resolve<'n>(&'n self, name: &'n TableName) -> Result<(&'n str, &'n str), ExecError> {
        let schema = name.schema.as_deref().or(self.schema);
        let schema = schema.ok_or_else(|| SqlError::new(&codes::NO_DB_ERROR, &[]))?;
        Ok((schema, &name.name))
    }

    fn note(&self, error: CatalogError) {
        let warning = types::Warning::from(&SqlError::from(error));
        self.eval.push_warning(types::Warning { level: types::Level::Note, ..warning });
    }

    fn tick(&self) -> Result<(), ExecError> {
        runtime::yield_if_due();
        if self.cancel.is_cancelled() {
            return Err(SqlError::new(&codes::QUERY_INTERRUPTED, &[]).into());
        }
        Ok(())
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
            context.catalog.lock_family(context.locks, &[(&schema, &name)], &[])?;
            foreign::check_may_truncate(context, &schema, &name)?;
            context.catalog.truncate_table(context.locks, &schema, &name)?;
            Outcome::default()
        }
        Statement::RenameTable(pairs) => {
            let names: Vec<&TableName> = pairs.iter().flat_map(|(from, to)| [from, to]).collect();
            lock_names(context, &names)?;
            for (from, to) in pairs {
                rename(context, from, to)?;
            }
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
        resolved.push((schema, name.name.as_str()));
    }
    Ok(context.catalog.lock_family(context.locks, &resolved, &[])?)
}

fn rename(context: &mut DdlContext<'_>, from: &TableName, to: &TableName) -> Result<(), ExecError> {
    let owned = |(schema, name): (&str, &str)| (schema.to_string(), name.to_string());
    let (from, to) = (owned(context.resolve(from)?), owned(context.resolve(to)?));
    let (from, to) = ((from.0.as_str(), from.1.as_str()), (to.0.as_str(), to.1.as_str()));
    Ok(context.catalog.rename_table(context.locks, from, to)?)
}

fn create_table(context: &mut DdlContext<'_>, create: &CreateTable) -> Result<Outcome, ExecError> {
    if create.temporary {
        return Err(unsupported("CREATE TEMPORARY TABLE"));
    }
    if create.query.is_some() {
        return Err(unsupported("CREATE TABLE ... SELECT"));
    }
    let (schema, name) = context.resolve(&create.name)?;
    let (schema, name) = (schema.to_string(), name.to_string());
    let mut exists = context.catalog.find(&schema, &name).is_ok();
    if !(exists && create.if_not_exists) {
        // Only a name that is not there is waited for: those who use a table do not matter.
        let keys = create.foreign_keys.iter().map(|key| foreign::parent_of(&schema, key));
        let inline = create.columns.iter().filter_map(foreign::of_column);
        let inline = inline.map(|key| foreign::parent_of(&schema, &key));
        let parents: Vec<_> = keys.chain(inline).collect();
        context.catalog.lock_family(context.locks, &[(&schema, &name)], &parents)?;
        exists = context.catalog.find(&schema, &name).is_ok();
    }
    if exists && create.if_not_exists {
        context.note(CatalogError::TableExists(name));
        return Ok(Outcome::default());
    }
    let (mut definition, counter) = match &create.like {
        Some(other) => {
            let (other_schema, other) = context.resolve(other)?;
            let entry = context.catalog.find(other_schema, other)?.base()?;
            let definition = (**entry.definition()).clone();
            (TableDefinition { foreign_keys: Vec::new(), ..definition }, None)
        }
        None => table::definition(context, create, &schema)?,
    };
    definition.schema = schema.clone();
    definition.name = name.clone();
    definition.id = base::TableId(0);
    definition.created_micros = runtime::wall_clock_micros();
    if create.or_replace && exists {
        foreign::check_may_drop(context, &schema, &name)?;
    }
    foreign::check_waiting_children(context, &definition)?;
    if create.or_replace && exists {
        context.catalog.drop_table(context.locks, &schema, &name)?;
    }
    let entry = context.catalog.create_table(context.locks, definition)?;
    if let Some(counter) = counter {
        entry.handle()?.set_auto_increment(counter)?;
    }
    Ok(Outcome::default())
}

fn drop_tables(context: &mut DdlContext<'_>, drop: &DropTable) -> Result<Outcome, ExecError> {
    lock_names(context, &drop.names.iter().collect::<Vec<_>>())?;
    let (mut missing, mut refused) = (Vec::new(), None);
    for name in &drop.names {
        let (schema, name) = context.resolve(name)?;
        let (schema, name) = (schema.to_string(), name.to_string());
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
    if let Some(error) = refused {
        return Err(error);
    }
    if drop.if_exists {
        for (schema, name) in missing {
            context.note(CatalogError::UnknownTable(schema, name));
        }
    } else if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(|(s, n)| format!("{s}.{n}")).collect();
        return Err(SqlError::new(&codes::BAD_TABLE_ERROR, &[&names.join(",")]).into());
    }
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
