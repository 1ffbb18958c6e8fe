//! UPDATE and DELETE of the rows of a join.
//!
//! 1. Rows are changed after the last one was found, so no read meets a change of its statement.
//! 2. A row is changed once, however many rows of the join it is part of: by the first of them.
//! 3. Values come from the rows as they were found, except for the target that
//!    `JoinTarget::sees_assigned` names.

use super::computed::{compute_generated, refuse_values};
use super::delete::by_order;
use super::foreign::ForeignChecks;
use super::late::{LateSubqueries, LateValues, ReadsLate};
use super::row::{RowMaker, breaks_check, now, passes_check};
use super::update::info_text;
use crate::context::Exec;
use crate::error::in_table;
use crate::frame::Frame;
use crate::query::{BlockRun, Flow, Limit, Once, each_row};
use crate::{ExecError, Outcome};
use engine_api::{LockMode, LockWait, RowBuffer, Table};
use expr::Columns;
use plan::physical::{Apply, JoinChangePlan, JoinTarget, LimitPlan, SelectPlan};
use std::collections::HashSet;
use types::convert::ColumnPlace;
use types::row::RowView;
use types::{Value, ValueRef};

/// The frame of a join; one table's columns may have other values than those found.
struct Overlay<'f, 'p> {
    frame: &'f Frame<'p>,
    first: usize,
    row: &'f [Value],
    /// Subqueries that read these.
    late: LateValues,
}

impl<'f, 'p> Overlay<'f, 'p> {
    fn new(frame: &'f Frame<'p>, first: usize, row: &'f [Value]) -> Self {
        Self { frame, first, row, late: LateValues::default() }
    }
}

impl ReadsLate for Overlay<'_, '_> {
    fn late(&self) -> &LateValues {
        &self.late
    }

    fn late_mut(&mut self) -> &mut LateValues {
        &mut self.late
    }
}

impl Columns for Overlay<'_, '_> {
    fn column(&self, position: usize) -> ValueRef<'_> {
        let own = position.checked_sub(self.first).and_then(|offset| self.row.get(offset));
        let known = own.or_else(|| self.late.value(position));
        known.map_or_else(|| self.frame.column(position), Value::as_ref)
    }
}

/// A row that was found with what is assigned to it.
struct Found {
    row: RowBuffer,
    assigned: Vec<Value>,
}

struct Target<'p> {
    plan: &'p JoinTarget,
    table: &'p dyn Table,
    maker: RowMaker<'p>,
    first: usize,
    seen: HashSet<Vec<u8>>,
    found: Vec<Found>,
    /// For each assignment the subqueries that are run when it is its turn; empty without any.
    subqueries: Vec<Vec<&'p Apply>>,
}

struct JoinUpdate<'p> {
    plan: &'p JoinChangePlan,
    targets: Vec<Target<'p>>,
    /// The present values of the row of the target that sees what is assigned, and its key.
    current: (Vec<u8>, Vec<Value>),
    /// First position of that target's columns.
    current_first: usize,
    /// What is known of subqueries for all rows.
    kept: Vec<(usize, Once)>,
    /// Rows that WITH CHECK OPTION has kept as they are.
    refused: u64,
}

impl<'p> JoinUpdate<'p> {
    fn new(exec: &Exec<'_>, plan: &'p JoinChangePlan) -> Result<Self, ExecError> {
        let mut targets = Vec::with_capacity(plan.targets.len());
        for target in &plan.targets {
            targets.push(Target {
                plan: target,
                table: target.table.0.handle()?.as_ref(),
                maker: RowMaker::new(exec, &target.table.0, plan.ignore),
                first: plan.select.tables[target.step].first_position,
                seen: HashSet::new(),
                found: Vec::new(),
                subqueries: plan.select.late_subqueries(&target.late),
            });
        }
        let sees = targets.iter().find(|target| target.plan.sees_assigned);
        let current_first = sees.map_or(0, |target| target.first);
        let (current, kept) = Default::default();
        Ok(Self { plan, targets, current, current_first, kept, refused: 0 })
    }

