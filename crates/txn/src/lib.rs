//! Gannet: the `txn` room.
