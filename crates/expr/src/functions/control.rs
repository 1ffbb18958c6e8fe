//! Choosing values: IF, IFNULL, NULLIF, COALESCE, CASE, ISNULL.

use super::read_number::{is_moment_text, is_text_extreme};
use super::{Frame, Function, MANY, any_nullable};
use crate::builder::{
    Builder, CollationUse, aggregate_collations, compared_collation, text_as_double,
};
use crate::coerce;
use crate::compare::{CompareRule, compare_values};
use crate::compared;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::result_type::{Coercibility, ResultType};
use crate::temporal;
use types::{CollationId, ColumnType, SqlError, TypeKind, Value, ValueRef};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("if", 3, 3, resolve_if, eval_if).compared_by(compared_if),
    Function::new("ifnull", 2, 2, resolve_ifnull, eval_coalesce),
    Function::new("nvl", 2, 2, resolve_ifnull, eval_coalesce),
    Function::new("coalesce", 1, MANY, resolve_coalesce, eval_coalesce),
    Function::new("nullif", 2, 2, resolve_nullif, eval_nullif).compared_by(compared_nullif),
    Function::new("isnull", 1, 1, resolve_isnull, eval_isnull),
];

/// Whether values are whole numbers.
fn is_whole(kind: TypeKind) -> bool {
    kind.is_integer() || matches!(kind, TypeKind::Year | TypeKind::Bit)
}

/// The common type of several alternatives of one value.
pub(crate) fn common_result(
    builder: &Builder<'_>,
    operation: &str,
    values: &mut [Expr],
) -> Result<ResultType, SqlError> {
    let nullable = any_nullable(values);
    let typed: Vec<ResultType> = values
        .iter()
        .map(|value| value.result)
        .filter(|result| result.column_type.kind != TypeKind::Null)
        .collect();
    let Some(first) = typed.first() else { return Ok(ResultType::null()) };
    let kinds = |test: fn(TypeKind) -> bool| typed.iter().all(|r| test(r.column_type.kind));
    let same = typed.iter().all(|r| r.column_type.kind == first.column_type.kind);
    let length = typed.iter().map(ResultType::text_length).max().unwrap_or(0);
    let scale = typed.iter().map(|r| r.column_type.scale).max().unwrap_or(0);
    let kept = matches!(first.column_type.kind, TypeKind::Year | TypeKind::Bit);
    let has_bit = typed.iter().any(|r| r.column_type.kind == TypeKind::Bit);
    let mut result = if same && kept {
        let mut result = first.of_expression();
        result.column_type.length = length;
        result
    } else if operation == "UNION" && has_bit {
        return Ok(bits_and_others(&typed, nullable));
    } else if kinds(is_whole) {
        common_integer(&typed, length, typed.len() < values.len())
    } else if kinds(|kind| is_whole(kind) || kind == TypeKind::Decimal) {
        common_decimal(&typed, typed.len() < values.len())
    } else if kinds(TypeKind::is_number) {
        let mut column_type = ColumnType::double();
        if is_float(&typed) {
            column_type = ColumnType::float();
        }
        column_type.length = match scale < types::column_type::SCALE_NOT_FIXED {
            true => {
                let whole = |it: &ResultType| {
                    it.text_length().saturating_sub(u32::from(it.column_type.scale))
                };
                typed.iter().map(whole).max().unwrap_or(0) + u32::from(scale)
            }
            false => length,
        };
        column_type.scale = scale;
        ResultType::of(column_type, nullable)
    } else if same && !first.is_string() {
        let mut result = first.of_expression();
        result.column_type.unsigned = false;
        if scale <= 6 && first.column_type.kind != TypeKind::Date {
            let kind = first.column_type.kind;
            result.column_type = ColumnType::temporal(kind, scale);
        } else {
            result.column_type.length = length;
            result.column_type.scale = scale.min(6);
        }
        result
    } else if kinds(TypeKind::is_temporal) {
        let scale = scale.min(6);
        ResultType::of(ColumnType::temporal(TypeKind::DateTime, scale), nullable)
    } else {
        let mut result = common_string(builder, operation, values, nullable)?;
        result.is_hex = typed.iter().all(|it| it.is_hex);
        result.column_type.unsigned = result.is_hex;
        return Ok(result);
    };
    result.nullable = nullable;
    result.is_truth = typed.iter().all(|result| result.is_truth);
    Ok(result)
}

/// The column of a UNION that has BIT beside other types: their digits as bytes.
fn bits_and_others(typed: &[ResultType], nullable: bool) -> ResultType {
    let bytes = |result: &ResultType| match result.is_string() {
        true => result.column_type.max_bytes(),
        false => result.characters(),
    };
    let length = typed.iter().map(bytes).max().unwrap_or(0);
    ResultType::string(length, CollationId::BINARY, Coercibility::Implicit, false, nullable)
}

