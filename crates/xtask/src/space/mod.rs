//! `cargo xtask space`: what deletes, drops and truncations give back.
//!
//! Loads a table, deletes three quarters of its rows at random, waits until they are purged, and
//! watches the files:
//! 1. within [`LIMIT`] they are at most 1.4 times the live compressed bytes and 256 MiB;
//! 2. the rows that are left are right, and `CHECK TABLE` agrees;
//! 3. DROP and TRUNCATE of such a table answer within [`DROP_LIMIT`], while another connection
//!    goes on inserting; soon after, the files are small.
//!
//! With `--mariadb` its files are shown beside. `--model` prints a model of collection instead.
//! `--binary PATH` takes a server that is built already.

mod model;

use crate::arguments::Arguments;
use crate::process::Server;
use crate::random::Random;
use crate::{Outcome, servers};
use sqltest::client::{Connection, Field, Options};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const DROP_LIMIT: Duration = Duration::from_millis(100);
const SLACK_BYTES: u64 = 256 << 20;
/// Bytes of a row with its index entry, before compression.
const ROW_BYTES: u64 = 240;
const ROWS_A_STATEMENT: u64 = 1000;
const ROWS_A_DELETE: u64 = 20_000;

/// A server under test.
struct Subject {
    name: &'static str,
    server: Server,
    data: PathBuf,
    connection: Connection,
}

/// Runs with `--megabytes N` (1000) of rows.
pub fn run(words: &[String]) -> Outcome {
    let valued = ["--megabytes", "--binary"];
    let arguments = Arguments::new(words, &["--release", "--mariadb", "--model"], &valued)?;
    if arguments.has("--model") {
        model::run();
        return Ok(());
    }
    let rows = arguments.number("--megabytes", 1000)? * 1_000_000 / ROW_BYTES;
    let folder = servers::fresh_folder("space")?;
    let binary = servers::chosen_gannet(&arguments)?;
    let options = ["--buffer-pool-size", "256M"];
    let server = servers::start_gannet(&binary, &folder.join("data"), 0, &options)?;
    let mut subject = Subject::new("gannet", server, folder.join("data/data"))?;
    let measured = subject.measure(rows, true);
    let stopped = subject.server.stop();
    drop(subject);
    if arguments.has("--mariadb") {
        let options = ["--innodb-buffer-pool-size=256M", "--innodb-log-file-size=512M"];
        let port = crate::process::free_port()?;
        let server = servers::start_mariadb(&folder.join("mariadb"), port, &options)?;
        Subject::new("mariadb", server, folder.join("mariadb/data"))?.measure(rows, false)?;
    }
    std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    measured?;
    if stopped { Ok(()) } else { Err("the server did not stop cleanly".into()) }
}

