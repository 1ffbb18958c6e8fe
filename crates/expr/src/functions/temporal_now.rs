//! The statement's time, and instants as numbers.

use super::temporal_typing::{datetime_result, known_scale, time_result};
use super::typing::{constant_integer, literal_integer};
use super::{Frame, Function};
use crate::builder::Builder;
use crate::expression::{Expr, ExprKind};
use crate::result_type::ResultType;
use types::column_type::SCALE_NOT_FIXED;
use types::temporal::{DateRules, MICROS};
use types::{ColumnType, DateTime, Decimal, SqlError, Timestamp, TypeKind, ValueRef, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("now", 0, 1, resolve_now, now),
    Function::new("current_timestamp", 0, 1, resolve_now, now),
    Function::new("localtime", 0, 1, resolve_now, now),
    Function::new("localtimestamp", 0, 1, resolve_now, now),
    Function::new("sysdate", 0, 1, resolve_now, sysdate).volatile(),
    Function::new("utc_timestamp", 0, 1, resolve_now, utc_timestamp),
    Function::new("curdate", 0, 0, resolve_curdate, curdate),
    Function::new("current_date", 0, 0, resolve_curdate, curdate),
    Function::new("utc_date", 0, 0, resolve_curdate, utc_date),
    Function::new("curtime", 0, 1, resolve_curtime, curtime),
    Function::new("current_time", 0, 1, resolve_curtime, curtime),
    Function::new("utc_time", 0, 1, resolve_curtime, utc_time),
    Function::new("unix_timestamp", 0, 1, resolve_unix_timestamp, unix_timestamp),
    Function::new("from_unixtime", 1, 2, resolve_from_unixtime, from_unixtime),
    Function::new("convert_tz", 3, 3, resolve_convert_tz, convert_tz),
];

type Resolved = Result<ResultType, SqlError>;
type Evaluated<'a> = Result<ValueRef<'a>, SqlError>;

/// Fractional digits asked for; 1426 for more than six.
fn asked_scale(function: &Function, arguments: &[Expr]) -> Result<u8, SqlError> {
    match arguments.first().and_then(literal_integer) {
        None => Ok(0),
        Some(scale @ 0..=6) => Ok(scale as u8),
        Some(_) => {
            let name = if function.name() == "now" { "current_timestamp" } else { function.name() };
            Err(SqlError::new(&codes::TOO_BIG_PRECISION, &[&name, &6]))
        }
    }
}

fn resolve_now(_: &Builder<'_>, function: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(datetime_result(asked_scale(function, arguments)?, false))
}

fn scaled<'a>(frame: &Frame<'_>, moment: DateTime) -> Evaluated<'a> {
    Ok(ValueRef::DateTime(moment.truncated(frame.expr.result.column_type.scale)))
}

