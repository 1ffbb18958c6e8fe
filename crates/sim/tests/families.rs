//! A few seeds of foreign keys under concurrency.

use sim::families;

#[test]
fn no_child_is_ever_without_its_parent() {
    let seeds = std::env::var("GANNET_SIM_SEEDS").ok().and_then(|text| text.parse().ok());
    let (mut done, mut refused) = (0, 0);
    for seed in 0..seeds.unwrap_or(6) {
        let (d, r) = families::run_seed(seed, 300).expect("no violation");
        done += d;
        refused += r;
    }
    assert!(done > 0 && refused > 0, "{done} changes, {refused} refused");
    println!("{done} changes, {refused} refused by a key");
}
