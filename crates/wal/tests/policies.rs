//! What a commit costs and promises under each flush policy, and that commits share syncs.

use base::{Lsn, TrxId};
use runtime::sim::{CrashKind, Disk, SimConfig, SimEnd, Simulation};
use std::path::Path;
use std::sync::{Arc, Mutex};
use wal::{FIRST_LSN, FlushPolicy, Reader, RecordBuilder, RecordKind, Wal, WalOptions};

const UUID: [u8; 16] = *b"simulated log 03";
const FIBERS: u64 = 16;
const EACH: u64 = 20;

fn dir() -> &'static Path {
    Path::new("/log")
}

fn commit(wal: &Arc<Wal>, number: u64) {
    let mut record = RecordBuilder::new(RecordKind::Commit, TrxId::new(number));
    record.logical(&[number as u8; 40]);
    let permit = wal.admit(record.stream_len()).expect("there is room");
    let end = wal.append(&permit, &record).end;
    drop(permit);
    wal.wait_commit(end).expect("the disk has no faults");
}

/// Commits by 16 fibers and one alone, then the end of `kind`; what the disk had to do, and how
/// many of the acknowledged commits the next start finds.
fn run(policy: FlushPolicy, kind: CrashKind) -> (u64, u64, u64) {
    // A file that ends early is one write and one sync more.
    let config = SimConfig { buggify: false, ..SimConfig::new(8) };
    let mut simulation = Simulation::new(config);
    let disk = simulation.disk();
    let counted = Arc::new(Mutex::new((0, 0)));
    let told = counted.clone();
    let ended = simulation.run(move || {
        let options = WalOptions { policy, ..WalOptions::new(UUID) };
        let wal = Wal::create(dir(), options, 1).expect("a new log");
        let before = disk.statistics();
        let fibers: Vec<_> = (0..FIBERS)
            .map(|fiber| {
                let wal = wal.clone();
                runtime::spawn("committer", move || {
                    (0..EACH).for_each(|number| commit(&wal, 1 + fiber * EACH + number));
                })
            })
            .collect();
        fibers.into_iter().for_each(|fiber| fiber.join().expect("no panic"));
        let after = disk.statistics();
        *told.lock().unwrap() = (after.writes - before.writes, after.syncs - before.syncs);
        runtime::sim::crash_now();
    });
    assert_eq!(ended, Err(SimEnd::Crashed));
    let found = records_found(simulation.crash(kind));
    let (writes, syncs) = *counted.lock().unwrap();
    (writes, syncs, found)
}

fn records_found(disk: Disk) -> u64 {
    let mut simulation = Simulation::with_disk(SimConfig::new(9), disk);
    let found = simulation.run(|| {
        let mut reader = Reader::open(dir(), UUID, FIRST_LSN, Lsn::new(0)).expect("a log");
        let mut found = 0;
        while reader.next_record().expect("intact").is_some() {
            found += 1;
        }
        found
    });
    found.expect("the simulation ends well")
}

#[test]
fn every_commit_is_synced_and_a_sync_is_shared() {
    let commits = FIBERS * EACH;
    let (_, syncs, found) = run(FlushPolicy::EveryCommit, CrashKind::Power);
    assert_eq!(found, commits, "what was acknowledged is there after a power failure");
    assert!(syncs >= EACH, "a fiber's commits come one after the other: {syncs} syncs");
    assert!(syncs <= commits / 4, "{syncs} syncs for {commits} commits");
}

#[test]
fn written_at_commit_survives_the_process_but_is_not_synced() {
    let (writes, syncs, found) = run(FlushPolicy::WriteEveryCommit, CrashKind::Process);
    assert_eq!(found, FIBERS * EACH, "what was acknowledged is there after the process died");
    assert!(syncs <= 2 && writes >= EACH, "{syncs} syncs, {writes} writes");
}

#[test]
fn once_a_second_costs_a_commit_nothing() {
    let (writes, syncs, _) = run(FlushPolicy::EverySecond, CrashKind::Process);
    assert!(syncs <= 2 && writes <= 2, "{syncs} syncs, {writes} writes");
}
