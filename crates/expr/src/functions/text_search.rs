//! Finding and replacing in texts.

use super::typing::{compared, compared_text, int, joined_text, resolve_int_3};
use super::{Frame, Function, MANY, any_nullable};
use crate::builder::{
    Builder, CollationUse, Domain, aggregate_collations, compared_collation, text_as_double,
};
use crate::coerce;
use crate::expression::{Expr, ExprKind};
use crate::result_type::ResultType;
use types::{CollationId, SqlError, TypeKind, ValueRef, collation};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("locate", 2, 3, resolve_locate, locate),
    Function::new("instr", 2, 2, resolve_locate, instr),
    Function::new("replace", 3, 3, resolve_replace, replace),
    Function::new("insert", 4, 4, resolve_insert, insert),
    Function::new("field", 2, MANY, resolve_field, field),
    Function::new("elt", 2, MANY, resolve_elt, elt),
    Function::new("find_in_set", 2, 2, resolve_find_in_set, find_in_set),
    Function::new("substring_index", 3, 3, resolve_substring_index, substring_index),
    Function::new("strcmp", 2, 2, resolve_strcmp, strcmp),
    Function::new("make_set", 2, MANY, resolve_make_set, make_set),
    Function::new("export_set", 3, 5, resolve_export_set, export_set),
];

type Resolved = Result<ResultType, SqlError>;

fn resolve_locate(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let nullable = any_nullable(arguments);
    if function.name() == "locate" {
        arguments.swap(0, 1);
    }
    let decided =
        aggregate_collations(builder, "locate", &mut arguments[..2], CollationUse::Compare);
    if function.name() == "locate" {
        arguments.swap(0, 1);
    }
    decided?;
    Ok(int(11, nullable))
}

/// Collation of two texts that were brought to one character set.
fn collation_of_pair(frame: &Frame<'_>, a: usize, b: usize) -> CollationId {
    compared_collation(frame.result(a), frame.result(b))
}

/// Position in characters, from 1, of a needle at or after character `from`; 0 if it is not
/// there.
fn position(collation: CollationId, text: &[u8], needle: &[u8], from: i64) -> i64 {
    let info = collation.info();
    let charset = info.charset;
    let Ok(skipped) = usize::try_from(from - 1) else { return 0 };
    if skipped > charset.character_count(text) {
        return 0;
    }
    let start = charset.byte_offset(text, skipped);
    match collation::find(info, text, needle, start) {
        Some(at) => charset.character_count(&text[..at]) as i64 + 1,
        None => 0,
    }
}

/// The first two texts, each looked at whatever the other is; none where one is NULL.
fn both<'a>(frame: &Frame<'a>) -> Result<Option<[&'a [u8]; 2]>, SqlError> {
    let (first, second) = (frame.text(0)?, frame.text(1)?);
    Ok(first.zip(second).map(<[_; 2]>::from))
}

fn locate(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some([needle, text]) = both(&frame)? else { return Ok(ValueRef::Null) };
    let from = if frame.count() > 2 {
        match frame.integer(2)? {
            Some(from) => from,
            None => return Ok(ValueRef::Null),
        }
    } else {
        1
    };
    let collation = collation_of_pair(&frame, 0, 1);
    if frame.count() > 2 && (from < 1 || from > text.len() as i64) {
        // Not even an empty text is found from behind the end, which is counted in bytes.
        return Ok(ValueRef::Int(0));
    }
    if needle.is_empty() && collation.charset().character_count(text) as i64 >= from - 1 {
        let before = collation.charset().byte_offset(text, (from - 1) as usize);
        return Ok(ValueRef::Int(before as i64 + 1));
    }
    Ok(ValueRef::Int(position(collation, text, needle, from)))
}

fn instr(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some([text, needle]) = both(&frame)? else { return Ok(ValueRef::Null) };
    let collation = collation_of_pair(&frame, 0, 1);
    Ok(ValueRef::Int(position(collation, text, needle, 1)))
}

fn resolve_replace(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let lengths: Vec<u64> = arguments.iter().map(|a| a.result.characters()).collect();
    // As if each character were replaced.
    let characters = lengths[0].saturating_mul(lengths[2].max(1)).min(u64::from(u32::MAX));
    compared_text(builder, function.name(), arguments, characters)
}

fn replace(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let Some(from) = frame.text(1)? else { return Ok(ValueRef::Null) };
    if from.is_empty() {
        return Ok(ValueRef::Bytes(text));
    }
    let collation = frame.collation();
    let charset = collation.charset;
    if (charset.is_single_byte() || collation.compares_code_points())
        && !text.windows(from.len()).any(|part| part == from)
    {
        return Ok(ValueRef::Bytes(text));
    }
    let Some(to) = frame.text(2)? else { return Ok(ValueRef::Null) };
    let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
    while at < text.len() {
        if text[at..].starts_with(from) {
            out.extend_from_slice(to);
            at += from.len();
        } else {
            let size = charset.character_bytes(&text[at..]);
            out.extend_from_slice(&text[at..at + size]);
            at += size;
        }
    }
    frame.keep_limited(&out)
}

