//! Tables of every codec for `flip`, of which every row is known.

use crate::bank::codec_option;
use crate::process::Server;
use crate::random::Random;
use crate::{Outcome, servers};
use sqltest::client::{Answer, Connection, Options};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Rows of each table ...
const ROWS: u64 = 1500;
/// ... but for this codec, whose table gets a dictionary: more than the pool holds.
const DICTIONARY_CODEC: &str = "zstd";
const DICTIONARY_ROWS: u64 = 30_000;
/// Pages are compressed as asked, and written with a dictionary, within so long.
const REST_WITHIN: Duration = Duration::from_secs(300);
/// Rows of the first table that are changed just before the server is killed.
const CHANGES: u64 = 200;
/// Rows inserted by one statement.
const ROWS_A_STATEMENT: u64 = 100;
/// Part of every error that tells of damage.
const ERROR_TEXT: &str = "corrupt";

/// The tables.
pub struct Tables {
    codecs: Vec<&'static str>,
}

/// Starts a server with a pool that does not hold all.
pub fn start(binary: &Path, datadir: &Path) -> Result<Server, String> {
    let port = sqltest::port::free_port()?;
    servers::start_gannet(binary, datadir, port, &["--buffer-pool-size", "16M"])
}

fn stop(mut server: Server) -> Outcome {
    if server.stop() { Ok(()) } else { Err("the server did not stop cleanly".into()) }
}

fn connect(port: u16) -> Result<Connection, String> {
    let options = Options { database: "flip".into(), ..Options::local(port) };
    Connection::open(&options).map_err(|e| e.to_string())
}

