//! Values as dates, dates with times, and durations: the one place that reads them and warns.
//!
//! 1. What a value is depends on the value, on what is wanted, and on the rules for dates.
//! 2. A warning names what was read (`date`, `datetime`, `time`), or what was wanted if nothing
//!    was.
//! 3. It says `Incorrect ... for column` of the value of a column; of others `Truncated incorrect`
//!    if a value is left, `Incorrect` if none is.
//! 4. Where values are compared ([`Mode::compared`]) what cannot be read is zero, so one is left.
//!    That holds for the operands of a comparison and for what is converted within them.

use crate::coerce;
use crate::compared;
use crate::context::EvalContext;
use crate::expression::{Expr, ExprKind};
use crate::functions::Nature;
use crate::result_type::ResultType;
use types::temporal::{
    DateRules, DurationForm, Parsed, TimeOrDateTime, datetime_from_number, parse_datetime,
    parse_duration, time_from_number,
};
use types::{DateTime, Decimal, Level, SqlError, Time, TypeKind, ValueRef, Warning, codes};

/// What a value is read as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// A date, with or without a time.
    DateTime,
    /// A duration, or a date and time.
    Time(DurationForm),
}

/// How a value is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    /// As what.
    pub wanted: Wanted,
    /// Which dates there are.
    pub rules: DateRules,
    /// What cannot be read is zero.
    pub compared: bool,
}

/// Dates are compared by this: days up to 31 in every month, and zeros.
pub(crate) const COMPARE_RULES: DateRules =
    DateRules { no_zero_date: false, no_zero_in_date: false, allow_invalid: true };

/// The largest 64 bit integer: what larger numbers of seconds are taken for.
pub(crate) const FAR: u64 = i64::MAX as u64;

/// The rules of the session.
pub(crate) fn session_rules(context: &EvalContext) -> DateRules {
    DateRules::of(context.settings.sql_mode)
}

/// The rules of the session for functions that take zeros in dates.
pub(crate) fn zeros_allowed(context: &EvalContext) -> DateRules {
    DateRules { no_zero_date: false, no_zero_in_date: false, ..session_rules(context) }
}

/// A number as seconds: sign, whole part, microseconds.
pub(crate) fn seconds_of(value: ValueRef<'_>) -> Option<(bool, u64, u32)> {
    Some(match value {
        ValueRef::Int(v) => (v < 0, v.unsigned_abs(), 0),
        ValueRef::UInt(v) => (false, v, 0),
        ValueRef::Decimal(v) => seconds_of_decimal(&v),
        ValueRef::Double(v) => seconds_of_double(v),
        ValueRef::Float(v) => seconds_of_double(f64::from(v)),
        _ => return None,
    })
}

fn seconds_of_double(value: f64) -> (bool, u64, u32) {
    let magnitude = value.abs();
    if magnitude > FAR as f64 {
        return (value < 0.0, FAR, 0);
    }
    let nanoseconds = ((magnitude - magnitude.floor()) * 1e9) as u32;
    (value < 0.0, magnitude as u64, nanoseconds / 1000)
}

fn seconds_of_decimal(value: &Decimal) -> (bool, u64, u32) {
    let negative = value.is_negative();
    if value.integer_digits() > 18 {
        return (negative, FAR, 0);
    }
    let micros = value.truncated(6).with_scale(6).mantissa().map_or(0, i128::unsigned_abs);
    (negative, (micros / 1_000_000) as u64, (micros % 1_000_000) as u32)
}

