//! Index keys of rows: the only place where the engine asks `types` how a row is laid out.

use engine_api::{DuplicateKey, EngineError, Result, RowBuffer, TableDefinition};
use types::row::{IndexLayout, LayoutError, RowLayout, RowView};

/// Makes the keys of a table's secondary indexes from its rows.
#[derive(Debug)]
pub struct TableKeys {
    name: String,
    row: RowLayout,
    /// By position in the definition; the first is the clustered index.
    indexes: Vec<IndexLayout>,
}

/// The own parts of a secondary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondarySplit {
    /// Bytes of the index's own parts; what the clustered key says more follows.
    pub own_bytes: usize,
    /// One of the own parts is NULL: the entry never collides in a unique index.
    pub has_null: bool,
}

impl TableKeys {
    /// Prepares the layouts of `definition`.
    pub fn new(definition: &TableDefinition) -> Self {
        let row = definition.row_layout();
        let positions = 0..definition.indexes.len();
        let indexes = positions.map(|at| definition.index_layout(&row, at)).collect();
        let name = format!("{}.{}", definition.schema, definition.name);
        Self { name, row, indexes }
    }

    fn corrupt(&self, error: &LayoutError) -> EngineError {
        EngineError::Corrupt { object: self.name.clone(), detail: error.to_string() }
    }

    /// Number of parts of the index at `position`.
    pub fn parts(&self, position: usize) -> usize {
        self.indexes[position].parts().len()
    }

    /// Writes the key of `row` in index `position` (1 or more) to `key`, replacing its content.
    pub fn secondary_key(&self, position: usize, row: &RowBuffer, key: &mut Vec<u8>) -> Result<()> {
        key.clear();
        let view = RowView::new(&self.row, &row.key, &row.payload);
        let pushed = self.indexes[position].push_key(&view, &row.key, key);
        debug_assert!(
            pushed.is_err()
                || self.duplicate(position, key).is_ok_and(|it| it.clustered_key == row.key),
            "entry {key:02x?} of index {position} does not give back {:02x?}",
            row.key
        );
        pushed.map_err(|error| self.corrupt(&error))
    }

    /// Writes the clustered key of the row that `entry` of index `position` is of to `key`,
    /// replacing its content.
    pub fn clustered_key(&self, position: usize, entry: &[u8], key: &mut Vec<u8>) -> Result<()> {
        key.clear();
        let pushed = self.indexes[position].push_clustered_key(entry, key);
        pushed.map_err(|error| self.corrupt(&error))
    }

    /// The row that has the value of `entry` in the unique index `position`.
    pub fn duplicate(&self, position: usize, entry: &[u8]) -> Result<DuplicateKey> {
        let mut clustered_key = Vec::new();
        self.clustered_key(position, entry, &mut clustered_key)?;
        Ok(DuplicateKey { index: position, clustered_key })
    }

    /// Whether the columns of index `position` have the same values in both rows.
    pub fn is_same(&self, position: usize, old: &RowBuffer, new: &RowBuffer) -> bool {
        let old = RowView::new(&self.row, &old.key, &old.payload);
        let new = RowView::new(&self.row, &new.key, &new.payload);
        let mut parts = self.indexes[position].parts().iter();
        parts.all(|part| old.get(part.column) == new.get(part.column))
    }

    /// Splits a key of index `position`.
    pub fn split(&self, position: usize, key: &[u8]) -> Result<SecondarySplit> {
        let (mut own_bytes, mut has_null) = (0, false);
        for part in self.indexes[position].parts() {
            let rest = key.get(own_bytes..).unwrap_or(&[]);
            let malformed = LayoutError::Malformed("index key too short");
            let length = part.length(rest).ok_or_else(|| self.corrupt(&malformed))?;
            let null_marker = if part.descending { 0xff } else { 0 };
            has_null |= part.nullable && rest[0] == null_marker;
            own_bytes += length;
        }
        Ok(SecondarySplit { own_bytes, has_null })
    }

    /// Length in bytes of the first `parts` parts of a key of index `position`.
    pub fn prefix_bytes(&self, position: usize, parts: usize, key: &[u8]) -> Option<usize> {
        let mut at = 0;
        for part in &self.indexes[position].parts()[..parts] {
            at += part.length(key.get(at..)?)?;
        }
        Some(at)
    }

    /// Whether the bytes are a row of this table.
    pub fn verify(&self, key: &[u8], payload: &[u8]) -> std::result::Result<(), LayoutError> {
        self.row.verify(key, payload)
    }
}
