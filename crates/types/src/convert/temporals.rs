//! Storing into DATE, DATETIME, TIMESTAMP and TIME columns.

use super::issue::{printable, shown_text};
use super::{StoreIssue, StoreSettings, Stored};
use crate::column_type::{ColumnType, TypeKind};
use crate::decimal::Decimal;
use crate::sql_mode::SqlMode;
use crate::temporal::{
    DateRules, DateTime, Parsed, Time, TimeOrDateTime, Timestamp, datetime_from_number,
    fraction_unit, parse_datetime, parse_time, time_from_number,
};
use crate::text::to_text;
use crate::value::{Value, ValueRef};

/// 838:59:59 in microseconds, what TIME holds at most without a fraction.
const TIME_MAX_MICROS: i64 = (838 * 3600 + 59 * 60 + 59) * 1_000_000;

/// Sign, whole part and microseconds of a number.
fn split_number(value: ValueRef<'_>) -> Option<(bool, u64, u32)> {
    let decimal = match value {
        ValueRef::Int(v) => return Some((v < 0, v.unsigned_abs(), 0)),
        ValueRef::UInt(v) => return Some((false, v, 0)),
        ValueRef::Decimal(v) => v,
        ValueRef::Double(v) => Decimal::from_f64(v)?.value,
        ValueRef::Float(v) => Decimal::from_f64(f64::from(v))?.value,
        _ => return None,
    };
    let magnitude = decimal.truncated(6).with_scale(6).mantissa()?.unsigned_abs();
    let whole = u64::try_from(magnitude / 1_000_000).ok()?;
    Some((decimal.is_negative(), whole, (magnitude % 1_000_000) as u32))
}

/// Whether a number that is not whole by its type is no BIGINT, and so beyond all times.
fn is_far(value: ValueRef<'_>) -> bool {
    match (value, split_number(value)) {
        (ValueRef::Decimal(_), Some((_, whole, _))) => i64::try_from(whole).is_err(),
        (ValueRef::Decimal(_) | ValueRef::Double(_) | ValueRef::Float(_), None) => true,
        _ => false,
    }
}

fn plain<T>(value: T) -> Parsed<T> {
    Parsed {
        value,
        has_time: true,
        digits: 0,
        truncated: false,
        out_of_range: false,
        rounds_up: false,
    }
}

/// A duration counted from the day of the statement.
fn time_as_datetime(time: Time, settings: &StoreSettings) -> DateTime {
    let today = settings.time_zone.to_local(settings.now).date().at_midnight();
    DateTime::from_epoch_micros(today.to_epoch_micros() + time.0).unwrap_or_default()
}

fn kind_name(kind: TypeKind) -> &'static str {
    match kind {
        TypeKind::Date => "date",
        TypeKind::Time => "time",
        _ => "datetime",
    }
}

fn incorrect(
    value: ValueRef<'_>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
    out_of_range: bool,
) -> StoreIssue {
    let mut shown_type = *source;
    match value {
        // A fraction is shown whole, or not at all; numbers have the digits that they have.
        ValueRef::DateTime(_) | ValueRef::Timestamp(_) | ValueRef::Time(_) => {
            shown_type.scale = crate::column_type::SCALE_NOT_FIXED;
        }
        ValueRef::Double(_) => shown_type = ColumnType::double(),
        ValueRef::Int(_) | ValueRef::UInt(_) if source.zerofill => shown_type.zerofill = false,
        ValueRef::Int(_) | ValueRef::UInt(_) if source.kind == TypeKind::Bit => {
            shown_type = ColumnType::integer(TypeKind::BigInt, true);
        }
        _ => {}
    }
    let text = to_text(value, &shown_type, settings.time_zone);
    let shown = match source.kind {
        kind if kind.is_string() => shown_text(&text, source.collation.charset()),
        _ => printable(&text),
    };
    StoreIssue::IncorrectTemporal { kind: kind_name(target.kind), shown, out_of_range }
}

/// Whether a value would be the zero date.
fn is_zero_date(value: ValueRef<'_>) -> bool {
    let found = match value {
        ValueRef::Date(date) => return date.at_midnight().0 == 0,
        ValueRef::DateTime(moment) => return moment.0 == 0,
        ValueRef::Timestamp(moment) => return moment.0 == 0,
        ValueRef::Bytes(text) => parse_datetime(text, DateRules::default()),
        _ => split_number(value).and_then(|(negative, whole, micros)| {
            let rules = DateRules::default();
            (!negative).then(|| datetime_from_number(whole, micros, rules)).flatten()
        }),
    };
    found.is_some_and(|parsed| parsed.value.0 == 0)
}