/// What a value is, before any warning.
fn read(
    context: &EvalContext,
    value: ValueRef<'_>,
    source: &Expr,
    mode: Mode,
) -> Option<Parsed<TimeOrDateTime>> {
    let whole = |value: DateTime, has_time: bool| {
        Some(Parsed::whole(TimeOrDateTime::DateTime(value), has_time))
    };
    match value {
        ValueRef::Null => None,
        ValueRef::Date(v) => whole(v.at_midnight(), false),
        ValueRef::DateTime(v) => whole(v, true),
        ValueRef::Timestamp(v) => whole(context.settings.time_zone.to_local(v), true),
        ValueRef::Time(v) => Some(Parsed::whole(TimeOrDateTime::Time(v), true)),
        ValueRef::Bytes(text) => match mode.wanted {
            Wanted::DateTime => {
                parse_datetime(text, mode.rules).map(|parsed| parsed.map(TimeOrDateTime::DateTime))
            }
            Wanted::Time(form) => parse_duration(text, mode.rules, form),
        },
        _ if is_read_as_text(value, source) => {
            let text = coerce::to_text(context, value, &source.result);
            read(context, ValueRef::Bytes(text), source, mode)
        }
        number => {
            let (negative, mut seconds, micros) = seconds_of(number)?;
            if source.result.column_type.kind == TypeKind::Year {
                seconds *= 10_000;
            }
            match mode.wanted {
                Wanted::DateTime if negative => None,
                Wanted::DateTime => datetime_from_number(seconds, micros, mode.rules)
                    .map(|parsed| parsed.map(TimeOrDateTime::DateTime)),
                Wanted::Time(form) => duration_from_number(negative, seconds, micros, form),
            }
        }
    }
}

/// Bits are read as the bytes that they are.
fn is_read_as_text(value: ValueRef<'_>, source: &Expr) -> bool {
    matches!(value, ValueRef::UInt(_)) && source.result.column_type.kind == TypeKind::Bit
}

fn duration_from_number(
    negative: bool,
    seconds: u64,
    micros: u32,
    form: DurationForm,
) -> Option<Parsed<TimeOrDateTime>> {
    // Only a number too long for the longest interval is a date.
    let is_date = !negative && (1_000_000_000_000..=99_991_231_235_959).contains(&seconds);
    if form == DurationForm::Time || is_date {
        return time_from_number(negative, seconds, micros, COMPARE_RULES);
    }
    let (hours, minutes, second) = (seconds / 10_000, seconds / 100 % 100, seconds % 100);
    let fits = hours <= 87_649_415 && minutes < 60 && second < 60;
    let time = || Time::new(negative, hours as u32, minutes as u32, second as u32, micros);
    fits.then(|| Parsed::whole(TimeOrDateTime::Time(time()), true))
}

/// A value as what is wanted, or as the other kind if it is that; `None` of NULL, and with a
/// warning of what cannot be read.
pub(crate) fn moment(
    context: &EvalContext,
    value: ValueRef<'_>,
    source: &Expr,
    mode: Mode,
) -> Result<Option<Parsed<TimeOrDateTime>>, SqlError> {
    if value.is_null() {
        return Ok(None);
    }
    let found = read(context, value, source, mode);
    match found {
        Some(parsed) if is_temporal(value) => {
            let TimeOrDateTime::DateTime(moment) = parsed.value else {
                let wants_date = mode.wanted == Wanted::DateTime;
                let is_none = wants_date && is_only_duration(source, mode.rules);
                return Ok(found.filter(|_| !is_none));
            };
            let kept = mode.compared || is_allowed(context, moment, parsed, source, mode.rules)?;
            return Ok(found.filter(|_| kept));
        }
        Some(parsed) if !parsed.truncated && !parsed.out_of_range && parsed.digits <= 6 => {
            return Ok(found);
        }
        _ => {}
    }
    let value = match value {
        _ if is_read_as_text(value, source) => {
            ValueRef::Bytes(coerce::to_text(context, value, &source.result))
        }
        ValueRef::UInt(year) if source.result.column_type.kind == TypeKind::Year => {
            ValueRef::UInt(year * 10_000)
        }
        other => other,
    };
    let kind = match found {
        Some(Parsed { value: TimeOrDateTime::Time(_), .. }) => "time",
        Some(Parsed { has_time: false, .. }) => "date",
        Some(_) => "datetime",
        None => match mode.wanted {
            Wanted::DateTime => "datetime",
            Wanted::Time(form) if form == DurationForm::Time || mode.compared => "time",
            Wanted::Time(_) => "interval",
        },
    };
    // A number that is a date has nothing more to lose than a fraction.
    let cut_number = !matches!(value, ValueRef::Bytes(_)) && found.is_some_and(|p| p.truncated);
    let is_note = cut_number || found.is_some_and(|parsed| parsed.is_shortened());
    let left = found.is_some() || mode.compared;
    warn(context, (left, is_note), kind, &shown(context, value), source)?;
    let zero = || {
        Parsed::whole(
            match mode.wanted {
                Wanted::DateTime => TimeOrDateTime::DateTime(DateTime::default()),
                Wanted::Time(_) => TimeOrDateTime::Time(Time(0)),
            },
            true,
        )
    };
    Ok(found.or_else(|| mode.compared.then(zero)))
}

