//! One query block: nested loops over its tables.

use super::aggregate::Groups;
use super::derived::DerivedRows;
use super::direct::Direct;
use super::grace::Grace;
use super::grouped::{group, run_windows};
use super::hash::HashTable;
use super::output::Output;
use super::remembered::Remembered;
use super::vector::{Columns, Filter, Selection};
use super::{Flow, Limit, RowTarget, access, apply};
use crate::ExecError;
use crate::context::{Exec, RowSink};
use crate::frame::Frame;
use crate::spill::Charged;
use engine_api::Table;
use expr::Expr;
use plan::physical::{SelectPlan, TableSource, TableStep};
use std::sync::Arc;
use types::Value;

/// What one step keeps during an execution of its block.
pub struct StepState<'p> {
    /// Slot of the table in the frame.
    pub slot: usize,
    /// The engine's table, opened at first use.
    pub table: Option<&'p dyn Table>,
    /// Buffer for keys.
    pub key: Vec<u8>,
    /// Rows that point lookups found.
    pub remembered: Remembered,
    /// Rows of a derived table.
    pub derived: Option<Arc<DerivedRows>>,
    /// Rows of a virtual table.
    pub rows: Option<Arc<Vec<Vec<Value>>>>,
    /// Hash table of the rows.
    pub hash: Option<Arc<HashTable>>,
    /// A hash join that does not fit into its budget.
    pub grace: Option<Box<Grace>>,
    /// The frame waits for that join.
    pub waits: bool,
    /// The hash table has only some of the rows, and others follow.
    pub is_part: bool,
    /// The frame has met a row among other rows.
    pub matched: bool,
    /// The condition over batches, made when it is first needed.
    pub filter: Option<Box<Filter>>,
    /// Rows of a batch, kept for the next one.
    pub selection: Selection,
    /// Its rows go into the hash table now: the condition is not theirs yet.
    pub builds: bool,
    /// The row that the step has now is known to pass its condition.
    pub tested: bool,
}

/// An execution of a block.
pub struct BlockRun<'p> {
    /// The plan.
    pub plan: &'p SelectPlan,
    /// Columns at the moment.
    pub frame: Frame<'p>,
    /// State of each step.
    pub steps: Vec<StepState<'p>>,
    /// Results of subqueries that do not depend on the frame, by position.
    pub once: Vec<(usize, apply::Once)>,
    /// Grouping, if the block groups.
    pub groups: Option<Box<Groups<'p>>>,
    /// Where the rows go, if the block sorts them and does not group.
    pub sorted: Option<Box<Output<'p>>>,
    /// Rows whose first sort key comes behind it are not wanted.
    pub cutoff: Option<u64>,
    /// Rows that pass go straight to the client.
    pub direct: Option<Direct<'p>>,
    /// Constant conditions belong to the preparation: what they warn of is never an error.
    pub(super) prepares_conditions: bool,
}

/// What happens with a complete frame.
pub type FrameTarget<'t, 'p> =
    dyn FnMut(&mut Exec<'_>, &mut BlockRun<'p>) -> Result<Flow, ExecError> + 't;

/// The truth of a condition: NULL counts as false.
pub fn is_true(
    condition: &Option<Expr>,
    exec: &Exec<'_>,
    row: &dyn expr::Columns,
) -> Result<bool, ExecError> {
    match condition {
        None => Ok(true),
        Some(condition) => Ok(condition.eval_bool(exec.eval, row)? == Some(true)),
    }
}

impl<'p> BlockRun<'p> {
    /// Begins an execution with the enclosing block's values.
    pub fn new(plan: &'p SelectPlan, outer: &[Value]) -> Self {
        let mut frame = Frame::new(plan.frame_columns);
        for (position, value) in outer.iter().enumerate().take(plan.outer_columns) {
            frame.set_value(position, value.clone());
        }
        let state = |step: &TableStep| StepState {
            slot: frame.add_table(step.first_position, column_count(&step.source)),
            table: None,
            key: Vec::new(),
            remembered: Remembered::default(),
            derived: None,
            rows: None,
            hash: None,
            grace: None,
            waits: false,
            is_part: false,
            matched: false,
            filter: None,
            selection: Selection::default(),
            builds: false,
            tested: false,
        };
        let steps = plan.tables.iter().map(state).collect();
        Self {
            plan,
            frame,
            steps,
            once: Vec::new(),
            groups: None,
            sorted: None,
            cutoff: None,
            direct: None,
            prepares_conditions: false,
        }
    }

