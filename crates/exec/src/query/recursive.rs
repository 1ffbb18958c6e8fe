//! WITH RECURSIVE: queries over the rows that they gave last, until they give none.
//!
//! Every row goes on as it comes, converted to the types of the first query. Kept are the rows of
//! the last round, which may lie in a file, and for UNION the keys of all rows.

use super::derived::{DerivedRows, RowKeeper};
use super::distinct::{Coming, Distinct, Seen};
use super::{Flow, RowTarget, run_query};
use crate::ExecError;
use crate::context::Exec;
use crate::store::store;
use plan::physical::{QueryPlan, Recursion, ResultColumn, SetPlan};
use std::sync::Arc;
use types::convert::ColumnPlace;
use types::{SqlError, Value, ValueRef, codes};

/// The rows that the recursive tables of a statement gave last, by their numbers.
#[derive(Default)]
pub struct Recursions(Vec<(usize, Arc<DerivedRows>)>);

impl Recursions {
    /// The rows of a table; only within its definition there are any.
    pub(crate) fn rows(&self, id: usize) -> Result<Arc<DerivedRows>, ExecError> {
        let found = self.0.iter().rev().find(|(known, _)| *known == id);
        let lost = || SqlError::new(&codes::UNKNOWN_ERROR, &[]);
        Ok(found.ok_or_else(lost)?.1.clone())
    }
}

/// What takes the rows of all rounds.
struct Taker<'t, 't2> {
    columns: &'t [ResultColumn],
    distinct: Option<Distinct>,
    target: &'t mut RowTarget<'t2>,
    /// Number of the row, for messages.
    row: u64,
    ended: bool,
}

impl Taker<'_, '_> {
    /// A row of a query with these columns; kept for the next round if it is new.
    fn take(
        &mut self,
        eval: &expr::EvalContext,
        row: &[ValueRef<'_>],
        from: &[ResultColumn],
        keeper: &mut RowKeeper,
    ) -> Result<Flow, ExecError> {
        self.row += 1;
        let mut values: Vec<Value> = Vec::with_capacity(row.len());
        for ((value, from), column) in row.iter().zip(from).zip(self.columns) {
            let same = from.result.column_type == column.result.column_type;
            values.push(match value {
                &value if same || value.is_null() => ValueRef::to_owned(value),
                value => {
                    let place =
                        ColumnPlace { schema: "", table: "", column: &column.name, row: self.row };
                    store(*value, &from.result, &column.result.column_type, &place, eval)?
                }
            });
        }
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        if let Some(distinct) = &mut self.distinct
            && distinct.see(&values)? != Seen::First
        {
            return Ok(Flow::Continue(()));
        }
        keeper.push(&values)?;
        let flow = (self.target)(eval, &values)?;
        self.ended |= flow.is_break();
        Ok(flow)
    }
}

/// Runs a recursive definition.
pub fn run(
    exec: &mut Exec<'_>,
    plan: &SetPlan,
    recursion: &Recursion,
    target: &mut RowTarget<'_>,
) -> Result<(), ExecError> {
    let types = plan.columns.iter().map(|column| column.result.column_type).collect();
    let distinct = recursion
        .distinct
        .then(|| Distinct::new(types, exec.memory, exec.spill).in_order(Coming::AtOnce));
    let mut taker = Taker { columns: &plan.columns, distinct, target, row: 0, ended: false };
    let outside = exec.eval.warnings_are_errors.get();
    exec.eval.warnings_are_errors.set(exec.eval.settings.sql_mode.is_strict());
    let result = rounds(exec, plan, recursion, &mut taker);
    exec.eval.warnings_are_errors.set(outside);
    exec.recursions.0.retain(|(id, _)| *id != recursion.id);
    result
}

fn rounds(
    exec: &mut Exec<'_>,
    plan: &SetPlan,
    recursion: &Recursion,
    taker: &mut Taker<'_, '_>,
) -> Result<(), ExecError> {
    let (anchors, readers) = plan.rest.split_at(recursion.first);
    let first = std::iter::once(&plan.first).chain(anchors.iter().map(|(_, query)| query));
    let mut rows = round(exec, plan, first, taker)?;
    let mut left = exec.recursion_limit;
    while let Some(last) = rows.filter(|_| !taker.ended) {
        if left == 0 {
            let limit = exec.recursion_limit;
            let warning = SqlError::new(
                &codes::QUERY_RESULT_INCOMPLETE,
                &[&"max_recursive_iterations", &limit],
            );
            let level = types::Level::Warning;
            exec.eval.push_warning(types::Warning { level, ..types::Warning::from(&warning) });
            return Ok(());
        }
        left -= 1;
        exec.recursions.0.retain(|(id, _)| *id != recursion.id);
        exec.recursions.0.push((recursion.id, Arc::new(last)));
        rows = round(exec, plan, readers.iter().map(|(_, query)| query), taker)?;
    }
    Ok(())
}

/// The new rows of some queries; none if there are none.
fn round<'p>(
    exec: &mut Exec<'_>,
    plan: &SetPlan,
    queries: impl Iterator<Item = &'p QueryPlan>,
    taker: &mut Taker<'_, '_>,
) -> Result<Option<DerivedRows>, ExecError> {
    let mut keeper = RowKeeper::new(exec, plan.columns.len());
    let mut kept = 0u64;
    for query in queries {
        exec.tick()?;
        let columns = query.columns();
        run_query(exec, query, &[], &mut |eval, row| {
            kept += 1;
            taker.take(eval, row, columns, &mut keeper)
        })?;
        if taker.ended {
            break;
        }
    }
    if kept == 0 {
        return Ok(None);
    }
    let rows = keeper.finish()?;
    Ok(if rows.is_empty() { None } else { Some(rows) })
}
