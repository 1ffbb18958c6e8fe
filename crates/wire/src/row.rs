//! Rows of a result: from values, or from the bytes that the engine stores.
//!
//! 1. A [`StoredEncoder`] writes for a stored row, byte for byte, what [`RowFormat::put_row`]
//!    writes for the values that [`RowView`] reads from it, whatever the row's bytes are.
//! 2. It is made once for a plan: what a column's bytes become is decided there, not for every
//!    row. What has no short way (conversions, DECIMAL, dates) is read as a value and written as
//!    one.

use crate::binary::{BinaryRow, type_code};
use crate::output::{OutputBuffer, put_bytes};
use crate::text;
use std::sync::Arc;
use types::row::{FixedCodec, IndexLayout, Place, RowLayout, RowView, Varying, is_null};
use types::{Charset, ColumnType, TimeZone, TypeKind, ValueRef};

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// COM_QUERY.
    Text,
    /// COM_STMT_EXECUTE.
    Binary,
}

/// How one column's values are written.
#[derive(Clone, Copy, Debug)]
pub struct ColumnFormat {
    /// Type code of the column's definition.
    pub type_code: u8,
    /// Type.
    pub column_type: ColumnType,
    /// Text is converted between these sets.
    pub convert: Option<(Charset, Charset)>,
}

/// How the rows of one execution are written.
#[derive(Clone, Copy, Debug)]
pub struct RowFormat {
    /// Protocol.
    pub protocol: Protocol,
    /// In which instants are shown.
    pub time_zone: TimeZone,
}

/// What becomes of the bytes of a stored column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Read as a value, written as one.
    Value,
    /// Bytes of varying width, with their length before them.
    Varying { varying: Varying, null_bit: u16 },
    /// Bytes of fixed width in the payload, with their length before them.
    Fixed { offset: u32, width: u8, null_bit: u16 },
    /// The bytes of the payload as they are.
    Copied { offset: u32, width: u8, null_bit: u16 },
    /// Digits of an integer in the payload.
    Digits { offset: u32, width: u8, signed: bool, null_bit: u16 },
    /// Digits of an integer in the key.
    KeyDigits { offset: u32, width: u8, signed: bool },
    /// `out` bytes of an integer in the key.
    KeyNumber { offset: u32, width: u8, signed: bool, out: u8 },
}

#[derive(Clone, Debug)]
struct StoredColumn {
    /// In the table.
    column: usize,
    text: Step,
    binary: Step,
}

/// See the head of the file.
#[derive(Clone, Debug)]
pub struct StoredEncoder {
    layout: Arc<RowLayout>,
    columns: Vec<StoredColumn>,
}

/// The bytes of a row as the engine gives it.
#[derive(Clone, Copy, Debug)]
pub struct StoredRow<'a> {
    /// The clustered key.
    pub key: &'a [u8],
    /// The payload.
    pub payload: &'a [u8],
}

impl RowFormat {
    /// Appends a row of values.
    pub fn put_row(
        self,
        out: &mut Vec<u8>,
        values: &[ValueRef<'_>],
        columns: &[ColumnFormat],
        scratch: &mut Vec<u8>,
    ) {
        match self.protocol {
            Protocol::Text => {
                for (value, column) in values.iter().zip(columns) {
                    column.put_text(out, *value, self.time_zone, scratch);
                }
            }
            Protocol::Binary => {
                let mut row = BinaryRow::begin(out, values.len());
                for (value, column) in values.iter().zip(columns) {
                    column.put_binary(&mut row, out, *value, self.time_zone, scratch);
                }
            }
        }
    }
}

impl ColumnFormat {
    /// The value in the client's character set.
    #[inline]
    fn converted<'v>(&self, value: ValueRef<'v>, scratch: &'v mut Vec<u8>) -> ValueRef<'v> {
        match (value, self.convert) {
            (ValueRef::Bytes(bytes), Some((from, to))) if !from.is_subset_of(to, bytes) => {
                scratch.clear();
                from.convert(bytes, to, scratch);
                ValueRef::Bytes(scratch)
            }
            (value, _) => value,
        }
    }

