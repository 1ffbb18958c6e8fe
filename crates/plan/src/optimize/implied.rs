//! The condition that an access enforces exactly, so that its rows need not be tested again.
//!
//! 1. Only points and ranges of the first part of an index are looked at, an integer column
//!    compared with integers: execution can place every such value among the column's, so they
//!    hold exactly the rows for which the comparison is true. NULL is in none of them.
//! 2. No other condition may read that column: it might have given the ranges instead.
//! 3. Rows that a statement locks are tested again: they are read as they are then. (What
//!    SERIALIZABLE locks by itself is safe too: the engine's scan gives a row only if it still has
//!    the key by which it was found.)

use super::column_position;
use super::conjuncts::Conjunct;
use crate::physical::{Access, RangePlan, TableSource};
use engine_api::LockMode;
use expr::{CompareOperator, CompareRule, Expr, ExprKind};
use types::Value;

/// The place of that condition among `conditions`, if there is one.
pub(super) fn by_access(
    access: &Access,
    source: &TableSource,
    first_position: usize,
    lock: LockMode,
    conditions: &[Conjunct],
) -> Option<usize> {
    let TableSource::Base(entry) = source else {
        return None;
    };
    let index = match access {
        Access::Ranges { index, ranges, .. } if ranges.iter().all(is_of_first_part) => *index,
        Access::Point { key } if key.len() == 1 => 0,
        _ => return None,
    };
    let definition = entry.0.definition();
    let part = definition.indexes[index].parts.first()?;
    let is_integer = definition.columns[part.column].column_type.kind.is_integer();
    if lock != LockMode::None || !is_integer {
        return None;
    }
    let column = first_position + part.column;
    let mut readers = conditions.iter().enumerate().filter(|(_, c)| reads(&c.expr, column));
    let (place, reader) = readers.next()?;
    (readers.next().is_none() && is_exact(&reader.expr, column)).then_some(place)
}

/// Whether a range says something of the first part of the index only.
fn is_of_first_part(range: &RangePlan) -> bool {
    match range.equal.len() {
        0 => true,
        1 => range.lower.is_none() && range.upper.is_none() && !range.not_null,
        _ => false,
    }
}

fn reads(expr: &Expr, column: usize) -> bool {
    let mut found = false;
    expr.for_each_column(&mut |position| found |= position == column);
    found
}

/// A comparison of the column with integers, or a disjunction of such.
fn is_exact(condition: &Expr, column: usize) -> bool {
    match &condition.kind {
        ExprKind::Or(branches) => branches.iter().all(|branch| is_comparison(branch, column)),
        _ => is_comparison(condition, column),
    }
}

fn is_comparison(condition: &Expr, column: usize) -> bool {
    let is_column = |expr: &Expr| column_position(expr) == Some(column);
    match &condition.kind {
        ExprKind::Between { operand, low, high, rule: CompareRule::Integer, negated: false } => {
            is_column(operand) && is_integer(low) && is_integer(high)
        }
        ExprKind::Compare { operator, rule: CompareRule::Integer, left, right } => {
            use CompareOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
            matches!(operator, Equal | Less | LessOrEqual | Greater | GreaterOrEqual)
                && (is_column(left) && is_integer(right) || is_integer(left) && is_column(right))
        }
        ExprKind::In { operand, list, negated: false } => {
            let fits = |(value, rules): &(Expr, Vec<CompareRule>)| {
                rules.first() == Some(&CompareRule::Integer) && is_integer(value)
            };
            is_column(operand) && list.iter().all(fits)
        }
        _ => false,
    }
}

/// Whether the value is an integer for certain. A plan is kept for parameters of the same types.
fn is_integer(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Literal(literal) => matches!(literal.value, Value::Int(_) | Value::UInt(_)),
        ExprKind::Parameter(_) => value.result.column_type.kind.is_integer(),
        _ => false,
    }
}
