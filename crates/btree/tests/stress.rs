//! Fibers on several workers of the real runtime at one tree: every fiber keeps its own model, all
//! count in one shared entry, scans stay in order while nodes split and merge under them.

mod common;

use base::{Random, TreeId, TrxId};
use btree::{Batch, Cursor, Direction, Tree};
use common::database::{Database, Shape};
use common::*;
use pagestore::PageStore;
use runtime::{Config, Runtime};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wal::{RecordBuilder, RecordKind};

const FIBERS: u64 = 8;
const COUNTER: &[u8] = b"\xff";

type Mine = BTreeMap<[u8; 8], ModelEntry>;

fn count_up(tree: &Tree, record: &mut RecordBuilder) {
    let done =
        tree.modify(COUNTER, record, &mut |change| match change.entry().map(|entry| entry.word) {
            None => change.insert(0, 1, b"", LOG),
            Some(word) => change.set_header(0, word + 1, LOG),
        });
    assert!(done.expect("modify").record().is_some());
}

fn check_scan(mut cursor: Cursor, fiber: u64, mine: &Mine) {
    let mut batch = Batch::new();
    let mut last: Option<Vec<u8>> = None;
    let mut seen = 0;
    while cursor.next_batch(&mut batch, 50, 10_000).expect("batch") {
        for entry in batch.iter() {
            if let Some(last) = &last {
                let ordered = match cursor.direction() {
                    Direction::Forward => last[..] < *entry.key,
                    Direction::Backward => last[..] > *entry.key,
                };
                assert!(ordered, "keys in order");
            }
            last = Some(entry.key.to_vec());
            let Ok(key) = <[u8; 8]>::try_from(entry.key) else { continue };
            if u64::from_be_bytes(key) % FIBERS == fiber {
                seen += 1;
                let expected = &mine[&key];
                assert!(expected.2 == entry.entry.payload && expected.1 == entry.entry.word);
            }
        }
    }
    assert_eq!(seen, mine.len(), "every own entry is seen once");
}

fn work(tree: &Tree, fiber: u64, steps: u64) {
    let mut random = Random::new(fiber);
    let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
    let mut mine = Mine::new();
    for step in 0..steps {
        let key = (random.below(2000) * FIBERS + fiber).to_be_bytes();
        let shrinking = step / (steps / 4) % 2 == 1;
        if random.chance(if shrinking { 0.8 } else { 0.2 }) {
            assert_eq!(remove(tree, &mut record, &key), mine.remove(&key).is_some());
        } else {
            let length = if random.one_in(200) { random.index(40_000) } else { random.index(300) };
            let entry = (0, step, vec![fiber as u8; length]);
            put(tree, &mut record, &key, &entry);
            mine.insert(key, entry);
        }
        count_up(tree, &mut record);
        let key = (random.below(2000) * FIBERS + fiber).to_be_bytes();
        assert!(get(tree, &key) == mine.get(&key).cloned());
        if step % 400 == 0 {
            let direction = *random.pick(&[Direction::Forward, Direction::Backward]);
            check_scan(tree.cursor(direction), fiber, &mine);
        }
        runtime::yield_if_due();
    }
}

fn run_workers(tree: &Tree, steps: u64) {
    let fibers: Vec<_> = (0..FIBERS)
        .map(|fiber| {
            let tree = tree.clone();
            runtime::spawn_on(fiber as usize, "work", move || work(&tree, fiber, steps))
        })
        .collect();
    for fiber in fibers {
        fiber.join().expect("fiber");
    }
    assert_eq!(get(tree, COUNTER).map(|entry| entry.1), Some(FIBERS * steps));
    let verification = tree.verify().expect("verify");
    assert_eq!(verification.findings, []);
    assert_eq!(tree.store_pages(), verification.pages.len() as u64);
}

/// Runs `body` on two workers with a folder of its own.
fn on_workers(name: &str, body: impl FnOnce(PathBuf) + Send + 'static) {
    let folder = std::env::temp_dir().join(format!("gannet-btree-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("folder");
    let runtime = Runtime::start(Config { workers: 2, ..Config::default() }).expect("runtime");
    let inside = folder.clone();
    runtime.run(move || body(inside));
    runtime.shutdown();
    std::fs::remove_dir_all(folder).expect("folder");
}

#[test]
fn workers_share_a_tree() {
    on_workers("stress", |folder| {
        let wal = log(folder.join("wal").to_str().expect("path"));
        let store = PageStore::volatile(256 << 20, 1 << 18).expect("store");
        let tree = Tree::create(store, wal, TreeId::new(3), 12).expect("tree");
        run_workers(&tree, 12_000);
    });
    for name in ["btree.leaf_split", "btree.leaf_merge", "btree.overflow_written"] {
        assert!(base::probe::count(name) > 0, "no {name}");
    }
}

#[test]
fn workers_share_a_tree_larger_than_memory() {
    on_workers("evict", |folder| {
        let shape = Shape { root: folder, pool_bytes: 1 << 20, class: 12, ..Shape::of(1) };
        let database = Database::create(&shape);
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, checkpointed) = (stop.clone(), database.clone());
        let checkpointer = runtime::spawn("checkpoint", move || {
            while !stopped.load(Ordering::Relaxed) {
                checkpointed.checkpoint();
                runtime::sleep(std::time::Duration::from_millis(20));
            }
        });
        run_workers(&database.tree, 1_500);
        stop.store(true, Ordering::Relaxed);
        checkpointer.join().expect("checkpoints");
        assert!(database.store.counters().evictions > 0, "the pool was large enough");
        database.store.close().expect("close");
        database.wal.close().expect("close");
    });
}
