//! Subqueries that are run when it is the turn of an assignment, over the row as changed so far.

use crate::ExecError;
use crate::context::Exec;
use crate::frame::Failures;
use crate::query::{Once, deferred, subquery_value};
use expr::Columns;
use plan::physical::Apply;
use std::borrow::Borrow;
use types::{SqlError, Value};

/// The subqueries of a statement's assignments.
pub struct LateSubqueries<'s, A> {
    /// Those of each assignment; empty without any.
    pub of_assignments: &'s [Vec<A>],
    /// What is known of them for all rows.
    pub kept: &'s mut Vec<(usize, Once)>,
}

impl<A: Borrow<Apply>> LateSubqueries<'_, A> {
    /// It is the turn of an assignment: finds the values of its subqueries.
    pub fn look_up<R: ReadsLate>(
        &mut self,
        exec: &mut Exec<'_>,
        row: &mut R,
        assignment: usize,
    ) -> Result<(), ExecError> {
        for apply in self.of_assignments.get(assignment).into_iter().flatten() {
            let apply = apply.borrow();
            let outcome = subquery_value(exec, row, self.kept, apply);
            row.late_mut().set(apply.position, outcome)?;
        }
        Ok(())
    }
}

/// A frame with a row that is being changed, and with values of subqueries over it.
pub trait ReadsLate: Columns {
    /// These values.
    fn late(&self) -> &LateValues;

    /// The same, to be added to.
    fn late_mut(&mut self) -> &mut LateValues;
}

/// The values of subqueries over the row of a frame.
#[derive(Default)]
pub struct LateValues {
    /// By position.
    values: Vec<(usize, Value)>,
    failures: Failures,
}

impl LateValues {
    /// The value of a position, if a subquery has given it.
    pub fn value(&self, position: usize) -> Option<&Value> {
        let (_, value) = self.values.iter().find(|(known, _)| *known == position)?;
        self.failures.reads(position);
        Some(value)
    }

    /// Notes what the subquery at a position came to.
    fn set(&mut self, position: usize, outcome: Result<Value, ExecError>) -> Result<(), ExecError> {
        self.check_reads()?;
        let value = deferred(outcome)?.unwrap_or_else(|error| {
            self.failures.note(position, error);
            Value::Null
        });
        self.values.push((position, value));
        Ok(())
    }

    /// The error of a subquery whose value was read.
    pub fn check_reads(&self) -> Result<(), SqlError> {
        self.failures.error()
    }
}
