//! What the trees of a server have done, for status variables and metrics.

use base::metrics::Counter;

/// Nodes split, roots that grew not counted.
pub static SPLITS: Counter = Counter::new("btree_splits", "B-tree nodes split");
/// Nodes merged into their left neighbour.
pub static MERGES: Counter = Counter::new("btree_merges", "B-tree nodes merged");
