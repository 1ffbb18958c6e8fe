//! What the session and the server are.

use super::typing::int;
use super::{Frame, Function};
use crate::builder::Builder;
use crate::context::SessionFacts;
use crate::expression::Expr;
use crate::result_type::{Coercibility, ResultType};
use types::{CollationId, SqlError, ValueRef, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("database", 0, 0, resolve_database, database),
    Function::new("schema", 0, 0, resolve_database, database),
    Function::new("user", 0, 0, resolve_user, user),
    Function::new("session_user", 0, 0, resolve_user, user),
    Function::new("system_user", 0, 0, resolve_user, user),
    Function::new("current_user", 0, 0, resolve_user, current_user),
    Function::new("current_role", 0, 0, resolve_user, current_role),
    Function::new("version", 0, 0, resolve_version, version),
    Function::new("connection_id", 0, 0, resolve_connection_id, connection_id),
    Function::new("last_insert_id", 0, 1, resolve_last_insert_id, last_insert_id),
    Function::new("found_rows", 0, 0, resolve_count, found_rows),
    Function::new("row_count", 0, 0, resolve_count, row_count),
    Function::new("uuid", 0, 0, resolve_uuid, uuid).volatile(),
    Function::new("benchmark", 2, 2, resolve_benchmark, benchmark).volatile(),
];

type Resolved = Result<ResultType, SqlError>;

/// Names are utf8mb3 with the strength of system constants.
fn system_text(characters: u64, nullable: bool) -> ResultType {
    let collation = CollationId(33);
    let coercibility = Coercibility::SystemConstant;
    ResultType::string(characters, collation, coercibility, false, nullable)
}

fn resolve_database(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(system_text(64, true))
}

fn database(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let name = frame.context.facts.database.as_ref();
    Ok(name.map_or(ValueRef::Null, |name| ValueRef::Bytes(name.as_bytes())))
}

fn resolve_user(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(system_text(384, true))
}

fn fact<'a>(frame: &Frame<'a>, of: fn(&SessionFacts) -> &String) -> ValueRef<'a> {
    ValueRef::Bytes(of(&frame.context.facts).as_bytes())
}

fn user(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(fact(&frame, |facts| &facts.user))
}

fn current_user(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(fact(&frame, |facts| &facts.current_user))
}

fn current_role(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let role = frame.context.facts.current_role.as_ref();
    Ok(role.map_or(ValueRef::Null, |role| ValueRef::Bytes(role.as_bytes())))
}

fn resolve_version(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(system_text(26, false))
}

fn version(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(fact(&frame, |facts| &facts.version))
}

fn resolve_connection_id(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    let mut result = ResultType::bigint(true, false);
    result.column_type.length = 10;
    Ok(result)
}

fn connection_id(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(ValueRef::UInt(frame.context.facts.connection_id))
}

fn resolve_last_insert_id(
    _: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let mut result = ResultType::integer_of_length(21, true, false);
    if let Some(argument) = arguments.first() {
        result.column_type.length = argument.result.text_length();
        result.nullable = argument.result.nullable;
    }
    Ok(result)
}

fn last_insert_id(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    if frame.count() == 0 {
        return Ok(ValueRef::UInt(frame.context.facts.last_insert_id));
    }
    let value = frame.wide(0)?;
    frame.context.assigned_insert_id.set(Some(value.unwrap_or(0) as u64));
    Ok(value.map_or(ValueRef::Null, |value| ValueRef::UInt(value as u64)))
}

fn resolve_count(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(ResultType::integer_of_length(21, false, false))
}

fn found_rows(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(ValueRef::Int(frame.context.facts.found_rows as i64))
}

fn row_count(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(ValueRef::Int(frame.context.facts.row_count))
}

fn resolve_uuid(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    let collation = types::collation::default_of(types::Charset::Latin1).id;
    Ok(ResultType::string(36, collation, Coercibility::Numeric, true, true))
}

/// 100 ns units from 1582-10-15 to 1970-01-01.
const UUID_EPOCH: u64 = 122_192_928_000_000_000;

/// Version 1: time, a sequence that never repeats within a session, and a random node.
fn uuid(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let mut random = frame.context.random.borrow_mut();
    random.uuid_sequence += 1;
    let micros = frame.context.now.0.max(0) as u64;
    let time = UUID_EPOCH + micros * 10 + random.uuid_sequence;
    let high = (random.session.next_f64() * f64::from(1u32 << 30)) as u64;
    let low = (random.session.next_f64() * f64::from(1u32 << 30)) as u64;
    let node = (frame.context.facts.connection_id << 30 ^ high) & 0xffff_ffff_ffff;
    let text = format!(
        "{:08x}-{:04x}-1{:03x}-{:04x}-{node:012x}",
        time & 0xffff_ffff,
        time >> 32 & 0xffff,
        time >> 48 & 0xfff,
        0x8000 | low & 0x3fff,
    );
    Ok(frame.keep(text.as_bytes()))
}

/// NOT NULL, as MariaDB describes it, though it can be NULL.
fn resolve_benchmark(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(int(1, false))
}

fn benchmark(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(count) = frame.integer(0)? else { return Ok(ValueRef::Null) };
    if count < 0 {
        frame.context.warn(&codes::WRONG_VALUE_FOR_TYPE, &[&"count", &count, &"benchmark"])?;
        return Ok(ValueRef::Null);
    }
    for _ in 0..count {
        frame.value(1)?;
        frame.context.hooks.breathe()?;
    }
    Ok(ValueRef::Int(0))
}
