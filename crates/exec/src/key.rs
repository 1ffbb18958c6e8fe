//! From range plans to key bytes: values of the other side of a comparison become bounds of an
//! index.
//!
//! A range only narrows what is read (rule 1 of the crate), so a value that cannot be placed in
//! the column's order opens the end instead of being guessed.

use crate::ExecError;
use engine_api::KeyRange;
use expr::{Columns, EvalContext, Expr};
use plan::physical::{RangeEnd, RangePlan, RangeValue};
use std::ops::Bound;
use types::collation;
use types::row::{KeyColumn, LayoutColumn};
use types::temporal::fraction_unit;
use types::{ColumnType, DateTime, Decimal, Time, TimeZone, Timestamp, TypeKind, Value, ValueRef};

/// Where a value lies among the values of a column.
#[derive(Debug, PartialEq)]
pub enum Place {
    /// The largest value of the column that is not above it, and whether it is that value.
    At(Value, bool),
    /// Below all values of the column.
    Below,
    /// Above all values of the column.
    Above,
    /// NULL: compares with nothing.
    Null,
    /// Cannot be told.
    Unknown,
}

fn integer_limits(column: &ColumnType) -> Option<(i128, i128)> {
    let bits = match column.kind {
        TypeKind::TinyInt => 8,
        TypeKind::SmallInt => 16,
        TypeKind::MediumInt => 24,
        TypeKind::Int => 32,
        TypeKind::BigInt => 64,
        _ => return None,
    };
    Some(if column.unsigned {
        (0, (1 << bits) - 1)
    } else {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    })
}

/// The integer at or below a number, and whether it is the number.
fn integer_floor(value: ValueRef<'_>) -> Option<(i128, bool)> {
    match value {
        ValueRef::Int(v) => Some((v.into(), true)),
        ValueRef::UInt(v) => Some((v.into(), true)),
        ValueRef::Decimal(v) => {
            let floor = v.floor();
            Some((floor.mantissa()?, floor == v))
        }
        ValueRef::Double(v) if v.abs() < 1e30 => Some((v.floor() as i128, v.floor() == v)),
        ValueRef::Float(v) => integer_floor(ValueRef::Double(v.into())),
        _ => None,
    }
}

/// Finds that place.
pub fn place(value: ValueRef<'_>, column: &ColumnType, zone: TimeZone) -> Place {
    if value.is_null() {
        return Place::Null;
    }
    if let Some((low, high)) = integer_limits(column) {
        return match integer_floor(value) {
            None => Place::Unknown,
            Some((floor, _)) if floor < low => Place::Below,
            Some((floor, _)) if floor > high => Place::Above,
            Some((floor, exact)) if column.unsigned => Place::At(Value::UInt(floor as u64), exact),
            Some((floor, exact)) => Place::At(Value::Int(floor as i64), exact),
        };
    }
    match (column.kind, value) {
        (TypeKind::Decimal, _) => place_decimal(value, column),
        (TypeKind::Float, _) => place_float(value),
        (TypeKind::Double, ValueRef::Double(v)) => Place::At(Value::Double(v), true),
        (TypeKind::Double, ValueRef::Float(v)) => Place::At(Value::Double(v.into()), true),
        (TypeKind::Double, ValueRef::Int(v)) if v.unsigned_abs() < 1 << 53 => {
            Place::At(Value::Double(v as f64), true)
        }
        (_, ValueRef::Bytes(text)) if let Some(members) = column.members => {
            place_member(text, members, column)
        }
        (kind, ValueRef::Bytes(text)) if kind.is_string() => {
            Place::At(Value::Bytes(text.to_vec()), true)
        }
        (TypeKind::Date, ValueRef::Date(v)) => Place::At(Value::Date(v), true),
        (TypeKind::Date, ValueRef::DateTime(v)) => {
            Place::At(Value::Date(v.date()), v.time_micros() == 0)
        }
        (TypeKind::DateTime, ValueRef::Date(v)) => {
            Place::At(Value::DateTime(DateTime::new(v, 0, 0, 0, 0)), true)
        }
        (TypeKind::DateTime, ValueRef::DateTime(v)) => {
            let kept = v.truncated(column.scale);
            Place::At(Value::DateTime(kept), kept == v)
        }
        (TypeKind::Timestamp, ValueRef::Timestamp(v)) => {
            let kept = v.truncated(column.scale);
            Place::At(Value::Timestamp(kept), kept == v)
        }
        (TypeKind::Timestamp, ValueRef::DateTime(v)) if v.date().is_complete() => {
            match zone.to_instant(v) {
                Timestamp(instant) if instant <= 0 => Place::Unknown,
                instant if instant > Timestamp::MAX => Place::Above,
                instant => place(ValueRef::Timestamp(instant), column, zone),
            }
        }
        (TypeKind::Time, ValueRef::Time(v)) => {
            let unit = i64::from(fraction_unit(column.scale));
            let kept = Time(v.0 - v.0.rem_euclid(unit));
            Place::At(Value::Time(kept), kept == v)
        }
        _ => Place::Unknown,
    }
}

