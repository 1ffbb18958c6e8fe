//! Crashes at any step, recovery included, over several lives of one store.

use crate::lives::run_seed;
use crate::model::Model;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

#[test]
fn pages_survive_every_crash() {
    if let Ok(name) = std::env::var("GANNET_MUTANT") {
        base::mutant::switch(Some(&name));
    }
    if let Some(seed) = from_environment("GANNET_SIM_SEED") {
        let model = run_seed(seed);
        println!("{:?}", model.counters);
        return;
    }
    let seeds = from_environment("GANNET_SIM_SEEDS").unwrap_or(40);
    let mut total = Model::default();
    for seed in 0..seeds {
        let ran = std::panic::catch_unwind(|| run_seed(seed));
        let model = ran.unwrap_or_else(|panic| {
            eprintln!("seed {seed} failed; replay with GANNET_SIM_SEED={seed}");
            std::panic::resume_unwind(panic)
        });
        total.operations += model.operations;
        total.lives += model.lives;
        total.add_counters(model.counters);
    }
    println!("{seeds} seeds, {} operations, {} recoveries", total.operations, total.lives);
    for (name, count) in total.counters.named() {
        println!("  {name} {count}");
    }
    // That deltas are found in memory takes more seeds: defects.rs has those.
    let marks = [
        "pagestore_segment_reused",
        "pagestore_collected",
        "pagestore_torn_group",
        "pagestore_evicted",
        "pagestore_chunk_changed_class",
        "pagestore_page_moved_while_read",
        "pagestore_page_changed_while_moved",
        "pagestore_delta_read",
        "pagestore_delta_moved",
        "pagestore_read_together",
        "pagestore_delta_without_base",
    ];
    let counts = base::probe::counts();
    for mark in marks {
        let count = counts.get(mark).copied().unwrap_or(0);
        println!("  {mark} {count}");
        assert!(seeds < 40 || count > 0, "{mark} was never reached");
    }
}