    #[inline]
    fn put_text(
        &self,
        out: &mut Vec<u8>,
        value: ValueRef<'_>,
        zone: TimeZone,
        scratch: &mut Vec<u8>,
    ) {
        text::put_value(out, self.converted(value, scratch), &self.column_type, zone);
    }

    #[inline]
    fn put_binary(
        &self,
        row: &mut BinaryRow,
        out: &mut Vec<u8>,
        value: ValueRef<'_>,
        zone: TimeZone,
        scratch: &mut Vec<u8>,
    ) {
        let value = self.converted(value, scratch);
        row.put(out, value, self.type_code, &self.column_type, zone);
    }

    /// The value with the digits that its type fixes.
    #[inline]
    fn with_scale<'v>(&self, value: ValueRef<'v>) -> ValueRef<'v> {
        match value {
            ValueRef::Decimal(number) => {
                ValueRef::Decimal(number.with_scale(self.column_type.scale))
            }
            other => other,
        }
    }

    /// What the text protocol makes of a column at a place.
    fn text_step(&self, place: Place, layout: &RowLayout) -> Step {
        let plain = !self.column_type.zerofill && self.column_type.kind != TypeKind::Bit;
        match place {
            Place::Varying { index, null_bit } if self.convert.is_none() => {
                Step::Varying { varying: layout.varying(index), null_bit }
            }
            Place::Fixed { offset, codec: FixedCodec::Bytes(width), null_bit }
                if self.convert.is_none() =>
            {
                Step::Fixed { offset, width, null_bit }
            }
            Place::Fixed { offset, codec, null_bit } if plain => match integer(codec) {
                Some((width, signed)) => Step::Digits { offset, width, signed, null_bit },
                None => Step::Value,
            },
            Place::Key { offset, codec, descending: false } if plain => match integer(codec) {
                Some((width, signed)) => Step::KeyDigits { offset, width, signed },
                None => Step::Value,
            },
            _ => Step::Value,
        }
    }

    /// What the binary protocol makes of it.
    fn binary_step(&self, place: Place, layout: &RowLayout) -> Step {
        let sent = sent_width(self.type_code);
        match place {
            Place::Varying { .. } | Place::Fixed { codec: FixedCodec::Bytes(_), .. } => {
                if self.is_sent_as_text() { self.text_step(place, layout) } else { Step::Value }
            }
            Place::Fixed { offset, codec, null_bit } => {
                let copied = match codec {
                    FixedCodec::Float => self.type_code == type_code::FLOAT,
                    FixedCodec::Double => self.type_code == type_code::DOUBLE,
                    _ => integer(codec).is_some_and(|(width, _)| width == sent),
                };
                let width = codec.width() as u8;
                if copied { Step::Copied { offset, width, null_bit } } else { Step::Value }
            }
            Place::Key { offset, codec, descending: false } if sent > 0 => match integer(codec) {
                Some((width, signed)) => Step::KeyNumber { offset, width, signed, out: sent },
                None => Step::Value,
            },
            _ => Step::Value,
        }
    }

    fn is_sent_as_text(&self) -> bool {
        use type_code::*;
        !matches!(
            self.type_code,
            TINY | SHORT
                | YEAR
                | LONG
                | INT24
                | LONGLONG
                | FLOAT
                | DOUBLE
                | DATE
                | DATETIME
                | TIMESTAMP
                | TIME
        )
    }
}

/// Width of a stored integer, and whether it has a sign.
fn integer(codec: FixedCodec) -> Option<(u8, bool)> {
    match codec {
        FixedCodec::Int(width) => Some((width, true)),
        FixedCodec::UInt(width) => Some((width, false)),
        _ => None,
    }
}

/// Bytes of an integer in the binary protocol; 0 for what is no integer.
fn sent_width(code: u8) -> u8 {
    match code {
        type_code::TINY => 1,
        type_code::SHORT => 2,
        type_code::LONG | type_code::INT24 => 4,
        type_code::LONGLONG => 8,
        _ => 0,
    }
}

