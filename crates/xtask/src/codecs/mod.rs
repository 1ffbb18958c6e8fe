//! `cargo xtask codecs`: what the same rows take on the device, under every codec and in
//! MariaDB's own ways of storage, how long their load takes, and how much of Gannet's store is
//! live.
//!
//! Of MariaDB only the table's file counts, of Gannet all data files. `--megabytes N` (200) of rows
//! for each of two kinds (`rows`), `--pool N` (32) MB of buffer pool; one server for each row of
//! the table printed. Limits: zstd at most 0.55 of uncompressed InnoDB for digits and 0.35
//! for documents, and less than InnoDB's best.

mod rows;

use crate::arguments::Arguments;
use crate::bank::{CODECS, codec_option};
use crate::process::{self, Server};
use crate::{Outcome, servers};
use rows::{Kind, Rows};
use sqltest::client::{Connection, Options};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ROWS_A_STATEMENT: u64 = 500;
/// A store is at rest when its files did not change for so long.
const REST: Duration = Duration::from_secs(5);
const REST_LIMIT: Duration = Duration::from_secs(120);
/// MariaDB's ways: name, options of the table, algorithm of its pages.
const WAYS: [(&str, &str, &str); 4] = [
    ("MariaDB uncompressed", "", "zlib"),
    ("MariaDB page lz4", "PAGE_COMPRESSED=1", "lz4"),
    ("MariaDB page zlib", "PAGE_COMPRESSED=1", "zlib"),
    ("MariaDB row format", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8", "zlib"),
];

/// One row of the table.
struct Taken {
    name: String,
    bytes: u64,
    load: Duration,
    /// Live share of the store.
    live: Option<f64>,
}

/// See the head of the file.
pub fn run(words: &[String]) -> Outcome {
    let arguments = Arguments::new(words, &["--release"], &["--megabytes", "--pool", "--binary"])?;
    let bytes = arguments.number("--megabytes", 200)? * 1_000_000;
    let pool = format!("{}M", arguments.number("--pool", 32)?);
    let gannet = servers::chosen_gannet(&arguments)?;
    let mut failures = Vec::new();
    for (kind, limit) in [(Kind::Digits, 0.55), (Kind::Documents, 0.35)] {
        let mut all = Vec::new();
        for way in WAYS {
            all.push(mariadb(way, kind, bytes, &pool)?);
        }
        let (base, best) = (all[0].bytes, all.iter().map(|taken| taken.bytes).min());
        for codec in CODECS {
            all.push(gannet_with(&gannet, codec, kind, bytes, &pool)?);
        }
        print(kind, &all, base);
        let zstd = all.last().map_or(u64::MAX, |taken| taken.bytes);
        let share = zstd as f64 / base as f64;
        if share > limit || best.is_some_and(|best| zstd >= best) {
            failures.push(format!("{}: zstd {share:.2} of uncompressed InnoDB", kind.table()));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

fn print(kind: Kind, all: &[Taken], base: u64) {
    println!(
        "\n| {} | MB | of InnoDB uncompressed | live | load, s |\n|---|---|---|---|---|",
        kind.table()
    );
    for taken in all {
        let live = taken.live.map_or("-".into(), |live| format!("{:.0} %", live * 100.0));
        println!(
            "| {} | {} | {:.2} | {live} | {:.1} |",
            taken.name,
            taken.bytes / 1_000_000,
            taken.bytes as f64 / base as f64,
            taken.load.as_secs_f64()
        );
    }
}

fn mariadb(
    (name, options, algorithm): (&str, &str, &str),
    kind: Kind,
    bytes: u64,
    pool: &str,
) -> Result<Taken, String> {
    let folder = servers::fresh_folder("codecs")?;
    let pool = format!("--innodb-buffer-pool-size={pool}");
    let algorithm = format!("--innodb-compression-algorithm={algorithm}");
    let log = "--innodb-log-file-size=256M";
    let provider = "--plugin-load-add=provider_lz4";
    // Nothing is left in the pool, so that what is on disk is all there is.
    let clean = "--innodb-max-dirty-pages-pct=0";
    let options_of_server = [pool.as_str(), &algorithm, log, provider, clean];
    let server = servers::start_mariadb(&folder, process::free_port()?, &options_of_server)?;
    let file = folder.join("data/codecs").join(format!("{}.ibd", kind.table()));
    let mut subject = Subject { server, files: file };
    let load = subject.load(kind, options, bytes)?;
    let taken = subject.at_rest()?;
    subject.server.kill();
    Ok(Taken { name: name.into(), bytes: taken, load, live: None })
}

fn gannet_with(
    binary: &Path,
    codec: &str,
    kind: Kind,
    bytes: u64,
    pool: &str,
) -> Result<Taken, String> {
    let folder = servers::fresh_folder("codecs")?;
    let options = ["--buffer-pool-size", pool, "--innodb-log-file-size=256M"];
    let server = servers::start_gannet(binary, &folder.join("data"), 0, &options)?;
    let mut subject = Subject { server, files: folder.join("data/data") };
    let load = subject.load(kind, &codec_option(codec), bytes)?;
    let taken = subject.at_rest()?;
    let mut connection = subject.connect()?;
    let live = status(&mut connection, "Gannet_store_live_bytes")?;
    let allocated = status(&mut connection, "Gannet_store_allocated_bytes")?;
    if !subject.server.stop() {
        return Err(format!("{codec}: the server did not stop cleanly"));
    }
    let live = Some(live as f64 / allocated.max(1) as f64);
    Ok(Taken { name: format!("Gannet {codec}"), bytes: taken, load, live })
}

struct Subject {
    server: Server,
    /// What counts: a file, or a folder of files.
    files: PathBuf,
}

impl Subject {
    fn connect(&self) -> Result<Connection, String> {
        let read_timeout = Duration::from_secs(600);
        let options = Options { read_timeout, ..Options::local(self.server.port) };
        Connection::open(&options).map_err(|error| error.to_string())
    }

    fn load(&self, kind: Kind, options: &str, bytes: u64) -> Result<Duration, String> {
        let mut connection = self.connect()?;
        let mut execute = |sql: &str| {
            let shown = sql.get(..80).unwrap_or(sql).to_owned();
            connection.execute(sql).map_err(|error| format!("{shown}: {error}"))
        };
        execute("CREATE DATABASE codecs")?;
        execute("USE codecs")?;
        execute(&format!("{} {options}", kind.create()))?;
        let (mut rows, mut sent) = (Rows::new(kind), 0);
        let begin = Instant::now();
        while sent < bytes {
            let mut sql = format!("INSERT INTO {} VALUES ", kind.table());
            for number in 0..ROWS_A_STATEMENT {
                if number > 0 {
                    sql.push(',');
                }
                rows.push(&mut sql);
            }
            sent += sql.len() as u64;
            execute(&sql)?;
        }
        Ok(begin.elapsed())
    }

    /// Bytes allocated once all pages are written and nothing moves any more.
    fn at_rest(&self) -> Result<u64, String> {
        let mut connection = self.connect()?;
        let begin = Instant::now();
        let (mut last, mut since) = (0, Instant::now());
        while begin.elapsed() < REST_LIMIT {
            let dirty = status(&mut connection, "Innodb_buffer_pool_pages_dirty")?;
            let now = servers::allocated_bytes(&self.files);
            if now != last || dirty > 0 {
                (last, since) = (now, Instant::now());
            }
            if since.elapsed() >= REST {
                return Ok(now);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Err(format!("not at rest after {} s", REST_LIMIT.as_secs()))
    }
}

fn status(connection: &mut Connection, variable: &str) -> Result<u64, String> {
    let sql = format!("SHOW GLOBAL STATUS LIKE '{variable}'");
    let rows = connection.execute(&sql).map_err(|error| error.to_string())?;
    let value = rows.first().and_then(|row| row[1].clone()).unwrap_or_default();
    String::from_utf8_lossy(&value).parse().map_err(|_| format!("no {variable}"))
}
