//! Values as the text protocol shows them. Everything is appended; nothing is allocated.

use crate::output::{put_bytes, put_written};
use std::io::Write;
use types::{ColumnType, Date, DateTime, Time, TimeZone, TypeKind, ValueRef};

/// Marks NULL in a text row.
pub(crate) const NULL: u8 = 0xfb;
/// Scale of floating types without declared digits.
const SCALE_NOT_FIXED: u8 = 31;
/// Decimal exponents up to this many places are written without an exponent.
const FIXED_PLACES_MAX: i32 = 15;

/// Appends a value of a text row: its length and its text.
pub fn put_value(out: &mut Vec<u8>, value: ValueRef<'_>, column: &ColumnType, zone: TimeZone) {
    match value {
        ValueRef::Null => out.push(NULL),
        ValueRef::Bytes(bytes) => put_bytes(out, bytes),
        other => put_written(out, |out| push_text(out, other, column, zone)),
    }
}

/// Appends the text of a value that is not NULL.
pub fn push_text(out: &mut Vec<u8>, value: ValueRef<'_>, column: &ColumnType, zone: TimeZone) {
    let start = out.len();
    match value {
        ValueRef::Null => {}
        ValueRef::Bytes(bytes) => out.extend_from_slice(bytes),
        ValueRef::Int(number) => push_integer(out, number),
        ValueRef::UInt(number) if column.kind == TypeKind::Bit => {
            types::text::write_bits(number, column.length, out);
        }
        ValueRef::UInt(number) => push_unsigned(out, number),
        ValueRef::Decimal(number) => number.write_text(out),
        ValueRef::Double(number) => push_double(out, number, column.scale),
        ValueRef::Float(number) => push_float(out, number, column.scale),
        ValueRef::Date(date) => push_date(out, date),
        ValueRef::DateTime(time) => push_date_time(out, time, column.scale),
        ValueRef::Timestamp(time) => push_date_time(out, zone.to_local(time), column.scale),
        ValueRef::Time(time) => push_time(out, time, column.scale),
    }
    let width = if column.kind == TypeKind::Year { 4 } else { column.length as usize };
    if (column.zerofill || column.kind == TypeKind::Year) && out.len() - start < width {
        let missing = width.min(255) - (out.len() - start);
        out.splice(start..start, std::iter::repeat_n(b'0', missing));
    }
}

fn push_integer(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push_unsigned(out, number.unsigned_abs());
}

