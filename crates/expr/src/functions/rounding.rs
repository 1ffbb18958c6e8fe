//! ABS, ROUND, TRUNCATE, CEIL, FLOOR.

use super::rounding_temporal::{self, Direction};
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

/// Whether it is a number that is kept as something else: a BIT, a member of an ENUM, or a SET.
fn is_coded(operand: &Expr) -> bool {
    matches!(operand.result.column_type.kind, TypeKind::Bit | TypeKind::Enum | TypeKind::Set)
}

/// The type of an operand, a BIT, ENUM or SET as the number that it is.
fn operand_type(operand: &Expr) -> ResultType {
    let own = operand.result.of_expression();
    if let TypeKind::Enum | TypeKind::Set = operand.result.column_type.kind {
        return ResultType::integer_of_length(MEMBER_DIGITS, true, own.nullable);
    }
    if own.column_type.kind != TypeKind::Bit {
        return own;
    }
    let bits = own.column_type.length.clamp(1, 64);
    let digits = ((1u128 << bits) - 1).ilog10() + 1;
    ResultType::integer_of_length(digits, true, own.nullable)
}

/// Digits of a member's number as the server describes it.
const MEMBER_DIGITS: u32 = 5;

/// A value in the domain of integers, what is coded as the number that it is.
fn integer_value<'a>(frame: &Frame<'a>, value: ValueRef<'a>) -> Result<ValueRef<'a>, SqlError> {
    match value {
        ValueRef::Bytes(_) => {
            Ok(ValueRef::UInt(coerce::to_bits(frame.context, value, frame.result(0))?))
        }
        _ => Ok(value),
    }
}

fn resolve_abs(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    numbers_of_hex(arguments);
    let operand = operand_type(&arguments[0]);
    if let TypeKind::Enum | TypeKind::Set = arguments[0].result.column_type.kind {
        let mut result = ResultType::bigint(false, operand.nullable);
        result.column_type.length = arguments[0].result.column_type.max_bytes() as u32;
        return Ok(result);
    }
    let unsigned = operand.column_type.unsigned;
    Ok(match Domain::of(&operand) {
        Domain::Integer if !operand.column_type.kind.is_temporal() || is_year(&operand) => {
            let length = arguments[0].result.signed_characters().min(255) as u32;
            ResultType::integer_of_length(length, unsigned, operand.nullable)
        }
        Domain::Decimal if operand.column_type.kind == TypeKind::Decimal => operand,
        Domain::Double => {
            let scale = arguments[0].result.decimals();
            signed_as(unsigned, ResultType::double_of_scale(scale, operand.nullable))
        }
        _ => {
            let (precision, scale) =
                (operand.decimal_precision(), u32::from(operand.decimal_scale()));
            ResultType::decimal(precision, scale, unsigned, operand.nullable)
        }
    })
}

fn is_year(operand: &ResultType) -> bool {
    operand.column_type.kind == TypeKind::Year
}

/// A DOUBLE made of UNSIGNED operands is UNSIGNED, too.
fn signed_as(unsigned: bool, mut result: ResultType) -> ResultType {
    result.column_type.unsigned = unsigned;
    result
}

