//! PARTITION BY: checked and kept for SHOW CREATE TABLE and information_schema. Rows of all
//! partitions lie in one tree; what partition a row is in is computed where it matters.

use super::partition_values as values;
use super::{DdlContext, unsupported};
use crate::ExecError;
use catalog::Partitions;
use engine_api::{IndexDefinition, TableDefinition};
use syntax::ast::{BinaryOperator, Expression, Literal, PartitionBy, PartitionKind};
use types::{SqlError, TypeKind, codes};

/// Most partitions of a table.
pub const PARTITIONS_MAX: u64 = 8192;

/// Functions of a column that a partition may be chosen by.
const FUNCTIONS: [&str; 19] = [
    "abs",
    "ceiling",
    "day",
    "dayofmonth",
    "dayofweek",
    "dayofyear",
    "extract",
    "floor",
    "hour",
    "microsecond",
    "minute",
    "mod",
    "month",
    "quarter",
    "second",
    "to_days",
    "to_seconds",
    "weekday",
    "year",
];

/// Takes the clause away.
pub fn remove(table: &mut TableDefinition) -> Result<(), ExecError> {
    if Partitions::of(table).is_none() {
        return Err(SqlError::new(&codes::PARTITION_MGMT_ON_NONPARTITIONED, &[]).into());
    }
    Partitions::remove(table);
    Ok(())
}

/// Puts the clause into a definition that has its columns and indexes.
pub fn apply(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    written: &PartitionBy,
) -> Result<(), ExecError> {
    let mut columns = Vec::new();
    let linear = if written.linear { "LINEAR " } else { "" };
    let by = match &written.kind {
        PartitionKind::Other(_) => return Err(unsupported("subpartitions")),
        PartitionKind::Hash(value) => {
            format!("{linear}HASH ({})", function_text(table, value, &mut columns)?)
        }
        PartitionKind::Range(value) => {
            format!("RANGE ({})", function_text(table, value, &mut columns)?)
        }
        PartitionKind::List(value) => {
            format!("LIST ({})", function_text(table, value, &mut columns)?)
        }
        PartitionKind::RangeColumns(names) => {
            format!("RANGE  COLUMNS({})", key_text(table, names, &mut columns)?)
        }
        PartitionKind::ListColumns(names) => {
            format!("LIST  COLUMNS({})", key_text(table, names, &mut columns)?)
        }
        PartitionKind::Key { algorithm, columns: names } => {
            let text = key_text(table, names, &mut columns)?;
            let algorithm = match algorithm {
                Some(number @ 1..=2) => format!("ALGORITHM = {number} "),
                Some(_) => return Err(unsupported("this ALGORITHM of PARTITION BY KEY")),
                None => String::new(),
            };
            format!("{linear}KEY {algorithm}({text})")
        }
    };
    check_count(written)?;
    let mut partitions = Partitions { by, count: written.count, ..Partitions::default() };
    if partitions.is_by_columns() {
        check_column_types(table, &columns)?;
    }
    values::put(context, table, &mut partitions, &columns, &written.partitions)?;
    partitions.store(table);
    check_indexes(table)
}

/// The function of HASH, RANGE or LIST as it is shown.
fn function_text(
    table: &TableDefinition,
    value: &Expression,
    columns: &mut Vec<usize>,
) -> Result<String, ExecError> {
    let text = hash_text(table, value, columns)?;
    if columns.is_empty() {
        return Err(SqlError::new(&codes::WRONG_EXPR_IN_PARTITION_FUNC_ERROR, &[]).into());
    }
    if let (Expression::Column(_), [column]) = (value, &columns[..])
        && !table.columns[*column].column_type.kind.is_integer()
    {
        let name = &table.columns[*column].name;
        let code = &codes::FIELD_TYPE_NOT_ALLOWED_AS_PARTITION_FIELD;
        return Err(SqlError::new(code, &[name]).into());
    }
    Ok(text)
}

/// Columns of RANGE COLUMNS and LIST COLUMNS are whole numbers, dates or text (1659).
fn check_column_types(table: &TableDefinition, columns: &[usize]) -> Result<(), ExecError> {
    for column in columns {
        let column = &table.columns[*column];
        let kind = column.column_type.kind;
        let allowed = kind.is_integer()
            || matches!(
                kind,
                TypeKind::Date
                    | TypeKind::DateTime
                    | TypeKind::Char
                    | TypeKind::VarChar
                    | TypeKind::Binary
                    | TypeKind::VarBinary
            );
        if !allowed {
            let code = &codes::FIELD_TYPE_NOT_ALLOWED_AS_PARTITION_FIELD;
            return Err(SqlError::new(code, &[&column.name]).into());
        }
    }
    Ok(())
}

