//! `cargo xtask isolation`: clients append to lists and replace registers in concurrent
//! transactions; what they saw is judged (crate `history`) by what the level forbids.
//!
//! 1. A client notes a read when it was answered and a write when it is sent; a transaction whose
//!    COMMIT was sent and not answered has an unknown outcome, any other that did not end well was
//!    rolled back.
//! 2. All clients share one clock, so what had ended before something began is known.
//! 3. At the end one reader reads everything that was ever written.
//! 4. With `--crash` the server is killed again and again; the history goes on across its lives.
//! 5. A history with a forbidden anomaly is kept as text, for `--judge FILE`.

mod client;
mod workload;

use crate::arguments::Arguments;
use crate::process::Server;
use crate::random::Random;
use crate::{Outcome, packages, servers};
use client::Shared;
use history::{History, Level};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Clients at work.
const CLIENTS: u32 = 8;

/// A life of the server under `--crash`, in milliseconds: at least this, and up to twice as much.
const LIFE_MILLIS: u64 = 1500;

/// A level with its name on the command line and the statements that choose it.
pub(crate) struct Subject {
    name: &'static str,
    level: Level,
    isolation: &'static str,
    snapshot_isolation: bool,
}

const fn subject(
    name: &'static str,
    level: Level,
    isolation: &'static str,
    snapshot_isolation: bool,
) -> Subject {
    Subject { name, level, isolation, snapshot_isolation }
}

const SUBJECTS: [Subject; 5] = [
    subject("read-uncommitted", Level::ReadUncommitted, "READ UNCOMMITTED", true),
    subject("read-committed", Level::ReadCommitted, "READ COMMITTED", true),
    subject("repeatable-read", Level::SnapshotIsolation, "REPEATABLE READ", true),
    subject("repeatable-read-legacy", Level::RepeatableReadLegacy, "REPEATABLE READ", false),
    subject("serializable", Level::Serializable, "SERIALIZABLE", true),
];

impl Subject {
    /// What a client sends first.
    pub(crate) fn settings(&self) -> [String; 2] {
        let switch = if self.snapshot_isolation { "ON" } else { "OFF" };
        [
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", self.isolation),
            format!("SET SESSION innodb_snapshot_isolation = {switch}"),
        ]
    }

    /// A client may compute a register's next value from what it read: nobody else's write gets
    /// lost by that.
    pub(crate) fn keeps_updates(&self) -> bool {
        self.level.forbids(history::Anomaly::LostUpdate)
    }
}

/// Runs all levels, or those of `--level NAME[,NAME]`.
pub fn run(words: &[String]) -> Outcome {
    let options = ["--level", "--transactions", "--seed", "--judge"];
    let arguments = Arguments::new(words, &["--crash", "--mariadb", "--release"], &options)?;
    let subjects = chosen(&arguments)?;
    if let Some(file) = arguments.value("--judge") {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
        let history = History::parse(&text)?;
        return subjects.iter().try_for_each(|subject| judge(subject, &history, None));
    }
    let transactions = arguments.number("--transactions", 100_000)?;
    let seed = arguments.number("--seed", 1)?;
    let folder = servers::fresh_folder("isolation")?;
    for subject in subjects {
        let mut host = Host::start(&arguments, &folder.join(subject.name))?;
        let shared = Shared::new(host.port(), subject, transactions, seed);
        workload::create(&shared)?;
        let lives = host.load(&shared, arguments.has("--crash"), seed)?;
        let history = workload::finish(shared)?;
        println!("{}: {lives} lives of the server", subject.name);
        let kept = folder.join(format!("{}.history", subject.name));
        judge(subject, &history, Some(&kept))?;
        host.end()?;
    }
    Ok(())
}

fn chosen(arguments: &Arguments) -> Result<Vec<&'static Subject>, String> {
    let Some(names) = arguments.value("--level") else { return Ok(SUBJECTS.iter().collect()) };
    let find = |name: &str| SUBJECTS.iter().find(|subject| subject.name == name);
    let all: Vec<&str> = SUBJECTS.iter().map(|subject| subject.name).collect();
    names
        .split(',')
        .map(|name| find(name).ok_or(format!("no level '{name}'; there are {}", all.join(", "))))
        .collect()
}

