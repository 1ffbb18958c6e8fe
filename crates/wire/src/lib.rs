//! Gannet: the `wire` room.
