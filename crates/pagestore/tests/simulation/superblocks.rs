//! The superblock through chains of killed processes and power failures.

use base::{Lsn, Random};
use pagestore::{StoreError, Superblock};
use runtime::sim::{CrashKind, Disk, SimConfig, SimEnd, Simulation};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const DATA: &str = "data";

/// Loads as a start does and writes on; every write that returned is in `acknowledged`. Counts
/// copies that a crash has torn.
fn life(acknowledged: &AtomicU64, torn: &AtomicU64) {
    let dir = Path::new(DATA);
    let report = pagestore::check(dir, None).expect("readable");
    assert_eq!(report.findings, [], "a crash is no damage");
    torn.fetch_add(report.notes.len() as u64, Ordering::Relaxed);
    let known = acknowledged.load(Ordering::Relaxed);
    let loaded = match Superblock::load_durably(dir) {
        Err(error @ StoreError::Damaged { .. }) => panic!("write {known} is lost: {error}"),
        other => other.expect("no faults"),
    };
    let found = loaded.as_ref().map_or(0, |superblock| superblock.sequence);
    assert!(found >= known, "write {known} was acknowledged, {found} was found");
    let mut superblock = loaded.unwrap_or_else(|| Superblock::new([7; 16], 1 << 20, 16));
    for _ in 0..3 {
        superblock.redo_lsn = Lsn::new(superblock.sequence + 1);
        // So that every sector of a copy differs from the one before.
        superblock.engine = vec![superblock.sequence as u8; 3000];
        superblock.store(dir).expect("no faults");
        acknowledged.store(superblock.sequence, Ordering::Relaxed);
    }
}

/// Returns how many torn copies the check has met.
fn run_seed(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let acknowledged = Arc::new(AtomicU64::new(0));
    let torn = Arc::new(AtomicU64::new(0));
    let mut disk: Option<Disk> = None;
    for number in 0..12 {
        let mut config = SimConfig::new(seed * 100 + number);
        config.crash_at_step = (number > 0).then(|| 1 + random.below(60));
        let mut simulation = match disk.take() {
            None => Simulation::new(config),
            Some(disk) => Simulation::with_disk(config, disk),
        };
        let shared = (acknowledged.clone(), torn.clone());
        let is_first = number == 0;
        let ended = simulation.run(move || {
            if is_first {
                runtime::fs::create_dir_all(DATA).expect("no faults");
                runtime::fs::sync_dir("/").expect("no faults");
            }
            life(&shared.0, &shared.1);
        });
        assert!(matches!(ended, Ok(()) | Err(SimEnd::Crashed)), "seed {seed}: {ended:?}");
        let kind = *random.pick(&[CrashKind::Power, CrashKind::Process]);
        disk = Some(simulation.crash(kind));
    }
    torn.load(Ordering::Relaxed)
}

#[test]
fn an_acknowledged_superblock_outlives_killed_processes_and_power_failures() {
    let torn: u64 = (0..400).map(run_seed).sum();
    assert!(torn > 0, "some copies are torn");
}