/// Whether values that are FLOAT beside short integers stay FLOAT.
fn is_float(typed: &[ResultType]) -> bool {
    let fits = |kind| {
        use TypeKind as T;
        matches!(kind, T::Float | T::TinyInt | T::SmallInt | T::MediumInt | T::Year)
    };
    typed.iter().any(|r| r.column_type.kind == TypeKind::Float)
        && typed.iter().all(|r| fits(r.column_type.kind))
}

/// Characters of an INT.
const INT_WIDTH: u32 = 11;

/// With a NULL among the values, which counts as signed.
fn common_integer(typed: &[ResultType], length: u32, has_null: bool) -> ResultType {
    let all_unsigned = typed.iter().all(|r| r.column_type.unsigned);
    let any_unsigned = typed.iter().any(|r| r.column_type.unsigned);
    let digits = typed.iter().map(ResultType::decimal_precision).max().unwrap_or(1);
    if any_unsigned && (!all_unsigned || has_null) {
        return ResultType::decimal(digits, 0, false, true);
    }
    let bytes = |r: &ResultType| match r.column_type.kind {
        TypeKind::Bit => 8,
        kind => kind.integer_bytes().max(1),
    };
    let widest = typed.iter().map(bytes).max().unwrap_or(4);
    let kind = match widest {
        1 => TypeKind::TinyInt,
        2 => TypeKind::SmallInt,
        3 => TypeKind::MediumInt,
        4 => TypeKind::Int,
        _ => TypeKind::BigInt,
    };
    let kind = match typed.iter().any(|r| r.column_type.kind == TypeKind::Bit) {
        true if length <= INT_WIDTH => TypeKind::Int,
        _ => kind,
    };
    let mut column_type = ColumnType::integer(kind, all_unsigned);
    // A literal's width has no place for a sign; the common type's has. That of an operator has no
    // more digits than its operands.
    let is_wide = |r: &&ResultType| r.is_column || !r.column_type.kind.is_integer();
    let declared = typed.iter().filter(is_wide).map(ResultType::text_length).max();
    column_type.length = (digits + u32::from(!all_unsigned)).max(declared.unwrap_or(0));
    column_type.precision = digits.min(20) as u8;
    ResultType::of(column_type, true)
}

/// With a NULL among the values, which counts as signed.
fn common_decimal(typed: &[ResultType], has_null: bool) -> ResultType {
    let integer = typed.iter().map(ResultType::integer_digits).max().unwrap_or(0);
    let scale = typed.iter().map(|r| u32::from(r.decimal_scale())).max().unwrap_or(0);
    let unsigned = !has_null && typed.iter().all(|r| r.column_type.unsigned);
    ResultType::decimal(integer + scale, scale, unsigned, true)
}

fn common_string(
    builder: &Builder<'_>,
    operation: &str,
    values: &mut [Expr],
    nullable: bool,
) -> Result<ResultType, SqlError> {
    let usage = match operation {
        "UNION" => CollationUse::Union,
        _ => CollationUse::Join,
    };
    let (collation, coercibility, ascii) = aggregate_collations(builder, operation, values, usage)?;
    let binary = collation == CollationId::BINARY;
    let length = |value: &Expr| {
        let result = &value.result;
        if binary && result.is_string() {
            result.column_type.max_bytes()
        } else {
            result.characters()
        }
    };
    let length = values.iter().map(length).max().unwrap_or(0);
    let large = values
        .iter()
        .map(|v| v.result.column_type)
        .filter(|column_type| column_type.kind.is_large())
        .max_by_key(|column_type| column_type.length);
    let mut result = ResultType::string(length, collation, coercibility, ascii, nullable);
    result.is_json = !matches!(operation, "greatest" | "least")
        && values
            .iter()
            .filter(|value| value.result.column_type.kind != TypeKind::Null)
            .all(|value| value.result.is_json);
    if let Some(large) = large
        && !result.column_type.kind.is_large()
    {
        result.column_type.kind = large.kind;
    }
    // Hexadecimal literals alone stay what they are.
    let mut texts = values.iter().filter(|v| v.result.column_type.kind != TypeKind::Null);
    result.column_type.unsigned = texts.all(|v| v.result.is_hex);
    Ok(result)
}

/// The value of `chosen` as the type of `whole`.
pub(crate) fn converted<'a>(
    whole: &'a Expr,
    chosen: &'a Expr,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let value = chosen.eval(context, row)?;
    convert(whole, chosen, value, context)
}

