//! DATE_FORMAT, TIME_FORMAT and STR_TO_DATE.

use super::temporal_typing::{date_result, datetime_result, refuse_json, time_result};
use super::typing::{connection_text, plain};
use super::{Frame, Function, Nature};
use crate::builder::{Builder, Strength};
use crate::coerce;
use crate::expression::{Expr, ExprKind};
use crate::result_type::{Coercibility, ResultType};
use crate::temporal;
use types::temporal::{
    DateRules, parse_by_format, write_date_format, write_time_format, write_zero_date_format,
};
use types::{CollationId, DateTime, SqlError, TypeKind, Value, ValueRef, Warning, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("date_format", 2, 3, resolve_format, date_format),
    Function::new("time_format", 2, 2, resolve_format, time_format),
    Function::new("str_to_date", 2, 2, resolve_str_to_date, str_to_date).being(Nature::ReadDate),
];

type Resolved = Result<ResultType, SqlError>;
type Evaluated<'a> = Result<ValueRef<'a>, SqlError>;

fn resolve_format(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(format_result(builder, &arguments[1]))
}

/// Longest text that a format gives.
pub(super) fn format_result(builder: &Builder<'_>, format: &Expr) -> ResultType {
    let characters = match format.literal() {
        Some(Value::Bytes(text)) => format_characters(text),
        Some(_) => 0,
        None => format.result.column_type.max_bytes() * 10,
    };
    let own = Strength::of_text(builder, &format.result);
    let result = plain(connection_text(builder, characters));
    ResultType { coercibility: own.coercibility.min(Coercibility::Coercible), ..result }
}

fn format_characters(format: &[u8]) -> u64 {
    let (mut total, mut at) = (0, 0);
    while at < format.len() {
        if format[at] != b'%' || at + 1 == format.len() {
            total += 1;
            at += 1;
            continue;
        }
        total += match format[at + 1] {
            b'M' | b'W' => 64,
            b'D' | b'Y' | b'x' | b'X' => 4,
            b'a' | b'b' => 32,
            b'j' => 3,
            b'u' | b'U' | b'v' | b'V' | b'y' | b'm' | b'd' | b'h' | b'i' | b'I' | b'l' | b'p'
            | b'S' | b's' | b'c' | b'e' => 2,
            b'k' | b'H' => 7,
            b'r' => 11,
            b'T' => 8,
            b'f' => 6,
            _ => 1,
        };
        at += 2;
    }
    total
}

/// A date and time in a format; NULL for an empty format.
pub(super) fn formatted<'a>(frame: &Frame<'a>, moment: DateTime, format: &[u8]) -> Evaluated<'a> {
    let mut out = Vec::new();
    if format.is_empty() || !write_date_format(moment, format, &mut out) {
        return Ok(ValueRef::Null);
    }
    Ok(frame.keep(&out))
}

fn date_format(frame: Frame<'_>) -> Evaluated<'_> {
    if frame.result(0).column_type.kind == TypeKind::Time {
        return time_by(&frame, write_zero_date_format);
    }
    let Some(moment) = frame.datetime(0, temporal::zeros_allowed(frame.context))? else {
        return Ok(ValueRef::Null);
    };
    let Some(format) = frame.text(1)? else { return Ok(ValueRef::Null) };
    formatted(&frame, moment, format)
}

fn time_format(frame: Frame<'_>) -> Evaluated<'_> {
    time_by(&frame, write_time_format)
}

fn time_by<'a>(
    frame: &Frame<'a>,
    write: fn(types::Time, &[u8], &mut Vec<u8>) -> bool,
) -> Evaluated<'a> {
    let Some(time) = frame.time(0)? else { return Ok(ValueRef::Null) };
    let Some(format) = frame.text(1)? else { return Ok(ValueRef::Null) };
    let mut out = Vec::new();
    if format.is_empty() || !write(time, format, &mut out) {
        return Ok(ValueRef::Null);
    }
    Ok(frame.keep(&out))
}

