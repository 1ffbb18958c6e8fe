//! Texts and numbers in other notations.

use super::typing::{
    any_text, argument_bytes, bytes, connection_text, int, plain, resolve_int_3, resolve_int_7,
    system_text, text_like,
};
use super::{Frame, Function, MANY, Nature};
use crate::builder::{Builder, Domain, Strength, number_of_hex};
use crate::coerce;
use crate::expression::Expr;
use crate::result_type::ResultType;
use types::{Charset, SqlError, TypeKind, ValueRef, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("hex", 1, 1, resolve_hex, hex),
    Function::new("unhex", 1, 1, resolve_unhex, unhex),
    Function::new("ascii", 1, 1, resolve_int_3, ascii),
    Function::new("ord", 1, 1, resolve_int_7, ord),
    Function::new("char", 1, MANY, resolve_char, char).being(Nature::Characters),
    Function::new("bin", 1, 1, resolve_conv, bin),
    Function::new("oct", 1, 1, resolve_conv, oct),
    Function::new("conv", 3, 3, resolve_conv, conv),
    Function::new("to_base64", 1, 1, resolve_to_base64, to_base64),
    Function::new("from_base64", 1, 1, resolve_from_base64, from_base64),
    Function::new("quote", 1, 1, resolve_quote, quote),
    Function::new("soundex", 1, 1, resolve_soundex, soundex),
    Function::new("format", 2, 3, resolve_format, format),
    Function::new("charset", 1, 1, resolve_name, charset).being(Nature::Description),
    Function::new("collation", 1, 1, resolve_name, collation).being(Nature::Description),
    Function::new("coercibility", 1, 1, resolve_coercibility, coercibility),
];

type Resolved = Result<ResultType, SqlError>;

fn resolve_hex(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let result = &arguments[0].result;
    let characters = match result.column_type.kind {
        TypeKind::Bit | TypeKind::Year => 2 * u64::from(result.text_length()),
        kind if kind.is_integer() && result.column_type.unsigned => 2 * result.characters(),
        kind if kind.is_number() => 16,
        _ => 2 * argument_bytes(&arguments[0]),
    };
    Ok(plain(connection_text(builder, characters)))
}

const HEX_DIGITS: &[u8; 16] = b"0123456789ABCDEF";

fn push_hex(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(HEX_DIGITS[usize::from(byte >> 4)]);
        out.push(HEX_DIGITS[usize::from(byte & 15)]);
    }
}

fn hex(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let value = frame.value(0)?;
    let mut out = Vec::new();
    match value {
        ValueRef::Null => return Ok(ValueRef::Null),
        ValueRef::Bytes(bytes) => push_hex(bytes, &mut out),
        ValueRef::Double(_) | ValueRef::Float(_) | ValueRef::Decimal(_) => {
            let number = coerce::to_double(frame.context, value, frame.result(0))?;
            out.extend_from_slice(format!("{:X}", bits_of_double(number)).as_bytes());
        }
        ValueRef::Int(_) | ValueRef::UInt(_) => {
            let bits = coerce::to_bits(frame.context, value, frame.result(0))?;
            out.extend_from_slice(format!("{bits:X}").as_bytes());
        }
        _ => push_hex(coerce::to_text(frame.context, value, frame.result(0)), &mut out),
    }
    Ok(frame.keep(&out))
}

/// A number as HEX takes it: rounded, and all bits set where 64 of them are not enough.
fn bits_of_double(number: f64) -> u64 {
    let (least, most) = (i64::MIN as f64, u64::MAX as f64);
    let rounded = number + if number > 0.0 { 0.5 } else { -0.5 };
    match number {
        _ if number <= least || number >= most => u64::MAX,
        _ if number < 0.0 => rounded as i64 as u64,
        _ => rounded as u64,
    }
}

fn resolve_unhex(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(plain(bytes(argument_bytes(&arguments[0]).div_ceil(2))))
}

fn unhex(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let mut out = Vec::with_capacity(text.len().div_ceil(2));
    let mut pending = (text.len() % 2 == 1).then_some(0);
    for &byte in text {
        let Some(digit) = char::from(byte).to_digit(16) else { return Ok(ValueRef::Null) };
        match pending.take() {
            Some(high) => out.push((high << 4 | digit) as u8),
            None => pending = Some(digit),
        }
    }
    Ok(frame.keep(&out))
}