pub(crate) fn convert<'a>(
    whole: &'a Expr,
    chosen: &'a Expr,
    value: ValueRef<'a>,
    context: &'a EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    let target = &whole.result.column_type;
    let from = &chosen.result;
    Ok(match (target.kind, value) {
        (_, ValueRef::Null) => ValueRef::Null,
        (TypeKind::Decimal, ValueRef::Decimal(_))
        | (TypeKind::Double, ValueRef::Double(_))
        | (TypeKind::Float, ValueRef::Float(_))
        | (TypeKind::Date, ValueRef::Date(_))
        | (TypeKind::Time, ValueRef::Time(_))
        | (TypeKind::Timestamp, ValueRef::Timestamp(_))
        | (TypeKind::DateTime, ValueRef::DateTime(_)) => value,
        (TypeKind::Decimal, _) => ValueRef::Decimal(coerce::to_decimal(context, value, from)?),
        (TypeKind::Double, _) => ValueRef::Double(coerce::to_double(context, value, from)?),
        (TypeKind::Float, _) => ValueRef::Float(coerce::to_double(context, value, from)? as f32),
        (kind, ValueRef::Int(v)) if is_whole(kind) => match u64::try_from(v) {
            Ok(v) if target.unsigned => ValueRef::UInt(v),
            _ => value,
        },
        (kind, ValueRef::UInt(v)) if is_whole(kind) => match i64::try_from(v) {
            Ok(v) if !target.unsigned => ValueRef::Int(v),
            _ => value,
        },
        (TypeKind::Date, _) => {
            let rules = temporal::session_rules(context);
            let datetime = temporal::to_datetime(context, value, chosen, rules)?;
            datetime.map_or(ValueRef::Null, |v| ValueRef::Date(v.date()))
        }
        (TypeKind::DateTime | TypeKind::Timestamp, _) => {
            let rules = temporal::session_rules(context);
            let datetime = temporal::to_datetime(context, value, chosen, rules)?;
            datetime.map_or(ValueRef::Null, ValueRef::DateTime)
        }
        (TypeKind::Time, _) => {
            temporal::to_time(context, value, chosen)?.map_or(ValueRef::Null, ValueRef::Time)
        }
        (kind, _) if kind.is_string() => ValueRef::Bytes(coerce::to_text(context, value, from)),
        _ => value,
    })
}

fn resolve_if(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    let nullable = any_nullable(arguments);
    arguments[0] = text_as_double(arguments[0].clone());
    Ok(one_of_two(builder, function, &mut arguments[1..])?.with_nullable(nullable))
}

/// The type of one of two alternatives; NULL has none.
pub(super) fn one_of_two(
    builder: &Builder<'_>,
    function: &'static Function,
    values: &mut [Expr],
) -> Result<ResultType, SqlError> {
    let is_null = |value: &Expr| value.result.column_type.kind == TypeKind::Null;
    let is_written = |value: &Expr| value.literal().is_some_and(Value::is_null);
    Ok(match (is_null(&values[0]), is_null(&values[1])) {
        (true, true) if !values.iter().all(is_written) => ResultType::null(),
        (true, true) => {
            let mut empty = ResultType::of(ColumnType::binary(TypeKind::Binary, 0), true);
            empty.coercibility = Coercibility::Ignorable;
            empty
        }
        (true, false) => only_alternative(&values[1]),
        (false, true) => only_alternative(&values[0]),
        _ => common_result(builder, function.name(), values)?,
    })
}

/// The type of a value beside which there is only NULL. Also of a literal one character of a whole
/// number is the sign's.
fn only_alternative(value: &Expr) -> ResultType {
    let is_hex = value.result.is_hex;
    let result = ResultType { is_hex, ..value.result.of_expression() };
    if value.is_plain_literal() { result.with_digits_of_length() } else { result }
}

fn eval_if(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let chosen =
        if frame.arguments[0].truth(frame.context, frame.row)? == Some(true) { 1 } else { 2 };
    converted(frame.expr, &frame.arguments[chosen], frame.context, frame.row)
}

/// IF of dates as an operand of a comparison.
fn compared_if(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Frame { expr, arguments, context, row } = frame;
    if expr.result.column_type.kind == TypeKind::Time {
        return eval_if(frame);
    }
    let chosen = if arguments[0].truth(context, row)? == Some(true) { 1 } else { 2 };
    compared::compared_part(expr, &arguments[chosen], context, row)
}

/// Whether NULL is possible, as it is of every parameter.
fn may_be_null(argument: &Expr) -> bool {
    argument.result.nullable || matches!(argument.kind, ExprKind::Parameter(_))
}

fn resolve_ifnull(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    let nullable = arguments.iter().all(may_be_null);
    Ok(common_result(builder, function.name(), arguments)?.with_nullable(nullable))
}

