//! The engine and the model in memory get the same calls and must give the same answers: one
//! writer at a time with savepoints, several readers with snapshots of different ages.

use super::*;
use crate::memory::MemoryEngine;
use base::Random;
use std::ops::Bound;

/// One transaction in both engines.
struct Pair {
    trx: [Box<dyn Transaction>; 2],
    savepoints: Vec<[engine_api::Savepoint; 2]>,
}

struct Both<'a> {
    engines: [&'a dyn engine_api::Engine; 2],
    tables: [Tested; 2],
    random: Random,
    checks: u64,
}

impl Both<'_> {
    fn begin(&mut self) -> Pair {
        let levels = [Isolation::RepeatableRead, Isolation::ReadCommitted];
        let level = levels[self.random.below(2) as usize];
        let trx = self.engines.map(|engine| engine.begin(isolation(level)));
        Pair { trx, savepoints: Vec::new() }
    }

    /// Runs a call in both and compares what it gives.
    fn same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        pair: &mut Pair,
        what: &str,
        call: impl Fn(&Tested, &mut dyn Transaction) -> T,
    ) -> T {
        let real = call(&self.tables[0], &mut *pair.trx[0]);
        let model = call(&self.tables[1], &mut *pair.trx[1]);
        assert_eq!(real, model, "{what}");
        self.checks += 1;
        real
    }

    fn random_row(&mut self) -> Row {
        let random = &mut self.random;
        let size = match random.below(20) {
            0 => 9000,
            1..=3 => 1500,
            _ => random.below(60) as usize,
        };
        let c = vec![random.below(256) as u8; size];
        let u = random.chance(0.6).then(|| random.below(30) as i64);
        row(random.below(40) as i64, random.below(6) as i64, u, &c)
    }

    fn random_range(&mut self, index: usize) -> KeyRange {
        let (low, high) = (self.random_row(), self.random_row());
        let layout = self.tables[0].table.definition().row_layout();
        let mut bound = |row: &Row| {
            let mut key = Vec::new();
            let values = [[row.id], [row.k], [row.u.unwrap_or(-1)]][index].map(ValueRef::Int);
            let index = self.tables[0].table.definition().index_layout(&layout, index);
            index.push_values(&values, &mut key).unwrap();
            match self.random.below(3) {
                0 => Bound::Included(key),
                1 => Bound::Excluded(key),
                _ => Bound::Unbounded,
            }
        };
        KeyRange { lower: bound(&low), upper: bound(&high) }
    }

    fn read(&mut self, pair: &mut Pair) {
        for trx in &mut pair.trx {
            trx.begin_statement();
        }
        if self.random.chance(0.3) {
            let id = self.random.below(40) as i64;
            self.same(pair, "get", |t, trx| t.get(trx, id, LockMode::None)).unwrap();
            return;
        }
        let index = self.random.below(3) as usize;
        let range = self.random_range(index);
        let covering = self.random.chance(0.3);
        let forward = self.random.chance(0.5);
        let options = ScanOptions {
            index,
            range,
            direction: if forward { ScanDirection::Forward } else { ScanDirection::Backward },
            lock: LockMode::None,
            lock_wait: LockWait::Wait,
            covering,
        };
        let what = format!("scan {options:?}");
        self.same(pair, &what, |t, trx| {
            let mut cursor = t.table.scan(trx, options.clone()).unwrap();
            let (mut rows, mut row) = (Vec::new(), RowBuffer::default());
            while cursor.next(trx, &mut row).unwrap() {
                rows.push(row.clone());
            }
            rows
        });
    }

    fn write(&mut self, pair: &mut Pair) {
        let points = [0, 1].map(|at| pair.trx[at].begin_statement());
        let new = self.random_row();
        let failed = match self.random.below(6) {
            0 | 1 => {
                let done = self.same(pair, "insert", |t, trx| {
                    t.insert(trx, &new).map(|it| it.map_err(|found| found.index))
                });
                done.unwrap().is_err()
            }
            2 | 3 => {
                let (id, keep) = (self.random.below(40) as i64, self.random.chance(0.7));
                let done = self.same(pair, "update", |t, trx| {
                    let change = |row: &mut Row| {
                        let id = row.id;
                        *row = new.clone();
                        row.id = if keep { id } else { row.id };
                    };
                    let done = t.update(trx, id, change).unwrap();
                    done.map(|it| it.map_err(|found| found.index))
                });
                done.is_some_and(|done| done.is_err())
            }
            4 => {
                let id = self.random.below(40) as i64;
                self.same(pair, "delete", |t, trx| t.delete(trx, id)).unwrap();
                false
            }
            _ => {
                let index = self.random.below(3) as usize;
                let limit = self.random.below(4) as usize;
                self.same(pair, "delete by a scan", |t, trx| delete_by_scan(t, trx, index, limit));
                false
            }
        };
        if failed && self.random.chance(0.5) {
            for (trx, point) in pair.trx.iter_mut().zip(points) {
                trx.rollback_to(point).unwrap();
            }
        }
        match self.random.below(12) {
            0 => pair.savepoints.push([0, 1].map(|at| pair.trx[at].savepoint())),
            1 if !pair.savepoints.is_empty() => {
                let at = self.random.below(pair.savepoints.len() as u64) as usize;
                pair.savepoints.truncate(at + 1);
                for (trx, point) in pair.trx.iter_mut().zip(pair.savepoints[at]) {
                    trx.rollback_to(point).unwrap();
                }
            }
            _ => {}
        }
    }
}

