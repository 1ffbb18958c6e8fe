//! The syntax tree. Owned and plain: no spans except where MariaDB shows source text (the name
//! of an unnamed select item), no types, nothing resolved.

mod account;
mod administration;
mod alter;
mod data;
mod definition;
mod display;
mod expression;
mod literal_rows;
mod query;
mod xa;

pub use account::*;
pub use administration::*;
pub use alter::*;
pub use data::*;
pub use definition::*;
pub use expression::*;
pub use literal_rows::*;
pub use query::*;
pub use xa::*;

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// SELECT, VALUES, UNION and friends.
    Query(Box<Query>),
    /// INSERT and REPLACE.
    Insert(Box<Insert>),
    /// UPDATE, single or multi table.
    Update(Box<Update>),
    /// DELETE, single or multi table.
    Delete(Box<Delete>),
    /// LOAD DATA and LOAD XML.
    LoadData(Box<LoadData>),
    /// DO expression, ...
    Do(Vec<Expression>),
    /// CALL name(arguments).
    Call(Call),
    /// HANDLER ... (kept as text).
    Handler(OtherStatement),

    /// CREATE TABLE.
    CreateTable(Box<CreateTable>),
    /// ALTER TABLE.
    AlterTable(Box<AlterTable>),
    /// DROP TABLE.
    DropTable(DropTable),
    /// RENAME TABLE.
    RenameTable(Vec<(TableName, TableName)>),
    /// TRUNCATE TABLE.
    TruncateTable(TableName),
    /// CREATE INDEX.
    CreateIndex(Box<CreateIndex>),
    /// DROP INDEX.
    DropIndex(DropIndex),
    /// CREATE DATABASE.
    CreateDatabase(CreateDatabase),
    /// ALTER DATABASE.
    AlterDatabase(AlterDatabase),
    /// DROP DATABASE.
    DropDatabase(DropDatabase),
    /// CREATE VIEW.
    CreateView(Box<CreateView>),
    /// DROP VIEW.
    DropView(DropTable),

    /// USE database.
    Use(String),
    /// SET variables, NAMES, CHARACTER SET, PASSWORD, in any mix and order.
    Set(Vec<SetItem>),
    /// SET [GLOBAL|SESSION] TRANSACTION.
    SetTransaction(SetTransaction),
    /// SET STATEMENT variable = value, ... FOR statement.
    SetStatement(Vec<SetItem>, Box<Statement>),
    /// SHOW.
    Show(Box<Show>),
    /// DESCRIBE table, EXPLAIN table.
    Describe(Describe),
    /// EXPLAIN statement.
    Explain(Box<Explain>),

    /// BEGIN, START TRANSACTION.
    Begin(Begin),
    /// COMMIT.
    Commit(Completion),
    /// ROLLBACK.
    Rollback(Completion),
    /// SAVEPOINT name.
    Savepoint(String),
    /// ROLLBACK TO name.
    RollbackTo(String),
    /// RELEASE SAVEPOINT name.
    ReleaseSavepoint(String),
    /// LOCK TABLES.
    LockTables(LockTables),
    /// UNLOCK TABLES.
    UnlockTables,
    /// XA ...
    Xa(Xa),

    /// KILL.
    Kill(Kill),
    /// FLUSH.
    Flush(Flush),
    /// RESET (kept as text).
    Reset(OtherStatement),
    /// ANALYZE TABLE, OPTIMIZE TABLE, CHECK TABLE, REPAIR TABLE, CHECKSUM TABLE.
    TableMaintenance(TableMaintenance),
    /// SHUTDOWN.
    Shutdown,

    /// PREPARE name FROM source.
    Prepare(Prepare),
    /// EXECUTE name USING ...
    Execute(Execute),
    /// EXECUTE IMMEDIATE source USING ...
    ExecuteImmediate(ExecuteImmediate),
    /// DEALLOCATE PREPARE, DROP PREPARE.
    Deallocate(String),

    /// CREATE USER.
    CreateUser(CreateUser),
    /// ALTER USER.
    AlterUser(CreateUser),
    /// DROP USER.
    DropUser(DropUser),
    /// RENAME USER.
    RenameUser(Vec<(AccountName, AccountName)>),
    /// CREATE ROLE.
    CreateRole(Box<CreateRole>),
    /// DROP ROLE.
    DropRole(DropRole),
    /// GRANT.
    Grant(Box<Grant>),
    /// REVOKE.
    Revoke(Box<Revoke>),

    /// A statement that the parser knows by its first words but keeps as text; executing it is
    /// error 1235 naming `OtherStatement::feature`.
    Other(OtherStatement),
}

