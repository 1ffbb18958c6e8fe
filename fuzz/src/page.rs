//! Pages as they come from the disk, and page operations as they come from the log.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&op, rest)) = bytes.split_first() else { return };
    let mut page = vec![0u8; 4096];
    let count = rest.len().min(page.len());
    page[..count].copy_from_slice(&rest[..count]);
    if btree::check_page(&page).is_ok() {
        let payload = &rest[count / 2..];
        let _ = btree::apply(&mut page, op, payload);
    }
});
