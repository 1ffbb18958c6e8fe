//! The way down: optimistic, without latches.
//!
//! 1. A child's number counts only after its parent's version was validated; the child's version
//!    is taken before the parent is validated once more. So the child was the right one at the
//!    moment its version was taken, and what is read from it counts once *it* validates.
//! 2. A page that changed means `Restart`, one that is not in memory `Miss`: both start over from
//!    the root, and nothing is held meanwhile.
//! 3. A validated child of another tree or level is damage, not a race.
//! 4. A leaf of the tree in whose fences a key lies is the leaf of that key, whichever way it was
//!    found: splits and merges change fences under the latch, and a page that left the tree is
//!    not in memory any more. So a remembered leaf ([`LeafHint`], `expected`) needs no descent,
//!    only the look at its fences.

use crate::expected;
use crate::layout::MAX_LEVELS;
use crate::node::{self, Route};
use crate::redo::page_type;
use crate::tree::Tree;
use base::{PageId, TreeId};
use pagestore::{OptimisticPage, Retry, header};

/// Bytes from the start of a leaf that a lookup is likely to read: the header with its hints, and
/// the slots of some eighty entries.
const PREFETCHED_BYTES: usize = 768;

/// Bytes at the end of a leaf where its fences lie, unless they were moved or are long.
const FENCES_BYTES: usize = 64;

/// Why a step on the tree ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Start over, perhaps after loading a page.
    Retry(Retry),
    /// The page is not what it must be.
    Damaged(PageId, &'static str),
}

/// The leaf that an operation found, for the next one on the same key or on one near it. It is
/// only tried: what it names may have been split, merged or evicted since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeafHint {
    pub(crate) leaf: Option<(TreeId, PageId)>,
    /// The leaf had no upper fence when it was changed: it was the last one.
    pub(crate) is_last: bool,
}

impl LeafHint {
    /// The page number, 0 for none: to keep a hint in an atomic number.
    pub fn page_number(self) -> u64 {
        self.leaf.map_or(0, |(_, pid)| pid.get())
    }

    /// Whether the change that left the hint found the last leaf of its tree.
    pub fn is_last(self) -> bool {
        self.is_last
    }

    /// The hint with this page number of `tree`.
    pub fn of_page(tree: &Tree, number: u64) -> LeafHint {
        let pid = PageId::checked(number).filter(|_| number != 0);
        LeafHint { leaf: pid.map(|pid| (tree.id, pid)), is_last: false }
    }
}

/// The node reached and the way it was reached.
#[derive(Clone, Copy)]
pub(crate) struct Descent<'a> {
    /// The node at the level asked for, or the root if the tree is not that high.
    pub page: OptimisticPage<'a>,
    /// Its parent and its position there; `None` for the root.
    pub parent: Option<(OptimisticPage<'a>, usize)>,
    /// Level of `page`.
    pub level: usize,
}

