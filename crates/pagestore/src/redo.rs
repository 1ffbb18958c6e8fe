//! Redo ops of the page store itself (0x01..=0x0f) and of the allocation map (0x10..=0x1f).
//!
//! ```text
//! OP_FORMAT  class u8 | page type u8 | format version u8 | flags u8 | tree u32 | head length u32
//!            | head bytes from offset 32 on | the rest: bytes that end at the page's end
//! OP_PATCH   any number of: offset u16 | length u16 | bytes
//! ```
//!
//! Page number and page LSN are not in the ops: the caller sets them (`new_page`, `redo_page`
//! and `mark_dirty` do).

use crate::bytes::{u16_at, u32_at};
use crate::header::{self, HEADER_BYTES, class_is_valid};
use crate::space::{self, OP_MAP_FORMAT};
use base::TreeId;

/// Makes a page from an image; what is not given is zero.
pub const OP_FORMAT: u8 = 0x01;
/// Overwrites ranges of bytes behind the common header.
pub const OP_PATCH: u8 = 0x02;

const FORMAT_FIXED_BYTES: usize = 12;

/// What an [`OP_FORMAT`] payload describes.
#[derive(Clone, Copy, Debug)]
pub struct Format<'a> {
    /// Size class.
    pub class: u8,
    /// Page type.
    pub page_type: u8,
    /// Format version of the body.
    pub format_version: u8,
    /// Owner's flags.
    pub flags: u8,
    /// Owning tree.
    pub tree: TreeId,
    /// Bytes of the body from its start.
    pub head: &'a [u8],
    /// Bytes of the body up to its end.
    pub tail: &'a [u8],
}

impl Format<'_> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.class, self.page_type, self.format_version, self.flags]);
        out.extend_from_slice(&self.tree.get().to_le_bytes());
        out.extend_from_slice(&(self.head.len() as u32).to_le_bytes());
        out.extend_from_slice(self.head);
        out.extend_from_slice(self.tail);
    }
}

/// Appends one range of an [`OP_PATCH`] payload. At most 64 KiB less one byte.
pub fn encode_patch(offset: usize, bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(offset as u16).to_le_bytes());
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Whether an op of this room makes its page anew, whatever stood there; redo then asks for the
/// page with [`format_class`].
pub fn is_format(op: u8) -> bool {
    op == OP_FORMAT || op == OP_MAP_FORMAT
}

/// Size class that a format op asks for.
pub fn format_class(op: u8, payload: &[u8]) -> Option<u8> {
    match op {
        OP_FORMAT => payload.first().copied(),
        OP_MAP_FORMAT => Some(space::MAP_CLASS),
        _ => None,
    }
}

/// Applies an op to a page: the same code for the first time and for recovery. Errors mean a
/// damaged log or page; the page may then be half changed.
pub fn apply(page: &mut [u8], op: u8, payload: &[u8]) -> Result<(), &'static str> {
    match op {
        OP_FORMAT => apply_format(page, payload),
        OP_PATCH => apply_patch(page, payload),
        0x10..=0x1f => space::apply(page, op, payload),
        _ => Err("unknown op of the page store"),
    }
}

fn apply_format(page: &mut [u8], payload: &[u8]) -> Result<(), &'static str> {
    let rest = payload.get(FORMAT_FIXED_BYTES..).ok_or("format op is cut off")?;
    let class = payload[0];
    if !class_is_valid(class) || header::class_bytes(class) != page.len() {
        return Err("format op of another size class");
    }
    let head_bytes = u32_at(payload, 8) as usize;
    let (head, tail) = rest.split_at_checked(head_bytes).ok_or("format op is cut off")?;
    if head.len() + tail.len() > page.len() - HEADER_BYTES {
        return Err("format op is longer than its page");
    }
    page[HEADER_BYTES..].fill(0);
    header::set_class(page, class);
    header::set_page_type(page, payload[1]);
    header::set_format_version(page, payload[2]);
    header::set_flags(page, payload[3]);
    header::set_tree(page, TreeId::new(u32_at(payload, 4)));
    page[HEADER_BYTES..HEADER_BYTES + head.len()].copy_from_slice(head);
    let start = page.len() - tail.len();
    page[start..].copy_from_slice(tail);
    Ok(())
}

fn apply_patch(page: &mut [u8], payload: &[u8]) -> Result<(), &'static str> {
    let mut rest = payload;
    while !rest.is_empty() {
        if rest.len() < 4 {
            return Err("patch op is cut off");
        }
        let (offset, length) = (u16_at(rest, 0) as usize, u16_at(rest, 2) as usize);
        let bytes = rest.get(4..4 + length).ok_or("patch op is cut off")?;
        if offset < HEADER_BYTES {
            return Err("patch op changes the common header");
        }
        let target = page.get_mut(offset..offset + length).ok_or("patch op leaves its page")?;
        target.copy_from_slice(bytes);
        rest = &rest[4 + length..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_and_patch() {
        let mut page = vec![0xEE; 4096];
        header::set_pid(&mut page, base::PageId::new(9));
        let format = Format {
            class: 12,
            page_type: 3,
            format_version: 1,
            flags: 4,
            tree: TreeId::new(8),
            head: b"head",
            tail: b"tail",
        };
        let mut payload = Vec::new();
        format.encode(&mut payload);
        apply(&mut page, OP_FORMAT, &payload).expect("applies");
        assert_eq!((&page[32..36], &page[4092..]), (&b"head"[..], &b"tail"[..]));
        assert!(page[36..4092].iter().all(|&byte| byte == 0));
        assert_eq!((header::raw_pid(&page), header::tree(&page)), (9, TreeId::new(8)));
        assert!(is_format(OP_FORMAT) && format_class(OP_FORMAT, &payload) == Some(12));
        let mut patch = Vec::new();
        encode_patch(100, b"abc", &mut patch);
        encode_patch(4000, b"z", &mut patch);
        apply(&mut page, OP_PATCH, &patch).expect("applies");
        assert_eq!((&page[100..103], page[4000]), (&b"abc"[..], b'z'));
    }

    #[test]
    fn damaged_payloads_are_errors() {
        let mut random = base::Random::new(6);
        let mut page = vec![0; 4096];
        for _ in 0..50_000 {
            let mut payload = vec![0; random.index(40)];
            random.fill(&mut payload);
            for byte in &mut payload {
                if random.one_in(2) {
                    *byte &= 0x1F;
                }
            }
            let _ = apply(&mut page, random.below(0x20) as u8, &payload);
        }
        assert!(apply(&mut page, OP_PATCH, &[10, 0, 1, 0, 5]).is_err(), "the common header");
        assert!(apply(&mut page, OP_PATCH, &[0xFF, 0x0F, 2, 0, 5, 5]).is_err(), "beyond the end");
    }
}