    /// A row of the join: what is assigned to its targets. Returns for every target the row
    /// and the values, none where an outer join found no row.
    fn evaluate(
        &mut self,
        exec: &mut Exec<'_>,
        run: &BlockRun<'_>,
    ) -> Result<Vec<Option<Found>>, ExecError> {
        let mut all = Vec::with_capacity(self.targets.len());
        for number in 0..self.targets.len() {
            let target = &self.targets[number];
            let Some(row) = run.frame.row(run.steps[target.plan.step].slot) else {
                all.push(None);
                continue;
            };
            let computed = target.plan.computed.as_deref().into_iter();
            let refused = computed.flat_map(|computed| &computed.refused);
            refuse_values(exec, target.maker.definition(), refused)?;
            if target.plan.sees_assigned {
                let found = self.assign_in_order(exec, run, number, row)?;
                all.push(self.checked(exec, run, number, found)?);
                continue;
            }
            let current = if self.is_current(run) { &self.current.1[..] } else { &[] };
            let mut overlay = Overlay::new(&run.frame, self.current_first, current);
            let mut subqueries =
                LateSubqueries { of_assignments: &target.subqueries, kept: &mut self.kept };
            let mut assigned = Vec::with_capacity(target.plan.assignments.len());
            for (number, (column, value)) in target.plan.assignments.iter().enumerate() {
                subqueries.look_up(exec, &mut overlay, number)?;
                assigned.push(match value {
                    None => target.maker.default_value(exec, *column)?,
                    Some(expr) => {
                        let value = expr.eval_stored(exec.eval, &overlay)?;
                        overlay.late.check_reads()?;
                        let name = &target.maker.definition().columns[*column].name;
                        // As MariaDB, which converts into a temporary table.
                        let (schema, table) = ("", "(temporary)");
                        let place = ColumnPlace { schema, table, column: name, row: 1 };
                        target.maker.store_at(exec, *column, value, &expr.result, &place)?
                    }
                });
            }
            let found = Found { row: row.clone(), assigned };
            all.push(self.checked(exec, run, number, found)?);
        }
        Ok(all)
    }

    /// Whether the row that was changed last is that of this row of the join: a table that stands
    /// before it in FROM reads it as it was when it comes for the first time.
    fn is_current(&self, run: &BlockRun<'_>) -> bool {
        let sees = self.targets.iter().find(|target| target.plan.sees_assigned);
        let row = sees.and_then(|target| run.frame.row(run.steps[target.plan.step].slot));
        row.is_some_and(|row| row.key == self.current.0)
    }

    /// What WITH CHECK OPTION leaves of a row that is to be changed.
    fn checked(
        &mut self,
        exec: &Exec<'_>,
        run: &BlockRun<'_>,
        number: usize,
        found: Found,
    ) -> Result<Option<Found>, ExecError> {
        let target = &self.targets[number];
        let Some(check) = &target.plan.check else { return Ok(Some(found)) };
        if target.seen.contains(&found.row.key) {
            return Ok(Some(found));
        }
        let columns = target.maker.definition().columns.len();
        let mut row = run.frame.copy_table(target.first, columns);
        let mut differs = false;
        for ((column, _), value) in target.plan.assignments.iter().zip(&found.assigned) {
            differs |= row[*column] != *value;
            row[*column].clone_from(value);
        }
        let overlay = Overlay::new(&run.frame, target.first, &row);
        let passes = !differs || passes_check(exec, check, &overlay, self.plan.ignore)?;
        // Rows of other targets are not counted before they are written.
        self.refused += u64::from(!passes && target.plan.sees_assigned);
        Ok(passes.then_some(found))
    }

    /// The target that sees assigned values: each assignment sees those before it.
    fn assign_in_order(
        &mut self,
        exec: &mut Exec<'_>,
        run: &BlockRun<'_>,
        number: usize,
        row: &RowBuffer,
    ) -> Result<Found, ExecError> {
        let target = &self.targets[number];
        let columns = target.maker.definition().columns.len();
        let value_of = |values: &[Value]| {
            let assigned = target.plan.assignments.iter();
            assigned.map(|(column, _)| values[*column].clone()).collect::<Vec<Value>>()
        };
        if self.current.0 == row.key && !self.current.1.is_empty() {
            return Ok(Found { row: row.clone(), assigned: value_of(&self.current.1) });
        }
        exec.eval.row_number.set(target.seen.len() as u64 + 1);
        let mut values = run.frame.copy_table(target.first, columns);
        let mut subqueries =
            LateSubqueries { of_assignments: &target.subqueries, kept: &mut self.kept };
        for (number, (column, value)) in target.plan.assignments.iter().enumerate() {
            let stored = match value {
                None => target.maker.default_value(exec, *column)?,
                Some(expr) => {
                    let mut overlay = Overlay::new(&run.frame, target.first, &values);
                    subqueries.look_up(exec, &mut overlay, number)?;
                    let value = expr.eval_stored(exec.eval, &overlay)?;
                    overlay.late.check_reads()?;
                    target.maker.store(exec, *column, value, &expr.result)?
                }
            };
            values[*column] = stored;
        }
        let found = Found { row: row.clone(), assigned: value_of(&values) };
        self.current = (row.key.clone(), values);
        Ok(found)
    }

