//! UPDATE of one table, and what it shares with ON DUPLICATE KEY UPDATE.

use super::delete::Found;
use super::insert::TwoRows;
use super::row::{RowMaker, now};
use crate::context::Exec;
use crate::error::in_table;
use crate::query::{BlockRun, Flow, each_row};
use crate::{ExecError, Outcome};
use engine_api::{RowBuffer, Table};
use expr::{Columns, Expr};
use plan::physical::UpdatePlan;
use std::sync::Arc;
use types::{Value, ValueRef};

/// A frame whose first columns are a row that is being changed.
pub trait ChangingRow: Columns {
    /// The row as changed so far.
    fn values(&mut self) -> &mut Vec<Value>;
}

impl ChangingRow for TwoRows<'_> {
    fn values(&mut self) -> &mut Vec<Value> {
        &mut self.first
    }
}

/// The frame of UPDATE: the row, then the values of subqueries.
struct UpdateFrame {
    row: Vec<Value>,
    more: Vec<Value>,
}

impl Columns for UpdateFrame {
    fn column(&self, position: usize) -> ValueRef<'_> {
        let value = match position.checked_sub(self.row.len()) {
            None => self.row.get(position),
            Some(position) => self.more.get(position),
        };
        value.map_or(ValueRef::Null, Value::as_ref)
    }
}

impl ChangingRow for UpdateFrame {
    fn values(&mut self) -> &mut Vec<Value> {
        &mut self.row
    }
}

/// Applies assignments from left to right; tells whether anything differs afterwards. Columns
/// with ON UPDATE CURRENT_TIMESTAMP that were not assigned follow a change.
pub fn changed_row<R: ChangingRow>(
    exec: &Exec<'_>,
    maker: &RowMaker<'_>,
    assignments: &[(usize, Option<&Expr>)],
    frame: &mut R,
) -> Result<bool, ExecError> {
    let mut changed = false;
    for &(column, expr) in assignments {
        let value = match expr {
            None => maker.default_value(exec, column)?,
            Some(expr) => {
                let value = expr.eval(exec.eval, frame)?;
                maker.store(exec, column, value, &expr.result)?
            }
        };
        let present = &mut frame.values()[column];
        if *present != value {
            *present = value;
            changed = true;
        }
    }
    if changed {
        for (position, column) in maker.definition().columns.iter().enumerate() {
            let assigned = assignments.iter().any(|(assigned, _)| *assigned == position);
            if column.on_update_now && !assigned {
                frame.values()[position] = now(exec.eval, &column.column_type);
            }
        }
    }
    Ok(changed)
}

struct Updater<'p> {
    plan: &'p UpdatePlan,
    table: Arc<dyn Table>,
    maker: RowMaker<'p>,
    assignments: Vec<(usize, Option<&'p Expr>)>,
    new: RowBuffer,
    matched: u64,
    changed: u64,
}

impl Updater<'_> {
    /// Changes the row that the frame has.
    fn change(
        &mut self,
        exec: &mut Exec<'_>,
        old: &RowBuffer,
        mut frame: UpdateFrame,
    ) -> Result<(), ExecError> {
        self.matched += 1;
        exec.eval.row_number.set(self.matched);
        if !changed_row(exec, &self.maker, &self.assignments, &mut frame)? {
            return Ok(());
        }
        self.maker.encode(&frame.row, &mut self.new)?;
        let name = &self.maker.definition().name;
        let updated = self.table.update(exec.transaction, old, &self.new);
        match updated.map_err(|error| in_table(error, name))? {
            Ok(()) => self.changed += 1,
            Err(duplicate) => {
                if !self.plan.ignore {
                    return Err(self.maker.duplicate(exec, &frame.row, &duplicate).into());
                }
            }
        }
        Ok(())
    }
}

fn frame_of(run: &BlockRun<'_>, columns: usize) -> UpdateFrame {
    let row = run.frame.copy_table(0, columns);
    let more = run.frame.copy_table(columns, run.plan.frame_columns - columns);
    UpdateFrame { row, more }
}

/// Runs an UPDATE.
pub fn run(exec: &mut Exec<'_>, plan: &UpdatePlan) -> Result<Outcome, ExecError> {
    let mut updater = Updater {
        plan,
        table: plan.target.0.handle()?,
        maker: RowMaker::new(exec, &plan.target.0, plan.ignore)?,
        assignments: plan.assignments.iter().map(|(at, expr)| (*at, expr.as_ref())).collect(),
        new: RowBuffer::default(),
        matched: 0,
        changed: 0,
    };
    let columns = plan.target.0.definition().columns.len();
    if plan.collect_first || !plan.select.order_by.is_empty() {
        let mut found = Found::new(plan.select.order_by.len());
        found.collect(exec, &plan.select, |run| frame_of(run, columns))?;
        for (row, frame) in found.in_order(exec, &plan.select)? {
            exec.tick()?;
            updater.change(exec, &row, frame)?;
            exec.eval.reset_arena();
        }
    } else {
        let mut old = RowBuffer::default();
        each_row(exec, &plan.select, &mut |exec, run| {
            if let Some(row) = run.frame.row(run.steps[0].slot) {
                old.clone_from(row);
                updater.change(exec, &old, frame_of(run, columns))?;
            }
            Ok(Flow::Continue(()))
        })?;
    }
    let (matched, changed) = (updater.matched, updater.changed);
    let warnings = exec.eval.warning_count();
    Ok(Outcome {
        affected_rows: if exec.count_matched { matched } else { changed },
        info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
        insert_id: exec.eval.assigned_insert_id.get().unwrap_or(0),
        last_insert_id: exec.eval.assigned_insert_id.get(),
        ..Outcome::default()
    })
}