fn ascii(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(frame
        .text(0)?
        .map_or(ValueRef::Null, |text| ValueRef::Int(text.first().copied().map_or(0, i64::from))))
}

fn ord(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    if text.is_empty() {
        return Ok(ValueRef::Int(0));
    }
    let result = frame.result(0);
    let charset = if result.is_string() { result.collation().charset() } else { Charset::Ascii };
    let size = charset.character_bytes(text);
    let value = text[..size].iter().fold(0i64, |value, &byte| value << 8 | i64::from(byte));
    Ok(ValueRef::Int(value))
}

fn resolve_char(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    for argument in arguments.iter_mut() {
        if argument.is_hex_literal() {
            let taken = argument.clone();
            *argument = number_of_hex(taken);
        }
    }
    Ok(bytes(4 * arguments.len() as u64))
}

fn char(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let mut out = Vec::new();
    for i in 0..frame.count() {
        let Some(code) = frame.wide(i)? else { continue };
        let code = code as u32;
        let bytes = code.to_be_bytes();
        let skipped = (code.leading_zeros() / 8).min(3) as usize;
        out.extend_from_slice(&bytes[skipped..]);
        // A number of several bytes keeps all of them, its zero bytes included.
    }
    Ok(frame.keep(&out))
}

fn resolve_conv(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(any_text(builder, 65))
}

/// Digits of a number in a base from 2 to 36.
fn in_base(mut number: u64, base: u64) -> Vec<u8> {
    let mut digits = Vec::new();
    loop {
        let digit = (number % base) as u32;
        let character = char::from_digit(digit, 36).unwrap_or('0').to_ascii_uppercase();
        digits.push(character as u8);
        number /= base;
        if number == 0 {
            break;
        }
    }
    digits.reverse();
    digits
}

/// BIN and OCT are CONV from 10: a DECIMAL and a number with a fraction are taken by their text.
fn bits_in_base<'a>(frame: &Frame<'a>, base: u64) -> Result<ValueRef<'a>, SqlError> {
    let value = frame.value(0)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let kind = frame.result(0).column_type.kind;
    let is_text = kind.is_floating() || kind == TypeKind::Decimal;
    if kind.is_number() && frame.result(0).decimal_scale() == 0 && !is_text {
        let wide = coerce::to_integer(frame.context, value, frame.result(0))?;
        return Ok(frame.keep(&in_base(wide as u64, base)));
    }
    let text = coerce::to_text(frame.context, value, frame.result(0));
    let Some(bits) = bits_of(text, 10, false) else { return Ok(ValueRef::Null) };
    Ok(frame.keep(&in_base(bits, base)))
}

/// The number that a text begins with in a base; too large a one is the largest, with a sign or
/// without. None of an empty text.
fn bits_of(text: &[u8], base: u64, signed: bool) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (mut number, mut is_too_large) = (0u64, false);
    for &byte in digits {
        let Some(digit) = char::from(byte).to_digit(base as u32) else { break };
        let next = number.checked_mul(base).and_then(|it| it.checked_add(u64::from(digit)));
        is_too_large |= next.is_none();
        number = next.unwrap_or(u64::MAX);
    }
    let most = i64::MAX as u64;
    Some(match (signed, negative) {
        (false, true) if is_too_large => number,
        (true, true) => number.min(most + 1).wrapping_neg(),
        (true, false) => number.min(most),
        (false, true) => number.wrapping_neg(),
        (false, false) => number,
    })
}

fn bin(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    bits_in_base(&frame, 2)
}

fn oct(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    bits_in_base(&frame, 8)
}

fn conv(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let Some(from) = frame.integer(1)? else { return Ok(ValueRef::Null) };
    let Some(to) = frame.integer(2)? else { return Ok(ValueRef::Null) };
    let (from_base, to_base) = (from.unsigned_abs(), to.unsigned_abs());
    if !(2..=36).contains(&from_base) || !(2..=36).contains(&to_base) {
        return Ok(ValueRef::Null);
    }
    let bits = match frame.result(0).column_type.kind {
        // Its text does not say what it is as a number.
        TypeKind::Bit => Some(coerce::to_bits(frame.context, frame.value(0)?, frame.result(0))?),
        _ => bits_of(text, from_base, from < 0),
    };
    let Some(bits) = bits else { return Ok(ValueRef::Null) };
    let out = if to < 0 && (bits as i64) < 0 {
        let mut out = vec![b'-'];
        out.extend(in_base((bits as i64).unsigned_abs(), to_base));
        out
    } else {
        in_base(bits, to_base)
    };
    Ok(frame.keep(&out))
}

