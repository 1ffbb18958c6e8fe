//! Values of fixed width as bytes: little-endian in payloads, order-preserving in keys.

use crate::column_type::{ColumnType, TypeKind};
use crate::decimal::{Decimal, storage_bytes};
use crate::temporal::{Date, DateTime, Time, Timestamp};
use crate::value::ValueRef;

/// How a column of fixed width is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FixedCodec {
    /// Two's complement of so many bytes.
    Int(u8),
    /// Unsigned of so many bytes.
    UInt(u8),
    /// IEEE single.
    Float,
    /// IEEE double.
    Double,
    /// Scaled integer in two's complement.
    Decimal {
        /// Width.
        bytes: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// Three bytes.
    Date,
    /// 5 bytes to the second and 0 to 3 of fraction.
    DateTime {
        /// Bytes of the fraction: pairs of digits.
        pairs: u8,
    },
    /// Units of the last pair of digits since 1970, 5 + pairs bytes.
    Timestamp {
        /// Pairs of fractional digits.
        pairs: u8,
    },
    /// Signed units of the last pair of digits, 3 + pairs bytes.
    Time {
        /// Pairs of fractional digits.
        pairs: u8,
    },
    /// 0, or the year less 1900.
    Year,
    /// BINARY(n), n at most 255.
    Bytes(u8),
}

/// Microseconds of a unit with so many pairs of fractional digits.
const fn unit(pairs: u8) -> i64 {
    match pairs {
        0 => 1_000_000,
        1 => 10_000,
        2 => 100,
        _ => 1,
    }
}

/// Reads up to 8 little-endian bytes.
#[inline]
fn read_le(bytes: &[u8]) -> u64 {
    match bytes.len() {
        4 => u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        1 => u64::from(bytes[0]),
        _ => bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)),
    }
}

/// Extends the sign of a number of so many bytes.
#[inline]
fn sign_extended(value: u64, bytes: usize) -> i64 {
    let shift = 64 - 8 * bytes.clamp(1, 8) as u32;
    ((value << shift) as i64) >> shift
}

impl FixedCodec {
    /// The codec of a type; `None` for types of varying width.
    pub fn of(column_type: &ColumnType) -> Option<Self> {
        let integer = |bytes| {
            if column_type.unsigned { Self::UInt(bytes) } else { Self::Int(bytes) }
        };
        let pairs = column_type.scale.min(6).div_ceil(2);
        Some(match column_type.kind {
            TypeKind::TinyInt => integer(1),
            TypeKind::SmallInt => integer(2),
            TypeKind::MediumInt => integer(3),
            TypeKind::Int => integer(4),
            TypeKind::BigInt => integer(8),
            TypeKind::Decimal => Self::Decimal {
                bytes: storage_bytes(column_type.precision) as u8,
                scale: column_type.scale,
            },
            TypeKind::Float => Self::Float,
            TypeKind::Double => Self::Double,
            TypeKind::Date => Self::Date,
            TypeKind::DateTime => Self::DateTime { pairs },
            TypeKind::Timestamp => Self::Timestamp { pairs },
            TypeKind::Time => Self::Time { pairs },
            TypeKind::Year => Self::Year,
            TypeKind::Bit => Self::UInt(column_type.length.div_ceil(8).clamp(1, 8) as u8),
            TypeKind::Binary => Self::Bytes(u8::try_from(column_type.length).ok()?),
            _ => return None,
        })
    }

    /// Width in bytes.
    pub fn width(self) -> usize {
        match self {
            Self::Int(bytes) | Self::UInt(bytes) | Self::Bytes(bytes) => usize::from(bytes),
            Self::Decimal { bytes, .. } => usize::from(bytes),
            Self::Float => 4,
            Self::Double => 8,
            Self::Date => 3,
            Self::DateTime { pairs } | Self::Timestamp { pairs } => 5 + usize::from(pairs),
            Self::Time { pairs } => 3 + usize::from(pairs),
            Self::Year => 1,
        }
    }

    /// Whether a key gives back exactly the value: not for IEEE numbers, where -0 and 0 have
    /// one key.
    pub fn is_lossless_in_key(self) -> bool {
        !matches!(self, Self::Float | Self::Double)
    }

