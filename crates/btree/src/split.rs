//! Where to split a node.
//!
//! Random inserts split in the middle of the bytes, shifted a little towards the shortest
//! separator, since separators live on in inner nodes. Ascending inserts leave the left half
//! nearly full, so that a table filled in key order is not half empty.

use crate::layout::*;
use crate::node;
use crate::page_read::PageRead;

/// From this many inserts in a row on, each just behind the one before, a node is ascending ...
const ASCENDING_INSERTS: usize = 8;
/// ... and from this share of its entries on: half a node of wide entries does not take eight more.
const ASCENDING_SHARE: usize = 4;
/// An ascending split keeps this many sixteenths of the bytes on the left.
const ASCENDING_KEEP: usize = 15;

/// A split point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPlan {
    /// Slots that stay in the left node. In an inner node the key of slot `keep` moves up and its
    /// child becomes the left node's upper child.
    pub keep: usize,
    /// The new upper fence of the left and lower fence of the right node.
    pub separator: Vec<u8>,
}

/// The entry that made the split necessary.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Its full key.
    pub key: &'a [u8],
    /// Bytes it takes with its slot (for a replaced entry: after the replacement).
    pub bytes: usize,
    /// Slot it goes to.
    pub index: usize,
    /// Whether it replaces the entry of that slot.
    pub replaces: bool,
}

/// The page's entries with the incoming one among them.
struct Combined<'a> {
    page: &'a [u8],
    incoming: Incoming<'a>,
}

impl Combined<'_> {
    fn count(&self) -> usize {
        node::count(self.page) + usize::from(!self.incoming.replaces)
    }

    /// Slot of a combined position; `None` for the incoming entry itself.
    fn slot_of(&self, position: usize) -> Option<usize> {
        match position.cmp(&self.incoming.index) {
            std::cmp::Ordering::Less => Some(position),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(position - usize::from(!self.incoming.replaces)),
        }
    }

    fn bytes(&self, position: usize) -> usize {
        self.slot_of(position).map_or(self.incoming.bytes, |index| {
            node::entry_bytes(self.page, node::slot(self.page, index)) + SLOT_BYTES
        })
    }

    fn suffix(&self, position: usize) -> &[u8] {
        match self.slot_of(position) {
            Some(index) => node::suffix(self.page, node::slot(self.page, index)),
            None => self.incoming.key.get(node::prefix_len(self.page)..).unwrap_or(&[]),
        }
    }

    /// Length of the shortest separator before `position`, without the prefix.
    fn separator_len(&self, position: usize) -> usize {
        node::common_prefix(self.suffix(position - 1), self.suffix(position)) + 1
    }
}

/// Whether the inserts into a node of `count` entries have followed each other.
fn is_ascending(page: &[u8], count: usize) -> bool {
    usize::from(page.u8_at(ASCENDING)) >= ASCENDING_INSERTS.min(count / ASCENDING_SHARE)
}

/// First boundary at which the left part holds at least `share` sixteenths of the bytes.
fn boundary(count: usize, share: usize, bytes: impl Fn(usize) -> usize) -> usize {
    let total: usize = (0..count).map(&bytes).sum();
    let mut left = 0;
    for position in 0..count {
        left += bytes(position);
        if left * 16 >= total * share {
            return (position + 1).clamp(1, count - 1);
        }
    }
    count - 1
}

/// The cheapest boundary near `middle`.
fn best_near(middle: usize, count: usize, cost: impl Fn(usize) -> usize) -> usize {
    let window = count / 16;
    let range = middle.saturating_sub(window).max(1)..=(middle + window).min(count - 1);
    range.min_by_key(|at| (cost(*at), at.abs_diff(middle))).unwrap_or(middle)
}

impl Combined<'_> {
    /// Slots that stay on the left when the split is before combined position `at`.
    fn keep(&self, at: usize) -> usize {
        if !self.incoming.replaces && at > self.incoming.index { at - 1 } else { at }
    }

    /// Bytes of the larger half before the incoming entry is added to either: a separator longer
    /// than the fence it replaces may make a half larger than the node was.
    fn larger_half(&self, at: usize) -> usize {
        let page = self.page;
        let (keep, count) = (self.keep(at), node::count(page));
        let bytes = |index| node::entry_bytes(page, node::slot(page, index)) + SLOT_BYTES;
        let left: usize = (0..keep).map(bytes).sum();
        let right: usize = (keep..count).map(bytes).sum();
        let separator = node::prefix_len(page) + self.separator_len(at);
        let lower = node::lower_fence(page).map_or(0, <[u8]>::len);
        let upper = node::upper_fence(page).map_or(0, <[u8]>::len);
        SLOTS + separator + (left + lower).max(right + upper)
    }
}

/// Plans the split of a leaf that cannot take `incoming`. `None` if there is nothing to split,
/// that is fewer than two entries with the incoming one.
///
/// Both halves fit their pages: the wished boundary is taken only if they do, and among all
/// boundaries there is one that does, since fences are at most an eighth and entries a quarter of
/// a page.
pub fn plan_leaf(page: &[u8], incoming: Incoming<'_>) -> Option<SplitPlan> {
    let combined = Combined { page, incoming };
    let count = combined.count();
    if count < 2 {
        return None;
    }
    let ascending = !incoming.replaces
        && is_ascending(page, count)
        && usize::from(page.u16_at(LAST_INSERT)) == incoming.index;
    let mut at = if ascending && incoming.index + 1 < count {
        // Inserts climb through the middle: what lies above goes away, they go on in the gap.
        incoming.index + 1
    } else if ascending {
        boundary(count, ASCENDING_KEEP, |position| combined.bytes(position))
    } else {
        let middle = boundary(count, 8, |position| combined.bytes(position));
        best_near(middle, count, |position| combined.separator_len(position))
    };
    if combined.larger_half(at) > page.len() {
        base::probe!("btree.split_moved");
        at = (1..count).min_by_key(|at| combined.larger_half(*at))?;
    }
    let mut separator = node::prefix(page).to_vec();
    separator.extend_from_slice(&combined.suffix(at)[..combined.separator_len(at)]);
    Some(SplitPlan { keep: combined.keep(at), separator })
}

/// Plans the split of an inner node. `None` with fewer than two separators.
pub fn plan_inner(page: &[u8]) -> Option<SplitPlan> {
    let count = node::count(page);
    if count < 2 {
        return None;
    }
    let suffix_len = |index| node::slot(page, index).suffix_len;
    let bytes = |index| suffix_len(index) + CHILD_BYTES + SLOT_BYTES;
    let ascending = is_ascending(page, count) && usize::from(page.u16_at(LAST_INSERT)) == count;
    let keep = if ascending {
        boundary(count, ASCENDING_KEEP, bytes)
    } else {
        best_near(boundary(count, 8, bytes), count, suffix_len)
    };
    Some(SplitPlan { keep, separator: node::key(page, keep) })
}

/// The shortest key `s` with `left < s <= right`; `left` must be below `right`.
pub fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    &right[..(node::common_prefix(left, right) + 1).min(right.len())]
}
