//! Comparisons as DOUBLE that take values of a column for equal which its index keeps apart: those
//! of FLOAT(M,D) and the like, and of BIGINT and DECIMAL with more digits than a DOUBLE has.
//!
//! 1. Such a comparison makes a range with a margin on both sides, and tests its rows again.
//! 2. The end of a range is no error where the comparison is none: nothing overflows.

use super::{Constraint, FactReader, Facts, RANGES_MAX};
use crate::physical::{RangeEnd, RangeValue};
use expr::{ArithmeticOperator, CompareOperator, CompareRule, Expr, ResultType};
use types::{ColumnType, SqlError, TypeKind, Value};

/// See [`FactReader::margin`].
#[derive(Clone, Copy)]
pub(super) enum Margin {
    /// The same for all numbers.
    Absolute(f64),
    /// A part of the number.
    Relative(f64),
}

impl FactReader<'_> {
    /// How far values that a comparison takes for equal are from each other, where it is not
    /// exact: a range has a margin then, and the comparison tests its rows again.
    pub(super) fn margin(&self, column: usize, rule: CompareRule) -> Option<Margin> {
        let column_type = &self.columns[column].column_type;
        match rule {
            // Twice as wide as the comparison allows.
            CompareRule::Near(digits) => Some(Margin::Absolute(10f64.powi(-i32::from(digits)))),
            CompareRule::Double if double_is_exact(column_type) => None,
            // Some roundings.
            CompareRule::Double => Some(Margin::Relative(2f64.powi(-50))),
            _ => None,
        }
    }

    /// The end of a range at a value, below it or above by the margin. Of a value from another
    /// table it would be a range for each row: none where there is a margin.
    pub(super) fn end(
        &self,
        column: usize,
        rule: CompareRule,
        margin: Option<Margin>,
        value: &Expr,
        sign: f64,
    ) -> Option<RangeEnd> {
        let mut value = self.value(column, rule, value)?;
        if let Some(margin) = margin {
            let mut is_of_row = false;
            value.for_each_column(&mut |_| is_of_row = true);
            if is_of_row {
                return None;
            }
            value = self.beside(value, margin, sign).ok()?;
        }
        Some(RangeEnd::Value { value, inclusive: true })
    }

    /// The value less the margin, or, with a positive sign, and the margin.
    fn beside(&self, value: Expr, margin: Margin, sign: f64) -> Result<Expr, SqlError> {
        let known = match value.literal() {
            Some(Value::Int(number)) => Some(*number as f64),
            Some(Value::UInt(number)) => Some(*number as f64),
            Some(Value::Double(number)) => Some(*number),
            Some(Value::Decimal(number)) => Some(number.to_f64()),
            _ => None,
        };
        use ArithmeticOperator::{Add, Multiply, Subtract};
        let operator = if sign < 0.0 { Subtract } else { Add };
        match (margin, known) {
            (Margin::Absolute(margin), Some(number)) => Ok(self.double(number + sign * margin)),
            (Margin::Relative(part), Some(number)) => {
                Ok(self.double(number + sign * part * number.abs()))
            }
            (Margin::Absolute(margin), None) => {
                self.builder.arithmetic(operator, value, self.double(margin))
            }
            (Margin::Relative(part), None) => {
                // No column that is not exact has such numbers, and nothing overflows.
                let upper = self.builder.call("least", vec![value, self.double(1e300)])?;
                let value = self.builder.call("greatest", vec![upper, self.double(-1e300)])?;
                let size = self.builder.call("abs", vec![value.clone()])?;
                let margin = self.builder.arithmetic(Multiply, size, self.double(part))?;
                self.builder.arithmetic(operator, value, margin)
            }
        }
    }

    /// What a comparison with a margin says of a column.
    pub(super) fn add_near(
        &self,
        column: usize,
        operator: CompareOperator,
        margin: Margin,
        value: &Expr,
        facts: &mut Facts,
    ) {
        let end = |sign| self.end(column, CompareRule::Double, Some(margin), value, sign);
        let (lower, upper) = match operator {
            CompareOperator::NullSafeEqual if matches!(value.literal(), Some(Value::Null)) => {
                let points = vec![RangeValue::NullSafe(value.clone())];
                return facts.columns.push((column, Constraint::Points(points)));
            }
            // What is not known yet may be NULL.
            CompareOperator::NullSafeEqual if value.literal().is_none() => return,
            CompareOperator::Equal | CompareOperator::NullSafeEqual => (end(-1.0), end(1.0)),
            CompareOperator::Less | CompareOperator::LessOrEqual => (None, end(1.0)),
            CompareOperator::Greater | CompareOperator::GreaterOrEqual => (end(-1.0), None),
            CompareOperator::NotEqual => return,
        };
        if lower.is_some() || upper.is_some() {
            facts.columns.push((column, Constraint::Interval { lower, upper }));
        }
    }

    fn double(&self, value: f64) -> Expr {
        self.builder.computed(Value::Double(value), ResultType::double(false))
    }

    /// A list of which some values have a margin.
    pub(super) fn add_alternatives(
        &self,
        column: usize,
        list: &[(Expr, Vec<CompareRule>)],
        facts: &mut Facts,
    ) {
        let mut branches = Vec::with_capacity(list.len());
        for (candidate, rules) in list {
            let Some(rule) = rules.first() else { return };
            let mut branch = Facts::default();
            self.add_compare(column, CompareOperator::Equal, *rule, candidate, &mut branch);
            if branch.columns.is_empty() {
                return;
            }
            branches.push(branch);
        }
        if branches.len() <= RANGES_MAX {
            facts.alternatives.push(branches);
        }
    }
}

/// Whether comparing the column as DOUBLE keeps its values apart.
fn double_is_exact(column: &ColumnType) -> bool {
    match column.kind {
        TypeKind::Float | TypeKind::Double => true,
        TypeKind::Decimal => u32::from(column.precision) <= f64::DIGITS,
        kind => kind.is_integer() && kind != TypeKind::BigInt,
    }
}
