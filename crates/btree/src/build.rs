//! Building nodes: entries appended in order to an empty node, and the rebuilds made of that
//! (cutting a node off, taking over the right neighbour).
//!
//! 1. A node under construction has no heads and hints; [`finish`] fills them in.
//! 2. A rebuild happens in a scratch page and replaces the node only when it has succeeded.

use crate::edit::{
    EditError, Fences, Result, checked_slot, child_bytes, init, leaf_header_bytes, put_slot,
    put_u16, set_child, set_head_skip, shared_bytes, take_heap,
};
use crate::layout::*;
use crate::node::{self, Slot};
use crate::page_read::slice;
use crate::scratch;
use pagestore::header::HEADER_BYTES;
use std::ops::Range;

/// Appends entries `range` of `source` behind those of `target`, whose fences contain their keys.
/// Heads and hints are the caller's to [`finish`].
pub fn append_entries(target: &mut [u8], source: &[u8], range: Range<usize>) -> Result {
    let (prefix, target_prefix) = (node::prefix(source), node::prefix_len(target));
    for index in range {
        let slot = checked_slot(source, index)?;
        let suffix = node::suffix(source, slot);
        let tail_at = slot.offset + slot.suffix_len;
        let tail = slice(source, tail_at, node::entry_bytes(source, slot) - slot.suffix_len);
        let front = prefix.get(target_prefix..).unwrap_or(&[]);
        let back = suffix
            .get(target_prefix.saturating_sub(prefix.len())..)
            .ok_or(EditError::Damaged("key shorter than the new prefix"))?;
        append_entry(target, [front, back], tail)?;
    }
    Ok(())
}

/// Appends one entry whose key suffix is given in two parts.
pub fn append_entry(target: &mut [u8], key: [&[u8]; 2], tail: &[u8]) -> Result {
    let suffix_len = key[0].len() + key[1].len();
    let length = suffix_len + tail.len();
    if node::gap_bytes(target) < length + SLOT_BYTES {
        return Err(EditError::NoRoom);
    }
    let offset = take_heap(target, length);
    let entry = &mut target[offset..offset + length];
    entry[..key[0].len()].copy_from_slice(key[0]);
    entry[key[0].len()..suffix_len].copy_from_slice(key[1]);
    entry[suffix_len..].copy_from_slice(tail);
    let count = node::count(target);
    put_slot(target, count, Slot { offset, suffix_len, head: 0 });
    put_u16(target, COUNT, count + 1);
    Ok(())
}

/// Appends a leaf entry given as full key; for building nodes from scratch.
pub fn append_leaf(
    target: &mut [u8],
    key: &[u8],
    (flags, word): (u8, u64),
    payload: &[u8],
) -> Result {
    let suffix = key
        .get(node::prefix_len(target)..)
        .ok_or(EditError::Damaged("key shorter than the prefix"))?;
    let length = suffix.len() + LEAF_HEADER_BYTES + payload.len();
    if node::gap_bytes(target) < length + SLOT_BYTES {
        return Err(EditError::NoRoom);
    }
    let count = node::count(target);
    let header = leaf_header_bytes(flags, word, payload.len());
    let offset = take_heap(target, length);
    target[offset..offset + suffix.len()].copy_from_slice(suffix);
    let tail = offset + suffix.len();
    target[tail..tail + LEAF_HEADER_BYTES].copy_from_slice(&header);
    target[tail + LEAF_HEADER_BYTES..offset + length].copy_from_slice(payload);
    let slot = Slot { offset, suffix_len: suffix.len(), head: 0 };
    put_slot(target, count, slot);
    put_u16(target, COUNT, count + 1);
    Ok(())
}

/// Appends a separator given as full key, with the child left of it.
pub fn append_separator(target: &mut [u8], key: &[u8], child: u64) -> Result {
    let suffix = key
        .get(node::prefix_len(target)..)
        .ok_or(EditError::Damaged("separator shorter than the prefix"))?;
    append_entry(target, [suffix, &[]], &child_bytes(child))
}

/// Completes a node built by appending: fills in heads and hints.
pub fn finish(target: &mut [u8]) {
    set_head_skip(target, shared_bytes(target));
}

/// Rebuilds `page` through a scratch page: `build` gets the old bytes and the new, empty ones.
/// The common header is kept. Nothing changes when `build` fails.
pub fn rebuild(page: &mut [u8], build: impl FnOnce(&[u8], &mut [u8]) -> Result) -> Result {
    scratch::with(page.len(), |fresh| {
        fresh[..HEADER_BYTES].copy_from_slice(&page[..HEADER_BYTES]);
        build(page, fresh)?;
        finish(fresh);
        page.copy_from_slice(fresh);
        Ok(())
    })
}

/// Cuts a node down to its first `keep` slots and a new upper fence. In an inner node the
/// child of slot `keep` becomes the upper child.
pub fn truncate(page: &mut [u8], keep: usize, upper: &[u8]) -> Result {
    let level = node::level(page);
    if keep > node::count(page) {
        return Err(EditError::Damaged("cut beyond the end"));
    }
    rebuild(page, |old, fresh| {
        init(fresh, level, Fences { lower: node::lower_fence(old), upper: Some(upper) })?;
        append_entries(fresh, old, 0..keep)?;
        if level > 0 {
            set_child(fresh, keep, node::child(old, keep))?;
        }
        Ok(())
    })
}

/// Takes over all entries of `right`, the node that follows `page` on the same level.
pub fn absorb(page: &mut [u8], right: &[u8]) -> Result {
    let level = node::level(page);
    if node::level(right) != level || node::upper_fence(page) != node::lower_fence(right) {
        return Err(EditError::Damaged("merge of nodes that are not neighbours"));
    }
    rebuild(page, |left, fresh| {
        let fences = Fences { lower: node::lower_fence(left), upper: node::upper_fence(right) };
        init(fresh, level, fences)?;
        append_entries(fresh, left, 0..node::count(left))?;
        if level > 0 {
            let separator = node::lower_fence(right)
                .ok_or(EditError::Damaged("right neighbour without lower fence"))?;
            append_separator(fresh, separator, node::child(left, node::count(left)))?;
        }
        append_entries(fresh, right, 0..node::count(right))?;
        if level > 0 {
            set_child(fresh, node::count(fresh), node::child(right, node::count(right)))?;
        }
        Ok(())
    })
}

/// Bytes the union of two neighbours takes, with the shorter prefix and the joint fences.
pub fn merged_bytes(left: &[u8], right: &[u8]) -> usize {
    let lower = node::lower_fence(left);
    let upper = node::upper_fence(right);
    let prefix_len = match (lower, upper) {
        (Some(lower), Some(upper)) => node::common_prefix(lower, upper),
        _ => 0,
    };
    let entries = |page: &[u8]| {
        let fences = [node::lower_fence(page), node::upper_fence(page)];
        let fence_bytes: usize = fences.into_iter().flatten().map(<[u8]>::len).sum();
        let longer = node::prefix_len(page).saturating_sub(prefix_len);
        node::used_bytes(page) - SLOTS - fence_bytes + node::count(page) * longer
    };
    let separator = match node::lower_fence(right) {
        Some(separator) if node::level(left) > 0 => {
            separator.len() - prefix_len + CHILD_BYTES + SLOT_BYTES
        }
        _ => 0,
    };
    let fences = lower.map_or(0, <[u8]>::len) + upper.map_or(0, <[u8]>::len);
    SLOTS + fences + entries(left) + entries(right) + separator
}
