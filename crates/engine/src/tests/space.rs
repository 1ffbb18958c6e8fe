//! Space that comes back: after drops, after deletes, on a full disk.

use super::*;
use runtime::sim::{SimConfig, Simulation};

/// A row in which no codec gains anything.
fn noise(id: i64) -> Row {
    let mut random = base::Random::new(id as u64);
    let c: Vec<u8> = (0..1500).map(|_| random.below(256) as u8).collect();
    row(id, id, Some(id), &c)
}

fn fill(engine: &Engine, t: &Tested, rows: i64) {
    for first in (0..rows).step_by(100) {
        let mut trx = engine.begin(options());
        for id in first..(first + 100).min(rows) {
            t.insert(&mut *trx, &noise(id)).unwrap().unwrap();
        }
        trx.commit().unwrap();
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        runtime::sleep(Duration::from_millis(100));
    }
    panic!("not within a minute: {what}");
}

#[test]
fn a_drop_answers_before_the_pages_are_free() {
    simulate(1, || {
        let engine = new_engine();
        let t = Tested::create(&*engine);
        fill(&engine, &t, 1000);
        let tree = t.table.definition().indexes[0].tree;
        let pages = engine.core.store.space().pages_of(tree);
        assert!(pages > 100);
        let mut trx = engine.begin(options());
        engine.drop_table(&mut *trx, t.table.definition()).unwrap();
        trx.commit().unwrap();
        assert_eq!(engine.core.store.space().pages_of(tree), pages, "they are given back later");
        wait_for("the pages are free", || engine.core.drops.length() == 0);
        assert_eq!(engine.core.store.space().pages_of(tree), 0);
        engine.close().unwrap();
    });
}

#[test]
fn what_deletes_leave_is_merged_collected_and_given_back() {
    let config = SimConfig { buggify: false, ..SimConfig::new(2) };
    Simulation::new(config)
        .run(|| {
            let engine = new_engine();
            let t = Tested::create(&*engine);
            fill(&engine, &t, 3000);
            engine.core.store.flush_until(engine.core.wal.end()).unwrap();
            let mut random = base::Random::new(2);
            for first in (0..3000).step_by(100) {
                let mut trx = engine.begin(options());
                for id in first..first + 100 {
                    if !random.one_in(4) {
                        assert!(t.delete(&mut *trx, id).unwrap());
                    }
                }
                trx.commit().unwrap();
            }
            let usage = || engine.core.store.space_in_use();
            let segment = engine.core.options.segment_bytes;
            wait_for("the files are as small as what lives in them", || {
                let (live, allocated) = usage();
                engine.core.txn.purge_length() == 0 && allocated * 10 <= live * 14 + 60 * segment
            });
            t.assert_sound();
            engine.close().unwrap();
        })
        .unwrap();
}

#[test]
fn a_full_disk_is_an_error_until_there_is_space() {
    let config = SimConfig { buggify: false, ..SimConfig::new(3) };
    Simulation::new(config)
        .run(|| {
            // A file of the log holds more than its ring, as those of a server.
            let mut options_of_engine = tiny("/database", 4 << 20);
            options_of_engine.first_log_file_bytes = 4 << 20;
            options_of_engine.max_log_file_bytes = 4 << 20;
            let engine = Engine::open(options_of_engine).unwrap().0;
            let t = Tested::create(&*engine);
            fill(&engine, &t, 500);
            let disk = runtime::sim::disk().unwrap();
            disk.set_quota(Some(disk.used_bytes() + (12 << 20)));
            let mut id = 500;
            let refused = loop {
                let mut trx = engine.begin(options());
                match t.insert(&mut *trx, &noise(id)) {
                    Ok(inserted) => inserted.unwrap(),
                    Err(error) => break error,
                }
                trx.commit().unwrap();
                id += 1;
                assert!(id < 20_000, "the disk is never full");
            };
            assert_eq!(refused, engine_api::EngineError::DiskFull);
            let mut trx = engine.begin(options());
            assert_eq!(t.all(&mut *trx).len() as i64, id, "reads go on, nothing is lost");
            trx.commit().unwrap();
            disk.set_quota(None);
            wait_for("a row can be inserted again", || {
                let mut trx = engine.begin(options());
                let inserted = t.insert(&mut *trx, &row(-1, -1, None, b"again"));
                inserted.is_ok_and(|inserted| inserted.is_ok()) && trx.commit().is_ok()
            });
            t.assert_sound();
            engine.close().unwrap();
        })
        .unwrap();
}
