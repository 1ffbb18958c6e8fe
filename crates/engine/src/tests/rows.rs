//! Rows through the border: versions, locks, indexes, statements that fail.

use super::*;
use engine_api::EngineError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[test]
fn insert_read_update_delete_commit_rollback() {
    simulate(1, || {
        let engine = new_engine();
        let t = Tested::create(&*engine);
        let mut one = engine.begin(options());
        assert_eq!(t.insert(&mut *one, &row(1, 10, Some(100), b"a")).unwrap(), Ok(()));
        assert_eq!(t.insert(&mut *one, &row(2, 10, None, b"b")).unwrap(), Ok(()));
        let duplicate = t.insert(&mut *one, &row(1, 0, None, b"")).unwrap().unwrap_err();
        assert_eq!((duplicate.index, duplicate.clustered_key), (0, t.key(1)));
        let duplicate = t.insert(&mut *one, &row(3, 0, Some(100), b"")).unwrap().unwrap_err();
        assert_eq!((duplicate.index, duplicate.clustered_key), (2, t.key(1)));
        let mut two = engine.begin(options());
        assert_eq!(t.all(&mut *two), vec![]);
        one.commit().unwrap();
        assert_eq!(t.all(&mut *two), vec![], "its snapshot is older");
        two.commit().unwrap();

        let mut three = engine.begin(options());
        let rows = vec![row(1, 10, Some(100), b"a"), row(2, 10, None, b"b")];
        assert_eq!(t.all(&mut *three), rows);
        t.update(&mut *three, 1, |row| row.k = 5).unwrap().unwrap().unwrap();
        t.update(&mut *three, 2, |row| row.id = 7).unwrap().unwrap().unwrap();
        let point = three.begin_statement();
        assert!(t.delete(&mut *three, 1).unwrap());
        assert_eq!(t.get(&mut *three, 1, LockMode::None).unwrap(), None);
        three.rollback_to(point).unwrap();
        let changed = vec![row(1, 5, Some(100), b"a"), row(7, 10, None, b"b")];
        assert_eq!(t.all(&mut *three), changed);
        let by_k = t.scan(&mut *three, 1, LockMode::None, ScanDirection::Backward).unwrap();
        assert_eq!(by_k, changed.iter().rev().cloned().collect::<Vec<_>>());
        three.rollback().unwrap();
        t.assert_sound();
        let mut four = engine.begin(options());
        assert_eq!(t.all(&mut *four), rows);
        four.commit().unwrap();
        engine.close().unwrap();
    });
}

#[test]
fn a_transaction_kept_by_its_commit_is_as_a_new_one() {
    simulate(7, || {
        let engine = new_engine();
        let t = Tested::create(&*engine);
        let lazy = TransactionOptions { flush_policy: FlushPolicy::EverySecond, ..options() };
        let mut kept = engine.begin(lazy);
        t.insert(&mut *kept, &row(1, 1, None, b"a")).unwrap().unwrap();
        assert!(kept.commit_and_keep().unwrap());
        assert!(!kept.has_written() && kept.id() == base::TrxId::ZERO);
        // It does not wait for what it has met in its former life.
        let begun = runtime::now();
        kept.open_snapshot();
        assert!(kept.end_unchanged().unwrap());
        assert!(runtime::now() - begun < Duration::from_micros(1));

        // Neither locks nor the old snapshot are left.
        kept.set_options(options());
        let mut other = engine.begin(options());
        t.update(&mut *other, 1, |row| row.k = 2).unwrap().unwrap().unwrap();
        other.commit().unwrap();
        assert_eq!(t.all(&mut *kept), vec![row(1, 2, None, b"a")]);
        t.update(&mut *kept, 1, |row| row.k = 3).unwrap().unwrap().unwrap();
        assert!(kept.commit_and_keep().unwrap());
        // What it leaves undone is rolled back, as ever.
        t.update(&mut *kept, 1, |row| row.k = 4).unwrap().unwrap().unwrap();
        drop(kept);
        let mut last = engine.begin(options());
        assert_eq!(t.all(&mut *last), vec![row(1, 3, None, b"a")]);
        last.commit().unwrap();
        t.assert_sound();
        engine.close().unwrap();
    });
}

