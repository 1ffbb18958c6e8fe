//! Walking a tree in either direction, a leaf's worth of entries at a time.
//!
//! 1. Entries are copied out under one shared latch of one leaf; nothing is held between batches.
//! 2. The cursor's place is a key, never a page: the next leaf is found by descending with the
//!    fence of the one before, so splits, merges and evictions in between do no harm.
//! 3. A batch is one state of one leaf. Entries inserted behind the cursor's place later are
//!    seen, entries before it are not.

use crate::descent::{Descent, Stop};
use crate::entry::{Batch, OVERFLOW};
use crate::error::TreeError;
use crate::node::{self, Route};
use crate::overflow::Reference;
use crate::page_read::slice;
use crate::tree::Tree;
use base::PageId;
use pagestore::{OptimisticPage, Retry};
use std::cell::Cell;
use std::ops::Bound;

/// Which way a cursor walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From small keys to great ones.
    Forward,
    /// From great keys to small ones.
    Backward,
}

/// Where a cursor goes on. The key is in `Cursor::key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the tree's first (or, backward, last) entry.
    Edge,
    /// At the key, if it exists, or the next one in the direction.
    At,
    /// Strictly behind the key in the direction.
    Behind,
    /// Nowhere: the walk is over.
    End,
}

/// A walk over a tree.
#[derive(Clone, Debug)]
pub struct Cursor {
    tree: Tree,
    direction: Direction,
    place: Place,
    key: Vec<u8>,
    stop: Bound<Vec<u8>>,
    /// Leaves walked through to their end without a seek: the more there were, the more are asked
    /// for ahead.
    leaves: usize,
    /// Whether every leaf up to the end of the walk was asked for.
    is_asked: Cell<bool>,
    with_values: bool,
}

/// Leaves asked for ahead of a cursor, at most and at first.
const PREFETCH_LEAVES: usize = 24;
const PREFETCH_LEAVES_FIRST: usize = 4;
/// From so many entries on, if they are half of the leaf at least, the page is copied whole.
const WHOLE_ENTRIES: usize = 16;
/// Every so many leaves the cursor asks again, so that the requests overlap.
const PREFETCH_EVERY: usize = 8;

/// What one visit of a leaf left to do.
struct Visit {
    place: Place,
    /// The key of the new place, if it changed.
    key: Option<Vec<u8>>,
    /// Whether the leaf has nothing more to give.
    leaf_done: bool,
}

impl Tree {
    /// A cursor before the first entry in its direction.
    pub fn cursor(&self, direction: Direction) -> Cursor {
        Cursor {
            tree: self.clone(),
            direction,
            place: Place::Edge,
            key: Vec::new(),
            stop: Bound::Unbounded,
            leaves: 0,
            is_asked: Cell::new(false),
            with_values: true,
        }
    }
}

impl Cursor {
    /// Puts the cursor at the bound where its walk begins: a lower bound forward, an upper bound
    /// backward. Reads nothing yet.
    pub fn seek(&mut self, start: Bound<&[u8]>) {
        let (place, key) = match start {
            Bound::Included(key) => (Place::At, key),
            Bound::Excluded(key) => (Place::Behind, key),
            Bound::Unbounded => (Place::Edge, &[][..]),
        };
        self.place = place;
        self.key.clear();
        self.key.extend_from_slice(key);
        self.leaves = 0;
        self.is_asked.set(false);
    }

    /// Sets where the walk ends: an upper bound forward, a lower bound backward.
    pub fn stop_at(&mut self, stop: Bound<&[u8]>) {
        self.stop = match stop {
            Bound::Included(key) => Bound::Included(key.to_vec()),
            Bound::Excluded(key) => Bound::Excluded(key.to_vec()),
            Bound::Unbounded => Bound::Unbounded,
        };
        self.is_asked.set(false);
    }

    /// Overflow values are not read from now on: of such an entry the payload means nothing.
    pub fn leave_values(&mut self) {
        self.with_values = false;
    }

