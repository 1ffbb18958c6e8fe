//! The tree under eight fibers in the simulated twin, against a model; then its log applied to
//! nothing and to an older state of the pages.

mod common;

use base::{Random, TreeId, TrxId};
use btree::{BulkLoader, Direction, Tree};
use common::*;
use pagestore::PageStore;
use runtime::sim::{SimConfig, Simulation};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wal::{FIRST_LSN, RecordBuilder, RecordKind};

const FIBERS: u64 = 8;

/// Random work of one fiber on keys that end in its number; returns its part of the model.
fn work(tree: &Tree, fiber: u64, seed: u64, steps: u64, mut model: Model) -> Model {
    let mut random = Random::new(seed ^ (fiber + 1).wrapping_mul(0x9E37_79B9));
    let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
    for step in 0..steps {
        let shrinking = (step / (steps / 4).max(1)) % 2 == 1;
        let mut key = random_key(&mut random, tree.max_key_bytes() - 1);
        key.push(fiber as u8);
        if random.chance(if shrinking { 0.9 } else { 0.5 })
            && let Some((near, _)) = model.range(key.clone()..).next()
        {
            key = near.clone();
        }
        // As those do who prepare lookups of several connections: of this key, or of another one,
        // which another fiber may look up after its leaf was split or merged.
        if random.chance(0.3) {
            tree.prefetch_leaf(&key);
        }
        if random.one_in(4) {
            let mut other = key.clone();
            *other.last_mut().expect("keys end in their fiber") = random.index(8) as u8;
            tree.prefetch_leaf(&other);
        }
        match random.index(10) {
            0..=6 if shrinking => {
                assert_eq!(remove(tree, &mut record, &key), model.remove(&key).is_some());
            }
            0 => {
                let (flags, word) = (btree::DELETED, random.next_u64());
                assert_eq!(mark(tree, &mut record, &key, flags, word), model.contains_key(&key));
                if let Some(entry) = model.get_mut(&key) {
                    (entry.0, entry.1) = (flags, word);
                }
            }
            _ => {
                let payload = random_payload(&mut random, 100_000);
                let entry = (random.next_u32() as u8 & !2, random.next_u64(), payload);
                put(tree, &mut record, &key, &entry);
                model.insert(key.clone(), entry);
            }
        }
        assert!(get(tree, &key) == model.get(&key).cloned(), "fiber {fiber} step {step}");
        if random.one_in(200) {
            let direction = *random.pick(&[Direction::Forward, Direction::Backward]);
            let all = scan(tree, direction, Bound::Unbounded, Bound::Unbounded, 30);
            let mut mine: Vec<_> =
                all.into_iter().filter(|(key, _)| key.last() == Some(&(fiber as u8))).collect();
            if direction == Direction::Backward {
                mine.reverse();
            }
            assert!(mine.iter().map(|(key, entry)| (key, entry)).eq(model.iter()), "own entries");
        }
        if random.one_in(6) {
            runtime::yield_now();
        }
    }
    model
}

fn run_fibers(tree: &Tree, seed: u64, steps: u64, model: &mut Model) {
    let mut parts = vec![Model::new(); FIBERS as usize];
    for (key, entry) in std::mem::take(model) {
        let fiber = usize::from(*key.last().expect("keys end in their fiber"));
        parts[fiber].insert(key, entry);
    }
    let fibers: Vec<_> = (0..FIBERS)
        .zip(parts)
        .map(|(fiber, part)| {
            let tree = tree.clone();
            runtime::spawn("work", move || work(&tree, fiber, seed, steps, part))
        })
        .collect();
    for fiber in fibers {
        model.extend(fiber.join().expect("fiber"));
    }
}

fn same_pages(redone: &Images, expected: &Images) {
    for (pid, page) in expected {
        let copy = redone.get(pid).unwrap_or_else(|| panic!("page {pid} was not redone"));
        // The page's own number is the store's to write.
        assert!(copy[..8] == page[..8] && copy[16..] == page[16..], "page {pid} differs");
    }
}