/// Whether an expression is no date, whatever its value: TIMEDIFF where dates must not have zero
/// parts. Its operands are not looked at then.
pub(crate) fn is_only_duration(source: &Expr, rules: DateRules) -> bool {
    rules.no_zero_in_date && source.nature() == Nature::Difference
}

/// Whether a value is a date or time already.
pub(crate) fn is_temporal(value: ValueRef<'_>) -> bool {
    matches!(
        value,
        ValueRef::Date(_) | ValueRef::DateTime(_) | ValueRef::Timestamp(_) | ValueRef::Time(_)
    )
}

/// Whether the rules allow a date. A column's, and a day number's, is NULL without a word if not.
fn is_allowed(
    context: &EvalContext,
    moment: DateTime,
    parsed: Parsed<TimeOrDateTime>,
    source: &Expr,
    rules: DateRules,
) -> Result<bool, SqlError> {
    if rules.allow(moment.date(), moment.0 == 0) {
        return Ok(true);
    }
    if !is_of_column(source) && source.nature() != Nature::DayNumber {
        warn_of_date(context, moment, parsed.has_time)?;
    }
    Ok(false)
}

/// Whether a date is one that the rules do not allow.
pub(crate) fn is_refused(value: ValueRef<'_>, rules: DateRules) -> bool {
    let moment = match value {
        ValueRef::Date(date) => date.at_midnight(),
        ValueRef::DateTime(moment) => moment,
        _ => return false,
    };
    !rules.allow(moment.date(), moment.0 == 0)
}

/// Warns of a text or number that is no date by the rules of who reads it.
pub(crate) fn warn_of_refused(
    context: &EvalContext,
    value: ValueRef<'_>,
    source: &Expr,
) -> Result<(), SqlError> {
    warn(context, (false, false), "datetime", &shown(context, value), source)
}

/// Whether a value is a column's, also where it is chosen among several.
fn is_of_column(source: &Expr) -> bool {
    match &source.kind {
        ExprKind::Column { .. } => true,
        ExprKind::Call { function, arguments } => match function.name() {
            "if" => arguments[1..].iter().any(is_of_column),
            "ifnull" | "coalesce" => arguments.iter().any(is_of_column),
            "nullif" => is_of_column(&arguments[0]),
            _ => false,
        },
        ExprKind::Case { branches, otherwise, .. } => {
            let mut chosen = branches.iter().map(|(_, then)| then).chain(otherwise.as_deref());
            chosen.any(is_of_column)
        }
        _ => false,
    }
}

/// Whether the rules allow a computed date; warns if not.
pub(crate) fn check(
    context: &EvalContext,
    moment: DateTime,
    has_time: bool,
    rules: DateRules,
) -> Result<bool, SqlError> {
    let allowed = rules.allow(moment.date(), moment.0 == 0);
    if !allowed {
        warn_of_date(context, moment, has_time)?;
    }
    Ok(allowed)
}

fn warn_of_date(context: &EvalContext, moment: DateTime, has_time: bool) -> Result<(), SqlError> {
    let mut text = Vec::with_capacity(26);
    if has_time {
        moment.write_text(if moment.micros() > 0 { 6 } else { 0 }, &mut text);
    } else {
        moment.date().write_text(&mut text);
    }
    let message = codes::WRONG_VALUE.message(&[&"datetime", &String::from_utf8_lossy(&text)]);
    push(context, false, message)
}

/// A value as warnings about dates show it: bytes that are not ASCII as `\x..`, numbers with the
/// digits that they have.
pub(crate) fn shown(context: &EvalContext, value: ValueRef<'_>) -> String {
    let ascii = |bytes: &[u8]| {
        bytes.iter().fold(String::with_capacity(bytes.len()), |mut out, byte| {
            match byte {
                0x20..0x7f => out.push(char::from(*byte)),
                _ => out.push_str(&format!("\\x{byte:02X}")),
            }
            out
        })
    };
    match value {
        ValueRef::Bytes(bytes) => ascii(bytes),
        ValueRef::Decimal(v) => v.to_string(),
        other => {
            let value = match other {
                ValueRef::Float(v) => ValueRef::Double(f64::from(v)),
                other => other,
            };
            let zone = context.settings.time_zone;
            ascii(&types::text::to_text(value, &types::ColumnType::double(), zone))
        }
    }
}

