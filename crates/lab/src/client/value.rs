//! Values of a statement: as parameters, or written into its text.

use std::io::Write;
use wire::binary::type_code::{DOUBLE, LONGLONG, NULL, VAR_STRING};
use wire::put_bytes;

/// A value to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A number with a fraction.
    Double(f64),
    /// Text or bytes.
    Bytes(&'a [u8]),
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Self::Integer(value as i64)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Bytes(value.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl Value<'_> {
    fn kind(&self) -> u8 {
        match self {
            Self::Null => NULL,
            Self::Integer(_) => LONGLONG,
            Self::Double(_) => DOUBLE,
            Self::Bytes(_) => VAR_STRING,
        }
    }
}

/// Appends the values of COM_STMT_EXECUTE: which are NULL, their types unless the server has been
/// told just these (`told`), and they themselves.
pub(super) fn put_parameters(out: &mut Vec<u8>, values: &[Value<'_>], told: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let bitmap = out.len();
    out.resize(bitmap + values.len().div_ceil(8), 0);
    for (number, value) in values.iter().enumerate() {
        out[bitmap + number / 8] |= u8::from(*value == Value::Null) << (number % 8);
    }
    let is_told = |(value, kind): (&Value<'_>, &u8)| *value == Value::Null || value.kind() == *kind;
    let are_told = told.len() == values.len() && values.iter().zip(told.iter()).all(is_told);
    out.push(u8::from(!are_told));
    if !are_told {
        told.clear();
        told.extend(values.iter().map(Value::kind));
        told.iter().for_each(|kind| out.extend_from_slice(&[*kind, 0]));
    }
    for value in values {
        match value {
            Value::Null => {}
            Value::Integer(value) => out.extend_from_slice(&value.to_le_bytes()),
            Value::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
            Value::Bytes(value) => put_bytes(out, value),
        }
    }
}

/// Appends a text with its values in place of the question marks; `None` if there are not as many
/// of these as of those. A question mark within quotes must not be in the text.
pub(super) fn put_text(out: &mut Vec<u8>, sql: &str, values: &[Value<'_>]) -> Option<()> {
    let mut pieces = sql.split('?');
    out.extend_from_slice(pieces.next()?.as_bytes());
    let mut values = values.iter();
    for piece in pieces {
        put_literal(out, values.next()?);
        out.extend_from_slice(piece.as_bytes());
    }
    values.next().is_none().then_some(())
}

/// Appends a value as SQL.
pub fn put_literal(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Null => out.extend_from_slice(b"NULL"),
        Value::Integer(value) => {
            let _infallible = write!(out, "{value}");
        }
        Value::Double(value) => {
            let _infallible = write!(out, "{value:e}");
        }
        Value::Bytes(bytes) => {
            out.push(b'\'');
            for &byte in *bytes {
                match byte {
                    0 => out.extend_from_slice(b"\\0"),
                    b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                    _ => out.push(byte),
                }
            }
            out.push(b'\'');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_text() {
        let mut out = Vec::new();
        let values =
            [Value::Integer(-5), Value::Bytes(b"a'\\\0b"), Value::Null, Value::Double(1.5)];
        put_text(&mut out, "VALUES (?, ?, ?, ?)", &values).expect("as many");
        assert_eq!(out, b"VALUES (-5, 'a\\'\\\\\\0b', NULL, 1.5e0)");
        assert!(put_text(&mut out, "?", &[]).is_none());
        assert!(put_text(&mut out, "?", &[Value::Null, Value::Null]).is_none());
    }

    #[test]
    fn values_as_parameters() {
        let (mut out, mut told) = (Vec::new(), Vec::new());
        put_parameters(&mut out, &[Value::Null, Value::Integer(1), Value::Bytes(b"xy")], &mut told);
        let mut wanted = vec![1, 1, NULL, 0, LONGLONG, 0, VAR_STRING, 0];
        wanted.extend_from_slice(&1u64.to_le_bytes());
        wanted.extend_from_slice(b"\x02xy");
        assert_eq!(out, wanted);
    }

    #[test]
    fn types_are_told_when_they_change() {
        let mut told = Vec::new();
        let mut put = |value| {
            let mut out = Vec::new();
            put_parameters(&mut out, &[value], &mut told);
            out
        };
        let number = 7i64.to_le_bytes();
        assert_eq!(put(Value::Integer(7)), [&[0, 1, LONGLONG, 0], &number[..]].concat());
        assert_eq!(put(Value::Integer(7)), [&[0, 0], &number[..]].concat());
        assert_eq!(put(Value::Null), [1, 0]);
        assert_eq!(put(Value::Bytes(b"x")), [0, 1, VAR_STRING, 0, 1, b'x']);
        assert_eq!(put(Value::Bytes(b"x")), [0, 0, 1, b'x']);
    }
}