#[test]
fn a_long_rollback_lets_others_run() {
    simulate(5, || {
        let engine = new_engine();
        let t = Tested::create(&*engine);
        let mut trx = engine.begin(options());
        for id in 0..500 {
            t.insert(&mut *trx, &row(id, id % 5, Some(id), b"x")).unwrap().unwrap();
        }
        let (turns, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, seen) = (turns.clone(), is_over.clone());
        let other = runtime::spawn("other", move || {
            while !seen.load(Ordering::Relaxed) {
                counted.fetch_add(1, Ordering::Relaxed);
                runtime::yield_now();
            }
        });
        trx.rollback().unwrap();
        let turns = turns.load(Ordering::Relaxed);
        is_over.store(true, Ordering::Relaxed);
        other.join().unwrap();
        assert!(turns > 10, "{turns} turns during 1,500 steps of undo");
        engine.close().unwrap();
    });
}

#[test]
fn snapshots_stay_and_conflicts_roll_back() {
    simulate(2, || {
        let engine = new_engine();
        let t = Tested::create(&*engine);
        let mut trx = engine.begin(options());
        for id in 0..50 {
            t.insert(&mut *trx, &row(id, id % 5, Some(id), &vec![id as u8; 3000]))
                .unwrap()
                .unwrap();
        }
        trx.commit().unwrap();
        let mut reader = engine.begin(options());
        reader.open_snapshot();
        let mut writer = engine.begin(options());
        for id in 0..50 {
            match id % 3 {
                0 => assert!(t.delete(&mut *writer, id).unwrap()),
                1 => drop(t.update(&mut *writer, id, |row| row.k += 100).unwrap()),
                _ => drop(t.update(&mut *writer, id, |row| row.c = vec![9; 9000]).unwrap()),
            }
        }
        writer.commit().unwrap();
        runtime::sleep(Duration::from_millis(200));
        let before: Vec<_> =
            (0..50).map(|id| row(id, id % 5, Some(id), &vec![id as u8; 3000])).collect();
        assert_eq!(t.all(&mut *reader), before);
        let mut by_k = before.clone();
        by_k.sort_by_key(|row| (row.k, row.id));
        let found = t.scan(&mut *reader, 1, LockMode::None, ScanDirection::Forward).unwrap();
        assert_eq!(found, by_k);
        // Changed since, deleted since, and by a scan.
        assert_eq!(t.get(&mut *reader, 1, LockMode::Exclusive), Err(EngineError::WriteConflict));
        reader.open_snapshot();
        assert_eq!(t.all(&mut *reader).len(), 33, "a fresh transaction after the rollback");
        reader.rollback().unwrap();
        let mut late = engine.begin(options());
        late.open_snapshot();
        let mut writer = engine.begin(options());
        assert!(t.delete(&mut *writer, 1).unwrap());
        writer.commit().unwrap();
        let scan = t.scan(&mut *late, 0, LockMode::Shared, ScanDirection::Forward);
        assert_eq!(scan, Err(EngineError::WriteConflict));
        late.rollback().unwrap();
        let mut committed = engine.begin(isolation(Isolation::ReadCommitted));
        assert_eq!(t.get(&mut *committed, 4, LockMode::Exclusive).unwrap().unwrap().k, 104);
        committed.commit().unwrap();
        t.assert_sound();
        runtime::sleep(Duration::from_millis(200));
        assert_eq!(engine.core.txn.purge_length(), 0);
        t.assert_sound();
        engine.close().unwrap();
    });
}

