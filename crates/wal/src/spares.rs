//! How long files are made, and spares kept, by what the file system can still give.
//!
//! 1. A new file takes one of [`FREE_PARTS`] parts of that at most, but not less than the first
//!    file has: where little is free, the log goes on in small files and gives each back soon.
//! 2. A spare that is longer than a new file would be is cut, and that is durable before it counts.
//!    What a crash makes undone of it is a longer spare.
//! 3. None is removed because space is short: on a full disk spares are what a large transaction,
//!    and its rollback, goes on in.

use crate::files::LogFiles;
use crate::listing::open_file;
use base::probe;
use std::io;
use std::path::{Path, PathBuf};

/// Invariant 1.
const FREE_PARTS: u64 = 32;

/// Path and length of a spare.
pub(crate) type Spare = (PathBuf, u64);

fn cut(path: &Path, len: u64) -> io::Result<()> {
    let file = open_file(path)?;
    file.set_len(len)?;
    file.sync_data()
}

impl LogFiles {
    /// What the file system can still give, as far as it tells.
    pub(crate) fn available_bytes(&self) -> u64 {
        let size = runtime::fs::file_system_size(self.dir());
        size.map_or(u64::MAX, |size| size.available_bytes)
    }

    /// How long a new file may be where the file system can still give so much (invariant 1).
    pub(crate) fn longest_bytes(&self, available_bytes: u64) -> u64 {
        let (least, most) = self.file_bytes_bounds();
        (available_bytes / FREE_PARTS).min(most).max(least)
    }

    /// Gives back what spares need not have (invariant 2). Parks.
    pub(crate) fn trim_spares(&self, available_bytes: u64) -> io::Result<()> {
        let longest = self.longest_bytes(available_bytes);
        let is_long = |spare: &Spare| spare.1 > longest;
        // One at a time: the others are there for who needs a next file meanwhile.
        while let Some(spare) = self.with_spares(|spares| {
            spares.iter().position(is_long).map(|index| spares.swap_remove(index))
        }) {
            probe!("wal.spare_cut");
            let done = cut(&spare.0, longest);
            let len = if done.is_ok() { longest } else { spare.1 };
            self.with_spares(|spares| spares.push((spare.0, len)));
            done?;
        }
        Ok(())
    }
}
