//! Structure changes: splitting a node and growing the root.
//!
//! 1. One Structure record holds all ops of a change, the allocation map's included: after a crash
//!    either all of it happened or nothing.
//! 2. Latches are taken from the top down (parent, node, new page, map page), each by one short
//!    attempt: whoever cannot get one lets everything go and starts over, so no deadlock.
//! 3. What may park (frames, room in the log, a page number) is obtained before the first latch.
//! 4. The root keeps its page: it grows by moving its content into a new child.

use crate::build;
use crate::descent::{Descent, Stop};
use crate::edit::{self, EditError, Fences};
use crate::error::TreeError;
use crate::layout::{CHILD_BYTES, SLOT_BYTES};
use crate::node::{self, Route};
use crate::redo::{self, op};
use crate::split::{self, Incoming, SplitPlan};
use crate::tree::{RECORD_BYTES, Tree, perform};
use base::TrxId;
use pagestore::{ExclusivePage, Reservation};
use wal::{Permit, RecordBuilder, RecordKind};

/// What makes a split necessary.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// A leaf must take an entry of so many bytes, slot included, which may replace one.
    Entry { bytes: usize, replaces: bool },
    /// An inner node must take a separator of so many bytes, slot and child included.
    Separator { bytes: usize },
}

/// How an attempt ended.
enum Outcome {
    /// The node has room, by this attempt or somebody else's.
    Done,
    /// The root has grown; the node is now below it.
    Grown,
    /// The parent needs room for a separator of so many bytes first.
    ParentFull { bytes: usize },
}

/// What an attempt may use, obtained without latches.
struct Supplies<'w> {
    reservation: Reservation,
    permit: Permit<'w>,
}

/// Attempts until a split counts as impossible. Each failed one splits the parent or grows the
/// root.
const MAX_ATTEMPTS: usize = 1000;

impl Tree {
    /// Makes room in the leaf of `key`.
    pub(crate) fn split_leaf(
        &self,
        key: &[u8],
        bytes: usize,
        replaces: bool,
    ) -> Result<(), TreeError> {
        self.split(key, 0, Need::Entry { bytes, replaces })
    }

    fn split(&self, key: &[u8], level: usize, need: Need) -> Result<(), TreeError> {
        let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
        for _ in 0..MAX_ATTEMPTS {
            let supplies = self.supplies(1)?;
            let (outcome, used) =
                self.retry(|_| self.try_split(key, level, need, &supplies, &mut record))?;
            let Supplies { reservation, permit } = supplies;
            drop(permit);
            if used {
                reservation.keep();
            }
            match outcome {
                Outcome::Done => return Ok(()),
                Outcome::Grown => {}
                Outcome::ParentFull { bytes } => {
                    self.split(key, level + 1, Need::Separator { bytes })?;
                }
            }
        }
        Err(self.damaged(self.root, "no room for a separator after many splits"))
    }