#[test]
fn deadlocks_timeouts_and_skipped_rows() {
    simulate(3, || {
        let engine = new_engine();
        let t = Tested::create(&*engine);
        let mut trx = engine.begin(options());
        for id in 1..=3 {
            t.insert(&mut *trx, &row(id, id, None, b"")).unwrap().unwrap();
        }
        trx.commit().unwrap();
        let mut one = engine.begin(options());
        t.update(&mut *one, 1, |row| row.k = 50).unwrap();
        let (other, tested) = (engine.core.clone(), t.clone());
        let fiber = runtime::spawn("other", move || {
            let mut two: Box<dyn Transaction> =
                Box::new(crate::transaction::EngineTransaction::new(other, options()));
            tested.update(&mut *two, 2, |row| row.k = 60).unwrap();
            let result = tested.update(&mut *two, 1, |row| row.k = 61);
            let again = result.is_ok();
            two.commit().unwrap();
            again
        });
        runtime::sleep(Duration::from_millis(1));
        let mine = t.update(&mut *one, 2, |row| row.k = 51);
        let other_done = fiber;
        let mine_failed = mine == Err(EngineError::Deadlock);
        one.commit().unwrap();
        assert_eq!(other_done.join().unwrap(), mine_failed, "exactly one gave up");

        let mut one = engine.begin(options());
        assert!(t.delete(&mut *one, 3).unwrap());
        let mut two = engine.begin(options());
        two.set_lock_wait_timeout(Duration::from_secs(2));
        let begun = runtime::now();
        let blocked = t.insert(&mut *two, &row(3, 0, None, b""));
        assert_eq!(blocked, Err(EngineError::LockWaitTimeout));
        assert!(begun.elapsed() >= Duration::from_secs(2));
        let mut buffer = RowBuffer::default();
        let (lock, key) = (LockMode::Shared, t.key(3));
        let skipped = t.table.get(&mut *two, &key, lock, LockWait::SkipLocked, &mut buffer);
        assert_eq!(skipped, Ok(false));
        let refused = t.table.get(&mut *two, &key, lock, LockWait::NoWait, &mut buffer);
        assert_eq!(refused, Err(EngineError::LockNotAvailable));
        one.rollback().unwrap();
        assert!(t.table.get(&mut *two, &key, lock, LockWait::NoWait, &mut buffer).unwrap());
        two.commit().unwrap();
        t.assert_sound();
        assert!(engine.core.txn.locks().is_empty());
        engine.close().unwrap();
    });
}

#[test]
fn indexes_are_built_and_dropped_and_tables_come_and_go() {
    simulate(4, || {
        let engine = new_engine();
        let mut definition = definition();
        definition.indexes.truncate(1);
        let mut trx = engine.begin(options());
        engine.create_table(&mut *trx, &mut definition).unwrap();
        trx.commit().unwrap();
        let t = Tested { table: engine.open_table(Arc::new(definition.clone())).unwrap() };
        let mut trx = engine.begin(options());
        for id in 0..3000 {
            let u = (id % 7 != 0).then_some(id / 2 * 2);
            t.insert(&mut *trx, &row(id, id * 31 % 100, u, b"xyz")).unwrap().unwrap();
        }
        trx.commit().unwrap();
        let mut trx = engine.begin(options());
        definition.indexes.push(index("k", false, &[1]));
        engine.build_index(&mut *trx, &mut definition, 1).unwrap().unwrap();
        trx.commit().unwrap();
        let with_k = Tested { table: engine.open_table(Arc::new(definition.clone())).unwrap() };
        with_k.assert_sound();
        let statistics = with_k.table.statistics();
        assert!((2500..3500).contains(&statistics.rows), "{statistics:?}");
        assert!((50..200).contains(&statistics.distinct[1][0]), "{statistics:?}");
        let mut trx = engine.begin(options());
        let mut wrong = definition.clone();
        wrong.indexes.push(index("u", true, &[2]));
        let duplicate = engine.build_index(&mut *trx, &mut wrong, 2).unwrap().unwrap_err();
        assert_eq!(duplicate.index, 2);
        trx.commit().unwrap();
        let trees = engine.core.tree_ids().len();
        let mut trx = engine.begin(options());
        engine.drop_index(&mut *trx, &definition, 1).unwrap();
        trx.rollback().unwrap();
        assert_eq!(engine.core.tree_ids().len(), trees);
        let mut trx = engine.begin(options());
        engine.drop_table(&mut *trx, &definition).unwrap();
        trx.commit().unwrap();
        assert_eq!(engine.core.tree_ids(), vec![]);
        assert_eq!(crate::dictionary::shapes(&engine.core, false).unwrap(), vec![]);
        let mut trx = engine.begin(options());
        let mut definition = super::definition();
        engine.create_table(&mut *trx, &mut definition).unwrap();
        trx.rollback().unwrap();
        assert_eq!(engine.core.tree_ids(), vec![]);
        engine.close().unwrap();
    });
}

