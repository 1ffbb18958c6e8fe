//! Durations: adding, subtracting, and making dates and times from numbers.

use super::temporal_now::{seconds_result, seconds_value};
use super::temporal_typing::{
    date_result, datetime_result, known_scale, known_time_scale, number_scale, refuse_json,
    time_result,
};
use super::typing::connection_text;
use super::{Frame, Function, Nature, any_nullable};
use crate::builder::Builder;
use crate::coerce;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::result_type::ResultType;
use crate::temporal;
use types::temporal::{
    DateRules, MICROS, Parsed, TimeOrDateTime, date_from_day_number, day_number, parse_added_time,
    parse_datetime,
};
use types::{DateTime, SqlError, Time, TypeKind, Value, ValueRef, Warning, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("timediff", 2, 2, resolve_timediff, timediff).being(Nature::Difference),
    Function::new("addtime", 2, 2, resolve_addtime, addtime).being(Nature::LaterMoment),
    Function::new("subtime", 2, 2, resolve_addtime, subtime).being(Nature::EarlierMoment),
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
fn limited<'a>(frame: &Frame<'_>, micros: i128, most_seconds: u128) -> Evaluated<'a> {
    let limit = i128::from(Time::MAX.0);
    let scale = frame.expr.result.column_type.scale;
    if micros.abs() <= limit {
        return Ok(ValueRef::Time(Time(micros as i64).truncated(scale)));
    }
    let seconds = (micros.unsigned_abs() / 1_000_000).min(most_seconds);
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

fn resolve_timediff(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let [first, second] = [0, 1].map(|number: usize| known_time_scale(builder, &arguments[number]));
    Ok(time_result(first.max(second), true))
}

/// An argument as a duration or a date and time, whichever it is.
fn moment(frame: &Frame<'_>, index: usize) -> Result<Option<Parsed<TimeOrDateTime>>, SqlError> {
    let value = eval_moment(&frame.arguments[index], frame.context, frame.row)?;
    temporal::moment(frame.context, value, &frame.arguments[index], temporal::time_mode(false))
}

/// The same, of a time with no more digits after the point than the result has.
fn cut_moment(frame: &Frame<'_>, index: usize) -> Result<Option<Parsed<TimeOrDateTime>>, SqlError> {
    let mut found = moment(frame, index)?;
    if let Some(Parsed { value: TimeOrDateTime::Time(time), .. }) = &mut found {
        *time = time.truncated(frame.expr.result.column_type.scale.min(6));
    }
    Ok(found)
}

/// The value of an expression of which a date or time is wanted: ADDTIME, SUBTIME and DATE_ADD
/// give theirs, also where their result is text.
pub(crate) fn eval_moment<'a>(
    expr: &'a Expr,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Evaluated<'a> {
    match &expr.kind {
        ExprKind::Call { function, arguments } if expr.result.is_string() => {
            let frame = Frame { expr, arguments, context, row };
            match expr.nature() {
                Nature::LaterMoment => add(&frame, 1, false),
                Nature::EarlierMoment => add(&frame, -1, false),
                _ => expr.eval(context, row),
            }
        }
        ExprKind::DateArithmetic { .. } if expr.result.is_string() => {
            Ok(match expr.eval(context, row)? {
                ValueRef::Bytes(text) => moment_of_sum(text),
                other => other,
            })
        }
        _ => expr.eval(context, row),
    }
}

/// Whether it is a date and an interval.
fn is_sum(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::DateArithmetic { .. })
}

/// The date, or date and time, that the text of a sum is; a time stays a text.
fn moment_of_sum(text: &[u8]) -> ValueRef<'_> {
    let is_time = !text.get(4).is_some_and(|byte| *byte == b'-');
    match parse_datetime(text, DateRules::default()).filter(|_| !is_time) {
        Some(parsed) if parsed.has_time => ValueRef::DateTime(parsed.value),
        Some(parsed) => ValueRef::Date(parsed.value.date()),
        None => ValueRef::Bytes(text),
    }
}

/// The server counts the seconds of a difference in 31 bits.
const DIFFERENCE_SECONDS: u128 = i32::MAX as u128;

fn timediff(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(a) = cut_moment(&frame, 0)? else { return Ok(ValueRef::Null) };
    let Some(b) = cut_moment(&frame, 1)? else { return Ok(ValueRef::Null) };
    match (a.value, b.value) {
        (TimeOrDateTime::Time(a), TimeOrDateTime::Time(b)) => {
            limited(&frame, i128::from(a.0) - i128::from(b.0), DIFFERENCE_SECONDS)
        }
        // A date is not compared with a date and time.
        (TimeOrDateTime::DateTime(x), TimeOrDateTime::DateTime(y)) if a.has_time == b.has_time => {
            let micros = i128::from(x.to_epoch_micros()) - i128::from(y.to_epoch_micros());
            limited(&frame, micros, DIFFERENCE_SECONDS)
        }
        _ => Ok(ValueRef::Null),
    }
}