fn resolve_to_base64(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let encoded = argument_bytes(&arguments[0]).div_ceil(3) * 4;
    let lines = encoded.saturating_sub(1) / 76;
    Ok(connection_text(builder, encoded + lines))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let (mut out, mut column) = (Vec::new(), 0);
    for chunk in text.chunks(3) {
        if column == 76 {
            out.push(b'\n');
            column = 0;
        }
        let word =
            chunk.iter().fold(0u32, |word, &b| word << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            if i <= chunk.len() {
                out.push(BASE64[(word >> (18 - 6 * i) & 63) as usize]);
            } else {
                out.push(b'=');
            }
        }
        column += 4;
    }
    Ok(frame.keep(&out))
}

fn resolve_from_base64(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(bytes(argument_bytes(&arguments[0]) * 3 / 4))
}

/// Decodes; the position of the first byte that cannot be on failure.
fn decode_base64(text: &[u8]) -> Result<Vec<u8>, usize> {
    let (mut out, mut word, mut count, mut padding) = (Vec::new(), 0u32, 0, 0);
    for (at, &byte) in text.iter().enumerate() {
        if byte.is_ascii_whitespace() {
            continue;
        }
        let digit = match BASE64.iter().position(|&symbol| symbol == byte) {
            Some(digit) if padding == 0 => digit as u32,
            None if byte == b'=' && count >= 2 => {
                padding += 1;
                0
            }
            _ => return Err(at),
        };
        word = word << 6 | digit;
        count += 1;
        if count == 4 {
            let bytes = word.to_be_bytes();
            out.extend_from_slice(&bytes[1..4 - padding.min(2)]);
            (word, count) = (0, 0);
        }
    }
    if count == 0 { Ok(out) } else { Err(text.len()) }
}

fn from_base64(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    match decode_base64(text) {
        Ok(out) => Ok(frame.keep(&out)),
        Err(at) => {
            frame.context.warn(&codes::BAD_BASE64_DATA, &[&at])?;
            Ok(ValueRef::Null)
        }
    }
}

fn resolve_quote(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let characters = arguments[0].result.characters() * 2;
    let extra = if arguments[0].result.column_type.kind == TypeKind::Null { 4 } else { 2 };
    let mut result = text_like(builder, &arguments[0], characters + extra);
    // A number stays one, for its collation; that of a variable is a text.
    if !arguments[0].result.is_variable {
        let own = Strength::of(&arguments[0].result);
        (result.column_type.collation, result.coercibility) = (own.collation, own.coercibility);
    }
    Ok(result)
}

