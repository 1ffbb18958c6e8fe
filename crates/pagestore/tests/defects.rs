//! Defects that the simulation must find.
//!
//! Alone in its process: the switch for defects is global.

#[allow(dead_code, reason = "shared with others")]
#[path = "simulation/hunt.rs"]
mod hunt;
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

#[test]
fn a_page_is_never_read_with_a_former_delta() {
    hunt::find_defects(&DEFECTS, lives::run_seed);
}
