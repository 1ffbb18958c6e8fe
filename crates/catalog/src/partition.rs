//! PARTITION BY: what a table's clause says, and conditions over its columns for "the row is in
//! this partition". Rows of all partitions lie in one tree.
//!
//! Values are kept as SQL has them, for each partition one text: tuples between [`TUPLE`]s, their
//! members between [`MEMBER`]s, [`MAXIMUM`] and [`DEFAULT`] as words.

use crate::describe::{quote_name, quote_text};
use engine_api::TableDefinition;
use std::fmt::Write;

/// Between the tuples of VALUES IN.
pub const TUPLE: char = '\u{1}';
/// Between the members of a tuple.
pub const MEMBER: char = '\u{2}';
/// The value above all others.
pub const MAXIMUM: &str = "MAXVALUE";
/// The partition of all rows that no other one takes.
pub const DEFAULT: &str = "DEFAULT";

/// What a table's PARTITION BY says.
#[derive(Clone, Debug, Default)]
pub struct Partitions {
    /// Method and expression, as shown.
    pub by: String,
    /// Names that were written out.
    pub written: Vec<String>,
    /// The number that was written.
    pub count: Option<u64>,
    /// VALUES of RANGE and LIST.
    pub values: Vec<String>,
    /// COMMENT of each partition that was written out.
    pub comments: Vec<String>,
    /// Columns of the key, for KEY ().
    pub key: Vec<String>,
}

fn joined(conditions: Vec<String>, operator: &str) -> String {
    match conditions.len() {
        1 => conditions.into_iter().next().unwrap_or_default(),
        _ => format!("({})", conditions.join(operator)),
    }
}

