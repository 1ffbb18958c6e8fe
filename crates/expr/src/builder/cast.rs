//! CAST, CONVERT ... USING, COLLATE.

use super::{Builder, scalar};
use crate::expression::{Expr, ExprKind};
use crate::result_type::{Coercibility, ResultType};
use types::{CollationId, ColumnType, SqlError, TypeKind, codes, collation};

/// What CAST converts to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CastTarget {
    /// SIGNED.
    Signed,
    /// UNSIGNED.
    Unsigned,
    /// DECIMAL(precision, scale); 10 and 0 by default.
    Decimal {
        /// Digits in all.
        precision: u32,
        /// Digits after the point.
        scale: u32,
    },
    /// DOUBLE.
    Double,
    /// FLOAT.
    Float,
    /// CHAR(length), in a character set other than the connection's if given.
    Char {
        /// Characters kept.
        length: Option<u32>,
        /// Default collation of the character set.
        collation: Option<CollationId>,
    },
    /// BINARY(length).
    Binary {
        /// Bytes, filled up with 0x00.
        length: Option<u32>,
    },
    /// DATE.
    Date,
    /// TIME(scale).
    Time(u8),
    /// DATETIME(scale).
    DateTime(u8),
}

impl Builder<'_> {
    /// `CAST(operand AS target)`.
    pub fn cast(&self, operand: Expr, target: CastTarget) -> Result<Expr, SqlError> {
        let operand = scalar(operand)?;
        let result = self.cast_type(&operand, target)?;
        Ok(Expr { kind: ExprKind::Cast(Box::new(operand)), result })
    }

    fn cast_type(&self, operand: &Expr, target: CastTarget) -> Result<ResultType, SqlError> {
        let from = &operand.result;
        let nullable = from.nullable;
        let string = from.is_string();
        Ok(match target {
            CastTarget::Signed | CastTarget::Unsigned => {
                let unsigned = target == CastTarget::Unsigned;
                let length = match from.column_type.kind {
                    kind if kind.is_integer() && !unsigned => from.text_length().max(1),
                    _ => from.text_length().min(20).max(1),
                };
                ResultType::integer_of_length(length, unsigned, nullable)
            }
            CastTarget::Decimal { precision, scale } => {
                check_decimal(precision, scale, operand)?;
                ResultType::decimal(precision, scale, false, nullable)
            }
            CastTarget::Double => ResultType::double(nullable),
            CastTarget::Float => {
                let mut column_type = ColumnType::float();
                column_type.length = 12;
                ResultType::of(column_type, nullable)
            }
            CastTarget::Char { length, collation } => {
                let collation = collation.unwrap_or(self.connection_collation());
                let characters = length.unwrap_or_else(|| from.text_length());
                let ascii = from.ascii && collation != CollationId::BINARY;
                ResultType::string(
                    u64::from(characters),
                    collation,
                    Coercibility::Coercible,
                    ascii,
                    true,
                )
            }
            CastTarget::Binary { length } => {
                let own = if string {
                    from.column_type.max_bytes()
                } else {
                    u64::from(from.text_length())
                };
                let bytes = length.map_or(own, u64::from);
                ResultType::string(bytes, CollationId::BINARY, Coercibility::Coercible, false, true)
            }
            CastTarget::Date => ResultType::of(ColumnType::date(), true),
            CastTarget::Time(scale) => {
                ResultType::of(ColumnType::temporal(TypeKind::Time, scale), true)
            }
            CastTarget::DateTime(scale) => {
                ResultType::of(ColumnType::temporal(TypeKind::DateTime, scale), true)
            }
        })
    }

    /// `CONVERT(operand USING charset)`.
    pub fn convert_using(&self, operand: Expr, charset: &str) -> Result<Expr, SqlError> {
        let collation = self.charset_default(charset)?;
        let operand = scalar(operand)?;
        let from = operand.result;
        let characters = u64::from(from.text_length());
        let result =
            ResultType::string(characters, collation, Coercibility::Coercible, from.ascii, true);
        Ok(Expr { kind: ExprKind::ConvertText(Box::new(operand)), result })
    }

    /// `operand COLLATE collation`; 1273 for an unknown one, 1253 for one of another
    /// character set.
    pub fn collate(&self, operand: Expr, name: &str) -> Result<Expr, SqlError> {
        let Some(wanted) = collation::by_name(name) else {
            return Err(SqlError::new(&codes::UNKNOWN_COLLATION, &[&name]));
        };
        let operand = scalar(operand)?;
        let mut result = operand.result;
        if !result.is_string() {
            let characters = u64::from(result.text_length());
            let connection = self.connection_collation();
            let nullable = result.nullable;
            result =
                ResultType::string(characters, connection, Coercibility::Explicit, true, nullable);
        }
        let charset = result.collation().charset();
        if charset != wanted.charset {
            return Err(SqlError::new(
                &codes::COLLATION_CHARSET_MISMATCH,
                &[&wanted.name, &charset.name()],
            ));
        }
        result.column_type.collation = wanted.id;
        result.coercibility = Coercibility::Explicit;
        Ok(Expr { kind: ExprKind::ConvertText(Box::new(operand)), result })
    }
}

/// 1425, 1426, 1427 for impossible digits.
fn check_decimal(precision: u32, scale: u32, operand: &Expr) -> Result<(), SqlError> {
    let name = operand.to_string();
    if scale > u32::from(types::decimal::SCALE_MAX) {
        return Err(SqlError::new(&codes::TOO_BIG_SCALE, &[&name, &types::decimal::SCALE_MAX]));
    }
    if precision > u32::from(types::decimal::PRECISION_MAX) {
        return Err(SqlError::new(
            &codes::TOO_BIG_PRECISION,
            &[&name, &types::decimal::PRECISION_MAX],
        ));
    }
    if precision < scale {
        return Err(SqlError::new(&codes::M_BIGGER_THAN_D, &[&name]));
    }
    Ok(())
}
