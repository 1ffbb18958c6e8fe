//! How long operations take in memory: `cargo test --release -p gannet-btree --test speed --
//! --ignored --nocapture`. Prints nanoseconds; asserts only what any machine keeps.

use base::{Random, TreeId, TrxId};
use btree::{Batch, BulkLoader, Direction, EntryBuffer, LogPart, Tree};
use pagestore::PageStore;
use runtime::{Config, Runtime};
use wal::{RecordBuilder, RecordKind, Wal, WalOptions};

const LOG: LogPart<'static> =
    LogPart { kind: RecordKind::Change, trx: TrxId::new(1), logical: &[7; 40] };
const ENTRIES: u64 = 500_000;
const VALUE: [u8; 190] = [7; 190];

fn timed(name: &str, times: u64, mut operation: impl FnMut(u64)) -> f64 {
    let start = std::time::Instant::now();
    (0..times).for_each(&mut operation);
    let nanos = start.elapsed().as_nanos() as f64 / times as f64;
    println!("{name}: {nanos:.0} ns");
    nanos
}

fn key_of(number: u64) -> [u8; 4] {
    (number as u32).to_be_bytes()
}

#[test]
#[ignore = "a measurement"]
fn operations_in_memory() {
    let folder = std::env::temp_dir().join(format!("gannet-btree-speed-{}", std::process::id()));
    let log_folder = folder.clone();
    let runtime = Runtime::start(Config { workers: 1, ..Config::default() }).expect("runtime");
    runtime.run(move || {
        runtime::fs::create_dir_all(&log_folder).expect("folder");
        let wal = Wal::create(&log_folder, WalOptions::new([1; 16]), 1).expect("log");
        let store = PageStore::volatile(1 << 30, 1 << 20).expect("store");
        let tree = Tree::create(store.clone(), wal.clone(), TreeId::new(7), 13).expect("tree");
        let mut loader = BulkLoader::new(&tree, 90).expect("loader");
        timed("bulk load", ENTRIES, |number| {
            loader.push(&key_of(number * 2), 0, 0, &VALUE).expect("push");
        });
        loader.finish().expect("finish");
        measure_reads(&tree);
        measure_changes(&tree, &wal);
    });
    runtime.shutdown();
    std::fs::remove_dir_all(folder).expect("folder");
}

fn measure_reads(tree: &Tree) {
    let mut random = Random::new(1);
    let mut out = EntryBuffer::new();
    for (name, range) in [("get, hot", 1000), ("get, all", ENTRIES)] {
        let nanos = timed(name, 2_000_000, |_| {
            assert!(tree.get(&key_of(random.below(range) * 2), &mut out).expect("get"));
        });
        assert!(nanos < 10_000.0);
    }
    let (mut batch, mut rows) = (Batch::new(), 0);
    let mut cursor = tree.cursor(Direction::Forward);
    let start = std::time::Instant::now();
    while cursor.next_batch(&mut batch, 1000, 1 << 20).expect("batch") {
        rows += batch.len() as u64;
    }
    println!("scan: {:.0} ns a row", start.elapsed().as_nanos() as f64 / rows as f64);
    timed("range of 100", 100_000, |_| {
        cursor.seek(std::ops::Bound::Included(&key_of(random.below(ENTRIES) * 2)));
        let mut rows = 0;
        while rows < 100 && cursor.next_batch(&mut batch, 100 - rows, 1 << 20).expect("batch") {
            rows += batch.len();
        }
    });
}

fn measure_changes(tree: &Tree, wal: &Wal) {
    let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
    let mut random = Random::new(2);
    let mut value = VALUE;
    for (name, range) in [("replace, hot", 1000), ("replace, all", ENTRIES)] {
        timed(name, 1_000_000, |step| {
            value[100] = step as u8;
            let key = key_of(random.below(range) * 2);
            tree.modify(&key, &mut record, &mut |change| change.replace(0, step, &value, LOG))
                .expect("replace");
            runtime::yield_if_due();
        });
    }
    timed("insert, ascending", 500_000, |step| {
        let key = key_of(step + (1 << 30));
        tree.modify(&key, &mut record, &mut |change| change.insert(0, step, &VALUE, LOG))
            .expect("insert");
        runtime::yield_if_due();
    });
    timed("insert, random", 300_000, |step| {
        let key = (random.next_u32() | 1 << 31).to_be_bytes();
        tree.modify(&key, &mut record, &mut |change| {
            if change.entry().is_none() {
                change.insert(0, step, &VALUE, LOG);
            }
        })
        .expect("insert");
        runtime::yield_if_due();
    });
    timed("remove, hot", 200_000, |step| {
        let key = key_of(step + (1 << 30));
        tree.modify(&key, &mut record, &mut |change| change.remove(LOG)).expect("remove");
        runtime::yield_if_due();
    });
    println!("{:?}, log end {}", tree.statistics(), wal.end());
}
