//! Implicit conversions of values in expressions, with their warnings. NULL is the caller's.

use crate::context::EvalContext;
use crate::expression::{Expr, ExprKind};
use crate::result_type::ResultType;
pub(crate) use types::convert::printable;
use types::number::{SignedMagnitude, parse_double};
use types::{Decimal, SqlError, ValueRef, codes, text};

/// Warns that `bytes` is not wholly a number: a note if only blanks follow.
fn warn_truncated(
    context: &EvalContext,
    kind: &str,
    (bytes, result): (&[u8], &ResultType),
    length: usize,
    overflow: bool,
) -> Result<(), SqlError> {
    let shown = shown_text(bytes, result);
    if length > 0 && !overflow && bytes[length..].iter().all(u8::is_ascii_whitespace) {
        context.note(&codes::TRUNCATED_WRONG_VALUE, &[&kind, &shown]);
        return Ok(());
    }
    context.warn(&codes::TRUNCATED_WRONG_VALUE, &[&kind, &shown])
}

/// Text as messages show it, whatever its character set is.
pub(crate) fn shown_text(bytes: &[u8], result: &ResultType) -> String {
    types::convert::shown_text(bytes, result.collation().charset())
}

/// What a value of ENUM or SET, or a hexadecimal literal, is as a number.
fn member_number(text: &[u8], result: &ResultType) -> Option<u64> {
    if result.is_hex {
        return Some(hex_number(text));
    }
    result.column_type.member_number(text)
}

/// The unsigned integer that the last eight bytes of a hexadecimal literal are.
pub(crate) fn hex_number(bytes: &[u8]) -> u64 {
    let tail = &bytes[bytes.len().saturating_sub(8)..];
    tail.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// What a part of a document counts as where a number is wanted.
enum JsonScalar<'a> {
    /// Of what is neither a text nor written as a number: 1 for true, else 0.
    Number(f64),
    /// A number as it is written, or a text without its quotes.
    Text(&'a [u8]),
}

fn json_scalar(part: &[u8]) -> JsonScalar<'_> {
    match part.first() {
        Some(b'"') => JsonScalar::Text(part[1..].strip_suffix(b"\"").unwrap_or(&part[1..])),
        Some(b'-' | b'0'..=b'9') => JsonScalar::Text(part),
        _ => JsonScalar::Number(f64::from(u8::from(part == b"true"))),
    }
}

/// As DOUBLE.
pub(crate) fn to_double(
    context: &EvalContext,
    value: ValueRef<'_>,
    result: &ResultType,
) -> Result<f64, SqlError> {
    Ok(match value {
        ValueRef::Null => 0.0,
        ValueRef::Int(v) => v as f64,
        // The server forgets the sign type of a variable here.
        ValueRef::UInt(v) if result.is_variable => v as i64 as f64,
        ValueRef::UInt(v) => v as f64,
        ValueRef::Float(v) => f64::from(v),
        ValueRef::Double(v) => v,
        ValueRef::Decimal(v) => v.to_f64(),
        ValueRef::Bytes(bytes) if let Some(number) = member_number(bytes, result) => number as f64,
        ValueRef::Bytes(bytes) if result.is_json_part => match json_scalar(bytes) {
            JsonScalar::Number(number) => number,
            JsonScalar::Text(text) => parse_double(text).value,
        },
        ValueRef::Bytes(bytes) => {
            let parsed = parse_double(bytes);
            let whole = parsed.length == bytes.len() && !bytes.is_empty() && !parsed.overflow;
            if !whole && !result.is_variable {
                let (length, overflow) = (parsed.length, parsed.overflow);
                warn_truncated(context, "DOUBLE", (bytes, result), length, overflow)?;
            }
            parsed.value
        }
        ValueRef::Date(_) | ValueRef::DateTime(_) | ValueRef::Timestamp(_) | ValueRef::Time(_) => {
            temporal_decimal(context, value, result).to_f64()
        }
    })
}

