//! Seeds of a test that is alone in its process, and the defects that they must find.
//!
//! `GANNET_SIM_SEEDS=n` runs n seeds, `GANNET_SIM_SEED=s` replays one, with `GANNET_MUTANT=name` and
//! that defect.

use std::panic::{catch_unwind, resume_unwind};

/// Each of these must be found by one of so many seeds.
const SEEDS_A_DEFECT: u64 = 400;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// The first of the seeds that fails, and what it says.
fn first_failure<Met>(seeds: u64, run_seed: fn(u64) -> Met) -> Option<(u64, String)> {
    (0..seeds).find_map(|seed| {
        let panic = catch_unwind(|| run_seed(seed)).err()?;
        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        Some((seed, text))
    })
}

/// What each of so many seeds has met; nothing if the environment asked for something else, which
/// was done then.
pub fn run_seeds<Met>(usual: u64, run_seed: fn(u64) -> Met) -> Vec<Met> {
    let seeds = from_environment("GANNET_SIM_SEEDS").unwrap_or(usual);
    let mutant = std::env::var("GANNET_MUTANT").ok();
    base::mutant::switch(mutant.as_deref());
    if let Some(seed) = from_environment("GANNET_SIM_SEED") {
        run_seed(seed);
        return Vec::new();
    }
    if mutant.is_some() {
        println!("{:?}", first_failure(seeds, run_seed));
        return Vec::new();
    }
    let run = |seed| {
        catch_unwind(|| run_seed(seed)).unwrap_or_else(|panic| {
            eprintln!("seed {seed} failed; replay with GANNET_SIM_SEED={seed}");
            resume_unwind(panic)
        })
    };
    (0..seeds).map(run).collect()
}

/// Every defect is found by a seed, which is sound without it. What is printed meanwhile was wanted.
pub fn find_defects<Met>(defects: &[&str], run_seed: fn(u64) -> Met) {
    for defect in defects {
        base::mutant::switch(Some(defect));
        let found = first_failure(SEEDS_A_DEFECT, run_seed);
        base::mutant::switch(None);
        let (seed, text) = found.unwrap_or_else(|| panic!("{defect} was not found"));
        println!("{defect}: seed {seed}: {text}");
        run_seed(seed);
    }
}