fn resolve_insert(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let characters = arguments[0].result.characters() + arguments[3].result.characters();
    // The two texts are brought to one character set beside each other.
    arguments.swap(1, 3);
    let result = joined_text(builder, function, &mut arguments[..2], characters);
    arguments.swap(1, 3);
    result
}

fn insert(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    // All are computed, with their warnings, whichever is NULL.
    let (text, new) = (frame.text(0)?, frame.text(3)?);
    let (start, length) = (frame.integer(1)?, frame.integer(2)?);
    let (Some(text), Some(start), Some(length), Some(new)) = (text, start, length, new) else {
        return Ok(ValueRef::Null);
    };
    let charset = frame.collation().charset;
    let count = charset.character_count(text) as i64;
    if start < 1 || start > count {
        return Ok(ValueRef::Bytes(text));
    }
    let removed = if length < 0 { i64::MAX } else { length };
    let begin = charset.byte_offset(text, (start - 1) as usize);
    let rest = &text[begin..];
    let end = charset.byte_offset(rest, usize::try_from(removed).unwrap_or(usize::MAX));
    let mut out = text[..begin].to_vec();
    out.extend_from_slice(new);
    out.extend_from_slice(&rest[end..]);
    frame.keep_limited(&out)
}

fn resolve_field(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    if arguments.iter().all(is_text_or_null) {
        // All are compared by the one collation of all.
        let collation = compared(builder, function, arguments)?;
        let is_of_it = |it: &&mut Expr| {
            it.result.is_string() && it.result.collation().charset() == collation.charset()
        };
        for argument in arguments.iter_mut().filter(is_of_it) {
            argument.result.column_type.collation = collation;
        }
    } else {
        for argument in arguments.iter_mut() {
            *argument = text_as_double(argument.clone());
        }
    }
    Ok(int(3, false))
}

fn is_text_or_null(argument: &Expr) -> bool {
    let kind = argument.result.column_type.kind;
    kind.is_string() || kind.is_temporal() || kind == TypeKind::Null
}

/// The bits of a whole number.
fn bits(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Int(number) => Some(number as u64),
        ValueRef::UInt(number) => Some(number),
        _ => None,
    }
}

fn field(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let wanted = frame.value(0)?;
    if wanted.is_null() {
        return Ok(ValueRef::Int(0));
    }
    let texts = frame.arguments.iter().all(is_text_or_null);
    let domain = frame
        .arguments
        .iter()
        .map(|argument| Domain::of(&argument.result))
        .fold(Domain::Integer, Domain::join);
    for i in 1..frame.count() {
        let value = frame.value(i)?;
        if value.is_null() {
            continue;
        }
        let context = frame.context;
        let equal = if let (Domain::Integer, Some(a), Some(b)) = (domain, bits(wanted), bits(value))
        {
            // Whatever their signs are.
            a == b
        } else if texts {
            let collation = collation_of_pair(&frame, 0, i).info();
            let a = coerce::to_text(context, wanted, frame.result(0));
            collation.equal(a, coerce::to_text(context, value, frame.result(i)))
        } else if domain == Domain::Double {
            coerce::to_double(context, wanted, frame.result(0))?
                == coerce::to_double(context, value, frame.result(i))?
        } else {
            coerce::to_decimal(context, wanted, frame.result(0))?
                == coerce::to_decimal(context, value, frame.result(i))?
        };
        if equal {
            return Ok(ValueRef::Int(i as i64));
        }
    }
    Ok(ValueRef::Int(0))
}

fn resolve_elt(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let values = &mut arguments[1..];
    let characters = values.iter().map(|v| v.result.characters()).max().unwrap_or(0);
    let scale = values.iter().map(|v| v.result.of_expression().column_type.scale).max();
    let mut result = joined_text(builder, function, values, characters)?;
    result.column_type.scale = scale.unwrap_or(0);
    Ok(result)
}

fn elt(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let index = frame.integer(0)?.and_then(|index| usize::try_from(index).ok());
    match index {
        Some(index) if index >= 1 && index < frame.count() => {
            Ok(frame.text(index)?.map_or(ValueRef::Null, ValueRef::Bytes))
        }
        _ => Ok(ValueRef::Null),
    }
}

fn resolve_find_in_set(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    // Whether a text is brought to another character set does not count.
    let nullable = any_nullable(arguments);
    compared(builder, function, arguments)?;
    Ok(resolve_int_3(builder, function, arguments)?.with_nullable(nullable))
}

