use super::*;

type Variables = BTreeMap<String, String>;

fn recorded(text: &str) -> Variables {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('\t'));
    pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn gannet() -> Variables {
    recorded(include_str!("../../tests/variables/gannet.tsv"))
}

fn mariadb() -> Variables {
    recorded(include_str!("../../tests/variables/mariadb-10.11.tsv"))
}

fn myrocks() -> Variables {
    recorded(include_str!("../../tests/variables/mariadb-10.11-myrocks.tsv"))
}

fn mysql() -> Variables {
    recorded(include_str!("../../tests/variables/mysql-8.4.tsv"))
}

fn mysql_9() -> Variables {
    recorded(include_str!("../../tests/variables/mysql-9.tsv"))
}

fn with(mut variables: Variables, changes: &[(&str, &str)]) -> Variables {
    for (name, value) in changes {
        variables.insert((*name).into(), (*value).into());
    }
    variables
}

fn compare(servers: &[&Variables]) -> Vec<ParityRow> {
    let versions: Vec<String> = servers
        .iter()
        .map(|variables| format!("{} {}", variables["version_comment"], variables["version"]))
        .collect();
    let settled: Vec<Settled<'_>> = servers
        .iter()
        .zip(&versions)
        .map(|(variables, version)| Settled { version, variables, confines: None })
        .collect();
    table(&settled)
}

fn row<'a>(rows: &'a [ParityRow], what: &str) -> &'a ParityRow {
    rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no row '{what}'"))
}

fn shown(row: &ParityRow) -> Vec<&str> {
    row.values.iter().map(|value| value.as_deref().unwrap_or("-")).collect()
}

fn forbidden(servers: &[&Variables]) -> Vec<String> {
    let rows = compare(servers);
    forbids(&rows).iter().map(|row| row.what.clone()).collect()
}

#[test]
fn a_server_is_equal_to_itself() {
    for variables in [gannet(), mariadb(), myrocks(), mysql(), mysql_9()] {
        let rows = compare(&[&variables, &variables]);
        assert!(rows.len() > 20 && rows.iter().all(|row| row.equal && row.note.is_empty()));
        assert!(forbids(&rows).is_empty());
    }
}

#[test]
fn defaults_of_three_servers_differ_where_they_do() {
    let (gannet, mariadb, mysql) = (gannet(), mariadb(), mysql());
    let rows = compare(&[&gannet, &mariadb, &mysql]);
    assert_eq!(shown(row(&rows, "log capacity")), ["512 MiB", "96 MiB", "100 MiB"]);
    assert_eq!(shown(row(&rows, "memory for pages")), ["512 MiB", "128 MiB", "128 MiB"]);
    assert_eq!(shown(row(&rows, "binary log")), ["off", "off", "on, ROW, synced at every commit"]);
    let torn = ["no page is overwritten in its place", "doublewrite ON", "doublewrite ON"];
    assert_eq!(shown(row(&rows, "torn pages")), torn);
    assert!(row(&rows, "torn pages").equal, "all mend them");
    assert!(row(&rows, "flush at commit").equal && row(&rows, "syncs of files").equal);
    assert!(row(&rows, "isolation").equal, "two names of one variable");
    assert_eq!(shown(row(&rows, "snapshot isolation")), ["on", "off", "off"]);
    assert_eq!(shown(row(&rows, "TLS offered")), ["on", "off", "on"]);
    let names = forbidden(&[&gannet, &mariadb, &mysql]);
    assert_eq!(names, ["binary log", "memory for pages", "log capacity"]);
}

#[test]
fn myrocks_is_read_by_its_own_variables() {
    let (mariadb, myrocks) = (mariadb(), myrocks());
    let rows = compare(&[&mariadb, &myrocks]);
    let of = |what| row(&rows, what).values[1].clone().expect(what);
    assert_eq!(of("memory for pages"), "512 MiB", "not what InnoDB beside it has");
    assert_eq!(of("log capacity"), "what its write buffers hold");
    assert_eq!(of("deadlocks"), "by timeout");
    assert_eq!(of("lock wait timeout"), "1");
    assert_eq!(of("page size"), "4 KiB");
    assert_eq!(of("snapshot isolation"), "on");
    assert!(row(&rows, "torn pages").equal && row(&rows, "checksums of pages").equal);
    assert!(row(&rows, "flush at commit").equal && row(&rows, "syncs of files").equal);
    assert_eq!(row(&rows, "change buffer").values[1], None);
    let wanted = ["memory for pages", "log capacity", "cache of the operating system"];
    assert_eq!(forbidden(&[&mariadb, &myrocks]), wanted);
    let alike = [
        ("rocksdb_block_cache_size", "134217728"),
        ("rocksdb_max_total_wal_size", "100663296"),
        ("rocksdb_use_direct_reads", "ON"),
        ("rocksdb_use_direct_io_for_flush_and_compaction", "ON"),
    ];
    let alike = with(myrocks, &alike);
    assert!(forbidden(&[&mariadb, &alike]).is_empty());
    let later = with(alike.clone(), &[("rocksdb_flush_log_at_trx_commit", "2")]);
    let names = ["flush at commit", "interval of flushes"];
    assert_eq!(forbidden(&[&alike, &later]), names);
    let half = with(alike.clone(), &[("rocksdb_use_direct_reads", "OFF")]);
    assert_eq!(forbidden(&[&alike, &half]), ["cache of the operating system"]);
    let both = [&with(mariadb, &[("innodb_flush_log_at_trx_commit", "2")]), &later];
    assert!(forbidden(&both).is_empty(), "both lose a second");
}

