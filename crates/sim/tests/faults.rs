//! A few seeds on disks that fail, are full, rot or lie; `gannet-sim --faults` runs more.

use sim::campaign::Campaign;
use sim::faults;

/// 970576: a refused scan rolls back, which a page that cannot be read cuts short.
/// 982249: two words of a page change in a way that a hash with one key does not see.
/// 990480: the reserve is wanted while the file system says that it has no end.
/// 990770: the dictionary of a delta that is being written is damaged on the disk.
/// 1040043: a log file is made while the one before is taken and has no batch yet.
const REMARKABLE_SEEDS: [u64; 5] = [970_576, 982_249, 990_480, 990_770, 1_040_043];

#[test]
fn faults_of_the_disk_are_told_and_lose_nothing() {
    let seeds = std::env::var("GANNET_SIM_SEEDS").ok();
    let seeds = seeds.map_or(160, |seeds| seeds.parse().expect("a number"));
    let campaign = Campaign { first: 0, seeds, operations: 2_000, threads: 2 };
    let run = |campaign| faults::campaign(&campaign).unwrap_or_else(|error| panic!("{error}"));
    let summary = run(campaign);
    println!("{summary}");
    for (kind, injected) in summary.injected() {
        assert!(injected > 0, "no {kind:?} in {seeds} seeds");
    }
    for first in REMARKABLE_SEEDS {
        run(Campaign { first, seeds: 1, ..campaign });
    }
}
