//! `cargo xtask bigger`: data many times larger than the buffer pool.
//!
//! Loads sysbench tables (2 GB by default) into a server with a pool of 128 MB (`--pool N`), the
//! release or (`--debug`) debug build, with LZ4 or what `--codec NAME` says, runs oltp_read_write,
//! kills it, starts it again, stops it and starts it once more. What a transaction writes is
//! printed in parts, by the server's own counters beside the kernel's. Asserted:
//! 1. the peak of resident memory in every phase (load, run, checksums, recovery) is at most
//!    pool + 10 % + 64 MB + 0.3 % of the data;
//! 2. counts and checksums of every table are the same after kill -9 and after a clean stop;
//! 3. no second of the run passes without a transaction;
//! 4. `gannet check` finds nothing.
//!
//! 5. the server's counters of what it wrote, while loading and running, agree with the kernel's
//!    within 5 %.
//!
//! With `--mariadb` the same load goes to MariaDB with the same memory and durability first, and
//! what each took is printed side by side.

use crate::arguments::Arguments;
use crate::process::Server;
use crate::{Outcome, servers};
use sqltest::client::{Connection, Field, Options};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const TABLES: u64 = 8;
/// Bytes of a sysbench row: two integers, 120 + 60 characters, and an index entry.
const ROW_BYTES: u64 = 230;

/// What to load and for how long to run.
struct Size {
    megabytes: u64,
    pool_megabytes: u64,
    seconds: u64,
    rows: u64,
    /// How Gannet compresses all tables; absent: as the store does unless told.
    codec: Option<String>,
}

/// Counters of what Gannet writes. The first [`WHOLE`] are all of it, the others parts of the last
/// of these.
const PARTS: [(&str, &str); 6] = [
    ("log", "Gannet_log_written_bytes"),
    ("zeroes of new log files", "Gannet_log_zeroed_bytes"),
    ("store", "Gannet_store_written_bytes"),
    ("pages in full", "Gannet_store_full_bytes"),
    ("what changed of pages", "Gannet_store_delta_bytes"),
    ("collection", "Gannet_store_moved_bytes"),
];

const WHOLE: usize = 3;

/// One server under the load, with the memory it took.
struct Subject {
    name: &'static str,
    server: Server,
    datadir: PathBuf,
    limit_kb: u64,
    is_over_limit: bool,
    counts_agree: bool,
}

/// Runs with `--megabytes N` (2000) of data for `--seconds S` (30) of load.
pub fn run(arguments: &[String]) -> Outcome {
    let options = ["--megabytes", "--pool", "--seconds", "--codec"];
    let arguments = Arguments::new(arguments, &["--debug", "--mariadb"], &options)?;
    let megabytes = arguments.number("--megabytes", 2000)?;
    let size = Size {
        megabytes,
        pool_megabytes: arguments.number("--pool", 128)?,
        seconds: arguments.number("--seconds", 30)?,
        rows: megabytes * 1_000_000 / ROW_BYTES / TABLES,
        codec: arguments.value("--codec").map(str::to_owned),
    };
    let folder = servers::fresh_folder("bigger")?;
    if arguments.has("--mariadb") {
        run_mariadb(&folder, &size)?;
    }
    run_gannet(&folder, &servers::build_gannet(!arguments.has("--debug"))?, &size)
}

fn run_gannet(folder: &Path, binary: &Path, size: &Size) -> Outcome {
    let datadir = folder.join("data");
    let port = sqltest::port::free_port()?;
    let limit_kb = size.pool_megabytes * 1100 + 64 * 1000 + size.megabytes * 3;
    println!("gannet: resident memory may reach {} MB", limit_kb / 1000);
    let server = start(binary, &datadir, port, size)?;
    let mut subject = Subject {
        name: "gannet",
        server,
        datadir: datadir.clone(),
        limit_kb,
        is_over_limit: false,
        counts_agree: true,
    };
    subject.reset_peak();
    let before = subject.load_and_run(size)?;
    subject.server.kill();
    for how in ["kill -9", "a clean stop"] {
        let begin = Instant::now();
        subject.server = start(binary, &datadir, port, size)?;
        println!("gannet: ready again after {how} in {} ms", begin.elapsed().as_millis());
        subject.report_peak("recovery");
        if checksums(port)? != before {
            return Err(format!("counts or checksums differ after {how}"));
        }
        subject.report_peak("checksums");
        let begin = Instant::now();
        if !subject.server.stop() {
            return Err("the server did not stop cleanly".into());
        }
        println!("gannet: stopped in {} ms", begin.elapsed().as_millis());
    }
    println!("gannet: {} tables have the same counts and checksums", before.len());
    subject.report_disk("at the end");
    check_offline(binary, &datadir)?;
    if subject.is_over_limit {
        return Err("resident memory is over the limit".into());
    }
    if subject.counts_agree { Ok(()) } else { Err("bytes written are not all counted".into()) }
}

