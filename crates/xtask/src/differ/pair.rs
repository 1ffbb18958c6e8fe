//! Gannet and MariaDB side by side: both get a statement, and both work at the same time.

use super::compare::{Reply, Told};
use super::proofs::Servers;
use super::statements::{Kind, Statement, TARGET};
use crate::process::Server;
use crate::servers;
use sqltest::client::{Answer, Connection, Options};
use sqltest::parameter::Parameter;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Gives up on a statement after this long; the slowest ones take a second.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

const TABLES: &str = include_str!("../../../../tests/differ/tables.sql");
const SESSION: &str = include_str!("../../../../tests/differ/session.sql");

/// Modes of the session; a statement's seed chooses.
pub const MODES: [&str; 3] = [
    "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
    "",
    "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
];

/// One server with its connection.
struct Side {
    server: Server,
    connection: Connection,
}

/// Both.
pub struct Pair {
    binary: PathBuf,
    folder: PathBuf,
    ours: Side,
    theirs: Side,
    /// Of both connections; none where they are new.
    mode: Option<&'static str>,
    restarts: usize,
}

impl Pair {
    /// Starts both with the tables of `tests/differ`.
    pub fn start(binary: &Path, folder: &Path) -> Result<Self, String> {
        let ours = start_gannet(binary, &folder.join("gannet"))?;
        let port = sqltest::port::free_port()?;
        let own = folder.join("mariadb");
        std::fs::create_dir_all(&own).map_err(|e| format!("{}: {e}", own.display()))?;
        let options = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"];
        let theirs = filled(servers::start_mariadb(&own, port, &options)?)?;
        Ok(Self {
            binary: binary.to_path_buf(),
            folder: folder.to_path_buf(),
            ours,
            theirs,
            mode: None,
            restarts: 0,
        })
    }

    /// Connects again, or starts the server again on an empty folder.
    fn repair_gannet(&mut self) -> Result<(), String> {
        self.mode = None;
        self.theirs.connection = open(self.theirs.server.port)?;
        if let Ok(connection) = open(self.ours.server.port) {
            self.ours.connection = connection;
            return Ok(());
        }
        self.ours.server.kill();
        self.restarts += 1;
        let data = self.folder.join(format!("gannet-{}", self.restarts));
        self.ours = start_gannet(&self.binary, &data)?;
        Ok(())
    }
}

impl Servers for Pair {
    fn ask(
        &mut self,
        statement: &Statement,
        mode: &'static str,
    ) -> Result<(Reply, Vec<Told>), String> {
        if self.mode != Some(mode) {
            let change = format!("SET sql_mode = '{mode}'");
            for side in [&mut self.ours, &mut self.theirs] {
                side.connection.execute(&change).map_err(|e| e.to_string())?;
            }
            self.mode = Some(mode);
        }
        let (ours, theirs) = (&mut self.ours.connection, &mut self.theirs.connection);
        let (here, there) = std::thread::scope(|scope| {
            let here = scope.spawn(|| run(ours, statement));
            let there = run(theirs, statement);
            (here.join().unwrap_or_else(|_| Err("the client failed".into())), there)
        });
        if here.is_err() {
            self.repair_gannet()?;
        }
        match there {
            Ok(told) => Ok((here, told)),
            Err(error) => {
                self.theirs.connection = open(self.theirs.server.port)?;
                self.mode = None;
                Err(error)
            }
        }
    }
}

fn start_gannet(binary: &Path, data: &Path) -> Result<Side, String> {
    filled(servers::start_gannet(binary, data, 0, &[])?)
}

/// A started server, its tables made.
fn filled(server: Server) -> Result<Side, String> {
    let mut connection =
        Connection::open(&Options::local(server.port)).map_err(|e| e.to_string())?;
    let begin = ["SET GLOBAL max_allowed_packet = 131072", "CREATE DATABASE differ", "USE differ"];
    for statement in begin.into_iter().chain(statements(TABLES)) {
        connection.execute(statement).map_err(|e| e.to_string())?;
    }
    Ok(Side { connection: open(server.port)?, server })
}

/// A connection with the variables of the session set.
fn open(port: u16) -> Result<Connection, String> {
    let options =
        Options { database: "differ".into(), read_timeout: ANSWER_LIMIT, ..Options::local(port) };
    let mut connection = Connection::open(&options).map_err(|e| e.to_string())?;
    for statement in statements(SESSION) {
        connection.execute(statement).map_err(|e| e.to_string())?;
    }
    Ok(connection)
}

/// The statements of a file: each ends with `;` at the end of a line.
fn statements(text: &str) -> impl Iterator<Item = &str> {
    text.split(";\n").map(str::trim).filter(|statement| !statement.is_empty())
}

/// The columns of the changed table but its key.
const TARGET_COLUMNS: &str = "tiny, bigu, dec2, d, f, name, lat, vb, day, moment, stamp, clock, y, \
    e, s, HEX(bits), plain, word";

/// Runs a statement; a change in a transaction that is rolled back, its rows read before that.
fn run(connection: &mut Connection, statement: &Statement) -> Reply {
    let text = |error: std::io::Error| error.to_string();
    let mut told = Vec::new();
    if statement.kind == Kind::Change {
        connection.execute("START TRANSACTION").map_err(text)?;
    }
    let answer = if statement.prepared {
        let (sql, values) = statement.root.with_parameters();
        prepared(connection, &sql, &values)
    } else {
        plain(connection, &statement.root.sql())
    };
    told.push(answer.map_err(text)?);
    if statement.kind == Kind::Change {
        // Without the generated key: its next value depends on the statements before.
        let rows = format!("SELECT {TARGET_COLUMNS} FROM {TARGET} ORDER BY id");
        told.push(plain(connection, &rows).map_err(text)?);
        connection.execute("ROLLBACK").map_err(text)?;
    }
    Ok(told)
}

fn plain(connection: &mut Connection, sql: &str) -> std::io::Result<Told> {
    let answer = connection.query_one(sql)?;
    let warnings = warnings(connection, &answer)?;
    Ok(Told { answer, warnings })
}

fn prepared(connection: &mut Connection, sql: &str, values: &[String]) -> std::io::Result<Told> {
    let statement = match connection.prepare(sql)? {
        Ok(statement) => statement,
        Err(error) => return Ok(Told { answer: Answer::Error(error), warnings: Vec::new() }),
    };
    let parameters = values.iter().map(|value| Parameter::parse(value));
    let parameters = parameters.collect::<Result<Vec<_>, _>>().map_err(std::io::Error::other)?;
    let answer = connection.execute_typed(&statement, 0, &parameters)?;
    let warnings = warnings(connection, &answer)?;
    connection.close_prepared(&statement)?;
    Ok(Told { answer, warnings })
}

/// The warnings, asked for only if there are any.
fn warnings(connection: &mut Connection, answer: &Answer) -> std::io::Result<Vec<[String; 3]>> {
    let count = match answer {
        Answer::Done(done) => done.warnings,
        Answer::Rows { warnings, .. } => *warnings,
        Answer::Error(_) => 1,
    };
    if count == 0 {
        return Ok(Vec::new());
    }
    connection.warnings()
}