fn check_count(written: &PartitionBy) -> Result<(), ExecError> {
    match written.count {
        Some(0) => Err(SqlError::new(&codes::NO_PARTS_ERROR, &[&"partitions"]).into()),
        Some(count) if count > PARTITIONS_MAX => {
            Err(SqlError::new(&codes::TOO_MANY_PARTITIONS_ERROR, &[]).into())
        }
        Some(count)
            if !written.partitions.is_empty() && count != written.partitions.len() as u64 =>
        {
            Err(unsupported("a number of partitions beside other names"))
        }
        _ => Ok(()),
    }
}

fn key_text(
    table: &TableDefinition,
    names: &[String],
    columns: &mut Vec<usize>,
) -> Result<String, ExecError> {
    let missing = || SqlError::new(&codes::FIELD_NOT_FOUND_PART_ERROR, &[]);
    for name in names {
        let at = table.column_position(name).ok_or_else(missing)?;
        if table.columns[at].column_type.kind.is_large() {
            return Err(SqlError::new(&codes::BLOB_FIELD_IN_PART_FUNC_ERROR, &[]).into());
        }
        columns.push(at);
    }
    let not_null = |index: &&IndexDefinition| {
        let mut parts = index.parts.iter();
        index.unique
            && !index.parts.is_empty()
            && parts.all(|part| !table.columns[part.column].nullable)
    };
    if names.is_empty() && !table.indexes.iter().any(|index| not_null(&index)) {
        return Err(missing().into());
    }
    let quoted: Vec<String> = columns.iter().map(|at| quote(&table.columns[*at].name)).collect();
    Ok(quoted.join(","))
}

/// The expression of HASH as it is shown; the columns that it reads are added.
fn hash_text(
    table: &TableDefinition,
    value: &Expression,
    columns: &mut Vec<usize>,
) -> Result<String, ExecError> {
    let refused = || SqlError::new(&codes::WRONG_EXPR_IN_PARTITION_FUNC_ERROR, &[]);
    Ok(match value {
        Expression::Column(name) => {
            let Some(at) = table.column_position(&name.name) else {
                let arguments: [&dyn std::fmt::Display; 2] = [name, &"PARTITION BY"];
                return Err(SqlError::new(&codes::BAD_FIELD_ERROR, &arguments).into());
            };
            if table.columns[at].column_type.kind == TypeKind::Timestamp {
                return Err(refused().into());
            }
            columns.push(at);
            quote(&table.columns[at].name)
        }
        Expression::Literal(Literal::Integer(number)) => number.to_string(),
        Expression::Binary(operator, left, right) => {
            let sign = match operator {
                BinaryOperator::Add => "+",
                BinaryOperator::Subtract => "-",
                BinaryOperator::Multiply => "*",
                BinaryOperator::IntegerDivide => "DIV",
                BinaryOperator::Modulo => "MOD",
                _ => return Err(refused().into()),
            };
            let left = hash_text(table, left, columns)?;
            format!("{left} {sign} {}", hash_text(table, right, columns)?)
        }
        Expression::Function(call) if call.schema.is_none() => {
            let name = call.name.to_ascii_lowercase();
            if !FUNCTIONS.contains(&name.as_str()) {
                return Err(refused().into());
            }
            let mut arguments = Vec::with_capacity(call.arguments.len());
            for argument in &call.arguments {
                arguments.push(hash_text(table, argument, columns)?);
            }
            format!("{name}({})", arguments.join(","))
        }
        _ => return Err(refused().into()),
    })
}

fn quote(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Fails with 1503 unless every unique key has all columns that partitions are chosen by.
pub fn check_indexes(table: &TableDefinition) -> Result<(), ExecError> {
    let by = |name: &str| {
        let found = table.options.other.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    let Some(text) = by(engine_api::PARTITION_BY) else { return Ok(()) };
    let used = table.columns.iter().enumerate();
    let used: Vec<usize> =
        used.filter(|(_, c)| text.contains(&quote(&c.name))).map(|(at, _)| at).collect();
    for index in table.indexes.iter().filter(|index| index.unique && !index.parts.is_empty()) {
        let has = |column: &usize| index.parts.iter().any(|part| part.column == *column);
        if !used.iter().all(has) {
            let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE INDEX" };
            return Err(SqlError::new(&codes::UNIQUE_KEY_NEED_ALL_FIELDS_IN_PF, &[&kind]).into());
        }
    }
    Ok(())
}
