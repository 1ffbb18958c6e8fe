//! What a walk over a tree larger than memory reads: the leaves of its range, few others.

mod common;

use base::{Random, TrxId};
use btree::{Batch, Direction};
use common::database::{Database, Shape};
use common::put;
use runtime::sim::{SimConfig, Simulation};
use std::ops::Bound;
use wal::{RecordBuilder, RecordKind};

const KEYS: u64 = 40_000;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A tree of some 2,500 leaves of 16 keys, in a pool that holds a tenth of them. It was filled at
/// so many places in turn.
fn database(places: u64) -> Database {
    let shape = Shape {
        pool_bytes: 1 << 20,
        class: 12,
        segment_bytes: 1 << 20,
        group_bytes: 64 << 10,
        ..Shape::of(1)
    };
    let database = Database::create(&shape);
    let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
    let mut random = Random::new(7);
    for number in 0..KEYS {
        let mut payload = vec![0; 200];
        random.fill(&mut payload);
        let number_there = number % places * (KEYS / places) + number / places;
        put(&database.tree, &mut record, &key(number_there), &(0, 0, payload));
        if number % 1_000 == 999 {
            database.checkpoint();
        }
    }
    database.checkpoint();
    database
}

/// Walks `length` entries from `from` on and returns how many pages were read, and by how many
/// requests.
fn reads(
    database: &Database,
    direction: Direction,
    from: u64,
    length: u64,
    bounded: bool,
) -> (u64, u64) {
    let before = database.store.counters();
    let mut cursor = database.tree.cursor(direction);
    cursor.seek(Bound::Included(&key(from)));
    if bounded {
        let stop = match direction {
            Direction::Forward => from + length - 1,
            Direction::Backward => from + 1 - length,
        };
        cursor.stop_at(Bound::Included(&key(stop)));
    }
    let (mut batch, mut seen) = (Batch::new(), 0);
    while seen < length
        && cursor.next_batch(&mut batch, (length - seen) as usize, 1 << 20).expect("walk")
    {
        seen += batch.len() as u64;
    }
    assert_eq!(seen, length);
    // What was asked for ahead arrives.
    runtime::sleep(std::time::Duration::from_millis(100));
    let after = database.store.counters();
    (after.misses - before.misses, after.reads - before.reads)
}

#[test]
fn a_short_range_reads_few_other_leaves() {
    let done = Simulation::new(SimConfig::new(3)).run(|| {
        let database = database(1);
        let mut random = Random::new(11);
        let walks = 200;
        for direction in [Direction::Forward, Direction::Backward] {
            for (length, bounded, most) in [(50, true, 5), (50, false, 8), (5, false, 3)] {
                let mut all = 0;
                for _ in 0..walks {
                    let from = 1_000 + random.below(KEYS - 2_000);
                    all += reads(&database, direction, from, length, bounded).0;
                }
                assert!(all <= most * walks, "{direction:?} {length} {bounded}: {all} pages");
            }
        }
        database.store.close().expect("close");
        database.wal.close().expect("close");
    });
    done.expect("no deadlock");
}

/// Leaves that lie side by side are read by one request, the one that is needed at once with them;
/// and they lie so even if the tree grew at several places at the same time.
#[test]
fn a_short_range_is_read_by_few_requests() {
    // A group of 64 KiB has four neighbours of each of four places.
    for (places, most_percent) in [(1, 50), (4, 75)] {
        let done =
            Simulation::new(SimConfig { buggify: false, ..SimConfig::new(3) }).run(move || {
                let database = database(places);
                let mut random = Random::new(11);
                let (mut pages, mut requests) = (0, 0);
                for _ in 0..200 {
                    let from = 1_000 + random.below(KEYS - 2_000);
                    let (read, by) = reads(&database, Direction::Forward, from, 50, true);
                    pages += read;
                    requests += by;
                }
                let is_few = requests * 100 < pages * most_percent;
                assert!(is_few, "{places} places: {pages} pages by {requests} requests");
                database.store.close().expect("close");
                database.wal.close().expect("close");
            });
        done.expect("no deadlock");
    }
}
