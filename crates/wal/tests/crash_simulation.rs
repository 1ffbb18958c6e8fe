//! The log under crash simulation: many fibers append and wait, the power fails or the process
//! dies at any step (recovery included), and a model says what must be read back.
//!
//! `GANNET_SIM_SEEDS=n` runs n seeds (default 300), `GANNET_SIM_SEED=s` replays one seed.

use base::checksum::crc32c;
use base::{Lsn, Random, TrxId};
use runtime::sim::{CrashKind, Disk, SimConfig, SimEnd, Simulation};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use wal::{
    FIRST_LSN, FlushPolicy, LogEnd, Reader, RecordBuilder, RecordKind, RecordView, Wal, WalOptions,
};

const UUID: [u8; 16] = *b"simulated log 01";
const DIR: &str = "/log";

/// What the world outside the log knows. It survives crashes as a superblock would.
#[derive(Default)]
struct Model {
    created: bool,
    epoch: u32,
    /// Everything below may have been recycled.
    low: u64,
    /// The log said: durable up to here.
    durable: u64,
    /// The log said: written up to here (survives the process, not the power).
    written: u64,
    /// Start of each record appended and not known to be lost: its end and checksum.
    records: BTreeMap<u64, (u64, u32)>,
    /// The power has failed since the last recovery that read to the end.
    power_failed: bool,
    is_uniform: bool,
    appended: u64,
    recoveries: u64,
    recycled: u64,
}

type SharedModel = Arc<Mutex<Model>>;

fn lock(model: &SharedModel) -> MutexGuard<'_, Model> {
    model.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn options(random: &mut Random) -> WalOptions {
    let policies =
        [FlushPolicy::EveryCommit, FlushPolicy::WriteEveryCommit, FlushPolicy::EverySecond];
    WalOptions {
        ring_bytes: *random.pick(&[4096, 8192, 32768]),
        first_file_bytes: *random.pick(&[16384, 32768, 65536]),
        max_file_bytes: *random.pick(&[65536, 131_072]),
        max_batch_bytes: *random.pick(&[512, 4096, 16384]),
        // Each life may find another device.
        block_bytes_min: *random.pick(&[512, 512, 4096, 8192]),
        kept_bytes: *random.pick(&[0, 400_000, 1_000_000]),
        policy: *random.pick(&policies),
        ..WalOptions::new(UUID)
    }
}

fn dir() -> &'static Path {
    Path::new(DIR)
}

/// Reads the log as recovery does and compares it with the model.
fn recover(model: &SharedModel) -> LogEnd {
    let (low, durable, written, power_failed) = {
        let model = lock(model);
        (model.low, model.durable, model.written, model.power_failed)
    };
    let mut reader = Reader::open(dir(), UUID, Lsn::new(low), Lsn::new(durable))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut position = low;
    while let Some(record) = reader.next_record().unwrap_or_else(|error| panic!("{error}")) {
        let (start, end) = (record.start.get(), record.end.get());
        assert_eq!(start, position, "records follow each other without a gap");
        let known = lock(model).records.get(&start).copied();
        assert_eq!(known, Some((end, crc32c(record.bytes))), "record at {start} is not ours");
        RecordView::parse(record.bytes).expect("what was appended parses");
        position = end;
    }
    let end = reader.end().expect("read to the end");
    assert_eq!(end.lsn.get(), position.max(low), "the end is behind the last record");
    assert!(position >= durable, "durable up to {durable}, read up to {position}");
    assert!(power_failed || position >= written, "only the process died, the log was written");
    let mut model = lock(model);
    model.records.split_off(&position);
    model.written = model.durable;
    model.recoveries += 1;
    model.power_failed = false;
    end
}

/// Starts the log: creates or recovers it.
fn start(model: &SharedModel, options: WalOptions) -> Arc<Wal> {
    if !lock(model).created {
        runtime::fs::create_dir_all(dir()).expect("the disk has no faults");
        for name in runtime::fs::read_dir(dir()).expect("the disk has no faults") {
            runtime::fs::remove_file(dir().join(name)).expect("the disk has no faults");
        }
        let wal = Wal::create(dir(), options, 1).unwrap_or_else(|error| panic!("{error}"));
        let mut model = lock(model);
        (model.created, model.epoch) = (true, 1);
        (model.low, model.durable) = (FIRST_LSN.get(), FIRST_LSN.get());
        return wal;
    }
    let end = recover(model);
    let epoch = {
        let mut model = lock(model);
        model.epoch += 1;
        model.epoch
    };
    let wal = Wal::open(dir(), options, epoch, end).unwrap_or_else(|error| panic!("{error}"));
    let mut model = lock(model);
    model.durable = model.durable.max(end.lsn.get());
    wal
}

