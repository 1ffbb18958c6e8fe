//! Gannet: the `btree` room.
