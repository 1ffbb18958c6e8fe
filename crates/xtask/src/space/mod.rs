//! `cargo xtask space`: what deletes, drops and truncations give back.
//!
//! Loads a table, deletes three quarters of its rows at random, waits until they are purged, and
//! watches the files:
//! 1. within [`LIMIT`] they are at most 1.4 times the live compressed bytes and 256 MiB;
//! 2. the rows that are left are right, and `CHECK TABLE` agrees;
//! 3. DROP and TRUNCATE of such a table answer within [`DROP_LIMIT`], while another connection
//!    goes on inserting; soon after, the files are small.
//!
//! With `--mariadb` its files are shown beside. `--megabytes N` (1000) of rows, `--pool N` (256) MB
//! of buffer pool, `--connections N` (4) that load and delete; `--drop` does only the third, of
//! DROP. `--model` prints a model of collection instead. `--binary PATH` takes a server that is
//! built already. Times are those of the machine with all that runs on it, so its load average is
//! printed beside.

mod model;
mod rows;

use crate::arguments::Arguments;
use crate::process::Server;
use crate::{Outcome, packages, servers};
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
const ROWS_A_DELETE: u64 = 20_000;

/// A server under test.
struct Subject {
    name: &'static str,
    server: Server,
    data: PathBuf,
    connection: Connection,
    /// That load and delete.
    connections: u64,
    /// Whether the limits are its.
    is_judged: bool,
}

/// See the head of the file.
pub fn run(words: &[String]) -> Outcome {
    let valued = ["--megabytes", "--pool", "--connections", "--binary"];
    let flags = &["--release", "--mariadb", "--model", "--drop"];
    let arguments = Arguments::new(words, flags, &valued)?;
    if arguments.has("--model") {
        model::run();
        return Ok(());
    }
    let rows = arguments.number("--megabytes", 1000)? * 1_000_000 / ROW_BYTES;
    let pool = format!("{}M", arguments.number("--pool", 256)?);
    let connections = arguments.number("--connections", 4)?.max(1);
    let only_drop = arguments.has("--drop");
    let folder = servers::fresh_folder("space")?;
    let binary = servers::chosen_gannet(&arguments)?;
    let options = ["--buffer-pool-size", &pool];
    let server = servers::start_gannet(&binary, &folder.join("data"), 0, &options)?;
    let data = folder.join("data/data");
    let mut subject = Subject::new("gannet", (server, data), connections, true)?;
    let measured = subject.measure(rows, only_drop);
    let stopped = subject.server.stop();
    drop(subject);
    if arguments.has("--mariadb") {
        packages::install(&packages::SERVERS)?;
        let pool = format!("--innodb-buffer-pool-size={pool}");
        let options = [pool.as_str(), "--innodb-log-file-size=512M"];
        let port = sqltest::port::free_port()?;
        let server = servers::start_mariadb(&folder.join("mariadb"), port, &options)?;
        let data = folder.join("mariadb/data");
        Subject::new("mariadb", (server, data), connections, false)?.measure(rows, only_drop)?;
    }
    std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    let mut missed = measured?;
    if !stopped {
        missed.push("the server did not stop cleanly".into());
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("; ")) }
}

fn connect(port: u16, database: &str) -> Result<Connection, String> {
    let read_timeout = Duration::from_secs(600);
    let options = Options { database: database.into(), read_timeout, ..Options::local(port) };
    Connection::open(&options).map_err(|error| error.to_string())
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

/// Of the last minute, as the kernel writes it.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().into()
}

fn text_of(field: &Field) -> String {
    String::from_utf8_lossy(field.as_deref().unwrap_or_default()).into_owned()
}

