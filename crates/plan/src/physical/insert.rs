//! INSERT and REPLACE.

use super::{
    Computed, EntryHandle, FileRows, ForeignKeys, InsertSubqueries, QueryPlan, Refused,
    ResultColumn, RowCheck, ViewCheck, ViewName,
};
use expr::{Builder, Expr};
use std::sync::Arc;
use syntax::ast::{LiteralRows, PackedLiteral};
use types::{ColumnType, SqlError};

/// INSERT and REPLACE. The frame of its expressions is the new row: one position a column.
#[derive(Clone, Debug)]
pub struct InsertPlan {
    /// Table.
    pub target: EntryHandle,
    /// Columns that get the values, in order of the values.
    pub columns: Vec<usize>,
    /// Where rows come from.
    pub source: InsertRows,
    /// REPLACE: rows that stand in the way are deleted.
    pub replace: bool,
    /// IGNORE: errors of single rows become warnings.
    pub ignore: bool,
    /// ON DUPLICATE KEY UPDATE: column and value. Frame: positions `0..n` the row that stands
    /// in the way (as changed so far), `n..2n` the row that was to be inserted (VALUES()), then
    /// the columns of the source that stand behind those to be inserted.
    pub on_duplicate: Vec<(usize, Expr)>,
    /// RETURNING over the row as inserted; empty without.
    pub returning: Vec<Expr>,
    /// Columns of RETURNING.
    pub returning_columns: Vec<ResultColumn>,
    /// What ON DUPLICATE KEY UPDATE and RETURNING look up.
    pub subqueries: Option<Box<InsertSubqueries>>,
    /// Foreign keys to check; none costs nothing.
    pub foreign_keys: Option<Box<ForeignKeys>>,
    /// What rows must fulfil that come in through a view.
    pub check: Option<Box<ViewCheck>>,
    /// The view that rows come in through.
    pub view: Option<Box<ViewName>>,
    /// CHECK constraints and partitions, over the row that is written.
    pub checks: Vec<RowCheck>,
    /// What the row that is written computes; none costs nothing.
    pub computed: Option<Box<Computed>>,
}

/// Where the rows of an INSERT come from.
#[derive(Clone, Debug)]
pub enum InsertRows {
    /// VALUES, SET.
    Values(Vec<Vec<InsertValue>>),
    /// VALUES of a large statement: each value is made when its row is inserted.
    Literals(Arc<LiteralRows>),
    /// SELECT.
    Query(QueryPlan),
    /// LOAD DATA.
    File(Box<FileRows>),
}

/// A value of an INSERT.
#[derive(Clone, Debug)]
pub enum InsertValue {
    /// An expression over the row so far: columns to the left are already set, the others have
    /// their defaults.
    Expr(Expr),
    /// DEFAULT.
    Default,
    /// A value for a generated column.
    Refused(Refused),
}

/// The expression that a literal for a column of this type is.
pub fn packed_literal(
    builder: &Builder<'_>,
    literal: PackedLiteral<'_>,
    target: &ColumnType,
) -> Result<Expr, SqlError> {
    let value = match literal {
        PackedLiteral::Null => builder.null(),
        PackedLiteral::Integer(number) => builder.integer(number),
        PackedLiteral::Negative(number) => builder.negate(builder.integer(number))?,
        PackedLiteral::Decimal(text) => builder.decimal(text)?,
        PackedLiteral::Float(text) => builder.float(text)?,
        PackedLiteral::Text(bytes) => builder.text(bytes.to_vec(), None)?,
    };
    Ok(builder.for_column(value, target))
}
