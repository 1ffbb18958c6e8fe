//! GROUP BY ... WITH ROLLUP: groups by all keys, by all but the last, and so on to all rows.
//!
//! The rows are sorted by the keys, so that of every level only one group is open at a time. A
//! level's row comes behind the groups that it is made of, with NULL for the keys that it leaves
//! out; what is neither key nor aggregate is that of the group before. What aggregates keep beyond
//! the budget is put off for each level (`deferred.rs`).

use super::Flow;
use super::aggregate::GroupTarget;
use super::block::BlockRun;
use super::deferred::{DeferredValues, Lists};
use super::sorter::Sorter;
use crate::ExecError;
use crate::context::Exec;
use crate::order;
use crate::spill::Charged;
use expr::aggregate::{Accumulator, AggregateFunction};
use expr::{Columns, EvalContext};
use plan::physical::{RollupPlan, SortKey};
use types::{Value, ValueRef};

/// A row by the positions of its values.
pub struct RowColumns<'r>(pub &'r [ValueRef<'r>]);

impl Columns for RowColumns<'_> {
    fn column(&self, position: usize) -> ValueRef<'_> {
        self.0.get(position).copied().unwrap_or(ValueRef::Null)
    }
}

struct Levels<'p> {
    plan: &'p RollupPlan,
    /// For every number of keys the aggregates of the open group.
    accumulators: Vec<Vec<Accumulator>>,
    /// What they would keep beyond the budget.
    deferred: Vec<Option<Box<DeferredValues<'p>>>>,
    /// For what they keep.
    charged: Charged,
    /// Keys of the open groups.
    keys: Vec<Value>,
    /// What tells them apart.
    identities: Vec<Vec<u8>>,
    carried: Vec<Value>,
    /// Aggregates of the last group of all keys.
    finest: Vec<Value>,
    begun: bool,
}

impl<'p> Levels<'p> {
    fn new(plan: &'p RollupPlan, exec: &Exec<'_>) -> Self {
        let count = plan.descending.len();
        Self {
            plan,
            accumulators: vec![fresh(plan); count + 1],
            deferred: (0..=count).map(|_| None).collect(),
            charged: Charged::none(exec.memory),
            keys: Vec::new(),
            identities: vec![Vec::new(); count],
            carried: Vec::new(),
            finest: Vec::new(),
            begun: false,
        }
    }

    fn add(
        &mut self,
        exec: &mut Exec<'_>,
        row: &[ValueRef<'_>],
        target: &mut GroupTarget<'_>,
    ) -> Result<Flow, ExecError> {
        let count = self.identities.len();
        let mut identity = Vec::new();
        let mut same = 0;
        for (position, value) in row.iter().enumerate().take(count) {
            identity.clear();
            let column_type = &self.plan.inputs[position].result.column_type;
            order::push_identity(*value, column_type, &mut identity);
            if same == position && self.identities[position] == identity {
                same += 1;
            }
        }
        if !self.begun || same < count {
            if self.begun && self.close(exec, same + 1, target)?.is_break() {
                return Ok(Flow::Break(()));
            }
            self.begun = true;
            for (position, value) in row.iter().enumerate().take(count) {
                let column_type = &self.plan.inputs[position].result.column_type;
                self.identities[position].clear();
                order::push_identity(*value, column_type, &mut self.identities[position]);
            }
            self.keys = row[..count].iter().map(|&value| ValueRef::to_owned(value)).collect();
            let arguments = self.plan.calls.iter();
            let arguments: usize =
                arguments.map(|call| call.arguments.len() + call.concat.order_by.len()).sum();
            self.carried =
                row[count + arguments..].iter().map(|&value| ValueRef::to_owned(value)).collect();
        }
        self.update(exec, row)?;
        Ok(Flow::Continue(()))
    }

    /// Adds a row to the open groups.
    fn update(&mut self, exec: &Exec<'_>, row: &[ValueRef<'_>]) -> Result<(), ExecError> {
        let (plan, row, mut kept) = (self.plan, RowColumns(row), 0);
        for (accumulators, deferred) in self.accumulators.iter_mut().zip(&mut self.deferred) {
            for (number, accumulator) in accumulators.iter_mut().enumerate() {
                if let Some(deferred) = deferred {
                    deferred.update(exec, 0, number, accumulator, &row)?;
                    continue;
                }
                let before = accumulator.kept_bytes();
                accumulator.update(&plan.calls[number], exec.eval, &row)?;
                kept += accumulator.kept_bytes() - before;
            }
        }
        let most = exec.spill.budgets().table;
        if kept == 0 || self.charged.bytes() + kept as u64 <= most && self.charged.add(kept) {
            return Ok(());
        }
        self.charged.clear();
        for (accumulators, deferred) in self.accumulators.iter_mut().zip(&mut self.deferred) {
            let new = || Box::new(DeferredValues::new(&plan.calls, exec));
            deferred.get_or_insert_with(new).take_over(0, accumulators)?;
        }
        Ok(())
    }

