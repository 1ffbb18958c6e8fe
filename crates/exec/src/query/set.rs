//! UNION, EXCEPT, INTERSECT.

use super::derived::{DerivedRows, RowKeeper};
use super::distinct::{Distinct, Seen};
use super::keys::Keys;
use super::recursive;
use super::rollup::RowColumns;
use super::rows::PackedRows;
use super::sides::Sides;
use super::sorter::Sorter;
use super::{Flow, Limit, RowTarget, collect, run_query};
use crate::ExecError;
use crate::context::Exec;
use crate::order;
use plan::physical::{QueryPlan, SetOperation, SetPlan};
use smallvec::SmallVec;
use types::{ColumnType, Value, ValueRef};

/// Takes the rows of the whole: sorts them, or lets those within LIMIT pass.
struct Whole<'t, 't2> {
    sorter: Option<Sorter>,
    limit: Limit,
    passed: u64,
    /// Values that are only sorted by.
    sort_values: &'t [expr::Expr],
    /// Values of a row.
    width: usize,
    target: &'t mut RowTarget<'t2>,
}

impl Whole<'_, '_> {
    fn add(&mut self, eval: &expr::EvalContext, row: &[ValueRef<'_>]) -> Result<Flow, ExecError> {
        if let Some(sorter) = &mut self.sorter {
            if self.sort_values.is_empty() {
                return sorter.add(row).map(Flow::Continue);
            }
            let columns = RowColumns(row);
            let mut values = row.to_vec();
            for value in self.sort_values {
                values.push(value.eval_result(eval, &columns)?);
            }
            return sorter.add(&values).map(Flow::Continue);
        }
        self.passed += 1;
        if self.passed > self.limit.offset && self.passed <= self.limit.needed() {
            let flow = (self.target)(eval, row)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        let full = self.passed >= self.limit.needed();
        Ok(if full { Flow::Break(()) } else { Flow::Continue(()) })
    }

    fn finish(mut self, exec: &mut Exec<'_>) -> Result<(), ExecError> {
        let Some(sorter) = &mut self.sorter else { return Ok(()) };
        sorter.sort()?;
        exec.spill.count_sort(sorter.added(), false);
        let offset = usize::try_from(self.limit.offset).unwrap_or(usize::MAX);
        sorter.give(offset, |row| {
            exec.tick()?;
            Ok((self.target)(exec.eval, &row[..self.width])?.is_continue())
        })
    }
}

/// Runs a combination of queries; LIMIT of the whole is applied here.
pub fn run_set(
    exec: &mut Exec<'_>,
    plan: &SetPlan,
    outer: &[Value],
    target: &mut RowTarget<'_>,
) -> Result<u64, ExecError> {
    let types: Vec<ColumnType> = plan.columns.iter().map(|c| c.result.column_type).collect();
    let limit = Limit::of(&plan.limit, exec.eval)?;
    if limit.count == 0 {
        return Ok(0);
    }
    let sorter = (!plan.order_by.is_empty()).then(|| {
        let mut all = types.clone();
        all.extend(plan.sort_values.iter().map(|value| value.result.column_type));
        let (needed, memory) = (limit.needed(), exec.memory);
        Sorter::new(&plan.order_by, |at| all[at], all.len(), needed, memory, exec.spill)
    });
    let (sort_values, width) = (&plan.sort_values[..], types.len());
    let mut whole = Whole { sorter, limit, passed: 0, sort_values, width, target };
    if let Some(recursion) = &plan.recursion {
        recursive::run(exec, plan, recursion, &mut |eval, row| whole.add(eval, row))?;
        whole.finish(exec)?;
        return Ok(0);
    }
    let is_union = |(operation, _): &(SetOperation, QueryPlan)| {
        matches!(operation, SetOperation::Union | SetOperation::UnionAll)
    };
    if plan.rest.iter().all(is_union) {
        unite(exec, plan, outer, types, &mut whole)?;
    } else {
        let rows = combined(exec, plan, outer, &types)?;
        let _ = rows.each_part(exec, |exec, rows| {
            each(exec, rows, width, &mut |exec, row| whole.add(exec.eval, row))
        })?;
    }
    whole.finish(exec)?;
    Ok(0)
}

/// UNION and UNION ALL: rows go on as they come. What stands before a UNION without ALL gives each
/// row once.
fn unite(
    exec: &mut Exec<'_>,
    plan: &SetPlan,
    outer: &[Value],
    types: Vec<ColumnType>,
    whole: &mut Whole<'_, '_>,
) -> Result<(), ExecError> {
    let width = types.len();
    let last = plan.rest.iter().rposition(|(operation, _)| *operation == SetOperation::Union);
    let distinct_queries = last.map_or(0, |at| at + 2);
    let mut distinct = last.map(|_| {
        exec.spill.count_table();
        Distinct::new(types, exec.memory, exec.spill)
    });
    let queries = std::iter::once(&plan.first).chain(plan.rest.iter().map(|(_, query)| query));
    for (number, query) in queries.enumerate() {
        let mut ended = false;
        let mut add = |eval: &expr::EvalContext, row: &[ValueRef<'_>]| {
            let flow = whole.add(eval, row)?;
            ended |= flow.is_break();
            Ok(flow)
        };
        if number == distinct_queries
            && let Some(mut distinct) = distinct.take()
        {
            let _ = distinct.drain(width, |row| add(exec.eval, row))?;
        }
        match &mut distinct {
            Some(distinct) => {
                run_query(exec, query, outer, &mut |eval, row| match distinct.see(row)? {
                    Seen::First => add(eval, row),
                    Seen::Before | Seen::Later => Ok(Flow::Continue(())),
                })?
            }
            None => run_query(exec, query, outer, &mut add)?,
        };
        if ended {
            return Ok(());
        }
    }
    if let Some(mut distinct) = distinct {
        let _ = distinct.drain(width, |row| whole.add(exec.eval, row))?;
    }
    Ok(())
}

/// The rows of queries combined one after the other, as they lie in memory or in files.
fn combined(
    exec: &mut Exec<'_>,
    plan: &SetPlan,
    outer: &[Value],
    types: &[ColumnType],
) -> Result<DerivedRows, ExecError> {
    let mut keeper = RowKeeper::new(exec, types.len());
    run_query(exec, &plan.first, outer, &mut |_, row| {
        keeper.push(row)?;
        Ok(Flow::Continue(()))
    })?;
    let mut rows = keeper.finish()?;
    for (operation, query) in &plan.rest {
        rows = match operation {
            SetOperation::Union | SetOperation::UnionAll => {
                append(exec, rows, query, outer, *operation, types)?
            }
            SetOperation::Except | SetOperation::Intersect => {
                decide(exec, rows, query, outer, *operation, types)?
            }
            SetOperation::ExceptAll | SetOperation::IntersectAll => {
                count_rows(exec, &rows, query, outer, *operation, types)?
            }
        };
    }
    Ok(rows)
}

/// Calls `give` with each row.
fn each(
    exec: &mut Exec<'_>,
    rows: &PackedRows,
    width: usize,
    give: &mut dyn FnMut(&mut Exec<'_>, &[ValueRef<'_>]) -> Result<Flow, ExecError>,
) -> Result<Flow, ExecError> {
    for number in 0..rows.len() {
        exec.tick()?;
        let mut values = rows.row(number);
        let row: SmallVec<[ValueRef<'_>; 8]> = (0..width).map(|_| values.next_value()).collect();
        if give(exec, &row)?.is_break() {
            return Ok(Flow::Break(()));
        }
    }
    Ok(Flow::Continue(()))
}

/// UNION and UNION ALL in the middle of a chain.
fn append(
    exec: &mut Exec<'_>,
    rows: DerivedRows,
    query: &QueryPlan,
    outer: &[Value],
    operation: SetOperation,
    types: &[ColumnType],
) -> Result<DerivedRows, ExecError> {
    let width = types.len();
    let mut keeper = RowKeeper::new(exec, width);
    let is_distinct = operation == SetOperation::Union;
    let mut distinct = is_distinct.then(|| Distinct::new(types.to_vec(), exec.memory, exec.spill));
    let mut add = |row: &[ValueRef<'_>]| -> Result<Flow, ExecError> {
        let is_new = match &mut distinct {
            Some(distinct) => distinct.see(row)? == Seen::First,
            None => true,
        };
        if is_new {
            keeper.push(row)?;
        }
        Ok(Flow::Continue(()))
    };
    let _ = rows.each_part(exec, |exec, rows| each(exec, rows, width, &mut |_, row| add(row)))?;
    drop(rows);
    run_query(exec, query, outer, &mut |_, row| add(row))?;
    if let Some(distinct) = &mut distinct {
        let _ = distinct.drain(width, |row| {
            keeper.push(row)?;
            Ok(Flow::Continue(()))
        })?;
    }
    keeper.finish()
}

/// EXCEPT and INTERSECT.
fn decide(
    exec: &mut Exec<'_>,
    left: DerivedRows,
    right: &QueryPlan,
    outer: &[Value],
    operation: SetOperation,
    types: &[ColumnType],
) -> Result<DerivedRows, ExecError> {
    let width = types.len();
    let mut sides = Sides::new(exec, operation, types);
    let (memory, spill) = (exec.memory.clone(), exec.spill.clone());
    run_query(exec, right, outer, &mut |_, row| {
        sides.add_right(&memory, &spill, row)?;
        Ok(Flow::Continue(()))
    })?;
    let mut keeper = RowKeeper::new(exec, width);
    let _ = left.each_part(exec, |exec, rows| {
        each(exec, rows, width, &mut |_, row| {
            if sides.add_left(&memory, &spill, row)? {
                keeper.push(row)?;
            }
            Ok(Flow::Continue(()))
        })
    })?;
    drop(left);
    let _ = sides.drain(exec, |row| {
        keeper.push(row)?;
        Ok(Flow::Continue(()))
    })?;
    keeper.finish()
}

/// EXCEPT ALL and INTERSECT ALL, in memory.
fn count_rows(
    exec: &mut Exec<'_>,
    left: &DerivedRows,
    right: &QueryPlan,
    outer: &[Value],
    operation: SetOperation,
    types: &[ColumnType],
) -> Result<DerivedRows, ExecError> {
    let mut kept: Vec<Vec<Value>> = Vec::new();
    let _ = left.each_part(exec, |exec, rows| {
        each(exec, rows, types.len(), &mut |exec, row| {
            let row: Vec<Value> = row.iter().map(|&value| value.to_owned()).collect();
            exec.charge(super::row_bytes(&row))?;
            kept.push(row);
            Ok(Flow::Continue(()))
        })
    })?;
    let right = collect(exec, right, outer)?;
    let mut keeper = RowKeeper::new(exec, types.len());
    for row in combine_all(exec, operation, kept, &right, types)? {
        let row: SmallVec<[ValueRef<'_>; 8]> = row.iter().map(Value::as_ref).collect();
        keeper.push(&row)?;
    }
    keeper.finish()
}

fn identity(row: &[Value], types: &[ColumnType]) -> Vec<u8> {
    let mut key = Vec::new();
    for (value, column_type) in row.iter().zip(types) {
        order::push_identity(value.as_ref(), column_type, &mut key);
    }
    key
}

/// EXCEPT ALL and INTERSECT ALL: of equal rows so many are kept, those that came first.
fn combine_all(
    exec: &Exec<'_>,
    operation: SetOperation,
    left: Vec<Vec<Value>>,
    right: &[Vec<Value>],
    types: &[ColumnType],
) -> Result<Vec<Vec<Value>>, ExecError> {
    let mut places = Keys::default();
    // How often each row stands on the left and on the right.
    let mut counts: Vec<(u64, u64)> = Vec::new();
    for (number, row) in left.iter().chain(right).enumerate() {
        exec.check_cancelled()?;
        let key = identity(row, types);
        let (place, is_new) = places.insert(&key);
        if is_new {
            exec.charge(key.len() + super::keys::KEY_OVERHEAD_BYTES)?;
            counts.push((0, 0));
        }
        match number < left.len() {
            true => counts[place].0 += 1,
            false => counts[place].1 += 1,
        }
    }
    let wanted = |&(left, right): &(u64, u64)| match operation {
        SetOperation::ExceptAll => left.saturating_sub(right),
        _ => left.min(right),
    };
    let mut wanted: Vec<u64> = counts.iter().map(wanted).collect();
    let mut kept = Vec::new();
    for row in left {
        if let Some(place) = places.find(&identity(&row, types))
            && wanted[place] > 0
        {
            wanted[place] -= 1;
            kept.push(row);
        }
    }
    Ok(kept)
}