/// How messages call what ADDTIME and TIMESTAMP add.
const ADDED: &str = "INTERVAL DAY TO SECOND";

/// An argument as a duration to add; `None` with a warning if it is something else.
pub(super) fn added_time(frame: &Frame<'_>, index: usize) -> Result<Option<Time>, SqlError> {
    let value = frame.value(index)?;
    if let ValueRef::Null | ValueRef::Time(_) = value {
        return Ok(if let ValueRef::Time(time) = value { Some(time) } else { None });
    }
    let text = coerce::to_text(frame.context, value, frame.result(index));
    let is_date = frame.result(index).column_type.kind.is_temporal();
    let shown = match is_date {
        true => crate::temporal::shown(frame.context, value),
        false => coerce::shown_text(text, frame.result(index)),
    };
    let incorrect = || -> Result<(), SqlError> {
        let message = codes::WRONG_VALUE.message(&[&ADDED, &shown]);
        if frame.context.warnings_are_errors.get() {
            return Err(SqlError::with_message(&codes::TRUNCATED_WRONG_VALUE, message));
        }
        let mut warning = Warning::new(&codes::TRUNCATED_WRONG_VALUE, &[]);
        warning.message = message;
        frame.context.push_warning(warning);
        Ok(())
    };
    let Some(parsed) = (if is_date { None } else { parse_added_time(text) }) else {
        incorrect()?;
        return Ok(None);
    };
    if parsed.out_of_range {
        incorrect()?;
    } else if parsed.truncated {
        frame.context.warn(&codes::TRUNCATED_WRONG_VALUE, &[&ADDED, &shown])?;
    } else if parsed.digits > 6 {
        frame.context.note(&codes::TRUNCATED_WRONG_VALUE, &[&ADDED, &shown]);
    }
    Ok(Some(parsed.value))
}

/// A moment some microseconds later; `None` before the year 1 or after 9999.
pub(super) fn datetime_sum(moment: DateTime, micros: i64) -> Option<DateTime> {
    let sum = DateTime::from_epoch_micros(moment.to_epoch_micros().checked_add(micros)?)?;
    (sum.date().year() > 0).then_some(sum)
}

/// Fractional digits of what [`added_time`] reads.
pub(super) fn added_scale(builder: &Builder<'_>, argument: &Expr) -> u8 {
    if let Some(Value::Bytes(text)) = argument.literal() {
        return parse_added_time(text).map_or(6, |parsed| parsed.digits.min(6));
    }
    if argument.result.column_type.kind == TypeKind::Null {
        return 6;
    }
    if let Some(text) = super::temporal_typing::written(builder, argument) {
        return parse_added_time(&text).map_or(6, |parsed| parsed.digits.min(6));
    }
    if argument.result.is_string() && !argument.result.is_hex {
        return 6;
    }
    number_scale(argument)
}

fn resolve_addtime(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    refuse_json(function, arguments)?;
    let added = added_scale(builder, &arguments[1]);
    Ok(match arguments[0].result.column_type.kind {
        TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => {
            datetime_result(known_scale(builder, &arguments[0]).max(added), true)
        }
        TypeKind::Time => time_result(known_time_scale(builder, &arguments[0]).max(added), true),
        _ => {
            let mut result = connection_text(builder, 26);
            result.column_type.kind = TypeKind::Char;
            if is_sum(&arguments[0]) {
                result.column_type.scale = known_scale(builder, &arguments[0]).max(added);
            }
            result
        }
    })
}