impl Tree {
    /// Descends to the node at `target` level on the way to `key`.
    #[inline]
    pub(crate) fn descend(
        &self,
        key: &[u8],
        route: Route,
        target: usize,
    ) -> Result<Descent<'_>, Stop> {
        self.descend_by(target, |page| node::child_index(page, key, route))
    }

    /// Descends to the leaf of `key`; the hot path of lookups and changes.
    #[inline]
    pub(crate) fn leaf_of(&self, key: &[u8]) -> Result<OptimisticPage<'_>, Stop> {
        let (page, level) = self.above_leaf(key)?;
        if level == 0 {
            return Ok(page);
        }
        let leaf = self.next_on_way(&page, key)?;
        self.check_page_owner(&leaf, 0)?;
        Ok(leaf)
    }

    /// Descends to the node above the leaf of `key`, or to the root if that is the leaf; its level.
    #[inline(always)]
    fn above_leaf(&self, key: &[u8]) -> Result<(OptimisticPage<'_>, usize), Stop> {
        let mut page = self.store.optimistic(self.root)?;
        let mut level = node::level(&page);
        self.check_page_owner(&page, level)?;
        while level > 1 {
            page = self.next_on_way(&page, key)?;
            level -= 1;
            self.check_page_owner(&page, level)?;
        }
        Ok((page, level))
    }

    /// Asks for the memory that a lookup of `key` will read first of its leaf, if that is in
    /// memory. Costs a descent, which the lookup then saves; for those who have something else to
    /// do meanwhile. Never parks, and promises nothing.
    pub fn prefetch_leaf(&self, key: &[u8]) {
        if let Ok((parent, 1)) = self.above_leaf(key)
            && let Ok(leaf) = self.next_on_way(&parent, key)
        {
            leaf.prefetch(0, PREFETCHED_BYTES);
            leaf.prefetch(leaf.page_bytes() - FENCES_BYTES, FENCES_BYTES);
            expected::note(self.id, key, leaf.pid());
        }
    }

    /// Begins to read the leaf of `key` if it is not in memory. Costs a descent; for those who will
    /// need several leaves, one after the other. Never parks, and promises nothing.
    pub fn read_leaf_ahead(&self, key: &[u8]) {
        if let Ok((parent, 1)) = self.above_leaf(key)
            && let Err(Stop::Retry(Retry::Miss(leaf))) = self.next_on_way(&parent, key)
        {
            self.store.prefetch(&[leaf]);
        }
    }

    #[inline(always)]
    fn next_on_way(
        &self,
        page: &OptimisticPage<'_>,
        key: &[u8],
    ) -> Result<OptimisticPage<'_>, Stop> {
        self.child_of(page, node::child_index(page, key, Route::Containing))
    }

    /// As [`Tree::leaf_of`], trying the hint first and leaving the leaf found in it. What was read
    /// here counts only when the caller has validated the page, as after a descent.
    #[inline]
    pub(crate) fn leaf_near(
        &self,
        key: &[u8],
        hint: &mut LeafHint,
    ) -> Result<OptimisticPage<'_>, Stop> {
        let hinted = hint.leaf.take().filter(|(tree, _)| *tree == self.id).map(|(_, pid)| pid);
        if let Some(pid) = expected::take(self.id, key).or(hinted)
            && let Ok(page) = self.store.optimistic(pid)
            && node::level(&page) == 0
            && self.check_page_owner(&page, 0).is_ok()
            && (node::in_range(&page, key) || base::mutant!("trust_leaf_hint"))
        {
            hint.leaf = Some((self.id, pid));
            return Ok(page);
        }
        let page = self.leaf_of(key)?;
        hint.leaf = Some((self.id, page.pid()));
        Ok(page)
    }

    /// The child at `index` by invariant 1.
    #[inline(always)]
    fn child_of(
        &self,
        page: &OptimisticPage<'_>,
        index: usize,
    ) -> Result<OptimisticPage<'_>, Stop> {
        let child = node::child(page, index);
        if base::buggify!() {
            // Nothing is held here, so other fibers may come in between.
            runtime::yield_now();
        }
        page.validate()?;
        let Some(child) = PageId::checked(child) else {
            return Err(Stop::Damaged(page.pid(), "child number above 48 bits"));
        };
        let child = self.store.optimistic(child)?;
        page.validate()?;
        Ok(child)
    }

    /// Descends to `target` level, choosing the child at each node.
    #[inline]
    pub(crate) fn descend_by(
        &self,
        target: usize,
        mut choose: impl FnMut(&OptimisticPage<'_>) -> usize,
    ) -> Result<Descent<'_>, Stop> {
        let mut page = self.store.optimistic(self.root)?;
        let mut parent = None;
        let mut level = node::level(&page);
        self.check_page_owner(&page, level)?;
        for _ in 0..MAX_LEVELS {
            if level <= target {
                return Ok(Descent { page, parent, level });
            }
            let index = choose(&page);
            let next = self.child_of(&page, index)?;
            level -= 1;
            self.check_page_owner(&next, level)?;
            parent = Some((page, index));
            page = next;
        }
        page.validate()?;
        Err(Stop::Damaged(page.pid(), "more levels than a tree can have"))
    }

    /// Invariant 3. One load covers tree, type, format and class, since they share a word.
    #[inline]
    fn check_page_owner(&self, page: &OptimisticPage<'_>, level: usize) -> Result<(), Stop> {
        let word = page.u64_at(header::TREE_OFFSET);
        let kind = if level == 0 { page_type::LEAF } else { page_type::INNER };
        let matches = word as u32 == self.id.get()
            && (word >> 32) as u8 == kind
            && node::level(page) == level;
        if matches {
            return Ok(());
        }
        page.validate()?;
        Err(Stop::Damaged(page.pid(), "page of another tree or level"))
    }
}
