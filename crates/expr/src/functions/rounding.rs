//! ABS, ROUND, TRUNCATE, CEIL, FLOOR.

use super::typing::constant_integer;
use super::{Frame, Function, any_nullable};
use crate::arithmetic::{integer_result, out_of_range};
use crate::builder::{Builder, Domain, numbers_of_hex};
use crate::coerce;
use crate::expression::Expr;
use crate::result_type::ResultType;
use types::column_type::SCALE_NOT_FIXED;
use types::{ColumnType, Decimal, SqlError, TypeKind, ValueRef};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("abs", 1, 1, resolve_abs, abs),
    Function::new("round", 1, 2, resolve_round, round),
    Function::new("truncate", 2, 2, resolve_truncate, truncate),
    Function::new("ceil", 1, 1, resolve_whole, ceil),
    Function::new("ceiling", 1, 1, resolve_whole, ceil),
    Function::new("floor", 1, 1, resolve_whole, floor),
];

type Resolved = Result<ResultType, SqlError>;

fn resolve_abs(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    numbers_of_hex(arguments);
    let operand = arguments[0].result.of_expression();
    Ok(match Domain::of(&operand) {
        Domain::Integer if operand.column_type.kind.is_integer() => {
            let length = operand.text_length();
            let unsigned = operand.column_type.unsigned;
            let mut result = ResultType::integer_of_length(length, unsigned, operand.nullable);
            result.column_type.precision = operand.column_type.precision;
            result
        }
        Domain::Decimal if operand.column_type.kind == TypeKind::Decimal => operand,
        Domain::Double => ResultType::double_of_scale(double_scale(&operand), operand.nullable),
        _ => {
            let (precision, scale) =
                (operand.decimal_precision(), u32::from(operand.decimal_scale()));
            ResultType::decimal(precision, scale, false, operand.nullable)
        }
    })
}

/// Digits after the point that an operand in the domain of DOUBLE fixes; none for NULL.
fn double_scale(operand: &ResultType) -> u8 {
    match operand.column_type.kind {
        TypeKind::Null => 0,
        kind if kind.is_floating() => operand.column_type.scale,
        _ => SCALE_NOT_FIXED,
    }
}

fn abs(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let value = frame.value(0)?;
    let from = frame.result(0);
    Ok(match (Domain::of(&frame.expr.result), value) {
        (_, ValueRef::Null) => ValueRef::Null,
        (Domain::Integer, ValueRef::UInt(_)) => value,
        (Domain::Integer, ValueRef::Int(v)) => match v.checked_abs() {
            Some(v) if frame.expr.result.column_type.unsigned => ValueRef::UInt(v as u64),
            Some(v) => ValueRef::Int(v),
            None => return Err(out_of_range("BIGINT", frame.expr, frame.context)),
        },
        (Domain::Double, _) => {
            ValueRef::Double(coerce::to_double(frame.context, value, from)?.abs())
        }
        _ => ValueRef::Decimal(coerce::to_decimal(frame.context, value, from)?.abs()),
    })
}

/// What ROUND and TRUNCATE are asked for.
enum Places {
    /// A constant.
    Known(i64),
    /// Known only when it runs, or NULL.
    Unknown,
}

fn places_of(arguments: &[Expr]) -> Places {
    match arguments.get(1) {
        None => Places::Known(0),
        some => constant_integer(some).map_or(Places::Unknown, Places::Known),
    }
}

fn resolve_round(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    numbers_of_hex(arguments);
    Ok(rounded_type(arguments, false))
}

fn resolve_truncate(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    numbers_of_hex(arguments);
    Ok(rounded_type(arguments, true))
}

fn rounded_type(arguments: &[Expr], cut: bool) -> ResultType {
    let operand = arguments[0].result.of_expression();
    let nullable = any_nullable(arguments);
    let domain = Domain::of(&operand);
    let Places::Known(places) = places_of(arguments) else {
        return match domain {
            Domain::Double => ResultType::double(nullable),
            _ => operand.with_nullable(nullable),
        };
    };
    match domain {
        Domain::Double => {
            let scale = places.clamp(0, i64::from(SCALE_NOT_FIXED)) as u8;
            ResultType::double_of_scale(scale, nullable)
        }
        Domain::Integer if places >= 0 || cut => operand.with_nullable(nullable),
        Domain::Integer => {
            let (length, unsigned) = (operand.text_length() + 1, operand.column_type.unsigned);
            if length > 19 {
                let mut result = ResultType::decimal(length - 1, 0, unsigned, nullable);
                result.column_type.length = length;
                return result;
            }
            ResultType::integer_of_length(length, unsigned, nullable)
        }
        Domain::Decimal => {
            let own_scale = u32::from(operand.decimal_scale());
            let limit = i64::from(types::decimal::SCALE_MAX);
            let scale = places.clamp(0, limit) as u32;
            let carry = u32::from(!cut && scale < own_scale);
            let precision = operand.integer_digits() + carry + scale;
            ResultType::decimal(precision, scale, operand.column_type.unsigned, nullable)
        }
    }
}

