//! The page ops of the tree: how each is encoded into a log record and applied to a page.
//!
//! 1. [`apply`] is the one code path: the forward run encodes an op, applies exactly those bytes to
//!    the latched page, and appends the record; recovery applies the same bytes again.
//! 2. `apply` is deterministic in page body and payload, so a page redone from an older image is
//!    byte-identical to the one that was lost (page LSN and page number apart, which the page
//!    store writes).
//! 3. `apply` checks every bound: damaged pages or payloads are an error, never a panic.
//! 4. An op for which [`is_format`] holds ignores what the page held before.
//!
//! The payloads byte by byte are in `docs/file-format.md`.

use crate::build;
use crate::edit::{self, EditError, Patch};
use crate::layout::*;
use crate::node;
use crate::overflow;
use crate::page_read::PageRead;
use crate::scratch;
use base::TreeId;
use pagestore::header::{self, HEADER_BYTES};

/// Op codes, within the range 0x20..=0x4f of the log's table.
pub mod op {
    /// Insert a leaf entry.
    pub const INSERT_ENTRY: u8 = 0x20;
    /// Replace flags, word and a range of the payload of a leaf entry.
    pub const REPLACE_ENTRY: u8 = 0x21;
    /// Set flags and word of a leaf entry.
    pub const SET_HEADER: u8 = 0x22;
    /// Remove a leaf entry.
    pub const REMOVE_ENTRY: u8 = 0x23;
    /// Insert a separator and the child right of it.
    pub const INSERT_CHILD: u8 = 0x24;
    /// Remove a separator and the child right of it.
    pub const REMOVE_CHILD: u8 = 0x25;
    /// Cut a node down to its first slots (the left half of a split).
    pub const TRUNCATE: u8 = 0x26;
    /// Take over the entries of the right neighbour (merge).
    pub const ABSORB: u8 = 0x27;
    /// Write a whole node: a new page, or a root that grows or shrinks. Formats.
    pub const BUILD: u8 = 0x28;
    /// Write a page of an overflow value. Formats.
    pub const OVERFLOW: u8 = 0x29;
}

/// Page types in the common header.
pub mod page_type {
    /// A leaf.
    pub const LEAF: u8 = 0x20;
    /// An inner node.
    pub const INNER: u8 = 0x21;
    /// A page of an overflow value, data or index.
    pub const OVERFLOW: u8 = 0x22;
}

/// Version of the node and overflow formats, in the common header.
pub const FORMAT_VERSION: u8 = 1;

/// Whether the op writes the whole page regardless of its former content.
pub const fn is_format(op: u8) -> bool {
    matches!(op, op::BUILD | op::OVERFLOW)
}

/// Size class of the page that a format op writes, for recovery to make the page. `None` for other
/// ops and malformed payloads.
pub fn format_class(op: u8, payload: &[u8]) -> Option<u8> {
    let class = *payload.get(4)?;
    (is_format(op) && header::class_is_valid(class)).then_some(class)
}

/// Why an op could not be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedoError {
    /// The op code is not one of the tree's.
    #[error("unknown b-tree op {0:#04x}")]
    UnknownOp(u8),
    /// The payload is too short or does not make sense.
    #[error("payload of b-tree op {0:#04x} is malformed")]
    Payload(u8),
    /// The page does not take the edit.
    #[error(transparent)]
    Edit(#[from] EditError),
}

