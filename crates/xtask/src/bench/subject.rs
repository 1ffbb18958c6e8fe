//! The servers that are measured, with the same memory, durability and isolation.

use super::Plan;
use crate::process::{self, Server};
use crate::{mysql, servers};
use sqltest::client::{Connection, Options};
use sqltest::template;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const CONNECTIONS: &str = "--max-connections=12000";
const STATEMENTS: &str = "--max-prepared-stmt-count=1048576";
const COMMITS: &str = "--innodb-flush-log-at-trx-commit=1";

/// A server under measurement.
pub struct Subject {
    /// How the report calls it.
    pub name: &'static str,
    /// The process.
    pub server: Server,
    /// `gannet-bench`.
    pub tool: PathBuf,
}

/// What has been built.
pub struct Built {
    gannet: PathBuf,
    /// `gannet-bench`.
    pub tool: PathBuf,
}

impl Built {
    /// Builds the server and the tool.
    pub fn build() -> Result<Self, String> {
        let gannet = servers::build_gannet(true)?;
        process::run("cargo", &["build", "--release", "--package", "gannet-bench"])?;
        Ok(Self { gannet, tool: crate::root().join("target/release/gannet-bench") })
    }

    /// Gannet, empty.
    pub fn gannet(&self, pool: &str) -> Result<Subject, String> {
        self.build_of_gannet("gannet", &self.gannet, pool)
    }

    /// An earlier build of Gannet, empty.
    pub fn before(&self, binary: &Path, pool: &str) -> Result<Subject, String> {
        self.build_of_gannet("before", binary, pool)
    }

    fn build_of_gannet(
        &self,
        name: &'static str,
        binary: &Path,
        pool: &str,
    ) -> Result<Subject, String> {
        let folder = servers::fresh_folder(&format!("bench-{name}"))?;
        let pool = format!("--innodb-buffer-pool-size={pool}");
        let options = [pool.as_str(), CONNECTIONS, STATEMENTS, COMMITS];
        let server = servers::start_gannet(binary, &folder.join("data"), 0, &options)?;
        Ok(Subject { name, server, tool: self.tool.clone() })
    }

    /// MariaDB, empty, with a thread per connection or with its pool of threads.
    pub fn mariadb(&self, pool: &str, has_thread_pool: bool) -> Result<Subject, String> {
        let name = if has_thread_pool { "mariadb-pool" } else { "mariadb" };
        let folder = servers::fresh_folder(&format!("bench-{name}"))?;
        let pool = format!("--innodb-buffer-pool-size={pool}");
        let handling = match has_thread_pool {
            true => "--thread-handling=pool-of-threads",
            false => "--thread-handling=one-thread-per-connection",
        };
        let log = "--innodb-log-file-size=512M";
        let backlog = "--back-log=4096";
        let options = [pool.as_str(), log, CONNECTIONS, STATEMENTS, handling, backlog];
        let server = servers::start_mariadb(&folder, sqltest::port::free_port()?, &options)?;
        Ok(Subject { name, server, tool: self.tool.clone() })
    }

    /// MySQL, empty.
    pub fn mysql(&self, pool: &str) -> Result<Subject, String> {
        let folder = servers::fresh_folder("bench-mysql")?;
        let pool = format!("--innodb-buffer-pool-size={pool}");
        let log = "--innodb-redo-log-capacity=512M";
        let options = [pool.as_str(), log, CONNECTIONS, STATEMENTS, "--back-log=4096"];
        let server = mysql::start(&folder, sqltest::port::free_port()?, &options)?;
        Ok(Subject { name: "mysql", server, tool: self.tool.clone() })
    }

    /// The server that answers with a constant.
    pub fn constant(&self) -> Result<Subject, String> {
        let mut child = process::with_descriptors(&self.tool)
            .arg("constant")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("gannet-bench: {e}"))?;
        let stdout = child.stdout.take().ok_or("gannet-bench has no output")?;
        let mut server = Server::new(child, 0);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map_err(|e| e.to_string())?;
        let port = line.trim().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        server.port = port.ok_or("the constant server did not say its port")?;
        Ok(Subject { name: "constant", server, tool: self.tool.clone() })
    }
}

impl Subject {
    /// A connection to it.
    pub fn connect(&self, database: &str) -> Result<Connection, String> {
        let local = Options::local(self.server.port);
        let read_timeout = std::time::Duration::from_secs(1800);
        let options = Options { database: database.to_string(), read_timeout, ..local };
        Connection::open(&options).map_err(|e| format!("{}: {e}", self.name))
    }

    /// Executes statements that must succeed.
    pub fn execute(&self, statements: &[&str]) -> Result<(), String> {
        let mut connection = self.connect("")?;
        for sql in statements {
            connection.execute(sql).map_err(|e| format!("{}: {e}", self.name))?;
        }
        Ok(())
    }

    /// Fills sysbench's tables and brings them into memory.
    pub fn fill(&self, plan: &Plan) -> Result<(), String> {
        println!("{}: filling {} tables of {} rows", self.name, plan.tables, plan.rows);
        let of = |e: std::io::Error| format!("{}: {e}", self.name);
        let mut connection = self.connect("")?;
        template::fill(&mut connection, plan.tables, plan.rows).map_err(of)?;
        for table in 1..=plan.tables {
            connection.execute(&format!("ANALYZE TABLE sbtest{table}")).map_err(of)?;
        }
        Ok(())
    }

    /// A counter of SHOW GLOBAL STATUS.
    pub fn status(&self, name: &str) -> Result<f64, String> {
        self.number_of(&format!("SHOW GLOBAL STATUS LIKE '{name}'"), 1)
    }

    /// The one number that a query on sysbench's tables gives.
    pub fn number(&self, sql: &str) -> Result<f64, String> {
        self.number_of(sql, 0)
    }

    fn number_of(&self, sql: &str, column: usize) -> Result<f64, String> {
        let mut connection = self.connect("sbtest")?;
        let rows = connection.execute(sql).map_err(|e| format!("{}: {e}", self.name))?;
        let field = rows.first().and_then(|row| row.get(column)).and_then(Option::as_ref);
        let text = field.map(|field| String::from_utf8_lossy(field).into_owned());
        let number = text.and_then(|text| text.parse().ok());
        number.ok_or_else(|| format!("{}: no number: {sql}", self.name))
    }
}
