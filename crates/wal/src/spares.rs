//! How long files are made, and spares kept, by what the file system can still give and by what the
//! log is going to need again.
//!
//! 1. A new file takes one of [`FREE_PARTS`] parts of that at most, but not less than the first
//!    file has: where little is free, the log goes on in small files and gives each back soon.
//! 2. A spare that is longer than a new file would be is cut, and that is durable before it counts.
//!    What a crash makes undone of it is a longer spare.
//! 3. None is removed because space is short: on a full disk spares are what a large transaction,
//!    and its rollback, goes on in.
//! 4. A checkpoint may give back several files at once. As much of them is kept as was begun
//!    between two such moments lately: a log that goes on at its pace makes no file anew.
//! 5. By that all files together take no more than
//!    [`WalOptions::kept_bytes`](crate::WalOptions::kept_bytes).
//! 6. [`SPARES_MIN`] files are kept in any case (invariant 3). The others go when no file was begun
//!    for [`QUIET_PERIOD`].
//! 7. Where the disk may become full, one spare is the reserve: it is made ahead, no next file is
//!    prepared in it, and only a leader that has nothing else goes on there. So when the next file
//!    cannot be had there is still a whole one for what gives space back, and two files go round as
//!    long as checkpoints keep up.

use crate::counters::FILES_REMOVED;
use crate::files::{LogFiles, Pace};
use crate::listing::open_file;
use base::probe;
use runtime::Instant;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Invariant 1.
const FREE_PARTS: u64 = 32;
/// What is expected goes down by one part of so many, at most, each time files are given back.
const FORGOTTEN_PARTS: u64 = 16;
/// Invariant 6.
pub(crate) const SPARES_MIN: usize = 2;
/// Invariant 6.
const QUIET_PERIOD: Duration = Duration::from_secs(10);

/// Path and length of a spare.
pub(crate) type Spare = (PathBuf, u64);

/// What the log is going to need of spares (invariants 4 and 6).
#[derive(Debug)]
pub(crate) struct Demand {
    /// Of files begun since files were given back.
    begun_bytes: u64,
    expected_bytes: u64,
    /// When a file was begun last.
    begun: Instant,
}

impl Demand {
    /// Nothing is known yet.
    pub(crate) fn new() -> Demand {
        Demand { begun_bytes: 0, expected_bytes: 0, begun: runtime::now() }
    }

    /// A file of this length has become the current one.
    pub(crate) fn note_begun(&mut self, len: u64) {
        self.begun_bytes += len;
        self.begun = runtime::now();
    }

    /// Files are about to be given back.
    pub(crate) fn note_retirement(&mut self) {
        let remembered = self.expected_bytes - self.expected_bytes / FORGOTTEN_PARTS;
        let expected = self.begun_bytes.max(remembered);
        self.expected_bytes = if self.is_quiet() { 0 } else { expected };
        self.begun_bytes = 0;
    }

    /// Bytes of spares that will be needed until files are given back again.
    pub(crate) fn expected_bytes(&self) -> u64 {
        self.expected_bytes
    }

    fn is_quiet(&self) -> bool {
        self.begun.elapsed() >= QUIET_PERIOD
    }
}

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

    /// Whether there is to be a reserve from now on (invariant 7).
    pub(crate) fn want_reserve(&self, is_wanted: bool) {
        self.reserve_wanted.store(is_wanted, Ordering::Relaxed);
    }

    pub(crate) fn wants_reserve(&self) -> bool {
        self.reserve_wanted.load(Ordering::Relaxed)
    }

    /// Makes the reserve, if there is no spare (invariant 7). Parks.
    pub(crate) fn make_reserve(&self) -> io::Result<()> {
        let (least, _) = self.file_bytes_bounds();
        if self.with_spares(|spares| !spares.is_empty()) || self.available_bytes() < least {
            return Ok(());
        }
        if self.is_making_reserve.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let made = self.create_reserve(least);
        self.is_making_reserve.store(false, Ordering::Relaxed);
        made
    }

    fn create_reserve(&self, least: u64) -> io::Result<()> {
        probe!("wal.reserve_made");
        let path = self.spare_path();
        // No sequence is so high.
        let unfinished = self.dir().join(format!("new-{}.log", u64::MAX));
        self.create_as(&unfinished, &path, least, Pace::Now)?;
        runtime::fs::sync_dir(self.dir())?;
        self.with_spares(|spares| spares.push((path, least)));
        Ok(())
    }

    /// Removes what a log that rests does not need (invariant 6). Parks.
    pub(crate) fn release_spares(&self) -> io::Result<()> {
        if self.out_of_space() {
            return Ok(());
        }
        while let Some(spare) = self.take_idle_spare() {
            probe!("wal.idle_spare_removed");
            runtime::fs::remove_file(&spare.0)?;
            FILES_REMOVED.add(1);
        }
        Ok(())
    }

    fn take_idle_spare(&self) -> Option<Spare> {
        self.with_demand(|demand, spares| {
            let shortest = (0..spares.len()).min_by_key(|at| spares[*at].1);
            let is_idle = spares.len() > SPARES_MIN && demand.is_quiet();
            shortest.filter(|_| is_idle).map(|at| spares.swap_remove(at))
        })
    }
}
