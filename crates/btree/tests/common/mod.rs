//! What the tests of the tree share: a store with a log, a model, random entries, comparisons.

#![allow(dead_code)]

pub mod database;

use base::{Lsn, Random, TrxId};
use btree::{Batch, Change, Direction, EntryBuffer, LogPart, Tree};
use pagestore::PageStore;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use wal::{Reader, RecordBuilder, RecordKind, RecordView, Wal, WalOptions};

/// Flags, word and payload by key.
pub type Model = BTreeMap<Vec<u8>, (u8, u64, Vec<u8>)>;
/// One entry of a model.
pub type ModelEntry = (u8, u64, Vec<u8>);

pub const UUID: [u8; 16] = *b"btree test store";
pub const LOG: LogPart<'static> =
    LogPart { kind: RecordKind::Change, trx: TrxId::new(1), logical: b"logical part" };

/// Seeds a test runs through: the given few, as many as `GANNET_SIM_SEEDS` says, or the one that
/// `GANNET_SIM_SEED` names, to replay a failure.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("GANNET_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("GANNET_SIM_SEEDS").unwrap_or(usual),
    }
}

/// A log of its own in the current simulation or runtime.
pub fn log(directory: &str) -> Arc<Wal> {
    let mut options = WalOptions::new(UUID);
    options.ring_bytes = 1 << 20;
    options.first_file_bytes = 1 << 20;
    Wal::create(&PathBuf::from(directory), options, 1).expect("log")
}

/// Inserts or replaces.
pub fn put(tree: &Tree, record: &mut RecordBuilder, key: &[u8], entry: &ModelEntry) {
    let (flags, word, payload) = entry;
    let done = tree.modify(key, record, &mut |change: &mut Change<'_>| match change.entry() {
        None => change.insert(*flags, *word, payload, LOG),
        Some(_) => change.replace(*flags, *word, payload, LOG),
    });
    assert!(done.expect("modify").record().is_some());
}

/// Removes the key if it is there.
pub fn remove(tree: &Tree, record: &mut RecordBuilder, key: &[u8]) -> bool {
    let done = tree.modify(key, record, &mut |change: &mut Change<'_>| {
        if change.entry().is_some() {
            change.remove(LOG);
        }
    });
    done.expect("modify").record().is_some()
}

/// Sets flags and word of the key if it is there.
pub fn mark(tree: &Tree, record: &mut RecordBuilder, key: &[u8], flags: u8, word: u64) -> bool {
    let done = tree.modify(key, record, &mut |change: &mut Change<'_>| {
        if change.entry().is_some() {
            change.set_header(flags, word, LOG);
        }
    });
    done.expect("modify").record().is_some()
}

pub fn get(tree: &Tree, key: &[u8]) -> Option<ModelEntry> {
    let mut out = EntryBuffer::new();
    tree.get(key, &mut out).expect("get").then_some((out.flags, out.word, out.payload))
}

/// A key of up to `limit` bytes: numbers, words over a few letters, or long ones that share much.
pub fn random_key(random: &mut Random, limit: usize) -> Vec<u8> {
    match random.index(5) {
        0 => random.below(3_000).to_be_bytes().to_vec(),
        1 => (0..1 + random.index(14)).map(|_| b"abc\0\xff"[random.index(5)]).collect(),
        2 => {
            let mut key = vec![b'p'; random.index(limit / 2)];
            key.extend((0..random.index(limit / 2) + 1).map(|_| random.next_u32() as u8 & 3));
            key
        }
        3 => {
            // Separators as long as keys: inner nodes have few children.
            let mut key = vec![b'q' + random.index(3) as u8; limit.saturating_sub(8)];
            key.extend_from_slice(&(random.below(400) as u32).to_be_bytes());
            key
        }
        _ => {
            let mut key = b"table/index/".to_vec();
            key.extend_from_slice(&(random.below(400) as u32).to_be_bytes());
            key.truncate(limit);
            key
        }
    }
}

/// A payload, now and then one for overflow pages.
pub fn random_payload(random: &mut Random, most: usize) -> Vec<u8> {
    let length = match random.index(24) {
        0 => random.index(most),
        1..=3 => random.index(6_000.min(most)),
        _ => random.index(200),
    };
    let mut payload = vec![0; length];
    random.fill(&mut payload);
    payload
}

