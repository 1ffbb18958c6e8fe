//! The checks of the server's simulation can fail. Alone in its process: the switch is global.

use sim::server_life;

#[test]
fn a_log_that_is_not_synced_is_found() {
    server::log::only_errors();
    base::mutant::switch(Some("skip_wal_sync"));
    let found = (0..20).find_map(|seed| server_life::run_seed(seed, 300).err());
    base::mutant::switch(None);
    let violation = found.expect("one of the seeds loses something");
    assert!(violation.contains("violation"), "{violation}");
}
