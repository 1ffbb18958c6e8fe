//! SET, SHOW, transactions, users, prepared statements and upkeep.

use super::{AccountName, Expression, Statement, TableName, VariableScope};

/// One assignment of SET.
#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// `@name = value`.
    User {
        /// Variable.
        name: String,
        /// Value.
        value: Expression,
    },
    /// `[GLOBAL|SESSION] name = value`, `@@scope.name = value`.
    System {
        /// Scope.
        scope: VariableScope,
        /// First part of a structured name.
        instance: Option<String>,
        /// Variable as written.
        name: String,
        /// Value.
        value: SetValue,
    },
    /// `NAMES charset [COLLATE collation]`; no charset is DEFAULT.
    Names {
        /// Character set.
        charset: Option<String>,
        /// Collation.
        collation: Option<String>,
    },
    /// `CHARACTER SET charset`; none is DEFAULT.
    CharacterSet(Option<String>),
    /// `PASSWORD [FOR account] = ...`.
    Password {
        /// Account; none is the current one.
        account: Option<AccountName>,
        /// How the password is given.
        password: Password,
    },
    /// `ROLE name`; none is NONE.
    Role(Option<String>),
    /// `DEFAULT ROLE name [FOR account]`.
    DefaultRole {
        /// Role; none is NONE.
        role: Option<String>,
        /// Account; none is the current one.
        account: Option<AccountName>,
    },
}

/// Right side of a system variable's assignment.
#[derive(Clone, Debug, PartialEq)]
pub enum SetValue {
    /// DEFAULT.
    Default,
    /// A bare word such as ON, ALL, BINARY, utf8mb4, READ-COMMITTED is a string.
    Word(String),
    /// An expression.
    Expression(Expression),
}

/// How a password is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// PASSWORD('clear').
    Clear(Vec<u8>),
    /// '*HASH'.
    Hash(Vec<u8>),
}

/// Isolation levels as words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the words")]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// SET TRANSACTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetTransaction {
    /// GLOBAL, SESSION, or the next transaction only (`Default`).
    pub scope: VariableScope,
    /// ISOLATION LEVEL.
    pub isolation: Option<IsolationLevel>,
    /// READ ONLY (true), READ WRITE (false).
    pub read_only: Option<bool>,
}

/// BEGIN, START TRANSACTION.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    /// WITH CONSISTENT SNAPSHOT.
    pub consistent_snapshot: bool,
    /// READ ONLY (true), READ WRITE (false).
    pub read_only: Option<bool>,
}

/// AND [NO] CHAIN, [NO] RELEASE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// AND CHAIN (true), AND NO CHAIN (false).
    pub chain: Option<bool>,
    /// RELEASE (true), NO RELEASE (false).
    pub release: Option<bool>,
}

/// LOCK TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTables {
    /// Tables.
    pub tables: Vec<TableLock>,
    /// WAIT n, NOWAIT (0): seconds.
    pub wait_seconds: Option<u64>,
}

/// One table of LOCK TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLock {
    /// Table.
    pub name: TableName,
    /// AS.
    pub alias: Option<String>,
    /// WRITE rather than READ.
    pub write: bool,
    /// READ LOCAL.
    pub local: bool,
}

/// KILL.
#[derive(Clone, Debug, PartialEq)]
pub struct Kill {
    /// SOFT (false) or HARD (true, the default).
    pub hard: bool,
    /// QUERY rather than CONNECTION.
    pub query: bool,
    /// What.
    pub target: KillTarget,
}

/// Whom KILL means.
#[derive(Clone, Debug, PartialEq)]
pub enum KillTarget {
    /// A connection id.
    Connection(Expression),
    /// KILL QUERY ID n.
    QueryId(Expression),
    /// KILL USER account.
    User(AccountName),
}

/// FLUSH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flush {
    /// LOCAL, NO_WRITE_TO_BINLOG.
    pub local: bool,
    /// What is flushed, in capitals: `PRIVILEGES`, `STATUS`, `HOSTS`, `LOGS`, `ENGINE LOGS`, ...
    /// `TABLES` is among them when no tables are named.
    pub items: Vec<String>,
    /// FLUSH TABLES names.
    pub tables: Vec<TableName>,
    /// WITH READ LOCK.
    pub read_lock: bool,
    /// FOR EXPORT.
    pub for_export: bool,
}

/// ANALYZE TABLE and its kin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMaintenance {
    /// Which one.
    pub operation: MaintenanceOperation,
    /// LOCAL, NO_WRITE_TO_BINLOG.
    pub local: bool,
    /// Tables.
    pub tables: Vec<TableName>,
    /// ALTER TABLE ... CHECK PARTITION and its kin: the partitions, none for ALL.
    pub partitions: Option<Vec<String>>,
    /// Words behind the names (QUICK, EXTENDED, FOR UPGRADE, PERSISTENT FOR ALL ...), in
    /// capitals.
    pub options: Vec<String>,
}

/// Kinds of table upkeep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the words")]
pub enum MaintenanceOperation {
    Analyze,
    Optimize,
    Check,
    Repair,
    Checksum,
}

