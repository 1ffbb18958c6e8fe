//! Changing a node's bytes. Every function is deterministic in the bytes it is given, so that redo
//! produces exactly what the forward run produced, unused bytes included.
//!
//! 1. An edit either succeeds or leaves the page as it was (`NoRoom`, `Damaged`).
//! 2. `HEAP`, `USED`, slots and hints agree with each other when a function returns
//!    (`node::check`).

use crate::layout::*;
use crate::node::{self, Slot};
use crate::page_read::{PageRead, slice};
use crate::scratch;
use base::difference::Kept;
use pagestore::header::HEADER_BYTES;

/// Why an edit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The entry does not fit, not even after compaction.
    #[error("no room in the node")]
    NoRoom,
    /// The page or the request does not make sense.
    #[error("node bytes and edit disagree: {0}")]
    Damaged(&'static str),
}

/// Holes that take one of so many parts of a page are closed by the removal that meets them.
const HOLE_PARTS: usize = 4;

pub(crate) type Result<T = ()> = std::result::Result<T, EditError>;

/// The key range of a node; `None` is infinity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fences<'a> {
    /// Inclusive lower bound.
    pub lower: Option<&'a [u8]>,
    /// Exclusive upper bound.
    pub upper: Option<&'a [u8]>,
}

pub(crate) fn put_u16(page: &mut [u8], offset: usize, value: usize) {
    page[offset..offset + 2].copy_from_slice(&(value as u16).to_le_bytes());
}

pub(crate) fn put_slot(page: &mut [u8], index: usize, slot: Slot) {
    let at = SLOTS + SLOT_BYTES * index;
    page[at..at + SLOT_BYTES].copy_from_slice(&slot.encode().to_le_bytes());
}

/// Makes `page` an empty node. The common page header stays as it is.
pub fn init(page: &mut [u8], level: usize, fences: Fences<'_>) -> Result {
    let fence_bytes = fences.lower.map_or(0, <[u8]>::len) + fences.upper.map_or(0, <[u8]>::len);
    if page.len() < SLOTS || fence_bytes > page.len() - SLOTS {
        return Err(EditError::NoRoom);
    }
    page[HEADER_BYTES..].fill(0);
    page[LEVEL] = level as u8;
    let end = page.len();
    put_u16(page, HEAP, end);
    if let Some(lower) = fences.lower {
        page[NODE_FLAGS] |= HAS_LOWER;
        let at = push_heap(page, lower);
        put_u16(page, LOWER_OFFSET, at);
        put_u16(page, LOWER_LEN, lower.len());
    }
    if let Some(upper) = fences.upper {
        page[NODE_FLAGS] |= HAS_UPPER;
        let at = push_heap(page, upper);
        put_u16(page, UPPER_OFFSET, at);
        put_u16(page, UPPER_LEN, upper.len());
    }
    if let (Some(lower), Some(upper)) = (fences.lower, fences.upper) {
        put_u16(page, PREFIX_LEN, node::common_prefix(lower, upper));
    }
    Ok(())
}

/// Takes `length` bytes off the gap; the caller has made sure that they are there.
pub(crate) fn take_heap(page: &mut [u8], length: usize) -> usize {
    let at = usize::from(page.u16_at(HEAP)) - length;
    put_u16(page, HEAP, at);
    let used = usize::from(page.u16_at(USED)) + length;
    put_u16(page, USED, used);
    at
}

fn push_heap(page: &mut [u8], bytes: &[u8]) -> usize {
    let at = take_heap(page, bytes.len());
    page[at..at + bytes.len()].copy_from_slice(bytes);
    at
}

fn release(page: &mut [u8], length: usize) -> Result {
    let used = usize::from(page.u16_at(USED))
        .checked_sub(length)
        .ok_or(EditError::Damaged("live bytes below zero"))?;
    put_u16(page, USED, used);
    Ok(())
}

/// Makes sure that the gap holds `bytes`, compacting if that helps.
fn make_gap(page: &mut [u8], bytes: usize) -> Result {
    if usize::from(page.u16_at(HEAP)) > page.len() {
        return Err(EditError::Damaged("heap outside the page"));
    }
    if node::gap_bytes(page) >= bytes {
        return Ok(());
    }
    if node::free_bytes(page) < bytes {
        return Err(EditError::NoRoom);
    }
    compact(page)
}

