//! Admission: room in the ring is promised before anything is latched.
//!
//! On a full disk, where the next file of the log cannot be had, a part of the present one is left
//! for what must come to its end (rollbacks, what was promised already). Others wait for a while,
//! because a checkpoint may give back an older file any moment, and are refused then.
//!
//! Free room goes to those who wait for it in order of arrival; while anybody waits, nobody takes
//! room past them. A waiter that finds something to flush and no leader leads; otherwise whoever
//! appends, gives room back or ends a flush wakes the first one.

use crate::counters::ROOM_WAITS;
use crate::leading::Goal;
use crate::record::aligned_len;
use crate::types::WalError;
use crate::wal::Wal;
use base::{invariant, probe};
use runtime::{Unparker, WaitClass};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// So long is waited for a next file on a full disk.
const SPACE_WAIT_MAX: Duration = Duration::from_secs(5);
/// Between two looks for it.
const SPACE_WAIT_STEP: Duration = Duration::from_millis(20);

/// Room in the ring for records of one operation; what is not used returns when it is dropped.
///
/// Several records may be appended under one permit. Hold at most one permit at a time while
/// parking: a fiber that waits for a second permit with the first unused could wait for itself.
///
/// It borrows the log, because a count of references would be written by all workers, for every
/// change of a row.
#[derive(Debug)]
pub struct Permit<'w> {
    wal: &'w Wal,
    pub(crate) left: Cell<u64>,
}

impl Permit<'_> {
    /// Bytes of the stream that may still be appended under this permit.
    pub fn remaining_bytes(&self) -> u64 {
        self.left.get()
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.left.get() > 0 {
            self.wal.ring.give_back(self.left.get());
            self.wal.grant_room();
        }
    }
}

/// A fiber that waits for room.
#[derive(Debug)]
pub(crate) struct RoomWaiter {
    bytes: u64,
    granted: Arc<AtomicBool>,
    pub(crate) unparker: Unparker,
}

