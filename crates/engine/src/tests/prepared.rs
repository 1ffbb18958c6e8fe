//! Prepared transactions over several lives with crashes at any moment: nothing lost, nothing half.

use super::{Tested, isolation, options, row, tiny};
use crate::Engine;
use base::Random;
use engine_api::{Engine as _, Isolation, LockMode, LockWait, RowBuffer, Transaction};
use runtime::sim::{CrashKind, SimConfig, Simulation};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Branches, each with ten rows of its own.
const BRANCHES: i64 = 12;
/// Rows that other transactions change all the time.
const CHURN: std::ops::Range<i64> = 1000..1040;

/// What is known of a branch from the answers that were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Before,
    MaybePrepared,
    Prepared,
    MaybeCommitted,
    MaybeRolledBack,
    After,
}

#[derive(Default)]
struct Ledger {
    table: Option<Arc<engine_api::TableDefinition>>,
    branches: BTreeMap<i64, Option<Known>>,
    continued: u64,
    committed: u64,
}

type Shared = Arc<Mutex<Ledger>>;

fn set(ledger: &Shared, branch: i64, known: Known) {
    ledger.lock().unwrap().branches.insert(branch, Some(known));
}

/// What a branch does to its rows, with something undone in the middle.
fn change(t: &Tested, trx: &mut dyn Transaction, branch: i64) {
    let id = branch * 10;
    t.update(trx, id, |row| row.k = 1).unwrap().unwrap().unwrap();
    let savepoint = trx.savepoint();
    t.update(trx, id + 3, |row| row.k = 7).unwrap().unwrap().unwrap();
    t.insert(trx, &row(id + 6, 7, None, b"undone")).unwrap().unwrap();
    trx.rollback_to(savepoint).unwrap();
    t.update(trx, id, |row| row.c = b"longer than it was".to_vec()).unwrap().unwrap().unwrap();
    t.update(trx, id + 1, |row| row.u = None).unwrap().unwrap().unwrap();
    assert!(t.delete(trx, id + 2).unwrap());
    t.insert(trx, &row(id + 5, 5, Some(id + 5), b"new")).unwrap().unwrap();
}

fn rows_of(t: &Tested, trx: &mut dyn Transaction, branch: i64) -> Vec<(i64, i64, Option<i64>)> {
    let ids = (0..10).map(|at| branch * 10 + at);
    let rows = ids.filter_map(|id| t.get(trx, id, LockMode::None).unwrap());
    rows.map(|row| (row.id % 10, row.k, row.u.map(|u| u % 10))).collect()
}

const BEFORE: [(i64, i64, Option<i64>); 4] =
    [(0, 0, Some(0)), (1, 0, Some(1)), (2, 0, Some(2)), (3, 0, Some(3))];
const AFTER: [(i64, i64, Option<i64>); 4] =
    [(0, 1, Some(0)), (1, 0, None), (3, 0, Some(3)), (5, 5, Some(5))];

fn is_locked(engine: &Engine, t: &Tested, id: i64) -> bool {
    let mut trx = engine.begin(isolation(Isolation::ReadCommitted));
    let mut buffer = RowBuffer::default();
    let (lock, wait) = (LockMode::Exclusive, LockWait::NoWait);
    let read = t.table.get(&mut *trx, &t.key(id), lock, wait, &mut buffer);
    trx.rollback().unwrap();
    matches!(read, Err(engine_api::EngineError::LockNotAvailable))
}

/// Compares what the engine continues with what was answered.
fn verify(engine: &Engine, t: &Tested, ledger: &Shared) -> BTreeMap<i64, Box<dyn Transaction>> {
    let mut continued = BTreeMap::new();
    for prepared in engine.take_prepared() {
        let branch = String::from_utf8(prepared.name).unwrap().parse::<i64>().unwrap();
        let trees = &t.table.definition().indexes;
        assert!(prepared.trees.iter().all(|tree| trees.iter().any(|it| it.tree == *tree)));
        assert_eq!(prepared.trees.len(), 3);
        continued.insert(branch, prepared.transaction);
    }
    assert!(engine.take_prepared().is_empty(), "each is given once");
    for branch in 0..BRANCHES {
        let known = ledger.lock().unwrap().branches.get(&branch).copied().flatten();
        let is_continued = continued.contains_key(&branch);
        let mut reader = engine.begin(isolation(Isolation::ReadCommitted));
        let rows = rows_of(t, &mut *reader, branch);
        reader.rollback().unwrap();
        let told = format!("branch {branch} {known:?} continued {is_continued}: {rows:?}");
        match known {
            Some(Known::Prepared) => assert!(is_continued, "{told}"),
            Some(Known::Before | Known::After) | None => assert!(!is_continued, "{told}"),
            Some(Known::MaybePrepared | Known::MaybeCommitted | Known::MaybeRolledBack) => {}
        }
        let is_after = match known {
            None => continue,
            _ if is_continued => false,
            Some(Known::MaybeCommitted | Known::After) => true,
            _ => false,
        };
        assert_eq!(rows, if is_after { AFTER } else { BEFORE }, "{told}");
        for at in [0, 1, 2] {
            let id = branch * 10 + at;
            let exists = !is_after || at != 2;
            assert_eq!(is_locked(engine, t, id), is_continued && exists, "row {at}: {told}");
        }
        if is_continued {
            let mut dirty = engine.begin(isolation(Isolation::ReadUncommitted));
            assert_eq!(rows_of(t, &mut *dirty, branch), AFTER, "{told}");
            dirty.rollback().unwrap();
        }
        let settled = match (is_continued, is_after) {
            (true, _) => Known::Prepared,
            (false, true) => Known::After,
            (false, false) => Known::Before,
        };
        set(ledger, branch, settled);
        ledger.lock().unwrap().continued += u64::from(is_continued);
    }
    t.assert_sound();
    continued
}

