//! SELECT and what it is made of.

use super::{Expression, TableName, WindowDefinition};

/// A query expression: WITH, a body, and what applies to its whole result.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// WITH.
    pub with: Option<With>,
    /// SELECT, VALUES or a set operation.
    pub body: QueryBody,
    /// ORDER BY of the whole.
    pub order_by: Vec<OrderItem>,
    /// LIMIT of the whole.
    pub limit: Option<Limit>,
    /// FOR UPDATE, LOCK IN SHARE MODE.
    pub locking: Option<Locking>,
    /// INTO.
    pub into: Option<Into>,
}

/// The body of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryBody {
    /// SELECT.
    Select(Box<Select>),
    /// UNION, EXCEPT, INTERSECT: a chain, evaluated from left to right. INTERSECT binds
    /// stronger than the others, so its chains stand inside of theirs.
    Set {
        /// The leftmost query.
        first: Box<QueryBody>,
        /// What is combined with it.
        rest: Vec<SetMember>,
    },
    /// `(query)`.
    Nested(Box<Query>),
    /// `VALUES (..), (..)`.
    Values(Vec<Vec<Expression>>),
}

/// A query in a chain of set operations.
#[derive(Clone, Debug, PartialEq)]
pub struct SetMember {
    /// How it is combined with what stands before it.
    pub operator: SetOperator,
    /// ALL (rather than DISTINCT).
    pub all: bool,
    /// The query.
    pub body: QueryBody,
}

/// Set operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the operators")]
pub enum SetOperator {
    Union,
    Except,
    Intersect,
}

/// WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct With {
    /// RECURSIVE.
    pub recursive: bool,
    /// Its tables.
    pub tables: Vec<CommonTable>,
}

/// One table of WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTable {
    /// Name.
    pub name: String,
    /// Column names, empty when not given.
    pub columns: Vec<String>,
    /// Definition.
    pub query: Query,
}

/// One SELECT.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    /// DISTINCT and friends.
    pub options: SelectOptions,
    /// What is selected.
    pub items: Vec<SelectItem>,
    /// FROM; several are separated by commas. Empty without FROM and for FROM DUAL.
    pub from: Vec<TableReference>,
    /// WHERE.
    pub filter: Option<Expression>,
    /// GROUP BY.
    pub group_by: Vec<OrderItem>,
    /// WITH ROLLUP.
    pub rollup: bool,
    /// HAVING.
    pub having: Option<Expression>,
    /// WINDOW name AS (...).
    pub windows: Vec<(String, WindowDefinition)>,
    /// INTO between the items and FROM. ORDER BY, LIMIT, locking and an INTO at the end belong
    /// to the enclosing `Query`.
    pub into: Option<Into>,
    /// PROCEDURE name(arguments), as written.
    pub procedure: Option<String>,
}

/// Words between SELECT and the first item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectOptions {
    /// DISTINCT, DISTINCTROW.
    pub distinct: bool,
    /// HIGH_PRIORITY.
    pub high_priority: bool,
    /// STRAIGHT_JOIN.
    pub straight_join: bool,
    /// SQL_SMALL_RESULT.
    pub small_result: bool,
    /// SQL_BIG_RESULT.
    pub big_result: bool,
    /// SQL_BUFFER_RESULT.
    pub buffer_result: bool,
    /// SQL_CACHE (true) or SQL_NO_CACHE (false).
    pub cache: Option<bool>,
    /// SQL_CALC_FOUND_ROWS.
    pub calculate_found_rows: bool,
}

/// One item of a select list.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`.
    Wildcard,
    /// `table.*`, `schema.table.*`.
    TableWildcard(TableName),
    /// An expression.
    Expression {
        /// Value.
        expression: Expression,
        /// AS.
        alias: Option<String>,
        /// The expression's source text: its name without an alias (columns are named by the
        /// column).
        text: String,
    },
}

/// An item of ORDER BY or GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    /// Expression, position or alias.
    pub expression: Expression,
    /// DESC.
    pub descending: bool,
}

