//! Subqueries that are run when it is the turn of an assignment, over the row as changed so far.

use crate::ExecError;
use crate::frame::Failures;
use crate::query::{Once, deferred};
use types::{SqlError, Value};

/// What is known of them.
#[derive(Default)]
pub struct LateValues {
    /// Their values over the row of the frame, by position.
    values: Vec<(usize, Value)>,
    failures: Failures,
    /// What is the same for all rows.
    pub kept: Vec<(usize, Once)>,
}

impl LateValues {
    /// The value of a position, if a subquery has given it.
    pub fn value(&self, position: usize) -> Option<&Value> {
        let (_, value) = self.values.iter().find(|(known, _)| *known == position)?;
        self.failures.reads(position);
        Some(value)
    }

    /// Notes what the subquery at a position came to.
    pub fn set(
        &mut self,
        position: usize,
        outcome: Result<Value, ExecError>,
    ) -> Result<(), ExecError> {
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
