//! Addresses as numbers and bytes, and small functions of no other family.

use super::typing::{bytes, connection_text, int};
use super::{Frame, Function, MANY, control};
use crate::builder::Builder;
use crate::expression::Expr;
use crate::result_type::ResultType;
use std::net::{Ipv4Addr, Ipv6Addr};
use types::{CollationId, SqlError, ValueRef, Warning, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("inet_aton", 1, 1, resolve_aton, inet_aton),
    Function::new("inet_ntoa", 1, 1, resolve_ntoa, inet_ntoa),
    Function::new("inet6_aton", 1, 1, resolve_inet6_aton, inet6_aton),
    Function::new("inet6_ntoa", 1, 1, resolve_inet6_ntoa, inet6_ntoa),
    Function::new("is_ipv4", 1, 1, resolve_flag, is_ipv4),
    Function::new("is_ipv6", 1, 1, resolve_flag, is_ipv6),
    Function::new("is_ipv4_compat", 1, 1, resolve_flag, is_ipv4_compat),
    Function::new("is_ipv4_mapped", 1, 1, resolve_flag, is_ipv4_mapped),
    Function::new("uuid_short", 0, 0, resolve_uuid_short, uuid_short).volatile(),
    Function::new("get_format", 2, 2, resolve_get_format, get_format),
    Function::new("load_file", 1, 1, resolve_load_file, load_file),
    Function::new("nvl2", 3, 3, resolve_nvl2, nvl2),
    Function::new("chr", 1, 1, resolve_chr, chr),
    Function::new("lengthb", 1, 1, super::typing::resolve_int_10, lengthb),
    Function::new("name_const", 2, 2, resolve_second, second),
    Function::new("last_value", 1, MANY, resolve_last, last),
    Function::new("sys_guid", 0, 0, resolve_guid, sys_guid).volatile(),
];

type Resolved = Result<ResultType, SqlError>;

fn resolve_aton(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    let mut result = ResultType::bigint(true, true);
    result.column_type.length = 21;
    Ok(result)
}

/// The number of an address; the last parts of a short form stay last, and more than four are
/// counted on.
fn inet_aton(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let (mut number, mut part, mut parts, mut digits) = (0u64, 0u64, 0, 0);
    for byte in text {
        match byte {
            b'0'..=b'9' => {
                part = part * 10 + u64::from(byte - b'0');
                digits += 1;
                if part > 255 {
                    return Ok(ValueRef::Null);
                }
            }
            b'.' => {
                parts += 1;
                number = (number << 8).wrapping_add(part);
                (part, digits) = (0, 0);
            }
            _ => return Ok(ValueRef::Null),
        }
    }
    if digits == 0 {
        return Ok(ValueRef::Null);
    }
    number <<= match parts {
        1 => 16,
        2 => 8,
        _ => 0,
    };
    Ok(ValueRef::UInt((number << 8).wrapping_add(part)))
}

fn resolve_ntoa(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(connection_text(builder, 15))
}

fn inet_ntoa(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(number) = frame.wide(0)? else { return Ok(ValueRef::Null) };
    let Ok(number) = u32::try_from(number) else { return Ok(ValueRef::Null) };
    Ok(frame.keep(Ipv4Addr::from(number).to_string().as_bytes()))
}

fn resolve_inet6_aton(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(bytes(16))
}

fn ipv6(text: &[u8]) -> Option<Ipv6Addr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Four numbers of one to three digits; zeros may stand before them.
fn ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split(|byte| *byte == b'.');
    for octet in &mut octets {
        let part = parts.next().filter(|part| (1..=3).contains(&part.len()))?;
        let digits = part.iter().all(u8::is_ascii_digit);
        *octet = std::str::from_utf8(part).ok().filter(|_| digits)?.parse().ok()?;
    }
    parts.next().is_none().then_some(Ipv4Addr::from(octets))
}

fn inet6_aton(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    if let Some(address) = ipv4(text) {
        return Ok(frame.keep(&address.octets()));
    }
    Ok(ipv6(text).map_or(ValueRef::Null, |address| frame.keep(&address.octets())))
}

fn resolve_inet6_ntoa(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(connection_text(builder, 39))
}

fn inet6_ntoa(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let ValueRef::Bytes(bytes) = frame.value(0)? else { return Ok(ValueRef::Null) };
    if !is_binary(&frame) {
        return Ok(ValueRef::Null);
    }
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Ok(frame.keep(Ipv4Addr::from(octets).to_string().as_bytes()));
    }
    let Ok(octets) = <[u8; 16]>::try_from(bytes) else { return Ok(ValueRef::Null) };
    let address = Ipv6Addr::from(octets);
    let compat = address.segments()[..6] == [0; 6] && address.segments()[6] != 0;
    let text = match address.to_ipv4().filter(|_| compat) {
        Some(four) => format!("::{four}"),
        None => address.to_string(),
    };
    Ok(frame.keep(text.as_bytes()))
}

fn resolve_flag(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(int(1, super::any_nullable(arguments)))
}

fn flag<'a>(value: bool) -> Result<ValueRef<'a>, SqlError> {
    Ok(ValueRef::Int(value.into()))
}

fn is_ipv4(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    flag(frame.text(0)?.and_then(ipv4).is_some())
}

fn is_ipv6(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    flag(frame.text(0)?.and_then(ipv6).is_some())
}