/// As DECIMAL.
pub(crate) fn to_decimal(
    context: &EvalContext,
    value: ValueRef<'_>,
    result: &ResultType,
) -> Result<Decimal, SqlError> {
    Ok(match value {
        ValueRef::Null => Decimal::ZERO,
        ValueRef::Int(v) => Decimal::from(v),
        ValueRef::UInt(v) if result.is_variable => Decimal::from(v as i64),
        ValueRef::UInt(v) => Decimal::from(v),
        ValueRef::Float(v) => double_to_decimal(context, f64::from(v))?,
        ValueRef::Double(v) => double_to_decimal(context, v)?,
        ValueRef::Decimal(v) => v,
        ValueRef::Bytes(bytes) if let Some(number) = member_number(bytes, result) => {
            Decimal::from(number)
        }
        ValueRef::Bytes(bytes) if result.is_json_part => {
            let plain = ResultType { is_json_part: false, ..*result };
            match json_scalar(bytes) {
                JsonScalar::Number(number) => double_to_decimal(context, number)?,
                JsonScalar::Text(text) => to_decimal(context, ValueRef::Bytes(text), &plain)?,
            }
        }
        ValueRef::Bytes(bytes) => {
            let parsed = Decimal::parse(bytes);
            let whole = parsed.length == bytes.len() && parsed.length > 0;
            if parsed.overflow {
                let largest = largest_decimal(context, &parsed.value)?;
                if !result.is_variable {
                    warn_truncated(context, "DECIMAL", (bytes, result), parsed.length, true)?;
                }
                return Ok(largest);
            } else if parsed.length == 0 && result.is_variable {
                context.warn(&codes::BAD_DATA, &[&"", &"DECIMAL"])?;
            } else if !whole && !result.is_variable {
                warn_truncated(context, "DECIMAL", (bytes, result), parsed.length, false)?;
            }
            parsed.value
        }
        ValueRef::Date(_) | ValueRef::DateTime(_) | ValueRef::Timestamp(_) | ValueRef::Time(_) => {
            temporal_decimal(context, value, result)
        }
    })
}

fn double_to_decimal(context: &EvalContext, value: f64) -> Result<Decimal, SqlError> {
    let Some(parsed) = Decimal::from_f64(value) else { return Ok(Decimal::ZERO) };
    match parsed.overflow {
        true => largest_decimal(context, &parsed.value),
        false => Ok(parsed.value),
    }
}

/// More digits before the point than a DECIMAL has; the message does not show the value.
#[cold]
fn largest_decimal(context: &EvalContext, value: &Decimal) -> Result<Decimal, SqlError> {
    context.warn(&codes::DATA_OVERFLOW, &[&"", &"DECIMAL"])?;
    Ok(Decimal::largest(types::decimal::PRECISION_MAX, 0, value.is_negative()))
}

/// A date or time as the number it prints as without punctuation.
fn temporal_decimal(context: &EvalContext, value: ValueRef<'_>, result: &ResultType) -> Decimal {
    let scale = result.column_type.scale.min(6);
    let (number, micros) = match value {
        ValueRef::Date(v) => (i128::from(v.to_number()), 0),
        ValueRef::DateTime(v) => (i128::from(v.to_number()), v.micros()),
        ValueRef::Timestamp(v) => {
            let local = context.settings.time_zone.to_local(v);
            (i128::from(local.to_number()), local.micros())
        }
        ValueRef::Time(v) => (i128::from(v.to_number()), v.micros()),
        _ => (0, 0),
    };
    let negative = matches!(value, ValueRef::Time(v) if v.is_negative());
    let micros = if negative { -i128::from(micros) } else { i128::from(micros) };
    Decimal::new(number * 1_000_000 + micros, 6).truncated(scale)
}

/// As an integer, rounded; wide enough for both 64 bit types.
pub(crate) fn to_integer(
    context: &EvalContext,
    value: ValueRef<'_>,
    result: &ResultType,
) -> Result<i128, SqlError> {
    Ok(match value {
        ValueRef::Null => 0,
        ValueRef::Int(v) => i128::from(v),
        ValueRef::UInt(v) => i128::from(v),
        ValueRef::Float(v) => nearest_integer(f64::from(v)),
        ValueRef::Double(v) => nearest_integer(v),
        ValueRef::Decimal(v) => decimal_to_integer(&v),
        ValueRef::Bytes(bytes) if let Some(number) = member_number(bytes, result) => {
            i128::from(number)
        }
        ValueRef::Bytes(bytes) if result.is_json_part => match json_scalar(bytes) {
            JsonScalar::Number(number) => number as i128,
            JsonScalar::Text(text) => magnitude(types::number::parse_integer(text).value),
        },
        ValueRef::Bytes(bytes) => {
            let parsed = types::number::parse_integer(bytes);
            let whole = parsed.length == bytes.len() && parsed.length > 0 && !parsed.overflow;
            if !whole && !result.is_variable {
                let (length, overflow) = (parsed.length, parsed.overflow);
                warn_truncated(context, "INTEGER", (bytes, result), length, overflow)?;
            }
            magnitude(parsed.value)
        }
        ValueRef::Date(_) | ValueRef::DateTime(_) | ValueRef::Timestamp(_) | ValueRef::Time(_) => {
            decimal_to_integer(&temporal_decimal(context, value, result).truncated(0))
        }
    })
}

/// Rounded, to what 64 bits of either type hold.
fn nearest_integer(value: f64) -> i128 {
    (value.round_ties_even() as i128).clamp(i128::from(i64::MIN), i128::from(u64::MAX))
}

fn magnitude(value: SignedMagnitude) -> i128 {
    let magnitude = i128::from(value.magnitude);
    if value.negative { -magnitude } else { magnitude }
}

