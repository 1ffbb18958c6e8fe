//! Window functions: rows sorted for one window after the other, each partition as a whole.
//!
//! 1. Rows go through a sorter for each order that windows ask for. The last value of a row is its
//!    number in the order before, so that rows that are equal to a window stay in that order.
//! 2. The rows of a partition are looked at by their numbers (`window/rows.rs`); those that do not
//!    fit into the budget lie in a file.
//! 3. Functions walk through a partition together, row by row, and the row goes on with their
//!    values: nothing is kept of them but where they are.

mod compute;
mod edges;
mod rows;

use super::Flow;
use super::sorter::Sorter;
use crate::ExecError;
use crate::context::Exec;
use crate::order;
use compute::Running;
use edges::Peers;
use expr::Columns;
use plan::physical::{SortKey, WindowPlan, WindowStep};
use rows::PartitionRows;
use types::{ColumnType, TypeKind, Value, ValueRef};

/// Takes complete rows: the inputs, the results, a number.
pub type RowTaker<'t> = dyn FnMut(&mut Exec<'_>, &Vec<Value>) -> Result<Flow, ExecError> + 't;

/// See the head of the file.
pub struct Windows<'p> {
    plan: &'p WindowPlan,
    sorter: Sorter,
    /// Rows so far.
    rows: u64,
}

/// The rows of one partition.
struct Partition {
    rows: PartitionRows,
    /// What tells it apart.
    identity: Vec<u8>,
}

fn type_of(plan: &WindowPlan, position: usize) -> ColumnType {
    let inputs = plan.inputs.len();
    match position.checked_sub(inputs) {
        None => plan.inputs[position].result.column_type,
        Some(result) => match plan.results.get(result) {
            Some(result) => result.column_type,
            None => ColumnType::integer(TypeKind::BigInt, true),
        },
    }
}

fn sorter(exec: &Exec<'_>, plan: &WindowPlan, step: &WindowStep) -> Sorter {
    let number = plan.inputs.len() + plan.results.len();
    let ascending = |&position: &usize| SortKey { position, descending: false };
    let mut keys: Vec<SortKey> = step.partition.iter().map(ascending).collect();
    keys.extend(step.order.iter().copied());
    keys.push(SortKey { position: number, descending: false });
    let types = |position| type_of(plan, position);
    Sorter::new(&keys, types, number + 1, u64::MAX, exec.memory, exec.spill)
}

impl<'p> Windows<'p> {
    /// Without rows.
    pub fn new(plan: &'p WindowPlan, exec: &Exec<'_>) -> Self {
        Self { plan, sorter: sorter(exec, plan, &plan.steps[0]), rows: 0 }
    }

    /// Takes a row of the block.
    pub fn add(&mut self, exec: &Exec<'_>, row: &dyn Columns) -> Result<(), ExecError> {
        let width = self.plan.inputs.len() + self.plan.results.len() + 1;
        let mut values: Vec<ValueRef<'_>> = Vec::with_capacity(width);
        for input in &self.plan.inputs {
            values.push(input.eval_result(exec.eval, row)?);
        }
        values.resize(width - 1, ValueRef::Null);
        values.push(ValueRef::UInt(self.rows));
        self.rows += 1;
        self.sorter.add(&values)?;
        Ok(())
    }

    /// Computes the functions and gives the rows.
    pub fn finish(
        mut self,
        exec: &mut Exec<'_>,
        target: &mut RowTaker<'_>,
    ) -> Result<(), ExecError> {
        let (plan, last) = (self.plan, self.plan.steps.len() - 1);
        for (number, step) in plan.steps.iter().enumerate() {
            exec.cancel.set_phase(crate::phase::SORTING);
            self.sorter.sort()?;
            exec.spill.count_sort(self.sorter.added(), false);
            exec.cancel.set_phase(crate::phase::SENDING);
            if number == last {
                return each_partition(exec, plan, step, &self.sorter, target);
            }
            let mut next = sorter(exec, plan, &plan.steps[number + 1]);
            let mut rows = 0;
            each_partition(exec, plan, step, &self.sorter, &mut |_, row| {
                let mut values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
                if let Some(number) = values.last_mut() {
                    *number = ValueRef::UInt(rows);
                }
                rows += 1;
                next.add(&values).map(Flow::Continue)
            })?;
            self.sorter = next;
        }
        Ok(())
    }
}

/// Gives the sorted rows with what the functions of a step make of them.
fn each_partition(
    exec: &mut Exec<'_>,
    plan: &WindowPlan,
    step: &WindowStep,
    sorter: &Sorter,
    target: &mut RowTaker<'_>,
) -> Result<(), ExecError> {
    let width = plan.inputs.len() + plan.results.len() + 1;
    let mut partition = Partition { rows: PartitionRows::new(exec, width), identity: Vec::new() };
    let mut identity = Vec::new();
    let mut ended = false;
    sorter.give(0, |row| {
        exec.tick()?;
        identity.clear();
        for &position in &step.partition {
            order::push_identity(row[position], &type_of(plan, position), &mut identity);
        }
        if partition.identity != identity && partition.rows.len() > 0 {
            ended = partition.close(exec, plan, step, target)?.is_break();
        }
        std::mem::swap(&mut partition.identity, &mut identity);
        partition.rows.push(row)?;
        Ok(!ended)
    })?;
    if !ended {
        let _ = partition.close(exec, plan, step, target)?;
    }
    Ok(())
}

impl Partition {
    /// Computes the functions over the rows, gives these and forgets them.
    fn close(
        &mut self,
        exec: &mut Exec<'_>,
        plan: &WindowPlan,
        step: &WindowStep,
        target: &mut RowTaker<'_>,
    ) -> Result<Flow, ExecError> {
        let rows = &mut self.rows;
        rows.finish()?;
        let mut functions = Vec::with_capacity(step.functions.len());
        for function in &step.functions {
            functions.push(Running::new(exec, step, function, rows)?);
        }
        let (mut peers, mut values) = (Peers::default(), Vec::new());
        for at in 0..rows.len() {
            exec.tick()?;
            peers.come_to(at, step, plan, rows)?;
            for function in &mut functions {
                values.push(function.value(exec, at, rows, &peers)?);
            }
            // Functions may have moved the row out of memory: it gets their values together.
            let row = rows.row(at)?;
            for (function, value) in step.functions.iter().zip(values.drain(..)) {
                row[plan.inputs.len() + function.result] = value;
            }
            let flow = target(exec, row)?;
            exec.eval.reset_arena();
            if flow.is_break() {
                return Ok(flow);
            }
        }
        rows.clear();
        Ok(Flow::Continue(()))
    }
}
