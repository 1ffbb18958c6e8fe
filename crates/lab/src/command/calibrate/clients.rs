//! The clients that take turns, each a process of its own.

use super::Arguments;
use crate::client::Target;
use crate::server::{Running, signal, spawned};
use crate::workload::sysbench::Script;
use runtime::net::Address;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Who takes turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Sysbench,
    /// The lab with a thread for each of its clients.
    LabEach,
    /// The lab with one thread for all, as it always runs.
    Lab,
}

impl Kind {
    /// Their places in an array of figures.
    pub(super) const ALL: [Self; 3] = [Self::Sysbench, Self::LabEach, Self::Lab];

    /// A table that others use would make them wait for the locks of who is stopped.
    pub(super) fn database(self) -> &'static str {
        match self {
            Self::Sysbench => "calibrate_sysbench",
            Self::LabEach => "calibrate_threads",
            Self::Lab => "calibrate_one",
        }
    }
}

/// What sysbench says of itself; an error if it is not there.
pub(super) fn version() -> Result<String, String> {
    let output = Command::new("sysbench").arg("--version").output();
    let output = output.map_err(|error| format!("sysbench: {error}; install it"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// A client that is stopped but while it has its turn. It is killed when this goes.
pub(super) struct Client {
    running: Running,
    log: PathBuf,
}

impl Client {
    /// Starts one, on the processors of this process.
    pub(super) fn start(
        kind: Kind,
        arguments: &Arguments,
        script: Script,
        target: &Target,
    ) -> Result<Self, String> {
        let Address::Tcp(address) = &target.address else { return Err("no port".into()) };
        let mut command = match kind {
            Kind::Sysbench => sysbench(arguments, script, target, address),
            Kind::LabEach => lab(arguments, script, target, address, arguments.table.clients)?,
            Kind::Lab => lab(arguments, script, target, address, 1)?,
        };
        let log = arguments.output.join(format!("{}.log", kind.database()));
        let with_path = |error| format!("{}: {error}", log.display());
        let output = File::create(&log).map_err(with_path)?;
        let errors = output.try_clone().map_err(with_path)?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        Ok(Self { running: spawned(command, None)?, log })
    }

    /// Its process; an error if it has ended.
    pub(super) fn id(&mut self) -> Result<u32, String> {
        let Some(status) = self.running.ended() else { return Ok(self.running.id()) };
        let said = fs::read(&self.log).unwrap_or_default();
        Err(format!("a client ended, {status}: {}", String::from_utf8_lossy(&said).trim()))
    }

    /// Lets it go on.
    pub(super) fn resume(&mut self) -> Result<(), String> {
        signal(self.id()?, "CONT")
    }

    /// Stops it wherever it is.
    pub(super) fn stop(&mut self) -> Result<(), String> {
        signal(self.id()?, "STOP")
    }
}

fn sysbench(
    arguments: &Arguments,
    script: Script,
    target: &Target,
    address: &SocketAddr,
) -> Command {
    let mut command = Command::new("sysbench");
    command
        .arg(script.name())
        .arg(format!("--mysql-host={}", address.ip()))
        .arg(format!("--mysql-port={}", address.port()))
        .arg(format!("--mysql-user={}", target.user))
        .arg(format!("--mysql-db={}", target.database))
        .args(["--tables=1", "--rand-type=uniform", "--db-ps-mode=auto"])
        .arg(format!("--table-size={}", arguments.table.rows))
        .arg(format!("--threads={}", arguments.table.clients))
        // Until it is killed.
        .args(["--time=0", "--events=0"])
        .args(["--mysql-ignore-errors=1213,1020,1205", "run"]);
    command
}

fn lab(
    arguments: &Arguments,
    script: Script,
    target: &Target,
    address: &SocketAddr,
    threads: u32,
) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut command = Command::new(program);
    command
        .arg("drive")
        .arg(format!("--dsn=mysql://{}@{address}/{}", target.user, target.database))
        .arg(format!("--script={}", script.name()))
        .arg(format!("--rows={}", arguments.table.rows))
        .arg(format!("--clients={}", arguments.table.clients))
        .arg(format!("--threads={threads}"));
    Ok(command)
}