    fn keep(&mut self, exec: &Exec<'_>, all: Vec<Option<Found>>) -> Result<(), ExecError> {
        for (target, found) in self.targets.iter_mut().zip(all) {
            let Some(found) = found else { continue };
            if target.seen.insert(found.row.key.clone()) {
                exec.charge(2 * found.row.key.len() + found.row.payload.len() + 128)?;
                target.found.push(found);
            }
        }
        Ok(())
    }

    /// Changes the rows found; the numbers of those found and of those changed.
    fn apply(self, exec: &mut Exec<'_>) -> Result<(u64, u64), ExecError> {
        let (mut matched, mut changed) = (self.refused, 0);
        let ignore = self.plan.ignore;
        for mut target in self.targets {
            for found in std::mem::take(&mut target.found) {
                exec.tick()?;
                let outcome = change_row(exec, &target, found, ignore)?;
                matched += u64::from(outcome.is_some() || target.plan.sees_assigned);
                changed += u64::from(outcome == Some(true));
                exec.eval.reset_arena();
            }
        }
        Ok((matched, changed))
    }
}

/// Gives a row its new values; tells whether that made a difference, none if a constraint was in
/// the way.
fn change_row(
    exec: &mut Exec<'_>,
    target: &Target<'_>,
    found: Found,
    ignore: bool,
) -> Result<Option<bool>, ExecError> {
    let Found { row: mut old, assigned } = found;
    let definition = target.maker.definition();
    if target.plan.shared {
        // Another target may have changed it meanwhile.
        let key = old.key.clone();
        let (lock, wait) = (LockMode::Exclusive, LockWait::Wait);
        if !target.table.get(exec.transaction, &key, lock, wait, &mut old)? {
            return Ok(Some(false));
        }
    }
    let view = RowView::new(&target.plan.table.0.layouts().row, &old.key, &old.payload);
    let columns = definition.columns.len();
    let mut values: Vec<Value> = (0..columns).map(|column| view.get(column).to_owned()).collect();
    let mut differs = false;
    for ((column, _), value) in target.plan.assignments.iter().zip(assigned) {
        differs |= values[*column] != value;
        values[*column] = value;
    }
    if !differs {
        return Ok(Some(false));
    }
    for (position, column) in definition.columns.iter().enumerate() {
        let is_assigned = target.plan.assignments.iter().any(|(at, _)| *at == position);
        if column.on_update_now && !is_assigned {
            values[position] = now(exec.eval, &column.column_type);
        }
    }
    let computed = target.plan.computed.as_deref();
    compute_generated(exec.eval, definition, computed, &mut values)?;
    if breaks_check(exec.eval, &target.plan.checks, &values, definition, ignore)? {
        return Ok(None);
    }
    let mut new = RowBuffer::default();
    target.maker.encode_changed(&values, &old, &mut new)?;
    let updated = match &target.plan.foreign_keys {
        None => {
            let updated = target.table.update(exec.transaction, &old, &new);
            updated.map_err(|error| in_table(error, &definition.name))?
        }
        Some(keys) => {
            let foreign = ForeignChecks::new(keys);
            match foreign.update_unless_ignored(exec, (&old, &new), ignore)? {
                Some(updated) => updated,
                None => return Ok(Some(true)),
            }
        }
    };
    match updated {
        Ok(()) => Ok(Some(true)),
        Err(duplicate) if !ignore => Err(target.maker.duplicate(exec, &values, &duplicate).into()),
        Err(_) => Ok(Some(true)),
    }
}

