//! Numbers from and to text, as MariaDB reads and prints them.

/// A number read from the start of a text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ParsedNumber<T> {
    /// The number, the nearest in range if it overflowed.
    pub value: T,
    /// Bytes that belong to it, blanks before it included; 0 if there is none.
    pub length: usize,
    /// It was out of range.
    pub overflow: bool,
}

impl<T> ParsedNumber<T> {
    /// Whether nothing but blanks follows the number.
    pub fn is_whole(&self, text: &[u8]) -> bool {
        self.length > 0 && text[self.length..].iter().all(u8::is_ascii_whitespace)
    }
}

/// An integer with its sign: more than either 64 bit type can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignedMagnitude {
    /// Below zero.
    pub negative: bool,
    /// Absolute value.
    pub magnitude: u64,
}

impl SignedMagnitude {
    /// As `i64`, the nearest bound with `false` if out of range.
    pub fn to_i64(self) -> (i64, bool) {
        match (self.negative, self.magnitude) {
            (false, m) => i64::try_from(m).map_or((i64::MAX, false), |v| (v, true)),
            (true, m) if m <= 1 << 63 => ((m as i64).wrapping_neg(), true),
            (true, _) => (i64::MIN, false),
        }
    }

    /// As `u64`, the nearest bound with `false` if out of range.
    pub fn to_u64(self) -> (u64, bool) {
        if self.negative && self.magnitude > 0 { (0, false) } else { (self.magnitude, true) }
    }
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Position after blanks and sign, and the sign.
fn sign(text: &[u8]) -> (usize, bool) {
    let at = blanks(text);
    match text.get(at) {
        Some(b'-') => (at + 1, true),
        Some(b'+') => (at + 1, false),
        _ => (at, false),
    }
}

/// Reads a double: the longest prefix that is one.
pub fn parse_double(text: &[u8]) -> ParsedNumber<f64> {
    let (start, negative) = sign(text);
    let mut end = start + digits(&text[start..]);
    let mut count = end - start;
    if text.get(end) == Some(&b'.') {
        let fraction = digits(&text[end + 1..]);
        count += fraction;
        if count > 0 {
            end += 1 + fraction;
        }
    }
    if count == 0 {
        return ParsedNumber { value: 0.0, length: 0, overflow: false };
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let signed = matches!(text.get(end + 1), Some(b'+' | b'-'));
        let exponent = end + 1 + usize::from(signed);
        let length = digits(text.get(exponent..).unwrap_or(&[]));
        if length > 0 {
            end = exponent + length;
        }
    }
    let number = std::str::from_utf8(&text[start..end]).unwrap_or("0");
    let value = number.parse::<f64>().unwrap_or(0.0);
    let overflow = value.is_infinite();
    let value = if overflow { f64::MAX } else { value };
    ParsedNumber { value: if negative { -value } else { value }, length: end, overflow }
}

/// Reads an integer: blanks, sign, digits; a point or exponent ends it.
pub fn parse_integer(text: &[u8]) -> ParsedNumber<SignedMagnitude> {
    let (start, negative) = sign(text);
    let count = digits(&text[start..]);
    let length = if count == 0 { 0 } else { start + count };
    let mut magnitude = 0u64;
    let mut overflow = false;
    for &digit in &text[start..start + count] {
        let next =
            magnitude.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')));
        match next {
            Some(value) => magnitude = value,
            None => overflow = true,
        }
    }
    if overflow {
        magnitude = u64::MAX;
    }
    ParsedNumber { value: SignedMagnitude { negative, magnitude }, length, overflow }
}

/// Reads a number and rounds it to an integer, half away from zero, as storing text into an
/// integer column does.
pub fn parse_integer_rounded(text: &[u8]) -> ParsedNumber<SignedMagnitude> {
    let plain = parse_integer(text);
    if !matches!(text.get(plain.length.max(sign(text).0)), Some(b'.' | b'e' | b'E')) {
        return plain;
    }
    let parsed = crate::decimal::Decimal::parse(text);
    if parsed.length == 0 {
        return plain;
    }
    let rounded = parsed.value.with_scale(0);
    let magnitude = rounded.abs().to_u64();
    ParsedNumber {
        value: SignedMagnitude { negative: rounded.is_negative(), magnitude: magnitude.0 },
        length: parsed.length,
        overflow: parsed.overflow || !magnitude.1,
    }
}

/// Most places before the point, and zeros after it, that are printed without an exponent.
const PLAIN_PLACES: i32 = 15;

/// Appends significant digits with the point at place `point`.
fn push_significant(negative: bool, digits: &[u8], point: i32, out: &mut Vec<u8>) {
    if negative {
        out.push(b'-');
    }
    let count = digits.len() as i32;
    let has_fraction = count > point && point > 0;
    if !(1 - PLAIN_PLACES..=PLAIN_PLACES).contains(&point) && !has_fraction {
        out.push(digits[0]);
        if count > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        out.extend_from_slice((point - 1).to_string().as_bytes());
    } else {
        push_plain(digits, point, out);
    }
}

/// Splits `d.ddde±x` into digits without trailing zeros and the place of the point.
fn push_scientific(text: &str, out: &mut Vec<u8>) {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    let exponent: i32 = exponent.parse().unwrap_or(0);
    push_significant(negative, &digits, exponent + 1, out);
}

/// Appends a double: the fewest digits that read back the same.
pub fn write_double(value: f64, out: &mut Vec<u8>) {
    if value == 0.0 {
        out.push(b'0');
    } else if value.is_finite() {
        push_scientific(&shortest(value), out);
    } else {
        out.extend_from_slice(value.to_string().to_lowercase().as_bytes());
    }
}

/// The fewest digits that tell a number from its neighbours, the last one even where two are
/// equally near.
pub(crate) fn shortest(value: f64) -> String {
    let text = format!("{value:e}");
    let digits = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    if digits < TIE_DIGITS {
        return text;
    }
    // A number in the middle has a 5 and nothing behind its digits.
    let long = format!("{value:.*e}", digits + BEHIND_TIE - 1);
    let Some((mantissa, exponent)) = long.split_once('e') else { return text };
    let (head, tail) = mantissa.split_at(mantissa.len() - BEHIND_TIE);
    let is_tie = tail.starts_with('5') && tail[1..].bytes().all(|byte| byte == b'0');
    let below = format!("{head}e{exponent}");
    let is_even = head.ends_with(['0', '2', '4', '6', '8']);
    if is_tie && is_even && below.parse() == Ok(value) { below } else { text }
}

/// Digits behind the shortest text in which a tie shows.
const BEHIND_TIE: usize = 30;

/// Numbers of fewer digits are never in the middle between two of so many.
const TIE_DIGITS: usize = 16;

/// Appends a double in at most `width` bytes, with as many digits as have room, in the notation
/// that keeps more of them. False if not even its size can be told: then only the start of it is
/// written.
pub fn write_double_within(value: f64, width: usize, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    if value == 0.0 || !value.is_finite() {
        write_double(value, out);
    } else {
        let room = width as i32 - i32::from(value < 0.0);
        if !push_within(value, room, out) {
            out.truncate(start + width);
            return false;
        }
    }
    let fits = out.len() - start <= width;
    out.truncate(start + width);
    fits
}

/// The digits of a number without zeros at their end, and the place of the point.
fn significant(value: f64, digits: i32) -> (Vec<u8>, i32) {
    let mut text = shortest(value.abs());
    if text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count()
        > digits.max(1) as usize
    {
        text = format!("{:.*e}", digits.max(1) as usize - 1, value.abs());
    }
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut found: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    while found.len() > 1 && found.last() == Some(&b'0') {
        found.pop();
    }
    (found, exponent.parse::<i32>().unwrap_or(0) + 1)
}

/// Writes into `room` bytes behind the sign; false if they are too few.
fn push_within(value: f64, room: i32, out: &mut Vec<u8>) -> bool {
    let (digits, point) = significant(value, room);
    let count = digits.len() as i32;
    let exponent_digits =
        1 + i32::from(point >= 101 || point <= -99) + i32::from(point >= 11 || point <= -9);
    let plain_length = match point {
        ..=0 => count - point + 2,
        _ if point < count => count + 1,
        _ => point,
    };
    let has_room = plain_length <= room;
    let only_zeros = point <= 0 && room <= 2 - point && room >= 3 + exponent_digits;
    let plain = match has_room {
        true => (1 - PLAIN_PLACES..=PLAIN_PLACES).contains(&point) || count > point && point > 0,
        false => point <= room && point >= -2 && !only_zeros,
    };
    if value < 0.0 {
        out.push(b'-');
    }
    if plain {
        let kept = room - i32::from(point < count) - if point <= 0 { 1 - point } else { 0 };
        if kept >= count {
            push_plain(&digits, point, out);
            return true;
        }
        let places = (kept - point).max(0);
        let mut text = format!("{:.*}", places as usize, value.abs());
        if text.contains('.') {
            text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        }
        out.extend_from_slice(text.as_bytes());
        return kept >= point;
    }
    let kept = room - 1 - exponent_digits - i32::from(point < 1) - i32::from(count > 1);
    let (digits, point) = if kept < count { significant(value, kept) } else { (digits, point) };
    out.push(digits[0]);
    if digits.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    out.push(b'e');
    out.extend_from_slice((point - 1).to_string().as_bytes());
    kept > 0
}

/// Digits with their point, without an exponent.
fn push_plain(digits: &[u8], point: i32, out: &mut Vec<u8>) {
    let count = digits.len() as i32;
    if point <= 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-point) as usize));
        out.extend_from_slice(digits);
    } else if point >= count {
        out.extend_from_slice(digits);
        out.extend(std::iter::repeat_n(b'0', (point - count) as usize));
    } else {
        out.extend_from_slice(&digits[..point as usize]);
        out.push(b'.');
        out.extend_from_slice(&digits[point as usize..]);
    }
}

