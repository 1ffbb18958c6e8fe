//! `cargo xtask full-disk`: a small file system, filled up under load (needs root, for mount).
//!
//! 1. Statements that find no space get error 1114 or 1021, nothing else; whatever was
//!    acknowledged is there afterwards, and reads go on.
//! 2. The server lives on. DELETE makes room, and so does DROP: rows can be inserted again
//!    within [`RELIEF`], without a restart.
//! 3. Killed on the full disk, the server starts on the full disk, with every acknowledged row.
//! 4. The same where somebody else has taken the rest of the space, and when he gives it back.
//! 5. A small part of a large file system is as good as a small one: with `--free N` somebody else
//!    has all but so many megabytes from the beginning, and rows take half of them at least.

use crate::arguments::Arguments;
use crate::process::{self, Server};
use crate::random::Random;
use crate::{Outcome, servers};
use sqltest::client::{Answer, Connection, Field, Options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const CLIENTS: u64 = 4;
const ROWS_A_STATEMENT: u64 = 50;
/// How soon rows can be inserted again when there is space.
const RELIEF: Duration = Duration::from_secs(30);
/// How long the file system may be held by a server that has ended.
const UNMOUNT_PATIENCE: Duration = Duration::from_secs(10);
/// A client has had enough of a full disk after so many errors.
const ERRORS_ENOUGH: u64 = 20;

/// Rows that were acknowledged, by table.
type Ledger = Arc<Mutex<BTreeMap<String, Vec<u64>>>>;

/// What rows have waited for: until when each reason was there.
#[derive(Default)]
struct Reasons(BTreeMap<String, Duration>);

impl Reasons {
    /// Asks the server, at a time when a row was refused.
    fn look(&mut self, connection: &mut Connection, begin: Instant) -> Outcome {
        const NAMES: &str = "'Innodb_history_list_length','Innodb_buffer_pool_pages_dirty',\
            'Gannet_store_is_at_its_end','Gannet_store_is_short_of_space',\
            'Gannet_store_collection_debt_bytes'";
        let sql = format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({NAMES})");
        let rows = connection.execute(&sql).map_err(|error| error.to_string())?;
        for row in rows.iter().filter(|row| number(&row[1]) > 0) {
            let name = row[0].as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            self.0.insert(name.into_owned(), begin.elapsed());
        }
        Ok(())
    }
}

impl std::fmt::Display for Reasons {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, until) in &self.0 {
            write!(formatter, ", {name} until {}", until.as_millis())?;
        }
        Ok(())
    }
}

/// The file system and the server on it.
struct Drill {
    binary: PathBuf,
    image: PathBuf,
    mount: PathBuf,
    server: Option<Server>,
    ledger: Ledger,
    next_id: u64,
}

/// Runs with a file system of `--megabytes N` (1024), of which `--free N` are free (all), and with
/// `--binary PATH` with a server that is built already.
pub fn run(words: &[String]) -> Outcome {
    let arguments = Arguments::new(words, &["--release"], &["--megabytes", "--free", "--binary"])?;
    let megabytes = arguments.number("--megabytes", 1024)?;
    let free = arguments.number("--free", megabytes)?;
    let folder = servers::fresh_folder("full-disk")?;
    let binary = servers::chosen_gannet(&arguments)?;
    let (image, mount) = (folder.join("image"), folder.join("mount"));
    std::fs::create_dir_all(&mount).map_err(|error| error.to_string())?;
    let path = |path: &Path| path.display().to_string();
    process::run("truncate", &["-s", &format!("{megabytes}M"), &path(&image)])?;
    process::run("mkfs.ext4", &["-q", "-m", "0", &path(&image)])?;
    process::run("mount", &["-o", "loop", &path(&image), &path(&mount)])?;
    let ledger = Ledger::default();
    let mut drill = Drill { binary, image, mount, server: None, ledger, next_id: 0 };
    let outcome = drill.leave_free(free).and_then(|()| drill.all());
    // The server first: it holds the file system.
    drill.server = None;
    let unmounted = unmount(&drill.mount);
    outcome?;
    unmounted?;
    std::fs::remove_file(&drill.image).map_err(|error| error.to_string())
}

