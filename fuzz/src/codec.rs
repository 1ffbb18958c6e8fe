//! Compressed pages: bytes from anywhere and a length that somebody claims, to every decoder.
#![no_main]

mod seeds;

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: seeds::write(codec::fuzzing::seeds()),
    |bytes: &[u8]| {
        codec::fuzzing::decode(bytes);
    }
);
