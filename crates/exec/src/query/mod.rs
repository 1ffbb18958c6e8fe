//! Queries: a block's nested loops, and what becomes of its rows.
//!
//! ```text
//! run_query -> block::run_block -> step (per table) -> emit -> Output: stream | group | sort
//! run_statement -> direct::run -> step -> direct::Direct: stored rows to the sink
//! ```

mod access;
mod aggregate;
mod apply;
mod block;
mod deferred;
mod derived;
mod direct;
mod distinct;
mod distribute;
mod each_row;
mod grace;
mod grouped;
mod hash;
mod heads;
mod in_rows;
mod keys;
mod ordering;
mod output;
mod packed;
mod recursive;
mod remembered;
mod rollup;
pub mod rows;
mod set;
mod sides;
mod sort_batch;
mod sort_stored;
mod sorter;
mod vector;
mod window;

pub use apply::{LateRow, Once, deferred, value as subquery_value};
pub use block::BlockRun;
pub use direct::stored_columns;
pub use each_row::{each_row, each_row_to_change};
pub use output::refused;
pub use recursive::Recursions;

use crate::context::{Exec, RowSink};
use crate::{ExecError, Outcome};
use derived::{DerivedRows, RowKeeper};
use expr::{EvalContext, NoColumns};
use plan::physical::{LimitPlan, QueryPlan, SelectPlan};
use std::ops::ControlFlow;
use types::{Value, ValueRef};

/// Whether more rows are wanted.
pub type Flow = ControlFlow<()>;

/// Where the rows of a query go.
pub type RowTarget<'t> = dyn FnMut(&EvalContext, &[ValueRef<'_>]) -> Result<Flow, ExecError> + 't;

/// Runs a query for the client.
pub fn run_statement(
    exec: &mut Exec<'_>,
    query: &QueryPlan,
    sink: &mut dyn RowSink,
) -> Result<Outcome, ExecError> {
    sink.begin(Some(exec.transaction.read_gate()))?;
    if let QueryPlan::Select(select) = query
        && sink.takes_stored()
    {
        let (affected_rows, found_rows) = match select.order_by.is_empty() {
            true => direct::run(exec, select, sink)?,
            false => block::run_sorted(exec, select, sink)?,
        };
        return Ok(Outcome { affected_rows, found_rows, has_rows: true, ..Outcome::default() });
    }
    let mut sent = 0;
    let hidden = run_query(exec, query, &[], &mut |_, values| {
        sent += 1;
        sink.row(values)?;
        Ok(Flow::Continue(()))
    })?;
    Ok(Outcome {
        affected_rows: sent,
        found_rows: sent + hidden,
        has_rows: true,
        ..Outcome::default()
    })
}

/// Runs a query with the enclosing block's values; returns the number of rows that its LIMIT
/// hid, if the plan counts them.
pub fn run_query(
    exec: &mut Exec<'_>,
    query: &QueryPlan,
    outer: &[Value],
    target: &mut RowTarget<'_>,
) -> Result<u64, ExecError> {
    match query {
        QueryPlan::Select(select) => block::run_block(exec, select, outer, target),
        QueryPlan::Set(set) => set::run_set(exec, set, outer, target),
    }
}

/// Collects the rows of a query.
pub fn collect(
    exec: &mut Exec<'_>,
    query: &QueryPlan,
    outer: &[Value],
) -> Result<Vec<Vec<Value>>, ExecError> {
    let mut rows = Vec::new();
    let memory = exec.memory.clone();
    run_query(exec, query, outer, &mut |_, values| {
        let row: Vec<Value> = values.iter().map(|&value| value.to_owned()).collect();
        output::charge(&memory, row_bytes(&row))?;
        rows.push(row);
        Ok(Flow::Continue(()))
    })?;
    Ok(rows)
}

/// Collects the rows of a query packed, for a derived table.
pub fn collect_packed(exec: &mut Exec<'_>, query: &QueryPlan) -> Result<DerivedRows, ExecError> {
    if let QueryPlan::Select(select) = query
        && let Some(rows) = block::collect_sorted(exec, select)?
    {
        return Ok(rows);
    }
    let mut keeper = RowKeeper::new(exec, query.columns().len());
    run_query(exec, query, &[], &mut |_, values| {
        keeper.push(values)?;
        Ok(Flow::Continue(()))
    })?;
    keeper.finish()
}

/// Memory that a kept row takes.
pub fn row_bytes(row: &[Value]) -> usize {
    let text = |value: &Value| if let Value::Bytes(bytes) = value { bytes.len() } else { 0 };
    std::mem::size_of_val(row) + row.iter().map(text).sum::<usize>() + 24
}

/// LIMIT with its values known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Rows skipped.
    pub offset: u64,
    /// Most rows.
    pub count: u64,
}

impl Limit {
    /// The LIMIT of a block, or sql_select_limit.
    pub fn of_block(plan: &SelectPlan, exec: &Exec<'_>) -> Result<Self, ExecError> {
        let mut limit = Self::of(&plan.limit, exec.eval)?;
        if plan.limit.count.is_none() {
            limit.count = exec.select_limit;
        }
        Ok(limit)
    }

    /// Evaluates the expressions of a LIMIT.
    pub fn of(plan: &LimitPlan, eval: &EvalContext) -> Result<Self, ExecError> {
        let number = |expr: &Option<expr::Expr>, default: u64| -> Result<u64, ExecError> {
            let Some(expr) = expr else { return Ok(default) };
            Ok(match expr.eval(eval, &NoColumns)? {
                ValueRef::UInt(value) => value,
                ValueRef::Int(value) => value.max(0) as u64,
                ValueRef::Bytes(text) => types::number::parse_integer(text).value.to_u64().0,
                _ => default,
            })
        };
        Ok(Self { offset: number(&plan.offset, 0)?, count: number(&plan.count, u64::MAX)? })
    }

    /// Rows that must be known to give all wanted ones.
    pub fn needed(self) -> u64 {
        self.offset.saturating_add(self.count)
    }
}
