//! Gannet: the `pagestore` room.
