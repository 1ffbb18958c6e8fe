//! Dates as they are sent and stored, where one is chosen among several: IF, CASE, IFNULL,
//! COALESCE, NULLIF.
//!
//! 1. What the session's rules do not allow (NO_ZERO_DATE, NO_ZERO_IN_DATE) counts as NULL among
//!    the alternatives, without a word, also where it is a column's.
//! 2. That holds for what is sent or stored; what another function reads is the date.

use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::functions::control::convert;
use crate::temporal;
use types::{SqlError, ValueRef};

/// A date as it is sent or stored: where it is one of several, those that the session's rules do
/// not allow are NULL.
#[inline]
pub(crate) fn allowed<'a>(
    expr: &'a Expr,
    value: ValueRef<'a>,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let is_computed = matches!(expr.kind, ExprKind::Call { .. } | ExprKind::Case { .. });
    if !is_computed || is_allowed(value, context) {
        return Ok(value);
    }
    allowed_part(expr, value, context, row)
}

/// Whether the session's rules allow a value, if it is a date.
fn is_allowed(value: ValueRef<'_>, context: &EvalContext) -> bool {
    let (date, is_zero) = match value {
        ValueRef::Date(date) => (date, date.at_midnight().0 == 0),
        ValueRef::DateTime(moment) => (moment.date(), moment.0 == 0),
        _ => return true,
    };
    temporal::session_rules(context).allow(date, is_zero)
}

/// What is left of a date that the session's rules do not allow, which an expression gave.
#[cold]
fn allowed_part<'a>(
    expr: &'a Expr,
    value: ValueRef<'a>,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let part = |part: &'a Expr| -> Result<ValueRef<'a>, SqlError> {
        let value = part.eval(context, row)?;
        let left = match is_allowed(value, context) {
            true => value,
            false => allowed_part(part, value, context, row)?,
        };
        convert(expr, part, left, context)
    };
    match &expr.kind {
        ExprKind::Column { .. } => Ok(ValueRef::Null),
        ExprKind::Case { .. } => expr.chosen(context, row)?.map_or(Ok(ValueRef::Null), part),
        ExprKind::Call { function, arguments } => match function.name() {
            "if" => {
                let is_true = arguments[0].truth(context, row)? == Some(true);
                part(&arguments[if is_true { 1 } else { 2 }])
            }
            "nullif" => Ok(ValueRef::Null),
            "ifnull" | "nvl" | "coalesce" => {
                for argument in arguments {
                    let value = part(argument)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(ValueRef::Null)
            }
            _ => Ok(value),
        },
        _ => Ok(value),
    }
}
