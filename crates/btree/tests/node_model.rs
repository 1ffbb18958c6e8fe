//! Nodes on plain bytes against a `BTreeMap`: leaves that split and merge, inner nodes that do the
//! same, and the redo of everything that was done. Runs under Miri with fewer steps.

use base::{Random, TreeId};
use btree::build;
use btree::edit::{self, Fences, Patch};
use btree::layout::{LEAF_HEADER_BYTES, SLOT_BYTES, max_inline_bytes, max_key_bytes};
use btree::node::{self, Route};
use btree::redo::{self, op};
use btree::split::{self, Incoming};
use std::collections::BTreeMap;

const TREE: TreeId = TreeId::new(9);
const STEPS: usize = if cfg!(miri) { 120 } else { 6_000 };

/// Pages that remember every op, so that it can be applied again.
struct Pages {
    page_bytes: usize,
    pages: Vec<Vec<u8>>,
    log: Vec<(usize, u8, Vec<u8>)>,
}

impl Pages {
    fn new(page_bytes: usize) -> Pages {
        Pages { page_bytes, pages: Vec::new(), log: Vec::new() }
    }

    fn add(&mut self, built: &[u8]) -> usize {
        self.pages.push(vec![0; self.page_bytes]);
        let number = self.pages.len() - 1;
        let mut payload = Vec::new();
        redo::encode_build(&mut payload, TREE, built);
        self.apply(number, op::BUILD, payload);
        number
    }

    fn apply(&mut self, number: usize, code: u8, payload: Vec<u8>) {
        redo::apply(&mut self.pages[number], code, &payload).expect("forward op applies");
        node::check(&self.pages[number]).expect("node is sound");
        node::check_order(&self.pages[number]).expect("node is ordered");
        self.log.push((number, code, payload));
    }

    fn replay(&self) {
        let mut copies = vec![vec![0u8; self.page_bytes]; self.pages.len()];
        for (number, code, payload) in &self.log {
            redo::apply(&mut copies[*number], *code, payload).expect("redo applies");
        }
        assert!(copies == self.pages, "redo gives the same bytes");
    }
}

fn random_key(random: &mut Random, style: usize, limit: usize, counter: &mut u64) -> Vec<u8> {
    match style {
        0 => {
            let length = random.index(12);
            (0..length).map(|_| b"ab\0\xff"[random.index(4)]).collect()
        }
        1 => {
            let mut key = vec![b'p'; random.index(limit / 2)];
            key.extend((0..random.index(limit / 2) + 1).map(|_| random.next_u32() as u8));
            key
        }
        2 => {
            *counter += 1 + random.below(3);
            counter.to_be_bytes().to_vec()
        }
        4 => {
            // Ascending, with separators nearly as long as the keys.
            *counter += 1;
            let mut key = vec![b'z'; limit / 2];
            key.extend_from_slice(&counter.to_be_bytes());
            key
        }
        _ => random.below(2_000).to_be_bytes().to_vec(),
    }
}

type Model = BTreeMap<Vec<u8>, (u8, u64, Vec<u8>)>;

/// Leaves under a directory from lower fence to page.
struct Leaves {
    pages: Pages,
    directory: BTreeMap<Vec<u8>, usize>,
    splits: usize,
    merges: usize,
}

impl Leaves {
    fn new(page_bytes: usize) -> Leaves {
        let mut pages = Pages::new(page_bytes);
        let mut empty = vec![0; page_bytes];
        edit::init(&mut empty, 0, Fences::default()).expect("empty leaf");
        let first = pages.add(&empty);
        Leaves { pages, directory: BTreeMap::from([(Vec::new(), first)]), splits: 0, merges: 0 }
    }

    fn find(&self, key: &[u8]) -> usize {
        *self.directory.range(..=key.to_vec()).next_back().expect("first leaf starts at nothing").1
    }

