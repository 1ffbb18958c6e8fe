//! Limits of locks: the memory that they take, the time that they are waited for.

use super::*;
use engine_api::EngineError;

const ROWS: i64 = 3000;

fn filled(change: impl FnOnce(&mut EngineOptions)) -> (Arc<Engine>, Tested) {
    let mut options_of_engine = tiny("/database", 4 << 20);
    change(&mut options_of_engine);
    let (engine, _) = Engine::open(options_of_engine).unwrap();
    let t = Tested::create(&*engine);
    let mut trx = engine.begin(options());
    for number in 0..ROWS {
        t.insert(&mut *trx, &row(number * 10, 0, None, b"")).unwrap().unwrap();
    }
    trx.commit().unwrap();
    (engine, t)
}

/// A transaction that wants more locks than there is memory for is rolled back, and everything
/// that it paid is given back.
#[test]
fn too_many_locks_roll_back() {
    let level = isolation;
    simulate(1, move || {
        let (engine, t) = filled(|options| options.lock_memory_bytes = 300 << 10);
        let memory = || engine.core.txn.locks().memory().used_bytes();
        for scan in [true, false] {
            let mut trx = engine.begin(level(Isolation::RepeatableRead));
            t.update(&mut *trx, 0, |row| row.k = 1).unwrap().unwrap().unwrap();
            let result = match scan {
                // Locks of records.
                true => {
                    t.scan(&mut *trx, 0, LockMode::Exclusive, ScanDirection::Forward).map(|_| ())
                }
                // Gaps where rows are missed, which do not touch each other.
                false => (0..ROWS)
                    .try_for_each(|at| t.get(&mut *trx, at * 10 + 5, LockMode::Shared).map(|_| ())),
            };
            assert_eq!(result, Err(EngineError::LockTableFull));
            assert!(engine.core.txn.locks().is_empty());
            assert_eq!(memory(), 0);
            let row = t.get(&mut *trx, 0, LockMode::Exclusive).unwrap().unwrap();
            assert_eq!(row.k, 0, "the change is undone; the transaction begins anew");
            trx.commit().unwrap();
        }
        let mut trx = engine.begin(options());
        for at in 0..700 {
            t.get(&mut *trx, at * 10, LockMode::Shared).unwrap().unwrap();
        }
        assert!(memory() > 0);
        trx.commit().unwrap();
        assert_eq!(memory(), 0);
        engine.close().unwrap();
    });
}

/// A lock that comes too late undoes the statement, or the transaction if the engine is told so.
#[test]
fn a_timeout_rolls_back_what_it_is_told_to() {
    for whole in [false, true] {
        simulate(2, move || {
            let (engine, t) = filled(|options| options.rollback_on_timeout = whole);
            let mut holder = engine.begin(options());
            t.update(&mut *holder, 10, |row| row.k = 1).unwrap().unwrap().unwrap();
            for wait in [LockWait::Seconds(1), LockWait::NoWait] {
                let mut trx = engine.begin(options());
                t.update(&mut *trx, 20, |row| row.k = 2).unwrap().unwrap().unwrap();
                let mut buffer = RowBuffer::default();
                let key = t.key(10);
                let result = t.table.get(&mut *trx, &key, LockMode::Exclusive, wait, &mut buffer);
                let error = match (whole, wait) {
                    (true, _) => EngineError::TimedOutAndRolledBack,
                    (false, LockWait::NoWait) => EngineError::LockNotAvailable,
                    (false, _) => EngineError::LockWaitTimeout,
                };
                assert_eq!(result, Err(error));
                assert_eq!(
                    t.get(&mut *trx, 20, LockMode::None).unwrap().unwrap().k,
                    if whole { 0 } else { 2 }
                );
                let skipped = t.table.get(
                    &mut *trx,
                    &key,
                    LockMode::Exclusive,
                    LockWait::SkipLocked,
                    &mut buffer,
                );
                assert_eq!(skipped, Ok(false), "to skip is no timeout");
                trx.rollback().unwrap();
            }
            holder.rollback().unwrap();
            engine.close().unwrap();
        });
    }
}
