//! Texts: joining, cutting, case, padding, trimming, length.

use super::typing::{
    UNKNOWN_CHARACTERS, argument_bytes, compared_text, connection_text, constant_integer,
    joined_text, resolve_int_10, resolve_text_like, text_like,
};
use super::{Frame, Function, MANY};
use crate::builder::Builder;
use crate::expression::Expr;
use crate::result_type::ResultType;
use types::{SqlError, ValueRef, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("concat", 1, MANY, resolve_concat, concat),
    Function::new("concat_ws", 2, MANY, resolve_concat_ws, concat_ws),
    Function::new("substring", 2, 3, resolve_substring, substring),
    Function::new("substr", 2, 3, resolve_substring, substring),
    Function::new("mid", 2, 3, resolve_substring, substring),
    Function::new("left", 2, 2, resolve_left, left),
    Function::new("right", 2, 2, resolve_left, right),
    Function::new("length", 1, 1, resolve_int_10, length),
    Function::new("octet_length", 1, 1, resolve_int_10, length),
    Function::new("bit_length", 1, 1, resolve_bit_length, bit_length),
    Function::new("char_length", 1, 1, resolve_int_10, char_length),
    Function::new("character_length", 1, 1, resolve_int_10, char_length),
    Function::new("upper", 1, 1, resolve_text_like, upper),
    Function::new("ucase", 1, 1, resolve_text_like, upper),
    Function::new("lower", 1, 1, resolve_text_like, lower),
    Function::new("lcase", 1, 1, resolve_text_like, lower),
    Function::new("trim", 1, 2, resolve_trim, trim),
    Function::new("trim_leading", 1, 2, resolve_trim, ltrim),
    Function::new("trim_trailing", 1, 2, resolve_trim, rtrim),
    Function::new("ltrim", 1, 1, resolve_trim, ltrim),
    Function::new("rtrim", 1, 1, resolve_trim, rtrim),
    Function::new("lpad", 2, 3, resolve_pad, lpad),
    Function::new("rpad", 2, 3, resolve_pad, rpad),
    Function::new("repeat", 2, 2, resolve_repeat, repeat),
    Function::new("space", 1, 1, resolve_space, space),
    Function::new("reverse", 1, 1, resolve_text_like, reverse),
];

type Resolved = Result<ResultType, SqlError>;

fn total_characters(arguments: &[Expr]) -> u64 {
    arguments.iter().map(|argument| argument.result.characters()).sum()
}

fn resolve_concat(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let characters = total_characters(arguments);
    joined_text(builder, function, arguments, characters)
}

fn concat(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    if frame.count() == 1 {
        return Ok(frame.text(0)?.map_or(ValueRef::Null, ValueRef::Bytes));
    }
    let mut out = Vec::new();
    for i in 0..frame.count() {
        match frame.text(i)? {
            Some(text) => out.extend_from_slice(text),
            None => return Ok(ValueRef::Null),
        }
    }
    frame.keep_limited(&out)
}

fn resolve_concat_ws(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let separators = arguments.len().saturating_sub(2) as u64;
    let characters =
        total_characters(&arguments[1..]) + separators * arguments[0].result.characters();
    joined_text(builder, function, arguments, characters)
}

fn concat_ws(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(separator) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let (mut out, mut first) = (Vec::new(), true);
    for i in 1..frame.count() {
        if let Some(text) = frame.text(i)? {
            if !first {
                out.extend_from_slice(separator);
            }
            out.extend_from_slice(text);
            first = false;
        }
    }
    frame.keep_limited(&out)
}

fn resolve_substring(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    // The server counts the bytes of the longest text as if they were characters.
    let mut longest = argument_bytes(&arguments[0]);
    let is_null = |argument: &Expr| argument.literal().is_some_and(types::Value::is_null);
    match constant_integer(builder, arguments.get(1)) {
        Some(0) => longest = 0,
        Some(start) if start < 0 => longest = longest.min(start.unsigned_abs()),
        Some(start) => longest = longest.saturating_sub(start.unsigned_abs() - 1),
        None if is_null(&arguments[1]) => longest = 0,
        None => {}
    }
    if let Some(length) = constant_integer(builder, arguments.get(2)) {
        longest = longest.min(length.max(0).unsigned_abs());
    }
    let mut result = text_like(builder, &arguments[0], longest);
    let from = arguments[0].result.column_type.kind;
    if from.is_large() && !result.column_type.kind.is_large() && longest > 21_844 {
        result.column_type.kind = from;
    }
    Ok(result)
}

