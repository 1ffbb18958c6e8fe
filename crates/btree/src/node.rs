//! Reading a node: header fields, slots, search, entries.
//!
//! 1. Keys of a node lie in `[lower fence, upper fence)`; a missing fence is infinity.
//! 2. `prefix` is the common prefix of both fences (empty if one is missing); every key in the
//!    range begins with it, so slots hold only what follows it (the *suffix*).
//! 3. All suffixes begin with the same `head_skip` bytes; a slot's head is the four bytes that
//!    follow, big-endian, padded with zeroes. Heads that differ decide a comparison alone. (Nodes
//!    at the edges of a tree lack a fence and so a prefix; this is what keeps their heads useful.)
//! 4. Slots are in strictly ascending key order.
//! 5. An inner slot holds a separator and the child whose range ends before it; the last child
//!    is `upper_child`.
//! 6. Accessors never panic on damaged bytes; `check` tells whether the bytes make sense.

use crate::layout::*;
use crate::page_read::{PageRead, slice};
use crate::redo::page_type;
use pagestore::header;
use std::cmp::Ordering;

/// One slot as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Offset of the entry in the page.
    pub offset: usize,
    /// Length of the key suffix.
    pub suffix_len: usize,
    /// Four bytes of the suffix, see the head of this file.
    pub head: u32,
}

impl Slot {
    /// Decodes the slot word.
    #[inline]
    pub fn decode(word: u64) -> Slot {
        Slot {
            offset: (word & 0xffff) as usize,
            suffix_len: (word >> 16 & 0xffff) as usize,
            head: (word >> 32) as u32,
        }
    }

    /// The slot word as stored.
    #[inline]
    pub fn encode(self) -> u64 {
        self.offset as u64 | (self.suffix_len as u64) << 16 | u64::from(self.head) << 32
    }
}

/// Head of what follows the skipped bytes of a suffix (invariant 3).
#[inline]
pub fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(chunk) => u32::from_be_bytes(*chunk),
        None => {
            let mut padded = [0u8; 4];
            padded[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(padded)
        }
    }
}

/// Length of the common prefix of two byte strings.
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    base::difference::common_prefix(a, b)
}

/// Level of the node, 0 for a leaf.
#[inline]
pub fn level<P: PageRead + ?Sized>(page: &P) -> usize {
    usize::from(page.u8_at(LEVEL))
}

/// Number of slots, never more than the page can hold.
#[inline]
pub fn count<P: PageRead + ?Sized>(page: &P) -> usize {
    let most = page.page_bytes().saturating_sub(SLOTS) / SLOT_BYTES;
    usize::from(page.u16_at(COUNT)).min(most)
}

/// The slot at `index`, which must be below [`count`].
#[inline]
pub fn slot<P: PageRead + ?Sized>(page: &P, index: usize) -> Slot {
    Slot::decode(page.u64_at(SLOTS + SLOT_BYTES * index))
}

/// Length of the prefix that entries do not store.
#[inline]
pub fn prefix_len<P: PageRead + ?Sized>(page: &P) -> usize {
    usize::from(page.u16_at(PREFIX_LEN))
}

/// Bytes of every suffix that heads leave out.
#[inline]
pub fn head_skip<P: PageRead + ?Sized>(page: &P) -> usize {
    usize::from(page.u16_at(HEAD_SKIP))
}

/// Narrows the search range by the hints: the answer for `head` lies in the returned range. The
/// hints are counted without branches, since which of them is the first is random.
#[inline]
fn narrow<P: PageRead + ?Sized>(page: &P, count: usize, head: u32) -> (usize, usize) {
    if count <= HINT_COUNT * 2 {
        return (0, count);
    }
    let distance = count / (HINT_COUNT + 1);
    let (mut below, mut up_to) = (0, 0);
    for pair in 0..HINT_COUNT / 2 {
        let word = page.u64_at(HINTS + 8 * pair);
        for hint in [word as u32, (word >> 32) as u32] {
            below += usize::from(hint < head);
            up_to += usize::from(hint <= head);
        }
    }
    let high = if up_to < HINT_COUNT { (up_to + 1) * distance } else { count };
    (below * distance, high)
}

