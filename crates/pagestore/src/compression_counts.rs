//! What compressing pages took, for trees that are counted by themselves: those of tables with
//! `ROW_FORMAT=COMPRESSED`, as INNODB_CMP and INNODB_CMP_PER_INDEX show it.
//!
//! 1. A counted tree belongs to a class: by InnoDB's measure, how large its compressed pages are
//!    to be. What its pages took is added to the tree's counts and to those of its class, which
//!    outlive the tree.
//! 2. Where no tree is counted, a page costs one load of an atomic.

use crate::store::{PageStore, Shared};
use base::TreeId;
use runtime::sync::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Classes of counted trees.
pub const COUNTED_CLASSES: usize = 5;

/// What compression has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompressionCounts {
    /// Full copies of pages that a codec was tried on ...
    pub tried_pages: u64,
    /// ... those of them that were written compressed, since that gained something ...
    pub compressed_pages: u64,
    /// ... and nanoseconds of all tries.
    pub compress_nanos: u64,
    /// Full copies that were decompressed ...
    pub decompressed_pages: u64,
    /// ... and nanoseconds that took.
    pub decompress_nanos: u64,
}

#[derive(Debug, Default)]
struct Counts {
    tried_pages: AtomicU64,
    compressed_pages: AtomicU64,
    compress_nanos: AtomicU64,
    decompressed_pages: AtomicU64,
    decompress_nanos: AtomicU64,
}

impl Counts {
    fn note_tried(&self, is_compressed: bool, nanos: u64) {
        self.tried_pages.fetch_add(1, Ordering::Relaxed);
        self.compressed_pages.fetch_add(u64::from(is_compressed), Ordering::Relaxed);
        self.compress_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    fn note_decompressed(&self, nanos: u64) {
        self.decompressed_pages.fetch_add(1, Ordering::Relaxed);
        self.decompress_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    fn read(&self, resets: bool) -> CompressionCounts {
        let read = |count: &AtomicU64| match resets {
            true => count.swap(0, Ordering::Relaxed),
            false => count.load(Ordering::Relaxed),
        };
        CompressionCounts {
            tried_pages: read(&self.tried_pages),
            compressed_pages: read(&self.compressed_pages),
            compress_nanos: read(&self.compress_nanos),
            decompressed_pages: read(&self.decompressed_pages),
            decompress_nanos: read(&self.decompress_nanos),
        }
    }
}

#[derive(Debug)]
struct OfTree {
    class: usize,
    counts: Arc<Counts>,
}

/// The counts of a store.
#[derive(Debug, Default)]
pub(crate) struct CountedTrees {
    by_class: [Counts; COUNTED_CLASSES],
    /// How many there are in `by_tree`.
    count: AtomicUsize,
    by_tree: RwLock<BTreeMap<TreeId, OfTree>>,
}

impl CountedTrees {
    fn set(&self, tree: TreeId, class: Option<usize>) {
        if class.is_none() && self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut by_tree = self.by_tree.write();
        match class.map(|class| class.min(COUNTED_CLASSES - 1)) {
            Some(class) => {
                let fresh = || OfTree { class, counts: Arc::default() };
                by_tree.entry(tree).or_insert_with(fresh).class = class;
            }
            None => {
                by_tree.remove(&tree);
            }
        }
        self.count.store(by_tree.len(), Ordering::Relaxed);
    }

    /// A tree's counts and those of its class, if it is counted.
    fn of(&self, tree: TreeId) -> Option<(Arc<Counts>, &Counts)> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let by_tree = self.by_tree.read();
        by_tree.get(&tree).map(|of_tree| (of_tree.counts.clone(), &self.by_class[of_tree.class]))
    }

    /// A codec was tried on a page of the tree.
    pub(crate) fn note_tried(&self, tree: TreeId, is_compressed: bool, taken: Duration) {
        if let Some((own, of_class)) = self.of(tree) {
            let nanos = taken.as_nanos() as u64;
            own.note_tried(is_compressed, nanos);
            of_class.note_tried(is_compressed, nanos);
        }
    }

    /// Runs what decompresses a page of the tree, and counts it.
    pub(crate) fn decompressing<T>(&self, tree: TreeId, decompress: impl FnOnce() -> T) -> T {
        let Some((own, of_class)) = self.of(tree) else { return decompress() };
        let begun = runtime::now();
        let done = decompress();
        let nanos = begun.elapsed().as_nanos() as u64;
        own.note_decompressed(nanos);
        of_class.note_decompressed(nanos);
        done
    }
}

impl Shared {
    /// Puts the page of a full copy into `page`. Parks.
    pub(crate) fn unpack(
        &self,
        blob: &crate::blob::BlobHeader,
        bytes: &[u8],
        page: &mut [u8],
    ) -> Result<(), Arc<str>> {
        let dictionary = self.dictionary_of(blob)?;
        let mut decode = || crate::blob::decode(blob, bytes, dictionary.as_deref(), page);
        match blob.codec {
            codec::CodecId::None => decode(),
            _ => self.counted_trees.decompressing(blob.tree, decode),
        }
        .map_err(Arc::from)
    }
}

impl PageStore {
    /// From now on a tree is counted in a class (below [`COUNTED_CLASSES`]), or no longer.
    pub fn count_compression(&self, tree: TreeId, class: Option<usize>) {
        self.shared().counted_trees.set(tree, class);
    }

