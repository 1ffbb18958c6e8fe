//! Storage engines below MariaDB, and what a server needs for the one that is asked for.
//!
//! A server has other engines beside the one of the workload's tables. Whoever looks for memory or
//! durability in its variables must ask for those of the right one: [`Engine::variable`].

use super::kind::{Kind, Version};
use super::options::{Options, switch};
use super::settings::{Compression, Isolation, Settings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The storage engine of the workload's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// InnoDB, and in Gannet what has taken its place.
    #[default]
    Innodb,
    /// MyRocks: RocksDB below MariaDB.
    Rocksdb,
}

/// What a command line calls a MariaDB with [`Engine::Rocksdb`].
pub const MYROCKS: &str = "myrocks";

/// InnoDB's variables, and MyRocks' of the same meaning.
const ROCKSDB_VARIABLES: [(&str, &str); 6] = [
    ("innodb_buffer_pool_size", "rocksdb_block_cache_size"),
    ("innodb_deadlock_detect", "rocksdb_deadlock_detect"),
    ("innodb_flush_log_at_trx_commit", "rocksdb_flush_log_at_trx_commit"),
    ("innodb_lock_wait_timeout", "rocksdb_lock_wait_timeout"),
    ("innodb_log_file_size", "rocksdb_max_total_wal_size"),
    ("innodb_page_size", "rocksdb_block_size"),
];
/// InnoDB stays beside MyRocks with the least that it starts with, bytes.
const INNODB_POOL_LEAST: u64 = 8 << 20;
const INNODB_LOG_LEAST: u64 = 4 << 20;
/// The memory for which RocksDB's own sizes of write buffers, files and levels are taken. Below it
/// they shrink with the memory, as the data of a scaled experiment do: else a small server would
/// hold all its data in write buffers, or rewrite them all with each of them.
const ROCKSDB_MEMORY: u64 = 512 << 20;
/// RocksDB's sizes, bytes; a family of columns has two write buffers.
const WRITE_BUFFER: u64 = 64 << 20;
const FILE: u64 = 64 << 20;
const FIRST_LEVEL: u64 = 256 << 20;
/// Seconds; MyRocks' own default is one.
const INNODB_LOCK_WAIT_TIMEOUT: u32 = 50;

impl Engine {
    /// As a description of a server writes it.
    pub fn word(self) -> &'static str {
        match self {
            Engine::Innodb => "innodb",
            Engine::Rocksdb => "rocksdb",
        }
    }

    /// The one that tables have in a server with these variables if they ask for none.
    pub fn in_effect(variables: &BTreeMap<String, String>) -> Self {
        match variables.get("default_storage_engine") {
            Some(name) if name.eq_ignore_ascii_case(Engine::Rocksdb.word()) => Engine::Rocksdb,
            _ => Engine::Innodb,
        }
    }

    /// The variable of this engine that means what InnoDB's of that name does; none if it has no
    /// such thing. Names that are no engine's stay.
    pub fn variable(self, name: &str) -> Option<&str> {
        if self == Engine::Innodb || !name.starts_with("innodb_") {
            return Some(name);
        }
        let found = ROCKSDB_VARIABLES.into_iter().find(|(innodb, _)| *innodb == name);
        found.map(|(_, rocksdb)| rocksdb)
    }
}

/// Why a server of a kind cannot be as these settings want it, if their engine is the cause.
pub(super) fn check(kind: Kind, settings: &Settings) -> Result<(), String> {
    if settings.engine == Engine::Innodb {
        return Ok(());
    }
    if kind != Kind::Mariadb {
        return Err(format!("engine \"rocksdb\" is MariaDB's; {kind} has no MyRocks"));
    }
    if matches!(settings.isolation, Isolation::ReadUncommitted | Isolation::Serializable) {
        return Err(format!(
            "MyRocks has no isolation {}; \"read-committed\" or \"repeatable-read\" is wanted",
            settings.isolation.name()
        ));
    }
    if settings.compression != Compression::Default {
        return Err("MyRocks compresses as its column families say, not its tables: leave \
                    `compression` away, and set rocksdb_default_cf_options if need be"
            .into());
    }
    Ok(())
}