    /// Gives the open groups that have at least `least` keys, those with the most first.
    fn close(
        &mut self,
        exec: &mut Exec<'_>,
        least: usize,
        target: &mut GroupTarget<'_>,
    ) -> Result<Flow, ExecError> {
        let count = self.identities.len();
        for level in (least..=count).rev() {
            let mut row = self.keys[..level].to_vec();
            row.resize(count, Value::Null);
            let open = std::mem::replace(&mut self.accumulators[level], fresh(self.plan));
            let kept: usize = open.iter().map(Accumulator::kept_bytes).sum();
            for (number, value) in self.values(exec, level, open)?.into_iter().enumerate() {
                let is_any = self.plan.calls[number].function == AggregateFunction::AnyValue;
                row.push(match self.finest.get(number).filter(|_| is_any && level < count) {
                    Some(finest) => finest.clone(),
                    None => value,
                });
            }
            self.charged.give_back(kept);
            if level == count {
                self.finest = row[count..].to_vec();
            }
            row.extend(self.carried.iter().cloned());
            let flow = target(exec, &row)?;
            exec.eval.reset_arena();
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(Flow::Continue(()))
    }
}

impl Levels<'_> {
    /// The aggregates of a group of so many keys.
    fn values(
        &mut self,
        exec: &Exec<'_>,
        level: usize,
        mut open: Vec<Accumulator>,
    ) -> Result<Vec<Value>, ExecError> {
        let calls = &self.plan.calls;
        let items = match self.deferred[level].take() {
            None => None,
            Some(deferred) => deferred.finish(|_, call, value| {
                Ok(open[call].add_value(&calls[call], exec.eval, value)?)
            })?,
        };
        let mut lists = items.as_ref().map(|items| Lists::new(items, exec)).transpose()?;
        let mut values = Vec::with_capacity(calls.len());
        for (number, (accumulator, call)) in open.iter().zip(calls).enumerate() {
            values.push(match &mut lists {
                Some(lists) if call.is_list() => lists.value(exec, (0, number), call)?,
                _ => accumulator.value(call, exec.eval)?,
            });
        }
        Ok(values)
    }
}

fn fresh(plan: &RollupPlan) -> Vec<Accumulator> {
    plan.calls.iter().map(|call| call.accumulator()).collect()
}

/// Groups the rows of a block.
pub fn run<'p>(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'p>,
    plan: &'p RollupPlan,
    target: &mut GroupTarget<'_>,
) -> Result<(), ExecError> {
    let keys = plan.descending.iter().enumerate();
    let keys: Vec<SortKey> =
        keys.map(|(position, &descending)| SortKey { position, descending }).collect();
    let type_of = |position: usize| plan.inputs[position].result.column_type;
    let width = plan.inputs.len();
    let mut sorter = Sorter::new(&keys, type_of, width, u64::MAX, exec.memory, exec.spill);
    let _ = run.run(exec, &mut |exec, run| {
        let eval: &EvalContext = exec.eval;
        let value = |position: usize| plan.inputs[position].eval(eval, &run.frame);
        let values: &[ValueRef<'_>] = eval.arena.alloc_slice_try_fill_with(width, value)?;
        sorter.add(values)?;
        Ok(Flow::Continue(()))
    })?;
    exec.cancel.set_phase(crate::phase::SORTING);
    sorter.sort()?;
    exec.spill.count_sort(sorter.added(), false);
    exec.cancel.set_phase(crate::phase::SENDING);
    let mut levels = Levels::new(plan, exec);
    let mut ended = false;
    sorter.give(0, |row| {
        exec.tick()?;
        ended = levels.add(exec, row, target)?.is_break();
        Ok(!ended)
    })?;
    if levels.begun && !ended {
        let _ = levels.close(exec, 0, target)?;
    }
    Ok(())
}
