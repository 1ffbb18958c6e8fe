//! Functions of a unit: adding intervals, EXTRACT, TIMESTAMPDIFF, TIMESTAMPADD.

use super::read_number;
use super::temporal_typing::{known_scale, number_scale};
use super::{Frame, Nature};
use crate::builder::Builder;
use crate::coerce;
use crate::compare::CompareRule;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::functions::Function;
use crate::result_type::{Coercibility, ResultType};
use crate::temporal::{self, Mode, Wanted};
use types::temporal::{
    DateRules, DurationForm, Interval, IntervalUnit, TimeOrDateTime, WeekMode, add_interval,
    week_number,
};
use types::{ColumnType, DateTime, SqlError, Time, TypeKind, ValueRef, codes};

static EXTRACT: Function = Function::new("extract", 1, 1, resolve_extract, extract);
static DIFFERENCE: Function = Function::new("timestampdiff", 2, 2, resolve_difference, difference);

fn resolve_extract(
    _: &Builder<'_>,
    _: &'static Function,
    _: &mut [Expr],
) -> Result<ResultType, SqlError> {
    Ok(ResultType::integer_of_length(11, false, true))
}

fn resolve_difference(
    _: &Builder<'_>,
    _: &'static Function,
    _: &mut [Expr],
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
        if arguments[0].result.is_json {
            let operation = format!("extract({})", unit.name());
            let name = arguments[0].result.type_name();
            let code = &codes::ILLEGAL_PARAMETER_DATA_TYPE_FOR_OPERATION;
            return Err(SqlError::new(code, &[&name, &operation]));
        }
        result = extract_result(unit, &arguments[0].result);
    }
    Ok(Expr { kind: ExprKind::UnitCall { function, unit, arguments }, result })
}

/// Characters of the days of what is no date or time by its type.
const DAYS_OF_INTERVAL: u32 = 8;

/// Type of EXTRACT: room for the digits and a sign where it may be negative.
fn extract_result(unit: IntervalUnit, source: &ResultType) -> ResultType {
    use IntervalUnit as U;
    let day = match source.column_type.kind {
        TypeKind::Date => 2,
        TypeKind::DateTime | TypeKind::Timestamp => 3,
        TypeKind::Time => 7,
        _ => DAYS_OF_INTERVAL,
    };
    let length = match unit {
        U::Year => 4,
        U::YearMonth => 6,
        U::Quarter => 1,
        U::Month | U::Week => 2,
        U::Day => day,
        U::Hour | U::Minute | U::Second => 3,
        U::DayMinute if day == DAYS_OF_INTERVAL => day + 4,
        U::DaySecond if day == DAYS_OF_INTERVAL => day + 6,
        U::DayHour | U::HourMinute | U::MinuteSecond => 5,
        U::DayMinute | U::HourSecond | U::Microsecond => 7,
        U::DaySecond | U::SecondMicrosecond => 9,
        U::MinuteMicrosecond => 11,
        U::HourMicrosecond => 13,
        U::DayMicrosecond => 15,
    };
    let mut result = ResultType::integer_of_length(length, false, true);
    if is_of_date(unit) {
        // All of its characters are digits.
        result.column_type.precision = length as u8;
        result.is_date_part = true;
    }
    result
}

/// Whether EXTRACT takes a unit from a date, so that it is never negative.
pub(crate) fn is_of_date(unit: IntervalUnit) -> bool {
    use IntervalUnit as U;
    matches!(unit, U::Year | U::YearMonth | U::Quarter | U::Month | U::Week)
}

/// Unit of a `UnitCall`.
fn unit_of(expr: &Expr) -> IntervalUnit {
    match &expr.kind {
        ExprKind::UnitCall { unit, .. } => *unit,
        _ => IntervalUnit::Day,
    }
}

/// Whether a unit is counted in months.
fn is_of_months(unit: IntervalUnit) -> bool {
    use IntervalUnit as U;
    matches!(unit, U::Year | U::YearMonth | U::Quarter | U::Month)
}

