//! `cargo xtask tpcc`: the five transactions of TPC-C at a small scale, half of the clients with
//! text as sysbench-tpcc sends it, half with prepared statements as tpcc-mysql does, and what
//! must be true of the data at any moment.
//!
//! 1. The twelve consistency conditions hold after the load, in a snapshot while the clients run,
//!    after the run and, with `--crash`, after every `kill -9` and restart.
//! 2. Every order and payment whose COMMIT was answered with OK is there, a payment once; every
//!    payment that is there had its COMMIT sent.
//! 3. A change that violates a condition is found by it: each one is tried and rolled back.
//!
//! This is no TPC-C result: no think times, no audit, few rows.

mod conditions;
mod schema;
mod terminal;
mod transactions;

use crate::arguments::Arguments;
use crate::process::Server;
use crate::random::Random;
use crate::{Outcome, packages, servers};
use lab::workload::tpcc::Scale;
use sqltest::client::{Connection, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Sizes: what TPC-C fixes is scaled down, the shares are kept.
pub(crate) const SCALE: Scale = Scale { warehouses: 2, districts: 10, customers: 30, items: 100 };

/// Kinds of transactions, in the order of their counters.
pub(crate) const KINDS: [&str; 5] =
    ["new-order", "payment", "order-status", "delivery", "stock-level"];

/// What the clients know.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Orders whose COMMIT was answered: warehouse, district, number.
    pub orders: BTreeSet<(u64, u64, u64)>,
    /// Payments whose COMMIT was answered, by the text in their history row.
    pub payments: BTreeSet<String>,
    /// Payments whose COMMIT was sent.
    pub payments_sent: BTreeSet<String>,
}

const OPTIONS: &[&str] = &["--seconds", "--clients", "--seed", "--snapshot-isolation"];

/// What all clients share.
#[derive(Default)]
pub(crate) struct Shared {
    pub ledger: Mutex<Ledger>,
    pub stop: AtomicBool,
    /// Committed transactions by kind.
    pub committed: [AtomicU64; 5],
    /// New orders rolled back because of an unused item.
    pub unused_items: AtomicU64,
    /// Transactions begun anew, by kind and number of the error.
    pub retried: Mutex<BTreeMap<(usize, u16), u64>>,
    /// What the clients set `innodb_snapshot_isolation` to.
    pub snapshot_isolation: Option<String>,
    /// The first error that no client may get.
    pub failure: Mutex<Option<String>>,
}

impl Shared {
    pub(crate) fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn retried(&self) -> std::sync::MutexGuard<'_, BTreeMap<(usize, u16), u64>> {
        self.retried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs for `--seconds N` (20) with `--clients N` (8) from `--seed S`; `--snapshot-isolation ON` or
/// `OFF` says how, else it is the server's default.
pub fn run(words: &[String]) -> Outcome {
    let flags = &["--crash", "--release", "--mariadb"];
    let arguments = Arguments::new(words, flags, OPTIONS)?;
    let limit = Duration::from_secs(arguments.number("--seconds", 20)?);
    let clients = arguments.number("--clients", 8)?;
    let mut random = Random::new(arguments.number("--seed", 1)?);
    let crash = arguments.has("--crash");
    if crash && arguments.has("--mariadb") {
        return Err("--crash is for Gannet".into());
    }
    let mut subject = Subject::start(arguments.has("--mariadb"), arguments.has("--release"))?;
    schema::load(subject.server.port, random.next())?;
    verify(subject.server.port, None)?;
    conditions::find_what_is_planted(subject.server.port)?;
    let snapshot_isolation = arguments.value("--snapshot-isolation").map(str::to_string);
    let shared = Shared { snapshot_isolation, ..Shared::default() };
    let (begin, mut lives) = (Instant::now(), 0);
    while begin.elapsed() < limit {
        let rest = limit.saturating_sub(begin.elapsed());
        let life = if crash { Duration::from_millis(1000 + random.below(2000)) } else { rest };
        live(&mut subject.server, clients, random.next(), &shared, life, crash)?;
        if let Some(message) = shared.failure().take() {
            return Err(message);
        }
        lives += 1;
        if crash {
            subject.restart()?;
        }
        verify(subject.server.port, Some(&shared.ledger()))?;
    }
    subject.finish()?;
    report(&shared, lives, crash)
}

fn report(shared: &Shared, lives: u64, crash: bool) -> Outcome {
    let mut missing = Vec::new();
    for (kind, count) in KINDS.iter().zip(&shared.committed) {
        let count = count.load(Ordering::Relaxed);
        println!("{kind}: {count}");
        if count == 0 {
            missing.push(*kind);
        }
    }
    let unused = shared.unused_items.load(Ordering::Relaxed);
    println!("unused items rolled back: {unused}");
    for ((kind, code), count) in shared.retried().iter() {
        println!("{} begun anew after error {code}: {count}", KINDS[*kind]);
    }
    if !missing.is_empty() {
        return Err(format!("tpcc: no {} was committed", missing.join(", ")));
    }
    let killed = if crash { format!(", killed {lives} times") } else { String::new() };
    println!("tpcc: twelve conditions hold{killed}, nothing acknowledged is lost");
    Ok(())
}

/// The server under test.
struct Subject {
    server: Server,
    /// Gannet's binary and data directory; none for MariaDB.
    gannet: Option<(PathBuf, PathBuf)>,
}

impl Subject {
    fn start(mariadb: bool, release: bool) -> Result<Self, String> {
        let folder = servers::fresh_folder("tpcc")?;
        if mariadb {
            packages::install(&packages::SERVERS)?;
            let server = servers::start_mariadb(&folder, sqltest::port::free_port()?, &[])?;
            return Ok(Self { server, gannet: None });
        }
        let binary = servers::build_gannet(release)?;
        let datadir = folder.join("data");
        let server = start_gannet(&binary, &datadir)?;
        Ok(Self { server, gannet: Some((binary, datadir)) })
    }