/// Words of which some are far more frequent than others, each unlike all others.
fn words(random: &mut Random, length: usize) -> String {
    let mut text = String::new();
    while text.len() < length {
        let scale = random.below(11);
        let rank = random.below(1 << scale);
        let _ = write!(text, "{:x} ", (rank + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24);
    }
    text
}

/// The text of a row: words that compress and letters that do not.
fn text(table: usize, id: u64) -> String {
    let mut random = Random::new((table as u64) << 32 | id);
    let length = 300 + random.below(600) as usize;
    let mut text = String::new();
    while text.len() < length {
        match random.below(2) {
            0 => text.push_str("what stands in a row of this table "),
            _ => drop(write!(text, "{:016x} ", random.next())),
        }
    }
    text
}

impl Tables {
    /// One table for each codec.
    pub fn new(codecs: &[&'static str]) -> Tables {
        Tables { codecs: codecs.to_vec() }
    }

    /// How many rows a table has.
    fn rows(&self, table: usize) -> u64 {
        if self.codecs[table] == DICTIONARY_CODEC { DICTIONARY_ROWS } else { ROWS }
    }

    /// The text of a row.
    fn text(&self, table: usize, id: u64) -> String {
        match self.codecs[table] {
            DICTIONARY_CODEC => {
                let mut random = Random::new((table as u64) << 32 | id);
                let length = 300 + random.below(600) as usize;
                words(&mut random, length)
            }
            _ => text(table, id),
        }
    }

    /// The indexed column of a row.
    fn number(&self, table: usize, id: u64) -> u64 {
        if table == 0 && id < CHANGES { 1_000_000 + id } else { id * 7 }
    }

    /// Fills a data directory and ends the server by SIGKILL, so that the log is live.
    pub fn fill(&self, binary: &Path, datadir: &Path) -> Outcome {
        let server = start(binary, datadir)?;
        let mut connection =
            Connection::open(&Options::local(server.port)).map_err(|e| e.to_string())?;
        let mut run = |sql: &str| connection.execute(sql).map(drop).map_err(|e| e.to_string());
        run("CREATE DATABASE flip")?;
        for (table, codec) in self.codecs.iter().enumerate() {
            run(&format!(
                "CREATE TABLE flip.t{table} (id INT PRIMARY KEY, a INT NOT NULL, t TEXT, KEY (a)) \
                 {}",
                codec_option(codec)
            ))?;
            for first in (0..self.rows(table)).step_by(ROWS_A_STATEMENT as usize) {
                let row = |id: u64| format!("({id}, {}, '{}')", id * 7, self.text(table, id));
                let rows: Vec<String> =
                    (first..(first + ROWS_A_STATEMENT).min(self.rows(table))).map(row).collect();
                run(&format!("INSERT INTO flip.t{table} VALUES {}", rows.join(", ")))?;
            }
        }
        if self.codecs.contains(&DICTIONARY_CODEC) {
            wait_for_dictionaries(&mut connection)?;
        }
        stop(server)?;
        let server = start(binary, datadir)?;
        wait_until_nothing_waits(&mut connect(server.port)?)?;
        stop(server)?;
        let mut server = start(binary, datadir)?;
        let mut connection = connect(server.port)?;
        for id in 0..CHANGES {
            let sql = format!("UPDATE t0 SET a = {} WHERE id = {id}", self.number(0, id));
            connection.execute(&sql).map_err(|e| e.to_string())?;
        }
        server.kill();
        Ok(())
    }

    /// Asks for every row by its key and by its index: how often it was right, and refused.
    pub fn read_every_row(&self, port: u16) -> Result<(usize, usize), String> {
        let mut connection = connect(port)?;
        let mut sum = (0, 0);
        for table in 0..self.codecs.len() {
            for id in 0..self.rows(table) {
                self.read_row(&mut connection, table, id, &mut sum)?;
            }
        }
        connection.execute("SELECT 1").map_err(|e| e.to_string())?;
        Ok(sum)
    }

    /// The same for the rows that were changed at last, which are acknowledged in the log.
    pub fn read_changed_rows(&self, port: u16) -> Result<(usize, usize), String> {
        let mut connection = connect(port)?;
        let mut sum = (0, 0);
        for id in 0..CHANGES {
            self.read_row(&mut connection, 0, id, &mut sum)?;
        }
        for table in 0..self.codecs.len() {
            self.read_row(&mut connection, table, ROWS - 1, &mut sum)?;
        }
        Ok(sum)
    }

    fn read_row(
        &self,
        connection: &mut Connection,
        table: usize,
        id: u64,
        sum: &mut (usize, usize),
    ) -> Outcome {
        let number = self.number(table, id);
        let by_key = format!("SELECT a, t FROM t{table} WHERE id = {id}");
        let by_index = format!("SELECT id FROM t{table} FORCE INDEX (a) WHERE a = {number}");
        let row =
            vec![Some(number.to_string().into_bytes()), Some(self.text(table, id).into_bytes())];
        let expected = [(by_key, row), (by_index, vec![Some(id.to_string().into_bytes())])];
        for (sql, row) in expected {
            match connection.query_one(&sql).map_err(|e| format!("{sql}: {e}"))? {
                Answer::Rows { rows, .. } if rows == [row] => sum.0 += 1,
                Answer::Error(error) if error.message.contains(ERROR_TEXT) => sum.1 += 1,
                other => return Err(format!("{sql}: {other:?}")),
            }
        }
        Ok(())
    }
}

/// Waits until pages are written with a dictionary: while cores are short they are not yet.
fn wait_for_dictionaries(connection: &mut Connection) -> Outcome {
    wait_for_status(connection, "Gannet_dictionary_pages", |pages| pages != b"0")
}

/// Waits until no page is to be compressed yet, of a server that has just been started: what waits
/// in a segment that is still filled may wait for long. Copies that were compressed anew just
/// before a kill are not durable: damage in them is a torn write, and their former copies count.
fn wait_until_nothing_waits(connection: &mut Connection) -> Outcome {
    wait_for_status(connection, "Gannet_store_deferred_bytes", |bytes| bytes == b"0")
}

fn wait_for_status(
    connection: &mut Connection,
    name: &str,
    is_reached: fn(&[u8]) -> bool,
) -> Outcome {
    let status = format!("SHOW GLOBAL STATUS WHERE Variable_name = '{name}'");
    let begun = Instant::now();
    loop {
        let answer = connection.query_one(&status).map_err(|e| e.to_string())?;
        let value = match &answer {
            Answer::Rows { rows, .. } => rows.first().and_then(|row| row.last()?.clone()),
            _ => None,
        };
        if value.is_some_and(|value| is_reached(&value)) {
            return Ok(());
        }
        if begun.elapsed() > REST_WITHIN {
            return Err(format!("cores have been short for long: still {answer:?}"));
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}
