//! Gannet: the `syntax` room.