/// Rounded to a whole number within what 64 bits of either type hold.
fn decimal_to_integer(value: &Decimal) -> i128 {
    let bound = || if value.is_negative() { i128::from(i64::MIN) } else { i128::from(u64::MAX) };
    value
        .with_scale(0)
        .mantissa()
        .map_or_else(bound, |v| v.clamp(i128::from(i64::MIN), i128::from(u64::MAX)))
}

/// As a 64 bit pattern for bit operators: text counts as a DECIMAL.
pub(crate) fn to_bits(
    context: &EvalContext,
    value: ValueRef<'_>,
    result: &ResultType,
) -> Result<u64, SqlError> {
    let exact = match value {
        ValueRef::Bytes(bytes) if member_number(bytes, result).is_none() => {
            to_decimal(context, value, result)?
        }
        ValueRef::Decimal(_) | ValueRef::Double(_) | ValueRef::Float(_) => {
            to_decimal(context, value, result)?
        }
        // Fractions of seconds are rounded.
        _ if result.column_type.kind.is_temporal() => to_decimal(context, value, result)?,
        _ => return Ok(to_integer(context, value, result)? as u64),
    };
    let (bits, fits) = match exact.is_negative() {
        true => (exact.to_i64().0 as u64, exact.to_i64().1),
        false => exact.to_u64(),
    };
    if !fits {
        let kind = if exact.is_negative() { "INT" } else { "UNSIGNED INT" };
        context.warn(&codes::DATA_OVERFLOW, &[&exact, &kind])?;
    }
    Ok(bits)
}

/// As a 64 bit integer where a function wants a whole number: what is out of its range becomes
/// the nearest one with a warning, and text is read as an integer.
pub(crate) fn to_val_int(
    context: &EvalContext,
    value: ValueRef<'_>,
    source: &Expr,
) -> Result<u64, SqlError> {
    let result = &source.result;
    let double = match value {
        ValueRef::Decimal(exact) => {
            return nearest_bits(context, &exact, result.column_type.unsigned);
        }
        ValueRef::Double(v) => v,
        ValueRef::Float(v) => f64::from(v),
        _ => return Ok(to_integer(context, value, result)? as u64),
    };
    let whole = double.round_ties_even();
    let is_inside = (i64::MIN as f64..i64::MAX as f64).contains(&whole);
    if !is_inside && matches!(source.kind, ExprKind::Column { .. }) {
        let mut shown = Vec::new();
        let column_type = types::ColumnType::double();
        text::write_text(
            ValueRef::Double(double),
            &column_type,
            context.settings.time_zone,
            &mut shown,
        );
        context.warn(&codes::DATA_OVERFLOW, &[&String::from_utf8_lossy(&shown), &"INT"])?;
    }
    Ok(whole as i64 as u64)
}

/// The nearest 64 bit integer, with a warning where that is another number.
pub(crate) fn nearest_bits(
    context: &EvalContext,
    exact: &Decimal,
    unsigned: bool,
) -> Result<u64, SqlError> {
    let (bits, fits) = match unsigned {
        true => exact.to_u64(),
        false => (exact.to_i64().0 as u64, exact.to_i64().1),
    };
    if !fits {
        let kind = if unsigned { "UNSIGNED INT" } else { "INT" };
        context.warn(&codes::DATA_OVERFLOW, &[exact, &kind])?;
    }
    Ok(bits)
}

/// As a truth value.
pub(crate) fn to_truth(
    context: &EvalContext,
    value: ValueRef<'_>,
    result: &ResultType,
) -> Result<bool, SqlError> {
    Ok(match value {
        ValueRef::Int(v) => v != 0,
        ValueRef::UInt(v) => v != 0,
        ValueRef::Decimal(v) => !v.is_zero(),
        ValueRef::Date(v) => !v.is_zero(),
        ValueRef::DateTime(v) => v.0 != 0,
        ValueRef::Time(v) => v.0 != 0,
        ValueRef::Timestamp(v) => v.0 != 0,
        ValueRef::Null => false,
        _ => to_double(context, value, result)? != 0.0,
    })
}

/// As text; text stays where it is, other values are printed into the arena.
pub(crate) fn to_text<'a>(
    context: &'a EvalContext,
    value: ValueRef<'a>,
    result: &ResultType,
) -> &'a [u8] {
    if let ValueRef::Bytes(bytes) = value {
        return bytes;
    }
    let mut out = Vec::with_capacity(32);
    write_text(context, value, result, &mut out);
    context.keep(&out)
}

/// Appends a value as text, a DECIMAL with the digits its type fixes.
pub(crate) fn write_text(
    context: &EvalContext,
    value: ValueRef<'_>,
    result: &ResultType,
    out: &mut Vec<u8>,
) {
    let value = match value {
        ValueRef::Decimal(v) if !result.is_variable => {
            ValueRef::Decimal(v.with_scale(result.column_type.scale))
        }
        other => other,
    };
    text::write_text(value, &result.column_type, context.settings.time_zone, out);
}
