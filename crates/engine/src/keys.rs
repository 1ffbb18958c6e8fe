//! Index keys of rows: the only place where the engine asks `types` how a row is laid out.

use engine_api::{EngineError, Result, RowBuffer, TableDefinition};

/// Makes the keys of a table's secondary indexes from its rows.
#[derive(Debug)]
pub struct TableKeys {
    secondary_count: usize,
}

/// Where the own parts of a secondary key end and the clustered key begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondarySplit {
    /// Bytes of the index's own parts; the clustered key follows.
    pub own_bytes: usize,
    /// One of the own parts is NULL: the entry never collides in a unique index.
    pub has_null: bool,
}

impl TableKeys {
    /// Prepares the layouts of `definition`.
    pub fn new(definition: &TableDefinition) -> Result<Self> {
        if definition.indexes.len() > 1 {
            return Err(EngineError::Unsupported("secondary indexes, until row layouts land"));
        }
        Ok(Self { secondary_count: definition.indexes.len() - 1 })
    }

    /// Number of secondary indexes.
    pub fn secondary_count(&self) -> usize {
        self.secondary_count
    }

    /// Writes the key of `row` in index `position` (1 or more) to `key`, replacing its content.
    pub fn secondary_key(
        &self,
        _position: usize,
        _row: &RowBuffer,
        _key: &mut Vec<u8>,
    ) -> Result<()> {
        Err(EngineError::Unsupported("secondary indexes, until row layouts land"))
    }

    /// Splits a key of index `position`.
    pub fn split(&self, _position: usize, _key: &[u8]) -> Result<SecondarySplit> {
        Err(EngineError::Unsupported("secondary indexes, until row layouts land"))
    }
}
