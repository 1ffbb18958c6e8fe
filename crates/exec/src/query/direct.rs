//! Blocks whose result is columns of one table: rows go to the sink as they are stored.
//!
//! 1. Between the scan and the client stands nothing but conditions, ORDER BY and LIMIT, so that no
//!    value is needed that a row's bytes do not hold ([`stored_columns`]). Blocks that sort are run
//!    by [`super::block::run_sorted`].
//! 2. Which rows come, in which order, and which errors, is what [`super::block::run_block`] does.

use super::block::BlockRun;
use super::{Flow, Limit};
use crate::ExecError;
use crate::context::{Exec, RowSink, StoredRows};
use crate::error::in_table;
use crate::frame::BatchLayout;
use crate::key::KeySource;
use crate::spare::{self, PointBuffers};
use catalog::TableEntry;
use engine_api::{RowBatch, RowRef};
use expr::{Expr, ExprKind, NoColumns};
use plan::physical::{Access, EntryHandle, Plan, QueryPlan, SelectPlan, TableSource, TableStep};
use types::row::IndexLayout;

/// The table and its columns that are a plan's result, if nothing has to be computed for it.
pub fn stored_columns(plan: &Plan) -> Option<(&TableEntry, Vec<usize>)> {
    let Plan::Query(QueryPlan::Select(select)) = plan else { return None };
    let [step] = select.tables.as_slice() else { return None };
    let TableSource::Base(entry) = &step.source else { return None };
    let plain = select.outer_columns == 0
        && select.aggregate.is_none()
        && select.having.is_none()
        && select.window.is_none()
        && (!select.distinct || super::output::sorts_uniquely(select))
        && select.projection.len() == select.columns.len()
        && !step.left_join
        && step.applies.is_empty()
        && step.filter.is_none()
        && !matches!(step.access, Access::Hash { .. });
    if !plain {
        return None;
    }
    let count = entry.0.definition().columns.len();
    let column = |(expr, shown): (&Expr, &plan::physical::ResultColumn)| {
        let column = column_of(expr, step)?;
        let same = expr.result.column_type == shown.result.column_type;
        (column < count && same).then_some(column)
    };
    let columns: Option<Vec<usize>> =
        select.projection.iter().zip(&select.columns).map(column).collect();
    Some((&entry.0, columns?))
}

/// The column of the step's table that an expression is, if it is one.
pub fn column_of(expr: &Expr, step: &TableStep) -> Option<usize> {
    let ExprKind::Column { position, .. } = expr.kind else { return None };
    position.checked_sub(step.first_position)
}

/// Gives stored rows to the sink within LIMIT.
pub struct Direct<'p> {
    sink: &'p mut (dyn RowSink + 'p),
    limit: Limit,
    counts_hidden: bool,
    /// Rows that passed everything but LIMIT.
    passed: u64,
}

impl Direct<'_> {
    fn flow(&self) -> Flow {
        let full = self.passed >= self.limit.needed() && !self.counts_hidden;
        if full { Flow::Break(()) } else { Flow::Continue(()) }
    }

    /// Rows of a batch that have passed the conditions.
    pub fn add_batch(
        &mut self,
        layout: BatchLayout<'_>,
        rows: &RowBatch,
        selected: &[u32],
    ) -> Result<Flow, ExecError> {
        let before = self.passed;
        self.passed += selected.len() as u64;
        let within = |rows: u64| usize::try_from(rows.saturating_sub(before)).unwrap_or(usize::MAX);
        let end = within(self.limit.needed()).min(selected.len());
        let start = within(self.limit.offset).min(end);
        let selected = &selected[start..end];
        if !selected.is_empty() {
            self.sink.stored(match layout {
                BatchLayout::Rows(_) => StoredRows::Rows(rows, selected),
                BatchLayout::Keys(index) => StoredRows::Keys(index, rows, selected),
            })?;
        }
        Ok(self.flow())
    }

    /// A row that has passed the conditions.
    fn add_row(&mut self, row: DirectRow<'_>) -> Result<Flow, ExecError> {
        self.passed += 1;
        if self.passed > self.limit.offset && self.passed <= self.limit.needed() {
            match row {
                DirectRow::Row(row) => self.sink.stored(StoredRows::Row(row))?,
                DirectRow::Key(index, rows, at) => {
                    self.sink.stored(StoredRows::Keys(index, rows, &[at]))?;
                }
            }
        }
        Ok(self.flow())
    }
}