/// Moves all live bytes to the end of the page, without holes: fences first, then the entries in
/// key order. The gap is zeroed, which compresses better.
pub fn compact(page: &mut [u8]) -> Result {
    node::check(page).map_err(EditError::Damaged)?;
    let page_bytes = page.len();
    scratch::with(page_bytes, |old| {
        old.copy_from_slice(page);
        put_u16(page, HEAP, page_bytes);
        put_u16(page, USED, 0);
        for (offset_at, length_at) in [(LOWER_OFFSET, LOWER_LEN), (UPPER_OFFSET, UPPER_LEN)] {
            let fence = slice(old, old.u16_at(offset_at).into(), old.u16_at(length_at).into());
            if !fence.is_empty() {
                let at = push_heap(page, fence);
                put_u16(page, offset_at, at);
            }
        }
        for index in 0..node::count(old) {
            let slot = node::slot(old, index);
            let at = push_heap(page, slice(old, slot.offset, node::entry_bytes(old, slot)));
            put_slot(page, index, Slot { offset: at, ..slot });
        }
        let heap = usize::from(page.u16_at(HEAP));
        page[SLOTS + SLOT_BYTES * node::count(old)..heap].fill(0);
    });
    Ok(())
}

/// Brings the hints up to date after slots from `changed` on have moved; `former_count` tells
/// whether the spacing changed too.
fn update_hints(page: &mut [u8], changed: usize, former_count: usize) {
    let distance = node::count(page) / (HINT_COUNT + 1);
    if distance == 0 {
        return;
    }
    let same_spacing = former_count / (HINT_COUNT + 1) == distance;
    // Hint i is the head of slot (i + 1) * distance.
    let first = if same_spacing { changed.div_ceil(distance).saturating_sub(1) } else { 0 };
    for index in first..HINT_COUNT {
        let head = node::slot(page, distance * (index + 1)).head;
        page[HINTS + 4 * index..][..4].copy_from_slice(&head.to_le_bytes());
    }
}

/// Computes all heads anew, leaving out `skip` bytes, and the hints with them.
pub(crate) fn set_head_skip(page: &mut [u8], skip: usize) {
    put_u16(page, HEAD_SKIP, skip);
    for index in 0..node::count(page) {
        let slot = node::slot(page, index);
        let rest = node::suffix(page, slot).get(skip..).unwrap_or(&[]);
        let head = node::head_of(rest);
        put_slot(page, index, Slot { head, ..slot });
    }
    update_hints(page, 0, 0);
}

/// Bytes that the suffixes of all slots share: those of the first and the last one.
pub(crate) fn shared_bytes(page: &[u8]) -> usize {
    let count = node::count(page);
    if count < 2 {
        return 0;
    }
    let [first, last] = [0, count - 1].map(|index| node::suffix(page, node::slot(page, index)));
    node::common_prefix(first, last)
}

/// Makes sure that a new suffix begins with the bytes heads leave out; returns its head.
fn admit_suffix(page: &mut [u8], suffix: &[u8]) -> u32 {
    let skip = node::head_skip(page);
    if skip > 0 {
        let shared = match node::count(page) {
            0 => 0,
            _ => node::common_prefix(node::suffix(page, node::slot(page, 0)), suffix),
        };
        if shared < skip {
            set_head_skip(page, shared);
        }
    }
    node::head_of(&suffix[node::head_skip(page)..])
}

/// Looks now and then whether a growing node's suffixes have begun to share bytes.
fn review_head_skip(page: &mut [u8]) {
    let count = node::count(page);
    if count >= 8 && count.is_power_of_two() {
        let shared = shared_bytes(page);
        if shared > node::head_skip(page) {
            set_head_skip(page, shared);
        }
    }
}

fn open_slot(page: &mut [u8], index: usize, slot: Slot) {
    let count = node::count(page);
    let at = SLOTS + SLOT_BYTES * index;
    page.copy_within(at..SLOTS + SLOT_BYTES * count, at + SLOT_BYTES);
    put_slot(page, index, slot);
    put_u16(page, COUNT, count + 1);
    update_hints(page, index, count);
}

fn close_slot(page: &mut [u8], index: usize) {
    let count = node::count(page);
    let at = SLOTS + SLOT_BYTES * index;
    page.copy_within(at + SLOT_BYTES..SLOTS + SLOT_BYTES * count, at);
    put_u16(page, COUNT, count - 1);
    update_hints(page, index, count);
}

/// Counts inserts that continue each other: the next split point depends on it.
fn note_insert(page: &mut [u8], index: usize) {
    let continues = usize::from(page.u16_at(LAST_INSERT)) == index;
    page[ASCENDING] = if continues { page[ASCENDING].saturating_add(1) } else { 0 };
    put_u16(page, LAST_INSERT, index + 1);
}

