//! Crashes of the whole engine on the simulated disk: what was acknowledged stays, what was not is
//! there as a whole or not at all, the indexes agree, and a crash during recovery changes nothing
//! of that.

use super::*;
use base::Random;
use engine_api::EngineError;
use runtime::sim::{CrashKind, Disk, SimConfig, Simulation};
use std::collections::BTreeMap;
use std::sync::Mutex;

fn tiny_at_random(random: &mut Random) -> EngineOptions {
    let mut options = tiny("/database", 2 << 20);
    options.checkpoint_interval = Duration::from_millis(1 + random.below(50));
    options.purge_interval = Duration::from_millis(1 + random.below(20));
    options
}

/// What clients know: rows by id as of the last acknowledged commit, and changes whose commit was
/// asked for but not answered.
#[derive(Default)]
struct Ledger {
    table: Option<Arc<TableDefinition>>,
    acknowledged: BTreeMap<i64, Row>,
    /// Per fiber: what its unanswered commit would change.
    in_doubt: BTreeMap<u64, Vec<(i64, Option<Row>)>>,
    /// Highest value answered of each shared counter.
    seen: BTreeMap<i64, i64>,
    /// Highest AUTO_INCREMENT value drawn before a commit, by table.
    drawn: BTreeMap<TableId, u64>,
    commits: u64,
}

type Shared = Arc<Mutex<Ledger>>;

/// One transaction of a fiber on ids of its own, so that the ledger knows the outcome.
fn transact(engine: &Engine, t: &Tested, ledger: &Shared, fiber: u64, random: &mut Random) {
    let mut trx = engine.begin(options());
    let mut changes: BTreeMap<i64, Option<Row>> = BTreeMap::new();
    let result: engine_api::Result<()> = (0..random.below(6) + 1).try_for_each(|_| {
        let id = (fiber * 100 + random.below(25)) as i64;
        let size = if random.chance(0.05) { 9000 } else { random.below(400) as usize };
        let new = row(id, random.below(8) as i64, random.chance(0.5).then_some(id), &vec![7; size]);
        let point = trx.begin_statement();
        let before = changes.clone();
        if random.chance(0.3) {
            if t.delete(&mut *trx, id)? {
                changes.insert(id, None);
            }
        } else if t.update(&mut *trx, id, |row| *row = new.clone())?.is_some() {
            changes.insert(id, Some(new));
        } else {
            t.insert(&mut *trx, &new)?.expect("ids and unique values of this fiber");
            changes.insert(id, Some(new));
        }
        if random.chance(0.1) {
            trx.rollback_to(point)?;
            changes = before;
        }
        if random.chance(0.2) {
            runtime::sleep(Duration::from_micros(random.below(300)));
        }
        Ok(())
    });
    match result {
        Ok(()) => {}
        // Two that looked for rows in one gap keep each other from inserting there.
        Err(EngineError::Failed(_) | EngineError::Deadlock) => return,
        Err(error) => panic!("{error}"),
    }
    if random.chance(0.15) {
        trx.rollback().unwrap();
        return;
    }
    let changes: Vec<_> = changes.into_iter().collect();
    ledger.lock().unwrap().in_doubt.insert(fiber, changes.clone());
    if trx.commit().is_err() {
        return;
    }
    let mut ledger = ledger.lock().unwrap();
    ledger.in_doubt.remove(&fiber);
    ledger.commits += 1;
    apply(&mut ledger.acknowledged, changes);
}

fn apply(rows: &mut BTreeMap<i64, Row>, changes: Vec<(i64, Option<Row>)>) {
    for (id, row) in changes {
        match row {
            Some(row) => drop(rows.insert(id, row)),
            None => drop(rows.remove(&id)),
        }
    }
}

/// Rows that all fibers count up: first id and how many.
const COUNTERS: std::ops::Range<i64> = 9000..9150;

