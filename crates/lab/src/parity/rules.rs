//! The settings that are compared.

use super::{Compared, Reading, Rule, Server};
use crate::results::Weight::{Behaviour, Durability, Information, Memory};
use crate::server::{Engine, Kind, Version};

/// In the order of the report.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    DURABILITY.iter().chain(&MEMORY).chain(&BEHAVIOUR).chain(&INFORMATION)
}

const fn exact(
    what: &'static str,
    meaning: &'static str,
    weight: crate::results::Weight,
    read: fn(&Server<'_>) -> Option<Reading>,
    note: &'static str,
) -> Rule {
    Rule { what, meaning, weight, compared: Compared::Exactly, read, note }
}

const fn near(rule: Rule) -> Rule {
    Rule { compared: Compared::Nearly, ..rule }
}

static DURABILITY: [Rule; 6] = [
    exact(
        "flush at commit",
        "what a commit waits for",
        Durability,
        flush_at_commit,
        "a commit that waits for less is faster and may be lost",
    ),
    exact(
        "interval of flushes",
        "seconds of commits that may be lost where they do not wait for the device",
        Durability,
        flush_interval,
        "",
    ),
    exact(
        "binary log",
        "a second log, written and synced at every commit",
        Durability,
        binary_log,
        "the binary log costs a second sync at every commit",
    ),
    exact(
        "torn pages",
        "whether a page that was written by half can be mended",
        Durability,
        torn_pages,
        "a server without protection writes each page once, and loses data with its power",
    ),
    exact(
        "checksums of pages",
        "whether a page that the device has spoilt is noticed",
        Durability,
        checksums,
        "",
    ),
    exact("syncs of files", "whether what was written is made durable", Durability, syncs, ""),
];

static MEMORY: [Rule; 4] = [
    near(exact(
        "memory for pages",
        "the buffer pool",
        Memory,
        |server| bytes(server.number("innodb_buffer_pool_size")?),
        "the larger pool reads less",
    )),
    near(exact(
        "log capacity",
        "log that may grow before pages must be written",
        Memory,
        log_capacity,
        "half the log is about twice the writes of pages",
    )),
    exact(
        "cache of the operating system",
        "whether it holds pages besides the pool",
        Memory,
        system_cache,
        "what the pool does not hold may still be in memory",
    ),
    exact(
        "processors",
        "those that the process may run on",
        Memory,
        |server| server.confines?.processors.as_deref().map(Reading::same),
        "",
    ),
];

static BEHAVIOUR: [Rule; 14] = [
    exact("isolation", "of transactions that ask for none", Behaviour, isolation, ""),
    exact(
        "snapshot isolation",
        "whether overwriting what the transaction has not seen is an error",
        Behaviour,
        snapshot_isolation,
        "with it there are conflicts to retry where otherwise a change is lost",
    ),
    exact("autocommit", "", Behaviour, |server| server.is_on("autocommit").map(on_off), ""),
    exact("sql_mode", "what is an error", Behaviour, sql_mode, ""),
    exact(
        "character set and collation",
        "of databases that ask for none",
        Behaviour,
        collation,
        "collations differ in what comparisons cost",
    ),
    exact("query cache", "answers kept by text", Behaviour, query_cache, ""),
    exact(
        "performance_schema",
        "counts and times inside the server",
        Behaviour,
        |server| Some(on_off(server.is_on("performance_schema").unwrap_or(false))),
        "it costs about 5 to 10 % of the processor's time",
    ),
    exact(
        "logs of statements",
        "general and slow query log",
        Behaviour,
        |server| {
            let on = ["general_log", "slow_query_log"].map(|name| server.is_on(name));
            Some(on_off(on.contains(&Some(true))))
        },
        "",
    ),
    exact(
        "TLS required",
        "connections are encrypted",
        Behaviour,
        |server| Some(on_off(server.is_on("require_secure_transport").unwrap_or(false))),
        "",
    ),
    exact(
        "deadlocks",
        "found at once, or by a timeout",
        Behaviour,
        |server| {
            let found = server.is_on("innodb_deadlock_detect").unwrap_or(true);
            Some(Reading::same(if found { "found at once" } else { "by timeout" }))
        },
        "",
    ),
    exact(
        "lock wait timeout",
        "seconds",
        Behaviour,
        |server| server.value("innodb_lock_wait_timeout").map(Reading::same),
        "",
    ),
    exact(
        "huge pages",
        "for the pool",
        Behaviour,
        |server| Some(on_off(server.is_on("large_pages")?)),
        "",
    ),
    exact(
        "read only",
        "",
        Behaviour,
        |server| Some(on_off(server.is_on("read_only").or(server.is_on("super_read_only"))?)),
        "",
    ),
    exact(
        "open files",
        "that the process may have",
        Behaviour,
        |server| server.confines?.open_files.as_deref().map(Reading::same),
        "",
    ),
];

static INFORMATION: [Rule; 11] = [
    exact("threads", "how connections get them", Information, threads, ""),
    exact("TLS offered", "", Information, tls, ""),
    exact(
        "connections at most",
        "",
        Information,
        |server| server.value("max_connections").map(Reading::same),
        "",
    ),
    exact("compression of pages", "where a table asks for it", Information, compression, ""),
    exact("page size", "", Information, |server| bytes(server.number("innodb_page_size")?), ""),
    exact(
        "page writes a second",
        "innodb_io_capacity: what the background aims at, and its most",
        Information,
        |server| {
            let (low, high) =
                (server.value("innodb_io_capacity")?, server.value("innodb_io_capacity_max"));
            Some(Reading::same(format!("{low} to {}", high.unwrap_or(low))))
        },
        "",
    ),
    exact(
        "adaptive hash index",
        "",
        Information,
        |server| server.is_on("innodb_adaptive_hash_index").map(on_off),
        "",
    ),
    exact(
        "change buffer",
        "",
        Information,
        |server| server.value("innodb_change_buffering").map(Reading::same),
        "",
    ),
    exact("file access", "", Information, file_access, ""),
    exact("time zone", "", Information, |server| server.value("time_zone").map(Reading::same), ""),
    exact(
        "control group",
        "its limits hold for the process",
        Information,
        |server| server.confines?.group.as_deref().map(Reading::same),
        "",
    ),
];

fn on_off(is_on: bool) -> Reading {
    Reading::same(if is_on { "on" } else { "off" })
}

fn bytes(number: u64) -> Option<Reading> {
    let shown = match number {
        0 => "0".to_string(),
        _ if number.is_multiple_of(1 << 30) => format!("{} GiB", number >> 30),
        _ if number.is_multiple_of(1 << 20) => format!("{} MiB", number >> 20),
        _ if number.is_multiple_of(1024) && number < 1 << 20 => format!("{} KiB", number >> 10),
        _ => format!("{:.1} MiB", number as f64 / f64::from(1 << 20)),
    };
    Some(Reading::new(number.to_string(), shown))
}

fn flush_at_commit(server: &Server<'_>) -> Option<Reading> {
    Some(match server.value("innodb_flush_log_at_trx_commit")? {
        "0" => Reading::new("nothing", "0: nothing"),
        "2" => Reading::new("system", "2: the operating system"),
        "3" => Reading::new("device", "3: the device, with all syncs of a group commit"),
        value => Reading::new("device", format!("{value}: the device")),
    })
}

/// Only where commits do not wait for the device.
fn flush_interval(server: &Server<'_>) -> Option<Reading> {
    let waits = flush_at_commit(server)?.means == "device";
    // MyRocks syncs its log in the background once a second.
    let seconds = match server.engine {
        Engine::Innodb => server.value("innodb_flush_log_at_timeout")?,
        Engine::Rocksdb => "1",
    };
    (!waits).then(|| Reading::same(format!("{seconds} s")))
}

fn binary_log(server: &Server<'_>) -> Option<Reading> {
    if !server.is_on("log_bin").unwrap_or(false) {
        return Some(Reading::same("off"));
    }
    let format = server.value("binlog_format").unwrap_or("ROW");
    let synced = match server.value("sync_binlog") {
        Some("1") => "synced at every commit".to_string(),
        Some("0") | None => "not synced".to_string(),
        Some(every) => format!("synced every {every} commits"),
    };
    Some(Reading::new(format!("on, {synced}"), format!("on, {format}, {synced}")))
}

fn torn_pages(server: &Server<'_>) -> Option<Reading> {
    if server.kind == Kind::Gannet || server.engine == Engine::Rocksdb {
        return Some(Reading::new("mended", "no page is overwritten in its place"));
    }
    let value = server.value("innodb_doublewrite")?;
    Some(match value.to_ascii_uppercase().as_str() {
        "ON" | "1" | "DETECT_AND_RECOVER" | "FAST" => {
            Reading::new("mended", format!("doublewrite {value}"))
        }
        "DETECT_ONLY" => Reading::new("noticed", format!("noticed only: doublewrite {value}")),
        _ => Reading::new("lost", format!("not protected: doublewrite {value}")),
    })
}

fn checksums(server: &Server<'_>) -> Option<Reading> {
    if server.kind == Kind::Gannet {
        return Some(Reading::new("noticed", "crc32c, always"));
    }
    if server.engine == Engine::Rocksdb {
        return Some(Reading::new("noticed", "of each block, always"));
    }
    // Where the variable is gone, there is one algorithm.
    let value = server.value("innodb_checksum_algorithm").unwrap_or("crc32");
    let means = if value.ends_with("none") { "not noticed" } else { "noticed" };
    Some(Reading::new(means, value))
}

fn syncs(server: &Server<'_>) -> Option<Reading> {
    if server.kind == Kind::Gannet || server.engine == Engine::Rocksdb {
        return Some(Reading::same("yes"));
    }
    let method = server.value("innodb_flush_method").unwrap_or_default().to_ascii_lowercase();
    Some(match method.as_str() {
        "nosync" => Reading::same("never: nosync"),
        "littlesync" => Reading::same("seldom: littlesync"),
        _ => Reading::same("yes"),
    })
}

fn log_capacity(server: &Server<'_>) -> Option<Reading> {
    if let Some(capacity) = server.number("innodb_redo_log_capacity") {
        return bytes(capacity);
    }
    let one = server.number("innodb_log_file_size")?;
    if server.engine == Engine::Rocksdb && one == 0 {
        return Some(Reading::new("0", "what its write buffers hold"));
    }
    // MariaDB has one file since 10.5; the variable stayed for a while and was ignored.
    let files = match server.kind {
        Kind::Gannet => 1,
        Kind::Mariadb if server.version >= Version(10, 5, 0) => 1,
        _ => server.number("innodb_log_files_in_group").unwrap_or(2),
    };
    bytes(one * files)
}

fn system_cache(server: &Server<'_>) -> Option<Reading> {
    if server.kind == Kind::Gannet {
        return Some(Reading::new("past", "never used"));
    }
    if server.engine == Engine::Rocksdb {
        let names = ["rocksdb_use_direct_reads", "rocksdb_use_direct_io_for_flush_and_compaction"];
        let is_direct = names.into_iter().all(|name| server.is_on(name) == Some(true));
        return Some(used(!is_direct, names[0]));
    }
    // MariaDB 11 and later decide it here, and ignore the method.
    if let Some(buffered) = server.is_on("innodb_data_file_buffering") {
        let is_new = server.version >= Version(11, 0, 0);
        if is_new {
            return Some(used(buffered, "innodb_data_file_buffering"));
        }
    }
    let method = server.value("innodb_flush_method").unwrap_or("fsync");
    Some(used(!method.to_ascii_uppercase().starts_with("O_DIRECT"), method))
}

fn used(is_used: bool, by: &str) -> Reading {
    match is_used {
        true => Reading::new("through", format!("used ({by})")),
        false => Reading::new("past", format!("not used ({by})")),
    }
}

/// MyRocks knows nothing else.
fn snapshot_isolation(server: &Server<'_>) -> Option<Reading> {
    let is_on = server.is_on("innodb_snapshot_isolation").unwrap_or(false);
    Some(on_off(is_on || server.engine == Engine::Rocksdb))
}

fn isolation(server: &Server<'_>) -> Option<Reading> {
    server.first(&["transaction_isolation", "tx_isolation"]).map(Reading::same)
}

/// Words that decide nothing any more, or only how statements are shown.
const IDLE_MODES: [&str; 3] = ["NO_AUTO_CREATE_USER", "NO_ENGINE_SUBSTITUTION", ""];

fn sql_mode(server: &Server<'_>) -> Option<Reading> {
    let value = server.value("sql_mode")?;
    let mut words: Vec<&str> =
        value.split(',').map(str::trim).filter(|word| !IDLE_MODES.contains(word)).collect();
    words.sort_unstable();
    Some(Reading::new(words.join(","), value))
}

fn collation(server: &Server<'_>) -> Option<Reading> {
    let (set, collation) =
        (server.value("character_set_server")?, server.value("collation_server")?);
    Some(Reading::same(format!("{set}, {collation}")))
}

fn query_cache(server: &Server<'_>) -> Option<Reading> {
    let is_on = server.value("query_cache_type").is_some_and(|value| value != "OFF");
    Some(on_off(is_on && server.number("query_cache_size").unwrap_or(0) > 0))
}

fn threads(server: &Server<'_>) -> Option<Reading> {
    let value = server.value("thread_handling")?;
    Some(match (server.kind, value) {
        (Kind::Gannet, _) => Reading::same("one per processor, fibers"),
        (_, "one-thread-per-connection") => Reading::same("one per connection"),
        (_, "pool-of-threads" | "loaded-dynamically") => Reading::same("pool"),
        (_, other) => Reading::same(other),
    })
}

fn tls(server: &Server<'_>) -> Option<Reading> {
    let is_offered = match server.value("have_ssl") {
        Some(value) => value == "YES",
        // Newer ones say only what they would use.
        None => {
            let has = |name| server.value(name).is_some_and(|value| !value.is_empty());
            has("tls_version") && has("ssl_cert")
        }
    };
    Some(on_off(is_offered))
}

fn compression(server: &Server<'_>) -> Option<Reading> {
    if server.engine == Engine::Rocksdb {
        let options = server.value("rocksdb_default_cf_options").unwrap_or_default();
        return Some(Reading::same(match options.contains("compression") {
            false => "blocks, as RocksDB does by default (Debian: Snappy)",
            true => options,
        }));
    }
    match server.kind {
        Kind::Gannet => {
            let algorithm = server.value("innodb_compression_algorithm")?;
            Some(Reading::same(format!("lz4; {algorithm} for tables that ask")))
        }
        Kind::Mysql => Some(Reading::same("as the table says")),
        Kind::Mariadb => {
            let algorithm = server.value("innodb_compression_algorithm")?;
            let default = server.is_on("innodb_compression_default").unwrap_or(false);
            let which = if default { "every new table" } else { "tables that ask" };
            Some(Reading::same(format!("{algorithm}, {which}")))
        }
    }
}

fn file_access(server: &Server<'_>) -> Option<Reading> {
    server.value("innodb_flush_method").map(Reading::same)
}
