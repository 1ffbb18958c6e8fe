//! Rows kept in one piece of memory: what sorts and derived tables hold.
//!
//! A value is a tag byte and its bytes in native order: `Null | Int 8 | UInt 8 | Float 4 |
//! Double 8 | Small (scale, 8) | Decimal (scale, 36) | Bytes (length 4, bytes) | Date 4 |
//! DateTime 8 | Timestamp 8 | Time 8`. Nothing of it leaves the process.

use types::row::Lane;
use types::{Date, DateTime, Decimal, Time, Timestamp, ValueRef};

const NULL: u8 = 0;
const INT: u8 = 1;
const UINT: u8 = 2;
const FLOAT: u8 = 3;
const DOUBLE: u8 = 4;
/// A DECIMAL whose digits fit 64 bits.
const SMALL: u8 = 5;
const DECIMAL: u8 = 6;
const BYTES: u8 = 7;
const DATE: u8 = 8;
const DATETIME: u8 = 9;
const TIMESTAMP: u8 = 10;
const TIME: u8 = 11;

/// Bytes of any DECIMAL.
const DECIMAL_BYTES: usize = 36;

/// See the head of the file.
#[derive(Debug, Default)]
pub struct PackedRows {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl PackedRows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Adds a row; all rows have equally many values.
    pub fn push(&mut self, row: &[ValueRef<'_>]) {
        self.starts.push(self.bytes.len());
        for value in row {
            push_value(*value, &mut self.bytes);
        }
    }

    /// Bytes of all rows, which is where the next row begins. The values of a row of a sort are
    /// just pushed ([`PackedRows::push_value`]); such rows get their numbers when all have come
    /// ([`PackedRows::set_order`]).
    #[inline]
    pub fn end(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a value to the row begun last.
    #[inline]
    pub fn push_value(&mut self, value: ValueRef<'_>) {
        push_value(value, &mut self.bytes);
    }

    /// The same for the number of a lane, `None` for NULL.
    #[inline]
    pub fn push_number(&mut self, lane: Lane, number: Option<i64>) {
        let Some(number) = number else { return self.bytes.push(NULL) };
        if let Lane::Decimal { scale } = lane {
            let mut bytes = [SMALL, scale, 0, 0, 0, 0, 0, 0, 0, 0];
            bytes[2..].copy_from_slice(&number.to_ne_bytes());
            return self.bytes.extend_from_slice(&bytes);
        }
        push_value(lane.value(number), &mut self.bytes);
    }

    /// Adds a row as the bytes that [`PackedRows::row_bytes`] gives.
    pub fn push_packed(&mut self, row: &[u8]) {
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(row);
    }

    /// The bytes of the row of `width` values that begins there.
    pub fn row_bytes(&self, start: usize, width: usize) -> &[u8] {
        let mut rest = self.row_at(start);
        (0..width).for_each(|_| rest.skip());
        &self.bytes[start..self.bytes.len() - rest.bytes.len()]
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
    }

    /// Makes room for more bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Row number N is the one that begins at `starts[N]`.
    pub fn set_order(&mut self, starts: Vec<usize>) {
        self.starts = starts;
    }

    /// The values of a row, from the first.
    #[inline]
    pub fn row(&self, row: usize) -> Values<'_> {
        self.row_at(self.start(row))
    }

    #[inline]
    pub fn start(&self, row: usize) -> usize {
        self.starts.get(row).copied().unwrap_or(self.bytes.len())
    }

    /// The values of the row that begins there.
    #[inline]
    pub fn row_at(&self, start: usize) -> Values<'_> {
        Values { bytes: &self.bytes[start..] }
    }

    /// Touches the rows that begin there, so that their memory comes while something else is done.
    #[inline]
    pub fn touch(&self, starts: impl Iterator<Item = usize>) {
        let touched = starts.map(|start| self.bytes.get(start).copied().unwrap_or(0));
        std::hint::black_box(touched.fold(0, |all, byte| all ^ byte));
    }

    /// One value of a row.
    #[inline]
    pub fn value_at(&self, row: usize, column: usize) -> ValueRef<'_> {
        self.row(row).value(column)
    }

    /// Adds a row of other rows; returns where it begins.
    pub fn copy_from(&mut self, other: &Self, start: usize, width: usize) -> usize {
        let copy = self.end();
        self.bytes.extend_from_slice(other.row_bytes(start, width));
        copy
    }
}

/// Memory that a row takes, at most a few bytes less.
pub fn packed_bytes(row: &[ValueRef<'_>]) -> usize {
    let bytes = |value: &ValueRef<'_>| match value {
        ValueRef::Bytes(bytes) => bytes.len() + 5,
        ValueRef::Decimal(_) => 2 + DECIMAL_BYTES,
        _ => 9,
    };
    size_of::<usize>() + row.iter().map(bytes).sum::<usize>()
}

/// Appends a value as rows have it.
pub fn push_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    fn put<const N: usize>(tag: u8, bytes: [u8; N], out: &mut Vec<u8>) {
        out.push(tag);
        out.extend_from_slice(&bytes);
    }
    match value {
        ValueRef::Null => out.push(NULL),
        ValueRef::Int(v) => put(INT, v.to_ne_bytes(), out),
        ValueRef::UInt(v) => put(UINT, v.to_ne_bytes(), out),
        ValueRef::Float(v) => put(FLOAT, v.to_ne_bytes(), out),
        ValueRef::Double(v) => put(DOUBLE, v.to_ne_bytes(), out),
        ValueRef::Decimal(v) => match Lane::of(value) {
            Some((_, number)) => {
                out.extend_from_slice(&[SMALL, v.scale()]);
                out.extend_from_slice(&number.to_ne_bytes());
            }
            None => {
                let mut bytes = [0; DECIMAL_BYTES];
                v.to_le_bytes(&mut bytes);
                out.extend_from_slice(&[DECIMAL, v.scale()]);
                out.extend_from_slice(&bytes);
            }
        },
        ValueRef::Bytes(v) => {
            put(BYTES, (v.len() as u32).to_ne_bytes(), out);
            out.extend_from_slice(v);
        }
        ValueRef::Date(v) => put(DATE, v.0.to_ne_bytes(), out),
        ValueRef::DateTime(v) => put(DATETIME, v.0.to_ne_bytes(), out),
        ValueRef::Timestamp(v) => put(TIMESTAMP, v.0.to_ne_bytes(), out),
        ValueRef::Time(v) => put(TIME, v.0.to_ne_bytes(), out),
    }
}

