//! CAST, CONVERT ... USING, COLLATE.

use super::collations::Strength;
use super::operators::{number_of_hex, text_as_decimal, text_as_double};
use super::{Builder, scalar};
use crate::expression::{Expr, ExprKind};
use crate::functions::Nature;
use crate::result_type::{Coercibility, ResultType, STRING_DECIMALS};
use types::{Charset, CollationId, ColumnType, SqlError, TypeKind, Value, codes, collation};

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
        let mut operand = scalar(operand)?;
        let numeric = matches!(
            target,
            CastTarget::Signed
                | CastTarget::Unsigned
                | CastTarget::Decimal { .. }
                | CastTarget::Double
                | CastTarget::Float
        );
        if numeric && operand.is_hex_literal() {
            operand = number_of_hex(operand);
            operand.result.column_type.length = u32::from(operand.result.column_type.precision);
        }
        if numeric && !matches!(target, CastTarget::Signed | CastTarget::Unsigned) {
            operand = match target {
                CastTarget::Decimal { .. } => text_as_decimal(operand),
                _ => text_as_double(operand),
            };
        }
        let mut result = self.cast_type(&operand, target)?;
        if target == CastTarget::Signed {
            let precision = operand.result.decimal_precision();
            result.column_type.precision = precision.min(255) as u8;
        }
        let pads = matches!(target, CastTarget::Binary { length: Some(_) });
        let cuts = pads || matches!(target, CastTarget::Char { length: Some(_), .. });
        let operand = Box::new(operand);
        Ok(Expr { kind: ExprKind::Cast { operand, pads, cuts, name: None }, result })
    }

    fn cast_type(&self, operand: &Expr, target: CastTarget) -> Result<ResultType, SqlError> {
        let from = &operand.result;
        let nullable = from.nullable;
        let string = from.is_string();
        Ok(match target {
            CastTarget::Signed => ResultType::integer_of_length(whole_width(from), false, nullable),
            CastTarget::Unsigned => {
                let length = if is_not_negative(operand) {
                    from.characters().clamp(1, 20) as u32
                } else {
                    20
                };
                let mut result = ResultType::integer_of_length(length, true, nullable);
                if length == 10 {
                    result.column_type.kind = TypeKind::Int;
                }
                result
            }
            CastTarget::Decimal { precision, scale } => {
                check_decimal(precision, scale, operand)?;
                ResultType::decimal(precision, scale, false, nullable)
            }
            CastTarget::Double => ResultType::of(ColumnType::double(), true),
            CastTarget::Float => {
                let mut column_type = ColumnType::float();
                column_type.length = 12;
                ResultType::of(column_type, true)
            }
            CastTarget::Char { length, collation } => {
                let collation = collation.unwrap_or(self.connection_collation());
                char_type(from, length, collation)
            }
            CastTarget::Binary { length } => {
                let own = if string {
                    from.column_type.max_bytes()
                } else {
                    u64::from(from.text_length())
                };
                let bytes = length.map_or(own, u64::from);
                without_decimals(ResultType::string(
                    bytes,
                    CollationId::BINARY,
                    Coercibility::Implicit,
                    false,
                    true,
                ))
            }
            CastTarget::Date => ResultType::of(ColumnType::date(), true),
            CastTarget::Time(scale) | CastTarget::DateTime(scale) if scale > 6 => {
                return Err(too_precise(operand));
            }
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
        let characters = match operand.nature() {
            // As many as its bytes may be.
            Nature::Characters => {
                from.column_type.max_bytes().div_ceil(u64::from(collation.charset().max_bytes()))
            }
            _ => u64::from(from.text_length()),
        };
        // CHAR(... USING ...) is a constant made there, not a conversion.
        let strength = match operand.nature() {
            Nature::Characters => Coercibility::Coercible,
            _ => Coercibility::Implicit,
        };
        // That its characters are ASCII is forgotten, other than for those of CHAR.
        let is_ascii = from.ascii && operand.nature() == Nature::Characters;
        let result = ResultType::string(characters, collation, strength, is_ascii, true);
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
        let own = Strength::of_text(self, &result);
        if !result.is_string() {
            let characters = u64::from(result.text_length());
            let (strength, nullable) = (Coercibility::Explicit, result.nullable);
            result = ResultType::string(characters, own.collation, strength, own.ascii, nullable);
        }
        let charset = own.collation.charset();
        if charset != wanted.charset && own.coercibility != Coercibility::Ignorable {
            return Err(SqlError::new(
                &codes::COLLATION_CHARSET_MISMATCH,
                &[&wanted.name, &charset.name()],
            ));
        }
        result = result.of_expression().with_nullable(true);
        result.column_type.scale = STRING_DECIMALS;
        result.column_type.collation = wanted.id;
        result.coercibility = Coercibility::Explicit;
        result.is_json = false;
        if result.column_type.kind == TypeKind::Char {
            result.column_type.kind = TypeKind::VarChar;
        }
        Ok(Expr { kind: ExprKind::ConvertText(Box::new(operand)), result })
    }
}

/// Error 1426.
fn too_precise(operand: &Expr) -> SqlError {
    let name = match operand.literal() {
        Some(Value::Bytes(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => operand.to_string(),
    };
    SqlError::new(&codes::TOO_BIG_PRECISION, &[&name, &6])
}

/// The characters of a whole number; a column has those of its type, or more if it is shown wider.
fn whole_width(from: &ResultType) -> u32 {
    match from.column_type.kind {
        kind if kind.is_floating() => 20,
        kind if kind.is_integer() => (from.signed_characters() as u32).clamp(2, 21),
        _ => from.text_length().clamp(2, 21),
    }
}

/// The type of CAST(... AS CHAR).
fn char_type(from: &ResultType, length: Option<u32>, collation: CollationId) -> ResultType {
    let own = match collation {
        CollationId::BINARY if from.is_string() => from.column_type.max_bytes(),
        _ => from.characters(),
    };
    let characters = length.map_or(own, u64::from);
    // What it is made of does not count, only what its character set could hold.
    let ascii = from.ascii && !matches!(collation.charset(), Charset::Utf8mb4 | Charset::Binary);
    let strength = Coercibility::Implicit;
    without_decimals(ResultType::string(characters, collation, strength, ascii, true))
}

/// The text type of a cast has no digits after the point.
fn without_decimals(mut result: ResultType) -> ResultType {
    result.column_type.scale = 0;
    result
}

/// Whether a value is known to have no sign.
fn is_not_negative(operand: &Expr) -> bool {
    if operand.result.is_date_part {
        return true;
    }
    if let ExprKind::UnitCall { .. } = operand.kind {
        return false;
    }
    if operand.result.is_string() {
        // Text of one character has no room for a sign.
        return operand.result.column_type.unsigned || operand.result.text_length() <= 1;
    }
    match operand.literal() {
        Some(Value::Int(v)) => *v >= 0,
        Some(Value::UInt(_) | Value::Null) => true,
        Some(_) => false,
        None => operand.result.column_type.unsigned,
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
        return Err(SqlError::new(&codes::M_BIGGER_THAN_D, &[&""]));
    }
    Ok(())
}
