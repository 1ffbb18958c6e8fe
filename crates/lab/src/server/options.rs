//! Settings as the options of a command line, and what of them a kind cannot keep.

use super::engine::{self, Engine};
use super::kind::{Kind, Version};
use super::settings::{Compression, Settings, Threads, Variables};

/// The options that a server is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// In order; the last of a name wins.
    pub words: Vec<String>,
    /// What this kind of server cannot keep of the settings, as sentences.
    pub notes: Vec<String>,
}

impl Options {
    pub(super) fn set(&mut self, name: &str, value: impl std::fmt::Display) {
        self.words.push(format!("--{}={value}", name.replace('_', "-")));
    }

    fn put(&mut self, word: &str) {
        self.words.push(word.to_string());
    }

    pub(super) fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    fn variables(&mut self, variables: &Variables) {
        variables.iter().for_each(|(name, value)| self.set(name, &value.0));
    }
}

pub(super) fn switch(is_on: bool) -> &'static str {
    if is_on { "ON" } else { "OFF" }
}

/// Settings for a kind and version.
pub fn options(kind: Kind, version: Version, settings: &Settings) -> Options {
    let mut options = Options::default();
    options.set("max_connections", settings.max_connections);
    for plugin in engine::plugins(kind, version, settings) {
        options.put(&format!("--plugin-load-add={}", plugin.name));
    }
    if settings.engine == Engine::Rocksdb {
        options.set("default_storage_engine", "RocksDB");
    }
    if !settings.defaults {
        options.set("max_prepared_stmt_count", 1 << 20);
        shared(&mut options, settings);
        match kind {
            Kind::Gannet => gannet(&mut options, settings),
            Kind::Mariadb => mariadb(&mut options, version, settings),
            Kind::Mysql => mysql(&mut options, version, settings),
        }
    }
    compression(&mut options, kind, settings);
    options.variables(&settings.variables);
    options.variables(match kind {
        Kind::Gannet => &settings.gannet,
        Kind::Mariadb => &settings.mariadb,
        Kind::Mysql => &settings.mysql,
    });
    options
}

/// What has one name everywhere.
fn shared(options: &mut Options, settings: &Settings) {
    options.set("innodb_buffer_pool_size", settings.memory.bytes());
    options.set("innodb_flush_log_at_trx_commit", settings.durability);
    options.set("transaction_isolation", settings.isolation.name());
    options.set("sql_mode", &settings.sql_mode);
}

fn gannet(options: &mut Options, settings: &Settings) {
    options.set("innodb_log_file_size", settings.log_capacity.bytes());
    options.set("innodb_snapshot_isolation", switch(settings.snapshot_isolation));
    if !settings.tls {
        options.put("--skip-ssl");
    }
    if settings.character_set == "utf8mb4" {
        options.set("collation_server", settings.collation());
    } else {
        options.note(format!(
            "Gannet has utf8mb4 as the character set of its databases; its tables are made with {} \
             where the workload says so",
            settings.character_set
        ));
    }
    if settings.doublewrite {
        options.note("Gannet has no doublewrite: it never overwrites a page in its place");
    }
    if settings.binlog {
        options.note("Gannet has no binary log; the servers with one do more work at a commit");
    }
    if !settings.direct_io {
        options.note("Gannet always goes past the cache of the operating system");
    }
    if settings.threads == Threads::PerConnection {
        options.note("Gannet has one thread per core, never one per connection");
    }
}

/// What MariaDB and MySQL have in common.
fn innodb(options: &mut Options, settings: &Settings) {
    options.set("innodb_doublewrite", switch(settings.doublewrite));
    options.set("character_set_server", &settings.character_set);
    options.set("collation_server", settings.collation());
    options.set("performance_schema", switch(settings.performance_schema));
    options.set("table_open_cache", 20_000);
    options.set("back_log", 4096);
    if settings.binlog {
        options.put("--log-bin=binlog");
        options.put("--binlog-format=ROW");
        options.put("--server-id=1");
        options.set("sync_binlog", u8::from(settings.durability == 1));
    } else {
        options.put("--skip-log-bin");
    }
}

fn mariadb(options: &mut Options, version: Version, settings: &Settings) {
    innodb(options, settings);
    // One file since 10.5; before, the capacity is that of all files of the group together.
    if version < Version(10, 5, 0) {
        options.put("--innodb-log-files-in-group=1");
    }
    options.set("innodb_log_file_size", settings.log_capacity.bytes());
    // Not in every minor version, so a start must not fail for it.
    options.set("loose_innodb_snapshot_isolation", switch(settings.snapshot_isolation));
    if !settings.tls {
        options.put("--skip-ssl");
    }
    // The old name has no effect any more where the new ones are.
    if version >= Version(11, 0, 0) {
        options.set("innodb_data_file_buffering", switch(!settings.direct_io));
    } else {
        options.set("innodb_flush_method", if settings.direct_io { "O_DIRECT" } else { "fsync" });
    }
    match settings.threads {
        Threads::Default => {}
        Threads::PerConnection => options.set("thread_handling", "one-thread-per-connection"),
        Threads::Pool => options.set("thread_handling", "pool-of-threads"),
    }
    if settings.engine == Engine::Rocksdb {
        engine::myrocks(options, settings);
    }
}

