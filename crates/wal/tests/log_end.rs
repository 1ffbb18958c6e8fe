//! Where the log ends: stale tails of former runs are not replayed, rot is not taken for a torn
//! tail, and what is shown to be durable elsewhere is believed.

use base::{Lsn, TrxId};
use runtime::sim::{CrashKind, Disk, SimConfig, Simulation};
use std::path::Path;
use std::sync::Arc;
use wal::{
    FIRST_LSN, FlushPolicy, LogEnd, ReadError, Reader, RecordBuilder, RecordKind, Wal, WalError,
    WalOptions,
};

const UUID: [u8; 16] = *b"simulated log 03";
const BLOCK: u64 = 4096;
const FIRST_FILE: &str = "/log/wal-0000000001.log";

fn dir() -> &'static Path {
    Path::new("/log")
}

fn small(policy: FlushPolicy) -> WalOptions {
    WalOptions {
        ring_bytes: 16384,
        first_file_bytes: 65536,
        max_file_bytes: 65536,
        policy,
        block_bytes_min: BLOCK as usize,
        ..WalOptions::new(UUID)
    }
}

/// A record of 64 bytes.
fn append(wal: &Arc<Wal>, number: u64) -> Lsn {
    let mut record = RecordBuilder::new(RecordKind::Change, TrxId::new(number));
    record.logical(&[number as u8; 48]);
    let permit = wal.admit(record.stream_len()).expect("no faults");
    wal.append(&permit, &record).end
}

fn commit(wal: &Arc<Wal>, number: u64) -> Lsn {
    let end = append(wal, number);
    wal.wait_commit(end).expect("no faults");
    end
}

/// Runs `f` on the disk (or an empty one), then lets the process die.
fn on<T: 'static>(disk: Option<Disk>, f: impl FnOnce() -> T + 'static) -> (T, Disk) {
    let config = SimConfig { buggify: false, ..SimConfig::new(1) };
    let mut simulation = match disk {
        None => Simulation::new(config),
        Some(disk) => Simulation::with_disk(config, disk),
    };
    let result = simulation.run(f).unwrap_or_else(|end| panic!("{end}"));
    (result, simulation.crash(CrashKind::Process))
}

/// Transactions of all records and the end.
fn read(known_durable: u64) -> Result<(Vec<u64>, LogEnd), ReadError> {
    let mut reader = Reader::open(dir(), UUID, FIRST_LSN, Lsn::new(known_durable))?;
    let mut trxs = Vec::new();
    while let Some(record) = reader.next_record()? {
        trxs.push(u64::from(record.bytes[8]));
    }
    Ok((trxs, reader.end().expect("read to the end")))
}

/// A log of three batches of one record each, written but not synced one by one.
fn three_batches(policy: FlushPolicy) -> Disk {
    let ((), disk) = on(None, move || {
        let wal = Wal::create(dir(), small(policy), 1).expect("no faults");
        for number in 1..=3 {
            commit(&wal, number);
        }
    });
    disk
}

#[test]
fn a_stale_tail_is_not_replayed() {
    let disk = three_batches(FlushPolicy::WriteEveryCommit);
    // The note of the start is at block 1; the first record's batch is lost, its successors not.
    assert!(disk.overwrite(FIRST_FILE, 2 * BLOCK, &[0; 4096]));
    let (end, disk) = on(Some(disk), || {
        let (trxs, end) = read(0).expect("nothing was durable");
        assert_eq!((trxs, end.lsn), (vec![], FIRST_LSN));
        let wal = Wal::open(dir(), small(FlushPolicy::EveryCommit), 2, end).expect("no faults");
        // Both in one batch, so that it ends where the old third batch begins.
        append(&wal, 8);
        commit(&wal, 9)
    });
    let (trxs, _) = on(Some(disk.clone()), move || {
        let (trxs, found) = read(end.get()).expect("intact");
        assert_eq!(found.lsn, end);
        trxs
    });
    assert_eq!(trxs, [8, 9]);
    // The proof that the scene is right: a reader that trusts positions alone replays it.
    base::mutant::switch(Some("stale_tail_accepted"));
    let (trxs, _) = on(Some(disk), || read(0).expect("intact by itself").0);
    base::mutant::switch(None);
    assert_eq!(trxs, [8, 9, 3]);
}

