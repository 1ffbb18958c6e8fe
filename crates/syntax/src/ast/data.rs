//! Statements that change rows.

use super::{
    ColumnName, Expression, FileFormat, Limit, LiteralRows, OrderItem, Query, SelectItem,
    TableName, TableReference,
};
use std::sync::Arc;

/// A table that a statement changes, with an optional alias and partition list.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetTable {
    /// Name.
    pub name: TableName,
    /// PARTITION (..).
    pub partitions: Vec<String>,
    /// AS.
    pub alias: Option<String>,
}

/// Priority words of INSERT, UPDATE and DELETE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the words")]
pub enum Priority {
    #[default]
    Default,
    Low,
    High,
    Delayed,
}

/// INSERT and REPLACE.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// REPLACE.
    pub replace: bool,
    /// LOW_PRIORITY, HIGH_PRIORITY, DELAYED.
    pub priority: Priority,
    /// IGNORE.
    pub ignore: bool,
    /// Target.
    pub table: TargetTable,
    /// Column list; none when not written (an empty list is `Some(vec![])`).
    pub columns: Option<Vec<ColumnName>>,
    /// The rows. SET is brought to `columns` and one row.
    pub source: InsertSource,
    /// ON DUPLICATE KEY UPDATE.
    pub on_duplicate: Vec<Assignment>,
    /// RETURNING.
    pub returning: Vec<SelectItem>,
}

/// Where the rows of an INSERT come from.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// VALUES; `Expression::Default(None)` is DEFAULT.
    Values(Vec<Vec<Expression>>),
    /// VALUES of a large statement, which are literals and nothing else.
    Literals(Arc<LiteralRows>),
    /// SELECT.
    Query(Box<Query>),
}

/// `column = value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// Target.
    pub column: ColumnName,
    /// Value; `Expression::Default(None)` is DEFAULT.
    pub value: Expression,
}

/// UPDATE.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// LOW_PRIORITY.
    pub low_priority: bool,
    /// IGNORE.
    pub ignore: bool,
    /// Tables; one `TableReference::Table` for the single-table form.
    pub tables: Vec<TableReference>,
    /// SET.
    pub assignments: Vec<Assignment>,
    /// WHERE.
    pub filter: Option<Expression>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// LIMIT.
    pub limit: Option<Limit>,
}

/// DELETE.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// LOW_PRIORITY.
    pub low_priority: bool,
    /// QUICK.
    pub quick: bool,
    /// IGNORE.
    pub ignore: bool,
    /// Tables deleted from in the multi-table form; empty in the single-table form.
    pub targets: Vec<TableName>,
    /// Tables read; one `TableReference::Table` for the single-table form.
    pub tables: Vec<TableReference>,
    /// WHERE.
    pub filter: Option<Expression>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// LIMIT.
    pub limit: Option<Limit>,
    /// RETURNING.
    pub returning: Vec<SelectItem>,
}

/// LOAD DATA, LOAD XML.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadData {
    /// LOAD XML.
    pub xml: bool,
    /// LOCAL.
    pub local: bool,
    /// LOW_PRIORITY or CONCURRENT.
    pub priority: Priority,
    /// File.
    pub path: Vec<u8>,
    /// REPLACE.
    pub replace: bool,
    /// IGNORE.
    pub ignore: bool,
    /// Target.
    pub table: TargetTable,
    /// CHARACTER SET, FIELDS, LINES.
    pub format: FileFormat,
    /// IGNORE n LINES.
    pub ignore_lines: u64,
    /// Columns and `@variables` that take the fields.
    pub columns: Vec<Expression>,
    /// SET.
    pub assignments: Vec<Assignment>,
}

/// CALL.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Procedure.
    pub procedure: TableName,
    /// Arguments.
    pub arguments: Vec<Expression>,
}