    fn put(&mut self, key: &[u8], header: (u8, u64), payload: &[u8]) {
        for _ in 0..20 {
            let number = self.find(key);
            let page = &self.pages.pages[number];
            let (index, exact) = node::lower_bound(&page[..], key);
            let suffix = &key[node::prefix_len(&page[..])..];
            let mut bytes = Vec::new();
            let bytes_needed = suffix.len() + LEAF_HEADER_BYTES + payload.len();
            let (code, room) = if exact {
                let slot = node::slot(&page[..], index);
                let old = node::leaf_header(&page[..], slot);
                let old_payload = &page[old.payload_offset..][..old.payload_len];
                redo::encode_replace(
                    &mut bytes,
                    index,
                    header,
                    Patch::between(old_payload, payload),
                );
                (op::REPLACE_ENTRY, node::free_bytes(page) + node::entry_bytes(page, slot))
            } else {
                redo::encode_insert(&mut bytes, index, suffix, header, payload);
                (op::INSERT_ENTRY, node::free_bytes(page).saturating_sub(SLOT_BYTES))
            };
            if bytes_needed <= room {
                return self.pages.apply(number, code, bytes);
            }
            let before = page.clone();
            let refused = redo::apply(&mut self.pages.pages[number], code, &bytes);
            assert!(refused.is_err() && self.pages.pages[number] == before, "refused, unchanged");
            let bytes = bytes_needed + SLOT_BYTES;
            self.split(number, Incoming { key, bytes, index, replaces: exact });
        }
        panic!("20 splits and still no room");
    }

    fn split(&mut self, number: usize, incoming: Incoming<'_>) {
        let page = self.pages.pages[number].clone();
        let plan = split::plan_leaf(&page, incoming).expect("two entries at least");
        assert!(plan.separator.len() <= max_key_bytes(page.len()));
        let mut right = vec![0; page.len()];
        let fences = Fences { lower: Some(&plan.separator), upper: node::upper_fence(&page) };
        edit::init(&mut right, 0, fences).expect("fences fit");
        build::append_entries(&mut right, &page, plan.keep..node::count(&page[..])).expect("fits");
        build::finish(&mut right);
        let right = self.pages.add(&right);
        let mut payload = Vec::new();
        redo::encode_truncate(&mut payload, plan.keep, &plan.separator);
        self.pages.apply(number, op::TRUNCATE, payload);
        assert!(self.directory.insert(plan.separator, right).is_none());
        self.splits += 1;
    }

    fn remove(&mut self, key: &[u8]) {
        let number = self.find(key);
        let (index, exact) = node::lower_bound(&self.pages.pages[number][..], key);
        if exact {
            let mut payload = Vec::new();
            redo::encode_remove(&mut payload, index);
            self.pages.apply(number, op::REMOVE_ENTRY, payload);
            self.merge(number);
        }
    }

    /// Merges the leaf with its right or its left neighbour if both fill half a page at most.
    fn merge(&mut self, number: usize) {
        let lower = node::lower_fence(&self.pages.pages[number]).map(<[u8]>::to_vec);
        if !self.merge_right(number)
            && let Some(lower) = lower
        {
            let left = self.directory.range(..lower).next_back().map(|(_, left)| *left);
            self.merge_right(left.expect("a leaf with a lower fence has a left neighbour"));
        }
    }

    fn merge_right(&mut self, number: usize) -> bool {
        let page = &self.pages.pages[number];
        let Some(upper) = node::upper_fence(page).map(<[u8]>::to_vec) else { return false };
        let right = self.find(&upper);
        let right_page = &self.pages.pages[right];
        if build::merged_bytes(page, right_page) > page.len() / 2 {
            return false;
        }
        let mut payload = Vec::new();
        redo::encode_absorb(&mut payload, right_page);
        self.pages.apply(number, op::ABSORB, payload);
        self.directory.remove(&upper);
        self.merges += 1;
        true
    }

    fn compare(&self, model: &Model) {
        let mut found = Model::new();
        let mut expected_lower: Option<Vec<u8>> = None;
        for number in self.directory.values() {
            let page = &self.pages.pages[*number];
            assert_eq!(node::lower_fence(page).map(<[u8]>::to_vec), expected_lower);
            expected_lower = node::upper_fence(page).map(<[u8]>::to_vec);
            for index in 0..node::count(&page[..]) {
                let header = node::leaf_header(&page[..], node::slot(&page[..], index));
                let payload = page[header.payload_offset..][..header.payload_len].to_vec();
                found.insert(node::key(page, index), (header.flags, header.word, payload));
            }
        }
        assert!(expected_lower.is_none());
        assert!(found == *model, "leaves and model agree");
    }
}

