//! The columns of information_schema's tables, as MariaDB 10.11 declares them.

mod innodb;

use super::VirtualColumn;
use super::VirtualType::{
    BigInt, BigIntUnsigned, Blob, DateTime, Decimal, Int, IntUnsigned, LongText, TinyInt, Varchar,
};
pub(super) use super::metadata_locks::METADATA_LOCK_INFO;
pub(super) use super::metrics::INNODB_METRICS;
pub(super) use super::session_rows::SYSTEM_VARIABLES;
pub(super) use innodb::*;

pub(super) const fn required(name: &'static str, kind: super::VirtualType) -> VirtualColumn {
    VirtualColumn { name, kind, nullable: false }
}

pub(super) const fn optional(name: &'static str, kind: super::VirtualType) -> VirtualColumn {
    VirtualColumn { name, kind, nullable: true }
}

pub(super) const APPLICABLE_ROLES: &[VirtualColumn] = &[
    required("GRANTEE", Varchar(385)),
    required("ROLE_NAME", Varchar(128)),
    required("IS_GRANTABLE", Varchar(3)),
    optional("IS_DEFAULT", Varchar(3)),
];

pub(super) const COLUMN_PRIVILEGES: &[VirtualColumn] = &[
    required("GRANTEE", Varchar(385)),
    required("TABLE_CATALOG", Varchar(512)),
    required("TABLE_SCHEMA", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    required("COLUMN_NAME", Varchar(64)),
    required("PRIVILEGE_TYPE", Varchar(64)),
    required("IS_GRANTABLE", Varchar(3)),
];

pub(super) const ENABLED_ROLES: &[VirtualColumn] = &[optional("ROLE_NAME", Varchar(128))];

pub(super) const SCHEMA_PRIVILEGES: &[VirtualColumn] = &[
    required("GRANTEE", Varchar(385)),
    required("TABLE_CATALOG", Varchar(512)),
    required("TABLE_SCHEMA", Varchar(64)),
    required("PRIVILEGE_TYPE", Varchar(64)),
    required("IS_GRANTABLE", Varchar(3)),
];

pub(super) const TABLE_PRIVILEGES: &[VirtualColumn] = &[
    required("GRANTEE", Varchar(385)),
    required("TABLE_CATALOG", Varchar(512)),
    required("TABLE_SCHEMA", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    required("PRIVILEGE_TYPE", Varchar(64)),
    required("IS_GRANTABLE", Varchar(3)),
];

pub(super) const CHARACTER_SETS: &[VirtualColumn] = &[
    required("CHARACTER_SET_NAME", Varchar(32)),
    required("DEFAULT_COLLATE_NAME", Varchar(64)),
    required("DESCRIPTION", Varchar(60)),
    required("MAXLEN", BigInt(3)),
];

pub(super) const COLLATIONS: &[VirtualColumn] = &[
    required("COLLATION_NAME", Varchar(64)),
    optional("CHARACTER_SET_NAME", Varchar(32)),
    optional("ID", BigInt(11)),
    optional("IS_DEFAULT", Varchar(3)),
    required("IS_COMPILED", Varchar(3)),
    required("SORTLEN", BigInt(3)),
];

pub(super) const COLLATION_CHARACTER_SET_APPLICABILITY: &[VirtualColumn] = &[
    required("COLLATION_NAME", Varchar(64)),
    required("CHARACTER_SET_NAME", Varchar(32)),
    required("FULL_COLLATION_NAME", Varchar(64)),
    required("ID", BigInt(11)),
    required("IS_DEFAULT", Varchar(3)),
];

pub(super) const COLUMNS: &[VirtualColumn] = &[
    required("TABLE_CATALOG", Varchar(512)),
    required("TABLE_SCHEMA", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    required("COLUMN_NAME", Varchar(64)),
    required("ORDINAL_POSITION", BigIntUnsigned(21)),
    optional("COLUMN_DEFAULT", LongText),
    required("IS_NULLABLE", Varchar(3)),
    required("DATA_TYPE", Varchar(64)),
    optional("CHARACTER_MAXIMUM_LENGTH", BigIntUnsigned(21)),
    optional("CHARACTER_OCTET_LENGTH", BigIntUnsigned(21)),
    optional("NUMERIC_PRECISION", BigIntUnsigned(21)),
    optional("NUMERIC_SCALE", BigIntUnsigned(21)),
    optional("DATETIME_PRECISION", BigIntUnsigned(21)),
    optional("CHARACTER_SET_NAME", Varchar(32)),
    optional("COLLATION_NAME", Varchar(64)),
    required("COLUMN_TYPE", LongText),
    required("COLUMN_KEY", Varchar(3)),
    required("EXTRA", Varchar(80)),
    required("PRIVILEGES", Varchar(80)),
    required("COLUMN_COMMENT", Varchar(1024)),
    required("IS_GENERATED", Varchar(6)),
    optional("GENERATION_EXPRESSION", LongText),
];

pub(super) const ENGINES: &[VirtualColumn] = &[
    required("ENGINE", Varchar(64)),
    required("SUPPORT", Varchar(8)),
    required("COMMENT", Varchar(160)),
    optional("TRANSACTIONS", Varchar(3)),
    optional("XA", Varchar(3)),
    optional("SAVEPOINTS", Varchar(3)),
];

pub(super) const EVENTS: &[VirtualColumn] = &[
    required("EVENT_CATALOG", Varchar(64)),
    required("EVENT_SCHEMA", Varchar(64)),
    required("EVENT_NAME", Varchar(64)),
    required("DEFINER", Varchar(384)),
    required("TIME_ZONE", Varchar(64)),
    required("EVENT_BODY", Varchar(8)),
    required("EVENT_DEFINITION", LongText),
    required("EVENT_TYPE", Varchar(9)),
    optional("EXECUTE_AT", DateTime(0)),
    optional("INTERVAL_VALUE", Varchar(256)),
    optional("INTERVAL_FIELD", Varchar(18)),
    required("SQL_MODE", Varchar(8192)),
    optional("STARTS", DateTime(0)),
    optional("ENDS", DateTime(0)),
    required("STATUS", Varchar(18)),
    required("ON_COMPLETION", Varchar(12)),
    required("CREATED", DateTime(0)),
    required("LAST_ALTERED", DateTime(0)),
    optional("LAST_EXECUTED", DateTime(0)),
    required("EVENT_COMMENT", Varchar(64)),
    required("ORIGINATOR", BigInt(10)),
    required("CHARACTER_SET_CLIENT", Varchar(32)),
    required("COLLATION_CONNECTION", Varchar(64)),
    required("DATABASE_COLLATION", Varchar(64)),
];

pub(super) const GLOBAL_STATUS: &[VirtualColumn] =
    &[required("VARIABLE_NAME", Varchar(64)), required("VARIABLE_VALUE", Varchar(4096))];

pub(super) const GLOBAL_VARIABLES: &[VirtualColumn] =
    &[required("VARIABLE_NAME", Varchar(64)), required("VARIABLE_VALUE", Varchar(4096))];

pub(super) const KEY_COLUMN_USAGE: &[VirtualColumn] = &[
    required("CONSTRAINT_CATALOG", Varchar(512)),
    required("CONSTRAINT_SCHEMA", Varchar(64)),
    required("CONSTRAINT_NAME", Varchar(64)),
    required("TABLE_CATALOG", Varchar(512)),
    required("TABLE_SCHEMA", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    required("COLUMN_NAME", Varchar(64)),
    required("ORDINAL_POSITION", BigInt(10)),
    optional("POSITION_IN_UNIQUE_CONSTRAINT", BigInt(10)),
    optional("REFERENCED_TABLE_SCHEMA", Varchar(64)),
    optional("REFERENCED_TABLE_NAME", Varchar(64)),
    optional("REFERENCED_COLUMN_NAME", Varchar(64)),
];

pub(super) const PARTITIONS: &[VirtualColumn] = &[
    required("TABLE_CATALOG", Varchar(512)),
    required("TABLE_SCHEMA", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    optional("PARTITION_NAME", Varchar(64)),
    optional("SUBPARTITION_NAME", Varchar(64)),
    optional("PARTITION_ORDINAL_POSITION", BigIntUnsigned(21)),
    optional("SUBPARTITION_ORDINAL_POSITION", BigIntUnsigned(21)),
    optional("PARTITION_METHOD", Varchar(18)),
    optional("SUBPARTITION_METHOD", Varchar(12)),
    optional("PARTITION_EXPRESSION", LongText),
    optional("SUBPARTITION_EXPRESSION", LongText),
    optional("PARTITION_DESCRIPTION", LongText),
    required("TABLE_ROWS", BigIntUnsigned(21)),
    required("AVG_ROW_LENGTH", BigIntUnsigned(21)),
    required("DATA_LENGTH", BigIntUnsigned(21)),
    optional("MAX_DATA_LENGTH", BigIntUnsigned(21)),
    required("INDEX_LENGTH", BigIntUnsigned(21)),
    required("DATA_FREE", BigIntUnsigned(21)),
    optional("CREATE_TIME", DateTime(0)),
    optional("UPDATE_TIME", DateTime(0)),
    optional("CHECK_TIME", DateTime(0)),
    optional("CHECKSUM", BigIntUnsigned(21)),
    required("PARTITION_COMMENT", Varchar(80)),
    required("NODEGROUP", Varchar(12)),
    optional("TABLESPACE_NAME", Varchar(64)),
];

pub(super) const PLUGINS: &[VirtualColumn] = &[
    required("PLUGIN_NAME", Varchar(64)),
    required("PLUGIN_VERSION", Varchar(20)),
    required("PLUGIN_STATUS", Varchar(16)),
    required("PLUGIN_TYPE", Varchar(80)),
    required("PLUGIN_TYPE_VERSION", Varchar(20)),
    optional("PLUGIN_LIBRARY", Varchar(64)),
    optional("PLUGIN_LIBRARY_VERSION", Varchar(20)),
    optional("PLUGIN_AUTHOR", Varchar(64)),
    optional("PLUGIN_DESCRIPTION", LongText),
    required("PLUGIN_LICENSE", Varchar(80)),
    required("LOAD_OPTION", Varchar(64)),
    required("PLUGIN_MATURITY", Varchar(12)),
    optional("PLUGIN_AUTH_VERSION", Varchar(80)),
];

pub(super) const PROCESSLIST: &[VirtualColumn] = &[
    required("ID", BigInt(4)),
    required("USER", Varchar(128)),
    required("HOST", Varchar(64)),
    optional("DB", Varchar(64)),
    required("COMMAND", Varchar(16)),
    required("TIME", Int(7)),
    optional("STATE", Varchar(64)),
    optional("INFO", LongText),
    required("TIME_MS", Decimal(22, 3)),
    required("STAGE", TinyInt(2)),
    required("MAX_STAGE", TinyInt(2)),
    required("PROGRESS", Decimal(7, 3)),
    required("MEMORY_USED", BigInt(7)),
    required("MAX_MEMORY_USED", BigInt(7)),
    required("EXAMINED_ROWS", Int(7)),
    required("QUERY_ID", BigInt(4)),
    optional("INFO_BINARY", Blob),
    required("TID", BigInt(4)),
];

pub(super) const THREAD_POOL_GROUPS: &[VirtualColumn] = &[
    required("GROUP_ID", Int(6)),
    required("CONNECTIONS", Int(6)),
    required("THREADS", Int(6)),
    required("ACTIVE_THREADS", Int(6)),
    required("STANDBY_THREADS", Int(6)),
    required("QUEUE_LENGTH", Int(6)),
    required("HAS_LISTENER", TinyInt(1)),
    required("IS_STALLED", TinyInt(1)),
];

pub(super) const THREAD_POOL_QUEUES: &[VirtualColumn] = &[
    required("GROUP_ID", Int(6)),
    required("POSITION", Int(6)),
    required("PRIORITY", Int(1)),
    optional("CONNECTION_ID", BigIntUnsigned(19)),
    required("QUEUEING_TIME_MICROSECONDS", BigInt(19)),
];

pub(super) const THREAD_POOL_STATS: &[VirtualColumn] = &[
    required("GROUP_ID", Int(6)),
    required("THREAD_CREATIONS", BigInt(19)),
    required("THREAD_CREATIONS_DUE_TO_STALL", BigInt(19)),
    required("WAKES", BigInt(19)),
    required("WAKES_DUE_TO_STALL", BigInt(19)),
    required("THROTTLES", BigInt(19)),
    required("STALLS", BigInt(19)),
    required("POLLS_BY_LISTENER", BigInt(19)),
    required("POLLS_BY_WORKER", BigInt(19)),
    required("DEQUEUES_BY_LISTENER", BigInt(19)),
    required("DEQUEUES_BY_WORKER", BigInt(19)),
];

pub(super) const THREAD_POOL_WAITS: &[VirtualColumn] =
    &[required("REASON", Varchar(16)), required("COUNT", BigInt(19))];

pub(super) const REFERENTIAL_CONSTRAINTS: &[VirtualColumn] = &[
    required("CONSTRAINT_CATALOG", Varchar(512)),
    required("CONSTRAINT_SCHEMA", Varchar(64)),
    required("CONSTRAINT_NAME", Varchar(64)),
    required("UNIQUE_CONSTRAINT_CATALOG", Varchar(512)),
    required("UNIQUE_CONSTRAINT_SCHEMA", Varchar(64)),
    optional("UNIQUE_CONSTRAINT_NAME", Varchar(64)),
    required("MATCH_OPTION", Varchar(64)),
    required("UPDATE_RULE", Varchar(64)),
    required("DELETE_RULE", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    optional("REFERENCED_TABLE_NAME", Varchar(64)),
];

pub(super) const ROUTINES: &[VirtualColumn] = &[
    required("SPECIFIC_NAME", Varchar(64)),
    required("ROUTINE_CATALOG", Varchar(512)),
    required("ROUTINE_SCHEMA", Varchar(64)),
    required("ROUTINE_NAME", Varchar(64)),
    required("ROUTINE_TYPE", Varchar(13)),
    required("DATA_TYPE", Varchar(64)),
    optional("CHARACTER_MAXIMUM_LENGTH", Int(21)),
    optional("CHARACTER_OCTET_LENGTH", Int(21)),
    optional("NUMERIC_PRECISION", Int(21)),
    optional("NUMERIC_SCALE", Int(21)),
    optional("DATETIME_PRECISION", BigIntUnsigned(21)),
    optional("CHARACTER_SET_NAME", Varchar(64)),
    optional("COLLATION_NAME", Varchar(64)),
    optional("DTD_IDENTIFIER", LongText),
    required("ROUTINE_BODY", Varchar(8)),
    optional("ROUTINE_DEFINITION", LongText),
    optional("EXTERNAL_NAME", Varchar(64)),
    optional("EXTERNAL_LANGUAGE", Varchar(64)),
    required("PARAMETER_STYLE", Varchar(8)),
    required("IS_DETERMINISTIC", Varchar(3)),
    required("SQL_DATA_ACCESS", Varchar(64)),
    optional("SQL_PATH", Varchar(64)),
    required("SECURITY_TYPE", Varchar(7)),
    required("CREATED", DateTime(0)),
    required("LAST_ALTERED", DateTime(0)),
    required("SQL_MODE", Varchar(8192)),
    required("ROUTINE_COMMENT", LongText),
    required("DEFINER", Varchar(384)),
    required("CHARACTER_SET_CLIENT", Varchar(32)),
    required("COLLATION_CONNECTION", Varchar(64)),
    required("DATABASE_COLLATION", Varchar(64)),
];

pub(super) const SCHEMATA: &[VirtualColumn] = &[
    required("CATALOG_NAME", Varchar(512)),
    required("SCHEMA_NAME", Varchar(64)),
    required("DEFAULT_CHARACTER_SET_NAME", Varchar(32)),
    required("DEFAULT_COLLATION_NAME", Varchar(64)),
    optional("SQL_PATH", Varchar(512)),
    required("SCHEMA_COMMENT", Varchar(1024)),
];

pub(super) const SESSION_STATUS: &[VirtualColumn] =
    &[required("VARIABLE_NAME", Varchar(64)), required("VARIABLE_VALUE", Varchar(4096))];

pub(super) const SESSION_VARIABLES: &[VirtualColumn] =
    &[required("VARIABLE_NAME", Varchar(64)), required("VARIABLE_VALUE", Varchar(4096))];

pub(super) const STATISTICS: &[VirtualColumn] = &[
    required("TABLE_CATALOG", Varchar(512)),
    required("TABLE_SCHEMA", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    required("NON_UNIQUE", BigInt(1)),
    required("INDEX_SCHEMA", Varchar(64)),
    required("INDEX_NAME", Varchar(64)),
    required("SEQ_IN_INDEX", IntUnsigned(2)),
    required("COLUMN_NAME", Varchar(64)),
    optional("COLLATION", Varchar(1)),
    optional("CARDINALITY", BigInt(21)),
    optional("SUB_PART", BigInt(3)),
    optional("PACKED", Varchar(10)),
    required("NULLABLE", Varchar(3)),
    required("INDEX_TYPE", Varchar(16)),
    optional("COMMENT", Varchar(16)),
    required("INDEX_COMMENT", Varchar(1024)),
    required("IGNORED", Varchar(3)),
];

pub(super) const TABLES: &[VirtualColumn] = &[
    required("TABLE_CATALOG", Varchar(512)),
    required("TABLE_SCHEMA", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    required("TABLE_TYPE", Varchar(64)),
    optional("ENGINE", Varchar(64)),
    optional("VERSION", BigIntUnsigned(21)),
    optional("ROW_FORMAT", Varchar(10)),
    optional("TABLE_ROWS", BigIntUnsigned(21)),
    optional("AVG_ROW_LENGTH", BigIntUnsigned(21)),
    optional("DATA_LENGTH", BigIntUnsigned(21)),
    optional("MAX_DATA_LENGTH", BigIntUnsigned(21)),
    optional("INDEX_LENGTH", BigIntUnsigned(21)),
    optional("DATA_FREE", BigIntUnsigned(21)),
    optional("AUTO_INCREMENT", BigIntUnsigned(21)),
    optional("CREATE_TIME", DateTime(0)),
    optional("UPDATE_TIME", DateTime(0)),
    optional("CHECK_TIME", DateTime(0)),
    optional("TABLE_COLLATION", Varchar(64)),
    optional("CHECKSUM", BigIntUnsigned(21)),
    optional("CREATE_OPTIONS", Varchar(2048)),
    required("TABLE_COMMENT", Varchar(2048)),
    optional("MAX_INDEX_LENGTH", BigIntUnsigned(21)),
    optional("TEMPORARY", Varchar(1)),
];

pub(super) const CHECK_CONSTRAINTS: &[VirtualColumn] = &[
    required("CONSTRAINT_CATALOG", Varchar(512)),
    required("CONSTRAINT_SCHEMA", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    required("CONSTRAINT_NAME", Varchar(64)),
    required("LEVEL", Varchar(6)),
    required("CHECK_CLAUSE", LongText),
];

pub(super) const TABLE_CONSTRAINTS: &[VirtualColumn] = &[
    required("CONSTRAINT_CATALOG", Varchar(512)),
    required("CONSTRAINT_SCHEMA", Varchar(64)),
    required("CONSTRAINT_NAME", Varchar(64)),
    required("TABLE_SCHEMA", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    required("CONSTRAINT_TYPE", Varchar(64)),
];

pub(super) const TRIGGERS: &[VirtualColumn] = &[
    required("TRIGGER_CATALOG", Varchar(512)),
    required("TRIGGER_SCHEMA", Varchar(64)),
    required("TRIGGER_NAME", Varchar(64)),
    required("EVENT_MANIPULATION", Varchar(6)),
    required("EVENT_OBJECT_CATALOG", Varchar(512)),
    required("EVENT_OBJECT_SCHEMA", Varchar(64)),
    required("EVENT_OBJECT_TABLE", Varchar(64)),
    required("ACTION_ORDER", BigInt(4)),
    optional("ACTION_CONDITION", LongText),
    optional("ACTION_STATEMENT", LongText),
    required("ACTION_ORIENTATION", Varchar(9)),
    required("ACTION_TIMING", Varchar(6)),
    optional("ACTION_REFERENCE_OLD_TABLE", Varchar(64)),
    optional("ACTION_REFERENCE_NEW_TABLE", Varchar(64)),
    required("ACTION_REFERENCE_OLD_ROW", Varchar(3)),
    required("ACTION_REFERENCE_NEW_ROW", Varchar(3)),
    optional("CREATED", DateTime(2)),
    required("SQL_MODE", Varchar(8192)),
    optional("DEFINER", Varchar(384)),
    required("CHARACTER_SET_CLIENT", Varchar(32)),
    required("COLLATION_CONNECTION", Varchar(64)),
    required("DATABASE_COLLATION", Varchar(64)),
];

pub(super) const USER_PRIVILEGES: &[VirtualColumn] = &[
    required("GRANTEE", Varchar(385)),
    required("TABLE_CATALOG", Varchar(512)),
    required("PRIVILEGE_TYPE", Varchar(64)),
    required("IS_GRANTABLE", Varchar(3)),
];

pub(super) const VIEWS: &[VirtualColumn] = &[
    required("TABLE_CATALOG", Varchar(512)),
    required("TABLE_SCHEMA", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    required("VIEW_DEFINITION", LongText),
    required("CHECK_OPTION", Varchar(8)),
    required("IS_UPDATABLE", Varchar(3)),
    required("DEFINER", Varchar(384)),
    required("SECURITY_TYPE", Varchar(7)),
    required("CHARACTER_SET_CLIENT", Varchar(32)),
    required("COLLATION_CONNECTION", Varchar(64)),
    required("ALGORITHM", Varchar(10)),
];
