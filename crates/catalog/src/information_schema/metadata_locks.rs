//! METADATA_LOCK_INFO, as MariaDB's plugin of that name prints it: the locks that are held.
//!
//! There are no locks of schemas for those who use tables, and none for backups: such rows are
//! missing. A locking read holds the lock of one that reads.

use super::VirtualType::{BigIntUnsigned, Varchar};
use super::columns::{optional, required};
use super::{Row, Scope, VirtualColumn};
use crate::shown_locks::{ShownLock, address_of};
use crate::{LockKind, MetadataLock, Result};
use std::collections::HashMap;
use std::sync::Arc;
use types::Value;

pub(super) const METADATA_LOCK_INFO: &[VirtualColumn] = &[
    required("THREAD_ID", BigIntUnsigned(20)),
    required("LOCK_MODE", Varchar(24)),
    optional("LOCK_DURATION", Varchar(33)),
    optional("LOCK_TIME_MS", BigIntUnsigned(8)),
    required("LOCK_TYPE", Varchar(33)),
    optional("TABLE_CATALOG", Varchar(64)),
    optional("TABLE_SCHEMA", Varchar(64)),
    optional("TABLE_NAME", Varchar(64)),
];

fn mode_name(lock: &ShownLock, is_schema: bool) -> &'static str {
    match lock.kind {
        LockKind::Shared if is_schema => "MDL_INTENTION_EXCLUSIVE",
        LockKind::Shared => "MDL_SHARED_READ",
        LockKind::Write => "MDL_SHARED_WRITE",
        LockKind::NoWrite => "MDL_SHARED_READ_ONLY",
        LockKind::Exclusive if lock.is_pinned => "MDL_SHARED_NO_READ_WRITE",
        LockKind::Exclusive => "MDL_EXCLUSIVE",
    }
}

fn row(thread: u64, mode: &str, time: Value, kind: &str, schema: &str, name: &str) -> Row {
    vec![
        Value::UInt(thread),
        Value::text(mode),
        Value::Null,
        time,
        Value::text(kind),
        Value::text("def"),
        Value::text(schema),
        Value::text(name),
    ]
}

pub(super) fn metadata_lock_info(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let known = scope.catalog.metadata_locks();
    let by_address: HashMap<usize, &Arc<MetadataLock>> =
        known.iter().map(|lock| (address_of(lock), lock)).collect();
    let mut rows = Vec::new();
    for (thread, shown) in scope.session.metadata_locks() {
        for lock in shown.list() {
            let Some(metadata_lock) = by_address.get(&lock.address) else { continue };
            let (schema, table) = metadata_lock.object();
            let kind = match table {
                "" => "Schema metadata lock",
                _ => "Table metadata lock",
            };
            let held = Value::UInt(lock.since.elapsed().as_millis() as u64);
            rows.push(row(thread, mode_name(&lock, table.is_empty()), held, kind, schema, table));
        }
    }
    for (name, thread) in scope.session.named_locks() {
        rows.push(row(thread, "MDL_SHARED_NO_WRITE", Value::Null, "User lock", &name, ""));
    }
    Ok(rows)
}
