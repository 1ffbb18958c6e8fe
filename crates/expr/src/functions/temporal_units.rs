//! Functions of a unit: adding intervals, EXTRACT, TIMESTAMPDIFF, TIMESTAMPADD.

use super::Frame;
use crate::builder::Builder;
use crate::coerce;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::functions::Function;
use crate::result_type::{Coercibility, ResultType};
use types::temporal::{
    DateRules, Interval, IntervalUnit, WeekMode, add_interval, day_number, week_number,
};
use types::{ColumnType, SqlError, Time, TypeKind, ValueRef, codes};

static EXTRACT: Function = Function::new("extract", 1, 1, resolve_extract, extract);
static DIFFERENCE: Function = Function::new("timestampdiff", 2, 2, resolve_difference, difference);

fn resolve_extract(
    _: &Builder<'_>,
    _: &'static Function,
    _: &mut Vec<Expr>,
) -> Result<ResultType, SqlError> {
    Ok(ResultType::integer_of_length(21, false, true))
}

fn resolve_difference(
    _: &Builder<'_>,
    _: &'static Function,
    _: &mut Vec<Expr>,
) -> Result<ResultType, SqlError> {
    Ok(ResultType::integer_of_length(21, false, true))
}

/// Builds a call whose first argument was a unit.
pub(crate) fn build(
    builder: &Builder<'_>,
    name: &str,
    unit: IntervalUnit,
    mut arguments: Vec<Expr>,
) -> Result<Expr, SqlError> {
    let wrong_count =
        |name: &str| Err(SqlError::new(&codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&name]));
    let function = match name.to_ascii_lowercase().as_str() {
        "extract" => &EXTRACT,
        "timestampdiff" => &DIFFERENCE,
        "timestampadd" => {
            let Ok([amount, base]) = <[Expr; 2]>::try_from(arguments) else {
                return wrong_count(name);
            };
            return builder.date_arithmetic(base, amount, unit, false);
        }
        _ => return Err(SqlError::new(&codes::SP_DOES_NOT_EXIST, &[&"FUNCTION", &name])),
    };
    if !function.accepts(arguments.len()) {
        return wrong_count(name);
    }
    let mut result = function.resolve(builder, &mut arguments)?;
    if std::ptr::eq(function, &EXTRACT) {
        let (length, signed) = extract_length(unit);
        result = ResultType::integer_of_length(length + u32::from(signed), false, true);
    }
    Ok(Expr { kind: ExprKind::UnitCall { function, unit, arguments }, result })
}

/// Digits of EXTRACT's result and whether it may be negative.
fn extract_length(unit: IntervalUnit) -> (u32, bool) {
    match unit {
        IntervalUnit::Year => (4, false),
        IntervalUnit::YearMonth => (6, false),
        IntervalUnit::Quarter | IntervalUnit::Month | IntervalUnit::Week | IntervalUnit::Day => {
            (2, false)
        }
        IntervalUnit::DayHour => (4, true),
        IntervalUnit::DayMinute => (6, true),
        IntervalUnit::DaySecond => (8, true),
        IntervalUnit::Hour => (2, true),
        IntervalUnit::HourMinute => (4, true),
        IntervalUnit::HourSecond => (6, true),
        IntervalUnit::Minute | IntervalUnit::Second => (2, true),
        IntervalUnit::MinuteSecond => (4, true),
        IntervalUnit::Microsecond => (6, true),
        IntervalUnit::DayMicrosecond => (14, true),
        IntervalUnit::HourMicrosecond => (12, true),
        IntervalUnit::MinuteMicrosecond => (10, true),
        IntervalUnit::SecondMicrosecond => (8, true),
    }
}

/// Unit of a `UnitCall`.
fn unit_of(expr: &Expr) -> IntervalUnit {
    match &expr.kind {
        ExprKind::UnitCall { unit, .. } => *unit,
        _ => IntervalUnit::Day,
    }
}

fn extract(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    use IntervalUnit as U;
    let unit = unit_of(frame.expr);
    let needs_date =
        matches!(unit, U::Year | U::YearMonth | U::Quarter | U::Month | U::Week | U::Day);
    if !needs_date {
        let value = frame.value(0)?;
        if value.is_null() {
            return Ok(ValueRef::Null);
        }
        return extract_time(&frame, value, unit);
    }
    let rules = coerce::session_rules(frame.context);
    let Some(value) = frame.datetime(0, rules)? else { return Ok(ValueRef::Null) };
    let date = value.date();
    let (year, month) = (i64::from(date.year()), i64::from(date.month()));
    Ok(ValueRef::Int(match unit {
        U::Year => year,
        U::YearMonth => year * 100 + month,
        U::Quarter => (month + 2) / 3,
        U::Month => month,
        U::Week => {
            let mode = frame.context.settings.default_week_format;
            i64::from(week_number(date, WeekMode::from_number(mode)).0)
        }
        _ => i64::from(date.day()),
    }))
}

