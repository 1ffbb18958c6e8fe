//! The allocation map in memory: which numbers are free, reserved, allocated or being freed.
//!
//! 1. A number is handed out only while it is free on the map page *and* its former page has been
//!    discarded: both marks of `freeing` are set before it becomes free here.
//! 2. Reserved numbers are known only here; a crash forgets them, which frees them.
//! 3. An extent is released only when no number of it is allocated, reserved or being freed; it
//!    is taken out of service (`retire`) before the record of its release is written.

use super::map_page::{self, EXTENT_PAGES, MAP_EXTENTS, MapEntry, SPACE_TREE};
use base::{PageId, TreeId};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    tree: TreeId,
    class: u8,
    /// Numbers that are not free: allocated, reserved or being freed.
    used: [u64; 4],
    /// Numbers whose bit is set on the map page.
    allocated: [u64; 4],
}

impl Extent {
    fn first_free(&self) -> Option<u8> {
        let word = self.used.iter().position(|&word| word != u64::MAX)?;
        Some((word * 64) as u8 + self.used[word].trailing_ones() as u8)
    }
}

fn set(bits: &mut [u64; 4], bit: u8, on: bool) {
    let mask = 1 << (bit % 64);
    let word = &mut bits[usize::from(bit / 64)];
    *word = if on { *word | mask } else { *word & !mask };
}

fn get(bits: &[u64; 4], bit: u8) -> bool {
    bits[usize::from(bit / 64)] >> (bit % 64) & 1 == 1
}

/// The bit on the map page is clear.
const CLEARED: u8 = 1;
/// The page was dropped from memory and mapping.
const DISCARDED: u8 = 2;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    extents: Vec<Extent>,
    free_extents: BTreeSet<u32>,
    /// Extents of a tree and class that may have free numbers.
    open: BTreeMap<(TreeId, u8), Vec<u32>>,
    freeing: BTreeMap<PageId, u8>,
    /// Allocated numbers of each tree, the map's own included.
    counts: BTreeMap<TreeId, u64>,
    /// The first map page that could not be read.
    unreadable: Option<PageId>,
}

fn bits(allocated: &[u64; 4]) -> u64 {
    allocated.iter().map(|word| u64::from(word.count_ones())).sum()
}

impl Mirror {
    fn count(&mut self, tree: TreeId, added: i64) {
        let count = self.counts.entry(tree).or_default();
        *count = count.saturating_add_signed(added);
        if *count == 0 {
            self.counts.remove(&tree);
        }
    }

    /// Adds the map page that follows the known ones, as its bytes say.
    pub(crate) fn add_map(&mut self, page: &[u8]) {
        let base = self.extents.len() as u32;
        for number in 0..MAP_EXTENTS as u16 {
            let tree = map_page::owner(page, number);
            let allocated = map_page::bitmap(page, number);
            let class = map_page::class(page, number);
            self.extents.push(Extent { tree, class, used: allocated, allocated });
            if bits(&allocated) > 0 {
                self.count(tree, bits(&allocated) as i64);
            }
            let index = base + u32::from(number);
            if tree == TreeId::ZERO {
                self.free_extents.insert(index);
            } else if tree != SPACE_TREE {
                self.open.entry((tree, class)).or_default().push(index);
            }
        }
    }

    /// Adds a map page that cannot be read: every number counts as allocated, none is handed out.
    pub(crate) fn add_unreadable_map(&mut self) {
        self.unreadable.get_or_insert(number(self.extents.len() as u32, 0));
        let all = [u64::MAX; 4];
        let extent = Extent { tree: SPACE_TREE, class: 0, used: all, allocated: all };
        self.extents.extend(std::iter::repeat_n(extent, MAP_EXTENTS as usize));
    }

    /// The first map page that could not be read, if there is one.
    pub(crate) fn unreadable_map(&self) -> Option<PageId> {
        self.unreadable
    }

    /// How many map pages are known.
    pub(crate) fn map_count(&self) -> u64 {
        self.extents.len() as u64 / MAP_EXTENTS
    }

