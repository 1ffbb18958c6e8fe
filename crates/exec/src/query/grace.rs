//! A hash join whose table does not fit into its budget.
//!
//! 1. The rows for the table go to files by the hash of their key ([`BuildFiles`]).
//! 2. Where the order of the block's rows is free and none is locked, the frames that would be
//!    looked up wait in files by the same hash, and are joined file by file when the tables before
//!    have given all their rows. What a frame has is what the rest of the plan reads of it.
//! 3. Elsewhere a frame is looked up at once in its file, which is read into memory unless it is
//!    the one that was read last.
//! 4. A file that is larger than the budget is joined in parts: for each the frames are read anew.

use super::Flow;
use super::block::{BlockRun, FrameTarget, column_count};
use super::hash::{HashTable, Kept, split_part};
use super::rows::{Values, push_value};
use crate::ExecError;
use crate::context::Exec;
use crate::spill::{Partitions, SpillFile, SpillReader};
use engine_api::LockMode;
use expr::{Columns, Expr};
use plan::physical::{Access, Apply, ApplyKind, RangeEnd, RangePlan, RangeValue};
use plan::physical::{SelectPlan, TableSource, TableStep};
use std::sync::Arc;
use types::Value;

/// The rows for a table that does not fit, by the hash of their key.
#[derive(Debug)]
pub struct BuildFiles {
    files: Vec<Option<Arc<SpillFile>>>,
    /// Number of values of a row; none for rows of the engine.
    values: Option<usize>,
}

impl BuildFiles {
    /// Takes the partitions.
    pub fn new(partitions: Partitions, values: Option<usize>) -> Result<Self, ExecError> {
        let files = partitions.finish()?.into_iter().map(|file| file.map(Arc::new)).collect();
        Ok(Self { files, values })
    }
}

/// The state of such a join.
pub struct Grace {
    build: BuildFiles,
    /// Frames that wait.
    waiting: Option<Partitions>,
    /// Positions that are kept of them.
    positions: Vec<usize>,
    /// Which partition and part is in memory, where frames do not wait.
    loaded: Option<(usize, Part)>,
}

/// Some rows of a partition.
struct Part {
    table: Arc<HashTable>,
    /// It is all of them.
    is_whole: bool,
}

/// Reads a partition in parts that fit the budget.
struct Parts {
    reader: SpillReader,
    values: Option<usize>,
    has_row: bool,
}

impl Parts {
    fn new(
        exec: &Exec<'_>,
        build: &BuildFiles,
        partition: usize,
    ) -> Result<Option<Self>, ExecError> {
        let Some(file) = &build.files[partition] else { return Ok(None) };
        let mut reader = SpillReader::new(file.clone(), exec.memory)?;
        let has_row = reader.advance()?;
        Ok(Some(Self { reader, values: build.values, has_row }))
    }

    /// The next part.
    fn next(&mut self, exec: &Exec<'_>) -> Result<HashTable, ExecError> {
        // The blocks of files that are read meanwhile have their share.
        let budget = exec.spill.budgets().join / 4 * 3;
        let mut table = HashTable::new(exec.memory);
        while self.has_row {
            exec.check_cancelled()?;
            runtime::yield_if_due();
            let record = self.reader.record().unwrap_or(&[]);
            let Some((key, row)) = Kept::of_record(record, self.values) else { break };
            if table.add(key, row, budget).is_err() {
                if table.is_empty() {
                    return Err(super::output::refused());
                }
                break;
            }
            self.has_row = self.reader.advance()?;
        }
        Ok(table)
    }
}

/// Whether frames may wait, so that rows come in another order.
fn may_wait(plan: &SelectPlan) -> bool {
    plan.lock == LockMode::None && !plan.in_order
}

impl Grace {
    /// Begins to probe.
    pub fn new(exec: &Exec<'_>, plan: &SelectPlan, depth: usize, build: BuildFiles) -> Self {
        exec.spill.count_disk_table();
        let waits = may_wait(plan);
        Self {
            build,
            waiting: waits
                .then(|| Partitions::new(exec.spill, exec.memory, exec.spill.budgets().join, 0)),
            positions: if waits { kept_positions(plan, depth) } else { Vec::new() },
            loaded: None,
        }
    }

    fn partition(exec: &Exec<'_>, key: &[u8]) -> usize {
        Partitions::new(exec.spill, exec.memory, exec.spill.budgets().join, 0).of(key)
    }
}

