//! Faults of the simulated disk.

use base::Random;
use std::io;

/// Kinds of operation that a fault can hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// `read_at`.
    Read,
    /// `write_at` and the write of `write_and_sync`.
    Write,
    /// `sync_data`, the sync of `write_and_sync`, `sync_dir`.
    Sync,
    /// Everything that changes names or lengths: open, rename, remove, allocate, truncate.
    Metadata,
}

/// Chances per operation, all zero by default. Set with [`super::Disk::set_faults`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Faults {
    /// A read fails with EIO.
    pub read_error: f64,
    /// A write fails with EIO; some of its sectors may have been written.
    pub write_error: f64,
    /// A sync fails with EIO; what it covered is durable or lost, and counts as clean.
    pub sync_error: f64,
    /// A bit of what is read has rotted, for good.
    pub bit_rot: f64,
    /// A read returns the former content of sectors that were overwritten.
    pub stale_read: f64,
    /// A write is acknowledged, but went to another place of the same file.
    pub misdirected_write: f64,
    /// A write is acknowledged, but went nowhere.
    pub lost_write: f64,
}

/// A fault that was asked for once.
struct Armed {
    operation: Operation,
    path_part: String,
    skip: u64,
    error_number: i32,
}

/// Decides which operations fail.
pub(crate) struct FaultPlan {
    pub(crate) chances: Faults,
    armed: Vec<Armed>,
    pub(crate) injected: u64,
}

impl FaultPlan {
    pub(crate) fn new(chances: Faults) -> Self {
        Self { chances, armed: Vec::new(), injected: 0 }
    }

    pub(crate) fn arm(&mut self, operation: Operation, path_part: &str, skip: u64, number: i32) {
        let path_part = path_part.to_owned();
        self.armed.push(Armed { operation, path_part, skip, error_number: number });
    }

    /// Whether a fault with this chance happens; counted.
    pub(crate) fn happens(&mut self, chance: f64, random: &mut Random) -> bool {
        let happens = chance > 0.0 && random.chance(chance);
        self.injected += u64::from(happens);
        happens
    }

    /// The error that the operation is to end with, if any.
    pub(crate) fn error(
        &mut self,
        operation: Operation,
        path: &str,
        random: &mut Random,
    ) -> Option<io::Error> {
        let armed = self.armed.iter_mut().enumerate();
        let matching = armed
            .filter(|(_, it)| it.operation == operation && path.contains(&it.path_part))
            .map(|(place, it)| {
                let due = it.skip == 0;
                it.skip = it.skip.saturating_sub(1);
                (place, due)
            });
        let due = matching.filter(|it| it.1).map(|it| it.0).last();
        if let Some(place) = due {
            self.injected += 1;
            return Some(io::Error::from_raw_os_error(self.armed.remove(place).error_number));
        }
        let chance = match operation {
            Operation::Read => self.chances.read_error,
            Operation::Write => self.chances.write_error,
            Operation::Sync => self.chances.sync_error,
            Operation::Metadata => 0.0,
        };
        self.happens(chance, random).then(|| io::Error::from_raw_os_error(libc::EIO))
    }
}
