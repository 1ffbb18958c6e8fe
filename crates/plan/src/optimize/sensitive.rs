//! For which values of its parameters a plan was chosen.
//!
//! 1. A plan is made with the values of an execution. It serves other values as long as every
//!    condition `column compared with parameter` on which the choice depends leaves about as many
//!    rows: up to ten times more or less, and differences below a thousand rows do not count.
//! 2. A choice depends on a condition if the table is large, is not read by its whole clustered
//!    key, and could be read otherwise, or joined in another order. Equality counts only where
//!    some value is much commoner than others.
//! 3. Values decide how rows are found, never which: no value becomes part of a plan.

use super::join_order::Chosen;
use super::{Problem, column_position, estimate};
use crate::physical::{Access, EntryHandle, TableSource};
use expr::{CompareOperator, Expr, ExprKind};
use std::ops::Bound;
use types::Value;
use types::row::{KeyColumn, KeyPart};

/// A table with fewer rows is read fast enough in any way.
const ROWS_MIN: f64 = 1000.0;
/// Most rows for one that are about as many.
const FACTOR: f64 = 10.0;

/// What a column is compared with.
#[derive(Clone, Copy, Debug)]
enum Comparison {
    Equal,
    Below(bool),
    Above(bool),
}

/// The share of rows that a condition left when the plan was made.
#[derive(Clone, Debug)]
pub struct ValueShare {
    entry: EntryHandle,
    column: usize,
    comparison: Comparison,
    parameter: usize,
    share: f64,
    rows: f64,
}

impl ValueShare {
    /// Whether these values leave about as many rows.
    pub fn fits(&self, values: &[Value]) -> bool {
        let now = values.get(self.parameter).and_then(|value| self.share_of(value));
        now.is_none_or(|now| self.is_about(now))
    }

    /// Whether another plan of the statement was made for about the same share.
    pub fn is_like(&self, other: &Self) -> bool {
        self.is_about(other.share)
    }

    fn is_about(&self, share: f64) -> bool {
        let (then, now) = (self.share * self.rows, share * self.rows);
        (then - now).abs() < ROWS_MIN || then.max(now) < FACTOR * then.min(now)
    }

    fn share_of(&self, value: &Value) -> Option<f64> {
        let entry = &self.entry.0;
        let known = entry.handle().ok()?.column_statistics(self.column)?;
        let columns = entry.layouts().row.columns();
        let part = KeyColumn::new(columns, &KeyPart::ascending(self.column))?;
        let mut key = Vec::new();
        estimate::push_value(value, &part, columns, &mut key)?;
        let bound = |inclusive| match inclusive {
            true => Bound::Included(&key[..]),
            false => Bound::Excluded(&key[..]),
        };
        Some(match self.comparison {
            Comparison::Equal => known.equal(&key),
            Comparison::Below(inclusive) => known.between(Bound::Unbounded, bound(inclusive)),
            Comparison::Above(inclusive) => known.between(bound(inclusive), Bound::Unbounded),
        })
    }
}

fn parameter(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Parameter(number) => Some(number),
        _ => None,
    }
}

impl Problem<'_> {
    /// The conditions that the choice depends on.
    pub(super) fn value_shares(&self, chosen: &Chosen) -> Vec<ValueShare> {
        let mut shares = Vec::new();
        if self.values.is_empty() {
            return shares;
        }
        for step in &chosen.steps {
            let TableSource::Base(entry) = &self.sources[step.source].table else { continue };
            let has_choice =
                chosen.steps.len() > 1 || step.possible_keys.iter().any(|number| *number != 0);
            if matches!(step.access, Access::Point { .. }) || !has_choice {
                continue;
            }
            let rows = self.numbers(step.source, &entry.0).map_or(0.0, |numbers| numbers.rows);
            if rows < ROWS_MIN {
                continue;
            }
            let own = self.columns_of(step.source);
            for conjunct in &self.conjuncts {
                for (column, comparison, parameter) in comparisons(&conjunct.expr) {
                    if own.contains(&column) {
                        let column = column - own.start;
                        shares.extend(self.value_share(entry, column, comparison, parameter, rows));
                    }
                }
            }
        }
        shares
    }

    fn value_share(
        &self,
        entry: &EntryHandle,
        column: usize,
        comparison: Comparison,
        parameter: usize,
        rows: f64,
    ) -> Option<ValueShare> {
        let made =
            ValueShare { entry: entry.clone(), column, comparison, parameter, share: 0.0, rows };
        if entry.0.definition().columns[column].column_type.members.is_some() {
            return None;
        }
        if matches!(comparison, Comparison::Equal) {
            let known = entry.0.handle().ok()?.column_statistics(column)?;
            if known.most_common() * rows < ROWS_MIN {
                return None;
            }
        }
        let share = made.share_of(self.values.get(parameter)?)?;
        Some(ValueShare { share, ..made })
    }
}

/// The position of a column, how it is compared, and with which parameter.
fn comparisons(condition: &Expr) -> Vec<(usize, Comparison, usize)> {
    let mut found = Vec::new();
    match &condition.kind {
        ExprKind::Compare { operator, left, right, .. } => {
            let (operator, column, value) = match parameter(left) {
                Some(number) => (operator.swapped(), column_position(right), Some(number)),
                None => (*operator, column_position(left), parameter(right)),
            };
            let comparison = match operator {
                CompareOperator::Equal => Comparison::Equal,
                CompareOperator::Less => Comparison::Below(false),
                CompareOperator::LessOrEqual => Comparison::Below(true),
                CompareOperator::Greater => Comparison::Above(false),
                CompareOperator::GreaterOrEqual => Comparison::Above(true),
                _ => return found,
            };
            found.extend(column.zip(value).map(|(column, value)| (column, comparison, value)));
        }
        ExprKind::Between { operand, low, high, negated: false, .. } => {
            let Some(column) = column_position(operand) else { return found };
            let low = parameter(low).map(|value| (column, Comparison::Above(true), value));
            let high = parameter(high).map(|value| (column, Comparison::Below(true), value));
            found.extend(low.into_iter().chain(high));
        }
        _ => {}
    }
    found
}
