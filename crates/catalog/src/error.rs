//! Why a catalog operation failed.

use crate::DecodeError;
use engine_api::EngineError;
use thiserror::Error;

/// Result of a catalog operation.
pub type Result<T> = std::result::Result<T, CatalogError>;

/// Why a catalog operation failed. The texts are MariaDB's.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum CatalogError {
    /// 1049.
    #[error("Unknown database '{0}'")]
    UnknownDatabase(String),
    /// 1007.
    #[error("Can't create database '{0}'; database exists")]
    DatabaseExists(String),
    /// 1008.
    #[error("Can't drop database '{0}'; database doesn't exist")]
    DatabaseMissing(String),
    /// 1146: a table that a statement reads or writes.
    #[error("Table '{0}.{1}' doesn't exist")]
    NoSuchTable(String, String),
    /// 1050.
    #[error("Table '{0}' already exists")]
    TableExists(String),
    /// 1051: a table that DROP names.
    #[error("Unknown table '{0}.{1}'")]
    UnknownTable(String, String),
    /// 1347: a view where a table is wanted.
    #[error("'{0}.{1}' is not of type 'BASE TABLE'")]
    NotBaseTable(String, String),
    /// 1347: a table where a view is wanted.
    #[error("'{0}.{1}' is not of type 'VIEW'")]
    NotView(String, String),
    /// 1965: a view that DROP TABLE names.
    #[error("'{0}.{1}' is a view")]
    IsView(String, String),
    /// 4092: DROP VIEW of something else, or nothing.
    #[error("Unknown VIEW: '{0}.{1}'")]
    UnknownView(String, String),
    /// 1109: not a table of information_schema.
    #[error("Unknown table '{0}' in information_schema")]
    UnknownVirtualTable(String),
    /// 1044: a schema that nobody may change.
    #[error("Access denied for user to database '{0}'")]
    SystemDatabase(String),
    /// 1102.
    #[error("Incorrect database name '{0}'")]
    WrongDatabaseName(String),
    /// 1103.
    #[error("Incorrect table name '{0}'")]
    WrongTableName(String),
    /// 1205 while waiting for a metadata lock.
    #[error("Lock wait timeout exceeded; try restarting transaction")]
    LockWaitTimeout,
    /// 1317: killed while waiting for a metadata lock.
    #[error("Query execution was interrupted")]
    Interrupted,
    /// 1396: CREATE USER, DROP USER and the like.
    #[error("Operation {operation} failed for {accounts}")]
    CannotUser {
        /// `CREATE USER`, `DROP USER` ...
        operation: &'static str,
        /// The accounts, quoted, comma separated.
        accounts: String,
    },
    /// 1227.
    #[error("Access denied; you need (at least one of) the {0} privilege(s) for this operation")]
    PrivilegeNeeded(&'static str),
    /// 1141.
    #[error("There is no such grant defined for user '{0}' on host '{1}'")]
    NoSuchGrant(String, String),
    /// 1147.
    #[error("There is no such grant defined for user '{0}' on host '{1}' on table '{2}'")]
    NoSuchTableGrant(String, String, String),
    /// 1959.
    #[error("Invalid role specification `{0}`")]
    InvalidRole(String),
    /// 1959: a role that is there.
    #[error("User `{0}`@`{1}` has not been granted role `{2}`")]
    RoleNotGranted(String, String, String),
    /// 1133.
    #[error("Can't find any matching row in the user table")]
    NoSuchUser,
    /// 1961.
    #[error("Cannot grant role '{0}' to: {1}")]
    CannotGrantRole(String, String),
    /// 1962.
    #[error("Cannot revoke role '{0}' from: {1}")]
    CannotRevokeRole(String, String),
    /// The dictionary holds something this version cannot read.
    #[error("the dictionary entry of {object} cannot be read: {error}")]
    Dictionary {
        /// Which entry.
        object: String,
        /// What is wrong.
        error: DecodeError,
    },
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
