//! Gannet: the `codec` room.
