//! Durations: adding, subtracting, and making dates and times from numbers.

use super::temporal_now::{seconds_result, seconds_value};
use super::temporal_typing::{
    date_result, datetime_result, known_scale, known_time_scale, time_result,
};
use super::typing::connection_text;
use super::{Frame, Function, any_nullable};
use crate::builder::Builder;
use crate::coerce;
use crate::expression::Expr;
use crate::result_type::ResultType;
use types::temporal::{
    DateRules, MICROS, TimeOrDateTime, date_from_day_number, day_number, parse_time,
};
use types::{DateTime, Decimal, SqlError, Time, TypeKind, ValueRef, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("timediff", 2, 2, resolve_timediff, timediff),
    Function::new("addtime", 2, 2, resolve_addtime, addtime),
    Function::new("subtime", 2, 2, resolve_addtime, subtime),
    Function::new("sec_to_time", 1, 1, resolve_sec_to_time, sec_to_time),
    Function::new("time_to_sec", 1, 1, resolve_time_to_sec, time_to_sec),
    Function::new("maketime", 3, 3, resolve_maketime, maketime),
    Function::new("makedate", 2, 2, resolve_makedate, makedate),
    Function::new("period_add", 2, 2, resolve_period, period_add),
    Function::new("period_diff", 2, 2, resolve_period, period_diff),
];

type Resolved = Result<ResultType, SqlError>;
type Evaluated<'a> = Result<ValueRef<'a>, SqlError>;

/// A duration within TIME's range; a longer one is cut with a warning that shows it.
fn limited<'a>(frame: &Frame<'_>, micros: i128) -> Evaluated<'a> {
    let limit = i128::from(Time::MAX.0);
    let scale = frame.expr.result.column_type.scale;
    if micros.abs() <= limit {
        return Ok(ValueRef::Time(Time(micros as i64).truncated(scale)));
    }
    // The server counts seconds in 31 bits.
    let seconds = (micros.unsigned_abs() / 1_000_000).min(i32::MAX as u128);
    let mut shown = format!(
        "{}{}:{:02}:{:02}",
        if micros < 0 { "-" } else { "" },
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    if micros % 1_000_000 != 0 {
        shown.push_str(&format!(".{:06}", micros.unsigned_abs() % 1_000_000));
    }
    frame.context.warn(&codes::TRUNCATED_WRONG_VALUE, &[&"time", &shown])?;
    let bound = if micros < 0 { -limit } else { limit };
    Ok(ValueRef::Time(Time(bound as i64).truncated(scale)))
}

fn resolve_timediff(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let scale = known_time_scale(&arguments[0]).max(known_time_scale(&arguments[1]));
    Ok(time_result(scale, true))
}

/// An argument as a duration or a date and time, whichever it is.
fn moment(frame: &Frame<'_>, index: usize) -> Result<Option<TimeOrDateTime>, SqlError> {
    let value = frame.value(index)?;
    Ok(match value {
        ValueRef::Null => None,
        ValueRef::Date(date) => Some(TimeOrDateTime::DateTime(date.at_midnight())),
        ValueRef::DateTime(moment) => Some(TimeOrDateTime::DateTime(moment)),
        ValueRef::Timestamp(instant) => {
            let local = frame.context.settings.time_zone.to_local(instant);
            Some(TimeOrDateTime::DateTime(local))
        }
        ValueRef::Bytes(text)
            if let Some(parsed) = parse_time(text, DateRules::default())
                && !parsed.truncated
                && !parsed.out_of_range =>
        {
            Some(parsed.value)
        }
        _ => {
            let time = coerce::to_time(frame.context, value, &frame.arguments[index])?;
            time.map(TimeOrDateTime::Time)
        }
    })
}

