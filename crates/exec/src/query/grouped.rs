//! Blocks whose rows are not given as they come: groups, and window functions over rows or groups.

use super::aggregate::{GroupTarget, Groups};
use super::apply::LateRow;
use super::block::{BlockRun, is_true};
use super::output::Output;
use super::window::Windows;
use super::{Flow, Limit, RowTarget};
use crate::ExecError;
use crate::context::Exec;
use expr::Columns;
use expr::aggregate::AggregateFunction;
use plan::physical::{AggregatePlan, WindowPlan};
use types::Value;

/// Groups the rows of a block and runs the subqueries that read the groups.
pub fn group<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    aggregate: &'p AggregatePlan,
    target: &mut LateTarget<'_>,
) -> Result<(), ExecError> {
    if aggregate.applies.is_empty() {
        return group_rows(exec, run, aggregate, &mut |exec, row| target(exec, row));
    }
    let rows = aggregate.calls.iter().position(|it| it.function == AggregateFunction::CountRows);
    let rows = rows.filter(|_| aggregate.keys.is_empty());
    let mut kept = Vec::new();
    group_rows(exec, run, aggregate, &mut |exec, row| {
        let is_empty = rows.is_some_and(|rows| row.get(rows) == Some(&Value::Int(0)));
        let applies = &aggregate.applies;
        let mut row = LateRow::new(exec, row.clone(), applies, &mut kept, is_empty)?;
        let flow = target(exec, &row)?;
        row.check_reads()?;
        Ok(flow)
    })
}

/// Takes the rows of groups with the values of the subqueries that read them.
pub type LateTarget<'t> = dyn FnMut(&mut Exec<'_>, &dyn Columns) -> Result<Flow, ExecError> + 't;

fn group_rows<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    aggregate: &'p AggregatePlan,
    target: &mut GroupTarget<'_>,
) -> Result<(), ExecError> {
    if let Some(rollup) = &aggregate.rollup {
        return super::rollup::run(exec, run, rollup, target);
    }
    run.groups = Some(Box::new(Groups::new(aggregate, exec)));
    let _ = run.run(exec, &mut |exec, run| {
        let Some(groups) = &mut run.groups else { return Ok(Flow::Continue(())) };
        groups.add(exec, &run.frame)
    })?;
    match run.groups.take() {
        Some(groups) => groups.finish(exec, &run.frame, target),
        None => Ok(()),
    }
}

/// Runs a block with window functions.
pub fn run_windows<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    window: &'p WindowPlan,
    limit: Limit,
    target: &mut RowTarget<'_>,
) -> Result<u64, ExecError> {
    let plan = run.plan;
    let mut windows = Windows::new(window, exec);
    match &plan.aggregate {
        None => {
            let _ = run.run(exec, &mut |exec, run| {
                if is_true(&plan.having, exec, &run.frame)? {
                    windows.add(exec, &run.frame)?;
                }
                Ok(Flow::Continue(()))
            })?;
        }
        Some(aggregate) => group(exec, run, aggregate, &mut |exec, row| {
            if is_true(&plan.having, exec, row)? {
                windows.add(exec, row)?;
            }
            Ok(Flow::Continue(()))
        })?,
    }
    let mut output = Output::new(plan, limit, exec);
    windows.finish(exec, &mut |exec, row| output.add(exec, row, target))?;
    output.finish(exec, target)
}
