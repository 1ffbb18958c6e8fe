//! Pages of the allocation map, byte by byte.
//!
//! Map page number k is page k * 51,200 and describes the page numbers from there on: 200 extents
//! of 256 numbers. Its size class is 8 KiB.
//!
//! ```text
//! offset size field
//!      0   32 common page header (tree = SPACE_TREE, type = 1, format version = 1)
//!     32    2 numbers per extent (256)
//!     34    2 extents (200)
//!     36    4 reserved (0)
//!     40   40 * 200 extents: owner tree u32 (0 = free) | class u8 | reserved 3 | bitmap 32 bytes
//! ```
//!
//! Bit b of an extent's bitmap, counted from the lowest bit of the first byte, is set while the
//! page number `first + b` is allocated. Extent 0 belongs to the map; its bit 0 is the map page.
//!
//! Redo ops: [`OP_MAP_FORMAT`] (no payload) makes an empty map page; [`OP_MAP_CHANGE`] has entries
//! of 8 bytes: `kind u8 | bit or class u8 | extent u16 | tree u32`.

use crate::header::{self, HEADER_BYTES};
use base::{PageId, TreeId};

/// Owner of the map pages themselves.
pub const SPACE_TREE: TreeId = TreeId(u32::MAX);
/// Size class of map pages.
pub const MAP_CLASS: u8 = 13;
/// Page numbers in an extent.
pub const EXTENT_PAGES: u64 = 256;
/// Extents described by one map page.
pub const MAP_EXTENTS: u64 = 200;
/// Page numbers described by one map page.
pub const MAP_PAGES: u64 = EXTENT_PAGES * MAP_EXTENTS;

/// Makes an empty map page.
pub const OP_MAP_FORMAT: u8 = 0x10;
/// Changes entries of a map page.
pub const OP_MAP_CHANGE: u8 = 0x11;

const PAGE_TYPE_MAP: u8 = 1;
const ENTRIES_OFFSET: usize = HEADER_BYTES + 8;
const ENTRY_BYTES: usize = 40;
const BITMAP_OFFSET: usize = 8;
const CHANGE_BYTES: usize = 8;

/// One change of a map page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapEntry {
    /// A free extent gets an owner.
    Assign { extent: u16, tree: TreeId, class: u8 },
    /// A number of an owned extent is allocated.
    Set { extent: u16, bit: u8, tree: TreeId },
    /// A number is freed.
    Clear { extent: u16, bit: u8, tree: TreeId },
    /// The extent and every number in it become free.
    Release { extent: u16, tree: TreeId },
}

impl MapEntry {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let (kind, small, extent, tree) = match self {
            MapEntry::Assign { extent, tree, class } => (1, class, extent, tree),
            MapEntry::Set { extent, bit, tree } => (2, bit, extent, tree),
            MapEntry::Clear { extent, bit, tree } => (3, bit, extent, tree),
            MapEntry::Release { extent, tree } => (4, 0, extent, tree),
        };
        out.extend_from_slice(&[kind, small]);
        out.extend_from_slice(&extent.to_le_bytes());
        out.extend_from_slice(&tree.get().to_le_bytes());
    }

    fn decode(bytes: &[u8; CHANGE_BYTES]) -> Result<MapEntry, &'static str> {
        let small = bytes[1];
        let extent = u16::from_le_bytes([bytes[2], bytes[3]]);
        let tree = TreeId::new(u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]));
        if u64::from(extent) >= MAP_EXTENTS {
            return Err("map change names no extent");
        }
        match bytes[0] {
            1 => Ok(MapEntry::Assign { extent, tree, class: small }),
            2 => Ok(MapEntry::Set { extent, bit: small, tree }),
            3 => Ok(MapEntry::Clear { extent, bit: small, tree }),
            4 => Ok(MapEntry::Release { extent, tree }),
            _ => Err("unknown map change"),
        }
    }
}

/// The entries of an [`OP_MAP_CHANGE`] payload.
pub(crate) fn entries(
    payload: &[u8],
) -> Result<impl Iterator<Item = Result<MapEntry, &'static str>>, &'static str> {
    let (chunks, rest) = payload.as_chunks::<CHANGE_BYTES>();
    if rest.is_empty() {
        Ok(chunks.iter().map(MapEntry::decode))
    } else {
        Err("map change payload is not a list of entries")
    }
}