/// DATE, DATETIME and TIMESTAMP.
pub(super) fn datetime<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Stored<'a> {
    let mut rules = DateRules::of(settings.sql_mode);
    if target.kind == TypeKind::Timestamp {
        rules.no_zero_in_date = true;
        rules.allow_invalid = false;
    }
    let is_text = matches!(value, ValueRef::Bytes(_));
    let allowed = |v: DateTime| rules.allow(v.date(), v.0 == 0).then(|| plain(v));
    let found = match value {
        ValueRef::Date(v) => allowed(v.at_midnight()),
        ValueRef::DateTime(v) => allowed(v),
        ValueRef::Timestamp(v) if target.kind == TypeKind::Timestamp => {
            let unit = i64::from(fraction_unit(target.scale));
            return Stored::new(Value::Timestamp(Timestamp(v.0 - v.0 % unit)), None);
        }
        ValueRef::Timestamp(v) => allowed(settings.time_zone.to_local(v)),
        ValueRef::Time(v) => allowed(time_as_datetime(v, settings)),
        ValueRef::Bytes(text) => parse_datetime(text, rules),
        _ => match split_number(value) {
            Some((false, whole, micros)) => datetime_from_number(whole, micros, rules),
            _ => None,
        },
    };
    let Some(parsed) = found else {
        let zero_refused =
            rules.no_zero_date && target.kind != TypeKind::Timestamp && is_zero_date(value);
        let issue = incorrect(value, source, target, settings, zero_refused);
        return Stored::new(zero(target.kind), Some(issue));
    };
    let mut issue = None;
    if parsed.truncated {
        issue = Some(if is_text {
            incorrect(value, source, target, settings, false)
        } else {
            StoreIssue::Shortened
        });
    } else if parsed.digits > 6 {
        issue = Some(StoreIssue::Shortened);
    }
    let mut moment = parsed.value;
    if settings.sql_mode.contains(SqlMode::TIME_ROUND_FRACTIONAL) && target.kind != TypeKind::Date {
        moment = rounded(moment, target.scale, parsed.rounds_up);
    }
    match target.kind {
        TypeKind::Date => {
            let is_fraction = !is_text && moment.date() == Default::default();
            // Nobody misses a fraction of a second.
            if moment.time_micros() >= 1_000_000 && issue.is_none() && !is_fraction {
                issue = Some(StoreIssue::Shortened);
            }
            Stored::new(Value::Date(moment.date()), issue)
        }
        TypeKind::DateTime => Stored::new(Value::DateTime(moment.truncated(target.scale)), issue),
        _ => timestamp(moment, value, source, target, settings, issue),
    }
}

/// Half up to `scale` fractional digits.
fn rounded(moment: DateTime, scale: u8, seventh_digit: bool) -> DateTime {
    if moment.date().month() == 0 || moment.date().day() == 0 {
        return moment.truncated(scale);
    }
    let unit = i64::from(fraction_unit(scale));
    let micros = moment.to_epoch_micros() + i64::from(seventh_digit && unit == 1);
    let shifted = micros + unit / 2;
    DateTime::from_epoch_micros(shifted - shifted.rem_euclid(unit)).unwrap_or(moment)
}

fn timestamp<'a>(
    moment: DateTime,
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
    issue: Option<StoreIssue>,
) -> Stored<'a> {
    let moment = moment.truncated(target.scale);
    if moment.0 == 0 {
        return Stored::new(Value::Timestamp(Timestamp::ZERO), issue);
    }
    let instant = settings.time_zone.to_instant(moment);
    let smallest = crate::temporal::MICROS;
    if instant.0 < smallest || instant.0 > Timestamp::MAX.0 {
        let issue = incorrect(value, source, target, settings, true);
        return Stored::new(zero(target.kind), Some(issue));
    }
    Stored::new(Value::Timestamp(instant), issue)
}

fn zero(kind: TypeKind) -> Value {
    match kind {
        TypeKind::Date => Value::Date(Default::default()),
        TypeKind::DateTime => Value::DateTime(Default::default()),
        TypeKind::Timestamp => Value::Timestamp(Timestamp::ZERO),
        _ => Value::Time(Time(0)),
    }
}

/// TIME.
pub(super) fn time<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Stored<'a> {
    let rules = DateRules::default();
    let found = match value {
        ValueRef::Time(v) => Some(plain(TimeOrDateTime::Time(v))),
        ValueRef::Date(v) => Some(plain(TimeOrDateTime::DateTime(v.at_midnight()))),
        ValueRef::DateTime(v) => Some(plain(TimeOrDateTime::DateTime(v))),
        ValueRef::Timestamp(v) => {
            Some(plain(TimeOrDateTime::DateTime(settings.time_zone.to_local(v))))
        }
        ValueRef::Bytes(text) => parse_time(text, rules),
        _ if is_far(value) => None,
        _ => match split_number(value) {
            Some((negative, whole, micros)) => time_from_number(negative, whole, micros, rules),
            None => None,
        },
    };
    let Some(parsed) = found else {
        if is_far(value) {
            let below = match value {
                ValueRef::Decimal(v) => v.is_negative(),
                ValueRef::Double(v) => v < 0.0,
                _ => false,
            };
            let issue = incorrect(value, source, target, settings, true);
            let far = Time::MAX.truncated(target.scale);
            let far = if below { Time(-far.0) } else { far };
            return Stored::new(Value::Time(far), Some(issue));
        }
        let issue = incorrect(value, source, target, settings, false);
        return Stored::new(zero(TypeKind::Time), Some(issue));
    };
    let (time, from_datetime) = match parsed.value {
        TimeOrDateTime::Time(time) => (time, false),
        TimeOrDateTime::DateTime(moment) => (moment.time(), moment.date() != Default::default()),
    };
    let issue = if parsed.out_of_range {
        Some(incorrect(value, source, target, settings, true))
    } else if parsed.truncated {
        Some(incorrect(value, source, target, settings, false))
    } else if from_datetime || parsed.digits > 6 {
        Some(StoreIssue::Shortened)
    } else {
        None
    };
    if !settings.sql_mode.contains(SqlMode::TIME_ROUND_FRACTIONAL) {
        return Stored::new(Value::Time(time.truncated(target.scale)), issue);
    }
    let unit = i64::from(fraction_unit(target.scale));
    let half = if time.0 < 0 { -unit / 2 } else { unit / 2 };
    let rounded = Time(time.0 + half).truncated(target.scale);
    if rounded.0.abs() > TIME_MAX_MICROS {
        let issue = incorrect(value, source, target, settings, true);
        return Stored::new(Value::Time(Time(TIME_MAX_MICROS * rounded.0.signum())), Some(issue));
    }
    Stored::new(Value::Time(rounded), issue)
}
