//! Seeds for readers can fail. Alone in its process: the switch is global.

use sim::campaign::run_caught;
use sim::subjects;

#[test]
fn a_reader_told_of_what_is_not_durable_is_found() {
    let subject = subjects::by_name("gannet").expect("it exists");
    base::mutant::switch(Some("freeze_above_durable"));
    let found = (0..4).find_map(|nth| run_caught(&subject, 9 + 20 * nth, 2_000).err());
    base::mutant::switch(None);
    let failure = found.expect("a reader was told of a commit that the crash took back");
    assert!(failure.message.contains("violation: after the crash"), "{failure}");
    run_caught(&subject, failure.seed, 2_000).unwrap_or_else(|failure| panic!("{failure}"));
}