/// The value of ENUM or SET that a text equals, if there is one. (Only for points: the order of
/// the keys is that of the numbers.)
fn place_member(text: &[u8], members: &types::Members, column: &ColumnType) -> Place {
    let collation = column.collation.info();
    let value = match column.kind {
        TypeKind::Set => {
            // A member has no blanks at its end; what has them may be equal to it.
            let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
            Some(members.text_of_bits(members.bits_of(&text[..end], column.collation).0))
        }
        _ => {
            members.number_of(text, column.collation).and_then(|it| members.name(it)).map(Vec::from)
        }
    };
    let value = value.unwrap_or_default();
    if collation.compare(&value, text).is_eq() {
        Place::At(Value::Bytes(value), true)
    } else {
        Place::Below
    }
}

/// Compared are doubles, which all floats are.
fn place_float(value: ValueRef<'_>) -> Place {
    const EXACT: u64 = 1 << 53;
    let number = match value {
        ValueRef::Double(v) => v,
        ValueRef::Float(v) => v.into(),
        ValueRef::Int(v) if v.unsigned_abs() < EXACT => v as f64,
        ValueRef::UInt(v) if v < EXACT => v as f64,
        _ => return Place::Unknown,
    };
    let nearest = number as f32;
    let floor = if f64::from(nearest) > number { nearest.next_down() } else { nearest };
    match (floor.is_nan(), floor.is_infinite()) {
        (true, _) => Place::Unknown,
        (_, true) if floor > 0.0 => Place::Above,
        (_, true) => Place::Below,
        _ => Place::At(Value::Float(floor), f64::from(floor) == number),
    }
}

/// The shortest decimal of a double. Among decimals of so few digits that doubles keep them apart
/// it has the place that the double has among their doubles.
fn decimal_of(number: f64, column: &ColumnType) -> Option<Decimal> {
    /// Below all of their units, and with few enough digits to be written.
    const TINY: f64 = 1e-20;
    if u32::from(column.precision) > f64::DIGITS || !number.is_finite() {
        return None;
    }
    let most = 10f64.powi(f64::DIGITS as i32);
    let number = number.clamp(-most, most);
    let is_tiny = number != 0.0 && number.abs() < TINY;
    let number = if is_tiny { TINY.copysign(number) } else { number };
    Some(Decimal::parse(number.to_string().as_bytes()).value)
}

