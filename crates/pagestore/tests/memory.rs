//! Guards over a store in memory, in one thread and without a runtime, so that Miri can follow
//! every pointer: `cargo +nightly miri test -p gannet-pagestore --test memory`.

use base::{Lsn, PageId};
use pagestore::PageStore;
use pagestore::header::HEADER_BYTES;
use wal::LsnRange;

const CLASS: u8 = 12;

fn record(number: u64) -> LsnRange {
    LsnRange { start: Lsn::new(number * 8), end: Lsn::new(number * 8 + 8) }
}

fn filled(pid: u64, number: u8) -> Vec<u8> {
    (0..4096 - HEADER_BYTES).map(|at| (at as u64 * 31 + pid) as u8 ^ number).collect()
}

#[test]
fn pages_are_read_as_they_were_written() {
    let store = PageStore::volatile(256 << 10, 1 << 12).expect("memory");
    for pid in 1..6 {
        let mut page = store.new_page(PageId::new(pid), CLASS).expect("a frame");
        page[HEADER_BYTES..].copy_from_slice(&filled(pid, 0));
        page.mark_dirty(record(pid));
    }
    for pid in 1..6 {
        let page = store.optimistic(PageId::new(pid)).expect("in memory");
        let bytes = filled(pid, 0);
        let mut seen = vec![0; bytes.len()];
        page.copy_bytes(HEADER_BYTES, &mut seen);
        assert_eq!(seen, bytes);
        for at in [0, 1, 3, 7, 8, 13] {
            let eight = bytes[at..at + 8].try_into().expect("eight bytes");
            assert_eq!(page.u64_at(HEADER_BYTES + at), u64::from_le_bytes(eight));
            assert_eq!(page.u16_at(HEADER_BYTES + at) as u8, bytes[at]);
        }
        assert!(page.compare(HEADER_BYTES + 5, 100, &bytes[5..105]).is_eq());
        // Whatever an unstable page says, nothing outside it is read.
        page.u64_at(4093);
        page.u64_at(usize::MAX - 3);
        let mut none = Vec::new();
        page.append_to(4090, 7, &mut none);
        assert!(none.is_empty());
        page.validate().expect("nobody changed it");
        assert_eq!(page.page_lsn(), record(pid).end);
    }
}

#[test]
fn holders_and_pins_follow_one_another() {
    let store = PageStore::volatile(256 << 10, 1 << 12).expect("memory");
    let pid = PageId::new(9);
    let mut page = store.new_page(pid, CLASS).expect("a frame");
    page.mark_dirty(record(1));
    drop(page);
    let before = store.optimistic(pid).expect("in memory");
    let shared = store.shared_page(pid).expect("free");
    assert!(store.exclusive(pid).is_err());
    let pin = shared.pin(&store);
    assert_eq!(shared.page_lsn(), record(1).end);
    drop(shared);
    let view = store.optimistic(pid).expect("in memory");
    let mut page = view.upgrade().expect("nobody changed it");
    assert!(before.validate().is_err() && store.shared_page(pid).is_err());
    page[HEADER_BYTES..].copy_from_slice(&filled(9, 1));
    page.mark_dirty(record(2));
    drop(page);
    assert!(before.validate().is_err() && view.validate().is_err());
    drop(pin);
    let page = store.exclusive(pid).expect("free");
    assert_eq!(page[HEADER_BYTES..], filled(9, 1));
    page.discard(record(3));
    assert!(store.optimistic(pid).is_err(), "it is gone");
    let mut again = store.new_page(pid, CLASS).expect("a frame");
    assert!(again[HEADER_BYTES..].iter().all(|&byte| byte == 0), "a new page is zeroed");
    again.mark_dirty(record(4));
}