#[test]
fn damage_is_rot_where_no_torn_write_looks_so() {
    let disk = three_batches(FlushPolicy::EveryCommit);
    let flip = |block: u64| assert!(disk.flip_bit(FIRST_FILE, block * BLOCK + 70, 3));
    for block in 2..=4 {
        flip(block);
        let (result, _) = on(Some(disk.clone()), || read(0));
        match (block, result) {
            // Nothing behind the last batch says that it was durable, but no torn write looks so.
            (4, Err(ReadError::TailRot { offset, .. })) => assert_eq!(offset, block * BLOCK),
            (2 | 3, Err(ReadError::LogRot { offset, .. })) => assert_eq!(offset, block * BLOCK),
            other => panic!("{other:?}"),
        }
        flip(block);
    }
    // Never written, as far as anything can tell.
    assert!(disk.overwrite(FIRST_FILE, 4 * BLOCK, &[0; 4096]));
    let (result, _) = on(Some(disk.clone()), || read(0));
    assert_eq!(result.expect("the third batch was lost").0, [1, 2]);
    let durable = FIRST_LSN.get() + 3 * 64;
    let (result, _) = on(Some(disk.clone()), move || read(durable));
    let error = result.expect_err("the superblock knows better");
    assert!(error.to_string().contains("wal-0000000001.log at offset 16384"), "{error}");
}

/// The last batch, of six sectors, was acknowledged just before the process died.
#[test]
fn rot_of_the_last_batch_is_not_taken_for_a_torn_write() {
    let ((), disk) = on(None, || {
        let wal = Wal::create(dir(), small(FlushPolicy::EveryCommit), 1).expect("no faults");
        commit(&wal, 1);
        let mut record = RecordBuilder::new(RecordKind::Change, TrxId::new(2));
        record.logical(&[2; 2800]);
        let permit = wal.admit(record.stream_len()).expect("no faults");
        let end = wal.append(&permit, &record).end;
        wal.wait_commit(end).expect("no faults");
    });
    let batch = 3 * BLOCK;
    let sectors = || (0..6).map(|number| batch + number * 512);
    for sector in sectors() {
        for byte in [0, 11, 70, 503, 505, 511] {
            assert!(disk.flip_bit(FIRST_FILE, sector + byte, 3));
            let (result, _) = on(Some(disk.clone()), || read(0));
            let error = result.expect_err("the batch has rotted");
            assert!(matches!(error, ReadError::TailRot { .. }), "{error}");
            let place = format!("wal-0000000001.log at offset {sector},");
            assert!(error.to_string().contains(&place), "{error}");
            let (report, _) = on(Some(disk.clone()), || {
                wal::verify(dir(), UUID, FIRST_LSN, FIRST_LSN).expect("readable")
            });
            assert_eq!(report.findings.len(), 1);
            assert!(disk.flip_bit(FIRST_FILE, sector + byte, 3));
        }
    }
    // The power failed in the middle of it: any of its sectors may be as it was before.
    for sector in sectors() {
        let content = disk.content(FIRST_FILE).expect("it is there");
        let written = &content[sector as usize..][..512];
        assert!(disk.overwrite(FIRST_FILE, sector, &[0; 512]));
        let (result, _) = on(Some(disk.clone()), || read(0));
        assert_eq!(result.expect("torn").0, [1]);
        assert!(disk.overwrite(FIRST_FILE, sector, written));
    }
    let (result, _) = on(Some(disk), || read(0));
    assert_eq!(result.expect("intact").0, [1, 2]);
}

#[test]
fn a_rotten_header_of_a_file_just_begun_is_noticed() {
    let (names, disk) = on(None, || {
        let wal = Wal::create(dir(), small(FlushPolicy::EveryCommit), 1).expect("no faults");
        let mut number = 0;
        while runtime::fs::read_dir(dir()).expect("no faults").len() < 3 {
            commit(&wal, number);
            number += 1;
        }
        runtime::fs::read_dir(dir()).expect("no faults")
    });
    // The second file holds log, the third is prepared; no batch behind tells of its first.
    assert_eq!(names.len(), 3, "{names:?}");
    for name in ["/log/wal-0000000002.log", "/log/wal-0000000003.log"] {
        assert!(disk.flip_bit(name, 33, 0));
        let (result, _) = on(Some(disk.clone()), || read(0));
        assert!(result.is_err(), "{name}: {result:?}");
        assert!(disk.flip_bit(name, 33, 0));
    }
    let (result, _) = on(Some(disk), || read(0));
    assert!(result.is_ok(), "{result:?}");
}

#[test]
fn the_last_batch_is_protected_by_a_note_soon_after() {
    let ((), disk) = on(None, || {
        let wal = Wal::create(dir(), small(FlushPolicy::EveryCommit), 1).expect("no faults");
        commit(&wal, 1);
        runtime::sleep(std::time::Duration::from_secs(3));
    });
    assert!(disk.flip_bit(FIRST_FILE, 2 * BLOCK + 70, 3));
    let (result, _) = on(Some(disk), || read(0));
    assert!(matches!(result, Err(ReadError::LogRot { .. })), "{result:?}");
}

