//! Columns as written become columns as stored: types with their limits, defaults as text.

use super::{collation_of, unsupported};
use crate::ExecError;
use crate::store::store;
use engine_api::{ColumnDefault, ColumnDefinition};
use expr::{Coercibility, EvalContext, ResultType};
use syntax::ast::{
    ColumnSpecification, Expression, Literal, TypeName, TypeNameKind, UnaryOperator,
};
use types::convert::ColumnPlace;
use types::{Charset, CollationId, ColumnType, SqlError, TypeKind, ValueRef, codes};

const DISPLAY_WIDTH_MAX: u64 = 255;
const CHAR_CHARACTERS_MAX: u64 = 255;
const VARCHAR_BYTES_MAX: u64 = 65_535;
const FRACTION_DIGITS_MAX: u64 = 6;

fn too_long(name: &str, most: u64) -> ExecError {
    SqlError::new(&codes::TOO_BIG_FIELDLENGTH, &[&name, &most]).into()
}

/// The type of a column, checked against the limits.
pub fn column_type(
    name: &str,
    written: &TypeName,
    table: CollationId,
) -> Result<ColumnType, ExecError> {
    use TypeNameKind as K;
    let integer = |kind: TypeKind| {
        let unsigned = written.unsigned || written.zerofill;
        let mut column_type = ColumnType::integer(kind, unsigned);
        column_type.zerofill = written.zerofill;
        if let Some(width) = written.length.filter(|width| *width > 0) {
            column_type.length = width as u32;
        }
        column_type
    };
    if matches!(written.kind, K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt)
        && written.length.is_some_and(|width| width > DISPLAY_WIDTH_MAX)
    {
        let arguments: [&dyn std::fmt::Display; 2] = [&name, &DISPLAY_WIDTH_MAX];
        return Err(SqlError::new(&codes::TOO_BIG_DISPLAYWIDTH, &arguments).into());
    }
    Ok(match written.kind {
        K::TinyInt => integer(TypeKind::TinyInt),
        K::SmallInt => integer(TypeKind::SmallInt),
        K::MediumInt => integer(TypeKind::MediumInt),
        K::Int => integer(TypeKind::Int),
        K::BigInt => integer(TypeKind::BigInt),
        K::Boolean => ColumnType { length: 1, ..ColumnType::integer(TypeKind::TinyInt, false) },
        K::Decimal => decimal(name, written)?,
        K::Float | K::Double => floating(name, written)?,
        K::Char | K::VarChar => text(name, written, table)?,
        K::Binary | K::VarBinary => bytes(name, written)?,
        K::TinyText | K::Text | K::MediumText | K::LongText => {
            let collation = text_collation(written, table)?;
            let kind = match written.kind {
                K::TinyText => TypeKind::TinyText,
                K::MediumText => TypeKind::MediumText,
                K::LongText => TypeKind::LongText,
                _ => sized(
                    written.length,
                    TypeKind::TinyText,
                    TypeKind::Text,
                    [TypeKind::MediumText, TypeKind::LongText],
                ),
            };
            ColumnType::large(kind, collation)
        }
        K::TinyBlob => ColumnType::large(TypeKind::TinyBlob, CollationId::BINARY),
        K::MediumBlob => ColumnType::large(TypeKind::MediumBlob, CollationId::BINARY),
        K::LongBlob => ColumnType::large(TypeKind::LongBlob, CollationId::BINARY),
        K::Blob => {
            let large = [TypeKind::MediumBlob, TypeKind::LongBlob];
            let kind = sized(written.length, TypeKind::TinyBlob, TypeKind::Blob, large);
            ColumnType::large(kind, CollationId::BINARY)
        }
        K::Json => ColumnType::large(TypeKind::LongText, CollationId::UTF8MB4_BIN),
        K::Bit => bit(name, written)?,
        K::Enum | K::Set => members(name, written, table)?,
        K::Date => ColumnType::date(),
        K::Year => ColumnType::year(),
        K::Time => temporal(name, TypeKind::Time, written)?,
        K::DateTime => temporal(name, TypeKind::DateTime, written)?,
        K::Timestamp => temporal(name, TypeKind::Timestamp, written)?,
        other => return Err(unsupported(&format!("column type {other:?}"))),
    })
}