    /// The value as an integer whose order is the value's; `None` if the value is of another
    /// type. Not for DECIMAL and BINARY.
    fn to_bits(self, value: ValueRef<'_>) -> Option<u64> {
        Some(match (self, value) {
            (Self::Int(_), ValueRef::Int(v)) => v as u64,
            (Self::Int(_), ValueRef::UInt(v)) => i64::try_from(v).ok()? as u64,
            (Self::UInt(_), ValueRef::UInt(v)) => v,
            (Self::UInt(_), ValueRef::Int(v)) => u64::try_from(v).ok()?,
            (Self::Float, ValueRef::Float(v)) => u64::from(v.to_bits()),
            (Self::Float, ValueRef::Double(v)) => u64::from((v as f32).to_bits()),
            (Self::Double, ValueRef::Double(v)) => v.to_bits(),
            (Self::Double, ValueRef::Float(v)) => f64::from(v).to_bits(),
            (Self::Date, ValueRef::Date(v)) => u64::from(v.0),
            (Self::DateTime { pairs }, ValueRef::DateTime(v)) => {
                let fraction = u64::from(v.micros()) / unit(pairs) as u64;
                (v.0 >> 20) << (8 * pairs) | fraction
            }
            (Self::Timestamp { pairs }, ValueRef::Timestamp(v)) => {
                u64::try_from(v.0).ok()? / unit(pairs) as u64
            }
            (Self::Time { pairs }, ValueRef::Time(v)) => (v.0 / unit(pairs)) as u64,
            (Self::Year, ValueRef::UInt(v)) => v.saturating_sub(1900),
            (Self::Year, ValueRef::Int(v)) => (v as u64).saturating_sub(1900),
            _ => return None,
        })
    }

