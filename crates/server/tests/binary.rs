//! The `gannet` binary from outside: start, ready line, clients, signals, crash, check.

mod common;

use common::fresh_directory as directory;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for what must happen at some time; only a failure takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

struct Server {
    child: Child,
    port: u16,
    directory: PathBuf,
}

fn gannet() -> Command {
    Command::new(env!("CARGO_BIN_EXE_gannet"))
}

impl Server {
    /// Starts a server on a port that the system chooses and waits for the ready line.
    fn start(directory: PathBuf, options: &[&str]) -> Self {
        let (child, port) = common::start(&directory, options, Stdio::piped());
        Self { child, port, directory }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits for the end; exit code and what it said.
    fn wait(mut self) -> (Option<i32>, String, PathBuf) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        self.child.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said, self.directory.clone())
    }

    fn command(&self, statements: &str) -> Command {
        let mut client = Command::new("mariadb");
        client
            .args(["--no-defaults", "-h127.0.0.1", "-uroot", "-BN", "-e", statements])
            .arg(format!("-P{}", self.port));
        client
    }

    fn client(&self, statements: &str) -> Output {
        self.command(statements).output().unwrap()
    }

    fn answer(&self, statements: &str) -> String {
        let output = self.client(statements);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// False, with the reason printed, if the program is not installed; CI must have it.
fn has(program: &str, arguments: &[&str]) -> bool {
    let found = Command::new(program).args(arguments).output().is_ok_and(|o| o.status.success());
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{program} is needed here");
        println!("skipped: {program} {} does not run here", arguments.join(" "));
    }
    found
}

fn check(directory: &PathBuf) -> (Option<i32>, String) {
    let output = gannet().args(["check", "--datadir"]).arg(directory).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_server_starts_serves_stops_and_keeps_what_was_committed() {
    if !has("mariadb", &["--version"]) {
        return;
    }
    let server = Server::start(directory("life"), &[]);
    assert_eq!(server.answer("SELECT 1"), "1\n");
    assert!(server.answer("SELECT @@version").contains("-MariaDB-gannet-"));
    server.answer(
        "CREATE TABLE test.t (id INT PRIMARY KEY, a VARCHAR(20), KEY (a));
         INSERT INTO test.t VALUES (1, 'one'), (2, 'two')",
    );
    let mut second = gannet();
    second.args(["serve", "--port", "0", "--datadir"]).arg(&server.directory);
    let second = second.output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("in use by another server"));
    server.signal("-TERM");
    let (code, said, directory) = server.wait();
    assert_eq!(code, Some(0));
    assert!(said.contains("Log in as root") && said.contains("shutdown complete"), "{said}");

    // As on a device with longer blocks: the log goes on in its next file.
    let server = Server::start(directory, &["--innodb-log-write-ahead-size=4096"]);
    assert_eq!(server.answer("SELECT * FROM test.t ORDER BY id"), "1\tone\n2\ttwo\n");
    server.answer("INSERT INTO test.t VALUES (3, 'three')");
    server.signal("-KILL");
    let (_, said, directory) = server.wait();
    assert!(!said.contains("Log in as root"), "{said}");

    let server = Server::start(directory, &[]);
    assert_eq!(server.answer("SELECT COUNT(*) FROM test.t"), "3\n");
    server.answer("SHUTDOWN");
    let (code, said, directory) = server.wait();
    assert_eq!(code, Some(0), "{said}");
    let (code, found) = check(&directory);
    assert_eq!(code, Some(0), "{found}");
    std::fs::remove_dir_all(directory).unwrap();
}

