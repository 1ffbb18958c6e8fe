//! The test of the test: named defects, each of which the simulation must find.

use crate::campaign::Campaign;
use std::process::{Command, Output};
use std::time::Instant;

/// Name (as in `base::mutant!`) and what is broken. Those of space that is used again or given back
/// too early are found by pagestore/tests/reuse.rs, which crashes at these moments; what a page is
/// read with, by pagestore/tests/defects.rs; what is compressed anew, by catch_up.rs there.
pub const MUTANTS: [(&str, &str); 18] = [
    ("skip_wal_sync", "the log is written but not synced before commits are acknowledged"),
    ("durable_write_over_unsynced", "a durable write counts as a sync of what was written before"),
    ("stale_tail_accepted", "recovery replays intact log of a former run behind the end"),
    ("tail_rot_accepted", "a rotten last batch is taken for a torn write and cut off"),
    ("reuse_without_sync", "a segment is written again before its blobs' new places are synced"),
    ("write_page_before_log", "a page is written before the log that changed it is durable"),
    ("mapping_by_group_order", "mapping recovery takes the latest group, not the highest LSN"),
    ("delta_of_another_base", "what changed of a page is put on another copy than its own"),
    ("delta_without_former", "a delta leaves out what former deltas of the page had"),
    ("checkpoint_before_data_sync", "the superblock names a redo LSN before the data is synced"),
    ("dirty_page_swept", "pages that are still to be written are taken for stale entries"),
    ("unwritten_page_forgotten", "a page that did not get into its group is dirty no more"),
    ("barrier_before_log", "a checkpoint forgets what only log that may be lost has settled"),
    ("freeze_above_durable", "versions are frozen and rows purged above the durable log"),
    ("redo_skips_record", "redo leaves a record out and does not look at the previous LSN"),
    ("undo_skips_loser", "recovery leaves a transaction that never committed as it is"),
    ("trust_leaf_hint", "a remembered leaf is changed although the key is not in its range"),
    ("release_before_commit_record", "locks are released before the commit record is in the log"),
];

/// Seeds tried for a mutant before it counts as not found.
const SEEDS_A_MUTANT: u64 = 2_000;

/// Tries the defects one after the other, each in a process of its own, since some of them are
/// found by an invariant whose violation ends the process.
pub fn hunt(campaign: &Campaign, only: Option<&str>) -> Result<(), String> {
    let mut missed = Vec::new();
    for (name, what) in MUTANTS {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let started = Instant::now();
        let found = first_failure(name, campaign)?;
        let seconds = started.elapsed().as_secs_f64();
        match found {
            Some(report) => {
                println!("found   {name} ({what}) in {seconds:.1} s\n        {report}");
            }
            None => {
                println!("MISSED  {name} ({what}) in {seconds:.1} s");
                missed.push(name);
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}

/// This program with these arguments.
fn run_self(arguments: &[&str]) -> Result<Output, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(arguments).env("RUST_BACKTRACE", "0");
    command.output().map_err(|error| error.to_string())
}

/// Runs seeds with the defect until one fails; the seed and what was noticed first. The same
/// seed must pass without the defect.
fn first_failure(name: &str, campaign: &Campaign) -> Result<Option<String>, String> {
    let first = campaign.first.to_string();
    let seeds = campaign.seeds.max(SEEDS_A_MUTANT).to_string();
    let operations = campaign.operations.to_string();
    let threads = campaign.threads.to_string();
    let output = run_self(&[
        "--mutant",
        name,
        "--first",
        &first,
        "--seeds",
        &seeds,
        "--operations",
        &operations,
        "--threads",
        &threads,
    ])?;
    if output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let seed = lines().find(|line| line.starts_with("seed")).unwrap_or("seed unknown:");
    let number: String = seed.chars().filter(char::is_ascii_digit).collect();
    let sound = run_self(&["--seed", &number, "--operations", &operations])?;
    if !sound.status.success() {
        return Err(format!("seed {number} fails without a defect, too"));
    }
    let noticed = lines().find(|line| {
        !line.starts_with("seed") && !line.starts_with("thread") && !line.starts_with("note")
    });
    let noticed: String = noticed.unwrap_or("the process ended").chars().take(200).collect();
    Ok(Some(format!("{seed} {noticed}")))
}
