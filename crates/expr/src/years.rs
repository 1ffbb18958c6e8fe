//! What a column of years is compared with: numbers below 100 stand for years of 1970 to 2069.

use types::ValueRef;

/// The year that a number or text stands for beside a YEAR, if it is one.
pub(crate) fn full_year(value: ValueRef<'_>) -> Option<i64> {
    let is_text = matches!(value, ValueRef::Bytes(_));
    let number = match value {
        ValueRef::Int(v) => v,
        ValueRef::UInt(v) => i64::try_from(v).ok()?,
        ValueRef::Decimal(v) => v.with_scale(0).mantissa().and_then(|v| i64::try_from(v).ok())?,
        ValueRef::Double(v) if v.abs() < 1e5 => v as i64,
        ValueRef::Bytes(text) => {
            let parsed = types::number::parse_integer(text);
            let is_number = parsed.length > 0 && !parsed.value.negative;
            is_number.then(|| i64::try_from(parsed.value.magnitude).ok())??
        }
        _ => return None,
    };
    match number {
        0 if is_text && !matches!(value, ValueRef::Bytes(b"0000")) => Some(2000),
        1..70 => Some(number + 2000),
        70..100 => Some(number + 1900),
        1901..=2155 => Some(number),
        _ => None,
    }
}

/// The year that a column of years keeps of a date, if it is one.
pub(crate) fn year_of(date: types::Date) -> Option<i64> {
    match i64::from(date.year()) {
        0 => Some(0),
        year => full_year(ValueRef::Int(year)),
    }
}
