//! The client against the constant server, both as processes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

const TOOL: &str = env!("CARGO_BIN_EXE_gannet-bench");

/// A server that ends with the test.
struct Constant {
    child: Child,
    port: String,
}

impl Drop for Constant {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn constant() -> Constant {
    let mut child = Command::new(TOOL).arg("constant").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().rsplit_once(':').unwrap().1.to_string();
    Constant { child, port }
}

fn client(port: &str, words: &[&str]) -> Command {
    let mut command = Command::new(TOOL);
    command.args(["client", "--port", port]).args(words).stdout(Stdio::piped());
    command
}

fn number(line: &str, name: &str) -> f64 {
    let word = line.split_whitespace().find_map(|word| word.strip_prefix(name)).unwrap();
    word.parse().unwrap()
}

#[test]
fn every_kind_of_load_is_answered() {
    let server = constant();
    let select = "SELECT c FROM sbtest{table} WHERE id={id}";
    let update = "UPDATE sbtest{table} SET c={c} WHERE id={id}";
    let loads: [&[&str]; 4] = [
        &["--sql", select, "--connections", "50", "--tables", "8"],
        &["--sql", select, "--connections", "3", "--text"],
        &["--sql", update, "--connections", "5", "--statements", "8"],
        &["--sql", update, "--connections", "1", "--text"],
    ];
    for load in loads {
        let times = ["--warm-up", "0.1", "--seconds", "0.5"];
        let output = client(&server.port, load).args(times).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{load:?}: {text}");
        let line = text.lines().find_map(|line| line.strip_prefix("measured ")).unwrap();
        assert!(number(line, "statements=") > 0.0, "{load:?}: {line}");
        assert_eq!(number(line, "errors="), 0.0, "{load:?}: {line}");
        assert!(number(line, "p50_us=") <= number(line, "p99_us="), "{load:?}: {line}");
    }
}

#[test]
fn idle_connections_stay_until_the_input_ends() {
    let server = constant();
    let mut idle = client(&server.port, &["--sql", "SELECT 1", "--connections", "40", "--idle"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(idle.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    assert_eq!(number(&line, "connections="), 40.0);
    assert!(idle.try_wait().unwrap().is_none(), "it ended by itself");
    let mut input = idle.stdin.take().unwrap();
    input.write_all(b"end").unwrap();
    drop(input);
    assert!(idle.wait().unwrap().success());
}

#[test]
fn a_bad_template_is_refused() {
    let server = constant();
    let output = client(&server.port, &["--sql", "SELECT {nothing}"]).output().unwrap();
    assert!(!output.status.success());
}
