//! Statements that define databases, tables, indexes and views.

use super::{Expression, Query, TableName};

/// The name of a type with its parameters, as written.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TypeName {
    /// Family.
    pub kind: TypeNameKind,
    /// First number in parentheses: length, display width, precision or fractional digits.
    pub length: Option<u64>,
    /// Second number in parentheses.
    pub scale: Option<u64>,
    /// UNSIGNED (and ZEROFILL, which implies it).
    pub unsigned: bool,
    /// ZEROFILL.
    pub zerofill: bool,
    /// CHARACTER SET; `ascii` and `unicode` attributes are brought to latin1 and ucs2.
    pub charset: Option<String>,
    /// COLLATE.
    pub collation: Option<String>,
    /// BINARY attribute: the character set's binary collation.
    pub binary: bool,
    /// Members of ENUM and SET.
    pub members: Vec<Vec<u8>>,
}

/// Families of types as MariaDB's grammar names them, synonyms joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum TypeNameKind {
    #[default]
    Int,
    TinyInt,
    SmallInt,
    MediumInt,
    BigInt,
    /// BOOL, BOOLEAN: tinyint(1).
    Boolean,
    Decimal,
    /// FLOAT; `length` alone above 24 makes it a double.
    Float,
    Double,
    Bit,
    Char,
    VarChar,
    Binary,
    VarBinary,
    TinyText,
    /// TEXT; `length` chooses a size.
    Text,
    MediumText,
    LongText,
    TinyBlob,
    /// BLOB; `length` chooses a size.
    Blob,
    MediumBlob,
    LongBlob,
    Date,
    Time,
    DateTime,
    Timestamp,
    Year,
    Enum,
    Set,
    Json,
    Uuid,
    Inet4,
    Inet6,
    Geometry,
    /// `CAST(x AS SIGNED)`.
    CastSigned,
    /// `CAST(x AS UNSIGNED)`.
    CastUnsigned,
}

/// A column of CREATE or ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpecification {
    /// Name.
    pub name: String,
    /// Type.
    pub type_name: TypeName,
    /// NULL (true) or NOT NULL (false).
    pub nullable: Option<bool>,
    /// DEFAULT.
    pub default: Option<Expression>,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update: Option<Expression>,
    /// AUTO_INCREMENT, SERIAL.
    pub auto_increment: bool,
    /// [PRIMARY] KEY.
    pub primary_key: bool,
    /// UNIQUE [KEY].
    pub unique: bool,
    /// COMMENT.
    pub comment: Option<Vec<u8>>,
    /// GENERATED ALWAYS AS.
    pub generated: Option<Generated>,
    /// CHECK constraints.
    pub checks: Vec<Expression>,
    /// REFERENCES.
    pub references: Option<References>,
    /// INVISIBLE.
    pub invisible: bool,
    /// COMPRESSED[=method].
    pub compressed: Option<String>,
    /// Other accepted words such as COLUMN_FORMAT, STORAGE, WITHOUT SYSTEM VERSIONING.
    pub other: Vec<(String, String)>,
}

/// A generated column.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// Value.
    pub expression: Expression,
    /// STORED, PERSISTENT.
    pub stored: bool,
}

/// REFERENCES of a foreign key.
#[derive(Clone, Debug, PartialEq)]
pub struct References {
    /// Parent table.
    pub table: TableName,
    /// Parent columns.
    pub columns: Vec<String>,
    /// MATCH word, in capitals.
    pub match_kind: Option<String>,
    /// ON DELETE.
    pub on_delete: Option<ReferentialAction>,
    /// ON UPDATE.
    pub on_update: Option<ReferentialAction>,
}

/// Actions of foreign keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the words")]
pub enum ReferentialAction {
    Restrict,
    Cascade,
    SetNull,
    NoAction,
    SetDefault,
}

/// Kinds of index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the words")]
pub enum IndexKind {
    Plain,
    Unique,
    Primary,
    FullText,
    Spatial,
}

/// An index of CREATE TABLE, ALTER TABLE or CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSpecification {
    /// Kind.
    pub kind: IndexKind,
    /// CONSTRAINT symbol.
    pub symbol: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Columns.
    pub parts: Vec<IndexPartSpecification>,
    /// USING, in capitals: BTREE, HASH, RTREE.
    pub using: Option<String>,
    /// COMMENT.
    pub comment: Option<Vec<u8>>,
    /// KEY_BLOCK_SIZE.
    pub key_block_size: Option<u64>,
    /// IGNORED (true), NOT IGNORED (false).
    pub ignored: Option<bool>,
    /// Other options such as WITH PARSER.
    pub other: Vec<(String, String)>,
}

/// A part of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexPartSpecification {
    /// Column.
    pub column: String,
    /// `(n)`.
    pub prefix: Option<u64>,
    /// DESC.
    pub descending: bool,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKey {
    /// CONSTRAINT symbol.
    pub symbol: Option<String>,
    /// Index name.
    pub name: Option<String>,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Child columns.
    pub columns: Vec<IndexPartSpecification>,
    /// Parent.
    pub references: References,
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// CONSTRAINT symbol.
    pub name: Option<String>,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Condition.
    pub expression: Expression,
}

