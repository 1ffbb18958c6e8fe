//! Why a statement failed, and what became of its transaction.

use catalog::{CatalogError, engine_error};
use engine_api::EngineError;
use types::row::LayoutError;
use types::{SqlError, codes};

/// An error on its way to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecError {
    /// Number, state and text.
    pub sql: SqlError,
    /// The engine has rolled back the whole transaction (deadlock, write conflict).
    pub transaction_ended: bool,
}

impl From<SqlError> for ExecError {
    fn from(sql: SqlError) -> Self {
        Self { sql, transaction_ended: false }
    }
}

impl From<EngineError> for ExecError {
    fn from(error: EngineError) -> Self {
        Self { sql: engine_error(&error, ""), transaction_ended: error.has_ended_transaction() }
    }
}

impl From<CatalogError> for ExecError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Engine(error) => error.into(),
            other => SqlError::from(other).into(),
        }
    }
}

/// A value that was not converted to its column's type before it was encoded.
impl From<LayoutError> for ExecError {
    fn from(error: LayoutError) -> Self {
        SqlError::with_message(&codes::UNKNOWN_ERROR, error.to_string()).into()
    }
}

/// The same, with the name of the table in the texts that have a place for it.
pub fn in_table(error: EngineError, table: &str) -> ExecError {
    ExecError { sql: engine_error(&error, table), transaction_ended: error.has_ended_transaction() }
}