/// Runs an UPDATE of a join.
pub fn update(exec: &mut Exec<'_>, plan: &JoinChangePlan) -> Result<Outcome, ExecError> {
    let mut change = JoinUpdate::new(exec, plan)?;
    if plan.select.order_by.is_empty() {
        each_row(exec, &plan.select, &mut |exec, run| {
            let all = change.evaluate(exec, run)?;
            change.keep(exec, all)?;
            Ok(Flow::Continue(()))
        })?;
    } else {
        let unlimited = SelectPlan { limit: LimitPlan::default(), ..plan.select.clone() };
        let mut rows = Vec::new();
        let change = &mut change;
        collect_ordered(exec, &unlimited, plan, change, &mut rows)?;
        let limit = Limit::of(&plan.select.limit, exec.eval)?;
        by_order(&mut rows, &plan.select);
        rows.truncate(usize::try_from(limit.count).unwrap_or(usize::MAX));
        for (_, all) in rows {
            change.keep(exec, all)?;
        }
    }
    let (matched, changed) = change.apply(exec)?;
    Ok(Outcome {
        affected_rows: if exec.count_matched { matched } else { changed },
        info: info_text(matched, changed, 0),
        ..Outcome::default()
    })
}

type OrderedRow = (Vec<Value>, Vec<Option<Found>>);

/// Evaluates all rows of the join, each with what it is ordered by.
fn collect_ordered(
    exec: &mut Exec<'_>,
    unlimited: &SelectPlan,
    plan: &JoinChangePlan,
    change: &mut JoinUpdate<'_>,
    rows: &mut Vec<OrderedRow>,
) -> Result<(), ExecError> {
    each_row(exec, unlimited, &mut |exec, run| {
        let mut keys = Vec::with_capacity(plan.select.order_by.len());
        for key in &plan.select.order_by {
            let value = plan.select.projection[key.position].eval(exec.eval, &run.frame)?;
            keys.push(value.to_owned());
        }
        exec.charge(128)?;
        rows.push((keys, change.evaluate(exec, run)?));
        Ok(Flow::Continue(()))
    })
}

/// Runs a DELETE of a join.
pub fn delete(exec: &mut Exec<'_>, plan: &JoinChangePlan) -> Result<Outcome, ExecError> {
    // One set of keys a table, though it may be more than one target.
    let tables: Vec<usize> = plan
        .targets
        .iter()
        .map(|target| {
            let same = |other: &JoinTarget| std::sync::Arc::ptr_eq(&other.table.0, &target.table.0);
            plan.targets.iter().position(same).unwrap_or(0)
        })
        .collect();
    let mut seen: Vec<HashSet<Vec<u8>>> = plan.targets.iter().map(|_| HashSet::new()).collect();
    let mut found: Vec<Vec<RowBuffer>> = plan.targets.iter().map(|_| Vec::new()).collect();
    each_row(exec, &plan.select, &mut |exec, run| {
        for (number, target) in plan.targets.iter().enumerate() {
            let Some(row) = run.frame.row(run.steps[target.step].slot) else { continue };
            if seen[tables[number]].insert(row.key.clone()) {
                exec.charge(2 * row.key.len() + row.payload.len() + 96)?;
                found[number].push(row.clone());
            }
        }
        Ok(Flow::Continue(()))
    })?;
    let mut deleted = 0;
    for (target, rows) in plan.targets.iter().zip(found) {
        let table = target.table.0.handle()?;
        let name = &target.table.0.definition().name;
        for mut row in rows {
            exec.tick()?;
            if target.shared {
                let key = row.key.clone();
                let (lock, wait) = (LockMode::Exclusive, LockWait::Wait);
                if !table.get(exec.transaction, &key, lock, wait, &mut row)? {
                    continue;
                }
            }
            deleted += match &target.foreign_keys {
                None => {
                    let done = table.delete(exec.transaction, &row);
                    done.map(|()| 1).map_err(|error| in_table(error, name))?
                }
                Some(keys) => {
                    let foreign = ForeignChecks::new(keys);
                    u64::from(foreign.delete_unless_ignored(exec, &row, plan.ignore)?)
                }
            };
        }
    }
    Ok(Outcome { affected_rows: deleted, ..Outcome::default() })
}