/// Counts one of the shared rows up, or reads it. What was answered must be there after a crash,
/// whoever wrote it and however late its own answer.
fn count(engine: &Engine, t: &Tested, ledger: &Shared, random: &mut Random, lax: bool) {
    // Few rows are fought for; many rows are seldom written and soon frozen.
    let id = COUNTERS.start + random.below(if lax { 150 } else { 3 }) as i64;
    let unanswered = lax || random.chance(0.5);
    let flush_policy = if unanswered { FlushPolicy::EverySecond } else { FlushPolicy::Synchronous };
    let mut options = isolation(Isolation::ReadCommitted);
    options.flush_policy = flush_policy;
    let mut trx = engine.begin(options);
    trx.begin_statement();
    let mut seen = 0;
    if random.chance(if lax { 0.97 } else { 0.6 }) {
        let done = t.update(&mut *trx, id, |row| {
            row.k += 1;
            seen = row.k;
        });
        match done {
            Ok(Some(Ok(()))) => {}
            Err(EngineError::Deadlock) => return,
            other => panic!("{other:?}"),
        }
        if random.chance(0.3) {
            runtime::sleep(Duration::from_micros(random.below(100)));
        }
        trx.commit().unwrap();
        if unanswered {
            return;
        }
    } else {
        let row = t.get(&mut *trx, id, LockMode::None).unwrap();
        seen = row.expect("counters are never deleted").k;
        trx.wait_read_durable().unwrap();
    }
    let mut ledger = ledger.lock().unwrap();
    let highest = ledger.seen.entry(id).or_default();
    *highest = seen.max(*highest);
}

/// Creates, fills, indexes and drops tables of its own, and draws AUTO_INCREMENT values.
fn change_definitions(engine: &Engine, ledger: &Shared, random: &mut Random) {
    let mut definition = definition();
    definition.indexes.truncate(1);
    let mut trx = engine.begin(options());
    engine.create_table(&mut *trx, &mut definition).unwrap();
    if random.chance(0.2) {
        return trx.rollback().unwrap();
    }
    trx.commit().unwrap();
    let t = Tested { table: engine.open_table(Arc::new(definition.clone())).unwrap() };
    let mut trx = engine.begin(options());
    for id in 0..random.below(120) as i64 {
        t.insert(&mut *trx, &row(id, id % 9, None, b"row")).unwrap().unwrap();
    }
    trx.commit().unwrap();
    let drawn = t.table.reserve_auto_increment(1 + random.below(3), 1, 1).unwrap();
    let mut trx = engine.begin(options());
    definition.indexes.push(index("k", false, &[1]));
    engine.build_index(&mut *trx, &mut definition, 1).unwrap().unwrap();
    if random.chance(0.3) {
        return trx.rollback().unwrap();
    }
    trx.commit().unwrap();
    let t = Tested { table: engine.open_table(Arc::new(definition.clone())).unwrap() };
    t.assert_sound();
    {
        let mut ledger = ledger.lock().unwrap();
        let highest = ledger.drawn.entry(definition.id).or_default();
        assert!(drawn > *highest, "a value is given once");
        *highest = drawn;
    }
    if random.chance(0.7) {
        let mut trx = engine.begin(options());
        engine.drop_table(&mut *trx, &definition).unwrap();
        trx.commit().unwrap();
    }
}

/// Every table that the engine knows is sound, every tree belongs to one of them, and counters
/// have not gone back.
fn verify_definitions(engine: &Engine, ledger: &Shared) {
    let mut trees = Vec::new();
    for definition in crate::dictionary::shapes(&engine.core, false).unwrap() {
        trees.extend(definition.indexes.iter().map(|index| index.tree));
        let drawn = ledger.lock().unwrap().drawn.get(&definition.id).copied().unwrap_or(0);
        let t = Tested { table: engine.open_table(Arc::new(definition)).unwrap() };
        t.assert_sound();
        assert!(t.table.next_auto_increment() > drawn, "a counter went back");
    }
    trees.sort();
    assert_eq!(engine.core.tree_ids(), trees);
    while engine.core.drops.length() > 0 {
        runtime::sleep(std::time::Duration::from_millis(1));
    }
    let space = engine.core.store.space();
    let owned: Vec<_> = space.trees().into_iter().filter(|tree| tree.get() >= 16).collect();
    assert_eq!(owned, trees, "no page belongs to a tree that nobody names");
}

/// Every version word that the last run left is recognised as old (amendment 15).
fn verify_words(engine: &Engine) {
    let first = engine.core.txn.undo().first_offset();
    let mut batch = btree::Batch::new();
    for tree in engine.core.tree_ids() {
        let mut cursor = engine.core.tree(tree).unwrap().cursor(btree::Direction::Forward);
        cursor.leave_values();
        while cursor.next_batch(&mut batch, 1000, 1 << 20).unwrap() {
            for item in batch.iter() {
                let offset = txn::undo::word_offset(item.entry.word);
                assert!(
                    offset < first,
                    "word {offset} of a former run, this one begins at {first}"
                );
            }
        }
    }
}

