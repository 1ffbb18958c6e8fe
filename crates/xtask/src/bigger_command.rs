//! `cargo xtask bigger`: data many times larger than the buffer pool.
//!
//! Loads sysbench tables (2 GB by default) into a server with a 128 MB pool, runs
//! oltp_read_write, and asserts that resident memory stays within pool + 20 % + 64 MB + 0.3 %
//! of the data, and that counts and checksums of every table are the same after a restart.

use crate::process::{self, Server};
use crate::{Outcome, servers};
use sqltest::client::{Connection, Field, Options};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const POOL_MB: u64 = 128;
const TABLES: u64 = 8;
/// Bytes of a sysbench row: two integers, 120 + 60 characters, and an index entry.
const ROW_BYTES: u64 = 230;

/// Runs with `--megabytes N` (2000) of data for `--seconds S` (30) of load.
pub fn run(arguments: &[String]) -> Outcome {
    let number = |name: &str, default: u64| {
        let position = arguments.iter().position(|a| a == name);
        position.and_then(|p| arguments.get(p + 1)?.parse().ok()).unwrap_or(default)
    };
    let (megabytes, seconds) = (number("--megabytes", 2000), number("--seconds", 30));
    let rows = megabytes * 1_000_000 / ROW_BYTES / TABLES;
    let binary = servers::build_gannet(true)?;
    let folder = servers::fresh_folder("bigger")?;
    let datadir = folder.join("data");
    let port = process::free_port()?;
    let mut server = start(&binary, &datadir, port)?;
    let mut connection = Connection::open(&Options::local(port)).map_err(|e| e.to_string())?;
    connection.execute("CREATE DATABASE sbtest").map_err(|e| e.to_string())?;
    drop(connection);
    let peak = watch_memory(server.id());
    let begin = Instant::now();
    sysbench(port, rows, seconds, "oltp_common", "prepare")?;
    println!("loaded {TABLES} x {rows} rows in {} s", begin.elapsed().as_secs());
    let report = sysbench(port, rows, seconds, "oltp_read_write", "run")?;
    for line in report.lines().filter(|l| l.contains("transactions:") || l.contains("95th")) {
        println!("oltp_read_write: {}", line.trim());
    }
    let before = checksums(port)?;
    let peak_kb = peak.load(Ordering::Relaxed);
    let limit_kb = (POOL_MB * 1200 + 64 * 1000) + megabytes * 3;
    println!("peak resident memory {} MB, the limit is {} MB", peak_kb / 1000, limit_kb / 1000);
    server.kill();
    let begin = Instant::now();
    let mut server = start(&binary, &datadir, port)?;
    println!("restarted after kill -9 in {} ms", begin.elapsed().as_millis());
    if checksums(port)? != before {
        return Err("counts or checksums differ after the restart".into());
    }
    println!("{} tables have the same counts and checksums after the restart", before.len());
    if !server.stop() {
        return Err("the server did not stop cleanly".into());
    }
    if peak_kb > limit_kb { Err("resident memory is over the limit".into()) } else { Ok(()) }
}

fn start(binary: &Path, datadir: &Path, port: u16) -> Result<Server, String> {
    let pool = format!("{POOL_MB}M");
    servers::start_gannet(binary, datadir, port, &["--buffer-pool-size", &pool])
}

fn sysbench(
    port: u16,
    rows: u64,
    seconds: u64,
    script: &str,
    action: &str,
) -> Result<String, String> {
    let output = Command::new("sysbench")
        .arg(script)
        .args(["--mysql-host=127.0.0.1", "--mysql-user=root", "--mysql-db=sbtest"])
        .arg(format!("--mysql-port={port}"))
        .arg(format!("--tables={TABLES}"))
        .arg(format!("--table-size={rows}"))
        .arg(format!("--time={seconds}"))
        .args(["--threads=8", "--mysql-ignore-errors=1213,1020,1205", action])
        .output()
        .map_err(|e| format!("sysbench: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(format!("sysbench {script}: {text}")) }
}

/// Samples the resident memory of a process in kB until it ends; the largest value seen.
fn watch_memory(id: u32) -> Arc<AtomicU64> {
    let peak = Arc::new(AtomicU64::new(0));
    let shared = peak.clone();
    std::thread::spawn(move || {
        while let Some(kb) = resident_kb(id) {
            shared.fetch_max(kb, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    peak
}

fn resident_kb(id: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = text.lines().find(|l| l.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn checksums(port: u16) -> Result<Vec<Vec<Field>>, String> {
    let options = Options {
        database: "sbtest".into(),
        read_timeout: Duration::from_secs(600),
        ..Options::local(port)
    };
    let mut connection = Connection::open(&options).map_err(|e| e.to_string())?;
    let mut all = Vec::new();
    for table in 1..=TABLES {
        let sql = format!(
            "SELECT COUNT(*), SUM(id), SUM(k), SUM(CRC32(c)), SUM(CRC32(pad)) FROM sbtest{table}"
        );
        all.extend(connection.execute(&sql).map_err(|e| e.to_string())?);
    }
    Ok(all)
}