fn abs(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let value = frame.value(0)?;
    let from = frame.result(0);
    Ok(match (Domain::of(&frame.expr.result), value) {
        (_, ValueRef::Null) => ValueRef::Null,
        (Domain::Integer, ValueRef::Bytes(_)) => integer_value(&frame, value)?,
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
    /// NULL.
    Null,
    /// Known only when it runs.
    Unknown,
}

fn places_of(builder: &Builder<'_>, arguments: &[Expr]) -> Places {
    let Some(places) = arguments.get(1) else { return Places::Known(0) };
    if builder.settled_value(places).is_some_and(|value| value.is_null()) {
        return Places::Null;
    }
    constant_integer(builder, Some(places)).map_or(Places::Unknown, Places::Known)
}

fn resolve_round(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    numbers_of_hex(arguments);
    Ok(rounded_type(builder, arguments, Direction::Nearest))
}

fn resolve_truncate(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    numbers_of_hex(arguments);
    Ok(rounded_type(builder, arguments, Direction::Cut))
}

fn rounded_type(builder: &Builder<'_>, arguments: &[Expr], direction: Direction) -> ResultType {
    let operand = operand_type(&arguments[0]);
    let nullable = any_nullable(arguments);
    let unsigned = operand.column_type.unsigned;
    let places = places_of(builder, arguments);
    let known = match places {
        Places::Known(places) => Some(places),
        Places::Null | Places::Unknown => None,
    };
    let any = ResultType { nullable, ..operand };
    if let Some(result) = rounding_temporal::result_of(&any, known, direction) {
        return result;
    }
    let (domain, cut) = (Domain::of(&operand), direction == Direction::Cut);
    let Some(places) = known else {
        return match (domain, places) {
            (Domain::Double, _) | (Domain::Decimal, Places::Null) => {
                signed_as(unsigned, ResultType::double(nullable))
            }
            _ if is_year(&operand) => ResultType::integer_of_length(4, true, nullable),
            _ => any,
        };
    };
    match domain {
        Domain::Double => {
            let scale = places.clamp(0, i64::from(SCALE_NOT_FIXED)) as u8;
            signed_as(unsigned, ResultType::double_of_scale(scale, nullable))
        }
        Domain::Integer if is_year(&operand) => ResultType::integer_of_length(4, true, nullable),
        Domain::Integer if is_coded(&arguments[0]) => any,
        Domain::Integer if places >= 0 || cut => {
            // Also of a literal one character is the sign's.
            let mut result = any;
            let own = &mut result.column_type;
            if own.kind.is_integer() && arguments[0].result.column_type.zerofill {
                own.length = ColumnType::integer(own.kind, unsigned).length;
            }
            if result.is_date_part {
                result.column_type.length += 1;
                result.is_date_part = false;
            }
            let digits = result.text_length().saturating_sub(u32::from(!unsigned));
            result.column_type.precision = digits.clamp(1, 20) as u8;
            result
        }
        Domain::Integer => {
            let length = arguments[0].result.signed_characters().min(254) as u32 + 1;
            if operand.column_type.kind == TypeKind::BigInt {
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
            ResultType::decimal(precision, scale, unsigned, nullable)
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
    if is_moment(&frame.expr.result) {
        let direction = if cut { Direction::Cut } else { Direction::Nearest };
        return rounding_temporal::rounded(frame, value, places, direction);
    }
    match Domain::of(&frame.expr.result) {
        Domain::Double => {
            let number = coerce::to_double(frame.context, value, from)?;
            Ok(ValueRef::Double(round_double(number, places, cut)))
        }
        Domain::Integer if places >= 0 && !matches!(value, ValueRef::Date(_)) => {
            integer_value(frame, value)
        }
        Domain::Integer => {
            let wide = coerce::to_integer(frame.context, value, from)?;
            integer_result(frame.expr, round_integer(wide, places.min(0), cut), frame.context)
        }
        Domain::Decimal => {
            let number = coerce::to_decimal(frame.context, value, from)?;
            Ok(ValueRef::Decimal(round_decimal(&number, places, cut, frame)))
        }
    }
}

/// Rounds a double as the server does: scaled, rounded to even, scaled back.
pub(super) fn round_double(value: f64, places: i64, cut: bool) -> f64 {
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
    let kept = if cut { number.truncated(scale) } else { *number };
    kept.with_scale(scale)
}

fn is_moment(result: &ResultType) -> bool {
    matches!(result.column_type.kind, TypeKind::Time | TypeKind::DateTime)
}

fn resolve_whole(_: &Builder<'_>, function: &'static Function, arguments: &mut [Expr]) -> Resolved {
    numbers_of_hex(arguments);
    let operand = operand_type(&arguments[0]);
    if let Some(result) = rounding_temporal::result_of(&operand, Some(0), Direction::Up) {
        return Ok(result);
    }
    Ok(match Domain::of(&operand) {
        Domain::Double => ResultType::double_of_scale(0, operand.nullable),
        Domain::Integer if is_year(&operand) => {
            ResultType::integer_of_length(4, true, operand.nullable)
        }
        Domain::Integer => operand.with_digits_of_length(),
        Domain::Decimal => {
            let unsigned = operand.column_type.unsigned;
            // Away from zero there may be a further digit.
            let carries = operand.decimal_scale() > 0 && !(unsigned && function.name() == "floor");
            let digits = operand.integer_digits() + u32::from(carries);
            // Without a sign, too, MariaDB has BIGINT from ten digits on, DECIMAL from nineteen.
            if digits > 18 {
                return Ok(ResultType::decimal(digits, 0, unsigned, operand.nullable));
            }
            let kind = if digits > 9 { TypeKind::BigInt } else { TypeKind::Int };
            let mut column_type = ColumnType::integer(kind, unsigned);
            column_type.length = digits + u32::from(!unsigned);
            column_type.precision = digits as u8;
            ResultType::of(column_type, operand.nullable)
        }
    })
}

fn ceil(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    whole(&frame, Direction::Up, f64::ceil, Decimal::ceiling)
}

fn floor(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    whole(&frame, Direction::Down, f64::floor, Decimal::floor)
}

fn whole<'a>(
    frame: &Frame<'a>,
    direction: Direction,
    of_double: fn(f64) -> f64,
    of_decimal: fn(&Decimal) -> Decimal,
) -> Result<ValueRef<'a>, SqlError> {
    let value = frame.value(0)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let from = frame.result(0);
    if is_moment(&frame.expr.result) {
        return rounding_temporal::rounded(frame, value, 0, direction);
    }
    match (Domain::of(from), Domain::of(&frame.expr.result)) {
        (Domain::Integer, _) if matches!(value, ValueRef::Date(_)) => {
            Ok(ValueRef::UInt(coerce::to_bits(frame.context, value, from)?))
        }
        (Domain::Integer, _) => integer_value(frame, value),
        (Domain::Double, _) => {
            let number = coerce::to_double(frame.context, value, from)?;
            Ok(ValueRef::Double(of_double(number)))
        }
        (_, result) => {
            let number = of_decimal(&coerce::to_decimal(frame.context, value, from)?);
            if result == Domain::Decimal {
                return Ok(ValueRef::Decimal(number));
            }
            let unsigned = frame.expr.result.column_type.unsigned;
            let bits = coerce::nearest_bits(frame.context, &number, unsigned)?;
            Ok(if unsigned { ValueRef::UInt(bits) } else { ValueRef::Int(bits as i64) })
        }
    }
}
