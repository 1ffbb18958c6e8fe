//! A rollback that a failing disk cuts short.

use super::*;
use runtime::sim::Faults;

/// 9,000 rows, many times what the pool holds.
fn filled() -> (Arc<Engine>, Tested) {
    let mut small = tiny("/database", 256 << 10);
    small.purge_interval = Duration::from_secs(100);
    let engine = Engine::open(small).unwrap().0;
    let t = Tested::create(&*engine);
    let mut trx = engine.begin(options());
    for id in 0..9000 {
        t.insert(&mut *trx, &row(id, 1, None, &[5; 300])).unwrap().unwrap();
    }
    trx.commit().unwrap();
    (engine, t)
}

/// Inserts far apart, with what lies in between out of memory.
fn rows_out_of_memory(t: &Tested, trx: &mut dyn Transaction) {
    for id in [-5, 500_000] {
        t.insert(trx, &row(id, 1, None, b"new")).unwrap().unwrap();
    }
    let rows = t.all(trx).len();
    assert_eq!(rows, 9002);
}

/// What is left of the changes is not shown to their own transaction either.
fn assert_takes_nothing(t: &Tested, trx: &mut dyn Transaction) {
    for lock in [LockMode::None, LockMode::Shared, LockMode::Exclusive] {
        for id in [-5, 1, 500_000] {
            assert_eq!(t.get(trx, id, lock), Err(EngineError::HalfUndone), "{lock:?} of {id}");
        }
        for index in 0..t.table.definition().indexes.len() {
            let read = t.scan(trx, index, lock, ScanDirection::Forward);
            assert_eq!(read, Err(EngineError::HalfUndone), "{lock:?} in {index}");
        }
    }
    let inserted = t.insert(trx, &row(-7, 1, None, b"late"));
    assert_eq!(inserted, Err(EngineError::HalfUndone));
}

#[test]
fn what_was_to_be_undone_is_never_committed() {
    simulate(3, || {
        let (engine, t) = filled();
        let disk = runtime::sim::disk().unwrap();
        for gives_up in [true, false] {
            let mut trx = engine.begin(options());
            let start = trx.begin_statement();
            rows_out_of_memory(&t, &mut *trx);
            disk.set_faults(Faults { read_error: 1.0, ..Faults::default() });
            trx.rollback_to(start).expect_err("its pages cannot be read");
            disk.set_faults(Faults::default());
            trx.begin_statement();
            assert_takes_nothing(&t, &mut *trx);
            trx.rollback_to(start).expect_err("it can only end");
            if gives_up {
                trx.rollback().unwrap();
            } else {
                trx.commit().expect_err("what was to be undone is not committed");
            }
            let mut reader = engine.begin(options());
            assert_eq!(t.all(&mut *reader).len(), 9000);
            t.assert_sound();
        }
        engine.close().unwrap();
    });
}

#[test]
fn a_conflict_whose_rollback_fails_leaves_what_can_only_end() {
    simulate(4, || {
        let (engine, t) = filled();
        let disk = runtime::sim::disk().unwrap();
        let mut trx = engine.begin(options());
        trx.open_snapshot();
        let mut other = engine.begin(options());
        assert!(t.delete(&mut *other, 8999).unwrap());
        other.commit().unwrap();
        rows_out_of_memory(&t, &mut *trx);
        // The last row's page is in memory, those of the changes are not.
        let met = t.get(&mut *trx, 8999, LockMode::None);
        assert!(met.unwrap().is_some(), "the snapshot has it");
        disk.set_faults(Faults { read_error: 1.0, ..Faults::default() });
        let told = t.get(&mut *trx, 8999, LockMode::Exclusive).expect_err("a conflict");
        assert!(!told.has_ended_transaction(), "{told}: it is not rolled back");
        disk.set_faults(Faults::default());
        assert_takes_nothing(&t, &mut *trx);
        trx.commit().expect_err("what was to be undone is not committed");
        let mut reader = engine.begin(options());
        assert_eq!(t.all(&mut *reader).len(), 8999);
        t.assert_sound();
        drop(reader);
        engine.close().unwrap();
    });
}
