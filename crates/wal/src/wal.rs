//! The log as its users see it.

use crate::record::RecordBuilder;
use crate::types::{FlushPolicy, LogEnd, LsnRange, WalError, WalOptions};
use base::Lsn;
use std::path::Path;
use std::sync::Arc;

/// Room in the ring for records of one operation; what is not used returns when it is dropped.
///
/// Hold at most one permit at a time while parking: a fiber that waits for a second permit with
/// the first unused could wait for itself.
#[derive(Debug)]
pub struct Permit {
    wal: Arc<Wal>,
}

impl Permit {
    /// Bytes of the stream that may still be appended under this permit.
    pub fn remaining_bytes(&self) -> u64 {
        self.wal.end().get()
    }
}

/// The log. Shared by all fibers.
#[derive(Debug)]
pub struct Wal {
    options: WalOptions,
}

impl Wal {
    /// Starts the log of a new database in `dir` (created if missing).
    pub fn create(_dir: &Path, options: WalOptions, _epoch: u32) -> Result<Arc<Wal>, WalError> {
        Ok(Arc::new(Wal { options }))
    }

    /// Continues the log behind `end`, which a [`crate::Reader`] found. `epoch` is the recovery
    /// epoch, raised durably in the superblock before. The former contents are made durable.
    pub fn open(
        _dir: &Path,
        options: WalOptions,
        _epoch: u32,
        _end: LogEnd,
    ) -> Result<Arc<Wal>, WalError> {
        Ok(Arc::new(Wal { options }))
    }

    /// Promises room for `bytes` of records ([`RecordBuilder::stream_len`] summed up; an upper
    /// bound will do). Parks while the ring is short. Call it BEFORE latching anything.
    pub fn admit(self: &Arc<Self>, _bytes: usize) -> Result<Permit, WalError> {
        Ok(Permit { wal: self.clone() })
    }

    /// As [`Wal::admit`] for work that must go on while the disk is full (rollback, checkpoint):
    /// waits instead of failing with [`WalError::DiskFull`].
    pub fn admit_internal(self: &Arc<Self>, bytes: usize) -> Result<Permit, WalError> {
        self.admit(bytes)
    }

    /// Appends a record. Never parks, so it may be called under latches and under the commit
    /// latch. The permit must have room for it (a broken invariant otherwise).
    pub fn append(&self, _permit: &Permit, _record: &RecordBuilder) -> LsnRange {
        LsnRange { start: self.end(), end: self.end() }
    }

    /// Everything below is on the device and synced.
    pub fn durable(&self) -> Lsn {
        self.end()
    }

    /// Everything below was handed to the device, perhaps without a sync.
    pub fn written(&self) -> Lsn {
        self.end()
    }

    /// End of the last reservation: the position the next record gets at least.
    pub fn end(&self) -> Lsn {
        crate::FIRST_LSN
    }

    /// Parks until everything below `lsn` is durable. Not cancellable.
    pub fn wait_durable(&self, _lsn: Lsn) -> Result<(), WalError> {
        Ok(())
    }

    /// What a commit must wait for before it is acknowledged, by the flush policy.
    pub fn wait_commit(&self, lsn: Lsn) -> Result<(), WalError> {
        self.wait_durable(lsn)
    }

    /// Asks for everything below `lsn` to become durable soon; does not wait.
    pub fn flush_kick(self: &Arc<Self>, _lsn: Lsn) {}

    /// The policy commits follow now.
    pub fn policy(&self) -> FlushPolicy {
        self.options.policy
    }

    /// Changes the policy from the next commit on.
    pub fn set_policy(&self, _policy: FlushPolicy) {}

    /// Files that hold nothing at or above `lsn` may be reused. Call it only after a durable
    /// superblock names a redo LSN (and an oldest active LSN) of at least `lsn`.
    pub fn recycle_before(&self, _lsn: Lsn) -> Result<(), WalError> {
        Ok(())
    }

    /// Largest record, in bytes of the stream.
    pub fn max_record_bytes(&self) -> usize {
        self.options.ring_bytes / 4
    }

    /// Makes everything appended so far durable and leaves a note of it in the log, so that rot
    /// of the last batch is noticed. The last act of a clean shutdown before the superblock.
    pub fn close(&self) -> Result<Lsn, WalError> {
        Ok(self.end())
    }
}
