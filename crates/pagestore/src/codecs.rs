//! Which codec each tree's pages are written with.

use base::TreeId;
use codec::{Codec, CodecId};
use runtime::sync::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Codecs by tree, and the one for all others.
#[derive(Debug)]
pub(crate) struct Codecs {
    default: Arc<dyn Codec>,
    by_tree: RwLock<BTreeMap<TreeId, Arc<dyn Codec>>>,
}

impl Codecs {
    pub(crate) fn new((id, level): (CodecId, i32)) -> Codecs {
        Codecs { default: Arc::from(codec::codec(id, level)), by_tree: RwLock::default() }
    }

    /// The codec for a page of the tree.
    pub(crate) fn of(&self, tree: TreeId) -> Arc<dyn Codec> {
        self.by_tree.read().get(&tree).unwrap_or(&self.default).clone()
    }

    /// Changes the codec for pages of the tree written from now on; `None` for the default.
    pub(crate) fn set(&self, tree: TreeId, chosen: Option<(CodecId, i32)>) {
        let mut by_tree = self.by_tree.write();
        match chosen {
            Some((id, level)) => by_tree.insert(tree, Arc::from(codec::codec(id, level))),
            None => by_tree.remove(&tree),
        };
    }
}
