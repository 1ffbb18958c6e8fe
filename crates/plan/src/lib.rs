//! Gannet: the `plan` room.
