//! What becomes of the rows of a block: DISTINCT, ORDER BY, LIMIT.
//!
//! Without DISTINCT and ORDER BY a row goes on as it comes, its values still where they were.
//! With ORDER BY and a small LIMIT only the best rows so far are kept.

use super::keys::{KEY_OVERHEAD_BYTES, Keys};
use super::sorter::Sorter;
use super::{Flow, Limit, RowTarget};
use crate::ExecError;
use crate::context::Exec;
use crate::order;
use base::memory::MemoryAccount;
use expr::{Columns, EvalContext};
use plan::physical::SelectPlan;
use std::sync::Arc;
use types::{ColumnType, SqlError, ValueRef, codes};

/// Charges kept memory to the statement.
pub fn charge(memory: &Arc<MemoryAccount>, bytes: usize) -> Result<(), ExecError> {
    let charged = memory.charge(bytes as u64);
    charged.map_err(|_| SqlError::new(&codes::OUT_OF_SORTMEMORY, &[]).into())
}

/// Tells whether a row came before.
#[derive(Default)]
pub struct Distinct {
    seen: Keys,
    key: Vec<u8>,
}

impl Distinct {
    /// True the first time that these values come.
    pub fn is_new(
        &mut self,
        values: &[ValueRef<'_>],
        types: &[ColumnType],
        memory: &Arc<MemoryAccount>,
    ) -> Result<bool, ExecError> {
        self.key.clear();
        for (value, column_type) in values.iter().zip(types) {
            order::push_identity(*value, column_type, &mut self.key);
        }
        let (_, new) = self.seen.insert(&self.key);
        if new {
            charge(memory, self.key.len() + KEY_OVERHEAD_BYTES)?;
        }
        Ok(new)
    }
}

/// See the head of the file.
pub struct Output<'p> {
    plan: &'p SelectPlan,
    limit: Limit,
    shown_types: Vec<ColumnType>,
    distinct: Option<Distinct>,
    sorter: Option<Sorter>,
    memory: Arc<MemoryAccount>,
    /// Rows that passed everything but LIMIT.
    passed: u64,
}

impl<'p> Output<'p> {
    /// For one execution of a block.
    pub fn new(plan: &'p SelectPlan, limit: Limit, exec: &Exec<'_>) -> Self {
        let type_of = |position: usize| plan.projection[position].result.column_type;
        let width = plan.projection.len();
        let sorter = (!plan.order_by.is_empty())
            .then(|| Sorter::new(&plan.order_by, type_of, width, limit.needed(), exec.memory));
        Self {
            plan,
            limit,
            shown_types: (0..plan.columns.len()).map(type_of).collect(),
            distinct: plan.distinct.then(Distinct::default),
            sorter,
            memory: exec.memory.clone(),
            passed: 0,
        }
    }

    /// Projects a frame and passes it on or keeps it.
    pub fn add(
        &mut self,
        exec: &mut Exec<'_>,
        frame: &dyn Columns,
        target: &mut RowTarget<'_>,
    ) -> Result<Flow, ExecError> {
        let eval: &EvalContext = exec.eval;
        let projection = &self.plan.projection;
        let value = |position: usize| projection[position].eval_result(eval, frame);
        let values: &[ValueRef<'_>] =
            eval.arena.alloc_slice_try_fill_with(projection.len(), value)?;
        let shown = self.plan.columns.len();
        if let Some(distinct) = &mut self.distinct
            && !distinct.is_new(&values[..shown], &self.shown_types, &self.memory)?
        {
            return Ok(Flow::Continue(()));
        }
        self.passed += 1;
        if let Some(sorter) = &mut self.sorter {
            sorter.add(values)?;
            return Ok(Flow::Continue(()));
        }
        if self.passed > self.limit.offset && self.passed <= self.limit.needed() {
            if target(eval, &values[..shown])?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        let full = self.passed >= self.limit.needed() && !self.plan.calculate_found_rows;
        Ok(if full { Flow::Break(()) } else { Flow::Continue(()) })
    }

    /// Rows whose first sort key's head is greater need not be added.
    pub fn cutoff(&self) -> Option<u64> {
        self.sorter.as_ref().and_then(Sorter::cutoff)
    }

    /// Gives the kept rows; returns how many LIMIT hid.
    pub fn finish(self, exec: &mut Exec<'_>, target: &mut RowTarget<'_>) -> Result<u64, ExecError> {
        let shown = self.plan.columns.len();
        if let Some(sorter) = self.sorter {
            exec.cancel.set_phase(crate::phase::SORTING);
            let offset = usize::try_from(self.limit.offset).unwrap_or(usize::MAX);
            let mut sorting = true;
            sorter.finish(offset, |row| {
                if std::mem::take(&mut sorting) {
                    exec.cancel.set_phase(crate::phase::SENDING);
                }
                exec.tick()?;
                Ok::<_, ExecError>(target(exec.eval, &row[..shown])?.is_continue())
            })?;
        }
        let after_offset = self.passed.saturating_sub(self.limit.offset);
        let sent = after_offset.min(self.limit.count);
        Ok(if self.plan.calculate_found_rows { self.passed - sent } else { 0 })
    }
}
