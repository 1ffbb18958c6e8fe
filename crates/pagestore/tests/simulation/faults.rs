//! Failing devices: rot of every kind of region, reads that lie, failed writes and syncs, a full
//! disk.

use crate::miniature::{DATA, Miniature, Sizes, options};
use crate::model::{SharedModel, lock};
use base::{PageId, Random};
use codec::CodecId;
use pagestore::{CheckReport, Region, RegionKind, StoreError, StoreOptions};
use runtime::sim::{CrashKind, Disk, DiskConfig, Faults, Operation, SimConfig, Simulation};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SIZES: Sizes = Sizes { segment_bytes: 64 << 10, segments_per_file: 8 };
const EIO: i32 = 5;

fn quiet(seed: u64) -> SimConfig {
    SimConfig { buggify: false, ..SimConfig::new(seed) }
}

/// Fills a store with some history. Errors of single pages are passed over.
fn work(mini: &Miniature, random: &mut Random, operations: u64) -> Result<(), StoreError> {
    for _ in 0..operations {
        let live: Vec<u64> = lock(&mini.model).live.keys().copied().collect();
        let any = if live.is_empty() { 0 } else { live[random.index(live.len())] };
        let outcome = match random.below(10) {
            _ if live.len() < 6 => mini.allocate(random, 2, 13),
            0 if live.len() < 150 => mini.allocate(random, 3, 12),
            1 if live.len() < 150 => mini.allocate(random, 2, 13),
            2 => mini.free(random, any),
            3 | 4 => mini.verify(any),
            _ => mini.patch(random, &[any]),
        };
        match outcome {
            Ok(()) | Err(StoreError::Corrupt { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

/// A disk with a store that was stopped cleanly, and the model of it.
fn stopped_store(seed: u64) -> (Disk, SharedModel) {
    stopped_store_with(seed, |_| {})
}

/// The same with other options.
fn stopped_store_with(
    seed: u64,
    change: impl FnOnce(&mut StoreOptions) + 'static,
) -> (Disk, SharedModel) {
    let model = SharedModel::default();
    let mut simulation = Simulation::new(quiet(seed));
    let shared = model.clone();
    let ended = simulation.run(move || {
        let mut random = Random::new(seed);
        let mut options = options(&mut random);
        change(&mut options);
        let mini = Miniature::start(&shared, options, SIZES).expect("no faults");
        for _ in 0..4 {
            work(&mini, &mut random, 150).expect("no faults");
            mini.store.flush_until(mini.wal.end()).expect("no faults");
            mini.checkpoint().expect("no faults");
        }
        mini.stop().expect("no faults");
    });
    ended.expect("no crash");
    (simulation.crash(CrashKind::Power), model)
}

fn check(disk: &Disk, seed: u64) -> CheckReport {
    let mut simulation = Simulation::with_disk(quiet(seed), disk.clone());
    let report = simulation.run(|| pagestore::check(Path::new(DATA), None).expect("readable"));
    report.expect("a check ends")
}

/// Starts the store on a damaged disk. The pages that turned out corrupt, or why it refused.
fn start_damaged(disk: &Disk, model: &SharedModel, seed: u64) -> Result<Vec<PageId>, StoreError> {
    let mut simulation = Simulation::with_disk(quiet(seed), disk.clone());
    let shared = model.clone();
    let outcome = simulation.run(move || {
        lock(&shared).tolerates_corrupt = true;
        let mut random = Random::new(seed);
        let mini = Miniature::start(&shared, options(&mut random), SIZES)?;
        let corrupt = std::mem::take(&mut lock(&shared).corrupt);
        // The rest goes on serving.
        work(&mini, &mut random, 40)?;
        Ok(corrupt.into_iter().map(PageId::new).collect())
    });
    outcome.expect("no crash")
}

fn path(region: &Region) -> String {
    format!("{DATA}/{}", region.file)
}

#[test]
fn every_flipped_bit_is_found_and_contained() {
    let (mut flips, mut refused, mut corrupt_pages) = (BTreeMap::new(), 0, 0);
    for seed in 0..4 {
        let (disk, model) = stopped_store(seed);
        let clean = check(&disk, seed);
        assert_eq!(clean.findings, [], "seed {seed}");
        assert!(clean.pages > 20 && clean.blobs >= clean.pages, "{}", clean.pages);
        let mut random = Random::new(seed);
        for round in 0..60 {
            let kinds = [
                RegionKind::Superblock,
                RegionKind::SegmentHeader,
                RegionKind::GroupDirectory,
                RegionKind::Blob,
            ];
            let kind = kinds[round % kinds.len()];
            let regions: Vec<_> =
                clean.regions.iter().filter(|region| region.kind == kind).collect();
            let region = random.pick(&regions);
            let offset = region.offset + random.below(region.length);
            let bit = random.below(8) as u8;
            assert!(disk.flip_bit(&path(region), offset, bit));
            let report = check(&disk, seed);
            assert!(!report.findings.is_empty(), "{region:?} at {offset} was not found");
            assert_eq!(report.findings[0].file, region.file, "{:?}", report.findings);
            // Starting changes the disk: on a copy of the damaged file only.
            let before: Vec<_> =
                disk.paths().into_iter().map(|path| (disk.content(&path), path)).collect();
            if round % 3 == 0 {
                match start_damaged(&disk, &model, seed) {
                    Ok(pages) => {
                        let limit = usize::from(kind == RegionKind::Blob);
                        assert!(pages.len() <= limit, "{region:?} at {offset}: {pages:?}");
                        corrupt_pages += pages.len();
                    }
                    Err(StoreError::Damaged { file, .. }) => {
                        assert_ne!(kind, RegionKind::Blob);
                        assert_eq!(file, region.file);
                        refused += 1;
                    }
                    Err(other) => panic!("{region:?} at {offset}: {other}"),
                }
                return_to(&disk, &before);
                let end = lock(&model).stopped_at;
                lock(&model).forget_after(end);
            }
            assert!(disk.flip_bit(&path(region), offset, bit));
            *flips.entry(kind).or_insert(0) += 1;
        }
    }
    println!("flips {flips:?}, {refused} starts refused, {corrupt_pages} corrupt pages met");
    assert!(corrupt_pages > 0);
    assert_eq!(refused, 0, "one flip never hits both copies of what a start needs");
}

fn return_to(disk: &Disk, before: &[(Option<Vec<u8>>, String)]) {
    let known: Vec<&String> = before.iter().map(|(_, path)| path).collect();
    let mut simulation = Simulation::with_disk(quiet(0), disk.clone());
    let fresh: Vec<String> =
        disk.paths().into_iter().filter(|path| !known.contains(&path)).collect();
    let lengths: Vec<(String, u64)> = before
        .iter()
        .map(|(content, path)| (path.clone(), content.as_ref().map_or(0, |it| it.len() as u64)))
        .collect();
    let done = simulation.run(move || {
        for path in fresh {
            runtime::fs::remove_file(path).expect("no faults");
        }
        for (path, length) in lengths {
            let file = runtime::file::OpenOptions::new().create(true).open(path);
            file.and_then(|file| file.set_len(length)).expect("no faults");
        }
    });
    done.expect("no crash");
    drop(simulation);
    for (content, path) in before {
        if let Some(content) = content.as_ref().filter(|content| !content.is_empty()) {
            assert!(disk.overwrite(path, 0, content));
        }
    }
}

#[test]
fn another_pages_copy_is_never_taken_for_ones_own() {
    for seed in 10..14 {
        let (disk, model) = stopped_store(seed);
        let clean = check(&disk, seed);
        let blobs: Vec<_> =
            clean.regions.iter().filter(|region| region.kind == RegionKind::Blob).collect();
        let mut random = Random::new(seed);
        let (from, to) = (random.pick(&blobs), random.pick(&blobs));
        if from == to {
            continue;
        }
        let content = disk.content(&path(from)).expect("a data file");
        let length = from.length.min(to.length) as usize;
        let bytes = &content[from.offset as usize..][..length];
        assert!(disk.overwrite(&path(to), to.offset, bytes));
        assert!(!check(&disk, seed).findings.is_empty());
        let corrupt = start_damaged(&disk, &model, seed).expect("contained");
        assert!(corrupt.len() <= 1, "{corrupt:?}");
    }
}

/// A full copy of a page.
struct Copy {
    region: Region,
    lsn: u64,
    bytes: Vec<u8>,
}

/// The copies of a store that writes no deltas, by page: the newest of each.
fn newest_copies(disk: &Disk, seed: u64) -> BTreeMap<u64, Copy> {
    let report = check(disk, seed);
    assert_eq!(report.findings, [], "seed {seed}");
    let mut copies: BTreeMap<u64, Copy> = BTreeMap::new();
    for region in report.regions.into_iter().filter(|region| region.kind == RegionKind::Blob) {
        let content = disk.content(&path(&region)).expect("a data file");
        let bytes = content[region.offset as usize..][..region.length as usize].to_vec();
        let word =
            |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let (pid, lsn) = (word(8) & ((1 << 48) - 1), word(16));
        if copies.get(&pid).is_none_or(|known| known.lsn < lsn) {
            copies.insert(pid, Copy { region, lsn, bytes });
        }
    }
    copies
}

/// One life more, in which every page changes; returns the disk.
fn change_all(disk: Disk, model: &SharedModel, options: StoreOptions, seed: u64) -> Disk {
    let mut simulation = Simulation::with_disk(quiet(seed), disk);
    let shared = model.clone();
    let ended = simulation.run(move || {
        let mini = Miniature::start(&shared, options, SIZES).expect("no faults");
        let live: Vec<u64> = lock(&shared).live.keys().copied().collect();
        let mut random = Random::new(seed);
        live.iter().for_each(|&pid| mini.patch(&mut random, &[pid]).expect("no faults"));
        mini.stop().expect("no faults");
    });
    ended.expect("no crash");
    simulation.crash(CrashKind::Power)
}

/// A write that was acknowledged and went nowhere, into space where an older copy of the same page
/// stood: its checksum is right, its page is the one asked for, and it is not what was written.
#[test]
fn an_older_copy_in_the_place_of_the_newest_is_never_taken_for_it() {
    for seed in 20..26 {
        // So that all copies of a page are of one length.
        let plain = |options: &mut StoreOptions| {
            options.codec = (CodecId::None, 0);
            options.writes_deltas = false;
        };
        let (disk, model) = stopped_store_with(seed, plain);
        let before = newest_copies(&disk, seed);
        let mut options = options(&mut Random::new(seed));
        plain(&mut options);
        let disk = change_all(disk, &model, options, seed);
        let changed: Vec<_> = newest_copies(&disk, seed)
            .into_iter()
            .filter(|(pid, new)| before.get(pid).is_some_and(|old| old.lsn < new.lsn))
            .filter(|(pid, _)| lock(&model).live.contains_key(pid))
            .collect();
        assert!(changed.len() > 5, "seed {seed}: {}", changed.len());
        let (pid, new) = Random::new(seed).pick(&changed);
        assert!(disk.overwrite(&path(&new.region), new.region.offset, &before[pid].bytes));
        assert!(!check(&disk, seed).findings.is_empty(), "seed {seed}");
        let corrupt = start_damaged(&disk, &model, seed).expect("contained");
        assert_eq!(corrupt, [PageId::new(*pid)], "seed {seed}");
    }
}

#[test]
fn reads_that_lie_never_give_wrong_content() {
    let mut retries = 0;
    let mut corrupt = 0;
    for seed in 0..12 {
        let model = SharedModel::default();
        let mut simulation = Simulation::new(quiet(seed));
        let (shared, disk) = (model.clone(), simulation.disk());
        let ended = simulation.run(move || {
            lock(&shared).tolerates_corrupt = true;
            let mut random = Random::new(seed);
            let mut options = options(&mut random);
            options.pool_bytes = 256 << 10;
            let mini = Miniature::start(&shared, options, SIZES).expect("no faults");
            work(&mini, &mut random, 200).expect("no faults");
            disk.set_faults(Faults { bit_rot: 0.01, stale_read: 0.03, ..Faults::default() });
            let fibers: Vec<_> = (0..6)
                .map(|_| {
                    let (mini, mut random) = (mini.clone(), random.fork());
                    runtime::spawn("worker", move || work(&mini, &mut random, 150))
                })
                .collect();
            for fiber in fibers {
                let outcome = fiber.join().unwrap_or_else(|panic| panic.resume());
                outcome.expect("damage is contained in its page");
            }
            disk.set_faults(Faults::default());
            let counters = mini.store.counters();
            mini.stop().expect("the rest can be stopped cleanly");
            (counters.read_retries, counters.corrupt_pages)
        });
        let (seen_retries, seen_corrupt) = ended.expect("no crash");
        retries += seen_retries;
        corrupt += seen_corrupt;
    }
    println!("{retries} reads repeated, {corrupt} pages reported");
    assert!(retries > 0 && corrupt > 0 && retries > corrupt);
}

/// A failed write or sync of data stops the store; the next start has everything.
#[test]
fn a_failed_write_or_sync_stops_the_store() {
    let cases = [(Operation::Write, 0), (Operation::Write, 7), (Operation::Sync, 0)];
    for (operation, skip) in cases.into_iter().chain([(Operation::Sync, 2)]) {
        let model = SharedModel::default();
        let mut simulation = Simulation::new(quiet(skip));
        let disk = simulation.disk();
        let fatal = Arc::new(AtomicU64::new(0));
        let (shared, calls) = (model.clone(), fatal.clone());
        let ended = simulation.run(move || {
            let mut random = Random::new(skip);
            let mut options = options(&mut random);
            options.on_fatal = Arc::new(move |_| {
                calls.fetch_add(1, Ordering::Relaxed);
            });
            let mini = Miniature::start(&shared, options, SIZES).expect("no fault yet");
            work(&mini, &mut random, 50).expect("no fault yet");
            disk.fail_once(operation, "pages.", skip, EIO);
            let error = loop {
                let worked = work(&mini, &mut random, 20);
                let flushed = worked.and_then(|()| mini.store.flush_until(mini.wal.end()));
                if let Err(error) = flushed.and_then(|()| mini.checkpoint()) {
                    break error;
                }
            };
            assert!(matches!(error, StoreError::Poisoned(_)), "{error}");
            let again = mini.checkpoint();
            assert!(matches!(again, Err(StoreError::Poisoned(_))), "{again:?}");
        });
        ended.expect("an error, not a panic");
        assert_eq!(fatal.load(Ordering::Relaxed), 1, "told once");
        let disk = simulation.crash(CrashKind::Power);
        let mut simulation = Simulation::with_disk(quiet(skip + 100), disk);
        let ended = simulation.run(move || {
            let mut random = Random::new(skip);
            let mini = Miniature::start(&model, options(&mut random), SIZES).expect("recovers");
            work(&mini, &mut random, 50).expect("works");
            mini.stop().expect("stops");
        });
        ended.expect("no crash");
    }
}

/// On a full disk writers get a clear error, readers go on, and all is well when space returns.
#[test]
fn a_full_disk_is_an_error_that_goes_away() {
    let mut met = 0;
    for seed in 0..6 {
        let model = SharedModel::default();
        let config = DiskConfig { quota_bytes: None, ..DiskConfig::default() };
        let mut simulation = Simulation::new(SimConfig { disk: config, ..quiet(seed) });
        let (shared, disk) = (model.clone(), simulation.disk());
        let ended = simulation.run(move || {
            let mut random = Random::new(seed);
            let mut options = options(&mut random);
            options.pool_bytes = 256 << 10;
            options.log_cap_bytes = 32 << 10;
            let mini = Miniature::start(&shared, options, SIZES).expect("no faults");
            work(&mini, &mut random, 100).expect("no faults");
            mini.checkpoint().expect("no faults");
            // The log keeps its files; pages find the disk full.
            disk.set_quota(Some(disk.used_bytes() + (32 << 10)));
            let mut full = 0;
            for _ in 0..300 {
                if full_disk_step(&mini, &mut random) {
                    full += 1;
                }
                if full > 5 {
                    break;
                }
            }
            let live: Vec<u64> = lock(&shared).live.keys().copied().collect();
            let readable = live.iter().take(5).filter(|&&pid| mini.verify(pid).is_ok()).count();
            disk.set_quota(None);
            runtime::sleep(Duration::from_millis(200));
            work(&mini, &mut random, 100).expect("space is back");
            mini.stop().expect("stops");
            (full, readable)
        });
        let (full, readable) = ended.expect("no crash");
        met += full;
        assert!(full == 0 || readable > 0, "pages in memory stay readable");
        let disk = simulation.crash(CrashKind::Power);
        let mut simulation = Simulation::with_disk(quiet(seed + 50), disk);
        let ended = simulation.run(move || {
            let options = options(&mut Random::new(seed));
            Miniature::start(&model, options, SIZES).map(|_| ()).expect("recovers");
        });
        ended.expect("no crash");
    }
    assert!(met > 0, "the disk was never full");
}

/// A change that may find the disk full, be it the log's or the pages'.
fn full_disk_step(mini: &Miniature, random: &mut Random) -> bool {
    if mini.wal.admit(4096).is_err() {
        return true;
    }
    let live: Vec<u64> = lock(&mini.model).live.keys().copied().collect();
    let pid = live[random.index(live.len())];
    let outcome = mini.patch(random, &[pid]);
    let flushed = outcome.and_then(|()| mini.store.flush_until(mini.wal.end()));
    match flushed {
        Ok(()) => false,
        Err(StoreError::DiskFull) => true,
        Err(other) => panic!("{other}"),
    }
}
