//! Result types of functions of dates and times.

use super::Function;
use crate::builder::Builder;
use crate::expression::Expr;
use crate::result_type::ResultType;
use types::temporal::{DateRules, parse_datetime, parse_time};
use types::{ColumnType, SqlError, TypeKind, Value, codes};

/// DATETIME with so many fractional digits.
pub(crate) fn datetime_result(scale: u8, nullable: bool) -> ResultType {
    ResultType::of(ColumnType::temporal(TypeKind::DateTime, scale), nullable)
}

/// TIME with so many fractional digits.
pub(crate) fn time_result(scale: u8, nullable: bool) -> ResultType {
    ResultType::of(ColumnType::temporal(TypeKind::Time, scale), nullable)
}

/// DATE.
pub(crate) fn date_result(nullable: bool) -> ResultType {
    ResultType::of(ColumnType::date(), nullable)
}

/// Fractional digits of an argument used as a date and time: those of the text of a constant, six
/// for other text.
pub(crate) fn known_scale(builder: &Builder<'_>, argument: &Expr) -> u8 {
    if let Some(text) = written(builder, argument) {
        let parsed = parse_datetime(&text, DateRules::default());
        return parsed.map_or(number_scale(argument), |parsed| parsed.digits.min(6));
    }
    number_scale(argument)
}

/// A constant of the statement whose text says how many digits it has; that of a hexadecimal one
/// does not.
pub(crate) fn written(builder: &Builder<'_>, argument: &Expr) -> Option<Vec<u8>> {
    let is_of_bytes = argument.literal().is_some() && argument.result.decimals() <= 6;
    if is_of_bytes || !argument.result.is_string() {
        return None;
    }
    match builder.value_at_start(argument) {
        Some(Value::Bytes(text)) => Some(text),
        _ => None,
    }
}

/// The same for an argument used as a duration.
pub(crate) fn known_time_scale(builder: &Builder<'_>, argument: &Expr) -> u8 {
    if let Some(text) = written(builder, argument) {
        let parsed = parse_time(&text, DateRules::default());
        return parsed.map_or(number_scale(argument), |parsed| parsed.digits.min(6));
    }
    number_scale(argument)
}

/// Fractional digits of a number taken for seconds.
pub(crate) fn number_scale(argument: &Expr) -> u8 {
    argument.result.decimals().min(6)
}

/// Error 4078 if one of the two arguments is JSON.
pub(crate) fn refuse_json(function: &Function, arguments: &[Expr]) -> Result<(), SqlError> {
    if !arguments.iter().any(|argument| argument.result.is_json) {
        return Ok(());
    }
    let [first, second] = [0, 1].map(|number: usize| arguments[number].result.type_name());
    Err(SqlError::new(
        &codes::ILLEGAL_PARAMETER_DATA_TYPES2_FOR_OPERATION,
        &[&first, &second, &function.name()],
    ))
}