/// Appends a FLOAT: six significant digits.
pub fn write_float(value: f32, out: &mut Vec<u8>) {
    if value == 0.0 || !value.is_finite() {
        write_double(f64::from(value), out);
    } else {
        push_scientific(&format!("{:.5e}", f64::from(value)), out);
    }
}

/// Digits that are always enough to read the same number back.
const SIGNIFICANT_MAX: i32 = 17;

/// Appends a number with so many digits after the point; zeros follow the fewest digits that
/// read back the same.
pub fn write_fixed(value: f64, places: u8, out: &mut Vec<u8>) {
    // Zero has no sign.
    let value = value + 0.0;
    let places = usize::from(places);
    if !value.is_finite() {
        out.extend_from_slice(value.to_string().as_bytes());
        return;
    }
    let (digits, point) = significant(value, SIGNIFICANT_MAX);
    let own = (digits.len() as i32 - point).max(0) as usize;
    if own > places {
        out.extend_from_slice(format!("{value:.places$}").as_bytes());
        return;
    }
    if value < 0.0 {
        out.push(b'-');
    }
    push_plain(&digits, point, out);
    if own == 0 && places > 0 {
        out.push(b'.');
    }
    out.extend(std::iter::repeat_n(b'0', places - own));
}

/// Appends an integer.
pub fn write_unsigned(value: u64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut rest = value;
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&buffer[at..]);
}

