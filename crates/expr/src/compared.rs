//! CAST to dates and times, and the operands of their comparisons.
//!
//! 1. Within a comparison what cannot be read is zero, not NULL: see [`Mode::compared`].
//! 2. That passes through CAST, DATE, TIME, TIMESTAMP, and through IF and CASE of dates; other
//!    functions give what they give elsewhere.

use crate::compare::CompareRule;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::functions::control;
use crate::functions::temporal_parts::last_day_of;
use crate::temporal::{
    COMPARE_RULES, Mode, Wanted, as_datetime, as_time, is_temporal, moment, session_rules,
    time_mode,
};
use std::cmp::Ordering;
use types::{Date, SqlError, TypeKind, ValueRef};

/// As CAST to a type of dates or times reads its operand, alone or within a comparison.
pub(crate) fn cast<'a>(
    target: (TypeKind, u8),
    operand: &'a Expr,
    compared: bool,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let value = if compared && operand.result.column_type.kind.is_temporal() {
        self::compared(operand, rule_of(operand), context, row)?
    } else {
        operand.eval(context, row)?
    };
    let (kind, scale) = target;
    if kind == TypeKind::Time {
        let found = moment(context, value, operand, time_mode(compared))?;
        let time = found.map(|parsed| as_time(parsed.value).truncated(scale));
        return Ok(time.map_or(ValueRef::Null, ValueRef::Time));
    }
    let mut rules = session_rules(context);
    rules.allow_invalid |= compared;
    let mode = Mode { wanted: Wanted::DateTime, rules, compared };
    let found = moment(context, value, operand, mode)?;
    let moment = found.map(|parsed| as_datetime(context, parsed.value));
    Ok(match moment {
        None => ValueRef::Null,
        Some(moment) if kind == TypeKind::Date => ValueRef::Date(moment.date()),
        Some(moment) => ValueRef::DateTime(moment.truncated(scale)),
    })
}

/// As what an expression of dates or times is compared with its like.
fn rule_of(expr: &Expr) -> CompareRule {
    match expr.result.column_type.kind {
        TypeKind::Time => CompareRule::Time,
        _ => CompareRule::DateTime,
    }
}

/// An operand of a comparison of dates or times (`rule`), converted; NULL only if it is NULL.
pub(crate) fn compared<'a>(
    expr: &'a Expr,
    rule: CompareRule,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let is_time = rule == CompareRule::Time;
    if !expr.result.column_type.kind.is_temporal() {
        let value = expr.operand(context, row)?;
        return convert_compared(context, value, expr, is_time);
    }
    let is_duration = expr.result.column_type.kind == TypeKind::Time;
    let part = |part: &'a Expr| -> Result<ValueRef<'a>, SqlError> {
        let value = compared(part, rule_of(expr), context, row)?;
        control::convert(expr, part, value, context)
    };
    match &expr.kind {
        ExprKind::Cast { operand, .. } => {
            let target = &expr.result.column_type;
            cast((target.kind, target.scale), operand, true, context, row)
        }
        ExprKind::Call { function, arguments } => match (function.name(), arguments.as_slice()) {
            ("date" | "time" | "timestamp", [operand]) => {
                let target = &expr.result.column_type;
                cast((target.kind, target.scale), operand, true, context, row)
            }
            ("nullif", [first, second]) => {
                let rule = CompareRule::of_pair(first, second);
                if !rule.is_temporal() {
                    return expr.operand(context, row);
                }
                match control::keeps_first(arguments, rule, context, row)? {
                    true => part(first),
                    false => Ok(ValueRef::Null),
                }
            }
            ("greatest", list) if !is_duration => {
                control::compared_extreme(expr, list, Ordering::Greater, context, row)
            }
            ("least", list) if !is_duration => {
                control::compared_extreme(expr, list, Ordering::Less, context, row)
            }
            ("last_day", [operand]) => {
                let day = cast((TypeKind::DateTime, 6), operand, true, context, row)?;
                let ValueRef::DateTime(moment) = day else { return Ok(ValueRef::Null) };
                Ok(last_day_of(moment).map_or(ValueRef::Null, ValueRef::Date))
            }
            ("from_days", [days]) => {
                let value = expr.operand(context, row)?;
                let is_zero = value.is_null() && !days.operand(context, row)?.is_null();
                Ok(if is_zero { ValueRef::Date(Date::default()) } else { value })
            }
            ("if", [condition, then, otherwise]) if !is_duration => {
                part(if condition.truth(context, row)? == Some(true) { then } else { otherwise })
            }
            _ => expr.operand(context, row),
        },
        ExprKind::Case { .. } if !is_duration => match expr.chosen(context, row)? {
            Some(chosen) => part(chosen),
            None => Ok(ValueRef::Null),
        },
        _ => expr.operand(context, row),
    }
}

/// A value that is no date or time, converted for a comparison.
pub(crate) fn convert_compared<'a>(
    context: &EvalContext,
    value: ValueRef<'a>,
    source: &Expr,
    is_time: bool,
) -> Result<ValueRef<'a>, SqlError> {
    if value.is_null() || is_temporal(value) {
        return Ok(value);
    }
    if is_time {
        let found = moment(context, value, source, time_mode(true))?;
        return Ok(found.map_or(ValueRef::Null, |parsed| ValueRef::Time(as_time(parsed.value))));
    }
    let mode = Mode { wanted: Wanted::DateTime, rules: COMPARE_RULES, compared: true };
    let found = moment(context, value, source, mode)?;
    let datetime = found.map(|parsed| as_datetime(context, parsed.value));
    Ok(datetime.map_or(ValueRef::Null, ValueRef::DateTime))
}
