//! Gannet: the `exec` room.