fn timediff(frame: Frame<'_>) -> Evaluated<'_> {
    let (Some(a), Some(b)) = (moment(&frame, 0)?, moment(&frame, 1)?) else {
        return Ok(ValueRef::Null);
    };
    match (a, b) {
        (TimeOrDateTime::Time(a), TimeOrDateTime::Time(b)) => {
            limited(&frame, i128::from(a.0) - i128::from(b.0))
        }
        (TimeOrDateTime::DateTime(a), TimeOrDateTime::DateTime(b)) => {
            limited(&frame, i128::from(a.to_epoch_micros()) - i128::from(b.to_epoch_micros()))
        }
        _ => Ok(ValueRef::Null),
    }
}

fn resolve_addtime(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let added = known_time_scale(&arguments[1]);
    Ok(match arguments[0].result.column_type.kind {
        TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => {
            datetime_result(known_scale(&arguments[0]).max(added), true)
        }
        TypeKind::Time => time_result(known_time_scale(&arguments[0]).max(added), true),
        _ => {
            let mut result = connection_text(builder, 26);
            result.column_type.kind = TypeKind::Char;
            result
        }
    })
}

fn addtime(frame: Frame<'_>) -> Evaluated<'_> {
    add(&frame, 1)
}

fn subtime(frame: Frame<'_>) -> Evaluated<'_> {
    add(&frame, -1)
}

fn add<'a>(frame: &Frame<'a>, sign: i64) -> Evaluated<'a> {
    let Some(base) = moment(frame, 0)? else { return Ok(ValueRef::Null) };
    let Some(TimeOrDateTime::Time(added)) = moment(frame, 1)? else {
        return Ok(ValueRef::Null);
    };
    let as_text = frame.expr.result.is_string();
    let mut text = Vec::new();
    match base {
        TimeOrDateTime::DateTime(base) => {
            let micros = base.to_epoch_micros() + sign * added.0;
            let Some(sum) = DateTime::from_epoch_micros(micros) else { return Ok(ValueRef::Null) };
            if !as_text {
                return Ok(ValueRef::DateTime(sum));
            }
            sum.write_text(if sum.micros() > 0 { 6 } else { 0 }, &mut text);
        }
        TimeOrDateTime::Time(base) => {
            let sum = i128::from(base.0) + i128::from(sign * added.0);
            if !as_text {
                return limited(frame, sum);
            }
            let limit = i128::from(Time::MAX.0);
            let sum = Time(sum.clamp(-limit, limit) as i64);
            sum.write_text(if sum.micros() > 0 { 6 } else { 0 }, &mut text);
        }
    }
    Ok(frame.keep(&text))
}

fn resolve_sec_to_time(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let from = &arguments[0].result;
    let kind = from.column_type.kind;
    let scale = if kind.is_string() || kind.is_floating() { 6 } else { from.decimal_scale() };
    Ok(time_result(scale.min(6), true))
}

fn sec_to_time(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(seconds) = frame.decimal(0)? else { return Ok(ValueRef::Null) };
    let micros = micros_of(&seconds);
    let limit = i128::from(Time::MAX.0);
    let scale = frame.expr.result.column_type.scale;
    if micros.abs() > limit {
        let shown = seconds.to_string();
        frame.context.warn(&codes::TRUNCATED_WRONG_VALUE, &[&"seconds", &shown])?;
    }
    Ok(ValueRef::Time(Time(micros.clamp(-limit, limit) as i64).truncated(scale)))
}

/// Seconds as microseconds.
fn micros_of(seconds: &Decimal) -> i128 {
    let far = if seconds.is_negative() { i128::MIN / 2 } else { i128::MAX / 2 };
    seconds.truncated(6).with_scale(6).mantissa().unwrap_or(far)
}

fn resolve_time_to_sec(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(seconds_result(known_time_scale(&arguments[0])))
}

fn time_to_sec(frame: Frame<'_>) -> Evaluated<'_> {
    let time = frame.time(0)?;
    Ok(time.map_or(ValueRef::Null, |time| seconds_value(&frame.expr.result, time.0)))
}

fn resolve_maketime(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let seconds = &arguments[2].result;
    let kind = seconds.column_type.kind;
    let scale = if kind.is_string() || kind.is_floating() { 6 } else { seconds.decimal_scale() };
    Ok(time_result(scale.min(6), true))
}

fn maketime(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(hours) = frame.integer(0)? else { return Ok(ValueRef::Null) };
    let Some(minutes) = frame.integer(1)? else { return Ok(ValueRef::Null) };
    let Some(seconds) = frame.decimal(2)? else { return Ok(ValueRef::Null) };
    let micros = micros_of(&seconds);
    if !(0..60).contains(&minutes) || !(0..60 * i128::from(MICROS)).contains(&micros) {
        return Ok(ValueRef::Null);
    }
    let magnitude = (i128::from(hours.unsigned_abs()) * 3600 + i128::from(minutes) * 60)
        * i128::from(MICROS)
        + micros;
    limited(&frame, if hours < 0 { -magnitude } else { magnitude })
}

fn resolve_makedate(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(date_result(true))
}

fn makedate(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(year) = frame.integer(0)? else { return Ok(ValueRef::Null) };
    let Some(day) = frame.integer(1)? else { return Ok(ValueRef::Null) };
    if !(0..=9999).contains(&year) || !(1..=4_000_000).contains(&day) {
        return Ok(ValueRef::Null);
    }
    let year = year
        + if year < 70 {
            2000
        } else if year < 100 {
            1900
        } else {
            0
        };
    let number = day_number(year as u32, 1, 1) + day - 1;
    Ok(date_from_day_number(number).map_or(ValueRef::Null, ValueRef::Date))
}

fn resolve_period(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(super::typing::int(6, any_nullable(arguments)))
}

/// Months of a period YYMM or YYYYMM; 0 of what is none.
fn months_of_period(period: i64) -> i64 {
    if !(1..=PERIOD_MAX).contains(&period) {
        return 0;
    }
    let (year, month) = (period / 100, period % 100);
    let year = year
        + if year < 70 {
            2000
        } else if year < 100 {
            1900
        } else {
            0
        };
    year * 12 + month - 1
}

/// December of the year 9999.
const PERIOD_MAX: i64 = 999_912;

fn period_add(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(period) = frame.integer(0)? else { return Ok(ValueRef::Null) };
    let Some(months) = frame.integer(1)? else { return Ok(ValueRef::Null) };
    if period == 0 {
        return Ok(ValueRef::Int(0));
    }
    // The server counts months in 32 bits without a sign.
    let total = months_of_period(period).wrapping_add(i64::from(months as i32)) as u32;
    if total == 0 {
        return Ok(ValueRef::Int(0));
    }
    let year = match i64::from(total / 12) {
        year @ 0..70 => year + 2000,
        year @ 70..100 => year + 1900,
        year => year,
    };
    Ok(ValueRef::Int(year * 100 + i64::from(total % 12) + 1))
}

fn period_diff(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(a) = frame.integer(0)? else { return Ok(ValueRef::Null) };
    let Some(b) = frame.integer(1)? else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Int(months_of_period(a) - months_of_period(b)))
}
