//! Log records as recovery reads them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wal::{LogicalUndo, RecordView};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = RecordView::parse(bytes) {
        for op in record.page_ops() {
            let _ = op;
        }
        let _ = LogicalUndo::parse(record.logical());
    }
    let _ = LogicalUndo::parse(bytes);
});