fn find_in_set(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some([wanted, list]) = both(&frame)? else { return Ok(ValueRef::Null) };
    if let Some(found) = find_member(&frame, wanted, list) {
        return Ok(ValueRef::Int(found));
    }
    if list.is_empty() || wanted.len() > list.len() || wanted.contains(&b',') {
        return Ok(ValueRef::Int(0));
    }
    let collation = collation_of_pair(&frame, 0, 1).info();
    let found =
        list.split(|&byte| byte == b',').position(|item| collation.equal_unpadded(item, wanted));
    Ok(ValueRef::Int(found.map_or(0, |i| i as i64 + 1)))
}

/// Of a column of SET a constant member has the place that its definition gives it, not the one
/// that it has in a value.
fn find_member(frame: &Frame<'_>, wanted: &[u8], list: &[u8]) -> Option<i64> {
    let is_column = matches!(frame.arguments[1].kind, ExprKind::Column { .. });
    let column_type = &frame.result(1).column_type;
    if !is_column || column_type.kind != TypeKind::Set || !frame.arguments[0].is_constant() {
        return None;
    }
    let names = column_type.members?.names();
    let place = names.iter().position(|name| name.eq_ignore_ascii_case(wanted))?;
    let bits = column_type.member_number(list)?;
    Some(if bits >> place & 1 == 1 { place as i64 + 1 } else { 0 })
}

fn resolve_substring_index(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let characters = arguments[0].result.characters();
    compared_text(builder, function.name(), &mut arguments[..2], characters)
}

fn substring_index(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let (texts, count) = (both(&frame)?, frame.integer(2)?);
    let (Some([text, delimiter]), Some(count)) = (texts, count) else {
        return Ok(ValueRef::Null);
    };
    if delimiter.is_empty() || count == 0 {
        return Ok(ValueRef::Bytes(b""));
    }
    let charset = frame.collation().charset;
    let (mut starts, mut at) = (Vec::new(), 0);
    while at < text.len() {
        if text[at..].starts_with(delimiter) {
            starts.push(at);
            at += delimiter.len();
        } else {
            at += charset.character_bytes(&text[at..]);
        }
    }
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if starts.len() < wanted {
        return Ok(ValueRef::Bytes(text));
    }
    Ok(ValueRef::Bytes(if count > 0 {
        &text[..starts[wanted - 1]]
    } else {
        &text[starts[starts.len() - wanted] + delimiter.len()..]
    }))
}

fn resolve_strcmp(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    // What brings them to one character set does not count.
    let nullable = any_nullable(arguments);
    compared(builder, function, arguments)?;
    Ok(int(2, nullable))
}

fn strcmp(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some([a, b]) = both(&frame)? else { return Ok(ValueRef::Null) };
    let order = collation_of_pair(&frame, 0, 1).info().compare(a, b);
    Ok(ValueRef::Int(order as i64))
}

fn resolve_make_set(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let values = &mut arguments[1..];
    let commas = values.len() as u64 - 1;
    let characters = values.iter().map(|v| v.result.characters()).sum::<u64>() + commas;
    joined_text(builder, function, values, characters)
}

fn make_set(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(bits) = frame.wide(0)? else { return Ok(ValueRef::Null) };
    let (mut out, mut first) = (Vec::new(), true);
    for i in 1..frame.count().min(65) {
        if bits as u64 >> (i - 1) & 1 == 0 {
            continue;
        }
        if let Some(text) = frame.text(i)? {
            if !first {
                out.push(b',');
            }
            out.extend_from_slice(text);
            first = false;
        }
    }
    Ok(frame.keep(&out))
}

fn resolve_export_set(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let longest = arguments[1].result.characters().max(arguments[2].result.characters());
    let separator = arguments.get(3).map_or(1, |a| a.result.characters());
    let end = arguments.len().min(4);
    let result =
        joined_text(builder, function, &mut arguments[1..end], longest * 64 + separator * 63)?;
    Ok(result)
}

fn export_set(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(bits) = frame.wide(0)? else { return Ok(ValueRef::Null) };
    let Some(on) = frame.text(1)? else { return Ok(ValueRef::Null) };
    let Some(off) = frame.text(2)? else { return Ok(ValueRef::Null) };
    let separator = if frame.count() > 3 { frame.text(3)? } else { Some(&b","[..]) };
    let Some(separator) = separator else { return Ok(ValueRef::Null) };
    let count = if frame.count() > 4 { frame.integer(4)? } else { Some(64) };
    let Some(count) = count else { return Ok(ValueRef::Null) };
    let count = if (0..=64).contains(&count) { count } else { 64 };
    let mut out = Vec::new();
    for i in 0..count {
        if i > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(if bits as u64 >> i & 1 == 1 { on } else { off });
    }
    Ok(frame.keep(&out))
}
