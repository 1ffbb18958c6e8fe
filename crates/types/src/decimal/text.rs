//! DECIMAL from and to text and double.

use super::Decimal;
use super::wide::{self, LIMBS};
use std::fmt;

/// What reading a number found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedDecimal {
    /// The number; the nearest representable one if it was cut.
    pub value: Decimal,
    /// Bytes of the text that belong to the number, blanks before it included; 0 if there is
    /// no number.
    pub length: usize,
    /// Too many digits before the point; `value` is the largest number.
    pub overflow: bool,
    /// Digits after the point were cut.
    pub truncated: bool,
}

/// Digits that fit nine words.
const DIGITS_MAX: i64 = 81;

impl Decimal {
    /// Reads the longest prefix that is a number: blanks, sign, digits, point, exponent.
    pub fn parse(text: &[u8]) -> ParsedDecimal {
        let mut at = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let negative = text.get(at) == Some(&b'-');
        if matches!(text.get(at), Some(b'-' | b'+')) {
            at += 1;
        }
        let integer_start = at;
        at += count_digits(&text[at..]);
        let integer = &text[integer_start..at];
        let mut fraction: &[u8] = &[];
        if text.get(at) == Some(&b'.') {
            let count = count_digits(&text[at + 1..]);
            fraction = &text[at + 1..at + 1 + count];
            if !integer.is_empty() || count > 0 {
                at += 1 + count;
            }
        }
        if integer.is_empty() && fraction.is_empty() {
            let nothing =
                ParsedDecimal { value: Self::ZERO, length: 0, overflow: false, truncated: false };
            return nothing;
        }
        let (exponent, length) = parse_exponent(&text[at..]);
        let mut parsed = from_digits(integer, fraction, exponent, negative);
        parsed.length = at + length;
        parsed
    }

    /// The number a double prints as (shortest text that reads back the same); `None` for
    /// infinity and NaN.
    pub fn from_f64(value: f64) -> Option<ParsedDecimal> {
        if !value.is_finite() {
            return None;
        }
        Some(Self::parse(crate::number::shortest(value).as_bytes()))
    }

    /// Appends the digits of the magnitude without a point.
    fn push_digits(&self, out: &mut Vec<u8>) {
        let start = out.len();
        if let Some(mantissa) = self.mantissa() {
            let mut rest = mantissa.unsigned_abs();
            while rest > 0 {
                out.push(b'0' + (rest % 10) as u8);
                rest /= 10;
            }
        } else {
            let mut limbs = self.limbs;
            while !wide::is_zero(&limbs) {
                let mut word = wide::divide_small(&mut limbs, wide::POWERS[9]);
                for _ in 0..9 {
                    out.push(b'0' + (word % 10) as u8);
                    word /= 10;
                }
            }
            while out.len() > start && out.last() == Some(&b'0') {
                out.pop();
            }
        }
        out[start..].reverse();
    }

    /// Appends the number as text with all its digits after the point.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        let start = out.len();
        self.push_digits(out);
        let (count, scale) = (out.len() - start, usize::from(self.scale));
        if count <= scale {
            let missing = scale + 1 - count;
            out.splice(start..start, std::iter::repeat_n(b'0', missing));
        }
        if scale > 0 {
            out.insert(out.len() - scale, b'.');
        }
    }
}

fn count_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// An exponent and its length; (0, 0) if there is none.
fn parse_exponent(text: &[u8]) -> (i64, usize) {
    if !matches!(text.first(), Some(b'e' | b'E')) {
        return (0, 0);
    }
    let signed = matches!(text.get(1), Some(b'-' | b'+'));
    let start = 1 + usize::from(signed);
    let count = count_digits(&text[start..]);
    if count == 0 {
        return (0, 0);
    }
    let value = text[start..start + count]
        .iter()
        .fold(0i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(1 << 40));
    (if text[1] == b'-' { -value } else { value }, start + count)
}

fn from_digits(integer: &[u8], fraction: &[u8], exponent: i64, negative: bool) -> ParsedDecimal {
    let leading = integer.iter().take_while(|&&digit| digit == b'0').count();
    let integer = &integer[leading..];
    let digits = || integer.iter().chain(fraction).copied();
    // Place of the point within the digits.
    let point = integer.len() as i64 + exponent;
    let total = (integer.len() + fraction.len()) as i64;
    let leading = digits().take_while(|&digit| digit == b'0').count() as i64;
    let mut parsed =
        ParsedDecimal { value: Decimal::ZERO, length: 0, overflow: false, truncated: false };
    if leading == total {
        let scale = (total - point).clamp(0, i64::from(super::SCALE_MAX)) as u8;
        parsed.value = Decimal::from_limbs([0; LIMBS], scale, false);
        return parsed;
    }
    let integer_digits = (point - leading).max(0);
    if integer_digits > DIGITS_MAX {
        parsed.overflow = true;
        parsed.value = Decimal::largest(DIGITS_MAX as u8, 0, negative);
        return parsed;
    }
    let room = (9 - (integer_digits + 8) / 9) * 9;
    let scale = (total - point).max(0);
    let kept_scale = scale.min(room);
    // Digits that are kept, then zeros up to the point.
    let kept = (total - (scale - kept_scale)).max(0);
    let mut limbs = [0u32; LIMBS];
    for digit in digits().take(kept as usize) {
        wide::multiply_add_small(&mut limbs, 10, u32::from(digit - b'0'));
    }
    parsed.truncated = digits().skip(kept as usize).any(|digit| digit != b'0');
    wide::scale_up(&mut limbs, (point - total).max(0) as u32);
    parsed.value = Decimal::from_limbs(limbs, kept_scale as u8, negative);
    parsed
}

impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(48);
        self.write_text(&mut text);
        formatter.write_str(&String::from_utf8_lossy(&text))
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