/// `largest` 0: all records have one length, so that stale batches fit behind new ones.
fn fill(builder: &mut RecordBuilder, random: &mut Random, largest: usize) {
    builder.reset(RecordKind::Change, TrxId::new(random.next_u64()));
    let len = match random.below(8) {
        _ if largest == 0 => 24,
        0 => random.index(largest),
        _ => random.index(200),
    };
    let from = builder.logical_mut().len();
    builder.logical_mut().resize(from + len, 0);
    random.fill(&mut builder.logical_mut()[from..]);
}

fn one_fiber(wal: &Arc<Wal>, model: &SharedModel, mut random: Random, operations: u64) {
    let mut builder = RecordBuilder::new(RecordKind::Change, TrxId::new(1));
    let is_uniform = lock(model).is_uniform;
    let largest = if is_uniform { 0 } else { wal.max_record_bytes() / 4 - 64 };
    for _ in 0..operations {
        let permit = wal.admit(wal.max_record_bytes() / 2).expect("no faults");
        let mut last = None;
        for _ in 0..=random.below(3) {
            fill(&mut builder, &mut random, largest);
            if permit.remaining_bytes() < builder.stream_len() as u64 {
                break;
            }
            let range = wal.append(&permit, &builder);
            let mut model = lock(model);
            let crc = crc32c(&builder.to_bytes());
            model.records.insert(range.start.get(), (range.end.get(), crc));
            model.appended += 1;
            last = Some(range.end);
        }
        drop(permit);
        let Some(end) = last else { continue };
        match random.below(8) {
            0 => wal.flush_kick(end),
            1 => drop(runtime::sleep(Duration::from_micros(random.below(3000)))),
            2 => {
                wal.wait_durable(end).expect("no faults");
                assert!(wal.durable() >= end);
            }
            3 => recycle(wal, model, &mut random),
            4 => drop(runtime::sleep(Duration::from_millis(random.below(2000)))),
            _ => {
                wal.wait_commit(end).expect("no faults");
                if wal.policy() == FlushPolicy::EveryCommit {
                    assert!(wal.durable() >= end);
                }
            }
        }
        let mut model = lock(model);
        model.durable = model.durable.max(wal.durable().get());
        model.written = model.written.max(wal.written().get());
    }
}

/// As a checkpoint does: first the world knows the new low end, then files are recycled.
fn recycle(wal: &Arc<Wal>, model: &SharedModel, random: &mut Random) {
    let low = {
        let mut model = lock(model);
        let durable = wal.durable().get();
        let back = random.below(20_000);
        let goal = durable.saturating_sub(back).max(model.low);
        let boundary = model.records.range(goal..).next().map(|(&start, _)| start);
        let Some(low) = boundary.filter(|&start| start <= durable) else { return };
        model.low = low;
        model.recycled += 1;
        model.durable = model.durable.max(durable);
        low
    };
    wal.recycle_before(Lsn::new(low)).expect("no faults");
}

/// One life of the computer. True if it came to a clean end.
fn life(
    simulation: &mut Simulation,
    model: &SharedModel,
    options: WalOptions,
    mut random: Random,
) -> bool {
    let shared = model.clone();
    let ended = simulation.run(move || {
        let wal = start(&shared, options);
        let fibers = 8 + random.index(5);
        let operations = 4 + random.below(30);
        let handles: Vec<_> = (0..fibers)
            .map(|_| {
                let (wal, model, random) = (wal.clone(), shared.clone(), random.fork());
                runtime::spawn("appender", move || one_fiber(&wal, &model, random, operations))
            })
            .collect();
        for handle in handles {
            handle.join().unwrap_or_else(|panic| panic.resume());
        }
        let end = wal.close().expect("no faults");
        assert_eq!(end, wal.durable());
        lock(&shared).durable = end.get();
    });
    match ended {
        Ok(()) => true,
        Err(SimEnd::Crashed) => false,
        Err(other) => panic!("{other}"),
    }
}

/// Flips bits in every kind of checked place of the finished log; each must be found.
fn flip_and_check(disk: &Disk, model: &SharedModel, seed: u64) {
    let (low, durable) = {
        let model = lock(model);
        (model.low, model.durable)
    };
    let verify = move || {
        wal::verify(dir(), UUID, Lsn::new(low), Lsn::new(durable)).expect("files are readable")
    };
    let run = |disk: &Disk| {
        let config = SimConfig { buggify: false, ..SimConfig::new(seed) };
        Simulation::with_disk(config, disk.clone()).run(verify).expect("a check ends")
    };
    let clean = run(disk);
    assert_eq!(clean.findings, [], "a log that was closed is clean");
    assert_eq!(clean.end.expect("proven").lsn.get(), durable);
    let mut random = Random::new(seed);
    for _ in 0..6 {
        let region = random.pick(&clean.regions);
        let offset = region.offset + random.below(region.len);
        let bit = random.next_u32() as u8;
        let path = region.file.to_str().expect("names are ASCII");
        assert!(disk.flip_bit(path, offset, bit));
        let report = run(disk);
        assert!(!report.findings.is_empty(), "flip in {region:?} at {offset} was not noticed");
        assert!(disk.flip_bit(path, offset, bit));
    }
}

