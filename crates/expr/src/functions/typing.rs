//! Result types that many functions share.

use super::{Function, any_nullable};
use crate::builder::{Builder, CollationUse, Strength, aggregate_collations, numbers_of_hex};
use crate::expression::Expr;
use crate::result_type::{Coercibility, ResultType};
use types::{CollationId, ColumnType, SqlError, TypeKind, Value};

/// Characters that a text may have whose length is not known before it runs.
pub(crate) const UNKNOWN_CHARACTERS: u64 = 16_777_216;

/// INT of so many characters.
pub(crate) fn int(length: u32, nullable: bool) -> ResultType {
    let mut column_type = ColumnType::integer(TypeKind::Int, false);
    column_type.length = length;
    column_type.precision = (length - u32::from(length > 1)).min(10) as u8;
    ResultType::of(column_type, nullable)
}

/// The whole number of an argument that is the same for the whole statement.
pub(crate) fn constant_integer(builder: &Builder<'_>, argument: Option<&Expr>) -> Option<i64> {
    let argument = argument?;
    let is_date = argument.result.column_type.kind.is_temporal();
    match argument.literal() {
        Some(_) if !is_date => literal_integer(argument),
        _ => builder.integer_at_start(argument),
    }
}

/// The whole number of a literal.
pub(crate) fn literal_integer(argument: &Expr) -> Option<i64> {
    match argument.literal()? {
        Value::Int(v) => Some(*v),
        Value::UInt(v) => Some(i64::try_from(*v).unwrap_or(i64::MAX)),
        Value::Decimal(v) => Some(v.to_i64().0),
        Value::Double(v) => Some(v.round_ties_even() as i64),
        Value::Bytes(text) => Some(types::number::parse_integer(text).value.to_i64().0),
        _ => None,
    }
}

/// A text of so many characters in the collation of one argument, the connection's for a number.
pub(crate) fn text_like(builder: &Builder<'_>, argument: &Expr, characters: u64) -> ResultType {
    let Strength { collation, coercibility, ascii } = Strength::of_text(builder, &argument.result);
    ResultType::string(characters, collation, coercibility, ascii, true)
}

/// A text in the connection's collation.
pub(crate) fn connection_text(builder: &Builder<'_>, characters: u64) -> ResultType {
    let collation = builder.connection_collation();
    ResultType::string(characters, collation, Coercibility::Coercible, true, true)
}

/// The same where the server does not know that the characters are ASCII.
pub(crate) fn any_text(builder: &Builder<'_>, characters: u64) -> ResultType {
    ResultType { ascii: false, ..connection_text(builder, characters) }
}

/// A name that the server gives, in its own character set.
pub(crate) fn system_text(characters: u64) -> ResultType {
    let collation = types::collation::default_of(types::Charset::Utf8mb3).id;
    ResultType::string(characters, collation, Coercibility::Coercible, true, true)
}

/// Text in the collation of JSON, whatever it is made of.
pub(crate) fn json_text(characters: u64) -> ResultType {
    let collation = types::collation::binary_of(types::Charset::Utf8mb4).id;
    ResultType::string(characters, collation, Coercibility::Coercible, false, true)
}

/// Bytes.
pub(crate) fn bytes(length: u64) -> ResultType {
    let collation = CollationId::BINARY;
    ResultType::string(length, collation, Coercibility::Coercible, false, true)
}

/// The same without digits after the point in its metadata.
pub(crate) fn plain(mut result: ResultType) -> ResultType {
    result.column_type.scale = 0;
    result
}

/// Longest text of an argument in bytes.
pub(crate) fn argument_bytes(argument: &Expr) -> u64 {
    let result = &argument.result;
    if result.is_string() {
        result.column_type.max_bytes()
    } else {
        u64::from(result.text_length())
    }
}

/// Joins the collations of all arguments and gives a text of so many characters.
pub(crate) fn joined_text(
    builder: &Builder<'_>,
    function: &Function,
    arguments: &mut [Expr],
    characters: u64,
) -> Result<ResultType, SqlError> {
    let (collation, coercibility, ascii) =
        aggregate_collations(builder, function.name(), arguments, CollationUse::Join)?;
    Ok(ResultType::string(characters, collation, coercibility, ascii, true))
}

/// A text made by comparing arguments, whose collations must not differ.
pub(crate) fn compared_text(
    builder: &Builder<'_>,
    operation: &str,
    arguments: &mut [Expr],
    characters: u64,
) -> Result<ResultType, SqlError> {
    let (collation, coercibility, ascii) =
        aggregate_collations(builder, operation, arguments, CollationUse::JoinComparing)?;
    Ok(ResultType::string(characters, collation, coercibility, ascii, true))
}

/// Brings arguments to one collation for comparing them.
pub(crate) fn compared(
    builder: &Builder<'_>,
    function: &Function,
    arguments: &mut [Expr],
) -> Result<CollationId, SqlError> {
    let (collation, ..) =
        aggregate_collations(builder, function.name(), arguments, CollationUse::Compare)?;
    Ok(collation)
}

/// DOUBLE, NULL possible.
pub(crate) fn resolve_double(
    _: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    numbers_of_hex(arguments);
    Ok(ResultType::double(true))
}

/// Whatever the first argument is.
pub(crate) fn resolve_as_first(
    _: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    Ok(arguments[0].result)
}

/// Text as long as the first argument.
pub(crate) fn resolve_text_like(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    Ok(text_like(builder, &arguments[0], arguments[0].result.characters()))
}

macro_rules! resolve_ints {
    ($($name:ident = $length:literal;)*) => {$(
        /// INT of this length, NULL if an argument can be.
        pub(crate) fn $name(
            _: &Builder<'_>,
            _: &'static Function,
            arguments: &mut [Expr],
        ) -> Result<ResultType, SqlError> {
            Ok(int($length, any_nullable(arguments)))
        }
    )*};
}

resolve_ints! {
    resolve_int_2 = 2;
    resolve_int_3 = 3;
    resolve_int_7 = 7;
    resolve_int_10 = 10;
}