fn expect_level(page: &[u8], leaf: bool) -> Result {
    match (node::level(page) == 0) == leaf {
        true => Ok(()),
        false => Err(EditError::Damaged("leaf edit on an inner node or the reverse")),
    }
}

/// A slot that exists and whose entry lies inside the heap.
pub(crate) fn checked_slot(page: &[u8], index: usize) -> Result<Slot> {
    if index >= node::count(page) {
        return Err(EditError::Damaged("slot beyond the end"));
    }
    let slot = node::slot(page, index);
    let end = slot.offset + node::entry_bytes(page, slot);
    if slot.offset < usize::from(page.u16_at(HEAP)) || end > page.len() {
        return Err(EditError::Damaged("entry outside the heap"));
    }
    Ok(slot)
}

fn insert_entry(page: &mut [u8], index: usize, suffix: &[u8], tail: [&[u8]; 2]) -> Result {
    if index > node::count(page) {
        return Err(EditError::Damaged("insert beyond the end"));
    }
    let length = suffix.len() + tail[0].len() + tail[1].len();
    make_gap(page, length + SLOT_BYTES)?;
    let head = admit_suffix(page, suffix);
    let offset = take_heap(page, length);
    let (key_part, rest) = page[offset..offset + length].split_at_mut(suffix.len());
    key_part.copy_from_slice(suffix);
    let (first, second) = rest.split_at_mut(tail[0].len());
    first.copy_from_slice(tail[0]);
    second.copy_from_slice(tail[1]);
    open_slot(page, index, Slot { offset, suffix_len: suffix.len(), head });
    review_head_skip(page);
    Ok(())
}

pub(crate) fn leaf_header_bytes(
    flags: u8,
    word: u64,
    payload_len: usize,
) -> [u8; LEAF_HEADER_BYTES] {
    let mut bytes = [0; LEAF_HEADER_BYTES];
    bytes[0] = flags;
    bytes[1..9].copy_from_slice(&word.to_le_bytes());
    bytes[9..].copy_from_slice(&(payload_len as u16).to_le_bytes());
    bytes
}

/// Inserts a leaf entry before slot `index`.
pub fn insert_leaf(
    page: &mut [u8],
    index: usize,
    suffix: &[u8],
    (flags, word): (u8, u64),
    payload: &[u8],
) -> Result {
    expect_level(page, true)?;
    let header = leaf_header_bytes(flags, word, payload.len());
    insert_entry(page, index, suffix, [&header, payload])?;
    note_insert(page, index);
    Ok(())
}

/// Sets flags and word of a leaf entry.
pub fn set_header(page: &mut [u8], index: usize, flags: u8, word: u64) -> Result {
    expect_level(page, true)?;
    let slot = checked_slot(page, index)?;
    let at = slot.offset + slot.suffix_len;
    page[at] = flags;
    page[at + 1..at + 9].copy_from_slice(&word.to_le_bytes());
    Ok(())
}

/// A payload change as it is logged: what is kept at both ends and the new bytes between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch<'a> {
    /// Length of the new payload.
    pub new_len: usize,
    /// Bytes kept at the front of the old payload.
    pub keep_front: usize,
    /// Bytes between the kept front and the kept back.
    pub middle: &'a [u8],
}

