//! The hash table of a hash join.

use super::keys::{KEY_OVERHEAD_BYTES, Keys};
use super::row_bytes;
use super::rows::{Values as PackedValues, push_value};
use crate::ExecError;
use crate::spill::Charged;
use base::memory::MemoryAccount;
use engine_api::RowBuffer;
use expr::{Columns, EvalContext, Expr};
use std::sync::Arc;
use types::collation;
use types::{Value, ValueRef};

/// A row in the table.
pub enum Kept {
    /// As the engine gave it.
    Row(RowBuffer),
    /// Its columns.
    Values(Vec<Value>),
}

/// Rows by the values they are joined by.
pub struct HashTable {
    keys: Keys,
    /// Rows of key number N.
    rows: Vec<Vec<Kept>>,
    charged: Charged,
}

/// Memory of a row besides its bytes.
const ROW_OVERHEAD_BYTES: usize = 128;

impl Kept {
    fn bytes(&self) -> usize {
        ROW_OVERHEAD_BYTES
            + match self {
                Self::Row(row) => row.key.len() + row.payload.len(),
                Self::Values(values) => row_bytes(values),
            }
    }

    /// Appends a record of the row and its key, see [`Kept::of_record`].
    pub fn write(&self, key: &[u8], out: &mut Vec<u8>) {
        let mut part = |bytes: &[u8]| {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        };
        part(key);
        match self {
            Self::Row(row) => {
                part(&row.key);
                out.extend_from_slice(&row.payload);
            }
            Self::Values(values) => {
                values.iter().for_each(|value| push_value(value.as_ref(), out));
            }
        }
    }

    /// The key and the row of a record, a row of the engine or so many values.
    pub fn of_record(record: &[u8], values: Option<usize>) -> Option<(&[u8], Self)> {
        let (key, rest) = split_part(record)?;
        let kept = match values {
            None => {
                let (row_key, payload) = split_part(rest)?;
                Self::Row(RowBuffer { key: row_key.to_vec(), payload: payload.to_vec() })
            }
            Some(count) => {
                let mut values = PackedValues::new(rest);
                Self::Values((0..count).map(|_| values.next_value().to_owned()).collect())
            }
        };
        Some((key, kept))
    }
}

/// Takes bytes with their length before them.
pub fn split_part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

impl HashTable {
    /// An empty table whose memory is charged to the statement.
    pub fn new(memory: &Arc<MemoryAccount>) -> Self {
        Self { keys: Keys::default(), rows: Vec::new(), charged: Charged::none(memory) }
    }

    /// The key of the values; none if one is NULL, which equals nothing. Values that compare as
    /// equal have the same key; the reverse need not hold, since the join's condition is
    /// evaluated on what is found.
    pub fn key<'e>(
        values: impl Iterator<Item = &'e Expr>,
        eval: &EvalContext,
        row: &dyn Columns,
    ) -> Result<Option<Vec<u8>>, ExecError> {
        let mut key = Vec::new();
        for expr in values {
            let number = match expr.as_compared(expr.eval(eval, row)?) {
                ValueRef::Null => return Ok(None),
                ValueRef::Int(v) => v as f64,
                ValueRef::UInt(v) => v as f64,
                ValueRef::Float(v) => f64::from(v),
                ValueRef::Double(v) => v,
                ValueRef::Decimal(v) => v.to_f64(),
                ValueRef::Bytes(text) => {
                    let rules = expr.result.column_type.collation.info();
                    collation::push_sort_key(rules, text, &mut key);
                    key.push(0);
                    continue;
                }
                ValueRef::Date(v) => f64::from(v.0),
                ValueRef::DateTime(v) => v.0 as f64,
                ValueRef::Timestamp(v) => v.0 as f64,
                ValueRef::Time(v) => v.0 as f64,
            };
            key.extend_from_slice(&(number + 0.0).to_bits().to_le_bytes());
        }
        Ok(Some(key))
    }

    /// Adds a row, if there is room for it within the budget: else it is given back.
    pub fn add(&mut self, key: &[u8], row: Kept, budget: u64) -> Result<(), Kept> {
        let bytes = row.bytes() + key.len() + KEY_OVERHEAD_BYTES;
        if self.charged.bytes() + bytes as u64 > budget || !self.charged.add(bytes) {
            return Err(row);
        }
        let (number, is_new) = self.keys.insert(key);
        if is_new {
            self.rows.push(Vec::new());
        }
        self.rows[number].push(row);
        Ok(())
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All rows with their keys.
    pub fn all(&self) -> impl Iterator<Item = (&[u8], &Kept)> {
        let keyed = self.rows.iter().enumerate();
        keyed.flat_map(move |(number, rows)| {
            rows.iter().map(move |row| (self.keys.key(number), row))
        })
    }

    /// The rows with a key.
    pub fn rows(&self, key: &[u8]) -> &[Kept] {
        self.keys.find(key).map_or(&[], |number| self.rows[number].as_slice())
    }
}
