//! Failing devices: a failed write or sync poisons the log, a full disk is a clear error that
//! goes away when space returns.

use base::{Lsn, TrxId};
use runtime::sim::{CrashKind, DiskConfig, Operation, SimConfig, Simulation};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wal::{Claim, FIRST_LSN, Reader, RecordBuilder, RecordKind, Wal, WalError, WalOptions};

const UUID: [u8; 16] = *b"simulated log 02";
const EIO: i32 = 5;

fn dir() -> &'static Path {
    Path::new("/log")
}

fn small() -> WalOptions {
    WalOptions {
        ring_bytes: 16384,
        first_file_bytes: 32768,
        max_file_bytes: 32768,
        max_batch_bytes: 8192,
        // How full a disk gets is counted in blocks of this size.
        block_bytes_min: 4096,
        ..WalOptions::new(UUID)
    }
}

fn record(number: u64, bytes: usize) -> RecordBuilder {
    let mut builder = RecordBuilder::new(RecordKind::Commit, TrxId::new(number));
    builder.logical(&vec![number as u8; bytes]);
    builder
}

fn commit(wal: &Arc<Wal>, number: u64, bytes: usize) -> Result<Lsn, WalError> {
    let record = record(number, bytes);
    let permit = wal.admit(record.stream_len())?;
    let end = wal.append(&permit, &record).end;
    drop(permit);
    wal.wait_durable(end)?;
    Ok(end)
}

/// Fails the `skip`-th write or sync under ten fibers; then recovers.
fn poison_run(operation: Operation, skip: u64) {
    let mut simulation = Simulation::new(SimConfig::new(skip));
    let disk = simulation.disk();
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let fatal = Arc::new(AtomicU64::new(0));
    let (acks, calls) = (acknowledged.clone(), fatal.clone());
    simulation
        .run(move || {
            let options = WalOptions {
                on_fatal: Arc::new(move |_| {
                    calls.fetch_add(1, Ordering::SeqCst);
                }),
                ..small()
            };
            let wal = Wal::create(dir(), options, 1).expect("no fault yet");
            disk.fail_once(operation, "wal-", skip, EIO);
            let fibers: Vec<_> = (0..10u64)
                .map(|fiber| {
                    let (wal, acks) = (wal.clone(), acks.clone());
                    runtime::spawn("committer", move || {
                        for number in 0..50 {
                            let Ok(end) = commit(&wal, fiber * 100 + number, 40) else {
                                return false;
                            };
                            acks.lock().expect("not poisoned").push(end);
                        }
                        true
                    })
                })
                .collect();
            let all_failed = fibers
                .into_iter()
                .all(|fiber| !fiber.join().unwrap_or_else(|panic| panic.resume()));
            assert!(all_failed, "every fiber hears of the failure");
            let after = commit(&wal, 1, 40);
            assert!(matches!(after, Err(WalError::Poisoned { .. })), "{after:?}");
            assert!(wal.close().is_err());
        })
        .unwrap_or_else(|end| panic!("{end}"));
    assert_eq!(fatal.load(Ordering::SeqCst), 1, "the callback is called once");
    let highest = acknowledged.lock().expect("not poisoned").iter().copied().max();
    let disk = simulation.crash(CrashKind::Power);
    let mut simulation = Simulation::with_disk(SimConfig::new(skip), disk);
    simulation
        .run(move || {
            let known = highest.unwrap_or(FIRST_LSN);
            let mut reader = Reader::open(dir(), UUID, FIRST_LSN, known).expect("a log is there");
            while reader.next_record().expect("no rot").is_some() {}
            assert!(reader.end().expect("read to the end").lsn >= known);
        })
        .unwrap_or_else(|end| panic!("{end}"));
}

#[test]
fn a_failed_write_or_sync_poisons_the_log_and_loses_nothing_acknowledged() {
    for skip in 0..25 {
        poison_run(Operation::Write, skip);
        poison_run(Operation::Sync, skip);
    }
}

/// Steps of a test on a full disk, several times what it takes: a log that waits for ever for space
/// that nobody gives it goes on asking, and is told of then with all who wait.
const FULL_DISK_STEPS_MAX: u64 = 20_000;

/// A simulation that ends at last.
fn bounded(seed: u64) -> SimConfig {
    SimConfig { steps_max: FULL_DISK_STEPS_MAX, ..SimConfig::new(seed) }
}

