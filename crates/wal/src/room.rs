//! Admission: room in the ring is promised before anything is latched.
//!
//! On a full disk, where the next file of the log cannot be had, the log has what is left of the
//! present one and the reserve (spares.rs):
//!
//! 1. What was promised has room there, each permit in blocks of its own.
//! 2. A part is left for what must come to its end: rollbacks, last records of transactions,
//!    checkpoints. They wait for the rest of it as long as they have to.
//! 3. Others ([`Claim::Work`]) wait for a while, because a checkpoint may give back an older file
//!    any moment, and are refused then.
//! 4. Nobody gets room that is not there: a leader that finds no next file would keep everybody
//!    from making the log durable, checkpoints among them, which alone give files back.
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

/// So long is waited for a next file on a full disk, or until it is told of.
pub(crate) const SPACE_WAIT_MAX: Duration = Duration::from_secs(5);
/// Between two looks for it.
const SPACE_WAIT_STEP: Duration = Duration::from_millis(20);
/// What was promised takes so many times as much in files at most: a permit is for a kilobyte or
/// more, and what is logged by it may take a block and the begin of one.
const PROMISED_FACTOR: u64 = 5;
/// Blocks for what nobody is asked for: notes, the begin of a file.
const KEPT_BLOCKS: u64 = 4;
/// Of the least size of a file one of so many parts is left by [`Claim::Work`].
const KEPT_PARTS: u64 = 4;

/// What transactions log up to one of so many parts of the least size of a file is little.
const LITTLE_PARTS: u64 = 16;

/// For what room in the log is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A statement, or anything else that may be refused.
    Work,
    /// Undoing changes, or ending a transaction.
    Undo,
    /// What can as well be done later: not waited for on a full disk.
    Later,
}

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
        self.admit_as(Claim::Work, bytes)
    }

    /// As [`Wal::admit`]; `claim` decides what is left for others on a full disk.
    pub fn admit_as(&self, claim: Claim, bytes: usize) -> Result<Permit<'_>, WalError> {
        if !self.has_file_room(claim, bytes) {
            if claim == Claim::Later {
                return Err(WalError::DiskFull);
            }
            self.wait_for_files(|| self.has_file_room(claim, bytes))?;
        }
        self.promise(bytes)
    }

    /// Waits until it `is_enough` what can be had for the log, for some seconds at most. Parks.
    #[cold]
    pub fn wait_for_files(&self, is_enough: impl Fn() -> bool) -> Result<(), WalError> {
        let begun = runtime::now();
        loop {
            self.files.retry_next();
            if is_enough() {
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
        loop {
            match self.admit_as(Claim::Undo, bytes) {
                Err(WalError::DiskFull) => {
                    self.files.tell_of_wait();
                    runtime::sleep(SPACE_WAIT_STEP);
                }
                other => return other,
            }
        }
    }

    /// Room in the ring. Parks while it is short.
    fn promise(&self, bytes: usize) -> Result<Permit<'_>, WalError> {
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

    /// Whether the files have so many bytes more for this, or another one can be had.
    fn has_file_room(&self, claim: Claim, bytes: usize) -> bool {
        !self.files.out_of_space()
            || self.free_file_bytes(claim) >= PROMISED_FACTOR * aligned_len(bytes) as u64
    }

    /// What is left of the present file, the next one and the reserve, beside what was promised
    /// already and what is kept from this claim.
    fn free_file_bytes(&self, claim: Claim) -> u64 {
        let promised = self.ring.capacity_bytes() - self.ring.available_bytes();
        let for_undo = match claim {
            Claim::Undo => 0,
            Claim::Work | Claim::Later => self.options.first_file_bytes / KEPT_PARTS,
        };
        let blocks = KEPT_BLOCKS * self.options.block_bytes_max() as u64;
        let kept = PROMISED_FACTOR * promised + blocks + for_undo;
        let left = self.remaining_file_bytes.load(Ordering::Relaxed);
        (left + self.files.bytes_ahead()).saturating_sub(kept)
    }

    /// Bytes that may still be logged where that is limited, as far as it concerns one that has
    /// logged `own_bytes`: as long as another file can be had, little does not matter.
    #[inline]
    pub fn bytes_for_undo(&self, own_bytes: u64) -> Option<u64> {
        if self.files.out_of_space() {
            return Some(self.free_file_bytes(Claim::Undo));
        }
        let is_much = own_bytes >= self.options.first_file_bytes / LITTLE_PARTS;
        (is_much && self.files.wants_reserve()).then(|| {
            // A file system may say that it has no end.
            let available_bytes = self.available_bytes.load(Ordering::Relaxed);
            self.free_file_bytes(Claim::Undo).saturating_add(available_bytes)
        })
    }

    /// So many bytes of log may be needed for undoing transactions.
    pub fn keep_for_undo(&self, bytes: u64) {
        self.undo_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether the disk, which has `available_bytes`, is so full that a reserve is to be there
    /// (spares.rs). Makes it, if it can. Parks.
    pub fn keep_reserve(&self, is_wanted: bool, available_bytes: u64) {
        self.available_bytes.store(available_bytes, Ordering::Relaxed);
        self.files.want_reserve(is_wanted);
        if is_wanted && self.files.make_reserve().is_err() {
            probe!("wal.no_space_for_reserve");
        }
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
        let reserve = if self.files.wants_reserve() { self.options.first_file_bytes } else { 0 };
        let most = cap_bytes.next_multiple_of(file_bytes) + 2 * file_bytes + reserve;
        let undo = self.undo_bytes.load(Ordering::Relaxed);
        let undo = undo.saturating_sub(self.free_file_bytes(Claim::Undo));
        most.saturating_sub(self.file_bytes()).max(undo)
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