#[test]
fn half_the_log_is_red_whatever_it_is_called() {
    // The option was ignored without a word: the log is one file, whatever the group says.
    let four = "4294967296";
    let mysql = with(mysql(), &[("innodb_redo_log_capacity", four), ("log_bin", "OFF")]);
    let mariadb = with(
        mariadb(),
        &[("innodb_log_file_size", "2147483648"), ("innodb_log_files_in_group", "2")],
    );
    let rows = compare(&[&mysql, &mariadb]);
    assert_eq!(shown(row(&rows, "log capacity")), ["4 GiB", "2 GiB"]);
    assert_eq!(forbidden(&[&mysql, &mariadb]), ["log capacity"]);
    assert!(!row(&rows, "log capacity").note.is_empty());
    let mariadb = with(mariadb, &[("innodb_log_file_size", four)]);
    assert!(forbidden(&[&mysql, &mariadb]).is_empty());
    // Before there was one number, MySQL's log was that of all files together.
    let mut old = with(mysql.clone(), &[("innodb_log_file_size", "2147483648")]);
    old.remove("innodb_redo_log_capacity");
    old.insert("version".into(), "8.0.28".into());
    assert!(forbidden(&[&old, &mariadb]).is_empty());
    let older = with(
        mariadb,
        &[
            ("version", "10.4.30-MariaDB"),
            ("innodb_log_file_size", "2147483648"),
            ("innodb_log_files_in_group", "2"),
        ],
    );
    assert!(forbidden(&[&old, &older]).is_empty());
}

#[test]
fn durability_that_differs_is_red() {
    let base = mariadb();
    let cases = [
        ("innodb_flush_log_at_trx_commit", "2", "flush at commit"),
        ("innodb_flush_log_at_trx_commit", "0", "flush at commit"),
        ("log_bin", "ON", "binary log"),
        ("innodb_doublewrite", "OFF", "torn pages"),
        ("innodb_checksum_algorithm", "none", "checksums of pages"),
        ("innodb_flush_method", "nosync", "syncs of files"),
        ("innodb_flush_method", "fsync", "cache of the operating system"),
        ("innodb_buffer_pool_size", "268435456", "memory for pages"),
    ];
    for (name, value, what) in cases {
        let other = with(base.clone(), &[(name, value)]);
        let names = forbidden(&[&base, &other]);
        assert!(names.contains(&what.to_string()), "{name}={value}: {names:?}");
    }
    let nearly = with(base.clone(), &[("innodb_buffer_pool_size", "136314880")]);
    assert!(forbidden(&[&base, &nearly]).is_empty(), "rounded by the server");
    let group = with(base.clone(), &[("innodb_flush_log_at_trx_commit", "3")]);
    assert!(forbidden(&[&base, &group]).is_empty(), "3 waits for the device as well");
    let detects = with(mysql(), &[("innodb_doublewrite", "DETECT_ONLY")]);
    assert_eq!(forbidden(&[&mysql(), &detects]), ["torn pages"]);
    let recovers = with(mysql(), &[("innodb_doublewrite", "DETECT_AND_RECOVER")]);
    assert!(forbidden(&[&mysql(), &recovers]).is_empty());
}

#[test]
fn behaviour_that_differs_is_shown_and_forbids_nothing() {
    let base = mariadb();
    let cases = [
        ("tx_isolation", "READ-COMMITTED", "isolation"),
        ("sql_mode", "", "sql_mode"),
        ("collation_server", "utf8mb4_bin", "character set and collation"),
        ("query_cache_type", "ON", "query cache"),
        ("performance_schema", "ON", "performance_schema"),
        ("slow_query_log", "ON", "logs of statements"),
        ("thread_handling", "pool-of-threads", "threads"),
        ("max_connections", "7", "connections at most"),
    ];
    for (name, value, what) in cases {
        let other = with(base.clone(), &[(name, value)]);
        let rows = compare(&[&base, &other]);
        assert!(!row(&rows, what).equal, "{name}");
        assert!(forbids(&rows).is_empty(), "{name}");
    }
    let idle = base["sql_mode"].replace(",NO_AUTO_CREATE_USER", "");
    let other = with(base.clone(), &[("sql_mode", &idle)]);
    assert!(row(&compare(&[&base, &other]), "sql_mode").equal, "it decides nothing");
}

#[test]
fn newer_versions_say_it_otherwise() {
    let eleven = with(
        mariadb(),
        &[
            ("version", "11.8.2-MariaDB"),
            ("innodb_data_file_buffering", "OFF"),
            ("innodb_flush_method", "fsync"),
        ],
    );
    let rows = compare(&[&mariadb(), &eleven]);
    assert!(row(&rows, "cache of the operating system").equal, "the method is ignored there");
    let rows = compare(&[&mysql(), &mysql_9()]);
    assert!(rows.iter().all(|row| row.equal), "{rows:?}");
}

#[test]
fn confines_of_the_processes_are_compared() {
    let variables = mariadb();
    let confines = |list: &str| Confines { processors: Some(list.into()), ..Confines::default() };
    let (some, all) = (confines("0-3"), confines("0-7"));
    let settled = |confines| Settled { version: "MariaDB 10.11", variables: &variables, confines };
    let rows = table(&[settled(Some(&some)), settled(Some(&all))]);
    assert_eq!(forbids(&rows).len(), 1);
    assert_eq!(shown(row(&rows, "processors")), ["0-3", "0-7"]);
}
