//! Tables that are computed when read: information_schema.

use crate::{Catalog, UserPrivileges};
use engine_api::{ColumnDefault, ColumnDefinition};
use std::sync::Arc;
use types::{CollationId, ColumnType, SqlError, TimeZone, TypeKind, Value};

/// A table whose rows are made by a function. Read-only, without indexes.
pub trait VirtualTable: Send + Sync {
    /// Name as listed (upper case in information_schema).
    fn name(&self) -> &str;
    /// Columns in order.
    fn columns(&self) -> &[ColumnDefinition];
    /// Gives every row to `emit` until it returns false or all are given. `filter` may leave
    /// out rows that it excludes, and need not: the caller filters again.
    fn rows(
        &self,
        context: &VirtualContext<'_>,
        filter: &VirtualFilter,
        emit: &mut dyn FnMut(&[Value]) -> bool,
    ) -> Result<(), SqlError>;
}

/// Equalities of the WHERE clause that save work: `TABLE_SCHEMA = 'x' AND TABLE_NAME = 'y'`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VirtualFilter {
    /// The one database wanted.
    pub schema: Option<String>,
    /// The one table wanted.
    pub table: Option<String>,
}

/// What a virtual table is computed from.
pub struct VirtualContext<'a> {
    /// Definitions.
    pub catalog: &'a Catalog,
    /// Who asks: rows about objects that he may not see are left out.
    pub user: &'a UserPrivileges,
    /// The session's default database.
    pub database: Option<&'a str>,
    /// The session's time zone, in which times are shown.
    pub time_zone: TimeZone,
    /// The rest of the server.
    pub server: &'a dyn ServerView,
}

/// What the catalog does not know about the running server; the session implements it.
pub trait ServerView {
    /// The process list, as much of it as the asking user may see.
    fn processes(&self) -> Vec<ProcessRow>;
    /// Names and values of SHOW VARIABLES.
    fn variables(&self, global: bool) -> Vec<(String, String)>;
    /// Names and values of SHOW STATUS.
    fn status(&self, global: bool) -> Vec<(String, String)>;
    /// Every system variable with its properties.
    fn system_variables(&self) -> Vec<SystemVariableRow>;
}

/// A row of PROCESSLIST.
#[derive(Clone, Debug, Default)]
pub struct ProcessRow {
    /// Connection id.
    pub id: u64,
    /// User.
    pub user: String,
    /// `localhost` or address and port.
    pub host: String,
    /// Default database.
    pub database: Option<String>,
    /// `Sleep`, `Query` ...
    pub command: String,
    /// For how long, in milliseconds.
    pub time_ms: u64,
    /// What it waits for.
    pub state: String,
    /// Statement text.
    pub query: Option<Vec<u8>>,
    /// Number of the statement.
    pub query_id: u64,
}

/// A row of SYSTEM_VARIABLES.
#[derive(Clone, Debug, Default)]
pub struct SystemVariableRow {
    /// Name in upper case.
    pub name: String,
    /// The session's value; none for global ones.
    pub session_value: Option<String>,
    /// The server's value; none for session-only ones.
    pub global_value: Option<String>,
    /// Compiled-in value.
    pub default_value: String,
    /// GLOBAL, SESSION, SESSION ONLY.
    pub scope: &'static str,
    /// BOOLEAN, BIGINT UNSIGNED, VARCHAR ...
    pub kind: &'static str,
    /// Smallest and largest number and the block size.
    pub range: Option<(String, String, String)>,
    /// Words, separated by commas.
    pub words: Option<String>,
    /// SET refuses it.
    pub read_only: bool,
}

/// utf8mb3_general_ci, the collation of names.
const NAMES_COLLATION: CollationId = CollationId(33);

/// Builds a column of a virtual table.
pub fn virtual_column(name: &str, column_type: ColumnType, nullable: bool) -> ColumnDefinition {
    ColumnDefinition {
        id: 0,
        name: name.to_owned(),
        column_type,
        nullable,
        default: if nullable { ColumnDefault::Null } else { ColumnDefault::None },
        on_update_now: false,
        auto_increment: false,
        comment: String::new(),
    }
}

/// `varchar(length)` in the character set of names.
pub fn varchar(length: u32) -> ColumnType {
    ColumnType {
        kind: TypeKind::VarChar,
        unsigned: false,
        zerofill: false,
        length,
        precision: 0,
        scale: 0,
        collation: NAMES_COLLATION,
    }
}

/// `longtext`.
pub fn longtext() -> ColumnType {
    ColumnType { kind: TypeKind::LongText, ..varchar(u32::MAX) }
}

/// `bigint(21)`, perhaps unsigned.
pub fn bigint(unsigned: bool) -> ColumnType {
    ColumnType { kind: TypeKind::BigInt, unsigned, collation: CollationId::BINARY, ..varchar(21) }
}

/// `datetime`.
pub fn datetime() -> ColumnType {
    ColumnType { kind: TypeKind::DateTime, collation: CollationId::BINARY, ..varchar(19) }
}

/// A reference to a virtual table.
pub type VirtualTableRef = Arc<dyn VirtualTable>;
