//! `cargo xtask codecs`: what the same rows take on the device, under every codec and in
//! MariaDB's own ways of storage, how long their load takes, and how much of Gannet's store is
//! live.
//!
//! Of InnoDB only the table's file counts, of MyRocks its sorted files with memory flushed to them,
//! of Gannet all data files. `--megabytes N` (200) of rows for each of two kinds (`rows`), `--pool
//! N` (32) MB of buffer pool; one server for each row of the table printed; `--codecs A,B` and
//! `--rows digits` or `documents` take these alone, `--own` Gannet's alone. Limits: zstd at most
//! 0.55 of uncompressed InnoDB for digits and 0.35 for documents, and less than InnoDB's best.

mod rows;

use crate::arguments::Arguments;
use crate::bank::{CODECS, codec_option};
use crate::process::Server;
use crate::{Outcome, packages, servers};
use rows::{Kind, Rows};
use sqltest::client::{Connection, Options};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ROWS_A_STATEMENT: u64 = 500;
/// A store is at rest when its files did not change for so long.
const REST: Duration = Duration::from_secs(5);
/// Bytes of pages that wait for their codec may be left in a segment that is still open.
const DEFERRED_MOST: u64 = 8 << 20;
const REST_LIMIT: Duration = Duration::from_secs(600);
/// InnoDB's ways: name, options of the table, algorithm of its pages. The first is the measure.
const INNODB: [(&str, &str, &str); 4] = [
    ("InnoDB uncompressed", "", "zlib"),
    ("InnoDB page lz4", "PAGE_COMPRESSED=1", "lz4"),
    ("InnoDB page zlib", "PAGE_COMPRESSED=1", "zlib"),
    ("InnoDB row format", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8", "zlib"),
];

/// One row of the table.
struct Taken {
    name: String,
    bytes: u64,
    load: Duration,
    /// Bytes of the store that are live.
    live: Option<u64>,
}

/// The rows of one table, with what they take as measures; these are 0 if they are not known.
#[derive(Default)]
struct Measured {
    all: Vec<Taken>,
    /// Uncompressed InnoDB.
    base: u64,
    /// InnoDB's smallest.
    best: u64,
}

/// See the head of the file.
pub fn run(words: &[String]) -> Outcome {
    let valued = ["--megabytes", "--pool", "--binary", "--codecs", "--rows"];
    let arguments = Arguments::new(words, &["--release", "--own"], &valued)?;
    let bytes = arguments.number("--megabytes", 200)? * 1_000_000;
    let pool = format!("{}M", arguments.number("--pool", 32)?);
    let codecs = match arguments.value("--codecs") {
        None => CODECS.to_vec(),
        Some(list) => list.split(',').collect(),
    };
    let is_own = arguments.has("--own");
    if !is_own {
        packages::install(&packages::SERVERS)?;
        packages::install(&packages::STORAGE)?;
    }
    let gannet = servers::chosen_gannet(&arguments)?;
    let mut failures = Vec::new();
    let wanted = arguments.value("--rows");
    for (kind, limit) in [(Kind::Digits, 0.55), (Kind::Documents, 0.35)] {
        if wanted.is_some_and(|wanted| wanted != kind.table()) {
            continue;
        }
        let load = Load { kind, bytes, pool: pool.clone() };
        let mut measured = if is_own { Measured::default() } else { of_mariadb(&load)? };
        for codec in &codecs {
            measured.all.push(load.gannet(&gannet, codec)?);
        }
        measured.print(kind);
        let zstd = measured.all.iter().find(|taken| taken.name.ends_with("zstd"));
        let Some(zstd) = zstd.map(|taken| taken.bytes).filter(|_| !is_own) else { continue };
        let share = zstd as f64 / measured.base as f64;
        if share > limit || zstd >= measured.best {
            failures.push(format!("{}: zstd {share:.2} of uncompressed InnoDB", kind.table()));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

fn of_mariadb(load: &Load) -> Result<Measured, String> {
    let mut all = Vec::new();
    for way in INNODB {
        all.push(load.innodb(way)?);
    }
    let base = all[0].bytes;
    let best = all.iter().map(|taken| taken.bytes).min().unwrap_or(base);
    all.push(load.myrocks()?);
    Ok(Measured { all, base, best })
}

impl Measured {
    fn print(&self, kind: Kind) {
        println!(
            "\n| {} | MB | of InnoDB | of InnoDB's best | live MB | live, of InnoDB | live share | \
             load, s |\n|---|---|---|---|---|---|---|---|",
            kind.table()
        );
        for taken in &self.all {
            let ratio = |bytes: u64, to: u64| match to {
                0 => "-".to_owned(),
                to => format!("{:.2}", bytes as f64 / to as f64),
            };
            let of_live = |text: &dyn Fn(u64) -> String| taken.live.map_or("-".into(), text);
            println!(
                "| {} | {} | {} | {} | {} | {} | {} | {:.1} |",
                taken.name,
                taken.bytes / 1_000_000,
                ratio(taken.bytes, self.base),
                ratio(taken.bytes, self.best),
                of_live(&|live| (live / 1_000_000).to_string()),
                of_live(&|live| ratio(live, self.base)),
                of_live(&|live| ratio(live, taken.bytes)),
                taken.load.as_secs_f64()
            );
        }
    }
}

/// The rows of one table, for one server after the other.
struct Load {
    kind: Kind,
    /// Of the statements.
    bytes: u64,
    /// As an option has it.
    pool: String,
}

impl Load {
    fn innodb(&self, (name, options, algorithm): (&str, &str, &str)) -> Result<Taken, String> {
        let pool = format!("--innodb-buffer-pool-size={}", self.pool);
        let algorithm = format!("--innodb-compression-algorithm={algorithm}");
        let log = "--innodb-log-file-size=256M";
        let provider = "--plugin-load-add=provider_lz4";
        // Nothing is left in the pool, so that what is on disk is all there is.
        let clean = "--innodb-max-dirty-pages-pct=0";
        let file = format!("codecs/{}.ibd", self.kind.table());
        let words = [pool.as_str(), &algorithm, log, provider, clean];
        self.mariadb(name, &words, (options, None), (&file, ""))
    }

    fn myrocks(&self) -> Result<Taken, String> {
        let pool = format!("--rocksdb-block-cache-size={}", self.pool);
        let words = [pool.as_str(), "--plugin-load-add=ha_rocksdb"];
        let flush = "SET GLOBAL rocksdb_force_flush_memtable_now = 1";
        self.mariadb("MyRocks", &words, ("ENGINE=ROCKSDB", Some(flush)), ("#rocksdb", ".sst"))
    }

    /// `finish` is executed behind the rows; of `files` below the data those count that end so.
    fn mariadb(
        &self,
        name: &str,
        words: &[&str],
        (options, finish): (&str, Option<&str>),
        (files, ending): (&str, &'static str),
    ) -> Result<Taken, String> {
        let folder = servers::fresh_folder("codecs")?;
        let server = servers::start_mariadb(&folder, sqltest::port::free_port()?, words)?;
        let files = folder.join("data").join(files);
        let mut subject = Subject { server, files, ending };
        let load = subject.load(self, options)?;
        if let Some(sql) = finish {
            subject.connect()?.execute(sql).map_err(|error| format!("{sql}: {error}"))?;
        }
        let bytes = subject.at_rest()?;
        subject.server.kill();
        Ok(self.told(Taken { name: name.into(), bytes, load, live: None }))
    }

    fn gannet(&self, binary: &Path, codec: &str) -> Result<Taken, String> {
        let folder = servers::fresh_folder("codecs")?;
        let options = ["--buffer-pool-size", &self.pool, "--innodb-log-file-size=256M"];
        let server = servers::start_gannet(binary, &folder.join("data"), 0, &options)?;
        let mut subject = Subject { server, files: folder.join("data/data"), ending: "" };
        let load = subject.load(self, &codec_option(codec))?;
        let bytes = subject.at_rest()?;
        let live = status(&mut subject.connect()?, "Gannet_store_live_bytes")?;
        for part in ["allocated", "open", "free", "written", "moved"] {
            let name = format!("Gannet_store_{part}_bytes");
            let bytes = status(&mut subject.connect()?, &name)?;
            eprintln!("{codec}: {part}: {} MB", bytes / 1_000_000);
        }
        if !subject.server.stop() {
            return Err(format!("{codec}: the server did not stop cleanly"));
        }
        let name = format!("Gannet {codec}");
        Ok(self.told(Taken { name, bytes, load, live: Some(live) }))
    }

    /// A run takes long: what is known is shown before the table.
    fn told(&self, taken: Taken) -> Taken {
        let live =
            taken.live.map_or(String::new(), |live| format!(", {} MB live", live / 1_000_000));
        eprintln!(
            "{}: {}: {} MB{live}, loaded in {:.1} s",
            self.kind.table(),
            taken.name,
            taken.bytes / 1_000_000,
            taken.load.as_secs_f64()
        );
        taken
    }
}

struct Subject {
    server: Server,
    /// What counts: a file, or a folder of files.
    files: PathBuf,
    /// How the names of those end.
    ending: &'static str,
}

impl Subject {
    fn connect(&self) -> Result<Connection, String> {
        let read_timeout = Duration::from_secs(600);
        let options = Options { read_timeout, ..Options::local(self.server.port) };
        Connection::open(&options).map_err(|error| error.to_string())
    }

    fn load(&self, load: &Load, options: &str) -> Result<Duration, String> {
        let Load { kind, bytes, .. } = *load;
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
            // MariaDB has no pages that wait for their codec.
            let deferred = status(&mut connection, "Gannet_store_deferred_bytes").unwrap_or(0);
            let now = servers::allocated_bytes_of(&self.files, self.ending);
            if now != last || dirty > 0 || deferred > DEFERRED_MOST {
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
