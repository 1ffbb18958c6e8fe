//! The hash table of a hash join.

use super::keys::{KEY_OVERHEAD_BYTES, Keys};
use super::output::charge;
use super::row_bytes;
use crate::ExecError;
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
    memory: Arc<MemoryAccount>,
    charged_bytes: usize,
}

impl HashTable {
    /// An empty table whose memory is charged to the statement.
    pub fn new(memory: &Arc<MemoryAccount>) -> Self {
        Self { keys: Keys::default(), rows: Vec::new(), memory: memory.clone(), charged_bytes: 0 }
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
            let number = match expr.eval(eval, row)? {
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

    /// Adds a row.
    pub fn add(&mut self, key: &[u8], row: Kept) -> Result<(), ExecError> {
        let row_size = match &row {
            Kept::Row(row) => row.key.len() + row.payload.len() + 64,
            Kept::Values(values) => row_bytes(values),
        };
        let bytes = row_size + key.len() + KEY_OVERHEAD_BYTES;
        charge(&self.memory, bytes)?;
        self.charged_bytes += bytes;
        let (number, is_new) = self.keys.insert(key);
        if is_new {
            self.rows.push(Vec::new());
        }
        self.rows[number].push(row);
        Ok(())
    }

    /// The rows with a key.
    pub fn rows(&self, key: &[u8]) -> &[Kept] {
        self.keys.find(key).map_or(&[], |number| self.rows[number].as_slice())
    }
}

impl Drop for HashTable {
    fn drop(&mut self) {
        self.memory.release(self.charged_bytes as u64);
    }
}
