//! Values as text, as the text protocol and string functions show them.

use crate::column_type::{ColumnType, SCALE_NOT_FIXED, TypeKind};
use crate::number;
use crate::temporal::TimeZone;
use crate::value::ValueRef;

/// Appends the text of a value of a static type; nothing for NULL. Numbers get the digits that
/// the type fixes, ZEROFILL its zeros, a TIMESTAMP the clock of `zone`.
pub fn write_text(
    value: ValueRef<'_>,
    column_type: &ColumnType,
    zone: TimeZone,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let scale = column_type.scale;
    match value {
        ValueRef::Null => return,
        ValueRef::Int(v) => number::write_signed(v, out),
        ValueRef::UInt(v) if column_type.kind == TypeKind::Bit => {
            write_bits(v, column_type.length, out);
        }
        ValueRef::UInt(v) => number::write_unsigned(v, out),
        ValueRef::Double(v) if scale < SCALE_NOT_FIXED && column_type.kind.is_floating() => {
            number::write_fixed(v, scale, out);
        }
        ValueRef::Double(v) => number::write_double(v, out),
        ValueRef::Float(v) if scale < SCALE_NOT_FIXED && column_type.kind.is_floating() => {
            number::write_fixed(f64::from(v), scale, out);
        }
        ValueRef::Float(v) => number::write_float(v, out),
        ValueRef::Decimal(v) => v.write_text(out),
        ValueRef::Bytes(v) => out.extend_from_slice(v),
        ValueRef::Date(v) => v.write_text(out),
        ValueRef::DateTime(v) => v.write_text(shown_scale(scale, v.micros()), out),
        ValueRef::Timestamp(v) => {
            let local = zone.to_local(v);
            local.write_text(shown_scale(scale, local.micros()), out);
        }
        ValueRef::Time(v) => v.write_text(shown_scale(scale, v.micros()), out),
    }
    if column_type.zerofill {
        let width = column_type.length as usize;
        let missing = width.saturating_sub(out.len() - start);
        out.splice(start..start, std::iter::repeat_n(b'0', missing));
    }
}

/// Appends the bytes of a BIT of so many bits.
pub fn write_bits(bits: u64, count: u32, out: &mut Vec<u8>) {
    let bytes = count.div_ceil(8).clamp(1, 8) as usize;
    out.extend_from_slice(&bits.to_be_bytes()[8 - bytes..]);
}

/// Fractional digits to show: as the type fixes them, or all six where it does not and there
/// are any.
fn shown_scale(scale: u8, micros: u32) -> u8 {
    match scale {
        0..=6 => scale,
        _ if micros > 0 => 6,
        _ => 0,
    }
}

/// The text of a value in a string of its own.
pub fn to_text(value: ValueRef<'_>, column_type: &ColumnType, zone: TimeZone) -> Vec<u8> {
    let mut out = Vec::new();
    write_text(value, column_type, zone, &mut out);
    out
}