/// The values of a row, one after the other. Behind the last one they mean nothing.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    bytes: &'a [u8],
}

impl<'a> Values<'a> {
    /// The values of a row's bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.bytes.split_first_chunk::<N>() {
            Some((chunk, rest)) => {
                self.bytes = rest;
                *chunk
            }
            None => [0; N],
        }
    }

    /// The value `column` places further on.
    #[inline]
    pub fn value(mut self, column: usize) -> ValueRef<'a> {
        for _ in 0..column {
            self.skip();
        }
        self.next_value()
    }

    fn skip(&mut self) {
        let [tag] = self.take::<1>();
        let length = match tag {
            NULL => 0,
            FLOAT | DATE => 4,
            SMALL => 9,
            DECIMAL => 1 + DECIMAL_BYTES,
            BYTES => u32::from_ne_bytes(self.take()) as usize,
            _ => 8,
        };
        self.bytes = self.bytes.get(length..).unwrap_or(&[]);
    }

    /// The next value.
    #[inline]
    pub fn next_value(&mut self) -> ValueRef<'a> {
        let [tag] = self.take::<1>();
        match tag {
            INT => ValueRef::Int(i64::from_ne_bytes(self.take())),
            UINT => ValueRef::UInt(u64::from_ne_bytes(self.take())),
            FLOAT => ValueRef::Float(f32::from_ne_bytes(self.take())),
            DOUBLE => ValueRef::Double(f64::from_ne_bytes(self.take())),
            SMALL => {
                let [scale] = self.take();
                let number = i64::from_ne_bytes(self.take());
                ValueRef::Decimal(Decimal::new(number.into(), scale))
            }
            DECIMAL => {
                let [scale] = self.take();
                let bytes: [u8; DECIMAL_BYTES] = self.take();
                ValueRef::Decimal(Decimal::from_le_bytes(&bytes, scale))
            }
            BYTES => {
                let length = u32::from_ne_bytes(self.take()) as usize;
                let (text, rest) = self.bytes.split_at(length.min(self.bytes.len()));
                self.bytes = rest;
                ValueRef::Bytes(text)
            }
            DATE => ValueRef::Date(Date(u32::from_ne_bytes(self.take()))),
            DATETIME => ValueRef::DateTime(DateTime(u64::from_ne_bytes(self.take()))),
            TIMESTAMP => ValueRef::Timestamp(Timestamp(i64::from_ne_bytes(self.take()))),
            TIME => ValueRef::Time(Time(i64::from_ne_bytes(self.take()))),
            _ => ValueRef::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_as_the_values_they_stand_for() {
        let lanes = [
            (Lane::Int, -5),
            (Lane::UInt, 5),
            (Lane::Decimal { scale: 2 }, -123),
            (Lane::Date, 7),
            (Lane::DateTime, 8),
            (Lane::Timestamp, 9),
            (Lane::Time, -10),
        ];
        for (lane, number) in lanes {
            let mut rows = PackedRows::default();
            let start = rows.end();
            rows.push_number(lane, Some(number));
            rows.push_number(lane, None);
            rows.push_value(ValueRef::Bytes(b"end"));
            let mut values = rows.row_at(start);
            assert_eq!(values.next_value(), lane.value(number));
            assert_eq!(values.next_value(), ValueRef::Null);
            assert_eq!(values.next_value(), ValueRef::Bytes(b"end"));
        }
    }

    #[test]
    fn rows_come_back_as_they_were_put() {
        let wide = Decimal::largest(65, 30, true);
        let rows: Vec<Vec<ValueRef<'_>>> = vec![
            vec![ValueRef::Int(i64::MIN), ValueRef::Bytes(b"text"), ValueRef::Null],
            vec![ValueRef::Decimal(wide), ValueRef::Bytes(b""), ValueRef::UInt(u64::MAX)],
            vec![
                ValueRef::Decimal(Decimal::new(-5, 2)),
                ValueRef::Float(1.5),
                ValueRef::Double(-0.0),
            ],
            vec![
                ValueRef::Date(Date(7)),
                ValueRef::DateTime(DateTime(8)),
                ValueRef::Time(Time(-9)),
            ],
            vec![ValueRef::Timestamp(Timestamp(1)), ValueRef::Null, ValueRef::Null],
        ];
        let mut packed = PackedRows::default();
        let mut copy = PackedRows::default();
        for row in &rows {
            packed.push(row);
        }
        let starts = (0..rows.len()).rev().map(|row| copy.copy_from(&packed, packed.start(row), 3));
        let starts = starts.collect();
        copy.set_order(starts);
        for (number, row) in rows.iter().enumerate() {
            let mut values = copy.row(rows.len() - 1 - number);
            for (column, value) in row.iter().enumerate() {
                assert_eq!(packed.value_at(number, column), *value);
                assert_eq!(values.next_value(), *value);
            }
            assert!(packed_bytes(row) + 1 >= 8, "row {number}");
        }
        assert_eq!((packed.len(), packed.end()), (copy.len(), copy.end()));
    }
}