/// The smallest type that holds `length` bytes; `usual` without a length.
fn sized(length: Option<u64>, tiny: TypeKind, usual: TypeKind, large: [TypeKind; 2]) -> TypeKind {
    match length {
        None | Some(0) => usual,
        Some(1..=255) => tiny,
        Some(256..=65_535) => usual,
        Some(65_536..=16_777_215) => large[0],
        Some(_) => large[1],
    }
}

fn decimal(name: &str, written: &TypeName) -> Result<ColumnType, ExecError> {
    let precision = written.length.unwrap_or(10);
    let precision = if precision == 0 { 10 } else { precision };
    let scale = written.scale.unwrap_or(0);
    let most = u64::from(types::decimal::PRECISION_MAX);
    let most_scale = u64::from(types::decimal::SCALE_MAX);
    if precision > most {
        return Err(SqlError::new(&codes::TOO_BIG_PRECISION, &[&name, &most]).into());
    }
    if scale > most_scale {
        return Err(SqlError::new(&codes::TOO_BIG_SCALE, &[&name, &most_scale]).into());
    }
    if scale > precision {
        return Err(SqlError::new(&codes::M_BIGGER_THAN_D, &[&name]).into());
    }
    let unsigned = written.unsigned || written.zerofill;
    let mut column_type = ColumnType::decimal(precision as u8, scale as u8, unsigned);
    column_type.zerofill = written.zerofill;
    Ok(column_type)
}

fn floating(name: &str, written: &TypeName) -> Result<ColumnType, ExecError> {
    let is_float = written.kind == TypeNameKind::Float
        && (written.scale.is_some() || written.length.unwrap_or(0) <= 24);
    let mut column_type = if is_float { ColumnType::float() } else { ColumnType::double() };
    if let (Some(width), Some(scale)) = (written.length, written.scale) {
        if scale > 30 {
            return Err(SqlError::new(&codes::TOO_BIG_SCALE, &[&name, &30]).into());
        }
        if scale > width {
            return Err(SqlError::new(&codes::M_BIGGER_THAN_D, &[&name]).into());
        }
        column_type.length = width.min(255) as u32;
        column_type.scale = scale as u8;
    }
    column_type.unsigned = written.unsigned || written.zerofill;
    column_type.zerofill = written.zerofill;
    Ok(column_type)
}

fn text_collation(written: &TypeName, table: CollationId) -> Result<CollationId, ExecError> {
    let charset = written.charset.as_deref();
    let found = collation_of(charset, written.collation.as_deref(), table)?;
    Ok(if written.binary { types::collation::binary_of(found.charset()).id } else { found })
}

fn text(name: &str, written: &TypeName, table: CollationId) -> Result<ColumnType, ExecError> {
    let collation = text_collation(written, table)?;
    let is_char = written.kind == TypeNameKind::Char;
    let length = written.length.unwrap_or(1);
    let most = match is_char {
        true => CHAR_CHARACTERS_MAX,
        false => VARCHAR_BYTES_MAX / u64::from(collation.charset().max_bytes()),
    };
    if length > most {
        return Err(too_long(name, most));
    }
    let kind = if is_char { TypeKind::Char } else { TypeKind::VarChar };
    Ok(ColumnType::text(kind, length as u32, collation))
}

fn bytes(name: &str, written: &TypeName) -> Result<ColumnType, ExecError> {
    let is_fixed = written.kind == TypeNameKind::Binary;
    let most = if is_fixed { CHAR_CHARACTERS_MAX } else { VARCHAR_BYTES_MAX };
    let length = written.length.unwrap_or(1);
    if length > most {
        return Err(too_long(name, most));
    }
    let kind = if is_fixed { TypeKind::Binary } else { TypeKind::VarBinary };
    Ok(ColumnType::binary(kind, length as u32))
}

fn bit(name: &str, written: &TypeName) -> Result<ColumnType, ExecError> {
    const BITS_MAX: u64 = 64;
    let bits = written.length.filter(|bits| *bits > 0).unwrap_or(1);
    if bits > BITS_MAX {
        return Err(SqlError::new(&codes::TOO_BIG_DISPLAYWIDTH, &[&name, &BITS_MAX]).into());
    }
    Ok(ColumnType::bit(bits as u32))
}

