//! A few seeds of the engine under crashes; `GANNET_SIM_SEEDS=n` runs more, and
//! `cargo run -p gannet-sim -- --seeds 2000` the full campaign.

use sim::campaign::{self, Campaign};
use sim::{life, subjects};

#[test]
fn the_engine_survives_its_crashes() {
    let seeds = std::env::var("GANNET_SIM_SEEDS").ok();
    let seeds = seeds.map_or(25, |seeds| seeds.parse().expect("a number"));
    let subject = subjects::by_name("gannet").expect("it exists");
    let campaign = Campaign { first: 0, seeds, operations: 2_000, threads: 2 };
    campaign::name_seed_in_panics();
    let summary = campaign::run(&subject, &campaign).unwrap_or_else(|error| panic!("{error}"));
    println!("{summary}");
    assert!(summary.total.crashes >= seeds);
    summary.require(&subject, seeds).unwrap_or_else(|missing| panic!("{missing}"));
}

#[test]
fn a_seed_of_the_engine_replays_event_by_event() {
    let subject = subjects::by_name("gannet").expect("it exists");
    let run = |seed| life::run_seed(&subject, seed, 600).expect("no violation");
    for seed in 0..4 {
        assert_eq!(run(seed), run(seed));
    }
}

/// Seeds that have found something, each with its operations; they stay.
const FOUND: [(u64, u64); 3] = [
    // A reader told of an index key by a covering scan; the model took it for the row.
    (791, 2_000),
    // A checkpoint forgot a transaction whose abort record was lost (its test is the engine's).
    (1_227, 2_000),
    // The power failed between the last look at a life and its close; the model took what lazy
    // commits had left for durable.
    (984, 2_000),
];

#[test]
fn seeds_that_found_something_pass() {
    let subject = subjects::by_name("gannet").expect("it exists");
    for (seed, operations) in FOUND {
        let ran = campaign::run_caught(&subject, seed, operations);
        ran.unwrap_or_else(|failure| panic!("{failure}"));
    }
}