#[test]
fn a_full_disk_refuses_new_work_and_resumes_when_space_returns() {
    let config = SimConfig {
        disk: DiskConfig { quota_bytes: Some(160 * 1024), ..DiskConfig::default() },
        ..bounded(3)
    };
    let mut simulation = Simulation::new(config);
    let disk = simulation.disk();
    simulation
        .run(move || {
            let wal = Wal::create(dir(), small(), 1).expect("space for the first files");
            wal.keep_reserve(true, 128 << 10);
            let mut number = 0;
            let refused = loop {
                match commit(&wal, number, 1500) {
                    Ok(_) => number += 1,
                    Err(error) => break error,
                }
                assert!(number < 1000, "160 KiB cannot hold this");
            };
            assert!(matches!(refused, WalError::DiskFull), "{refused}");
            assert!(number > 20);
            // Work that must go on is still taken while the promised file space lasts.
            let permit = wal.admit_internal(64).expect("not poisoned");
            wal.append(&permit, &record(1, 40));
            drop(permit);
            disk.set_quota(None);
            runtime::sleep(Duration::from_secs(1));
            for again in 0..100 {
                commit(&wal, again, 1500).expect("there is space again");
            }
        })
        .unwrap_or_else(|end| panic!("{end}"));
}

#[test]
fn recycling_makes_room_on_a_full_disk() {
    let config = SimConfig {
        disk: DiskConfig { quota_bytes: Some(160 * 1024), ..DiskConfig::default() },
        // Files that end early would take more than there is.
        buggify: false,
        ..bounded(4)
    };
    let mut simulation = Simulation::new(config);
    simulation
        .run(move || {
            let wal = Wal::create(dir(), small(), 1).expect("space for the first files");
            for number in 0..300 {
                let end = commit(&wal, number, 1500).expect("checkpoints keep up");
                if number % 10 == 9 {
                    wal.recycle_before(end).expect("no faults");
                }
            }
            assert!(wal.live_file_bytes() <= 3 * 32768);
        })
        .unwrap_or_else(|end| panic!("{end}"));
}

/// Commits until the disk, which has no more space, refuses it.
fn fill_the_log(wal: &Arc<Wal>) -> u64 {
    let mut number = 0;
    loop {
        match commit(wal, number, 1500) {
            Ok(_) => number += 1,
            Err(error) => {
                assert!(matches!(error, WalError::DiskFull), "{error}");
                return number;
            }
        }
        assert!(number < 1000, "so much does not fit");
    }
}

fn full_disk(seed: u64, run: impl FnOnce(runtime::sim::Disk, Arc<Wal>) + Send + 'static) {
    let mut simulation = Simulation::new(SimConfig { buggify: false, ..bounded(seed) });
    let disk = simulation.disk();
    simulation
        .run(move || {
            let options =
                WalOptions { first_file_bytes: 2 * FILE, max_file_bytes: 2 * FILE, ..small() };
            let wal = Wal::create(dir(), options, 1).expect("there is space");
            wal.keep_reserve(true, 1 << 20);
            disk.set_quota(Some(disk.used_bytes()));
            run(disk, wal);
        })
        .unwrap_or_else(|end| panic!("{end}"));
}

#[test]
fn undoing_has_room_where_other_work_is_refused_and_nobody_gets_what_is_not_there() {
    full_disk(9, |_, wal| {
        let refused = fill_the_log(&wal);
        assert!(refused >= 7, "all of the first file: {refused}");
        // The log still becomes durable, and a record that undoes something has room.
        for number in 0..2 {
            let record = record(number, 100);
            let permit = wal.admit_as(Claim::Undo, record.stream_len()).expect("a part was left");
            let end = wal.append(&permit, &record).end;
            drop(permit);
            wal.wait_durable(end).expect("what was promised is written");
        }
        assert!(wal.admit_as(Claim::Later, 100).is_err());
        while wal.admit_as(Claim::Undo, 2048).is_ok_and(|permit| {
            wal.append(&permit, &record(1, 1800));
            drop(permit);
            wal.wait_durable(wal.end()).is_ok()
        }) {}
        // A checkpoint gives the first file back, and two files go round.
        for round in 0..20 {
            wal.recycle_before(wal.durable()).expect("no faults");
            runtime::sleep(Duration::from_millis(200));
            commit(&wal, round, 1500).expect("there is a file again");
        }
    });
}

/// A log on a disk that has nothing left, and what is told of it.
fn on_a_full_disk_that_tells(
    seed: u64,
    run: impl FnOnce(runtime::sim::Disk, Arc<Wal>, Arc<Mutex<Vec<String>>>) + Send + 'static,
) {
    let mut simulation = Simulation::new(SimConfig { buggify: false, ..bounded(seed) });
    let disk = simulation.disk();
    simulation
        .run(move || {
            let told = Arc::new(Mutex::new(Vec::new()));
            let telling = told.clone();
            let on_disk_full = Arc::new(move |sentence: &str| {
                telling.lock().expect("nobody panicked").push(sentence.to_owned());
            });
            let wal = Wal::create(dir(), WalOptions { on_disk_full, ..small() }, 1);
            let wal = wal.expect("there is space");
            disk.set_quota(Some(disk.used_bytes()));
            run(disk, wal, told);
        })
        .unwrap_or_else(|end| panic!("{end}"));
}

