//! The collector's reserve comes before space is short and goes when there is plenty again; a store
//! at rest takes little more than what lives in it.

use crate::miniature::{Miniature, SMALL_BYTES, Sizes, options};
use crate::model::{SharedModel, lock};
use base::Random;
use pagestore::StoreOptions;
use runtime::sim::{CrashKind, Disk, SimConfig, Simulation};
use std::time::Duration;

const SIZES: Sizes = Sizes { segment_bytes: 1 << 20, segments_per_file: 16 };
/// A look of the collector, and what it does then.
const SEEN_WITHIN: Duration = Duration::from_millis(1_500);

fn quiet(seed: u64) -> SimConfig {
    SimConfig { buggify: false, ..SimConfig::new(seed) }
}

fn options_of(random: &mut Random) -> StoreOptions {
    StoreOptions {
        pool_bytes: 32 << 20,
        max_pages: 1 << 16,
        group_bytes: 64 << 10,
        codec: (codec::CodecId::None, 0),
        target_utilisation: 0.8,
        writes_deltas: false,
        ..options(random)
    }
}

/// A store of so many pages, all written.
fn filled(model: &SharedModel, random: &mut Random, pages: usize) -> Miniature {
    let mini = Miniature::start(model, options_of(random), SIZES).expect("no faults");
    while lock(model).live.len() < pages {
        mini.allocate(random, 2, 13).expect("no faults");
    }
    mini.store.flush_until(mini.wal.end()).expect("no faults");
    mini.checkpoint().expect("no faults");
    mini
}

/// Changes pages by chance and writes them.
fn change(mini: &Miniature, random: &mut Random, changes: usize) {
    let live: Vec<u64> = lock(&mini.model).live.keys().copied().collect();
    for change in 0..changes {
        let pid = live[random.index(live.len())];
        mini.patch(random, &[pid]).expect("no faults");
        if change % 50 == 49 {
            mini.store.flush_until(mini.wal.end()).expect("no faults");
            mini.checkpoint().expect("no faults");
        }
    }
}

fn free_bytes(mini: &Miniature) -> u64 {
    mini.store.space_open_and_free().1
}

#[test]
fn the_reserve_comes_before_space_is_short_and_goes_when_there_is_plenty() {
    let model = SharedModel::default();
    let mut simulation = Simulation::new(quiet(21));
    let shared = model.clone();
    let ended = simulation.run(move || {
        let mut random = Random::new(21);
        let disk = runtime::sim::disk().expect("this is a simulation");
        let mini = filled(&shared, &mut random, 1_000);
        runtime::sleep(Duration::from_secs(20));
        assert_eq!(free_bytes(&mini), 0, "nothing is held for what will not come");
        disk.set_quota(Some(disk.used_bytes() + (8 << 20)));
        runtime::sleep(SEEN_WITHIN);
        assert_eq!(free_bytes(&mini), 2 * SIZES.segment_bytes, "two whole segments");
        // All that is left goes at one gulp. Changes go on: what is superseded gives the space.
        disk.set_quota(Some(disk.used_bytes() + (1 << 20)));
        let before = mini.store.counters().collections;
        change(&mini, &mut random, 3_000);
        assert!(mini.store.counters().collections > before + 5, "collection goes on");
        // The power fails; the next start knows whose the space is.
        runtime::sim::crash_now();
    });
    assert!(ended.is_err(), "the power failed");
    let disk = simulation.crash(CrashKind::Power);
    let mut simulation = Simulation::with_disk(quiet(22), disk);
    let ended = simulation.run(move || {
        let mut random = Random::new(22);
        let disk = runtime::sim::disk().expect("this is a simulation");
        let mini = Miniature::start(&model, options_of(&mut random), SIZES).expect("it starts");
        disk.set_quota(Some(SMALL_BYTES));
        runtime::sleep(Duration::from_secs(20));
        assert_eq!(free_bytes(&mini), 2 * SIZES.segment_bytes, "still not plenty");
        let used = disk.used_bytes();
        disk.set_quota(None);
        runtime::sleep(SEEN_WITHIN);
        assert_eq!(free_bytes(&mini), 0, "given back");
        assert!(disk.used_bytes() + 2 * SIZES.segment_bytes <= used + (64 << 10), "really");
        let live: Vec<u64> = lock(&model).live.keys().copied().collect();
        for pid in live {
            mini.verify(pid).expect("no faults");
        }
        mini.stop().expect("no faults");
    });
    ended.expect("no crash");
}

/// Blocks of the data files that hold anything.
fn written_bytes(disk: &Disk) -> u64 {
    let files = disk.paths().into_iter().filter(|path| path.contains("/pages."));
    let contents = files.filter_map(|path| disk.content(&path));
    let blocks = contents.map(|bytes| {
        bytes.chunks(4096).filter(|block| block.iter().any(|&byte| byte != 0)).count()
    });
    blocks.sum::<usize>() as u64 * 4096
}

/// What a store at rest takes for each live byte, and how much was moved for each byte written.
fn at_rest(seed: u64) -> (f64, f64) {
    let model = SharedModel::default();
    let mut simulation = Simulation::new(quiet(seed));
    let seen = simulation.run(move || {
        let mut random = Random::new(seed);
        let mini = filled(&model, &mut random, 3_000);
        change(&mini, &mut random, 6_000);
        runtime::sleep(Duration::from_secs(60));
        let disk = runtime::sim::disk().expect("this is a simulation");
        let (live, allocated) = mini.store.space_in_use();
        let used = written_bytes(&disk);
        assert!(used < allocated + (64 << 10), "{used} bytes of files, told {allocated}");
        let counters = mini.store.counters();
        // Nothing is written any more: it stays as it is.
        runtime::sleep(Duration::from_secs(60));
        assert_eq!(mini.store.counters().moved_bytes, counters.moved_bytes);
        mini.stop().expect("no faults");
        (allocated as f64 / live as f64, counters.moved_bytes as f64 / counters.stored_bytes as f64)
    });
    seen.expect("no crash")
}

#[test]
fn a_store_at_rest_takes_little_more_than_what_lives() {
    for seed in 31..34 {
        let (taken, moved) = at_rest(seed);
        println!(
            "seed {seed}: {taken:.3} bytes for each live one, {moved:.2} moved for each written"
        );
        assert!(taken < 1.14 && moved < 0.6, "{taken}, {moved}");
    }
}