impl MaintenanceOperation {
    /// First words of the statement.
    pub fn words(self) -> &'static str {
        match self {
            Self::Analyze => "ANALYZE TABLE",
            Self::Optimize => "OPTIMIZE TABLE",
            Self::Check => "CHECK TABLE",
            Self::Repair => "REPAIR TABLE",
            Self::Checksum => "CHECKSUM TABLE",
        }
    }
}

/// PREPARE.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    /// Name.
    pub name: String,
    /// A string or a user variable.
    pub source: Expression,
}

/// EXECUTE.
#[derive(Clone, Debug, PartialEq)]
pub struct Execute {
    /// Name.
    pub name: String,
    /// USING.
    pub arguments: Vec<Expression>,
}

/// EXECUTE IMMEDIATE.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecuteImmediate {
    /// A string or a user variable.
    pub source: Expression,
    /// USING.
    pub arguments: Vec<Expression>,
}

/// DESCRIBE table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Describe {
    /// Table.
    pub table: TableName,
    /// A column name or a pattern.
    pub column: Option<String>,
}

/// EXPLAIN.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// ANALYZE: run it and show what happened.
    pub analyze: bool,
    /// EXTENDED.
    pub extended: bool,
    /// PARTITIONS.
    pub partitions: bool,
    /// FORMAT, in capitals; none is the table form.
    pub format: Option<String>,
    /// Statement; none for `FOR CONNECTION`.
    pub statement: Option<Statement>,
    /// FOR CONNECTION n.
    pub connection: Option<u64>,
}

/// SHOW.
#[derive(Clone, Debug, PartialEq)]
pub struct Show {
    /// What.
    pub kind: ShowKind,
    /// LIKE.
    pub like: Option<Vec<u8>>,
    /// WHERE.
    pub filter: Option<Expression>,
}

/// What SHOW shows.
#[derive(Clone, Debug, PartialEq)]
pub enum ShowKind {
    /// DATABASES, SCHEMAS.
    Databases,
    /// [FULL] TABLES [FROM schema].
    Tables {
        /// FULL.
        full: bool,
        /// FROM.
        schema: Option<String>,
    },
    /// TABLE STATUS [FROM schema].
    TableStatus {
        /// FROM.
        schema: Option<String>,
    },
    /// OPEN TABLES [FROM schema].
    OpenTables {
        /// FROM.
        schema: Option<String>,
    },
    /// [FULL] COLUMNS, FIELDS FROM table.
    Columns {
        /// FULL.
        full: bool,
        /// Table with its database.
        table: TableName,
    },
    /// INDEX, INDEXES, KEYS FROM table.
    Indexes {
        /// Table with its database.
        table: TableName,
    },
    /// [GLOBAL|SESSION] VARIABLES.
    Variables(VariableScope),
    /// [GLOBAL|SESSION] STATUS.
    Status(VariableScope),
    /// CREATE TABLE.
    CreateTable(TableName),
    /// CREATE VIEW.
    CreateView(TableName),
    /// CREATE DATABASE.
    CreateDatabase {
        /// Database.
        name: String,
        /// IF NOT EXISTS.
        if_not_exists: bool,
    },
    /// CREATE PROCEDURE, FUNCTION, TRIGGER, EVENT, PACKAGE, SEQUENCE: the word and the name.
    CreateOther(String, TableName),
    /// CREATE USER; none is the current one.
    CreateUser(Option<AccountName>),
    /// GRANTS FOR; none is the current one.
    Grants(Option<AccountName>),
    /// WARNINGS LIMIT.
    Warnings {
        /// Rows skipped.
        offset: u64,
        /// Most rows.
        count: Option<u64>,
    },
    /// ERRORS LIMIT.
    Errors {
        /// Rows skipped.
        offset: u64,
        /// Most rows.
        count: Option<u64>,
    },
    /// COUNT(*) WARNINGS.
    WarningCount,
    /// COUNT(*) ERRORS.
    ErrorCount,
    /// [FULL] PROCESSLIST.
    ProcessList {
        /// FULL.
        full: bool,
    },
    /// ENGINES.
    Engines,
    /// ENGINE name STATUS, MUTEX, LOGS: name and word in capitals.
    Engine(String, String),
    /// CHARACTER SET, CHARSET.
    CharacterSets,
    /// COLLATION.
    Collations,
    /// PLUGINS.
    Plugins,
    /// PRIVILEGES.
    Privileges,
    /// TRIGGERS FROM.
    Triggers {
        /// FROM.
        schema: Option<String>,
    },
    /// EVENTS FROM.
    Events {
        /// FROM.
        schema: Option<String>,
    },
    /// PROCEDURE STATUS (`PROCEDURE`), FUNCTION STATUS (`FUNCTION`), PACKAGE STATUS.
    RoutineStatus(String),
    /// EXPLAIN FOR n.
    ExplainFor(Expression),
    /// PROFILES, PROFILE, AUTHORS, CONTRIBUTORS, BINARY LOGS, MASTER STATUS, BINLOG EVENTS, SLAVE
    /// STATUS, ALL SLAVES STATUS, SLAVE HOSTS, RELAYLOG EVENTS, LOCALES, user statistics, ...:
    /// the words in capitals.
    Other(String),
}
