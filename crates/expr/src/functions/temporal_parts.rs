//! Parts of dates and times, and days as numbers.

use super::temporal_typing::{
    date_result, datetime_result, known_scale, known_time_scale, time_result,
};
use super::typing::{int, plain};
use super::{Frame, Function, Nature};
use crate::builder::Builder;
use crate::compared;
use crate::expression::Expr;
use crate::result_type::ResultType;
use crate::temporal;
use types::temporal::{
    DAY_NAMES, DateRules, MONTH_NAMES, WeekMode, date_from_day_number, day_number, days_in_month,
    week_number, weekday,
};
use types::{Date, DateTime, SqlError, SqlMode, TypeKind, ValueRef};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("date", 1, 1, resolve_date, date).compared_by(compared_cast),
    Function::new("time", 1, 1, resolve_time, time).compared_by(compared_cast),
    Function::new("timestamp", 1, 2, resolve_timestamp, timestamp).compared_by(compared_cast),
    Function::new("year", 1, 1, resolve_4, year).being(Nature::DatePart),
    Function::new("month", 1, 1, resolve_2, month).being(Nature::DatePart),
    Function::new("day", 1, 1, resolve_2, day).being(Nature::DatePart),
    Function::new("dayofmonth", 1, 1, resolve_2, day).being(Nature::DatePart),
    Function::new("hour", 1, 1, resolve_2, hour).being(Nature::DatePart),
    Function::new("minute", 1, 1, resolve_2, minute).being(Nature::DatePart),
    Function::new("second", 1, 1, resolve_2, second).being(Nature::DatePart),
    Function::new("microsecond", 1, 1, resolve_6, microsecond).being(Nature::DatePart),
    Function::new("quarter", 1, 1, resolve_1, quarter).being(Nature::DatePart),
    Function::new("week", 1, 2, resolve_2, week).being(Nature::DatePart),
    Function::new("weekofyear", 1, 1, resolve_2, weekofyear).being(Nature::DatePart),
    Function::new("yearweek", 1, 2, resolve_6, yearweek),
    Function::new("dayofweek", 1, 1, resolve_1, dayofweek),
    Function::new("weekday", 1, 1, resolve_1, day_of_week_from_monday),
    Function::new("dayofyear", 1, 1, resolve_3, dayofyear).being(Nature::DatePart),
    Function::new("dayname", 1, 1, resolve_name, dayname),
    Function::new("monthname", 1, 1, resolve_name, monthname),
    Function::new("last_day", 1, 1, resolve_date, last_day).compared_by(compared_last_day),
    Function::new("to_days", 1, 1, resolve_6, to_days).being(Nature::DatePart),
    Function::new("to_seconds", 1, 1, resolve_to_seconds, to_seconds),
    Function::new("from_days", 1, 1, resolve_date, from_days)
        .being(Nature::DayNumber)
        .compared_by(compared_from_days),
    Function::new("datediff", 2, 2, resolve_8, datediff),
];

type Resolved = Result<ResultType, SqlError>;
type Evaluated<'a> = Result<ValueRef<'a>, SqlError>;

macro_rules! resolve_parts {
    ($($name:ident = $length:literal;)*) => {$(
        fn $name(_: &Builder<'_>, function: &'static Function, _: &mut [Expr]) -> Resolved {
            let mut result = int($length, true);
            if function.nature() == Nature::DatePart {
                // All of its characters are digits.
                result.column_type.precision = $length;
                result.is_date_part = true;
            }
            Ok(result)
        }
    )*};
}

resolve_parts! {
    resolve_1 = 1;
    resolve_2 = 2;
    resolve_3 = 3;
    resolve_4 = 4;
    resolve_6 = 6;
    resolve_8 = 8;
}

fn resolve_date(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(date_result(true))
}

/// The argument as a date that may have zero parts, whatever the session allows.
fn any_date(frame: &Frame<'_>) -> Result<Option<DateTime>, SqlError> {
    frame.datetime(0, DateRules::default())
}

/// The argument as a day of the calendar.
fn calendar_day(frame: &Frame<'_>, index: usize) -> Result<Option<Date>, SqlError> {
    Ok(frame.datetime(index, DateRules::complete())?.map(DateTime::date))
}

