//! What the log may grow to: the cap that was set, or as much as fits to what the file system can
//! still give (pace.rs, invariant 5).

use crate::disk::Disk;
use crate::pace;
use crate::store::Shared;
use std::sync::atomic::Ordering;

impl Shared {
    /// What the log would grow to if it could be what it should at once.
    fn wanted_log_cap(&self, disk: &Disk, available_bytes: u64) -> u64 {
        let set = self.background.log_cap_set.load(Ordering::Relaxed);
        let (least, taken) = (disk.wal.least_cap_bytes(), disk.wal.file_bytes());
        pace::wanted_cap(set, least, taken, available_bytes)
    }

    /// Makes the log's cap follow what the file system can still give; returns it.
    pub(crate) fn fit_log_cap(&self, disk: &Disk, available_bytes: u64) -> u64 {
        let wanted = self.wanted_log_cap(disk, available_bytes);
        let present = self.background.log_cap_bytes();
        let oldest = self.dirty.oldest();
        let age = oldest.map_or(0, |oldest| disk.wal.file_bytes_since(oldest));
        let cap = pace::fitted_cap(present, wanted, age);
        self.background.log_cap_bytes.store(cap, Ordering::Relaxed);
        if oldest.is_none() {
            // No tick will tell what it means in bytes of records before there are any.
            self.background.record_cap_bytes.store(cap, Ordering::Relaxed);
        }
        cap
    }

    /// Space gets short: what the log takes is to be given back as far as it can. Parks.
    pub(crate) fn shrink_log(&self, disk: &Disk, available_bytes: u64) {
        disk.wal.trim_spares(available_bytes);
        if self.background.log_cap_bytes() > self.wanted_log_cap(disk, available_bytes) {
            // Ahead of the pace, so that a checkpoint gives back the files that they hold.
            self.hasten_for_space(disk);
        }
    }
}
