//! information_schema: tables whose rows are made when they are read.
//!
//! A [`VirtualTable`] has columns and a function that gives all its rows for a reader. The
//! planner scans it like a table without indexes; equality conditions on the schema's and the
//! table's name are handed down in the [`Scope`], so that looking up one table does not describe
//! all of them.

mod columns;
mod compression;
mod constraints;
mod foreign_keys;
mod innodb;
mod metadata_locks;
mod metrics;
mod privileges;
mod rows;
mod session_rows;
mod storage;
mod thread_pool;

use crate::{Catalog, Result, ShownLocks, TableEntry, UserPrivileges};
use engine_api::Isolation;
use std::sync::Arc;
use types::column_type::SCALE_NOT_FIXED;
use types::{CollationId, ColumnType, TimeZone, TypeKind, Value};

/// Type of a column of a virtual table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtualType {
    /// VARCHAR of so many characters.
    Varchar(u32),
    /// CHAR of so many characters.
    Char(u32),
    /// LONGTEXT.
    LongText,
    /// VARBINARY of so many bytes.
    VarBinary(u32),
    /// BLOB.
    Blob,
    /// BIGINT with a display width.
    BigInt(u32),
    /// BIGINT UNSIGNED with a display width.
    BigIntUnsigned(u32),
    /// INT with a display width.
    Int(u32),
    /// INT UNSIGNED with a display width.
    IntUnsigned(u32),
    /// TINYINT with a display width.
    TinyInt(u32),
    /// TINYINT UNSIGNED with a display width.
    TinyIntUnsigned(u32),
    /// FLOAT.
    Float,
    /// DECIMAL(precision, scale).
    Decimal(u8, u8),
    /// DATETIME with fractional digits.
    DateTime(u8),
}

impl VirtualType {
    /// The full type.
    pub fn column_type(self) -> ColumnType {
        let text = CollationId::UTF8MB4_GENERAL_CI;
        let (kind, unsigned, length, precision, scale) = match self {
            Self::Varchar(length) => (TypeKind::VarChar, false, length, 0, 0),
            Self::Char(length) => (TypeKind::Char, false, length, 0, 0),
            Self::LongText => (TypeKind::LongText, false, u32::MAX, 0, 0),
            Self::VarBinary(length) => (TypeKind::VarBinary, false, length, 0, 0),
            Self::Blob => (TypeKind::Blob, false, 65_535, 0, 0),
            Self::BigInt(width) => (TypeKind::BigInt, false, width, 0, 0),
            Self::BigIntUnsigned(width) => (TypeKind::BigInt, true, width, 0, 0),
            Self::Int(width) => (TypeKind::Int, false, width, 0, 0),
            Self::IntUnsigned(width) => (TypeKind::Int, true, width, 0, 0),
            Self::TinyInt(width) => (TypeKind::TinyInt, false, width, 0, 0),
            Self::TinyIntUnsigned(width) => (TypeKind::TinyInt, true, width, 0, 0),
            Self::Decimal(precision, scale) => (TypeKind::Decimal, false, 0, precision, scale),
            Self::Float => (TypeKind::Float, false, 12, 0, SCALE_NOT_FIXED),
            Self::DateTime(scale) => (TypeKind::DateTime, false, 0, 0, scale),
        };
        let is_text = matches!(self, Self::Varchar(_) | Self::Char(_) | Self::LongText);
        let collation = if is_text { text } else { CollationId::BINARY };
        let members = None;
        ColumnType { kind, unsigned, zerofill: false, length, precision, scale, collation, members }
    }
}

/// Column of a virtual table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualColumn {
    /// Name in capitals.
    pub name: &'static str,
    /// Type.
    pub kind: VirtualType,
    /// NULL possible.
    pub nullable: bool,
}