fn substring(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let Some(start) = frame.integer(1)? else { return Ok(ValueRef::Null) };
    let length = if frame.count() > 2 {
        match frame.integer(2)? {
            Some(length) => length,
            None => return Ok(ValueRef::Null),
        }
    } else {
        i64::MAX
    };
    let charset = frame.collation().charset;
    let first = if start < 0 {
        let count = charset.character_count(text) as i64;
        count + start
    } else {
        start - 1
    };
    if first < 0 || length <= 0 {
        return Ok(ValueRef::Bytes(b""));
    }
    let begin = charset.byte_offset(text, usize::try_from(first).unwrap_or(usize::MAX));
    let rest = &text[begin..];
    let end = charset.byte_offset(rest, usize::try_from(length).unwrap_or(usize::MAX));
    Ok(ValueRef::Bytes(&rest[..end]))
}

fn resolve_left(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let mut characters = arguments[0].result.characters();
    match constant_integer(builder, arguments.get(1)) {
        Some(count) => characters = characters.min(count.max(0).unsigned_abs()),
        None if arguments[1].literal().is_some() => characters = 0,
        None => {}
    }
    Ok(text_like(builder, &arguments[0], characters))
}

/// The text and the number of characters asked for.
fn text_and_count<'a>(frame: &Frame<'a>) -> Result<Option<(&'a [u8], usize)>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(None) };
    let Some(count) = frame.integer(1)? else { return Ok(None) };
    Ok(Some((text, usize::try_from(count).unwrap_or(0))))
}

fn left(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some((text, count)) = text_and_count(&frame)? else { return Ok(ValueRef::Null) };
    let end = frame.collation().charset.byte_offset(text, count);
    Ok(ValueRef::Bytes(&text[..end]))
}

fn right(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some((text, count)) = text_and_count(&frame)? else { return Ok(ValueRef::Null) };
    let charset = frame.collation().charset;
    let skipped = charset.character_count(text).saturating_sub(count);
    Ok(ValueRef::Bytes(&text[charset.byte_offset(text, skipped)..]))
}

fn length(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(frame.text(0)?.map_or(ValueRef::Null, |text| ValueRef::Int(text.len() as i64)))
}

fn resolve_bit_length(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(ResultType::integer_of_length(11, false, arguments[0].result.nullable))
}

fn bit_length(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(frame.text(0)?.map_or(ValueRef::Null, |text| ValueRef::Int(8 * text.len() as i64)))
}

fn char_length(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let result = frame.result(0);
    let count = if result.is_string() {
        result.collation().charset().character_count(text)
    } else {
        text.len()
    };
    Ok(ValueRef::Int(count as i64))
}

fn upper(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let mut out = Vec::with_capacity(text.len());
    frame.collation().push_upper(text, &mut out);
    Ok(frame.keep(&out))
}

fn lower(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let mut out = Vec::with_capacity(text.len());
    frame.collation().push_lower(text, &mut out);
    Ok(frame.keep(&out))
}

fn resolve_trim(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let characters = arguments[0].result.characters();
    if arguments.len() > 1 {
        let operation = match function.name() {
            "trim_leading" => "ltrim",
            "trim_trailing" => "rtrim",
            name => name,
        };
        // The texts in the order in which they are written.
        arguments.swap(0, 1);
        let result = compared_text(builder, operation, arguments, characters);
        arguments.swap(0, 1);
        return result;
    }
    Ok(text_like(builder, &arguments[0], characters))
}

/// A text and what is trimmed from it.
type TrimOperands<'a> = (&'a [u8], &'a [u8]);

/// The text and what is trimmed from it; `None` for NULL.
fn trim_operands<'a>(frame: &Frame<'a>) -> Result<Option<TrimOperands<'a>>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(None) };
    let remove = if frame.count() > 1 { frame.text(1)? } else { Some(&b" "[..]) };
    Ok(remove.map(|remove| (text, remove)))
}

fn without_leading<'a>(mut text: &'a [u8], remove: &[u8]) -> &'a [u8] {
    while !remove.is_empty() && text.starts_with(remove) {
        text = &text[remove.len()..];
    }
    text
}

fn without_trailing<'a>(mut text: &'a [u8], remove: &[u8]) -> &'a [u8] {
    while !remove.is_empty() && text.ends_with(remove) {
        text = &text[..text.len() - remove.len()];
    }
    text
}

fn trim(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(trim_operands(&frame)?.map_or(ValueRef::Null, |(text, remove)| {
        ValueRef::Bytes(without_trailing(without_leading(text, remove), remove))
    }))
}

fn ltrim(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(trim_operands(&frame)?
        .map_or(ValueRef::Null, |(text, remove)| ValueRef::Bytes(without_leading(text, remove))))
}

fn rtrim(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(trim_operands(&frame)?
        .map_or(ValueRef::Null, |(text, remove)| ValueRef::Bytes(without_trailing(text, remove))))
}

