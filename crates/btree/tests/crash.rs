//! The tree on the simulated disk: a pool far smaller than the data, checkpoints, the power failing
//! at random moments and again during recovery. After every crash the tree holds exactly the changes
//! whose records the log kept.

mod common;

use base::{Lsn, Random, TrxId};
use common::database::{Database, Shape};
use common::*;
use runtime::sim::{CrashKind, Disk, SimConfig, SimEnd, Simulation};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wal::{RecordBuilder, RecordKind};

const FIBERS: u64 = 8;

/// A change of one key: where its record ended, once known, and the entry after it.
#[derive(Clone, Debug)]
struct Done {
    end: Option<Lsn>,
    entry: Option<ModelEntry>,
}

/// What the clients know: all changes of each key in order, and up to where they were promised.
#[derive(Default)]
struct Ledger {
    changes: BTreeMap<Vec<u8>, Vec<Done>>,
    promised: Option<Lsn>,
}

type Shared = Arc<Mutex<Ledger>>;

impl Ledger {
    fn current(&self, key: &[u8]) -> Option<ModelEntry> {
        self.changes.get(key).and_then(|all| all.last()).and_then(|done| done.entry.clone())
    }

    /// Keeps of each key what the tree holds after a crash at `log_end`, having checked that it
    /// may hold it.
    fn settle(&mut self, log_end: Lsn, found: &Model) {
        assert!(self.promised.is_none_or(|promised| promised <= log_end), "a promise was broken");
        for (key, changes) in &mut self.changes {
            let kept = changes.iter().rposition(|done| done.end.is_some_and(|end| end <= log_end));
            let sure = kept.and_then(|at| changes[at].entry.clone());
            // A change under way when the power failed may have been logged or not.
            let open = changes.last().filter(|done| done.end.is_none());
            let entry = found.get(key).cloned();
            let fits = entry == sure || open.is_some_and(|open| open.entry == entry);
            assert!(fits, "key {key:?} after the crash at {log_end}: {} changes", changes.len());
            *changes = vec![Done { end: Some(Lsn::ZERO), entry }];
        }
        for key in found.keys() {
            assert!(self.changes.contains_key(key), "key {key:?} was never written");
        }
        self.promised = None;
    }
}

fn change_one(
    database: &Database,
    ledger: &Shared,
    fiber: u64,
    random: &mut Random,
    growing: bool,
) {
    let tree = &database.tree;
    let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
    let mut key = random_key(random, tree.max_key_bytes() - 1);
    key.push(fiber as u8);
    if random.chance(if growing { 0.4 } else { 0.9 }) {
        let known = ledger.lock().expect("ledger");
        let mut near = known.changes.range(key.clone()..).filter(|(key, changes)| {
            let alive = changes.last().is_some_and(|done| done.entry.is_some());
            key.last() == Some(&(fiber as u8)) && alive
        });
        key = near.next().map_or(key, |(near, _)| near.clone());
    }
    let removes = random.chance(if growing { 0.1 } else { 0.7 });
    let entry = (!removes).then(|| (0, random.next_u64(), random_payload(random, 40_000)));
    let existed = {
        let mut ledger = ledger.lock().expect("ledger");
        let existed = ledger.current(&key).is_some();
        let done = Done { end: None, entry: entry.clone() };
        ledger.changes.entry(key.clone()).or_default().push(done);
        existed
    };
    let modified = tree.modify(&key, &mut record, &mut |change| {
        assert_eq!(change.entry().is_some(), existed);
        match (&entry, existed) {
            (Some((flags, word, payload)), false) => change.insert(*flags, *word, payload, LOG),
            (Some((flags, word, payload)), true) => change.replace(*flags, *word, payload, LOG),
            (None, true) => change.remove(LOG),
            (None, false) => {}
        }
    });
    let range = modified.expect("modify").record();
    let end = range.map_or(Lsn::ZERO, |range| range.end);
    let mut known = ledger.lock().expect("ledger");
    known.changes.get_mut(&key).and_then(|all| all.last_mut()).expect("pushed above").end =
        Some(end);
    drop(known);
    assert!(get(tree, &key) == entry, "read of what was just written");
    if random.one_in(8) {
        database.wal.wait_durable(end).expect("durable");
        let mut known = ledger.lock().expect("ledger");
        known.promised = known.promised.max(Some(end));
    }
}

