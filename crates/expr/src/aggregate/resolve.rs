//! Result types of aggregates.

use super::{Aggregate, AggregateFunction, ConcatOptions};
use crate::builder::{Builder, CollationUse, Domain, aggregate_collations, numbers_of_hex};
use crate::expression::{Expr, ExprKind};
use crate::result_type::ResultType;
use types::column_type::SCALE_NOT_FIXED;
use types::{ColumnType, SqlError, TypeKind, codes};

/// Digits that SUM adds for the number of rows.
const SUM_DIGITS: u32 = 22;

/// Type of MIN and MAX of a type. A whole number or year that is computed is a BIGINT, a truth is
/// not; a FLOAT that is computed is a DOUBLE.
fn extreme_result(mut result: ResultType, keeps_type: bool) -> ResultType {
    if result.is_date_part {
        result.column_type.length += 1;
        result.is_date_part = false;
    }
    let own = &mut result.column_type;
    own.zerofill = false;
    match own.kind {
        TypeKind::Bit => own.kind = TypeKind::BigInt,
        kind if (kind.is_integer() || kind == TypeKind::Year) && !keeps_type => {
            own.kind = TypeKind::BigInt;
        }
        TypeKind::Float if !keeps_type => {
            let computed = ResultType::double_of_scale(own.scale, result.nullable).column_type;
            *own = ColumnType { unsigned: own.unsigned, ..computed };
        }
        TypeKind::Float if own.scale < SCALE_NOT_FIXED => {}
        TypeKind::Double | TypeKind::Float => {
            own.length = ResultType::double_of_scale(own.scale, true).column_type.length;
        }
        _ => {}
    }
    result.with_digits_of_length()
}

fn is_deviation(function: AggregateFunction) -> bool {
    use AggregateFunction as F;
    matches!(
        function,
        F::StandardDeviation | F::SampleStandardDeviation | F::Variance | F::SampleVariance
    )
}

/// A moment with as many digits as its value has, where it is told apart from others: it has all.
fn with_all_fractions(moment: &mut Expr) {
    let column_type = &mut moment.result.column_type;
    if column_type.kind.is_temporal() {
        column_type.scale = column_type.scale.min(6);
    }
}