/// Characters of a result whose number an argument says.
fn asked_characters(builder: &Builder<'_>, argument: &Expr) -> u64 {
    match constant_integer(builder, Some(argument)) {
        Some(count) => count.max(0).unsigned_abs().min(UNKNOWN_CHARACTERS),
        None if argument.literal().is_some() => 0,
        None => UNKNOWN_CHARACTERS,
    }
}

fn resolve_pad(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let characters = asked_characters(builder, &arguments[1]);
    if arguments.len() < 3 {
        return Ok(text_like(builder, &arguments[0], characters));
    }
    // The two texts are brought to one character set beside each other.
    arguments.swap(1, 2);
    let result = joined_text(builder, function, &mut arguments[..2], characters);
    arguments.swap(1, 2);
    result
}

/// Text, padding and characters wanted; `None` for NULL, `Err` of the outer result for a text
/// that is already long enough, cut.
fn padding<'a>(frame: &Frame<'a>) -> Result<Option<Padding<'a>>, SqlError> {
    // Each is looked at whatever the others are.
    let (text, wanted) = (frame.text(0)?, frame.integer(1)?);
    let pad = if frame.count() > 2 { frame.text(2)? } else { Some(&b" "[..]) };
    let (Some(text), Some(wanted), Some(pad)) = (text, wanted, pad) else { return Ok(None) };
    let Ok(wanted) = usize::try_from(wanted) else { return Ok(None) };
    let charset = frame.collation().charset;
    let count = charset.character_count(text);
    if wanted <= count {
        let end = charset.byte_offset(text, wanted);
        return Ok(Some(Padding { text: &text[..end], pad: Vec::new() }));
    }
    if pad.is_empty() {
        return Ok(None);
    }
    let missing = wanted - count;
    let bytes_wanted = (missing as u64) * u64::from(charset.max_bytes());
    if bytes_wanted > frame.context.settings.max_allowed_packet as u64 {
        packet_warning(frame)?;
        return Ok(None);
    }
    let pad_count = charset.character_count(pad);
    let mut filled = pad.repeat(missing / pad_count);
    filled.extend_from_slice(&pad[..charset.byte_offset(pad, missing % pad_count)]);
    Ok(Some(Padding { text, pad: filled }))
}

struct Padding<'a> {
    text: &'a [u8],
    pad: Vec<u8>,
}

fn lpad(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(match padding(&frame)? {
        None => ValueRef::Null,
        Some(found) if found.pad.is_empty() => ValueRef::Bytes(found.text),
        Some(mut found) => {
            found.pad.extend_from_slice(found.text);
            frame.keep(&found.pad)
        }
    })
}

fn rpad(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(match padding(&frame)? {
        None => ValueRef::Null,
        Some(found) if found.pad.is_empty() => ValueRef::Bytes(found.text),
        Some(found) => {
            let mut out = found.text.to_vec();
            out.extend_from_slice(&found.pad);
            frame.keep(&out)
        }
    })
}

/// Warns that a result would be longer than a packet may be.
fn packet_warning(frame: &Frame<'_>) -> Result<(), SqlError> {
    let name = match &frame.expr.kind {
        crate::ExprKind::Call { function, .. } => function.name(),
        _ => "",
    };
    let limit = frame.context.settings.max_allowed_packet;
    frame.context.warn(&codes::WARN_ALLOWED_PACKET_OVERFLOWED, &[&name, &limit])
}

fn resolve_repeat(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let characters = match constant_integer(builder, arguments.get(1)) {
        Some(count) => {
            let count = count.max(0).unsigned_abs();
            arguments[0].result.characters().saturating_mul(count).min(UNKNOWN_CHARACTERS)
        }
        None => asked_characters(builder, &arguments[1]),
    };
    Ok(text_like(builder, &arguments[0], characters))
}

fn repeat(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some((text, count)) = text_and_count(&frame)? else { return Ok(ValueRef::Null) };
    if text.len().saturating_mul(count) > frame.context.settings.max_allowed_packet {
        packet_warning(&frame)?;
        return Ok(ValueRef::Null);
    }
    Ok(frame.keep(&text.repeat(count)))
}

fn resolve_space(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(connection_text(builder, asked_characters(builder, &arguments[0])))
}

fn space(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(count) = frame.integer(0)? else { return Ok(ValueRef::Null) };
    let count = usize::try_from(count).unwrap_or(0);
    if count > frame.context.settings.max_allowed_packet {
        packet_warning(&frame)?;
        return Ok(ValueRef::Null);
    }
    Ok(frame.keep(&b" ".repeat(count)))
}

fn reverse(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let charset = frame.collation().charset;
    let mut out = vec![0; text.len()];
    let (mut at, mut end) = (0, text.len());
    while at < text.len() {
        let size = charset.character_bytes(&text[at..]);
        out[end - size..end].copy_from_slice(&text[at..at + size]);
        at += size;
        end -= size;
    }
    Ok(frame.keep(&out))
}
