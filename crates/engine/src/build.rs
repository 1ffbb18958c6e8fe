//! Building a secondary index: scan, sort, load bottom-up.
//!
//! The caller keeps writers away. Entries are loaded with word 0, visible to everybody: readers
//! with older snapshots are kept away by the table's metadata lock.

use crate::ddl;
use crate::error::from_tree;
use crate::keys::TableKeys;
use crate::sort::Sorter;
use crate::transaction::EngineTransaction;
use btree::{Batch, BulkLoader, DELETED, Direction, Tree};
use engine_api::{DuplicateKey, EngineError, Result, RowBuffer, TableDefinition};
use txn::Seen;

/// How full the pages of a new index are, percent.
const FILL_PERCENT: usize = 90;

/// See `engine_api::Engine::build_index`.
pub(crate) fn build_index(
    trx: &mut EngineTransaction,
    table: &mut TableDefinition,
    position: usize,
) -> Result<std::result::Result<(), DuplicateKey>> {
    trx.core.refuse_when_short_of_space()?;
    let mut duplicate = None;
    let built = ddl::guarded(trx, |trx| {
        let tree = ddl::add_index(trx, table, position)?;
        let sorter = collect(trx, table, position)?;
        duplicate = load(trx, table, position, &tree, sorter)?;
        match duplicate {
            None => Ok(()),
            // Undone like an error; told as an outcome below.
            Some(_) => Err(EngineError::Unsupported("a unique index over equal values")),
        }
    });
    match (built, duplicate) {
        (_, Some(found)) => Ok(Err(found)),
        (result, None) => result.map(Ok),
    }
}

/// The keys of all live rows.
fn collect(
    trx: &mut EngineTransaction,
    table: &TableDefinition,
    position: usize,
) -> Result<Sorter> {
    let keys = TableKeys::new(table);
    let clustered = trx.core.tree(table.indexes[0].tree)?;
    let object = || format!("{}.{}", table.schema, table.name);
    let mut sorter = Sorter::new(&trx.core.options.datadir, &trx.core.sort_memory);
    let (mut batch, mut row, mut key) = (Batch::new(), RowBuffer::default(), Vec::new());
    let mut cursor = clustered.cursor(Direction::Forward);
    let reader = trx.trx.newest_reader(false);
    while cursor.next_batch(&mut batch, 512, 256 << 10).map_err(|error| from_tree(error, object))? {
        for item in batch.iter() {
            let at = (item.entry.flags, item.entry.word, item.entry.payload);
            let (flags, payload) = match trx.trx.version(&reader, at, &mut trx.buffers.older) {
                Seen::Current => (item.entry.flags, item.entry.payload),
                Seen::Older { flags } => (flags, trx.buffers.older.as_slice()),
                Seen::Absent => continue,
                Seen::Damaged => {
                    let detail = "undo does not fit the row".to_owned();
                    return Err(EngineError::Corrupt { object: object(), detail });
                }
            };
            if flags & DELETED != 0 {
                continue;
            }
            row.key.clear();
            row.key.extend_from_slice(item.key);
            row.payload.clear();
            row.payload.extend_from_slice(payload);
            keys.secondary_key(position, &row, &mut key)?;
            sorter.push(&key)?;
        }
        check_cancelled()?;
    }
    Ok(sorter)
}

fn check_cancelled() -> Result<()> {
    let cancelled = runtime::current_cancel_token().is_some_and(|token| token.is_cancelled());
    if cancelled { Err(EngineError::Cancelled) } else { Ok(()) }
}

/// Loads the sorted keys; stops at the first two that a unique index must not both hold.
fn load(
    trx: &EngineTransaction,
    table: &TableDefinition,
    position: usize,
    tree: &Tree,
    sorter: Sorter,
) -> Result<Option<DuplicateKey>> {
    let keys = TableKeys::new(table);
    let unique = table.indexes[position].unique;
    let name = || trx.core.tree_name(tree.id());
    let mut loader = BulkLoader::new(tree, FILL_PERCENT).map_err(|error| from_tree(error, name))?;
    let mut sorted = sorter.finish()?;
    let (mut key, mut last, mut last_own) = (Vec::new(), Vec::new(), 0);
    while sorted.next(&mut key)? {
        if unique {
            let split = keys.split(position, &key)?;
            let own = if split.has_null { 0 } else { split.own_bytes };
            if own > 0 && own == last_own && key[..own] == last[..own] {
                return keys.duplicate(position, &key).map(Some);
            }
            last_own = own;
            last.clear();
            last.extend_from_slice(&key);
        }
        loader.push(&key, 0, 0, &[]).map_err(|error| from_tree(error, name))?;
    }
    loader.finish().map_err(|error| from_tree(error, name))?;
    Ok(None)
}
