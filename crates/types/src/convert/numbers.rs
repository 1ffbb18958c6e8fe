//! Storing into numeric columns.

use super::issue::{printable, shown_text};
use super::{StoreIssue, StoreSettings, Stored};
use crate::column_type::{ColumnType, SCALE_NOT_FIXED, TypeKind};
use crate::decimal::Decimal;
use crate::number::{ParsedNumber, parse_double, parse_integer_rounded};
use crate::text::to_text;
use crate::value::{Value, ValueRef};

/// A date or time as the number it prints as without punctuation.
pub(super) fn temporal_number(
    value: ValueRef<'_>,
    source: &ColumnType,
    settings: &StoreSettings,
) -> Option<Decimal> {
    let (number, micros) = match value {
        ValueRef::Date(v) => (i128::from(v.to_number()), 0),
        ValueRef::DateTime(v) => (i128::from(v.to_number()), i128::from(v.micros())),
        ValueRef::Timestamp(v) => {
            let local = settings.time_zone.to_local(v);
            (i128::from(local.to_number()), i128::from(local.micros()))
        }
        ValueRef::Time(v) => {
            let micros = i128::from(v.micros());
            (i128::from(v.to_number()), if v.is_negative() { -micros } else { micros })
        }
        _ => return None,
    };
    Some(Decimal::new(number * 1_000_000 + micros, 6).truncated(source.scale.min(6)))
}

/// What to say of text that was read as a number.
fn text_issue<T>(
    bytes: &[u8],
    source: &ColumnType,
    parsed: &ParsedNumber<T>,
    kind: &'static str,
) -> Option<StoreIssue> {
    if parsed.length == 0 {
        return Some(StoreIssue::Incorrect {
            kind,
            shown: shown_text(bytes, source.collation.charset()),
        });
    }
    if parsed.overflow {
        return Some(StoreIssue::OutOfRange);
    }
    let rest = &bytes[parsed.length..];
    if rest.is_empty() {
        return None;
    }
    let blank = rest.iter().all(u8::is_ascii_whitespace);
    Some(if blank { StoreIssue::Shortened } else { StoreIssue::Truncated })
}

/// Integers of all widths.
pub(super) fn integer<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Stored<'a> {
    let (wide, issue) = to_wide(value, source, settings);
    let bits = 8 * target.kind.integer_bytes();
    let (low, high) = if target.unsigned {
        (0, (1i128 << bits) - 1)
    } else {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    };
    let mut clamped = wide.clamp(low, high);
    if let ValueRef::Bytes(_) = value
        && target.unsigned
        && wide < -i128::from(u64::MAX)
    {
        // As the server reads a text far below zero.
        clamped = high;
    }
    let lost_sign = target.unsigned && matches!(value, ValueRef::Decimal(v) if v.is_negative());
    let issue = if clamped == wide && !lost_sign { issue } else { Some(StoreIssue::OutOfRange) };
    let stored =
        if target.unsigned { Value::UInt(clamped as u64) } else { Value::Int(clamped as i64) };
    Stored::new(stored, issue)
}

/// As a rounded integer wider than any column.
pub(super) fn to_wide(
    value: ValueRef<'_>,
    source: &ColumnType,
    settings: &StoreSettings,
) -> (i128, Option<StoreIssue>) {
    match value {
        ValueRef::Int(v) => (i128::from(v), None),
        ValueRef::UInt(v) => (i128::from(v), None),
        ValueRef::Float(v) => (f64::from(v).round_ties_even() as i128, None),
        ValueRef::Double(v) => (v.round_ties_even() as i128, None),
        ValueRef::Decimal(v) => (whole(&v), None),
        ValueRef::Bytes(bytes) => {
            let parsed = parse_integer_rounded(bytes);
            let magnitude = i128::from(parsed.value.magnitude);
            let mut wide = if parsed.value.negative { -magnitude } else { magnitude };
            if parsed.overflow {
                wide *= 2;
            }
            (wide, text_issue(bytes, source, &parsed, "integer"))
        }
        _ => {
            let number = temporal_number(value, source, settings).unwrap_or(Decimal::ZERO);
            (whole(&number.truncated(0)), None)
        }
    }
}

/// A DECIMAL rounded to a whole number, out of every column's range if it is too large.
fn whole(value: &Decimal) -> i128 {
    let far = if value.is_negative() { i128::MIN } else { i128::MAX };
    value.with_scale(0).mantissa().unwrap_or(far)
}

/// DECIMAL.
pub(super) fn decimal<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Stored<'a> {
    let mut issue = None;
    let exact = match value {
        ValueRef::Decimal(v) => v,
        ValueRef::Int(v) => Decimal::from(v),
        ValueRef::UInt(v) => Decimal::from(v),
        ValueRef::Float(v) => from_double(f64::from(v), &mut issue),
        ValueRef::Double(v) => from_double(v, &mut issue),
        ValueRef::Bytes(bytes) => {
            let parsed = Decimal::parse(bytes);
            let number =
                ParsedNumber { value: (), length: parsed.length, overflow: parsed.overflow };
            issue = text_issue(bytes, source, &number, "decimal");
            parsed.value
        }
        _ => temporal_number(value, source, settings).unwrap_or(Decimal::ZERO),
    };
    let (fitted, outside) = fit_decimal(&exact, target);
    if outside {
        issue = Some(StoreIssue::OutOfRange);
    } else if issue.is_none() && fitted != exact {
        issue = Some(StoreIssue::Shortened);
    }
    Stored::new(Value::Decimal(fitted), issue)
}

