//! Gannet: the `server` room.
