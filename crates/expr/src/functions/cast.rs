//! CAST, and text in another character set or collation.

use crate::coerce;
use crate::context::{Columns, EvalContext};
use crate::expression::Expr;
use crate::result_type::ResultType;
use types::temporal::fraction_unit;
use types::{CollationId, Decimal, Level, SqlError, Time, TypeKind, ValueRef, Warning, codes};

/// Evaluates a CAST.
pub(crate) fn eval<'a>(
    expr: &'a Expr,
    operand: &'a Expr,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let value = operand.eval(context, row)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let from = &operand.result;
    let target = &expr.result.column_type;
    match target.kind {
        kind if kind.is_integer() => integer(target.unsigned, value, from, context),
        TypeKind::Decimal => decimal(expr, value, from, context).map(ValueRef::Decimal),
        TypeKind::Double => coerce::to_double(context, value, from).map(ValueRef::Double),
        TypeKind::Float => Ok(ValueRef::Float(coerce::to_double(context, value, from)? as f32)),
        TypeKind::Date => {
            let rules = coerce::session_rules(context);
            let found = coerce::to_datetime(context, value, from, rules)?;
            Ok(found.map_or(ValueRef::Null, |v| ValueRef::Date(v.date())))
        }
        TypeKind::DateTime => {
            let rules = coerce::session_rules(context);
            let found = coerce::to_datetime(context, value, from, rules)?;
            Ok(found.map_or(ValueRef::Null, |v| ValueRef::DateTime(v.truncated(target.scale))))
        }
        TypeKind::Time => {
            let found = coerce::to_time(context, value, from)?;
            let unit = i64::from(fraction_unit(target.scale));
            Ok(found.map_or(ValueRef::Null, |v| ValueRef::Time(Time(v.0 - v.0 % unit))))
        }
        _ => text(expr, value, from, context),
    }
}

/// SIGNED and UNSIGNED.
fn integer<'a>(
    unsigned: bool,
    value: ValueRef<'a>,
    from: &ResultType,
    context: &EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    let target = if unsigned { "UNSIGNED BIGINT" } else { "SIGNED BIGINT" };
    if let ValueRef::Double(v) = value {
        let rounded = v.round_ties_even();
        let fits = if unsigned {
            (i64::MIN as f64..u64::MAX as f64).contains(&rounded)
        } else {
            (i64::MIN as f64..i64::MAX as f64).contains(&rounded)
        };
        if !fits {
            let mut shown = Vec::new();
            types::number::write_double(v, &mut shown);
            let shown = String::from_utf8_lossy(&shown).into_owned();
            context.note(&codes::DATA_OVERFLOW, &[&shown, &target]);
        }
    }
    if let ValueRef::Decimal(v) = value {
        let fits = if unsigned { v.to_u64().1 } else { v.to_i64().1 };
        if !fits {
            context.warn(&codes::DATA_OVERFLOW, &[&v, &"INT"])?;
        }
    }
    let wide = coerce::to_integer(context, value, from)?;
    if unsigned {
        let from_text_or_integer = !matches!(value, ValueRef::Double(_) | ValueRef::Float(_));
        if wide < 0 && from_text_or_integer && !from.column_type.unsigned {
            context.push_warning(Warning {
                level: Level::Note,
                code: codes::UNKNOWN_ERROR.number,
                message: "Cast to unsigned converted negative integer to it's positive \
                          complement"
                    .to_string(),
            });
        }
        return Ok(ValueRef::UInt(wide as u64));
    }
    let number = match value {
        ValueRef::Double(_) | ValueRef::Decimal(_) | ValueRef::Float(_) => {
            wide.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
        }
        _ => wide as i64,
    };
    Ok(ValueRef::Int(number))
}

fn decimal(
    expr: &Expr,
    value: ValueRef<'_>,
    from: &ResultType,
    context: &EvalContext,
) -> Result<Decimal, SqlError> {
    let (precision, scale) = (expr.result.column_type.precision, expr.result.column_type.scale);
    let exact = coerce::to_decimal(context, value, from)?;
    let rounded = exact.with_scale(scale);
    if rounded.precision() <= u32::from(precision) && rounded.scale() == scale {
        return Ok(rounded);
    }
    let name = expr.to_string();
    let row = context.row_number.get().max(1);
    context.warn(&codes::WARN_DATA_OUT_OF_RANGE, &[&name, &row])?;
    Ok(Decimal::largest(precision, scale, exact.is_negative()))
}

/// CHAR and BINARY: printed, converted, cut to the length; BINARY is filled up with 0x00.
fn text<'a>(
    expr: &'a Expr,
    value: ValueRef<'a>,
    from: &ResultType,
    context: &'a EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    let target = expr.result.collation();
    let bytes = converted_bytes(value, from, target, context)?;
    let length = expr.result.column_type.length as usize;
    let charset = target.charset();
    let end = charset.byte_offset(bytes, length);
    if end < bytes.len() {
        let kind = if target == CollationId::BINARY { "BINARY" } else { "CHAR" };
        let name = format!("{kind}({length})");
        let shown = coerce::printable(bytes);
        context.warn(&codes::TRUNCATED_WRONG_VALUE, &[&name, &shown])?;
        return Ok(ValueRef::Bytes(&bytes[..end]));
    }
    if target == CollationId::BINARY && bytes.len() < length && from.is_string() && length <= 255 {
        let mut padded = bytes.to_vec();
        padded.resize(length, 0);
        return Ok(ValueRef::Bytes(context.keep(&padded)));
    }
    Ok(ValueRef::Bytes(bytes))
}

/// The text of a value in the character set of `target`.
fn converted_bytes<'a>(
    value: ValueRef<'a>,
    from: &ResultType,
    target: CollationId,
    context: &'a EvalContext,
) -> Result<&'a [u8], SqlError> {
    let bytes = coerce::to_text(context, value, from);
    let source = if from.is_string() { from.collation().charset() } else { target.charset() };
    let charset = target.charset();
    if source.is_subset_of(charset, bytes) {
        return Ok(bytes);
    }
    if source == types::Charset::Binary {
        let valid = charset.valid_prefix(bytes);
        if valid == bytes.len() {
            return Ok(bytes);
        }
        let bad = coerce::printable(&bytes[valid..bytes.len().min(valid + 6)]);
        context.warn(&codes::INVALID_CHARACTER_STRING, &[&charset.name(), &bad])?;
        let mut kept = Vec::with_capacity(bytes.len());
        types::Charset::Utf8mb4.convert(bytes, charset, &mut kept);
        return Ok(context.keep(&kept));
    }
    let mut out = Vec::with_capacity(bytes.len());
    source.convert(bytes, charset, &mut out);
    Ok(context.keep(&out))
}

/// CONVERT ... USING, COLLATE and conversions between character sets.
pub(crate) fn convert_text<'a>(
    expr: &'a Expr,
    operand: &'a Expr,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let value = operand.eval(context, row)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    converted_bytes(value, &operand.result, expr.result.collation(), context).map(ValueRef::Bytes)
}
