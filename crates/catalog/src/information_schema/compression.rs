//! INNODB_CMP, INNODB_CMP_PER_INDEX and INNODB_CMPMEM: what compression of tables with
//! `ROW_FORMAT=COMPRESSED` takes.
//!
//! Pages are compressed when they are written and decompressed when they are read; in memory there
//! are no compressed ones, so that INNODB_CMPMEM has nothing to count. A table whose name ends with
//! `_RESET` has the same rows and sets what they count to 0.

use super::innodb::check_privilege;
use super::rows::{for_each_entry, index_name};
use super::{Row, Scope};
use crate::Result;
use engine_api::{COMPRESSED_BLOCK_CLASSES, CompressionCounts};
use types::Value;

/// What InnoDB asks for before it counts by index, and so does who wants to see it here.
const BY_INDEX_ENABLED: &str = "innodb_cmp_per_index_enabled";

/// As the columns are: whole seconds, and no more than INT holds.
fn int(number: u64) -> Value {
    Value::Int(number.min(i32::MAX as u64) as i64)
}

fn counted(counts: &CompressionCounts) -> [Value; 5] {
    let seconds = |nanos: u64| int(nanos / 1_000_000_000);
    [
        int(counts.tried_pages),
        int(counts.compressed_pages),
        seconds(counts.compress_nanos),
        int(counts.decompressed_pages),
        seconds(counts.decompress_nanos),
    ]
}

/// Size of compressed pages of a class, as KEY_BLOCK_SIZE gives it.
fn block_bytes(class: usize) -> Value {
    Value::Int(1024 << class)
}

fn by_class(scope: &Scope<'_>, resets: bool) -> Result<Vec<Row>> {
    check_privilege(scope)?;
    let classes = scope.catalog.engine().compression_counts(resets);
    let row = |(class, counts): (usize, &CompressionCounts)| {
        [block_bytes(class)].into_iter().chain(counted(counts)).collect()
    };
    Ok(classes.iter().enumerate().map(row).collect())
}

pub(super) fn classes(scope: &Scope<'_>) -> Result<Vec<Row>> {
    by_class(scope, false)
}

pub(super) fn classes_and_reset(scope: &Scope<'_>) -> Result<Vec<Row>> {
    by_class(scope, true)
}

fn by_index(scope: &Scope<'_>, resets: bool) -> Result<Vec<Row>> {
    check_privilege(scope)?;
    let variables = scope.session.variables(true);
    let is_enabled = variables.iter().any(|(name, on)| name == BY_INDEX_ENABLED && on == "ON");
    let mut rows = Vec::new();
    if !is_enabled {
        return Ok(rows);
    }
    for_each_entry(scope, |schema, table| {
        let definition = table.definition();
        if table.view().is_some() || definition.options.compressed_block_class().is_none() {
            return Ok(());
        }
        let Ok(handle) = table.handle() else { return Ok(()) };
        for (index, counts) in definition.indexes.iter().zip(handle.compression_counts(resets)) {
            if counts == CompressionCounts::default() {
                continue;
            }
            let names =
                [schema.name.as_str(), &definition.name, index_name(index)].map(Value::text);
            rows.push(names.into_iter().chain(counted(&counts)).collect());
        }
        Ok(())
    })?;
    Ok(rows)
}

pub(super) fn indexes(scope: &Scope<'_>) -> Result<Vec<Row>> {
    by_index(scope, false)
}

pub(super) fn indexes_and_reset(scope: &Scope<'_>) -> Result<Vec<Row>> {
    by_index(scope, true)
}

/// Compressed pages in memory: none.
pub(super) fn memory(scope: &Scope<'_>) -> Result<Vec<Row>> {
    check_privilege(scope)?;
    let row = |class| [block_bytes(class)].into_iter().chain([0; 5].map(Value::Int)).collect();
    Ok((0..COMPRESSED_BLOCK_CLASSES).map(row).collect())
}