    /// The inverse of `to_bits`.
    #[inline]
    fn value_of_bits(self, bits: u64) -> ValueRef<'static> {
        match self {
            Self::Int(bytes) => ValueRef::Int(sign_extended(bits, usize::from(bytes))),
            Self::UInt(_) => ValueRef::UInt(bits),
            Self::Float => ValueRef::Float(f32::from_bits(bits as u32)),
            Self::Double => ValueRef::Double(f64::from_bits(bits)),
            Self::Date => ValueRef::Date(Date(bits as u32 & 0x7f_ffff)),
            Self::DateTime { pairs } => {
                let mask = (1u64 << (8 * pairs)) - 1;
                let micros = (bits & mask) * unit(pairs) as u64;
                let micros = if pairs == 0 { 0 } else { micros.min(999_999) };
                ValueRef::DateTime(DateTime((bits >> (8 * pairs)) << 20 | micros))
            }
            Self::Timestamp { pairs } => {
                ValueRef::Timestamp(Timestamp((bits as i64).wrapping_mul(unit(pairs))))
            }
            Self::Time { pairs } => {
                let units = sign_extended(bits, 3 + usize::from(pairs));
                ValueRef::Time(Time(units.wrapping_mul(unit(pairs))))
            }
            Self::Year => ValueRef::UInt(if bits == 0 { 0 } else { bits + 1900 }),
            Self::Decimal { .. } | Self::Bytes(_) => ValueRef::Null,
        }
    }

    /// Writes a value in payload form; false if it is of another type. `out` is as wide as
    /// the codec.
    pub fn write_payload(self, value: ValueRef<'_>, out: &mut [u8]) -> bool {
        match (self, value) {
            (Self::Decimal { scale, .. }, ValueRef::Decimal(v)) => {
                v.with_scale(scale).to_le_bytes(out);
                true
            }
            (Self::Bytes(_), ValueRef::Bytes(v)) if v.len() <= out.len() => {
                out[..v.len()].copy_from_slice(v);
                out[v.len()..].fill(0);
                true
            }
            _ => match self.to_bits(value) {
                Some(bits) => {
                    let width = out.len().min(8);
                    out[..width].copy_from_slice(&bits.to_le_bytes()[..width]);
                    true
                }
                None => false,
            },
        }
    }

    /// Reads payload form; `bytes` is as wide as the codec.
    #[inline]
    pub fn read_payload(self, bytes: &[u8]) -> ValueRef<'_> {
        match self {
            Self::Int(4) if bytes.len() == 4 => ValueRef::Int(i64::from(i32::from_le_bytes([
                bytes[0], bytes[1], bytes[2], bytes[3],
            ]))),
            Self::Decimal { scale, .. } => ValueRef::Decimal(Decimal::from_le_bytes(bytes, scale)),
            Self::Bytes(_) => ValueRef::Bytes(bytes),
            _ => self.value_of_bits(read_le(bytes)),
        }
    }

    /// Appends a value in key form; false if it is of another type.
    pub fn push_key(self, value: ValueRef<'_>, out: &mut Vec<u8>) -> bool {
        let (start, width) = (out.len(), self.width());
        match (self, value) {
            (Self::Decimal { scale, .. }, ValueRef::Decimal(v)) => {
                out.resize(start + width, 0);
                v.with_scale(scale).to_le_bytes(&mut out[start..]);
                out[start..].reverse();
                out[start] ^= 0x80;
            }
            (Self::Bytes(_), ValueRef::Bytes(v)) if v.len() <= width => {
                out.extend_from_slice(v);
                out.resize(start + width, 0);
            }
            _ => {
                let Some(bits) = self.to_bits(value) else { return false };
                let bits = self.ordered(bits);
                out.extend_from_slice(&bits.to_be_bytes()[8 - width..]);
            }
        }
        true
    }

    /// Bits whose unsigned order is the value's order.
    fn ordered(self, bits: u64) -> u64 {
        match self {
            Self::Int(_) | Self::Time { .. } => bits ^ 1 << (8 * self.width() - 1),
            Self::Float => {
                let bits = if bits == 0x8000_0000 { 0 } else { bits as u32 };
                let mask = if bits >> 31 == 1 { u32::MAX } else { 1 << 31 };
                u64::from(bits ^ mask)
            }
            Self::Double => {
                let bits = if bits == 1 << 63 { 0 } else { bits };
                bits ^ if bits >> 63 == 1 { u64::MAX } else { 1 << 63 }
            }
            _ => bits,
        }
    }

    /// Reads key form (not inverted). `bytes` is as wide as the codec. `scratch` holds bytes
    /// that have to be rearranged.
    #[inline]
    pub fn read_key(self, bytes: &[u8]) -> ValueRef<'_> {
        match self {
            Self::Decimal { scale, .. } => {
                let mut buffer = [0u8; 36];
                let width = bytes.len().min(36);
                for (target, source) in buffer.iter_mut().zip(bytes[..width].iter().rev()) {
                    *target = *source;
                }
                if let Some(top) = buffer[..width].last_mut() {
                    *top ^= 0x80;
                }
                ValueRef::Decimal(Decimal::from_le_bytes(&buffer[..width], scale))
            }
            Self::Bytes(_) => ValueRef::Bytes(bytes),
            _ => {
                let bits = bytes.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
                self.value_of_key_bits(bits)
            }
        }
    }

    /// Reads key form stored inverted (descending). Not for BINARY, which would need a copy.
    pub fn read_inverted_key(self, bytes: &[u8]) -> ValueRef<'static> {
        let mut buffer = [0u8; 36];
        let width = bytes.len().min(36);
        for (target, source) in buffer.iter_mut().zip(bytes) {
            *target = !*source;
        }
        match self.read_key(&buffer[..width]) {
            ValueRef::Decimal(v) => ValueRef::Decimal(v),
            ValueRef::Bytes(_) => ValueRef::Null,
            _ => {
                let bits = buffer[..width].iter().fold(0, |b, &byte| b << 8 | u64::from(byte));
                self.value_of_key_bits(bits)
            }
        }
    }

    #[inline]
    fn value_of_key_bits(self, bits: u64) -> ValueRef<'static> {
        let bits = match self {
            Self::Int(_) | Self::Time { .. } => bits ^ 1 << (8 * self.width() - 1),
            Self::Float => {
                let bits = bits as u32;
                u64::from(bits ^ if bits >> 31 == 1 { 1 << 31 } else { u32::MAX })
            }
            Self::Double => bits ^ if bits >> 63 == 1 { 1 << 63 } else { u64::MAX },
            _ => bits,
        };
        self.value_of_bits(bits)
    }
}
