//! UPDATE of one table, and what it shares with ON DUPLICATE KEY UPDATE.

use super::computed::{compute_generated, refuse_values};
use super::delete::Found;
use super::foreign::ForeignChecks;
use super::late::{LateSubqueries, LateValues, ReadsLate};
use super::row::{RowMaker, breaks_check, now, passes_check};
use crate::context::Exec;
use crate::error::in_table;
use crate::frame::Frame;
use crate::query::{BlockRun, Flow, Once, each_row_to_change};
use crate::{ExecError, Outcome, spare};
use engine_api::{RowBuffer, Table};
use expr::{Columns, Expr};
use plan::physical::{Apply, UpdatePlan};
use smallvec::SmallVec;
use std::borrow::Borrow;
use types::row::RowView;
use types::{Value, ValueRef};

/// A frame whose first columns are a row that is being changed.
pub trait ChangingRow: ReadsLate {
    /// The row as changed so far.
    fn values(&mut self) -> &mut Vec<Value>;
}

/// The frame of UPDATE: the row, then the values of subqueries.
struct UpdateFrame {
    row: Vec<Value>,
    more: Vec<Value>,
    late: LateValues,
}

impl Columns for UpdateFrame {
    fn column(&self, position: usize) -> ValueRef<'_> {
        let value = match position.checked_sub(self.row.len()) {
            None => self.row.get(position),
            Some(place) => self.late.value(position).or_else(|| self.more.get(place)),
        };
        value.map_or(ValueRef::Null, Value::as_ref)
    }
}

impl ChangingRow for UpdateFrame {
    fn values(&mut self) -> &mut Vec<Value> {
        &mut self.row
    }
}

impl ReadsLate for UpdateFrame {
    fn late(&self) -> &LateValues {
        &self.late
    }

    fn late_mut(&mut self) -> &mut LateValues {
        &mut self.late
    }
}

