//! Where the engine meets the page store's own options.

use base::TreeId;
use pagestore::PageStore;

/// Sets the compression of a tree's pages by its name in the table's options.
pub(crate) fn set_codec(_store: &PageStore, _tree: TreeId, _codec: &str) {}
