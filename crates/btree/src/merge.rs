//! Merging nodes that have become nearly empty, and shrinking the root.
//!
//! 1. Merging is an effort, not a duty: what is contended is left for the next removal.
//! 2. The left node of two survives; the right one's page is freed in the same record.
//! 3. Merged nodes are at most [`FULL_SHARE`] full and merging begins only below
//!    [`UNDERFULL_SHARE`], so that a node does not split and merge in turn.
//! 4. Both fences of the pair are kept: the survivor's range is the union of both.

use crate::build;
use crate::descent::{Descent, Stop};
use crate::error::TreeError;
use crate::layout::{SLOT_BYTES, SLOTS};
use crate::node::{self, Route};
use crate::page_read::PageRead;
use crate::redo::{self, op};
use crate::structure::copy_of;
use crate::tree::{RECORD_BYTES, Tree, perform};
use base::{PageId, TrxId};
use pagestore::{ExclusivePage, OptimisticPage, Retry};
use wal::{Permit, RecordBuilder, RecordKind};

/// A node below this percentage is worth merging.
const UNDERFULL_SHARE: usize = 40;
/// A merged node is at most so full, in percent: two halves of a full node of wide entries fit.
const FULL_SHARE: usize = 98;
/// Only every so many removals in an underfull leaf look at its neighbours, which may have to be
/// read for it.
const REMOVALS_A_LOOK: usize = 8;
/// Tries under contention before a merge is left for later.
const MAX_TRIES: u32 = 16;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing to merge.
    Nothing,
    /// Two nodes have become one; whether the parent is worth a look now.
    Merged { parent_underfull: bool },
    /// The root has taken over its only child.
    Shrunk,
}

impl Tree {
    /// Whether a leaf that has just shrunk should look for a neighbour to merge with.
    pub(crate) fn is_underfull(&self, leaf: &ExclusivePage<'_>) -> bool {
        let share = UNDERFULL_SHARE + if base::buggify!() { 30 } else { 0 };
        leaf.pid() != self.root
            && node::used_bytes(leaf) * 100 < leaf.len() * share
            && node::count(&leaf[..]).is_multiple_of(REMOVALS_A_LOOK)
    }

    /// Merges the leaf of `key` with a neighbour if both fit one page, then looks at the levels
    /// above. Parks; holds no latch while parked.
    pub(crate) fn merge_after_shrink(&self, key: &[u8]) -> Result<(), TreeError> {
        self.merge_levels(key, 0)
    }

    /// The same for the node at `level` on the way to `key`, and those above.
    pub(crate) fn merge_levels(&self, key: &[u8], mut level: usize) -> Result<(), TreeError> {
        let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
        loop {
            let permit = self.admit_later(self.page_bytes() + RECORD_BYTES)?;
            let outcome =
                self.retry(|tries| match self.try_merge(key, level, &permit, &mut record) {
                    Err(Stop::Retry(Retry::Restart)) if tries > MAX_TRIES => Ok(Outcome::Nothing),
                    other => other,
                })?;
            match outcome {
                Outcome::Merged { parent_underfull: true } => level += 1,
                Outcome::Shrunk => {}
                Outcome::Merged { parent_underfull: false } | Outcome::Nothing => return Ok(()),
            }
        }
    }

