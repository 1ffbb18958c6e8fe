//! Storing values into columns: conversion, range, rounding, and what MariaDB says about it.
//!
//! [`store`] gives the value as the column can hold it and, if it is not what was given, a
//! [`StoreIssue`]. The caller decides: in strict mode an issue that
//! [`is_error`](StoreIssue::is_error) fails the statement with
//! [`error`](StoreIssue::error), otherwise it becomes a [`warning`](StoreIssue::warning).

mod issue;
mod members;
mod numbers;
mod strings;
mod temporals;

pub use issue::{ColumnPlace, StoreIssue, printable, printable_start, shown_text};
pub use numbers::fit_decimal;

use crate::column_type::{ColumnType, TypeKind};
use crate::sql_mode::SqlMode;
use crate::temporal::{TimeZone, Timestamp};
use crate::value::{Value, ValueRef};

/// Settings of the session that storing depends on.
#[derive(Clone, Copy, Debug)]
pub struct StoreSettings {
    /// sql_mode.
    pub sql_mode: SqlMode,
    /// time_zone.
    pub time_zone: TimeZone,
    /// Start of the statement: a TIME stored as a DATETIME counts from its day.
    pub now: Timestamp,
}

/// A value as a column holds it: the given one, or a new one.
#[derive(Clone, Debug)]
pub enum Converted<'a> {
    /// Nothing was to be done.
    Same(ValueRef<'a>),
    /// Another value.
    New(Value),
}

impl Converted<'_> {
    /// The value.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Converted::Same(value) => *value,
            Converted::New(value) => value.as_ref(),
        }
    }

    /// The value with its own bytes.
    pub fn into_owned(self) -> Value {
        match self {
            Converted::Same(value) => value.to_owned(),
            Converted::New(value) => value,
        }
    }
}

impl From<Value> for Converted<'_> {
    fn from(value: Value) -> Self {
        Converted::New(value)
    }
}

/// What storing gave.
#[derive(Clone, Debug)]
pub struct Stored<'a> {
    /// The value that the column can hold, nearest to what was given.
    pub value: Converted<'a>,
    /// What is to be said about it.
    pub issue: Option<StoreIssue>,
}

impl<'a> Stored<'a> {
    fn new(value: impl Into<Converted<'a>>, issue: Option<StoreIssue>) -> Self {
        Self { value: value.into(), issue }
    }

    fn same(value: ValueRef<'a>) -> Self {
        Self { value: Converted::Same(value), issue: None }
    }
}

/// Converts `value`, of static type `source`, to what a column of type `target` holds. NULL
/// stays NULL: whether the column takes it is the caller's question (1048).
pub fn store<'a>(
    value: ValueRef<'a>,
    source: &ColumnType,
    target: &ColumnType,
    settings: &StoreSettings,
) -> Stored<'a> {
    if value.is_null() {
        return Stored::same(value);
    }
    match target.kind {
        TypeKind::Int
            if let ValueRef::Int(v) = value
                && !target.unsigned =>
        {
            if i32::try_from(v).is_ok() {
                return Stored::same(value);
            }
            numbers::integer(value, source, target, settings)
        }
        kind if source.members.is_some() && kind.is_number() => {
            let number = value.bytes().and_then(|text| source.member_number(text)).unwrap_or(0);
            let source = ColumnType::integer(TypeKind::BigInt, true);
            let stored = store(ValueRef::UInt(number), &source, target, settings);
            Stored::new(stored.value.into_owned(), stored.issue)
        }
        TypeKind::Enum => members::member(value, source, target, settings),
        TypeKind::Set => members::set(value, source, target, settings),
        TypeKind::Bit => members::bit(value, source, target, settings),
        kind if kind.is_integer() => numbers::integer(value, source, target, settings),
        TypeKind::Decimal => numbers::decimal(value, source, target, settings),
        TypeKind::Float | TypeKind::Double => numbers::floating(value, source, target, settings),
        TypeKind::Year => numbers::year(value, source, settings),
        TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => {
            temporals::datetime(value, source, target, settings)
        }
        TypeKind::Time => temporals::time(value, source, target, settings),
        TypeKind::Null => Stored::new(Value::Null, None),
        _ => strings::text(value, source, target, settings),
    }
}
