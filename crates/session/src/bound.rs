//! The types of columns that are made of parameters: of the values, as the client bound them.

use expr::{Coercibility, ResultType};
use types::{CollationId, ColumnType, TypeKind, Value};
use wire::binary::{ParameterType, type_code};

/// How the parameters of an execution were bound.
#[derive(Clone, Copy)]
pub(crate) enum Bound<'a> {
    /// Nothing is known but the values.
    ByValue,
    /// By COM_STMT_EXECUTE, with these codes.
    Codes(&'a [ParameterType]),
    /// By EXECUTE ... USING, with expressions of these types.
    Types(&'a [ResultType]),
}

impl Bound<'_> {
    /// The values and their types: integers as long as their type, text and decimals as long as
    /// they are.
    pub(crate) fn typed(
        self,
        values: &[Value],
        connection: CollationId,
    ) -> (Vec<Value>, Vec<ResultType>) {
        let decimal = |(position, value): (usize, &Value)| match (self, value) {
            (Self::Codes(codes), Value::Bytes(text))
                if matches!(
                    codes.get(position).map(|it| it.code),
                    Some(type_code::DECIMAL | type_code::NEWDECIMAL)
                ) =>
            {
                Value::Decimal(types::Decimal::parse(text).value)
            }
            _ => value.clone(),
        };
        let values: Vec<Value> = values.iter().enumerate().map(decimal).collect();
        let of = |(position, value): (usize, &Value)| match self {
            Self::Types(types) if position < types.len() => of_type(value, types[position]),
            Self::Codes(codes) => of_code(value, codes.get(position).map(|it| it.code), connection),
            Self::Types(_) | Self::ByValue => of_code(value, None, connection),
        };
        let types = values.iter().enumerate().map(of).collect();
        (values, types)
    }
}

fn of_type(value: &Value, bound: ResultType) -> ResultType {
    match value {
        Value::Null => ResultType::null(),
        Value::Decimal(_) | Value::Double(_) => of_code(value, None, bound.collation()),
        Value::Bytes(_) if bound.is_string() => of_code(value, None, bound.collation()),
        _ => ResultType {
            nullable: false,
            is_column: false,
            is_json: false,
            is_variable: false,
            is_hex: false,
            ..bound
        },
    }
}

fn of_code(value: &Value, code: Option<u8>, connection: CollationId) -> ResultType {
    match value {
        Value::Null => ResultType::null(),
        Value::Int(_) => integer(code, false),
        Value::UInt(_) => integer(code, true),
        Value::Float(_) | Value::Double(_) => {
            let mut result = ResultType::double(false);
            if let Value::Float(_) = value {
                result.column_type.kind = TypeKind::Float;
            }
            result
        }
        Value::Decimal(number) => {
            let scale = u32::from(number.scale());
            ResultType::decimal(number.precision().max(scale), scale, false, false)
        }
        Value::Bytes(bytes) => text(bytes, code, connection),
        Value::Date(_) => ResultType::of(ColumnType::date(), false),
        Value::DateTime(moment) => temporal(TypeKind::DateTime, 19, moment.micros()),
        Value::Timestamp(_) => temporal(TypeKind::DateTime, 26, 1),
        Value::Time(time) => temporal(TypeKind::Time, 23, time.micros()),
    }
}

/// An integer as long as its type, with a sign.
fn integer(code: Option<u8>, unsigned: bool) -> ResultType {
    let (kind, length) = match code {
        Some(type_code::TINY) => (TypeKind::TinyInt, 4),
        Some(type_code::SHORT) => (TypeKind::SmallInt, 6),
        Some(type_code::LONG | type_code::INT24) => (TypeKind::Int, 11),
        _ => (TypeKind::BigInt, 21),
    };
    let mut column_type = ColumnType::integer(kind, unsigned);
    column_type.length = length;
    column_type.precision = (length - u32::from(!unsigned)) as u8;
    ResultType::of(column_type, false)
}

/// Lengths are those of types without a fraction, whether there is one or not.
fn temporal(kind: TypeKind, length: u32, micros: u32) -> ResultType {
    let mut column_type = ColumnType::temporal(kind, if micros == 0 { 0 } else { 6 });
    column_type.length = length;
    ResultType::of(column_type, false)
}

fn text(bytes: &[u8], code: Option<u8>, connection: CollationId) -> ResultType {
    let is_blob = matches!(code, Some(type_code::TINY_BLOB..=type_code::BLOB));
    let collation = if is_blob { CollationId::BINARY } else { connection };
    let characters = collation.charset().character_count(bytes) as u64;
    let ascii = bytes.is_ascii() && collation != CollationId::BINARY;
    let coercibility = Coercibility::Coercible;
    let mut result = ResultType::string(characters, collation, coercibility, ascii, false);
    match code {
        Some(type_code::STRING) => result.column_type.kind = TypeKind::Char,
        _ if is_blob => result.column_type.kind = TypeKind::Blob,
        _ => {}
    }
    result
}

/// What plans depend on of a bound value.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ParameterKind {
    Null,
    Int {
        unsigned: bool,
    },
    Double,
    Decimal {
        precision: u32,
        scale: u32,
    },
    /// The length is rounded up, so that a plan serves values of about the same length.
    Text {
        characters: u64,
        ascii: bool,
    },
    Date,
    DateTime,
    Time,
}

impl ParameterKind {
    /// The kind of a value.
    #[inline]
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(_) => Self::Int { unsigned: false },
            Value::UInt(_) => Self::Int { unsigned: true },
            Value::Float(_) | Value::Double(_) => Self::Double,
            Value::Decimal(number) => {
                let scale = u32::from(number.scale());
                Self::Decimal { precision: number.precision().max(scale), scale }
            }
            Value::Bytes(bytes) => Self::Text {
                characters: (bytes.len() as u64).next_power_of_two().max(256),
                ascii: bytes.is_ascii(),
            },
            Value::Date(_) => Self::Date,
            Value::DateTime(_) | Value::Timestamp(_) => Self::DateTime,
            Value::Time(_) => Self::Time,
        }
    }

    /// The type that it has in an expression.
    pub(crate) fn result_type(self, collation: CollationId) -> ResultType {
        match self {
            Self::Null => ResultType::null(),
            Self::Int { unsigned } => ResultType::bigint(unsigned, true),
            Self::Double => ResultType::double(true),
            Self::Decimal { precision, scale } => {
                ResultType::decimal(precision, scale, false, true)
            }
            Self::Text { characters, ascii } => {
                ResultType::string(characters, collation, Coercibility::Coercible, ascii, true)
            }
            Self::Date => ResultType::of(ColumnType::date(), true),
            Self::DateTime => widest(TypeKind::DateTime),
            Self::Time => widest(TypeKind::Time),
        }
    }
}

/// With all fractional digits that there can be.
fn widest(kind: TypeKind) -> ResultType {
    ResultType::of(ColumnType::temporal(kind, 6), true)
}