#[test]
fn a_missing_or_damaged_file_in_the_middle_is_rot() {
    let (names, disk) = on(None, || {
        let wal = Wal::create(dir(), small(FlushPolicy::EveryCommit), 1).expect("no faults");
        for number in 0..60 {
            commit(&wal, number);
        }
        runtime::fs::read_dir(dir()).expect("no faults")
    });
    assert!(names.len() >= 4, "{names:?}");
    let second = "/log/wal-0000000002.log";
    assert!(disk.flip_bit(second, 40, 0), "its header");
    let (result, _) = on(Some(disk.clone()), || read(0));
    assert!(matches!(result, Err(ReadError::LogRot { .. })), "{result:?}");
    let (report, _) = on(Some(disk.clone()), || {
        wal::verify(dir(), UUID, FIRST_LSN, FIRST_LSN).expect("readable")
    });
    assert!(!report.findings.is_empty());
    assert!(disk.flip_bit(second, 40, 0));
    let (result, disk) = on(Some(disk), move || {
        runtime::fs::remove_file(Path::new(second)).expect("no faults");
        read(0)
    });
    assert!(matches!(result, Err(ReadError::LogRot { .. })), "{result:?}");
    let (result, _) = on(Some(disk), || {
        runtime::fs::remove_file(Path::new(FIRST_FILE)).expect("no faults");
        read(0)
    });
    assert!(matches!(result, Err(ReadError::Missing { .. })), "{result:?}");
}

#[test]
fn the_epoch_must_rise() {
    let disk = three_batches(FlushPolicy::EveryCommit);
    let (result, _) = on(Some(disk), || {
        let (_, end) = read(0).expect("intact");
        Wal::open(dir(), small(FlushPolicy::EveryCommit), 1, end).map(|_| ())
    });
    assert!(matches!(result, Err(WalError::StaleEpoch { given: 1, found: 1 })), "{result:?}");
}

#[test]
fn who_knows_the_end_is_spared_the_search_behind_it() {
    let disk = three_batches(FlushPolicy::EveryCommit);
    let ((end, full, spared), _) = on(Some(disk), || {
        let read = |complete_at: Option<Lsn>| {
            let begin = Reader::open(dir(), UUID, FIRST_LSN, Lsn::ZERO).expect("a log");
            let mut reader = match complete_at {
                Some(lsn) => begin.complete_at(lsn),
                None => begin,
            };
            while reader.next_record().expect("intact").is_some() {}
            reader.end().expect("read to the end")
        };
        let end = read(None);
        (end.lsn, end, read(Some(end.lsn)))
    });
    assert_eq!(full, spared);
    // A log that ends before what was promised is rot, promise or not.
    let disk = three_batches(FlushPolicy::EveryCommit);
    assert!(disk.flip_bit(FIRST_FILE, 3 * BLOCK + 70, 3));
    let (result, _) = on(Some(disk), move || {
        let mut reader = Reader::open(dir(), UUID, FIRST_LSN, Lsn::ZERO)?.complete_at(end);
        while reader.next_record()?.is_some() {}
        Ok::<_, ReadError>(())
    });
    assert!(matches!(result, Err(ReadError::LogRot { .. })), "{result:?}");
}

/// A batch takes what it needs of the device's blocks; a log that comes to a device with longer
/// ones goes on in its next file, with shorter ones in the file where it ended.
#[test]
fn blocks_are_those_of_the_device() {
    let mut disk = None;
    // Least size of blocks; file and place where the log ends: header, note, two commits.
    let lives = [(512, 1, 2_048), (4_096, 2, 16_384), (512, 2, 28_672)];
    for (life, (block_bytes_min, file_sequence, file_offset)) in (1..).zip(lives) {
        let (_, crashed) = on(disk.take(), move || {
            let options = WalOptions { block_bytes_min, ..small(FlushPolicy::EveryCommit) };
            let wal = match life {
                1 => Wal::create(dir(), options, 1),
                _ => Wal::open(dir(), options, life, read(0).expect("intact").1),
            };
            let wal = wal.expect("no faults");
            commit(&wal, u64::from(life));
            commit(&wal, u64::from(life));
        });
        let (_, crashed) = on(Some(crashed), move || {
            let (trxs, end) = read(0).expect("intact");
            let all: Vec<u64> = (1..=life).flat_map(|life| [u64::from(life); 2]).collect();
            assert_eq!(trxs, all);
            assert_eq!((end.file_sequence, end.file_offset), (file_sequence, file_offset));
        });
        disk = Some(crashed);
    }
}

/// A file that was cut off, or to whose end something else was written by mistake, is read as far as
/// it can hold log.
#[test]
fn a_file_of_an_odd_length_is_read() {
    for len in [65_536 + 512, 65_536 - 1, 20_480 + 1_536] {
        let disk = three_batches(FlushPolicy::EveryCommit);
        let ((trxs, end), _) = on(Some(disk), move || {
            let path = dir().join("wal-0000000001.log");
            let file = runtime::file::OpenOptions::new().open(path).expect("it is there");
            file.set_len(len).expect("no faults");
            read(0).expect("intact")
        });
        assert_eq!((trxs, end.file_offset), (vec![1, 2, 3], 5 * BLOCK), "{len}");
    }
}
