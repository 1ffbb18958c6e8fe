//! What the executor runs: plans as plain data.
//!
//! A plan is made once and shared by all executions; it holds no state. Values that are known
//! only at execution (parameters, columns of outer tables) stand in it as expressions.
//!
//! **The row frame.** The expressions of one query block read one frame of columns by position:
//! 1. positions `0..outer_columns` hold the values of the enclosing block that a correlated
//!    subquery reads;
//! 2. every table of FROM has a run of positions, one per column, from `first_position` on;
//! 3. every subquery of the block has one position, which [`Apply`] fills in;
//! 4. after grouping there is another frame: the group's keys, then the aggregates, then the
//!    values that are `carried` over. Columns that are none of these the planner has turned into
//!    `ANY_VALUE`-like aggregates.

mod access;
mod check;
mod computed;
mod file;
mod foreign;
mod insert;
mod limit;
mod subqueries;
mod window;

pub use access::{Access, RangeEnd, RangePlan, RangeValue};
pub use check::{RowCheck, RowCheckKind, ViewCheck};
pub use computed::{Computed, GeneratedColumn, Refused};
pub use file::{FieldTarget, FileRows, LineFormat};
pub use foreign::{ChildLink, ForeignKeys, ForeignTable, ParentLink};
pub use insert::{InsertPlan, InsertRows, InsertValue, packed_literal};
pub use limit::LimitPlan;
pub use subqueries::{InsertSubqueries, LateCondition};
pub use window::{FrameEdge, FramePlan, WindowFunction, WindowKind, WindowPlan, WindowStep};

use crate::optimize::ValueShare;
use catalog::TableEntry;
use catalog::information_schema::VirtualTable;
use engine_api::{LockMode, LockWait};
use expr::aggregate::Aggregate;
use expr::{CompareRule, Expr, ResultType};
use std::sync::Arc;

/// A statement that reads or changes rows.
#[derive(Clone, Debug)]
pub enum Plan {
    /// SELECT and its relatives.
    Query(QueryPlan),
    /// INSERT, REPLACE.
    Insert(Box<InsertPlan>),
    /// UPDATE of one table.
    Update(Box<UpdatePlan>),
    /// DELETE from one table.
    Delete(Box<DeletePlan>),
    /// UPDATE of the rows of a join.
    UpdateJoin(Box<JoinChangePlan>),
    /// DELETE of the rows of a join.
    DeleteJoin(Box<JoinChangePlan>),
}

/// A column of a result as the client is told of it.
#[derive(Clone, Debug)]
pub struct ResultColumn {
    /// Label.
    pub name: String,
    /// Name of the column in its table; empty for an expression.
    pub org_name: String,
    /// Alias of the table; empty for an expression.
    pub table: String,
    /// Name of the table.
    pub org_table: String,
    /// Database of the table.
    pub schema: String,
    /// Type.
    pub result: ResultType,
    /// Flags of the column itself (PRIMARY_KEY, AUTO_INCREMENT ...), beside those of the type.
    pub flags: u16,
}

/// A query: one block or several combined.
#[derive(Clone, Debug)]
pub enum QueryPlan {
    /// One SELECT.
    Select(Box<SelectPlan>),
    /// UNION, EXCEPT, INTERSECT.
    Set(Box<SetPlan>),
}

impl QueryPlan {
    /// The result's columns.
    pub fn columns(&self) -> &[ResultColumn] {
        match self {
            Self::Select(select) => &select.columns,
            Self::Set(set) => &set.columns,
        }
    }
}

/// How two results are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    /// Rows of both.
    UnionAll,
    /// Rows of both, each once.
    Union,
    /// Rows of the left that the right has not, each once.
    Except,
    /// Rows that both have, each once.
    Intersect,
    /// Rows of the left, each as often as the left has it more often than the right.
    ExceptAll,
    /// Rows that both have, each as often as both have it.
    IntersectAll,
}