fn assert_told(told: &Mutex<Vec<String>>, times: usize) {
    let told = told.lock().expect("nobody panicked");
    assert_eq!(told.len(), times, "{told:?}");
    let what_helps =
        "its next file takes 32 KiB, the file system of /log has 0 KiB left; make room";
    assert!(told.iter().all(|sentence| sentence.contains(what_helps)), "{told:?}");
}

#[test]
fn a_rollback_that_waits_for_space_is_told_of_once_a_minute() {
    on_a_full_disk_that_tells(12, |disk, wal, told| {
        fill_the_log(&wal);
        while wal.admit_as(Claim::Undo, 2048).is_ok_and(|permit| {
            wal.append(&permit, &record(1, 1800));
            drop(permit);
            wal.wait_durable(wal.end()).is_ok()
        }) {}
        assert_told(&told, 0);
        let rollback = wal.clone();
        let waiting = runtime::spawn("rollback", move || {
            rollback.admit_internal(2048).map(drop).expect("there is space at last");
        });
        runtime::sleep(Duration::from_secs(30));
        assert_told(&told, 1);
        runtime::sleep(Duration::from_secs(40));
        assert_told(&told, 2);
        disk.set_quota(None);
        waiting.join().unwrap_or_else(|panic| panic.resume());
        commit(&wal, 1, 1500).expect("there is space again");
    });
}

#[test]
fn a_commit_that_waits_for_the_next_file_is_told_of() {
    on_a_full_disk_that_tells(13, |disk, wal, told| {
        // Promised while nobody knows that there is no next file, and more than this one holds.
        let promised = wal.clone();
        let waiting = runtime::spawn("commits", move || {
            let permits: Vec<_> = (0..9)
                .map(|_| promised.admit(record(1, 1500).stream_len()).expect("room in the ring"))
                .collect();
            for permit in permits {
                let end = promised.append(&permit, &record(1, 1500)).end;
                drop(permit);
                promised.wait_durable(end).expect("there is space at last");
            }
        });
        runtime::sleep(Duration::from_secs(4));
        assert_told(&told, 0);
        runtime::sleep(Duration::from_secs(10));
        assert_told(&told, 1);
        disk.set_quota(None);
        waiting.join().unwrap_or_else(|panic| panic.resume());
        commit(&wal, 1, 1500).expect("there is space again");
    });
}

#[test]
fn what_may_be_logged_is_told_where_the_file_system_has_no_end() {
    Simulation::new(bounded(11))
        .run(|| {
            let wal = Wal::create(dir(), small(), 1).expect("there is space");
            let much = FILE;
            wal.keep_reserve(true, u64::MAX - 1);
            assert_eq!(wal.bytes_for_undo(much), Some(u64::MAX));
            wal.keep_reserve(true, 1 << 20);
            assert!(wal.bytes_for_undo(much).is_some_and(|left| left > 1 << 20));
            assert_eq!(wal.bytes_for_undo(0), None, "little does not matter");
        })
        .unwrap_or_else(|end| panic!("{end}"));
}

#[test]
fn space_that_came_back_is_seen_however_often_it_is_asked_for() {
    full_disk(10, |disk, wal| {
        fill_the_log(&wal);
        assert!(wal.is_short_of_space());
        let asking: Vec<_> = (0..3)
            .map(|_| {
                let wal = wal.clone();
                runtime::spawn("asks", move || {
                    for _ in 0..60 {
                        wal.retry_space();
                        runtime::sleep(Duration::from_millis(10));
                    }
                })
            })
            .collect();
        disk.set_quota(None);
        runtime::sleep(Duration::from_millis(300));
        assert!(!wal.is_short_of_space(), "asked all the time, and there is space");
        asking.into_iter().for_each(|fiber| fiber.join().unwrap_or_else(|panic| panic.resume()));
    });
}

/// Commits so many records of 1,500 bytes, with a checkpoint after each `period`; returns the end.
fn commits(wal: &Arc<Wal>, count: u64, period: u64) -> Lsn {
    let mut last = FIRST_LSN;
    for number in 1..=count {
        last = commit(wal, number, 1500).expect("checkpoints keep up");
        if number % period == 0 {
            wal.recycle_before(last).expect("no faults");
        }
    }
    last
}