fn extract(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    use IntervalUnit as U;
    let unit = unit_of(frame.expr);
    if !is_of_date(unit) {
        let value = frame.value(0)?;
        if value.is_null() {
            return Ok(ValueRef::Null);
        }
        return extract_time(&frame, value, unit);
    }
    // A duration has no months.
    if frame.result(0).column_type.kind == TypeKind::Time && !matches!(unit, U::Week) {
        return Ok(if frame.value(0)?.is_null() { ValueRef::Null } else { ValueRef::Int(0) });
    }
    let rules = temporal::zeros_allowed(frame.context);
    let Some(value) = frame.datetime(0, rules)? else { return Ok(ValueRef::Null) };
    let date = value.date();
    let (year, month) = (i64::from(date.year()), i64::from(date.month()));
    Ok(ValueRef::Int(match unit {
        U::Year => year,
        U::YearMonth => year * 100 + month,
        U::Quarter => (month + 2) / 3,
        U::Month => month,
        _ => {
            let mode = frame.context.settings.default_week_format;
            i64::from(week_number(date, WeekMode::from_number(mode)).0)
        }
    }))
}

/// Days and the time of day, or of the last day of a duration, that EXTRACT takes from.
fn day_and_time(
    frame: &Frame<'_>,
    value: ValueRef<'_>,
    unit: IntervalUnit,
) -> Result<Option<(i64, i64, Time)>, SqlError> {
    use IntervalUnit as U;
    // DAY_MICROSECOND reads digits as a time.
    let days = matches!(unit, U::Day | U::DayHour | U::DayMinute | U::DaySecond);
    let form = if days { DurationForm::DayInterval } else { DurationForm::Interval };
    let rules = temporal::session_rules(frame.context);
    let mode = Mode { wanted: Wanted::Time(form), rules, compared: false };
    let found = temporal::moment(frame.context, value, &frame.arguments[0], mode)?;
    Ok(found.map(|parsed| match parsed.value {
        TimeOrDateTime::DateTime(v) => (1, i64::from(v.date().day()), v.time()),
        TimeOrDateTime::Time(time) => {
            let days = i64::from(time.hours() / 24);
            let sign = if time.is_negative() { -1 } else { 1 };
            (sign, days, Time(time.0.abs() - days * 86_400_000_000))
        }
    }))
}