/// A combination of queries, evaluated from left to right.
#[derive(Clone, Debug)]
pub struct SetPlan {
    /// The first query.
    pub first: QueryPlan,
    /// What is combined with the result so far. The projections of all queries already give
    /// values of `columns`' types (the planner has put casts where needed).
    pub rest: Vec<(SetOperation, QueryPlan)>,
    /// Further values that the whole is sorted by, over `columns`.
    pub sort_values: Vec<Expr>,
    /// ORDER BY of the whole, positions in `columns` and behind them in `sort_values`.
    pub order_by: Vec<SortKey>,
    /// LIMIT of the whole.
    pub limit: LimitPlan,
    /// Result columns.
    pub columns: Vec<ResultColumn>,
    /// WITH RECURSIVE: some of the queries read what the ones before gave.
    pub recursion: Option<Recursion>,
}

/// A recursive common table. The queries before [`Recursion::first`] give the first rows; the
/// others are run again and again, each time over the rows that came last, until none comes.
#[derive(Clone, Debug)]
pub struct Recursion {
    /// What its [`TableSource::Recursive`] are known by in the statement.
    pub id: usize,
    /// Position in [`SetPlan::rest`] of the first query that reads the table.
    pub first: usize,
    /// UNION rather than UNION ALL: a row that came before does not count.
    pub distinct: bool,
}

/// A key of a sort: a position in the projected row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Position in `SelectPlan::projection`.
    pub position: usize,
    /// DESC.
    pub descending: bool,
}

/// One query block.
#[derive(Clone, Debug)]
pub struct SelectPlan {
    /// Positions of the frame that hold the enclosing block's values.
    pub outer_columns: usize,
    /// Number of positions of the frame.
    pub frame_columns: usize,
    /// A condition that reads no table: false gives no rows without reading any.
    pub constant_filter: Option<Expr>,
    /// Subqueries that read no table of this block; filled in once before the first row.
    pub constant_applies: Vec<Apply>,
    /// Tables in join order; empty for a SELECT without FROM, which has one row.
    pub tables: Vec<TableStep>,
    /// Grouping; none streams rows.
    pub aggregate: Option<AggregatePlan>,
    /// HAVING over the grouped (or, without grouping, the plain) frame.
    pub having: Option<Expr>,
    /// Window functions; with them `projection` is over the frame behind them.
    pub window: Option<Box<WindowPlan>>,
    /// Values of a result row, `columns.len()` of them shown, the others only sorted by.
    pub projection: Vec<Expr>,
    /// DISTINCT over the shown values.
    pub distinct: bool,
    /// ORDER BY; empty when rows come in that order by themselves.
    pub order_by: Vec<SortKey>,
    /// Rows come in the order asked for by themselves, so nothing may change their order.
    pub in_order: bool,
    /// Rows that DISTINCT takes for equal come one behind the other.
    pub equal_are_neighbours: bool,
    /// LIMIT.
    pub limit: LimitPlan,
    /// Count the rows that LIMIT hides (SQL_CALC_FOUND_ROWS).
    pub calculate_found_rows: bool,
    /// Row locks that the reads take.
    pub lock: LockMode,
    /// What they do about rows locked by others.
    pub lock_wait: LockWait,
    /// The client's columns.
    pub columns: Vec<ResultColumn>,
    /// What the planner expects of one execution.
    pub estimate: BlockEstimate,
    /// What it was chosen by that depends on values of parameters.
    pub value_shares: Vec<ValueShare>,
}

/// What the planner expects of one execution of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockEstimate {
    /// Rows of its result.
    pub rows: f64,
    /// What it costs, in rows read in key order.
    pub cost: f64,
}

/// A subquery whose value becomes a column of the frame.
#[derive(Clone, Debug)]
pub struct Apply {
    /// Position of the frame that it fills in.
    pub position: usize,
    /// What becomes of its rows.
    pub kind: ApplyKind,
    /// Positions of this block's frame whose values become positions `0..` of the subquery's.
    /// Without any the subquery is run once per execution.
    pub outer_positions: Vec<usize>,
    /// The subquery.
    pub query: QueryPlan,
    /// It reads what an UPDATE has assigned by then: it is not filled in with the row but when it
    /// is the turn of the assignment that reads it ([`SelectPlan::late_subqueries`]).
    pub is_late: bool,
}