fn quote(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Bytes(b"NULL")) };
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'\'');
    for &byte in text {
        match byte {
            b'\'' | b'\\' => out.extend([b'\\', byte]),
            0 => out.extend(b"\\0"),
            0x1a => out.extend(b"\\Z"),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
    Ok(frame.keep(&out))
}

/// From here on SOUNDEX takes every character for a letter.
const LETTERS_BEYOND_ASCII: u32 = 0xc0;

fn resolve_soundex(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    Ok(text_like(builder, &arguments[0], arguments[0].result.characters().max(4)))
}

fn soundex(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let code = |letter: u8| match letter.to_ascii_uppercase() {
        b'B' | b'F' | b'P' | b'V' => b'1',
        b'C' | b'G' | b'J' | b'K' | b'Q' | b'S' | b'X' | b'Z' => b'2',
        b'D' | b'T' => b'3',
        b'L' => b'4',
        b'M' | b'N' => b'5',
        b'R' => b'6',
        _ => b'0',
    };
    let charset = frame.collation().charset;
    let (mut out, mut characters, mut last, mut rest) = (Vec::new(), 0, b'0', text);
    while !rest.is_empty() {
        let (letter, tail) = rest.split_at(charset.character_bytes(rest).clamp(1, rest.len()));
        let code_point = charset.decode(rest).map_or(0, |(code_point, _)| code_point);
        rest = tail;
        let ascii = u8::try_from(code_point).ok().filter(u8::is_ascii_alphabetic);
        if ascii.is_none() && code_point < LETTERS_BEYOND_ASCII {
            continue;
        }
        let digit = ascii.map_or(b'0', code);
        if characters == 0 {
            match ascii {
                Some(ascii) => out.push(ascii.to_ascii_uppercase()),
                None => out.extend_from_slice(letter),
            }
        } else if digit != b'0' && digit != last {
            out.push(digit);
        } else {
            continue;
        }
        characters += 1;
        last = digit;
    }
    if characters > 0 {
        out.extend(std::iter::repeat_n(b'0', 4usize.saturating_sub(characters)));
    }
    Ok(frame.keep(&out))
}

/// Most digits after the point that FORMAT gives.
const FORMAT_PLACES_MAX: i64 = 38;
/// Digits before the point of the largest DOUBLE.
const DOUBLE_DIGITS: u64 = 309;

fn resolve_format(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let result = &arguments[0].result;
    let places =
        super::typing::constant_integer(builder, arguments.get(1)).unwrap_or(FORMAT_PLACES_MAX);
    let places = places.clamp(0, FORMAT_PLACES_MAX) as u64;
    let digits = match Domain::of(result) {
        Domain::Integer => u64::from(digits_of_kind(result)),
        Domain::Decimal => u64::from(result.integer_digits()),
        Domain::Double => DOUBLE_DIGITS,
    };
    // Rounding may make one more.
    let is_rounded = places < u64::from(result.decimals());
    let digits = digits + u64::from(is_rounded || digits == 0);
    let separators = digits / 3 + u64::from(places > 0) + 1;
    Ok(any_text(builder, digits + separators + places))
}

/// The digits of the largest number of a type of whole numbers, however few the value has.
fn digits_of_kind(result: &ResultType) -> u32 {
    match (result.column_type.kind, result.column_type.unsigned) {
        (TypeKind::TinyInt, _) => 3,
        (TypeKind::SmallInt, _) => 5,
        (TypeKind::MediumInt, false) => 7,
        (TypeKind::MediumInt, true) => 8,
        (TypeKind::Int, _) => 10,
        (TypeKind::BigInt, false) => 19,
        (TypeKind::BigInt, true) => 20,
        _ => result.decimal_precision(),
    }
}

fn format(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let from = frame.result(0);
    let is_double = Domain::of(from) == Domain::Double || from.column_type.kind.is_temporal();
    let Some(places) = frame.integer(1)? else { return Ok(ValueRef::Null) };
    let double = if is_double { frame.double(0)? } else { None };
    let exact = if is_double { None } else { frame.decimal(0)? };
    // The server takes 32 bits of it.
    let places = i64::from(places as i32).clamp(0, FORMAT_PLACES_MAX) as u8;
    let mut plain = Vec::new();
    if let Some(number) = double {
        let rounded = super::rounding::round_double(number, i64::from(places), false);
        types::number::write_fixed(rounded, places, &mut plain);
    } else {
        let Some(number) = exact else { return Ok(ValueRef::Null) };
        number.with_scale(places).write_text(&mut plain);
    }
    let signed = plain.first() == Some(&b'-');
    let digits = &plain[usize::from(signed)..];
    let negative = signed && digits.iter().any(|digit| matches!(digit, b'1'..=b'9'));
    let whole = digits.iter().position(|&byte| byte == b'.').unwrap_or(digits.len());
    let mut out = Vec::with_capacity(plain.len() * 4 / 3 + 2);
    if negative {
        out.push(b'-');
    }
    for (i, &digit) in digits[..whole].iter().enumerate() {
        if i > 0 && (whole - i).is_multiple_of(3) {
            out.push(b',');
        }
        out.push(digit);
    }
    out.extend_from_slice(&digits[whole..]);
    Ok(frame.keep(&out))
}

fn resolve_name(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(ResultType { ascii: false, ..system_text(64) })
}

fn charset(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(frame.keep(frame.result(0).collation().charset().name().as_bytes()))
}

fn collation(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(frame.keep(frame.result(0).collation().name().as_bytes()))
}

fn resolve_coercibility(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(int(10, false))
}

fn coercibility(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(ValueRef::Int(Strength::of(frame.result(0)).coercibility as i64))
}
