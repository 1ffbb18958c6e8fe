//! Bit operators and the sign.

use super::{Frame, Function, Nature, any_nullable};
use crate::arithmetic::out_of_range;
use crate::builder::{Builder, Domain};
use crate::coerce;
use crate::expression::Expr;
use crate::result_type::ResultType;
use types::{Decimal, SqlError, ValueRef};

pub(crate) static NEGATE: Function = Function::new("-", 1, 1, resolve_negate, negate);
pub(crate) static BIT_NOT: Function = Function::new("~", 1, 1, resolve_bits, bit_not);
pub(crate) static BIT_AND: Function = Function::new("&", 2, 2, resolve_bits, bit_and);
pub(crate) static BIT_OR: Function = Function::new("|", 2, 2, resolve_bits, bit_or);
pub(crate) static BIT_XOR: Function = Function::new("^", 2, 2, resolve_bits, bit_xor);
pub(crate) static SHIFT_LEFT: Function = Function::new("<<", 2, 2, resolve_bits, shift_left);
pub(crate) static SHIFT_RIGHT: Function = Function::new(">>", 2, 2, resolve_bits, shift_right);

/// The number of a value of ENUM or SET, by which it is ordered.
pub(crate) static MEMBER_NUMBER: Function = Function::new("0 + ", 1, 1, resolve_bits, member);

fn member(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(match frame.value(0)? {
        ValueRef::Bytes(text) => {
            ValueRef::UInt(frame.result(0).column_type.member_number(text).unwrap_or(0))
        }
        _ => ValueRef::Null,
    })
}

fn resolve_bits(
    _: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    Ok(ResultType::integer_of_length(21, true, any_nullable(arguments)))
}

fn side(frame: &Frame<'_>, index: usize) -> Result<Option<u64>, SqlError> {
    match frame.value(index)? {
        ValueRef::Null => Ok(None),
        value => coerce::to_bits(frame.context, value, frame.result(index)).map(Some),
    }
}

/// Both sides, the second only if the first is not NULL.
fn lazy_pair(frame: &Frame<'_>) -> Result<Option<(u64, u64)>, SqlError> {
    let Some(a) = side(frame, 0)? else { return Ok(None) };
    Ok(side(frame, 1)?.map(|b| (a, b)))
}

/// Both sides: each is converted, with its warnings, whichever of them is NULL.
fn pair(frame: &Frame<'_>) -> Result<Option<(u64, u64)>, SqlError> {
    let (a, b) = (side(frame, 0)?, side(frame, 1)?);
    Ok(a.zip(b))
}

fn with_pair<'a>(
    pair: Option<(u64, u64)>,
    operation: fn(u64, u64) -> u64,
) -> Result<ValueRef<'a>, SqlError> {
    Ok(pair.map_or(ValueRef::Null, |(a, b)| ValueRef::UInt(operation(a, b))))
}

fn bit_and(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    with_pair(lazy_pair(&frame)?, |a, b| a & b)
}

fn bit_or(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    with_pair(lazy_pair(&frame)?, |a, b| a | b)
}

fn bit_xor(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    with_pair(pair(&frame)?, |a, b| a ^ b)
}

/// What is shifted, and by how much: a whole number.
fn shifted(frame: &Frame<'_>) -> Result<Option<(u64, u64)>, SqlError> {
    let (bits, count) = (side(frame, 0)?, frame.integer(1)?);
    Ok(bits.zip(count.map(|count| count as u64)))
}

fn shift_left(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    with_pair(shifted(&frame)?, |a, b| if b < 64 { a << b } else { 0 })
}

fn shift_right(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    with_pair(shifted(&frame)?, |a, b| if b < 64 { a >> b } else { 0 })
}

fn bit_not(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let value = frame.value(0)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let bits = coerce::to_bits(frame.context, value, frame.result(0))?;
    Ok(ValueRef::UInt(!bits))
}

fn resolve_negate(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    let operand = &arguments[0].result;
    let nullable = operand.nullable;
    let length = match operand.column_type.members {
        Some(_) => operand.column_type.max_bytes().min(u64::from(u32::MAX)) as u32,
        None => operand.characters().min(u64::from(u32::MAX)) as u32,
    };
    let length = length.saturating_add(1);
    // The smallest BIGINT has no opposite. Of a constant its 64 bits are looked at, so every
    // negative one counts as beyond BIGINT.
    let known = match arguments[0].nature() {
        // The server does not take it for a constant.
        Nature::Interval => None,
        _ => builder.value_at_start(&arguments[0]),
    };
    let is_beyond = match known {
        // A parameter is a BIGINT, and has no opposite.
        Some(types::Value::Int(i64::MIN)) => !arguments[0].is_bound(),
        Some(types::Value::Int(v)) => v < 0,
        // Its opposite is a BIGINT, but only a literal is looked at so closely.
        Some(types::Value::UInt(v)) if v == 1 << 63 => !arguments[0].is_plain_literal(),
        Some(types::Value::UInt(v)) => v > 1 << 63,
        // The server forgets the sign type of a variable.
        None => operand.is_variable && operand.column_type.unsigned,
        _ => false,
    };
    if is_beyond {
        let mut result = ResultType::decimal(operand.decimal_precision(), 0, false, nullable);
        // A literal's length has no place for its sign.
        if !arguments[0].is_plain_literal() {
            result.column_type.length = length;
        }
        return Ok(result);
    }
    let mut result = match Domain::of(operand) {
        Domain::Double => {
            let bytes = operand.column_type.max_bytes().min(52) as u32;
            let mut result = ResultType::double(nullable);
            result.column_type.scale = operand.decimals().min(31);
            result.column_type.length = if operand.is_string() { bytes + 1 } else { length };
            return Ok(result);
        }
        Domain::Integer if !operand.column_type.kind.is_temporal() => {
            ResultType::integer_of_length(length, false, nullable)
        }
        _ => {
            let (precision, scale) =
                (operand.decimal_precision(), u32::from(operand.decimal_scale()));
            ResultType::decimal(precision, scale, false, nullable)
        }
    };
    result.column_type.length = length;
    if result.column_type.kind.is_integer() {
        result.column_type.precision = operand.decimal_precision().min(20) as u8;
    }
    Ok(result)
}

fn negate(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let value = frame.value(0)?;
    Ok(match (Domain::of(&frame.expr.result), value) {
        (_, ValueRef::Null) => ValueRef::Null,
        (Domain::Integer, ValueRef::Int(v)) => match v.checked_neg() {
            Some(negated) => ValueRef::Int(negated),
            None => return Err(out_of_range("BIGINT", frame.expr, frame.context)),
        },
        (Domain::Integer, value) => {
            let wide = -coerce::to_integer(frame.context, value, frame.result(0))?;
            match i64::try_from(wide) {
                Ok(negated) => ValueRef::Int(negated),
                Err(_) => return Err(out_of_range("BIGINT", frame.expr, frame.context)),
            }
        }
        (Domain::Decimal, value) => {
            let decimal: Decimal = coerce::to_decimal(frame.context, value, frame.result(0))?;
            ValueRef::Decimal(decimal.negated())
        }
        (Domain::Double, value) => {
            ValueRef::Double(-coerce::to_double(frame.context, value, frame.result(0))?)
        }
    })
}
