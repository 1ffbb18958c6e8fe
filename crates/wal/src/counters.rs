//! What the log counts; names as `base::metrics` prints them.

use base::metrics::{Counter, Gauge};

/// Batches written.
pub static FLUSHES: Counter = Counter::new("wal_flushes", "batches written to the log");
/// Syncs of a log file.
pub static SYNCS: Counter = Counter::new("wal_syncs", "syncs of a log file");
/// Bytes of records.
pub static RECORD_BYTES: Counter = Counter::new("wal_record_bytes", "bytes of log records written");
/// Bytes written to the files, headers and padding included.
pub static FILE_BYTES: Counter =
    Counter::new("wal_file_bytes", "bytes written to log files with headers and padding");
/// Times a fiber waited for durability.
pub static WAITS: Counter = Counter::new("wal_waits", "times a fiber waited for the log");
/// Times a fiber waited for room in the ring.
pub static ROOM_WAITS: Counter =
    Counter::new("wal_room_waits", "times a fiber waited for room in the log buffer");
/// Files preallocated.
pub static FILES_CREATED: Counter = Counter::new("wal_files_created", "log files preallocated");
/// Files kept for reuse.
pub static FILES_RECYCLED: Counter =
    Counter::new("wal_files_recycled", "log files recycled for reuse");
/// Files removed.
pub static FILES_REMOVED: Counter = Counter::new("wal_files_removed", "log files removed");
/// Files begun, the first one excepted.
pub static FILE_SWITCHES: Counter =
    Counter::new("wal_file_switches", "times the log went on in another file");
/// Bytes of the files that hold the log.
pub static LIVE_FILE_BYTES: Gauge =
    Gauge::new("wal_live_file_bytes", "bytes of the files that hold the log");

static GROUP_1: Counter = Counter::new("wal_group_1", "flushes that satisfied 1 waiter");
static GROUP_2: Counter = Counter::new("wal_group_2", "flushes that satisfied 2 or 3 waiters");
static GROUP_4: Counter = Counter::new("wal_group_4", "flushes that satisfied 4 to 7 waiters");
static GROUP_8: Counter = Counter::new("wal_group_8", "flushes that satisfied 8 to 15 waiters");
static GROUP_16: Counter = Counter::new("wal_group_16", "flushes that satisfied 16 to 31 waiters");
static GROUP_32: Counter = Counter::new("wal_group_32", "flushes that satisfied 32 or more");

/// Counts a flush by how many waiters it satisfied (the leader included).
pub(crate) fn count_group(satisfied: usize) {
    let counter = match satisfied {
        0 => return,
        1 => &GROUP_1,
        2..4 => &GROUP_2,
        4..8 => &GROUP_4,
        8..16 => &GROUP_8,
        16..32 => &GROUP_16,
        _ => &GROUP_32,
    };
    counter.add(1);
}

/// Lists every metric of the log, so that they show although still zero.
pub(crate) fn list_all() {
    let counters = [
        &FLUSHES,
        &SYNCS,
        &RECORD_BYTES,
        &FILE_BYTES,
        &WAITS,
        &ROOM_WAITS,
        &FILES_CREATED,
        &FILES_RECYCLED,
        &FILES_REMOVED,
        &FILE_SWITCHES,
        &GROUP_1,
        &GROUP_2,
        &GROUP_4,
        &GROUP_8,
        &GROUP_16,
        &GROUP_32,
    ];
    counters.iter().for_each(|counter| counter.list());
    LIVE_FILE_BYTES.list();
}