    fn try_merge(
        &self,
        key: &[u8],
        level: usize,
        permit: &Permit<'_>,
        record: &mut RecordBuilder,
    ) -> Result<Outcome, Stop> {
        let Descent { page, parent, level: reached } =
            self.descend(key, Route::Containing, level)?;
        let Some((parent, index)) = parent else {
            let only_child = level > 0 && node::count(&page) == 0;
            page.validate()?;
            return if only_child {
                self.shrink_root(page, permit, record)
            } else {
                Ok(Outcome::Nothing)
            };
        };
        if reached != level {
            page.validate()?;
            return Ok(Outcome::Nothing);
        }
        let last = node::count(&parent);
        let pairs = [(index < last).then_some(index), index.checked_sub(1)];
        for left_index in pairs.into_iter().flatten() {
            let [left, right] = [left_index, left_index + 1].map(|at| node::child(&parent, at));
            parent.validate()?;
            let (Some(left), Some(right)) = (PageId::checked(left), PageId::checked(right)) else {
                return Err(Stop::Damaged(parent.pid(), "child number above 48 bits"));
            };
            let (left, right) = (self.store.optimistic(left)?, self.store.optimistic(right)?);
            parent.validate()?;
            let likely = is_likely(&left, &right);
            left.validate()?;
            right.validate()?;
            if likely
                && let Some(outcome) =
                    self.merge_pair((parent, left_index), [left, right], permit, record)?
            {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Nothing)
    }

    /// Merges two neighbours if they fit; `None` if they do not.
    pub(crate) fn merge_pair(
        &self,
        (parent, left_index): (OptimisticPage<'_>, usize),
        [left, right]: [OptimisticPage<'_>; 2],
        permit: &Permit<'_>,
        record: &mut RecordBuilder,
    ) -> Result<Option<Outcome>, Stop> {
        let mut parent = parent.upgrade()?;
        let mut left = left.upgrade()?;
        let right = right.upgrade()?;
        if build::merged_bytes(&left, &right) > limit(left.len()) {
            return Ok(None);
        }
        record.reset(RecordKind::Structure, TrxId::ZERO);
        let map = self.store.space().log_change(&[], &[right.pid()], record)?;
        let image = copy_of(&right)
            .map_err(|_| Stop::Damaged(right.pid(), "a node cannot be compacted"))?;
        perform(record, &mut left, op::ABSORB, |out| redo::encode_absorb(out, &image));
        perform(record, &mut parent, op::REMOVE_CHILD, |out| {
            redo::encode_remove(out, left_index);
        });
        let range = self.wal.append(permit, record);
        left.mark_dirty(range);
        parent.mark_dirty(range);
        map.mark_dirty(range);
        right.discard(range);
        if node::level(&left[..]) == 0 {
            base::probe!("btree.leaf_merge");
        } else {
            base::probe!("btree.inner_merge");
        }
        crate::counters::MERGES.add(1);
        let parent_underfull = if parent.pid() == self.root {
            node::count(&parent[..]) == 0
        } else {
            node::used_bytes(&parent) * 100 < parent.len() * UNDERFULL_SHARE
        };
        Ok(Some(Outcome::Merged { parent_underfull }))
    }

    /// The root has one child only: it takes over the child's content and the child is freed.
    fn shrink_root(
        &self,
        root: OptimisticPage<'_>,
        permit: &Permit<'_>,
        record: &mut RecordBuilder,
    ) -> Result<Outcome, Stop> {
        let child = node::child(&root, 0);
        root.validate()?;
        let Some(child) = PageId::checked(child) else {
            return Err(Stop::Damaged(root.pid(), "child number above 48 bits"));
        };
        let child = self.store.optimistic(child)?;
        let mut root = root.upgrade()?;
        let child = child.upgrade()?;
        record.reset(RecordKind::Structure, TrxId::ZERO);
        let map = self.store.space().log_change(&[], &[child.pid()], record)?;
        let image = copy_of(&child)
            .map_err(|_| Stop::Damaged(child.pid(), "a node cannot be compacted"))?;
        perform(record, &mut root, op::BUILD, |out| redo::encode_build(out, self.id, &image));
        let range = self.wal.append(permit, record);
        root.mark_dirty(range);
        map.mark_dirty(range);
        child.discard(range);
        base::probe!("btree.root_shrunk");
        Ok(Outcome::Shrunk)
    }
}

/// Bytes a merged node may use.
fn limit(page_bytes: usize) -> usize {
    page_bytes * FULL_SHARE / 100
}

/// Whether two neighbours probably fit one page; what was read must be validated.
pub(crate) fn is_likely(left: &OptimisticPage<'_>, right: &OptimisticPage<'_>) -> bool {
    used(left) + used(right) <= SLOTS + limit(left.page_bytes())
}

/// Bytes in use of a page read optimistically.
pub(crate) fn used(page: &OptimisticPage<'_>) -> usize {
    use crate::layout::USED;
    SLOTS + SLOT_BYTES * node::count(page) + usize::from(PageRead::u16_at(page, USED))
}