    /// Reserves a number for the tree, or `None` when the map must grow.
    pub(crate) fn reserve(&mut self, tree: TreeId, class: u8) -> Option<PageId> {
        let open = self.open.entry((tree, class)).or_default();
        while let Some(&index) = open.last() {
            let extent = &mut self.extents[index as usize];
            if extent.tree == tree
                && extent.class == class
                && let Some(bit) = extent.first_free()
            {
                set(&mut extent.used, bit, true);
                return Some(number(index, bit));
            }
            open.pop();
        }
        let index = self.free_extents.pop_first()?;
        self.extents[index as usize] =
            Extent { tree, class, used: [1, 0, 0, 0], allocated: [0; 4] };
        open.push(index);
        Some(number(index, 0))
    }

    /// Gives back a reserved number, unless a record has allocated it meanwhile.
    pub(crate) fn unreserve(&mut self, pid: PageId) {
        let (index, bit) = split(pid);
        let extent = &mut self.extents[index as usize];
        if !get(&extent.allocated, bit) && !self.freeing.contains_key(&pid) {
            self.make_free(pid);
        }
    }

    fn make_free(&mut self, pid: PageId) {
        let (index, bit) = split(pid);
        let extent = &mut self.extents[index as usize];
        set(&mut extent.used, bit, false);
        let open = self.open.entry((extent.tree, extent.class)).or_default();
        if !open.contains(&index) {
            open.push(index);
        }
    }

    /// Owner and class of the extent that holds `pid`.
    pub(crate) fn owner(&self, pid: PageId) -> Option<(TreeId, u8)> {
        let extent = self.extents.get(split(pid).0 as usize)?;
        Some((extent.tree, extent.class))
    }

    /// Whether the number is allocated on its map page.
    pub(crate) fn is_allocated(&self, pid: PageId) -> bool {
        let (index, bit) = split(pid);
        self.extents.get(index as usize).is_some_and(|extent| get(&extent.allocated, bit))
    }

    /// The number is about to be freed by a record.
    pub(crate) fn begin_free(&mut self, pid: PageId) {
        self.freeing.insert(pid, 0);
    }

    /// The record that was to free the number was not written.
    pub(crate) fn cancel_free(&mut self, pid: PageId) {
        self.freeing.remove(&pid);
    }

    /// The page of the number was dropped.
    pub(crate) fn discarded(&mut self, pid: PageId) {
        self.progress(pid, DISCARDED);
    }

    fn progress(&mut self, pid: PageId, mark: u8) {
        if let Some(marks) = self.freeing.get_mut(&pid) {
            *marks |= mark;
            if *marks == CLEARED | DISCARDED {
                self.freeing.remove(&pid);
                self.make_free(pid);
            }
        }
    }

    /// A map page was changed by a record.
    pub(crate) fn applied(&mut self, map: PageId, entry: MapEntry) {
        let index = |extent: u16| split(map_page::first_of(map, extent)).0 as usize;
        match entry {
            MapEntry::Assign { extent, tree, class } => {
                let extent = &mut self.extents[index(extent)];
                (extent.tree, extent.class) = (tree, class);
            }
            MapEntry::Set { extent, bit, .. } => {
                let extent = &mut self.extents[index(extent)];
                let (tree, is_new) = (extent.tree, !get(&extent.allocated, bit));
                set(&mut extent.allocated, bit, true);
                set(&mut extent.used, bit, true);
                self.count(tree, i64::from(is_new));
            }
            MapEntry::Clear { extent, bit, .. } => {
                let cleared = &mut self.extents[index(extent)];
                let (tree, was_set) = (cleared.tree, get(&cleared.allocated, bit));
                set(&mut cleared.allocated, bit, false);
                self.count(tree, -i64::from(was_set));
                let first = map_page::first_of(map, extent);
                self.progress(PageId::new(first.get() + u64::from(bit)), CLEARED);
            }
            MapEntry::Release { extent, .. } => self.release(index(extent) as u32),
        }
    }