/// Splits a payload from the front.
struct Fields<'a> {
    op: u8,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], RedoError> {
        let (front, rest) =
            self.rest.split_at_checked(length).ok_or(RedoError::Payload(self.op))?;
        self.rest = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RedoError> {
        let (front, rest) =
            self.rest.split_first_chunk::<N>().ok_or(RedoError::Payload(self.op))?;
        self.rest = rest;
        Ok(*front)
    }

    fn u8(&mut self) -> Result<u8, RedoError> {
        self.array::<1>().map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Result<usize, RedoError> {
        self.array().map(|bytes| usize::from(u16::from_le_bytes(bytes)))
    }

    fn u32(&mut self) -> Result<u32, RedoError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Tree of a format op, whose class must be the page's.
    fn format(&mut self, page_bytes: usize) -> Result<TreeId, RedoError> {
        let (tree, class) = (self.u32()?, self.u8()?);
        let matches = u32::from(class) == page_bytes.trailing_zeros();
        if matches { Ok(TreeId::new(tree)) } else { Err(RedoError::Payload(self.op)) }
    }

    fn u64(&mut self) -> Result<u64, RedoError> {
        self.array().map(u64::from_le_bytes)
    }

    fn u48(&mut self) -> Result<u64, RedoError> {
        let low: [u8; 6] = self.array()?;
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&low);
        Ok(u64::from_le_bytes(bytes))
    }
}

fn put_u16(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(&(value as u16).to_le_bytes());
}

/// Encodes [`op::INSERT_ENTRY`].
pub fn encode_insert(
    out: &mut Vec<u8>,
    index: usize,
    suffix: &[u8],
    (flags, word): (u8, u64),
    payload: &[u8],
) {
    put_u16(out, index);
    put_u16(out, suffix.len());
    out.push(flags);
    out.extend_from_slice(&word.to_le_bytes());
    out.extend_from_slice(suffix);
    out.extend_from_slice(payload);
}

/// Encodes [`op::REPLACE_ENTRY`].
pub fn encode_replace(out: &mut Vec<u8>, index: usize, (flags, word): (u8, u64), patch: Patch<'_>) {
    put_u16(out, index);
    out.push(flags);
    out.extend_from_slice(&word.to_le_bytes());
    put_u16(out, patch.new_len);
    put_u16(out, patch.keep_front);
    out.extend_from_slice(patch.middle);
}

/// Encodes [`op::SET_HEADER`].
pub fn encode_set_header(out: &mut Vec<u8>, index: usize, flags: u8, word: u64) {
    put_u16(out, index);
    out.push(flags);
    out.extend_from_slice(&word.to_le_bytes());
}

/// Encodes [`op::REMOVE_ENTRY`] and [`op::REMOVE_CHILD`].
pub fn encode_remove(out: &mut Vec<u8>, index: usize) {
    put_u16(out, index);
}

/// Encodes [`op::INSERT_CHILD`].
pub fn encode_insert_child(out: &mut Vec<u8>, index: usize, suffix: &[u8], right: u64) {
    put_u16(out, index);
    out.extend_from_slice(&right.to_le_bytes()[..6]);
    out.extend_from_slice(suffix);
}

/// Encodes [`op::TRUNCATE`].
pub fn encode_truncate(out: &mut Vec<u8>, keep: usize, upper: &[u8]) {
    put_u16(out, keep);
    out.extend_from_slice(upper);
}

/// Encodes [`op::BUILD`]: the node `page`, whose dead bytes are left out. `page` is best compact.
pub fn encode_build(out: &mut Vec<u8>, tree: TreeId, page: &[u8]) {
    encode_format(out, tree, page.len());
    encode_image(out, page);
}

/// What the payload of every format op begins with.
pub(crate) fn encode_format(out: &mut Vec<u8>, tree: TreeId, page_bytes: usize) {
    out.extend_from_slice(&tree.get().to_le_bytes());
    out.push(page_bytes.trailing_zeros() as u8);
}

/// Encodes [`op::ABSORB`] with the right neighbour's node.
pub fn encode_absorb(out: &mut Vec<u8>, right: &[u8]) {
    encode_image(out, right);
}

/// Node image: everything from the node header to the last slot, then the heap.
fn encode_image(out: &mut Vec<u8>, page: &[u8]) {
    let slots_end = SLOTS + SLOT_BYTES * node::count(page);
    let heap = usize::from(page.u16_at(HEAP)).clamp(slots_end, page.len());
    out.extend_from_slice(&page[HEADER_BYTES..slots_end]);
    out.extend_from_slice(&page[heap..]);
}

