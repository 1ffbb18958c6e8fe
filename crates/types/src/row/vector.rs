//! Columns of many rows as vectors of 64 bit numbers.
//!
//! 1. A vector has one number for each selected row, in the order of the selection, and knows
//!    nothing of the rows it was read from: no bytes are borrowed.
//! 2. The number stands for the value as the column's [`Lane`] says; within one lane numbers are
//!    ordered as the values are, and equal exactly when these are equal.
//! 3. Where a row is NULL the number is 0 and `nulls` is true. `nulls` is empty if no row is NULL.
//! 4. Only types whose every value fits the lane have one; the others are read value by value.

use super::codec::FixedCodec;
use super::layout::{Place, RowLayout, RowView};
use crate::decimal::Decimal;
use crate::temporal::{Date, DateTime, Time, Timestamp};
use crate::value::ValueRef;

/// What the numbers of a vector stand for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Signed integers.
    Int,
    /// Unsigned integers below 2^63.
    UInt,
    /// Exact numbers with so many digits after the point: the numbers without the point.
    Decimal {
        /// Digits after the point.
        scale: u8,
    },
    /// Days, packed.
    Date,
    /// Days and times, packed.
    DateTime,
    /// Microseconds since 1970.
    Timestamp,
    /// Microseconds.
    Time,
}

impl Lane {
    /// The value that a number stands for.
    #[inline]
    pub fn value(self, number: i64) -> ValueRef<'static> {
        match self {
            Lane::Int => ValueRef::Int(number),
            Lane::UInt => ValueRef::UInt(number as u64),
            Lane::Decimal { scale } => ValueRef::Decimal(Decimal::new(number.into(), scale)),
            Lane::Date => ValueRef::Date(Date(number as u32)),
            Lane::DateTime => ValueRef::DateTime(DateTime(number as u64)),
            Lane::Timestamp => ValueRef::Timestamp(Timestamp(number)),
            Lane::Time => ValueRef::Time(Time(number)),
        }
    }

    /// The lane and number of a value; `None` for NULL, for what is no number or instant, and
    /// for what does not fit.
    #[inline]
    pub fn of(value: ValueRef<'_>) -> Option<(Lane, i64)> {
        Some(match value {
            ValueRef::Int(v) => (Lane::Int, v),
            ValueRef::UInt(v) => (Lane::UInt, i64::try_from(v).ok()?),
            ValueRef::Decimal(v) => {
                (Lane::Decimal { scale: v.scale() }, i64::try_from(v.mantissa()?).ok()?)
            }
            ValueRef::Date(v) => (Lane::Date, v.0.into()),
            ValueRef::DateTime(v) => (Lane::DateTime, i64::try_from(v.0).ok()?),
            ValueRef::Timestamp(v) => (Lane::Timestamp, v.0),
            ValueRef::Time(v) => (Lane::Time, v.0),
            ValueRef::Null | ValueRef::Float(_) | ValueRef::Double(_) | ValueRef::Bytes(_) => {
                return None;
            }
        })
    }
}

/// A vector. See the head of the file.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Numbers.
    pub values: Vec<i64>,
    /// Which of them are NULL; empty if none is.
    pub nulls: Vec<bool>,
}

impl Numbers {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.values.clear();
        self.nulls.clear();
    }

    /// Whether number `at` is NULL.
    #[inline]
    pub fn is_null(&self, at: usize) -> bool {
        self.nulls.get(at).copied().unwrap_or(false)
    }
}

/// Rows whose bytes are at hand by number.
pub trait RowBytes {
    /// The clustered key.
    fn key(&self, row: usize) -> &[u8];
    /// The payload.
    fn payload(&self, row: usize) -> &[u8];
}

