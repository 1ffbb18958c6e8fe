//! What planning needs from the session.

use catalog::{Catalog, MetadataLockSet, TemporaryTables, UserPrivileges};
use expr::{EvalContext, ResultType};
use std::sync::Arc;
use syntax::ast::SystemVariable;
use types::{SqlError, Value, codes};

/// Reads system variables; the session's registry answers.
pub trait SystemVariables {
    /// The value of `@@name` with its type; 1193 for an unknown one, 1238 for a wrong scope.
    fn read(&self, variable: &SystemVariable) -> Result<(Value, ResultType), SqlError>;
}

/// Everything outside the statement that a plan depends on.
pub struct PlanContext<'a> {
    /// Definitions.
    pub catalog: &'a Arc<Catalog>,
    /// Takes a shared lock for every table of the statement.
    pub locks: &'a mut MetadataLockSet,
    /// Who asks.
    pub user: &'a UserPrivileges,
    /// What LOCK TABLES leaves the session to use.
    pub locked: Option<&'a LockedTables>,
    /// The session's temporary tables.
    pub temporary: Option<&'a TemporaryTables>,
    /// Default database.
    pub database: Option<&'a str>,
    /// Settings, and types of the user variables.
    pub eval: &'a EvalContext,
    /// System variables.
    pub variables: &'a dyn SystemVariables,
    /// Types of the values bound to the parameters. Missing ones (while only preparing) are
    /// taken for NULL; the plan must be made again once they are known.
    pub parameters: &'a [ResultType],
    /// Which statistics are taken from the tables of `mysql`.
    pub stat_tables: StatTables,
    /// Their values, if the plan is for these alone; else none.
    pub values: &'a [Value],
}

/// Which statistics are taken from `mysql.table_stats` and its kin where they are there
/// (`use_stat_tables`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatTables {
    /// Numbers of rows, and of equal keys of indexes.
    pub counts: bool,
    /// What is known of the values of columns.
    pub columns: bool,
}

/// One of [`LockedTables`].
#[derive(Clone, Debug)]
struct LockedTable {
    schema: String,
    name: String,
    alias: String,
    write: bool,
}

/// The tables of LOCK TABLES.
#[derive(Clone, Debug, Default)]
pub struct LockedTables {
    tables: Vec<LockedTable>,
}

impl LockedTables {
    /// Adds a table under the name that statements are to use.
    pub fn add(&mut self, schema: &str, name: &str, alias: &str, write: bool) {
        let (schema, name, alias) = (schema.to_string(), name.to_string(), alias.to_string());
        self.tables.push(LockedTable { schema, name, alias, write });
    }

    /// Some of them are locked for writing.
    pub fn has_writable(&self) -> bool {
        self.tables.iter().any(|table| table.write)
    }

    /// A table is gone; whether none is left.
    pub fn remove(&mut self, schema: &str, name: &str) -> bool {
        self.tables.retain(|table| table.schema != schema || table.name != name);
        self.tables.is_empty()
    }

    /// Databases and names.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tables.iter().map(|table| (table.schema.as_str(), table.name.as_str()))
    }

    /// Fails with 1100 if the table was not locked under this alias, with 1099 if not for
    /// writing.
    pub fn check(
        &self,
        (schema, name): (&str, &str),
        alias: &str,
        write: bool,
    ) -> Result<(), SqlError> {
        let is_it = |t: &&LockedTable| t.schema == schema && t.name == name && t.alias == alias;
        Self::check_found(self.tables.iter().filter(is_it), alias, write)
    }

    /// The same for a change of the definition, under whatever alias.
    pub fn check_definition(&self, schema: &str, name: &str) -> Result<(), SqlError> {
        let is_it = |t: &&LockedTable| t.schema == schema && t.name == name;
        Self::check_found(self.tables.iter().filter(is_it), name, true)
    }

    fn check_found<'t>(
        found: impl Iterator<Item = &'t LockedTable>,
        name: &str,
        write: bool,
    ) -> Result<(), SqlError> {
        let mut found = found.peekable();
        if found.peek().is_none() {
            return Err(SqlError::new(&codes::TABLE_NOT_LOCKED, &[&name]));
        }
        if write && !found.any(|table| table.write) {
            return Err(SqlError::new(&codes::TABLE_NOT_LOCKED_FOR_WRITE, &[&name]));
        }
        Ok(())
    }
}