fn delete_by_scan(t: &Tested, trx: &mut dyn Transaction, index: usize, limit: usize) -> Vec<Row> {
    let options = ScanOptions {
        index,
        range: KeyRange::all(),
        direction: ScanDirection::Forward,
        lock: LockMode::Exclusive,
        lock_wait: LockWait::Wait,
        covering: false,
    };
    let mut cursor = t.table.scan(trx, options).unwrap();
    let (mut deleted, mut buffer) = (Vec::new(), RowBuffer::default());
    while deleted.len() < limit && cursor.next(trx, &mut buffer).unwrap() {
        t.table.delete(trx, &buffer).unwrap();
        deleted.push(t.decode(&buffer));
    }
    deleted
}

fn end(pair: Pair, commit: bool) {
    for trx in pair.trx {
        if commit { trx.commit().unwrap() } else { trx.rollback().unwrap() }
    }
}

/// Secondary indexes that have the clustered key among their own parts, or not, or both.
fn definition_of(seed: u64) -> TableDefinition {
    let mut definition = definition();
    let [_, k, u] = &mut definition.indexes[..] else { unreachable!("three indexes") };
    match seed % 4 {
        0 => *k = index("k", false, &[1, 0]),
        1 => *k = IndexDefinition { repeats_key: true, ..index("k", false, &[1, 0]) },
        2 => *u = index("u", true, &[2, 0, 1]),
        _ => {}
    }
    definition
}

fn run(seed: u64, steps: u64) -> u64 {
    simulate(seed, move || {
        let (real, model) = (new_engine(), MemoryEngine::new());
        let definition = definition_of(seed);
        let tables =
            [Tested::create_as(&*real, definition.clone()), Tested::create_as(&model, definition)];
        let engines: [&dyn engine_api::Engine; 2] = [&*real, &model];
        let mut both = Both { engines, tables, random: Random::new(seed), checks: 0 };
        let (mut writer, mut readers): (Option<Pair>, Vec<Pair>) = (None, Vec::new());
        for _ in 0..steps {
            match both.random.below(20) {
                0 => {
                    if let Some(pair) = writer.take() {
                        end(pair, both.random.chance(0.7));
                    }
                }
                1 if readers.len() < 4 => readers.push(both.begin()),
                2 if !readers.is_empty() => {
                    let at = both.random.below(readers.len() as u64) as usize;
                    end(readers.swap_remove(at), true);
                }
                3 => {
                    runtime::sleep(Duration::from_millis(50));
                }
                4..=8 if !readers.is_empty() => {
                    let at = both.random.below(readers.len() as u64) as usize;
                    let mut pair = readers.swap_remove(at);
                    both.read(&mut pair);
                    readers.push(pair);
                }
                _ => {
                    let mut pair = writer.take().unwrap_or_else(|| both.begin());
                    if both.random.chance(0.2) {
                        both.read(&mut pair);
                    } else {
                        both.write(&mut pair);
                    }
                    writer = Some(pair);
                }
            }
        }
        writer.into_iter().chain(readers).for_each(|pair| end(pair, true));
        both.tables[0].assert_sound();
        let checks = both.checks;
        real.close().unwrap();
        checks
    })
}

#[test]
fn the_engine_answers_as_the_model_does() {
    let seeds = std::env::var("GANNET_SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(20);
    let checks: u64 = (0..seeds).map(|seed| run(seed, 600)).sum();
    println!("{seeds} seeds: {checks} answers compared");
    assert!(checks > seeds * 100);
}