/// First slot in `low..high` whose head is not below `head`. Halves without branches.
#[inline]
fn first_head<P: PageRead + ?Sized>(page: &P, low: usize, high: usize, head: u32) -> usize {
    let (mut base, mut length) = (low, high.saturating_sub(low));
    while length > 1 {
        let half = length / 2;
        let middle = slot(page, base + half - 1).head;
        base += if middle < head { half } else { 0 };
        length -= half;
    }
    base + usize::from(length == 1 && slot(page, base).head < head)
}

/// Compares the key of a slot whose head equals that of `rest`; both without `skip` bytes.
#[inline]
fn compare_rest<P: PageRead + ?Sized>(page: &P, slot: Slot, skip: usize, rest: &[u8]) -> Ordering {
    let length = slot.suffix_len.saturating_sub(skip);
    // With four bytes or less on either side the zero padding of the heads was compared already,
    // so that only the lengths can differ.
    if length <= 4 || rest.len() <= 4 {
        return length.cmp(&rest.len());
    }
    page.compare(slot.offset + skip + 4, length - 4, &rest[4..])
}

/// First slot whose key is not below `key`, and whether it equals `key`. `key` must lie between
/// the fences (both included), which a correct descent guarantees.
#[inline]
pub fn lower_bound<P: PageRead + ?Sized>(page: &P, key: &[u8]) -> (usize, bool) {
    let count = count(page);
    if count == 0 {
        return (0, false);
    }
    let mut rest = &key[prefix_len(page).min(key.len())..];
    let skip = head_skip(page);
    if skip > 0 {
        let shared = slot(page, 0).offset;
        match page.compare(shared, skip, &rest[..skip.min(rest.len())]) {
            Ordering::Less => return (count, false),
            Ordering::Greater => return (0, false),
            Ordering::Equal => rest = rest.get(skip..).unwrap_or(&[]),
        }
    }
    let head = head_of(rest);
    let (low, mut high) = narrow(page, count, head);
    let mut low = first_head(page, low, high, head);
    // Usually one slot at most has this head; several are told apart by their whole keys.
    let mut middle = low;
    while low < high {
        let at = slot(page, middle);
        let order = at.head.cmp(&head).then_with(|| compare_rest(page, at, skip, rest));
        match order {
            Ordering::Less => low = middle + 1,
            Ordering::Greater if middle == low => return (low, false),
            Ordering::Greater => high = middle,
            Ordering::Equal => return (middle, true),
        }
        middle = (low + high) / 2;
    }
    (low, false)
}

/// Which child of an inner node to visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The child whose range contains the key.
    Containing,
    /// The child that contains the greatest key strictly below the key.
    Below,
}

/// Index of the child to visit: 0 up to and including `count`, which is the upper child.
#[inline]
pub fn child_index<P: PageRead + ?Sized>(page: &P, key: &[u8], route: Route) -> usize {
    let (index, exact) = lower_bound(page, key);
    index + usize::from(exact && route == Route::Containing)
}

/// Page id of the child at `index` (see [`child_index`]).
#[inline]
pub fn child<P: PageRead + ?Sized>(page: &P, index: usize) -> u64 {
    if index >= count(page) {
        return page.u64_at(UPPER_CHILD);
    }
    let at = slot(page, index);
    let offset = at.offset + at.suffix_len;
    u64::from(page.u32_at(offset)) | u64::from(page.u16_at(offset + 4)) << 32
}

/// Header of a leaf entry and where its payload lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafHeader {
    /// Entry flags.
    pub flags: u8,
    /// Version word.
    pub word: u64,
    /// Offset of the payload.
    pub payload_offset: usize,
    /// Stored length of the payload.
    pub payload_len: usize,
}