impl<'a> Patch<'a> {
    /// The smallest single-range patch from `old` to `new`.
    pub fn between(old: &[u8], new: &'a [u8]) -> Patch<'a> {
        Patch::keeping(new, Kept::between(old, new))
    }

    /// The patch to `new` from what has this much in common with it.
    pub fn keeping(new: &'a [u8], kept: Kept) -> Patch<'a> {
        let middle = &new[kept.front..new.len() - kept.back];
        Patch { new_len: new.len(), keep_front: kept.front, middle }
    }
}

/// Replaces flags, word and payload of a leaf entry.
pub fn replace(
    page: &mut [u8],
    index: usize,
    (flags, word): (u8, u64),
    patch: Patch<'_>,
) -> Result {
    expect_level(page, true)?;
    let slot = checked_slot(page, index)?;
    let old = node::leaf_header(page, slot);
    let keep_back = patch
        .new_len
        .checked_sub(patch.keep_front + patch.middle.len())
        .filter(|back| patch.keep_front + back <= old.payload_len)
        .ok_or(EditError::Damaged("patch longer than the payload"))?;
    if patch.new_len > old.payload_len {
        return grow(page, index, slot, (flags, word), patch, keep_back);
    }
    let start = old.payload_offset;
    let old_back = start + old.payload_len - keep_back;
    page.copy_within(old_back..old_back + keep_back, start + patch.new_len - keep_back);
    page[start + patch.keep_front..][..patch.middle.len()].copy_from_slice(patch.middle);
    let header = leaf_header_bytes(flags, word, patch.new_len);
    page[start - LEAF_HEADER_BYTES..start].copy_from_slice(&header);
    release(page, old.payload_len - patch.new_len)
}

/// [`replace`] with a longer payload: the entry moves within the page.
fn grow(
    page: &mut [u8],
    index: usize,
    slot: Slot,
    (flags, word): (u8, u64),
    patch: Patch<'_>,
    keep_back: usize,
) -> Result {
    let old_bytes = node::entry_bytes(page, slot);
    let new_bytes = slot.suffix_len + LEAF_HEADER_BYTES + patch.new_len;
    if new_bytes > node::free_bytes(page) + old_bytes {
        return Err(EditError::NoRoom);
    }
    node::check(page).map_err(EditError::Damaged)?;
    scratch::with(new_bytes, |entry| {
        let old = slice(page, slot.offset, old_bytes);
        let payload_at = slot.suffix_len + LEAF_HEADER_BYTES;
        let front = payload_at + patch.keep_front;
        entry[..front].copy_from_slice(&old[..front]);
        entry[slot.suffix_len..payload_at].copy_from_slice(&leaf_header_bytes(
            flags,
            word,
            patch.new_len,
        ));
        entry[front..front + patch.middle.len()].copy_from_slice(patch.middle);
        entry[new_bytes - keep_back..].copy_from_slice(&old[old_bytes - keep_back..]);
        release(page, old_bytes)?;
        if node::gap_bytes(page) >= new_bytes {
            let offset = push_heap(page, entry);
            put_slot(page, index, Slot { offset, ..slot });
        } else {
            close_slot(page, index);
            compact(page)?;
            let offset = push_heap(page, entry);
            open_slot(page, index, Slot { offset, ..slot });
        }
        Ok(())
    })
}

/// Removes the entry of slot `index` from a leaf.
pub fn remove(page: &mut [u8], index: usize) -> Result {
    expect_level(page, true)?;
    let slot = checked_slot(page, index)?;
    release(page, node::entry_bytes(page, slot))?;
    close_slot(page, index);
    note_removal(page, index);
    close_holes(page);
    Ok(())
}

/// Removals have left holes that are worth closing: zeroes take next to nothing on disk, what
/// stood there as much as before. A page that is damaged otherwise stays as it is.
fn close_holes(page: &mut [u8]) {
    let heap = page.len().saturating_sub(page.u16_at(HEAP).into());
    if heap.saturating_sub(page.u16_at(USED).into()) * HOLE_PARTS >= page.len() {
        compact(page).ok();
    }
}

/// Keeps `LAST_INSERT` pointing at the same entry when one before it goes.
fn note_removal(page: &mut [u8], index: usize) {
    let last = usize::from(page.u16_at(LAST_INSERT));
    if last > index {
        put_u16(page, LAST_INSERT, last - 1);
    }
}

pub(crate) fn child_bytes(child: u64) -> [u8; CHILD_BYTES] {
    let bytes = child.to_le_bytes();
    [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]]
}

/// Sets the child at `index`; `index == count` is the upper child.
pub fn set_child(page: &mut [u8], index: usize, child: u64) -> Result {
    expect_level(page, false)?;
    if index == node::count(page) {
        page[UPPER_CHILD..UPPER_CHILD + 8].copy_from_slice(&child.to_le_bytes());
        return Ok(());
    }
    let slot = checked_slot(page, index)?;
    let at = slot.offset + slot.suffix_len;
    page[at..at + CHILD_BYTES].copy_from_slice(&child_bytes(child));
    Ok(())
}

/// The child at `index` has been split: it keeps what lies below the separator, `right` takes
/// the rest.
pub fn insert_child(page: &mut [u8], index: usize, suffix: &[u8], right: u64) -> Result {
    expect_level(page, false)?;
    if index > node::count(page) {
        return Err(EditError::Damaged("insert beyond the end"));
    }
    let left = node::child(page, index);
    insert_entry(page, index, suffix, [&child_bytes(left), &[]])?;
    note_insert(page, index);
    set_child(page, index + 1, right)
}

/// The child right of separator `index` has been merged into the child left of it.
pub fn remove_child(page: &mut [u8], index: usize) -> Result {
    expect_level(page, false)?;
    let slot = checked_slot(page, index)?;
    let left = node::child(page, index);
    release(page, node::entry_bytes(page, slot))?;
    close_slot(page, index);
    note_removal(page, index);
    set_child(page, index, left)
}
