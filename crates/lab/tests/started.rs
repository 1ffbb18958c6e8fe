//! Servers that the lab starts: real ones, as far as they are installed. `GANNET_PROGRAM` names a
//! Gannet that is not on the path.

use lab::client::Connection;
use lab::server::{
    Beginning, Description, Engine, Kind, Settings, Size, Started, is_available, start,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs a test for each kind of server that is there, with a folder for its results.
fn with_each(name: &str, test: fn(Description, &Path)) {
    let kinds = Kind::ALL.map(|kind| (kind, Engine::Innodb));
    for (kind, engine) in kinds.into_iter().chain([(Kind::Mariadb, Engine::Rocksdb)]) {
        let program = std::env::var_os("GANNET_PROGRAM").filter(|_| kind == Kind::Gannet);
        let settings = Settings {
            memory: Size(64 << 20),
            log_capacity: Size(64 << 20),
            engine,
            ..Settings::default()
        };
        let description =
            Description { program: program.map(PathBuf::from), settings, ..Description::new(kind) };
        if let Err(why) = is_available(&description) {
            eprintln!("without {kind} and {}: {why}", engine.word());
            continue;
        }
        let folder = format!("lab-started-{name}-{kind}-{}-{}", engine.word(), std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let config = runtime::Config { workers: 1, ..runtime::Config::default() };
        let runtime = runtime::Runtime::start(config).expect("threads");
        let results = folder.clone();
        runtime.run(move || test(description, &results));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

fn single(server: &Started, sql: &str) -> String {
    let mut connection = Connection::open(&server.target()).expect("it answers");
    connection.single(sql).expect(sql).expect("a value")
}

fn execute(server: &Started, sql: &str) {
    Connection::open(&server.target()).expect("it answers").command(sql).expect(sql);
}

fn process_exists(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

#[test]
fn what_was_committed_survives_kill_and_stop() {
    with_each("kill", |description, results| {
        let server = start(&description, "a", results).expect("it starts");
        execute(&server, &format!("CREATE TABLE t (a INT PRIMARY KEY) {}", server.table_options()));
        let engine = single(
            &server,
            "SELECT engine FROM information_schema.tables WHERE \
                                      table_schema = 'lab' AND table_name = 't'",
        );
        assert!(engine.eq_ignore_ascii_case(description.settings.engine.word()), "{engine}");
        execute(&server, "INSERT INTO t VALUES (1), (2)");
        let first = server.id().expect("it runs");
        server.kill().expect("it ran");
        assert!(server.id().is_none() && !process_exists(first));
        assert!(Connection::open(&server.target()).is_err());
        server.restart().expect("it recovers");
        assert!(server.restart().is_err(), "it runs already");
        assert_eq!(single(&server, "SELECT COUNT(*) FROM t"), "2");
        let beginning = server.cold_start().expect("in order");
        assert!(matches!(beginning, Beginning::Cold | Beginning::ColdData(_)), "{beginning:?}");
        assert_eq!(single(&server, "SELECT SUM(a) FROM t"), "3");
        server.stop().expect("in order");
        assert!(server.kill().is_err(), "it does not run");
        let (data, log) = (server.data(), server.log());
        assert!(data.exists());
        drop(server);
        assert!(!data.exists() && log.exists(), "the log stays, the data go");
        assert!(results.join("servers/a/command.txt").exists());
    });
}

#[test]
fn settings_are_in_effect() {
    with_each("settings", |description, results| {
        let server = start(&description, "b", results).expect("it starts");
        let engine = description.settings.engine;
        let variable = |name| {
            let name = engine.variable(name).expect("every engine has it");
            single(&server, &format!("SELECT @@{name}"))
        };
        assert_eq!(variable("innodb_buffer_pool_size"), (64 << 20).to_string());
        assert_eq!(variable("innodb_flush_log_at_trx_commit"), "1");
        assert_eq!(variable("innodb_lock_wait_timeout"), "50");
        assert_eq!(single(&server, "SELECT @@max_connections"), "5000");
        let capacity = match server.kind() {
            Kind::Mysql => single(&server, "SELECT @@innodb_redo_log_capacity"),
            _ => variable("innodb_log_file_size"),
        };
        assert_eq!(capacity, (64 << 20).to_string());
        assert_eq!(single(&server, "SELECT @@collation_database"), "utf8mb4_general_ci");
        assert_eq!(single(&server, "SELECT @@log_bin"), "0");
        let facts = server.facts();
        assert!(facts.contains_key("program") && facts["program's version"].len() > 3);
    });
}

#[test]
fn a_start_that_fails_says_why() {
    with_each("fails", |mut description, results| {
        let word = lab::server::Word("1".into());
        description.settings.variables.insert("no_such_variable".into(), word);
        let failed = start(&description, "c", results).map(|_: Arc<Started>| ());
        let error = failed.expect_err("no such variable");
        let with_dashes = error.replace('_', "-");
        assert!(with_dashes.contains("no-such-variable"), "{error}");
        assert!(error.starts_with("c: "), "{error}");
    });
}

/// Says that it is MySQL, writes down what it is told, and lets MariaDB do what it understands.
const FAKE_MYSQL: &str = r#"#!/bin/sh
if [ "$*" = --version ]; then
    echo "mysqld  Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)"
    exit
fi
echo "$*" >> "$(dirname "$0")/said"
PATH="$PATH:/usr/sbin"
for word; do
    case "$word" in
    --port=* | --bind-address=* | --socket=* | --pid-file=*) server="$server $word" ;;
    --datadir=* | --user=* | --skip-name-resolve) both="$both $word" ;;
    --initialize-insecure) is_new=1 ;;
    esac
done
if [ -n "$is_new" ]; then
    exec mariadb-install-db --no-defaults --auth-root-authentication-method=normal $both
fi
exec mariadbd --no-defaults $both $server
"#;

/// No MySQL is to be had here: this shows that one is told what its manual wants, in the right
/// order, and that it gets the account and the database.
#[test]
fn a_mysql_is_initialised_and_told_its_settings() {
    use std::os::unix::fs::PermissionsExt;
    if let Err(why) = is_available(&Description::new(Kind::Mariadb)) {
        eprintln!("without a server behind the fake one: {why}");
        return;
    }
    let folder = std::env::temp_dir().join(format!("lab-started-fake-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("mysqld");
    std::fs::write(&program, FAKE_MYSQL).expect("written");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("executable");
    let settings = Settings {
        memory: Size(64 << 20),
        log_capacity: Size(64 << 20),
        durability: 2,
        ..Settings::default()
    };
    let description =
        Description { program: Some(program), settings, ..Description::new(Kind::Mysql) };
    let config = runtime::Config { workers: 1, ..runtime::Config::default() };
    let runtime = runtime::Runtime::start(config).expect("threads");
    let results = folder.clone();
    runtime.run(move || {
        let server = start(&description, "mysql", &results).expect("it starts");
        assert_eq!(single(&server, "SELECT CURRENT_USER()"), "lab@%");
        execute(&server, "CREATE TABLE t (a INT PRIMARY KEY)");
        server.stop().expect("in order");
    });
    let said = std::fs::read_to_string(folder.join("said")).expect("it was told");
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("--no-defaults --initialize-insecure --datadir="), "{}", said[0]);
    let wanted = [
        "--no-defaults",
        "--bind-address=127.0.0.1",
        "--mysqlx=OFF",
        "--skip-log-bin",
        "--innodb-buffer-pool-size=67108864",
        "--innodb-redo-log-capacity=67108864",
        "--innodb-flush-log-at-trx-commit=2",
    ];
    for word in wanted {
        assert!(said[1].split(' ').any(|said| said == word), "{word} is not in {}", said[1]);
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}