/// Units with a time: a TIME may have days' worth of hours, a DATETIME has its day.
fn extract_time<'a>(
    frame: &Frame<'a>,
    value: ValueRef<'a>,
    unit: IntervalUnit,
) -> Result<ValueRef<'a>, SqlError> {
    use IntervalUnit as U;
    let with_day = matches!(unit, U::DayHour | U::DayMinute | U::DaySecond | U::DayMicrosecond);
    let (sign, day, time) = match value {
        ValueRef::Time(time) => {
            let sign = if time.is_negative() { -1 } else { 1 };
            let days = if with_day { i64::from(time.hours() / 24) } else { 0 };
            let hours = if with_day { time.0.abs() - days * 86_400_000_000 } else { time.0.abs() };
            (sign, days, Time(hours))
        }
        _ if with_day => {
            let rules = coerce::session_rules(frame.context);
            let found = coerce::to_datetime(frame.context, value, frame.result(0), rules)?;
            let Some(found) = found else { return Ok(ValueRef::Null) };
            (1, i64::from(found.date().day()), found.time())
        }
        _ => {
            let found = coerce::to_time(frame.context, value, frame.result(0))?;
            let Some(found) = found else { return Ok(ValueRef::Null) };
            (if found.is_negative() { -1 } else { 1 }, 0, Time(found.0.abs()))
        }
    };
    let (hour, minute, second) =
        (i64::from(time.hours()), i64::from(time.minutes()), i64::from(time.seconds()));
    let micros = i64::from(time.micros());
    let clock = hour * 10_000 + minute * 100 + second;
    let magnitude = match unit {
        U::DayHour => day * 100 + hour,
        U::DayMinute => day * 10_000 + hour * 100 + minute,
        U::DaySecond => day * 1_000_000 + clock,
        U::DayMicrosecond => (day * 1_000_000 + clock) * 1_000_000 + micros,
        U::Hour => hour,
        U::HourMinute => hour * 100 + minute,
        U::HourSecond => clock,
        U::HourMicrosecond => clock * 1_000_000 + micros,
        U::Minute => minute,
        U::MinuteSecond => minute * 100 + second,
        U::MinuteMicrosecond => (minute * 100 + second) * 1_000_000 + micros,
        U::Second => second,
        U::SecondMicrosecond => second * 1_000_000 + micros,
        _ => micros,
    };
    Ok(ValueRef::Int(sign * magnitude))
}

fn difference(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let rules = DateRules::complete();
    let Some(from) = frame.datetime(0, rules)? else { return Ok(ValueRef::Null) };
    let Some(to) = frame.datetime(1, rules)? else { return Ok(ValueRef::Null) };
    let micros = to.to_epoch_micros() - from.to_epoch_micros();
    let unit = unit_of(frame.expr);
    let months = || {
        let (early, late) = if micros < 0 { (to, from) } else { (from, to) };
        let count =
            |v: types::DateTime| i64::from(v.date().year()) * 12 + i64::from(v.date().month());
        let rest = |v: types::DateTime| (v.date().day(), v.time_micros());
        let whole = count(late) - count(early) - i64::from(rest(late) < rest(early));
        if micros < 0 { -whole } else { whole }
    };
    let second = 1_000_000;
    Ok(ValueRef::Int(match unit {
        IntervalUnit::Year => months() / 12,
        IntervalUnit::Quarter => months() / 3,
        IntervalUnit::Month => months(),
        IntervalUnit::Week => micros / (7 * 86_400 * second),
        IntervalUnit::Day => micros / (86_400 * second),
        IntervalUnit::Hour => micros / (3600 * second),
        IntervalUnit::Minute => micros / (60 * second),
        IntervalUnit::Second => micros / second,
        _ => micros,
    }))
}

