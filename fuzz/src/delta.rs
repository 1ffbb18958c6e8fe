//! What changed of a page, from anywhere, put on a page that is sound.
#![no_main]

mod seeds;

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: seeds::write(pagestore::fuzzing::delta_seeds()),
    |bytes: &[u8]| {
        pagestore::fuzzing::apply_delta(bytes);
    }
);