fn mysql(options: &mut Options, version: Version, settings: &Settings) {
    innodb(options, settings);
    let capacity = settings.log_capacity.bytes();
    if version >= Version(8, 0, 30) {
        options.set("innodb_redo_log_capacity", capacity);
    } else {
        options.set("innodb_log_files_in_group", 2);
        options.set("innodb_log_file_size", capacity / 2);
    }
    options.set("innodb_flush_method", if settings.direct_io { "O_DIRECT" } else { "fsync" });
    if !settings.tls {
        match version < Version(8, 0, 0) {
            true => options.put("--skip-ssl"),
            false => options.put("--tls-version="),
        }
    }
    if settings.snapshot_isolation {
        options.note(
            "MySQL has no innodb_snapshot_isolation: a transaction overwrites what it has not seen",
        );
    }
    if settings.threads == Threads::Pool {
        options.note("MySQL's pool of threads is not in its community edition");
    }
}

fn compression(options: &mut Options, kind: Kind, settings: &Settings) {
    let algorithm = settings.compression_algorithm.as_deref();
    match (kind, settings.compression, algorithm) {
        (_, Compression::None | Compression::Default, _) => {}
        (Kind::Gannet, Compression::Row, _) => {
            options.note("ROW_FORMAT=COMPRESSED is PAGE_COMPRESSED=1 to Gannet");
            options.set("innodb_compression_algorithm", algorithm.unwrap_or("zlib"));
        }
        (_, Compression::Row, Some(name)) if name != "zlib" => {
            options.note(format!("ROW_FORMAT=COMPRESSED is always zlib's, not {name}'s"));
        }
        (Kind::Mariadb, Compression::Page, Some("zstd")) => {
            options.note("MariaDB has no zstd for its pages; it uses its default, zlib");
        }
        (Kind::Gannet | Kind::Mariadb, Compression::Page, Some(name)) => {
            options.set("innodb_compression_algorithm", name);
        }
        (Kind::Mysql, Compression::Page, Some(name)) if !["zlib", "lz4"].contains(&name) => {
            options.note(format!("MySQL has no {name} for its pages; it uses zlib"));
        }
        _ => {}
    }
}

/// What CREATE TABLE needs behind its bracket for the engine and the compression that the settings
/// ask for.
pub fn table_options(kind: Kind, settings: &Settings) -> String {
    if settings.engine == Engine::Rocksdb {
        return "ENGINE=RocksDB".into();
    }
    match (settings.compression, kind) {
        (Compression::None, Kind::Gannet) => "PAGE_COMPRESSED=0".into(),
        (Compression::Default | Compression::None, _) => String::new(),
        (Compression::Row, _) => "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8".into(),
        (Compression::Page, Kind::Mysql) => match settings.compression_algorithm.as_deref() {
            Some("lz4") => "COMPRESSION='lz4'".into(),
            _ => "COMPRESSION='zlib'".into(),
        },
        (Compression::Page, _) => "PAGE_COMPRESSED=1".into(),
    }
}

