//! The one place where engine and catalog errors become MariaDB's numbers and texts.

use crate::CatalogError;
use engine_api::EngineError;
use types::{SqlError, codes};

/// The error that a client sees for an engine error; `table` is the table in question, empty if
/// there is none.
pub fn engine_error(error: &EngineError, table: &str) -> SqlError {
    match error {
        EngineError::Deadlock => SqlError::new(&codes::LOCK_DEADLOCK, &[]),
        EngineError::WriteConflict => SqlError::with_message(
            &codes::LOCK_DEADLOCK,
            "Record was changed by another transaction after this one's snapshot; try restarting \
             transaction",
        ),
        EngineError::LockWaitTimeout
        | EngineError::LockNotAvailable
        | EngineError::TimedOutAndRolledBack => SqlError::new(&codes::LOCK_WAIT_TIMEOUT, &[]),
        EngineError::LockTableFull => SqlError::new(&codes::LOCK_TABLE_FULL, &[]),
        EngineError::Cancelled => SqlError::new(&codes::QUERY_INTERRUPTED, &[]),
        EngineError::Corrupt { object, detail } => SqlError::with_message(
            &codes::NOT_KEYFILE,
            format!("Index for table '{object}' is corrupt; try to repair it ({detail})"),
        ),
        EngineError::DiskFull => SqlError::new(&codes::RECORD_FILE_FULL, &[&table]),
        EngineError::Failed(detail) => SqlError::with_message(
            &codes::GET_ERRNO,
            format!("Got error 5 \"{detail}\" from storage engine InnoDB"),
        ),
        EngineError::HalfUndone => SqlError::with_message(
            &codes::ERROR_DURING_ROLLBACK,
            format!("Got error 5 \"{error}\" during ROLLBACK"),
        ),
        EngineError::RowTooLarge => SqlError::new(&codes::TOO_BIG_ROWSIZE, &[&65_535]),
        EngineError::KeyTooLong { limit_bytes } => {
            SqlError::new(&codes::TOO_LONG_KEY, &[limit_bytes])
        }
        EngineError::OutOfMemory(detail) => {
            SqlError::with_message(&codes::OUT_OF_RESOURCES, format!("Out of memory: {detail}"))
        }
        EngineError::ReadOnly => SqlError::new(&codes::UNSUPPORTED_COMPRESSED_TABLE, &[]),
        EngineError::Unsupported(feature) => SqlError::new(&codes::NOT_SUPPORTED_YET, &[feature]),
    }
}

impl From<CatalogError> for SqlError {
    fn from(error: CatalogError) -> Self {
        let code = match &error {
            CatalogError::UnknownDatabase(_) => &codes::BAD_DB_ERROR,
            CatalogError::DatabaseExists(_) => &codes::DB_CREATE_EXISTS,
            CatalogError::DatabaseMissing(_) => &codes::DB_DROP_EXISTS,
            CatalogError::NoSuchTable(..) => &codes::NO_SUCH_TABLE,
            CatalogError::TableExists(_) => &codes::TABLE_EXISTS_ERROR,
            CatalogError::UnknownTable(..) => &codes::BAD_TABLE_ERROR,
            CatalogError::NotBaseTable(..) | CatalogError::NotView(..) => &codes::WRONG_OBJECT,
            CatalogError::IsView(..) => &codes::IT_IS_A_VIEW,
            CatalogError::UnknownView(..) => &codes::UNKNOWN_VIEW,
            CatalogError::UnknownVirtualTable(_) => &codes::UNKNOWN_TABLE,
            CatalogError::SystemDatabase(_) => &codes::DBACCESS_DENIED_ERROR,
            CatalogError::WrongDatabaseName(_) => &codes::WRONG_DB_NAME,
            CatalogError::WrongTableName(_) => &codes::WRONG_TABLE_NAME,
            CatalogError::LockWaitTimeout => &codes::LOCK_WAIT_TIMEOUT,
            CatalogError::Interrupted => &codes::QUERY_INTERRUPTED,
            CatalogError::CannotUser { .. } => &codes::CANNOT_USER,
            CatalogError::NoSuchGrant(..) => &codes::NONEXISTING_GRANT,
            CatalogError::NoSuchTableGrant(..) => &codes::NONEXISTING_TABLE_GRANT,
            CatalogError::InvalidRole(_) | CatalogError::RoleNotGranted(..) => &codes::INVALID_ROLE,
            CatalogError::NoSuchUser => &codes::PASSWORD_NO_MATCH,
            CatalogError::CannotGrantRole(..) => &codes::CANNOT_GRANT_ROLE,
            CatalogError::CannotRevokeRole(..) => &codes::CANNOT_REVOKE_ROLE,
            CatalogError::PrivilegeNeeded(..) => &codes::SPECIFIC_ACCESS_DENIED_ERROR,
            CatalogError::Dictionary { .. } => &codes::NOT_KEYFILE,
            CatalogError::Engine(error) => return engine_error(error, ""),
        };
        SqlError::with_message(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_retryable() {
        for error in [EngineError::Deadlock, EngineError::WriteConflict] {
            let error = engine_error(&error, "");
            assert_eq!((error.code, error.sqlstate_text()), (1213, "40001"));
        }
        assert_eq!(engine_error(&EngineError::LockWaitTimeout, "").code, 1205);
    }

    #[test]
    fn catalog_errors_have_mariadbs_texts() {
        let error = SqlError::from(CatalogError::NoSuchTable("a".into(), "b".into()));
        assert_eq!(error.to_string(), "1146 (42S02): Table 'a.b' doesn't exist");
        let error = SqlError::from(CatalogError::Engine(EngineError::DiskFull));
        assert_eq!(error.code, 1114);
    }
}
