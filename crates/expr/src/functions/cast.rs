//! CAST, and text in another character set or collation.

use crate::coerce;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::functions::Nature;
use crate::result_type::ResultType;
use types::number::parse_integer;
use types::{CollationId, Decimal, Level, SqlError, TypeKind, ValueRef, Warning, codes};

/// Evaluates a CAST.
pub(crate) fn eval<'a>(
    expr: &'a Expr,
    operand: &'a Expr,
    pads_and_cuts: (bool, bool),
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let target = &expr.result.column_type;
    if target.kind.is_temporal() {
        return crate::compared::cast((target.kind, target.scale), operand, false, context, row);
    }
    let value = operand.eval(context, row)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let from = &operand.result;
    match target.kind {
        kind if kind.is_integer() => {
            // A part of a document is read as any text.
            let plain = ResultType { is_json_part: false, ..*from };
            integer(target.unsigned, value, &plain, context)
        }
        TypeKind::Decimal => decimal(expr, value, from, context).map(ValueRef::Decimal),
        TypeKind::Double => coerce::to_double(context, value, from).map(ValueRef::Double),
        TypeKind::Float => {
            let exact = coerce::to_double(context, value, from)?;
            let nearest = exact as f32;
            if nearest.is_finite() {
                return Ok(ValueRef::Float(nearest));
            }
            context.note(&codes::WARN_DATA_OUT_OF_RANGE, &[&name_of(expr), &1]);
            Ok(ValueRef::Float(f32::MAX.copysign(nearest)))
        }
        _ => text(expr, value, from, pads_and_cuts, context),
    }
}

/// SIGNED and UNSIGNED.
fn integer<'a>(
    unsigned: bool,
    value: ValueRef<'a>,
    from: &ResultType,
    context: &EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    let (low, high) = if unsigned {
        (0, i128::from(u64::MAX))
    } else {
        (i128::from(i64::MIN), i128::from(i64::MAX))
    };
    let exact = match value {
        ValueRef::Double(v) => Some(v.round_ties_even() as i128),
        ValueRef::Float(v) => Some(f64::from(v).round_ties_even() as i128),
        ValueRef::Decimal(v) => {
            let far = if v.is_negative() { i128::MIN } else { i128::MAX };
            Some(v.with_scale(0).mantissa().unwrap_or(far))
        }
        _ => None,
    };
    if let Some(exact) = exact {
        let clamped = exact.clamp(low, high);
        // The largest BIGINT as a DOUBLE is one more than it.
        let is_nearest = !unsigned && exact == high + 1 && !matches!(value, ValueRef::Decimal(_));
        if clamped != exact && !is_nearest {
            warn_overflow(unsigned, value, context)?;
        }
        return Ok(integer_value(unsigned, clamped));
    }
    if let (true, ValueRef::Time(time)) = (unsigned, value)
        && time.0 <= -1_000_000
    {
        let digits = if time.0 % 1_000_000 == 0 { 0 } else { 6 };
        let shown = types::text::to_text(
            value,
            &types::ColumnType::temporal(TypeKind::Time, digits),
            context.settings.time_zone,
        );
        let shown = String::from_utf8_lossy(&shown);
        context.note(&codes::DATA_OVERFLOW, &[&shown, &"UNSIGNED BIGINT"]);
        return Ok(ValueRef::UInt(0));
    }
    // Of variables, too, a cast warns.
    let from = &ResultType { is_variable: false, ..*from };
    if let Some(text) = value.bytes().filter(|text| !from.is_hex && is_below_bigint(text)) {
        let shown = coerce::shown_text(text, from);
        context.warn(&codes::TRUNCATED_WRONG_VALUE, &[&"INTEGER", &shown])?;
        return Ok(integer_value(unsigned, i128::from(i64::MIN)));
    }
    let wide = coerce::to_integer(context, value, from)?;
    let complement = |signs: &str| {
        context.push_warning(Warning {
            level: Level::Note,
            code: codes::UNKNOWN_ERROR.number,
            message: format!("Cast to {signs} complement"),
        });
    };
    if unsigned && (wide < 0 || is_negative_zero(value)) && !from.column_type.unsigned {
        complement("unsigned converted negative integer to it's positive");
    }
    let in_u64 = value.bytes().is_some_and(|text| !parse_integer(text).overflow);
    if !unsigned && in_u64 && wide > high {
        complement("signed converted positive out-of-range integer to it's negative");
    }
    Ok(integer_value(unsigned, wide))
}