/// The argument is bytes, not text.
fn is_binary(frame: &Frame<'_>) -> bool {
    frame.arguments[0].result.collation() == CollationId::BINARY
}

/// An address as 16 bytes or as text; warning 1292 of others.
fn segments(frame: &Frame<'_>) -> Result<Option<[u16; 8]>, SqlError> {
    let is_bytes = frame.arguments[0].result.column_type.kind.is_string() && is_binary(frame);
    let Some(bytes) = frame.text(0)? else { return Ok(None) };
    let address = match is_bytes {
        true => <[u8; 16]>::try_from(bytes).ok().map(Ipv6Addr::from),
        false => ipv6(bytes),
    };
    if address.is_none() {
        let shown: String = bytes.iter().map(shown_byte).collect();
        let mut warning = Warning::new(&codes::TRUNCATED_WRONG_VALUE, &[]);
        warning.message = format!("Incorrect inet6 value: '{shown}'");
        frame.context.push_warning(warning);
    }
    Ok(address.map(|address| address.segments()))
}

fn shown_byte(byte: &u8) -> String {
    match byte {
        b' '..=b'~' => char::from(*byte).to_string(),
        other => format!("\\x{other:02X}"),
    }
}

fn is_ipv4_compat(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    flag(segments(&frame)?.is_some_and(|it| it[..6] == [0; 6] && (it[6] != 0 || it[7] > 1)))
}

fn is_ipv4_mapped(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    flag(segments(&frame)?.is_some_and(|it| it[..6] == [0, 0, 0, 0, 0, 0xffff]))
}

fn resolve_uuid_short(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    let mut result = ResultType::bigint(true, false);
    result.column_type.length = 21;
    Ok(result)
}

/// The time in seconds, and a number within the session.
fn uuid_short(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let mut random = frame.context.random.borrow_mut();
    random.uuid_sequence += 1;
    let seconds = (frame.context.now.0.max(0) / 1_000_000) as u64;
    let session = frame.context.facts.connection_id & 0x3fff;
    Ok(ValueRef::UInt(seconds << 24 | session << 10 | random.uuid_sequence & 0x3ff))
}

fn resolve_get_format(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(connection_text(builder, 17))
}

/// Formats of GET_FORMAT: standard, date, time, date and time.
const FORMATS: [(&str, &str, &str, &str); 5] = [
    ("USA", "%m.%d.%Y", "%h:%i:%s %p", "%Y-%m-%d %H.%i.%s"),
    ("JIS", "%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"),
    ("ISO", "%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"),
    ("EUR", "%d.%m.%Y", "%H.%i.%s", "%Y-%m-%d %H.%i.%s"),
    ("INTERNAL", "%Y%m%d", "%H%i%s", "%Y%m%d%H%i%s"),
];

fn get_format(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let (Some(kind), Some(standard)) = (frame.text(0)?, frame.text(1)?) else {
        return Ok(ValueRef::Null);
    };
    let is_named = |name: &str| name.as_bytes().eq_ignore_ascii_case(standard);
    let found = FORMATS.iter().find(|(name, ..)| is_named(name));
    Ok(found.map_or(ValueRef::Null, |(_, date, time, both)| {
        ValueRef::Bytes(match kind {
            b"DATE" => date.as_bytes(),
            b"TIME" => time.as_bytes(),
            _ => both.as_bytes(),
        })
    }))
}

fn resolve_load_file(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(bytes(u64::from(u32::MAX)))
}

/// No file of the server is read: as with a `secure_file_priv` that names no directory.
fn load_file(_: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(ValueRef::Null)
}

fn resolve_nvl2(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let nullable = super::any_nullable(arguments);
    let result = control::common_result(builder, "nvl2", &mut arguments[1..])?;
    Ok(result.with_nullable(nullable))
}

fn nvl2(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let chosen = if frame.value(0)?.is_null() { 2 } else { 1 };
    control::converted(frame.expr, &frame.arguments[chosen], frame.context, frame.row)
}

fn resolve_chr(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(connection_text(builder, 4))
}

/// The bytes of a number, as CHAR() makes them.
fn chr(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(number) = frame.wide(0)? else { return Ok(ValueRef::Null) };
    let bytes = (number as u32).to_be_bytes();
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(3);
    let ValueRef::Bytes(text) = frame.keep(&bytes[start..]) else { return Ok(ValueRef::Null) };
    super::cast::characters_of_numbers(text, frame.collation().charset, frame.context)
}

fn lengthb(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(frame.text(0)?.map_or(ValueRef::Null, |text| ValueRef::Int(text.len() as i64)))
}

fn resolve_second(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(arguments[1].result)
}

fn second(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    frame.value(1)
}

fn resolve_last(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(arguments.last().map_or_else(ResultType::null, |argument| argument.result.of_expression()))
}

fn last(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    for at in 0..frame.count() - 1 {
        frame.value(at)?;
    }
    frame.value(frame.count() - 1)
}

fn resolve_guid(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(connection_text(builder, 32))
}

fn sys_guid(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let mut random = frame.context.random.borrow_mut();
    let mut part = || (random.session.next_f64() * f64::from(u32::MAX)) as u32;
    let text = format!("{:08x}{:08x}{:08x}{:08x}", part(), part(), part(), part());
    Ok(frame.keep(text.as_bytes()))
}
