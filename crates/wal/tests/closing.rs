//! A log that is closed while its next file is being made can be opened again at once, in the same
//! process: nothing makes, renames or removes files behind its back.

use base::{Lsn, TrxId};
use runtime::sim::{Disk, Operation, SimConfig, Simulation};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wal::{FIRST_LSN, Reader, RecordBuilder, RecordKind, Wal, WalError, WalOptions};

const UUID: [u8; 16] = *b"simulated log 04";
const BLOCK: u64 = 4096;
/// The file that the log is in: it is read in no time ...
const FILE: u64 = 64 << 10;
/// ... and making the next one takes long, in so many pieces of 1 MiB.
const NEXT_FILE: u64 = PIECES << 20;
const PIECES: u64 = 8;
/// About as long as that takes, with pauses.
const MAKING_MICROS: u64 = 2500;
const SEEDS: u64 = 200;
const EIO: i32 = 5;

fn dir() -> &'static Path {
    Path::new("/log")
}

fn options(first_file_bytes: u64) -> WalOptions {
    WalOptions {
        ring_bytes: 64 << 10,
        first_file_bytes,
        max_file_bytes: NEXT_FILE,
        // Where a batch ends is counted in blocks of this size.
        block_bytes_min: BLOCK as usize,
        ..WalOptions::new(UUID)
    }
}

fn commit(wal: &Arc<Wal>) -> Result<Lsn, WalError> {
    let mut record = RecordBuilder::new(RecordKind::Commit, TrxId::new(1));
    record.logical(&[1]);
    let permit = wal.admit(record.stream_len())?;
    let end = wal.append(&permit, &record).end;
    drop(permit);
    wal.wait_durable(end)?;
    Ok(end)
}

/// Commits until so many bytes of the file are used.
fn use_file_bytes(wal: &Arc<Wal>, bytes: u64) {
    while wal.file_bytes_since(FIRST_LSN) < bytes {
        commit(wal).expect("no faults");
    }
    assert_eq!(wal.file_bytes_since(FIRST_LSN), bytes);
}

/// Commits more than what is left of the file.
fn go_on_in_the_next_file(wal: &Arc<Wal>) {
    for _ in 0..FILE / BLOCK {
        commit(wal).expect("a leader gets or makes the next file");
    }
    assert!(wal.live_file_bytes() >= FILE + NEXT_FILE);
}

fn is_being_made(disk: &Disk) -> bool {
    disk.paths().iter().any(|path| path.contains("/new-"))
}

fn wait_until_being_made(disk: &Disk) {
    while !is_being_made(disk) {
        runtime::sleep(Duration::from_micros(5));
    }
}

fn open_again(end: Lsn, epoch: u32) -> Arc<Wal> {
    let mut reader = Reader::open(dir(), UUID, end, end).expect("a log");
    while reader.next_record().expect("intact").is_some() {}
    let found = reader.end().expect("read to the end");
    assert_eq!(found.lsn, end);
    Wal::open(dir(), options(NEXT_FILE), epoch, found).unwrap_or_else(|error| panic!("{error}"))
}

fn on_a_log(seed: u64, buggify: bool, f: impl FnOnce(Disk, Arc<Wal>) + 'static) {
    let config = SimConfig { steps_max: 100_000, buggify, ..SimConfig::new(seed) };
    let mut simulation = Simulation::new(config);
    let disk = simulation.disk();
    simulation
        .run(move || {
            let wal = Wal::create(dir(), options(FILE), 1).expect("a new log");
            let end = wal.close().expect("no faults");
            f(disk, open_again(end, 2));
        })
        .unwrap_or_else(|end| panic!("seed {seed}: {end}"));
}

/// Runs `f` on a log whose file is used to its half: a fiber that makes the next one is started.
fn at_half_a_file(seed: u64, buggify: bool, f: impl FnOnce(Disk, Arc<Wal>) + 'static) {
    on_a_log(seed, buggify, move |disk, wal| {
        use_file_bytes(&wal, FILE / 2 + BLOCK);
        f(disk, wal);
    });
}

/// Nothing is being made, and nothing changes any more.
fn assert_rests(disk: &Disk) {
    let (paths, used_bytes) = (disk.paths(), disk.used_bytes());
    assert!(!is_being_made(disk), "{paths:?}");
    for pause_micros in [10; 100].into_iter().chain([500_000]) {
        runtime::sleep(Duration::from_micros(pause_micros));
        assert_eq!(disk.paths(), paths, "files of a closed log");
        assert_eq!(disk.used_bytes(), used_bytes, "files of a closed log");
    }
}

#[test]
fn a_log_closed_at_any_moment_of_a_preparation_can_be_opened_again_at_once() {
    for seed in 0..SEEDS {
        at_half_a_file(seed, true, move |_, wal| {
            // From before the fiber runs to behind the end of the file.
            runtime::sleep(Duration::from_micros(seed * MAKING_MICROS / SEEDS));
            let end = wal.close().expect("no faults");
            drop(wal);
            let wal = open_again(end, 3);
            go_on_in_the_next_file(&wal);
        });
    }
}

#[test]
fn close_gives_up_a_file_that_is_being_made() {
    at_half_a_file(3, false, |disk, wal| {
        wait_until_being_made(&disk);
        wal.close().expect("no faults");
        assert_eq!(disk.paths(), ["/log/wal-0000000001.log"], "it is not made to its end");
        assert_rests(&disk);
    });
}

#[test]
fn a_preparation_that_has_not_begun_does_not_begin_behind_a_close() {
    on_a_log(3, false, |disk, wal| {
        use_file_bytes(&wal, FILE / 2);
        // The note that close leaves is behind the half: a fiber is started, which has not run
        // when close goes on.
        wal.close().expect("no faults");
        assert_rests(&disk);
    });
}

#[test]
fn a_log_that_failed_ends_its_preparation_too() {
    at_half_a_file(3, false, |disk, wal| {
        disk.fail_once(Operation::Write, "wal-", 0, EIO);
        wait_until_being_made(&disk);
        assert!(commit(&wal).is_err());
        assert!(matches!(wal.close(), Err(WalError::Poisoned { .. })));
        assert_rests(&disk);
    });
}

#[test]
fn a_full_disk_does_not_keep_a_log_from_being_closed() {
    for pieces in 0..PIECES {
        at_half_a_file(3, false, move |disk, wal| {
            disk.set_quota(Some(disk.used_bytes() + (pieces << 20)));
            wait_until_being_made(&disk);
            let end = wal.close().expect("what is left of the file is enough");
            assert_rests(&disk);
            disk.set_quota(None);
            commit(&open_again(end, 3)).expect("there is space");
        });
    }
}

#[test]
fn who_appends_behind_a_close_still_has_files() {
    at_half_a_file(3, false, |disk, wal| {
        wait_until_being_made(&disk);
        wal.close().expect("no faults");
        go_on_in_the_next_file(&wal);
        assert_rests(&disk);
    });
}