/// `name = value` of a table, as written: names in capitals with one blank between words
/// (`ENGINE`, `DEFAULT CHARSET` as `CHARSET`, `COLLATE`, `COMMENT`, `AUTO_INCREMENT`,
/// `ROW_FORMAT`, ...).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOption {
    /// Name.
    pub name: String,
    /// The name as written, for options that are shown so.
    pub written: String,
    /// Value.
    pub value: OptionValue,
}

/// Value of a table option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// A number.
    Number(u64),
    /// A word or identifier.
    Word(String),
    /// A string.
    Text(Vec<u8>),
    /// Names in parentheses (UNION).
    Names(Vec<TableName>),
    /// DEFAULT.
    Default,
}

/// CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// OR REPLACE.
    pub or_replace: bool,
    /// TEMPORARY.
    pub temporary: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Name.
    pub name: TableName,
    /// LIKE other; everything below is empty then.
    pub like: Option<TableName>,
    /// Columns.
    pub columns: Vec<ColumnSpecification>,
    /// Indexes (those of single columns are in the columns).
    pub indexes: Vec<IndexSpecification>,
    /// Foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// CHECK constraints of the table.
    pub checks: Vec<Check>,
    /// PERIOD FOR, as written.
    pub periods: Vec<String>,
    /// Options.
    pub options: Vec<TableOption>,
    /// PARTITION BY.
    pub partition_by: Option<PartitionBy>,
    /// AS SELECT.
    pub query: Option<CreateTableQuery>,
}

/// PARTITION BY.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionBy {
    /// LINEAR.
    pub linear: bool,
    /// How rows are given to partitions.
    pub kind: PartitionKind,
    /// PARTITIONS n.
    pub count: Option<u64>,
    /// Partitions that were written out.
    pub partitions: Vec<PartitionSpecification>,
}

/// One partition of PARTITION BY, ADD PARTITION or REORGANIZE PARTITION.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionSpecification {
    /// Name.
    pub name: String,
    /// VALUES.
    pub values: PartitionValues,
    /// COMMENT.
    pub comment: Option<Vec<u8>>,
}

/// What rows lie in a partition.
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionValues {
    /// Not written.
    None,
    /// VALUES LESS THAN: a value for each column, none for MAXVALUE.
    LessThan(Vec<Option<Expression>>),
    /// VALUES IN: lists of values for the columns.
    In(Vec<Vec<Option<Expression>>>),
    /// DEFAULT.
    Default,
}

/// How rows are given to partitions.
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionKind {
    /// HASH (expression).
    Hash(Expression),
    /// KEY (columns).
    Key {
        /// ALGORITHM = n.
        algorithm: Option<u64>,
        /// Columns; empty for those of the primary key.
        columns: Vec<String>,
    },
    /// RANGE (expression).
    Range(Expression),
    /// RANGE COLUMNS (columns).
    RangeColumns(Vec<String>),
    /// LIST (expression).
    List(Expression),
    /// LIST COLUMNS (columns).
    ListColumns(Vec<String>),
    /// SYSTEM_TIME and others, and subpartitions, as written.
    Other(String),
}

/// The SELECT of CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableQuery {
    /// IGNORE.
    pub ignore: bool,
    /// REPLACE.
    pub replace: bool,
    /// Rows.
    pub query: Box<Query>,
}

/// DROP TABLE, DROP VIEW.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropTable {
    /// TEMPORARY.
    pub temporary: bool,
    /// IF EXISTS.
    pub if_exists: bool,
    /// Names.
    pub names: Vec<TableName>,
    /// CASCADE (true), RESTRICT (false): accepted and without meaning.
    pub cascade: Option<bool>,
}

/// CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// OR REPLACE.
    pub or_replace: bool,
    /// The index; its name is set.
    pub index: IndexSpecification,
    /// Table.
    pub table: TableName,
    /// ALGORITHM and LOCK.
    pub hints: Vec<(String, String)>,
}

/// DROP INDEX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropIndex {
    /// IF EXISTS.
    pub if_exists: bool,
    /// Index.
    pub name: String,
    /// Table.
    pub table: TableName,
}

/// Options of CREATE DATABASE and ALTER DATABASE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// CHARACTER SET.
    pub charset: Option<String>,
    /// COLLATE.
    pub collation: Option<String>,
    /// COMMENT.
    pub comment: Option<Vec<u8>>,
}

/// CREATE DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateDatabase {
    /// OR REPLACE.
    pub or_replace: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Name.
    pub name: String,
    /// Options.
    pub options: DatabaseOptions,
}

/// ALTER DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterDatabase {
    /// Name; the session's database when not written.
    pub name: Option<String>,
    /// Options.
    pub options: DatabaseOptions,
}

/// DROP DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropDatabase {
    /// IF EXISTS.
    pub if_exists: bool,
    /// Name.
    pub name: String,
}

/// CREATE VIEW, ALTER VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// ALTER: the view exists.
    pub alter: bool,
    /// OR REPLACE.
    pub or_replace: bool,
    /// ALGORITHM, DEFINER, SQL SECURITY and IF NOT EXISTS as written, in capitals.
    pub attributes: Vec<(String, String)>,
    /// Name.
    pub name: TableName,
    /// Column names, empty when not given.
    pub columns: Vec<String>,
    /// Definition.
    pub query: Box<Query>,
    /// WITH [CASCADED|LOCAL] CHECK OPTION: the word, `CASCADED` by default.
    pub check_option: Option<String>,
}
