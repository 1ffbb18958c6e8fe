//! The simulation itself, tried on the model engine in memory (which is never crashed).

use sim::campaign::{self, Campaign};
use sim::{life, subjects};

#[test]
fn the_model_engine_obeys_the_rules() {
    let subject = subjects::by_name("memory").expect("it exists");
    let campaign = Campaign { first: 0, seeds: 60, operations: 1_000, threads: 2 };
    let summary = campaign::run(&subject, &campaign).unwrap_or_else(|error| panic!("{error}"));
    println!("{summary}");
    assert!(summary.total.commits > 1_000 && summary.total.definition_changes > 20);
}

#[test]
fn a_seed_replays_event_by_event() {
    let subject = subjects::by_name("memory").expect("it exists");
    let run = |seed| life::run_seed(&subject, seed, 500).expect("no violation");
    for seed in 0..10 {
        assert_eq!(run(seed), run(seed));
    }
    assert_ne!(run(1).trace, run(2).trace);
}
