//! The frame of ON DUPLICATE KEY UPDATE.

use crate::ExecError;
use crate::change::update::ChangingRow;
use crate::context::Exec;
use crate::frame::Failures;
use crate::query::{Once, deferred, subquery_value};
use expr::Columns;
use plan::physical::Apply;
use types::{SqlError, Value, ValueRef};

/// The present row, the one to be inserted, and what stands behind both.
pub struct TwoRows<'v> {
    /// The present row, as changed so far.
    pub first: Vec<Value>,
    /// The row to be inserted.
    second: &'v [Value],
    /// Other columns of the row of SELECT, then the values of subqueries.
    more: Vec<Value>,
    /// Those of each assignment; empty without any.
    pub subqueries: &'v [Vec<Apply>],
    /// What is known of them.
    pub kept: Vec<(usize, Once)>,
    failures: Failures,
}

impl<'v> TwoRows<'v> {
    /// A frame without subqueries; `source` are other columns of the row of SELECT.
    pub fn new(first: Vec<Value>, second: &'v [Value], source: Vec<Value>) -> Self {
        let (kept, failures) = (Vec::new(), Failures::default());
        Self { first, second, more: source, subqueries: &[], kept, failures }
    }
}

impl Columns for TwoRows<'_> {
    fn column(&self, position: usize) -> ValueRef<'_> {
        let value = match position.checked_sub(self.first.len()) {
            None => self.first.get(position),
            Some(place) => match place.checked_sub(self.second.len()) {
                None => self.second.get(place),
                Some(place) => {
                    self.failures.reads(position);
                    self.more.get(place)
                }
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
            let mut kept = std::mem::take(&mut self.kept);
            let outcome = subquery_value(exec, self, &mut kept, apply);
            self.kept = kept;
            self.check_reads()?;
            let value = deferred(outcome)?.unwrap_or_else(|error| {
                self.failures.note(apply.position, error);
                Value::Null
            });
            self.more.push(value);
        }
        Ok(())
    }

    fn check_reads(&self) -> Result<(), SqlError> {
        self.failures.error()
    }
}
