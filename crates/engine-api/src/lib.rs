//! Gannet: the `engine-api` room.
