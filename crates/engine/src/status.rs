//! Counters for SHOW STATUS under the names that tools of the MySQL world read.

use crate::core::Core;

/// Names and values.
pub(crate) fn named(core: &Core) -> Vec<(&'static str, u64)> {
    let metric = |name: &str| base::metrics::value(name).unwrap_or(0).max(0) as u64;
    vec![
        ("Innodb_row_lock_waits", metric("row_lock_waits")),
        ("Innodb_row_lock_current_waits", core.txn.locks().waiting()),
        ("Innodb_row_lock_time", metric("row_lock_time_micros") / 1000),
        ("Innodb_deadlocks", metric("deadlocks")),
        ("Innodb_history_list_length", core.txn.purge_length() as u64),
        ("Innodb_lsn_current", core.wal.end().get()),
        ("Innodb_lsn_flushed", core.wal.durable().get()),
        ("Innodb_undo_bytes", core.txn.undo().used_bytes()),
        ("Innodb_num_open_files", 0),
    ]
}