/// Type of `base ± INTERVAL amount unit`.
pub(crate) fn interval_result(
    builder: &Builder<'_>,
    base: &Expr,
    amount: &Expr,
    unit: IntervalUnit,
) -> ResultType {
    let scale_of_unit = match unit {
        unit if unit.has_micros() => 6,
        IntervalUnit::Second => amount.result.decimal_scale().min(6),
        _ => 0,
    };
    let base_type = &base.result.column_type;
    let scale = base_type.scale.min(6).max(scale_of_unit);
    match base_type.kind {
        TypeKind::DateTime | TypeKind::Timestamp => {
            ResultType::of(ColumnType::temporal(TypeKind::DateTime, scale), true)
        }
        TypeKind::Date if unit.is_days_or_more() => ResultType::of(ColumnType::date(), true),
        TypeKind::Date => {
            ResultType::of(ColumnType::temporal(TypeKind::DateTime, scale_of_unit), true)
        }
        TypeKind::Time if !unit.is_months_or_more() => {
            ResultType::of(ColumnType::temporal(TypeKind::Time, scale), true)
        }
        TypeKind::Time => ResultType::of(ColumnType::temporal(TypeKind::DateTime, scale), true),
        _ => {
            let collation = builder.connection_collation();
            let mut result = ResultType::string(26, collation, Coercibility::Coercible, true, true);
            result.column_type.kind = TypeKind::Char;
            result.column_type.scale = 6;
            result
        }
    }
}

/// The amount of an interval, `None` for NULL.
fn amount_of(
    amount: &Expr,
    unit: IntervalUnit,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<Interval>, SqlError> {
    let value = amount.eval(context, row)?;
    if value.is_null() {
        return Ok(None);
    }
    if unit.parts() > 1 {
        let text = coerce::to_text(context, value, &amount.result);
        return Ok(Interval::parse(unit, text));
    }
    if unit == IntervalUnit::Second && amount.result.decimal_scale() > 0 {
        let decimal = coerce::to_decimal(context, value, &amount.result)?;
        let micros = decimal.truncated(6).with_scale(6).mantissa().unwrap_or(0);
        let micros = micros.clamp(-(1 << 80), 1 << 80);
        return Ok(Some(Interval { months: 0, micros }));
    }
    let whole = coerce::to_integer(context, value, &amount.result)?;
    let whole = whole.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
    Ok(Some(Interval::of(unit, whole, 0)))
}

/// Evaluates `base ± INTERVAL amount unit`.
pub(crate) fn add<'a>(
    expr: &'a Expr,
    base: &'a Expr,
    amount: &'a Expr,
    unit: IntervalUnit,
    subtract: bool,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let value = base.eval(context, row)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    if expr.result.column_type.kind == TypeKind::Time
        && let ValueRef::Time(time) = value
    {
        let Some(interval) = amount_of(amount, unit, context, row)? else {
            return Ok(ValueRef::Null);
        };
        let delta = if subtract { -interval.micros } else { interval.micros };
        let sum = i128::from(time.0) + delta;
        let limit = i128::from(Time::MAX.0);
        return Ok(ValueRef::Time(Time(sum.clamp(-limit, limit) as i64)));
    }
    let rules = DateRules { no_zero_date: true, no_zero_in_date: true, allow_invalid: false };
    let Some(start) = coerce::to_datetime(context, value, &base.result, rules)? else {
        return Ok(ValueRef::Null);
    };
    let Some(interval) = amount_of(amount, unit, context, row)? else {
        return Ok(ValueRef::Null);
    };
    let interval = if subtract { interval.negated() } else { interval };
    let Some(sum) = add_interval(start, interval) else {
        context.warn(&codes::DATETIME_FUNCTION_OVERFLOW, &[&"datetime"])?;
        return Ok(ValueRef::Null);
    };
    Ok(match expr.result.column_type.kind {
        TypeKind::Date => ValueRef::Date(sum.date()),
        TypeKind::DateTime => ValueRef::DateTime(sum),
        _ => {
            let mut text = Vec::with_capacity(26);
            let bytes = coerce::to_text(context, value, &base.result);
            let has_time = bytes.len() > 10 || matches!(value, ValueRef::DateTime(_));
            if has_time || !unit.is_days_or_more() {
                let scale = if sum.micros() > 0 { 6 } else { 0 };
                sum.write_text(scale, &mut text);
            } else {
                sum.date().write_text(&mut text);
            }
            ValueRef::Bytes(context.keep(&text))
        }
    })
}

/// TO_DAYS of a date.
pub(crate) fn day_number_of(date: types::Date) -> i64 {
    day_number(date.year(), date.month(), date.day())
}