/// A bit of the last batch rots while the computer is off, whatever the crash has left: that is
/// found, and what the crash has left is not taken for it.
fn flip_the_tail(disk: &Disk, model: &SharedModel, seed: u64) {
    let (created, low, durable) = {
        let model = lock(model);
        (model.created, model.low, model.durable)
    };
    if !created {
        return;
    }
    let run = || {
        let config = SimConfig { buggify: false, ..SimConfig::new(seed) };
        let verify =
            move || wal::verify(dir(), UUID, Lsn::new(low), Lsn::new(durable)).expect("readable");
        Simulation::with_disk(config, disk.clone()).run(verify).expect("a check ends")
    };
    let found = run();
    assert_eq!(found.findings, [], "a crash is not rot");
    let mut random = Random::new(seed);
    let last = found.regions.last().expect("a log has a header");
    let offset = last.offset + random.below(last.len);
    let (path, bit) = (last.file.to_str().expect("names are ASCII"), random.next_u32() as u8);
    assert!(disk.flip_bit(path, offset, bit));
    assert!(!run().findings.is_empty(), "flip in {last:?} at {offset} was not noticed");
    assert!(disk.flip_bit(path, offset, bit));
}

fn run_seed(seed: u64) -> Model {
    let model = SharedModel::default();
    let mut random = Random::new(seed);
    lock(&model).low = FIRST_LSN.get();
    lock(&model).is_uniform = random.one_in(3);
    let mut disk = None;
    for number in 0.. {
        let mut config = SimConfig::new(seed.wrapping_mul(1000) + number);
        let is_last = number >= 4;
        if !is_last {
            let steps = *random.pick(&[60, 400, 3000]);
            config.crash_at_step = Some(1 + random.below(steps));
        }
        let mut simulation = match disk.take() {
            None => Simulation::new(config),
            Some(disk) => Simulation::with_disk(config, disk),
        };
        let options = options(&mut random);
        let is_clean = life(&mut simulation, &model, options, random.fork());
        let kind = *random.pick(&[CrashKind::Power, CrashKind::Power, CrashKind::Process]);
        disk = Some(simulation.crash(kind));
        lock(&model).power_failed |= kind == CrashKind::Power;
        flip_the_tail(disk.as_ref().expect("just crashed"), &model, seed);
        if is_clean && is_last {
            break;
        }
    }
    flip_and_check(&disk.expect("at least one life"), &model, seed);
    Arc::into_inner(model)
        .expect("all fibers are gone")
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

#[test]
fn acknowledged_records_survive_every_crash_in_order() {
    if let Some(seed) = from_environment("GANNET_SIM_SEED") {
        run_seed(seed);
        return;
    }
    let seeds = from_environment("GANNET_SIM_SEEDS").unwrap_or(300);
    let (mut appended, mut recoveries, mut recycled) = (0, 0, 0);
    for seed in 0..seeds {
        let ran = std::panic::catch_unwind(|| run_seed(seed));
        let model = ran.unwrap_or_else(|panic| {
            eprintln!("seed {seed} failed; replay with GANNET_SIM_SEED={seed}");
            std::panic::resume_unwind(panic)
        });
        appended += model.appended;
        recoveries += model.recoveries;
        recycled += model.recycled;
    }
    let marks = [
        "wal.torn_batch",
        "wal.file_switched",
        "wal.file_reused",
        "wal.file_recycled",
        "wal.waited_for_room",
    ];
    println!("{seeds} seeds: {appended} records, {recoveries} recoveries, {recycled} recyclings");
    for mark in marks {
        let count = base::probe::count(mark);
        println!("  {mark}: {count}");
        assert!(count > 0 || seeds < 200, "{mark} was never reached");
    }
    // The test of the test: a log that skips its syncs is found out.
    base::mutant::switch(Some("skip_wal_sync"));
    let found = (0..100).find(|&seed| std::panic::catch_unwind(|| run_seed(seed)).is_err());
    base::mutant::switch(None);
    println!("  mutant skip_wal_sync: found by seed {found:?}");
    assert!(found.is_some());
}
