//! Gannet: the `wal` room.
