//! Gannet: the `expr` room.
