//! Asks the engine how many keys lie in a range whose ends are constants.

use crate::physical::{RangeEnd, RangePlan, RangeValue};
use catalog::TableEntry;
use engine_api::KeyRange;
use expr::{Expr, ExprKind};
use std::ops::Bound;
use types::row::{KeyColumn, LayoutColumn};
use types::{ColumnType, Decimal, TypeKind, Value};

/// Most ranges of one access that are asked for one by one.
const ASKED_MAX: usize = 8;

/// Keys in the ranges of an index, if all their ends are constants of the columns' own kind.
pub(super) fn rows(
    entry: &TableEntry,
    index: usize,
    ranges: &[RangePlan],
    values: &[Value],
) -> Option<f64> {
    if ranges.len() > ASKED_MAX {
        return None;
    }
    let layouts = entry.layouts();
    let parts = layouts.indexes.get(index)?.parts();
    let columns = layouts.row.columns();
    let mut keys = Vec::with_capacity(ranges.len());
    for range in ranges {
        keys.push(key_range(range, parts, columns, values)?);
    }
    let table = entry.handle().ok()?;
    Some(keys.iter().map(|range| table.estimate_range(index, range) as f64).sum())
}

fn key_range(
    range: &RangePlan,
    parts: &[KeyColumn],
    columns: &[LayoutColumn],
    values: &[Value],
) -> Option<KeyRange> {
    let mut prefix = Vec::new();
    for (value, part) in range.equal.iter().zip(parts) {
        let RangeValue::Equal(value) = value else { return None };
        push_value(constant(value, values)?, part, columns, &mut prefix)?;
    }
    let Some(part) = parts.get(range.equal.len()) else { return Some(KeyRange::prefix(prefix)) };
    if part.descending {
        return None;
    }
    let end = |end: &Option<RangeEnd>| match end {
        None => Some(None),
        Some(RangeEnd::Value { value, inclusive }) => {
            let mut key = prefix.clone();
            push_value(constant(value, values)?, part, columns, &mut key)?;
            Some(Some(if *inclusive { Bound::Included(key) } else { Bound::Excluded(key) }))
        }
        Some(RangeEnd::LikePrefix { .. }) => None,
    };
    let whole = || match prefix.is_empty() {
        true => Bound::Unbounded,
        false => Bound::Included(prefix.clone()),
    };
    let lower = end(&range.lower)?.unwrap_or_else(whole);
    let upper = end(&range.upper)?.unwrap_or_else(whole);
    Some(KeyRange { lower, upper })
}

/// The value of a literal, or of a parameter that is bound.
pub(super) fn constant<'e>(expr: &'e Expr, values: &'e [Value]) -> Option<&'e Value> {
    match expr.kind {
        ExprKind::Parameter(number) => values.get(number),
        _ => expr.literal(),
    }
}

/// Appends a value in the form of a key's part.
pub(super) fn push_value(
    value: &Value,
    part: &KeyColumn,
    columns: &[LayoutColumn],
    key: &mut Vec<u8>,
) -> Option<()> {
    let column = &columns[part.column].column_type;
    let value = fitting(value, column)?;
    part.push(value.as_ref(), key).ok()
}

/// The value as one of the column's, where that is plain to see.
fn fitting(value: &Value, column: &ColumnType) -> Option<Value> {
    let integer = match value {
        Value::Int(v) => Some(i128::from(*v)),
        Value::UInt(v) => Some(i128::from(*v)),
        _ => None,
    };
    if column.kind.is_integer() {
        let bits = column.kind.integer_bytes() * 8;
        let (low, high) = match column.unsigned {
            true => (0, (1i128 << bits) - 1),
            false => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        };
        let within = integer?.clamp(low, high);
        return Some(match column.unsigned {
            true => Value::UInt(within as u64),
            false => Value::Int(within as i64),
        });
    }
    match (column.kind, value) {
        (kind, Value::Bytes(_)) if kind.is_string() => Some(value.clone()),
        (TypeKind::Double, Value::Double(_)) => Some(value.clone()),
        (TypeKind::Float, Value::Double(v)) => Some(Value::Float(*v as f32)),
        (TypeKind::Decimal, Value::Decimal(v)) if v.scale() <= column.scale => {
            Some(Value::Decimal(v.with_scale(column.scale)))
        }
        (TypeKind::Decimal, Value::Double(v)) if v.abs() < 1e15 => {
            let number = Decimal::parse(v.to_string().as_bytes()).value;
            Some(Value::Decimal(number.truncated(column.scale).with_scale(column.scale)))
        }
        (TypeKind::DateTime, Value::DateTime(_)) | (TypeKind::Date, Value::Date(_)) => {
            Some(value.clone())
        }
        (TypeKind::Date, Value::DateTime(v)) => Some(Value::Date(v.date())),
        _ => None,
    }
}