/// Compares the database with the ledger and settles what was in doubt.
fn verify(engine: &Engine, t: &Tested, ledger: &Shared) {
    t.assert_sound();
    let mut trx = engine.begin(options());
    let mut found: BTreeMap<i64, Row> =
        t.all(&mut *trx).into_iter().map(|row| (row.id, row)).collect();
    trx.commit().unwrap();
    let mut ledger = ledger.lock().unwrap();
    for (id, row) in found.split_off(&COUNTERS.start) {
        let answered = ledger.seen.get(&id).copied().unwrap_or(0);
        assert!(row.k >= answered, "counter {id} is {}, {answered} was answered", row.k);
    }
    for (fiber, changes) in std::mem::take(&mut ledger.in_doubt) {
        let mut with = ledger.acknowledged.clone();
        apply(&mut with, changes);
        let mine = |rows: &BTreeMap<i64, Row>| -> Vec<Row> {
            let first = fiber as i64 * 100;
            rows.range(first..first + 100).map(|(_, row)| row.clone()).collect()
        };
        if mine(&with) == mine(&found) {
            ledger.acknowledged = with;
        } else {
            assert_eq!(mine(&ledger.acknowledged), mine(&found), "half a commit of {fiber}");
        }
    }
    assert_eq!(ledger.acknowledged, found);
}

/// Opens, verifies, works; ends by the crash that the simulation has planned, or in order.
fn life(random_seed: u64, ledger: &Shared, rounds: u64) {
    let mut random = Random::new(random_seed);
    // Now and then nobody waits for the log but those who answer what they have read, and undo
    // is forgotten as early as can be.
    let lax = random.chance(0.25);
    let mut options_of_life = tiny_at_random(&mut random);
    if lax {
        options_of_life.checkpoint_interval = Duration::from_secs(10);
        options_of_life.purge_interval = Duration::from_micros(200);
    }
    let (engine, summary) = Engine::open(options_of_life).unwrap();
    verify_words(&engine);
    if summary.losers > 0 {
        base::probe!("engine.test.losers");
    }
    let definition = ledger.lock().unwrap().table.clone();
    let t = match definition {
        Some(definition) => Tested { table: engine.open_table(definition).unwrap() },
        None => {
            let t = Tested::create(&*engine);
            let mut trx = engine.begin(options());
            for id in COUNTERS {
                t.insert(&mut *trx, &row(id, 0, None, b"counter")).unwrap().unwrap();
            }
            trx.commit().unwrap();
            ledger.lock().unwrap().table = Some(t.table.definition().clone());
            t
        }
    };
    verify(&engine, &t, ledger);
    verify_definitions(&engine, ledger);
    let rounds = if lax { rounds * 16 } else { rounds };
    let fibers: Vec<_> = (0..8)
        .map(|fiber| {
            let (engine, t, ledger) = (engine.clone(), t.clone(), ledger.clone());
            let mut random = Random::new(random_seed * 100 + fiber);
            runtime::spawn("client", move || {
                for _ in 0..rounds {
                    if !lax {
                        transact(&engine, &t, &ledger, fiber, &mut random);
                    }
                    count(&engine, &t, &ledger, &mut random, lax);
                }
            })
        })
        .collect();
    let (changer, changed_ledger) = (engine.clone(), ledger.clone());
    let changing = runtime::spawn("definitions", move || {
        for _ in 0..if lax { 0 } else { 4 } {
            change_definitions(&changer, &changed_ledger, &mut random);
        }
    });
    fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
    changing.join().unwrap();
    verify(&engine, &t, ledger);
    engine.close().unwrap();
}