/// A connection as PROCESSLIST shows it.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Connection id.
    pub id: u64,
    /// User.
    pub user: String,
    /// Host and port.
    pub host: String,
    /// Current database.
    pub schema: Option<String>,
    /// Sleep, Query, Prepare ...
    pub command: String,
    /// Time in this command, in milliseconds.
    pub time_ms: u64,
    /// What it does or waits for.
    pub state: String,
    /// Statement.
    pub info: Option<String>,
    /// Number of the statement, of an idle connection the last one's: what KILL QUERY ID takes.
    pub query_id: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// A transaction of several statements that has read or changed something.
    pub transaction: Option<OpenTransaction>,
}

/// An open transaction as its session knows it.
#[derive(Clone, Copy, Debug)]
pub struct OpenTransaction {
    /// Microseconds since it began.
    pub age_micros: u64,
    /// Level.
    pub isolation: Isolation,
}

/// What only the sessions know.
pub trait SessionTables {
    /// Connections that this reader may see.
    fn processes(&self) -> Vec<Process>;
    /// Connections that this reader may see, and the metadata locks of each.
    fn metadata_locks(&self) -> Vec<(u64, Arc<ShownLocks>)>;
    /// Locks of GET_LOCK, and the connections that have them, of those that he may see.
    fn named_locks(&self) -> Vec<(String, u64)>;
    /// Microseconds since 1970.
    fn wall_clock_micros(&self) -> i64;
    /// The session's.
    fn time_zone(&self) -> TimeZone;
    /// The version as a number: 101119.
    fn version_number(&self) -> u32;
    /// The role that is enabled.
    fn role(&self) -> Option<String>;
    /// System variables, sorted by name.
    fn variables(&self, global: bool) -> Vec<(String, String)>;
    /// The rows of SYSTEM_VARIABLES.
    fn system_variables(&self) -> Vec<Row>;
    /// Status counters, sorted by name.
    fn status(&self, global: bool) -> Vec<(String, String)>;
}

/// For whom and how narrowly rows are wanted.
pub struct Scope<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The reader; only what it has a privilege on is shown.
    pub user: &'a UserPrivileges,
    /// Session data.
    pub session: &'a dyn SessionTables,
    /// Only rows of this schema, if known.
    pub schema: Option<&'a str>,
    /// Only rows of this table, if known.
    pub table: Option<&'a str>,
    /// The session's temporary table that a SHOW is about.
    pub temporary: Option<&'a Arc<TableEntry>>,
}

/// One row, as long as the table has columns.
pub type Row = Vec<Value>;

/// A table of information_schema.
#[derive(Clone, Copy)]
pub struct VirtualTable {
    /// Its database.
    pub schema: &'static str,
    /// Name; in capitals in information_schema.
    pub name: &'static str,
    /// Columns.
    pub columns: &'static [VirtualColumn],
    make: fn(&Scope<'_>) -> Result<Vec<Row>>,
}

impl VirtualTable {
    /// All rows for this reader, in no particular order.
    pub fn rows(&self, scope: &Scope<'_>) -> Result<Vec<Row>> {
        (self.make)(scope)
    }
}

impl std::fmt::Debug for VirtualTable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "VirtualTable({})", self.name)
    }
}

fn optional_text(value: Option<String>) -> Value {
    value.map_or(Value::Null, Value::text)
}

/// A table that exists with no rows, because Gannet has nothing of its kind yet.
fn nothing(_: &Scope<'_>) -> Result<Vec<Row>> {
    Ok(Vec::new())
}

macro_rules! tables {
    ($($name:ident => $make:path;)*) => {
        static TABLES: &[VirtualTable] = &[$(VirtualTable {
            schema: SCHEMA_NAME,
            name: stringify!($name),
            columns: columns::$name,
            make: $make,
        }),*];
    };
}

