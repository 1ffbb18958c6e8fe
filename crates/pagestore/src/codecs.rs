//! Which codec each tree's pages are written with.
//!
//! 1. A change is for pages written from then on. Each copy on disk names its codec, so a tree's
//!    pages may be of several.
//! 2. Trees that follow the store's codec for compressed tables follow its changes.

use base::TreeId;
use codec::{Codec, CodecId};
use runtime::sync::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How the pages of a tree are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// As the store was opened with.
    #[default]
    Store,
    /// With the algorithm that [`crate::PageStore::set_compressed`] chose last, and its level
    /// unless the tree has one (0: it has none).
    Compressed {
        /// 1 to 9.
        level: i32,
    },
    /// With this codec, whatever others use; at the level of [`Compression::Compressed`] unless
    /// the tree has one.
    Fixed {
        /// The codec.
        codec: CodecId,
        /// 1 to 9; 0: the tree has none.
        level: i32,
    },
}

/// Codecs by tree, and the one for all others.
#[derive(Debug)]
pub(crate) struct Codecs {
    default: Asked,
    chosen: RwLock<Chosen>,
}

#[derive(Debug)]
struct Chosen {
    /// What [`Compression::Compressed`] means now.
    compressed: (CodecId, i32),
    by_tree: BTreeMap<TreeId, OfTree>,
}

#[derive(Debug)]
struct OfTree {
    compression: Compression,
    asked: Asked,
}

/// What the pages of a tree are to be written with.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) codec: Arc<dyn Codec>,
    /// Of the codec; 0: its own.
    level: i32,
    /// The level, where dictionaries may help: with Zstandard that was chosen for this tree. The
    /// store's own trees choose nothing.
    pub(crate) dictionary_level: Option<i32>,
}

impl Asked {
    /// Whether pages are written as for the other.
    fn writes_as(&self, other: &Asked) -> bool {
        let all = |asked: &Asked| (asked.codec.id(), asked.level, asked.dictionary_level);
        all(self) == all(other)
    }
}

impl Codecs {
    pub(crate) fn new((id, level): (CodecId, i32)) -> Codecs {
        let chosen = Chosen { compressed: (CodecId::Zstd, 0), by_tree: BTreeMap::new() };
        let codec = Arc::from(codec::codec(id, level));
        let default = Asked { codec, level, dictionary_level: None };
        Codecs { default, chosen: RwLock::new(chosen) }
    }

    /// The codec for a page of the tree.
    pub(crate) fn of(&self, tree: TreeId) -> Asked {
        let chosen = self.chosen.read();
        chosen.by_tree.get(&tree).map_or(&self.default, |of_tree| &of_tree.asked).clone()
    }

    /// Changes how pages of the tree are compressed that are written from now on; returns whether
    /// that is in another way than before.
    pub(crate) fn set(&self, tree: TreeId, compression: Compression) -> bool {
        let before = self.of(tree);
        let mut chosen = self.chosen.write();
        match asked_by(compression, chosen.compressed) {
            Some(asked) => chosen.by_tree.insert(tree, OfTree { compression, asked }),
            None => chosen.by_tree.remove(&tree),
        };
        drop(chosen);
        !self.of(tree).writes_as(&before)
    }

    /// Changes what [`Compression::Compressed`] means; returns whether it meant something else.
    pub(crate) fn set_compressed(&self, id: CodecId, level: i32) -> bool {
        let mut chosen = self.chosen.write();
        if std::mem::replace(&mut chosen.compressed, (id, level)) == (id, level) {
            return false;
        }
        for of_tree in chosen.by_tree.values_mut() {
            if let Some(now) = asked_by(of_tree.compression, (id, level)) {
                of_tree.asked = now;
            }
        }
        true
    }
}

fn asked_by(compression: Compression, compressed: (CodecId, i32)) -> Option<Asked> {
    let (id, level) = match compression {
        Compression::Store => return None,
        Compression::Compressed { level: 0 } => compressed,
        Compression::Compressed { level } => (compressed.0, level),
        Compression::Fixed { codec, level: 0 } => (codec, compressed.1),
        Compression::Fixed { codec, level } => (codec, level),
    };
    let dictionary_level = (id == CodecId::Zstd).then_some(level);
    Some(Asked { codec: Arc::from(codec::codec(id, level)), level, dictionary_level })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_that_follow_the_store_follow_its_changes_and_others_do_not() {
        let codecs = Codecs::new((CodecId::Lz4, 0));
        let [follows, fixed, other] = [1, 2, 3].map(TreeId::new);
        codecs.set(follows, Compression::Compressed { level: 0 });
        codecs.set(fixed, Compression::Fixed { codec: CodecId::Snappy, level: 0 });
        let ids = |codecs: &Codecs| [follows, fixed, other].map(|tree| codecs.of(tree).codec.id());
        assert_eq!(ids(&codecs), [CodecId::Zstd, CodecId::Snappy, CodecId::Lz4]);
        let levels = [follows, fixed, other].map(|tree| codecs.of(tree).dictionary_level);
        assert_eq!(levels, [Some(0), None, None]);
        assert!(codecs.set_compressed(CodecId::Lzo, 6));
        assert_eq!(ids(&codecs), [CodecId::Lzo, CodecId::Snappy, CodecId::Lz4]);
        codecs.set(follows, Compression::Store);
        assert!(codecs.set_compressed(CodecId::Zlib, 6));
        assert_eq!(ids(&codecs), [CodecId::Lz4, CodecId::Snappy, CodecId::Lz4]);
    }

    #[test]
    fn trees_that_follow_the_default_take_no_memory() {
        let codecs = Codecs::new((CodecId::Lz4, 0));
        for tree in (1..1000).map(TreeId::new) {
            codecs.set(tree, Compression::Compressed { level: 0 });
            codecs.set(tree, Compression::Store);
        }
        assert!(codecs.chosen.read().by_tree.is_empty());
    }

    #[test]
    fn what_is_asked_for_again_is_no_change() {
        let codecs = Codecs::new((CodecId::Lz4, 0));
        let tree = TreeId::new(1);
        let zstd = |level| Compression::Fixed { codec: CodecId::Zstd, level };
        assert!(codecs.set(tree, Compression::Compressed { level: 0 }));
        assert!(!codecs.set_compressed(CodecId::Zstd, 0), "it means that from the beginning");
        for (compression, is_change) in [
            (Compression::Compressed { level: 0 }, false),
            (zstd(0), false),
            (zstd(3), true),
            (zstd(3), false),
            (Compression::Compressed { level: 3 }, false),
            (Compression::Store, true),
            (Compression::Fixed { codec: CodecId::Lz4, level: 0 }, false),
        ] {
            assert_eq!(codecs.set(tree, compression), is_change, "{compression:?}");
        }
        assert!(codecs.set_compressed(CodecId::Zlib, 0));
        assert!(codecs.set_compressed(CodecId::Zlib, 6));
    }

    #[test]
    fn a_tree_without_a_level_has_that_of_the_store() {
        let codecs = Codecs::new((CodecId::Lz4, 0));
        let [without, with] = [1, 2].map(TreeId::new);
        codecs.set_compressed(CodecId::Zlib, 6);
        codecs.set(without, Compression::Fixed { codec: CodecId::Zstd, level: 0 });
        codecs.set(with, Compression::Fixed { codec: CodecId::Zstd, level: 2 });
        let levels = || [without, with].map(|tree| codecs.of(tree).dictionary_level);
        assert_eq!(levels(), [Some(6), Some(2)]);
        codecs.set_compressed(CodecId::Lz4, 9);
        assert_eq!(levels(), [Some(9), Some(2)]);
    }
}