/// Appends decimal digits.
pub fn push_unsigned(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `number` with at least `width` digits.
fn push_padded(out: &mut Vec<u8>, number: u32, width: u32) {
    let mut place = 10u32.pow(width - 1);
    while place > 0 && number / place >= 10 {
        place *= 10;
    }
    while place > 0 {
        out.push(b'0' + (number / place % 10) as u8);
        place /= 10;
    }
}

/// Six digits, if there are any, where the type does not say how many.
fn push_fraction(out: &mut Vec<u8>, micros: u32, scale: u8) {
    let scale = if scale > 6 && micros == 0 { 0 } else { scale.min(6) };
    if scale > 0 {
        out.push(b'.');
        push_padded(out, micros / 10u32.pow(6 - u32::from(scale)), u32::from(scale));
    }
}

fn push_date(out: &mut Vec<u8>, date: Date) {
    push_padded(out, date.year(), 4);
    out.push(b'-');
    push_padded(out, date.month(), 2);
    out.push(b'-');
    push_padded(out, date.day(), 2);
}

fn push_date_time(out: &mut Vec<u8>, time: DateTime, scale: u8) {
    push_date(out, time.date());
    out.push(b' ');
    push_padded(out, time.hour(), 2);
    out.push(b':');
    push_padded(out, time.minute(), 2);
    out.push(b':');
    push_padded(out, time.second(), 2);
    push_fraction(out, time.micros(), scale);
}

fn push_time(out: &mut Vec<u8>, time: Time, scale: u8) {
    if time.is_negative() {
        out.push(b'-');
    }
    push_padded(out, time.hours(), 2);
    out.push(b':');
    push_padded(out, time.minutes(), 2);
    out.push(b':');
    push_padded(out, time.seconds(), 2);
    push_fraction(out, time.micros(), scale);
}

/// A fixed place to format into without allocating.
struct Scratch {
    bytes: [u8; 400],
    length: usize,
}

impl Scratch {
    fn format(arguments: std::fmt::Arguments<'_>) -> Self {
        let mut bytes = [0; 400];
        let mut rest = &mut bytes[..];
        // Longest is a double with 30 decimals: 309 + 1 + 30 digits.
        let _too_long_is_cut = rest.write_fmt(arguments);
        let length = 400 - rest.len();
        Self { bytes, length }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or("0")
    }
}

fn push_double(out: &mut Vec<u8>, number: f64, scale: u8) {
    if scale < SCALE_NOT_FIXED {
        push_fixed(out, number, usize::from(scale));
    } else {
        // Zero has no sign: of the two zeros the sum is the positive one.
        let number = number + 0.0;
        let shortest = Scratch::format(format_args!("{number:e}"));
        if shortest.text().len() > TIE_LENGTH {
            // Of two texts that are equally near the even one is shown.
            return types::number::write_double(number, out);
        }
        push_scientific(out, shortest.text());
    }
}

/// Shorter texts are never in the middle between two others.
const TIE_LENGTH: usize = 16;

/// So many digits after the point; zeros follow the fewest that read back the same.
fn push_fixed(out: &mut Vec<u8>, number: f64, places: usize) {
    let number = number + 0.0;
    let shortest = Scratch::format(format_args!("{number}"));
    let text = shortest.text();
    if text.len() > TIE_LENGTH {
        return types::number::write_fixed(number, places as u8, out);
    }
    let own = text.find('.').map_or(0, |point| text.len() - point - 1);
    if own > places {
        let text = Scratch::format(format_args!("{number:.places$}"));
        return out.extend_from_slice(text.text().as_bytes());
    }
    out.extend_from_slice(text.as_bytes());
    if own == 0 && places > 0 {
        out.push(b'.');
    }
    out.extend(std::iter::repeat_n(b'0', places - own));
}

/// FLOAT shows six significant digits.
fn push_float(out: &mut Vec<u8>, number: f32, scale: u8) {
    if scale < SCALE_NOT_FIXED {
        push_fixed(out, f64::from(number), usize::from(scale));
    } else {
        let number = number + 0.0;
        push_scientific(out, Scratch::format(format_args!("{number:.5e}")).text());
    }
}

/// Appends `d.ddde±x` as MariaDB writes it: without exponent where that takes few places, and
/// without trailing zeros.
fn push_scientific(out: &mut Vec<u8>, text: &str) {
    let Some((mantissa, exponent)) = text.split_once('e') else {
        out.extend_from_slice(text.as_bytes());
        return;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let mut digits = [0; 32];
    let mut count = 0;
    for digit in mantissa.bytes().filter(u8::is_ascii_digit).take(digits.len()) {
        digits[count] = digit;
        count += 1;
    }
    while count > 1 && digits[count - 1] == b'0' {
        count -= 1;
    }
    let digits = &digits[..count];
    let places = exponent + 1;
    let has_fraction = places > 0 && (count as i32) > places;
    let is_fixed = -FIXED_PLACES_MAX < places && places <= FIXED_PLACES_MAX;
    out.extend_from_slice(sign.as_bytes());
    if digits == b"0" {
        out.push(b'0');
    } else if !is_fixed && !has_fraction {
        out.push(digits[0]);
        if count > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        push_integer(out, i64::from(exponent));
    } else if places <= 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', places.unsigned_abs() as usize));
        out.extend_from_slice(digits);
    } else {
        let whole = places as usize;
        out.extend_from_slice(&digits[..whole.min(count)]);
        out.extend(std::iter::repeat_n(b'0', whole.saturating_sub(count)));
        if count > whole {
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{CollationId, Timestamp};

    fn column(kind: TypeKind, length: u32, scale: u8) -> ColumnType {
        ColumnType {
            kind,
            unsigned: false,
            zerofill: false,
            length,
            precision: 0,
            scale,
            collation: CollationId::BINARY,
            members: None,
        }
    }

    fn shown(value: ValueRef<'_>, column: &ColumnType) -> String {
        let mut out = Vec::new();
        push_text(&mut out, value, column, TimeZone::Fixed(3600));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_are_written_as_mariadb_writes_them() {
        let double = column(TypeKind::Double, 22, 31);
        for (number, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (-0.5, "-0.5"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.3333333333333333"),
            (123456789.125, "123456789.125"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1.5e300, "1.5e300"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (-2.25e-20, "-2.25e-20"),
        ] {
            assert_eq!(shown(ValueRef::Double(number), &double), expected);
        }
        assert_eq!(shown(ValueRef::Double(2.345), &column(TypeKind::Double, 10, 2)), "2.35");
        let long = column(TypeKind::Double, 40, 18);
        assert_eq!(shown(ValueRef::Double(std::f64::consts::PI), &long), "3.141592653589793000");
        let large = shown(ValueRef::Double(2.68543036828497e43), &column(TypeKind::Double, 60, 2));
        assert_eq!(large, "26854303682849700000000000000000000000000000.00");
    }

    #[test]
    fn floats_have_six_digits() {
        let float = column(TypeKind::Float, 12, 31);
        assert_eq!(shown(ValueRef::Float(1.234_567_9), &float), "1.23457");
        assert_eq!(shown(ValueRef::Float(0.5), &float), "0.5");
        assert_eq!(shown(ValueRef::Float(1e20), &float), "1e20");
    }

    #[test]
    fn times_are_written_with_their_fraction() {
        let time = DateTime::new(Date::new(2024, 2, 9), 5, 6, 7, 120_000);
        let of = |kind, scale| column(kind, 0, scale);
        let date_time = of(TypeKind::DateTime, 0);
        assert_eq!(shown(ValueRef::DateTime(time), &date_time), "2024-02-09 05:06:07");
        assert_eq!(
            shown(ValueRef::DateTime(time), &of(TypeKind::DateTime, 3)),
            "2024-02-09 05:06:07.120"
        );
        let zero = ValueRef::Timestamp(Timestamp(1_000_000));
        assert_eq!(shown(zero, &of(TypeKind::Timestamp, 0)), "1970-01-01 01:00:01");
        let long = Time::new(true, 838, 59, 59, 1);
        assert_eq!(shown(ValueRef::Time(long), &of(TypeKind::Time, 6)), "-838:59:59.000001");
        assert_eq!(shown(ValueRef::Date(Date::default()), &of(TypeKind::Date, 0)), "0000-00-00");
    }

    #[test]
    fn integers_and_zerofill() {
        let mut int = column(TypeKind::Int, 5, 0);
        assert_eq!(shown(ValueRef::Int(i64::MIN), &int), "-9223372036854775808");
        int.zerofill = true;
        assert_eq!(shown(ValueRef::UInt(42), &int), "00042");
        assert_eq!(shown(ValueRef::UInt(1_234_567), &int), "1234567");
        assert_eq!(shown(ValueRef::UInt(7), &column(TypeKind::Year, 4, 0)), "0007");
    }

    #[test]
    fn values_have_lengths_and_null_has_its_mark() {
        let int = column(TypeKind::Int, 11, 0);
        let mut out = Vec::new();
        put_value(&mut out, ValueRef::Int(-12), &int, TimeZone::System);
        put_value(&mut out, ValueRef::Null, &int, TimeZone::System);
        put_value(&mut out, ValueRef::Bytes(b"abc"), &int, TimeZone::System);
        assert_eq!(out, b"\x03-12\xfb\x03abc");
    }
}