fn place_decimal(value: ValueRef<'_>, column: &ColumnType) -> Place {
    let number = match value {
        ValueRef::Double(v) => match decimal_of(v, column) {
            Some(number) => number,
            None => return Place::Unknown,
        },
        ValueRef::Decimal(v) => v,
        ValueRef::Int(v) => Decimal::from(v),
        ValueRef::UInt(v) => Decimal::from(v),
        _ => return Place::Unknown,
    };
    let mut kept = number.truncated(column.scale);
    let exact = kept == number;
    if !exact && number.is_negative() {
        let unit = Decimal::new(1, column.scale);
        match kept.subtract(&unit) {
            Ok(below) => kept = below,
            Err(_) => return Place::Unknown,
        }
    }
    kept = kept.with_scale(column.scale);
    let most = Decimal::largest(column.precision, column.scale, false);
    let least = Decimal::largest(column.precision, column.scale, true);
    if kept > most {
        Place::Above
    } else if kept < least || (column.unsigned && kept.is_negative()) {
        Place::Below
    } else {
        Place::At(Value::Decimal(kept), exact)
    }
}

/// The interval `[low, high)` of keys; no `high` is no end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

/// The first byte string after all that begin with `prefix`; none if there is none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// What the evaluation of a range needs.
pub struct KeySource<'a> {
    /// Settings and parameters.
    pub eval: &'a EvalContext,
    /// The frame with the tables before.
    pub row: &'a dyn Columns,
    /// Parts of the index.
    pub parts: &'a [KeyColumn],
    /// Columns of the table.
    pub columns: &'a [LayoutColumn],
}

