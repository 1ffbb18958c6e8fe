//! A group and its row.

use crate::ExecError;
use crate::context::Exec;
use crate::query::deferred::Lists;
use crate::query::packed::Packed;
use expr::Columns;
use expr::aggregate::Accumulator;
use plan::physical::AggregatePlan;
use types::Value;

/// What is kept of a group.
pub(super) struct Group {
    pub keys: Vec<Value>,
    pub carried: Vec<Value>,
    pub accumulators: Vec<Accumulator>,
}

impl Group {
    /// Its row.
    pub fn finish(
        mut self,
        plan: &AggregatePlan,
        (number, packed): (usize, &[Option<Packed>]),
        exec: &Exec<'_>,
        frame: &dyn Columns,
        mut lists: Option<&mut Lists<'_>>,
    ) -> Result<Vec<Value>, ExecError> {
        self.take_packed(plan, number, packed, exec)?;
        let mut row = self.keys;
        for (at, (accumulator, call)) in self.accumulators.iter().zip(&plan.calls).enumerate() {
            row.push(match &mut lists {
                Some(lists) if call.is_list() => lists.value(exec, (number, at), call)?,
                _ => accumulator.value(call, exec.eval)?,
            });
        }
        if self.carried.len() == plan.carried.len() {
            row.extend(self.carried);
        } else {
            row.extend(plan.carried.iter().map(|&at| frame.column(at).to_owned()));
        }
        Ok(row)
    }

    /// Adds what lies in arrays of group `number` to its accumulators.
    pub fn take_packed(
        &mut self,
        plan: &AggregatePlan,
        number: usize,
        packed: &[Option<Packed>],
        exec: &Exec<'_>,
    ) -> Result<(), ExecError> {
        for (position, call) in plan.calls.iter().enumerate() {
            if let Some(Some(packed)) = packed.get(position) {
                packed.finish(number, call, exec.eval, &mut self.accumulators[position])?;
            }
        }
        Ok(())
    }
}