/// A statement kept as text.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherStatement {
    /// First words in capitals, such as `CREATE TRIGGER`; for error 1235.
    pub feature: String,
    /// The whole statement without its `;`.
    pub text: String,
}

impl Statement {
    /// The words by which MariaDB calls this kind of statement in errors and status.
    pub fn feature(&self) -> &str {
        match self {
            Self::Query(_) => "SELECT",
            Self::Insert(insert) if insert.replace => "REPLACE",
            Self::Insert(_) => "INSERT",
            Self::Update(_) => "UPDATE",
            Self::Delete(_) => "DELETE",
            Self::LoadData(_) => "LOAD DATA",
            Self::Do(_) => "DO",
            Self::Call(_) => "CALL",
            Self::CreateTable(_) => "CREATE TABLE",
            Self::AlterTable(_) => "ALTER TABLE",
            Self::DropTable(_) => "DROP TABLE",
            Self::RenameTable(_) => "RENAME TABLE",
            Self::TruncateTable(_) => "TRUNCATE TABLE",
            Self::CreateIndex(_) => "CREATE INDEX",
            Self::DropIndex(_) => "DROP INDEX",
            Self::CreateDatabase(_) => "CREATE DATABASE",
            Self::AlterDatabase(_) => "ALTER DATABASE",
            Self::DropDatabase(_) => "DROP DATABASE",
            Self::CreateView(_) => "CREATE VIEW",
            Self::DropView(_) => "DROP VIEW",
            Self::Use(_) => "USE",
            Self::Set(_) | Self::SetStatement(..) => "SET",
            Self::SetTransaction(_) => "SET TRANSACTION",
            Self::Show(_) => "SHOW",
            Self::Describe(_) | Self::Explain(_) => "EXPLAIN",
            Self::Begin(_) => "BEGIN",
            Self::Commit(_) => "COMMIT",
            Self::Rollback(_) => "ROLLBACK",
            Self::Savepoint(_) => "SAVEPOINT",
            Self::RollbackTo(_) => "ROLLBACK TO SAVEPOINT",
            Self::ReleaseSavepoint(_) => "RELEASE SAVEPOINT",
            Self::LockTables(_) => "LOCK TABLES",
            Self::UnlockTables => "UNLOCK TABLES",
            Self::Kill(_) => "KILL",
            Self::Flush(_) => "FLUSH",
            Self::TableMaintenance(maintenance) => maintenance.operation.words(),
            Self::Shutdown => "SHUTDOWN",
            Self::Prepare(_) => "PREPARE",
            Self::Execute(_) => "EXECUTE",
            Self::ExecuteImmediate(_) => "EXECUTE IMMEDIATE",
            Self::Deallocate(_) => "DEALLOCATE PREPARE",
            Self::CreateUser(_) => "CREATE USER",
            Self::AlterUser(_) => "ALTER USER",
            Self::DropUser(_) => "DROP USER",
            Self::RenameUser(_) => "RENAME USER",
            Self::CreateRole(_) => "CREATE ROLE",
            Self::DropRole(_) => "DROP ROLE",
            Self::Grant(_) => "GRANT",
            Self::Revoke(_) => "REVOKE",
            Self::Xa(xa) => xa.feature(),
            Self::Handler(other) | Self::Reset(other) | Self::Other(other) => &other.feature,
        }
    }
}

/// A table's name with its database, if one was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName {
    /// Database.
    pub schema: Option<String>,
    /// Table.
    pub name: String,
}