/// An integer of a date, NULL if there is none.
fn part<'a>(date: Option<DateTime>, of: impl Fn(Date) -> u32) -> Evaluated<'a> {
    Ok(date.map_or(ValueRef::Null, |date| ValueRef::Int(i64::from(of(date.date())))))
}

fn date(frame: Frame<'_>) -> Evaluated<'_> {
    cast(&frame)
}

/// A function that is a CAST by another name.
fn cast<'a>(frame: &Frame<'a>) -> Evaluated<'a> {
    let target = &frame.expr.result.column_type;
    let operand = &frame.arguments[0];
    compared::cast((target.kind, target.scale), operand, false, frame.context, frame.row)
}

/// The same as an operand of a comparison.
fn compared_cast(frame: Frame<'_>) -> Evaluated<'_> {
    if frame.count() > 1 {
        return timestamp(frame);
    }
    let target = &frame.expr.result.column_type;
    let operand = &frame.arguments[0];
    compared::cast((target.kind, target.scale), operand, true, frame.context, frame.row)
}

fn resolve_time(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(time_result(known_time_scale(builder, &arguments[0]), true))
}

fn time(frame: Frame<'_>) -> Evaluated<'_> {
    cast(&frame)
}

fn resolve_timestamp(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let scale = known_scale(builder, &arguments[0]);
    let added = |argument| super::temporal_make::added_scale(builder, argument);
    let added = arguments.get(1).map_or(0, added);
    Ok(datetime_result(scale.max(added), true))
}

fn timestamp(frame: Frame<'_>) -> Evaluated<'_> {
    if frame.count() == 1 {
        return cast(&frame);
    }
    let found = frame.datetime(0, DateRules::default())?;
    let Some(moment) = found else { return Ok(ValueRef::Null) };
    let Some(added) = super::temporal_make::added_time(&frame, 1)? else {
        return Ok(ValueRef::Null);
    };
    let sum = super::temporal_make::datetime_sum(moment, added.0);
    Ok(sum.map_or(ValueRef::Null, ValueRef::DateTime))
}

fn year(frame: Frame<'_>) -> Evaluated<'_> {
    part(any_date(&frame)?, Date::year)
}

fn month(frame: Frame<'_>) -> Evaluated<'_> {
    part(any_date(&frame)?, Date::month)
}

fn day(frame: Frame<'_>) -> Evaluated<'_> {
    part(any_date(&frame)?, Date::day)
}

fn quarter(frame: Frame<'_>) -> Evaluated<'_> {
    part(any_date(&frame)?, |date| date.month().div_ceil(3))
}

fn time_part<'a>(frame: &Frame<'a>, of: fn(types::Time) -> u32) -> Evaluated<'a> {
    let time = frame.time(0)?;
    Ok(time.map_or(ValueRef::Null, |time| ValueRef::Int(i64::from(of(time)))))
}

fn hour(frame: Frame<'_>) -> Evaluated<'_> {
    time_part(&frame, types::Time::hours)
}

fn minute(frame: Frame<'_>) -> Evaluated<'_> {
    time_part(&frame, types::Time::minutes)
}

fn second(frame: Frame<'_>) -> Evaluated<'_> {
    time_part(&frame, types::Time::seconds)
}

fn microsecond(frame: Frame<'_>) -> Evaluated<'_> {
    time_part(&frame, types::Time::micros)
}

/// The mode of WEEK and YEARWEEK: the second argument, or a default.
fn week_mode(frame: &Frame<'_>, default: u32) -> Result<WeekMode, SqlError> {
    let mode = if frame.count() > 1 { frame.integer(1)?.unwrap_or(0) as u32 } else { default };
    Ok(WeekMode::from_number(mode & 7))
}

fn week(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(date) = calendar_day(&frame, 0)? else { return Ok(ValueRef::Null) };
    let mode = week_mode(&frame, frame.context.settings.default_week_format)?;
    Ok(ValueRef::Int(i64::from(week_number(date, mode).0)))
}

fn weekofyear(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(date) = calendar_day(&frame, 0)? else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Int(i64::from(week_number(date, WeekMode::from_number(3)).0)))
}

fn yearweek(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(date) = calendar_day(&frame, 0)? else { return Ok(ValueRef::Null) };
    let mode = WeekMode { week_year: true, ..week_mode(&frame, 0)? };
    let (week, year) = week_number(date, mode);
    // The week before the first of year 0 is one of a year that 32 bits wrap around to.
    Ok(ValueRef::Int(i64::from(year.wrapping_mul(100).wrapping_add(week))))
}

fn day_part<'a>(frame: &Frame<'a>, of: fn(Date) -> i64) -> Evaluated<'a> {
    Ok(calendar_day(frame, 0)?.map_or(ValueRef::Null, |date| ValueRef::Int(of(date))))
}

fn number(date: Date) -> i64 {
    day_number(date.year(), date.month(), date.day())
}

fn dayofweek(frame: Frame<'_>) -> Evaluated<'_> {
    day_part(&frame, |date| i64::from((weekday(date) + 1) % 7 + 1))
}

fn day_of_week_from_monday(frame: Frame<'_>) -> Evaluated<'_> {
    day_part(&frame, |date| i64::from(weekday(date)))
}

fn dayofyear(frame: Frame<'_>) -> Evaluated<'_> {
    day_part(&frame, |date| number(date) - day_number(date.year(), 1, 1) + 1)
}

fn to_days(frame: Frame<'_>) -> Evaluated<'_> {
    day_part(&frame, number)
}

fn resolve_name(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(plain(super::typing::connection_text(builder, 9)))
}

fn dayname(frame: Frame<'_>) -> Evaluated<'_> {
    let date = calendar_day(&frame, 0)?;
    Ok(date.map_or(ValueRef::Null, |date| {
        ValueRef::Bytes(DAY_NAMES[weekday(date) as usize].as_bytes())
    }))
}

fn monthname(frame: Frame<'_>) -> Evaluated<'_> {
    let month = any_date(&frame)?.map_or(0, |moment| moment.date().month() as usize);
    let name = month.checked_sub(1).and_then(|index| MONTH_NAMES.get(index));
    Ok(name.map_or(ValueRef::Null, |name| ValueRef::Bytes(name.as_bytes())))
}

fn last_day(frame: Frame<'_>) -> Evaluated<'_> {
    let rules = temporal::session_rules(frame.context);
    let Some(moment) = frame.datetime(0, rules)? else { return Ok(ValueRef::Null) };
    Ok(last_day_of(moment).map_or(ValueRef::Null, ValueRef::Date))
}

/// LAST_DAY as an operand of a comparison.
fn compared_last_day(frame: Frame<'_>) -> Evaluated<'_> {
    let target = (TypeKind::DateTime, 6);
    let day = compared::cast(target, &frame.arguments[0], true, frame.context, frame.row)?;
    let ValueRef::DateTime(moment) = day else { return Ok(ValueRef::Null) };
    Ok(last_day_of(moment).map_or(ValueRef::Null, ValueRef::Date))
}

/// The last day of a month; none of month 0.
fn last_day_of(moment: DateTime) -> Option<Date> {
    let (year, month) = (moment.date().year(), moment.date().month());
    (month > 0).then(|| Date::new(year, month, days_in_month(year, month)))
}

fn resolve_to_seconds(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(ResultType::integer_of_length(12, false, true))
}

fn to_seconds(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(moment) = frame.datetime(0, DateRules::complete())? else {
        return Ok(ValueRef::Null);
    };
    let days = number(moment.date());
    Ok(ValueRef::Int(days * 86_400 + moment.time_micros() / 1_000_000))
}

fn from_days(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(days) = frame.integer(0)? else { return Ok(ValueRef::Null) };
    let date = if days < 366 { None } else { date_from_day_number(days) };
    let date = date.unwrap_or_default();
    // Day 0 is refused, what is too early to be a date is not.
    let refused = frame.context.settings.sql_mode.contains(SqlMode::NO_ZERO_DATE);
    Ok(if refused && days == 0 { ValueRef::Null } else { ValueRef::Date(date) })
}

/// FROM_DAYS as an operand of a comparison: day 0 is a date there.
fn compared_from_days(frame: Frame<'_>) -> Evaluated<'_> {
    let value = from_days(frame)?;
    let is_zero = value.is_null() && !frame.value(0)?.is_null();
    Ok(if is_zero { ValueRef::Date(Date::default()) } else { value })
}

fn datediff(frame: Frame<'_>) -> Evaluated<'_> {
    let (a, b) = (calendar_day(&frame, 0)?, calendar_day(&frame, 1)?);
    let (Some(a), Some(b)) = (a, b) else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Int(number(a) - number(b)))
}
