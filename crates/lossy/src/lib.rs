//! A file system that loses what was not synced, for tests of the real server on the real kernel.
//!
//! Mounted through FUSE, it passes files through to a folder behind it, but keeps what was not
//! synced in memory. When the power is cut, unsynced sectors are kept, dropped or torn as a seed
//! says, and directories forget their last changes; mounted again, it shows what is left.
//!
//! * [`image`][]: one file: what is durable, and every version of every sector since.
//! * [`names`][]: directories.
//! * [`disk`][]: files and directories together, when the power is cut, what was lost.
//! * [`mount`][]: the kernel's requests.
//!
//! What it does not do: a sync that has begun covers every write that has reached this process,
//! not only those that had returned by then, since requests are handled one after the other.

pub mod disk;
pub mod image;
pub mod mount;
pub mod names;
