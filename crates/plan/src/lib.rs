//! Gannet: the `plan` room.

pub mod physical;
