//! Rows of a large INSERT, packed.
//!
//! An expression takes some hundred bytes, whatever it is, and so does what is made of it; a large
//! INSERT has tens of thousands that are literals. Packed, they take no more than their text:
//!
//! ```text
//! tag u8 | nothing (NULL); number (integers); length, bytes (the others)
//! ```
//!
//! Numbers and lengths have seven bits in a byte, the low ones first; all but the last byte have
//! the eighth bit set.

use super::{Expression, Literal, UnaryOperator};

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const NEGATIVE: u8 = 2;
const DECIMAL: u8 = 3;
const FLOAT: u8 = 4;
const TEXT: u8 = 5;

/// Rows of literals, all of the same width. Cheap to clone behind an `Arc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiteralRows {
    width: usize,
    count: usize,
    bytes: Vec<u8>,
}

/// One literal of [`LiteralRows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackedLiteral<'r> {
    /// NULL.
    Null,
    /// An integer without a sign.
    Integer(u64),
    /// An integer behind a minus.
    Negative(u64),
    /// [`Literal::Decimal`].
    Decimal(&'r str),
    /// [`Literal::Float`].
    Float(&'r str),
    /// [`Literal::String`] without an introducer.
    Text(&'r [u8]),
}

impl LiteralRows {
    /// No rows yet, which will have `width` values each and take about so many bytes.
    pub fn new(width: usize, expected_bytes: usize) -> Self {
        Self { width, count: 0, bytes: Vec::with_capacity(expected_bytes) }
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds a row; false, and nothing changes, if it has another width or something else than
    /// literals that can be packed.
    pub fn push(&mut self, row: &[Expression]) -> bool {
        let before = self.bytes.len();
        let fits = row.len() == self.width && row.iter().all(|value| self.push_value(value));
        match fits {
            true => self.count += 1,
            false => self.bytes.truncate(before),
        }
        fits
    }

    fn push_value(&mut self, value: &Expression) -> bool {
        match value {
            Expression::Literal(Literal::Null) => self.bytes.push(NULL),
            Expression::Literal(Literal::Integer(number)) => self.push_number(INTEGER, *number),
            Expression::Literal(Literal::Decimal(text)) => self.push_text(DECIMAL, text.as_bytes()),
            Expression::Literal(Literal::Float(text)) => self.push_text(FLOAT, text.as_bytes()),
            Expression::Literal(Literal::String { bytes, charset: None }) => {
                self.push_text(TEXT, bytes);
            }
            Expression::Unary(UnaryOperator::Minus, operand) => {
                let Expression::Literal(Literal::Integer(number)) = **operand else { return false };
                self.push_number(NEGATIVE, number);
            }
            _ => return false,
        }
        true
    }

    fn push_number(&mut self, tag: u8, mut number: u64) {
        self.bytes.push(tag);
        while number > 0x7f {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn push_text(&mut self, tag: u8, text: &[u8]) {
        self.push_number(tag, text.len() as u64);
        self.bytes.extend_from_slice(text);
    }

    /// All values, row by row.
    pub fn values(&self) -> PackedLiterals<'_> {
        PackedLiterals { rest: &self.bytes }
    }

    /// The rows as they are of statements that are not large.
    pub fn unpack(&self) -> Vec<Vec<Expression>> {
        let mut values = self.values().map(PackedLiteral::expression);
        (0..self.count).map(|_| values.by_ref().take(self.width).collect()).collect()
    }
}

impl PackedLiteral<'_> {
    /// As the parser had it.
    pub fn expression(self) -> Expression {
        Expression::Literal(match self {
            Self::Null => Literal::Null,
            Self::Integer(number) => Literal::Integer(number),
            Self::Negative(number) => {
                let operand = Box::new(Expression::Literal(Literal::Integer(number)));
                return Expression::Unary(UnaryOperator::Minus, operand);
            }
            Self::Decimal(text) => Literal::Decimal(text.to_owned()),
            Self::Float(text) => Literal::Float(text.to_owned()),
            Self::Text(bytes) => Literal::String { bytes: bytes.to_vec(), charset: None },
        })
    }
}

/// See [`LiteralRows::values`].
#[derive(Clone, Debug)]
pub struct PackedLiterals<'r> {
    rest: &'r [u8],
}

impl<'r> PackedLiterals<'r> {
    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
        }
    }

    fn bytes(&mut self) -> Option<&'r [u8]> {
        let length = self.number()? as usize;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'r str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

impl<'r> Iterator for PackedLiterals<'r> {
    type Item = PackedLiteral<'r>;

    fn next(&mut self) -> Option<PackedLiteral<'r>> {
        let (&tag, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(match tag {
            NULL => PackedLiteral::Null,
            INTEGER => PackedLiteral::Integer(self.number()?),
            NEGATIVE => PackedLiteral::Negative(self.number()?),
            DECIMAL => PackedLiteral::Decimal(self.text()?),
            FLOAT => PackedLiteral::Float(self.text()?),
            _ => PackedLiteral::Text(self.bytes()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{InsertSource, Statement};

    fn rows(values: &str) -> Vec<Vec<Expression>> {
        let text = format!("INSERT INTO t VALUES {values}");
        let parsed = crate::parse(text.as_bytes(), &Default::default()).unwrap();
        match parsed.statement {
            Statement::Insert(insert) => match insert.source {
                InsertSource::Values(rows) => rows,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn literals_come_back_as_they_were() {
        let rows = rows(
            "(NULL, 0, -1, 1.50, 1e3, ''), (127, 128, 18446744073709551615, \
             -9223372036854775808, 'it''s', 'a\\0b')",
        );
        let mut packed = LiteralRows::new(6, 0);
        assert!(rows.iter().all(|row| packed.push(row)));
        assert_eq!((packed.count(), packed.width(), packed.values().count()), (2, 6, 12));
        assert_eq!(packed.unpack(), rows);
    }

    #[test]
    fn rows_of_a_large_statement_are_packed_if_all_are_literals() {
        let comment = format!("/*{}*/", "x".repeat(1 << 16));
        let source_of = |values: &str| {
            let text = format!("INSERT INTO t VALUES {comment} {values}");
            match crate::parse(text.as_bytes(), &Default::default()).unwrap().statement {
                Statement::Insert(insert) => insert.source,
                other => panic!("{other:?}"),
            }
        };
        let InsertSource::Literals(packed) = source_of("(1, 'a'), (-2, NULL)") else {
            panic!("not packed");
        };
        assert_eq!(packed.unpack(), rows("(1, 'a'), (-2, NULL)"));
        for values in
            ["(1, 'a')", "(1, 'a'), (2, 1 + 1)", "(1), (2, 3)", "(DEFAULT), (1)", "(), ()"]
        {
            assert_eq!(source_of(values), InsertSource::Values(rows(values)), "{values}");
        }
    }

    #[test]
    fn what_is_no_plain_literal_is_left_out_whole() {
        let mut packed = LiteralRows::new(2, 0);
        assert!(packed.push(&rows("(1, 'a')")[0]));
        let before = packed.clone();
        for row in [
            "(1, DEFAULT)",
            "(1, 1 + 1)",
            "(1, _utf8mb4'a')",
            "(1, TRUE)",
            "(1, -1.5)",
            "(1, 0x41)",
            "(1, DATE '2020-01-01')",
            "(1)",
            "(1, 2, 3)",
        ] {
            assert!(!packed.push(&rows(row)[0]), "{row}");
            assert_eq!(packed, before, "{row}");
        }
    }
}
