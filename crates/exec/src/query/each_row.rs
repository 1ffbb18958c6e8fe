//! The rows of a block, one by one, for who changes them.

use super::block::FrameTarget;
use super::{BlockRun, Flow, Limit};
use crate::ExecError;
use crate::context::Exec;
use plan::physical::SelectPlan;

/// Runs a block whose complete frames are the rows themselves (UPDATE, DELETE): conditions and
/// LIMIT, but no projection.
pub fn each_row<'p>(
    exec: &mut Exec<'_>,
    plan: &'p SelectPlan,
    target: &mut FrameTarget<'_, 'p>,
) -> Result<(), ExecError> {
    each_row_of(exec, BlockRun::new(plan, &[]), target)
}

/// The same for a change of one table, which MariaDB becomes strict about only when it reads the
/// first row: a constant condition warns where one of a row is refused.
pub fn each_row_to_change<'p>(
    exec: &mut Exec<'_>,
    plan: &'p SelectPlan,
    target: &mut FrameTarget<'_, 'p>,
) -> Result<(), ExecError> {
    let run = BlockRun { prepares_conditions: true, ..BlockRun::new(plan, &[]) };
    each_row_of(exec, run, target)
}

fn each_row_of<'p>(
    exec: &mut Exec<'_>,
    mut run: BlockRun<'p>,
    target: &mut FrameTarget<'_, 'p>,
) -> Result<(), ExecError> {
    let limit = Limit::of(&run.plan.limit, exec.eval)?;
    if limit.count == 0 {
        return Ok(());
    }
    let mut seen = 0;
    let _ = run.run(exec, &mut |exec, run| {
        seen += 1;
        if target(exec, run)?.is_break() || seen >= limit.count {
            return Ok(Flow::Break(()));
        }
        Ok(Flow::Continue(()))
    })?;
    Ok(())
}