    fn restart(&mut self) -> Outcome {
        let Some((binary, datadir)) = &self.gannet else { return Ok(()) };
        self.server = start_gannet(binary, datadir)?;
        Ok(())
    }

    /// CHECK TABLE, a clean stop, and the check of the files.
    fn finish(&mut self) -> Outcome {
        schema::check_tables(self.server.port)?;
        if !self.server.stop() {
            return Err("the server did not stop cleanly".into());
        }
        let Some((binary, datadir)) = &self.gannet else { return Ok(()) };
        let mut command = std::process::Command::new(binary);
        let output = command.args(["check", "--datadir"]).arg(datadir).output();
        let output = output.map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() { Ok(()) } else { Err(format!("gannet check: {said}")) }
    }
}

fn start_gannet(binary: &Path, datadir: &Path) -> Result<Server, String> {
    servers::start_gannet(binary, datadir, 0, &["--buffer-pool-size", "64M"])
}

pub(crate) fn connect(port: u16) -> Result<Connection, String> {
    let options = Options { database: "tpcc".into(), ..Options::local(port) };
    Connection::open(&options).map_err(|e| e.to_string())
}

/// The clients at work for `life`; the conditions are looked at meanwhile. Killed at the end or
/// left to finish their transactions.
fn live(
    server: &mut Server,
    clients: u64,
    seed: u64,
    shared: &Shared,
    life: Duration,
    kill: bool,
) -> Outcome {
    shared.stop.store(false, Ordering::Relaxed);
    let port = server.port;
    std::thread::scope(|scope| {
        for client in 0..clients {
            scope.spawn(move || {
                let outcome = transactions::work(port, client, seed, shared);
                // A killed server ends every client with an error.
                if let Err(message) = outcome.filter_killed(kill, shared) {
                    shared.failure().get_or_insert(message);
                    shared.stop.store(true, Ordering::Relaxed);
                }
            });
        }
        let begin = Instant::now();
        let mut looked = Ok(());
        while begin.elapsed() < life && !shared.stop.load(Ordering::Relaxed) {
            std::thread::sleep(
                life.saturating_sub(begin.elapsed()).min(Duration::from_millis(700)),
            );
            if begin.elapsed() < life && looked.is_ok() {
                looked = verify(port, None).map_err(|e| format!("while clients run: {e}"));
            }
        }
        if kill {
            server.kill();
        }
        shared.stop.store(true, Ordering::Relaxed);
        looked
    })
}

/// An error that a kill explains is none.
trait FilterKilled {
    fn filter_killed(self, kill: bool, shared: &Shared) -> Outcome;
}

impl FilterKilled for Result<(), terminal::Stop> {
    fn filter_killed(self, kill: bool, shared: &Shared) -> Outcome {
        match self {
            Ok(()) => Ok(()),
            Err(terminal::Stop::Lost(_)) if kill || shared.stop.load(Ordering::Relaxed) => Ok(()),
            Err(stop) => Err(format!("a client got: {stop}")),
        }
    }
}

/// The conditions in one snapshot, and the ledger if there is one.
fn verify(port: u16, ledger: Option<&Ledger>) -> Outcome {
    let mut connection = connect(port)?;
    let mut execute = |sql: &str| connection.execute(sql).map_err(|e| e.to_string());
    execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
    conditions::check(&mut execute)?;
    if let Some(ledger) = ledger {
        check_ledger(&mut execute, ledger)?;
    }
    execute("COMMIT").map(|_| ())
}

type Rows = Vec<Vec<sqltest::client::Field>>;

fn check_ledger(
    execute: &mut impl FnMut(&str) -> Result<Rows, String>,
    ledger: &Ledger,
) -> Outcome {
    let text = |field: &sqltest::client::Field| {
        String::from_utf8_lossy(field.as_deref().unwrap_or_default()).into_owned()
    };
    let number = |field| text(field).parse::<u64>().unwrap_or_default();
    let orders: BTreeSet<_> = execute("SELECT o_w_id, o_d_id, o_id FROM orders")?
        .iter()
        .map(|row| (number(&row[0]), number(&row[1]), number(&row[2])))
        .collect();
    if let Some(lost) = ledger.orders.difference(&orders).next() {
        return Err(format!("order {lost:?} was acknowledged and is lost"));
    }
    let mut payments = BTreeSet::new();
    // Texts of the load are letters and digits.
    for row in execute("SELECT h_data FROM history WHERE h_data LIKE '%-%'")? {
        let payment = text(&row[0]);
        if !ledger.payments_sent.contains(&payment) {
            return Err(format!("payment {payment} is there, but its commit was never sent"));
        }
        if !payments.insert(payment.clone()) {
            return Err(format!("payment {payment} is there twice"));
        }
    }
    match ledger.payments.difference(&payments).next() {
        Some(lost) => Err(format!("payment {lost} was acknowledged and is lost")),
        None => Ok(()),
    }
}