impl Wal {
    /// Promises room for `bytes` of records ([`crate::RecordBuilder::stream_len`] summed up; an
    /// upper bound will do). Parks while the ring is short, and for some seconds while the disk
    /// is full. Call it BEFORE latching anything.
    pub fn admit(&self, bytes: usize) -> Result<Permit<'_>, WalError> {
        if self.files.out_of_space() && self.is_file_nearly_full(bytes) {
            self.wait_for_next_file()?;
        }
        self.admit_internal(bytes)
    }

    /// Waits until there is space for a next file, for some seconds at most. Parks.
    #[cold]
    pub fn wait_for_next_file(&self) -> Result<(), WalError> {
        let begun = runtime::now();
        loop {
            self.files.retry_next();
            if !self.files.out_of_space() {
                return Ok(());
            }
            if begun.elapsed() >= SPACE_WAIT_MAX || self.closing.load(Ordering::SeqCst) {
                probe!("wal.disk_full_reported");
                return Err(WalError::DiskFull);
            }
            probe!("wal.waited_for_space");
            self.check_poison()?;
            runtime::sleep(SPACE_WAIT_STEP);
        }
    }

    /// As [`Wal::admit`] for work that must go on while the disk is full (rollback, checkpoint):
    /// waits instead of failing with [`WalError::DiskFull`].
    pub fn admit_internal(&self, bytes: usize) -> Result<Permit<'_>, WalError> {
        let limit = self.max_record_bytes();
        let needed = aligned_len(bytes);
        if needed > limit {
            return Err(WalError::TooLarge { bytes, limit });
        }
        self.check_poison()?;
        let permit = Permit { wal: self, left: Cell::new(0) };
        let at_once =
            self.room_waiters.load(Ordering::SeqCst) == 0 && self.ring.try_promise(needed as u64);
        if !at_once {
            self.wait_for_room(needed as u64)?;
        }
        permit.left.set(needed as u64);
        Ok(permit)
    }

    /// Whether there was no space for the next file of the log when it was last tried: what is left
    /// of the present one should be kept for what makes room.
    pub fn is_short_of_space(&self) -> bool {
        self.files.out_of_space()
    }

    /// Asks for that space again, now and then. Parks.
    pub fn retry_space(&self) {
        if self.files.out_of_space() {
            self.files.retry_next();
        }
    }

    /// Whether so many bytes more would take what is left of the present file for that which must
    /// come to its end.
    fn is_file_nearly_full(&self, bytes: usize) -> bool {
        self.free_file_bytes() < 2 * bytes as u64
    }

    /// What is left of the present file beside what was promised already, batches that end before
    /// their block does, and a part for rollbacks.
    fn free_file_bytes(&self) -> u64 {
        let promised = self.ring.capacity_bytes() - self.ring.available_bytes();
        let kept = 2 * promised + self.options.first_file_bytes / 4;
        self.remaining_file_bytes.load(Ordering::Relaxed).saturating_sub(kept)
    }

    /// While there is no space for a next file: bytes that may still be logged.
    pub fn bytes_to_the_end(&self) -> Option<u64> {
        self.files.out_of_space().then(|| self.free_file_bytes())
    }

    /// Bytes that the files of the log take, spares among them.
    pub fn file_bytes(&self) -> u64 {
        self.files.all_bytes()
    }

    /// What the files of the log may still take in the file system, which has `available_bytes`,
    /// when the log since the oldest change not on disk grows to `cap_bytes`.
    pub fn growth_bytes(&self, cap_bytes: u64, available_bytes: u64) -> u64 {
        // The log begins and ends within files, and the next one is prepared ahead.
        let file_bytes = self.files.longest_bytes(available_bytes);
        let most = cap_bytes.next_multiple_of(file_bytes) + 2 * file_bytes;
        most.saturating_sub(self.file_bytes())
    }

    /// The least cap of the log: one file. What is not on disk yet lies in two then, and the next
    /// one is prepared.
    pub fn least_cap_bytes(&self) -> u64 {
        self.options.first_file_bytes
    }

    /// Gives back what spare files take beyond what fits to a file system with `available_bytes`.
    /// What fails is tried again by the next call. Parks.
    pub fn trim_spares(&self, available_bytes: u64) {
        if self.files.trim_spares(available_bytes).is_err() {
            probe!("wal.spares_not_trimmed");
        }
    }

    /// Queues for `bytes` of the ring; flushes while there is something to flush and no leader.
    pub(crate) fn wait_for_room(&self, bytes: u64) -> Result<(), WalError> {
        probe!("wal.waited_for_room");
        ROOM_WAITS.add(1);
        let granted = Arc::new(AtomicBool::new(false));
        self.room_waiters.fetch_add(1, Ordering::SeqCst);
        self.room.lock().push_back(RoomWaiter {
            bytes,
            granted: granted.clone(),
            unparker: runtime::current_unparker(),
        });
        self.grant_room();
        while !granted.load(Ordering::Acquire) {
            if let Err(poisoned) = self.check_poison() {
                self.leave_room_queue(&granted);
                return Err(poisoned);
            }
            if !self.try_lead(Goal::Room) && !granted.load(Ordering::Acquire) {
                runtime::park_uncancellable(WaitClass::LogSpace, None);
            }
        }
        Ok(())
    }

    /// Gives free room to those who wait for it, first come first served.
    pub(crate) fn grant_room(&self) {
        if self.room_waiters.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut room = self.room.lock();
        while let Some(first) = room.front() {
            if !self.ring.try_promise(first.bytes) {
                break;
            }
            first.granted.store(true, Ordering::Release);
            first.unparker.unpark();
            room.pop_front();
            self.room_waiters.fetch_sub(1, Ordering::SeqCst);
        }
    }

    pub(crate) fn leave_room_queue(&self, granted: &Arc<AtomicBool>) {
        let mut room = self.room.lock();
        let position = room.iter().position(|waiter| Arc::ptr_eq(&waiter.granted, granted));
        match position.and_then(|position| room.remove(position)) {
            Some(_) => {
                self.room_waiters.fetch_sub(1, Ordering::SeqCst);
            }
            // Granted in between: on a poisoned log nobody needs the room any more.
            None => invariant!(granted.load(Ordering::Acquire), "left the queue by a grant"),
        }
    }

    pub(crate) fn wake_first_room_waiter(&self) {
        if let Some(first) = self.room.lock().front() {
            first.unparker.unpark();
        }
    }
}
