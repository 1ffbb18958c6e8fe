//! The controller under the simulated clock: the log's age comes to rest, writes are even.

use crate::miniature::{Miniature, Sizes, options};
use crate::model::{SharedModel, lock};
use base::Random;
use pagestore::{Compression, StoreOptions};
use runtime::sim::{SimConfig, Simulation};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CAP: u64 = 256 << 10;
const STEP: Duration = Duration::from_millis(10);

/// What was seen at a step.
#[derive(Clone, Copy, Debug)]
struct Seen {
    age: u64,
    flushed: u64,
    delay: Duration,
    end: u64,
}

fn quiet(seed: u64) -> SimConfig {
    SimConfig { buggify: false, ..SimConfig::new(seed) }
}

fn large_pool(random: &mut Random) -> StoreOptions {
    let options = options(random);
    StoreOptions { pool_bytes: 4 << 20, log_cap_bytes: CAP, flushers: 2, ..options }
}

fn look(mini: &Miniature) -> Seen {
    Seen {
        age: mini.store.checkpoint_age_bytes(),
        flushed: mini.store.counters().flushed_pages,
        delay: mini.store.throttle_delay(4096),
        end: mini.wal.end().get(),
    }
}

/// Fills a store, then changes its pages at random, one in each `pause`, for so many steps.
fn run(seed: u64, pause: Duration, steps: usize) -> Vec<Seen> {
    let model = SharedModel::default();
    let mut simulation = Simulation::new(quiet(seed));
    let ended = simulation.run(move || {
        let mut random = Random::new(seed);
        let sizes = Sizes { segment_bytes: 256 << 10, segments_per_file: 64 };
        let mini = Miniature::start(&model, large_pool(&mut random), sizes).expect("no faults");
        while lock(&mini.model).live.len() < 150 {
            mini.allocate(&mut random, 2, 13).expect("no faults");
        }
        mini.store.flush_until(mini.wal.end()).expect("no faults");
        let stop = Arc::new(AtomicBool::new(false));
        let changes = {
            let (mini, mut random, stop) = (mini.clone(), random.fork(), stop.clone());
            runtime::spawn("changes", move || {
                while !stop.load(Ordering::Relaxed) {
                    let live: Vec<u64> = lock(&mini.model).live.keys().copied().collect();
                    let pid = live[random.index(live.len())];
                    mini.patch(&mut random, &[pid]).expect("no faults");
                    runtime::sleep(pause);
                }
            })
        };
        let mut seen = Vec::new();
        for step in 0..steps {
            runtime::sleep(STEP);
            seen.push(look(&mini));
            if step % 25 == 0 {
                mini.checkpoint().expect("no faults");
            }
        }
        stop.store(true, Ordering::Relaxed);
        changes.join().expect("no panic");
        mini.stop().expect("no faults");
        seen
    });
    ended.expect("no crash")
}

#[test]
fn the_age_of_the_log_rests_below_back_pressure_and_writes_are_even() {
    for seed in 0..3 {
        let seen = run(seed, Duration::from_micros(200), 1500);
        let rest = &seen[700..];
        let grown = rest[rest.len() - 1].end - rest[0].end;
        assert!(grown > 4 * CAP, "the log went round several times: {grown}");
        let (least, most) = (
            rest.iter().map(|seen| seen.age).min().expect("some"),
            rest.iter().map(|seen| seen.age).max().expect("some"),
        );
        println!("seed {seed}: age {least} to {most} of {CAP}, log grew by {grown}");
        assert!(least > CAP / 5 && most < CAP * 8 / 10, "{least} to {most} of {CAP}");
        assert!(rest.iter().all(|seen| seen.delay.is_zero()), "nobody waits");
        let spans = rest.chunks_exact(25).map(|span| span[24].flushed - span[0].flushed);
        let spans: Vec<u64> = spans.collect();
        let mean = spans.iter().sum::<u64>() as f64 / spans.len() as f64;
        let most = spans.iter().copied().max().expect("some") as f64;
        println!("seed {seed}: {mean:.0} pages in a quarter of a second, at most {most:.0}");
        assert!(mean > 10.0 && most < 2.0 * mean, "{spans:?}");
    }
}

#[test]
fn one_seed_is_one_run() {
    let ages = |seed| run(seed, Duration::from_micros(500), 200).iter().map(|s| s.age).collect();
    let first: Vec<u64> = ages(7);
    assert_eq!(first, ages(7));
}

#[test]
fn pages_that_gain_nothing_are_not_tried_and_the_slow_codecs_are_left_to_helpers() {
    let model = SharedModel::default();
    let mut simulation = Simulation::new(quiet(11));
    let counters = simulation.run(move || {
        let mut random = Random::new(11);
        let sizes = Sizes { segment_bytes: 256 << 10, segments_per_file: 64 };
        let mini = Miniature::start(&model, large_pool(&mut random), sizes).expect("no faults");
        let lzma = Compression::Fixed { codec: codec::CodecId::Lzma, level: 1 };
        mini.store.set_compression(base::TreeId::new(3), lzma);
        for round in 0..20 {
            mini.allocate(&mut random, 2 + round % 2, 13).expect("no faults");
        }
        mini.store.flush_until(mini.wal.end()).expect("no faults");
        let counters = mini.store.counters();
        mini.stop().expect("no faults");
        counters
    });
    let counters = counters.expect("no crash");
    assert!(counters.compression_by_helpers > 0, "{counters:?}");
    assert!(counters.raw_bytes > counters.stored_bytes || counters.compressed_pages == 0);
}

/// The collector's pace is by what its victim held at first: by what is left of it, it would fall
/// behind writers to twice the garbage that is aimed at.
#[test]
fn garbage_stays_near_its_goal_while_pages_are_written() {
    let model = SharedModel::default();
    let mut simulation = Simulation::new(quiet(12));
    let seen = simulation.run(move || {
        let mut random = Random::new(12);
        let sizes = Sizes { segment_bytes: 4 << 20, segments_per_file: 64 };
        let options = StoreOptions {
            pool_bytes: 96 << 20,
            group_bytes: 64 << 10,
            max_pages: 1 << 16,
            codec: (codec::CodecId::None, 0),
            target_utilisation: 0.8,
            writes_deltas: false,
            ..large_pool(&mut random)
        };
        let mini = Miniature::start(&model, options, sizes).expect("no faults");
        while lock(&mini.model).live.len() < 8_000 {
            mini.allocate(&mut random, 2, 13).expect("no faults");
        }
        mini.store.flush_until(mini.wal.end()).expect("no faults");
        let live: Vec<u64> = lock(&mini.model).live.keys().copied().collect();
        let mut seen = Vec::new();
        for round in 0..40_000 {
            let pid = live[random.index(live.len())];
            mini.patch(&mut random, &[pid]).expect("no faults");
            runtime::sleep(Duration::from_millis(1));
            if round % 100 == 0 {
                mini.checkpoint().expect("no faults");
                let debt = mini.store.collection_debt_bytes() as f64;
                seen.push(debt / mini.store.space_in_use().0 as f64);
            }
        }
        mini.stop().expect("no faults");
        seen
    });
    let seen = seen.expect("no crash");
    let mut rest = seen[seen.len() / 2..].to_vec();
    rest.sort_by(f64::total_cmp);
    let median = rest[rest.len() / 2];
    println!("beyond what an idle store keeps: {median:.2} of the live bytes");
    assert!(median < 0.2, "{seen:?}");
}