    /// The extent was released on its map page; its numbers are not handed out before
    /// [`Mirror::applied`] is told of it, too.
    pub(crate) fn unallocate(&mut self, map: PageId, extent: u16) {
        let index = split(map_page::first_of(map, extent)).0 as usize;
        let extent = &mut self.extents[index];
        let allocated = bits(&std::mem::take(&mut extent.allocated));
        let tree = extent.tree;
        self.count(tree, -(allocated as i64));
    }

    fn release(&mut self, index: u32) {
        let extent = &mut self.extents[index as usize];
        let key = (extent.tree, extent.class);
        let allocated = bits(&extent.allocated);
        *extent = Extent::default();
        self.count(key.0, -(allocated as i64));
        if let Some(open) = self.open.get_mut(&key) {
            open.retain(|&other| other != index);
        }
        self.free_extents.insert(index);
    }

    /// Extents of a tree as (map page, number within it).
    pub(crate) fn extents_of(&self, tree: TreeId) -> Vec<(PageId, u16)> {
        let owned = self.extents.iter().enumerate().filter(|(_, extent)| extent.tree == tree);
        owned
            .map(|(index, _)| {
                let first = number(index as u32, 0);
                (map_page::map_page_of(first), map_page::position_of(first).0)
            })
            .collect()
    }

    /// Takes an extent out of service while its pages are being dropped.
    pub(crate) fn retire(&mut self, map: PageId, extent: u16) {
        let index = split(map_page::first_of(map, extent)).0;
        let retired = &mut self.extents[index as usize];
        let key = (retired.tree, retired.class);
        retired.used = [u64::MAX; 4];
        if let Some(open) = self.open.get_mut(&key) {
            open.retain(|&other| other != index);
        }
    }

    /// Takes up to `limit` extents without a used number out of service, to be released.
    pub(crate) fn retire_empty(&mut self, limit: usize) -> Vec<(PageId, u16, TreeId)> {
        let empty = |extent: &&mut Extent| {
            extent.used == [0; 4] && extent.tree != TreeId::ZERO && extent.tree != SPACE_TREE
        };
        let indexed = self.extents.iter_mut().enumerate();
        let chosen = indexed.filter(|(_, extent)| empty(extent)).take(limit);
        chosen
            .map(|(index, extent)| {
                extent.used = [u64::MAX; 4];
                let first = number(index as u32, 0);
                let position = map_page::position_of(first).0;
                (map_page::map_page_of(first), position, extent.tree)
            })
            .collect()
    }

    /// A retired extent could not be released: it serves its tree again.
    pub(crate) fn restore(&mut self, map: PageId, extent: u16) {
        let first = map_page::first_of(map, extent);
        let restored = &mut self.extents[split(first).0 as usize];
        restored.used = restored.allocated;
        self.make_free(first);
    }

    /// Allocated page numbers of a tree.
    pub(crate) fn pages_of(&self, tree: TreeId) -> u64 {
        self.counts.get(&tree).copied().unwrap_or(0)
    }