/// Reads the header of the leaf entry in `slot`.
#[inline]
pub fn leaf_header<P: PageRead + ?Sized>(page: &P, slot: Slot) -> LeafHeader {
    let offset = slot.offset + slot.suffix_len;
    LeafHeader {
        flags: page.u8_at(offset),
        word: page.u64_at(offset + 1),
        payload_offset: offset + LEAF_HEADER_BYTES,
        payload_len: usize::from(page.u16_at(offset + 9)),
    }
}

/// The same of a page held under a latch: one look at its bounds.
#[inline]
pub fn leaf_header_of(page: &[u8], slot: Slot) -> LeafHeader {
    let offset = slot.offset + slot.suffix_len;
    let header = page.get(offset..).and_then(|rest| rest.first_chunk::<LEAF_HEADER_BYTES>());
    let Some([flags, a, b, c, d, e, f, g, h, low, high]) = header else {
        return leaf_header(page, slot);
    };
    LeafHeader {
        flags: *flags,
        word: u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
        payload_offset: offset + LEAF_HEADER_BYTES,
        payload_len: usize::from(u16::from_le_bytes([*low, *high])),
    }
}

/// Bytes that the entry of `slot` takes in the heap.
#[inline]
pub fn entry_bytes(page: &[u8], slot: Slot) -> usize {
    slot.suffix_len
        + if level(page) == 0 {
            LEAF_HEADER_BYTES + leaf_header(page, slot).payload_len
        } else {
            CHILD_BYTES
        }
}

/// Key suffix of `slot`.
#[inline]
pub fn suffix(page: &[u8], slot: Slot) -> &[u8] {
    slice(page, slot.offset, slot.suffix_len)
}

/// The prefix that all keys share.
#[inline]
pub fn prefix(page: &[u8]) -> &[u8] {
    slice(page, usize::from(page.u16_at(LOWER_OFFSET)), prefix_len(page))
}

/// Lower fence (inclusive); `None` is minus infinity.
pub fn lower_fence(page: &[u8]) -> Option<&[u8]> {
    (page.u8_at(NODE_FLAGS) & HAS_LOWER != 0)
        .then(|| slice(page, page.u16_at(LOWER_OFFSET).into(), page.u16_at(LOWER_LEN).into()))
}

/// What leaves of a tree are sorted by when they are written together: the first bytes of what
/// their keys begin with. For use as the page store's order.
pub fn page_order(page: &[u8]) -> u64 {
    let is_node = matches!(header::page_type(page), page_type::LEAF | page_type::INNER);
    let fence = is_node.then(|| lower_fence(page)).flatten().unwrap_or_default();
    let mut first = [0; 8];
    let length = fence.len().min(first.len());
    first[..length].copy_from_slice(&fence[..length]);
    u64::from_be_bytes(first)
}

/// Upper fence (exclusive); `None` is plus infinity.
pub fn upper_fence(page: &[u8]) -> Option<&[u8]> {
    (page.u8_at(NODE_FLAGS) & HAS_UPPER != 0)
        .then(|| slice(page, page.u16_at(UPPER_OFFSET).into(), page.u16_at(UPPER_LEN).into()))
}

/// Appends the full key of `index` to `out`.
pub fn append_key(page: &[u8], index: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(prefix(page));
    out.extend_from_slice(suffix(page, slot(page, index)));
}

/// The full key of `index`.
pub fn key(page: &[u8], index: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(prefix_len(page) + slot(page, index).suffix_len);
    append_key(page, index, &mut out);
    out
}

/// Whether `key` lies in the node's range.
pub fn in_range<P: PageRead + ?Sized>(page: &P, key: &[u8]) -> bool {
    let flags = page.u8_at(NODE_FLAGS);
    let fence = |offset, length| -> Ordering {
        page.compare(page.u16_at(offset).into(), page.u16_at(length).into(), key)
    };
    (flags & HAS_LOWER == 0 || fence(LOWER_OFFSET, LOWER_LEN).is_le())
        && (flags & HAS_UPPER == 0 || fence(UPPER_OFFSET, UPPER_LEN).is_gt())
}