fn from_double(value: f64, issue: &mut Option<StoreIssue>) -> Decimal {
    match Decimal::from_f64(value) {
        Some(parsed) if !parsed.overflow => {
            if parsed.truncated {
                *issue = Some(StoreIssue::Shortened);
            }
            parsed.value
        }
        _ => {
            *issue = Some(StoreIssue::OutOfRange);
            Decimal::largest(81, 0, value < 0.0)
        }
    }
}

/// A number rounded to the column's scale, the nearest in range with `true` if it does not
/// fit.
pub fn fit_decimal(exact: &Decimal, target: &ColumnType) -> (Decimal, bool) {
    if target.unsigned && exact.is_negative() {
        return (Decimal::ZERO.with_scale(target.scale), true);
    }
    let limit = Decimal::largest(target.precision, target.scale, exact.is_negative());
    match exact.rounded(target.scale) {
        Some(rounded) if rounded.abs() <= limit.abs() => (rounded, false),
        _ => (limit, true),
    }
}

/// FLOAT and DOUBLE, with or without a fixed number of digits.
pub(super) fn floating<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Stored<'a> {
    let mut issue = None;
    let exact = match value {
        ValueRef::Int(v) => v as f64,
        ValueRef::UInt(v) => v as f64,
        ValueRef::Float(v) => f64::from(v),
        ValueRef::Double(v) => v,
        ValueRef::Decimal(v) => v.to_f64(),
        ValueRef::Bytes(bytes) => {
            let parsed = parse_double(bytes);
            issue = text_issue(bytes, source, &parsed, "double");
            parsed.value
        }
        _ => temporal_number(value, source, settings).map_or(0.0, |number| number.to_f64()),
    };
    let unchanged = matches!(value, ValueRef::Float(_))
        && (source.length, source.scale, source.unsigned)
            == (target.length, target.scale, target.unsigned);
    let (fitted, outside) = if unchanged { (exact, false) } else { fit_double(exact, target) };
    if outside {
        issue = Some(StoreIssue::OutOfRange);
    }
    let stored = if target.kind == TypeKind::Float {
        Value::Float(fitted as f32)
    } else {
        Value::Double(fitted)
    };
    Stored::new(stored, issue)
}

fn fit_double(exact: f64, target: &ColumnType) -> (f64, bool) {
    // No column holds a negative zero.
    let exact = exact + 0.0;
    if target.unsigned && exact < 0.0 {
        return (0.0, true);
    }
    let mut limit = if target.kind == TypeKind::Float { f64::from(f32::MAX) } else { f64::MAX };
    let mut value = exact;
    if target.scale < SCALE_NOT_FIXED {
        let unit = 10f64.powi(i32::from(target.scale));
        let digits = target.length as i32 - i32::from(target.scale);
        limit = limit.min(10f64.powi(digits) - 1.0 / unit);
        let whole = value.floor();
        value = whole + ((value - whole) * unit).round_ties_even() / unit;
    }
    if value > limit {
        (limit, true)
    } else if value < -limit {
        (-limit, true)
    } else {
        (value, false)
    }
}

/// YEAR: two digits stand for 1970 to 2069.
pub(super) fn year<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    settings: &StoreSettings,
) -> Stored<'a> {
    let kind = match value {
        ValueRef::Date(_) => "date",
        ValueRef::DateTime(_) | ValueRef::Timestamp(_) => "datetime",
        ValueRef::Time(_) => "time",
        _ => {
            let (wide, issue) = match value {
                ValueRef::Double(v) => (v.trunc() as i128, None),
                _ => to_wide(value, source, settings),
            };
            let four_digits = matches!(value, ValueRef::Bytes(text) if text.len() == 4);
            let is_text = matches!(value, ValueRef::Bytes(_));
            let below = is_below_zero(value);
            let year = match wide {
                0 if is_text && !four_digits && issue.is_none() => Some(2000),
                0 => (!below).then_some(0),
                1..70 => Some(wide + 2000),
                70..100 => Some(wide + 1900),
                1901..=2155 => Some(wide),
                _ => None,
            };
            return match year {
                Some(year) => Stored::new(Value::UInt(year as u64), issue),
                None => Stored::new(Value::UInt(0), Some(StoreIssue::OutOfRange)),
            };
        }
    };
    let year = match value {
        ValueRef::Date(v) => v.year(),
        ValueRef::DateTime(v) => v.date().year(),
        ValueRef::Timestamp(v) => settings.time_zone.to_local(v).date().year(),
        _ => 0,
    };
    let year = match year {
        0 | 1901..=2155 => year,
        1..70 => year + 2000,
        70..100 => year + 1900,
        _ => return Stored::new(Value::UInt(0), Some(StoreIssue::OutOfRange)),
    };
    let mut shown_type = *source;
    if source.scale > 0 {
        shown_type.scale = 6;
    }
    let shown = printable(&to_text(value, &shown_type, settings.time_zone));
    let issue = StoreIssue::IncorrectTemporal { kind, shown, out_of_range: false };
    Stored::new(Value::UInt(u64::from(year)), Some(issue))
}

fn is_below_zero(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Int(v) => v < 0,
        ValueRef::Double(v) => v < 0.0,
        ValueRef::Decimal(v) => v.is_negative(),
        _ => false,
    }
}
