//! Engine-independent statistics: what ANALYZE TABLE ... PERSISTENT FOR has collected, or a user
//! has put there, in `mysql.table_stats`, `mysql.column_stats` and `mysql.index_stats`.
//!
//! 1. The three are tables like any others (`statistics_tables.rs`). What the planner reads is a
//!    copy in memory: of the last start, ANALYZE TABLE or FLUSH TABLES. So a change by hand takes
//!    effect with FLUSH TABLES, as in MariaDB.
//! 2. Rows of tables, columns and indexes that are not there say nothing. Those of a table go when
//!    it is dropped, and follow when it is renamed.
//! 3. Damage of the three costs the estimates, never a statement.

use crate::statistics_tables::{COLUMN_STATS, INDEX_STATS, Rows, TABLE_STATS};
use crate::{Catalog, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{Decimal, Value};

pub(crate) type KeptByName = BTreeMap<(String, String), Arc<KeptStatistics>>;

/// What was collected about a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptStatistics {
    /// Rows; none if nobody has said.
    pub cardinality: Option<u64>,
    /// By name.
    pub columns: BTreeMap<String, KeptColumn>,
    /// By name: for each number of leading parts how many rows have the same values; none where
    /// a part is a prefix of its column.
    pub indexes: BTreeMap<String, Vec<Option<f64>>>,
}

/// What was collected about a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptColumn {
    /// Least and greatest value as text; none without a value.
    pub extremes: Option<(Vec<u8>, Vec<u8>)>,
    /// Share of rows with NULL and average length of the others in bytes; none without rows.
    pub shape: Option<(f64, f64)>,
    /// Rows for each value.
    pub frequency: Option<f64>,
    /// Bytes of the histogram that were asked for; none for a column that needs none.
    pub histogram_size: Option<u8>,
    /// Type of the histogram and its bytes.
    pub histogram: Option<(String, Vec<u8>)>,
}

fn fraction(value: Option<f64>) -> Value {
    let number = value.and_then(Decimal::from_f64).and_then(|it| it.value.rounded(4));
    number.map_or(Value::Null, Value::Decimal)
}

fn bytes(value: Option<&Vec<u8>>) -> Value {
    value.map_or(Value::Null, |value| Value::Bytes(value.clone()))
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    }
}

