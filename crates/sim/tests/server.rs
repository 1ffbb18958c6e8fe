//! A few seeds of the whole server through the protocol.

use sim::{large_answer, server_life};

#[test]
fn the_server_keeps_what_it_acknowledged() {
    let seeds = std::env::var("GANNET_SIM_SEEDS").ok().and_then(|text| text.parse().ok());
    server_life::campaign(0, seeds.unwrap_or(3), 300, 2).expect("no violation");
}

#[test]
fn a_seed_is_replayed() {
    server_life::replay(7, 200).expect("twice the same");
}

#[test]
fn a_large_answer_shows_only_what_is_durable() {
    let shown: u64 = (0..12).map(|seed| large_answer::run_seed(seed).expect("no violation")).sum();
    assert!(shown > 0, "no seed showed a new version before the power failed");
}
