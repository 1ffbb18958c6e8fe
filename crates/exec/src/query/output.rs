//! What becomes of the rows of a block: DISTINCT, ORDER BY, LIMIT.
//!
//! Without DISTINCT and ORDER BY a row goes on as it comes, its values still where they were.
//! With ORDER BY and a small LIMIT only the best rows so far are kept.

use super::{Flow, Limit, RowTarget, row_bytes};
use crate::ExecError;
use crate::context::Exec;
use crate::order;
use base::memory::MemoryAccount;
use expr::{Columns, EvalContext};
use plan::physical::{SelectPlan, SortKey};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;
use types::{ColumnType, SqlError, Value, ValueRef, codes};

/// Charges kept memory to the statement.
pub fn charge(memory: &Arc<MemoryAccount>, bytes: usize) -> Result<(), ExecError> {
    let charged = memory.charge(bytes as u64);
    charged.map_err(|_| SqlError::new(&codes::OUT_OF_SORTMEMORY, &[]).into())
}

/// Rows kept until all have come, in an order.
pub struct Sorter {
    keys: Vec<(SortKey, ColumnType)>,
    /// Only so many rows are wanted.
    most: usize,
    rows: Vec<Vec<Value>>,
    charged_bytes: usize,
    memory: Arc<MemoryAccount>,
}

impl Sorter {
    /// Keeps the first `needed` rows in the order of `keys`.
    pub fn new(
        keys: &[SortKey],
        types: impl Fn(usize) -> ColumnType,
        needed: u64,
        memory: &Arc<MemoryAccount>,
    ) -> Self {
        let keys = keys.iter().map(|key| (*key, types(key.position))).collect();
        let most = usize::try_from(needed).unwrap_or(usize::MAX);
        Self { keys, most, rows: Vec::new(), charged_bytes: 0, memory: memory.clone() }
    }

    fn compare(keys: &[(SortKey, ColumnType)], a: &[Value], b: &[Value]) -> Ordering {
        for (key, column_type) in keys {
            let (a, b) = (a[key.position].as_ref(), b[key.position].as_ref());
            let order = order::compare(a, b, column_type.collation.info());
            let order = if key.descending { order.reverse() } else { order };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Takes a row.
    pub fn add(&mut self, row: Vec<Value>) -> Result<(), ExecError> {
        let bytes = row_bytes(&row);
        charge(&self.memory, bytes)?;
        self.charged_bytes += bytes;
        self.rows.push(row);
        if self.rows.len() >= self.most.saturating_mul(2).max(1024) {
            self.trim();
        }
        Ok(())
    }

    fn trim(&mut self) {
        if self.rows.len() > self.most {
            self.sort();
            self.rows.truncate(self.most);
            let kept: usize = self.rows.iter().map(|row| row_bytes(row)).sum();
            self.memory.release((self.charged_bytes - kept) as u64);
            self.charged_bytes = kept;
        }
    }

    fn sort(&mut self) {
        let keys = &self.keys;
        self.rows.sort_by(|a, b| Self::compare(keys, a, b));
    }

    /// All rows in order.
    pub fn finish(mut self) -> Vec<Vec<Value>> {
        self.sort();
        self.rows.truncate(self.most);
        std::mem::take(&mut self.rows)
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        self.memory.release(self.charged_bytes as u64);
    }
}

/// Tells whether a row came before.
#[derive(Default)]
pub struct Distinct {
    seen: HashSet<Vec<u8>>,
}

impl Distinct {
    /// True the first time that these values come.
    pub fn is_new(
        &mut self,
        values: &[ValueRef<'_>],
        types: &[ColumnType],
        memory: &Arc<MemoryAccount>,
    ) -> Result<bool, ExecError> {
        let mut key = Vec::new();
        for (value, column_type) in values.iter().zip(types) {
            order::push_identity(*value, column_type, &mut key);
        }
        let bytes = key.len() + 48;
        let new = self.seen.insert(key);
        if new {
            charge(memory, bytes)?;
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
        let sorter = (!plan.order_by.is_empty())
            .then(|| Sorter::new(&plan.order_by, type_of, limit.needed(), exec.memory));
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
        let mut values = Vec::with_capacity(self.plan.projection.len());
        for expr in &self.plan.projection {
            values.push(expr.eval_result(eval, frame)?);
        }
        let shown = self.plan.columns.len();
        if let Some(distinct) = &mut self.distinct
            && !distinct.is_new(&values[..shown], &self.shown_types, &self.memory)?
        {
            return Ok(Flow::Continue(()));
        }
        self.passed += 1;
        if let Some(sorter) = &mut self.sorter {
            sorter.add(values.iter().map(|&value| value.to_owned()).collect())?;
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

    /// Gives the kept rows; returns how many LIMIT hid.
    pub fn finish(self, exec: &mut Exec<'_>, target: &mut RowTarget<'_>) -> Result<u64, ExecError> {
        let shown = self.plan.columns.len();
        if let Some(sorter) = self.sorter {
            let offset = usize::try_from(self.limit.offset).unwrap_or(usize::MAX);
            for row in sorter.finish().into_iter().skip(offset) {
                exec.tick()?;
                let values: Vec<ValueRef<'_>> = row[..shown].iter().map(Value::as_ref).collect();
                if target(exec.eval, &values)?.is_break() {
                    break;
                }
            }
        }
        let after_offset = self.passed.saturating_sub(self.limit.offset);
        let sent = after_offset.min(self.limit.count);
        Ok(if self.plan.calculate_found_rows { self.passed - sent } else { 0 })
    }
}
