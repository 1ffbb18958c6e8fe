//! Crashes while pages are compressed anew that were written larger while cores were short: of two
//! copies with one LSN the one counts that a delta belongs to, and nothing else.
//!
//! Pages of a tree with Zstandard or LZ4 are made while cores are short, so that they are deferred;
//! some of them change, by little, while they are compressed anew. The power fails, or the process
//! dies, at any step or just when some were. Every page is read after every crash.
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

use base::{Random, TreeId};
use codec::CodecId;
use miniature::{Miniature, Sizes, options};
use model::{SharedModel, lock};
use pagestore::{Compression, DictionaryOptions, header, redo};
use runtime::sim::{CrashKind, SimConfig, SimEnd, Simulation};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The tree of the pages that stay, and the class of all.
const TREE: u32 = 2;
const CLASS: u8 = 13;
/// Lives of a seed; all but the last end in a crash.
const LIVES: u64 = 4;
/// Defects that must be found.
const DEFECTS: [&str; 4] =
    ["delta_finds_no_twin", "anew_with_delta", "anew_on_its_way", "anew_by_former_name"];
/// Between two looks at what was compressed.
const LOOK_PAUSE: Duration = Duration::from_micros(50);
/// What the tree asks for, in one life or another.
const CODECS: [CodecId; 4] = [CodecId::Zstd, CodecId::Zstd, CodecId::Zstd, CodecId::Lz4];

/// What seeds have met.
#[derive(Debug, Default)]
struct Met {
    crashes: u64,
    anew_pages: u64,
    chosen_by_delta: u64,
    /// Starts that found copies which were still to be compressed anew.
    found_at_start: u64,
}

/// A line that Zstandard makes much less of than LZ4, at some place of the page.
fn fill(mini: &Miniature, random: &mut Random, pid: u64) {
    let digits: Vec<u8> = (0..2_500).map(|_| b'0' + random.below(10) as u8).collect();
    patch(mini, pid, header::HEADER_BYTES + random.index(3_000), &digits);
}

fn patch(mini: &Miniature, pid: u64, offset: usize, bytes: &[u8]) {
    let mut patch = Vec::new();
    redo::encode_patch(offset, bytes, &mut patch);
    mini.apply_patches(&[pid], vec![patch]).expect("no faults");
}

fn pages(mini: &Miniature) -> Vec<u64> {
    let model = lock(&mini.model);
    model.live.iter().filter(|(_, it)| it.0 == TREE).map(|(&pid, _)| pid).collect()
}

/// Makes pages as a load does, changes some a little, frees some.
fn change(mini: &Miniature, mut random: Random, stop: &AtomicBool) {
    let most = random.range(12..60) as usize;
    let pause_us = *random.pick(&[500, 2_000, 5_000]);
    while !stop.load(Ordering::Relaxed) {
        let pids = pages(mini);
        if pids.len() < most && random.one_in(3) {
            mini.allocate(&mut random, TREE, CLASS).expect("no faults");
            let new: Vec<u64> = pages(mini).into_iter().filter(|pid| !pids.contains(pid)).collect();
            new.into_iter().for_each(|pid| fill(mini, &mut random, pid));
            mini.store.flush_until(mini.wal.end()).expect("no faults");
        } else if !pids.is_empty() {
            let pid = pids[random.index(pids.len())];
            match random.below(12) {
                0..3 => mini.free(&mut random, pid).expect("no faults"),
                3 => fill(mini, &mut random, pid),
                _ => {
                    let bytes = random.next_u64().to_le_bytes();
                    patch(mini, pid, header::HEADER_BYTES + random.index(400), &bytes);
                }
            }
            if random.one_in(3) {
                mini.store.flush_until(mini.wal.end()).expect("no faults");
            }
        }
        runtime::sleep(Duration::from_micros(random.below(pause_us)));
    }
}

/// Cores are short now and then, for either reason, and long enough not.
fn wait_for_cores(_: &Miniature, mut random: Random, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let core_wait = *random.pick(&[0, 500]);
        runtime::sim::set_pressure(core_wait, 1000 - core_wait);
        runtime::sleep(Duration::from_millis(random.range(100..400)));
        runtime::sim::set_pressure(0, 0);
        runtime::sleep(Duration::from_millis(random.range(400..1_200)));
    }
}

/// Fails the power at one of the next moments when pages were compressed anew, or soon after.
fn crash_at_change(mini: &Miniature, mut random: Random, stop: &AtomicBool) {
    let mut left = random.below(20);
    let after_us = *random.pick(&[5_000, 100_000, 100_000]);
    let mut seen = mini.store.counters().anew_pages;
    while !stop.load(Ordering::Relaxed) {
        runtime::sleep(LOOK_PAUSE);
        let now = mini.store.counters().anew_pages;
        if now > seen && left == 0 {
            runtime::sleep(Duration::from_micros(random.below(after_us)));
            runtime::sim::crash_now();
        }
        left = left.saturating_sub(now - seen);
        seen = now;
    }
}

