//! Leaves of secondary entries that are not in memory are asked for before a row's first entry is
//! changed: the row then waits for its leaves once, not for one after the other.

use crate::table::TableParts;
use crate::transaction::EngineTransaction;
use engine_api::{Result, RowBuffer};
use std::sync::atomic::Ordering;

impl TableParts {
    /// Whether pages were read from disk since this was last asked: if all of the table is in
    /// memory, nobody looks for what is missing.
    pub(crate) fn is_read_from_disk(&self) -> bool {
        let misses = self.core.store.misses();
        let is_read = self.misses_seen.load(Ordering::Relaxed) != misses;
        if is_read {
            self.misses_seen.store(misses, Ordering::Relaxed);
        }
        is_read
    }

    /// Begins to read the leaves of the row's entries in secondary indexes at these positions.
    pub(crate) fn read_leaves_ahead(
        &self,
        trx: &mut EngineTransaction,
        row: &RowBuffer,
        positions: impl Iterator<Item = usize>,
    ) -> Result<()> {
        let mut key = std::mem::take(&mut trx.buffers.key);
        let mut result = Ok(());
        for position in positions {
            result = self.keys.secondary_key(position, row, &mut key);
            if result.is_err() {
                break;
            }
            self.trees[position].read_leaf_ahead(&key);
        }
        trx.buffers.key = key;
        result
    }
}
