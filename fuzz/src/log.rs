//! The log as recovery reads it: records, batches, headers of files.
#![no_main]

mod seeds;

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: seeds::write(seeds::with_kinds(0, wal::fuzzing::seeds())),
    |bytes: &[u8]| {
        if let Some((&kind, bytes)) = bytes.split_first() {
            wal::fuzzing::decode(kind, bytes);
        }
    }
);
