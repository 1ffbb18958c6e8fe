//! Crashes at the moments when space is used again or given back: what lay there must be on the
//! disk elsewhere by then, and nobody may still expect it there.
//!
//! A few pages change by some bytes at a time and are written at once, so that segments hold
//! little but deltas; some of them change seldom, so that now and then one delta is the last
//! thing alive in its segment; trees come and go. The power fails right after a segment was
//! opened in used space or given back, long after the last checkpoint or shortly.
//!
//! Alone in its process: the switch for defects is global (simulation/hunt.rs).

#[path = "simulation/hunt.rs"]
mod hunt;
#[allow(dead_code, reason = "shared with the simulation")]
#[path = "simulation/miniature.rs"]
mod miniature;
#[allow(dead_code, reason = "shared with the simulation")]
#[path = "simulation/model.rs"]
mod model;

use base::Random;
use miniature::{Miniature, Sizes, options};
use model::{SharedModel, lock};
use pagestore::{header, redo};
use runtime::sim::{CrashKind, SimConfig, SimEnd, Simulation};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The tree of the pages that stay, and the class of all.
const TREE: u32 = 2;
const CLASS: u8 = 13;
/// Lives of a seed; all but the last end in a crash.
const LIVES: u64 = 4;
/// Defects that must be found.
const DEFECTS: [&str; 4] = [
    "delta_reused_unsynced",
    "delta_of_another_base",
    "reuse_without_sync",
    "holes_before_superblock",
];
/// Between two looks at what became of segments.
const LOOK_PAUSE: Duration = Duration::from_micros(50);

/// Small changes of the pages that stay, each written soon; trees that come and go.
fn change(mini: &Miniature, mut random: Random, stop: &AtomicBool) {
    let stays = random.range(3..8) as usize;
    let pause_us = *random.pick(&[100, 2_000]);
    while !stop.load(Ordering::Relaxed) {
        let pids: Vec<u64> = {
            let model = lock(&mini.model);
            let live = model.live.iter().filter(|(_, it)| it.0 == TREE);
            live.map(|(&pid, _)| pid).collect()
        };
        if pids.len() < stays {
            mini.allocate(&mut random, TREE, CLASS).expect("no faults");
            continue;
        }
        // The first pages are changed all the time, the last ones hardly ever.
        let hot = 1 + random.index(pids.len());
        let pid = pids[random.index(hot)];
        let mut patch = Vec::new();
        let bytes = random.next_u64().to_le_bytes();
        redo::encode_patch(header::HEADER_BYTES + random.index(400), &bytes, &mut patch);
        mini.apply_patches(&[pid], vec![patch]).expect("no faults");
        if random.one_in(2) {
            mini.store.flush_until(mini.wal.end()).expect("no faults");
        }
        if random.one_in(12) {
            let tree = lock(&mini.model).next_tree();
            for _ in 0..random.range(1..6) {
                mini.allocate(&mut random, tree, CLASS).expect("no faults");
            }
            mini.store.flush_until(mini.wal.end()).expect("no faults");
            mini.drop_tree(tree).expect("no faults");
        }
        runtime::sleep(Duration::from_micros(random.below(pause_us)));
    }
}

/// Fails the power at one of the next moments when segments were opened in used space or given
/// back.
fn crash_at_reuse(mini: &Miniature, mut random: Random, stop: &AtomicBool) {
    let mut left = random.below(12);
    let of =
        |counters: pagestore::StoreCounters| counters.segment_reuses + counters.segments_released;
    let mut seen = of(mini.store.counters());
    while !stop.load(Ordering::Relaxed) {
        runtime::sleep(LOOK_PAUSE);
        let now = of(mini.store.counters());
        if now > seen && left == 0 {
            runtime::sleep(Duration::from_micros(random.below(200)));
            runtime::sim::crash_now();
        }
        left = left.saturating_sub(now - seen);
        seen = now;
    }
}

/// Checkpoints; meanwhile the file system has plenty now and less then.
fn checkpoints(mini: &Miniature, mut random: Random, stop: &AtomicBool) {
    let pause_ms = *random.pick(&[5, 50, 1_000]);
    let has_plenty = random.one_in(2);
    while !stop.load(Ordering::Relaxed) {
        miniature::set_plenty(has_plenty != random.one_in(4));
        runtime::sleep(Duration::from_millis(random.below(pause_ms)));
        mini.checkpoint().expect("no faults");
    }
}

fn life(model: &SharedModel, sizes: Sizes, mut random: Random, is_last: bool) {
    let mut options = options(&mut random);
    options.writes_deltas = true;
    options.pool_bytes = 1 << 20;
    options.log_cap_bytes = 4 << 20;
    let mini = Miniature::start(model, options, sizes).expect("no faults");
    let stop = Arc::new(AtomicBool::new(false));
    let mut fibers = Vec::new();
    let mut begin = |what: fn(&Miniature, Random, &AtomicBool)| {
        let (mini, random, stop) = (mini.clone(), random.fork(), stop.clone());
        fibers.push(runtime::spawn("worker", move || what(&mini, random, &stop)));
    };
    begin(change);
    begin(checkpoints);
    if !is_last {
        begin(crash_at_reuse);
    }
    runtime::sleep(Duration::from_millis(1_500));
    stop.store(true, Ordering::Relaxed);
    for fiber in fibers {
        fiber.join().unwrap_or_else(|panic| panic.resume());
    }
    mini.stop().expect("no faults");
}

/// Returns how many lives ended in a crash.
fn run_seed(seed: u64) -> u64 {
    let model = SharedModel::default();
    let mut random = Random::new(seed);
    let sizes = Sizes { segment_bytes: 64 << 10, segments_per_file: *random.pick(&[2, 64]) };
    let (mut disk, mut crashes) = (None, 0);
    for number in 0..LIVES {
        let config = SimConfig::new(seed.wrapping_mul(1000) + number);
        let mut simulation = match disk.take() {
            None => Simulation::new(config),
            Some(disk) => Simulation::with_disk(config, disk),
        };
        let (shared, random_of_life) = (model.clone(), random.fork());
        let is_last = number + 1 == LIVES;
        match simulation.run(move || life(&shared, sizes, random_of_life, is_last)) {
            Ok(()) => {}
            Err(SimEnd::Crashed) => crashes += 1,
            Err(other) => panic!("life {number}: {other}"),
        }
        disk = Some(simulation.crash(CrashKind::Power));
    }
    crashes
}

#[test]
fn space_is_used_again_only_when_nobody_needs_it() {
    let crashes = hunt::run_seeds(30, run_seed);
    if crashes.is_empty() {
        return;
    }
    let seeds = crashes.len() as u64;
    let crashes: u64 = crashes.into_iter().sum();
    assert!(crashes > seeds, "{crashes} crashes in {seeds} seeds");
    println!("{seeds} seeds, {crashes} crashes");
    hunt::find_defects(&DEFECTS, run_seed);
}
