//! Crashes around the birth and the end of compression dictionaries: no page may ever name one
//! that is not there.
//!
//! A tree that stays and trees that come and go are written with Zstandard, and dictionaries are
//! made after a few pages, whether they gain or not. The power fails, or the process dies, at any
//! step or just when one was made or removed, or soon after. Every page is read after every crash.
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
use miniature::{DATA, Miniature, Sizes, options};
use model::{SharedModel, lock};
use pagestore::{Compression, DictionaryOptions, RegionKind, StoreError};
use runtime::sim::{CrashKind, Disk, SimConfig, SimEnd, Simulation};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The tree of the pages that stay, and the class of all.
const TREE: u32 = 2;
const CLASS: u8 = 13;
/// Pages of a tree: more than a training asks for.
const PAGES: usize = 16;
/// Lives of a seed; all but the last end in a crash.
const LIVES: u64 = 5;
/// Defects that must be found.
const DEFECTS: [&str; 3] =
    ["dictionary_unsynced", "dictionary_name_unsynced", "dictionary_removed_early"];
/// Between two looks at how many dictionaries there are.
const LOOK_PAUSE: Duration = Duration::from_micros(50);
const ZSTD: Compression = Compression::Fixed { codec: CodecId::Zstd, level: 0 };

/// Changes a page by much, so that it is written in full, or by little.
fn change(mini: &Miniature, random: &mut Random, tree: u32) {
    let pids: Vec<u64> = {
        let model = lock(&mini.model);
        model.live.iter().filter(|(_, it)| it.0 == tree).map(|(&pid, _)| pid).collect()
    };
    if pids.len() < PAGES {
        return mini.allocate(random, tree, CLASS).expect("no faults");
    }
    let mut patch = Vec::new();
    let length = if random.one_in(2) { 8 } else { 3_000 };
    let line = format!("what stands on this page {} ", random.below(50));
    let bytes: Vec<u8> = line.bytes().cycle().take(length).collect();
    pagestore::redo::encode_patch(32 + random.index(4_000), &bytes, &mut patch);
    mini.apply_patches(&[pids[random.index(pids.len())]], vec![patch]).expect("no faults");
}

/// The tree that stays.
fn stay(mini: &Miniature, mut random: Random, stop: &AtomicBool) {
    mini.store.set_compression(TreeId::new(TREE), ZSTD);
    let pause_us = *random.pick(&[100, 2_000]);
    while !stop.load(Ordering::Relaxed) {
        change(mini, &mut random, TREE);
        if random.one_in(4) {
            mini.store.flush_until(mini.wal.end()).expect("no faults");
        }
        runtime::sleep(Duration::from_micros(random.below(pause_us)));
    }
}

/// Trees that come and go.
fn come_and_go(mini: &Miniature, mut random: Random, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let tree = lock(&mini.model).next_tree();
        mini.store.set_compression(TreeId::new(tree), ZSTD);
        for _ in 0..random.range(20..80) {
            change(mini, &mut random, tree);
            if random.one_in(6) {
                mini.store.flush_until(mini.wal.end()).expect("no faults");
            }
        }
        runtime::sleep(Duration::from_micros(random.below(20_000)));
        mini.drop_tree(tree).expect("no faults");
        // The drop may still be lost: nothing durable says that redo begins behind it.
        let superblock = mini.store.superblock().expect("a store with files");
        mini.store.remove_unused_dictionaries(superblock.redo_lsn);
    }
}

/// Fails the power at one of the next moments when a dictionary was made or removed, or soon after.
fn crash_at_change(mini: &Miniature, mut random: Random, stop: &AtomicBool) {
    let mut left = random.below(6);
    let after_us = *random.pick(&[200, 5_000, 100_000]);
    let mut seen = mini.store.dictionaries().count;
    while !stop.load(Ordering::Relaxed) {
        runtime::sleep(LOOK_PAUSE);
        let now = mini.store.dictionaries().count;
        if now != seen && left == 0 {
            runtime::sleep(Duration::from_micros(random.below(after_us)));
            runtime::sim::crash_now();
        }
        left = left.saturating_sub(now.abs_diff(seen));
        seen = now;
    }
}

fn checkpoints(mini: &Miniature, mut random: Random, stop: &AtomicBool) {
    let pause_ms = *random.pick(&[3, 30, 200]);
    while !stop.load(Ordering::Relaxed) {
        runtime::sleep(Duration::from_millis(random.below(pause_ms)));
        mini.checkpoint().expect("no faults");
    }
}

fn life(model: &SharedModel, sizes: Sizes, mut random: Random, is_last: bool) {
    let mut options = options(&mut random);
    options.pool_bytes = 1 << 20;
    options.dictionaries =
        DictionaryOptions { after_bytes: 100 << 10, least_gain: -9.0, least_gain_first: -9.0 };
    let mini = Miniature::start(model, options, sizes).expect("no faults");
    let stop = Arc::new(AtomicBool::new(false));
    let mut fibers = Vec::new();
    let mut begin = |what: fn(&Miniature, Random, &AtomicBool)| {
        let (mini, random, stop) = (mini.clone(), random.fork(), stop.clone());
        fibers.push(runtime::spawn("worker", move || what(&mini, random, &stop)));
    };
    begin(stay);
    begin(come_and_go);
    begin(checkpoints);
    if !is_last {
        begin(crash_at_change);
    }
    runtime::sleep(Duration::from_millis(1_000));
    stop.store(true, Ordering::Relaxed);
    for fiber in fibers {
        fiber.join().unwrap_or_else(|panic| panic.resume());
    }
    // Whatever is gone for good has lost its dictionaries by the second checkpoint.
    for _ in 0..2 {
        mini.store.flush_until(mini.wal.end()).expect("no faults");
        mini.checkpoint().expect("no faults");
    }
    mini.stop().expect("no faults");
}

