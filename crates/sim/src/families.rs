//! Foreign keys under concurrency: clients insert, move and delete parents, children and
//! grandchildren at all isolation levels; the power fails. In every snapshot that anybody sees,
//! and after every restart, each child has its parent.

use crate::server_life::start_server;
use crate::wire_client::{ClientError, Row, WireClient};
use base::Random;
use runtime::WaitClass;
use runtime::net::Address;
use runtime::sim::{CrashKind, SimConfig, SimEnd, Simulation};
use runtime::sync::Semaphore;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const TABLES: [&str; 4] = [
    "CREATE TABLE p (id INT PRIMARY KEY, code INT, n INT, UNIQUE KEY code (code))",
    "CREATE TABLE c (id INT PRIMARY KEY, pid INT, code INT, \
     CONSTRAINT c_p FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE, \
     CONSTRAINT c_code FOREIGN KEY (code) REFERENCES p (code))",
    "CREATE TABLE g (id INT PRIMARY KEY, cid INT, \
     CONSTRAINT g_c FOREIGN KEY (cid) REFERENCES c (id) ON DELETE SET NULL ON UPDATE CASCADE)",
    "CREATE TABLE tree (id INT PRIMARY KEY, up INT, \
     CONSTRAINT up FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE)",
];

/// Each counts children whose parent is missing.
const ORPHANS: [&str; 4] = [
    "SELECT COUNT(*) FROM c LEFT JOIN p ON p.id = c.pid WHERE c.pid IS NOT NULL AND p.id IS NULL",
    "SELECT COUNT(*) FROM c LEFT JOIN p ON p.code = c.code \
     WHERE c.code IS NOT NULL AND p.code IS NULL",
    "SELECT COUNT(*) FROM g LEFT JOIN c ON c.id = g.cid WHERE g.cid IS NOT NULL AND c.id IS NULL",
    "SELECT COUNT(*) FROM tree t LEFT JOIN tree u ON u.id = t.up \
     WHERE t.up IS NOT NULL AND u.id IS NULL",
];

const LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
const KEYS: u64 = 6;
const CLIENTS: u64 = 6;

/// What the clients of a seed met.
#[derive(Default)]
struct Counts {
    done: AtomicU64,
    refused: AtomicU64,
    conflicts: AtomicU64,
    left: AtomicU64,
}

fn connect(address: &Address) -> Result<WireClient, ClientError> {
    let mut client = WireClient::connect(address, true)?;
    client.query("USE family")?;
    Ok(client)
}

fn sure(client: &mut WireClient, sql: &str) -> Vec<Row> {
    let answer = client.query(sql);
    answer.unwrap_or_else(|error| panic!("violation: {sql}: {error:?}")).rows
}

/// No child without its parent. A lost connection proves nothing.
fn look_for_orphans(client: &mut WireClient) -> Result<(), ClientError> {
    for sql in ORPHANS {
        let rows = client.query(sql)?.rows;
        assert_eq!(rows, [[Some("0".to_owned())]], "violation: orphans: {sql}");
    }
    Ok(())
}

fn statement(random: &mut Random) -> String {
    let (a, b) = (random.below(KEYS), random.below(KEYS));
    let child = random.below(4 * KEYS);
    match random.below(16) {
        0 | 1 => format!("INSERT INTO p VALUES ({a}, {b}, 0)"),
        2 => format!("REPLACE INTO p VALUES ({a}, {b}, 1)"),
        3 => format!("DELETE FROM p WHERE id = {a}"),
        4 => format!("DELETE FROM p WHERE code = {b}"),
        5 => format!("UPDATE p SET id = {a} WHERE id = {b}"),
        6 => format!("UPDATE p SET code = {a}, n = n + 1 WHERE code = {b}"),
        7 | 8 => format!("INSERT INTO c VALUES ({child}, {a}, {b})"),
        9 => format!("INSERT IGNORE INTO c VALUES ({child}, {a}, NULL), ({}, {b}, {a})", child + 1),
        10 => format!("UPDATE c SET pid = {a} WHERE id = {child}"),
        11 => format!("DELETE FROM c WHERE id < {a}"),
        12 => format!("INSERT INTO g VALUES ({child}, {})", random.below(4 * KEYS)),
        13 => format!("UPDATE c SET id = {child} WHERE pid = {a} LIMIT 1"),
        14 => format!("INSERT INTO tree VALUES ({child}, {a})"),
        _ if random.one_in(2) => format!("INSERT INTO tree VALUES ({a}, NULL)"),
        _ => format!("DELETE FROM tree WHERE id = {a}"),
    }
}

