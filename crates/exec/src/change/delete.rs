//! DELETE from one table, and rows that are found before the first is changed.

use crate::context::Exec;
use crate::error::in_table;
use crate::order;
use crate::query::{BlockRun, Flow, Limit, each_row};
use crate::{ExecError, Outcome};
use engine_api::RowBuffer;
use plan::physical::{DeletePlan, LimitPlan, SelectPlan};
use std::cmp::Ordering;
use types::Value;

/// Rows found before any is changed, each with the values it is ordered by.
pub struct Found<T> {
    ordered: bool,
    rows: Vec<(Vec<Value>, RowBuffer, T)>,
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
        each_row(exec, plan, &mut |exec, run| {
            if let Some(row) = run.frame.row(run.steps[0].slot) {
                let mut keys = Vec::with_capacity(plan.order_by.len());
                for key in &plan.order_by {
                    let value = plan.projection[key.position].eval(exec.eval, &run.frame)?;
                    keys.push(value.to_owned());
                }
                exec.charge(row.key.len() + row.payload.len() + 64)?;
                self.rows.push((keys, row.clone(), more(run)));
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
        let pacer = runtime::Pacer::default();
        self.rows.sort_by(|(a, _, _), (b, _, _)| {
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
        self.rows.truncate(usize::try_from(limit.count).unwrap_or(usize::MAX));
        Ok(self.rows.into_iter().map(|(_, row, more)| (row, more)).collect())
    }
}

/// Runs a DELETE.
pub fn run(exec: &mut Exec<'_>, plan: &DeletePlan) -> Result<Outcome, ExecError> {
    let table = plan.target.0.handle()?;
    let name = &plan.target.0.definition().name;
    let mut deleted = 0;
    if plan.select.order_by.is_empty() {
        each_row(exec, &plan.select, &mut |exec, run| {
            if let Some(row) = run.frame.row(run.steps[0].slot) {
                let done = table.delete(exec.transaction, row);
                done.map_err(|error| in_table(error, name))?;
                deleted += 1;
            }
            Ok(Flow::Continue(()))
        })?;
    } else {
        let mut found = Found::new(plan.select.order_by.len());
        found.collect(exec, &plan.select, |_| ())?;
        for (row, ()) in found.in_order(exec, &plan.select)? {
            exec.tick()?;
            let done = table.delete(exec.transaction, &row);
            done.map_err(|error| in_table(error, name))?;
            deleted += 1;
        }
    }
    Ok(Outcome { affected_rows: deleted, ..Outcome::default() })
}