/// What becomes of a subquery's rows.
#[derive(Clone, Debug)]
pub enum ApplyKind {
    /// The one value of its one row; NULL without a row, error 1242 with several.
    Scalar,
    /// 1 if it has a row, else 0.
    Exists,
    /// `operand IN (subquery)` in three-valued logic; the planner adds NOT outside.
    In {
        /// Values on the left, one per column.
        operand: Vec<Expr>,
        /// How each is compared.
        rules: Vec<CompareRule>,
    },
    /// `operand op ANY (subquery)`, or ALL.
    Quantified {
        /// Left side.
        operand: Expr,
        /// Operator.
        operator: expr::CompareOperator,
        /// How it is compared.
        rule: CompareRule,
        /// ALL.
        all: bool,
    },
}

/// One table in join order with how its rows are found.
#[derive(Clone, Debug)]
pub struct TableStep {
    /// What is read.
    pub source: TableSource,
    /// Name for messages and EXPLAIN: alias or name.
    pub alias: String,
    /// First position of the frame for its columns.
    pub first_position: usize,
    /// How rows are found.
    pub access: Access,
    /// LEFT JOIN: when no row passes `condition`, one row of NULLs follows.
    pub left_join: bool,
    /// Conditions that a row of this table must pass for the join (all conjuncts that become
    /// decidable here; for a left join those of ON).
    pub condition: Option<Expr>,
    /// What of `condition` the access does not enforce by itself: tested on every row.
    pub tested: Option<Expr>,
    /// Of a left join: what of ON reads subqueries that need this table's row.
    pub late: Option<Box<LateCondition>>,
    /// Subqueries that can be filled in once this table has a row.
    pub applies: Vec<Apply>,
    /// Conditions after `applies` and after a row of NULLs was made.
    pub filter: Option<Expr>,
    /// Row locks that its reads take: those of the block, or none for a table that an UPDATE or
    /// DELETE of a join only reads.
    pub lock: LockMode,
    /// Estimated rows per row of the tables before, for EXPLAIN.
    pub rows_estimate: u64,
    /// Share of those rows that conditions are expected to leave, for EXPLAIN.
    pub selectivity: f64,
    /// Positions in `TableDefinition::indexes` that conditions could have used, for EXPLAIN.
    pub possible_keys: Vec<usize>,
}

impl TableStep {
    /// Percentage of the rows that conditions are expected to leave.
    pub fn percent(&self) -> f64 {
        (self.selectivity * 100.0).clamp(0.0, 100.0)
    }
}

/// What a step reads.
#[derive(Clone, Debug)]
pub enum TableSource {
    /// A table of the engine.
    Base(EntryHandle),
    /// A table of information_schema.
    Virtual {
        /// The table.
        table: &'static VirtualTable,
        /// `TABLE_SCHEMA = ...`, if the conditions say so.
        schema: Option<Expr>,
        /// `TABLE_NAME = ...`, if the conditions say so.
        name: Option<Expr>,
    },
    /// A subquery in FROM, run once per execution of the block.
    Derived(Box<QueryPlan>),
    /// The rows that the recursive table around the block gave last.
    Recursive {
        /// See [`Recursion::id`].
        id: usize,
        /// Number of its columns.
        columns: usize,
    },
}

/// A table of the engine: definition, layouts and handle. Prints as its name.
#[derive(Clone)]
pub struct EntryHandle(pub Arc<TableEntry>);

impl std::fmt::Debug for EntryHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let definition = self.0.definition();
        write!(formatter, "{}.{}", definition.schema, definition.name)
    }
}

/// Grouping.
#[derive(Clone, Debug)]
pub struct AggregatePlan {
    /// GROUP BY values; none makes one group of all rows, even of no row.
    pub keys: Vec<Expr>,
    /// Aggregates.
    pub calls: Vec<Aggregate>,
    /// Rows come in the order of the keys: groups are finished one after the other.
    pub sorted: bool,
    /// WITH ROLLUP.
    pub rollup: Option<Box<RollupPlan>>,
    /// Positions of the block's frame whose values do not depend on its rows (columns of the
    /// enclosing block, subqueries run once). They are appended to each group's row, also to
    /// that of the one group of no rows.
    pub carried: Vec<usize>,
    /// Subqueries that read the groups' rows, whose values are appended to these one by one.
    pub applies: Vec<Apply>,
}

