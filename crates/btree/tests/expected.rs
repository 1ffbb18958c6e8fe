//! What `Tree::prefetch_leaf` has found is only tried: whatever became of the leaf meanwhile, the
//! lookup or change that takes it meets the right entry. Where the look at the leaf's fences
//! decides, the same is done without it (`trust_leaf_hint`) and must go wrong: so it is the leaf
//! found ahead that is looked at. Alone in its process: the switch is global.

mod common;

use base::{PageId, TreeId, TrxId};
use btree::{EntryBuffer, LeafHint, Tree};
use common::*;
use pagestore::PageStore;
use runtime::sim::{SimConfig, Simulation};
use wal::{RecordBuilder, RecordKind};

const CLASS: u8 = 12;
/// Numbers in the tree at first, some twenty to a leaf.
const ENTRIES: u32 = 2_000;
/// The last one's leaf has no right neighbour: when it is merged, its page is freed.
const LAST: u32 = ENTRIES - 1;

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn entry(number: u32) -> ModelEntry {
    (0, number.into(), vec![number as u8; 180])
}

struct Desk {
    tree: Tree,
    record: RecordBuilder,
    model: Model,
}

impl Desk {
    fn new() -> Self {
        let wal = log("wal");
        let store = PageStore::volatile(64 << 20, 1 << 20).expect("store");
        let tree = Tree::create(store, wal, TreeId::new(7), CLASS).expect("tree");
        let record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
        let mut desk = Self { tree, record, model: Model::new() };
        (0..ENTRIES).for_each(|number| desk.put(key(number), entry(number)));
        desk
    }

    fn put(&mut self, key: Vec<u8>, entry: ModelEntry) {
        put(&self.tree, &mut self.record, &key, &entry);
        self.model.insert(key, entry);
    }

    fn remove(&mut self, number: u32) {
        assert!(remove(&self.tree, &mut self.record, &key(number)));
        self.model.remove(&key(number));
    }

    /// The leaf of a number; takes what is expected of it.
    fn leaf_of(&self, number: u32) -> PageId {
        let mut hint = LeafHint::default();
        self.tree.get_near(&key(number), &mut EntryBuffer::new(), &mut hint).expect("get");
        PageId::new(hint.page_number())
    }

    /// The leaf of [`LAST`] goes into its left neighbour.
    fn merge_last(&mut self) {
        (LAST - 60..LAST).for_each(|number| self.remove(number));
    }

    fn has_page(&self, pid: PageId) -> bool {
        self.tree.verify().expect("verify").pages.contains(&pid)
    }
}

/// What becomes of the leaf between the look ahead and the lookup.
struct Case {
    name: &'static str,
    /// Whose entry is looked up.
    number: u32,
    /// Gets the leaf found ahead; fails where it did not become of that leaf what is wanted.
    disturb: fn(&mut Desk, PageId),
    /// Nothing but the leaf's fences tells that it is not the one any more.
    is_told_by_fences: bool,
}

static CASES: [Case; 5] = [
    Case {
        name: "split, and the entry is in the new half",
        number: 1_000,
        disturb: |desk, leaf| {
            let between = |at: u8| [key(999), vec![at]].concat();
            (0..100).for_each(|at| desk.put(between(at), entry(at.into())));
            assert!(desk.has_page(leaf));
        },
        is_told_by_fences: true,
    },
    Case {
        name: "merged and freed",
        number: LAST,
        disturb: |desk, leaf| {
            desk.merge_last();
            assert!(!desk.has_page(leaf));
        },
        is_told_by_fences: false,
    },
    Case {
        name: "freed and used again for another leaf of the tree",
        number: LAST,
        disturb: |desk, leaf| {
            desk.merge_last();
            let between = |at: u8| [key(10), vec![at]].concat();
            (0..200).for_each(|at| desk.put(between(at), entry(at.into())));
            assert!(desk.has_page(leaf));
        },
        is_told_by_fences: true,
    },
    Case {
        name: "freed and used again for a value of the tree",
        number: LAST,
        disturb: |desk, leaf| {
            desk.merge_last();
            (10..40).for_each(|number| desk.put(key(number), (0, 10, vec![10; 3_500])));
            assert!(desk.has_page(leaf));
        },
        is_told_by_fences: false,
    },
    Case {
        name: "emptied of the entry",
        number: 1_000,
        disturb: |desk, _| {
            // The removal takes one of the two.
            desk.tree.prefetch_leaf(&key(1_000));
            desk.remove(1_000);
        },
        is_told_by_fences: false,
    },
];

/// The tree of a case when what was expected has been disturbed.
fn disturbed(case: &Case) -> Desk {
    let mut desk = Desk::new();
    let leaf = desk.leaf_of(case.number);
    desk.tree.prefetch_leaf(&key(case.number));
    (case.disturb)(&mut desk, leaf);
    desk
}

/// Whether the lookup finds what the model has; an error counts as nothing found.
fn finds(case: &Case, desk: &Desk) -> bool {
    let mut out = EntryBuffer::new();
    let found = desk.tree.get(&key(case.number), &mut out).is_ok_and(|found| found);
    let found = found.then_some((out.flags, out.word, out.payload));
    found.as_ref() == desk.model.get(&key(case.number))
}

fn simulate(case: &'static Case, run: impl FnOnce(Desk) + 'static) {
    let mut simulation = Simulation::new(SimConfig { buggify: false, ..SimConfig::new(5) });
    let done = simulation.run(|| run(disturbed(case)));
    done.unwrap_or_else(|end| panic!("{}: {end}", case.name));
}

fn check(desk: &Desk) {
    check_all(&desk.tree, &desk.model, &mut base::Random::new(5));
}

#[test]
fn a_leaf_found_ahead_never_gives_a_wrong_entry() {
    for case in &CASES {
        simulate(case, |desk| {
            assert!(finds(case, &desk), "looked up");
            check(&desk);
        });
        simulate(case, |mut desk| {
            desk.put(key(case.number), (0, 77, vec![77; 100]));
            assert!(finds(case, &desk), "changed");
            check(&desk);
        });
        if case.is_told_by_fences {
            simulate(case, |desk| {
                base::mutant::switch(Some("trust_leaf_hint"));
                let finds = finds(case, &desk);
                base::mutant::switch(None);
                assert!(!finds, "the leaf found ahead was not looked at");
            });
        }
    }
}
