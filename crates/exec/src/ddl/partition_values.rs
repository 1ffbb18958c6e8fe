//! VALUES of partitions: evaluated once, checked, and kept as SQL has them.

use super::{DdlContext, check, unsupported};
use crate::ExecError;
use crate::store::store;
use catalog::Partitions;
use catalog::partition::{DEFAULT, MAXIMUM, MEMBER, TUPLE};
use engine_api::TableDefinition;
use std::cmp::Ordering;
use syntax::ast::{Expression, PartitionSpecification, PartitionValues, Statement};
use types::convert::ColumnPlace;
use types::{ColumnType, SqlError, TypeKind, Value, codes};

/// A tuple of values; none is MAXVALUE.
type Tuple = Vec<Option<Value>>;

/// What a partition takes.
#[derive(Clone, PartialEq)]
enum Taken {
    Tuples(Vec<Tuple>),
    Default,
}

/// Reads the partitions that were written out and puts them into the clause.
pub fn put(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    partitions: &mut Partitions,
    columns: &[usize],
    written: &[PartitionSpecification],
) -> Result<(), ExecError> {
    check_names(written.iter().map(|partition| partition.name.as_str()))?;
    let ranges = partitions.is_range() || partitions.is_list();
    let method = if partitions.is_range() { "RANGE" } else { "LIST" };
    if ranges && written.is_empty() {
        return Err(SqlError::new(&codes::PARTITIONS_MUST_BE_DEFINED_ERROR, &[&method]).into());
    }
    partitions.written = written.iter().map(|partition| partition.name.clone()).collect();
    let comment = |partition: &PartitionSpecification| {
        let text = partition.comment.as_deref().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    };
    partitions.comments = written.iter().map(comment).collect();
    let mut taken = Vec::with_capacity(written.len());
    for partition in written {
        check_kind(partitions, &partition.values)?;
        if ranges {
            let reader = Reader { context, table, partitions, columns, name: &partition.name };
            taken.push(reader.read(&partition.values)?);
        }
    }
    let reader = Reader { context, table, partitions, columns, name: "" };
    reader.check(&taken)?;
    let texts = taken.iter().map(|taken| reader.text(taken)).collect();
    partitions.values = texts;
    Ok(())
}

/// The same checks for values that were kept: 1481, 1493, 1495 and 4030.
pub fn check_order(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    partitions: &Partitions,
    columns: &[usize],
) -> Result<(), ExecError> {
    let reader = Reader { context, table, partitions, columns, name: "" };
    let mut taken = Vec::with_capacity(partitions.values.len());
    for values in &partitions.values {
        if values == DEFAULT {
            taken.push(Taken::Default);
            continue;
        }
        let mut tuples = Vec::new();
        for tuple in values.split(TUPLE) {
            tuples.push(reader.kept(tuple)?);
        }
        taken.push(Taken::Tuples(tuples));
    }
    reader.check(&taken)
}

/// 1517 for a name that stands twice.
pub fn check_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), ExecError> {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if seen.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            return Err(SqlError::new(&codes::SAME_NAME_PARTITION, &[&name]).into());
        }
        seen.push(name);
    }
    Ok(())
}

/// 1479 and 1480: each method has its own kind of VALUES.
fn check_kind(partitions: &Partitions, values: &PartitionValues) -> Result<(), ExecError> {
    let wrong = |method: &str, values: &str| -> Result<(), ExecError> {
        Err(SqlError::new(&codes::PARTITION_WRONG_VALUES_ERROR, &[&method, &values]).into())
    };
    let missing = |method: &str, values: &str| -> Result<(), ExecError> {
        Err(SqlError::new(&codes::PARTITION_REQUIRES_VALUES_ERROR, &[&method, &values]).into())
    };
    match values {
        PartitionValues::LessThan(_) if !partitions.is_range() => wrong("RANGE", "LESS THAN"),
        PartitionValues::In(_) if !partitions.is_list() => wrong("LIST", "IN"),
        PartitionValues::Default if !partitions.is_list() => wrong("LIST", "DEFAULT"),
        PartitionValues::None if partitions.is_range() => missing("RANGE", "LESS THAN"),
        PartitionValues::None if partitions.is_list() => missing("LIST", "IN"),
        _ => Ok(()),
    }
}

/// Reads the values of one partition.
struct Reader<'r, 'c> {
    context: &'r DdlContext<'c>,
    table: &'r TableDefinition,
    partitions: &'r Partitions,
    columns: &'r [usize],
    name: &'r str,
}

