//! Values of a row, read where it arrived.

use std::borrow::Cow;
use wire::Fields;
use wire::binary::type_code;

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
        type_code::TINY => Raw::Integer(i64::from(fields.u8().ok()? as i8)),
        type_code::SHORT | type_code::YEAR => Raw::Integer(i64::from(fields.u16().ok()? as i16)),
        type_code::LONG | type_code::INT24 => Raw::Integer(i64::from(fields.u32().ok()? as i32)),
        type_code::LONGLONG => Raw::Integer(fields.u64().ok()? as i64),
        type_code::FLOAT => Raw::Double(f64::from(f32::from_bits(fields.u32().ok()?))),
        type_code::DOUBLE => Raw::Double(f64::from_bits(fields.u64().ok()?)),
        type_code::DATE | type_code::TIME | type_code::DATETIME | type_code::TIMESTAMP => {
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
        let types = [
            type_code::LONG,
            type_code::LONG,
            type_code::VAR_STRING,
            type_code::DOUBLE,
            type_code::LONGLONG,
        ];
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