/// The same with MariaDB: figures to stand beside, nothing is asserted.
fn run_mariadb(folder: &Path, size: &Size) -> Outcome {
    let own = folder.join("mariadb");
    std::fs::create_dir_all(&own).map_err(|e| e.to_string())?;
    let pool = format!("--innodb-buffer-pool-size={}M", size.pool_megabytes);
    let options = [pool.as_str(), "--innodb-log-file-size=512M"];
    let server = servers::start_mariadb(&own, sqltest::port::free_port()?, &options)?;
    let datadir = own.join("data");
    let mut subject = Subject {
        name: "mariadb",
        server,
        datadir,
        limit_kb: u64::MAX,
        is_over_limit: false,
        counts_agree: true,
    };
    subject.load_and_run(size)?;
    let begin = Instant::now();
    if !subject.server.stop() {
        return Err("MariaDB did not stop cleanly".into());
    }
    println!("mariadb: stopped in {} ms", begin.elapsed().as_millis());
    subject.report_disk("at the end");
    std::fs::remove_dir_all(&own).map_err(|e| e.to_string())
}

impl Subject {
    /// Loads, runs, and returns the counts and checksums of all tables.
    fn load_and_run(&mut self, size: &Size) -> Result<Vec<Vec<Field>>, String> {
        let port = self.server.port;
        let mut connection = Connection::open(&Options::local(port)).map_err(|e| e.to_string())?;
        connection.execute("CREATE DATABASE sbtest").map_err(|e| e.to_string())?;
        drop(connection);
        let (counts, written) = (self.counts()?, self.written_kb());
        let (begin, cpu) = (Instant::now(), self.cpu_ms());
        sysbench(port, size, "oltp_common", "prepare")?;
        let (took, rows) = (begin.elapsed(), TABLES * size.rows);
        println!(
            "{}: loaded {rows} rows in {} ms, {:.0} rows/s, {} ms of CPU",
            self.name,
            took.as_millis(),
            rows as f64 / took.as_secs_f64(),
            self.cpu_ms() - cpu
        );
        if !counts.is_empty() {
            self.report_parts("a row", &counts, written, rows as f64)?;
        }
        self.report_peak("load");
        self.report_disk("loaded");
        let counts = self.counts()?;
        let (cpu, written) = (self.cpu_ms(), self.written_kb());
        let report = sysbench(port, size, "oltp_read_write", "run")?;
        self.report_peak("run");
        let transactions = field(&report, "transactions:").max(1.0);
        let seconds: Vec<f64> = report
            .lines()
            .filter_map(|l| l.split_once(" tps: ")?.1.split_whitespace().next()?.parse().ok())
            .collect();
        let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "{}: oltp_read_write {:.0} tps, worst second {least:.0} tps, 95th {:.0} ms, longest \
             {:.0} ms; a transaction takes {:.0} us of CPU and writes {:.1} kB",
            self.name,
            transactions / size.seconds as f64,
            field(&report, "95th percentile:"),
            field(&report, "max:"),
            (self.cpu_ms() - cpu) as f64 * 1000.0 / transactions,
            (self.written_kb() - written) as f64 / transactions
        );
        if !counts.is_empty() {
            self.report_parts("a transaction", &counts, written, transactions)?;
        }
        if self.limit_kb != u64::MAX && least == 0.0 {
            return Err("a second of the run passed without a transaction".into());
        }
        self.report_disk("after the run");
        let begin = Instant::now();
        let found = checksums(port)?;
        println!("{}: checksums in {} ms", self.name, begin.elapsed().as_millis());
        self.report_peak("checksums");
        Ok(found)
    }

    /// The counters of [`PARTS`]; none of MariaDB.
    fn counts(&self) -> Result<Vec<f64>, String> {
        let mut connection =
            Connection::open(&Options::local(self.server.port)).map_err(|e| e.to_string())?;
        let sql = "SHOW GLOBAL STATUS LIKE 'Gannet\\_%'";
        let rows = connection.execute(sql).map_err(|e| e.to_string())?;
        let text = |field: Option<&Field>| match field {
            Some(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        };
        let named = |name: &str| rows.iter().find(|row| text(row.first()) == name);
        let value = |name: &str| text(named(name)?.get(1)).parse().ok();
        Ok(PARTS.iter().filter_map(|(_, name)| value(name)).collect())
    }

    /// Prints what has been written since then for one of so many, in parts, and compares their sum
    /// with what the kernel says.
    fn report_parts(&mut self, one: &str, before: &[f64], written: u64, many: f64) -> Outcome {
        let counts = self.counts()?;
        let kernel = (self.written_kb() - written) as f64;
        let parts: Vec<f64> =
            counts.iter().zip(before).map(|(now, before)| (now - before) / 1000.0).collect();
        for ((part, _), kb) in PARTS.iter().zip(&parts) {
            println!("{}: {one} writes {:.2} kB: {part}", self.name, kb / many);
        }
        let counted: f64 = parts[..WHOLE].iter().sum();
        println!("{}: counted {counted:.0} kB, by the kernel {kernel:.0} kB", self.name);
        self.counts_agree &= (counted - kernel).abs() <= kernel * 0.05;
        Ok(())
    }

    /// Prints the peak of resident memory since the last call.
    fn report_peak(&mut self, phase: &str) {
        let peak_kb = self.status_kb("VmHWM:");
        println!("{}: peak of resident memory, {phase}: {} MB", self.name, peak_kb / 1000);
        self.is_over_limit |= peak_kb > self.limit_kb;
        self.reset_peak();
    }

    /// The kernel's high-water mark begins anew. Where that is forbidden it just goes on.
    fn reset_peak(&self) {
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.server.id()), "5");
    }

    fn proc_text(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.server.id())).unwrap_or_default()
    }

    fn status_kb(&self, name: &str) -> u64 {
        field(&self.proc_text("status"), name) as u64
    }

    fn written_kb(&self) -> u64 {
        field(&self.proc_text("io"), "\nwrite_bytes:") as u64 / 1000
    }

    /// CPU of the server so far; a tick of the kernel's account is 10 ms.
    fn cpu_ms(&self) -> u64 {
        let text = self.proc_text("stat");
        let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum::<u64>() * 10
    }

    fn report_disk(&self, when: &str) {
        let (kb, log_kb) = (allocated_kb(&self.datadir), allocated_kb(&self.datadir.join("wal")));
        let log =
            if log_kb > 0 { format!(", {} MB of it log", log_kb / 1000) } else { String::new() };
        println!("{}: {when} {} MB on disk{log}", self.name, kb / 1000);
    }
}

