//! The frame of ON DUPLICATE KEY UPDATE.

use crate::ExecError;
use crate::change::late::LateValues;
use crate::change::update::ChangingRow;
use crate::context::Exec;
use crate::query::subquery_value;
use expr::Columns;
use plan::physical::Apply;
use types::{SqlError, Value, ValueRef};

/// The present row, the one to be inserted, and what stands behind both.
pub struct TwoRows<'v> {
    /// The present row, as changed so far.
    pub first: Vec<Value>,
    /// The row to be inserted.
    second: &'v [Value],
    /// Other columns of the row of SELECT; behind them are the values of subqueries.
    more: Vec<Value>,
    /// Those of each assignment; empty without any.
    pub subqueries: &'v [Vec<Apply>],
    /// What is known of them.
    pub late: LateValues,
}

impl<'v> TwoRows<'v> {
    /// A frame without subqueries; `source` are other columns of the row of SELECT.
    pub fn new(first: Vec<Value>, second: &'v [Value], source: Vec<Value>) -> Self {
        Self { first, second, more: source, subqueries: &[], late: LateValues::default() }
    }
}

impl Columns for TwoRows<'_> {
    fn column(&self, position: usize) -> ValueRef<'_> {
        let value = match position.checked_sub(self.first.len()) {
            None => self.first.get(position),
            Some(place) => match place.checked_sub(self.second.len()) {
                None => self.second.get(place),
                Some(place) => self.more.get(place).or_else(|| self.late.value(position)),
            },
        };
        value.map_or(ValueRef::Null, Value::as_ref)
    }
}

impl ChangingRow for TwoRows<'_> {
    fn values(&mut self) -> &mut Vec<Value> {
        &mut self.first
    }

    fn look_up(&mut self, exec: &mut Exec<'_>, assignment: usize) -> Result<(), ExecError> {
        let subqueries = self.subqueries;
        for apply in subqueries.get(assignment).into_iter().flatten() {
            let mut kept = std::mem::take(&mut self.late.kept);
            let outcome = subquery_value(exec, self, &mut kept, apply);
            self.late.kept = kept;
            self.late.set(apply.position, outcome)?;
        }
        Ok(())
    }

    fn check_reads(&self) -> Result<(), SqlError> {
        self.late.check_reads()
    }
}