fn churn(engine: &Engine, t: &Tested, random: &mut Random) {
    for _ in 0..1 + random.below(6) {
        let mut trx = engine.begin(isolation(Isolation::ReadCommitted));
        let id = CHURN.start + random.below((CHURN.end - CHURN.start) as u64) as i64;
        if t.update(&mut *trx, id, |row| row.k += 1).unwrap().is_none() {
            t.insert(&mut *trx, &row(id, 0, None, &[7; 300])).unwrap().unwrap();
        }
        trx.commit().unwrap();
    }
    if random.chance(0.3) {
        runtime::sleep(std::time::Duration::from_millis(30));
    }
}

fn setup(engine: &Engine, ledger: &Shared) -> Tested {
    let known = ledger.lock().unwrap().table.clone();
    if let Some(definition) = known {
        return Tested { table: engine.open_table(definition).unwrap() };
    }
    let t = Tested::create(engine);
    ledger.lock().unwrap().table = Some(t.table.definition().clone());
    t
}

fn life(seed: u64, ledger: &Shared) {
    let mut random = Random::new(seed);
    let (engine, summary) = Engine::open(tiny("/database", 2 << 20)).unwrap();
    let t = setup(&engine, ledger);
    let mut open = verify(&engine, &t, ledger);
    assert_eq!(summary.prepared, open.len() as u64);
    for _ in 0..40 {
        churn(&engine, &t, &mut random);
        let branch = random.below(BRANCHES as u64) as i64;
        if let Some(transaction) = open.remove(&branch) {
            if random.chance(0.4) {
                open.insert(branch, transaction);
            } else if random.chance(0.5) {
                set(ledger, branch, Known::MaybeCommitted);
                transaction.commit().unwrap();
                set(ledger, branch, Known::After);
                ledger.lock().unwrap().committed += 1;
            } else {
                set(ledger, branch, Known::MaybeRolledBack);
                transaction.rollback().unwrap();
                set(ledger, branch, Known::Before);
            }
            continue;
        }
        let known = ledger.lock().unwrap().branches.get(&branch).copied().flatten();
        if known.is_none() {
            let mut trx = engine.begin(options());
            for at in 0..4 {
                let id = branch * 10 + at;
                // It is there already if a crash came right behind the commit.
                let _duplicate = t.insert(&mut *trx, &row(id, 0, Some(id), b"old")).unwrap();
            }
            ledger.lock().unwrap().branches.insert(branch, None);
            trx.commit().unwrap();
            set(ledger, branch, Known::Before);
        }
        if known.is_none_or(|known| known == Known::Before) {
            let mut trx = engine.begin(options());
            change(&t, &mut *trx, branch);
            set(ledger, branch, Known::MaybePrepared);
            trx.prepare(branch.to_string().as_bytes()).unwrap();
            set(ledger, branch, Known::Prepared);
            open.insert(branch, trx);
        }
    }
    drop(open);
    engine.close().unwrap();
}

/// Five lives; the rows of a branch whose first insert was in doubt are left out of account.
fn run(seed: u64) -> (u64, u64) {
    let ledger = Shared::default();
    let mut random = Random::new(seed);
    let mut disk = None;
    for number in 0..6 {
        let config = SimConfig { steps_max: 4_000_000, ..SimConfig::new(seed * 10 + number) };
        let mut simulation = match disk.take() {
            Some(disk) => Simulation::with_disk(config, disk),
            None => Simulation::new(config),
        };
        if number < 5 && random.chance(0.8) {
            simulation.crash_after_steps(200 + random.below(4000));
        }
        let (shared, life_seed) = (ledger.clone(), seed * 1000 + number);
        let ended = simulation.run(move || life(life_seed, &shared));
        if let Err(end) = &ended {
            assert!(matches!(end, runtime::sim::SimEnd::Crashed), "seed {seed}: {end:?}");
            // What was never acknowledged to be there is made anew, if it is not.
            ledger.lock().unwrap().branches.retain(|_, known| known.is_some());
        }
        let kind = if random.chance(0.7) { CrashKind::Power } else { CrashKind::Process };
        disk = Some(simulation.crash(kind));
    }
    let ledger = ledger.lock().unwrap();
    (ledger.continued, ledger.committed)
}

fn seeds(usual: u64) -> u64 {
    std::env::var("GANNET_SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(usual)
}

#[test]
fn prepared_transactions_survive_crashes() {
    let (mut continued, mut committed) = (0, 0);
    for seed in 0..seeds(12) {
        let counts = run(seed);
        continued += counts.0;
        committed += counts.1;
    }
    println!("{continued} transactions continued after a start, {committed} committed later");
    assert!(continued > 20 && committed > 10);
}

/// Alone in its process, like `mutants_are_found`.
#[test]
#[ignore = "switches defects on for the whole process"]
fn prepared_mutants_are_found() {
    for mutant in ["prepared_forgotten", "log_of_active_recycled", "prepared_rollback_not_durable"]
    {
        base::mutant::switch(Some(mutant));
        let found = (0..100).find(|&seed| std::panic::catch_unwind(|| run(seed)).is_err());
        base::mutant::switch(None);
        println!("{mutant}: found by seed {found:?}");
        assert!(found.is_some(), "{mutant}");
    }
}