/// Several lives of one database with crashes between and during them.
fn run(seed: u64) -> u64 {
    let ledger = Shared::default();
    let mut random = Random::new(seed);
    let mut disk: Option<Disk> = None;
    for number in 0..5 {
        let config = SimConfig { steps_max: 2_000_000, ..SimConfig::new(seed * 10 + number) };
        let mut simulation = match disk.take() {
            Some(disk) => Simulation::with_disk(config, disk),
            None => Simulation::new(config),
        };
        if number < 4 {
            let early = random.chance(0.3);
            let steps = if early { 10 + random.below(300) } else { 300 + random.below(2500) };
            simulation.crash_after_steps(steps);
        }
        let (ledger, life_seed) = (ledger.clone(), seed * 1000 + number);
        let result = simulation.run(move || life(life_seed, &ledger, 25));
        if let Err(end) = &result {
            assert!(matches!(end, runtime::sim::SimEnd::Crashed), "seed {seed}: {end:?}");
        } else if number < 4 {
            base::probe!("engine.test.lived_to_the_end");
        }
        let kind = if random.chance(0.7) { CrashKind::Power } else { CrashKind::Process };
        disk = Some(simulation.crash(kind));
    }
    let disk = disk.expect("every life leaves a disk");
    check_offline(seed, disk);
    ledger.lock().unwrap().commits
}

/// The directory that the last crash left is sound, and a changed byte in it is found.
fn check_offline(seed: u64, disk: Disk) {
    let mut simulation = Simulation::with_disk(SimConfig::new(seed), disk);
    let checked = simulation.run(move || {
        let datadir = std::path::Path::new("/database");
        let regions = crate::offline::regions(datadir).unwrap();
        let mut random = Random::new(seed);
        for _ in 0..3 {
            let region = &regions[random.below(regions.len() as u64) as usize];
            let at = region.offset + random.below(region.length);
            let path = datadir.join(&region.file);
            flip(&path, at);
            let report = crate::offline::check(datadir, 2 << 20).unwrap();
            assert!(!report.findings.is_empty(), "a flipped byte at {at} of {region:?}");
            flip(&path, at);
        }
        let report = crate::offline::check(datadir, 2 << 20).unwrap();
        assert_eq!(report.findings, Vec::new());
        assert!(report.tables > 0 || report.pages < 10, "{} pages", report.pages);
        let blobs: Vec<_> = regions_of(datadir, "blob");
        let region = &blobs[random.below(blobs.len() as u64) as usize];
        flip(&datadir.join(&region.file), region.offset + random.below(region.length));
        read_everything(datadir);
    });
    checked.unwrap_or_else(|end| panic!("seed {seed}: check: {end:?}"));
}

fn regions_of(datadir: &std::path::Path, kind: &str) -> Vec<crate::offline::CheckRegion> {
    let regions = crate::offline::regions(datadir).unwrap();
    regions.into_iter().filter(|region| region.kind == kind).collect()
}

fn flip(path: &std::path::Path, at: u64) {
    let file = runtime::file::OpenOptions::new().open(path).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, at).unwrap();
    byte[0] ^= 0x10;
    file.write_at(&byte, at).unwrap();
}

/// With one page copy damaged everything else is served, and those who need it are told.
fn read_everything(datadir: &std::path::Path) {
    let (engine, _) = match Engine::open(tiny(datadir, 2 << 20)) {
        Ok(opened) => opened,
        // Without the dictionary nothing can be found.
        Err(crate::OpenError::Engine(EngineError::Corrupt { object, .. })) => {
            return assert_eq!(object, "dictionary");
        }
        Err(error) => panic!("{error}"),
    };
    for definition in crate::dictionary::shapes(&engine.core, false).unwrap() {
        let indexes = definition.indexes.len();
        let t = Tested { table: engine.open_table(Arc::new(definition)).unwrap() };
        for index in 0..indexes {
            let mut trx = engine.begin(options());
            match t.scan(&mut *trx, index, LockMode::None, ScanDirection::Forward) {
                Ok(_) => {}
                Err(EngineError::Corrupt { .. }) => base::probe!("engine.test.corrupt_told"),
                Err(error) => panic!("{error}"),
            }
            trx.commit().unwrap();
        }
    }
    engine.close().unwrap();
}