/// Up to eight little-endian bytes as a number; with a sign the uppermost bit is repeated.
#[inline]
fn number(bytes: &[u8], signed: bool) -> i64 {
    let (value, width) = match *bytes {
        [a, b, c, d] => (u64::from(u32::from_le_bytes([a, b, c, d])), 4),
        [a] => (u64::from(a), 1),
        _ => {
            let width = bytes.len().clamp(1, 8);
            (bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)), width)
        }
    };
    let shift = 64 - 8 * width as u32;
    if signed { ((value << shift) as i64) >> shift } else { value as i64 }
}

/// The same of a key: big-endian, the sign bit inverted so that keys have the numbers' order.
#[inline]
fn key_number(bytes: &[u8], signed: bool) -> i64 {
    let value = match *bytes {
        [a, b, c, d] => u64::from(u32::from_be_bytes([a, b, c, d])),
        _ => bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    };
    let shift = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    if signed { ((value << shift ^ 1 << 63) as i64) >> shift } else { value as i64 }
}

/// Appends the digits of a number with their length before them.
fn put_digits(out: &mut Vec<u8>, value: i64, signed: bool) {
    let negative = signed && value < 0;
    let mut rest = if negative { value.unsigned_abs() } else { value as u64 };
    let length = 1 + rest.checked_ilog10().unwrap_or(0) as usize + usize::from(negative);
    // The length, a sign and 20 digits.
    let mut bytes = [0; 24];
    bytes[0] = length as u8;
    bytes[1] = b'-';
    let mut at = length;
    loop {
        bytes[at % 24] = b'0' + (rest % 10) as u8;
        at -= 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let start = out.len();
    out.extend_from_slice(&bytes);
    out.truncate(start + 1 + length);
}

impl StoredEncoder {
    /// For a result whose columns are these columns of a table.
    pub fn new(layout: &Arc<RowLayout>, columns: &[usize], formats: &[ColumnFormat]) -> Self {
        let column = |(&column, format): (&usize, &ColumnFormat)| {
            let step = |of: fn(&ColumnFormat, Place, &RowLayout) -> Step| {
                layout.place(column).map_or(Step::Value, |place| of(format, place, layout))
            };
            StoredColumn {
                column,
                text: step(ColumnFormat::text_step),
                binary: step(ColumnFormat::binary_step),
            }
        };
        Self { layout: layout.clone(), columns: columns.iter().zip(formats).map(column).collect() }
    }

    /// Appends packets with rows of the table, until `full_bytes` wait in the buffer; returns how
    /// many rows that were. `formats` are those that the encoder was made with.
    #[inline]
    pub fn put_rows<'r>(
        &self,
        out: &mut OutputBuffer,
        rows: impl Iterator<Item = StoredRow<'r>>,
        formats: &[ColumnFormat],
        format: RowFormat,
        full_bytes: usize,
        scratch: &mut Vec<u8>,
    ) -> usize {
        let mut put: usize = 0;
        for row in rows {
            let payload = out.begin();
            match format.protocol {
                Protocol::Text => self.put_text_row(payload, row, formats, format, scratch),
                Protocol::Binary => self.put_binary_row(payload, row, formats, format, scratch),
            }
            out.end();
            put += 1;
            if out.len() >= full_bytes {
                break;
            }
        }
        put
    }

    fn value<'a>(&'a self, row: StoredRow<'a>, column: usize) -> ValueRef<'a> {
        RowView::new(&self.layout, row.key, row.payload).get(column)
    }

    #[inline(always)]
    fn put_text_row(
        &self,
        out: &mut Vec<u8>,
        row: StoredRow<'_>,
        formats: &[ColumnFormat],
        format: RowFormat,
        scratch: &mut Vec<u8>,
    ) {
        for (column, own) in self.columns.iter().zip(formats) {
            if column.text == Step::Value {
                let value = own.with_scale(self.value(row, column.column));
                own.put_text(out, value, format.time_zone, scratch);
            } else if !column.text.put(out, row) {
                out.push(text::NULL);
            }
        }
    }

    #[inline(always)]
    fn put_binary_row(
        &self,
        out: &mut Vec<u8>,
        row: StoredRow<'_>,
        formats: &[ColumnFormat],
        format: RowFormat,
        scratch: &mut Vec<u8>,
    ) {
        let mut binary = BinaryRow::begin(out, self.columns.len());
        for (column, own) in self.columns.iter().zip(formats) {
            if column.binary == Step::Value {
                let value = own.with_scale(self.value(row, column.column));
                own.put_binary(&mut binary, out, value, format.time_zone, scratch);
            } else {
                let is_null = !column.binary.put(out, row);
                binary.note(out, is_null);
            }
        }
    }

    /// Appends a row of which an index's key holds all columns.
    pub fn put_key(
        &self,
        out: &mut Vec<u8>,
        (index, key): (&IndexLayout, &[u8]),
        formats: &[ColumnFormat],
        format: RowFormat,
        scratch: &mut Vec<u8>,
    ) {
        let zone = format.time_zone;
        let columns =
            self.columns.iter().zip(formats).map(|(column, format)| {
                (format, format.with_scale(index.column(key, column.column)))
            });
        match format.protocol {
            Protocol::Text => {
                columns.for_each(|(format, value)| format.put_text(out, value, zone, scratch));
            }
            Protocol::Binary => {
                let mut row = BinaryRow::begin(out, self.columns.len());
                columns.for_each(|(format, value)| {
                    format.put_binary(&mut row, out, value, zone, scratch);
                });
            }
        }
    }
}