#[test]
fn the_dictionary_is_transactional() {
    simulate(5, || {
        let engine = new_engine();
        let mut one = engine.begin(options());
        engine.dictionary_put(&mut *one, b"a/1", b"x").unwrap();
        engine.dictionary_put(&mut *one, b"a/2", b"y").unwrap();
        engine.dictionary_put(&mut *one, b"b/1", b"z").unwrap();
        let mut two = engine.begin(options());
        assert_eq!(engine.dictionary_get(&mut *two, b"a/1").unwrap(), None);
        one.commit().unwrap();
        let value = engine.dictionary_get(&mut *two, b"a/1").unwrap();
        assert_eq!(value.as_deref(), Some(&b"x"[..]), "the newest committed");
        engine.dictionary_delete(&mut *two, b"a/1").unwrap();
        engine.dictionary_put(&mut *two, b"a/2", b"yy").unwrap();
        let pairs = engine.dictionary_scan(&mut *two, b"a/").unwrap();
        assert_eq!(pairs, vec![(b"a/2".to_vec(), b"yy".to_vec())]);
        two.rollback().unwrap();
        let mut three = engine.begin(options());
        assert_eq!(engine.dictionary_scan(&mut *three, b"").unwrap().len(), 3);
        three.commit().unwrap();
        engine.close().unwrap();
    });
}

/// A database with 199 of 200 rows deleted whose power fails before they are purged.
fn deleted_rows_on_disk(seed: u64) -> (runtime::sim::Disk, Arc<TableDefinition>) {
    let made: Arc<std::sync::Mutex<Option<Arc<TableDefinition>>>> = Arc::default();
    let mut simulation = runtime::sim::Simulation::new(runtime::sim::SimConfig::new(seed));
    let given = made.clone();
    let ended = simulation.run(move || {
        let mut slow = tiny("/database", 4 << 20);
        slow.purge_interval = Duration::from_secs(3600);
        let (engine, _) = Engine::open(slow).unwrap();
        let t = Tested::create(&*engine);
        let mut trx = engine.begin(options());
        for id in 0..200 {
            t.insert(&mut *trx, &row(id, id, None, b"row")).unwrap().unwrap();
        }
        trx.commit().unwrap();
        let mut trx = engine.begin(options());
        for id in 0..199 {
            assert!(t.delete(&mut *trx, id).unwrap());
        }
        trx.commit().unwrap();
        *given.lock().unwrap() = Some(t.table.definition().clone());
        runtime::sim::crash_now();
    });
    assert!(matches!(ended, Err(runtime::sim::SimEnd::Crashed)), "{ended:?}");
    let definition = made.lock().unwrap().take().unwrap();
    (simulation.crash(runtime::sim::CrashKind::Power), definition)
}

/// Entries in the trees, deleted ones included.
fn entries(engine: &Engine, definition: &TableDefinition) -> Vec<u64> {
    let trees = definition.indexes.iter().map(|index| engine.core.tree(index.tree).unwrap());
    trees.map(|tree| tree.verify().unwrap().entries).collect()
}