/// Bytes between the slots and the heap.
pub fn gap_bytes(page: &[u8]) -> usize {
    usize::from(page.u16_at(HEAP)).saturating_sub(SLOTS + SLOT_BYTES * count(page))
}

/// Bytes that would be free after compaction.
pub fn free_bytes(page: &[u8]) -> usize {
    page.len()
        .saturating_sub(SLOTS + SLOT_BYTES * count(page))
        .saturating_sub(page.u16_at(USED).into())
}

/// Bytes in use: header, slots, live heap.
pub fn used_bytes(page: &[u8]) -> usize {
    page.len() - free_bytes(page)
}

/// Checks that header, slots and entries lie inside the page and add up. Costs one pass over the
/// slots; says what is wrong. Key order is [`check_order`]'s subject.
pub fn check(page: &[u8]) -> Result<(), &'static str> {
    let slots_end = SLOTS + SLOT_BYTES * usize::from(page.u16_at(COUNT));
    let heap = usize::from(page.u16_at(HEAP));
    if slots_end > heap || heap > page.len() {
        return Err("slots and heap overlap");
    }
    let mut used = 0;
    let fences = [
        (HAS_LOWER, LOWER_OFFSET, LOWER_LEN, "lower fence"),
        (HAS_UPPER, UPPER_OFFSET, UPPER_LEN, "upper fence"),
    ];
    for (flag, offset, length, _) in fences {
        let (at, length) = (usize::from(page.u16_at(offset)), usize::from(page.u16_at(length)));
        let present = page.u8_at(NODE_FLAGS) & flag != 0;
        if length != 0 && (!present || at < heap || at + length > page.len()) {
            return Err("fence outside the heap");
        }
        used += length;
    }
    let expected = match (lower_fence(page), upper_fence(page)) {
        (Some(lower), Some(upper)) => common_prefix(lower, upper),
        _ => 0,
    };
    if prefix_len(page) != expected {
        return Err("prefix length differs from the fences' common prefix");
    }
    let skip = head_skip(page);
    let shared = slice(page, slot(page, 0).offset, skip);
    for index in 0..count(page) {
        let at = slot(page, index);
        let length = entry_bytes(page, at);
        if at.offset < heap || at.offset + length > page.len() {
            return Err("entry outside the heap");
        }
        let skipped = suffix(page, at).split_at_checked(skip).filter(|(first, _)| *first == shared);
        if skipped.is_none_or(|(_, rest)| head_of(rest) != at.head) {
            return Err("slot head differs from its key");
        }
        used += length;
    }
    if used != usize::from(page.u16_at(USED)) || used > page.len() - heap {
        return Err("live bytes do not add up");
    }
    Ok(())
}

/// Checks key order and that all keys lie between the fences (invariants 1 and 4) and that the
/// hints are those of the slots.
pub fn check_order(page: &[u8]) -> Result<(), &'static str> {
    let suffix_at = |index| suffix(page, slot(page, index));
    if (1..count(page)).any(|index| suffix_at(index - 1) >= suffix_at(index)) {
        return Err("keys out of order");
    }
    for index in [0, count(page).saturating_sub(1)].into_iter().filter(|at| *at < count(page)) {
        if !in_range(page, &key(page, index)) {
            return Err("key outside the fences");
        }
    }
    if count(page) > HINT_COUNT * 2 {
        let distance = count(page) / (HINT_COUNT + 1);
        for index in 0..HINT_COUNT {
            if page.u32_at(HINTS + 4 * index) != slot(page, distance * (index + 1)).head {
                return Err("hint differs from its slot");
            }
        }
    }
    Ok(())
}
