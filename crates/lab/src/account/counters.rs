//! What a server itself counts.

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
    'Handler_delete')";

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
        let sum = |names: [&str; 3]| names.into_iter().map(get).sum::<Option<u64>>();
        let page_bytes = get("innodb_page_size").unwrap_or(16 << 10);
        Self {
            log_bytes: get("innodb_os_log_written"),
            data_bytes: get("innodb_pages_written").map(|pages| pages * page_bytes),
            doublewrite_bytes: get("innodb_dblwr_pages_written").map(|pages| pages * page_bytes),
            syncs: get("innodb_data_fsyncs"),
            received_bytes: get("bytes_received"),
            sent_bytes: get("bytes_sent"),
            rows_changed: sum([
                "innodb_rows_inserted",
                "innodb_rows_updated",
                "innodb_rows_deleted",
            ])
            .or_else(|| sum(["handler_write", "handler_update", "handler_delete"])),
            lock_wait_millis: get("innodb_row_lock_time"),
            deadlocks: get("innodb_deadlocks"),
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
}
