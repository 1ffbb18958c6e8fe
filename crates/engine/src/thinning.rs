//! Trees that purge has thinned out: their sparse leaves are merged soon after.
//!
//! 1. Purge counts what it removes from each tree. A tree is looked at when that is as much as an
//!    entry for each of its pages, and again only when as much has been removed once more: what a
//!    walk over the tree reads is paid for by the removals.
//! 2. A look is a sample of a few leaves. Only a tree whose leaves are sparse on the average is
//!    walked over; one where as much comes in as goes out is left alone.
//! 3. Commits are slowed down by the log that the walk writes as by any other, and the walk is
//!    slowed down as they are.

use crate::core::Core;
use base::TreeId;
use btree::{Tree, TreeError};
use engine_api::EngineError;
use runtime::WaitClass;
use runtime::sync::{Event, Mutex};
use std::collections::BTreeMap;
use std::time::Duration;

/// Between two looks at the counts.
const PERIOD: Duration = Duration::from_millis(500);
/// Leaves that fill less of their pages than this, on the average, are worth a walk.
const SPARSE_FILL: f64 = 0.5;
/// The same on a disk that is short of space: what rows have left is worth more there, and pages
/// that are stored as they are take as much as full ones.
const SHORT_FILL: f64 = 0.75;
/// Leaves between two pauses of a walk.
const LEAVES_A_STEP: usize = 64;

static WALKS: base::metrics::Counter =
    base::metrics::Counter::new("merge_walks", "walks over trees that deletes had left sparse");

/// Entries removed from each tree since it was looked at last.
#[derive(Debug, Default)]
pub(crate) struct Thinning {
    removed: Mutex<BTreeMap<TreeId, u64>>,
    wanted: Event,
}

impl Thinning {
    /// Purge has removed so many entries.
    pub(crate) fn note(&self, removed: &BTreeMap<TreeId, u64>) {
        if removed.is_empty() {
            return;
        }
        let mut counts = self.removed.lock();
        for (&tree, count) in removed {
            *counts.entry(tree).or_default() += count;
        }
        drop(counts);
        self.wanted.set();
    }

    /// The walk over the tree was cut short by a full disk: another is due.
    fn note_again(&self, tree: &Tree) {
        *self.removed.lock().entry(tree.id()).or_default() += tree.store_pages();
        self.wanted.set();
    }

    /// Lets the fiber look.
    pub(crate) fn wake(&self) {
        self.wanted.set();
    }

    /// Trees with so many removals that they are due, whose count begins anew.
    fn take_due(&self, core: &Core) -> Vec<Tree> {
        let counts: Vec<_> = self.removed.lock().iter().map(|(&tree, &n)| (tree, n)).collect();
        let mut due = Vec::new();
        for (id, count) in counts {
            let tree = core.tree(id).ok();
            if tree.as_ref().is_some_and(|tree| count < tree.store_pages()) {
                continue;
            }
            self.removed.lock().remove(&id);
            due.extend(tree);
        }
        due
    }
}

/// Works until the engine stops.
pub(crate) fn run(core: &Core) {
    while !core.is_stopping() {
        core.thinning.wanted.take(WaitClass::Idle, None);
        // While there is much to remove yet, a walk would come too early.
        while !core.is_stopping() && core.txn.purge_length() > 0 {
            runtime::sleep(PERIOD / 10);
        }
        for tree in core.thinning.take_due(core) {
            // Damage, a tree dropped meanwhile: the next removals lead here again.
            if let Err(error) = walk(core, &tree) {
                base::probe!("engine.merge_walk_failed");
                let error = crate::error::from_tree(error, || core.tree_name(tree.id()));
                if error == EngineError::DiskFull {
                    core.thinning.note_again(&tree);
                }
            }
        }
        pause(core, PERIOD);
    }
}

fn pause(core: &Core, length: Duration) {
    let end = runtime::now() + length;
    while !core.is_stopping() && runtime::now() < end {
        runtime::sleep(PERIOD / 10);
    }
}

fn walk(core: &Core, tree: &Tree) -> Result<(), TreeError> {
    let sparse = if core.store.is_short_of_space() { SHORT_FILL } else { SPARSE_FILL };
    if tree.sample_fill()? > sparse {
        return Ok(());
    }
    close_up(core, tree)
}

/// Walks over a tree and merges what is sparse.
pub(crate) fn close_up(core: &Core, tree: &Tree) -> Result<(), TreeError> {
    WALKS.add(1);
    base::probe!("engine.merge_walk");
    let mut key = Vec::new();
    let most = (LEAVES_A_STEP * tree.page_bytes()) as u64;
    loop {
        let begin = core.wal.end().get();
        if core.is_stopping() || !tree.merge_sparse(&mut key, LEAVES_A_STEP)? {
            break;
        }
        // Others log meanwhile, too; their part is bounded.
        let logged = (core.wal.end().get() - begin).min(most);
        let delay = core.store.throttle_delay(logged);
        if !delay.is_zero() {
            runtime::sleep(delay);
        }
    }
    Ok(())
}