fn round(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    rounded(&frame, false)
}

fn truncate(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    rounded(&frame, true)
}

fn rounded<'a>(frame: &Frame<'a>, cut: bool) -> Result<ValueRef<'a>, SqlError> {
    let value = frame.value(0)?;
    let places = if frame.count() > 1 { frame.integer(1)? } else { Some(0) };
    let (false, Some(places)) = (value.is_null(), places) else { return Ok(ValueRef::Null) };
    let from = frame.result(0);
    match Domain::of(&frame.expr.result) {
        Domain::Double => {
            let number = coerce::to_double(frame.context, value, from)?;
            Ok(ValueRef::Double(round_double(number, places, cut)))
        }
        Domain::Integer if places >= 0 => Ok(value),
        Domain::Integer => {
            let wide = coerce::to_integer(frame.context, value, from)?;
            integer_result(frame.expr, round_integer(wide, places, cut), frame.context)
        }
        Domain::Decimal => {
            let number = coerce::to_decimal(frame.context, value, from)?;
            Ok(ValueRef::Decimal(round_decimal(&number, places, cut, frame)))
        }
    }
}

/// Rounds a double as the server does: scaled, rounded to even, scaled back.
fn round_double(value: f64, places: i64, cut: bool) -> f64 {
    let unit = 10f64.powi(places.unsigned_abs().min(400) as i32);
    let scaled = if places < 0 { value / unit } else { value * unit };
    if places >= 0 && !scaled.is_finite() {
        return value;
    }
    let whole = if cut { scaled.trunc() } else { scaled.round_ties_even() };
    match (places < 0, unit.is_finite()) {
        (true, false) => 0.0,
        (true, true) => whole * unit,
        (false, _) => whole / unit,
    }
}

fn round_integer(value: i128, places: i64, cut: bool) -> i128 {
    if places <= -21 {
        return 0;
    }
    let unit = 10i128.pow(places.unsigned_abs() as u32);
    let rest = value % unit;
    let base = value - rest;
    if cut || rest.abs() * 2 < unit { base } else { base + unit * value.signum() }
}

fn round_decimal(number: &Decimal, places: i64, cut: bool, frame: &Frame<'_>) -> Decimal {
    if places < 0 {
        return number.rounded_left(places.unsigned_abs().min(100) as u32, cut);
    }
    let limit = i64::from(frame.expr.result.column_type.scale);
    let scale = places.min(limit) as u8;
    if cut { number.truncated(scale) } else { number.with_scale(scale) }
}

fn resolve_whole(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    numbers_of_hex(arguments);
    let operand = arguments[0].result.of_expression();
    if operand.column_type.kind == TypeKind::Date {
        let mut column_type = ColumnType::integer(TypeKind::Int, true);
        column_type.length = 8;
        return Ok(ResultType::of(column_type, operand.nullable));
    }
    Ok(match Domain::of(&operand) {
        Domain::Double => ResultType::double_of_scale(0, operand.nullable),
        Domain::Integer => operand,
        Domain::Decimal => {
            let digits = operand.integer_digits() + 1;
            let unsigned = operand.column_type.unsigned;
            let length = digits + u32::from(!unsigned);
            if length >= 20 {
                return Ok(ResultType::decimal(digits, 0, unsigned, operand.nullable));
            }
            let kind = if length > 10 { TypeKind::BigInt } else { TypeKind::Int };
            let mut column_type = ColumnType::integer(kind, unsigned);
            column_type.length = length;
            column_type.precision = digits as u8;
            ResultType::of(column_type, operand.nullable)
        }
    })
}

fn ceil(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    whole(&frame, f64::ceil, Decimal::ceiling)
}

fn floor(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    whole(&frame, f64::floor, Decimal::floor)
}

fn whole<'a>(
    frame: &Frame<'a>,
    of_double: fn(f64) -> f64,
    of_decimal: fn(&Decimal) -> Decimal,
) -> Result<ValueRef<'a>, SqlError> {
    let value = frame.value(0)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let from = frame.result(0);
    match (Domain::of(from), Domain::of(&frame.expr.result)) {
        (Domain::Integer, _) if matches!(value, ValueRef::Date(_)) => {
            Ok(ValueRef::UInt(coerce::to_bits(frame.context, value, from)?))
        }
        (Domain::Integer, _) => Ok(value),
        (Domain::Double, _) => {
            let number = coerce::to_double(frame.context, value, from)?;
            Ok(ValueRef::Double(of_double(number)))
        }
        (_, result) => {
            let number = of_decimal(&coerce::to_decimal(frame.context, value, from)?);
            if result == Domain::Decimal {
                return Ok(ValueRef::Decimal(number));
            }
            integer_result(frame.expr, number.mantissa().unwrap_or(i128::MAX), frame.context)
        }
    }
}
