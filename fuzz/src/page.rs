//! What comes from the data files: blobs, directories, headers, the allocation map, nodes of trees;
//! and page operations of the log on sound nodes.
#![no_main]

mod seeds;

use base::TreeId;
use btree::node::{self, Route};
use btree::{edit, overflow, redo};
use libfuzzer_sys::fuzz_target;

const PAGE_BYTES: usize = 4096;
/// Kinds that are trees' come behind those of the page store.
const NODE: u8 = pagestore::fuzzing::KINDS;
const OPS: u8 = NODE + 1;
const OVERFLOW: u8 = NODE + 2;

fuzz_target!(
    init: seeds::write(all_seeds()),
    |bytes: &[u8]| {
        let Some((&kind, bytes)) = bytes.split_first() else { return };
        match kind % (OVERFLOW + 1) {
            NODE => read_node(bytes),
            OPS => apply_ops(bytes),
            OVERFLOW => read_overflow(bytes),
            kind => pagestore::fuzzing::decode(kind, bytes),
        }
    }
);

/// A reader may see any bytes (it validates afterwards), so no lookup may panic.
fn read_node(bytes: &[u8]) {
    let (key, bytes) = bytes.split_at(bytes.len().min(8));
    let mut page = vec![0; PAGE_BYTES];
    let count = bytes.len().min(PAGE_BYTES);
    let front = count / 2;
    page[..front].copy_from_slice(&bytes[..front]);
    page[PAGE_BYTES - (count - front)..].copy_from_slice(&bytes[front..count]);
    look(&page, key);
    if btree::check_page(&page).is_ok() {
        look_closely(&page);
    }
}

fn look(page: &[u8], key: &[u8]) {
    let (index, _) = node::lower_bound(page, key);
    assert!(index <= node::count(page));
    for route in [Route::Containing, Route::Below] {
        let _ = node::child(page, node::child_index(page, key, route));
    }
    if index < node::count(page) {
        let _ = node::leaf_header(page, node::slot(page, index));
    }
}

/// What is done with nodes that passed their check.
fn look_closely(page: &[u8]) {
    for index in 0..node::count(page) {
        let key = node::key(page, index);
        look(page, &key);
        let _ = node::in_range(page, &key);
    }
    let _ = node::check_order(page);
    assert!(node::free_bytes(page) <= page.len());
}

/// Redo on a sound node: an op is refused with the page as it was, or applied. One that no tree
/// would log (keys out of order) may leave a node that its check refuses, but never a panic.
fn apply_ops(bytes: &[u8]) {
    let Some((&level, mut rest)) = bytes.split_first() else { return };
    let mut page = empty_node(usize::from(level % 2));
    while let Some((&[op, low, high], tail)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(tail.len());
        let (payload, tail) = tail.split_at(length);
        rest = tail;
        let before = page.clone();
        match btree::apply(&mut page, op, payload) {
            Err(_) => assert!(page == before, "a refused op {op:#x} changed the page"),
            Ok(()) if pagestore::header::page_type(&page) == redo::page_type::OVERFLOW => return,
            Ok(()) => look(&page, payload),
        }
    }
    if node::check(&page).is_ok() {
        look_closely(&page);
    }
}

fn read_overflow(bytes: &[u8]) {
    let (reference, bytes) = bytes.split_at(bytes.len().min(24));
    if let Some(reference) = overflow::Reference::decode(reference) {
        assert_eq!(reference.pages_per_level().last(), Some(&1));
    }
    let mut page = vec![0; PAGE_BYTES];
    if btree::apply(&mut page, redo::op::OVERFLOW, bytes).is_ok() {
        let key = (0, 0, 0);
        let _ = overflow::content(&page, key);
    }
}

fn empty_node(level: usize) -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES];
    edit::init(&mut page, level, edit::Fences::default()).expect("an empty node fits");
    page
}

fn all_seeds() -> Vec<Vec<u8>> {
    let mut all = seeds::with_kinds(0, pagestore::fuzzing::seeds());
    for level in 0..2u8 {
        let ops = ops(level);
        let mut page = empty_node(usize::from(level));
        let mut encoded = vec![OPS, level];
        for (op, payload) in &ops {
            btree::apply(&mut page, *op, payload).expect("a sound op");
            encoded.push(*op);
            encoded.extend_from_slice(&(payload.len() as u16).to_le_bytes());
            encoded.extend_from_slice(payload);
        }
        all.push(encoded);
        let kind = if level == 0 { redo::page_type::LEAF } else { redo::page_type::INNER };
        pagestore::header::set_page_type(&mut page, kind);
        pagestore::header::set_format_version(&mut page, redo::FORMAT_VERSION);
        all.push([&[NODE][..], b"key 0003", &page].concat());
    }
    let mut value = vec![OVERFLOW];
    let root = base::PageId::new(700);
    let reference = overflow::Reference { length: 9000, stamp: 0, root, class: 12, levels: 1 };
    value.extend_from_slice(&reference.encode());
    overflow::encode_page(&mut value, (TreeId::new(20), 12), (0, 0, 0), b"content");
    all.push(value);
    all
}

/// One op of each code, after enough inserts for hints.
fn ops(level: u8) -> Vec<(u8, Vec<u8>)> {
    let mut ops = Vec::new();
    let mut put = |op: u8, encode: &dyn Fn(&mut Vec<u8>)| {
        let mut payload = Vec::new();
        encode(&mut payload);
        ops.push((op, payload));
    };
    for index in 0..40 {
        let key = format!("key {index:04}");
        if level == 0 {
            put(redo::op::INSERT_ENTRY, &|out| {
                redo::encode_insert(out, index, key.as_bytes(), (0, 9), b"payload of the row");
            });
        } else {
            put(redo::op::INSERT_CHILD, &|out| {
                redo::encode_insert_child(out, index, key.as_bytes(), 500 + index as u64);
            });
        }
    }
    if level == 0 {
        put(redo::op::REPLACE_ENTRY, &|out| {
            let patch = edit::Patch::between(b"payload of the row", b"payload of a longer row");
            redo::encode_replace(out, 3, (1, 10), patch);
        });
        put(redo::op::SET_HEADER, &|out| redo::encode_set_header(out, 4, 1, 11));
        put(redo::op::REMOVE_ENTRY, &|out| redo::encode_remove(out, 5));
    } else {
        put(redo::op::REMOVE_CHILD, &|out| redo::encode_remove(out, 5));
    }
    put(redo::op::TRUNCATE, &|out| redo::encode_truncate(out, 20, b"key 0025"));
    let mut right = empty_node(usize::from(level));
    let fences = edit::Fences { lower: Some(b"key 0025"), upper: None };
    edit::init(&mut right, usize::from(level), fences).expect("an empty node fits");
    if level == 0 {
        put(redo::op::ABSORB, &|out| redo::encode_absorb(out, &right));
    }
    put(redo::op::BUILD, &|out| redo::encode_build(out, TreeId::new(20), &right));
    ops
}
