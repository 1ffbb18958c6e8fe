//! Gannet: the `catalog` room.
