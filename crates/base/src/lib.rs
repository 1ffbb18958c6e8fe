//! Gannet: the `base` room.
