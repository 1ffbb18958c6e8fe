//! Storing into character and binary columns.

use super::issue::printable_start;
use super::{Converted, StoreIssue, StoreSettings, Stored};
use crate::charset::Charset;
use crate::column_type::{ColumnType, TypeKind};
use crate::number::write_double_within;
use crate::text::to_text;
use crate::value::{Value, ValueRef};
use std::borrow::Cow;

/// What is lost with what is behind a limit: of texts blanks are nothing.
fn issue_of_rest(bytes: &[u8], limit: usize, target: &ColumnType) -> Option<StoreIssue> {
    let charset = target.collation.charset();
    let rest = &bytes[limit..];
    let is_blank = |byte: &u8| match byte {
        b' ' | b'\t'..=b'\r' => true,
        // A space that does not break a line.
        0xa0 => charset == Charset::Latin1,
        _ => false,
    };
    let blank = charset != Charset::Binary && rest.iter().all(is_blank);
    match (blank, target.kind) {
        (false, kind) if kind.is_large() && limit < target.length as usize => {
            Some(StoreIssue::Incorrect { kind: "string", shown: printable_start(rest) })
        }
        (false, _) => Some(StoreIssue::TooLong),
        (true, TypeKind::Char) => None,
        (true, _) => Some(StoreIssue::Shortened),
    }
}

/// CHAR, VARCHAR, TEXT, BINARY, VARBINARY and BLOB types.
pub(super) fn text<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Stored<'a> {
    let (bytes, issue) = match value {
        ValueRef::Bytes(bytes) => as_far_as_seen(bytes, source, target),
        _ => (Cow::Owned(printed(value, source, target, settings)), None),
    };
    let width = target.length as usize;
    let (bytes, mut issue) = match value {
        ValueRef::Double(_) | ValueRef::Float(_)
            if bytes.len() > width && !target.kind.is_large() =>
        {
            let number = match value {
                ValueRef::Double(number) => number,
                ValueRef::Float(number) => f64::from(number),
                _ => 0.0,
            };
            let mut short = Vec::with_capacity(width);
            let fits = write_double_within(number, width, &mut short);
            (Cow::Owned(short), (!fits).then_some(StoreIssue::TooLong))
        }
        _ => (bytes, issue),
    };
    let charset = target.collation.charset();
    let limit = if target.kind.is_large() {
        cut_at_character(charset, &bytes, target.length as usize)
    } else {
        charset.byte_offset(&bytes, target.length as usize)
    };
    let mut end = bytes.len();
    if end > limit {
        issue = issue.or_else(|| issue_of_rest(&bytes, limit, target));
        end = limit;
    }
    if target.kind == TypeKind::Char {
        while end > 0 && bytes[end - 1] == b' ' {
            end -= 1;
        }
    }
    let wanted = if target.kind == TypeKind::Binary { target.length as usize } else { end };
    if wanted > end {
        let mut padded = bytes[..end].to_vec();
        padded.resize(wanted, 0);
        return Stored { value: Converted::New(Value::Bytes(padded)), issue };
    }
    let value = match bytes {
        Cow::Borrowed(bytes) => Converted::Same(ValueRef::Bytes(&bytes[..end])),
        Cow::Owned(mut bytes) => {
            bytes.truncate(end);
            Converted::New(Value::Bytes(bytes))
        }
    };
    Stored { value, issue }
}

/// The bytes in the column's character set. What is wrong with characters that are cut off is not
/// seen.
fn as_far_as_seen<'a>(
    bytes: &'a [u8],
    source: &ColumnType,
    target: &ColumnType,
) -> (Cow<'a, [u8]>, Option<StoreIssue>) {
    let (converted, issue) = in_charset(bytes, source, target);
    let end = source.collation.charset().byte_offset(bytes, target.length as usize);
    if issue.is_none() || target.kind.is_large() || end == bytes.len() {
        return (converted, issue);
    }
    let is_seen = in_charset(&bytes[..end], source, target).1.is_some();
    (converted, issue.filter(|_| is_seen))
}

/// The text of a number, date or time: the bits of a BIT as a number, and leading zeros only in
/// the large types.
fn printed(
    value: ValueRef<'_>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Vec<u8> {
    let mut shown = *source;
    shown.zerofill &= target.kind.is_large();
    if source.kind == TypeKind::Bit {
        shown.kind = TypeKind::BigInt;
    }
    to_text(value, &shown, settings.time_zone)
}

/// The longest prefix of at most `limit` bytes that ends between characters.
fn cut_at_character(charset: Charset, bytes: &[u8], limit: usize) -> usize {
    if bytes.len() <= limit {
        return bytes.len();
    }
    charset.valid_prefix(&bytes[..limit])
}

/// The bytes in the column's character set; what it does not have becomes `?`.
pub(super) fn in_charset<'a>(
    bytes: &'a [u8],
    source: &ColumnType,
    target: &ColumnType,
) -> (Cow<'a, [u8]>, Option<StoreIssue>) {
    let from = source.collation.charset();
    let to = target.collation.charset();
    let incorrect =
        |at: usize| StoreIssue::Incorrect { kind: "string", shown: printable_start(&bytes[at..]) };
    if to == Charset::Binary {
        return (Cow::Borrowed(bytes), None);
    }
    if from == to || from == Charset::Binary {
        let valid = to.valid_prefix(bytes);
        if valid == bytes.len() {
            return (Cow::Borrowed(bytes), None);
        }
        let mut kept = Vec::with_capacity(bytes.len());
        replace_invalid(to, bytes, &mut kept);
        let issue = (to != Charset::Ascii || from == to).then(|| incorrect(valid));
        return (Cow::Owned(kept), issue);
    }
    if from.is_subset_of(to, bytes) {
        return (Cow::Borrowed(bytes), None);
    }
    let mut converted = Vec::with_capacity(bytes.len());
    if from.convert(bytes, to, &mut converted) == 0 {
        return (Cow::Owned(converted), None);
    }
    let at = first_lost(from, to, bytes);
    (Cow::Owned(converted), Some(incorrect(at)))
}

/// Copies, with `?` for each byte that begins no character.
fn replace_invalid(charset: Charset, bytes: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < bytes.len() {
        match charset.decode(&bytes[at..]) {
            Some((_, length)) => {
                out.extend_from_slice(&bytes[at..at + length]);
                at += length;
            }
            None => {
                out.push(b'?');
                at += 1;
            }
        }
    }
}

/// Where the first character is that the target does not have.
fn first_lost(from: Charset, to: Charset, bytes: &[u8]) -> usize {
    let (mut at, mut scratch) = (0, Vec::new());
    while at < bytes.len() {
        match from.decode(&bytes[at..]) {
            Some((code_point, length)) if to.encode(code_point, &mut scratch) => at += length,
            _ => break,
        }
    }
    at
}