/// Number of the map page that describes `pid`.
pub(crate) fn map_page_of(pid: PageId) -> PageId {
    PageId::new(pid.get() / MAP_PAGES * MAP_PAGES)
}

/// Extent and bit of `pid` within its map page.
pub(crate) fn position_of(pid: PageId) -> (u16, u8) {
    let within = pid.get() % MAP_PAGES;
    ((within / EXTENT_PAGES) as u16, (within % EXTENT_PAGES) as u8)
}

/// First page number of an extent.
pub(crate) fn first_of(map: PageId, extent: u16) -> PageId {
    PageId::new(map.get() + u64::from(extent) * EXTENT_PAGES)
}

/// Turns a zeroed page with its number and class into an empty map page.
pub(crate) fn format(page: &mut [u8]) {
    header::set_tree(page, SPACE_TREE);
    header::set_page_type(page, PAGE_TYPE_MAP);
    header::set_format_version(page, 1);
    page[HEADER_BYTES..].fill(0);
    page[HEADER_BYTES..HEADER_BYTES + 2].copy_from_slice(&(EXTENT_PAGES as u16).to_le_bytes());
    page[HEADER_BYTES + 2..HEADER_BYTES + 4].copy_from_slice(&(MAP_EXTENTS as u16).to_le_bytes());
    set_owner(page, 0, SPACE_TREE, MAP_CLASS);
    page[entry_offset(0) + BITMAP_OFFSET] = 1;
}

fn entry_offset(extent: u16) -> usize {
    ENTRIES_OFFSET + usize::from(extent) * ENTRY_BYTES
}

fn set_owner(page: &mut [u8], extent: u16, tree: TreeId, class: u8) {
    let offset = entry_offset(extent);
    page[offset..offset + 4].copy_from_slice(&tree.get().to_le_bytes());
    page[offset + 4] = class;
}

/// Owner of an extent; zero when it is free.
pub(crate) fn owner(page: &[u8], extent: u16) -> TreeId {
    let offset = entry_offset(extent);
    let bytes = page[offset..].first_chunk::<4>().copied().unwrap_or([0; 4]);
    TreeId::new(u32::from_le_bytes(bytes))
}

/// Size class of an extent's pages.
pub(crate) fn class(page: &[u8], extent: u16) -> u8 {
    page[entry_offset(extent) + 4]
}

/// Which numbers of an extent are allocated.
pub(crate) fn bitmap(page: &[u8], extent: u16) -> [u64; 4] {
    let offset = entry_offset(extent) + BITMAP_OFFSET;
    std::array::from_fn(|word| {
        let bytes = page[offset + word * 8..].first_chunk::<8>().copied().unwrap_or([0; 8]);
        u64::from_le_bytes(bytes)
    })
}

/// Applies one redo op to a map page: the same code for the first time and for recovery.
pub(crate) fn apply(page: &mut [u8], op: u8, payload: &[u8]) -> Result<(), &'static str> {
    if page.len() != header::class_bytes(MAP_CLASS) {
        return Err("a map page has 8 KiB");
    }
    match op {
        OP_MAP_FORMAT => {
            format(page);
            Ok(())
        }
        OP_MAP_CHANGE => {
            for entry in entries(payload)? {
                apply_entry(page, entry?)?;
            }
            Ok(())
        }
        _ => Err("unknown op for a map page"),
    }
}

/// Applies one entry; see [`apply`].
pub(crate) fn apply_entry(page: &mut [u8], entry: MapEntry) -> Result<(), &'static str> {
    match entry {
        MapEntry::Assign { extent, tree, class } => {
            if owner(page, extent) != TreeId::ZERO || !header::class_is_valid(class) {
                return Err("an extent with an owner is assigned");
            }
            set_owner(page, extent, tree, class);
        }
        MapEntry::Set { extent, bit, tree } => change_bit(page, extent, bit, tree, true)?,
        MapEntry::Clear { extent, bit, tree } => change_bit(page, extent, bit, tree, false)?,
        MapEntry::Release { extent, tree } => {
            if tree == TreeId::ZERO || owner(page, extent) != tree {
                return Err("an extent of another tree is released");
            }
            let offset = entry_offset(extent);
            page[offset..offset + ENTRY_BYTES].fill(0);
        }
    }
    Ok(())
}