impl KeySource<'_> {
    fn place(&self, value: &Expr, part: &KeyColumn) -> Result<Place, ExecError> {
        let value = value.key_value(self.eval, self.row)?;
        let column_type = self.columns[part.column].column_type;
        Ok(place(value, &column_type, self.eval.settings.time_zone))
    }

    /// Appends a part that equals a value; false if no row can, none if it cannot be told.
    fn push_equal(
        &self,
        value: &RangeValue,
        part: &KeyColumn,
        key: &mut Vec<u8>,
    ) -> Result<Option<bool>, ExecError> {
        let (place, null_safe) = match value {
            RangeValue::Null => (Place::Null, true),
            RangeValue::NullSafe(value) => (self.place(value, part)?, true),
            RangeValue::Equal(value) => (self.place(value, part)?, false),
        };
        match place {
            Place::At(value, true) => part.push(value.as_ref(), key)?,
            Place::Null if null_safe && part.nullable => part.push(ValueRef::Null, key)?,
            Place::Unknown => return Ok(None),
            Place::At(_, false) | Place::Null | Place::Below | Place::Above => {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }

    /// The interval of one range; none if it holds no key.
    fn interval(&self, range: &RangePlan) -> Result<Option<Interval>, ExecError> {
        let parts = self.parts;
        let mut prefix = Vec::new();
        for (value, part) in range.equal.iter().zip(parts) {
            match self.push_equal(value, part, &mut prefix)? {
                Some(true) => {}
                Some(false) => return Ok(None),
                None => return Ok(Some(whole(prefix))),
            }
        }
        let Some(part) = parts.get(range.equal.len()) else { return Ok(Some(whole(prefix))) };
        let mut interval = whole(prefix.clone());
        if range.not_null && part.nullable {
            let mut not_null = prefix.clone();
            part.push_not_null_marker(&mut not_null);
            interval = whole(not_null);
        }
        let ends = [(&range.lower, true), (&range.upper, false)];
        for (end, is_lower) in ends {
            let Some(end) = end else { continue };
            if !self.narrow(&mut interval, &prefix, part, end, is_lower)? {
                return Ok(None);
            }
        }
        let holds = interval.high.as_ref().is_none_or(|high| interval.low < *high);
        Ok(holds.then_some(interval))
    }

    /// Applies one end; false if nothing is left.
    fn narrow(
        &self,
        interval: &mut Interval,
        prefix: &[u8],
        part: &KeyColumn,
        end: &RangeEnd,
        is_lower: bool,
    ) -> Result<bool, ExecError> {
        let (value, inclusive) = match end {
            RangeEnd::LikePrefix { pattern, escape } => {
                return self.narrow_to_prefix(interval, prefix, part, pattern, *escape);
            }
            RangeEnd::Value { value, inclusive } => (value, *inclusive),
        };
        let (value, exact) = match self.place(value, part)? {
            Place::At(value, exact) => (value, exact),
            Place::Null => return Ok(false),
            Place::Below => return Ok(is_lower),
            Place::Above => return Ok(!is_lower),
            Place::Unknown => return Ok(true),
        };
        let mut key = prefix.to_vec();
        part.push(value.as_ref(), &mut key)?;
        // Between the column's value `key` and the next one lies an inexact value.
        let keep_key = if is_lower { exact && inclusive } else { !exact || inclusive };
        // A prefix part cuts values: those beyond the cut look equal to it and must be kept.
        let keep_key = keep_key || part.prefix.is_some();
        // In a descending part large values come first, so a lower end is a high one.
        let cuts_low = is_lower != part.descending;
        if cuts_low {
            let low = if keep_key { Some(key) } else { after_prefix(&key) };
            match low {
                Some(low) => interval.low = interval.low.clone().max(low),
                None => return Ok(false),
            }
        } else {
            let high = if keep_key { after_prefix(&key) } else { Some(key) };
            interval.high = match (interval.high.take(), high) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(true)
    }

    fn narrow_to_prefix(
        &self,
        interval: &mut Interval,
        prefix: &[u8],
        part: &KeyColumn,
        pattern: &Expr,
        escape: Option<u32>,
    ) -> Result<bool, ExecError> {
        let pattern = match pattern.eval(self.eval, self.row)? {
            ValueRef::Null => return Ok(false),
            ValueRef::Bytes(pattern) => pattern,
            _ => return Ok(true),
        };
        let (text, _) = collation::like_prefix(part.collation(), pattern, escape);
        let mut key = prefix.to_vec();
        if !text.is_empty() && part.push_text_prefix(&text, &mut key) {
            let narrowed = whole(key);
            interval.low = interval.low.clone().max(narrowed.low);
            interval.high = match (interval.high.take(), narrowed.high) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(true)
    }

    /// The ranges as disjoint intervals in key order. Those that touch become one, unless they are
    /// to be kept `apart`: what is locked depends on what was asked for.
    pub fn key_ranges(
        &self,
        ranges: &[RangePlan],
        apart: bool,
    ) -> Result<Vec<KeyRange>, ExecError> {
        if let [range] = ranges {
            return Ok(self.interval(range)?.map(to_key_range).into_iter().collect());
        }
        let mut intervals = Vec::with_capacity(ranges.len());
        for range in ranges {
            intervals.extend(self.interval(range)?);
        }
        intervals.sort_by(|a, b| a.low.cmp(&b.low));
        let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
        for next in intervals {
            match merged.last_mut() {
                Some(last)
                    if last
                        .high
                        .as_ref()
                        .is_none_or(|high| *high > next.low || *high == next.low && !apart) =>
                {
                    last.high = match (last.high.take(), next.high) {
                        (Some(a), Some(b)) => Some(a.max(b)),
                        _ => None,
                    };
                }
                _ => merged.push(next),
            }
        }
        Ok(merged.into_iter().map(to_key_range).collect())
    }

    /// The clustered key whose parts equal these values; false if no row can have it, none if
    /// it cannot be told.
    pub fn point(&self, values: &[Expr], key: &mut Vec<u8>) -> Result<Option<bool>, ExecError> {
        key.clear();
        for (value, part) in values.iter().zip(self.parts) {
            let evaluated = value.key_value(self.eval, self.row)?;
            let column_type = self.columns[part.column].column_type;
            match place(evaluated, &column_type, self.eval.settings.time_zone) {
                Place::At(value, true) => part.push(value.as_ref(), key)?,
                Place::Unknown => return Ok(None),
                _ => return Ok(Some(false)),
            }
        }
        Ok(Some(true))
    }
}

fn whole(prefix: Vec<u8>) -> Interval {
    Interval { high: after_prefix(&prefix), low: prefix }
}

fn to_key_range(interval: Interval) -> KeyRange {
    let lower = match interval.low.is_empty() {
        true => Bound::Unbounded,
        false => Bound::Included(interval.low),
    };
    KeyRange { lower, upper: interval.high.map_or(Bound::Unbounded, Bound::Excluded) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::CollationId;

    fn column(kind: TypeKind, unsigned: bool) -> ColumnType {
        ColumnType {
            kind,
            unsigned,
            zerofill: false,
            length: 0,
            precision: 5,
            scale: 2,
            collation: CollationId::BINARY,
            members: None,
        }
    }

    #[test]
    fn values_find_their_place_among_integers() {
        let tiny = column(TypeKind::TinyInt, false);
        let of = |value| place(value, &tiny, TimeZone::System);
        assert_eq!(of(ValueRef::Int(5)), Place::At(Value::Int(5), true));
        assert_eq!(of(ValueRef::Int(200)), Place::Above);
        assert_eq!(of(ValueRef::Double(-200.5)), Place::Below);
        assert_eq!(of(ValueRef::Decimal(Decimal::new(-25, 1))), Place::At(Value::Int(-3), false));
        assert_eq!(of(ValueRef::Null), Place::Null);
        assert_eq!(of(ValueRef::Bytes(b"5")), Place::Unknown);
    }

    #[test]
    fn values_find_their_place_among_decimals() {
        let two = column(TypeKind::Decimal, false);
        let of = |value| place(value, &two, TimeZone::System);
        let at = |mantissa, exact| Place::At(Value::Decimal(Decimal::new(mantissa, 2)), exact);
        assert_eq!(of(ValueRef::Decimal(Decimal::new(1005, 3))), at(100, false));
        assert_eq!(of(ValueRef::Decimal(Decimal::new(-1005, 3))), at(-101, false));
        assert_eq!(of(ValueRef::Int(3)), at(300, true));
        assert_eq!(of(ValueRef::Int(1000)), Place::Above);
    }

    #[test]
    fn doubles_find_their_place_among_decimals_and_floats() {
        let two = column(TypeKind::Decimal, false);
        let of = |value| place(ValueRef::Double(value), &two, TimeZone::System);
        let at = |mantissa, exact| Place::At(Value::Decimal(Decimal::new(mantissa, 2)), exact);
        assert_eq!((of(0.1), of(-0.1)), (at(10, true), at(-10, true)));
        assert_eq!((of(0.1 + 0.2), of(-0.1 - 0.2)), (at(30, false), at(-31, false)));
        assert_eq!((of(1e-300), of(-1e-300), of(0.0)), (at(0, false), at(-1, false), at(0, true)));
        assert_eq!((of(1e300), of(-1e300)), (Place::Above, Place::Below));
        let wide = ColumnType { precision: 16, ..two };
        assert_eq!(place(ValueRef::Double(1.5), &wide, TimeZone::System), Place::Unknown);

        let float = column(TypeKind::Float, false);
        let of = |value| place(ValueRef::Double(value), &float, TimeZone::System);
        let at = |value, exact| Place::At(Value::Float(value), exact);
        assert_eq!((of(1.5), of(0.1)), (at(1.5, true), at(0.1f32.next_down(), false)));
        assert_eq!(of(-0.1), at(-0.1, false));
        assert_eq!(of(f64::from(f32::MAX) * 1.000_000_01), at(f32::MAX, false));
        assert_eq!(of(1e300), at(f32::MAX, false));
        assert_eq!((of(-1e300), of(f64::NAN)), (Place::Below, Place::Unknown));
        assert_eq!(place(ValueRef::Int(-7), &float, TimeZone::System), at(-7.0, true));
    }

    #[test]
    fn a_prefix_ends_where_the_next_begins() {
        assert_eq!(after_prefix(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(after_prefix(&[1, 0xff]), Some(vec![2]));
        assert_eq!(after_prefix(&[0xff]), None);
        assert_eq!(after_prefix(&[]), None);
    }
}
