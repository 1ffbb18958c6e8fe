//! Storing into ENUM, SET and BIT columns.

use super::numbers::to_wide;
use super::strings::in_charset;
use super::{StoreIssue, StoreSettings, Stored};
use crate::column_type::{ColumnType, TypeKind};
use crate::members::Members;
use crate::text::to_text;
use crate::value::{Value, ValueRef};
use std::borrow::Cow;

/// A number as it was given, or text in the column's character set.
enum Given<'a> {
    Number(i128),
    Text(Cow<'a, [u8]>),
}

fn given<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Given<'a> {
    match value {
        ValueRef::Bytes(bytes) => Given::Text(in_charset(bytes, source, target).0),
        ValueRef::Double(v) => Given::Number(whole(v)),
        ValueRef::Float(v) => Given::Number(whole(f64::from(v))),
        // Through a floating point number, which has fewer digits.
        ValueRef::Decimal(v) => Given::Number(whole(v.to_f64())),
        ValueRef::Int(_) | ValueRef::UInt(_) => Given::Number(to_wide(value, source, settings).0),
        _ => Given::Text(Cow::Owned(to_text(value, source, settings.time_zone))),
    }
}

/// The whole number before the point; what is no BIGINT is the smallest one.
fn whole(number: f64) -> i128 {
    /// Just above the largest BIGINT.
    const END: f64 = 9_223_372_036_854_775_808.0;
    match (-END..END).contains(&number) {
        true => number.trunc() as i128,
        false => i128::from(i64::MIN),
    }
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

/// Text that is wholly a number of at most `digits` digits.
fn number_in(text: &[u8], digits: usize) -> Option<u64> {
    let is_short = !text.is_empty() && text.len() <= digits;
    let text = std::str::from_utf8(text).ok().filter(|_| is_short)?;
    text.trim_start().parse().ok()
}

fn stored<'a>(text: &[u8], clean: bool) -> Stored<'a> {
    let issue = (!clean).then_some(StoreIssue::Truncated);
    Stored::new(Value::Bytes(text.to_vec()), issue)
}

/// ENUM: a member by its text, by its number, or by its number as text.
pub(super) fn member<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Stored<'a> {
    let Some(members) = target.members else { return stored(b"", false) };
    let name = |number: u64| members.name(number);
    if matches!((source.kind, value), (TypeKind::Enum, ValueRef::Bytes([]))) {
        // What is no member stays none.
        return stored(
            name(members.number_of(b"", target.collation).unwrap_or(0)).unwrap_or_default(),
            true,
        );
    }
    match given(value, source, target, settings) {
        Given::Number(number) => {
            let found = u64::try_from(number).ok().filter(|number| *number != 0).and_then(name);
            stored(found.unwrap_or_default(), found.is_some())
        }
        Given::Text(text) => {
            let text = without_blanks(&text);
            let number = members.number_of(text, target.collation);
            let by_number = || number_in(text, 5).filter(|number| *number != 0);
            let found = number.or_else(by_number).and_then(name);
            stored(found.unwrap_or_default(), found.is_some())
        }
    }
}

/// SET: members by their texts, by their bits, or by their bits as text.
pub(super) fn set<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Stored<'a> {
    let Some(members) = target.members else { return stored(b"", false) };
    let of_bits = |members: &Members, bits: u64, clean: bool| {
        let kept = bits & members.all_bits();
        stored(&members.text_of_bits(kept), clean && kept == bits)
    };
    match given(value, source, target, settings) {
        Given::Number(number) => of_bits(members, number as u64, true),
        Given::Text(text) => {
            let (bits, clean) = members.bits_of(without_blanks(&text), target.collation);
            // What is longer than any number is not read as one.
            if bits != 0 || text.is_empty() || text.len() > 21 {
                return of_bits(members, bits, clean);
            }
            if let Some(bits) = number_in(&text, 21) {
                return of_bits(members, bits, true);
            }
            // A negative number has all bits that its size leaves; its sign stands before a digit.
            let size = text.trim_ascii_start().strip_prefix(b"-");
            let size = size.filter(|size| size.first().is_some_and(u8::is_ascii_digit));
            let negative = size.and_then(|size| number_in(size, 20));
            of_bits(members, negative.unwrap_or(0).wrapping_neg(), negative.is_some())
        }
    }
}

/// BIT: the bytes of text are its bits; numbers are taken as they are.
pub(super) fn bit<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Stored<'a> {
    let most = u64::MAX >> (64 - target.length.clamp(1, 64));
    let too_many = || Stored::new(Value::UInt(most), Some(StoreIssue::TooManyBits));
    let printed;
    let value = match value {
        ValueRef::Date(_) | ValueRef::DateTime(_) | ValueRef::Timestamp(_) | ValueRef::Time(_) => {
            printed = to_text(value, source, settings.time_zone);
            ValueRef::Bytes(&printed)
        }
        other => other,
    };
    let bits = match value {
        ValueRef::Decimal(v) if v.is_negative() => {
            return Stored::new(Value::UInt(0), Some(StoreIssue::OutOfRange));
        }
        ValueRef::Decimal(_) if to_wide(value, source, settings).0 > i128::from(u64::MAX) => {
            return Stored::new(Value::UInt(most), Some(StoreIssue::OutOfRange));
        }
        ValueRef::Bytes(bytes) => {
            let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
            let bytes = &bytes[start..];
            if bytes.len() > 8 {
                return too_many();
            }
            bytes.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte))
        }
        ValueRef::Double(v) => v as i64 as u64,
        ValueRef::Float(v) => v as i64 as u64,
        _ if source.kind == TypeKind::Null => 0,
        _ => to_wide(value, source, settings).0 as u64,
    };
    if bits > most { too_many() } else { Stored::new(Value::UInt(bits), None) }
}