fn change_bit(
    page: &mut [u8],
    extent: u16,
    bit: u8,
    tree: TreeId,
    set: bool,
) -> Result<(), &'static str> {
    if tree == TreeId::ZERO || owner(page, extent) != tree {
        return Err("a page number of another tree is changed");
    }
    let byte = &mut page[entry_offset(extent) + BITMAP_OFFSET + usize::from(bit / 8)];
    let mask = 1 << (bit % 8);
    if (*byte & mask != 0) == set {
        return Err("a page number is allocated or freed twice");
    }
    *byte ^= mask;
    Ok(())
}

/// Whether a page is an intact map page, beyond its checksum.
pub(crate) fn check(page: &[u8]) -> Result<(), &'static str> {
    if page.len() != header::class_bytes(MAP_CLASS)
        || header::page_type(page) != PAGE_TYPE_MAP
        || header::tree(page) != SPACE_TREE
    {
        return Err("not a page of the allocation map");
    }
    let number = |offset: usize| u16::from_le_bytes([page[offset], page[offset + 1]]);
    if u64::from(number(HEADER_BYTES)) != EXTENT_PAGES
        || u64::from(number(HEADER_BYTES + 2)) != MAP_EXTENTS
    {
        return Err("an allocation map of another geometry");
    }
    for extent in 0..MAP_EXTENTS as u16 {
        let free = owner(page, extent) == TreeId::ZERO;
        if free && bitmap(page, extent) != [0; 4] {
            return Err("allocated numbers in a free extent");
        }
        if !free && !header::class_is_valid(class(page, extent)) {
            return Err("an extent of an unknown size class");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Vec<u8> {
        let mut page = vec![0; 8192];
        apply(&mut page, OP_MAP_FORMAT, &[]).expect("format");
        page
    }

    fn payload(entries: &[MapEntry]) -> Vec<u8> {
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| entry.encode(&mut bytes));
        bytes
    }

    #[test]
    fn entries_end_within_the_page() {
        assert!(entry_offset(MAP_EXTENTS as u16) <= 8192);
        check(&empty()).expect("an empty map page is intact");
    }

    #[test]
    fn allocate_free_release() {
        let tree = TreeId::new(7);
        let mut page = empty();
        let first = payload(&[
            MapEntry::Assign { extent: 3, tree, class: 14 },
            MapEntry::Set { extent: 3, bit: 200, tree },
        ]);
        apply(&mut page, OP_MAP_CHANGE, &first).expect("applies");
        assert_eq!((owner(&page, 3), class(&page, 3)), (tree, 14));
        assert_eq!(bitmap(&page, 3), [0, 0, 0, 1 << 8]);
        assert!(apply(&mut page, OP_MAP_CHANGE, &first).is_err(), "assigned twice");
        let clear = payload(&[MapEntry::Clear { extent: 3, bit: 200, tree }]);
        apply(&mut page, OP_MAP_CHANGE, &clear).expect("applies");
        assert!(apply(&mut page, OP_MAP_CHANGE, &clear).is_err(), "freed twice");
        let release = payload(&[MapEntry::Release { extent: 3, tree }]);
        apply(&mut page, OP_MAP_CHANGE, &release).expect("applies");
        assert_eq!(page, empty());
    }

    #[test]
    fn numbers_of_nobody_are_not_changed() {
        let nobody = TreeId::ZERO;
        for entry in [
            MapEntry::Set { extent: 3, bit: 9, tree: nobody },
            MapEntry::Clear { extent: 3, bit: 9, tree: nobody },
            MapEntry::Release { extent: 3, tree: nobody },
        ] {
            let mut page = empty();
            assert!(apply(&mut page, OP_MAP_CHANGE, &payload(&[entry])).is_err(), "{entry:?}");
            assert_eq!(page, empty());
        }
    }

    #[test]
    fn positions() {
        let pid = PageId::new(2 * MAP_PAGES + 5 * 256 + 17);
        assert_eq!(map_page_of(pid), PageId::new(2 * MAP_PAGES));
        assert_eq!(position_of(pid), (5, 17));
        assert_eq!(first_of(map_page_of(pid), 5).get() + 17, pid.get());
    }

    #[test]
    fn damaged_payloads_are_errors() {
        let mut random = base::Random::new(11);
        for _ in 0..20_000 {
            let length = (random.next_u64() % 33) as usize;
            let bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8 % 5).collect();
            let mut page = empty();
            let _ = apply(&mut page, OP_MAP_CHANGE, &bytes);
            assert!(apply(&mut page, random.next_u64() as u8 | 0x40, &bytes).is_err());
        }
    }
}