impl Subject {
    fn new(
        name: &'static str,
        (server, data): (Server, PathBuf),
        connections: u64,
        is_judged: bool,
    ) -> Result<Self, String> {
        let mut connection = connect(server.port, "")?;
        connection.execute("CREATE DATABASE space").map_err(|error| error.to_string())?;
        let connection = connect(server.port, "space")?;
        Ok(Self { name, server, data, connection, connections, is_judged })
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

    /// What was missed, as sentences; of one that is not judged nothing is.
    fn measure(&mut self, rows: u64, only_drop: bool) -> Result<Vec<String>, String> {
        let mut missed = Vec::new();
        let mut note = |is_kept: bool, sentence: String| {
            if !is_kept {
                missed.push(sentence);
            }
        };
        if !only_drop {
            note(self.deletes(rows)?, "files not small after deletes".into());
            self.load("cut", rows / 4)?;
            self.show("loaded a table to truncate")?;
            let took = self.time_beside("TRUNCATE TABLE cut")?;
            note(took <= DROP_LIMIT, format!("TRUNCATE took {} ms", took.as_millis()));
        }
        self.load("big", rows)?;
        self.show("loaded a table to drop")?;
        let took = self.time_beside("DROP TABLE big")?;
        note(took <= DROP_LIMIT, format!("DROP took {} ms", took.as_millis()));
        note(self.watch("dropped")?, "files not small after DROP".into());
        if !only_drop {
            let begin = Instant::now();
            self.execute("OPTIMIZE TABLE t")?;
            println!("{}: OPTIMIZE in {:.1} s", self.name, begin.elapsed().as_secs_f64());
            note(self.watch("optimized")?, "files not small after OPTIMIZE".into());
        }
        Ok(if self.is_judged { missed } else { Vec::new() })
    }

    /// Whether the files are small after three quarters of the rows went.
    fn deletes(&mut self, rows: u64) -> Result<bool, String> {
        self.load("t", rows)?;
        self.show("loaded")?;
        let begin = Instant::now();
        self.share_out(rows.div_ceil(ROWS_A_DELETE), &|number| {
            let first = number * ROWS_A_DELETE;
            let last = first + ROWS_A_DELETE - 1;
            format!("DELETE FROM t WHERE id BETWEEN {first} AND {last} AND CRC32(id) % 4 <> 0")
        })?;
        println!("{}: deleted in {:.1} s", self.name, begin.elapsed().as_secs_f64());
        self.wait_for_purge()?;
        let is_small = self.watch("deleted and purged")?;
        self.check(rows)?;
        Ok(is_small)
    }

    fn wait_for_purge(&mut self) -> Outcome {
        let begin = Instant::now();
        while self.status("Innodb_history_list_length").unwrap_or(0) > 0 {
            if begin.elapsed() > 10 * LIMIT {
                if !self.is_judged {
                    println!("{}: not purged after {} s", self.name, begin.elapsed().as_secs());
                    return Ok(());
                }
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
            "{}: {when}: files {} MiB, live {} MiB, segments {} MiB; load average {}",
            self.name,
            mib(files),
            mib(live),
            mib(allocated),
            load_average()
        );
        Ok(())
    }

    /// Watches the files until they are small enough, for the limit at most.
    fn watch(&mut self, when: &str) -> Result<bool, String> {
        let begin = Instant::now();
        let mut next = Duration::ZERO;
        loop {
            let (live, _) = self.own_account();
            let files = servers::allocated_bytes(&self.data);
            let passed = begin.elapsed();
            let is_small = files <= live * 14 / 10 + SLACK_BYTES;
            // Live bytes fall as well: only what lasts counts.
            let is_done = self.is_judged && is_small && passed > Duration::from_secs(10);
            if passed >= next || is_done {
                self.show(&format!("{when}, after {} s", passed.as_secs()))?;
                next = passed + Duration::from_secs(5);
            }
            let limit = if self.is_judged { LIMIT } else { LIMIT / 4 };
            if is_done || passed > limit {
                // Of next to nothing, or of a server that does not tell, it says nothing.
                if live >= 1 << 20 {
                    let ratio = files as f64 / live as f64;
                    println!("{}: {when}: {ratio:.2} of the live bytes", self.name);
                }
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
