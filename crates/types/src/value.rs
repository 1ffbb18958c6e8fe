//! Values: [`Value`] owns its bytes, [`ValueRef`] borrows them and is `Copy`.
//!
//! 1. A value does not know its collation, its scale as declared or its display width: those
//!    belong to the static type ([`crate::ColumnType`]) of the column or expression.
//! 2. Character values are in the character set of their static type.
//! 3. BOOL is `Int`, YEAR is `UInt`; the value of an unsigned column is `UInt`, of a signed
//!    one `Int`.

use crate::decimal::Decimal;
use crate::temporal::{Date, DateTime, Time, Timestamp};

/// A borrowed value.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// SQL NULL.
    Null,
    /// Signed integer.
    Int(i64),
    /// Unsigned integer.
    UInt(u64),
    /// 4 byte IEEE number.
    Float(f32),
    /// 8 byte IEEE number.
    Double(f64),
    /// Exact number.
    Decimal(Decimal),
    /// Text or binary.
    Bytes(&'a [u8]),
    /// Calendar day.
    Date(Date),
    /// Day and time without a zone.
    DateTime(DateTime),
    /// Instant in UTC.
    Timestamp(Timestamp),
    /// Duration.
    Time(Time),
}

/// An owned value.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// SQL NULL.
    #[default]
    Null,
    /// Signed integer.
    Int(i64),
    /// Unsigned integer.
    UInt(u64),
    /// 4 byte IEEE number.
    Float(f32),
    /// 8 byte IEEE number.
    Double(f64),
    /// Exact number.
    Decimal(Decimal),
    /// Text or binary.
    Bytes(Vec<u8>),
    /// Calendar day.
    Date(Date),
    /// Day and time without a zone.
    DateTime(DateTime),
    /// Instant in UTC.
    Timestamp(Timestamp),
    /// Duration.
    Time(Time),
}

impl Value {
    /// The same value borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Int(v) => ValueRef::Int(*v),
            Value::UInt(v) => ValueRef::UInt(*v),
            Value::Float(v) => ValueRef::Float(*v),
            Value::Double(v) => ValueRef::Double(*v),
            Value::Decimal(v) => ValueRef::Decimal(*v),
            Value::Bytes(v) => ValueRef::Bytes(v),
            Value::Date(v) => ValueRef::Date(*v),
            Value::DateTime(v) => ValueRef::DateTime(*v),
            Value::Timestamp(v) => ValueRef::Timestamp(*v),
            Value::Time(v) => ValueRef::Time(*v),
        }
    }

    /// A text value.
    pub fn text(text: impl AsRef<[u8]>) -> Self {
        Value::Bytes(text.as_ref().to_vec())
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

impl<'a> ValueRef<'a> {
    /// A copy that owns its bytes.
    pub fn to_owned(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Int(v) => Value::Int(v),
            ValueRef::UInt(v) => Value::UInt(v),
            ValueRef::Float(v) => Value::Float(v),
            ValueRef::Double(v) => Value::Double(v),
            ValueRef::Decimal(v) => Value::Decimal(v),
            ValueRef::Bytes(v) => Value::Bytes(v.to_vec()),
            ValueRef::Date(v) => Value::Date(v),
            ValueRef::DateTime(v) => Value::DateTime(v),
            ValueRef::Timestamp(v) => Value::Timestamp(v),
            ValueRef::Time(v) => Value::Time(v),
        }
    }

    /// The value if it is no text; else its bytes.
    #[inline]
    pub fn without_bytes(self) -> Result<ValueRef<'static>, &'a [u8]> {
        Ok(match self {
            ValueRef::Bytes(v) => return Err(v),
            ValueRef::Null => ValueRef::Null,
            ValueRef::Int(v) => ValueRef::Int(v),
            ValueRef::UInt(v) => ValueRef::UInt(v),
            ValueRef::Float(v) => ValueRef::Float(v),
            ValueRef::Double(v) => ValueRef::Double(v),
            ValueRef::Decimal(v) => ValueRef::Decimal(v),
            ValueRef::Date(v) => ValueRef::Date(v),
            ValueRef::DateTime(v) => ValueRef::DateTime(v),
            ValueRef::Timestamp(v) => ValueRef::Timestamp(v),
            ValueRef::Time(v) => ValueRef::Time(v),
        })
    }

    /// Whether it is NULL.
    #[inline]
    pub fn is_null(self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// The bytes of a text or binary value.
    #[inline]
    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            ValueRef::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::text(value)
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        value.as_ref()
    }
}

/// Bit for bit equality: same variant, same value. SQL comparison is in `expr`.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (ValueRef::Null, ValueRef::Null) => true,
            (ValueRef::Int(a), ValueRef::Int(b)) => a == b,
            (ValueRef::UInt(a), ValueRef::UInt(b)) => a == b,
            (ValueRef::Float(a), ValueRef::Float(b)) => a.to_bits() == b.to_bits(),
            (ValueRef::Double(a), ValueRef::Double(b)) => a.to_bits() == b.to_bits(),
            (ValueRef::Decimal(a), ValueRef::Decimal(b)) => a.scale() == b.scale() && a == b,
            (ValueRef::Bytes(a), ValueRef::Bytes(b)) => a == b,
            (ValueRef::Date(a), ValueRef::Date(b)) => a == b,
            (ValueRef::DateTime(a), ValueRef::DateTime(b)) => a == b,
            (ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => a == b,
            (ValueRef::Time(a), ValueRef::Time(b)) => a == b,
            _ => false,
        }
    }
}