/// Applies assignments from left to right; tells whether anything differs afterwards. Columns
/// with ON UPDATE CURRENT_TIMESTAMP that were not assigned follow a change.
pub fn changed_row<A: Borrow<Apply>, R: ChangingRow>(
    exec: &mut Exec<'_>,
    maker: &RowMaker<'_>,
    assignments: &[(usize, Option<&Expr>)],
    mut subqueries: LateSubqueries<'_, A>,
    frame: &mut R,
) -> Result<bool, ExecError> {
    let mut changed = false;
    for (number, &(column, expr)) in assignments.iter().enumerate() {
        subqueries.look_up(exec, frame, number)?;
        let value = match expr {
            None => maker.default_of_update(exec, column)?,
            Some(expr) => {
                let value = expr.eval_stored(exec.eval, frame)?;
                frame.late().check_reads()?;
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

/// Whether every assignment sees the row as it was: no column is assigned twice, and none is read
/// after it was assigned. Then rows need not be copied to be changed.
fn are_independent(assignments: &[(usize, Option<Expr>)]) -> bool {
    let mut independent = true;
    for (number, (column, expr)) in assignments.iter().enumerate() {
        let is_assigned = |at: usize| assignments[..number].iter().any(|(other, _)| *other == at);
        independent &= !is_assigned(*column);
        if let Some(expr) = expr.as_ref().filter(|_| number > 0) {
            expr.for_each_column(&mut |at| independent &= !is_assigned(at));
        }
    }
    independent
}

struct Updater<'p> {
    plan: &'p UpdatePlan,
    /// For each assignment the subqueries that are run when it is its turn; empty without any.
    subqueries: &'p [Vec<&'p Apply>],
    /// What is known of them for all rows.
    kept: Vec<(usize, Once)>,
    table: &'p dyn Table,
    maker: RowMaker<'p>,
    new: RowBuffer,
    /// The new values of a row that is changed directly.
    assigned: SmallVec<[(usize, Value); 4]>,
    matched: u64,
    changed: u64,
}

impl<'p> Updater<'p> {
    /// Changes the row that the frame has, assignment after assignment.
    fn change(
        &mut self,
        exec: &mut Exec<'_>,
        old: &RowBuffer,
        mut frame: UpdateFrame,
    ) -> Result<(), ExecError> {
        self.matched += 1;
        exec.eval.row_number.set(self.matched);
        let assignments: Vec<_> =
            self.plan.assignments.iter().map(|(at, expr)| (*at, expr.as_ref())).collect();
        let computed = self.plan.computed.as_deref();
        let refused = computed.into_iter().flat_map(|computed| &computed.refused);
        refuse_values(exec, self.maker.definition(), refused)?;
        let subqueries = LateSubqueries { of_assignments: self.subqueries, kept: &mut self.kept };
        if !changed_row(exec, &self.maker, &assignments, subqueries, &mut frame)? {
            return Ok(());
        }
        if !base::mutant!("virtual_not_computed") {
            compute_generated(exec.eval, self.maker.definition(), computed, &mut frame.row)?;
        }
        if let Some(check) = &self.plan.check
            && !passes_check(exec, check, &frame.row, self.plan.ignore)?
        {
            return Ok(());
        }
        let (checks, definition) = (&self.plan.checks, self.maker.definition());
        if breaks_check(exec.eval, checks, &frame, definition, self.plan.ignore)? {
            self.matched -= 1;
            return Ok(());
        }
        self.maker.encode_changed(&frame.row, old, &mut self.new)?;
        self.write(exec, old, |column| frame.row[column].clone())
    }

    /// As [`Updater::change`] where the assignments are independent: `old` is the row of `frame`,
    /// and only what differs from it is made.
    fn change_directly(
        &mut self,
        exec: &mut Exec<'_>,
        old: &RowBuffer,
        frame: &Frame,
    ) -> Result<(), ExecError> {
        self.matched += 1;
        exec.eval.row_number.set(self.matched);
        let layout = &self.plan.target.0.layouts().row;
        let view = RowView::new(layout, &old.key, &old.payload);
        self.assigned.clear();
        let mut changed = false;
        for (column, expr) in &self.plan.assignments {
            let value = match expr {
                None => self.maker.default_of_update(exec, *column)?,
                Some(expr) => {
                    let value = expr.eval_stored(exec.eval, frame)?;
                    self.maker.store(exec, *column, value, &expr.result)?
                }
            };
            changed |= view.get(*column) != value.as_ref();
            self.assigned.push((*column, value));
        }
        if !changed {
            return Ok(());
        }
        for (position, column) in self.maker.definition().columns.iter().enumerate() {
            if column.on_update_now && !self.assigned.iter().any(|(at, _)| *at == position) {
                self.assigned.push((position, now(exec.eval, &column.column_type)));
            }
        }
        let assigned = std::mem::take(&mut self.assigned);
        let value_of = |column| match assigned.iter().find(|(at, _)| *at == column) {
            Some((_, value)) => value.as_ref(),
            None => view.get(column),
        };
        self.new.key.clone_from(&old.key);
        self.new.payload.clone_from(&old.payload);
        let mut patched = true;
        for (column, value) in &assigned {
            patched = patched && layout.patch(*column, value.as_ref(), &mut self.new.payload)?;
        }
        if !patched {
            self.maker.encode_with(value_of, &mut self.new)?;
            let keeps_number = !base::mutant!("row_number_lost");
            if self.maker.definition().hidden_row_id && keeps_number {
                self.new.key.clone_from(&old.key);
            }
        }
        let written = self.write(exec, old, |column| value_of(column).to_owned());
        self.assigned = assigned;
        written
    }

    /// Replaces `old` by the new row; `value` gives its values for an error.
    fn write(
        &mut self,
        exec: &mut Exec<'_>,
        old: &RowBuffer,
        value: impl Fn(usize) -> Value,
    ) -> Result<(), ExecError> {
        let definition = self.maker.definition();
        let updated = match &self.plan.foreign_keys {
            None => {
                let updated = self.table.update(exec.transaction, old, &self.new);
                updated.map_err(|error| in_table(error, &definition.name))?
            }
            Some(keys) => {
                let (foreign, rows) = (ForeignChecks::new(keys), (old, &self.new));
                match foreign.update_unless_ignored(exec, rows, self.plan.ignore)? {
                    Some(updated) => updated,
                    None => return Ok(()),
                }
            }
        };
        match updated {
            Ok(()) => self.changed += 1,
            Err(duplicate) if !self.plan.ignore => {
                let values: Vec<Value> = (0..definition.columns.len()).map(value).collect();
                return Err(self.maker.duplicate(exec, &values, &duplicate).into());
            }
            Err(_) => {}
        }
        Ok(())
    }
}

fn frame_of(run: &BlockRun<'_>, columns: usize) -> UpdateFrame {
    let row = run.frame.copy_table(0, columns);
    let more = run.frame.copy_table(columns, run.plan.frame_columns - columns);
    UpdateFrame { row, more, late: LateValues::default() }
}

/// The text that clients show after an UPDATE; made without the formatting machinery, which would
/// cost nearly as much as the change itself.
pub fn info_text(matched: u64, changed: u64, warnings: u64) -> String {
    let mut text = String::with_capacity(56);
    for (label, number) in
        [("Rows matched: ", matched), ("  Changed: ", changed), ("  Warnings: ", warnings)]
    {
        text.push_str(label);
        if number < 10 {
            text.push(char::from(b'0' + number as u8));
            continue;
        }
        let mut unit = 10u64.pow(number.ilog10());
        while unit > 0 {
            text.push(char::from(b'0' + (number / unit % 10) as u8));
            unit /= 10;
        }
    }
    text
}

/// Runs an UPDATE.
pub fn run(exec: &mut Exec<'_>, plan: &UpdatePlan) -> Result<Outcome, ExecError> {
    let subqueries = plan.select.late_subqueries(&plan.late);
    let mut updater = Updater {
        plan,
        subqueries: &subqueries,
        kept: Vec::new(),
        table: plan.target.0.handle()?.as_ref(),
        maker: RowMaker::new(exec, &plan.target.0, plan.ignore),
        new: spare::take_row(),
        assigned: SmallVec::new(),
        matched: 0,
        changed: 0,
    };
    let columns = plan.target.0.definition().columns.len();
    if super::is_one_key(&plan.select) && plan.foreign_keys.is_none() {
        exec.transaction.read_one_key();
    }
    if plan.collect_first || !plan.select.order_by.is_empty() {
        let mut found = Found::new(plan.select.order_by.len());
        found.collect(exec, &plan.select, |run| frame_of(run, columns))?;
        for (row, frame) in found.in_order(exec, &plan.select)? {
            exec.tick()?;
            updater.change(exec, &row, frame)?;
            exec.eval.reset_arena();
        }
    } else if plan.check.is_none()
        && plan.checks.is_empty()
        && plan.computed.is_none()
        && plan.late.is_empty()
        && are_independent(&plan.assignments)
    {
        each_row_to_change(exec, &plan.select, &mut |exec, run| {
            if let Some(row) = run.frame.row(run.steps[0].slot) {
                updater.change_directly(exec, row, &run.frame)?;
            }
            Ok(Flow::Continue(()))
        })?;
    } else {
        each_row_to_change(exec, &plan.select, &mut |exec, run| {
            if let Some(row) = run.frame.row(run.steps[0].slot) {
                updater.change(exec, row, frame_of(run, columns))?;
            }
            Ok(Flow::Continue(()))
        })?;
    }
    let (matched, changed) = (updater.matched, updater.changed);
    spare::give_row(updater.new);
    let warnings = exec.eval.warning_count();
    Ok(Outcome {
        affected_rows: if exec.count_matched { matched } else { changed },
        info: info_text(matched, changed, warnings),
        insert_id: exec.eval.assigned_insert_id.get().unwrap_or(0),
        last_insert_id: exec.eval.assigned_insert_id.get(),
        ..Outcome::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_info_has_whole_numbers() {
        for (a, b, c) in [(0, 0, 0), (1, 10, 9), (u64::MAX, 100, 1_234_567_890)] {
            let expected = format!("Rows matched: {a}  Changed: {b}  Warnings: {c}");
            assert_eq!(info_text(a, b, c), expected);
        }
    }
}
