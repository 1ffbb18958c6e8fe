//! Numbers as functions read them where a value's text says another one.
//!
//! 1. GREATEST and LEAST of texts compare numbers where a number is asked for, each of the kind
//!    that is asked for.
//! 2. What is added to a date or time that is a text makes a text; as a number it is the date's or
//!    time's: its digits without the signs between them. As a whole number it is cut, as dates are.
//! 3. A DOUBLE of a user variable is cut where a whole number is asked for; others are rounded.

use super::{Function, Nature, frame::Frame, resolve_as_first};
use crate::coerce;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use std::cmp::Ordering;
use types::{Decimal, SqlError, TypeKind, ValueRef};

/// The number of a text that is a date or time (2). No name finds it, and it is not printed.
pub(crate) static MOMENT_NUMBER: Function =
    Function::new("", 1, 1, resolve_as_first, moment_number);

/// Whether it is GREATEST or LEAST of texts.
pub(crate) fn is_text_extreme(expr: &Expr) -> bool {
    expr.result.is_string() && expr.nature() == Nature::Extreme
}

/// Whether it is a text that something was added to as to a date or time.
pub(crate) fn is_moment_text(expr: &Expr) -> bool {
    let is_sum = matches!(expr.kind, ExprKind::DateArithmetic { .. })
        || matches!(expr.nature(), Nature::LaterMoment | Nature::EarlierMoment);
    is_sum && expr.result.is_string()
}

/// As a whole number, rounded unless it is of a variable; `None` for NULL.
pub(crate) fn whole(
    expr: &Expr,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<i128>, SqlError> {
    read(expr, context, row, &|value, of| whole_of(value, of, context))
}

fn whole_of(value: ValueRef<'_>, expr: &Expr, context: &EvalContext) -> Result<i128, SqlError> {
    Ok(match value {
        ValueRef::Decimal(number) if is_moment_text(expr) => {
            i128::from(number.truncated(0).to_i64().0)
        }
        ValueRef::Decimal(_) => {
            let bits = coerce::to_val_int(context, value, expr)?;
            let unsigned = expr.result.column_type.unsigned;
            if unsigned { i128::from(bits) } else { i128::from(bits as i64) }
        }
        ValueRef::Double(_) if matches!(expr.kind, ExprKind::Column { .. }) => {
            i128::from(coerce::to_val_int(context, value, expr)? as i64)
        }
        ValueRef::Double(number) if expr.result.is_variable => {
            coerce::to_integer(context, ValueRef::Double(number.trunc()), &expr.result)?
        }
        _ => coerce::to_integer(context, value, &expr.result)?,
    })
}

/// As DOUBLE; `None` for NULL.
pub(crate) fn double(
    expr: &Expr,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<f64>, SqlError> {
    read(expr, context, row, &|value, of| coerce::to_double(context, value, &of.result))
}

/// As DECIMAL; `None` for NULL.
pub(crate) fn decimal(
    expr: &Expr,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<Decimal>, SqlError> {
    read(expr, context, row, &|value, of| coerce::to_decimal(context, value, &of.result))
}

/// How a value of an expression is converted to a number of one kind.
type Convert<'c, T> = &'c dyn Fn(ValueRef<'_>, &Expr) -> Result<T, SqlError>;

/// The number that an expression is, or of GREATEST and LEAST of texts the one that is chosen.
fn read<T: PartialOrd>(
    expr: &Expr,
    context: &EvalContext,
    row: &dyn Columns,
    convert: Convert<'_, T>,
) -> Result<Option<T>, SqlError> {
    if is_text_extreme(expr) {
        return extreme(expr, |operand| read(operand, context, row, convert));
    }
    match value(expr, context, row)? {
        ValueRef::Null => Ok(None),
        value => convert(value, expr).map(Some),
    }
}

/// The value, a DECIMAL where a text stands for a number.
pub(crate) fn value<'a>(
    expr: &'a Expr,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    if is_text_extreme(expr) {
        return Ok(decimal(expr, context, row)?.map_or(ValueRef::Null, ValueRef::Decimal));
    }
    let value = expr.eval(context, row)?;
    Ok(match value {
        ValueRef::Bytes(text) if is_moment_text(expr) => ValueRef::Decimal(digits_of(text)),
        _ => value,
    })
}

/// The greatest or least number of the operands; NULL if one is.
fn extreme<T: PartialOrd>(
    expr: &Expr,
    read: impl Fn(&Expr) -> Result<Option<T>, SqlError>,
) -> Result<Option<T>, SqlError> {
    let ExprKind::Call { function, arguments } = &expr.kind else { return Ok(None) };
    let wanted = if function.name() == "greatest" { Ordering::Greater } else { Ordering::Less };
    let mut best = None;
    for operand in arguments {
        let Some(number) = read(operand)? else { return Ok(None) };
        if best.as_ref().is_none_or(|best| number.partial_cmp(best) == Some(wanted)) {
            best = Some(number);
        }
    }
    Ok(best)
}

fn moment_number(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let number = match frame.value(0)? {
        ValueRef::Bytes(text) => digits_of(text),
        other => return Ok(other),
    };
    Ok(match frame.expr.result.column_type.kind {
        TypeKind::Double => ValueRef::Double(number.to_f64()),
        _ => ValueRef::Decimal(number),
    })
}

/// The number of a date or time: `-10:11:12.5` is -101112.5.
fn digits_of(text: &[u8]) -> Decimal {
    let sign = text.iter().take(1).filter(|byte| **byte == b'-');
    let digits = text.iter().filter(|byte| byte.is_ascii_digit() || **byte == b'.');
    let number: Vec<u8> = sign.chain(digits).copied().collect();
    Decimal::parse(&number).value
}
