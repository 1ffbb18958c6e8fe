//! An answer over 64 KiB leaves in parts. While it is read, others commit without waiting for the
//! log (`innodb_flush_log_at_trx_commit = 0`); the power fails as soon as the client has a row of
//! such a commit. After the restart that version, or a later one, must be there.

use crate::server_life::start_server;
use crate::wire_client::{ClientError, Row, WireClient};
use base::Random;
use runtime::net::Address;
use runtime::sim::{CrashKind, SimConfig, SimEnd, Simulation};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const ROWS: u64 = 300;

/// What the client was shown: version by id.
type Shown = Arc<Mutex<Vec<(usize, u64)>>>;

fn sure(client: &mut WireClient, sql: &str) -> Vec<Row> {
    let answer = client.query(sql);
    answer.unwrap_or_else(|error| panic!("violation: {sql}: {error:?}")).rows
}

fn connect(address: &Address) -> WireClient {
    let client = WireClient::connect(address, true);
    client.unwrap_or_else(|error| panic!("violation: login: {error:?}"))
}

fn number(row: &Row, place: usize) -> u64 {
    let text = row.get(place).cloned().flatten();
    let parsed = text.and_then(|text| text.parse().ok());
    parsed.unwrap_or_else(|| panic!("violation: no number at {place} of {row:?}"))
}

fn set_up(client: &mut WireClient) {
    sure(client, "CREATE DATABASE big");
    sure(client, "USE big");
    sure(client, "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL, body VARCHAR(2000))");
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, 0, REPEAT('x', 1000))")).collect();
    sure(client, &format!("INSERT INTO t VALUES {}", rows.join(", ")));
    sure(client, "SET GLOBAL innodb_flush_log_at_trx_commit = 0");
}

/// Commits that wait for no sync, until the power fails.
fn change(address: &Address, mut random: Random) {
    let mut client = connect(address);
    sure(&mut client, "USE big");
    loop {
        let id = random.below(ROWS);
        sure(&mut client, &format!("UPDATE t SET v = v + 1 WHERE id = {id}"));
    }
}

/// Reads everything again and again; some time after a row with a new version came, in the middle
/// of an answer, the power fails.
fn read(address: &Address, shown: &Shown, mut random: Random) {
    let mut client = connect(address);
    sure(&mut client, "USE big");
    let mut rounds = 2 + random.below(5);
    loop {
        let mut news = 0;
        let answer = client.query_each("SELECT id, v, body FROM t", &mut |row| {
            let (id, version) = (number(&row, 0) as usize, number(&row, 1));
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            let is_new = shown.iter().all(|(other, seen)| *other != id || *seen < version);
            shown.push((id, version));
            drop(shown);
            news += u64::from(is_new && version > 0);
            if rounds == 0 && news > 0 {
                runtime::sim::crash_now();
            }
        });
        match answer {
            Ok(_) => rounds = rounds.saturating_sub(1),
            Err(ClientError::Lost) => return,
            Err(error) => panic!("violation: a large answer: {error:?}"),
        }
        runtime::sleep(Duration::from_micros(random.below(3_000)));
    }
}

/// Runs one seed; the number of versions above 0 that were shown, or the violation.
pub fn run_seed(seed: u64) -> Result<u64, String> {
    let shown = Shown::default();
    let config = SimConfig::new(seed.wrapping_mul(1_000) + 77);
    let mut simulation = Simulation::new(config);
    let seen = shown.clone();
    let ended = simulation.run(move || {
        let mut random = Random::new(seed ^ 0xB16_0000);
        let (address, _) = start_server(seed, random.fork(), Arc::default());
        set_up(&mut connect(&address));
        let (changes, other) = (random.fork(), address.clone());
        drop(runtime::spawn("changes", move || change(&other, changes)));
        read(&address, &seen, random);
    });
    match ended {
        Err(SimEnd::Crashed) => {}
        other => return Err(format!("seed {seed}: the power did not fail: {other:?}")),
    }
    let disk = simulation.crash(CrashKind::Power);
    let mut simulation = Simulation::with_disk(SimConfig::new(seed), disk);
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let ended = simulation.run(move || {
        let (address, _) = start_server(seed, Random::new(seed), Arc::default());
        let mut client = connect(&address);
        let found = sure(&mut client, "SELECT id, v FROM big.t");
        for (id, version) in shown.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let now = number(&found[*id], 1);
            assert!(now >= *version, "violation: shown version {version} of {id}, found {now}");
            counted.fetch_add(u64::from(*version > 0), Ordering::Relaxed);
        }
        sure(&mut client, "SHUTDOWN");
    });
    ended.map_err(|end| format!("seed {seed}: {end}"))?;
    Ok(count.load(Ordering::Relaxed))
}