fn after_the_crash(seed: u64, f: impl FnOnce(Arc<TableDefinition>) + 'static) {
    let (disk, definition) = deleted_rows_on_disk(seed);
    let config = runtime::sim::SimConfig::new(seed + 100);
    let mut simulation = runtime::sim::Simulation::with_disk(config, disk);
    simulation.run(move || f(definition)).expect("the simulation ends well");
}

#[test]
fn deleted_rows_left_by_the_last_run_are_purged_when_met() {
    after_the_crash(6, |definition| {
        let mut options_of_engine = tiny("/database", 4 << 20);
        options_of_engine.sweep_pause = Duration::from_secs(3600);
        let (engine, summary) = Engine::open(options_of_engine).unwrap();
        assert!(!summary.was_clean && summary.losers == 0);
        let t = Tested { table: engine.open_table(definition.clone()).unwrap() };
        assert_eq!(entries(&engine, &definition)[0], 200, "the queue of the last run is gone");
        for index in [0, 1, 2] {
            let mut trx = engine.begin(options());
            let rows = t.scan(&mut *trx, index, LockMode::None, ScanDirection::Forward);
            assert_eq!(rows.unwrap().len(), 1);
            trx.commit().unwrap();
        }
        runtime::sleep(Duration::from_millis(500));
        assert_eq!(entries(&engine, &definition), [1, 1, 1]);
        t.assert_sound();
    });
}

#[test]
fn deleted_rows_left_by_the_last_run_are_swept() {
    after_the_crash(7, |definition| {
        let (engine, _) = Engine::open(tiny("/database", 4 << 20)).unwrap();
        runtime::sleep(Duration::from_secs(2));
        assert_eq!(entries(&engine, &definition), [1, 1, 1]);
        engine.close().unwrap();
    });
}

#[test]
fn a_shutdown_purges_what_it_can() {
    simulate(8, || {
        let mut slow = tiny("/database", 4 << 20);
        slow.purge_interval = Duration::from_secs(3600);
        let (engine, _) = Engine::open(slow.clone()).unwrap();
        let t = Tested::create(&*engine);
        let mut trx = engine.begin(options());
        for id in 0..50 {
            t.insert(&mut *trx, &row(id, id, None, b"row")).unwrap().unwrap();
        }
        trx.commit().unwrap();
        let mut trx = engine.begin(options());
        for id in 0..50 {
            assert!(t.delete(&mut *trx, id).unwrap());
        }
        trx.commit().unwrap();
        let definition = t.table.definition().clone();
        engine.close().unwrap();
        drop((engine, t));
        slow.sweep_pause = Duration::from_secs(3600);
        let (engine, summary) = Engine::open(slow).unwrap();
        assert!(summary.was_clean);
        assert_eq!(entries(&engine, &definition), [0, 0, 0]);
        engine.close().unwrap();
    });
}