/// Whether text is a number below the smallest BIGINT.
fn is_below_bigint(text: &[u8]) -> bool {
    let parsed = parse_integer(text);
    parsed.value.negative && (parsed.overflow || parsed.value.magnitude > 1 << 63)
}

/// Whether text is zero, or the whole part of it, with a sign.
fn is_negative_zero(value: ValueRef<'_>) -> bool {
    let parsed = value.bytes().map(parse_integer).filter(|parsed| parsed.length > 0);
    parsed.is_some_and(|parsed| parsed.value.negative && parsed.value.magnitude == 0)
}

/// The low 64 bits in the sign type asked for.
fn integer_value<'a>(unsigned: bool, wide: i128) -> ValueRef<'a> {
    if unsigned { ValueRef::UInt(wide as u64) } else { ValueRef::Int(wide as i64) }
}

fn warn_overflow(
    unsigned: bool,
    value: ValueRef<'_>,
    context: &EvalContext,
) -> Result<(), SqlError> {
    if let ValueRef::Decimal(v) = value {
        let target = if unsigned { "UNSIGNED INT" } else { "INT" };
        return context.warn(&codes::DATA_OVERFLOW, &[&v, &target]);
    }
    let target = if unsigned { "UNSIGNED BIGINT" } else { "SIGNED BIGINT" };
    let mut shown = Vec::new();
    let column_type = types::ColumnType::double();
    let value = match value {
        ValueRef::Float(v) => ValueRef::Double(f64::from(v)),
        other => other,
    };
    types::text::write_text(value, &column_type, context.settings.time_zone, &mut shown);
    context.note(&codes::DATA_OVERFLOW, &[&String::from_utf8_lossy(&shown), &target]);
    Ok(())
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
    let name = name_of(expr);
    let row = context.row_number.get().max(1);
    context.warn(&codes::WARN_DATA_OUT_OF_RANGE, &[&name, &row])?;
    Ok(Decimal::largest(precision, scale, exact.is_negative()))
}

/// How messages name a CAST: as the select item that it is, if it is one.
fn name_of(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Cast { name: Some(name), .. } => name.to_string(),
        _ => "(null)".into(),
    }
}

/// CHAR and BINARY: printed, converted, cut to the length; BINARY is filled up with 0x00.
fn text<'a>(
    expr: &'a Expr,
    value: ValueRef<'a>,
    from: &ResultType,
    (pads, cuts): (bool, bool),
    context: &'a EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    let target = expr.result.collation();
    let length = expr.result.column_type.length as usize;
    let kept = if cuts { length } else { usize::MAX };
    let bytes = converted_bytes(value, from, (target, kept), context)?;
    // BINARY(n) of text cuts behind its n-th character.
    let charset = match target.charset() {
        types::Charset::Binary if from.is_string() => from.collation().charset(),
        charset => charset,
    };
    let end = charset.byte_offset(bytes, length);
    if end < bytes.len() && cuts {
        let kind = if target == CollationId::BINARY { "BINARY" } else { "CHAR" };
        let name = format!("{kind}({length})");
        let shown = match value {
            ValueRef::Bytes(source) => coerce::shown_text(source, from),
            _ => coerce::printable(bytes),
        };
        if from.is_string() {
            // Of text a warning also where others are errors.
            context.push_warning(Warning::new(&codes::TRUNCATED_WRONG_VALUE, &[&name, &shown]));
        } else {
            context.warn(&codes::TRUNCATED_WRONG_VALUE, &[&name, &shown])?;
        }
        return Ok(ValueRef::Bytes(&bytes[..end]));
    }
    if pads && bytes.len() < length {
        let mut padded = bytes.to_vec();
        padded.resize(length, 0);
        return Ok(ValueRef::Bytes(context.keep(&padded)));
    }
    Ok(ValueRef::Bytes(bytes))
}