fn resolve_coalesce(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    let nullable = arguments.iter().all(may_be_null);
    Ok(common_result(builder, function.name(), arguments)?.with_nullable(nullable))
}

fn eval_coalesce(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    for argument in frame.arguments {
        let value = converted(frame.expr, argument, frame.context, frame.row)?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(ValueRef::Null)
}

fn resolve_nullif(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    // As it is before it is converted for the comparison.
    let own = only_alternative(&arguments[0]);
    let (first, second) = arguments.split_at_mut(1);
    builder.compared_with_column(&first[0], &mut second[0])?;
    if let CompareRule::Text(_) = CompareRule::of_list(arguments) {
        aggregate_collations(builder, function.name(), arguments, CollationUse::Compare)?;
    }
    Ok(own.with_nullable(true))
}

/// NULLIF of dates or times as an operand of a comparison.
fn compared_nullif(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Frame { expr, arguments, context, row } = frame;
    let rule = CompareRule::of_pair(&arguments[0], &arguments[1]);
    if !rule.is_temporal() || expr.result.column_type.kind == TypeKind::Time {
        return eval_nullif(frame);
    }
    match keeps_first(arguments, rule, context, row)? {
        true => compared::compared_part(expr, &arguments[0], context, row),
        false => Ok(ValueRef::Null),
    }
}

/// Whether NULLIF, whose result is a date, gives its first argument.
pub(super) fn nullif_keeps_first(frame: &Frame<'_>) -> Result<bool, SqlError> {
    let rule = CompareRule::of_pair(&frame.arguments[0], &frame.arguments[1]);
    match rule.is_temporal() {
        true => keeps_first(frame.arguments, rule, frame.context, frame.row),
        false => Ok(!eval_nullif(*frame)?.is_null()),
    }
}

/// Whether NULLIF of dates or times gives its first argument: one that is NULL equals nothing, and
/// is evaluated again.
fn keeps_first(
    arguments: &[Expr],
    rule: CompareRule,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<bool, SqlError> {
    let a = compared::compared(&arguments[0], rule, context, row)?;
    if a.is_null() {
        return Ok(true);
    }
    let b = compared::compared(&arguments[1], rule, context, row)?;
    let (first, second) = (&arguments[0].result, &arguments[1].result);
    let order = compare_values(context, rule, (a, first), (b, second))?;
    Ok(!order.is_some_and(std::cmp::Ordering::is_eq))
}

fn eval_nullif(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let rule = match CompareRule::of_pair(&frame.arguments[0], &frame.arguments[1]) {
        CompareRule::Text(_) => {
            CompareRule::Text(compared_collation(frame.result(0), frame.result(1)))
        }
        rule => rule,
    };
    if rule.is_temporal() {
        // Converted for the comparison alone.
        return match keeps_first(frame.arguments, rule, frame.context, frame.row)? {
            true => frame.value(0),
            false => Ok(ValueRef::Null),
        };
    }
    let a = frame.value(0)?;
    if a.is_null() {
        return Ok(ValueRef::Null);
    }
    let operand = &frame.arguments[0];
    let is_counted = is_text_extreme(operand) || is_moment_text(operand);
    let is_text = matches!(rule, CompareRule::Text(_));
    let number = if is_counted && !is_text { frame.number(0)? } else { a };
    let (shown_a, shown_b) = match rule {
        CompareRule::Text(_) => (a, frame.value(1)?),
        CompareRule::Decimal => {
            (operand.as_compared(number), frame.arguments[1].as_compared(frame.number(1)?))
        }
        _ => (number, frame.number(1)?),
    };
    let (first, second) = ((shown_a, frame.result(0)), (shown_b, frame.result(1)));
    let order = compare_values(frame.context, rule, first, second)?;
    if order.is_some_and(std::cmp::Ordering::is_eq) {
        return Ok(ValueRef::Null);
    }
    // It was compared in another character set, which has all of its own.
    match (a, frame.expr.result.is_string() && frame.result(0).is_string()) {
        (ValueRef::Bytes(text), true) => {
            let (from, own) = (frame.result(0).collation(), frame.expr.result.collation());
            if from.charset() == own.charset() || own.charset() == types::Charset::Binary {
                return Ok(a);
            }
            let mut back = Vec::with_capacity(text.len());
            from.charset().convert(text, own.charset(), &mut back);
            Ok(frame.keep(&back))
        }
        _ => Ok(a),
    }
}

fn resolve_isnull(
    _: &Builder<'_>,
    _: &'static Function,
    _: &mut [Expr],
) -> Result<ResultType, SqlError> {
    Ok(ResultType::boolean(false))
}

fn eval_isnull(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(ValueRef::Int(frame.value(0)?.is_null().into()))
}
