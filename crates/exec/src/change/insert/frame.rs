//! The frame of ON DUPLICATE KEY UPDATE.

use crate::change::late::{LateValues, ReadsLate};
use crate::change::update::ChangingRow;
use expr::Columns;
use types::{Value, ValueRef};

/// The present row, the one to be inserted, and what stands behind both.
pub struct TwoRows<'v> {
    /// The present row, as changed so far.
    pub first: Vec<Value>,
    /// The row to be inserted.
    second: &'v [Value],
    /// Other columns of the row of SELECT; behind them are the values of subqueries.
    more: Vec<Value>,
    late: LateValues,
}

impl<'v> TwoRows<'v> {
    /// A frame without values of subqueries; `source` are other columns of the row of SELECT.
    pub fn new(first: Vec<Value>, second: &'v [Value], source: Vec<Value>) -> Self {
        Self { first, second, more: source, late: LateValues::default() }
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
}

impl ReadsLate for TwoRows<'_> {
    fn late(&self) -> &LateValues {
        &self.late
    }

    fn late_mut(&mut self) -> &mut LateValues {
        &mut self.late
    }
}