/// The text of a value in the character set of `target`, of which so many characters are kept.
fn converted_bytes<'a>(
    value: ValueRef<'a>,
    from: &ResultType,
    (target, kept): (CollationId, usize),
    context: &'a EvalContext,
) -> Result<&'a [u8], SqlError> {
    let bytes = coerce::to_text(context, value, from);
    let source = match from.column_type.kind {
        kind if kind.is_string() => from.collation().charset(),
        TypeKind::Bit => types::Charset::Binary,
        _ => target.charset(),
    };
    let charset = target.charset();
    if source != types::Charset::Binary && source.is_subset_of(charset, bytes) {
        return Ok(bytes);
    }
    if source == types::Charset::Binary {
        if charset == types::Charset::Binary {
            return Ok(bytes);
        }
        let valid = charset.valid_prefix(bytes);
        // Nobody looks at what is cut off.
        if valid == bytes.len() || charset.character_count(&bytes[..valid]) >= kept {
            return Ok(bytes);
        }
        let bad = crate::temporal::shown(context, ValueRef::Bytes(&bytes[valid..]));
        context.warn(&codes::INVALID_CHARACTER_STRING, &[&charset.name(), &bad])?;
        return Ok(context.keep(&well_formed(charset, bytes)));
    }
    let mut out = Vec::with_capacity(bytes.len());
    if source.convert(bytes, charset, &mut out) > 0 {
        let lost = first_lost(source, charset, bytes);
        let shown = lost.iter().fold(String::new(), |text, b| format!("{text}{b:02X}"));
        context
            .warn(&codes::CANNOT_CONVERT_CHARACTER, &[&source.name(), &shown, &charset.name()])?;
    }
    Ok(context.keep(&out))
}

/// CHAR(... USING charset) and CHR: their bytes end before the first that is of no character; in
/// a strict mode they are none at all.
pub(super) fn characters_of_numbers<'a>(
    bytes: &'a [u8],
    charset: types::Charset,
    context: &EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    let valid = charset.valid_prefix(bytes);
    if valid == bytes.len() {
        return Ok(ValueRef::Bytes(bytes));
    }
    let bad = bytes[valid..].iter().take(3);
    let shown = bad.fold(String::new(), |text, byte| format!("{text}{byte:02X}"));
    context.warn(&codes::INVALID_CHARACTER_STRING, &[&charset.name(), &shown])?;
    if context.settings.sql_mode.is_strict() {
        return Ok(ValueRef::Null);
    }
    Ok(ValueRef::Bytes(&bytes[..valid]))
}

/// Bytes as text of a character set: each that is of no character becomes `?`.
fn well_formed(charset: types::Charset, bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        let valid = charset.valid_prefix(rest);
        text.extend_from_slice(&rest[..valid]);
        if valid == rest.len() {
            return text;
        }
        text.push(b'?');
        rest = &rest[valid + 1..];
    }
}

/// The first character that the target does not have.
fn first_lost(source: types::Charset, target: types::Charset, bytes: &[u8]) -> &[u8] {
    let (mut at, mut scratch) = (0, Vec::new());
    while at < bytes.len() {
        match source.decode(&bytes[at..]) {
            Some((code_point, length)) if target.encode(code_point, &mut scratch) => at += length,
            Some((_, length)) => return &bytes[at..at + length],
            None => return &bytes[at..at + 1],
        }
    }
    &[]
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
    let target = expr.result.collation();
    if let (Nature::Characters, ValueRef::Bytes(bytes)) = (operand.nature(), value) {
        return characters_of_numbers(bytes, target.charset(), context);
    }
    converted_bytes(value, &operand.result, (target, usize::MAX), context).map(ValueRef::Bytes)
}

/// A constant's text in another character set.
pub(crate) fn convert_safely<'a>(
    expr: &'a Expr,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let ExprKind::ConvertSafely(operand, refusal) = &expr.kind else { return Ok(ValueRef::Null) };
    let value = operand.eval(context, row)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let bytes = coerce::to_text(context, value, &operand.result);
    let mut out = Vec::with_capacity(bytes.len());
    let source = operand.result.collation().charset();
    match source.convert(bytes, expr.result.collation().charset(), &mut out) {
        0 => Ok(ValueRef::Bytes(context.keep(&out))),
        _ => Err(refusal.as_ref().clone()),
    }
}
