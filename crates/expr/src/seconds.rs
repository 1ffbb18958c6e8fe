//! Values as numbers of seconds.

use crate::coerce;
use crate::context::EvalContext;
use crate::expression::Expr;
use crate::result_type::ResultType;
use crate::temporal::{FAR, seconds_of, shown};
use types::{SqlError, TypeKind, ValueRef, codes};

/// A number of seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds {
    /// Below zero.
    pub negative: bool,
    /// Whole part.
    pub whole: u64,
    /// Microseconds.
    pub micros: u32,
    /// The value was larger than the limit.
    pub truncated: bool,
}

/// A number as its type has it: a quotient has no more digits behind the point.
fn cut_to_type<'a>(value: ValueRef<'a>, result: &ResultType) -> ValueRef<'a> {
    let scale = result.column_type.scale;
    match value {
        ValueRef::Float(v) => ValueRef::Double(v.into()),
        ValueRef::Decimal(v)
            if v.scale() > scale && result.column_type.kind == TypeKind::Decimal =>
        {
            ValueRef::Decimal(v.truncated(scale.min(6)).with_scale(6))
        }
        other => other,
    }
}

/// A DOUBLE of so many digits after the point without those behind them; `None` if it is too large
/// to have any.
fn digits_shown(value: f64, scale: u8) -> Option<ValueRef<'static>> {
    let unit = 10f64.powi(i32::from(scale));
    let whole = value.trunc();
    let digits = ((value - whole) * unit).trunc() / unit;
    let exact = types::Decimal::from_f64(whole + digits).filter(|exact| !exact.overflow)?;
    Some(ValueRef::Decimal(exact.value.with_scale(scale).with_scale(6)))
}

/// A value as seconds, at most `limit`, which a warning calls `word`.
pub(crate) fn seconds(
    context: &EvalContext,
    value: ValueRef<'_>,
    source: &Expr,
    word: &str,
    limit: u64,
) -> Result<Option<Seconds>, SqlError> {
    let result = &source.result;
    let kind = result.column_type.kind;
    let (given, value) = (value, cut_to_type(value, result));
    let number = match value {
        ValueRef::Null => return Ok(None),
        ValueRef::Double(v) if result.column_type.scale < 6 => {
            digits_shown(v, result.column_type.scale).unwrap_or(value)
        }
        ValueRef::Double(_) | ValueRef::Float(_) | ValueRef::Int(_) | ValueRef::UInt(_) => value,
        ValueRef::Decimal(v) if result.decimal_scale() == 0 && !result.is_string() => {
            let number = v.with_scale(0).mantissa();
            let bound = if v.is_negative() { i64::MIN } else { i64::MAX };
            match number.map(i64::try_from) {
                Some(Ok(number)) => ValueRef::Int(number),
                Some(Err(_))
                    if result.column_type.unsigned
                        && number.is_some_and(|n| u64::try_from(n).is_ok()) =>
                {
                    ValueRef::Decimal(v)
                }
                _ if result.column_type.unsigned && !v.is_negative() => {
                    context.warn(&codes::DATA_OVERFLOW, &[&v, &"UNSIGNED INT"])?;
                    ValueRef::UInt(u64::MAX)
                }
                _ => {
                    context.warn(&codes::DATA_OVERFLOW, &[&v, &"INT"])?;
                    ValueRef::Int(bound)
                }
            }
        }
        // Text that has no digits after the point by its type, such as a CAST's, is a whole number.
        ValueRef::Bytes(_)
            if source.is_hex_literal()
                || kind == TypeKind::Bit
                || (result.is_string() && result.decimals() == 0) =>
        {
            match coerce::to_integer(context, value, result)? {
                wide if wide < 0 => ValueRef::Int(wide as i64),
                wide => ValueRef::UInt(wide as u64),
            }
        }
        _ => ValueRef::Decimal(coerce::to_decimal(context, value, result)?),
    };
    let (below, whole, micros) = seconds_of(number).unwrap_or_default();
    // What is below zero is so, too, by digits that are cut off.
    let negative = below || matches!(given, ValueRef::Decimal(v) if v.is_negative());
    let is_far = match number {
        ValueRef::Double(v) => v.abs() > FAR as f64,
        ValueRef::Float(v) => f64::from(v).abs() > FAR as f64,
        ValueRef::Decimal(v) => v.integer_digits() > 18,
        _ => false,
    };
    let truncated = whole > limit || is_far;
    if truncated {
        let shown = shown(context, told(given, value, number, micros, source));
        context.warn(&codes::TRUNCATED_WRONG_VALUE, &[&word, &shown])?;
    }
    Ok(Some(Seconds { negative, whole: whole.min(limit), micros, truncated }))
}

/// A number of seconds as a warning tells it: a DOUBLE as it is, or as a whole number where its
/// type has no other, a quotient with all its digits, a date with all digits of its seconds, or
/// none.
fn told<'a>(
    given: ValueRef<'a>,
    value: ValueRef<'a>,
    number: ValueRef<'a>,
    micros: u32,
    source: &Expr,
) -> ValueRef<'a> {
    let result = &source.result;
    match (value, number) {
        // Beyond its range it is the end of that.
        (ValueRef::Double(v), _) if result.decimals() == 0 => {
            ValueRef::Int(v.round_ties_even() as i64)
        }
        (ValueRef::Double(_), _) => value,
        (ValueRef::Decimal(_), _)
            if matches!(given, ValueRef::Decimal(_)) && result.decimals() > 0 =>
        {
            given
        }
        (_, ValueRef::Decimal(exact)) if crate::temporal::is_temporal(value) => {
            ValueRef::Decimal(exact.with_scale(if micros > 0 { 6 } else { 0 }))
        }
        _ => number,
    }
}