fn run_leaves(seed: u64, page_bytes: usize, style: usize) -> (usize, usize) {
    let mut random = Random::new(seed);
    let (mut leaves, mut model) = (Leaves::new(page_bytes), Model::new());
    let mut counter = 0;
    for step in 0..STEPS {
        let limit = max_key_bytes(page_bytes);
        let mut key = random_key(&mut random, style, limit, &mut counter);
        let shrinking = step > STEPS * 2 / 3;
        if shrinking && let Some((next, _)) = model.range(key.clone()..).next() {
            key = next.clone();
        }
        if random.chance(if shrinking { 0.8 } else { 0.2 }) {
            leaves.remove(&key);
            model.remove(&key);
            continue;
        }
        let most = max_inline_bytes(page_bytes) - LEAF_HEADER_BYTES - SLOT_BYTES - key.len();
        let mut payload = vec![0; random.index(most.min(400) + 1)];
        random.fill(&mut payload);
        if let Some((_, _, old)) = model.get(&key)
            && random.one_in(2)
        {
            payload = old.clone();
            if !payload.is_empty() {
                let at = random.index(payload.len());
                payload[at] = payload[at].wrapping_add(1);
            }
        }
        let (flags, word) = (random.next_u32() as u8, random.next_u64());
        leaves.put(&key, (flags, word), &payload);
        model.insert(key, (flags, word, payload));
    }
    leaves.compare(&model);
    for key in model.keys().cloned().collect::<Vec<_>>() {
        leaves.remove(&key);
    }
    leaves.compare(&Model::new());
    leaves.pages.replay();
    (leaves.splits, leaves.merges)
}

#[test]
fn leaves_agree_with_a_map_through_splits_and_merges() {
    for style in 0..5 {
        for page_bytes in [4096, 8192, 32768] {
            let (splits, merges) = run_leaves(style as u64 + 1, page_bytes, style);
            if !cfg!(miri) && page_bytes < 32768 {
                assert!(splits > 0, "style {style}: no split");
                assert!(merges > 0, "style {style}: no merge");
            }
        }
    }
}

#[test]
fn ascending_inserts_fill_pages() {
    let page_bytes = 8192;
    for row_bytes in [100, 500, 740, 1000, 1300, 1600, 1900] {
        let mut leaves = Leaves::new(page_bytes);
        for number in 0..if cfg!(miri) { 300u64 } else { 5_000 } {
            // The first rows come in any order: it is found out later that the others do not.
            let number = if number < 20 { number * 7 % 20 } else { number };
            leaves.put(&number.to_be_bytes(), (0, 0), &vec![7; row_bytes]);
        }
        let full: usize =
            leaves.directory.values().map(|n| node::used_bytes(&leaves.pages.pages[*n])).sum();
        let share = full as f64 / (leaves.directory.len() * page_bytes) as f64;
        // At the end of a page there is no room for another row.
        let least = 0.88 - row_bytes as f64 / page_bytes as f64 * 0.7;
        assert!(share > least || cfg!(miri), "pages of {row_bytes} bytes a row: {share:.2} full");
    }
}

/// One inner node and its model: the separators and children.
fn check_inner(page: &[u8], model: &[(Vec<u8>, u64)], upper_child: u64) {
    assert_eq!(node::count(page), model.len());
    for (index, (key, child)) in model.iter().enumerate() {
        assert_eq!((&node::key(page, index), node::child(page, index)), (key, *child));
        assert_eq!(node::child_index(page, key, Route::Containing), index + 1);
        assert_eq!(node::child_index(page, key, Route::Below), index);
    }
    assert_eq!(node::child(page, model.len()), upper_child);
}

#[test]
fn inner_nodes_agree_with_a_list() {
    for style in 0..4 {
        let mut random = Random::new(100 + style as u64);
        let mut pages = Pages::new(8192);
        let mut empty = vec![0; 8192];
        edit::init(&mut empty, 1, Fences::default()).expect("empty inner node");
        edit::set_child(&mut empty, 0, 1).expect("upper child");
        let number = pages.add(&empty);
        let (mut model, mut upper, mut next, mut counter) = (Vec::new(), 1u64, 2u64, 0);
        let mut merges = 0;
        for _ in 0..STEPS {
            let key = random_key(&mut random, style, 1024, &mut counter);
            let page = &pages.pages[number];
            let (index, exact) = node::lower_bound(&page[..], &key);
            let mut payload = Vec::new();
            let room = node::free_bytes(page) >= key.len() + 6 + SLOT_BYTES;
            if !room && random.one_in(2) {
                merges += 1;
                split_and_merge(&mut pages, number, &model, upper);
            } else if exact || !room || (random.one_in(3) && !model.is_empty()) {
                let index = if exact { index } else { random.index(model.len()) };
                redo::encode_remove(&mut payload, index);
                pages.apply(number, op::REMOVE_CHILD, payload);
                let (_, left) = model.remove(index);
                *model.get_mut(index).map_or(&mut upper, |entry| &mut entry.1) = left;
            } else {
                redo::encode_insert_child(&mut payload, index, &key, next);
                pages.apply(number, op::INSERT_CHILD, payload);
                let old = model.get_mut(index).map_or(&mut upper, |entry| &mut entry.1);
                let left = std::mem::replace(old, next);
                model.insert(index, (key, left));
                next += 1;
            }
            if !cfg!(miri) || next.is_multiple_of(32) {
                check_inner(&pages.pages[number], &model, upper);
            }
        }
        assert!(merges > 0 || cfg!(miri) || style != 1, "style {style}: never full");
        pages.replay();
    }
}

