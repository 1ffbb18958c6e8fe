//! The common page header: the first 32 bytes of every page, whoever owns its body.
//!
//! ```text
//! offset size field
//!      0    8 page_lsn        END of the log record that changed the page last
//!      8    8 pid             the page's own number (48 bits used)
//!     16    4 tree            owner
//!     20    1 page type       meaning belongs to the owner
//!     21    1 format version  of the body, belongs to the owner
//!     22    1 class           log2 of the page's size
//!     23    1 flags           belongs to the owner
//!     24    8 reserved (0)
//!     32      body
//! ```

use base::{Lsn, PageId, TreeId};

/// Offset of the page LSN.
pub const PAGE_LSN_OFFSET: usize = 0;
/// Offset of the page number.
pub const PID_OFFSET: usize = PAGE_LSN_OFFSET + 8;
/// Offset of the owning tree.
pub const TREE_OFFSET: usize = PID_OFFSET + 8;
/// Offset of the page type.
pub const TYPE_OFFSET: usize = TREE_OFFSET + 4;
/// Offset of the body's format version.
pub const FORMAT_VERSION_OFFSET: usize = TYPE_OFFSET + 1;
/// Offset of the size class.
pub const CLASS_OFFSET: usize = FORMAT_VERSION_OFFSET + 1;
/// Offset of the owner's flags.
pub const FLAGS_OFFSET: usize = CLASS_OFFSET + 1;
/// Bytes of the header; the body starts here.
pub const HEADER_BYTES: usize = FLAGS_OFFSET + 1 + 8;

/// Smallest size class: 4 KiB.
pub const CLASS_MIN: u8 = 12;
/// Largest size class: 32 KiB (amendment 11).
pub const CLASS_MAX: u8 = 15;
/// How many size classes there are.
pub const CLASS_COUNT: usize = (CLASS_MAX - CLASS_MIN) as usize + 1;

/// Page size of a class, in bytes.
#[inline]
pub const fn class_bytes(class: u8) -> usize {
    1 << class
}

/// Whether pages of this class exist.
#[inline]
pub const fn class_is_valid(class: u8) -> bool {
    class >= CLASS_MIN && class <= CLASS_MAX
}

fn read<const N: usize>(page: &[u8], offset: usize) -> [u8; N] {
    page.get(offset..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}

fn write(page: &mut [u8], offset: usize, bytes: &[u8]) {
    page[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// LSN of the page: the end of the record that changed it last; zero on a fresh page.
pub fn page_lsn(page: &[u8]) -> Lsn {
    Lsn::new(u64::from_le_bytes(read(page, PAGE_LSN_OFFSET)))
}

/// Sets the page's LSN. Owners use `ExclusivePage::mark_dirty`; this is for redo and scratch.
pub fn set_page_lsn(page: &mut [u8], lsn: Lsn) {
    write(page, PAGE_LSN_OFFSET, &lsn.get().to_le_bytes());
}

/// Number of the page, as raw as it stands there (may exceed 48 bits on a damaged page).
pub fn raw_pid(page: &[u8]) -> u64 {
    u64::from_le_bytes(read(page, PID_OFFSET))
}

/// Sets the page's number.
pub fn set_pid(page: &mut [u8], pid: PageId) {
    write(page, PID_OFFSET, &pid.get().to_le_bytes());
}

/// Tree that owns the page.
pub fn tree(page: &[u8]) -> TreeId {
    TreeId::new(u32::from_le_bytes(read(page, TREE_OFFSET)))
}

/// Sets the tree that owns the page.
pub fn set_tree(page: &mut [u8], tree: TreeId) {
    write(page, TREE_OFFSET, &tree.get().to_le_bytes());
}

/// Type of the page, as its owner defines it.
pub fn page_type(page: &[u8]) -> u8 {
    read::<1>(page, TYPE_OFFSET)[0]
}

/// Sets the type of the page.
pub fn set_page_type(page: &mut [u8], page_type: u8) {
    write(page, TYPE_OFFSET, &[page_type]);
}

/// Format version of the body.
pub fn format_version(page: &[u8]) -> u8 {
    read::<1>(page, FORMAT_VERSION_OFFSET)[0]
}

/// Sets the format version of the body.
pub fn set_format_version(page: &mut [u8], version: u8) {
    write(page, FORMAT_VERSION_OFFSET, &[version]);
}

/// Size class of the page: log2 of its bytes.
pub fn class(page: &[u8]) -> u8 {
    read::<1>(page, CLASS_OFFSET)[0]
}

/// Sets the size class in the header (the frame must have that size).
pub fn set_class(page: &mut [u8], class: u8) {
    write(page, CLASS_OFFSET, &[class]);
}

/// Flags of the page, as its owner defines them.
pub fn flags(page: &[u8]) -> u8 {
    read::<1>(page, FLAGS_OFFSET)[0]
}

/// Sets the owner's flags.
pub fn set_flags(page: &mut [u8], flags: u8) {
    write(page, FLAGS_OFFSET, &[flags]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_overlap() {
        let mut page = vec![0u8; 64];
        set_page_lsn(&mut page, Lsn::new(0x1122_3344_5566_7788));
        set_pid(&mut page, PageId::new(0xA1B2_C3D4_E5F6));
        set_tree(&mut page, TreeId::new(77));
        set_page_type(&mut page, 3);
        set_format_version(&mut page, 4);
        set_class(&mut page, 13);
        set_flags(&mut page, 0x80);
        assert_eq!(page_lsn(&page), Lsn::new(0x1122_3344_5566_7788));
        assert_eq!(raw_pid(&page), 0xA1B2_C3D4_E5F6);
        assert_eq!(tree(&page), TreeId::new(77));
        assert_eq!(
            (page_type(&page), format_version(&page), class(&page), flags(&page)),
            (3, 4, 13, 0x80)
        );
        assert_eq!(HEADER_BYTES, 32);
        assert!(page[24..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn short_pages_read_as_zero() {
        assert_eq!(page_lsn(&[1, 2, 3]), Lsn::ZERO);
        assert_eq!(class(&[]), 0);
    }
}