tables! {
    APPLICABLE_ROLES => privileges::applicable_roles;
    CHARACTER_SETS => rows::character_sets;
    CHECK_CONSTRAINTS => constraints::check_constraints;
    COLLATIONS => rows::collations;
    COLLATION_CHARACTER_SET_APPLICABILITY => rows::collation_applicability;
    COLUMNS => rows::columns;
    COLUMN_PRIVILEGES => privileges::column_privileges;
    ENABLED_ROLES => privileges::enabled_roles;
    ENGINES => rows::engines;
    EVENTS => nothing;
    GANNET_INDEX_STORAGE => storage::index_storage;
    GLOBAL_STATUS => session_rows::global_status;
    GLOBAL_VARIABLES => session_rows::global_variables;
    INNODB_CMP => compression::classes;
    INNODB_CMPMEM => compression::memory;
    INNODB_CMPMEM_RESET => compression::memory;
    INNODB_CMP_PER_INDEX => compression::indexes;
    INNODB_CMP_PER_INDEX_RESET => compression::indexes_and_reset;
    INNODB_CMP_RESET => compression::classes_and_reset;
    INNODB_LOCKS => innodb::locks;
    INNODB_LOCK_WAITS => innodb::lock_waits;
    INNODB_METRICS => metrics::rows;
    INNODB_SYS_FOREIGN => foreign_keys::innodb_sys_foreign;
    INNODB_SYS_FOREIGN_COLS => foreign_keys::innodb_sys_foreign_columns;
    INNODB_SYS_TABLESPACES => storage::tablespaces;
    INNODB_TRX => innodb::transactions;
    KEY_COLUMN_USAGE => foreign_keys::key_column_usage;
    METADATA_LOCK_INFO => metadata_locks::metadata_lock_info;
    PARTITIONS => rows::partitions;
    PLUGINS => nothing;
    PROCESSLIST => session_rows::process_list;
    REFERENTIAL_CONSTRAINTS => foreign_keys::referential_constraints;
    ROUTINES => nothing;
    SCHEMATA => rows::schemata;
    SCHEMA_PRIVILEGES => privileges::schema_privileges;
    SESSION_STATUS => session_rows::session_status;
    SESSION_VARIABLES => session_rows::session_variables;
    STATISTICS => rows::statistics;
    SYSTEM_VARIABLES => session_rows::system_variables;
    TABLES => rows::tables;
    TABLE_CONSTRAINTS => constraints::table_constraints;
    TABLE_PRIVILEGES => privileges::table_privileges;
    THREAD_POOL_GROUPS => thread_pool::groups;
    THREAD_POOL_QUEUES => thread_pool::queues;
    THREAD_POOL_STATS => thread_pool::statistics;
    THREAD_POOL_WAITS => thread_pool::waits;
    TRIGGERS => nothing;
    USER_PRIVILEGES => privileges::user_privileges;
    VIEWS => rows::views;
}

pub use innodb::deadlock_text;

/// Name of the schema, compared without regard to case.
pub const SCHEMA_NAME: &str = "information_schema";

/// A table by name, compared without regard to case.
pub fn find(name: &str) -> Option<&'static VirtualTable> {
    TABLES.iter().find(|table| table.name.eq_ignore_ascii_case(name))
}

/// The database whose tables show accounts.
pub const ACCOUNTS_SCHEMA: &str = "mysql";

/// What shows accounts under the names that tools know: nothing of it can be changed, and SHOW
/// TABLES does not list it.
static ACCOUNT_TABLES: &[VirtualTable] = &[
    account_table("columns_priv", privileges::COLUMNS_PRIV, privileges::columns_priv),
    account_table("db", privileges::DB, privileges::db),
    account_table("global_priv", privileges::GLOBAL_PRIV, privileges::global_priv),
    account_table("roles_mapping", privileges::ROLES_MAPPING, privileges::roles_mapping),
    account_table("tables_priv", privileges::TABLES_PRIV, privileges::tables_priv),
    account_table("user", privileges::USER, privileges::user),
];

const fn account_table(
    name: &'static str,
    columns: &'static [VirtualColumn],
    make: fn(&Scope<'_>) -> Result<Vec<Row>>,
) -> VirtualTable {
    VirtualTable { schema: ACCOUNTS_SCHEMA, name, columns, make }
}

/// A table of accounts by its name.
pub fn find_accounts(schema: &str, name: &str) -> Option<&'static VirtualTable> {
    let found = ACCOUNT_TABLES.iter().find(|table| table.name == name);
    found.filter(|table| table.schema == schema)
}

/// All tables, by name.
pub fn all() -> &'static [VirtualTable] {
    TABLES
}