/// Units of days and less.
fn extract_time<'a>(
    frame: &Frame<'a>,
    value: ValueRef<'a>,
    unit: IntervalUnit,
) -> Result<ValueRef<'a>, SqlError> {
    use IntervalUnit as U;
    let Some((sign, day, time)) = day_and_time(frame, value, unit)? else {
        return Ok(ValueRef::Null);
    };
    let (hour, minute, second) =
        (i64::from(time.hours()), i64::from(time.minutes()), i64::from(time.seconds()));
    let micros = i64::from(time.micros());
    let clock = hour * 10_000 + minute * 100 + second;
    let magnitude = match unit {
        U::Day => day,
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

/// Whether a duration cannot be made longer by a unit.
fn is_too_long_for_time(unit: IntervalUnit) -> bool {
    unit.is_months_or_more() || unit == IntervalUnit::Week
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
        IntervalUnit::Second => number_scale(amount),
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
        TypeKind::Time if !is_too_long_for_time(unit) => {
            ResultType::of(ColumnType::temporal(TypeKind::Time, scale), true)
        }
        TypeKind::Time => ResultType::of(ColumnType::temporal(TypeKind::DateTime, scale), true),
        _ => {
            let digits = known_scale(builder, base).max(scale_of_unit);
            let length = 19 + if digits > 0 { u64::from(digits) + 1 } else { 0 };
            let collation = builder.connection_collation();
            let mut result =
                ResultType::string(length, collation, Coercibility::Coercible, true, true);
            result.column_type.kind = TypeKind::Char;
            result.column_type.scale = digits;
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
    if unit.parts() > 1 {
        let value = amount.eval(context, row)?;
        if value.is_null() {
            return Ok(None);
        }
        let text = coerce::to_text(context, value, &amount.result);
        return Ok(Interval::parse(unit, text));
    }
    if unit == IntervalUnit::Second && number_scale(amount) > 0 {
        let found = read_number::decimal(amount, context, row)?;
        let Some(decimal) = found else { return Ok(None) };
        if decimal.integer_digits() > 18 {
            context.warn(&codes::TRUNCATED_WRONG_VALUE, &[&"seconds", &decimal])?;
            return Ok(None);
        }
        let micros = decimal.truncated(6).with_scale(6).mantissa().unwrap_or(0);
        let micros = micros.clamp(-(1 << 80), 1 << 80);
        return Ok(Some(Interval { months: 0, micros }));
    }
    let bounded = |whole: i128| whole.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
    let whole = read_number::whole(amount, context, row)?;
    Ok(whole.map(|whole| Interval::of(unit, bounded(whole), 0)))
}

/// A duration and microseconds, perhaps as a text with so many digits after the point; NULL with a
/// warning beyond the longest.
fn add_to_time(
    time: Time,
    delta: i128,
    digits: Option<u8>,
    context: &EvalContext,
) -> Result<ValueRef<'_>, SqlError> {
    let sum = i128::from(time.0) + delta;
    if sum.abs() > i128::from(Time::MAX.0) {
        context.warn(&codes::DATETIME_FUNCTION_OVERFLOW, &[&"time"])?;
        return Ok(ValueRef::Null);
    }
    let sum = Time(sum as i64);
    let Some(digits) = digits else { return Ok(ValueRef::Time(sum)) };
    let mut text = Vec::with_capacity(17);
    sum.write_text(digits, &mut text);
    Ok(ValueRef::Bytes(context.keep(&text)))
}

/// A date and an interval. Days are counted from the year 1, even where none is added.
fn sum_of(start: DateTime, interval: Interval, unit: IntervalUnit) -> Option<DateTime> {
    add_interval(start, interval)
        .filter(|sum| sum.date().year() > 0 || is_of_months(unit) || start.date().year() > 0)
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
    // Known by the types alone: the server does not even look at the value.
    if base.result.column_type.kind == TypeKind::Time && is_too_long_for_time(unit) {
        context.warn(&codes::DATETIME_FUNCTION_OVERFLOW, &[&"time"])?;
        return Ok(ValueRef::Null);
    }
    let value = match base.nature() {
        // Its day 0 is a date here, and warned of.
        Nature::DayNumber => crate::compared::compared(base, CompareRule::DateTime, context, row)?,
        _ => super::eval_moment(base, context, row)?,
    };
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let is_text = expr.result.is_string();
    if (is_text || expr.result.column_type.kind == TypeKind::Time)
        && let ValueRef::Time(time) = value
    {
        if is_too_long_for_time(unit) {
            context.warn(&codes::DATETIME_FUNCTION_OVERFLOW, &[&"time"])?;
            return Ok(ValueRef::Null);
        }
        let Some(interval) = amount_of(amount, unit, context, row)? else {
            return Ok(ValueRef::Null);
        };
        let delta = if subtract { -interval.micros } else { interval.micros };
        let digits = is_text.then_some(expr.result.column_type.scale);
        return add_to_time(time, delta, digits, context);
    }
    let mode = Mode { wanted: Wanted::DateTime, rules: DateRules::default(), compared: false };
    let Some(found) = temporal::moment(context, value, base, mode)? else {
        return Ok(ValueRef::Null);
    };
    let start = temporal::as_datetime(context, found.value);
    let has_time = match expr.result.column_type.kind {
        TypeKind::Date => false,
        TypeKind::DateTime => true,
        _ => found.has_time,
    };
    if !temporal::check(context, start, has_time, DateRules::complete())? {
        return Ok(ValueRef::Null);
    }
    let Some(interval) = amount_of(amount, unit, context, row)? else {
        return Ok(ValueRef::Null);
    };
    let interval = if subtract { interval.negated() } else { interval };
    let Some(sum) = sum_of(start, interval, unit) else {
        context.warn(&codes::DATETIME_FUNCTION_OVERFLOW, &[&"datetime"])?;
        return Ok(ValueRef::Null);
    };
    Ok(match expr.result.column_type.kind {
        TypeKind::Date => ValueRef::Date(sum.date()),
        TypeKind::DateTime => ValueRef::DateTime(sum),
        _ => {
            let has_time = has_time || !unit.is_days_or_more();
            text_of_sum(sum, has_time.then_some(expr.result.column_type.scale), context)
        }
    })
}

/// A sum as a text: a date and time with so many digits, or a date.
fn text_of_sum(sum: DateTime, scale: Option<u8>, context: &EvalContext) -> ValueRef<'_> {
    let mut text = Vec::with_capacity(26);
    match scale {
        Some(scale) => sum.write_text(scale, &mut text),
        None => sum.date().write_text(&mut text),
    }
    ValueRef::Bytes(context.keep(&text))
}