impl Builder<'_> {
    /// An aggregate function. COUNT without arguments is COUNT(*).
    pub fn aggregate(
        &self,
        function: AggregateFunction,
        distinct: bool,
        arguments: Vec<Expr>,
        concat: ConcatOptions,
    ) -> Result<Aggregate, SqlError> {
        let mut arguments = arguments;
        for argument in &arguments {
            crate::builder::one_column(argument)?;
        }
        let several = matches!(function, AggregateFunction::Count | AggregateFunction::GroupConcat);
        let count_fits = match function {
            AggregateFunction::CountRows => arguments.is_empty(),
            _ if several => !arguments.is_empty(),
            AggregateFunction::JsonObject => arguments.len() == 2,
            _ => arguments.len() == 1,
        };
        if !count_fits {
            return Err(SqlError::new(&codes::WRONG_ARGUMENTS, &[&"aggregate"]));
        }
        let result = self.aggregate_result(function, &mut arguments)?;
        if function == AggregateFunction::GroupConcat && distinct {
            arguments.iter_mut().for_each(with_all_fractions);
        }
        let mut concat = concat;
        if let (Some(separator), true) = (&mut concat.separator, result.is_string()) {
            let own = self.connection_collation().charset();
            let mut converted = Vec::with_capacity(separator.len());
            own.convert(separator, result.collation().charset(), &mut converted);
            *separator = converted;
        }
        Ok(Aggregate { function, distinct, arguments, concat, result })
    }

    fn aggregate_result(
        &self,
        function: AggregateFunction,
        arguments: &mut [Expr],
    ) -> Result<ResultType, SqlError> {
        use AggregateFunction as F;
        let numeric = matches!(function, F::Sum | F::Average | F::BitAnd | F::BitOr | F::BitXor);
        if numeric || is_deviation(function) {
            numbers_of_hex(arguments);
        }
        let keeps_type = arguments.first().is_some_and(|argument| {
            let is_column = match &argument.kind {
                // The value of a subquery stands in a column, too.
                ExprKind::Column { name, .. } => {
                    // So does that of a derived table that is merged.
                    !name.starts_with("subquery#") && argument.result.is_column
                }
                _ => false,
            };
            is_column || argument.result.is_truth
        });
        let argument = arguments.first().map(|argument| argument.result);
        let argument = argument.unwrap_or_else(ResultType::null);
        Ok(match function {
            F::CountRows | F::Count => ResultType::integer_of_length(21, false, false),
            F::Sum => match Domain::of(&argument) {
                Domain::Double => ResultType::double_of_scale(argument.decimals(), true),
                _ => {
                    let precision = argument.decimal_precision() + SUM_DIGITS;
                    let scale = argument.decimal_scale();
                    ResultType::decimal(precision, scale.into(), false, true).stored_in_column()
                }
            },
            F::Average => match Domain::of(&argument) {
                Domain::Double => self.average_of_doubles(&argument),
                _ => {
                    let increment = u32::from(self.settings().div_precision_increment);
                    let scale = u32::from(argument.decimal_scale()) + increment;
                    let precision = argument.decimal_precision() + increment;
                    ResultType::decimal(precision, scale, false, true)
                }
            },
            F::AnyValue => argument,
            F::Minimum | F::Maximum if argument.column_type.kind == TypeKind::Null => {
                let mut empty = ResultType::of(ColumnType::binary(TypeKind::VarBinary, 0), true);
                empty.coercibility = crate::Coercibility::Ignorable;
                empty
            }
            F::Minimum | F::Maximum => {
                let is_column = matches!(arguments[0].kind, ExprKind::Column { .. });
                let is_json = argument.is_json && is_column;
                let argument = argument.of_expression().with_nullable(true);
                extreme_result(ResultType { is_json, ..argument }, keeps_type)
            }
            F::BitAnd | F::BitOr | F::BitXor => ResultType::integer_of_length(21, true, false),
            F::StandardDeviation | F::SampleStandardDeviation | F::Variance | F::SampleVariance => {
                self.deviation_result(&argument)
            }
            F::GroupConcat => return self.concat_result(arguments),
            F::JsonArray | F::JsonObject => {
                let mut result = self.concat_result(arguments)?;
                result.is_json = true;
                result
            }
        })
    }

    /// AVG of DOUBLE values: with more digits where theirs are fixed.
    fn average_of_doubles(&self, argument: &ResultType) -> ResultType {
        if argument.decimals() >= 31 {
            return ResultType::double(true);
        }
        let increment = self.settings().div_precision_increment;
        let mut result =
            ResultType::double_of_scale((argument.decimals() + increment).min(31), true);
        let length = argument.text_length().saturating_add(u32::from(increment));
        result.column_type.length = length.min(result.column_type.length);
        result
    }

    /// Deviations are DOUBLE, with fixed digits for exact arguments.
    fn deviation_result(&self, argument: &ResultType) -> ResultType {
        let increment = self.settings().div_precision_increment;
        if Domain::of(argument) == Domain::Double {
            let scale = argument.decimals().min(31) + increment;
            return ResultType::double_of_scale(scale.min(31), true);
        }
        let scale = (argument.decimal_scale() + increment).min(30);
        let mut result = ResultType::double_of_scale(scale, true);
        let digits = 2 * argument.decimal_precision() + u32::from(increment);
        result.column_type.length = digits.min(u32::from(types::decimal::PRECISION_MAX)) + 2;
        result
    }

    fn concat_result(&self, arguments: &mut [Expr]) -> Result<ResultType, SqlError> {
        let (collation, coercibility, ascii) =
            aggregate_collations(self, "group_concat", arguments, CollationUse::Join)?;
        let length = self.settings().group_concat_max_len as u64;
        let characters = length * u64::from(collation.charset().max_bytes());
        let mut result = ResultType::string(characters, collation, coercibility, ascii, true);
        result.column_type.scale = 0;
        if length > 512 {
            let binary = collation == types::CollationId::BINARY;
            result.column_type.kind = if binary { TypeKind::Blob } else { TypeKind::Text };
        }
        Ok(result)
    }
}