fn work(database: &Database, ledger: &Shared, seed: u64, steps: u64) {
    let mut fibers = Vec::new();
    for fiber in 0..FIBERS {
        let (database, ledger) = (database.clone(), ledger.clone());
        fibers.push(runtime::spawn("work", move || {
            let mut random = Random::new(seed.wrapping_mul(31) + fiber);
            for step in 0..steps {
                let growing = (step / (steps / 4).max(1)).is_multiple_of(2);
                change_one(&database, &ledger, fiber, &mut random, growing);
            }
        }));
    }
    let checkpoints = database.clone();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let checkpointer = runtime::spawn("checkpoint", move || {
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            runtime::sleep(Duration::from_millis(20));
            checkpoints.checkpoint();
        }
    });
    for fiber in fibers {
        fiber.join().expect("fiber");
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    checkpointer.join().expect("checkpoints");
}

/// Everything the tree holds, checked for structure and space on the way.
fn contents(database: &Database) -> Model {
    let verification = database.tree.verify().expect("verify");
    assert_eq!(verification.findings, []);
    assert_eq!(database.tree.store_pages(), verification.pages.len() as u64, "nothing leaks");
    use std::ops::Bound::Unbounded;
    scan(&database.tree, btree::Direction::Forward, Unbounded, Unbounded, 40).into_iter().collect()
}

/// One life of the computer: recover (or create), compare, work, crash. Returns the disk and
/// whether the planned work was finished.
fn live(seed: u64, round: u64, disk: Option<Disk>, ledger: &Shared, steps: u64) -> (Disk, bool) {
    let mut random = Random::new(seed * 1000 + round);
    let mut config = SimConfig::new(seed * 1000 + round);
    // Some crashes hit recovery, most the work, some nothing.
    let crash_at = *random.pick(&[200, 2_000, 20_000, 60_000, 100_000]);
    config.crash_at_step = Some(1 + random.below(crash_at));
    let mut simulation = match disk {
        Some(disk) => Simulation::with_disk(config, disk),
        None => Simulation::new(config),
    };
    let (shape, shared) = (Shape::of(seed), ledger.clone());
    let ended = simulation.run(move || {
        let database = match Database::recover(&shape) {
            None => {
                assert!(shared.lock().expect("ledger").changes.is_empty(), "nothing is lost");
                if runtime::fs::exists(std::path::Path::new("db")).expect("look") {
                    // Creation was cut short; a server would begin again in an empty directory.
                    return false;
                }
                Database::create(&shape)
            }
            Some((database, log_end)) => {
                let found = contents(&database);
                shared.lock().expect("ledger").settle(log_end, &found);
                base::probe!("test.recovered");
                database
            }
        };
        work(&database, &shared, seed * 1000 + round, steps);
        contents(&database);
        true
    });
    let finished = match ended {
        Ok(created) => created,
        Err(SimEnd::Crashed) => false,
        Err(end) => panic!("seed {seed} round {round}: {end}"),
    };
    let kind = *random.pick(&[CrashKind::Power, CrashKind::Power, CrashKind::Process]);
    (simulation.crash(kind), finished)
}

#[test]
fn crashes_lose_nothing_that_was_promised() {
    let seeds = seeds(3);
    let several = seeds.end - seeds.start > 1;
    for seed in seeds {
        let ledger = Shared::default();
        let mut disk = None;
        for round in 0..8 {
            let (left, _) = live(seed, round, disk.take(), &ledger, 150);
            let created = !ledger.lock().expect("ledger").changes.is_empty();
            disk = created.then_some(left);
        }
    }
    for name in ["test.recovered", "test.checkpoint", "test.redone", "pagestore_evicted"] {
        assert!(base::probe::count(name) > 0 || !several, "no {name}");
    }
    println!("{:?}", base::probe::counts());
}
