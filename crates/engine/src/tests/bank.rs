//! Transfers between accounts by many fibers: the sum never changes, for any reader.

use super::*;
use base::Random;
use engine_api::EngineError;
use std::sync::atomic::{AtomicU64, Ordering};

const ACCOUNTS: i64 = 20;

#[derive(Default)]
struct Tally {
    committed: AtomicU64,
    refused: AtomicU64,
    rolled_back: AtomicU64,
    read: AtomicU64,
}

fn transfer(t: &Tested, engine: &Engine, random: &mut Random, tally: &Tally) {
    let levels = [Isolation::RepeatableRead, Isolation::ReadCommitted, Isolation::Serializable];
    let mut trx = engine.begin(isolation(levels[random.below(3) as usize]));
    trx.begin_statement();
    let (from, to) = (random.below(ACCOUNTS as u64) as i64, random.below(ACCOUNTS as u64) as i64);
    let amount = random.below(10) as i64;
    let mut step = |trx: &mut dyn Transaction, id: i64, amount: i64| {
        let point = trx.begin_statement();
        runtime::sleep(Duration::from_micros(random.below(200)));
        t.update(trx, id, |row| row.k += amount)?;
        if random_tail(id, amount) {
            trx.rollback_to(point)?;
            return t.update(trx, id, |row| row.k += amount).map(|_| ());
        }
        Ok(())
    };
    let result = step(&mut *trx, from, -amount).and_then(|()| step(&mut *trx, to, amount));
    match result {
        Ok(()) if random.chance(0.1) => {
            trx.rollback().unwrap();
            tally.rolled_back.fetch_add(1, Ordering::Relaxed);
        }
        Ok(()) => {
            trx.commit().unwrap();
            tally.committed.fetch_add(1, Ordering::Relaxed);
        }
        Err(EngineError::Deadlock | EngineError::WriteConflict) => {
            trx.rollback().unwrap();
            tally.refused.fetch_add(1, Ordering::Relaxed);
        }
        Err(error) => panic!("{error}"),
    }
}

/// Some steps are undone and made again, by a rule that needs no random numbers.
fn random_tail(id: i64, amount: i64) -> bool {
    (id + amount) % 3 == 0
}

fn churn(t: &Tested, engine: &Engine, random: &mut Random) {
    let id = 1000 + random.below(30) as i64;
    let mut trx = engine.begin(isolation(Isolation::ReadCommitted));
    let size = if random.chance(0.1) { 12_000 } else { random.below(300) as usize };
    let unique = random.chance(0.5).then(|| random.below(20) as i64);
    let result = if random.chance(0.5) {
        t.insert(&mut *trx, &row(id, 0, unique, &vec![1; size])).map(|_| ())
    } else {
        t.delete(&mut *trx, id).map(|_| ())
    };
    match result {
        Ok(()) if random.chance(0.8) => trx.commit().unwrap(),
        Ok(()) | Err(EngineError::Deadlock) => trx.rollback().unwrap(),
        Err(error) => panic!("{error}"),
    }
}

fn check_sum(t: &Tested, engine: &Engine, random: &mut Random) {
    let mut trx = engine.begin(options());
    let index = random.below(3) as usize;
    let direction =
        if random.chance(0.5) { ScanDirection::Forward } else { ScanDirection::Backward };
    let rows = t.scan(&mut *trx, index, LockMode::None, direction).unwrap();
    let accounts: Vec<_> = rows.iter().filter(|row| row.id < 1000).collect();
    assert_eq!(accounts.len() as i64, ACCOUNTS);
    assert_eq!(accounts.iter().map(|row| row.k).sum::<i64>(), ACCOUNTS * 100);
    runtime::sleep(Duration::from_micros(random.below(500)));
    let mut again = t.scan(&mut *trx, index, LockMode::None, direction).unwrap();
    assert_eq!(rows, again, "one snapshot, one answer");
    again.sort();
    let mut first = t.all(&mut *trx);
    first.sort();
    assert_eq!(first, again, "all indexes tell the same");
    trx.commit().unwrap();
}

/// Runs the whole load in the current runtime.
fn run(engine: Arc<Engine>, seed: u64, fibers: u64, rounds: u64) -> Arc<Tally> {
    let t = Tested::create(&*engine);
    let mut trx = engine.begin(options());
    for id in 0..ACCOUNTS {
        t.insert(&mut *trx, &row(id, 100, Some(1000 + id), b"account")).unwrap().unwrap();
    }
    trx.commit().unwrap();
    let tally = Arc::new(Tally::default());
    let handles: Vec<_> = (0..fibers)
        .map(|fiber| {
            let (engine, t, tally) = (engine.clone(), t.clone(), tally.clone());
            runtime::spawn_on(fiber as usize, "client", move || {
                let mut random = Random::new(seed << 8 | fiber);
                for _ in 0..rounds {
                    match random.below(10) {
                        0 => {
                            check_sum(&t, &engine, &mut random);
                            tally.read.fetch_add(1, Ordering::Relaxed);
                        }
                        1..=3 => churn(&t, &engine, &mut random),
                        _ => transfer(&t, &engine, &mut random, &tally),
                    }
                }
            })
        })
        .collect();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    check_sum(&t, &engine, &mut Random::new(seed));
    t.assert_sound();
    assert!(engine.core.txn.locks().is_empty());
    assert_eq!(engine.core.txn.active_writers(), 0);
    let limit = 64 * 4096 * 4;
    let deadline = runtime::now() + Duration::from_secs(60);
    let is_left = || engine.core.txn.purge_length() > 0;
    while (is_left() || engine.core.txn.undo().used_bytes() >= limit) && runtime::now() < deadline {
        runtime::sleep(Duration::from_millis(10));
    }
    assert!(!is_left(), "everything was purged");
    t.assert_sound();
    assert!(engine.core.txn.undo().used_bytes() < limit, "undo is given back");
    engine.close().unwrap();
    tally
}

/// One seed; panics when a reader sees something that cannot be.
pub(super) fn simulated(seed: u64) {
    simulate(seed, move || run(new_engine(), seed, 10, 40));
}

#[test]
fn simulated_transfers_keep_the_sum() {
    let seeds = std::env::var("GANNET_SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(12);
    let (mut committed, mut refused, mut read) = (0, 0, 0);
    for seed in 0..seeds {
        let tally = simulate(seed, move || run(new_engine(), seed, 10, 40));
        committed += tally.committed.load(Ordering::Relaxed);
        refused += tally.refused.load(Ordering::Relaxed);
        read += tally.read.load(Ordering::Relaxed);
    }
    println!("{seeds} seeds: {committed} transfers, {refused} refused, {read} sums read");
    assert!(committed > 0 && refused > 0 && read > 0);
}

#[test]
fn transfers_on_real_workers_keep_the_sum() {
    let directory = std::env::temp_dir().join(format!("gannet-bank-{}", std::process::id()));
    let runtime = runtime::Runtime::start(runtime::Config { workers: 4, ..Default::default() });
    let runtime = runtime.expect("workers start");
    let place = directory.clone();
    let tally = runtime.run(move || {
        let (engine, _) = Engine::open(tiny(place, 4 << 20)).unwrap();
        run(engine, 1, 16, 100)
    });
    runtime.shutdown();
    std::fs::remove_dir_all(&directory).unwrap();
    let committed = tally.committed.load(Ordering::Relaxed);
    let refused = tally.refused.load(Ordering::Relaxed);
    println!("{committed} transfers, {refused} refused");
    assert!(committed > 0);
}
