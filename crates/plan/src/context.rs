//! What planning needs from the session.

use catalog::{Catalog, MetadataLockSet, TemporaryTables, UserPrivileges};
use expr::{EvalContext, ResultType};
use std::sync::Arc;
use syntax::ast::SystemVariable;
use types::{SqlError, Value};

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
