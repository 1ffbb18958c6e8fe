//! `cargo xtask crash`: kills the server at random moments under a load of bank transfers.
//!
//! Every client keeps a ledger of what the server acknowledged. After each restart:
//! 1. every acknowledged transfer is in the history table;
//! 2. every transfer in the history was sent by a client, and its commit was sent too;
//! 3. each balance is the opening balance plus what the history says (nothing partial);
//! 4. the sum of the balances is what it was;
//! 5. the secondary indexes and the clustered one tell the same story, and CHECK TABLE agrees.

use crate::process::{self, Server};
use crate::random::Random;
use crate::{Outcome, servers};
use sqltest::client::{Answer, Connection, Field, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const ACCOUNTS: u64 = 200;
const OPENING_BALANCE: i64 = 1000;
const CLIENTS: u64 = 8;

/// What the clients know.
#[derive(Default)]
struct Ledger {
    /// Transfers whose COMMIT was answered with OK.
    acknowledged: BTreeSet<u64>,
    /// Transfers whose COMMIT was sent.
    sent: BTreeSet<u64>,
}

/// Runs `--rounds N` (100) from `--seed S` with the release or (`--debug`) debug build.
pub fn run(arguments: &[String]) -> Outcome {
    let number = |name: &str, default: u64| {
        let position = arguments.iter().position(|a| a == name);
        position.and_then(|p| arguments.get(p + 1)?.parse().ok()).unwrap_or(default)
    };
    let (rounds, seed) = (number("--rounds", 100), number("--seed", 1));
    let binary = servers::build_gannet(!arguments.iter().any(|a| a == "--debug"))?;
    let folder = servers::fresh_folder("crash")?;
    let datadir = folder.join("data");
    let port = process::free_port()?;
    let mut random = Random::new(seed);
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let mut server = start(&binary, &datadir, port)?.0;
    create(port)?;
    let mut recoveries = Vec::new();
    for round in 0..rounds {
        let delay = Duration::from_millis(50 + random.below(900));
        load_until_killed(&mut server, round, random.next(), &ledger, delay);
        let (restarted, recovery) = start(&binary, &datadir, port)?;
        server = restarted;
        recoveries.push(recovery);
        let transfers = verify(port, &lock(&ledger)).map_err(|e| format!("round {round}: {e}"))?;
        println!(
            "round {round}: killed after {} ms, recovered in {} ms, {transfers} transfers, \
             {} acknowledged",
            delay.as_millis(),
            recovery.as_millis(),
            lock(&ledger).acknowledged.len()
        );
    }
    if !server.stop() {
        return Err("the server did not stop cleanly at the end".into());
    }
    check_offline(&binary, &datadir)?;
    recoveries.sort();
    println!(
        "crash: {rounds} rounds, nothing lost, nothing partial; recovery median {} ms, longest \
         {} ms",
        recoveries[recoveries.len() / 2].as_millis(),
        recoveries[recoveries.len() - 1].as_millis()
    );
    Ok(())
}

fn lock(ledger: &Mutex<Ledger>) -> std::sync::MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn start(binary: &Path, datadir: &Path, port: u16) -> Result<(Server, Duration), String> {
    let begin = Instant::now();
    let server = servers::start_gannet(binary, datadir, port, &["--buffer-pool-size", "64M"])?;
    Ok((server, begin.elapsed()))
}

fn check_offline(binary: &Path, datadir: &Path) -> Outcome {
    let output = std::process::Command::new(binary)
        .args(["check", "--datadir"])
        .arg(datadir)
        .output()
        .map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("gannet check: {}", String::from_utf8_lossy(&output.stdout)))
}

fn connect(port: u16) -> std::io::Result<Connection> {
    Connection::open(&Options { database: "bank".into(), ..Options::local(port) })
}

fn create(port: u16) -> Outcome {
    let mut connection = Connection::open(&Options::local(port)).map_err(|e| e.to_string())?;
    let mut statements = vec![
        "CREATE DATABASE bank".to_string(),
        "CREATE TABLE bank.account (id INT PRIMARY KEY, balance BIGINT NOT NULL, \
         note VARCHAR(100) NOT NULL, KEY balance_key (balance), KEY note_key (note))"
            .to_string(),
        "CREATE TABLE bank.history (id BIGINT UNSIGNED PRIMARY KEY, source INT NOT NULL, \
         target INT NOT NULL, amount BIGINT NOT NULL, KEY source_key (source), \
         KEY target_key (target))"
            .to_string(),
    ];
    for id in 0..ACCOUNTS {
        statements.push(format!(
            "INSERT INTO bank.account VALUES ({id}, {OPENING_BALANCE}, 'account {id}')"
        ));
    }
    for statement in statements {
        connection.execute(&statement).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Runs the clients, kills the server after `delay`, and waits for the clients to notice.
fn load_until_killed(
    server: &mut Server,
    round: u64,
    seed: u64,
    ledger: &Arc<Mutex<Ledger>>,
    delay: Duration,
) {
    let stop = Arc::new(AtomicBool::new(false));
    let port = server.port;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (ledger, stop) = (ledger.clone(), stop.clone());
            let first_id = (round * CLIENTS + client) << 32;
            std::thread::spawn(move || {
                let mut random = Random::new(seed ^ client);
                let mut id = first_id;
                // The connection ends with the server: any error ends this client.
                let _ = transfers(port, &mut random, &mut id, &ledger, &stop);
            })
        })
        .collect();
    std::thread::sleep(delay);
    server.kill();
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        let _ = client.join();
    }
}