/// WITH ROLLUP: behind each run of groups whose first keys are equal a row for all of them.
#[derive(Clone, Debug)]
pub struct RollupPlan {
    /// Values of a frame that are sorted by the keys: the keys, the arguments of the aggregates,
    /// the values carried over.
    pub inputs: Vec<Expr>,
    /// The aggregates over these values.
    pub calls: Vec<Aggregate>,
    /// For each key, DESC.
    pub descending: Vec<bool>,
}

/// Database and name of a view.
pub type ViewName = (String, String);

/// UPDATE of one table.
#[derive(Clone, Debug)]
pub struct UpdatePlan {
    /// Table.
    pub target: EntryHandle,
    /// How the rows are found: one step, with exclusive locks. Frame: the table's columns, then
    /// subqueries.
    pub select: SelectPlan,
    /// Column and value, from left to right; a later one sees the earlier ones' values. None is
    /// DEFAULT.
    pub assignments: Vec<(usize, Option<Expr>)>,
    /// For each assignment the positions of the subqueries that are run when it is its turn;
    /// empty without any.
    pub late: Vec<Vec<usize>>,
    /// IGNORE.
    pub ignore: bool,
    /// The scan could meet its own changes (an assigned column is part of the index scanned, or
    /// of the clustered key): collect the rows before changing any.
    pub collect_first: bool,
    /// Foreign keys to check; none costs nothing.
    pub foreign_keys: Option<Box<ForeignKeys>>,
    /// What rows must fulfil that come in through a view.
    pub check: Option<Box<ViewCheck>>,
    /// CHECK constraints and partitions, over the row that is written.
    pub checks: Vec<RowCheck>,
    /// What the row that is written computes; none costs nothing.
    pub computed: Option<Box<Computed>>,
}

/// DELETE from one table.
#[derive(Clone, Debug)]
pub struct DeletePlan {
    /// Table.
    pub target: EntryHandle,
    /// How the rows are found, as in [`UpdatePlan`].
    pub select: SelectPlan,
    /// IGNORE.
    pub ignore: bool,
    /// RETURNING over the frame of `select`; empty without.
    pub returning: Vec<Expr>,
    /// Columns of RETURNING.
    pub returning_columns: Vec<ResultColumn>,
    /// Foreign keys to check; none costs nothing.
    pub foreign_keys: Option<Box<ForeignKeys>>,
}

/// UPDATE or DELETE of the rows of a join.
#[derive(Clone, Debug)]
pub struct JoinChangePlan {
    /// How the rows are found. Frame: the tables' columns in the order of FROM, then subqueries.
    pub select: SelectPlan,
    /// The tables that change, in the order of FROM.
    pub targets: Vec<JoinTarget>,
    /// IGNORE.
    pub ignore: bool,
}

/// A table of a join whose rows are changed.
#[derive(Clone, Debug)]
pub struct JoinTarget {
    /// Table.
    pub table: EntryHandle,
    /// Number of its step in the join order.
    pub step: usize,
    /// Column and value; none is DEFAULT. Empty for DELETE.
    pub assignments: Vec<(usize, Option<Expr>)>,
    /// As in [`UpdatePlan`].
    pub late: Vec<Vec<usize>>,
    /// It is the first in the join order and does not find its rows by what is assigned:
    /// assignments and those of later tables see the values that were assigned before. Otherwise
    /// all values come from the rows as they were found.
    pub sees_assigned: bool,
    /// Rows may change by another target: it is the same table, or foreign keys lead there.
    pub shared: bool,
    /// What rows of the join must fulfil when they have the new values.
    pub check: Option<Box<ViewCheck>>,
    /// CHECK constraints and partitions, over the row that is written.
    pub checks: Vec<RowCheck>,
    /// What the row that is written computes; none costs nothing.
    pub computed: Option<Box<Computed>>,
    /// Foreign keys to check; none costs nothing.
    pub foreign_keys: Option<Box<ForeignKeys>>,
}
