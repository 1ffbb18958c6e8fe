//! Gannet: the `runtime` room.