fn transfers(
    port: u16,
    random: &mut Random,
    id: &mut u64,
    ledger: &Mutex<Ledger>,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    let mut connection = connect(port)?;
    while !stop.load(Ordering::Relaxed) {
        *id += 1;
        let (source, target) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
        let amount = random.below(50) as i64 + 1;
        let statements = [
            "BEGIN".to_string(),
            format!("UPDATE account SET balance = balance - {amount} WHERE id = {source}"),
            format!(
                "UPDATE account SET balance = balance + {amount}, note = 'transfer {id}' \
                 WHERE id = {target}"
            ),
            format!("INSERT INTO history VALUES ({id}, {source}, {target}, {amount})"),
        ];
        if !all_succeed(&mut connection, &statements)? {
            continue;
        }
        if random.below(20) == 0 {
            connection.execute("ROLLBACK")?;
            continue;
        }
        lock(ledger).sent.insert(*id);
        if let Answer::Done(_) = connection.query_one("COMMIT")? {
            lock(ledger).acknowledged.insert(*id);
        }
    }
    Ok(())
}

/// False when the server refused one with an error that asks for a retry; rolled back then.
fn all_succeed(connection: &mut Connection, statements: &[String]) -> std::io::Result<bool> {
    for statement in statements {
        if let Answer::Error(error) = connection.query_one(statement)? {
            if !matches!(error.code, 1213 | 1205) {
                return Err(std::io::Error::other(error.message));
            }
            connection.execute("ROLLBACK")?;
            return Ok(false);
        }
    }
    Ok(true)
}

fn number(field: &Field) -> Result<i64, String> {
    let text = field.as_deref().map(String::from_utf8_lossy).ok_or("NULL in the bank")?;
    text.parse().map_err(|_| format!("not a number: {text}"))
}

/// Checks the five promises; returns the number of transfers in the history.
fn verify(port: u16, ledger: &Ledger) -> Result<usize, String> {
    let mut connection = connect(port).map_err(|e| e.to_string())?;
    let mut rows = |sql: &str| connection.execute(sql).map_err(|e| e.to_string());
    let mut expected: BTreeMap<i64, i64> =
        (0..ACCOUNTS).map(|id| (id as i64, OPENING_BALANCE)).collect();
    let mut found = BTreeSet::new();
    for row in rows("SELECT id, source, target, amount FROM history")? {
        let (id, amount) = (number(&row[0])? as u64, number(&row[3])?);
        if !ledger.sent.contains(&id) {
            return Err(format!("transfer {id} is there, but its commit was never sent"));
        }
        found.insert(id);
        *expected.entry(number(&row[1])?).or_default() -= amount;
        *expected.entry(number(&row[2])?).or_default() += amount;
    }
    if let Some(lost) = ledger.acknowledged.difference(&found).next() {
        return Err(format!("transfer {lost} was acknowledged and is lost"));
    }
    let mut sum = 0;
    for row in rows("SELECT id, balance FROM account")? {
        let (id, balance) = (number(&row[0])?, number(&row[1])?);
        if expected.remove(&id) != Some(balance) {
            return Err(format!("account {id} has {balance}, the history says otherwise"));
        }
        sum += balance;
    }
    if !expected.is_empty() || sum != ACCOUNTS as i64 * OPENING_BALANCE {
        return Err(format!("{} accounts are missing, the sum is {sum}", expected.len()));
    }
    for (table, index) in [
        ("account", "balance_key"),
        ("account", "note_key"),
        ("history", "source_key"),
        ("history", "target_key"),
    ] {
        let from = |hint: &str| format!("SELECT COUNT(*), SUM(id) FROM {table} {hint}");
        let by_key = rows(&from("FORCE INDEX (PRIMARY)"))?;
        if by_key != rows(&from(&format!("FORCE INDEX ({index})")))? {
            return Err(format!("index {index} of {table} disagrees with the rows"));
        }
    }
    for row in rows("CHECK TABLE account, history")? {
        if row[3].as_deref() != Some(b"OK") {
            return Err(format!("CHECK TABLE: {row:?}"));
        }
    }
    Ok(found.len())
}