fn simulate(seed: u64, class: u8, steps: u64) {
    let mut simulation = Simulation::new(SimConfig::new(seed));
    let done = simulation.run(move || {
        let wal = log("wal");
        let store = PageStore::volatile(512 << 20, 1 << 20).expect("store");
        let tree = Tree::create(store.clone(), wal.clone(), TreeId::new(7), class).expect("tree");
        let mut random = Random::new(seed);
        let mut model = Model::new();
        run_fibers(&tree, seed, steps, &mut model);
        check_all(&tree, &model, &mut random);
        let (older, middle) = (images(&tree, &store), wal.end());
        let (walked, is_over) = (tree.clone(), Arc::new(AtomicBool::new(false)));
        let over = is_over.clone();
        let walker = runtime::spawn("walk", move || {
            while !over.load(Ordering::Relaxed) {
                let mut key = Vec::new();
                while walked.merge_sparse(&mut key, 3).expect("walk") {
                    runtime::yield_now();
                }
                runtime::sleep(Duration::from_micros(50));
            }
        });
        run_fibers(&tree, seed + 1_000_000, steps, &mut model);
        is_over.store(true, Ordering::Relaxed);
        walker.join().expect("walker");
        check_all(&tree, &model, &mut random);
        let now = images(&tree, &store);
        let mut from_nothing = Images::new();
        assert!(redo(&wal, "wal", FIRST_LSN, &mut from_nothing) > 0);
        same_pages(&from_nothing, &now);
        let mut from_older = older;
        assert!(redo(&wal, "wal", middle, &mut from_older) > 0);
        same_pages(&from_older, &now);
        let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
        for key in model.keys() {
            assert!(remove(&tree, &mut record, key));
        }
        check_all(&tree, &Model::new(), &mut random);
        assert!(tree.statistics().expect("statistics").leaf_pages < 10);
    });
    if let Err(end) = done {
        panic!("seed {seed} class {class}: {end}");
    }
}

#[test]
fn fibers_agree_with_a_model_and_redo_gives_the_same_pages() {
    let seeds = seeds(4);
    let several = seeds.end - seeds.start > 1;
    for seed in seeds {
        for class in [12, 13, 15] {
            simulate(seed, class, 250);
        }
    }
    for name in ["leaf_split", "inner_split", "leaf_merge", "root_grown", "root_shrunk"] {
        assert!(base::probe::count(&format!("btree.{name}")) > 0 || !several, "no {name}");
    }
    println!("{:?}", base::probe::counts());
}

#[test]
fn what_deletes_leave_sparse_is_closed_up() {
    let done = Simulation::new(SimConfig { buggify: false, ..SimConfig::new(9) }).run(|| {
        let wal = log("wal");
        let store = PageStore::volatile(256 << 20, 1 << 20).expect("store");
        let tree = Tree::create(store.clone(), wal, TreeId::new(7), 13).expect("tree");
        let mut random = Random::new(9);
        let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
        let mut model = Model::new();
        for number in 0..20_000u32 {
            let (key, entry) = (number.to_be_bytes().to_vec(), (0, 1, vec![7; 180]));
            put(&tree, &mut record, &key, &entry);
            model.insert(key, entry);
        }
        let full = tree.store_pages();
        let keys: Vec<Vec<u8>> = model.keys().cloned().collect();
        for key in keys {
            if !random.one_in(4) {
                assert!(remove(&tree, &mut record, &key));
                model.remove(&key);
            }
        }
        let (before, mut key) = (tree.sample_fill().expect("sample"), Vec::new());
        while tree.merge_sparse(&mut key, 100).expect("walk") {}
        let (after, pages) = (tree.sample_fill().expect("sample"), tree.store_pages());
        assert!(before < 0.4 && after > 0.55, "filled {before} before, {after} after");
        assert!(pages * 100 < full * 40, "{pages} pages of {full} for a quarter of the entries");
        check_all(&tree, &model, &mut random);
    });
    done.expect("the simulation ends well");
}