/// Expands a node image into `page`, zeroing the gap. The common header is left alone.
fn expand_image(page: &mut [u8], op: u8, image: &[u8]) -> Result<(), RedoError> {
    let fixed = SLOTS - HEADER_BYTES;
    if image.len() < fixed || page.len() < SLOTS {
        return Err(RedoError::Payload(op));
    }
    let at = |offset: usize| image.u16_at(offset - HEADER_BYTES);
    let slots_end = SLOTS + SLOT_BYTES * usize::from(at(COUNT));
    let heap = usize::from(at(HEAP));
    let front = slots_end - HEADER_BYTES;
    let fits = slots_end <= heap
        && heap <= page.len()
        && front <= image.len()
        && image.len() - front == page.len() - heap;
    if !fits {
        return Err(RedoError::Payload(op));
    }
    page[HEADER_BYTES..slots_end].copy_from_slice(&image[..front]);
    page[slots_end..heap].fill(0);
    page[heap..].copy_from_slice(&image[front..]);
    node::check(page).map_err(|_| RedoError::Payload(op))
}

/// Writes the owner's fields of the common header; number and LSN are the page store's.
pub(crate) fn write_header(page: &mut [u8], tree: TreeId, page_type: u8) {
    header::set_tree(page, tree);
    header::set_page_type(page, page_type);
    header::set_format_version(page, FORMAT_VERSION);
    let class = page.len().trailing_zeros() as u8;
    header::set_class(page, class);
    header::set_flags(page, 0);
}

fn build(page: &mut [u8], tree: TreeId, image: &[u8]) -> Result<(), RedoError> {
    scratch::with(page.len(), |fresh| {
        expand_image(fresh, op::BUILD, image)?;
        page[HEADER_BYTES..].copy_from_slice(&fresh[HEADER_BYTES..]);
        let kind = if node::level(page) == 0 { page_type::LEAF } else { page_type::INNER };
        write_header(page, tree, kind);
        Ok(())
    })
}

fn absorb(page: &mut [u8], image: &[u8]) -> Result<(), RedoError> {
    scratch::with(page.len(), |right| {
        expand_image(right, op::ABSORB, image)?;
        Ok(build::absorb(page, right)?)
    })
}

/// Applies one op to a page. `page` is the whole page, common header included. On an error the
/// page is as it was.
pub fn apply(page: &mut [u8], op: u8, payload: &[u8]) -> Result<(), RedoError> {
    let mut fields = Fields { op, rest: payload };
    if page.len() < SLOTS {
        return Err(EditError::Damaged("page too small").into());
    }
    match op {
        op::INSERT_ENTRY => {
            let (index, suffix_len) = (fields.u16()?, fields.u16()?);
            let header = (fields.u8()?, fields.u64()?);
            let suffix = fields.bytes(suffix_len)?;
            edit::insert_leaf(page, index, suffix, header, fields.rest)?;
        }
        op::REPLACE_ENTRY => {
            let index = fields.u16()?;
            let header = (fields.u8()?, fields.u64()?);
            let (new_len, keep_front) = (fields.u16()?, fields.u16()?);
            edit::replace(page, index, header, Patch { new_len, keep_front, middle: fields.rest })?;
        }
        op::SET_HEADER => {
            edit::set_header(page, fields.u16()?, fields.u8()?, fields.u64()?)?;
        }
        op::REMOVE_ENTRY => edit::remove(page, fields.u16()?)?,
        op::INSERT_CHILD => {
            let (index, right) = (fields.u16()?, fields.u48()?);
            edit::insert_child(page, index, fields.rest, right)?;
        }
        op::REMOVE_CHILD => edit::remove_child(page, fields.u16()?)?,
        op::TRUNCATE => build::truncate(page, fields.u16()?, fields.rest)?,
        op::ABSORB => absorb(page, fields.rest)?,
        op::BUILD => build(page, fields.format(page.len())?, fields.rest)?,
        op::OVERFLOW => overflow::apply(page, fields.format(page.len())?, fields.rest)?,
        _ => return Err(RedoError::UnknownOp(op)),
    }
    Ok(())
}