    /// Which way the cursor walks.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Replaces the content of `batch` by the next entries: at least one, at most `max_entries`,
    /// and no more once keys and payloads exceed `max_bytes`. `false` at the end, with an empty
    /// batch. Parks if a page must be read; yields when the fiber's time is up.
    pub fn next_batch(
        &mut self,
        batch: &mut Batch,
        max_entries: usize,
        max_bytes: usize,
    ) -> Result<bool, TreeError> {
        batch.clear();
        let mut outdated: Option<Vec<u8>> = None;
        while self.place != Place::End {
            runtime::yield_if_due();
            let tree = &self.tree;
            let visit = tree.retry(|_| self.visit(batch, max_entries.max(1), max_bytes))?;
            self.place = visit.place;
            self.leaves += usize::from(visit.leaf_done);
            if let Some(key) = visit.key {
                self.key = key;
            }
            self.resolve_values(batch, &mut outdated)?;
            if !batch.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Copies what one leaf has to give.
    fn visit(
        &self,
        batch: &mut Batch,
        max_entries: usize,
        max_bytes: usize,
    ) -> Result<Visit, Stop> {
        batch.clear();
        let found = self.descend(0).inspect_err(|stop| self.prefetch_missing(stop))?;
        let leaf = self.tree.store.shared_page(found.page.pid())?;
        found.page.validate()?;
        let bytes: &[u8] = &leaf;
        let (range, stops) = self.slots(bytes);
        if !stops && let Some((parent, index)) = found.parent {
            self.prefetch(&parent, index, None);
        }
        let total = range.len();
        let wanted = total.min(max_entries);
        let slots = (0..wanted).map(|step| match self.direction {
            Direction::Forward => range.start + step,
            Direction::Backward => range.end - 1 - step,
        });
        if wanted >= WHOLE_ENTRIES && 2 * wanted >= node::count(bytes) {
            batch.push_page(bytes, slots, max_bytes);
        } else {
            push_entries(bytes, slots, batch, max_bytes);
        }
        if batch.len() < total {
            let last = batch.get(batch.len() - 1).key.to_vec();
            return Ok(Visit { place: Place::Behind, key: Some(last), leaf_done: false });
        }
        if stops {
            return Ok(Visit { place: Place::End, key: None, leaf_done: true });
        }
        // The upper fence belongs to the next leaf, the lower fence to this one.
        let (fence, place) = match self.direction {
            Direction::Forward => (node::upper_fence(bytes), Place::At),
            Direction::Backward => (node::lower_fence(bytes), Place::Behind),
        };
        Ok(match fence {
            Some(fence) => Visit { place, key: Some(fence.to_vec()), leaf_done: true },
            None => Visit { place: Place::End, key: None, leaf_done: true },
        })
    }

    /// Descends to the node at `target` level where the walk stands.
    fn descend(&self, target: usize) -> Result<Descent<'_>, Stop> {
        self.tree.descend_by(target, |page| self.child_index(page))
    }

    /// Which child of a node the walk stands in.
    fn child_index(&self, node: &OptimisticPage<'_>) -> usize {
        match (self.place, self.direction) {
            (Place::Edge, Direction::Forward) => node::child_index(node, &[], Route::Containing),
            (Place::Edge, Direction::Backward) => node::count(node),
            (Place::Behind, Direction::Backward) => {
                node::child_index(node, &self.key, Route::Below)
            }
            _ => node::child_index(node, &self.key, Route::Containing),
        }
    }

    /// Slots of this leaf that belong to the walk, and whether the walk ends in this leaf.
    fn slots(&self, leaf: &[u8]) -> (std::ops::Range<usize>, bool) {
        let count = node::count(leaf);
        // Number of keys below the bound, or up to it with `including`.
        let below = |key: &[u8], including: bool| {
            let (index, exact) = node::lower_bound(leaf, key);
            index + usize::from(exact && including)
        };
        let starts_behind = self.place == Place::Behind;
        // Whether the walk goes on behind this leaf.
        let beyond = |key: &[u8], including: bool| match self.direction {
            Direction::Forward => node::upper_fence(leaf)
                .is_some_and(|fence| key > fence || including && key == fence),
            Direction::Backward => node::lower_fence(leaf).is_some_and(|fence| key < fence),
        };
        let stop = match &self.stop {
            Bound::Included(key) => Some((key, true)),
            Bound::Excluded(key) => Some((key, false)),
            Bound::Unbounded => None,
        };
        let stop = stop.filter(|(key, including)| !beyond(key, *including));
        let mut range = 0..count;
        match self.direction {
            Direction::Forward => {
                if self.place != Place::Edge {
                    range.start = below(&self.key, starts_behind);
                }
                if let Some((key, including)) = stop {
                    range.end = if self.in_leaf(leaf, key) { below(key, including) } else { 0 };
                }
            }
            Direction::Backward => {
                if self.place != Place::Edge {
                    range.end = below(&self.key, !starts_behind);
                }
                if let Some((key, including)) = stop {
                    let first =
                        if self.in_leaf(leaf, key) { below(key, !including) } else { count };
                    range.start = first;
                }
            }
        }
        range.end = range.end.max(range.start);
        (range, stop.is_some())
    }

    /// Whether a bound that is not beyond the leaf lies within it (or before it, in the walk's
    /// direction: then nothing of the leaf belongs to the walk).
    fn in_leaf(&self, leaf: &[u8], key: &[u8]) -> bool {
        match self.direction {
            Direction::Forward => node::lower_fence(leaf).is_none_or(|fence| key >= fence),
            Direction::Backward => node::upper_fence(leaf).is_none_or(|fence| key <= fence),
        }
    }

    /// Where the walk's first leaf is not in memory, asks for it together with those that follow:
    /// what lies side by side is read by one request.
    fn prefetch_missing(&self, stop: &Stop) {
        if !matches!(stop, Stop::Retry(Retry::Miss(_))) || self.leaves > 0 {
            return;
        }
        if let Ok(Descent { page, level: 1, .. }) = self.descend(1) {
            let index = self.child_index(&page);
            let own = PageId::checked(node::child(&page, index));
            self.prefetch(&page, index, own);
        }
    }

    /// Asks for leaves that follow under the same parent, and for its `own` if that is missing:
    /// none behind the end of the walk, and few at first, since a walk may be given up anywhere
    /// (LIMIT). From the first leaf on only where the walk's end is known.
    fn prefetch(&self, parent: &OptimisticPage<'_>, index: usize, own: Option<PageId>) {
        let is_asking = match self.leaves {
            0 => self.stop != Bound::Unbounded,
            few if few < PREFETCH_EVERY => few.is_power_of_two(),
            many => many.is_multiple_of(PREFETCH_EVERY),
        };
        if !is_asking || self.is_asked.get() {
            return;
        }
        let most = (2 * self.leaves).clamp(PREFETCH_LEAVES_FIRST, PREFETCH_LEAVES);
        let (last, is_end) = self.last_child(parent);
        let mut pids = [PageId::ZERO; PREFETCH_LEAVES + 1];
        let mut count = 0;
        if let Some(own) = own {
            pids[0] = own;
            count = 1;
        }
        let mut next = index;
        for _ in 0..most {
            next = match self.direction {
                Direction::Forward if next < last => next + 1,
                Direction::Backward if next > last => next - 1,
                _ => break,
            };
            let Some(pid) = PageId::checked(node::child(parent, next)) else { break };
            pids[count] = pid;
            count += 1;
        }
        if parent.validate().is_ok() && (own.is_none() || count > 1) {
            self.is_asked.set(is_end && next == last);
            self.tree.store.prefetch(&pids[..count]);
        }
    }

    /// Which of the node's children the walk may come to last, and whether it ends there. The
    /// node may change meanwhile: then it is any child.
    fn last_child(&self, node: &OptimisticPage<'_>) -> (usize, bool) {
        match (&self.stop, self.direction) {
            (Bound::Included(key) | Bound::Excluded(key), _) if node::in_range(node, key) => {
                (node::child_index(node, key, Route::Containing), true)
            }
            (_, Direction::Forward) => (node::count(node), false),
            (_, Direction::Backward) => (0, false),
        }
    }

    /// Replaces overflow references in the batch by their values. If a value was replaced meanwhile
    /// the batch ends before it and the cursor stands there again.
    fn resolve_values(
        &mut self,
        batch: &mut Batch,
        outdated: &mut Option<Vec<u8>>,
    ) -> Result<(), TreeError> {
        if batch.unresolved.is_empty() || !self.with_values {
            batch.unresolved.clear();
            return Ok(());
        }
        let mut value = Vec::new();
        for index in std::mem::take(&mut batch.unresolved) {
            let stored = batch.get(index).entry.payload.to_vec();
            let reference = self.tree.reference(&stored)?;
            if self.tree.read_value(&reference, &mut value, None)? {
                batch.set_payload(index, &value);
                continue;
            }
            if outdated.as_ref() == Some(&stored) {
                let detail = "overflow pages do not hold the value";
                return Err(self.tree.damaged(reference.root, detail));
            }
            *outdated = Some(stored);
            self.key = batch.get(index).key.to_vec();
            self.place = Place::At;
            batch.truncate(index);
            return Ok(());
        }
        Ok(())
    }
}

/// Copies entries one by one, at least one, until they are `max_bytes`.
fn push_entries(
    page: &[u8],
    slots: impl Iterator<Item = usize>,
    batch: &mut Batch,
    max_bytes: usize,
) {
    let prefix = node::prefix(page);
    // Overflow values are read later but count now.
    let mut value_bytes = 0;
    for index in slots {
        if batch.byte_len().saturating_add(value_bytes) >= max_bytes && !batch.is_empty() {
            return;
        }
        let slot = node::slot(page, index);
        let header = node::leaf_header(page, slot);
        let payload = slice(page, header.payload_offset, header.payload_len);
        batch.push([prefix, node::suffix(page, slot)], header.flags, header.word, payload);
        if header.flags & OVERFLOW != 0 {
            value_bytes = Reference::value_bytes(payload).saturating_add(value_bytes);
        }
    }
}
