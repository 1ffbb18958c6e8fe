//! Keys of secondary indexes: the declared parts followed by the clustered key.

use super::LayoutError;
use super::key::{KeyColumn, KeyPart};
use super::layout::{RowLayout, RowView};
use crate::value::ValueRef;

/// The layout of one index's keys.
#[derive(Clone, Debug)]
pub struct IndexLayout {
    parts: Vec<KeyColumn>,
    /// Parts of the clustered key that follows; empty for a hidden row id.
    clustered: Vec<KeyColumn>,
}

impl IndexLayout {
    /// The layout of a secondary index of the table of `row`.
    pub fn new(row: &RowLayout, parts: &[KeyPart]) -> Self {
        Self {
            parts: parts.iter().filter_map(|part| KeyColumn::new(row.columns(), part)).collect(),
            clustered: row.clustered_key().to_vec(),
        }
    }

    /// The layout of the clustered index itself: nothing follows its parts.
    pub fn clustered(row: &RowLayout) -> Self {
        Self { parts: row.clustered_key().to_vec(), clustered: Vec::new() }
    }

    /// The declared parts.
    pub fn parts(&self) -> &[KeyColumn] {
        &self.parts
    }

    /// Appends the key of a row: its parts and `clustered_key`.
    pub fn push_key(
        &self,
        row: &RowView<'_>,
        clustered_key: &[u8],
        key: &mut Vec<u8>,
    ) -> Result<(), LayoutError> {
        for part in &self.parts {
            part.push(row.get(part.column), key)?;
        }
        key.extend_from_slice(clustered_key);
        Ok(())
    }

    /// Appends only the declared parts, as a uniqueness check needs them; true if one of them
    /// is NULL (such a key conflicts with nothing).
    pub fn push_parts(&self, row: &RowView<'_>, key: &mut Vec<u8>) -> Result<bool, LayoutError> {
        let mut has_null = false;
        for part in &self.parts {
            let value = row.get(part.column);
            has_null |= value.is_null();
            part.push(value, key)?;
        }
        Ok(has_null)
    }

    /// Appends the first `values.len()` parts for a lookup.
    pub fn push_values(
        &self,
        values: &[ValueRef<'_>],
        key: &mut Vec<u8>,
    ) -> Result<(), LayoutError> {
        for (part, value) in self.parts.iter().zip(values) {
            part.push(*value, key)?;
        }
        Ok(())
    }

    /// Length in bytes of the declared parts at the start of a key: the clustered key follows.
    pub fn parts_length(&self, key: &[u8]) -> Result<usize, LayoutError> {
        let mut at = 0;
        for part in &self.parts {
            at += part
                .length(key.get(at..).unwrap_or(&[]))
                .ok_or(LayoutError::Malformed("index key too short"))?;
        }
        Ok(at)
    }

    /// The clustered key at the end of an index key.
    pub fn clustered_key<'a>(&self, key: &'a [u8]) -> Result<&'a [u8], LayoutError> {
        Ok(&key[self.parts_length(key)?..])
    }

    /// The parts of a key one after another, with the value where it can be read back (reports).
    /// Ends early where the bytes do.
    pub fn values<'a>(&self, key: &'a [u8]) -> Vec<(&'a [u8], Option<ValueRef<'a>>)> {
        let (mut values, mut at) = (Vec::new(), 0);
        for part in self.parts.iter().chain(&self.clustered) {
            let rest = key.get(at..).unwrap_or(&[]);
            let Some(length) = part.length(rest) else { break };
            let bytes = &rest[..length];
            // A marker alone is NULL, whatever the type.
            let is_readable = part.is_readable() || (part.nullable && length == 1);
            values.push((bytes, is_readable.then(|| part.read(bytes))));
            at += length;
        }
        values
    }

    /// Whether a column of the table can be read from the keys of this index.
    pub fn covers(&self, column: usize) -> bool {
        let of_column = |part: &&KeyColumn| part.column == column && part.is_readable();
        self.parts.iter().chain(&self.clustered).any(|part| of_column(&part))
    }

    /// The value of a column of the table as a key holds it; NULL if it does not.
    #[inline]
    pub fn column<'a>(&self, key: &'a [u8], column: usize) -> ValueRef<'a> {
        let mut at = 0;
        for part in self.parts.iter().chain(&self.clustered) {
            let rest = key.get(at..).unwrap_or(&[]);
            let Some(length) = part.length(rest) else { return ValueRef::Null };
            if part.column == column && part.is_readable() {
                return part.read(&rest[..length]);
            }
            at += length;
        }
        ValueRef::Null
    }

    /// Reads the columns of the table that a key holds into `row` (one slot a column of the
    /// table); the others are left as they are.
    pub fn read_columns<'a>(
        &self,
        key: &'a [u8],
        row: &mut [ValueRef<'a>],
    ) -> Result<(), LayoutError> {
        let mut at = 0;
        for part in self.parts.iter().chain(&self.clustered) {
            let rest = key.get(at..).unwrap_or(&[]);
            let length = part.length(rest).ok_or(LayoutError::Malformed("index key too short"))?;
            if let (true, Some(slot)) = (part.is_readable(), row.get_mut(part.column)) {
                *slot = part.read(&rest[..length]);
            }
            at += length;
        }
        Ok(())
    }
}