    /// Allocated page numbers of all trees.
    pub(crate) fn pages(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Extents of a tree that have allocated numbers: the first number and which of them.
    pub(crate) fn allocated_of(&self, tree: TreeId) -> Vec<(PageId, [u64; 4])> {
        let owned = self.extents.iter().enumerate().filter(|(_, extent)| extent.tree == tree);
        owned.map(|(index, extent)| (number(index as u32, 0), extent.allocated)).collect()
    }

    /// Trees that own extents, the map's own excepted.
    pub(crate) fn trees(&self) -> BTreeSet<TreeId> {
        let owners = self.extents.iter().map(|extent| extent.tree);
        owners.filter(|&tree| tree != TreeId::ZERO && tree != SPACE_TREE).collect()
    }

    /// Extents without an owner.
    pub(crate) fn free_extent_count(&self) -> usize {
        self.free_extents.len()
    }
}

fn number(index: u32, bit: u8) -> PageId {
    PageId::new(u64::from(index) * EXTENT_PAGES + u64::from(bit))
}

fn split(pid: PageId) -> (u32, u8) {
    ((pid.get() / EXTENT_PAGES) as u32, (pid.get() % EXTENT_PAGES) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror() -> Mirror {
        let mut page = vec![0; 8192];
        map_page::format(&mut page);
        let mut mirror = Mirror::default();
        mirror.add_map(&page);
        mirror
    }

    fn apply_set(mirror: &mut Mirror, tree: TreeId, pid: PageId) {
        let (extent, bit) = map_page::position_of(pid);
        mirror.applied(map_page::map_page_of(pid), MapEntry::Set { extent, bit, tree });
    }

    #[test]
    fn numbers_are_dense_and_per_tree() {
        let mut mirror = mirror();
        let (one, two) = (TreeId::new(1), TreeId::new(2));
        let first: Vec<u64> =
            (0..300).map(|_| mirror.reserve(one, 13).expect("free").get()).collect();
        assert_eq!(first, (256..556).collect::<Vec<_>>());
        assert_eq!(mirror.reserve(two, 13), Some(PageId::new(768)));
        assert_eq!(mirror.reserve(one, 15), Some(PageId::new(1024)));
        assert_eq!(mirror.owner(PageId::new(300)), Some((one, 13)));
        mirror.unreserve(PageId::new(270));
        assert_eq!(mirror.reserve(one, 13), Some(PageId::new(270)), "given back, handed out");
    }

    #[test]
    fn a_freed_number_waits_for_both_marks() {
        for discard_first in [false, true] {
            let mut mirror = mirror();
            let tree = TreeId::new(1);
            let pid = mirror.reserve(tree, 13).expect("free");
            apply_set(&mut mirror, tree, pid);
            mirror.unreserve(pid);
            assert!(mirror.is_allocated(pid), "allocated numbers are not given back");
            let (extent, bit) = map_page::position_of(pid);
            let clear = MapEntry::Clear { extent, bit, tree };
            mirror.begin_free(pid);
            let map = map_page::map_page_of(pid);
            if discard_first {
                mirror.discarded(pid);
            } else {
                mirror.applied(map, clear);
            }
            assert_ne!(mirror.reserve(tree, 13), Some(pid));
            if discard_first {
                mirror.applied(map, clear);
            } else {
                mirror.discarded(pid);
            }
            assert_eq!(mirror.reserve(tree, 13), Some(pid));
        }
    }

    #[test]
    fn released_extents_serve_others() {
        let mut mirror = mirror();
        let pid = mirror.reserve(TreeId::new(1), 13).expect("free");
        assert!(mirror.retire_empty(9).is_empty());
        apply_set(&mut mirror, TreeId::new(1), pid);
        assert_eq!(mirror.pages_of(TreeId::new(1)), 1);
        let (extent, bit) = map_page::position_of(pid);
        let clear = MapEntry::Clear { extent, bit, tree: TreeId::new(1) };
        mirror.applied(map_page::map_page_of(pid), clear);
        assert_eq!(mirror.pages_of(TreeId::new(1)), 0);
        mirror.unreserve(pid);
        let map = map_page::map_page_of(pid);
        let extent = map_page::position_of(pid).0;
        assert_eq!(mirror.retire_empty(9), [(map, extent, TreeId::new(1))]);
        assert_ne!(mirror.reserve(TreeId::new(1), 13), Some(pid), "out of service");
        mirror.applied(map, MapEntry::Release { extent, tree: TreeId::new(1) });
        assert_eq!(mirror.reserve(TreeId::new(2), 14), Some(pid));
        apply_set(&mut mirror, TreeId::new(2), pid);
        mirror.retire(map, extent);
        mirror.unallocate(map, extent);
        assert!(!mirror.is_allocated(pid), "the record says so");
        assert_eq!(mirror.pages_of(TreeId::new(2)), 0);
        assert_ne!(mirror.reserve(TreeId::new(3), 14), Some(pid), "not dropped from memory yet");
        mirror.applied(map, MapEntry::Release { extent, tree: TreeId::new(2) });
        assert_eq!(mirror.extents_of(TreeId::new(2)), []);
        assert_eq!(mirror.reserve(TreeId::new(4), 14), Some(pid));
    }
}