/// All entries of a walk.
pub fn scan(
    tree: &Tree,
    direction: Direction,
    start: Bound<&[u8]>,
    stop: Bound<&[u8]>,
    per_batch: usize,
) -> Vec<(Vec<u8>, ModelEntry)> {
    let mut cursor = tree.cursor(direction);
    cursor.seek(start);
    cursor.stop_at(stop);
    let (mut batch, mut found) = (Batch::new(), Vec::new());
    while cursor.next_batch(&mut batch, per_batch, 1 << 16).expect("cursor") {
        assert!(!batch.is_empty() && batch.len() <= per_batch);
        for entry in batch.iter() {
            let (flags, word) = (entry.entry.flags, entry.entry.word);
            found.push((entry.key.to_vec(), (flags, word, entry.entry.payload.to_vec())));
        }
    }
    found
}

/// Compares the whole tree, some ranges and the structure with the model.
pub fn check_all(tree: &Tree, model: &Model, random: &mut Random) {
    let verification = tree.verify().expect("verify");
    assert_eq!(verification.findings, []);
    assert_eq!(verification.entries, model.len() as u64);
    let forward = scan(tree, Direction::Forward, Bound::Unbounded, Bound::Unbounded, 100);
    assert!(forward.iter().map(|(key, entry)| (key, entry)).eq(model.iter()), "forward");
    let backward = scan(tree, Direction::Backward, Bound::Unbounded, Bound::Unbounded, 7);
    assert!(backward.iter().map(|(key, entry)| (key, entry)).eq(model.iter().rev()), "backward");
    for _ in 0..20 {
        check_range(tree, model, random);
    }
    let allocated = tree.store_pages();
    assert_eq!(allocated, verification.pages.len() as u64, "allocated pages are those in use");
}

fn random_bound(random: &mut Random, model: &Model) -> Bound<Vec<u8>> {
    let mut key = random_key(random, 60);
    if random.one_in(2)
        && let Some((near, _)) = model.range(key.clone()..).next()
    {
        key = near.clone();
    }
    match random.index(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn check_range(tree: &Tree, model: &Model, random: &mut Random) {
    let (lower, upper) = (random_bound(random, model), random_bound(random, model));
    let above = |key: &Vec<u8>| match &lower {
        Bound::Included(bound) => key >= bound,
        Bound::Excluded(bound) => key > bound,
        Bound::Unbounded => true,
    };
    let below = |key: &Vec<u8>| match &upper {
        Bound::Included(bound) => key <= bound,
        Bound::Excluded(bound) => key < bound,
        Bound::Unbounded => true,
    };
    let inside = model.iter().filter(|(key, _)| above(key) && below(key));
    let expected: Vec<_> = inside.map(|(key, entry)| (key.clone(), entry.clone())).collect();
    let (low, high) = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
    let forward = scan(tree, Direction::Forward, low, high, 1 + random.index(50));
    assert!(forward == expected, "forward {lower:?} {upper:?}");
    let mut backward = scan(tree, Direction::Backward, high, low, 1 + random.index(50));
    backward.reverse();
    assert!(backward == expected, "backward {lower:?} {upper:?}");
    let estimate = tree.estimate_range(low, high).expect("estimate");
    if model.len() < 20 {
        assert!(estimate <= 40, "estimate of {estimate} in a tiny tree");
    }
}

/// Pages by number.
pub type Images = BTreeMap<u64, Vec<u8>>;

/// Copies of all pages of the tree.
pub fn images(tree: &Tree, store: &PageStore) -> Images {
    let mut images = Images::new();
    for pid in tree.verify().expect("verify").pages {
        let copy = store.run_with_retry(|_| Ok(store.shared_page(pid)?.to_vec())).expect("page");
        images.insert(pid.get(), copy);
    }
    images
}

/// Applies the log from `from` on to `images` as recovery would: an op older than its page is
/// skipped, else the page must stand exactly where the op found it.
pub fn redo(wal: &Wal, directory: &str, from: Lsn, images: &mut Images) -> usize {
    wal.wait_durable(wal.end()).expect("durable");
    let mut reader =
        Reader::open(&PathBuf::from(directory), UUID, from, wal.durable()).expect("reader");
    let mut applied = 0;
    while let Some(record) = reader.next_record().expect("intact log") {
        let view = RecordView::parse(record.bytes).expect("record");
        for page_op in view.page_ops().filter(|page_op| (0x20..0x50).contains(&page_op.op)) {
            let page = images.entry(page_op.pid.get()).or_default();
            if let Some(class) = btree::format_class(page_op.op, page_op.payload) {
                page.resize(pagestore::header::class_bytes(class), 0);
            }
            let lsn = pagestore::header::page_lsn(page);
            if lsn >= record.end {
                continue;
            }
            if !btree::is_format(page_op.op) {
                assert_eq!(lsn, page_op.prev_lsn, "page {} continues", page_op.pid);
            }
            btree::apply(page, page_op.op, page_op.payload).expect("op applies");
            pagestore::header::set_page_lsn(page, record.end);
            applied += 1;
        }
    }
    applied
}