#[test]
fn acknowledged_commits_survive_crashes() {
    let seeds = std::env::var("GANNET_SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(20);
    let first = std::env::var("GANNET_SIM_FIRST").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
    let commits: u64 = (first..first + seeds).map(run).sum();
    let losers = base::probe::count("engine.test.losers");
    println!("{seeds} seeds, 5 lives each: {commits} commits, {losers} starts with losers");
    println!("{:?}", base::probe::counts());
    assert!(commits > seeds * 20 && losers > 0);
}

/// A long transaction, with a part of it undone before, is open when the power fails; the next
/// starts are cut off too, at any moment. It is undone in many windows of the log.
#[test]
fn a_long_transaction_is_undone_over_several_starts() {
    const ROWS: i64 = 1500;
    let windows = base::probe::count("engine.undo.window");
    for seed in 0..6 {
        let table: Arc<Mutex<Option<Arc<TableDefinition>>>> = Arc::default();
        let mut simulation = Simulation::new(SimConfig::new(seed));
        let made = table.clone();
        let first = simulation.run(move || {
            let (engine, _) = Engine::open(tiny("/database", 2 << 20)).unwrap();
            let t = Tested::create(&*engine);
            *made.lock().unwrap() = Some(t.table.definition().clone());
            let mut trx = engine.begin(options());
            for id in 0..ROWS {
                t.insert(&mut *trx, &row(id, 0, Some(id), b"before")).unwrap().unwrap();
            }
            trx.commit().unwrap();
            let mut long = engine.begin(options());
            for id in 0..ROWS {
                let point = long.savepoint();
                t.update(&mut *long, id, |row| row.k = 1).unwrap().unwrap().unwrap();
                if id % 5 == 0 {
                    long.rollback_to(point).unwrap();
                    t.delete(&mut *long, id).unwrap();
                }
            }
            t.insert(&mut *long, &row(ROWS, 1, None, b"new")).unwrap().unwrap();
            // Another commit makes the log durable.
            let mut other = engine.begin(options());
            t.insert(&mut *other, &row(ROWS + 1, 0, None, b"other")).unwrap().unwrap();
            other.commit().unwrap();
            runtime::sim::crash_now();
        });
        assert!(matches!(first, Err(runtime::sim::SimEnd::Crashed)), "{first:?}");
        let mut disk = simulation.crash(CrashKind::Power);
        for start in 0..3 {
            let mut simulation = Simulation::with_disk(SimConfig::new(seed + 100 * start), disk);
            if start < 2 {
                simulation.crash_after_steps(400 + 900 * start + 77 * seed);
            }
            let known = table.clone();
            let ended = simulation.run(move || {
                let (engine, summary) = Engine::open(tiny("/database", 2 << 20)).unwrap();
                assert!(start == 2 || summary.losers == 1);
                let definition = known.lock().unwrap().clone().unwrap();
                let t = Tested { table: engine.open_table(definition).unwrap() };
                t.assert_sound();
                let mut trx = engine.begin(options());
                let rows = t.all(&mut *trx);
                trx.commit().unwrap();
                assert_eq!(rows.len() as i64, ROWS + 1);
                assert!(rows.iter().all(|row| row.k == 0));
                engine.close().unwrap();
            });
            if let Err(end) = &ended {
                assert!(start < 2 && matches!(end, runtime::sim::SimEnd::Crashed), "{end:?}");
            }
            disk = simulation.crash(CrashKind::Power);
        }
    }
    assert!(base::probe::count("engine.undo.window") > windows + 30);
}

/// Runs lives with one defect switched on until one fails; returns the seed.
fn seed_that_finds(mutant: &'static str, run: fn(u64)) -> Option<u64> {
    base::mutant::switch(Some(mutant));
    let found = (0..300).find(|&seed| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let result = std::panic::catch_unwind(|| run(seed));
        std::panic::set_hook(hook);
        result.is_err()
    });
    base::mutant::switch(None);
    found
}

/// Alone in its process: `cargo test -p gannet-engine mutants -- --ignored --nocapture`.
#[test]
#[ignore = "switches defects on for the whole process"]
fn mutants_are_found() {
    let crashes: fn(u64) = |seed| {
        run(seed);
    };
    let transfers: fn(u64) = |seed| super::bank::simulated(seed);
    let mutants = [
        "checkpoint_before_data_sync",
        "redo_skips_record",
        "undo_skips_loser",
        "release_before_commit_record",
        "freeze_above_durable",
        "undo_base_forgotten",
        "log_of_active_recycled",
        "redo_of_freed_pages",
    ];
    let mutants = mutants.into_iter().map(|mutant| (mutant, crashes));
    let mutants = mutants.chain([("publish_without_latch", transfers)]);
    let only = std::env::var("GANNET_MUTANT").ok();
    for (mutant, run) in mutants {
        if only.as_ref().is_some_and(|only| only != mutant) {
            continue;
        }
        let seed = seed_that_finds(mutant, run);
        println!("{mutant}: found by seed {seed:?}");
        assert!(seed.is_some(), "{mutant}");
    }
}
