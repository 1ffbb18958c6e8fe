//! A change that needs several leaves from disk waits for all of them at once.

use super::*;
use runtime::sim::{SimConfig, Simulation};

const ROWS: i64 = 12_000;
/// Few enough that each finds leaves that no other has brought into memory.
const CHANGES: i64 = 4;

/// Values spread over their index whatever the order of the ids.
fn spread(id: i64) -> i64 {
    id * 7919 % ROWS
}

/// An engine that has nothing of its table in memory.
fn cold() -> (Arc<Engine>, Tested) {
    let engine = new_engine();
    let t = Tested::create(&*engine);
    for first in (0..ROWS).step_by(500) {
        let mut trx = engine.begin(options());
        for id in first..first + 500 {
            let row = row(2 * id, 2 * spread(id), Some(2 * spread(id)), &[7; 40]);
            t.insert(&mut *trx, &row).unwrap().unwrap();
        }
        trx.commit().unwrap();
    }
    let definition = t.table.definition().clone();
    engine.close().unwrap();
    drop((t, engine));
    let engine = new_engine();
    let table = engine.open_table(definition).unwrap();
    (engine, Tested { table })
}

/// Pages that each of some changes far apart reads, and the median of the time for a page.
fn time_of_a_page(
    (engine, t): (Arc<Engine>, Tested),
    change: impl Fn(&Tested, &mut dyn Transaction, i64),
) -> (Vec<u64>, Duration) {
    let mut trx = engine.begin(options());
    // What is not of the rows themselves, such as the upper nodes, is read now.
    change(&t, &mut *trx, ROWS - 1);
    let measured = |number: i64| {
        let (begun, before) = (runtime::now(), engine.core.store.misses());
        change(&t, &mut *trx, number * 2_777 + 100);
        let pages = engine.core.store.misses() - before;
        (pages, begun.elapsed() / pages.max(1) as u32)
    };
    let (pages, mut times): (Vec<_>, Vec<_>) = (0..CHANGES).map(measured).unzip();
    times.sort_unstable();
    trx.rollback().unwrap();
    engine.close().unwrap();
    (pages, times[times.len() / 2])
}

#[test]
fn leaves_of_secondary_indexes_are_read_at_the_same_time() {
    let config = SimConfig { buggify: false, ..SimConfig::new(5) };
    Simulation::new(config)
        .run(|| {
            let (pages, one) = time_of_a_page(cold(), |t, trx, id| {
                assert!(t.get(trx, 2 * id, LockMode::None).unwrap().is_some());
            });
            assert_eq!(pages, [1; CHANGES as usize]);
            let (pages, of_update) = time_of_a_page(cold(), |t, trx, id| {
                let change = |row: &mut Row| {
                    let far = 2 * ((spread(id) + ROWS / 2) % ROWS) + 1;
                    (row.k, row.u) = (far, Some(far));
                };
                t.update(trx, 2 * id, change).unwrap().unwrap().unwrap();
            });
            assert_eq!(pages, [5; CHANGES as usize]);
            assert!(of_update * 3 < one * 2, "{of_update:?} a page, {one:?} if alone");
            let (pages, of_insert) = time_of_a_page(cold(), |t, trx, id| {
                let far = 2 * spread(id) + 1;
                t.insert(trx, &row(2 * id + 1, far, Some(far), b"")).unwrap().unwrap();
            });
            assert_eq!(pages, [3; CHANGES as usize]);
            assert!(of_insert * 3 < one * 2, "{of_insert:?} a page, {one:?} if alone");
            let (pages, of_delete) = time_of_a_page(cold(), |t, trx, id| {
                t.delete(trx, 2 * id).unwrap();
            });
            assert_eq!(pages, [3; CHANGES as usize]);
            // The row says where its keys are, so it is read before the other two.
            assert!(of_delete * 4 < one * 3, "{of_delete:?} a page, {one:?} if alone");
        })
        .expect("the simulation ends well");
}
