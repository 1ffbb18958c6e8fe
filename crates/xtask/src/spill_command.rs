//! `cargo xtask spill`: what operators with ten times their memory budget take, by the kernel's
//! account: the server's resident memory before each, and its peak.
//!
//! Every statement runs in a session whose budgets are [`BUDGET_KB`]. The peak may pass what was
//! resident before by the budgets of the operators that work at the same time (three at most),
//! and by [`FREE_KB`] for what the buffer pool, the log and the allocator take meanwhile. The
//! answer must be that of a session with memory enough.

use crate::process::Server;
use crate::{Outcome, servers};
use sqltest::client::{Connection, Options};
use std::time::Instant;

/// Budget of every operator of the session.
const BUDGET_KB: u64 = 4096;
/// Memory that is not the operators'.
const FREE_KB: u64 = 16_384;
/// Rows of each table; a row has 240 bytes, so that a table is ten times the budget and more.
const ROWS: u64 = 200_000;

/// What is run, with how many operators hold memory at the same time.
const STATEMENTS: [(&str, u64, &str); 15] = [
    (
        "sort",
        1,
        "SELECT COUNT(*), MIN(id), SUM(k) FROM (SELECT id, k, pad FROM big \
         ORDER BY pad DESC, id LIMIT 10000000) x",
    ),
    (
        "group by",
        2,
        "SELECT COUNT(*), SUM(n) FROM (SELECT pad, COUNT(*) AS n FROM big GROUP BY pad) x",
    ),
    ("hash join", 1, "SELECT COUNT(*), SUM(b.k) FROM big a JOIN other b ON a.pad = b.pad"),
    (
        "hash semi-join",
        2,
        "SELECT COUNT(*) FROM big a WHERE EXISTS (SELECT 1 FROM other b WHERE b.pad = a.pad)",
    ),
    (
        "hash anti-join",
        2,
        "SELECT COUNT(*) FROM big a WHERE NOT EXISTS (SELECT 1 FROM other b WHERE b.pad = a.pad)",
    ),
    ("distinct", 2, "SELECT COUNT(*) FROM (SELECT DISTINCT pad, k FROM big) x"),
    (
        "distinct in order",
        3,
        "SELECT COUNT(*), MIN(pad) FROM (SELECT DISTINCT pad, k FROM big \
         ORDER BY id LIMIT 10000000) x",
    ),
    (
        "window",
        3,
        "SELECT COUNT(*), SUM(n), SUM(k), MIN(pad) FROM (SELECT pad, ROW_NUMBER() OVER w AS n, \
         SUM(k) OVER w AS k FROM big WINDOW w AS (ORDER BY pad)) x",
    ),
    ("count distinct", 1, "SELECT COUNT(DISTINCT pad) FROM big"),
    ("distinct numbers", 1, "SELECT COUNT(DISTINCT id), SUM(DISTINCT id) FROM big"),
    ("distinct by group", 2, "SELECT k % 3 AS g, COUNT(DISTINCT pad) FROM big GROUP BY g"),
    ("group_concat", 2, "SELECT LENGTH(GROUP_CONCAT(pad ORDER BY pad DESC)) FROM big"),
    (
        "not in",
        1,
        "SELECT COUNT(*) FROM big WHERE pad NOT IN (SELECT IF(k = 7, 'x', pad) FROM other)",
    ),
    (
        "greater than all",
        1,
        "SELECT COUNT(*) FROM big WHERE pad >= ALL (SELECT pad FROM other WHERE k < 900)",
    ),
    (
        "recursive union",
        3,
        "WITH RECURSIVE r (n, p) AS (SELECT 1, CAST(LPAD(1, 240, 'x') AS CHAR(240)) UNION \
         SELECT 2 * n, LPAD(2 * n, 240, 'x') FROM r WHERE n < 100000 UNION \
         SELECT 2 * n + 1, LPAD(2 * n + 1, 240, 'x') FROM r WHERE n < 100000) \
         SELECT COUNT(*), SUM(n), MAX(p) FROM r",
    ),
];