/// Splits the inner node and merges both halves again: the same separators must come out.
fn split_and_merge(pages: &mut Pages, number: usize, model: &[(Vec<u8>, u64)], upper: u64) {
    let page = pages.pages[number].clone();
    let Some(plan) = split::plan_inner(&page) else { return };
    let count = node::count(&page[..]);
    let mut right = vec![0; page.len()];
    let fences = Fences { lower: Some(&plan.separator), upper: node::upper_fence(&page) };
    edit::init(&mut right, 1, fences).expect("fences fit");
    build::append_entries(&mut right, &page, plan.keep + 1..count).expect("fits");
    edit::set_child(&mut right, count - plan.keep - 1, upper).expect("upper child");
    build::finish(&mut right);
    let right = pages.add(&right);
    let mut payload = Vec::new();
    redo::encode_truncate(&mut payload, plan.keep, &plan.separator);
    pages.apply(number, op::TRUNCATE, payload);
    check_inner(&pages.pages[number], &model[..plan.keep], model[plan.keep].1);
    check_inner(&pages.pages[right], &model[plan.keep + 1..], upper);
    let mut payload = Vec::new();
    redo::encode_absorb(&mut payload, &pages.pages[right]);
    pages.apply(number, op::ABSORB, payload);
}

#[test]
fn random_bytes_are_errors_not_panics() {
    let mut random = Random::new(77);
    // GANNET_FUZZ_ROUNDS=20000000 runs for minutes.
    let asked = std::env::var("GANNET_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds = if cfg!(miri) { 40 } else { asked.unwrap_or(20_000) };
    let mut sound = vec![0u8; 4096];
    edit::init(&mut sound, 0, Fences { lower: Some(b"ka"), upper: Some(b"kz") }).expect("leaf");
    for number in 0..40u8 {
        build::append_leaf(&mut sound, &[b'k', b'b', number], (0, 7), &[number; 20]).expect("fits");
    }
    build::finish(&mut sound);
    for round in 0..rounds {
        let mut page = sound.clone();
        for _ in 0..random.index(6) {
            let at = if round % 2 == 0 { 32 + random.index(120) } else { random.index(4096) };
            page[at] = random.next_u32() as u8;
        }
        let (code, payload) = random_op(&mut random, &sound);
        let _ = redo::apply(&mut page, code, &payload);
        let _ = node::lower_bound(&page[..], &payload);
        let _ = node::check(&page).and_then(|()| node::check_order(&page));
        let _ = node::key(&page, random.index(60));
        let _ = redo::apply(&mut page, code, &payload);
    }
}

/// An op that would suit a sound page, or one with some of its bytes changed.
fn random_op(random: &mut Random, sound: &[u8]) -> (u8, Vec<u8>) {
    let code = 0x20 + random.index(11) as u8;
    let (index, mut bytes) = (random.index(48), vec![0; random.index(50)]);
    random.fill(&mut bytes);
    let header = (random.next_u32() as u8, random.next_u64());
    let mut payload = Vec::new();
    match code {
        op::INSERT_ENTRY => redo::encode_insert(&mut payload, index, &bytes, header, b"new"),
        op::REPLACE_ENTRY => {
            let keep_front = random.index(22);
            let new_len = keep_front + bytes.len() + random.index(22);
            let patch = Patch { new_len, keep_front, middle: &bytes };
            redo::encode_replace(&mut payload, index, header, patch);
        }
        op::SET_HEADER => redo::encode_set_header(&mut payload, index, header.0, header.1),
        op::REMOVE_ENTRY | op::REMOVE_CHILD => redo::encode_remove(&mut payload, index),
        op::INSERT_CHILD => redo::encode_insert_child(&mut payload, index, &bytes, 7),
        op::TRUNCATE => redo::encode_truncate(&mut payload, index, &bytes),
        op::ABSORB => redo::encode_absorb(&mut payload, sound),
        op::BUILD => redo::encode_build(&mut payload, TREE, sound),
        _ => payload = bytes,
    }
    if random.one_in(3) && !payload.is_empty() {
        let at = random.index(payload.len());
        payload[at] = random.next_u32() as u8;
    }
    (code, payload)
}
