//! What a server itself counts.
//!
//! MariaDB with MyRocks has two engines that count, InnoDB for what is its own: figures are those
//! of both together.

use crate::client::{Connection, Failure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sums since the server's start, under the names that Gannet, MariaDB and MySQL have for them;
/// absent where a server has no such name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes written to the log.
    pub log_bytes: Option<u64>,
    /// Bytes written to data files, copies against torn pages not included.
    pub data_bytes: Option<u64>,
    /// Bytes of the copies that protect against torn pages.
    pub doublewrite_bytes: Option<u64>,
    /// Calls that make written data durable.
    pub syncs: Option<u64>,
    /// Bytes of statements.
    pub received_bytes: Option<u64>,
    /// Bytes of answers.
    pub sent_bytes: Option<u64>,
    /// Rows inserted, updated and deleted.
    pub rows_changed: Option<u64>,
    /// Time in which connections waited for rows.
    pub lock_wait_millis: Option<u64>,
    /// Deadlocks.
    pub deadlocks: Option<u64>,
}

const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_os_log_written', \
    'Innodb_pages_written', 'Innodb_page_size', 'Innodb_dblwr_pages_written', \
    'Innodb_data_fsyncs', 'Innodb_os_log_fsyncs', 'Innodb_data_written', 'Bytes_received', \
    'Bytes_sent', 'Innodb_rows_inserted', 'Innodb_rows_updated', 'Innodb_rows_deleted', \
    'Innodb_row_lock_time', 'Innodb_deadlocks', 'Handler_update', 'Handler_write', \
    'Handler_delete', 'Rocksdb_wal_bytes', 'Rocksdb_flush_write_bytes', \
    'Rocksdb_compact_write_bytes', 'Rocksdb_wal_synced', 'Rocksdb_rows_inserted', \
    'Rocksdb_rows_updated', 'Rocksdb_rows_deleted', 'Rocksdb_row_lock_deadlocks')";

impl Counters {
    /// Asks the server.
    pub fn of(connection: &mut Connection) -> Result<Self, Failure> {
        let mut found = BTreeMap::new();
        connection.query(STATUS, |row| {
            if let (Some(name), Some(value)) = (row.text(0), row.integer(1)) {
                let name = String::from_utf8_lossy(&name).to_ascii_lowercase();
                found.insert(name, value.max(0) as u64);
            }
            Ok(())
        })?;
        Ok(Self::from(&found))
    }

    fn from(status: &BTreeMap<String, u64>) -> Self {
        let get = |name: &str| status.get(name).copied();
        let page_bytes = get("innodb_page_size").unwrap_or(16 << 10);
        let sum = |names: &[&str]| names.iter().map(|name| get(name)).sum::<Option<u64>>();
        let with = |innodb: Option<u64>, rocksdb: &[&str]| match (innodb, sum(rocksdb)) {
            (None, found) | (found, None) => found,
            (Some(innodb), Some(rocksdb)) => Some(innodb + rocksdb),
        };
        let rows = sum(&["innodb_rows_inserted", "innodb_rows_updated", "innodb_rows_deleted"]);
        let rows =
            with(rows, &["rocksdb_rows_inserted", "rocksdb_rows_updated", "rocksdb_rows_deleted"]);
        let pages = get("innodb_pages_written").map(|pages| pages * page_bytes);
        Self {
            log_bytes: with(get("innodb_os_log_written"), &["rocksdb_wal_bytes"]),
            data_bytes: with(pages, &["rocksdb_flush_write_bytes", "rocksdb_compact_write_bytes"]),
            doublewrite_bytes: get("innodb_dblwr_pages_written").map(|pages| pages * page_bytes),
            syncs: with(get("innodb_data_fsyncs"), &["rocksdb_wal_synced"]),
            received_bytes: get("bytes_received"),
            sent_bytes: get("bytes_sent"),
            rows_changed: rows
                .or_else(|| sum(&["handler_write", "handler_update", "handler_delete"])),
            lock_wait_millis: get("innodb_row_lock_time"),
            deadlocks: with(get("innodb_deadlocks"), &["rocksdb_row_lock_deadlocks"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_does_not_name_is_absent() {
        let status = [("innodb_os_log_written", 5), ("handler_write", 7)];
        let status = status.map(|(name, value)| (name.to_string(), value)).into_iter().collect();
        let counters = Counters::from(&status);
        assert_eq!((counters.log_bytes, counters.rows_changed), (Some(5), None));
        assert_eq!(counters.data_bytes, None);
    }

    #[test]
    fn two_engines_are_one_figure() {
        let status = [
            ("innodb_os_log_written", 5),
            ("rocksdb_wal_bytes", 7),
            ("innodb_pages_written", 1),
            ("innodb_page_size", 100),
            ("rocksdb_flush_write_bytes", 20),
            ("rocksdb_compact_write_bytes", 30),
        ];
        let status = status.map(|(name, value)| (name.to_string(), value)).into_iter().collect();
        let counters = Counters::from(&status);
        assert_eq!((counters.log_bytes, counters.data_bytes), (Some(12), Some(150)));
        assert_eq!(counters.syncs, None);
    }
}