impl Reader<'_, '_> {
    fn read(&self, values: &PartitionValues) -> Result<Taken, ExecError> {
        Ok(match values {
            PartitionValues::LessThan(tuple) => Taken::Tuples(vec![self.tuple(tuple)?]),
            PartitionValues::In(tuples) => {
                let read = tuples.iter().map(|tuple| self.tuple(tuple));
                let mut read = read.collect::<Result<Vec<_>, _>>()?;
                if !self.partitions.is_by_columns() {
                    // As MariaDB shows it: NULL comes first.
                    read.sort_by_key(|tuple| tuple != &[Some(Value::Null)]);
                }
                Taken::Tuples(read)
            }
            PartitionValues::Default | PartitionValues::None => Taken::Default,
        })
    }

    fn tuple(&self, written: &[Option<Expression>]) -> Result<Tuple, ExecError> {
        if !self.partitions.is_by_columns() {
            let [value] = written else {
                let method = if self.partitions.is_range() { "RANGE" } else { "LIST" };
                return Err(SqlError::new(&codes::TOO_MANY_VALUES_ERROR, &[&method]).into());
            };
            return Ok(vec![value.as_ref().map(|value| self.whole(value)).transpose()?]);
        }
        if written.len() != self.columns.len() {
            let text = "Inconsistency in usage of column lists for partitioning";
            return Err(SqlError::with_message(&codes::PARSE_ERROR, text.to_string()).into());
        }
        let pairs = written.iter().zip(self.columns);
        pairs
            .map(|(value, column)| {
                value.as_ref().map(|value| self.of_column(value, *column)).transpose()
            })
            .collect()
    }

    /// A tuple as it is kept.
    fn kept(&self, text: &str) -> Result<Tuple, ExecError> {
        let members: Vec<&str> = text.split(MEMBER).collect();
        let members = members.iter().map(|member| (*member != MAXIMUM).then_some(*member));
        let mut written = Vec::new();
        for member in members {
            let parsed = member.map(|text| {
                let text = format!("DO {text}");
                syntax::parse(text.as_bytes(), &syntax::ParseOptions::default())
            });
            written.push(match parsed.map(|parsed| parsed.map(|parsed| parsed.statement)) {
                None => None,
                Some(Ok(Statement::Do(mut values))) if values.len() == 1 => values.pop(),
                Some(_) => return Err(unsupported("these VALUES of a partition")),
            });
        }
        self.tuple(&written)
    }

    /// A value of the partition function.
    fn whole(&self, written: &Expression) -> Result<Value, ExecError> {
        let (value, _) = check::constant(self.context, written)?;
        match value {
            Value::Null if self.partitions.is_range() => {
                Err(SqlError::new(&codes::NULL_IN_VALUES_LESS_THAN, &[]).into())
            }
            Value::Int(number) if number < 0 && self.is_unsigned() => {
                Err(SqlError::new(&codes::PARTITION_CONST_DOMAIN_ERROR, &[]).into())
            }
            Value::Null | Value::Int(_) | Value::UInt(_) => Ok(value),
            _ => Err(SqlError::new(&codes::VALUES_IS_NOT_INT_TYPE_ERROR, &[&self.name]).into()),
        }
    }

    fn is_unsigned(&self) -> bool {
        match self.columns {
            [column] => {
                let column = &self.table.columns[*column];
                let quoted = catalog::describe::quote_name(&column.name);
                column.column_type.unsigned && self.partitions.method().1 == quoted
            }
            _ => false,
        }
    }

    /// A value of a column, of its type.
    fn of_column(&self, written: &Expression, column: usize) -> Result<Value, ExecError> {
        let (value, from) = check::constant(self.context, written)?;
        let column = &self.table.columns[column];
        let to = &column.column_type;
        let fits = match &value {
            Value::Null if self.partitions.is_range() => {
                return Err(SqlError::new(&codes::NULL_IN_VALUES_LESS_THAN, &[]).into());
            }
            Value::Null => return Ok(value),
            Value::Int(_) | Value::UInt(_) => to.kind.is_integer(),
            Value::Bytes(_) => !to.kind.is_integer(),
            _ => true,
        };
        let refused = || ExecError::from(SqlError::new(&codes::WRONG_TYPE_COLUMN_VALUE_ERROR, &[]));
        if !fits {
            return Err(refused());
        }
        let eval = &self.context.eval;
        let strict = eval.warnings_are_errors.replace(true);
        let place = ColumnPlace { schema: "", table: "", column: &column.name, row: 0 };
        let stored = store(value.as_ref(), &from, to, &place, eval);
        eval.warnings_are_errors.set(strict);
        stored.map_err(|_| refused())
    }