/// The row at which a frame stands.
enum DirectRow<'a> {
    Row(RowRef<'a>),
    Key(&'a IndexLayout, &'a RowBatch, u32),
}

/// Reads the one row that a whole key finds and that nothing else is asked of, without a frame;
/// none if the block is not like that. Tells whether there is a row.
fn point(
    exec: &mut Exec<'_>,
    plan: &SelectPlan,
    sink: &mut dyn RowSink,
) -> Result<Option<bool>, ExecError> {
    let [step] = plan.tables.as_slice() else { return Ok(None) };
    let (TableSource::Base(entry), Access::Point { key: values }) = (&step.source, &step.access)
    else {
        return Ok(None);
    };
    let plain =
        step.tested.is_none() && plan.constant_filter.is_none() && plan.constant_applies.is_empty();
    if !plain {
        return Ok(None);
    }
    exec.tick()?;
    let mut buffers = spare::take_point();
    let found = point_row(exec, plan, entry, values, &mut buffers);
    if let Ok(Some(true)) = found {
        sink.stored(StoredRows::Row(buffers.row.as_row()))?;
    }
    spare::give_point(buffers);
    found
}

/// Looks the row up; none if that cannot be done by a key.
fn point_row(
    exec: &mut Exec<'_>,
    plan: &SelectPlan,
    entry: &EntryHandle,
    values: &[Expr],
    buffers: &mut PointBuffers,
) -> Result<Option<bool>, ExecError> {
    let layout = &entry.0.layouts().row;
    let source = KeySource {
        eval: exec.eval,
        row: &NoColumns,
        parts: layout.clustered_key(),
        columns: layout.columns(),
    };
    let PointBuffers { key, row } = buffers;
    match source.point(values, key)? {
        Some(true) => {}
        other => return Ok(other),
    }
    let found = entry.0.handle()?.get(exec.transaction, key, plan.lock, plan.lock_wait, row);
    found.map(Some).map_err(|error| in_table(error, &entry.0.definition().name))
}

/// Runs a block that [`stored_columns`] knows and that does not sort; returns the number of rows
/// sent and of all found.
pub fn run(
    exec: &mut Exec<'_>,
    plan: &SelectPlan,
    sink: &mut dyn RowSink,
) -> Result<(u64, u64), ExecError> {
    let limit = Limit::of_block(plan, exec)?;
    let counts_hidden = plan.calculate_found_rows;
    if limit.count == 0 && !counts_hidden {
        return Ok((0, 0));
    }
    if limit.offset == 0
        && limit.count > 0
        && let Some(found) = point(exec, plan, sink)?
    {
        return Ok((found.into(), found.into()));
    }
    let mut run = BlockRun::new(plan, &[]);
    run.direct = Some(Direct { sink, limit, counts_hidden, passed: 0 });
    let _ = run.run(exec, &mut |_, run| {
        let slot = run.steps[0].slot;
        let row = match run.frame.key_ref(slot) {
            Some((index, rows, at)) => Some(DirectRow::Key(index, rows, at)),
            None => run.frame.row_ref(slot).map(DirectRow::Row),
        };
        match (&mut run.direct, row) {
            (Some(direct), Some(row)) => direct.add_row(row),
            _ => Ok(Flow::Continue(())),
        }
    })?;
    let passed = run.direct.map_or(0, |direct| direct.passed);
    let sent = passed.saturating_sub(limit.offset).min(limit.count);
    Ok((sent, if counts_hidden { passed } else { sent }))
}