/// Engine and compression in a word or two, for a report; empty for the default.
pub fn variant(settings: &Settings) -> String {
    let algorithm = settings.compression_algorithm.as_deref();
    match (settings.compression, algorithm) {
        _ if settings.engine == Engine::Rocksdb => "MyRocks".into(),
        (Compression::Default, _) => String::new(),
        (Compression::None, _) => "uncompressed".into(),
        (Compression::Row, _) => "row compressed".into(),
        (Compression::Page, None) => "page compressed".into(),
        (Compression::Page, Some(name)) => format!("page compressed, {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::settings::{Isolation, Size, Word};

    /// What every kind has, as MariaDB 10.11 is told it.
    fn words(kind: Kind, version: Version, settings: &Settings) -> String {
        options(kind, version, settings).words.join("\n")
    }

    fn settings() -> Settings {
        Settings {
            memory: Size(1 << 30),
            log_capacity: Size(256 << 20),
            durability: 2,
            isolation: Isolation::ReadCommitted,
            character_set: "latin1".into(),
            compression: Compression::Page,
            compression_algorithm: Some("lz4".into()),
            ..Settings::default()
        }
    }

    #[test]
    fn one_description_is_three_command_lines() {
        let settings = settings();
        let mariadb = words(Kind::Mariadb, Version(10, 11, 0), &settings);
        let mysql = words(Kind::Mysql, Version(8, 4, 0), &settings);
        let gannet = words(Kind::Gannet, Version(0, 1, 0), &settings);
        let everywhere = [
            "--innodb-buffer-pool-size=1073741824",
            "--innodb-flush-log-at-trx-commit=2",
            "--transaction-isolation=READ-COMMITTED",
            "--max-connections=5000",
        ];
        for word in everywhere {
            assert!(mariadb.contains(word) && mysql.contains(word) && gannet.contains(word));
        }
        for word in ["--collation-server=latin1_swedish_ci", "--skip-log-bin"] {
            assert!(mariadb.contains(word) && mysql.contains(word) && !gannet.contains(word));
        }
        assert!(mariadb.contains("--innodb-log-file-size=268435456"), "{mariadb}");
        assert!(mariadb.contains("--plugin-load-add=provider_lz4"), "{mariadb}");
        assert!(mysql.contains("--innodb-redo-log-capacity=268435456"), "{mysql}");
        assert!(mysql.contains("--tls-version=") && mariadb.contains("--skip-ssl"));
    }

    #[test]
    fn older_versions_get_their_names() {
        let old = words(Kind::Mysql, Version(8, 0, 28), &settings());
        assert!(old.contains("--innodb-log-files-in-group=2"), "{old}");
        assert!(old.contains("--innodb-log-file-size=134217728"), "{old}");
        let old = words(Kind::Mariadb, Version(10, 4, 2), &settings());
        assert!(old.contains("--innodb-log-files-in-group=1"), "{old}");
        assert!(!old.contains("plugin-load-add"), "{old}");
        let new = words(Kind::Mariadb, Version(11, 8, 1), &settings());
        assert!(new.contains("--innodb-data-file-buffering=OFF"), "{new}");
    }

    #[test]
    fn what_a_kind_cannot_keep_is_said() {
        let asked = Settings {
            binlog: true,
            direct_io: false,
            threads: Threads::PerConnection,
            ..settings()
        };
        let notes = options(Kind::Gannet, Version(0, 1, 0), &asked).notes.join("\n");
        for word in ["binary log", "doublewrite", "utf8mb4", "cache of the", "per connection"] {
            assert!(notes.contains(word), "{word}: {notes}");
        }
        let row = Settings { compression: Compression::Row, ..settings() };
        let notes = options(Kind::Mariadb, Version(10, 11, 0), &row).notes.join("\n");
        assert!(notes.contains("zlib"), "{notes}");
        let zstd = Settings { compression_algorithm: Some("zstd".into()), ..settings() };
        for kind in [Kind::Mariadb, Kind::Mysql] {
            let notes = options(kind, Version(10, 11, 0), &zstd).notes.join("\n");
            assert!(notes.contains("zstd"), "{kind}: {notes}");
        }
    }

    #[test]
    fn variables_by_hand_come_last_and_only_to_their_kind() {
        let word = |text: &str| Word(text.into());
        let asked = Settings {
            variables: [("innodb_io_capacity".into(), word("4000"))].into(),
            mariadb: [("innodb_buffer_pool_size".into(), word("7"))].into(),
            ..settings()
        };
        let mariadb = options(Kind::Mariadb, Version(10, 11, 0), &asked).words;
        assert_eq!(mariadb.last().map(String::as_str), Some("--innodb-buffer-pool-size=7"));
        let gannet = options(Kind::Gannet, Version(0, 1, 0), &asked).words;
        assert_eq!(gannet.last().map(String::as_str), Some("--innodb-io-capacity=4000"));
    }

    #[test]
    fn defaults_set_nothing_but_connections_and_what_is_by_hand() {
        let asked = Settings { defaults: true, ..Settings::default() };
        let words = options(Kind::Mysql, Version(9, 1, 0), &asked).words;
        assert_eq!(words, ["--max-connections=5000"]);
    }

    #[test]
    fn tables_are_made_with_the_variant() {
        let of = |compression, kind| {
            let asked = Settings { compression, ..settings() };
            table_options(kind, &asked)
        };
        assert_eq!(of(Compression::Default, Kind::Gannet), "");
        assert_eq!(of(Compression::None, Kind::Mariadb), "");
        assert_eq!(of(Compression::None, Kind::Gannet), "PAGE_COMPRESSED=0");
        assert_eq!(of(Compression::Page, Kind::Mariadb), "PAGE_COMPRESSED=1");
        assert_eq!(of(Compression::Page, Kind::Mysql), "COMPRESSION='lz4'");
        assert_eq!(of(Compression::Row, Kind::Mysql), "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8");
    }
}