impl Partitions {
    /// Of a table; none if it is not partitioned.
    pub fn of(table: &TableDefinition) -> Option<Self> {
        let option = |wanted: &str| {
            let found = table.options.other.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone())
        };
        let by = option(engine_api::PARTITION_BY)?;
        let list = |wanted: &str| -> Vec<String> {
            let text = option(wanted);
            text.map(|text| text.split('\0').map(str::to_string).collect()).unwrap_or_default()
        };
        let is_key = |index: &&engine_api::IndexDefinition| index.unique && !index.parts.is_empty();
        let key = table.indexes.iter().find(is_key).map(|index| {
            index.parts.iter().map(|part| quote_name(&table.columns[part.column].name)).collect()
        });
        Some(Self {
            by,
            written: list(engine_api::PARTITION_NAMES),
            count: option(engine_api::PARTITION_COUNT).and_then(|count| count.parse().ok()),
            values: list(engine_api::PARTITION_VALUES),
            comments: list(engine_api::PARTITION_COMMENTS),
            key: key.unwrap_or_default(),
        })
    }

    /// Puts the clause among a table's options, in place of the former one.
    pub fn store(&self, table: &mut TableDefinition) {
        Self::remove(table);
        let mut put = |name: &str, value: String| {
            table.options.other.push((name.to_string(), value));
        };
        put(engine_api::PARTITION_BY, self.by.clone());
        if !self.written.is_empty() {
            put(engine_api::PARTITION_NAMES, self.written.join("\0"));
        } else if let Some(count) = self.count {
            put(engine_api::PARTITION_COUNT, count.to_string());
        }
        if !self.values.is_empty() {
            put(engine_api::PARTITION_VALUES, self.values.join("\0"));
        }
        if self.comments.iter().any(|comment| !comment.is_empty()) {
            put(engine_api::PARTITION_COMMENTS, self.comments.join("\0"));
        }
    }

    /// Takes the clause out of a table's options.
    pub fn remove(table: &mut TableDefinition) {
        table.options.other.retain(|(name, _)| !name.starts_with("PARTITION"));
    }

    /// Names of all partitions.
    pub fn names(&self) -> Vec<String> {
        if !self.written.is_empty() {
            return self.written.clone();
        }
        (0..self.count.unwrap_or(1)).map(|number| format!("p{number}")).collect()
    }

    /// The number of a partition.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names().iter().position(|known| known.eq_ignore_ascii_case(name))
    }

    /// Method and expression, apart.
    pub fn method(&self) -> (String, &str) {
        match self.by.split_once('(') {
            Some((method, rest)) => {
                let method = method.split(" ALGORITHM").next().unwrap_or(method);
                let method = method.trim_end().replace("  ", " ");
                (method, rest.strip_suffix(')').unwrap_or(rest))
            }
            None => (self.by.clone(), ""),
        }
    }

    /// PARTITION BY RANGE.
    pub fn is_range(&self) -> bool {
        self.by.starts_with("RANGE")
    }

    /// PARTITION BY LIST.
    pub fn is_list(&self) -> bool {
        self.by.starts_with("LIST")
    }

    /// Rows are compared with tuples of columns, not with the value of a function.
    pub fn is_by_columns(&self) -> bool {
        self.method().0.ends_with(" COLUMNS")
    }

    /// The columns of the clause, quoted.
    fn columns(&self) -> Vec<String> {
        let text = self.method().1;
        let (mut columns, mut inside, mut start) = (Vec::new(), false, 0);
        for (at, character) in text.char_indices() {
            match character {
                '`' => inside = !inside,
                ',' if !inside => {
                    columns.push(text[start..at].to_string());
                    start = at + 1;
                }
                _ => {}
            }
        }
        columns.push(text[start..].to_string());
        columns
    }

    fn tuples(&self, partition: usize) -> Vec<Vec<&str>> {
        let values = self.values.get(partition).map_or("", String::as_str);
        values.split(TUPLE).map(|tuple| tuple.split(MEMBER).collect()).collect()
    }

    /// What VALUES says of a partition, as information_schema shows it.
    pub fn description(&self, partition: usize) -> Option<String> {
        let values = self.values.get(partition)?;
        if values == DEFAULT {
            return Some(DEFAULT.to_string());
        }
        let tuples = self.tuples(partition).into_iter().map(|tuple| match tuple.len() {
            1 => tuple[0].to_string(),
            _ if self.is_range() => tuple.join(","),
            _ => format!("({})", tuple.join(",")),
        });
        Some(tuples.collect::<Vec<_>>().join(","))
    }

    /// The clause as SHOW CREATE TABLE has it.
    pub fn clause(&self) -> String {
        let mut text = format!("\n PARTITION BY {}", self.by);
        let mut lines = Vec::with_capacity(self.written.len());
        for (number, name) in self.written.iter().enumerate() {
            let mut line = format!("PARTITION {}", quote_name(name));
            if let Some(description) = self.description(number) {
                let _ = match description.as_str() {
                    DEFAULT => write!(line, " {DEFAULT}"),
                    MAXIMUM if !self.is_by_columns() => write!(line, " VALUES LESS THAN {MAXIMUM}"),
                    values if self.is_range() => write!(line, " VALUES LESS THAN ({values})"),
                    values => write!(line, " VALUES IN ({values})"),
                };
            }
            if let Some(comment) = self.comments.get(number).filter(|it| !it.is_empty()) {
                let _ = write!(line, " COMMENT = {}", quote_text(comment));
            }
            line.push_str(" ENGINE = InnoDB");
            lines.push(line);
        }
        if !lines.is_empty() {
            let _ = write!(text, "\n({})", lines.join(",\n "));
        } else if let Some(count) = self.count {
            let _ = write!(text, "\nPARTITIONS {count}");
        }
        text
    }

    /// The row is below the end of a range.
    fn below(&self, partition: usize) -> String {
        let (tuples, columns) = (self.tuples(partition), self.columns());
        let values = tuples.first().map_or(&[][..], Vec::as_slice);
        if !self.is_by_columns() {
            let (function, value) = (self.method().1, values.first().copied().unwrap_or(MAXIMUM));
            return match value {
                MAXIMUM => "1".to_string(),
                value => format!("({function} < {value} OR {function} IS NULL)"),
            };
        }
        let mut condition = String::new();
        for (column, value) in columns.iter().zip(values).rev() {
            condition = match (*value, condition.as_str()) {
                (MAXIMUM, _) => "1".to_string(),
                (value, "") => format!("({column} < {value} OR {column} IS NULL)"),
                (value, rest) => format!(
                    "({column} < {value} OR {column} IS NULL OR ({column} = {value} AND {rest}))"
                ),
            };
        }
        condition
    }

    /// The row has one of the values of a partition of LIST.
    fn listed(&self, partitions: impl Iterator<Item = usize>) -> String {
        let (function, columns) = (self.method().1, self.columns());
        let mut any = vec!["0".to_string()];
        for tuple in partitions.flat_map(|number| self.tuples(number)) {
            if !self.is_by_columns() {
                any.push(format!("({function} <=> {})", tuple[0]));
                continue;
            }
            let all = columns.iter().zip(tuple);
            any.push(joined(all.map(|(c, v)| format!("({c} <=> {v})")).collect(), " AND "));
        }
        joined(any, " OR ")
    }

    /// The row is in a partition.
    fn member(&self, partition: usize) -> String {
        if self.is_range() {
            let below = self.below(partition);
            return match partition.checked_sub(1) {
                Some(before) => format!("({below} AND NOT {})", self.below(before)),
                None => below,
            };
        }
        if self.is_list() {
            return match self.values.get(partition).map(String::as_str) {
                Some(DEFAULT) => format!("(NOT {})", self.listed(self.not_default())),
                _ => self.listed(std::iter::once(partition)),
            };
        }
        format!("({} = {partition})", self.number())
    }

    fn not_default(&self) -> impl Iterator<Item = usize> {
        (0..self.values.len()).filter(|number| self.values[*number] != DEFAULT)
    }

    /// The number of a row's partition, for HASH as in MariaDB.
    fn number(&self) -> String {
        let count = self.names().len() as u64;
        let (method, function) = self.method();
        if !method.ends_with("HASH") {
            let columns = if function.is_empty() { self.key.join(",") } else { function.into() };
            return format!("MOD(CRC32(CONCAT_WS('-',{columns})),{count})");
        }
        if !method.starts_with("LINEAR") {
            return format!("ABS(MOD(IFNULL({function},{}),{count}))", i64::MIN);
        }
        let value = format!("IFNULL({function},0)");
        let mask = count.next_power_of_two() - 1;
        let half = mask >> 1;
        format!("IF(({value} & {mask}) >= {count}, {value} & {half}, {value} & {mask})")
    }

    /// The condition that a row is in one of these partitions.
    pub fn condition(&self, partitions: &[usize]) -> String {
        joined(partitions.iter().map(|number| self.member(*number)).collect(), " OR ")
    }

    /// The condition that a row is in any partition; none if all rows are.
    pub fn any(&self) -> Option<String> {
        if self.is_range() {
            let below = self.below(self.values.len().checked_sub(1)?);
            return (below != "1").then_some(below);
        }
        let all = self.is_list() && !self.values.iter().any(|values| values == DEFAULT);
        all.then(|| self.listed(0..self.values.len()))
    }

    /// The function whose value an error shows.
    pub fn function(&self) -> Option<&str> {
        (!self.is_by_columns()).then(|| self.method().1)
    }
}