impl Step {
    /// Appends what becomes of the column; false, and nothing is appended, if it is NULL.
    #[inline(always)]
    fn put(self, out: &mut Vec<u8>, row: StoredRow<'_>) -> bool {
        let at = |offset: u32, width: u8| offset as usize..offset as usize + usize::from(width);
        match self {
            Step::Varying { varying, null_bit } => {
                if is_null(row.payload, null_bit) {
                    return false;
                }
                put_bytes(out, varying.read(row.payload));
            }
            Step::Fixed { offset, width, null_bit } => match row.payload.get(at(offset, width)) {
                Some(bytes) if !is_null(row.payload, null_bit) => put_bytes(out, bytes),
                _ => return false,
            },
            Step::Copied { offset, width, null_bit } => match row.payload.get(at(offset, width)) {
                Some(bytes) if !is_null(row.payload, null_bit) => put_copied(out, bytes),
                _ => return false,
            },
            Step::Digits { offset, width, signed, null_bit } => {
                match row.payload.get(at(offset, width)) {
                    Some(bytes) if !is_null(row.payload, null_bit) => {
                        put_digits(out, number(bytes, signed), signed);
                    }
                    _ => return false,
                }
            }
            Step::KeyDigits { offset, width, signed } => match row.key.get(at(offset, width)) {
                Some(bytes) => put_digits(out, key_number(bytes, signed), signed),
                None => return false,
            },
            Step::KeyNumber { offset, width, signed, out: sent } => {
                let Some(bytes) = row.key.get(at(offset, width)) else { return false };
                let bytes = key_number(bytes, signed).to_le_bytes();
                put_copied(out, &bytes[..usize::from(sent).min(8)]);
            }
            Step::Value => return false,
        }
        true
    }
}

/// Appends a few bytes; those of the commonest numbers without a call.
#[inline]
fn put_copied(out: &mut Vec<u8>, bytes: &[u8]) {
    match *bytes {
        [a] => out.push(a),
        [a, b, c, d] => out.extend_from_slice(&[a, b, c, d]),
        [a, b, c, d, e, f, g, h] => out.extend_from_slice(&[a, b, c, d, e, f, g, h]),
        _ => out.extend_from_slice(bytes),
    }
}

#[cfg(test)]
mod tests;
