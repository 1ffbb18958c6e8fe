//! `cargo xtask bench`: Debian's sysbench against Gannet and MariaDB in turn (A B B A), with the
//! same durability, memory and isolation. Prints, per script, medians and the ratio of the
//! servers' CPU per transaction (utime + stime of the server process) and of throughput.

use crate::process::{self, Server};
use crate::{Outcome, servers};
use sqltest::client::{Connection, Options};
use std::process::Command;

/// Every script of the OLTP set and the two select scripts.
const SCRIPTS: [&str; 10] = [
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "select_random_points",
    "select_random_ranges",
];

/// Clients at which servers are compared.
const THREADS: u32 = 16;
/// Further numbers of clients at which every script must run.
const OTHER_THREADS: [u32; 2] = [1, 64];

/// What one run of sysbench on one server measured.
struct Measure {
    transactions_per_second: f64,
    cpu_micros_per_transaction: f64,
    errors: u64,
}

/// How to run.
struct Settings {
    tables: u32,
    rows: u32,
    seconds: u32,
    /// Statement protocols: `auto` prepares, `disable` sends text.
    modes: &'static [&'static str],
    only: Option<String>,
}

/// Runs the comparison. `--quick` takes fewer rows and seconds; `--full` adds the text protocol,
/// and for 1 and 64 clients one run a server; a name restricts it to one script.
pub fn run(arguments: &[String]) -> Outcome {
    let has = |flag: &str| arguments.iter().any(|a| a == flag);
    let (quick, full) = (has("--quick"), has("--full"));
    let settings = Settings {
        tables: if quick { 2 } else { 8 },
        rows: if quick { 10_000 } else { 100_000 },
        seconds: if quick { 3 } else { 10 },
        modes: if full { &["auto", "disable"] } else { &["auto"] },
        only: arguments.iter().find(|a| !a.starts_with("--")).cloned(),
    };
    let binary = servers::build_gannet(true)?;
    let folder = servers::fresh_folder("bench")?;
    let pool = "--innodb-buffer-pool-size=1G";
    let gannet =
        servers::start_gannet(&binary, &folder.join("data"), process::free_port()?, &[pool])?;
    let mariadb_folder = servers::fresh_folder("bench-mariadb")?;
    let options = [pool, "--innodb-log-file-size=512M"];
    let mariadb = servers::start_mariadb(&mariadb_folder, process::free_port()?, &options)?;
    for server in [&gannet, &mariadb] {
        create_database(server)?;
        sysbench(server, &settings, "oltp_common", "prepare", 2, "auto")?;
    }
    let mut worst: f64 = 0.0;
    for script in SCRIPTS {
        if settings.only.as_deref().is_some_and(|only| only != script) {
            continue;
        }
        for mode in settings.modes {
            worst = worst.max(compare(script, THREADS, mode, &settings, &gannet, &mariadb)?);
            for threads in OTHER_THREADS.into_iter().filter(|_| full) {
                let ours = vec![measure(&gannet, &settings, script, threads, mode)?];
                let theirs = vec![measure(&mariadb, &settings, script, threads, mode)?];
                print_cell(script, threads, mode, &ours, &theirs);
            }
        }
    }
    println!("largest ratio of CPU per transaction at {THREADS} clients: {worst:.2}");
    Ok(())
}

fn create_database(server: &Server) -> Outcome {
    let mut connection =
        Connection::open(&Options::local(server.port)).map_err(|e| e.to_string())?;
    for sql in [
        "CREATE DATABASE sbtest",
        "CREATE USER sbtest@'%' IDENTIFIED BY 'sbtest'",
        "GRANT ALL ON *.* TO sbtest@'%'",
    ] {
        connection.execute(sql).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn sysbench(
    server: &Server,
    settings: &Settings,
    script: &str,
    action: &str,
    threads: u32,
    mode: &str,
) -> Result<String, String> {
    let output = Command::new("sysbench")
        .arg(script)
        .args(["--mysql-host=127.0.0.1", "--mysql-user=sbtest", "--mysql-password=sbtest"])
        .arg(format!("--mysql-port={}", server.port))
        .arg(format!("--tables={}", settings.tables))
        .arg(format!("--table-size={}", settings.rows))
        .arg(format!("--threads={threads}"))
        .arg(format!("--time={}", settings.seconds))
        .arg(format!("--db-ps-mode={mode}"))
        .args(["--mysql-ignore-errors=1213,1020,1205", action])
        .output()
        .map_err(|e| format!("sysbench: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(format!("sysbench {script}: {text}")) }
}

/// utime + stime of a process in microseconds.
fn cpu_micros(id: u32) -> Result<f64, String> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).map_err(|e| e.to_string())?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |k: usize| fields.get(k).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) * 10_000.0)
}

fn measure(
    server: &Server,
    settings: &Settings,
    script: &str,
    threads: u32,
    mode: &str,
) -> Result<Measure, String> {
    let before = cpu_micros(server.id())?;
    let text = sysbench(server, settings, script, "run", threads, mode)?;
    let cpu = cpu_micros(server.id())? - before;
    let transactions = value(&text, "transactions:")?;
    Ok(Measure {
        transactions_per_second: transactions / f64::from(settings.seconds),
        cpu_micros_per_transaction: cpu / transactions.max(1.0),
        errors: value(&text, "ignored errors:")? as u64,
    })
}

fn value(text: &str, name: &str) -> Result<f64, String> {
    let rest = text.split(name).nth(1).ok_or(format!("sysbench did not print '{name}'"))?;
    let word = rest.split_whitespace().next().unwrap_or("");
    word.parse().map_err(|_| format!("sysbench printed '{name} {word}'"))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// One cell, A B B A; prints it and returns the CPU ratio.
fn compare(
    script: &str,
    threads: u32,
    mode: &str,
    settings: &Settings,
    gannet: &Server,
    mariadb: &Server,
) -> Result<f64, String> {
    let run = |server| measure(server, settings, script, threads, mode);
    let first = run(gannet)?;
    let theirs = vec![run(mariadb)?, run(mariadb)?];
    Ok(print_cell(script, threads, mode, &[first, run(gannet)?], &theirs))
}

/// Prints the medians of both servers; returns the ratio of CPU per transaction.
fn print_cell(script: &str, threads: u32, mode: &str, ours: &[Measure], theirs: &[Measure]) -> f64 {
    let cpu = |m: &[Measure]| median(m.iter().map(|m| m.cpu_micros_per_transaction).collect());
    let rate = |m: &[Measure]| median(m.iter().map(|m| m.transactions_per_second).collect());
    let errors = |m: &[Measure]| m.iter().map(|m| m.errors).sum::<u64>();
    let ratio = cpu(ours) / cpu(theirs);
    println!(
        "{script:22} {threads:3} clients, ps {mode:7}: CPU us per transaction {:.1} / {:.1} = \
         {ratio:.2}; transactions/s {:.0} / {:.0} = {:.2}; retried errors {} / {}",
        cpu(ours),
        cpu(theirs),
        rate(ours),
        rate(theirs),
        rate(ours) / rate(theirs),
        errors(ours),
        errors(theirs),
    );
    ratio
}