/// Asks until the answer is as wanted; only a failure takes a minute.
fn wait_for(server: &Server, wanted: &str, statement: &str) {
    let begun = Instant::now();
    loop {
        let answer = server.answer(statement);
        if answer == wanted {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{statement}: still {answer}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Clients are killed while their statements sleep and wait for a row: the connections vanish,
/// and what they held is free, long before any timeout.
#[test]
fn a_client_that_is_killed_is_noticed_while_its_statement_waits() {
    if !has("mariadb", &["--version"]) {
        return;
    }
    let server = Server::start(directory("gone"), &[]);
    server.answer(
        "CREATE TABLE test.t (id INT PRIMARY KEY, n INT); INSERT INTO test.t VALUES (1, 1), (2, 2)",
    );
    let running = |text: &str| {
        format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST
             WHERE ID <> CONNECTION_ID() AND INFO LIKE '{text}%'"
        )
    };
    let start = |statements: &str| {
        let mut client =
            server.command(&format!("SET innodb_lock_wait_timeout = 100000; {statements}"));
        client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut holder = start("BEGIN; UPDATE test.t SET n = 10 WHERE id = 1; SELECT SLEEP(100000)");
    wait_for(&server, "1\n", &running("SELECT SLEEP"));
    let mut waiter = start(
        "BEGIN; UPDATE test.t SET n = 20 WHERE id = 2; UPDATE test.t SET n = 20 WHERE id = 1",
    );
    wait_for(&server, "1\n", &running("UPDATE test.t SET n = 20 WHERE id = 1"));
    waiter.kill().unwrap();
    waiter.wait().unwrap();
    wait_for(&server, "0\n", &running("UPDATE"));
    let update = "SET innodb_lock_wait_timeout = 60; UPDATE test.t SET n = n + 1 WHERE id =";
    server.answer(&format!("{update} 2"));
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_for(&server, "0\n", &running("SELECT SLEEP"));
    server.answer(&format!("{update} 1"));
    assert_eq!(server.answer("SELECT n FROM test.t ORDER BY id"), "2\n3\n");
    server.signal("-TERM");
    let (code, said, directory) = server.wait();
    assert_eq!(code, Some(0), "{said}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_password_and_the_socket() {
    if !has("mariadb", &["--version"]) {
        return;
    }
    let directory = directory("password");
    let server = Server::start(directory, &["--set", "max_connections=50"]);
    let by_socket = |password: &str| {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "-uroot", "-BN", "-e", "SELECT @@max_connections"]);
        client.arg("-S").arg(server.directory.join("gannet.sock"));
        client.arg(format!("-p{password}")).output().unwrap()
    };
    assert_eq!(by_socket("").stdout, b"50\n");
    server.answer("ALTER USER root@localhost IDENTIFIED BY 'secret'");
    assert!(String::from_utf8_lossy(&by_socket("").stderr).contains("1045"));
    assert_eq!(by_socket("secret").stdout, b"50\n");
    server.signal("-INT");
    let (code, _, directory) = server.wait();
    assert_eq!(code, Some(0));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn options_that_cannot_be_used_stop_the_start() {
    let run = |arguments: &[&str]| {
        let output = gannet().args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&["serve", "--datadir", "/nowhere", "--innodb-use-everything=1"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("unknown variable 'innodb-use-everything=1'"), "{said}");
    assert_eq!(run(&["serve"]).0, Some(2));
    assert_eq!(run(&["dance"]).0, Some(2));
    assert_eq!(run(&["check", "--datadir", "/nowhere"]).0, Some(2));
    assert_eq!(run(&["--version"]).0, Some(0));
    let unused = directory("unused");
    let place = unused.to_str().unwrap();
    let odd = "--innodb-log-write-ahead-size=1000";
    let (code, said) = run(&["serve", "--port", "0", "--datadir", place, odd]);
    assert_eq!(code, Some(1));
    assert!(said.contains("innodb_log_write_ahead_size=1000 is not a power of two"), "{said}");
    assert!(!unused.exists());
}

/// The scripts of `tests/clients` with drivers of other languages.
#[test]
fn drivers() {
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients");
    for (module, script) in [("pymysql", "pymysql_client.py"), ("MySQLdb", "mysqlclient_client.py")]
    {
        // Drivers are optional everywhere: only what is installed is tried.
        let importable = Command::new("python3").args(["-c", &format!("import {module}")]).output();
        if !importable.is_ok_and(|output| output.status.success()) {
            println!("skipped: python3 has no {module}");
            continue;
        }
        let server = Server::start(directory(module), &[]);
        let output = Command::new("python3")
            .arg(format!("{scripts}/{script}"))
            .arg(server.port.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{script}: {said}");
        server.signal("-TERM");
        let (_, _, directory) = server.wait();
        std::fs::remove_dir_all(directory).unwrap();
    }
}

/// Prepared XA transactions outlive their connections, `kill -9` and orderly stops, with their
/// rows locked, until somebody commits or rolls them back; what was not prepared is gone.
#[test]
fn prepared_transactions_survive_the_server() {
    if !has("mariadb", &["--version"]) {
        return;
    }
    let rows = "SELECT GROUP_CONCAT(CONCAT(id, ':', a) ORDER BY id) FROM test.t";
    let prepared = "XA RECOVER FORMAT='SQL'";
    let server = Server::start(directory("xa"), &[]);
    server.answer(
        "CREATE TABLE test.t (id INT PRIMARY KEY, a VARCHAR(20), KEY (a));
         INSERT INTO test.t VALUES (1, 'one'), (2, 'two'), (3, 'three')",
    );
    server.answer(
        "XA START 'first'; UPDATE test.t SET a = 'eins' WHERE id = 1;
         DELETE FROM test.t WHERE id = 2; INSERT INTO test.t VALUES (4, 'four');
         XA END 'first'; XA PREPARE 'first'",
    );
    server.answer(
        "XA START 'second', 'part', 7; INSERT INTO test.t VALUES (5, 'five');
         UPDATE test.t SET a = 'drei' WHERE id = 3;
         XA END 'second', 'part', 7; XA PREPARE 'second', 'part', 7",
    );
    server.answer("XA START 'never'; INSERT INTO test.t VALUES (6, 'six'); XA END 'never'");
    server.signal("-KILL");
    let (_, _, directory) = server.wait();

    let server = Server::start(directory, &[]);
    let both = "1\t5\t0\t'first'\n7\t6\t4\t'second','part',7\n";
    assert_eq!(server.answer(prepared), both);
    assert_eq!(server.answer(rows), "1:one,2:two,3:three\n");
    for statement in [
        "SELECT * FROM test.t WHERE id = 1 FOR UPDATE NOWAIT",
        "SELECT * FROM test.t WHERE id = 2 FOR UPDATE NOWAIT",
        "SET lock_wait_timeout = 0; DROP TABLE test.t",
    ] {
        let refused = server.client(statement);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("ERROR 1205 (HY000)"), "{statement}: {said}");
    }
    server.answer("INSERT INTO test.t VALUES (6, 'six')");
    server.answer("XA COMMIT 'first'");
    server.signal("-TERM");
    let (code, said, directory) = server.wait();
    assert_eq!(code, Some(0), "{said}");

    let server = Server::start(directory, &[]);
    assert_eq!(server.answer(prepared), "7\t6\t4\t'second','part',7\n");
    assert_eq!(server.answer(rows), "1:eins,3:three,4:four,6:six\n");
    server.signal("-KILL");
    let (_, _, directory) = server.wait();

    let server = Server::start(directory, &[]);
    server.answer("XA ROLLBACK 'second', 'part', 7");
    server.signal("-KILL");
    let (_, _, directory) = server.wait();

    let server = Server::start(directory, &[]);
    assert_eq!(server.answer(prepared), "");
    assert_eq!(server.answer(rows), "1:eins,3:three,4:four,6:six\n");
    assert_eq!(server.answer("SELECT id FROM test.t WHERE a IN ('drei', 'five', 'two')"), "");
    assert!(server.answer("CHECK TABLE test.t").contains("OK"));
    server.answer("DROP TABLE test.t");
    server.signal("-TERM");
    let (code, said, directory) = server.wait();
    assert_eq!(code, Some(0), "{said}");
    let (code, found) = check(&directory);
    assert_eq!(code, Some(0), "{found}");
    std::fs::remove_dir_all(directory).unwrap();
}
