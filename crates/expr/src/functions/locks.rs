//! Named locks of sessions: GET_LOCK and its family.

use super::typing::int;
use super::{Frame, Function};
use crate::builder::Builder;
use crate::expression::Expr;
use crate::result_type::ResultType;
use std::time::Duration;
use types::{SqlError, TypeKind, ValueRef, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("get_lock", 2, 2, resolve_flag, get_lock).volatile(),
    Function::new("release_lock", 1, 1, resolve_flag, release_lock).volatile(),
    Function::new("is_free_lock", 1, 1, resolve_flag, is_free_lock).volatile(),
    Function::new("is_used_lock", 1, 1, resolve_owner, is_used_lock).volatile(),
    Function::new("release_all_locks", 0, 0, resolve_count, release_all_locks).volatile(),
];

type Resolved = Result<ResultType, SqlError>;

/// A wait without an end, as near as that comes.
const WAIT_MAX: f64 = 365.0 * 86_400.0;

/// The name of a lock is text (4079).
fn check_name(function: &'static Function, arguments: &[Expr]) -> Result<(), SqlError> {
    let result = arguments[0].result;
    if result.is_string() || result.column_type.kind == TypeKind::Null {
        return Ok(());
    }
    let code = &codes::ILLEGAL_PARAMETER_DATA_TYPE_FOR_OPERATION;
    Err(SqlError::new(code, &[&result.type_name(), &function.name]))
}

fn resolve_flag(_: &Builder<'_>, own: &'static Function, arguments: &mut [Expr]) -> Resolved {
    check_name(own, arguments)?;
    Ok(int(1, true))
}

fn resolve_owner(_: &Builder<'_>, own: &'static Function, arguments: &mut [Expr]) -> Resolved {
    check_name(own, arguments)?;
    Ok(int(10, true))
}

fn resolve_count(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    let mut result = int(10, false);
    result.column_type.unsigned = true;
    Ok(result)
}

/// The name of a lock, in which case counts; none for NULL and for an empty one.
fn name(frame: &Frame<'_>) -> Result<Option<String>, SqlError> {
    let name = frame.text(0)?.map(|text| String::from_utf8_lossy(text).into_owned());
    Ok(name.filter(|name| !name.is_empty()))
}

fn flag<'a>(value: Option<bool>) -> Result<ValueRef<'a>, SqlError> {
    Ok(value.map_or(ValueRef::Null, |value| ValueRef::Int(value.into())))
}

fn get_lock(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(name) = name(&frame)? else { return Ok(ValueRef::Null) };
    let Some(seconds) = frame.double(1)? else {
        frame.context.warn(&codes::WRONG_VALUE_FOR_TYPE, &[&"timeout", &"NULL", &"get_lock"])?;
        return Ok(ValueRef::Null);
    };
    let seconds = if seconds < 0.0 { WAIT_MAX } else { seconds.min(WAIT_MAX) };
    flag(Some(frame.context.hooks.get_lock(&name, Duration::from_secs_f64(seconds))?))
}

fn release_lock(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    match name(&frame)? {
        None => Ok(ValueRef::Null),
        Some(name) => flag(frame.context.hooks.release_lock(&name)),
    }
}

fn is_free_lock(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    match name(&frame)? {
        None => Ok(ValueRef::Null),
        Some(name) => flag(Some(frame.context.hooks.lock_owner(&name).is_none())),
    }
}

fn is_used_lock(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(name) = name(&frame)? else { return Ok(ValueRef::Null) };
    let owner = frame.context.hooks.lock_owner(&name);
    Ok(owner.map_or(ValueRef::Null, |owner| ValueRef::Int(owner as i64)))
}

fn release_all_locks(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    Ok(ValueRef::UInt(frame.context.hooks.release_all_locks()))
}