#[test]
fn bulk_loaded_trees_agree_with_a_model() {
    let done = Simulation::new(SimConfig::new(3)).run(|| {
        let wal = log("wal");
        let store = PageStore::volatile(256 << 20, 1 << 20).expect("store");
        let cases =
            [(13, 90, 20_000u64), (13, 100, 1), (13, 70, 0), (12, 100, 3000), (15, 50, 900)];
        for (number, (class, fill, count)) in cases.into_iter().enumerate() {
            let id = TreeId::new(number as u32 + 1);
            let tree = Tree::create(store.clone(), wal.clone(), id, class).expect("tree");
            let mut random = Random::new(fill as u64);
            let mut model = Model::new();
            for number in 0..count {
                let mut key = (number * 3).to_be_bytes().to_vec();
                if class != 13 {
                    key = random_key(&mut random, tree.max_key_bytes());
                }
                let payload = match random.one_in(500) {
                    true => random_payload(&mut random, 100_000),
                    false => vec![7; random.index(200)],
                };
                model.insert(key, (1, number, payload));
            }
            let mut loader = BulkLoader::new(&tree, fill).expect("loader");
            for (key, (flags, word, payload)) in &model {
                loader.push(key, *flags, *word, payload).expect("push");
            }
            assert!(loader.push(&[], 0, 0, &[]).is_err() || count == 0, "keys must ascend");
            let mut loader = BulkLoader::new(&tree, fill).expect("the tree is still empty");
            for (key, (flags, word, payload)) in &model {
                loader.push(key, *flags, *word, payload).expect("push");
            }
            let summary = loader.finish().expect("finish");
            assert!(BulkLoader::new(&tree, fill).is_err() || count == 0, "not empty");
            let found = tree.verify().expect("verify");
            let counts = (found.leaf_pages, found.inner_pages, found.entries);
            assert_eq!((summary.leaf_pages, summary.inner_pages, summary.entries), counts);
            if count > 10_000 {
                let per_leaf = summary.entries * 130 / summary.leaf_pages;
                assert!(per_leaf > 8192 * 80 / 100, "leaves are filled: {per_leaf} bytes each");
            }
            run_after_load(&tree, &mut model, &mut random);
        }
    });
    done.expect("simulation");
}

/// A loaded tree takes changes like any other.
fn run_after_load(tree: &Tree, model: &mut Model, random: &mut Random) {
    let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
    for _ in 0..500 {
        let key = random_key(random, tree.max_key_bytes());
        let entry = (0, 1, random_payload(random, 9000));
        put(tree, &mut record, &key, &entry);
        model.insert(key, entry);
    }
    let verification = tree.verify().expect("verify");
    assert_eq!((verification.findings, verification.entries), (vec![], model.len() as u64));
    let all = scan(tree, Direction::Forward, Bound::Unbounded, Bound::Unbounded, 64);
    assert!(all.iter().map(|(key, entry)| (key, entry)).eq(model.iter()));
}

#[test]
fn keys_and_values_beyond_the_limits_are_errors() {
    let done = Simulation::new(SimConfig::new(1)).run(|| {
        let wal = log("wal");
        let store = PageStore::volatile(64 << 20, 1 << 16).expect("store");
        let tree = Tree::create(store, wal.clone(), TreeId::new(1), 13).expect("tree");
        let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
        let long = vec![1; tree.max_key_bytes() + 1];
        let refused = tree.modify(&long, &mut record, &mut |change| change.insert(0, 0, b"", LOG));
        assert!(matches!(refused, Err(btree::TreeError::KeyTooLong { .. })));
        assert_eq!(get(&tree, &long), None);
        let logical = vec![0; wal.max_record_bytes() + 1];
        let log = btree::LogPart { logical: &logical, ..LOG };
        let refused = tree.modify(b"key", &mut record, &mut |change| change.insert(0, 0, b"", log));
        assert!(matches!(refused, Err(btree::TreeError::ValueTooLong { .. })));
        assert_eq!(get(&tree, b"key"), None);
        let longest = vec![2; tree.max_key_bytes()];
        put(&tree, &mut record, &longest, &(0, 9, vec![3; 3_000_000]));
        assert_eq!(get(&tree, &longest), Some((0, 9, vec![3; 3_000_000])));
    });
    done.expect("simulation");
}
