//! Damage inside pages, as a bug would leave it: `verify` names the page and readers get errors.

mod common;

use base::{PageId, Random, TreeId, TrxId};
use btree::{Tree, layout, node};
use common::*;
use pagestore::PageStore;
use runtime::sim::{SimConfig, Simulation};
use wal::{RecordBuilder, RecordKind, Wal};

/// Changes bytes of a page behind the tree's back.
fn scribble(store: &PageStore, wal: &Wal, pid: PageId, change: impl Fn(&mut [u8])) {
    let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
    record.logical(b"scribble");
    let permit = wal.admit(record.stream_len()).expect("permit");
    let done = store.run_with_retry(|_| {
        let mut page = store.exclusive(pid)?;
        change(&mut page);
        let range = wal.append(&permit, &record);
        page.mark_dirty(range);
        Ok(())
    });
    done.expect("page");
}

fn swap(page: &mut [u8], first: usize, second: usize, length: usize) {
    for at in 0..length {
        page.swap(first + at, second + at);
    }
}

/// Finds a leaf in the middle, or the root's first child, of a three-level tree.
fn pages(tree: &Tree, store: &PageStore) -> (PageId, PageId) {
    let found = images(tree, store);
    let of_level = |level: usize| {
        let mut of_level = found.iter().filter(|(_, page)| {
            let kind = pagestore::header::page_type(page);
            kind != btree::redo::page_type::OVERFLOW && node::level(&page[..]) == level
        });
        PageId::new(*of_level.nth(1).expect("several nodes of the level").0)
    };
    (of_level(0), of_level(1))
}

#[test]
fn every_kind_of_damage_is_found() {
    let slot = |index: usize| layout::SLOTS + layout::SLOT_BYTES * index;
    type Damage = fn(&mut [u8]);
    let leaf_damage: [(&str, Damage); 6] = [
        ("keys out of order", |page| {
            let slot = |index| layout::SLOTS + layout::SLOT_BYTES * index;
            swap(page, slot(0), slot(1), layout::SLOT_BYTES);
        }),
        ("slot head differs", |page| page[layout::SLOTS + 7] ^= 0x40),
        ("entry outside the heap", |page| page[layout::SLOTS + 1] = 0x7f),
        ("level and page type", |page| page[layout::LEVEL] = 1),
        ("live bytes", |page| page[layout::USED] ^= 1),
        ("prefix length", |page| page[layout::PREFIX_LEN] ^= 1),
    ];
    for (expected, change) in leaf_damage {
        let done = Simulation::new(SimConfig::new(5)).run(move || {
            let (tree, store, wal) = filled();
            let (leaf, _) = pages(&tree, &store);
            scribble(&store, &wal, leaf, change);
            let found = tree.verify().expect("verify").findings;
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].pid == leaf && found[0].detail.contains(expected), "{found:?}");
        });
        done.expect("simulation");
    }
    let done = Simulation::new(SimConfig::new(6)).run(move || {
        let (tree, store, wal) = filled();
        let (_, inner) = pages(&tree, &store);
        // Two children change places.
        scribble(&store, &wal, inner, |page| {
            let at = |index| {
                let slot = node::slot(page, index);
                slot.offset + slot.suffix_len
            };
            let (first, second) = (at(0), at(1));
            swap(page, first, second, layout::CHILD_BYTES);
        });
        let found = tree.verify().expect("verify").findings;
        assert!(found.len() >= 2, "{found:?}");
        assert!(found.iter().all(|one| one.detail.contains("fences differ")), "{found:?}");
        let _ = slot;
    });
    done.expect("simulation");
}

#[test]
fn readers_of_a_wrong_page_get_an_error() {
    let done = Simulation::new(SimConfig::new(7)).run(|| {
        let (tree, store, wal) = filled();
        let (_, inner) = pages(&tree, &store);
        scribble(&store, &wal, inner, |page| {
            pagestore::header::set_tree(page, TreeId::new(99));
        });
        let mut failed = 0;
        let mut out = btree::EntryBuffer::new();
        for number in 0..3_000u64 {
            match tree.get(&key(number), &mut out) {
                Ok(found) => assert!(found),
                Err(btree::TreeError::Damaged { pid, .. }) => {
                    assert_eq!(pid, inner);
                    failed += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(failed > 0 && failed < 3_000, "only the damaged part fails: {failed}");
    });
    done.expect("simulation");
}

fn key(number: u64) -> Vec<u8> {
    let mut key = vec![b'k'; 200];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key[192..].copy_from_slice(&number.to_be_bytes());
    key
}

/// A tree of three levels.
fn filled() -> (Tree, PageStore, std::sync::Arc<Wal>) {
    let wal = log("wal");
    let store = PageStore::volatile(128 << 20, 1 << 18).expect("store");
    let tree = Tree::create(store.clone(), wal.clone(), TreeId::new(7), 12).expect("tree");
    let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
    let mut random = Random::new(1);
    let mut numbers: Vec<u64> = (0..3_000).collect();
    random.shuffle(&mut numbers);
    for number in numbers {
        put(&tree, &mut record, &key(number), &(0, number, vec![1; 700]));
    }
    assert_eq!(tree.statistics().expect("statistics").height, 3);
    (tree, store, wal)
}