fn number_of(value: &Value) -> Option<u64> {
    match value {
        Value::UInt(number) => Some(*number),
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn fraction_of(value: &Value) -> Option<f64> {
    match value {
        Value::Decimal(number) => Some(number.to_f64()),
        _ => None,
    }
}

impl KeptStatistics {
    /// The rows of the three tables.
    fn rows(&self, schema: &str, table: &str) -> [Vec<Vec<Value>>; 3] {
        let names = || vec![Value::text(schema), Value::text(table)];
        let mut own = names();
        own.push(self.cardinality.map_or(Value::Null, Value::UInt));
        let columns = self.columns.iter().map(|(name, column)| {
            let mut row = names();
            let (kind, histogram) = match &column.histogram {
                Some((kind, histogram)) => (Value::text(kind), bytes(Some(histogram))),
                None => (Value::Null, Value::Null),
            };
            row.extend([
                Value::text(name),
                bytes(column.extremes.as_ref().map(|extremes| &extremes.0)),
                bytes(column.extremes.as_ref().map(|extremes| &extremes.1)),
                fraction(column.shape.map(|shape| shape.0)),
                fraction(column.shape.map(|shape| shape.1)),
                fraction(column.frequency),
                column.histogram_size.map_or(Value::Null, |size| Value::UInt(size.into())),
                kind,
                histogram,
            ]);
            row
        });
        let mut indexes = Vec::new();
        for (name, parts) in &self.indexes {
            for (number, frequency) in parts.iter().enumerate() {
                let mut row = names();
                row.push(Value::text(name));
                row.push(Value::UInt(number as u64 + 1));
                row.push(fraction(*frequency));
                indexes.push(row);
            }
        }
        [vec![own], columns.collect(), indexes]
    }

    fn add_column(&mut self, row: &[Value]) -> Option<()> {
        let [_, _, name, least, greatest, nulls, length, frequency, size, kind, histogram] = row
        else {
            return None;
        };
        let column = KeptColumn {
            extremes: bytes_of(least).zip(bytes_of(greatest)),
            shape: match (fraction_of(nulls), fraction_of(length)) {
                (None, None) => None,
                (nulls, length) => Some((nulls.unwrap_or(0.0), length.unwrap_or(0.0))),
            },
            frequency: fraction_of(frequency),
            histogram_size: number_of(size).map(|size| size.min(255) as u8),
            histogram: text_of(kind).zip(bytes_of(histogram)),
        };
        self.columns.insert(text_of(name)?, column);
        Some(())
    }

    fn add_index(&mut self, row: &[Value]) -> Option<()> {
        let [_, _, name, arity, frequency] = row else { return None };
        let parts = self.indexes.entry(text_of(name)?).or_default();
        let at = (number_of(arity)?.clamp(1, 64) - 1) as usize;
        if parts.len() <= at {
            parts.resize(at + 1, None);
        }
        parts[at] = fraction_of(frequency);
        Some(())
    }
}

/// Puts rows of the three tables together.
fn gather(rows: [Rows; 3]) -> KeptByName {
    let mut known: BTreeMap<(String, String), KeptStatistics> = BTreeMap::new();
    for (number, rows) in rows.into_iter().enumerate() {
        for row in rows {
            let names = row.first().and_then(text_of).zip(row.get(1).and_then(text_of));
            let Some(names) = names else { continue };
            let kept = known.entry(names).or_default();
            match number {
                0 => kept.cardinality = row.get(2).and_then(number_of),
                1 => kept.add_column(&row).unwrap_or_default(),
                _ => kept.add_index(&row).unwrap_or_default(),
            }
        }
    }
    known.into_iter().map(|(names, kept)| (names, Arc::new(kept))).collect()
}

impl Catalog {
    /// Reads the three tables anew: plans of tables of which they now say something else are made
    /// anew, too.
    pub fn reload_statistics(&self) {
        let tables = [TABLE_STATS, COLUMN_STATS, INDEX_STATS];
        let mut rows = [Vec::new(), Vec::new(), Vec::new()];
        for (name, rows) in tables.into_iter().zip(&mut rows) {
            *rows = self.statistics_rows(name).unwrap_or_default();
        }
        let now = gather(rows);
        let before = std::mem::replace(&mut *self.kept_statistics.write(), now.clone());
        let names = before.keys().chain(now.keys());
        for (schema, table) in names.filter(|name| before.get(*name) != now.get(*name)) {
            if let Some(entry) = self.find_base(schema, table) {
                entry.note_analysis();
            }
        }
    }

    /// Whether there is anything in the three tables.
    pub fn has_kept_statistics(&self) -> bool {
        !self.kept_statistics.read().is_empty()
    }

    /// What the three tables say of a table.
    pub fn kept_statistics(&self, schema: &str, table: &str) -> Option<Arc<KeptStatistics>> {
        let known = self.kept_statistics.read();
        known.get(&(schema.to_owned(), table.to_owned())).cloned()
    }

    /// Keeps what was collected about a table.
    pub fn keep_statistics(&self, schema: &str, table: &str, kept: KeptStatistics) -> Result<()> {
        self.replace_statistics((schema, table), None, &kept.rows(schema, table))?;
        // As the tables have it, which is rounded.
        let [own, columns, indexes] = kept.rows(schema, table);
        let kept = gather([own, columns, indexes]);
        self.kept_statistics.write().extend(kept);
        Ok(())
    }

    /// A table is gone, or has another name.
    pub(crate) fn move_statistics(&self, from: (&str, &str), to: Option<(&str, &str)>) {
        if self.replace_statistics(from, to, &[const { Vec::new() }; 3]).is_err() {
            // Rows of a table that is not there say nothing (rule 2).
            base::probe!("catalog.statistics.left_behind");
        }
        let name = (from.0.to_owned(), from.1.to_owned());
        let mut known = self.kept_statistics.write();
        let kept = known.remove(&name);
        if let Some((to, kept)) = to.zip(kept) {
            known.insert((to.0.to_owned(), to.1.to_owned()), kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_come_back_from_their_rows() {
        let column = KeptColumn {
            extremes: Some((b"1".to_vec(), b"99".to_vec())),
            shape: Some((0.25, 4.0)),
            frequency: Some(1.5),
            histogram_size: Some(4),
            histogram: Some(("SINGLE_PREC_HB".to_owned(), vec![0, 127, 200, 255])),
        };
        let kept = KeptStatistics {
            cardinality: Some(7),
            columns: BTreeMap::from([
                ("a".to_owned(), column),
                ("b".to_owned(), KeptColumn::default()),
            ]),
            indexes: BTreeMap::from([("k".to_owned(), vec![Some(2.0), None])]),
        };
        let known = gather(kept.rows("s", "t"));
        let name = ("s".to_owned(), "t".to_owned());
        assert_eq!(known, KeptByName::from([(name, Arc::new(kept))]));
    }
}