    /// A reserved page number, a free frame and room for a record with two page images.
    fn supplies(&self, pages: usize) -> Result<Supplies<'_>, TreeError> {
        let reservation = self.store.space().reserve(self.id, self.class, pages)?;
        self.store.reserve_frames(self.class, pages)?;
        let permit = self.admit(2 * self.page_bytes() + RECORD_BYTES)?;
        Ok(Supplies { reservation, permit })
    }

    /// One attempt; the flag tells whether the reserved page was used.
    fn try_split(
        &self,
        key: &[u8],
        level: usize,
        need: Need,
        supplies: &Supplies<'_>,
        record: &mut RecordBuilder,
    ) -> Result<(Outcome, bool), Stop> {
        let Descent { page, parent, level: reached } =
            self.descend(key, Route::Containing, level)?;
        if reached != level {
            // The tree has become lower meanwhile; the level in need is gone.
            page.validate()?;
            return Ok((Outcome::Done, false));
        }
        let Some((parent, index)) = parent else {
            let root = page.upgrade()?;
            if has_room(&root, key, need) {
                return Ok((Outcome::Done, false));
            }
            self.grow_root(root, supplies, record)?;
            return Ok((Outcome::Grown, true));
        };
        let parent = parent.upgrade()?;
        let node = page.upgrade()?;
        if has_room(&node, key, need) {
            return Ok((Outcome::Done, false));
        }
        let Some(plan) = plan(&node, key, need) else {
            return Err(Stop::Damaged(node.pid(), "a node with nothing to split is full"));
        };
        let suffix_len = plan.separator.len() - node::prefix_len(&parent[..]);
        let bytes = suffix_len + CHILD_BYTES + SLOT_BYTES;
        if node::free_bytes(&parent) < bytes {
            return Ok((Outcome::ParentFull { bytes }, false));
        }
        self.split_node((parent, index), node, &plan, supplies, record)?;
        Ok((Outcome::Done, true))
    }

    /// Splits `node` by the plan. Everything is latched and fits; only the new page and the map
    /// page can still be refused, before anything has changed.
    fn split_node(
        &self,
        (mut parent, index): (ExclusivePage<'_>, usize),
        mut node: ExclusivePage<'_>,
        plan: &SplitPlan,
        supplies: &Supplies<'_>,
        record: &mut RecordBuilder,
    ) -> Result<(), Stop> {
        let right_pid = supplies.reservation.pids()[0];
        let mut right = self.store.new_page(right_pid, self.class)?;
        record.reset(RecordKind::Structure, TrxId::ZERO);
        let map = self.store.space().log_change(&[right_pid], &[], record)?;
        let image = right_half(&node, plan)
            .map_err(|_| Stop::Damaged(node.pid(), "entries do not fit half a split"))?;
        perform(record, &mut right, op::BUILD, |out| redo::encode_build(out, self.id, &image));
        perform(record, &mut node, op::TRUNCATE, |out| {
            redo::encode_truncate(out, plan.keep, &plan.separator);
        });
        let suffix = &plan.separator[node::prefix_len(&parent[..])..];
        perform(record, &mut parent, op::INSERT_CHILD, |out| {
            redo::encode_insert_child(out, index, suffix, right_pid.get());
        });
        let range = self.wal.append(&supplies.permit, record);
        parent.mark_dirty(range);
        node.mark_dirty(range);
        right.mark_dirty(range);
        map.mark_dirty(range);
        if node::level(&node[..]) == 0 {
            base::probe!("btree.leaf_split");
        } else {
            base::probe!("btree.inner_split");
        }
        crate::counters::SPLITS.add(1);
        Ok(())
    }

    /// Moves the root's content into a new child, which then is split like any node.
    fn grow_root(
        &self,
        mut root: ExclusivePage<'_>,
        supplies: &Supplies<'_>,
        record: &mut RecordBuilder,
    ) -> Result<(), Stop> {
        let child_pid = supplies.reservation.pids()[0];
        let mut child = self.store.new_page(child_pid, self.class)?;
        record.reset(RecordKind::Structure, TrxId::ZERO);
        let map = self.store.space().log_change(&[child_pid], &[], record)?;
        let damaged = |_: EditError| Stop::Damaged(root.pid(), "the root cannot be copied");
        let image = copy_of(&root).map_err(damaged)?;
        let mut inner = vec![0; self.page_bytes()];
        let level = node::level(&root[..]) + 1;
        edit::init(&mut inner, level, Fences::default())
            .and_then(|()| edit::set_child(&mut inner, 0, child_pid.get()))
            .map_err(damaged)?;
        perform(record, &mut child, op::BUILD, |out| redo::encode_build(out, self.id, &image));
        perform(record, &mut root, op::BUILD, |out| redo::encode_build(out, self.id, &inner));
        let range = self.wal.append(&supplies.permit, record);
        root.mark_dirty(range);
        child.mark_dirty(range);
        map.mark_dirty(range);
        base::probe!("btree.root_grown");
        Ok(())
    }
}

/// Whether the node takes what is needed without a split.
fn has_room(page: &[u8], key: &[u8], need: Need) -> bool {
    let free = node::free_bytes(page);
    match need {
        Need::Separator { bytes } => free >= bytes,
        Need::Entry { bytes, replaces } => {
            let (index, exact) = node::lower_bound(page, key);
            let old = if exact && replaces {
                node::entry_bytes(page, node::slot(page, index)) + SLOT_BYTES
            } else {
                0
            };
            free + old >= bytes
        }
    }
}

fn plan(page: &[u8], key: &[u8], need: Need) -> Option<SplitPlan> {
    match need {
        Need::Separator { .. } => split::plan_inner(page),
        Need::Entry { bytes, .. } => {
            let (index, replaces) = node::lower_bound(page, key);
            split::plan_leaf(page, Incoming { key, bytes, index, replaces })
        }
    }
}

/// The node that takes what the split moves to the right.
fn right_half(page: &[u8], plan: &SplitPlan) -> Result<Vec<u8>, EditError> {
    let mut image = vec![0; page.len()];
    let (level, count) = (node::level(page), node::count(page));
    let fences = Fences { lower: Some(&plan.separator), upper: node::upper_fence(page) };
    edit::init(&mut image, level, fences)?;
    // In an inner node the separator at `keep` moves up instead of right.
    let first = plan.keep + usize::from(level > 0);
    build::append_entries(&mut image, page, first..count)?;
    if level > 0 {
        edit::set_child(&mut image, count - first, node::child(page, count))?;
    }
    build::finish(&mut image);
    Ok(image)
}

/// A compact copy of a node, in a buffer of its own.
pub(crate) fn copy_of(page: &[u8]) -> Result<Vec<u8>, EditError> {
    let mut copy = page.to_vec();
    edit::compact(&mut copy)?;
    Ok(copy)
}