/// A warning 1292 by invariant 3.
fn warn(
    context: &EvalContext,
    (left, is_note): (bool, bool),
    kind: &str,
    shown: &str,
    source: &Expr,
) -> Result<(), SqlError> {
    let message = match &source.kind {
        ExprKind::Column { name, .. } if name.starts_with('`') => {
            let row = context.row_number.get().max(1);
            let message = codes::WRONG_VALUE.message(&[&kind, &shown]);
            format!("{message} for column {name} at row {row}")
        }
        _ if left => codes::TRUNCATED_WRONG_VALUE.message(&[&kind, &shown]),
        _ => codes::WRONG_VALUE.message(&[&kind, &shown]),
    };
    push(context, is_note, message)
}

fn push(context: &EvalContext, is_note: bool, message: String) -> Result<(), SqlError> {
    if context.warnings_are_errors.get() && !is_note {
        return Err(SqlError::with_message(&codes::TRUNCATED_WRONG_VALUE, message));
    }
    let mut warning = Warning::new(&codes::TRUNCATED_WRONG_VALUE, &[]);
    warning.message = message;
    if is_note {
        warning.level = Level::Note;
    }
    context.push_warning(warning);
    Ok(())
}

/// A duration counted from the day of the statement.
pub(crate) fn time_as_datetime(context: &EvalContext, time: Time) -> DateTime {
    let today = context.local_now().date().at_midnight();
    DateTime::from_epoch_micros(today.to_epoch_micros() + time.0).unwrap_or_default()
}

/// As a date and time; a duration counts from today.
pub(crate) fn as_datetime(context: &EvalContext, value: TimeOrDateTime) -> DateTime {
    match value {
        TimeOrDateTime::DateTime(moment) => moment,
        TimeOrDateTime::Time(time) => time_as_datetime(context, time),
    }
}

/// As a duration; of a date and time its time of day.
pub(crate) fn as_time(value: TimeOrDateTime) -> Time {
    match value {
        TimeOrDateTime::Time(time) => time,
        TimeOrDateTime::DateTime(moment) => moment.time(),
    }
}

/// As a date and time; `None` with a warning if it is none.
pub(crate) fn to_datetime(
    context: &EvalContext,
    value: ValueRef<'_>,
    source: &Expr,
    rules: DateRules,
) -> Result<Option<DateTime>, SqlError> {
    let mode = Mode { wanted: Wanted::DateTime, rules, compared: false };
    let found = moment(context, value, source, mode)?;
    Ok(found.map(|parsed| as_datetime(context, parsed.value)))
}

/// As a duration; `None` with a warning if it is none. A date and time gives its time of day.
pub(crate) fn to_time(
    context: &EvalContext,
    value: ValueRef<'_>,
    source: &Expr,
) -> Result<Option<Time>, SqlError> {
    Ok(moment(context, value, source, time_mode(false))?.map(|parsed| as_time(parsed.value)))
}

/// How a TIME is read.
pub(crate) fn time_mode(compared: bool) -> Mode {
    Mode { wanted: Wanted::Time(DurationForm::Time), rules: COMPARE_RULES, compared }
}

/// A value of a type as a date and time to compare.
pub(crate) fn datetime_to_compare(
    context: &EvalContext,
    value: ValueRef<'_>,
    result: &ResultType,
) -> Result<DateTime, SqlError> {
    let source = Expr::null_of(result);
    Ok(match compared::convert_compared(context, value, &source, false)? {
        ValueRef::Date(v) => v.at_midnight(),
        ValueRef::DateTime(v) => v,
        ValueRef::Timestamp(v) => context.settings.time_zone.to_local(v),
        ValueRef::Time(v) => time_as_datetime(context, v),
        _ => DateTime::default(),
    })
}

/// A value of a type as a duration to compare.
pub(crate) fn time_to_compare(
    context: &EvalContext,
    value: ValueRef<'_>,
    result: &ResultType,
) -> Result<Time, SqlError> {
    let source = Expr::null_of(result);
    let value = compared::convert_compared(context, value, &source, true)?;
    let found = moment(context, value, &source, time_mode(true))?;
    Ok(found.map_or(Time(0), |parsed| as_time(parsed.value)))
}