impl FixedCodec {
    /// The lane of a column stored like this, if it has one.
    fn lane(self) -> Option<Lane> {
        Some(match self {
            Self::Int(_) => Lane::Int,
            Self::UInt(bytes) if bytes < 8 => Lane::UInt,
            Self::Year => Lane::UInt,
            Self::Decimal { bytes, scale } if bytes <= 8 => Lane::Decimal { scale },
            Self::Date => Lane::Date,
            Self::DateTime { .. } => Lane::DateTime,
            Self::Timestamp { .. } => Lane::Timestamp,
            Self::Time { .. } => Lane::Time,
            Self::UInt(_) | Self::Decimal { .. } | Self::Float | Self::Double | Self::Bytes(_) => {
                return None;
            }
        })
    }

    /// If the bytes of the payload are the number but for a factor: whether they have a sign,
    /// and the factor.
    fn scaled(self) -> Option<(bool, i64)> {
        match self {
            Self::Int(_) | Self::Decimal { .. } => Some((true, 1)),
            Self::UInt(_) | Self::Date => Some((false, 1)),
            Self::DateTime { pairs: 0 } => Some((false, 1 << 20)),
            Self::Time { pairs: 0 } => Some((true, 1_000_000)),
            _ => None,
        }
    }
}

impl RowLayout {
    /// The lane of a column, if it has one.
    pub fn lane(&self, column: usize) -> Option<Lane> {
        match self.places.get(column)? {
            Place::Key { codec, .. } | Place::Fixed { codec, .. } => codec.lane(),
            Place::Varying { .. } => None,
        }
    }

    /// Reads a column that has a lane from the `selected` rows.
    pub fn read_numbers(
        &self,
        column: usize,
        rows: &impl RowBytes,
        selected: &[u32],
        out: &mut Numbers,
    ) {
        out.clear();
        out.values.reserve(selected.len());
        match self.places.get(column) {
            Some(&Place::Fixed { offset, codec, null_bit })
                if let Some((signed, factor)) = codec.scaled() =>
            {
                let at = offset as usize..offset as usize + codec.width();
                if signed {
                    read_fixed::<true>(rows, selected, at, &mut out.values);
                } else {
                    read_fixed::<false>(rows, selected, at, &mut out.values);
                }
                if factor != 1 {
                    out.values.iter_mut().for_each(|value| *value = value.wrapping_mul(factor));
                }
                if null_bit != super::layout::NEVER {
                    read_nulls(rows, selected, null_bit, out);
                }
            }
            Some(&Place::Key { offset, codec: FixedCodec::Int(4), descending: false }) => {
                let offset = offset as usize;
                out.values.extend(selected.iter().map(|&row| {
                    let bytes = rows.key(row as usize).get(offset..offset + 4);
                    let bytes = bytes.and_then(|bytes| bytes.first_chunk::<4>());
                    i64::from(bytes.map_or(0, |bytes| i32::from_be_bytes(*bytes) ^ i32::MIN))
                }));
            }
            _ => self.read_values(column, rows, selected, out),
        }
    }

    /// The texts of a column of strings in the `selected` rows; none for NULL.
    pub fn read_texts<'b>(
        &'b self,
        column: usize,
        rows: &'b impl RowBytes,
        selected: &[u32],
        out: &mut Vec<Option<&'b [u8]>>,
    ) {
        out.clear();
        if let Some(&Place::Varying { index, null_bit }) = self.places.get(column) {
            let index = usize::from(index);
            out.extend(selected.iter().map(|&row| {
                RowView::new(self, &[], rows.payload(row as usize)).text(index, null_bit)
            }));
            return;
        }
        out.extend(selected.iter().map(|&row| {
            let (key, payload) = (rows.key(row as usize), rows.payload(row as usize));
            match RowView::new(self, key, payload).get(column) {
                ValueRef::Bytes(text) => Some(text),
                _ => None,
            }
        }));
    }

    /// The same for any column with a lane, value by value.
    fn read_values(
        &self,
        column: usize,
        rows: &impl RowBytes,
        selected: &[u32],
        out: &mut Numbers,
    ) {
        for &row in selected {
            let row = row as usize;
            let value = RowView::new(self, rows.key(row), rows.payload(row)).get(column);
            match Lane::of(value) {
                Some((_, number)) => {
                    out.values.push(number);
                    if !out.nulls.is_empty() {
                        out.nulls.push(false);
                    }
                }
                None => {
                    out.nulls.resize(out.values.len(), false);
                    out.nulls.push(true);
                    out.values.push(0);
                }
            }
        }
    }
}