    /// Whether the condition holds that needs neither rows nor subqueries.
    fn passes_constant_filter(&self, exec: &Exec<'_>) -> Result<bool, ExecError> {
        let are_errors = exec.eval.warnings_are_errors.get();
        exec.eval.warnings_are_errors.set(are_errors && !self.prepares_conditions);
        let passes = is_true(&self.plan.constant_filter, exec, &self.frame);
        exec.eval.warnings_are_errors.set(are_errors);
        passes
    }

    /// Runs the loops; `target` is called for every complete frame.
    pub fn run(
        &mut self,
        exec: &mut Exec<'_>,
        target: &mut FrameTarget<'_, 'p>,
    ) -> Result<Flow, ExecError> {
        let plan = self.plan;
        if plan.constant_applies.is_empty() {
            if !self.passes_constant_filter(exec)? {
                return Ok(Flow::Continue(()));
            }
        } else if !self.passes_constants(exec)? {
            return Ok(Flow::Continue(()));
        }
        let flow = self.step(exec, 0, target)?;
        self.frame.check_reads()?;
        if flow.is_break() || self.steps.iter().all(|step| step.grace.is_none()) {
            return Ok(flow);
        }
        self.run_waiting(exec, target)
    }

    /// The loop over the rows of step `depth`.
    pub fn step(
        &mut self,
        exec: &mut Exec<'_>,
        depth: usize,
        target: &mut FrameTarget<'_, 'p>,
    ) -> Result<Flow, ExecError> {
        let plan = self.plan;
        let Some(step) = plan.tables.get(depth) else {
            return self.complete(exec, target);
        };
        // Most blocks end with a table after which nothing is left to do.
        let is_last =
            depth + 1 == plan.tables.len() && step.applies.is_empty() && step.filter.is_none();
        let is_profiled = exec.profile.is_some();
        if is_profiled {
            count(exec, step, |counts| counts.loops += 1);
        }
        let mut matched = false;
        let flow = access::each_row(exec, self, depth, &mut |exec, run| {
            exec.tick()?;
            let tested = std::mem::take(&mut run.steps[depth].tested);
            if is_profiled {
                count(exec, step, |counts| counts.rows += 1);
            }
            if !tested && !is_true(&step.tested, exec, &run.frame)? {
                access::release_row(exec, run, depth);
                return Ok(Flow::Continue(()));
            }
            if let Some(late) = &step.late
                && !run.passes_late(exec, late)?
            {
                access::release_row(exec, run, depth);
                return Ok(Flow::Continue(()));
            }
            matched = true;
            if is_profiled {
                count(exec, step, |counts| counts.passed += 1);
            }
            if is_last {
                return run.complete(exec, target);
            }
            run.pass(exec, depth, step, target)
        })?;
        if flow.is_break() || !step.left_join {
            return Ok(flow);
        }
        let state = &mut self.steps[depth];
        if state.is_part {
            state.matched |= matched;
            return Ok(flow);
        }
        if matched || std::mem::take(&mut state.waits) || std::mem::take(&mut state.matched) {
            return Ok(flow);
        }
        self.frame.set_null(self.steps[depth].slot);
        self.pass(exec, depth, step, target)
    }

    /// All tables have a row.
    #[inline]
    fn complete(
        &mut self,
        exec: &mut Exec<'_>,
        target: &mut FrameTarget<'_, 'p>,
    ) -> Result<Flow, ExecError> {
        let flow = target(exec, self)?;
        self.frame.check_reads()?;
        exec.eval.reset_arena();
        Ok(flow)
    }

    /// A row of the step passed its condition: subqueries, filter, next table.
    fn pass(
        &mut self,
        exec: &mut Exec<'_>,
        depth: usize,
        step: &'p TableStep,
        target: &mut FrameTarget<'_, 'p>,
    ) -> Result<Flow, ExecError> {
        apply::fill(exec, self, &step.applies)?;
        if !is_true(&step.filter, exec, &self.frame)? {
            access::release_row(exec, self, depth);
            return Ok(Flow::Continue(()));
        }
        self.step(exec, depth + 1, target)
    }
}