#[test]
fn files_and_spares_follow_what_is_free() {
    const LARGEST: u64 = 256 << 10;
    const SMALLEST: u64 = 32 << 10;
    let mut simulation = Simulation::new(SimConfig { buggify: false, ..SimConfig::new(5) });
    let disk = simulation.disk();
    let end = simulation
        .run(move || {
            let options = WalOptions { max_file_bytes: LARGEST, ..small() };
            let wal = Wal::create(dir(), options, 1).expect("there is space");
            let end = commits(&wal, 400, u64::MAX);
            let large = wal.file_bytes();
            assert!(large >= 6 * LARGEST, "{large}");
            wal.recycle_before(end).expect("no faults");
            let spared = wal.file_bytes();
            wal.trim_spares(2 * SMALLEST);
            let trimmed = wal.file_bytes();
            assert!(spared >= 6 * LARGEST, "{spared}");
            assert!(trimmed <= 3 * LARGEST, "of {spared} bytes {trimmed} are left");
            disk.set_quota(Some(disk.used_bytes() + 6 * SMALLEST));
            commits(&wal, 300, 10);
            let little = wal.file_bytes();
            assert!(little <= 10 * SMALLEST, "{little}");
            disk.set_quota(None);
            let end = commits(&wal, 400, u64::MAX);
            assert!(wal.file_bytes() >= 6 * LARGEST, "it grows again: {}", wal.file_bytes());
            end
        })
        .unwrap_or_else(|end| panic!("{end}"));
    let disk = simulation.crash(CrashKind::Power);
    let mut simulation = Simulation::with_disk(SimConfig::new(6), disk);
    simulation
        .run(move || {
            let mut reader = Reader::open(dir(), UUID, end, end).expect("a log is there");
            while reader.next_record().expect("no rot").is_some() {}
            assert_eq!(reader.end().expect("read to the end").lsn, end);
        })
        .unwrap_or_else(|end| panic!("{end}"));
}

const FILE: u64 = 32 << 10;

/// Commits so many files' worth of records without a checkpoint in between.
fn fill_files(wal: &Arc<Wal>, files: u64) -> Lsn {
    // One record a block of 4 KiB.
    commits(wal, files * FILE / 4096, u64::MAX)
}

/// Gives back all files but the current one; returns the bytes of all files before and after.
fn give_back(wal: &Arc<Wal>, end: Lsn) -> (u64, u64) {
    // The next file is ready before and after.
    runtime::sleep(Duration::from_millis(500));
    let before = wal.file_bytes();
    wal.recycle_before(end).expect("no faults");
    (before, wal.file_bytes())
}

#[test]
fn a_log_at_its_pace_reuses_every_file_and_gives_spares_back_when_it_rests() {
    let mut simulation = Simulation::new(SimConfig { buggify: false, ..SimConfig::new(7) });
    simulation
        .run(move || {
            let wal = Wal::create(dir(), small(), 1).expect("there is space");
            for round in 0..20 {
                let files = [5, 4, 5, 3][round % 4];
                let end = fill_files(&wal, files);
                let (before, after) = give_back(&wal, end);
                if round >= 4 {
                    assert_eq!(before, after, "round {round}: files that are needed again");
                }
            }
            assert!(wal.file_bytes() <= 9 * FILE, "{} bytes", wal.file_bytes());
            runtime::sleep(Duration::from_secs(15));
            let rests = wal.file_bytes();
            assert_eq!(rests, 4 * FILE, "the current one, the next one and two spares");
            // Slowly, one file after the other: they are enough.
            for _ in 0..5 {
                let end = commits(&wal, FILE / 4096 - 2, u64::MAX);
                runtime::sleep(Duration::from_secs(20));
                let (before, after) = give_back(&wal, end);
                assert_eq!((before, after), (rests, rests), "one file goes round");
            }
        })
        .unwrap_or_else(|end| panic!("{end}"));
}

#[test]
fn spares_stay_within_what_all_files_may_take() {
    let mut simulation = Simulation::new(SimConfig { buggify: false, ..SimConfig::new(8) });
    simulation
        .run(move || {
            let options = WalOptions { kept_bytes: 5 * FILE, ..small() };
            let wal = Wal::create(dir(), options, 1).expect("there is space");
            for _ in 0..5 {
                let end = fill_files(&wal, 12);
                let (before, after) = give_back(&wal, end);
                assert!(before >= 12 * FILE, "{before}");
                assert_eq!(after, 5 * FILE);
            }
        })
        .unwrap_or_else(|end| panic!("{end}"));
}