/// ENUM and SET: members lose blanks at their ends, and are different under the collation.
fn members(name: &str, written: &TypeName, table: CollationId) -> Result<ColumnType, ExecError> {
    const ENUM_MEMBERS_MAX: usize = 65_535;
    let collation = text_collation(written, table)?;
    let kind = match written.kind {
        TypeNameKind::Set => TypeKind::Set,
        _ => TypeKind::Enum,
    };
    let mut names: Vec<Vec<u8>> = Vec::with_capacity(written.members.len());
    for member in &written.members {
        let mut text = Vec::with_capacity(member.len());
        Charset::Utf8mb4.convert(member, collation.charset(), &mut text);
        while collation.info().pads && text.last() == Some(&b' ') {
            text.pop();
        }
        let shown = String::from_utf8_lossy(member);
        if kind == TypeKind::Set && text.contains(&b',') {
            return Err(SqlError::new(&codes::ILLEGAL_VALUE_FOR_TYPE, &[&"set", &shown]).into());
        }
        names.push(text);
    }
    if kind == TypeKind::Set && names.len() > types::members::SET_MEMBERS_MAX {
        return Err(SqlError::new(&codes::TOO_BIG_SET, &[&name]).into());
    }
    if names.len() > ENUM_MEMBERS_MAX {
        return Err(SqlError::new(&codes::TOO_MANY_FIELDS, &[]).into());
    }
    Ok(ColumnType::of_members(kind, types::Members::of(names), collation))
}

/// 1291 if two members of ENUM or SET are equal: a note without strict mode.
fn check_members(
    eval: &EvalContext,
    name: &str,
    column_type: &ColumnType,
) -> Result<(), ExecError> {
    let Some(members) = column_type.members else { return Ok(()) };
    let collation = column_type.collation.info();
    let names = members.names();
    for (at, member) in names.iter().enumerate() {
        if !names[at + 1..].iter().any(|other| collation.compare(other, member).is_eq()) {
            continue;
        }
        let mut shown = Vec::new();
        collation.charset.convert(member, Charset::Utf8mb4, &mut shown);
        let shown = String::from_utf8_lossy(&shown);
        let word = if column_type.kind == TypeKind::Set { "SET" } else { "ENUM" };
        let arguments: [&dyn std::fmt::Display; 3] = [&name, &shown, &word];
        if eval.settings.sql_mode.is_strict() {
            return Err(SqlError::new(&codes::DUPLICATED_VALUE_IN_TYPE, &arguments).into());
        }
        eval.note(&codes::DUPLICATED_VALUE_IN_TYPE, &arguments);
    }
    Ok(())
}

fn temporal(name: &str, kind: TypeKind, written: &TypeName) -> Result<ColumnType, ExecError> {
    let scale = written.length.unwrap_or(0);
    if scale > FRACTION_DIGITS_MAX {
        let arguments: [&dyn std::fmt::Display; 2] = [&name, &FRACTION_DIGITS_MAX];
        return Err(SqlError::new(&codes::TOO_BIG_PRECISION, &arguments).into());
    }
    Ok(ColumnType::temporal(kind, scale as u8))
}