impl<'p> BlockRun<'p> {
    /// Whether nothing is left to do with rows of step `depth` that pass its condition but to
    /// group or to keep them.
    fn is_last(&self, depth: usize) -> bool {
        let step = &self.plan.tables[depth];
        depth + 1 == self.plan.tables.len()
            && !step.left_join
            && step.applies.is_empty()
            && step.filter.is_none()
    }

    /// Gives the selected rows in the slot of step `depth`, which passed its condition, to the
    /// groups or to the sorter. False if they must be passed on one by one.
    pub fn take_batch(
        &mut self,
        exec: &mut Exec<'_>,
        depth: usize,
        selected: &[u32],
    ) -> Result<bool, ExecError> {
        if !self.is_last(depth) {
            return Ok(false);
        }
        if let Some(mut groups) = self.groups.take() {
            let added = groups.add_batch(exec, self, depth, selected);
            self.groups = Some(groups);
            return added;
        }
        let (slot, first) = (self.steps[depth].slot, self.plan.tables[depth].first_position);
        let Some(sorted) = self.sorted.as_mut().filter(|_| self.plan.having.is_none()) else {
            return Ok(false);
        };
        if sorted.keeps_stored()
            && let Some(rows) = self.frame.take_rows(slot)
        {
            sorted.add_stored(rows, selected)?;
            return Ok(true);
        }
        let Some(columns) = Columns::of(&self.frame, slot, first) else { return Ok(false) };
        let added = sorted.add_batch(exec, &columns, selected);
        self.cutoff = sorted.cutoff();
        added
    }