/// Runs it.
pub fn run(arguments: &[String]) -> Outcome {
    let release = match arguments {
        [] => false,
        [one] if one == "--release" => true,
        _ => return Err("usage: cargo xtask spill [--release]".into()),
    };
    let folder = servers::fresh_folder("spill")?;
    let binary = servers::build_gannet(release)?;
    let options = ["--buffer-pool-size=64M"];
    let mut server = servers::start_gannet(&binary, &folder.join("data"), 0, &options)?;
    let measured = measure(&server);
    let stopped = server.stop();
    std::fs::remove_dir_all(folder.join("data")).map_err(|error| error.to_string())?;
    measured?;
    if stopped { Ok(()) } else { Err("the server did not stop cleanly".into()) }
}

fn connect(server: &Server) -> Result<Connection, String> {
    Connection::open(&Options::local(server.port)).map_err(|error| error.to_string())
}

fn measure(server: &Server) -> Outcome {
    let mut connection = connect(server)?;
    let mut execute =
        |sql: &str| connection.execute(sql).map_err(|error| format!("{sql}: {error}"));
    execute("CREATE DATABASE spill")?;
    execute("USE spill")?;
    execute("CREATE TABLE digits (d INT PRIMARY KEY)")?;
    execute("INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")?;
    for table in ["big", "other"] {
        execute(&format!("CREATE TABLE {table} (id INT PRIMARY KEY, k INT, pad VARCHAR(250))"))?;
        for part in 0..ROWS / 20_000 {
            let from = part * 20_000;
            execute(&format!(
                "INSERT INTO {table} SELECT n, n * 7919 % 1000, CONCAT(LPAD(n * 101 % 199999, 8, \
                 '0'), REPEAT('x', 220)) FROM (SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + \
                 10000 * f.d + {from} AS n FROM digits a, digits b, digits c, digits e, digits f \
                 WHERE f.d < 2) q"
            ))?;
        }
    }
    let bytes = BUDGET_KB * 1024;
    for name in ["sort_buffer_size", "join_buffer_size", "tmp_table_size", "max_heap_table_size"] {
        execute(&format!("SET {name} = {bytes}"))?;
    }
    let (mut wrong, mut answers) = (Vec::new(), Vec::new());
    println!("{ROWS} rows of 240 bytes a table, budget {BUDGET_KB} KB an operator");
    for (name, operators, sql) in STATEMENTS {
        // What is read and allocated once should not be the statement's.
        execute("SELECT COUNT(*), SUM(k) FROM big")?;
        std::fs::write(format!("/proc/{}/clear_refs", server.id()), "5")
            .map_err(|error| format!("clear_refs: {error}"))?;
        let before = memory_kb(server, "VmRSS")?;
        let start = Instant::now();
        let rows = execute(sql)?;
        let peak = memory_kb(server, "VmHWM")?;
        let answer: Vec<String> = rows.into_iter().flatten().map(shown).collect();
        let (taken, most) = (peak.saturating_sub(before), operators * BUDGET_KB + FREE_KB);
        println!(
            "{name:17} before {before:>7} KB, peak {peak:>7} KB: {taken:>6} KB more (at most \
             {most}), {:.1} s, {}",
            start.elapsed().as_secs_f64(),
            answer.join(" ")
        );
        if taken > most {
            wrong.push(format!("{name} is over the limit"));
        }
        answers.push(answer);
    }
    // The allocator keeps what these give back, so they come last.
    let mut roomy = connect(server)?;
    roomy.execute("USE spill").map_err(|error| error.to_string())?;
    for ((name, _, sql), answer) in STATEMENTS.iter().zip(answers) {
        let rows = roomy.execute(sql).map_err(|error| format!("{sql}: {error}"))?;
        let same: Vec<String> = rows.into_iter().flatten().map(shown).collect();
        if answer != same {
            wrong.push(format!("{name} with memory enough is {}", same.join(" ")));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("; ")),
    }
}

fn shown(field: Option<Vec<u8>>) -> String {
    String::from_utf8_lossy(&field.unwrap_or_default()).into_owned()
}

/// A line of the kernel's account of the server, KB.
fn memory_kb(server: &Server, name: &str) -> Result<u64, String> {
    let path = format!("/proc/{}/status", server.id());
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok());
    number.ok_or_else(|| format!("{path} has no {name}"))
}
