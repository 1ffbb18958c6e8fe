//! Gannet: the `types` room.