fn resolve_str_to_date(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    refuse_json(function, arguments)?;
    // The server does not take GET_FORMAT for a constant.
    let is_named = matches!(&arguments[1].kind, ExprKind::Call { function, .. }
        if function.name() == "get_format");
    let known = if is_named { None } else { builder.settled_value(&arguments[1]) };
    let format = match known {
        Some(Value::Bytes(format)) => format,
        None | Some(Value::Null) => return Ok(datetime_result(6, true)),
        // A number or a date asks for nothing.
        Some(_) => Vec::new(),
    };
    let specifiers: Vec<u8> =
        format.windows(2).filter(|pair| pair[0] == b'%').map(|pair| pair[1]).collect();
    let has = |set: &[u8]| specifiers.iter().any(|letter| set.contains(letter));
    let date = has(b"MbmcdDeYyjuUvVxXaWw");
    let time = has(b"HkhIliSspTrf");
    let scale = if has(b"f") { 6 } else { 0 };
    Ok(match (date, time) {
        (true, true) => datetime_result(scale, true),
        (false, true) => time_result(scale, true),
        _ => date_result(true),
    })
}

fn str_to_date(frame: Frame<'_>) -> Evaluated<'_> {
    str_to_date_by(frame, DateRules::default())
}

/// As much of a text as messages of STR_TO_DATE show.
const SHOWN_BYTES: usize = 127;

/// STR_TO_DATE whose date must follow the session's rules and others.
pub(crate) fn str_to_date_by(frame: Frame<'_>, wanted: DateRules) -> Evaluated<'_> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let Some(format) = frame.text(1)? else { return Ok(ValueRef::Null) };
    let kind = frame.expr.result.column_type.kind;
    let mut rules = temporal::session_rules(frame.context);
    rules.no_zero_date |= wanted.no_zero_date;
    rules.no_zero_in_date |= wanted.no_zero_in_date;
    let found = parse_by_format(text, format).filter(|(moment, _)| {
        let is_zero = moment.0 == 0;
        kind == TypeKind::Time
            || !(rules.no_zero_date && is_zero
                || rules.no_zero_in_date
                    && !is_zero
                    && (moment.date().month() == 0 || moment.date().day() == 0))
    });
    // The server's message ends before what is no text of its own character set, and where a text
    // of its own would.
    let shown = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let is_end = |letter: char| letter.len_utf8() == 4 || letter == '\0';
    let cut = shown.find(is_end).unwrap_or(shown.len());
    let cut = shown.floor_char_boundary(cut.min(SHOWN_BYTES));
    let shown = coerce::shown_text(
        &shown.as_bytes()[..cut],
        &ResultType::string(
            0,
            CollationId::UTF8MB4_GENERAL_CI,
            Coercibility::Coercible,
            false,
            false,
        ),
    );
    let Some((moment, complete)) = found else {
        let arguments: [&dyn std::fmt::Display; 3] = [&"datetime", &shown, &"str_to_date"];
        if frame.context.warnings_are_errors.get() {
            return Err(SqlError::new(&codes::WRONG_VALUE_FOR_TYPE, &arguments));
        }
        frame.context.push_warning(Warning::new(&codes::WRONG_VALUE_FOR_TYPE, &arguments));
        return Ok(ValueRef::Null);
    };
    if !complete {
        let name = match kind {
            TypeKind::Date => "date",
            TypeKind::Time => "time",
            _ => "datetime",
        };
        // This message shows bytes.
        let shown = types::convert::shown_text(text, types::Charset::Binary);
        frame.context.warn(&codes::TRUNCATED_WRONG_VALUE, &[&name, &shown])?;
    }
    Ok(match kind {
        TypeKind::Date => ValueRef::Date(moment.date()),
        TypeKind::Time => ValueRef::Time(moment.time()),
        _ => ValueRef::DateTime(moment),
    })
}
