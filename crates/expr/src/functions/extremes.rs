//! GREATEST and LEAST.

use super::control::{common_result, convert};
use super::{Frame, Function, MANY, Nature, any_nullable};
use crate::builder::{Builder, text_as_double};
use crate::compare::{CompareRule, compare_values};
use crate::compared;
use crate::expression::Expr;
use crate::result_type::ResultType;
use crate::temporal;
use types::temporal::{DateRules, parse_datetime, parse_time};
use types::{ColumnType, SqlError, TypeKind, ValueRef};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("greatest", 2, MANY, resolve_extreme, eval_greatest)
        .being(Nature::Extreme)
        .compared_by(compared_greatest),
    Function::new("least", 2, MANY, resolve_extreme, eval_least)
        .being(Nature::Extreme)
        .compared_by(compared_least),
];

/// Digits of seconds that an operand beside dates (or times) brings.
fn temporal_scale(builder: &Builder<'_>, operand: &Expr, is_time: bool) -> u8 {
    let Some(text) = super::temporal_typing::written(builder, operand) else {
        return super::temporal_typing::number_scale(operand);
    };
    let rules = DateRules::default();
    let digits = match is_time {
        true => parse_time(&text, rules).map(|parsed| parsed.digits),
        false => parse_datetime(&text, rules).map(|parsed| parsed.digits),
    };
    digits.unwrap_or_else(|| super::temporal_typing::number_scale(operand)).min(6)
}

fn resolve_extreme(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    let nullable = any_nullable(arguments);
    let has = |test: fn(&ResultType) -> bool| arguments.iter().any(|a| test(&a.result));
    let has_text = has(ResultType::is_string);
    let decimals = arguments.iter().map(|a| a.result.decimals().min(31)).max().unwrap_or(0);
    let has_number = has(|r| r.column_type.kind.is_number());
    let temporal = arguments
        .iter()
        .map(|a| a.result)
        .filter(|r| r.column_type.kind.is_temporal())
        .max_by_key(|r| (r.column_type.kind != TypeKind::Date, r.column_type.scale));
    if let (Some(temporal), true) = (temporal, has_text || has_number) {
        let mut result = temporal.of_expression().with_nullable(true);
        let is_date = |r: &ResultType| {
            r.column_type.kind.is_temporal() && r.column_type.kind != TypeKind::Time
        };
        let beside_date = result.column_type.kind == TypeKind::Time && has(is_date);
        if beside_date || result.column_type.kind == TypeKind::Timestamp {
            result.column_type.kind = TypeKind::DateTime;
        }
        result.column_type.unsigned = false;
        if result.column_type.kind != TypeKind::Date {
            let is_time = result.column_type.kind == TypeKind::Time;
            let scales = arguments.iter().map(|it| temporal_scale(builder, it, is_time));
            let scale = scales.max().unwrap_or(0);
            result.column_type = ColumnType::temporal(result.column_type.kind, scale);
        }
        return Ok(result);
    }
    if !has(|r| r.column_type.kind != TypeKind::Null) {
        return Ok(ResultType::null());
    }
    if has(|r| r.column_type.kind == TypeKind::Null) && !has_text && temporal.is_none() {
        return Ok(ResultType::double_of_scale(decimals, true));
    }
    if has_text && has_number {
        for argument in arguments.iter_mut() {
            *argument = text_as_double(argument.clone());
        }
        return Ok(ResultType::double_of_scale(decimals, nullable));
    }
    let has_null = has(|r| r.column_type.kind == TypeKind::Null);
    let has_others = has(|r| r.column_type.kind != TypeKind::Float);
    let mut result = common_result(builder, function.name(), arguments)?;
    if result.column_type.kind == TypeKind::Timestamp && has_null {
        result.column_type.kind = TypeKind::DateTime;
    }
    if result.column_type.kind == TypeKind::Float && has_others {
        result.column_type.kind = TypeKind::Double;
    }
    if result.column_type.kind == TypeKind::Double {
        result.column_type.length = 23.min(17 + u32::from(result.column_type.scale));
    }
    Ok(result)
}

fn eval_greatest(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    checked_extreme(&frame, std::cmp::Ordering::Greater)
}

fn eval_least(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    checked_extreme(&frame, std::cmp::Ordering::Less)
}

fn extreme<'a>(frame: &Frame<'a>, wanted: std::cmp::Ordering) -> Result<ValueRef<'a>, SqlError> {
    let whole = &frame.expr.result;
    let rule = match CompareRule::of_list(std::slice::from_ref(frame.expr)) {
        CompareRule::Text(_) => CompareRule::Text(whole.collation()),
        rule => rule,
    };
    let dates = matches!(whole.column_type.kind, TypeKind::Date | TypeKind::DateTime);
    let mut best = ValueRef::Null;
    for argument in frame.arguments {
        let value = match dates {
            // Not NULL: what is no date counts as zero.
            true => compared::compared(argument, rule, frame.context, frame.row)?,
            // What is added to a date is one, also where it is a text.
            false if whole.column_type.kind == TypeKind::Time => {
                super::eval_moment(argument, frame.context, frame.row)?
            }
            false => argument.eval(frame.context, frame.row)?,
        };
        if value.is_null() {
            return Ok(ValueRef::Null);
        }
        let value = match dates {
            true => {
                let moment = temporal::datetime_to_compare(frame.context, value, whole)?;
                ValueRef::DateTime(moment)
            }
            false => convert(frame.expr, argument, value, frame.context)?,
        };
        if value.is_null() {
            return Ok(ValueRef::Null);
        }
        let better = match compare_values(frame.context, rule, (value, whole), (best, whole))? {
            None => true,
            Some(order) => order == wanted,
        };
        if better {
            best = value;
        }
    }
    let is_date = whole.column_type.kind == TypeKind::Date;
    let ValueRef::DateTime(moment) = best else { return Ok(best) };
    Ok(if is_date { ValueRef::Date(moment.date()) } else { best })
}

/// The greatest or least, which the session's rules must allow where it is a date.
fn checked_extreme<'a>(
    frame: &Frame<'a>,
    wanted: std::cmp::Ordering,
) -> Result<ValueRef<'a>, SqlError> {
    let best = extreme(frame, wanted)?;
    let (moment, has_time) = match best {
        ValueRef::Date(date) => (date.at_midnight(), false),
        ValueRef::DateTime(moment) => (moment, true),
        _ => return Ok(best),
    };
    let rules = temporal::session_rules(frame.context);
    let allowed = temporal::check(frame.context, moment, has_time, rules)?;
    Ok(if allowed { best } else { ValueRef::Null })
}

/// GREATEST of dates as an operand of a comparison.
fn compared_greatest(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    match frame.expr.result.column_type.kind {
        TypeKind::Time => eval_greatest(frame),
        _ => extreme(&frame, std::cmp::Ordering::Greater),
    }
}

/// LEAST of dates as an operand of a comparison.
fn compared_least(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    match frame.expr.result.column_type.kind {
        TypeKind::Time => eval_least(frame),
        _ => extreme(&frame, std::cmp::Ordering::Less),
    }
}