/// Looks a key up, or lets the frame wait. `each` gets the table of the rows that may have it.
pub fn probe<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    depth: usize,
    key: &[u8],
    mut each: impl FnMut(&mut Exec<'_>, &mut BlockRun<'p>, &HashTable) -> Result<Flow, ExecError>,
) -> Result<Flow, ExecError> {
    let Some(mut grace) = run.steps[depth].grace.take() else { return Ok(Flow::Continue(())) };
    if let Some(waiting) = &mut grace.waiting {
        let partition = waiting.of(key);
        if grace.build.files[partition].is_some() {
            let positions = &grace.positions;
            waiting.push_with(partition, |out| {
                out.extend_from_slice(&(key.len() as u32).to_le_bytes());
                out.extend_from_slice(key);
                positions.iter().for_each(|&at| push_value(run.frame.column(at), out));
            })?;
            run.steps[depth].waits = true;
        }
        run.steps[depth].grace = Some(grace);
        return Ok(Flow::Continue(()));
    }
    let partition = Grace::partition(exec, key);
    if let Some((loaded, part)) = &grace.loaded
        && *loaded == partition
        && part.is_whole
    {
        let table = part.table.clone();
        run.steps[depth].grace = Some(grace);
        return each(exec, run, &table);
    }
    grace.loaded = None;
    let mut flow = Flow::Continue(());
    if let Some(mut parts) = Parts::new(exec, &grace.build, partition)? {
        let mut number = 0;
        while parts.has_row && flow.is_continue() {
            let table = Arc::new(parts.next(exec)?);
            number += 1;
            let is_whole = number == 1 && !parts.has_row;
            if is_whole {
                grace.loaded = Some((partition, Part { table: table.clone(), is_whole }));
            }
            flow = each(exec, run, &table)?;
        }
    }
    run.steps[depth].grace = Some(grace);
    Ok(flow)
}

