//! The log on real files, with both event loops: group commit under many fibers, read back.

use base::{Lsn, TrxId};
use runtime::{Config, Ring, Runtime};
use std::path::PathBuf;
use std::sync::Arc;
use wal::{FIRST_LSN, Reader, RecordBuilder, RecordKind, Wal, WalOptions};

const UUID: [u8; 16] = *b"log on real disk";
const FIBERS: u64 = 32;
const COMMITS: u64 = 60;

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("gannet-wal-{name}-{}", std::process::id()));
    // A former run that was killed may have left something under this number.
    std::fs::remove_dir_all(&dir).ok();
    dir
}

fn commit(wal: &Arc<Wal>, builder: &mut RecordBuilder, number: u64) -> Lsn {
    builder.reset(RecordKind::Commit, TrxId::new(number));
    builder.logical(&[number as u8; 280]);
    let permit = wal.admit(builder.stream_len()).expect("the device works");
    let end = wal.append(&permit, builder).end;
    drop(permit);
    wal.wait_durable(end).expect("the device works");
    end
}

fn run_on(ring: Ring, name: &str) {
    let dir = scratch(name);
    let config = Config { workers: 2, ring, ..Config::default() };
    let runtime = Runtime::start(config).expect("threads and a ring");
    let path = dir.clone();
    runtime.run(move || {
        let options = WalOptions { first_file_bytes: 1 << 20, ..WalOptions::new(UUID) };
        let wal = Wal::create(&path, options.clone(), 1).expect("the device works");
        let before = wal::counters::FLUSHES.value();
        let start = runtime::now();
        let fibers: Vec<_> = (0..FIBERS)
            .map(|fiber| {
                let wal = wal.clone();
                runtime::spawn_on(fiber as usize, "committer", move || {
                    let mut builder = RecordBuilder::new(RecordKind::Commit, TrxId::new(1));
                    for number in 0..COMMITS {
                        commit(&wal, &mut builder, fiber * COMMITS + number);
                    }
                })
            })
            .collect();
        fibers.into_iter().for_each(|fiber| fiber.join().expect("no panic"));
        let seconds = start.elapsed().as_secs_f64();
        let flushes = wal::counters::FLUSHES.value() - before;
        let commits = FIBERS * COMMITS;
        println!("{commits} commits in {seconds:.3} s by {flushes} flushes");
        let end = wal.close().expect("the device works");
        assert_eq!(wal.durable(), end);
        drop(wal);

        let mut reader = Reader::open(&path, UUID, FIRST_LSN, end).expect("a log");
        let mut seen = vec![0u64; FIBERS as usize];
        while let Some(record) = reader.next_record().expect("intact") {
            let view = wal::RecordView::parse(record.bytes).expect("whole");
            let (fiber, number) = (view.trx().get() / COMMITS, view.trx().get() % COMMITS);
            assert_eq!(seen[fiber as usize], number, "a fiber's commits are in order");
            seen[fiber as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count == COMMITS));
        let found = reader.end().expect("read to the end");
        assert_eq!(found.lsn, end);
        let wal = Wal::open(&path, options, 2, found).expect("the device works");
        let mut builder = RecordBuilder::new(RecordKind::Commit, TrxId::new(1));
        assert!(commit(&wal, &mut builder, 1) > end);
    });
    runtime.shutdown();
    std::fs::remove_dir_all(&dir).expect("the directory is ours");
}

#[test]
fn group_commit_on_the_best_event_loop() {
    run_on(Ring::Auto, "auto");
}

#[test]
fn group_commit_on_the_fallback() {
    run_on(Ring::Fallback, "fallback");
}
