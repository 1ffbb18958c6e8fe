//! Trees that nobody names any more: their pages are given back beside the statements.
//!
//! 1. A tree is queued only when nothing durable names it: the commit that removed its shape is
//!    durable, or its creation was rolled back, or a start found that it owns pages and has no
//!    shape. So it does not matter where a crash cuts this off: what is left is found as an orphan
//!    by the next start and queued again.
//! 2. A queued tree is not known by its number any more, so nobody begins to use it. Who had it
//!    in hand (purge, estimates) takes what it meets for damage of that tree only.
//! 3. A tree leaves the queue when all its pages are free, or when damage keeps some of them from
//!    being freed: it is set aside then, told of once, counted, and not tried again before the
//!    next start. What fails otherwise (the log is full, a device that may answer the next time)
//!    goes behind the others and is tried again.

use crate::core::Core;
use base::TreeId;
use pagestore::StoreError;
use runtime::WaitClass;
use runtime::sync::{Event, Mutex};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// After a failure the next try waits so long.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Drops {
    trees: Mutex<VecDeque<TreeId>>,
    set_aside: Mutex<BTreeSet<TreeId>>,
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

    /// Trees whose pages cannot be freed (invariant 3).
    pub(crate) fn set_aside(&self) -> usize {
        self.set_aside.lock().len()
    }

    /// Gives back the pages of the first tree by `drop_tree`, or sets it aside and tells of it;
    /// `false` if it is to be tried again.
    fn take_first(
        &self,
        drop_tree: impl Fn(TreeId) -> Result<(), StoreError>,
        tell: &dyn Fn(&str),
    ) -> bool {
        let Some(tree) = self.trees.lock().front().copied() else { return true };
        let dropped = drop_tree(tree);
        self.trees.lock().retain(|&other| other != tree);
        match dropped {
            Ok(()) => true,
            Err(error) if is_damage(&error) => {
                base::probe!("engine.drop_tree_set_aside");
                if self.set_aside.lock().insert(tree) {
                    tell(&format!(
                        "pages of a dropped table (tree {}) cannot be given back: {error}; the \
                         next start tries again",
                        tree.get()
                    ));
                }
                true
            }
            Err(_) => {
                base::probe!("engine.drop_tree_tried_again");
                self.trees.lock().push_back(tree);
                false
            }
        }
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

/// Gives back the pages of the first tree, or sets it aside; `false` if it is to be tried again.
fn drop_first(core: &Core) -> bool {
    let drop_tree = |tree| core.store.space().drop_tree(tree);
    core.drops.take_first(drop_tree, &*core.options.on_damage)
}

/// Whether trying again would meet the same.
fn is_damage(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Corrupt { .. } | StoreError::Damaged { .. } | StoreError::NoSuchPage(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::PageId;

    #[test]
    fn a_damaged_tree_keeps_no_other_waiting_and_is_told_of_once() {
        let drops = Drops::default();
        let trees = [1, 2, 3, 4].map(TreeId::new);
        trees.iter().for_each(|&tree| drops.trees.lock().push_back(tree));
        let (tried, told) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let drop_tree = |tree: TreeId| {
            let is_first = !tried.lock().contains(&tree.get());
            tried.lock().push(tree.get());
            match tree.get() {
                1 => {
                    let detail = "the map".to_owned();
                    Err(StoreError::Corrupt { pid: PageId::new(0), detail })
                }
                2 if is_first => Err(StoreError::DiskFull),
                3 if is_first => Err(StoreError::Io { file: "a".into(), detail: "EIO".into() }),
                _ => Ok(()),
            }
        };
        let tell = |sentence: &str| told.lock().push(sentence.to_owned());
        let mut outcomes = Vec::new();
        while drops.length() > 0 {
            outcomes.push(drops.take_first(drop_tree, &tell));
        }
        let order = [1, 2, 3, 4, 2, 3];
        assert_eq!(*tried.lock(), order, "what fails for now goes behind the others");
        assert_eq!(outcomes, [true, false, false, true, true, true]);
        assert_eq!((drops.set_aside(), told.lock().len()), (1, 1));
        assert!(told.lock()[0].contains("(tree 1)"), "{:?}", told.lock());
    }
}