impl<'p> BlockRun<'p> {
    /// Joins the frames that wait, once the tables before have given all their rows.
    pub fn run_waiting(
        &mut self,
        exec: &mut Exec<'_>,
        target: &mut FrameTarget<'_, 'p>,
    ) -> Result<Flow, ExecError> {
        for depth in 0..self.plan.tables.len() {
            let Some(mut grace) = self.steps[depth].grace.take() else { continue };
            let Some(waiting) = grace.waiting.take() else { continue };
            for (partition, file) in waiting.finish()?.into_iter().enumerate() {
                let Some(file) = file else { continue };
                let flow =
                    self.join_partition(exec, depth, &grace, partition, &Arc::new(file), target)?;
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            self.steps[depth].hash = None;
        }
        Ok(Flow::Continue(()))
    }

    fn join_partition(
        &mut self,
        exec: &mut Exec<'_>,
        depth: usize,
        grace: &Grace,
        partition: usize,
        frames: &Arc<SpillFile>,
        target: &mut FrameTarget<'_, 'p>,
    ) -> Result<Flow, ExecError> {
        let Some(mut parts) = Parts::new(exec, &grace.build, partition)? else {
            return Ok(Flow::Continue(()));
        };
        // Whether a frame has met a row in an earlier part: only a left join asks.
        let mut matched: Vec<bool> = Vec::new();
        while parts.has_row {
            self.steps[depth].hash = None;
            let table = parts.next(exec)?;
            self.steps[depth].hash = Some(Arc::new(table));
            let is_last = !parts.has_row;
            let mut reader = SpillReader::new(frames.clone(), exec.memory)?;
            let mut number = 0;
            while reader.advance()? {
                exec.tick()?;
                self.restore(depth, &grace.positions, reader.record().unwrap_or(&[]));
                let state = &mut self.steps[depth];
                state.is_part = !is_last;
                state.matched = matched.get(number).copied().unwrap_or(false);
                let flow = self.step(exec, depth, target)?;
                if flow.is_break() {
                    return Ok(flow);
                }
                if self.plan.tables[depth].left_join && !is_last {
                    matched.resize(matched.len().max(number + 1), false);
                    matched[number] = self.steps[depth].matched;
                }
                number += 1;
            }
            self.steps[depth].is_part = false;
        }
        Ok(Flow::Continue(()))
    }

    /// The frame is again what it was when it began to wait.
    fn restore(&mut self, depth: usize, positions: &[usize], record: &[u8]) {
        let Some((_, rest)) = split_part(record) else { return };
        let mut values = Values::new(rest);
        let plan = self.plan;
        let mut tables: Vec<Vec<Value>> = plan.tables[..depth]
            .iter()
            .map(|step| vec![Value::Null; column_count(&step.source)])
            .collect();
        for &position in positions {
            let value = values.next_value().to_owned();
            match table_of(plan, depth, position) {
                Some((number, column)) => tables[number][column] = value,
                None => self.frame.set_value(position, value),
            }
        }
        for (number, values) in tables.into_iter().enumerate() {
            let slot = self.steps[number].slot;
            self.frame.set_values(slot, values);
        }
    }
}

/// The table before `depth` and its column that a position of the frame belongs to.
fn table_of(plan: &SelectPlan, depth: usize, position: usize) -> Option<(usize, usize)> {
    plan.tables[..depth].iter().enumerate().find_map(|(number, step)| {
        let column = position.checked_sub(step.first_position)?;
        (column < column_count(&step.source)).then_some((number, column))
    })
}

/// The positions of tables and subqueries before `depth` that anything in the plan reads.
fn kept_positions(plan: &SelectPlan, depth: usize) -> Vec<usize> {
    let mut positions = Vec::new();
    let mut visit = |position| positions.push(position);
    for step in &plan.tables {
        visit_step(step, &mut visit);
    }
    match &plan.aggregate {
        Some(aggregate) => {
            aggregate.carried.iter().for_each(|&position| visit(position));
            aggregate.keys.iter().for_each(|key| key.for_each_column(&mut visit));
            for call in &aggregate.calls {
                let keys = call.concat.order_by.iter().map(|(key, _)| key);
                call.arguments.iter().chain(keys).for_each(|e| e.for_each_column(&mut visit));
            }
        }
        None => {
            plan.frame_values().for_each(|value| value.for_each_column(&mut visit));
        }
    }
    let applies = plan.tables[..depth].iter().flat_map(|step| &step.applies);
    let own: Vec<usize> = applies.map(|apply| apply.position).collect();
    positions
        .retain(|position| own.contains(position) || table_of(plan, depth, *position).is_some());
    positions.sort_unstable();
    positions.dedup();
    positions
}

fn visit_step(step: &TableStep, visit: &mut dyn FnMut(usize)) {
    let conditions = [&step.condition, &step.tested, &step.filter];
    conditions.into_iter().flatten().for_each(|e| e.for_each_column(visit));
    step.applies.iter().for_each(|apply| visit_apply(apply, visit));
    if let Some(late) = &step.late {
        late.condition.for_each_column(visit);
        late.applies.iter().for_each(|apply| visit_apply(apply, visit));
    }
    visit_access(&step.access, visit);
    if let TableSource::Virtual { schema, name, .. } = &step.source {
        schema.iter().chain(name).for_each(|e| e.for_each_column(visit));
    }
}

fn visit_apply(apply: &Apply, visit: &mut dyn FnMut(usize)) {
    apply.outer_positions.iter().for_each(|&position| visit(position));
    match &apply.kind {
        ApplyKind::Scalar | ApplyKind::Exists => {}
        ApplyKind::In { operand, .. } => operand.iter().for_each(|e| e.for_each_column(visit)),
        ApplyKind::Quantified { operand, .. } => operand.for_each_column(visit),
    }
}

fn visit_access(access: &Access, visit: &mut dyn FnMut(usize)) {
    match access {
        Access::Scan { .. } => {}
        Access::Point { key } => key.iter().for_each(|e: &Expr| e.for_each_column(visit)),
        Access::Ranges { ranges, .. } => ranges.iter().for_each(|range| visit_range(range, visit)),
        Access::Hash { build, build_condition, keys } => {
            visit_access(build, visit);
            build_condition.iter().for_each(|e| e.for_each_column(visit));
            keys.iter().for_each(|(outer, _)| outer.for_each_column(visit));
        }
    }
}

fn visit_range(range: &RangePlan, visit: &mut dyn FnMut(usize)) {
    for value in &range.equal {
        if let RangeValue::Equal(value) | RangeValue::NullSafe(value) = value {
            value.for_each_column(visit);
        }
    }
    for end in range.lower.iter().chain(&range.upper) {
        match end {
            RangeEnd::Value { value, .. } => value.for_each_column(visit),
            RangeEnd::LikePrefix { pattern, .. } => pattern.for_each_column(visit),
        }
    }
}
