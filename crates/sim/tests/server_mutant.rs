//! The checks of the server's simulation can fail. Alone in its process: the switch is global.

use sim::{large_answer, server_life};

#[test]
fn defects_are_found() {
    server::log::only_errors();
    base::mutant::switch(Some("answer_before_durable"));
    let found = (0..20).find_map(|seed| large_answer::run_seed(seed).err());
    base::mutant::switch(None);
    let violation = found.expect("a row was shown that the crash took back");
    assert!(violation.contains("violation: shown"), "{violation}");
    base::mutant::switch(Some("skip_wal_sync"));
    let found = (0..20).find_map(|seed| server_life::run_seed(seed, 300).err());
    base::mutant::switch(None);
    let violation = found.expect("one of the seeds loses something");
    assert!(violation.contains("violation"), "{violation}");
    for (mutant, told) in
        [("virtual_not_computed", "violation: SELECT SUM("), ("row_number_lost", "violation")]
    {
        base::mutant::switch(Some(mutant));
        let found = (0..10).find_map(|seed| server_life::run_seed(seed, 300).err());
        base::mutant::switch(None);
        let violation = found.unwrap_or_else(|| panic!("{mutant} is not found"));
        assert!(violation.contains(told), "{mutant}: {violation}");
    }
}
