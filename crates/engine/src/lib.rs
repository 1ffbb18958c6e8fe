//! Gannet: the `engine` room.
