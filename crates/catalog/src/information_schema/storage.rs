//! INNODB_SYS_TABLESPACES and GANNET_INDEX_STORAGE: what tables take up on the device.

use super::innodb::check_privilege;
use super::rows::{for_each_entry, index_name, row_format};
use super::{Row, Scope};
use crate::{Result, TableEntry};
use engine_api::StorageUse;
use types::Value;

/// Copies of pages begin and end at multiples of this many bytes.
const UNIT_BYTES: u64 = 64;

fn storage(table: &TableEntry) -> Vec<StorageUse> {
    match table.view() {
        Some(_) => Vec::new(),
        None => table.handle().map(|handle| handle.storage()).unwrap_or_default(),
    }
}

/// Tables have no files of their own: FILE_SIZE is what the pages would take uncompressed,
/// ALLOCATED_SIZE what their newest copies take.
pub(super) fn tablespaces(scope: &Scope<'_>) -> Result<Vec<Row>> {
    check_privilege(scope)?;
    let mut rows = Vec::new();
    for_each_entry(scope, |schema, table| {
        let definition = table.definition();
        let indexes = storage(table);
        let Some(first) = indexes.first() else { return Ok(()) };
        let sum = |of: fn(&StorageUse) -> u64| Value::UInt(indexes.iter().map(of).sum());
        rows.push(vec![
            Value::UInt(definition.id.get()),
            Value::text(format!("{}/{}", schema.name, definition.name)),
            Value::UInt(0),
            Value::text(row_format(&definition.options)),
            Value::UInt(first.page_bytes),
            Value::text("./data"),
            Value::UInt(UNIT_BYTES),
            sum(|index| index.raw_bytes),
            sum(|index| index.stored_bytes),
        ]);
        Ok(())
    })?;
    Ok(rows)
}

/// What each index takes up, with the garbage beside it that is still to be collected, and how
/// the pages of its table are compressed from now on.
pub(super) fn index_storage(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for_each_entry(scope, |schema, table| {
        let definition = table.definition();
        let compression = match definition.options.codec.as_str() {
            "" => "default",
            codec => codec,
        };
        for (index, used) in definition.indexes.iter().zip(storage(table)) {
            rows.push(vec![
                Value::text(&schema.name),
                Value::text(&definition.name),
                Value::text(index_name(index)),
                Value::text(compression),
                Value::UInt(used.page_bytes),
                Value::UInt(used.pages),
                Value::UInt(used.raw_bytes),
                Value::UInt(used.stored_bytes),
                Value::UInt((used.stored_bytes * 100).div_ceil(used.raw_bytes.max(1))),
                Value::UInt(used.garbage_bytes),
            ]);
        }
        Ok(())
    })?;
    Ok(rows)
}