    /// The counts of the classes since the store was opened or they were reset.
    pub fn compression_of_classes(&self, resets: bool) -> [CompressionCounts; COUNTED_CLASSES] {
        self.shared().counted_trees.by_class.each_ref().map(|counts| counts.read(resets))
    }

    /// Those of a tree, if it is counted.
    pub fn compression_of_tree(&self, tree: TreeId, resets: bool) -> Option<CompressionCounts> {
        self.shared().counted_trees.of(tree).map(|(own, _)| own.read(resets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::sim::{SimConfig, Simulation};

    #[test]
    fn a_tree_counts_for_itself_and_its_class_until_it_is_gone() {
        let run = || {
            let counted = CountedTrees::default();
            let [tree, other] = [1, 2].map(TreeId::new);
            counted.note_tried(tree, true, Duration::from_nanos(5));
            counted.set(tree, Some(2));
            counted.note_tried(tree, true, Duration::from_nanos(7));
            counted.note_tried(tree, false, Duration::from_nanos(1));
            counted.note_tried(other, true, Duration::from_nanos(5));
            assert_eq!(counted.decompressing(tree, || 9), 9);
            let seen = counted.of(tree).unwrap().0.read(false);
            let CompressionCounts { tried_pages, compressed_pages, compress_nanos, .. } = seen;
            assert_eq!((tried_pages, compressed_pages, compress_nanos), (2, 1, 8));
            assert_eq!(seen.decompressed_pages, 1);
            counted.set(tree, None);
            assert!(counted.of(tree).is_none());
            assert_eq!(counted.by_class[2].read(true), seen, "read, and reset");
            assert_eq!(counted.by_class[2].read(false), CompressionCounts::default());
        };
        Simulation::new(SimConfig::new(1)).run(run).expect("it ends well");
    }

    #[test]
    fn a_tree_of_another_class_keeps_its_own_counts() {
        let counted = CountedTrees::default();
        let tree = TreeId::new(1);
        counted.set(tree, Some(0));
        counted.note_tried(tree, true, Duration::ZERO);
        counted.set(tree, Some(4));
        counted.note_tried(tree, true, Duration::ZERO);
        let of_classes = counted.by_class.each_ref().map(|counts| counts.read(false).tried_pages);
        assert_eq!(of_classes, [1, 0, 0, 0, 1]);
        assert_eq!(counted.of(tree).unwrap().0.read(false).tried_pages, 2);
    }
}