/// Transactions until the work is done or the connection gone.
fn work(client: &mut WireClient, counts: &Counts, random: &mut Random) -> Result<(), ClientError> {
    while counts.left.load(Ordering::Relaxed) > 0 {
        let level = LEVELS[random.index(LEVELS.len())];
        client.query(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))?;
        if random.one_in(4) {
            client.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
            client.query("BEGIN")?;
            look_for_orphans(client)?;
            client.query("COMMIT")?;
            continue;
        }
        client.query("BEGIN")?;
        for _ in 0..1 + random.below(4) {
            let _least = counts.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left.saturating_sub(1))
            });
            match client.query(&statement(random)) {
                Ok(_) => counts.done.fetch_add(1, Ordering::Relaxed),
                Err(ClientError::Server { code: 1451 | 1452 | 1062 | 1761, .. }) => {
                    counts.refused.fetch_add(1, Ordering::Relaxed)
                }
                Err(ClientError::Server { code: 1213 | 1205, .. }) => {
                    counts.conflicts.fetch_add(1, Ordering::Relaxed)
                }
                Err(error) => return Err(error),
            };
        }
        client.query(if random.one_in(4) { "ROLLBACK" } else { "COMMIT" })?;
    }
    Ok(())
}

/// Runs one seed; the numbers of changes that were made and that were refused.
pub fn run_seed(seed: u64, statements: u64) -> Result<(u64, u64), String> {
    let counts = Arc::new(Counts { left: AtomicU64::new(statements), ..Counts::default() });
    let mut simulation = Simulation::new(SimConfig::new(seed.wrapping_mul(1_000) + 55));
    let (shared, failed) = (counts.clone(), Arc::new(OnceLock::<String>::new()));
    let told = failed.clone();
    let crash_at = Random::new(seed ^ 0xFA_0002).below(statements);
    let ended = simulation.run(move || {
        let mut random = Random::new(seed ^ 0xFA_0001);
        let (address, _) = start_server(seed, random.fork(), Arc::default());
        let mut client = WireClient::connect(&address, true).expect("the server is ready");
        sure(&mut client, "CREATE DATABASE family");
        sure(&mut client, "USE family");
        TABLES.iter().for_each(|table| drop(sure(&mut client, table)));
        let finished = Arc::new(Semaphore::new(0, WaitClass::Join));
        for _ in 0..CLIENTS {
            let (address, counts, told) = (address.clone(), shared.clone(), told.clone());
            let (mut random, finished) = (random.fork(), finished.clone());
            drop(runtime::spawn("client", move || {
                let worked = connect(&address)
                    .and_then(|mut client| work(&mut client, &counts, &mut random));
                if let Err(error @ (ClientError::Server { .. } | ClientError::Broken(_))) = worked {
                    let _first = told.set(format!("{error:?}"));
                }
                finished.release(1);
            }));
        }
        while shared.left.load(Ordering::Relaxed) > crash_at {
            runtime::sleep(Duration::from_micros(300));
        }
        if seed.is_multiple_of(2) {
            drop(finished.acquire(CLIENTS, None));
            look_for_orphans(&mut client).expect("the server answers");
        }
        runtime::sim::crash_now();
    });
    if let Some(error) = failed.get() {
        return Err(format!("seed {seed}: {error}"));
    }
    match ended {
        Err(SimEnd::Crashed) => {}
        other => return Err(format!("seed {seed}: the power did not fail: {other:?}")),
    }
    let disk = simulation.crash(CrashKind::Power);
    let mut simulation = Simulation::with_disk(SimConfig::new(seed), disk);
    let ended = simulation.run(move || {
        let (address, _) = start_server(seed, Random::new(seed), Arc::default());
        let mut client = connect(&address).expect("the server is ready");
        look_for_orphans(&mut client).expect("the server answers");
        sure(&mut client, "SHUTDOWN");
    });
    ended.map_err(|end| format!("seed {seed}: {end}"))?;
    Ok((counts.done.load(Ordering::Relaxed), counts.refused.load(Ordering::Relaxed)))
}
