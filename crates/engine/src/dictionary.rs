//! The dictionary tree: the catalog's definitions and the engine's table shapes.
//!
//! Reads see the newest committed value and the transaction's own; writers lock the key.

use crate::core::Core;
use crate::error::from_tree;
use crate::range::after_prefix;
use crate::shape::CATALOG_PREFIX;
use crate::transaction::EngineTransaction;
use crate::write::{Intent, Written, write_entry};
use btree::{Batch, DELETED, Direction};
use engine_api::{EngineError, Result};
use std::ops::Bound;
use txn::{LockMode, Seen};

/// A key and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The key in the tree of a key of the catalog.
pub(crate) fn catalog_key(key: &[u8]) -> Vec<u8> {
    let mut own = Vec::with_capacity(key.len() + 1);
    own.push(CATALOG_PREFIX);
    own.extend_from_slice(key);
    own
}

fn corrupt() -> EngineError {
    EngineError::Corrupt {
        object: "dictionary".to_owned(),
        detail: "undo does not fit the entry".to_owned(),
    }
}

fn dictionary_error(error: btree::TreeError) -> EngineError {
    from_tree(error, || "dictionary".to_owned())
}

/// The value of a key.
pub(crate) fn get(trx: &mut EngineTransaction, key: &[u8]) -> Result<Option<Vec<u8>>> {
    trx.refuse_when_half_undone()?;
    let reader = trx.trx.newest_reader(false);
    let EngineTransaction { trx: inner, buffers, core, .. } = trx;
    let buffers = &mut **buffers;
    let entry = &mut buffers.entry;
    if !core.dictionary().get(key, entry).map_err(dictionary_error)? {
        return Ok(None);
    }
    let at = (entry.flags, entry.word, entry.payload.as_slice());
    let (flags, value) = match inner.version(&reader, at, &mut buffers.older) {
        Seen::Current => (entry.flags, &entry.payload),
        Seen::Older { flags } => (flags, &buffers.older),
        Seen::Absent => return Ok(None),
        Seen::Damaged => return Err(corrupt()),
    };
    Ok((flags & DELETED == 0).then(|| value.clone()))
}

/// Sets a key, or removes it when `value` is `None`.
pub(crate) fn set(trx: &mut EngineTransaction, key: &[u8], value: Option<&[u8]>) -> Result<()> {
    trx.prepare_write()?;
    let tree = trx.core.dictionary().clone();
    let rule = trx.wait_rule();
    let locked = trx.trx.lock(tree.id(), key, LockMode::Exclusive, rule);
    trx.locked(locked)?;
    let intent = value.map_or(Intent::Delete, Intent::Put);
    loop {
        match write_entry(trx, &tree, key, intent, None)? {
            Written::Busy(other) => {
                let waited = trx.trx.wait_for(other, rule);
                trx.locked(waited)?;
            }
            _ => return Ok(()),
        }
    }
}

/// All live pairs whose key begins with `prefix`.
pub(crate) fn scan(trx: &mut EngineTransaction, prefix: &[u8]) -> Result<Vec<Pair>> {
    trx.refuse_when_half_undone()?;
    let reader = trx.trx.newest_reader(false);
    let EngineTransaction { trx: inner, buffers, core, .. } = trx;
    let buffers = &mut **buffers;
    let mut cursor = core.dictionary().cursor(Direction::Forward);
    cursor.seek(Bound::Included(prefix));
    if let Some(end) = after_prefix(prefix) {
        cursor.stop_at(Bound::Excluded(&end));
    }
    let (mut batch, mut pairs) = (Batch::new(), Vec::new());
    while cursor.next_batch(&mut batch, 256, 1 << 20).map_err(dictionary_error)? {
        for item in batch.iter() {
            let entry = item.entry;
            let at = (entry.flags, entry.word, entry.payload);
            let (flags, value) = match inner.version(&reader, at, &mut buffers.older) {
                Seen::Current => (entry.flags, entry.payload),
                Seen::Older { flags } => (flags, buffers.older.as_slice()),
                Seen::Absent => continue,
                Seen::Damaged => return Err(corrupt()),
            };
            if flags & DELETED == 0 {
                pairs.push((item.key.to_vec(), value.to_vec()));
            }
        }
    }
    Ok(pairs)
}

/// Reads the shapes of all tables, for a start: no transaction runs. With `deleted` also those
/// that carry a delete mark.
pub(crate) fn shapes(core: &Core, deleted: bool) -> Result<Vec<engine_api::TableDefinition>> {
    let mut cursor = core.dictionary().cursor(Direction::Forward);
    let prefix = crate::shape::SHAPES;
    cursor.seek(Bound::Included(&prefix));
    if let Some(end) = after_prefix(&prefix) {
        cursor.stop_at(Bound::Excluded(&end));
    }
    let (mut batch, mut shapes) = (Batch::new(), Vec::new());
    while cursor.next_batch(&mut batch, 256, 1 << 20).map_err(dictionary_error)? {
        for item in batch.iter() {
            if item.entry.flags & DELETED != 0 && !deleted {
                continue;
            }
            let shape = crate::shape::decode(item.key, item.entry.payload);
            shapes.push(shape.ok_or_else(|| EngineError::Corrupt {
                object: "dictionary".to_owned(),
                detail: format!("malformed table shape at key {:02x?}", item.key),
            })?);
        }
    }
    Ok(shapes)
}
