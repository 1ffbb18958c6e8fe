//! Gannet: the `session` room.