/// A plugin of MariaDB, and Debian's package that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plugin {
    pub(super) name: String,
    pub(super) package: String,
}

/// The plugins that MariaDB needs for these settings.
pub(super) fn plugins(kind: Kind, version: Version, settings: &Settings) -> Vec<Plugin> {
    let mut found = Vec::new();
    if kind != Kind::Mariadb {
        return found;
    }
    if settings.engine == Engine::Rocksdb {
        found.push(Plugin { name: "ha_rocksdb".into(), package: "mariadb-plugin-rocksdb".into() });
    }
    // Since 10.7 all algorithms but zlib are plugins; there is none of zstd.
    if let (Compression::Page, Some(algorithm)) =
        (settings.compression, settings.compression_algorithm.as_deref())
        && version >= Version(10, 7, 0)
        && !["zlib", "zstd"].contains(&algorithm)
    {
        found.push(Plugin {
            name: format!("provider_{algorithm}"),
            package: format!("mariadb-plugin-provider-{algorithm}"),
        });
    }
    found
}

/// MyRocks with the memory, durability and behaviour that the settings want of any server.
pub(super) fn myrocks(options: &mut Options, settings: &Settings) {
    options.set("rocksdb_block_cache_size", settings.memory.bytes());
    let share = settings.memory.bytes().min(ROCKSDB_MEMORY) as f64 / ROCKSDB_MEMORY as f64;
    let [buffer, file, level] =
        [WRITE_BUFFER, FILE, FIRST_LEVEL].map(|size| (size as f64 * share) as u64);
    options.set("rocksdb_db_write_buffer_size", 2 * buffer);
    options.set(
        "rocksdb_default_cf_options",
        format!(
            "write_buffer_size={buffer};target_file_size_base={file};\
             max_bytes_for_level_base={level}"
        ),
    );
    options.set("rocksdb_flush_log_at_trx_commit", settings.durability);
    options.set("rocksdb_max_total_wal_size", settings.log_capacity.bytes());
    options.set("rocksdb_use_direct_reads", switch(settings.direct_io));
    options.set("rocksdb_use_direct_io_for_flush_and_compaction", switch(settings.direct_io));
    options.set("rocksdb_deadlock_detect", switch(true));
    options.set("rocksdb_lock_wait_timeout", INNODB_LOCK_WAIT_TIMEOUT);
    // Else it refuses indexes on texts of most collations, of which it keeps the value beside the
    // key.
    options.set("rocksdb_strict_collation_check", switch(false));
    options.set("innodb_buffer_pool_size", INNODB_POOL_LEAST);
    options.set("innodb_log_file_size", INNODB_LOG_LEAST);
    options.note(
        "MyRocks' block cache has the memory; its write buffers, up to a quarter, come on top",
    );
    options.note("MyRocks locks no gaps: a range that was read may get rows from others");
    if !settings.snapshot_isolation && settings.isolation == Isolation::RepeatableRead {
        options.note("MyRocks never overwrites what a transaction has not seen");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::options::{options, table_options, variant};
    use crate::server::settings::Size;

    fn rocksdb() -> Settings {
        Settings { engine: Engine::Rocksdb, ..Settings::default() }
    }

    #[test]
    fn variables_are_those_of_the_engine() {
        let memory = "innodb_buffer_pool_size";
        assert_eq!(Engine::Innodb.variable(memory), Some(memory));
        assert_eq!(Engine::Rocksdb.variable(memory), Some("rocksdb_block_cache_size"));
        assert_eq!(Engine::Rocksdb.variable("innodb_doublewrite"), None);
        assert_eq!(Engine::Rocksdb.variable("autocommit"), Some("autocommit"));
        let variables = |engine: &str| [("default_storage_engine".into(), engine.into())].into();
        assert_eq!(Engine::in_effect(&variables("ROCKSDB")), Engine::Rocksdb);
        assert_eq!(Engine::in_effect(&variables("InnoDB")), Engine::Innodb);
        assert_eq!(Engine::in_effect(&BTreeMap::new()), Engine::Innodb);
    }

    #[test]
    fn what_myrocks_cannot_be_is_refused() {
        assert_eq!(check(Kind::Mariadb, &rocksdb()), Ok(()));
        for kind in [Kind::Gannet, Kind::Mysql] {
            let error = check(kind, &rocksdb()).expect_err("not there");
            assert!(error.contains(kind.name()), "{error}");
            assert_eq!(check(kind, &Settings::default()), Ok(()));
        }
        let serializable = Settings { isolation: Isolation::Serializable, ..rocksdb() };
        let error = check(Kind::Mariadb, &serializable).expect_err("not there");
        assert!(error.contains("SERIALIZABLE"), "{error}");
        let pages = Settings { compression: Compression::Page, ..rocksdb() };
        let error = check(Kind::Mariadb, &pages).expect_err("not there");
        assert!(error.contains("rocksdb_default_cf_options"), "{error}");
    }

    #[test]
    fn plugins_are_those_that_are_asked_for() {
        let names = |kind, version, settings: &Settings| -> Vec<String> {
            plugins(kind, version, settings).into_iter().map(|plugin| plugin.name).collect()
        };
        let (new, old) = (Version(10, 11, 0), Version(10, 6, 0));
        assert_eq!(names(Kind::Mariadb, new, &rocksdb()), ["ha_rocksdb"]);
        assert!(names(Kind::Mariadb, new, &Settings::default()).is_empty());
        let pages = |algorithm: &str| Settings {
            compression: Compression::Page,
            compression_algorithm: Some(algorithm.into()),
            ..Settings::default()
        };
        assert_eq!(names(Kind::Mariadb, new, &pages("lz4")), ["provider_lz4"]);
        assert!(names(Kind::Mariadb, old, &pages("lz4")).is_empty());
        assert!(names(Kind::Mariadb, new, &pages("zlib")).is_empty());
        assert!(names(Kind::Gannet, new, &pages("lz4")).is_empty());
    }

    #[test]
    fn myrocks_has_the_memory_and_innodb_the_least() {
        let settings = Settings { durability: 2, ..rocksdb() };
        let found = options(Kind::Mariadb, Version(10, 11, 0), &settings);
        let last = |name: &str| {
            let begin = format!("--{name}=");
            found.words.iter().rev().find_map(|word| word.strip_prefix(&begin))
        };
        assert!(found.words.contains(&"--plugin-load-add=ha_rocksdb".to_string()));
        assert_eq!(last("default-storage-engine"), Some("RocksDB"));
        assert_eq!(last("rocksdb-block-cache-size"), Some("536870912"));
        assert_eq!(last("rocksdb-db-write-buffer-size"), Some("134217728"));
        let of_rocksdb = "write_buffer_size=67108864;target_file_size_base=67108864;\
                          max_bytes_for_level_base=268435456";
        assert_eq!(last("rocksdb-default-cf-options"), Some(of_rocksdb), "its own for 512 MiB");
        let small = Settings { memory: Size(32 << 20), ..rocksdb() };
        let small = options(Kind::Mariadb, Version(10, 11, 0), &small).words.join(" ");
        assert!(small.contains("write_buffer_size=4194304;"), "{small}");
        assert!(small.contains("max_bytes_for_level_base=16777216"), "{small}");
        let large = Settings { memory: Size(50 << 30), ..rocksdb() };
        let large = options(Kind::Mariadb, Version(10, 11, 0), &large).words.join(" ");
        assert!(large.contains(of_rocksdb), "{large}");
        assert_eq!(last("rocksdb-flush-log-at-trx-commit"), Some("2"));
        assert_eq!(last("rocksdb-use-direct-reads"), Some("ON"));
        assert_eq!(last("innodb-buffer-pool-size"), Some("8388608"));
        assert!(found.notes.iter().any(|note| note.contains("write buffers")));
        assert_eq!(table_options(Kind::Mariadb, &settings), "ENGINE=RocksDB");
        assert_eq!(variant(&settings), "MyRocks");
        let defaults = Settings { defaults: true, ..rocksdb() };
        let words = options(Kind::Mariadb, Version(10, 11, 0), &defaults).words.join(" ");
        assert!(words.contains("ha_rocksdb") && !words.contains("block-cache"), "{words}");
    }
}