fn checkpoints(mini: &Miniature, mut random: Random, stop: &AtomicBool) {
    let pause_ms = *random.pick(&[2, 20, 1_000]);
    while !stop.load(Ordering::Relaxed) {
        runtime::sleep(Duration::from_millis(random.below(pause_ms)));
        mini.checkpoint().expect("no faults");
    }
}

/// Reads pages that may have left memory meanwhile.
fn read(mini: &Miniature, mut random: Random, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let pids = pages(mini);
        if !pids.is_empty() {
            mini.verify(pids[random.index(pids.len())]).expect("no faults");
        }
        runtime::sleep(Duration::from_micros(random.below(3_000)));
    }
}

/// Returns how many pages were compressed anew.
fn life(
    model: &SharedModel,
    sizes: Sizes,
    mut random: Random,
    is_last: bool,
    found_at_start: &AtomicU64,
) -> u64 {
    miniature::set_plenty(true);
    let mut options = options(&mut random);
    options.writes_deltas = true;
    options.log_cap_bytes = 4 << 20;
    options.catch_up_after = Duration::from_millis(random.below(50));
    // Dictionaries make two copies that are as long as each other.
    options.dictionaries = DictionaryOptions { after_bytes: 64 << 10, ..options.dictionaries };
    let mini = Miniature::start(model, options, sizes).expect("no faults");
    found_at_start.fetch_add(u64::from(mini.store.deferred_bytes() > 0), Ordering::Relaxed);
    let compression = Compression::Fixed { codec: *random.pick(&CODECS), level: 0 };
    mini.store.set_compression(TreeId::new(TREE), compression);
    mini.store.start_catching_up();
    let stop = Arc::new(AtomicBool::new(false));
    let mut fibers = Vec::new();
    let mut begin = |what: fn(&Miniature, Random, &AtomicBool)| {
        let (mini, random, stop) = (mini.clone(), random.fork(), stop.clone());
        fibers.push(runtime::spawn("worker", move || what(&mini, random, &stop)));
    };
    [change, wait_for_cores, checkpoints, read].into_iter().for_each(&mut begin);
    if !is_last {
        begin(crash_at_change);
    }
    runtime::sleep(Duration::from_millis(2_000));
    stop.store(true, Ordering::Relaxed);
    for fiber in fibers {
        fiber.join().unwrap_or_else(|panic| panic.resume());
    }
    let anew_pages = mini.store.counters().anew_pages;
    mini.stop().expect("no faults");
    anew_pages
}

fn run_seed(seed: u64) -> Met {
    let chosen = || base::probe::count("pagestore_delta_chooses_its_base");
    let chosen_before = chosen();
    let model = SharedModel::default();
    let mut random = Random::new(seed);
    let sizes = Sizes { segment_bytes: 64 << 10, segments_per_file: *random.pick(&[2, 64]) };
    let mut met = Met::default();
    let found = Arc::new(AtomicU64::new(0));
    let mut disk = None;
    for number in 0..LIVES {
        let config = SimConfig::new(seed.wrapping_mul(1000) + number);
        let mut simulation = match disk.take() {
            None => Simulation::new(config),
            Some(disk) => Simulation::with_disk(config, disk),
        };
        let (shared, found, random_of_life) = (model.clone(), found.clone(), random.fork());
        let is_last = number + 1 == LIVES;
        let life = move || life(&shared, sizes, random_of_life, is_last, &found);
        match simulation.run(life) {
            Ok(pages) => met.anew_pages += pages,
            Err(SimEnd::Crashed) => met.crashes += 1,
            Err(other) => panic!("life {number}: {other}"),
        }
        let kind = if random.one_in(3) { CrashKind::Process } else { CrashKind::Power };
        disk = Some(simulation.crash(kind));
    }
    met.chosen_by_delta = chosen() - chosen_before;
    met.found_at_start = found.load(Ordering::Relaxed);
    met
}

#[test]
fn the_copy_counts_that_a_delta_belongs_to() {
    // A delta has to choose between two copies in some six of a hundred.
    let met = hunt::run_seeds(150, run_seed);
    if met.is_empty() {
        return;
    }
    let seeds = met.len() as u64;
    let met = met.into_iter().fold(Met::default(), |sum, one| Met {
        crashes: sum.crashes + one.crashes,
        anew_pages: sum.anew_pages + one.anew_pages,
        chosen_by_delta: sum.chosen_by_delta + one.chosen_by_delta,
        found_at_start: sum.found_at_start + one.found_at_start,
    });
    println!("{seeds} seeds: {met:?}");
    assert!(met.crashes > seeds && met.anew_pages > seeds);
    assert!(met.chosen_by_delta > 0 && met.found_at_start > 0);
    hunt::find_defects(&DEFECTS, run_seed);
}