/// What another transaction gets when it wants the row at once.
fn locked_by_others(engine: &Engine, t: &Tested, id: i64) -> bool {
    let mut trx = engine.begin(isolation(Isolation::ReadCommitted));
    let mut buffer = RowBuffer::default();
    let read =
        t.table.get(&mut *trx, &t.key(id), LockMode::Exclusive, LockWait::NoWait, &mut buffer);
    trx.rollback().unwrap();
    match read {
        Ok(_) => false,
        Err(engine_api::EngineError::LockNotAvailable) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn rows_stay_locked_when_a_savepoint_is_rolled_back_to() {
    simulate(7, || {
        let engine = new_engine();
        let t = Tested::create(&*engine);
        let mut trx = engine.begin(options());
        for id in [1, 2, 3, 4, 5] {
            t.insert(&mut *trx, &row(id, 0, None, b"old")).unwrap().unwrap();
        }
        assert!(t.delete(&mut *trx, 5).unwrap());
        trx.commit().unwrap();

        let mut one = engine.begin(options());
        t.update(&mut *one, 4, |row| row.k = 1).unwrap().unwrap().unwrap();
        let savepoint = one.savepoint();
        t.update(&mut *one, 1, |row| row.k = 1).unwrap().unwrap().unwrap();
        assert!(t.delete(&mut *one, 2).unwrap());
        t.update(&mut *one, 3, |row| row.id = 30).unwrap().unwrap().unwrap();
        t.update(&mut *one, 4, |row| row.k = 2).unwrap().unwrap().unwrap();
        t.insert(&mut *one, &row(5, 0, None, b"again")).unwrap().unwrap();
        t.insert(&mut *one, &row(6, 0, None, b"new")).unwrap().unwrap();
        // Somebody waits for one of the rows already.
        let (other, table) = (engine.clone(), t.clone());
        let waiter = runtime::spawn("waiter", move || {
            let mut two = other.begin(isolation(Isolation::ReadCommitted));
            let seen = table.get(&mut *two, 1, LockMode::Exclusive).unwrap().unwrap();
            two.commit().unwrap();
            (seen.k, runtime::now())
        });
        runtime::sleep(Duration::from_millis(10));
        one.rollback_to(savepoint).unwrap();
        for id in [1, 2, 3, 4] {
            assert!(locked_by_others(&engine, &t, id), "row {id} was there before the savepoint");
        }
        for id in [30, 5, 6] {
            assert!(!locked_by_others(&engine, &t, id), "row {id} has vanished");
        }
        let mut three = engine.begin(options());
        t.insert(&mut *three, &row(6, 3, None, b"theirs")).unwrap().unwrap();
        three.commit().unwrap();
        runtime::sleep(Duration::from_millis(500));
        let committed = runtime::now();
        t.update(&mut *one, 1, |row| row.k = 7).unwrap().unwrap().unwrap();
        one.commit().unwrap();
        let (seen, at) = waiter.join().unwrap();
        assert_eq!(seen, 7, "the waiter goes on when the transaction has ended");
        assert!(at >= committed);
        for id in [1, 2, 3, 4] {
            assert!(!locked_by_others(&engine, &t, id));
        }
        assert!(engine.core.txn.locks().is_empty());
        engine.close().unwrap();
    });
}

/// Others come at any moment while a transaction rolls back to a savepoint again and again: none
/// of them gets a row between its undo and its lock.
#[test]
fn nobody_gets_in_between_undo_and_lock() {
    for seed in 0..30 {
        simulate(seed, move || {
            let engine = new_engine();
            let t = Tested::create(&*engine);
            let mut trx = engine.begin(options());
            for id in 0..4 {
                t.insert(&mut *trx, &row(id, 0, None, b"row")).unwrap().unwrap();
            }
            trx.commit().unwrap();
            let holder = Arc::new(std::sync::atomic::AtomicI64::new(-1));
            let fibers: Vec<_> = (0..4)
                .map(|number| {
                    let (engine, t, holder) = (engine.clone(), t.clone(), holder.clone());
                    let mut random = base::Random::new(seed * 10 + number);
                    runtime::spawn("client", move || {
                        for _ in 0..15 {
                            let mut trx = engine.begin(isolation(Isolation::ReadCommitted));
                            let savepoint = trx.savepoint();
                            // All want row 0 first, so there is no deadlock.
                            t.update(&mut *trx, 0, |row| row.k += 1).unwrap().unwrap().unwrap();
                            let other = 1 + random.below(3) as i64;
                            t.delete(&mut *trx, other).unwrap();
                            trx.rollback_to(savepoint).unwrap();
                            let order = std::sync::atomic::Ordering::SeqCst;
                            let before = holder.swap(number as i64, order);
                            assert_eq!(before, -1, "two hold the row");
                            runtime::sleep(Duration::from_micros(random.below(80)));
                            assert_eq!(holder.swap(-1, order), number as i64);
                            if random.chance(0.5) {
                                trx.commit().unwrap();
                            } else {
                                trx.rollback().unwrap();
                            }
                        }
                    })
                })
                .collect();
            fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
            t.assert_sound();
            assert!(engine.core.txn.locks().is_empty());
            engine.close().unwrap();
        });
    }
}

/// A transaction whose undo is far beyond the memory for it: others see the versions before it,
/// it can be rolled back and committed, and its files go.
#[test]
fn a_long_transaction_spills_its_undo() {
    simulate(8, || {
        let mut options_of_engine = tiny("/database", 4 << 20);
        options_of_engine.undo_budget_bytes = 64 << 10;
        let (engine, _) = Engine::open(options_of_engine).unwrap();
        let t = Tested::create(&*engine);
        let mut trx = engine.begin(options());
        for id in 0..6000 {
            t.insert(&mut *trx, &row(id, 0, None, b"before")).unwrap().unwrap();
        }
        // A record that no chunk holds.
        t.insert(&mut *trx, &row(6000, 0, None, &[7; 15_000])).unwrap().unwrap();
        trx.commit().unwrap();

        for commits in [false, true] {
            let mut reader = engine.begin(options());
            reader.open_snapshot();
            let mut trx = engine.begin(options());
            for id in 0..=6000 {
                let changed = t.update(&mut *trx, id, |row| {
                    row.k = 5;
                    row.c = b"after".to_vec();
                });
                changed.unwrap().unwrap().unwrap();
            }
            let undo = engine.core.txn.undo();
            assert!(undo.used_bytes() <= 64 << 10, "{}", undo.used_bytes());
            assert!(undo.spilled_bytes() > 500 << 10, "{}", undo.spilled_bytes());
            if commits { trx.commit() } else { trx.rollback() }.unwrap();
            for row in t.all(&mut *reader) {
                assert!(row.k == 0 && (row.c == b"before" || row.c == [7; 15_000]));
            }
            reader.commit().unwrap();
            let mut after = engine.begin(options());
            let expected = if commits { 6001 * 5 } else { 0 };
            let sum = |rows: Vec<Row>| rows.iter().map(|row| row.k).sum::<i64>();
            assert_eq!(sum(t.all(&mut *after)), expected);
            after.commit().unwrap();
            runtime::sleep(Duration::from_secs(1));
            assert!(engine.core.txn.undo().spilled_bytes() < 64 << 10, "the files are given up");
        }
        t.assert_sound();
        engine.close().unwrap();
    });
}

/// A transaction that has written and then does nothing keeps the undo of its own chunk only.
#[test]
fn an_idle_writer_does_not_pin_the_undo_of_others() {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        simulate(9, move || {
            let engine = new_engine();
            let t = Tested::create(&*engine);
            let mut trx = engine.begin(options());
            for id in 0..20 {
                t.insert(&mut *trx, &row(id, 0, None, b"row")).unwrap().unwrap();
            }
            trx.commit().unwrap();
            let mut idle = engine.begin(isolation(level));
            t.update(&mut *idle, 0, |row| row.k = -1).unwrap().unwrap().unwrap();
            if level == Isolation::ReadCommitted {
                assert_eq!(t.all(&mut *idle).len(), 20);
            }
            idle.wait_read_durable().unwrap();
            for round in 0..3000 {
                let mut trx = engine.begin(options());
                let id = 1 + round % 19;
                t.update(&mut *trx, id, |row| row.k += 1).unwrap().unwrap().unwrap();
                trx.commit().unwrap();
            }
            runtime::sleep(Duration::from_millis(100));
            let used = engine.core.txn.undo().used_bytes();
            // Two chunks, and those kept for reuse.
            assert!(used <= 20 * 4096, "{used} bytes of undo for one idle transaction");
            idle.rollback().unwrap();
            let mut trx = engine.begin(options());
            assert_eq!(t.get(&mut *trx, 0, LockMode::None).unwrap().unwrap().k, 0);
            trx.commit().unwrap();
            engine.close().unwrap();
        });
    }
}