    /// 1481, 1493, 1495 and 4030.
    fn check(&self, taken: &[Taken]) -> Result<(), ExecError> {
        if taken.iter().filter(|taken| **taken == Taken::Default).count() > 1 {
            return Err(SqlError::new(&codes::PARTITION_DEFAULT_ERROR, &[]).into());
        }
        let tuples = |taken: &Taken| match taken {
            Taken::Tuples(tuples) => tuples.clone(),
            Taken::Default => Vec::new(),
        };
        let all: Vec<Tuple> = taken.iter().flat_map(tuples).collect();
        if !self.partitions.is_range() {
            let equal = |a: &Tuple, b: &Tuple| self.compare(a, b) == Ordering::Equal;
            let twice = |at: usize| all[..at].iter().any(|other| equal(other, &all[at]));
            if (0..all.len()).any(twice) {
                let code = &codes::MULTIPLE_DEF_CONST_IN_LIST_PART_ERROR;
                return Err(SqlError::new(code, &[]).into());
            }
            return Ok(());
        }
        for pair in all.windows(2) {
            if !self.partitions.is_by_columns() && pair[0] == [None] {
                return Err(SqlError::new(&codes::PARTITION_MAXVALUE_ERROR, &[]).into());
            }
            if self.compare(&pair[0], &pair[1]) != Ordering::Less {
                return Err(SqlError::new(&codes::RANGE_NOT_INCREASING_ERROR, &[]).into());
            }
        }
        Ok(())
    }

    fn column_type(&self, member: usize) -> Option<ColumnType> {
        let column = self.columns.get(member).filter(|_| self.partitions.is_by_columns());
        column.map(|column| self.table.columns[*column].column_type)
    }

    fn compare(&self, a: &Tuple, b: &Tuple) -> Ordering {
        let mut order = Ordering::Equal;
        for (member, (a, b)) in a.iter().zip(b).enumerate() {
            order = order.then_with(|| match (a, b) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(a), Some(b)) => compare_values(a, b, self.column_type(member)),
            });
        }
        order
    }

    /// The values as SQL has them.
    fn text(&self, taken: &Taken) -> String {
        let Taken::Tuples(tuples) = taken else { return DEFAULT.to_string() };
        let member = |(member, value): (usize, &Option<Value>)| match value {
            None => MAXIMUM.to_string(),
            Some(value) => self.literal(value, self.column_type(member)),
        };
        let tuple = |tuple: &Tuple| {
            let members: Vec<String> = tuple.iter().enumerate().map(member).collect();
            members.join(&MEMBER.to_string())
        };
        tuples.iter().map(tuple).collect::<Vec<_>>().join(&TUPLE.to_string())
    }

    fn literal(&self, value: &Value, column_type: Option<ColumnType>) -> String {
        match (value, column_type) {
            (Value::Null, _) => "NULL".to_string(),
            (Value::Int(number), _) => number.to_string(),
            (Value::UInt(number), _) => number.to_string(),
            (value, Some(column_type)) => {
                let mut text = Vec::new();
                let zone = self.context.eval.settings.time_zone;
                types::text::write_text(value.as_ref(), &column_type, zone, &mut text);
                let mut shown = Vec::new();
                let from = match column_type.kind {
                    TypeKind::Date | TypeKind::DateTime => types::Charset::Utf8mb4,
                    _ => column_type.collation.charset(),
                };
                from.convert(&text, types::Charset::Utf8mb4, &mut shown);
                catalog::describe::quote_text(&String::from_utf8_lossy(&shown))
            }
            (_, None) => "NULL".to_string(),
        }
    }
}

fn compare_values(a: &Value, b: &Value, column_type: Option<ColumnType>) -> Ordering {
    let number = |value: &Value| match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        Value::Date(date) => i128::from(date.0),
        Value::DateTime(time) => i128::from(time.0),
        Value::Null => i128::MIN,
        _ => i128::MAX,
    };
    match (a, b, column_type) {
        (Value::Bytes(a), Value::Bytes(b), Some(column_type)) => {
            column_type.collation.info().compare(a, b)
        }
        _ => number(a).cmp(&number(b)),
    }
}
