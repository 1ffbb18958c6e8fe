//! DELETE from one table, and rows that are found before the first is changed.

use super::foreign::ForeignChecks;
use crate::context::{Exec, RowSink};
use crate::error::in_table;
use crate::order;
use crate::query::{BlockRun, Flow, Limit, each_row_to_change};
use crate::{ExecError, Outcome};
use engine_api::{RowBuffer, Table};
use expr::Columns;
use plan::physical::{DeletePlan, LimitPlan, SelectPlan};
use std::cmp::Ordering;
use types::row::RowView;
use types::{Value, ValueRef};

/// Rows found before any is changed, each with the values it is ordered by.
pub struct Found<T> {
    ordered: bool,
    rows: Vec<(Vec<Value>, (RowBuffer, T))>,
}

impl<T> Found<T> {
    /// Nothing found yet; with `sort_keys` above zero the rows will be ordered.
    pub fn new(sort_keys: usize) -> Self {
        Self { ordered: sort_keys > 0, rows: Vec::new() }
    }

    /// Finds the rows of a block of one table. With ORDER BY its LIMIT is applied afterwards.
    pub fn collect(
        &mut self,
        exec: &mut Exec<'_>,
        plan: &SelectPlan,
        mut more: impl FnMut(&BlockRun<'_>) -> T,
    ) -> Result<(), ExecError> {
        let unlimited;
        let plan = if self.ordered {
            unlimited = SelectPlan { limit: LimitPlan::default(), ..plan.clone() };
            &unlimited
        } else {
            plan
        };
        each_row_to_change(exec, plan, &mut |exec, run| {
            if let Some(row) = run.frame.row(run.steps[0].slot) {
                let mut keys = Vec::with_capacity(plan.order_by.len());
                for key in &plan.order_by {
                    let value = plan.projection[key.position].eval(exec.eval, &run.frame)?;
                    keys.push(value.to_owned());
                }
                exec.charge(row.key.len() + row.payload.len() + 64)?;
                self.rows.push((keys, (row.clone(), more(run))));
            }
            Ok(Flow::Continue(()))
        })
    }

    /// The rows in the order asked for, no more than LIMIT.
    pub fn in_order(
        mut self,
        exec: &Exec<'_>,
        plan: &SelectPlan,
    ) -> Result<Vec<(RowBuffer, T)>, ExecError> {
        let limit = Limit::of(&plan.limit, exec.eval)?;
        by_order(&mut self.rows, plan);
        self.rows.truncate(usize::try_from(limit.count).unwrap_or(usize::MAX));
        Ok(self.rows.into_iter().map(|(_, (row, more))| (row, more)).collect())
    }
}

/// Brings rows to the order of ORDER BY; each comes with the values that it is ordered by.
pub fn by_order<T>(rows: &mut [(Vec<Value>, T)], plan: &SelectPlan) {
    let pacer = runtime::Pacer::default();
    rows.sort_by(|(a, _), (b, _)| {
        pacer.step();
        for ((key, a), b) in plan.order_by.iter().zip(a).zip(b) {
            let collation = plan.projection[key.position].result.column_type.collation;
            let order = order::compare(a.as_ref(), b.as_ref(), collation.info());
            let order = if key.descending { order.reverse() } else { order };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    });
}

/// A row of the table as it is stored, for RETURNING.
struct StoredRow<'r> {
    view: RowView<'r>,
    /// Number of its columns.
    columns: usize,
    /// The values of subqueries.
    more: &'r [Value],
}

impl Columns for StoredRow<'_> {
    fn column(&self, position: usize) -> ValueRef<'_> {
        match position.checked_sub(self.columns) {
            None => self.view.get(position),
            Some(position) => self.more.get(position).map_or(ValueRef::Null, Value::as_ref),
        }
    }
}

struct Deleter<'p> {
    plan: &'p DeletePlan,
    table: &'p dyn Table,
    /// RETURNING reads subqueries.
    looks_up: bool,
    deleted: u64,
}

impl Deleter<'_> {
    /// The values of subqueries for RETURNING, before the row is deleted.
    fn looked_up(&self, run: &BlockRun<'_>) -> Vec<Value> {
        if !self.looks_up {
            return Vec::new();
        }
        let columns = self.plan.target.0.definition().columns.len();
        run.frame.copy_table(columns, self.plan.select.frame_columns - columns)
    }

    fn delete(
        &mut self,
        exec: &mut Exec<'_>,
        row: &RowBuffer,
        more: &[Value],
        sink: &mut dyn RowSink,
    ) -> Result<(), ExecError> {
        let entry = &self.plan.target.0;
        match &self.plan.foreign_keys {
            None => {
                let done = self.table.delete(exec.transaction, row);
                done.map_err(|error| in_table(error, &entry.definition().name))?;
            }
            Some(keys) => {
                let foreign = ForeignChecks::new(keys);
                if !foreign.delete_unless_ignored(exec, row, self.plan.ignore)? {
                    return Ok(());
                }
            }
        }
        self.deleted += 1;
        if self.plan.returning.is_empty() {
            return Ok(());
        }
        let view = RowView::new(&entry.layouts().row, &row.key, &row.payload);
        let stored = StoredRow { view, columns: entry.definition().columns.len(), more };
        let values = self.plan.returning.iter().map(|expr| expr.eval(exec.eval, &stored));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        Ok(sink.row(&values)?)
    }
}

/// Runs a DELETE.
pub fn run(
    exec: &mut Exec<'_>,
    plan: &DeletePlan,
    sink: &mut dyn RowSink,
) -> Result<Outcome, ExecError> {
    let table = plan.target.0.handle()?.as_ref();
    let columns = plan.target.0.definition().columns.len();
    let mut looks_up = false;
    let mut note = |position| looks_up |= position >= columns;
    plan.returning.iter().for_each(|value| value.for_each_column(&mut note));
    let mut deleter = Deleter { plan, table, looks_up, deleted: 0 };
    if !plan.returning.is_empty() {
        sink.begin(Some(exec.transaction.read_gate()))?;
    }
    if super::is_one_key(&plan.select) && plan.foreign_keys.is_none() {
        exec.transaction.read_one_key();
    }
    if plan.select.order_by.is_empty() {
        each_row_to_change(exec, &plan.select, &mut |exec, run| {
            if let Some(row) = run.frame.row(run.steps[0].slot) {
                let more = deleter.looked_up(run);
                deleter.delete(exec, row, &more, sink)?;
            }
            Ok(Flow::Continue(()))
        })?;
    } else {
        let mut found = Found::new(plan.select.order_by.len());
        found.collect(exec, &plan.select, |run| deleter.looked_up(run))?;
        for (row, more) in found.in_order(exec, &plan.select)? {
            exec.tick()?;
            deleter.delete(exec, &row, &more, sink)?;
            exec.eval.reset_arena();
        }
    }
    let has_rows = !plan.returning.is_empty();
    Ok(Outcome { affected_rows: deleter.deleted, has_rows, ..Outcome::default() })
}