fn connect(port: u16, database: &str) -> Result<Connection, String> {
    let read_timeout = Duration::from_secs(600);
    let options = Options { database: database.into(), read_timeout, ..Options::local(port) };
    Connection::open(&options).map_err(|error| error.to_string())
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

fn text_of(field: &Field) -> String {
    String::from_utf8_lossy(field.as_deref().unwrap_or_default()).into_owned()
}

impl Subject {
    fn new(name: &'static str, server: Server, data: PathBuf) -> Result<Self, String> {
        let mut connection = connect(server.port, "")?;
        connection.execute("CREATE DATABASE space").map_err(|error| error.to_string())?;
        let connection = connect(server.port, "space")?;
        Ok(Self { name, server, data, connection })
    }

    fn execute(&mut self, sql: &str) -> Result<Vec<Vec<Field>>, String> {
        let shown = sql.get(..60).unwrap_or(sql);
        self.connection.execute(sql).map_err(|error| format!("{}: {shown}: {error}", self.name))
    }

    fn status(&mut self, variable: &str) -> Result<u64, String> {
        let rows = self.execute(&format!("SHOW GLOBAL STATUS LIKE '{variable}'"))?;
        let value = rows.first().map(|row| text_of(&row[1]));
        value.and_then(|text| text.parse().ok()).ok_or_else(|| format!("no {variable}"))
    }

    fn load(&mut self, table: &str, rows: u64) -> Outcome {
        self.execute(&format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, k INT NOT NULL, c VARCHAR(120) NOT NULL, \
             pad VARCHAR(80) NOT NULL, KEY k (k))"
        ))?;
        let mut random = Random::new(rows);
        let begin = Instant::now();
        for first in (0..rows).step_by(ROWS_A_STATEMENT as usize) {
            let mut sql = format!("INSERT INTO {table} VALUES ");
            for id in first..(first + ROWS_A_STATEMENT).min(rows) {
                let digits = |random: &mut Random, groups: usize| -> String {
                    let group = |_| format!("{:011}-", random.next() % 100_000_000_000);
                    (0..groups).map(group).collect()
                };
                let comma = if id == first { "" } else { "," };
                let (k, c, pad) = (random.below(rows), digits(&mut random, 10), "text of a row ");
                let pad = format!("{pad}{}", digits(&mut random, 4));
                sql.push_str(&format!("{comma}({id},{k},'{c}','{pad}')"));
            }
            self.execute(&sql)?;
        }
        println!("{}: {rows} rows in {:.1} s", self.name, begin.elapsed().as_secs_f64());
        Ok(())
    }

    fn measure(&mut self, rows: u64, is_judged: bool) -> Outcome {
        self.load("t", rows)?;
        self.show("loaded")?;
        let begin = Instant::now();
        for first in (0..rows).step_by(ROWS_A_DELETE as usize) {
            let last = first + ROWS_A_DELETE - 1;
            self.execute(&format!(
                "DELETE FROM t WHERE id BETWEEN {first} AND {last} AND CRC32(id) % 4 <> 0"
            ))?;
        }
        println!("{}: deleted in {:.1} s", self.name, begin.elapsed().as_secs_f64());
        self.wait_for_purge()?;
        let shrunk = self.watch("deleted and purged", is_judged)?;
        self.check(rows)?;
        self.load("big", rows)?;
        self.load("cut", rows / 4)?;
        self.show("loaded two more tables")?;
        let truncated = self.time_beside("TRUNCATE TABLE cut")?;
        let dropped = self.time_beside("DROP TABLE big")?;
        let gone = self.watch("dropped", is_judged)?;
        let begin = Instant::now();
        self.execute("OPTIMIZE TABLE t")?;
        println!("{}: OPTIMIZE in {:.1} s", self.name, begin.elapsed().as_secs_f64());
        let optimized = self.watch("optimized", is_judged)?;
        let is_quick = truncated.max(dropped) <= DROP_LIMIT;
        match !is_judged || (shrunk && gone && optimized && is_quick) {
            true => Ok(()),
            false => Err(format!(
                "files small after deletes: {shrunk}, after DROP: {gone}, after OPTIMIZE: \
                 {optimized}; DROP {} ms, TRUNCATE {} ms",
                dropped.as_millis(),
                truncated.as_millis()
            )),
        }
    }

    fn wait_for_purge(&mut self) -> Outcome {
        let begin = Instant::now();
        while self.status("Innodb_history_list_length").unwrap_or(0) > 0 {
            if begin.elapsed() > 10 * LIMIT {
                return Err(format!("{}: purge does not come to its end", self.name));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        println!("{}: purged after {:.1} s", self.name, begin.elapsed().as_secs_f64());
        Ok(())
    }

    /// Live bytes and allocated bytes by the server's own account; zeroes of others.
    fn own_account(&mut self) -> (u64, u64) {
        let mut number = |name| self.status(name).unwrap_or(0);
        (number("Gannet_store_live_bytes"), number("Gannet_store_allocated_bytes"))
    }

    fn show(&mut self, when: &str) -> Outcome {
        let files = servers::allocated_bytes(&self.data);
        let (live, allocated) = self.own_account();
        println!(
            "{}: {when}: files {} MiB, live {} MiB, segments {} MiB",
            self.name,
            mib(files),
            mib(live),
            mib(allocated)
        );
        Ok(())
    }

    /// Watches the files until they are small enough, for the limit at most.
    fn watch(&mut self, when: &str, is_judged: bool) -> Result<bool, String> {
        let begin = Instant::now();
        let mut next = Duration::ZERO;
        loop {
            let (live, _) = self.own_account();
            let files = servers::allocated_bytes(&self.data);
            let passed = begin.elapsed();
            let is_small = files <= live * 14 / 10 + SLACK_BYTES;
            // Live bytes fall as well: only what lasts counts.
            let is_done = is_judged && is_small && passed > Duration::from_secs(10);
            if passed >= next || is_done {
                self.show(&format!("{when}, after {} s", passed.as_secs()))?;
                next = passed + Duration::from_secs(5);
            }
            let limit = if is_judged { LIMIT } else { LIMIT / 4 };
            if is_done || passed > limit {
                let ratio = (files as f64) / live.max(1) as f64;
                println!("{}: {when}: {ratio:.2} of the live bytes", self.name);
                return Ok(is_small);
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn check(&mut self, rows: u64) -> Outcome {
        let found = self.execute("SELECT COUNT(*), SUM(CRC32(id) % 4) FROM t")?;
        let (count, others) = (text_of(&found[0][0]), text_of(&found[0][1]));
        if others != "0" {
            return Err(format!("{count} rows of {rows}, among them deleted ones"));
        }
        let found = self.execute("CHECK TABLE t")?;
        match found.iter().all(|row| row[3].as_deref() == Some(b"OK")) {
            true => Ok(()),
            false => Err(format!("CHECK TABLE: {found:?}")),
        }
    }

    /// How long a statement takes, while another connection inserts rows one by one.
    fn time_beside(&mut self, sql: &str) -> Result<Duration, String> {
        self.execute("CREATE TABLE IF NOT EXISTS other (id INT AUTO_INCREMENT PRIMARY KEY)")?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, mut other) = (is_over.clone(), connect(self.server.port, "space")?);
        let client = std::thread::spawn(move || -> Result<(u64, Duration), String> {
            let (mut count, mut longest) = (0, Duration::ZERO);
            while !over.load(Ordering::Relaxed) {
                let begin = Instant::now();
                let done = other.execute("INSERT INTO other VALUES (NULL)");
                done.map_err(|error| error.to_string())?;
                longest = longest.max(begin.elapsed());
                count += 1;
            }
            Ok((count, longest))
        });
        std::thread::sleep(Duration::from_secs(2));
        let begin = Instant::now();
        self.execute(sql)?;
        let took = begin.elapsed();
        std::thread::sleep(Duration::from_secs(2));
        is_over.store(true, Ordering::Relaxed);
        let (count, longest) = client.join().map_err(|_| "the client panicked")??;
        println!(
            "{}: {sql} in {:.1} ms; beside it {count} inserts, the longest took {:.1} ms",
            self.name,
            took.as_secs_f64() * 1e3,
            longest.as_secs_f64() * 1e3
        );
        Ok(took)
    }
}
