//! Constants.

use super::Builder;
use crate::expression::{Expr, ExprKind, Literal, LiteralForm};
use crate::result_type::{Coercibility, ResultType};
use types::temporal::{DateRules, TimeOrDateTime, parse_datetime, parse_time};
use types::{
    CollationId, ColumnType, Decimal, SqlError, TypeKind, Value, charset::Charset, codes, collation,
};

fn literal(value: Value, form: LiteralForm, result: ResultType) -> Expr {
    Expr { kind: ExprKind::Literal(Literal::new(value, form)), result }
}

fn digits(value: u64) -> u32 {
    value.checked_ilog10().unwrap_or(0) + 1
}

impl Builder<'_> {
    /// NULL.
    pub fn null(&self) -> Expr {
        literal(Value::Null, LiteralForm::Plain, ResultType::null())
    }

    /// TRUE, FALSE.
    pub fn boolean(&self, value: bool) -> Expr {
        let mut result = ResultType::boolean(false);
        // As the server names them: the length of the word FALSE.
        result.column_type.length = 5;
        result.column_type.precision = 5;
        literal(Value::Int(value.into()), LiteralForm::Boolean, result)
    }

    /// An integer without a sign.
    pub fn integer(&self, value: u64) -> Expr {
        let length = digits(value);
        let signed = i64::try_from(value);
        let kind = if length < 10 { TypeKind::Int } else { TypeKind::BigInt };
        let mut column_type = ColumnType::integer(kind, signed.is_err());
        column_type.length = length;
        column_type.precision = length as u8;
        let value = signed.map_or(Value::UInt(value), Value::Int);
        literal(value, LiteralForm::Plain, ResultType::of(column_type, false))
    }

    /// A number with a point or with more digits than 64 bits hold, as written.
    pub fn decimal(&self, text: &str) -> Result<Expr, SqlError> {
        let parsed = Decimal::parse(text.as_bytes());
        let value = parsed.value;
        let scale = value.scale().min(types::decimal::SCALE_MAX);
        // Leading zeros count where they were written.
        let written = text.bytes().take_while(u8::is_ascii_digit).count() as u32;
        let precision = (written.max(value.integer_digits()) + u32::from(scale)).max(1);
        let result = ResultType::decimal(precision, u32::from(scale), false, false);
        let value = value.rounded(scale).unwrap_or(value);
        Ok(literal(Value::Decimal(value), LiteralForm::Plain, result))
    }

    /// A number with an exponent, as written; 1367 if it is no double.
    pub fn float(&self, text: &str) -> Result<Expr, SqlError> {
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                let mut result = ResultType::double(false);
                result.column_type.length = text.len() as u32;
                let mut literal = Literal::new(Value::Double(value), LiteralForm::Plain);
                literal.written = Some(text.into());
                Ok(Expr { kind: ExprKind::Literal(literal), result })
            }
            _ => Err(SqlError::new(&codes::ILLEGAL_VALUE_FOR_TYPE, &[&"double", &text])),
        }
    }

    /// A string in the character set of the connection, or in that of an introducer.
    pub fn text(&self, bytes: Vec<u8>, introducer: Option<&str>) -> Result<Expr, SqlError> {
        let collation = match introducer {
            None => self.connection_collation(),
            Some(name) => self.charset_default(name)?,
        };
        let charset = collation.charset();
        let valid = charset.valid_prefix(&bytes);
        if valid < bytes.len() && introducer.is_some() && charset != Charset::Ascii {
            let bad = bytes[valid..].iter().take(3).fold(String::new(), |mut text, byte| {
                text.push_str(&format!("{byte:02X}"));
                text
            });
            return Err(SqlError::new(&codes::INVALID_CHARACTER_STRING, &[&charset.name(), &bad]));
        }
        let characters = charset.character_count(&bytes) as u64;
        let ascii = bytes.is_ascii() && charset != Charset::Binary;
        let result =
            ResultType::string(characters, collation, Coercibility::Coercible, ascii, false);
        Ok(literal(Value::Bytes(bytes), LiteralForm::Plain, result))
    }

    /// `x'41'`, and with `numeric` `0x41` and `b'1'`, which count as numbers in numeric
    /// context.
    pub fn hex(
        &self,
        bytes: Vec<u8>,
        numeric: bool,
        introducer: Option<&str>,
    ) -> Result<Expr, SqlError> {
        if introducer.is_some() {
            return self.text(bytes, introducer);
        }
        let mut result = ResultType::string(
            bytes.len() as u64,
            CollationId::BINARY,
            Coercibility::Coercible,
            false,
            false,
        );
        result.column_type.unsigned = true;
        result.column_type.scale = 0;
        result.is_hex = numeric;
        let form = if numeric { LiteralForm::Hex } else { LiteralForm::Plain };
        Ok(literal(Value::Bytes(bytes), form, result))
    }

    /// `DATE 'text'`; 1525 if it is no date.
    pub fn date(&self, text: &str) -> Result<Expr, SqlError> {
        let wrong = || SqlError::new(&codes::WRONG_VALUE, &[&"DATE", &text]);
        let rules = DateRules::of(self.settings.sql_mode);
        let parsed = parse_datetime(text.as_bytes(), rules).ok_or_else(wrong)?;
        if parsed.truncated || parsed.has_time {
            return Err(wrong());
        }
        let result = ResultType::of(ColumnType::date(), false);
        Ok(literal(Value::Date(parsed.value.date()), LiteralForm::Plain, result))
    }

    /// `TIMESTAMP 'text'`; 1525 if it is no date with a time.
    pub fn timestamp(&self, text: &str) -> Result<Expr, SqlError> {
        let wrong = || SqlError::new(&codes::WRONG_VALUE, &[&"DATETIME", &text]);
        let rules = DateRules::of(self.settings.sql_mode);
        let parsed = parse_datetime(text.as_bytes(), rules).ok_or_else(wrong)?;
        if parsed.truncated || !parsed.has_time {
            return Err(wrong());
        }
        let column_type = ColumnType::temporal(TypeKind::DateTime, parsed.digits.min(6));
        let value = Value::DateTime(parsed.value);
        Ok(literal(value, LiteralForm::Plain, ResultType::of(column_type, false)))
    }

    /// `TIME 'text'`.
    pub fn time(&self, text: &str) -> Result<Expr, SqlError> {
        let wrong = || SqlError::new(&codes::WRONG_VALUE, &[&"TIME", &text]);
        let rules = DateRules::of(self.settings.sql_mode);
        let parsed = parse_time(text.as_bytes(), rules).ok_or_else(wrong)?;
        let TimeOrDateTime::Time(time) = parsed.value else { return Err(wrong()) };
        if parsed.truncated || parsed.out_of_range {
            return Err(wrong());
        }
        let column_type = ColumnType::temporal(TypeKind::Time, parsed.digits.min(6));
        Ok(literal(Value::Time(time), LiteralForm::Plain, ResultType::of(column_type, false)))
    }

    /// The value of a parameter, with its type.
    pub fn value(&self, value: Value, result: ResultType) -> Expr {
        literal(value, LiteralForm::Bound, result)
    }

    /// A value that the planner knows, with its type.
    pub fn computed(&self, value: Value, result: ResultType) -> Expr {
        let nullable = value.is_null();
        literal(value, LiteralForm::Computed, result.with_nullable(nullable))
    }

    /// The default collation of a character set by name; 1115 if there is none.
    pub(crate) fn charset_default(&self, name: &str) -> Result<CollationId, SqlError> {
        match Charset::by_name(name) {
            Some(charset) => Ok(collation::default_of(charset).id),
            None => Err(SqlError::new(&codes::UNKNOWN_CHARACTER_SET, &[&name])),
        }
    }
}
