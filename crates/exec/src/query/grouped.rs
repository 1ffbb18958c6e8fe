//! Blocks whose rows are not given as they come: groups, and window functions over rows or groups.

use super::aggregate::{GroupTarget, Groups};
use super::block::{BlockRun, is_true};
use super::output::Output;
use super::window::Windows;
use super::{Flow, Limit, RowTarget, apply};
use crate::ExecError;
use crate::context::Exec;
use plan::physical::{AggregatePlan, WindowPlan};

/// Groups the rows of a block and runs the subqueries that read the groups.
pub fn group<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    aggregate: &'p AggregatePlan,
    target: &mut GroupTarget<'_>,
) -> Result<(), ExecError> {
    if aggregate.applies.is_empty() {
        return group_rows(exec, run, aggregate, target);
    }
    let mut kept = Vec::new();
    group_rows(exec, run, aggregate, &mut |exec, row| {
        let mut row = row.clone();
        for apply in &aggregate.applies {
            let value = apply::value(exec, &row, &mut kept, apply)?;
            row.push(value);
        }
        target(exec, &row)
    })
}

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
