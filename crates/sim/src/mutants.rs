//! The test of the test: named defects, each of which the simulation must find.

use crate::campaign::{Campaign, run_caught};
use crate::life::Subject;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Name (as in `base::mutant!`) and what is broken.
pub const MUTANTS: [(&str, &str); 10] = [
    ("skip_wal_sync", "the log is written but not synced before commits are acknowledged"),
    ("stale_tail_accepted", "recovery replays intact log of a former run behind the end"),
    ("reuse_without_sync", "a segment is written again before its blobs' new places are synced"),
    ("write_page_before_log", "a page is written before the log that changed it is durable"),
    ("mapping_by_group_order", "mapping recovery takes the latest group, not the highest LSN"),
    ("checkpoint_before_data_sync", "the superblock names a redo LSN before the data is synced"),
    ("freeze_above_durable", "versions are frozen and rows purged above the durable log"),
    ("redo_skips_record", "redo leaves a record out and does not look at the previous LSN"),
    ("undo_skips_loser", "recovery leaves a transaction that never committed as it is"),
    ("release_before_commit_record", "locks are released before the commit record is in the log"),
];

/// Seeds tried for a mutant before it counts as not found.
const SEEDS_A_MUTANT: u64 = 2_000;

/// Switches the defects on one after the other and runs seeds until one fails.
pub fn hunt(
    subject: &Arc<dyn Subject>,
    campaign: &Campaign,
    only: Option<&str>,
) -> Result<(), String> {
    // A found mutant panics; that is the good outcome here and needs no report of its own.
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for (name, what) in MUTANTS {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let started = Instant::now();
        base::mutant::switch(Some(name));
        let found = first_failure(subject, campaign);
        base::mutant::switch(None);
        let seconds = started.elapsed().as_secs_f64();
        match found {
            Some((seed, message)) => {
                let line = message.lines().next().unwrap_or_default();
                let line: String = line.chars().take(160).collect();
                println!("found   {name} ({what})\n        seed {seed}, {seconds:.1} s: {line}");
            }
            None => {
                println!("MISSED  {name} ({what}) in {seconds:.1} s");
                missed.push(name);
            }
        }
    }
    drop(std::panic::take_hook());
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}

fn first_failure(subject: &Arc<dyn Subject>, campaign: &Campaign) -> Option<(u64, String)> {
    let next = AtomicU64::new(campaign.first);
    let end = campaign.first + SEEDS_A_MUTANT.max(campaign.seeds);
    let is_found = AtomicBool::new(false);
    let found = std::sync::Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..campaign.threads {
            scope.spawn(|| {
                while !is_found.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    if let Err(failure) = run_caught(subject, seed, campaign.operations) {
                        is_found.store(true, Ordering::Relaxed);
                        let mut found = found.lock().unwrap_or_else(|it| it.into_inner());
                        found.get_or_insert((seed, failure.message));
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(|it| it.into_inner())
}