/// LIMIT.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Number of rows, a literal, parameter or local variable; none for `OFFSET n ROWS` alone.
    pub count: Option<Expression>,
    /// Rows skipped.
    pub offset: Option<Expression>,
    /// FETCH FIRST ... WITH TIES.
    pub with_ties: bool,
    /// ROWS EXAMINED.
    pub rows_examined: Option<Expression>,
}

/// FOR UPDATE, LOCK IN SHARE MODE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locking {
    /// FOR UPDATE.
    pub exclusive: bool,
    /// What to do about rows locked by others.
    pub wait: LockingWait,
}

/// What to do about locked rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockingWait {
    /// Wait as the session says.
    Default,
    /// NOWAIT.
    NoWait,
    /// WAIT n: seconds.
    Seconds(u64),
    /// SKIP LOCKED.
    SkipLocked,
}

/// Where a query's result goes instead of the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Into {
    /// INTO @a, b.
    Variables(Vec<IntoVariable>),
    /// INTO OUTFILE 'name' options.
    Outfile {
        /// Path.
        path: Vec<u8>,
        /// CHARACTER SET, FIELDS and LINES.
        format: FileFormat,
    },
    /// INTO DUMPFILE 'name'.
    Dumpfile(Vec<u8>),
}

/// A target of INTO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntoVariable {
    /// `@name`.
    User(String),
    /// A local variable.
    Local(String),
}

/// FIELDS and LINES of LOAD DATA and INTO OUTFILE; `None` is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFormat {
    /// CHARACTER SET.
    pub charset: Option<String>,
    /// FIELDS TERMINATED BY.
    pub fields_terminated: Option<Vec<u8>>,
    /// FIELDS ENCLOSED BY.
    pub fields_enclosed: Option<Vec<u8>>,
    /// OPTIONALLY.
    pub optionally_enclosed: bool,
    /// FIELDS ESCAPED BY.
    pub fields_escaped: Option<Vec<u8>>,
    /// LINES STARTING BY.
    pub lines_starting: Option<Vec<u8>>,
    /// LINES TERMINATED BY.
    pub lines_terminated: Option<Vec<u8>>,
}

/// A table or join in FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum TableReference {
    /// A named table.
    Table {
        /// Name.
        name: TableName,
        /// PARTITION (..).
        partitions: Vec<String>,
        /// AS.
        alias: Option<String>,
        /// USE, FORCE, IGNORE INDEX.
        hints: Vec<IndexHint>,
    },
    /// `(SELECT ...) AS alias`.
    Derived {
        /// The query.
        query: Box<Query>,
        /// Name.
        alias: String,
    },
    /// A join.
    Join {
        /// Kind.
        kind: JoinKind,
        /// Left side.
        left: Box<TableReference>,
        /// Right side.
        right: Box<TableReference>,
        /// ON or USING.
        condition: JoinCondition,
    },
    /// `(a, b)`: a parenthesised list.
    Nested(Vec<TableReference>),
}

/// Kinds of join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// JOIN, INNER JOIN, CROSS JOIN.
    Inner,
    /// STRAIGHT_JOIN: the left side is read first.
    Straight,
    /// LEFT [OUTER] JOIN.
    Left,
    /// RIGHT [OUTER] JOIN.
    Right,
    /// NATURAL JOIN.
    NaturalInner,
    /// NATURAL LEFT JOIN.
    NaturalLeft,
    /// NATURAL RIGHT JOIN.
    NaturalRight,
}

/// ON and USING.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinCondition {
    /// Neither.
    None,
    /// ON.
    On(Expression),
    /// USING.
    Using(Vec<String>),
}

/// An index hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHint {
    /// USE, FORCE or IGNORE.
    pub kind: IndexHintKind,
    /// FOR JOIN, ORDER BY, GROUP BY.
    pub purpose: IndexHintPurpose,
    /// Names; empty only for `USE INDEX ()`.
    pub indexes: Vec<String>,
}

/// Kinds of index hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the words")]
pub enum IndexHintKind {
    Use,
    Force,
    Ignore,
}

/// What an index hint is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the words")]
pub enum IndexHintPurpose {
    All,
    Join,
    OrderBy,
    GroupBy,
}
