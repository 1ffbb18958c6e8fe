//! Grouping by hashing.

use super::Flow;
use super::keys::{KEY_OVERHEAD_BYTES, Keys};
use super::output::charge;
use crate::ExecError;
use crate::context::Exec;
use crate::order;
use expr::Columns;
use expr::aggregate::Accumulator;
use plan::physical::AggregatePlan;
use types::{Value, ValueRef};

struct Group {
    keys: Vec<Value>,
    carried: Vec<Value>,
    accumulators: Vec<Accumulator>,
}

/// The groups seen so far, in the order in which they came.
pub struct Groups<'p> {
    plan: &'p AggregatePlan,
    /// Key number N is that of group N.
    places: Keys,
    groups: Vec<Group>,
    identity: Vec<u8>,
    charged_bytes: usize,
}

impl<'p> Groups<'p> {
    /// No group; without GROUP BY the one group of all rows.
    pub fn new(plan: &'p AggregatePlan) -> Self {
        let mut groups = Self {
            plan,
            places: Keys::default(),
            groups: Vec::new(),
            identity: Vec::new(),
            charged_bytes: 0,
        };
        if plan.keys.is_empty() {
            groups.begin(Vec::new());
        }
        groups
    }

    fn begin(&mut self, keys: Vec<Value>) {
        let accumulators = self.plan.calls.iter().map(|call| call.accumulator()).collect();
        self.groups.push(Group { keys, carried: Vec::new(), accumulators });
    }

    /// Adds a frame to its group.
    pub fn add(&mut self, exec: &mut Exec<'_>, frame: &dyn Columns) -> Result<Flow, ExecError> {
        let place = if self.plan.keys.is_empty() { 0 } else { self.find(exec, frame)? };
        let group = &mut self.groups[place];
        if group.carried.len() < self.plan.carried.len() {
            let carried = self.plan.carried.iter().map(|&at| frame.column(at).to_owned());
            group.carried = carried.collect();
        }
        for (accumulator, call) in group.accumulators.iter_mut().zip(&self.plan.calls) {
            accumulator.update(call, exec.eval, frame)?;
        }
        Ok(Flow::Continue(()))
    }

    fn find(&mut self, exec: &Exec<'_>, frame: &dyn Columns) -> Result<usize, ExecError> {
        self.identity.clear();
        let mut values: Vec<ValueRef<'_>> = Vec::with_capacity(self.plan.keys.len());
        for key in &self.plan.keys {
            let value = key.eval(exec.eval, frame)?;
            order::push_identity(value, &key.result.column_type, &mut self.identity);
            values.push(value);
        }
        let (place, is_new) = self.places.insert(&self.identity);
        if is_new {
            let keys: Vec<Value> = values.iter().map(|&value| value.to_owned()).collect();
            let bytes =
                2 * self.identity.len() + KEY_OVERHEAD_BYTES + 96 + 64 * self.plan.calls.len();
            charge(exec.memory, bytes)?;
            self.charged_bytes += bytes;
            self.begin(keys);
        }
        Ok(place)
    }

    /// Gives every group: its keys, its aggregates, the values carried over. `frame` has the
    /// latter for the group of no rows.
    pub fn finish(
        self,
        exec: &mut Exec<'_>,
        frame: &dyn Columns,
        target: &mut dyn FnMut(&mut Exec<'_>, &Vec<Value>) -> Result<Flow, ExecError>,
    ) -> Result<(), ExecError> {
        exec.memory.release(self.charged_bytes as u64);
        for group in self.groups {
            exec.tick()?;
            let mut row = group.keys;
            for (accumulator, call) in group.accumulators.iter().zip(&self.plan.calls) {
                row.push(accumulator.value(call, exec.eval)?);
            }
            if group.carried.len() == self.plan.carried.len() {
                row.extend(group.carried);
            } else {
                row.extend(self.plan.carried.iter().map(|&at| frame.column(at).to_owned()));
            }
            let flow = target(exec, &row)?;
            exec.eval.reset_arena();
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }
}
