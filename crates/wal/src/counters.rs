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
/// Zeroes that new files are filled with before they are log.
pub static ZEROED_BYTES: Counter =
    Counter::new("wal_zeroed_bytes", "bytes of zeroes written to new log files");
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

/// Commits that waited for the log, also those that found theirs durable at once.
pub static COMMITS: Counter =
    Counter::new("wal_commits", "commits that were to be durable or written before their answer");
/// Sum over those commits.
pub static COMMIT_WAIT_NANOS: Counter = Counter::new(
    "wal_commit_wait_nanos",
    "nanoseconds from the append of a commit record until their transactions went on",
);
/// Groups: flushes that let at least one fiber go on that waited for the log.
pub static GROUPS: Counter =
    Counter::new("wal_groups", "flushes of the log that somebody waited for");
/// Fibers that went on after those flushes.
pub static GROUP_WAITERS: Counter =
    Counter::new("wal_group_waiters", "fibers that waited for flushes of the log");
/// The largest group.
pub static GROUP_MAX: Gauge =
    Gauge::new("wal_group_max", "most fibers that waited for one flush of the log");
/// Writes of batches with their sync.
pub static SYNCED_WRITES: Counter =
    Counter::new("wal_synced_writes", "batches written and synced in one operation");
/// Sum over those writes.
pub static SYNCED_WRITE_NANOS: Counter = Counter::new(
    "wal_synced_write_nanos",
    "nanoseconds from handing a batch to the device until its sync was known",
);

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
    GROUPS.add(1);
    GROUP_WAITERS.add(satisfied as u64);
    // The one flush at a time writes it.
    if satisfied as i64 > GROUP_MAX.value() {
        GROUP_MAX.set(satisfied as i64);
    }
}

/// Lists every metric of the log, so that they show although still zero.
pub(crate) fn list_all() {
    let counters = [
        &FLUSHES,
        &SYNCS,
        &RECORD_BYTES,
        &FILE_BYTES,
        &ZEROED_BYTES,
        &WAITS,
        &ROOM_WAITS,
        &FILES_CREATED,
        &FILES_RECYCLED,
        &FILES_REMOVED,
        &FILE_SWITCHES,
        &COMMITS,
        &COMMIT_WAIT_NANOS,
        &GROUPS,
        &GROUP_WAITERS,
        &SYNCED_WRITES,
        &SYNCED_WRITE_NANOS,
        &GROUP_1,
        &GROUP_2,
        &GROUP_4,
        &GROUP_8,
        &GROUP_16,
        &GROUP_32,
    ];
    counters.iter().for_each(|counter| counter.list());
    LIVE_FILE_BYTES.list();
    GROUP_MAX.list();
}
