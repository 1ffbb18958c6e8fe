//! Values of a row, read where it arrived.

use std::borrow::Cow;
use wire::Fields;

/// Types of columns as the protocol numbers them.
mod kind {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
}

/// A row of a result.
pub struct Row<'a> {
    payload: &'a [u8],
    types: &'a [u8],
    binary: bool,
}

impl<'a> Row<'a> {
    pub(super) fn new(payload: &'a [u8], types: &'a [u8], binary: bool) -> Self {
        Self { payload, types, binary }
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.types.len()
    }

    /// Bytes of the row on the wire.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }

    /// A column as an integer; `None` for NULL, and for what is none.
    pub fn integer(&self, column: usize) -> Option<i64> {
        match self.raw(column)? {
            Raw::Integer(value) => Some(value),
            Raw::Bytes(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            Raw::Double(_) => None,
        }
    }

    /// A column as text; `None` for NULL. Dates and times of prepared statements are their
    /// fields, not text.
    pub fn text(&self, column: usize) -> Option<Cow<'a, [u8]>> {
        Some(match self.raw(column)? {
            Raw::Bytes(text) => Cow::Borrowed(text),
            Raw::Integer(value) => Cow::Owned(value.to_string().into_bytes()),
            Raw::Double(value) => Cow::Owned(value.to_string().into_bytes()),
        })
    }

    /// A DECIMAL of two places as hundredths; `None` for NULL, and for what is none.
    pub fn hundredths(&self, column: usize) -> Option<i64> {
        let text = self.text(column)?;
        let text = std::str::from_utf8(&text).ok()?;
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "00"));
        let fraction = format!("{fraction:0<2}");
        let hundredths: i64 = fraction.get(..2)?.parse().ok()?;
        Some(sign * (whole.parse::<i64>().ok()? * 100 + hundredths))
    }

    fn raw(&self, column: usize) -> Option<Raw<'a>> {
        if self.binary { self.raw_binary(column) } else { self.raw_text(column) }
    }

    fn raw_text(&self, column: usize) -> Option<Raw<'a>> {
        let mut fields = Fields(self.payload);
        for before in 0..=column {
            let is_null = fields.0.first() == Some(&0xfb);
            if is_null {
                fields.u8().ok()?;
            }
            let value = if is_null { None } else { Some(fields.bytes().ok()?) };
            if before == column {
                return value.map(Raw::Bytes);
            }
        }
        None
    }

    fn raw_binary(&self, column: usize) -> Option<Raw<'a>> {
        let bitmap = self.payload.get(1..1 + (self.types.len() + 9) / 8)?;
        let is_null = |column: usize| bitmap[(column + 2) / 8] >> ((column + 2) % 8) & 1 == 1;
        let mut fields = Fields(&self.payload[1 + bitmap.len()..]);
        for before in 0..column {
            if !is_null(before) {
                take(&mut fields, self.types[before])?;
            }
        }
        if is_null(column) { None } else { take(&mut fields, *self.types.get(column)?) }
    }
}

enum Raw<'a> {
    Integer(i64),
    Double(f64),
    Bytes(&'a [u8]),
}

/// Takes a value off a binary row.
fn take<'a>(fields: &mut Fields<'a>, kind: u8) -> Option<Raw<'a>> {
    Some(match kind {
        kind::TINY => Raw::Integer(i64::from(fields.u8().ok()? as i8)),
        kind::SHORT | kind::YEAR => Raw::Integer(i64::from(fields.u16().ok()? as i16)),
        kind::LONG | kind::INT24 => Raw::Integer(i64::from(fields.u32().ok()? as i32)),
        kind::LONGLONG => Raw::Integer(fields.u64().ok()? as i64),
        kind::FLOAT => Raw::Double(f64::from(f32::from_bits(fields.u32().ok()?))),
        kind::DOUBLE => Raw::Double(f64::from_bits(fields.u64().ok()?)),
        kind::DATE | kind::TIME | kind::DATETIME | kind::TIMESTAMP => {
            let length = fields.u8().ok()?;
            Raw::Bytes(fields.take(usize::from(length)).ok()?)
        }
        _ => Raw::Bytes(fields.bytes().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_rows() {
        let row = Row::new(b"\x02-7\xfb\x055.007\x04-0.5", &[8, 8, 246, 246], false);
        assert_eq!((row.integer(0), row.integer(1)), (Some(-7), None));
        assert_eq!((row.hundredths(2), row.hundredths(3)), (Some(500), Some(-50)));
        assert_eq!(row.text(2).as_deref(), Some(&b"5.007"[..]));
        assert!(row.text(4).is_none());
    }

    #[test]
    fn binary_rows() {
        // Five columns, the second NULL: bits begin at the third.
        let mut payload = vec![0, 1 << 3];
        payload.extend_from_slice(&(-3i32).to_le_bytes());
        payload.extend_from_slice(b"\x02ab");
        payload.extend_from_slice(&1.5f64.to_le_bytes());
        payload.extend_from_slice(&(-9i64).to_le_bytes());
        let types = [kind::LONG, kind::LONG, 253, kind::DOUBLE, kind::LONGLONG];
        let row = Row::new(&payload, &types, true);
        assert_eq!((row.integer(0), row.integer(1)), (Some(-3), None));
        assert_eq!(row.text(2).as_deref(), Some(&b"ab"[..]));
        assert_eq!(row.text(3).as_deref(), Some(&b"1.5"[..]));
        assert_eq!((row.integer(4), row.integer(5)), (Some(-9), None));
    }

    #[test]
    fn what_ends_too_early_is_no_value() {
        assert!(Row::new(b"\x05ab", &[253], false).text(0).is_none());
        assert!(Row::new(b"\x00", &[8], true).integer(0).is_none());
        assert!(Row::new(b"\x00\x00\x01", &[8], true).integer(0).is_none());
    }
}
