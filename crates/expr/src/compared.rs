//! CAST to dates and times, and the operands of their comparisons.
//!
//! 1. Within a comparison what cannot be read is zero, not NULL: see [`Mode::compared`].
//! 2. That passes through CAST and CASE of dates, and through the functions that say how
//!    ([`Function::compared_by`](crate::Function)); others give what they give elsewhere.

use crate::compare::CompareRule;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::functions::{Frame, control, eval_moment, read_date};
use crate::temporal::{
    COMPARE_RULES, Mode, Wanted, as_datetime, as_time, is_only_duration, is_temporal, moment,
    session_rules, time_mode,
};
use types::{DateTime, SqlError, TypeKind, ValueRef};

/// As CAST to a type of dates or times reads its operand, alone or within a comparison.
pub(crate) fn cast<'a>(
    target: (TypeKind, u8),
    operand: &'a Expr,
    compared: bool,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let (kind, scale) = target;
    let as_target = |moment: DateTime| match kind {
        TypeKind::Date => ValueRef::Date(moment.date()),
        _ => ValueRef::DateTime(moment.truncated(scale)),
    };
    let mut rules = session_rules(context);
    let is_judged = || read_date::chooses(operand) || is_only_duration(operand, rules);
    if !compared && kind != TypeKind::Time && is_judged() {
        let read = read_date::moment(operand, rules, context, row)?;
        return Ok(read.map_or(ValueRef::Null, as_target));
    }
    let value = if compared && operand.result.column_type.kind.is_temporal() {
        self::compared(operand, rule_of(operand), context, row)?
    } else {
        eval_moment(operand, context, row)?
    };
    if kind == TypeKind::Time {
        let found = moment(context, value, operand, time_mode(compared))?;
        let time = found.map(|parsed| as_time(parsed.value).truncated(scale));
        return Ok(time.map_or(ValueRef::Null, ValueRef::Time));
    }
    rules.allow_invalid |= compared;
    let mode = Mode { wanted: Wanted::DateTime, rules, compared };
    let found = moment(context, value, operand, mode)?;
    let moment = found.map(|parsed| as_datetime(context, parsed.value));
    Ok(moment.map_or(ValueRef::Null, as_target))
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
        let value = match &expr.kind {
            ExprKind::Call { .. } | ExprKind::DateArithmetic { .. } => {
                eval_moment(expr, context, row)?
            }
            _ => expr.operand(context, row)?,
        };
        return convert_compared(context, value, expr, is_time);
    }
    match &expr.kind {
        ExprKind::Cast { operand, .. } => {
            let target = &expr.result.column_type;
            cast((target.kind, target.scale), operand, true, context, row)
        }
        ExprKind::Call { function, arguments } => match function.compared() {
            Some(eval) => eval(Frame { expr, arguments, context, row }),
            None => expr.operand(context, row),
        },
        ExprKind::Case { .. } if expr.result.column_type.kind != TypeKind::Time => {
            match expr.chosen(context, row)? {
                Some(chosen) => compared_part(expr, chosen, context, row),
                None => Ok(ValueRef::Null),
            }
        }
        _ => expr.operand(context, row),
    }
}

/// An alternative of `whole`, which is an operand of a comparison of dates or times.
pub(crate) fn compared_part<'a>(
    whole: &'a Expr,
    part: &'a Expr,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let value = compared(part, rule_of(whole), context, row)?;
    control::convert(whole, part, value, context)
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
