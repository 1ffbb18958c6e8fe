//! Addresses as numbers and bytes, and small functions of no other family.

use super::typing::{any_text, bytes, connection_text, plain};
use super::{Frame, Function, MANY, control};
use crate::builder::Builder;
use crate::expression::{Expr, ExprKind};
use crate::result_type::{Coercibility, ResultType};
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
    Function::new("name_const", 2, 2, resolve_name_const, second),
    Function::new("last_value", 1, MANY, resolve_last, last),
    Function::new("sys_guid", 0, 0, resolve_guid, sys_guid).volatile(),
];

type Resolved = Result<ResultType, SqlError>;

fn resolve_aton(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(ResultType::integer_of_length(21, true, true))
}

/// The number of an address; the last parts of a short form stay last. Of one with more than
/// eight parts the last count.
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
    Ok(plain(any_text(builder, 15)))
}

fn inet_ntoa(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(number) = frame.wide(0)? else { return Ok(ValueRef::Null) };
    let Ok(number) = u32::try_from(number) else { return Ok(ValueRef::Null) };
    Ok(frame.keep(Ipv4Addr::from(number).to_string().as_bytes()))
}

fn resolve_inet6_aton(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(bytes(16))
}

/// The longest text of an IPv4 address, and the shortest.
const IPV4_CHARACTERS: std::ops::RangeInclusive<usize> = 7..=15;

/// An IPv4 address; its numbers may begin with 0.
fn parse_ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split(|byte| *byte == b'.');
    for octet in &mut octets {
        let digits = parts.next().filter(|digits| (1..=3).contains(&digits.len()))?;
        let decimal = digits.iter().all(u8::is_ascii_digit);
        *octet = std::str::from_utf8(digits).ok().filter(|_| decimal)?.parse().ok()?;
    }
    let whole = parts.next().is_none() && IPV4_CHARACTERS.contains(&text.len());
    whole.then(|| octets.into())
}

/// An IPv6 address, which may end as an IPv4 address.
fn parse_ipv6(text: &[u8]) -> Option<Ipv6Addr> {
    let colon = text.iter().rposition(|byte| *byte == b':')?;
    let (head, tail) = text.split_at(colon + 1);
    let head = std::str::from_utf8(head).ok()?;
    match parse_ipv4(tail) {
        Some(four) => format!("{head}{four}").parse().ok(),
        None => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

fn inet6_aton(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    if let Some(address) = parse_ipv4(text) {
        return Ok(frame.keep(&address.octets()));
    }
    let address = parse_ipv6(text);
    Ok(address.map_or(ValueRef::Null, |address| frame.keep(&address.octets())))
}

fn resolve_inet6_ntoa(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(any_text(builder, 39))
}

fn inet6_ntoa(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let ValueRef::Bytes(bytes) = frame.value(0)? else { return Ok(ValueRef::Null) };
    if frame.result(0).collation() != CollationId::BINARY {
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
    Ok(ResultType::boolean(super::any_nullable(arguments)))
}

fn flag<'a>(value: bool) -> Result<ValueRef<'a>, SqlError> {
    Ok(ValueRef::Int(value.into()))
}

fn is_ipv4(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    flag(frame.text(0)?.and_then(parse_ipv4).is_some())
}

fn is_ipv6(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    flag(frame.text(0)?.and_then(parse_ipv6).is_some())
}

/// The segments of an IPv6 address, as its bytes or as text; warns of what is none.
fn segments(frame: &Frame<'_>) -> Result<Option<[u16; 8]>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(None) };
    let result = frame.result(0);
    let address = if result.is_string() && result.collation() == CollationId::BINARY {
        <[u8; 16]>::try_from(text).ok().map(Ipv6Addr::from)
    } else {
        parse_ipv6(text)
    };
    if address.is_none() {
        let shown = crate::coerce::printable(text);
        let message = codes::WRONG_VALUE.message(&[&"inet6", &shown]);
        if frame.context.warnings_are_errors.get() {
            return Err(SqlError::with_message(&codes::TRUNCATED_WRONG_VALUE, message));
        }
        let warning = Warning::new(&codes::TRUNCATED_WRONG_VALUE, &[]);
        frame.context.push_warning(Warning { message, ..warning });
    }
    Ok(address.map(|address| address.segments()))
}

fn is_ipv4_compat(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    flag(segments(&frame)?.is_some_and(|it| it[..6] == [0; 6] && (it[6] != 0 || it[7] > 1)))
}

fn is_ipv4_mapped(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    flag(segments(&frame)?.is_some_and(|it| it[..6] == [0, 0, 0, 0, 0, 0xffff]))
}

fn resolve_uuid_short(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(ResultType::integer_of_length(21, true, false))
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

fn resolve_nvl2(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let nullable = super::any_nullable(arguments);
    let result = control::one_of_two(builder, function, &mut arguments[1..])?;
    Ok(result.with_nullable(nullable))
}

fn nvl2(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let chosen = if frame.value(0)?.is_null() { 2 } else { 1 };
    control::converted(frame.expr, &frame.arguments[chosen], frame.context, frame.row)
}

fn resolve_chr(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(any_text(builder, 4))
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

/// Takes a constant name and a literal, which may have a collation: else 1210.
fn resolve_name_const(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let literal = match &arguments[1].kind {
        ExprKind::ConvertText(inner) => inner.literal(),
        _ => arguments[1].literal(),
    };
    if literal.is_none() || !arguments[0].is_constant() {
        return Err(SqlError::new(&codes::WRONG_ARGUMENTS, &[&"NAME_CONST"]));
    }
    let mut result = arguments[1].result;
    if result.coercibility == Coercibility::Coercible {
        result.coercibility = Coercibility::Implicit;
    }
    Ok(result)
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
