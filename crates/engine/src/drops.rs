//! Trees that nobody names any more: their pages are given back beside the statements.
//!
//! 1. A tree is queued only when nothing durable names it: the commit that removed its shape is
//!    durable, or its creation was rolled back, or a start found that it owns pages and has no
//!    shape. So it does not matter where a crash cuts this off: what is left is found as an orphan
//!    by the next start and queued again.
//! 2. A queued tree is not known by its number any more, so nobody begins to use it. Who had it
//!    in hand (purge, estimates) takes what it meets for damage of that tree only.
//! 3. A tree leaves the queue when all its pages are free. What fails (the log is full) is tried
//!    again.

use crate::core::Core;
use base::TreeId;
use runtime::WaitClass;
use runtime::sync::{Event, Mutex};
use std::collections::VecDeque;
use std::time::Duration;

/// After a failure the next try waits so long.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Drops {
    trees: Mutex<VecDeque<TreeId>>,
    wanted: Event,
}

impl Drops {
    pub(crate) fn push(&self, tree: TreeId) {
        self.trees.lock().push_back(tree);
        self.wanted.set();
    }

    /// Trees whose pages are not all free yet.
    pub(crate) fn length(&self) -> usize {
        self.trees.lock().len()
    }

    /// Lets the fiber look.
    pub(crate) fn wake(&self) {
        self.wanted.set();
    }
}

/// Works until the engine stops.
pub(crate) fn run(core: &Core) {
    while !core.is_stopping() {
        core.drops.wanted.take(WaitClass::Idle, None);
        while !core.is_stopping() && core.drops.length() > 0 {
            if !drop_first(core) {
                runtime::sleep(RETRY_PAUSE);
            }
        }
    }
}

/// Gives back what is queued before a shutdown, for `limit` at most: the rest is left to the next
/// start.
pub(crate) fn finish(core: &Core, limit: Duration) {
    let deadline = runtime::now() + limit;
    while core.drops.length() > 0 && runtime::now() < deadline && drop_first(core) {}
}

/// Gives back the pages of the first tree; `false` if that failed.
fn drop_first(core: &Core) -> bool {
    let Some(tree) = core.drops.trees.lock().front().copied() else { return true };
    if core.store.space().drop_tree(tree).is_err() {
        base::probe!("engine.drop_tree_tried_again");
        return false;
    }
    let mut trees = core.drops.trees.lock();
    trees.retain(|&other| other != tree);
    true
}
