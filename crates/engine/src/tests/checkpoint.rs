//! What a checkpoint may forget.

use super::*;
use runtime::sim::{CrashKind, SimConfig, SimEnd, Simulation};
use std::sync::Mutex;

/// How the transaction ends while the checkpoint is under way.
#[derive(Clone, Copy, Debug)]
enum End {
    Rollback,
    /// One more row, then a commit that waits for nothing.
    LazyCommit,
}

/// A transaction whose first row is in the log and in its page on disk ends `delay` after a
/// checkpoint has begun; the power fails when the checkpoint is done, and perhaps nothing has
/// made the end of the transaction durable. Returns the rows found afterwards.
fn rows_after(end: End, delay: Duration) -> Vec<Row> {
    let mut options_of_engine = tiny("/database", 4 << 20);
    options_of_engine.checkpoint_interval = Duration::from_secs(100);
    let second_life = options_of_engine.clone();
    let kept: Arc<Mutex<Option<Arc<TableDefinition>>>> = Arc::default();
    let definition = kept.clone();
    let mut simulation = Simulation::new(SimConfig { buggify: false, ..SimConfig::new(5) });
    let ended = simulation.run(move || {
        let engine = Engine::open(options_of_engine).unwrap().0;
        let t = Tested::create(&*engine);
        *definition.lock().unwrap() = Some(t.table.definition().clone());
        // The first checkpoint of the engine's own is over.
        runtime::sleep(Duration::from_millis(100));
        let lazy = TransactionOptions { flush_policy: FlushPolicy::EverySecond, ..options() };
        let mut trx = engine.begin(lazy);
        t.insert(&mut *trx, &row(1, 1, None, b"first")).unwrap().unwrap();
        engine.core.wal.wait_durable(engine.core.wal.end()).unwrap();
        engine.core.store.flush_until(engine.core.wal.end()).unwrap();
        let table = t.clone();
        drop(runtime::spawn("end", move || {
            runtime::sleep(delay);
            match end {
                End::Rollback => trx.rollback().unwrap(),
                End::LazyCommit => {
                    table.insert(&mut *trx, &row(2, 2, None, b"second")).unwrap().unwrap();
                    trx.commit().unwrap();
                }
            }
        }));
        crate::checkpoint::checkpoint(&engine.core, false).unwrap();
        runtime::sim::crash_now();
    });
    assert_eq!(ended, Err(SimEnd::Crashed));
    let disk = simulation.crash(CrashKind::Power);
    let mut simulation = Simulation::with_disk(SimConfig::new(6), disk);
    let rows = simulation.run(move || {
        let engine = Engine::open(second_life).unwrap().0;
        let definition = kept.lock().unwrap().take().unwrap();
        let t = Tested { table: engine_api::Engine::open_table(&*engine, definition).unwrap() };
        t.assert_sound();
        let mut trx = engine.begin(options());
        t.all(&mut *trx)
    });
    rows.unwrap()
}

#[test]
fn a_transaction_that_ends_during_a_checkpoint_is_not_forgotten() {
    for micros in (0..600).step_by(10) {
        let delay = Duration::from_micros(micros);
        assert_eq!(rows_after(End::Rollback, delay), Vec::new(), "rolled back after {delay:?}");
        let rows = rows_after(End::LazyCommit, delay);
        assert!(rows.len() != 1, "half of a transaction, committed after {delay:?}: {rows:?}");
    }
}

/// Commits that come one at a time take a block of the log each, many times their records where
/// the device has blocks of 4 KiB.
#[test]
fn the_files_of_the_log_stay_within_a_few_caps_where_commits_come_one_at_a_time() {
    let config = SimConfig { buggify: false, ..SimConfig::new(7) };
    let ended = Simulation::new(config).run(|| {
        let mut options_of_engine = tiny("/database", 4 << 20);
        options_of_engine.log_block_bytes_min = 4096;
        let cap = options_of_engine.log_cap_bytes;
        let files = 3 * options_of_engine.max_log_file_bytes;
        let engine = Engine::open(options_of_engine).unwrap().0;
        let t = Tested::create(&*engine);
        let (begin, mut most) = (engine.core.wal.end().get(), 0);
        for id in 0..8_000 {
            let mut trx = engine.begin(options());
            t.insert(&mut *trx, &row(id, id, None, b"one")).unwrap().unwrap();
            trx.commit().unwrap();
            most = most.max(engine.core.wal.live_file_bytes());
        }
        (cap, files, most, engine.core.wal.end().get() - begin)
    });
    let (cap, files, most, records) = ended.unwrap();
    assert!(records > 2 * cap, "of the cap alone nothing would be written so soon: {records}");
    assert!(most <= 4 * cap + files, "{most} bytes of files, {records} of records");
}

/// Of a log that grows fast many files would be given back at once, and kept as spares until the
/// next time.
#[test]
fn files_of_the_log_are_given_back_before_the_time_of_the_next_checkpoint() {
    let config = SimConfig { buggify: false, ..SimConfig::new(7) };
    let ended = Simulation::new(config).run(|| {
        let mut options_of_engine = tiny("/database", 4 << 20);
        options_of_engine.checkpoint_interval = Duration::from_secs(100);
        // Few commits fill many files then.
        options_of_engine.log_block_bytes_min = 4096;
        let longest = options_of_engine.max_log_file_bytes;
        let engine = Engine::open(options_of_engine).unwrap().0;
        let t = Tested::create(&*engine);
        for id in 0..1_000 {
            let mut trx = engine.begin(options());
            t.insert(&mut *trx, &row(id, id, None, b"one")).unwrap().unwrap();
            trx.commit().unwrap();
        }
        let before = engine.core.wal.live_file_bytes();
        runtime::sleep(Duration::from_secs(50));
        (longest, before, engine.core.wal.live_file_bytes())
    });
    let (longest, before, after) = ended.unwrap();
    assert!(before > 4 * longest, "{before} bytes of files");
    assert!(after <= 2 * longest, "{after} bytes of files, {before} before");
}
