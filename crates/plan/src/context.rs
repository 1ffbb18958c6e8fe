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
}

/// The tables of LOCK TABLES.
#[derive(Clone, Debug, Default)]
pub struct LockedTables {
    tables: Vec<(String, String, bool)>,
}

impl LockedTables {
    /// Adds a table.
    pub fn add(&mut self, schema: &str, name: &str, write: bool) {
        self.tables.push((schema.to_string(), name.to_string(), write));
    }

    /// A table is gone; whether none is left.
    pub fn remove(&mut self, schema: &str, name: &str) -> bool {
        self.tables.retain(|(s, n, _)| s != schema || n != name);
        self.tables.is_empty()
    }

    /// Databases and names.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tables.iter().map(|(schema, name, _)| (schema.as_str(), name.as_str()))
    }

    /// Fails with 1100 if the table was not locked, with 1099 if not for writing.
    pub fn check(&self, schema: &str, name: &str, write: bool) -> Result<(), SqlError> {
        let mut found = self.tables.iter().filter(|(s, n, _)| s == schema && n == name).peekable();
        if found.peek().is_none() {
            return Err(SqlError::new(&codes::TABLE_NOT_LOCKED, &[&name]));
        }
        if write && !found.any(|(_, _, for_writing)| *for_writing) {
            return Err(SqlError::new(&codes::TABLE_NOT_LOCKED_FOR_WRITE, &[&name]));
        }
        Ok(())
    }
}
