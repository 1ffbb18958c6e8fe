//! Where the engine meets the page store's own options.

use base::TreeId;
use pagestore::PageStore;

/// Sets the compression of a tree's pages by its name in the table's options; a name that is
/// empty or unknown means the store's default.
pub(crate) fn set_codec(store: &PageStore, tree: TreeId, codec: &str) {
    store.set_codec(tree, codec::CodecId::from_name(codec).map(|codec| (codec, 0)));
}
