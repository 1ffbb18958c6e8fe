//! JSON as text.

use super::{Kind, Node, unescape};
use types::Charset;

/// From what character set to which a text goes.
pub(crate) type Way = (Charset, Charset);

/// Appends characters as they stand within a string; those that the other character set does not
/// have as `\uXXXX`. Bytes without a character set are the characters of the same numbers.
pub(crate) fn escape(text: &[u8], way: Way, out: &mut Vec<u8>) {
    let is_unicode = |charset| matches!(charset, Charset::Utf8mb3 | Charset::Utf8mb4);
    let same = way.0 == way.1 || (is_unicode(way.0) && is_unicode(way.1));
    for piece in text.chunk_by(|a, b| a.is_ascii() == b.is_ascii()) {
        if piece[0].is_ascii() {
            piece.iter().for_each(|byte| escape_byte(*byte, out));
        } else if same {
            out.extend_from_slice(piece);
        } else {
            convert(piece, way, out);
        }
    }
}

fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        8 => out.extend_from_slice(b"\\b"),
        12 => out.extend_from_slice(b"\\f"),
        0..0x20 => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
        _ => out.push(byte),
    }
}

/// Characters beyond ASCII.
fn convert(text: &[u8], (from, to): Way, out: &mut Vec<u8>) {
    let mut rest = text;
    while let [first, ..] = rest {
        let byte = (u32::from(*first), 1);
        let (character, length) = from.decode(rest).unwrap_or(byte);
        rest = &rest[length..];
        if !to.encode(character, out) {
            escape_character(character, out);
        }
    }
}

/// As one or two units of UTF-16.
fn escape_character(character: u32, out: &mut Vec<u8>) {
    let character = char::from_u32(character).unwrap_or('?');
    for unit in character.encode_utf16(&mut [0; 2]) {
        out.extend_from_slice(format!("\\u{unit:04X}").as_bytes());
    }
}

/// Appends a string with its quotes.
pub(crate) fn quote(text: &[u8], way: Way, out: &mut Vec<u8>) {
    out.push(b'"');
    escape(text, way, out);
    out.push(b'"');
}

fn push_with(node: &Node<'_>, comma: &[u8], colon: &[u8], out: &mut Vec<u8>) {
    match &node.kind {
        Kind::Array(list) => {
            out.push(b'[');
            for (number, member) in list.iter().enumerate() {
                if number > 0 {
                    out.extend_from_slice(comma);
                }
                push_with(member, comma, colon, out);
            }
            out.push(b']');
        }
        Kind::Object(list) => {
            out.push(b'{');
            for (number, (key, member)) in list.iter().enumerate() {
                if number > 0 {
                    out.extend_from_slice(comma);
                }
                push_key(key, colon, out);
                push_with(member, comma, colon, out);
            }
            out.push(b'}');
        }
        _ => out.extend_from_slice(node.raw),
    }
}

fn push_key(key: &[u8], colon: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(key);
    out.push(b'"');
    out.extend_from_slice(colon);
}

/// With a blank after commas and colons.
pub(crate) fn push_loose(node: &Node<'_>, out: &mut Vec<u8>) {
    push_with(node, b", ", b": ", out);
}

/// Without blanks.
pub(crate) fn push_compact(node: &Node<'_>, out: &mut Vec<u8>) {
    push_with(node, b",", b":", out);
}

fn line(depth: usize, tab: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.resize(out.len() + depth * tab, b' ');
}

/// A line for each member.
pub(crate) fn push_detailed(node: &Node<'_>, depth: usize, tab: usize, out: &mut Vec<u8>) {
    match &node.kind {
        Kind::Array(list) if list.is_empty() => out.extend_from_slice(b"[]"),
        Kind::Array(list) if list.len() == 1 && list[0].is_scalar() => {
            out.push(b'[');
            out.extend_from_slice(list[0].raw);
            out.push(b']');
        }
        Kind::Array(list) => {
            out.push(b'[');
            for (number, member) in list.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                line(depth + 1, tab, out);
                push_detailed(member, depth + 1, tab, out);
            }
            line(depth, tab, out);
            out.push(b']');
        }
        Kind::Object(list) => {
            out.push(b'{');
            for (number, (key, member)) in list.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                line(depth + 1, tab, out);
                push_key(key, b": ", out);
                if !member.is_scalar() {
                    line(depth + 1, tab, out);
                }
                push_detailed(member, depth + 1, tab, out);
            }
            line(depth, tab, out);
            out.push(b'}');
        }
        _ => out.extend_from_slice(node.raw),
    }
}

/// Keys in order, numbers in one form, no blanks. Bytes become characters of their numbers.
pub(crate) fn normalized(node: &Node<'_>, of_bytes: bool, out: &mut Vec<u8>) {
    if !of_bytes {
        return push_normalized(node, out);
    }
    let mut bytes = Vec::new();
    push_normalized(node, &mut bytes);
    let text: String = bytes.into_iter().map(char::from).collect();
    out.extend_from_slice(text.as_bytes());
}

fn push_normalized(node: &Node<'_>, out: &mut Vec<u8>) {
    match &node.kind {
        Kind::Array(list) => {
            out.push(b'[');
            for (number, member) in list.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                push_normalized(member, out);
            }
            out.push(b']');
        }
        Kind::Object(list) => {
            let mut sorted: Vec<_> = list.iter().collect();
            sorted.sort_by_key(|(key, _)| unescape(key));
            out.push(b'{');
            for (number, (key, member)) in sorted.into_iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                push_key(key, b":", out);
                push_normalized(member, out);
            }
            out.push(b'}');
        }
        Kind::Number => out.extend_from_slice(&normal_number(node.raw)),
        _ => out.extend_from_slice(node.raw),
    }
}

/// `1.5E0`: one digit before the point, no zeros at the end but one.
fn normal_number(raw: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(raw).to_ascii_uppercase();
    let (mantissa, exponent) = text.split_once('E').unwrap_or((&text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0');
    let Some((first, rest)) = digits.split_at_checked(1) else { return b"0.0E0".to_vec() };
    let exponent = exponent + whole.len() as i64 - 1 - leading as i64;
    let rest = if rest.is_empty() { "0" } else { rest };
    format!("{sign}{first}.{rest}E{exponent}").into_bytes()
}
