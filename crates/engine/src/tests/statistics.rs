//! Estimates: never those of a table that is no longer there, made anew in the background, kept
//! over the end of a run.

use super::{Tested, options, row, simulate, tiny};
use crate::Engine;
use engine_api::{ColumnStatistics, Engine as _, Table, TableDefinition};
use runtime::sim::{CrashKind, SimConfig, Simulation};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn fill(engine: &Engine, t: &Tested, ids: Range<i64>) {
    let mut trx = engine.begin(options());
    for id in ids {
        t.insert(&mut *trx, &row(id, id * 31 % 400, Some(id), b"xyz")).unwrap().unwrap();
    }
    trx.commit().unwrap();
}

fn distinct(table: &dyn Table, column: usize) -> f64 {
    table.column_statistics(column).unwrap().distinct
}

#[test]
fn a_table_that_was_just_filled_is_not_taken_for_an_empty_one() {
    simulate(1, || {
        let engine = super::new_engine();
        let t = Tested::create(&*engine);
        assert_eq!((t.table.statistics().rows, distinct(&*t.table, 1)), (0, 0.0));
        fill(&engine, &t, 0..1);
        assert_eq!((t.table.statistics().rows, distinct(&*t.table, 1)), (1, 1.0));
        fill(&engine, &t, 1..1500);
        let rows = t.table.statistics().rows;
        assert!((1300..1700).contains(&rows), "{rows}");
        assert!((300.0..500.0).contains(&distinct(&*t.table, 1)));
        // Nor one that has a tenth more, as long as it is small.
        fill(&engine, &t, 1500..1800);
        let rows = t.table.statistics().rows;
        assert!((1600..2000).contains(&rows), "{rows}");
        engine.close().unwrap();
    });
}

#[test]
fn what_grows_old_is_made_anew_in_the_background() {
    simulate(2, || {
        let engine = super::new_engine();
        let t = Tested::create(&*engine);
        fill(&engine, &t, 0..5000);
        let before = (t.table.statistics().rows, distinct(&*t.table, 0));
        fill(&engine, &t, 5000..6500);
        assert_eq!((t.table.statistics().rows, distinct(&*t.table, 0)), before);
        runtime::sleep(Duration::from_millis(100));
        let after = (t.table.statistics().rows, distinct(&*t.table, 0));
        assert!(after.0 > before.0 && after.1 > before.1, "{before:?} {after:?}");
        // Without being asked for, too.
        fill(&engine, &t, 6500..9000);
        runtime::sleep(Duration::from_secs(3));
        let kept = t.table.statistics().rows;
        assert!((8000..10_000).contains(&kept), "{kept}");
        engine.close().unwrap();
    });
}

/// What one life leaves to the next.
#[derive(Default)]
struct Left {
    table: Option<Arc<TableDefinition>>,
    rows: u64,
    distinct: Vec<Vec<u64>>,
    column: Option<Arc<ColumnStatistics>>,
}

#[test]
fn estimates_outlive_a_restart_and_a_crash() {
    for (seed, kind) in [(3, None), (4, Some(CrashKind::Power)), (5, Some(CrashKind::Process))] {
        let left: Arc<Mutex<Left>> = Arc::default();
        let mut simulation = Simulation::new(SimConfig::new(seed));
        let shared = left.clone();
        let first = move || {
            let engine = Engine::open(tiny("/database", 4 << 20)).unwrap().0;
            let t = Tested::create(&*engine);
            fill(&engine, &t, 0..5000);
            let statistics = t.table.statistics();
            *shared.lock().unwrap() = Left {
                table: Some(t.table.definition().clone()),
                rows: statistics.rows,
                distinct: statistics.distinct,
                column: t.table.column_statistics(1),
            };
            match kind {
                // Nothing was saved before the shutdown.
                None => engine.close().unwrap(),
                Some(_) => drop(runtime::sleep(Duration::from_secs(4))),
            }
        };
        simulation.run(first).unwrap();
        let disk = simulation.crash(kind.unwrap_or(CrashKind::Process));
        let second = move || {
            let engine = Engine::open(tiny("/database", 4 << 20)).unwrap().0;
            let left = left.lock().unwrap();
            let table = engine.open_table(left.table.clone().unwrap()).unwrap();
            let statistics = table.statistics();
            assert_eq!((statistics.rows, &statistics.distinct), (left.rows, &left.distinct));
            assert_eq!(table.column_statistics(1), left.column);
            // Looked at, and found good.
            runtime::sleep(Duration::from_secs(3));
            assert_eq!(table.statistics().distinct, left.distinct);
            let mut trx = engine.begin(options());
            engine.drop_table(&mut *trx, table.definition()).unwrap();
            trx.commit().unwrap();
            runtime::sleep(Duration::from_secs(3));
            let mut trx = engine.begin(options());
            let key = [0, b's'];
            let kept = crate::dictionary::scan(crate::transaction::own(&mut *trx), &key).unwrap();
            assert_eq!(kept, Vec::new(), "a dropped table leaves nothing");
            trx.rollback().unwrap();
            engine.close().unwrap();
        };
        let config = SimConfig::new(seed + 100);
        Simulation::with_disk(config, disk).run(second).unwrap();
    }
}