/// The kernel lets go of the files of a process's ring a while after the process has ended: until
/// then they hold the file system.
fn unmount(mount: &Path) -> Outcome {
    let begin = Instant::now();
    let path = mount.display().to_string();
    while !process::quiet("umount").arg(&path).status().is_ok_and(|status| status.success()) {
        if begin.elapsed() > UNMOUNT_PATIENCE {
            return process::run("umount", &[&path]);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("unmounted after {} ms", begin.elapsed().as_millis());
    Ok(())
}

fn number(field: &Field) -> u64 {
    let text = field.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    text.parse().unwrap_or(0)
}

impl Drill {
    /// Somebody else has all but so many megabytes.
    fn leave_free(&self, megabytes: u64) -> Outcome {
        let Some(taken) = self.free_megabytes().checked_sub(megabytes).filter(|&it| it > 0) else {
            return Ok(());
        };
        let path = self.mount.join("others").display().to_string();
        process::run("fallocate", &["-l", &format!("{taken}M"), &path])?;
        println!("others have {taken} MiB; {}", self.space());
        Ok(())
    }

    fn all(&mut self) -> Outcome {
        let free = self.free_megabytes();
        self.start("a fresh disk")?;
        self.execute("CREATE DATABASE d")?;
        self.fill("one")?;
        let left = self.free_megabytes();
        if left * 2 > free {
            return Err(format!("rows are refused with {left} MiB of {free} left"));
        }
        self.verify("the disk is full")?;
        let deleted = self.delete_half("one")?;
        self.relief(&format!("{deleted} rows were deleted"))?;
        self.verify("rows were deleted")?;
        self.fill("two")?;
        self.verify("the disk is full again")?;
        self.kill_and_start("the disk is full")?;
        self.verify("a restart on the full disk")?;
        self.drop_table("two")?;
        self.relief("a table was dropped")?;
        self.fill("three")?;
        self.execute("TRUNCATE TABLE d.three")?;
        self.lock().remove("three");
        self.relief("a table was truncated")?;
        self.take_the_rest()?;
        let stopped = self.server.as_mut().is_some_and(Server::stop);
        if !stopped {
            return Err("the server did not stop cleanly".into());
        }
        self.start("a clean stop")?;
        self.verify("a clean stop and a start")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<u64>>> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&mut self, after: &str) -> Outcome {
        let begin = Instant::now();
        let data = self.mount.join("data");
        let options = ["--buffer-pool-size", "64M"];
        self.server = Some(servers::start_gannet(&self.binary, &data, 0, &options)?);
        println!("started in {} ms after {after}", begin.elapsed().as_millis());
        Ok(())
    }

    fn kill_and_start(&mut self, when: &str) -> Outcome {
        if let Some(server) = &mut self.server {
            server.kill();
        }
        self.start(&format!("kill -9 while {when}"))
    }

    fn connect(&self) -> Result<Connection, String> {
        let port = self.server.as_ref().map_or(0, |server| server.port);
        let read_timeout = Duration::from_secs(300);
        Connection::open(&Options { read_timeout, ..Options::local(port) })
            .map_err(|error| format!("connect: {error}"))
    }

    fn execute(&self, sql: &str) -> Result<Vec<Vec<Field>>, String> {
        self.connect()?.execute(sql).map_err(|error| format!("{sql}: {error}"))
    }

    /// Inserts by several clients until each has met the full disk often enough.
    fn fill(&mut self, table: &str) -> Outcome {
        self.execute(&format!(
            "CREATE TABLE d.{table} (id BIGINT PRIMARY KEY, k INT NOT NULL, c VARCHAR(500) NOT \
             NULL, KEY k (k))"
        ))?;
        let begin = Instant::now();
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let (mut connection, ledger) = (self.connect()?, self.ledger.clone());
            let (table, first) = (table.to_owned(), self.next_id);
            self.next_id += 1 << 32;
            clients.push(std::thread::spawn(move || {
                insert_until_full(&mut connection, &table, first, &ledger)
            }));
        }
        let mut codes = BTreeMap::new();
        for client in clients {
            let met = client.join().map_err(|_| "a client panicked")??;
            met.into_iter().for_each(|(code, n)| *codes.entry(code).or_insert(0) += n);
        }
        let rows = self.lock().get(table).map_or(0, Vec::len);
        println!(
            "filled {table}: {rows} rows in {:.1} s, errors {codes:?}; {}",
            begin.elapsed().as_secs_f64(),
            self.space()
        );
        match codes.keys().all(|code| matches!(code, 1114 | 1021)) {
            true => Ok(()),
            false => Err(format!("other errors than 1114 and 1021: {codes:?}")),
        }
    }

    /// What the file system says.
    fn space(&self) -> String {
        let output = std::process::Command::new("df")
            .args(["-m", "--output=used,avail"])
            .arg(&self.mount)
            .output();
        let text = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        let text = text.unwrap_or_default();
        let numbers: Vec<&str> = text.lines().nth(1).unwrap_or("").split_whitespace().collect();
        format!("MiB used and free: {}", numbers.join(" "))
    }

    /// What the file system says is free.
    fn free_megabytes(&self) -> u64 {
        self.space().split_whitespace().last().and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    /// Every acknowledged row is there, and no other (but those whose answer was lost).
    fn verify(&self, when: &str) -> Outcome {
        for (table, ids) in self.lock().iter() {
            let rows = self.execute(&format!(
                "SELECT COUNT(*), SUM(id % 1000003), SUM(c = REPEAT(MD5(id), 12)) FROM d.{table}"
            ))?;
            let (count, sum, right) =
                (number(&rows[0][0]), number(&rows[0][1]), number(&rows[0][2]));
            let expected: u64 = ids.iter().map(|id| id % 1_000_003).sum();
            if (count, sum, right) != (ids.len() as u64, expected, ids.len() as u64) {
                return Err(format!(
                    "{when}: {table} has {count} rows, {right} right, sum {sum}; acknowledged \
                     are {} with sum {expected}",
                    ids.len()
                ));
            }
        }
        println!("{when}: every acknowledged row is there");
        Ok(())
    }

    fn delete_half(&mut self, table: &str) -> Result<usize, String> {
        let mut connection = self.connect()?;
        let ids = self.lock().get(table).cloned().unwrap_or_default();
        let (gone, kept): (Vec<u64>, Vec<u64>) = ids.iter().partition(|&&id| id % 2 == 0);
        for part in gone.chunks(200) {
            let list: Vec<String> = part.iter().map(u64::to_string).collect();
            let sql = format!("DELETE FROM d.{table} WHERE id IN ({})", list.join(","));
            connection.execute(&sql).map_err(|error| format!("DELETE: {error}"))?;
        }
        self.lock().insert(table.to_owned(), kept);
        Ok(gone.len())
    }

    fn drop_table(&mut self, table: &str) -> Outcome {
        let begin = Instant::now();
        self.execute(&format!("DROP TABLE d.{table}"))?;
        self.lock().remove(table);
        println!("dropped {table} in {} ms", begin.elapsed().as_millis());
        Ok(())
    }

    /// Soon rows can be inserted again.
    fn relief(&mut self, why: &str) -> Outcome {
        let mut connection = self.connect()?;
        let begin = Instant::now();
        let mut inserted = 0;
        let mut reasons = Reasons::default();
        // One lucky row proves little.
        while inserted < 20 {
            self.next_id += 1;
            let sql = insert("one", self.next_id, 1);
            match connection.query_one(&sql).map_err(|error| error.to_string())? {
                Answer::Done(_) => {
                    inserted += 1;
                    self.lock().entry("one".into()).or_default().push(self.next_id);
                }
                Answer::Error(error) if begin.elapsed() > RELIEF => {
                    let seconds = RELIEF.as_secs();
                    return Err(format!("{why}, and after {seconds} s: {}{reasons}", error.code));
                }
                _ => {
                    reasons.look(&mut connection, begin)?;
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
        println!(
            "{why}: rows go in after {} ms{reasons}; {}",
            begin.elapsed().as_millis(),
            self.space()
        );
        Ok(())
    }

    /// Somebody else fills the disk while rows are inserted, then gives the space back.
    fn take_the_rest(&mut self) -> Outcome {
        let ballast = self.mount.join("ballast");
        let path = ballast.display().to_string();
        let size = format!("{}M", self.free_megabytes());
        // Whatever is left is taken, too.
        let _ = process::quiet("fallocate").args(["-l", &size, &path]).status();
        let _ = process::quiet("dd")
            .args(["if=/dev/zero", "bs=4k", &format!("of={path}.rest")])
            .status();
        println!("somebody took the rest: {}", self.space());
        self.fill("four")?;
        self.verify("somebody took the rest")?;
        self.kill_and_start("somebody has taken the rest")?;
        self.verify("a restart where nothing is left")?;
        std::fs::remove_file(&ballast).map_err(|error| error.to_string())?;
        let _ = std::fs::remove_file(format!("{path}.rest"));
        self.relief("the space was given back")
    }
}

fn insert(table: &str, first: u64, count: u64) -> String {
    let row = |id: u64| format!("({id},{},REPEAT(MD5({id}), 12))", id % 9973);
    let rows: Vec<String> = (first..first + count).map(row).collect();
    format!("INSERT INTO d.{table} VALUES {}", rows.join(","))
}

/// Returns the errors met.
fn insert_until_full(
    connection: &mut Connection,
    table: &str,
    first: u64,
    ledger: &Ledger,
) -> Result<BTreeMap<u16, u64>, String> {
    let (mut id, mut codes, mut errors) = (first, BTreeMap::new(), 0);
    let mut random = Random::new(first);
    while errors < ERRORS_ENOUGH {
        let count = 1 + random.below(ROWS_A_STATEMENT);
        let sql = insert(table, id, count);
        match connection.query_one(&sql).map_err(|error| format!("{table}: {error}"))? {
            Answer::Done(_) => {
                let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
                ledger.entry(table.to_owned()).or_default().extend(id..id + count);
            }
            Answer::Error(error) => {
                *codes.entry(error.code).or_insert(0) += 1;
                errors += 1;
                std::thread::sleep(Duration::from_millis(100));
            }
            Answer::Rows { .. } => return Err("an INSERT gave rows".into()),
        }
        id += count;
    }
    Ok(codes)
}