/// Appends an integer with its sign.
pub fn write_signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    write_unsigned(value.unsigned_abs(), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_digits_are_the_fewest_ones_and_even_in_the_middle() {
        for (value, places, text) in [
            (999999605089391.2, 4, "999999605089391.2000"),
            (9999899999.007812, 6, "9999899999.007812"),
            (9999899999.007812, 7, "9999899999.0078120"),
            (-0.05, 2, "-0.05"),
            (0.0, 1, "0.0"),
            (-0.0, 1, "0.0"),
            (1e20, 0, "100000000000000000000"),
            (1e20, 1, "100000000000000000000.0"),
            (0.001, 2, "0.00"),
            (123.456, 1, "123.5"),
        ] {
            let mut out = Vec::new();
            write_fixed(value, places, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text, "{value} {places}");
        }
    }

    fn printed(value: f64) -> String {
        let mut out = Vec::new();
        write_double(value, &mut out);
        String::from_utf8(out).expect("digits are ASCII")
    }

    #[test]
    fn doubles_print_as_the_server_prints_them() {
        for (value, text) in [
            (1e15, "1e15"),
            (1e14, "100000000000000"),
            (1.2345678901234568e17, "1.2345678901234568e17"),
            (0.00001, "0.00001"),
            (1.5e-7, "0.00000015"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (12345.678, "12345.678"),
            (1e100, "1e100"),
            (-0.1, "-0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::MAX, "1.7976931348623157e308"),
        ] {
            assert_eq!(printed(value), text);
        }
    }

    #[test]
    fn numbers_are_read_up_to_what_does_not_belong_to_them() {
        assert_eq!(parse_double(b" 1.5e3x").value, 1500.0);
        assert_eq!(parse_double(b" 1.5e3x").length, 6);
        assert_eq!(parse_double(b"1e").length, 1);
        assert_eq!(parse_double(b".").length, 0);
        assert!(parse_double(b"1e999").overflow);
        assert_eq!(parse_integer(b"-12.7").value.to_i64(), (-12, true));
        assert_eq!(parse_integer_rounded(b"-12.5").value.to_i64(), (-13, true));
        assert_eq!(parse_integer_rounded(b"1e2").value.to_i64(), (100, true));
        assert_eq!(parse_integer_rounded(b".5").value.to_i64(), (1, true));
        assert!(parse_integer(b"99999999999999999999").overflow);
    }
}