fn now(frame: Frame<'_>) -> Evaluated<'_> {
    scaled(&frame, frame.context.local_now())
}

fn sysdate(frame: Frame<'_>) -> Evaluated<'_> {
    let instant = frame.context.clock();
    scaled(&frame, frame.context.settings.time_zone.to_local(instant))
}

fn utc(frame: &Frame<'_>) -> DateTime {
    DateTime::from_epoch_micros(frame.context.now.0).unwrap_or_default()
}

fn utc_timestamp(frame: Frame<'_>) -> Evaluated<'_> {
    scaled(&frame, utc(&frame))
}

fn resolve_curdate(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(ResultType::of(ColumnType::date(), false))
}

fn curdate(frame: Frame<'_>) -> Evaluated<'_> {
    Ok(ValueRef::Date(frame.context.local_now().date()))
}

fn utc_date(frame: Frame<'_>) -> Evaluated<'_> {
    Ok(ValueRef::Date(utc(&frame).date()))
}

fn resolve_curtime(
    _: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    Ok(time_result(asked_scale(function, arguments)?, false))
}

fn time_of_day<'a>(frame: &Frame<'_>, moment: DateTime) -> Evaluated<'a> {
    let scale = frame.expr.result.column_type.scale;
    Ok(ValueRef::Time(moment.time().truncated(scale)))
}

fn curtime(frame: Frame<'_>) -> Evaluated<'_> {
    time_of_day(&frame, frame.context.local_now())
}

fn utc_time(frame: Frame<'_>) -> Evaluated<'_> {
    time_of_day(&frame, utc(&frame))
}

/// Seconds with a fraction: BIGINT without, DECIMAL with.
pub(super) fn seconds_result(scale: u8) -> ResultType {
    if scale == 0 {
        return ResultType::integer_of_length(17, false, true);
    }
    ResultType::decimal(16 + u32::from(scale), u32::from(scale), false, true)
}

/// Microseconds as seconds of the type that [`seconds_result`] gave.
pub(super) fn seconds_value<'a>(result: &ResultType, micros: i64) -> ValueRef<'a> {
    if result.column_type.kind == TypeKind::Decimal {
        let seconds = Decimal::new(i128::from(micros), 6);
        // The digits that are not shown are zeros; whole seconds have none.
        let scale = if micros % MICROS == 0 { 0 } else { 6 };
        return ValueRef::Decimal(seconds.truncated(result.column_type.scale).with_scale(scale));
    }
    ValueRef::Int(micros / MICROS)
}

fn resolve_unix_timestamp(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let scale = arguments.first().map_or(0, |argument| known_scale(builder, argument));
    Ok(seconds_result(scale))
}

fn unix_timestamp(frame: Frame<'_>) -> Evaluated<'_> {
    let result = &frame.expr.result;
    if frame.count() == 0 {
        return Ok(seconds_value(result, frame.context.now.0));
    }
    if frame.result(0).column_type.kind == TypeKind::Timestamp
        && let ValueRef::Timestamp(instant) = frame.value(0)?
    {
        return Ok(seconds_value(result, instant.0));
    }
    // The zero date is none of the clock's, and is none without a warning.
    let rules = DateRules { no_zero_date: false, ..DateRules::complete() };
    let Some(moment) = frame.datetime(0, rules)?.filter(|moment| moment.0 != 0) else {
        return Ok(ValueRef::Null);
    };
    let instant = frame.context.settings.time_zone.to_instant(moment);
    if !(0..=Timestamp::MAX.0).contains(&instant.0) {
        return Ok(ValueRef::Null);
    }
    Ok(seconds_value(result, instant.0))
}

/// Digits after the point that are not known before a value is: shown when there are any.
const SCALE_OF_VALUE: u8 = 39;

fn resolve_from_unixtime(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    if arguments.len() > 1 {
        return Ok(super::temporal_text::format_result(builder, &arguments[1]));
    }
    let decimals = arguments[0].result.decimals();
    let mut result = datetime_result(decimals.min(6), true);
    // Rounded to as many digits as no number has, it has all digits of a moment.
    let is_rounded = matches!(&arguments[0].kind, ExprKind::Call { function, arguments }
        if matches!(function.name(), "round" | "truncate")
            && constant_integer(builder, arguments.get(1)).is_some());
    // The digits of a DOUBLE that is chosen beside a variable of DECIMAL count as fixed.
    let is_double = arguments[0].result.column_type.kind == TypeKind::Double;
    let is_fixed = decimals < SCALE_NOT_FIXED || (is_double && decimals > SCALE_NOT_FIXED);
    let is_open = !is_fixed && !is_rounded;
    if is_open && !arguments[0].result.is_decimal() {
        result.column_type.scale = SCALE_OF_VALUE;
    }
    Ok(result)
}

/// The clock's time at so many seconds since 1970; `None` out of range.
fn from_seconds(frame: &Frame<'_>) -> Result<Option<DateTime>, SqlError> {
    let limit = (Timestamp::MAX.0 / MICROS) as u64;
    let value = frame.number(0)?;
    let found =
        crate::seconds::seconds(frame.context, value, &frame.arguments[0], "unixtime", limit)?;
    let Some(seconds) = found.filter(|it| !it.negative && !it.truncated) else { return Ok(None) };
    let micros = seconds.whole as i64 * MICROS + i64::from(seconds.micros);
    let offset = i64::from(frame.context.settings.time_zone.offset_seconds()) * MICROS;
    Ok(DateTime::from_epoch_micros(micros + offset))
}

fn from_unixtime(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(moment) = from_seconds(&frame)? else { return Ok(ValueRef::Null) };
    if frame.count() == 1 {
        return Ok(ValueRef::DateTime(moment));
    }
    let Some(format) = frame.text(1)? else { return Ok(ValueRef::Null) };
    super::temporal_text::formatted(&frame, moment, format)
}

fn resolve_convert_tz(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    Ok(datetime_result(known_scale(builder, &arguments[0]), true))
}

fn convert_tz(frame: Frame<'_>) -> Evaluated<'_> {
    let zone = |index: usize| -> Result<Option<types::TimeZone>, SqlError> {
        let text = frame.text(index)?;
        Ok(text.and_then(|t| types::TimeZone::parse(&String::from_utf8_lossy(t))))
    };
    // Where there is no such time zone nobody asks for the moment.
    let (Some(from), Some(to)) = (zone(1)?, zone(2)?) else { return Ok(ValueRef::Null) };
    let Some(moment) = frame.datetime(0, DateRules::complete())? else {
        return Ok(ValueRef::Null);
    };
    let instant = from.to_instant(moment);
    if !(MICROS..=Timestamp::MAX.0).contains(&instant.0) {
        return Ok(ValueRef::DateTime(moment));
    }
    Ok(ValueRef::DateTime(to.to_local(instant)))
}