fn addtime(frame: Frame<'_>) -> Evaluated<'_> {
    add(&frame, 1, frame.expr.result.is_string())
}

fn subtime(frame: Frame<'_>) -> Evaluated<'_> {
    add(&frame, -1, frame.expr.result.is_string())
}

fn add<'a>(frame: &Frame<'a>, sign: i64, as_text: bool) -> Evaluated<'a> {
    let first = &frame.arguments[0];
    let has_date = frame.expr.result.column_type.kind == TypeKind::DateTime;
    let base = match has_date {
        true => frame.datetime(0, DateRules::default())?.map(TimeOrDateTime::DateTime),
        false => moment(frame, 0)?.map(|parsed| parsed.value),
    };
    let Some(base) = base else { return Ok(ValueRef::Null) };
    let Some(added) = added_time(frame, 1)? else { return Ok(ValueRef::Null) };
    // Digits of a sum that is text: those that the arguments have, or of its value.
    let kind = first.result.column_type.kind;
    let is_open_text = kind.is_string() && !is_sum(first);
    let open = is_open_text || (kind.is_floating() && first.result.column_type.scale >= 31);
    let scale =
        number_scale(first).max(added_scale(&Builder::within(frame.context), &frame.arguments[1]));
    let mut text = Vec::new();
    match base {
        TimeOrDateTime::DateTime(base) => {
            let Some(sum) = datetime_sum(base, sign * added.0) else { return Ok(ValueRef::Null) };
            if !as_text {
                return Ok(ValueRef::DateTime(sum));
            }
            let scale = if !open || sum.micros() > 0 { scale } else { 0 };
            sum.write_text(scale, &mut text);
        }
        TimeOrDateTime::Time(base) => {
            let sum = i128::from(base.0) + i128::from(sign * added.0);
            let ValueRef::Time(sum) = limited(frame, sum, u128::MAX)? else {
                return Ok(ValueRef::Null);
            };
            if !as_text {
                return Ok(ValueRef::Time(sum));
            }
            let scale = if !open || sum.micros() > 0 { scale } else { 0 };
            sum.write_text(scale, &mut text);
        }
    }
    Ok(frame.keep(&text))
}

fn resolve_sec_to_time(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(time_result(number_scale(&arguments[0]), true))
}

/// The most seconds of a TIME.
const TIME_SECONDS: u64 = 3_020_399;

fn sec_to_time(frame: Frame<'_>) -> Evaluated<'_> {
    let value = frame.number(0)?;
    let limit = i64::MAX as u64;
    let found =
        crate::seconds::seconds(frame.context, value, &frame.arguments[0], "seconds", limit)?;
    let Some(seconds) = found else { return Ok(ValueRef::Null) };
    let scale = frame.expr.result.column_type.scale;
    let is_long = seconds.whole > TIME_SECONDS;
    if is_long && !seconds.truncated {
        let sign = if seconds.negative { "-" } else { "" };
        let mut shown = format!("{sign}{}", seconds.whole);
        if seconds.micros > 0 {
            shown.push_str(&format!(".{:06}", seconds.micros));
        }
        frame.context.warn(&codes::TRUNCATED_WRONG_VALUE, &[&"seconds", &shown])?;
    }
    let magnitude = match is_long {
        true => Time::MAX.0,
        false => seconds.whole as i64 * MICROS + i64::from(seconds.micros),
    };
    let micros = if seconds.negative { -magnitude } else { magnitude };
    Ok(ValueRef::Time(Time(micros).truncated(scale)))
}

fn resolve_time_to_sec(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    Ok(seconds_result(known_time_scale(builder, &arguments[0])))
}

fn time_to_sec(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(Time(micros)) = frame.time(0)? else { return Ok(ValueRef::Null) };
    // Rounded, unlike the seconds of UNIX_TIMESTAMP.
    let unit = 10i64.pow(6 - u32::from(frame.expr.result.column_type.scale.min(6)));
    let rounded = (micros + micros.signum() * (unit / 2)) / unit * unit;
    let is_whole = frame.expr.result.column_type.scale == 0;
    let micros = if is_whole { micros } else { rounded };
    Ok(seconds_value(&frame.expr.result, micros))
}

fn resolve_maketime(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(time_result(number_scale(&arguments[2]), true))
}

fn maketime(frame: Frame<'_>) -> Evaluated<'_> {
    let hours = match frame.result(0).column_type.unsigned {
        true => frame.wide(0)?,
        false => frame.integer(0)?.map(i128::from),
    };
    let minutes = frame.integer(1)?;
    let value = frame.number(2)?;
    let found = crate::seconds::seconds(frame.context, value, &frame.arguments[2], "seconds", 59)?;
    let (Some(hours), Some(minutes), Some(seconds)) = (hours, minutes, found) else {
        return Ok(ValueRef::Null);
    };
    if !(0..60).contains(&minutes) || seconds.truncated || seconds.negative {
        return Ok(ValueRef::Null);
    }
    let whole = hours.abs() * 3600 + i128::from(minutes) * 60 + i128::from(seconds.whole);
    let magnitude = whole * i128::from(MICROS) + i128::from(seconds.micros);
    limited(&frame, if hours < 0 { -magnitude } else { magnitude }, u128::MAX)
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
    let (Some(period), Some(months)) = (frame.integer(0)?, frame.integer(1)?) else {
        return Ok(ValueRef::Null);
    };
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
    let (Some(a), Some(b)) = (frame.integer(0)?, frame.integer(1)?) else {
        return Ok(ValueRef::Null);
    };
    Ok(ValueRef::Int(months_of_period(a) - months_of_period(b)))
}