fn judge(subject: &Subject, history: &History, keep: Option<&Path>) -> Outcome {
    let findings = history::judge(history);
    let count = |outcome| history.transactions.iter().filter(|it| it.outcome == outcome).count();
    println!(
        "{}: {} transactions committed, {} rolled back, {} unknown, {} operations",
        subject.name,
        count(history::Outcome::Committed),
        count(history::Outcome::Aborted),
        count(history::Outcome::Unknown),
        history.transactions.iter().map(|it| it.operations.len()).sum::<usize>(),
    );
    for (anomaly, count) in findings.counts() {
        let word = if subject.level.forbids(anomaly) { "FORBIDDEN" } else { "allowed" };
        println!("  {anomaly}: {count}, {word}");
    }
    let forbidden: Vec<String> = findings
        .forbidden_at(subject.level)
        .map(|it| format!("{}: {}", it.anomaly, it.text))
        .collect();
    if forbidden.is_empty() {
        return Ok(());
    }
    if let Some(path) = keep {
        std::fs::write(path, history.to_string())
            .map_err(|e| format!("{}: {e}", path.display()))?;
        println!("the history is in {}", path.display());
    }
    Err(format!("{}: what the level forbids:\n{}", subject.name, forbidden.join("\n")))
}

/// The server, and how it is started again.
struct Host {
    server: Server,
    /// The binary and the data directory; none is MariaDB, which is not killed.
    gannet: Option<(PathBuf, PathBuf)>,
}

impl Host {
    fn start(arguments: &Arguments, folder: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let port = sqltest::port::free_port()?;
        if arguments.has("--mariadb") {
            packages::install(&packages::SERVERS)?;
            let server = servers::start_mariadb(folder, port, &["--innodb-buffer-pool-size=64M"])?;
            return Ok(Self { server, gannet: None });
        }
        let built = servers::build_gannet(arguments.has("--release"))?;
        // Every life is one of the same binary, whatever is built meanwhile.
        let (binary, data) = (folder.join("gannet"), folder.join("data"));
        std::fs::copy(&built, &binary).map_err(|e| format!("{}: {e}", binary.display()))?;
        let server = restart(&binary, &data, port)?;
        Ok(Self { server, gannet: Some((binary, data)) })
    }

    fn port(&self) -> u16 {
        self.server.port
    }

    /// Runs the clients to their end; gives how often the server was started.
    fn load(&mut self, shared: &Shared, crash: bool, seed: u64) -> Result<u64, String> {
        let mut lives = 1;
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                scope.spawn(move || client::run(shared, number));
            }
            let result = self.watch(shared, crash, seed, &mut lives);
            if result.is_err() {
                shared.stop();
            }
            result
        })?;
        shared.fault().map_or(Ok(lives), Err)
    }

    fn watch(&mut self, shared: &Shared, crash: bool, seed: u64, lives: &mut u64) -> Outcome {
        let mut random = Random::new(seed);
        while !shared.is_done() {
            let life = LIFE_MILLIS + random.below(LIFE_MILLIS);
            let until = std::time::Instant::now() + Duration::from_millis(life);
            while !shared.is_done() && std::time::Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
            if let (true, false, Some((binary, data))) = (crash, shared.is_done(), &self.gannet) {
                self.server.kill();
                self.server = restart(binary, data, self.server.port)?;
                *lives += 1;
            } else if let Some(status) = self.server.ended() {
                return Err(format!("the server ended by itself: {status}"));
            }
        }
        Ok(())
    }

    fn end(mut self) -> Outcome {
        if self.server.stop() { Ok(()) } else { Err("the server did not stop cleanly".into()) }
    }
}

fn restart(binary: &Path, data: &Path, port: u16) -> Result<Server, String> {
    servers::start_gannet(binary, data, port, &["--buffer-pool-size", "64M"])
}