fn quiet(seed: u64) -> SimConfig {
    SimConfig { buggify: false, ..SimConfig::new(seed) }
}

/// What a check of the disk says; it must be nothing.
fn check(disk: &Disk, seed: u64) -> pagestore::CheckReport {
    let mut simulation = Simulation::with_disk(quiet(seed), disk.clone());
    let report = simulation.run(|| pagestore::check(Path::new(DATA), None).expect("readable"));
    report.expect("a check ends")
}

/// Returns how many lives ended in a crash, the disk at the end and the model of it.
fn run_seed(seed: u64) -> (u64, Disk, SharedModel) {
    let model = SharedModel::default();
    let mut random = Random::new(seed);
    let sizes = Sizes { segment_bytes: 256 << 10, segments_per_file: *random.pick(&[2, 64]) };
    let (mut disk, mut crashes) = (None, 0);
    for number in 0..LIVES {
        let is_last = number + 1 == LIVES;
        let mut config = SimConfig::new(seed.wrapping_mul(1000) + number);
        if !is_last && random.one_in(3) {
            let steps = *random.pick(&[1_000, 20_000]);
            config.crash_at_step = Some(1 + random.below(steps));
        }
        let mut simulation = match disk.take() {
            None => Simulation::new(config),
            Some(disk) => Simulation::with_disk(config, disk),
        };
        let (shared, random_of_life) = (model.clone(), random.fork());
        match simulation.run(move || life(&shared, sizes, random_of_life, is_last)) {
            Ok(()) => {}
            Err(SimEnd::Crashed) => crashes += 1,
            Err(other) => panic!("life {number}: {other}"),
        }
        let kind = *random.pick(&[CrashKind::Power, CrashKind::Power, CrashKind::Process]);
        let kind = if is_last { CrashKind::Power } else { kind };
        disk = Some(simulation.crash(kind));
    }
    let disk = disk.expect("lives");
    let report = check(&disk, seed);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    (crashes, disk, model)
}

#[test]
fn no_page_names_a_dictionary_that_is_not_there() {
    let met = hunt::run_seeds(12, run_seed);
    if met.is_empty() {
        return;
    }
    let seeds = met.len() as u64;
    let crashes: u64 = met.iter().map(|(crashes, ..)| crashes).sum();
    assert!(crashes > seeds, "{crashes} crashes in {seeds} seeds");
    println!("{seeds} seeds, {crashes} crashes");
    let counts = base::probe::counts();
    for mark in [
        "pagestore_dictionary_made",
        "pagestore_dictionary_removed",
        "pagestore.checked.dictionary",
        "pagestore_delta_read",
    ] {
        let count = counts.get(mark).copied().unwrap_or(0);
        println!("  {mark} {count}");
        assert!(count > 0, "{mark} was never reached");
    }
    rot_of_dictionaries_is_contained();
    hunt::find_defects(&DEFECTS, run_seed);
}

/// Starts the store on a damaged disk, reads every page and changes some; how many were corrupt.
fn start_damaged(disk: &Disk, model: &SharedModel, seed: u64) -> usize {
    let mut simulation = Simulation::with_disk(quiet(seed), disk.clone());
    let shared = model.clone();
    let outcome = simulation.run(move || {
        lock(&shared).tolerates_corrupt = true;
        let mut random = Random::new(seed);
        let sizes = Sizes { segment_bytes: 256 << 10, segments_per_file: 64 };
        let options = options(&mut random);
        let mini = Miniature::start(&shared, options, sizes).expect("it starts");
        let corrupt = std::mem::take(&mut lock(&shared).corrupt);
        for &pid in &corrupt {
            match mini.store.load(base::PageId::new(pid)).map(drop) {
                Err(StoreError::Corrupt { detail, .. }) => {
                    assert!(detail.contains("dictionary.00000"), "{detail}");
                }
                other => panic!("page {pid}: {other:?}"),
            }
        }
        // The rest goes on serving.
        mini.allocate(&mut random, 3, CLASS).expect("served");
        corrupt.len()
    });
    outcome.expect("no crash")
}

/// One copy of a dictionary is enough; without both, the pages that need it are errors that name
/// it, and all else is served.
fn rot_of_dictionaries_is_contained() {
    let mut corrupt = 0;
    for seed in 100..106 {
        let (_, disk, model) = run_seed(seed);
        let copies: Vec<_> = check(&disk, seed)
            .regions
            .into_iter()
            .filter(|region| region.kind == RegionKind::Dictionary)
            .collect();
        assert!(copies.len() >= 2 && copies.len().is_multiple_of(2), "{copies:?}");
        let mut random = Random::new(seed);
        let flip = |region: &pagestore::Region, random: &mut Random| {
            let offset = region.offset + random.below(region.length);
            let path = format!("{DATA}/{}", region.file);
            assert!(disk.flip_bit(&path, offset, random.below(8) as u8));
        };
        let first = random.index(2);
        copies.iter().skip(first).step_by(2).for_each(|region| flip(region, &mut random));
        let findings = check(&disk, seed).findings;
        assert_eq!(findings.len(), copies.len() / 2, "{findings:?}");
        assert!(findings.iter().all(|finding| finding.file.starts_with("dictionary.")));
        assert_eq!(start_damaged(&disk, &model, seed), 0, "one copy each is enough");
        copies.iter().skip(1 - first).step_by(2).for_each(|region| flip(region, &mut random));
        assert_eq!(check(&disk, seed).findings.len(), copies.len());
        corrupt += start_damaged(&disk, &model, seed);
    }
    println!("{corrupt} pages without their dictionary");
    assert!(corrupt > 0);
}
