//! Defects that the simulation must find, each within so many seeds.
//!
//! Alone in its process: the switch for defects is global.

#[allow(dead_code, reason = "shared with the simulation")]
#[path = "simulation/lives.rs"]
mod lives;
#[allow(dead_code, reason = "shared with the simulation")]
#[path = "simulation/miniature.rs"]
mod miniature;
#[allow(dead_code, reason = "shared with the simulation")]
#[path = "simulation/model.rs"]
mod model;

const DEFECTS: [&str; 1] = ["stale_recent_delta"];
const SEEDS_A_DEFECT: u64 = 400;

#[test]
fn a_page_is_never_read_with_a_former_delta() {
    // What is printed here was wanted.
    for defect in DEFECTS {
        base::mutant::switch(Some(defect));
        let failure = |&seed: &u64| std::panic::catch_unwind(|| lives::run_seed(seed)).is_err();
        let found = (0..SEEDS_A_DEFECT).find(failure);
        base::mutant::switch(None);
        let seed = found.unwrap_or_else(|| panic!("{defect} was not found"));
        println!("{defect}: seed {seed}");
        lives::run_seed(seed);
    }
}
