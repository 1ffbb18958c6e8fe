//! Dates as functions read them.
//!
//! 1. Who reads a date has rules of its own: DATEDIFF takes no zeros in it, MONTH does. STR_TO_DATE
//!    and conversions of texts and numbers judge what they find by these rules, also where they
//!    stand in a conversion.
//! 2. So does each alternative of IF, CASE, IFNULL, COALESCE and NULLIF whose type is a date: what
//!    the rules do not allow counts as NULL, and the next alternative is taken. A column's says
//!    nothing, what is computed warns.

use super::Nature;
use super::control::nullif_keeps_first;
use super::frame::Frame;
use super::temporal_make::eval_moment;
use super::temporal_text::str_to_date_by;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::temporal;
use types::temporal::DateRules;
use types::{DateTime, SqlError, TypeKind};

/// What a conversion to a date converts.
fn conversion(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Cast { operand, .. } if is_date(expr) => Some(operand),
        ExprKind::Call { function, arguments } if arguments.len() == 1 => {
            matches!(function.name(), "timestamp" | "date").then_some(&arguments[0])
        }
        _ => None,
    }
}

/// The date of which LAST_DAY takes the last day of the month.
fn day_of_month(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Call { function, arguments } if function.name() == "last_day" => {
            Some(&arguments[0]).filter(|day| reads(day))
        }
        _ => None,
    }
}

/// The text or number that conversions to a date read: they do so by the rules that hold outside,
/// and name it where these do not allow the date.
fn read_value(expr: &Expr) -> Option<&Expr> {
    let operand = conversion(expr)?;
    match operand.result.column_type.kind.is_temporal() {
        true => read_value(operand),
        false => Some(operand),
    }
}

/// Whether there is a STR_TO_DATE among the alternatives.
fn reads(expr: &Expr) -> bool {
    let mut found = expr.nature() == Nature::ReadDate;
    expr.for_each_child(&mut |child| found |= reads(child));
    found
}

/// Whether one of several dates is chosen here (invariant 2).
pub(crate) fn chooses(expr: &Expr) -> bool {
    is_date(expr)
        && match &expr.kind {
            ExprKind::Case { .. } => true,
            ExprKind::Call { function, .. } => {
                matches!(function.name(), "if" | "ifnull" | "nvl" | "coalesce" | "nullif")
            }
            _ => false,
        }
}

fn is_date(expr: &Expr) -> bool {
    matches!(expr.result.column_type.kind, TypeKind::Date | TypeKind::DateTime)
}

impl Frame<'_> {
    /// An argument as a date and time under rules; `None` for NULL and for what is none.
    pub fn datetime(&self, index: usize, rules: DateRules) -> Result<Option<DateTime>, SqlError> {
        moment(&self.arguments[index], rules, self.context, self.row)
    }
}

/// A date and time under the rules of who reads it; `None` for NULL and for what is none.
pub(crate) fn moment(
    expr: &Expr,
    rules: DateRules,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<DateTime>, SqlError> {
    if chooses(expr) {
        return chosen(expr, rules, context, row);
    }
    if let Some(operand) = conversion(expr)
        && is_date(operand)
    {
        return converted(expr, operand, rules, context, row);
    }
    if temporal::is_only_duration(expr, rules) {
        return Ok(None);
    }
    if let Some(day) = day_of_month(expr)
        && moment(day, rules, context, row)?.is_none()
    {
        return Ok(None);
    }
    let value = match &expr.kind {
        // It judges the date itself.
        ExprKind::Call { arguments, .. } if expr.nature() == Nature::ReadDate => {
            str_to_date_by(Frame { expr, arguments, context, row }, rules)?
        }
        _ => eval_moment(expr, context, row)?,
    };
    if let Some(operand) = read_value(expr)
        && temporal::is_refused(value, rules)
    {
        let value = operand.eval(context, row)?;
        temporal::warn_of_refused(context, value, operand)?;
        return Ok(None);
    }
    temporal::to_datetime(context, value, expr, rules)
}

/// A date that is converted to another type of dates: the session's rules hold, too.
fn converted(
    expr: &Expr,
    operand: &Expr,
    rules: DateRules,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<DateTime>, SqlError> {
    let mut both = temporal::session_rules(context);
    both.no_zero_date |= rules.no_zero_date;
    both.no_zero_in_date |= rules.no_zero_in_date;
    let target = &expr.result.column_type;
    Ok(moment(operand, both, context, row)?.map(|moment| match target.kind {
        TypeKind::Date => moment.date().at_midnight(),
        _ => moment.truncated(target.scale),
    }))
}

/// The date of one of several alternatives (invariant 2).
fn chosen(
    expr: &Expr,
    rules: DateRules,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<DateTime>, SqlError> {
    let part = |part: &Expr| moment(part, rules, context, row);
    let ExprKind::Call { function, arguments } = &expr.kind else {
        return expr.chosen(context, row)?.map_or(Ok(None), part);
    };
    match function.name() {
        "if" => {
            let is_true = arguments[0].truth(context, row)? == Some(true);
            part(&arguments[if is_true { 1 } else { 2 }])
        }
        "nullif" => match nullif_keeps_first(&Frame { expr, arguments, context, row })? {
            true => part(&arguments[0]),
            false => Ok(None),
        },
        _ => {
            for argument in arguments {
                if let Some(moment) = part(argument)? {
                    return Ok(Some(moment));
                }
            }
            Ok(None)
        }
    }
}