/// A column as written; `id` is set by the caller.
pub fn column(
    eval: &EvalContext,
    written: &ColumnSpecification,
    table: CollationId,
) -> Result<ColumnDefinition, ExecError> {
    let name = &written.name;
    if name.is_empty() || name.ends_with(' ') {
        return Err(SqlError::new(&codes::WRONG_COLUMN_NAME, &[name]).into());
    }
    let column_type = column_type(name, &written.type_name, table)?;
    check_members(eval, name, &column_type)?;
    let nullable = written.nullable.unwrap_or(!written.primary_key) && !written.auto_increment;
    if written.generated.is_some() && written.primary_key {
        return Err(SqlError::new(&codes::PRIMARY_KEY_BASED_ON_GENERATED_COLUMN, &[]).into());
    }
    let is_number = column_type.kind.is_integer()
        || matches!(column_type.kind, TypeKind::Float | TypeKind::Double);
    if written.auto_increment && (!is_number || written.default.is_some()) {
        let code = if is_number { &codes::INVALID_DEFAULT } else { &codes::WRONG_FIELD_SPEC };
        return Err(SqlError::new(code, &[name]).into());
    }
    if written.on_update.is_some()
        && !matches!(column_type.kind, TypeKind::DateTime | TypeKind::Timestamp)
    {
        return Err(SqlError::new(&codes::INVALID_ON_UPDATE, &[name]).into());
    }
    let comment = written.comment.as_deref().unwrap_or_default();
    Ok(ColumnDefinition {
        id: 0,
        name: name.clone(),
        column_type,
        nullable,
        default: match &written.generated {
            Some(generated) => {
                let stored = generated.stored;
                ColumnDefault::Generated { expression: String::new(), stored }
            }
            None => default(eval, name, &column_type, nullable, written.default.as_ref())?,
        },
        on_update_now: written.on_update.is_some(),
        auto_increment: written.auto_increment,
        comment: String::from_utf8_lossy(comment).into_owned(),
        check: match written.type_name.kind {
            // The type is text that must be JSON, unless the column says something else.
            TypeNameKind::Json if written.checks.is_empty() => {
                format!("json_valid({})", catalog::describe::quote_name(name))
            }
            _ => String::new(),
        },
    })
}

/// A default as written becomes the text that the column would show of it.
pub fn default(
    eval: &EvalContext,
    name: &str,
    column_type: &ColumnType,
    nullable: bool,
    written: Option<&Expression>,
) -> Result<ColumnDefault, ExecError> {
    let invalid = || ExecError::from(SqlError::new(&codes::INVALID_DEFAULT, &[&name]));
    let Some(written) = written else {
        return Ok(if nullable { ColumnDefault::Null } else { ColumnDefault::None });
    };
    if let Expression::Function(call) = written
        && call.name.eq_ignore_ascii_case("now")
    {
        let temporal = matches!(column_type.kind, TypeKind::DateTime | TypeKind::Timestamp);
        return Ok(match temporal {
            true => ColumnDefault::CurrentTimestamp,
            false => ColumnDefault::Expression(String::new()),
        });
    }
    let (text, negative) = match written {
        Expression::Unary(UnaryOperator::Minus, operand) => (literal_text(operand), true),
        other => (literal_text(other), false),
    };
    let text = match text {
        None => return Ok(ColumnDefault::Expression(String::new())),
        Some(None) if nullable => return Ok(ColumnDefault::Null),
        Some(None) => return Err(invalid()),
        Some(Some(text)) if negative => [b"-", text.as_slice()].concat(),
        Some(Some(text)) => text,
    };
    let from = ResultType::string(
        text.len() as u64,
        CollationId::UTF8MB4_GENERAL_CI,
        Coercibility::Coercible,
        false,
        false,
    );
    let strict = eval.warnings_are_errors.replace(true);
    let place = ColumnPlace { schema: "", table: "", column: name, row: 0 };
    let stored = store(ValueRef::Bytes(&text), &from, column_type, &place, eval);
    eval.warnings_are_errors.set(strict);
    let stored = stored.map_err(|error| {
        let warning = types::Warning::from(&error);
        eval.push_warning(types::Warning { level: types::Level::Warning, ..warning });
        invalid()
    })?;
    let mut shown = Vec::new();
    types::text::write_text(stored.as_ref(), column_type, eval.settings.time_zone, &mut shown);
    Ok(ColumnDefault::Constant(shown))
}

/// The text of a literal: `Some(None)` is NULL, `None` is no literal.
fn literal_text(expression: &Expression) -> Option<Option<Vec<u8>>> {
    let Expression::Literal(literal) = expression else { return None };
    Some(match literal {
        Literal::Null => None,
        Literal::Boolean(value) => Some(vec![if *value { b'1' } else { b'0' }]),
        Literal::Integer(value) => Some(value.to_string().into_bytes()),
        Literal::Decimal(text) | Literal::Float(text) => Some(text.clone().into_bytes()),
        Literal::String { bytes, .. } | Literal::Hex { bytes, .. } | Literal::Bits(bytes) => {
            Some(bytes.clone())
        }
        Literal::Date(text)
        | Literal::Time(text)
        | Literal::Timestamp(text)
        | Literal::Escaped(_, text) => Some(text.clone().into_bytes()),
    })
}