/// The number behind `name` in a text, 0 if there is none.
fn field(text: &str, name: &str) -> f64 {
    let rest = text.split_once(name).map_or("", |(_, rest)| rest);
    rest.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn allocated_kb(folder: &Path) -> u64 {
    let output = Command::new("du").args(["-s", "-B1000"]).arg(folder).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn check_offline(binary: &Path, datadir: &Path) -> Outcome {
    let begin = Instant::now();
    let mut command = Command::new(binary);
    let output = command.args(["check", "--datadir"]).arg(datadir).output();
    let output = output.map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("gannet check: {text}"));
    }
    println!("gannet check: clean, in {} ms", begin.elapsed().as_millis());
    Ok(())
}

fn start(binary: &Path, datadir: &Path, port: u16, size: &Size) -> Result<Server, String> {
    let pool = format!("{}M", size.pool_megabytes);
    let mut options = vec!["--buffer-pool-size".to_owned(), pool];
    if let Some(codec) = &size.codec {
        options.push("--innodb-compression-default=ON".to_owned());
        options.push(format!("--innodb-compression-algorithm={codec}"));
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    servers::start_gannet(binary, datadir, port, &options)
}

fn sysbench(port: u16, size: &Size, script: &str, action: &str) -> Result<String, String> {
    let output = Command::new("sysbench")
        .arg(script)
        .args(["--mysql-host=127.0.0.1", "--mysql-user=root", "--mysql-db=sbtest"])
        .arg(format!("--mysql-port={port}"))
        .arg(format!("--tables={TABLES}"))
        .arg(format!("--table-size={}", size.rows))
        .arg(format!("--time={}", size.seconds))
        .args(["--threads=8", "--report-interval=1"])
        .args(["--mysql-ignore-errors=1213,1020,1205", action])
        .output()
        .map_err(|e| format!("sysbench: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(format!("sysbench {script}: {text}")) }
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