    /// Passes on all rows of a batch one by one, where each must be counted.
    fn pass_each(
        &mut self,
        exec: &mut Exec<'_>,
        depth: usize,
        body: &mut FrameTarget<'_, 'p>,
    ) -> Result<Flow, ExecError> {
        let slot = self.steps[depth].slot;
        let rows = self.frame.rows(slot).map_or(0, |(_, rows)| rows.len());
        for row in 0..rows {
            self.frame.stand_at(slot, row);
            if body(exec, self)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    }

    /// Passes on the rows of the batch that was read into the slot of step `depth`: those that
    /// pass its condition at once where that can be told, the others one by one.
    pub fn pass_batch(
        &mut self,
        exec: &mut Exec<'_>,
        depth: usize,
        body: &mut FrameTarget<'_, 'p>,
    ) -> Result<Flow, ExecError> {
        exec.tick()?;
        if exec.profile.is_some() {
            return self.pass_each(exec, depth, body);
        }
        let mut selection = std::mem::take(&mut self.steps[depth].selection);
        Filter::select(exec, self, depth, &mut selection);
        if selection.tested && self.take_batch(exec, depth, &selection.rows)? {
            self.steps[depth].selection = selection;
            return Ok(Flow::Continue(()));
        }
        let slot = self.steps[depth].slot;
        if selection.tested
            && let (Some(direct), Some((layout, rows))) = (&mut self.direct, self.frame.rows(slot))
        {
            let flow = direct.add_batch(*layout, rows, &selection.rows)?;
            self.steps[depth].selection = selection;
            return Ok(flow);
        }
        for &row in &selection.rows {
            self.frame.stand_at(slot, row as usize);
            self.steps[depth].tested = selection.tested;
            if body(exec, self)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        self.steps[depth].selection = selection;
        Ok(Flow::Continue(()))
    }
}

/// Counts for ANALYZE.
#[cold]
pub fn count(exec: &mut Exec<'_>, step: &TableStep, add: impl FnOnce(&mut plan::StepCounts)) {
    if let Some(profile) = &mut exec.profile {
        add(profile.step_mut(step));
    }
}

/// Number of columns that a source has.
pub fn column_count(source: &TableSource) -> usize {
    match source {
        TableSource::Base(entry) => entry.0.definition().columns.len(),
        TableSource::Virtual { table, .. } => table.columns.len(),
        TableSource::Derived(query) => query.columns().len(),
        TableSource::Recursive { columns, .. } => *columns,
    }
}

/// The LIMIT of a block; none if it leaves nothing to do.
fn block_limit(exec: &Exec<'_>, plan: &SelectPlan) -> Result<Option<Limit>, ExecError> {
    let limit = Limit::of_block(plan, exec)?;
    Ok((limit.count > 0 || plan.calculate_found_rows).then_some(limit))
}

/// Runs a block; returns the number of rows hidden by LIMIT, if counted.
pub fn run_block(
    exec: &mut Exec<'_>,
    plan: &SelectPlan,
    outer: &[Value],
    target: &mut RowTarget<'_>,
) -> Result<u64, ExecError> {
    let Some(limit) = block_limit(exec, plan)? else { return Ok(0) };
    let mut run = BlockRun::new(plan, outer);
    if let Some(window) = &plan.window {
        return run_windows(exec, &mut run, window, limit, target);
    }
    if plan.aggregate.is_none() && !plan.order_by.is_empty() {
        run.sorted = Some(Box::new(Output::new(plan, limit, exec)));
        return sort_rows(exec, &mut run)?.map_or(Ok(0), |sorted| sorted.finish(exec, target));
    }
    let mut output = Output::new(plan, limit, exec);
    let mut give = |exec: &mut Exec<'_>, row: &dyn expr::Columns| {
        if !is_true(&plan.having, exec, row)? {
            return Ok(Flow::Continue(()));
        }
        output.add(exec, row, target)
    };
    match &plan.aggregate {
        None => {
            let _ = run.run(exec, &mut |exec, run| {
                if !is_true(&plan.having, exec, &run.frame)? {
                    return Ok(Flow::Continue(()));
                }
                output.add(exec, &run.frame, target)
            })?;
        }
        Some(aggregate) => group(exec, &mut run, aggregate, &mut give)?,
    }
    output.finish(exec, target)
}

/// Runs a block that sorts and that [`super::direct::stored_columns`] knows; returns the number of
/// rows sent and of all found.
pub fn run_sorted(
    exec: &mut Exec<'_>,
    plan: &SelectPlan,
    sink: &mut dyn RowSink,
) -> Result<(u64, u64), ExecError> {
    let Some(limit) = block_limit(exec, plan)? else { return Ok((0, 0)) };
    let mut run = BlockRun::new(plan, &[]);
    let mut output = Box::new(Output::new(plan, limit, exec));
    output.keep_stored();
    run.sorted = Some(output);
    let Some(sorted) = sort_rows(exec, &mut run)? else { return Ok((0, 0)) };
    let (sent, hidden) = sorted.finish_stored(exec, sink)?;
    Ok((sent, sent + hidden))
}

/// The rows of a block that sorts and does not group, before they are sorted.
fn sort_rows<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
) -> Result<Option<Box<Output<'p>>>, ExecError> {
    let plan = run.plan;
    let _ = run.run(exec, &mut |exec, run| {
        if !is_true(&plan.having, exec, &run.frame)? {
            return Ok(Flow::Continue(()));
        }
        let Some(sorted) = &mut run.sorted else { return Ok(Flow::Continue(())) };
        // A sorter gives nothing while it is filled.
        let flow = sorted.add(exec, &run.frame, &mut |_, _| Ok(Flow::Continue(())));
        run.cutoff = sorted.cutoff();
        flow
    })?;
    Ok(run.sorted.take())
}

/// The rows of a block that sorts and does not group, as they lie in the sorter; none if it is
/// another one.
pub fn collect_sorted(
    exec: &mut Exec<'_>,
    plan: &SelectPlan,
) -> Result<Option<DerivedRows>, ExecError> {
    if plan.aggregate.is_some() || plan.window.is_some() || plan.order_by.is_empty() {
        return Ok(None);
    }
    let Some(limit) = block_limit(exec, plan)? else {
        return Ok(Some(DerivedRows::empty(Charged::none(exec.memory))));
    };
    let mut run = BlockRun::new(plan, &[]);
    run.sorted = Some(Box::new(Output::new(plan, limit, exec)));
    let sorted = sort_rows(exec, &mut run)?;
    sorted.map(|sorted| sorted.into_rows(exec)).transpose()
}