/// Reads up to eight bytes at the same place of every payload.
#[inline]
fn read_fixed<const SIGNED: bool>(
    rows: &impl RowBytes,
    selected: &[u32],
    at: std::ops::Range<usize>,
    out: &mut Vec<i64>,
) {
    let shift = 64 - 8 * at.len() as u32;
    out.extend(selected.iter().map(|&row| {
        let payload = rows.payload(row as usize);
        let bits = match payload.get(at.start..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(chunk) => u64::from_le_bytes(*chunk),
            // Close to the end of the row.
            None => {
                let bytes = payload.get(at.clone()).unwrap_or(&[]);
                bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
            }
        };
        let high = bits << shift;
        if SIGNED { high as i64 >> shift } else { (high >> shift) as i64 }
    }));
}

fn read_nulls(rows: &impl RowBytes, selected: &[u32], null_bit: u16, out: &mut Numbers) {
    let (byte, bit) = (1 + usize::from(null_bit >> 3), null_bit & 7);
    let mut any = false;
    out.nulls.extend(selected.iter().map(|&row| {
        let null = rows.payload(row as usize).get(byte).is_none_or(|byte| byte >> bit & 1 != 0);
        any |= null;
        null
    }));
    if !any {
        out.nulls.clear();
        return;
    }
    for (value, null) in out.values.iter_mut().zip(&out.nulls) {
        if *null {
            *value = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::KeyPart;
    use super::super::layout::LayoutColumn;
    use super::*;
    use crate::column_type::{ColumnType, TypeKind};

    struct Rows(Vec<(Vec<u8>, Vec<u8>)>);

    impl RowBytes for Rows {
        fn key(&self, row: usize) -> &[u8] {
            &self.0[row].0
        }
        fn payload(&self, row: usize) -> &[u8] {
            &self.0[row].1
        }
    }

    /// Columns with a lane, in the order of `values`.
    fn columns() -> Vec<LayoutColumn> {
        let integer = ColumnType::integer;
        let temporal = ColumnType::temporal;
        let types = [
            integer(TypeKind::Int, false),
            integer(TypeKind::BigInt, false),
            integer(TypeKind::TinyInt, false),
            integer(TypeKind::MediumInt, true),
            integer(TypeKind::Int, true),
            ColumnType::decimal(12, 2, false),
            ColumnType::decimal(18, 4, false),
            temporal(TypeKind::Date, 0),
            temporal(TypeKind::DateTime, 0),
            temporal(TypeKind::DateTime, 6),
            temporal(TypeKind::Timestamp, 3),
            temporal(TypeKind::Time, 2),
            temporal(TypeKind::Time, 0),
        ];
        let column = |column_type| LayoutColumn { column_type, nullable: true };
        types.map(column).to_vec()
    }

    fn values(seed: u64) -> Vec<ValueRef<'static>> {
        let mut random = base::Random::new(seed);
        let date = Date(
            (random.below(9_999) as u32) << 9
                | (1 + random.below(12) as u32) << 5
                | (1 + random.below(28) as u32),
        );
        let moment = |micros: u64| DateTime(date.at_midnight().0 + micros);
        let row = [
            ValueRef::Int(i64::from(random.next_u64() as i32)),
            ValueRef::Int(random.next_u64() as i64),
            ValueRef::Int(i64::from(random.next_u64() as i8)),
            ValueRef::UInt(random.below(1 << 24)),
            ValueRef::UInt(random.below(1 << 32)),
            ValueRef::Decimal(Decimal::new(i128::from(random.below(1 << 38)) - (1 << 37), 2)),
            ValueRef::Decimal(Decimal::new(i128::from(random.below(1 << 59)) - (1 << 58), 4)),
            ValueRef::Date(date),
            ValueRef::DateTime(moment(0)),
            ValueRef::DateTime(moment(random.below(1_000_000))),
            ValueRef::Timestamp(Timestamp(random.below(1 << 50) as i64 / 1000 * 1000)),
            ValueRef::Time(Time((random.below(1 << 30) as i64 - (1 << 29)) * 10_000)),
            ValueRef::Time(Time((random.below(1 << 20) as i64 - (1 << 19)) * 1_000_000)),
        ];
        row.map(|value| if random.below(5) == 0 { ValueRef::Null } else { value }).to_vec()
    }

    #[test]
    fn texts_are_those_of_the_rows() {
        use crate::CollationId;
        let text = |kind, length| LayoutColumn {
            column_type: ColumnType::text(kind, length, CollationId::UTF8MB4_BIN),
            nullable: true,
        };
        let binary = text(TypeKind::Binary, 4);
        let columns = [
            text(TypeKind::VarChar, 300),
            binary,
            text(TypeKind::Text, 0),
            text(TypeKind::Char, 9),
        ];
        let layout = RowLayout::new(&columns, &[], 1);
        let mut random = base::Random::new(5);
        let (mut rows, mut expected) = (Rows(Vec::new()), Vec::new());
        for number in 0..200 {
            // Every tenth row is so long that its ends are wide.
            let lengths = [random.below(300), 4, if number % 10 == 0 { 70_000 } else { 20 }, 0];
            let row = lengths.map(|length| {
                let text = vec![b'a' + random.below(26) as u8; length as usize];
                (random.below(4) != 0).then_some(text)
            });
            let values: Vec<_> = row
                .iter()
                .map(|text| text.as_deref().map_or(ValueRef::Null, ValueRef::Bytes))
                .collect();
            let (mut key, mut payload) = (Vec::new(), Vec::new());
            layout.encode(&values, &mut key, &mut payload).expect("values of the types");
            rows.0.push((key, payload));
            expected.push(row);
        }
        let selected: Vec<u32> = (0..200).filter(|row| row % 3 != 1).collect();
        let text = |row: u32, column: usize| expected[row as usize][column].as_deref();
        let mut texts = Vec::new();
        for column in 0..columns.len() {
            layout.read_texts(column, &rows, &selected, &mut texts);
            let rows = selected.iter().map(|&row| text(row, column));
            assert!(texts.iter().copied().eq(rows), "column {column}");
        }
    }

    #[test]
    fn vectors_hold_what_the_rows_hold() {
        let columns = columns();
        let key = |column| KeyPart { column, prefix: None, descending: column % 2 == 1 };
        for keys in [vec![], vec![key(0)], vec![key(0), key(1), key(5)]] {
            let mut columns = columns.clone();
            for part in &keys {
                columns[part.column].nullable = false;
            }
            let layout = RowLayout::new(&columns, &keys, 1);
            let mut rows = Rows(Vec::new());
            for seed in 0..300 {
                let mut row = values(seed);
                for part in &keys {
                    if row[part.column].is_null() {
                        row[part.column] = values(17)[part.column];
                    }
                    if row[part.column].is_null() {
                        row[part.column] = values(18)[part.column];
                    }
                }
                if keys.iter().any(|part| row[part.column].is_null()) {
                    continue;
                }
                let (mut key, mut payload) = (Vec::new(), Vec::new());
                layout.encode(&row, &mut key, &mut payload).expect("values of the types");
                rows.0.push((key, payload));
            }
            assert!(rows.0.len() > 100);
            let selected: Vec<u32> = (0..rows.0.len() as u32).filter(|row| row % 3 != 1).collect();
            let mut numbers = Numbers::default();
            for column in 0..columns.len() {
                let lane = layout.lane(column).expect("the type has a lane");
                layout.read_numbers(column, &rows, &selected, &mut numbers);
                assert_eq!(numbers.values.len(), selected.len());
                for (at, &row) in selected.iter().enumerate() {
                    let (key, payload) = &rows.0[row as usize];
                    let expected = RowView::new(&layout, key, payload).get(column);
                    let found = lane.value(numbers.values[at]);
                    let found = if numbers.is_null(at) { ValueRef::Null } else { found };
                    assert_eq!(found, expected, "column {column}, row {row}");
                }
            }
        }
    }
}
