//! The log as its users see it: admission, append, waiting, leading.
//!
//! There is no log thread. Whoever waits and finds no leader takes the [`Writer`] and leads: it
//! writes what is published, wakes everybody whose position was reached, gives the writer back
//! and wakes one fiber that still waits, which leads next. While a leader's write is under way,
//! others append and queue; that queue is the next group. No timers are involved.
//!
//! Invariants:
//! 1. `durable <= written <= published <= tail`; each only grows.
//! 2. At most one fiber has the writer; whoever gives it back wakes a successor if anybody waits
//!    for something that needs a flush, so no waiter is left behind.
//! 3. A waiter queues itself under the lock under which the writer is given back.
//! 4. After a failed write or sync nothing is reported as durable any more (poison), because the
//!    state of the device is unknown and asking again can lie.
//! 5. `append` neither parks nor fails; `admit` has taken care of room before.

use crate::counters::{self, ROOM_WAITS, WAITS, count_group};
use crate::files::{self, LogFiles};
use crate::record::{RecordBuilder, aligned_len};
use crate::ring::Ring;
use crate::types::{FIRST_LSN, FlushPolicy, LogEnd, LsnRange, WalError, WalOptions};
use crate::writer::Writer;
use base::{Lsn, invariant, probe};
use runtime::sync::Mutex;
use runtime::{Unparker, WaitClass};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// The background fiber flushes and leaves its note this often.
const BACKGROUND_PERIOD: Duration = Duration::from_secs(1);
/// A leader spins this often for a record being copied on another core before it yields.
const COPY_SPINS: u32 = 200;

/// Room in the ring for records of one operation; what is not used returns when it is dropped.
///
/// Several records may be appended under one permit. Hold at most one permit at a time while
/// parking: a fiber that waits for a second permit with the first unused could wait for itself.
#[derive(Debug)]
pub struct Permit {
    wal: Arc<Wal>,
    left: Cell<u64>,
}

impl Permit {
    /// Bytes of the stream that may still be appended under this permit.
    pub fn remaining_bytes(&self) -> u64 {
        self.left.get()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.left.get() > 0 {
            self.wal.ring.give_back(self.left.get());
            self.wal.grant_room();
        }
    }
}

/// What a fiber waits for.
#[derive(Clone, Copy, Debug)]
enum Goal {
    Durable(u64),
    Written(u64),
    /// The log itself says that everything below is durable.
    Noted(u64),
    /// Room in the ring; whether it came is known to the waiter alone.
    Room,
}

#[derive(Debug)]
struct Waiter {
    goal: Goal,
    unparker: Unparker,
}

#[derive(Debug)]
struct RoomWaiter {
    bytes: u64,
    granted: Arc<AtomicBool>,
    unparker: Unparker,
}

#[derive(Debug)]
struct FlushState {
    /// Absent while a leader has it.
    writer: Option<Box<Writer>>,
    waiters: Vec<Waiter>,
}

/// The log. Shared by all fibers.
#[derive(Debug)]
pub struct Wal {
    me: Weak<Wal>,
    options: WalOptions,
    ring: Ring,
    files: Arc<LogFiles>,
    flush: Mutex<FlushState>,
    /// Fibers waiting for room, in order of arrival.
    room: Mutex<VecDeque<RoomWaiter>>,
    room_waiters: AtomicU64,
    durable: AtomicU64,
    written: AtomicU64,
    noted: AtomicU64,
    remaining_file_bytes: AtomicU64,
    policy: AtomicU8,
    kicked: AtomicU64,
    kick_running: AtomicBool,
    closing: AtomicBool,
    background: Mutex<Option<Unparker>>,
    poison: OnceLock<Arc<str>>,
}

fn open_error(path: &Path, detail: impl ToString) -> WalError {
    WalError::Open { path: path.display().to_string(), detail: detail.to_string() }
}

impl Wal {
    /// Starts the log of a new database in `dir` (created if missing).
    pub fn create(dir: &Path, options: WalOptions, epoch: u32) -> Result<Arc<Wal>, WalError> {
        let fail = |error: io::Error| open_error(dir, error);
        runtime::fs::create_dir_all(dir).map_err(fail)?;
        if let Some(parent) = dir.parent() {
            runtime::fs::sync_dir(parent).map_err(fail)?;
        }
        let listing = files::list(dir, &options.database_uuid).map_err(fail)?;
        if !listing.logs.is_empty() {
            return Err(open_error(dir, "there is a log already"));
        }
        let files = Arc::new(LogFiles::new(dir, &options));
        files.adopt(listing, 0).map_err(fail)?;
        let writer =
            Writer::create(files.clone(), &options, FIRST_LSN.get(), epoch).map_err(fail)?;
        Wal::start(options, files, writer).map_err(fail)
    }

    /// Continues the log behind `end`, which a [`crate::Reader`] found. `epoch` is the recovery
    /// epoch, raised durably in the superblock before. What the former run had written but
    /// perhaps not synced becomes durable here.
    pub fn open(
        dir: &Path,
        options: WalOptions,
        epoch: u32,
        end: LogEnd,
    ) -> Result<Arc<Wal>, WalError> {
        if epoch <= end.epoch {
            return Err(WalError::StaleEpoch { given: epoch, found: end.epoch });
        }
        let fail = |error: io::Error| open_error(dir, error);
        let listing = files::list(dir, &options.database_uuid).map_err(fail)?;
        let current = listing.logs.iter().find(|log| log.sequence == end.file_sequence);
        let Some(current) = current.cloned() else {
            return Err(open_error(dir, format!("no file number {}", end.file_sequence)));
        };
        let found = current.header.map_or(options.block_bytes, |header| header.block_bytes);
        if found != options.block_bytes {
            return Err(open_error(&current.path, format!("its blocks have {found} bytes")));
        }
        let files = Arc::new(LogFiles::new(dir, &options));
        files.adopt(listing, end.file_sequence).map_err(fail)?;
        let file = files::open_file(&current.path).map_err(fail)?;
        let writer = Writer::new(files.clone(), &options, file, current.len, end, epoch);
        Wal::start(options, files, writer).map_err(fail)
    }

    fn start(
        options: WalOptions,
        files: Arc<LogFiles>,
        mut writer: Writer,
    ) -> io::Result<Arc<Wal>> {
        counters::list_all();
        // The first batch of this run: it syncs what was there and carries the new epoch.
        writer.write_note()?;
        let start = writer.sealed;
        let wal = Arc::new_cyclic(|me| Wal {
            me: me.clone(),
            ring: Ring::new(options.ring_bytes, start),
            files,
            room: Mutex::new(VecDeque::new()),
            room_waiters: AtomicU64::new(0),
            durable: AtomicU64::new(start),
            written: AtomicU64::new(start),
            noted: AtomicU64::new(start),
            remaining_file_bytes: AtomicU64::new(writer.remaining_file_bytes()),
            flush: Mutex::new(FlushState { writer: Some(Box::new(writer)), waiters: Vec::new() }),
            policy: AtomicU8::new(options.policy as u8),
            kicked: AtomicU64::new(0),
            kick_running: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            background: Mutex::new(None),
            poison: OnceLock::new(),
            options,
        });
        let me = wal.me.clone();
        drop(runtime::spawn("wal-background", move || background(&me)));
        Ok(wal)
    }

    /// Promises room for `bytes` of records ([`RecordBuilder::stream_len`] summed up; an upper
    /// bound will do). Parks while the ring is short. Call it BEFORE latching anything.
    pub fn admit(&self, bytes: usize) -> Result<Permit, WalError> {
        if self.files.out_of_space() && self.is_file_nearly_full() {
            self.files.retry_next();
            if self.files.out_of_space() {
                probe!("wal.disk_full_reported");
                return Err(WalError::DiskFull);
            }
        }
        self.admit_internal(bytes)
    }

    /// As [`Wal::admit`] for work that must go on while the disk is full (rollback, checkpoint):
    /// waits instead of failing with [`WalError::DiskFull`].
    pub fn admit_internal(&self, bytes: usize) -> Result<Permit, WalError> {
        let limit = self.max_record_bytes();
        let needed = aligned_len(bytes);
        if needed > limit {
            return Err(WalError::TooLarge { bytes, limit });
        }
        self.check_poison()?;
        let wal = self.me.upgrade().expect("a method runs, so somebody holds the log");
        let permit = Permit { wal, left: Cell::new(0) };
        let at_once =
            self.room_waiters.load(Ordering::SeqCst) == 0 && self.ring.try_promise(needed as u64);
        if !at_once {
            self.wait_for_room(needed as u64)?;
        }
        permit.left.set(needed as u64);
        Ok(permit)
    }

    fn is_file_nearly_full(&self) -> bool {
        self.remaining_file_bytes.load(Ordering::Relaxed) < self.ring.capacity_bytes()
    }

    /// Queues for `bytes` of the ring; flushes while there is something to flush and no leader.
    fn wait_for_room(&self, bytes: u64) -> Result<(), WalError> {
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
    fn grant_room(&self) {
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

    fn leave_room_queue(&self, granted: &Arc<AtomicBool>) {
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

    /// Appends a record. Never parks, so it may be called under latches and under the commit
    /// latch. The permit must have room for it (a broken invariant otherwise).
    pub fn append(&self, permit: &Permit, record: &RecordBuilder) -> LsnRange {
        let needed = record.stream_len() as u64;
        let left = permit.left.get();
        invariant!(needed <= left, "5: a record of {needed} bytes, the permit has {left} left");
        permit.left.set(left - needed);
        let (start, end) = self.ring.append(record);
        if self.room_waiters.load(Ordering::SeqCst) > 0 {
            // They may have parked because there was nothing to flush.
            self.wake_first_room_waiter();
        }
        LsnRange { start: Lsn::new(start), end: Lsn::new(end) }
    }

    fn wake_first_room_waiter(&self) {
        if let Some(first) = self.room.lock().front() {
            first.unparker.unpark();
        }
    }

    /// Everything below is on the device and synced.
    pub fn durable(&self) -> Lsn {
        Lsn::new(self.durable.load(Ordering::Acquire))
    }

    /// Everything below was handed to the device, perhaps without a sync.
    pub fn written(&self) -> Lsn {
        Lsn::new(self.written.load(Ordering::Acquire))
    }

    /// End of the last reservation: the position the next record gets at least.
    pub fn end(&self) -> Lsn {
        Lsn::new(self.ring.tail())
    }

    /// First position that the files still hold.
    pub fn first_lsn(&self) -> Lsn {
        Lsn::new(self.files.first_lsn())
    }

    /// Bytes of the files that hold the log: what recovery may have to read, and what
    /// [`Wal::recycle_before`] brings down.
    pub fn live_file_bytes(&self) -> u64 {
        self.files.live_bytes()
    }

    /// Parks until everything below `lsn` is durable. Not cancellable.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), WalError> {
        self.wait(Goal::Durable(lsn.get()))
    }

    /// What a commit must wait for before it is acknowledged, by the log's flush policy.
    pub fn wait_commit(&self, lsn: Lsn) -> Result<(), WalError> {
        self.wait_commit_as(lsn, self.policy())
    }

    /// As [`Wal::wait_commit`] with the policy of one transaction.
    pub fn wait_commit_as(&self, lsn: Lsn, policy: FlushPolicy) -> Result<(), WalError> {
        match policy {
            FlushPolicy::EveryCommit => self.wait(Goal::Durable(lsn.get())),
            FlushPolicy::WriteEveryCommit => self.wait(Goal::Written(lsn.get())),
            FlushPolicy::EverySecond => self.check_poison(),
        }
    }

    /// Asks for everything below `lsn` to become durable soon; does not wait.
    pub fn flush_kick(&self, lsn: Lsn) {
        if self.durable() >= lsn || self.poison.get().is_some() {
            return;
        }
        self.kicked.fetch_max(lsn.get(), Ordering::SeqCst);
        if !self.kick_running.swap(true, Ordering::SeqCst) {
            let me = self.me.clone();
            drop(runtime::spawn("wal-kick", move || {
                if let Some(wal) = me.upgrade() {
                    wal.serve_kicks();
                }
            }));
        }
    }

    fn serve_kicks(&self) {
        loop {
            let kicked = Lsn::new(self.kicked.load(Ordering::SeqCst));
            // A failure is told to everybody who waits; nobody waits here.
            if self.wait_durable(kicked).is_err() {
                return;
            }
            self.kick_running.store(false, Ordering::SeqCst);
            let is_new = self.kicked.load(Ordering::SeqCst) > kicked.get();
            if !is_new || self.kick_running.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }

    /// The policy commits follow now.
    pub fn policy(&self) -> FlushPolicy {
        FlushPolicy::from_u64(u64::from(self.policy.load(Ordering::Relaxed)))
    }

    /// Changes the policy from the next commit on.
    pub fn set_policy(&self, policy: FlushPolicy) {
        self.policy.store(policy as u8, Ordering::Relaxed);
    }

    /// Files that hold nothing at or above `lsn` may be reused. Call it only after a durable
    /// superblock names a redo LSN (and an oldest active LSN) of at least `lsn`. A failure
    /// loses nothing: the files stay until the next call or start.
    pub fn recycle_before(&self, lsn: Lsn) -> Result<(), WalError> {
        self.check_poison()?;
        let recycled = self.files.recycle_before(lsn.get());
        counters::LIVE_FILE_BYTES.set(self.files.live_bytes() as i64);
        recycled.map_err(|error| open_error(self.files.dir(), error))
    }

    /// Largest record, and largest permit, in bytes of the stream.
    pub fn max_record_bytes(&self) -> usize {
        self.options.ring_bytes / 2
    }

    /// Makes everything appended so far durable and leaves a note of it in the log, so that rot
    /// of the last batch is noticed. The last act of a clean shutdown before the superblock.
    pub fn close(&self) -> Result<Lsn, WalError> {
        self.closing.store(true, Ordering::SeqCst);
        if let Some(background) = self.background.lock().take() {
            background.unpark();
        }
        let end = self.end();
        self.wait(Goal::Noted(end.get()))?;
        Ok(end)
    }

    /// Whether a write or sync has failed; the log accepts nothing more then.
    pub fn check_poison(&self) -> Result<(), WalError> {
        match self.poison.get() {
            None => Ok(()),
            Some(detail) => Err(WalError::Poisoned { detail: detail.clone() }),
        }
    }

    fn is_reached(&self, goal: Goal) -> bool {
        match goal {
            Goal::Durable(lsn) => self.durable.load(Ordering::Acquire) >= lsn,
            Goal::Written(lsn) => self.written.load(Ordering::Acquire) >= lsn,
            Goal::Noted(lsn) => self.noted.load(Ordering::Acquire) >= lsn,
            Goal::Room => false,
        }
    }

    fn wait(&self, goal: Goal) -> Result<(), WalError> {
        if self.is_reached(goal) {
            return Ok(());
        }
        WAITS.add(1);
        loop {
            self.check_poison()?;
            if self.try_lead(goal) {
                if self.is_reached(goal) {
                    return Ok(());
                }
                continue;
            }
            if self.is_reached(goal) {
                return Ok(());
            }
            runtime::park_uncancellable(WaitClass::LogDurable, None);
            if self.is_reached(goal) {
                return Ok(());
            }
            // Woken to lead, or for nothing: the place in the queue is taken again if need be.
            let here = runtime::current_unparker();
            self.flush.lock().waiters.retain(|waiter| waiter.unparker != here);
        }
    }

    /// Leads one flush if nobody else does; otherwise queues the caller for its goal and returns
    /// false, and the caller parks. Room is queued for elsewhere.
    fn try_lead(&self, goal: Goal) -> bool {
        let mut state = self.flush.lock();
        // Between the caller's look and the lock a leader may have finished (invariant 3).
        if self.is_reached(goal) || self.poison.get().is_some() {
            return !matches!(goal, Goal::Room);
        }
        let has_work = |writer: &Writer| match goal {
            Goal::Room => self.ring.tail() > writer.sealed,
            _ => true,
        };
        if state.writer.as_deref().is_some_and(has_work)
            && let Some(mut writer) = state.writer.take()
        {
            let wants_sync =
                |waiter: &Waiter| matches!(waiter.goal, Goal::Durable(_) | Goal::Noted(_));
            let is_sync_wanted = state.waiters.iter().any(wants_sync);
            drop(state);
            let mut guard = LeaderGuard { wal: self, is_finished: false };
            let result = self.lead(&mut writer, goal, is_sync_wanted);
            guard.is_finished = true;
            self.finish(writer, result);
            return true;
        }
        if !matches!(goal, Goal::Room) {
            state.waiters.push(Waiter { goal, unparker: runtime::current_unparker() });
        }
        false
    }

    /// One flush, with a sync if the goal asks for it or somebody else does.
    fn lead(&self, writer: &mut Writer, goal: Goal, is_sync_wanted: bool) -> io::Result<()> {
        let sealed_goal = match goal {
            Goal::Durable(lsn) | Goal::Written(lsn) | Goal::Noted(lsn) => lsn,
            Goal::Room => writer.sealed + 1,
        };
        if writer.sealed < sealed_goal {
            self.await_published(writer.sealed);
        }
        let sync = match goal {
            Goal::Durable(_) | Goal::Noted(_) => true,
            // Whoever waits for more has its sync with this write.
            Goal::Written(_) => is_sync_wanted,
            Goal::Room => is_sync_wanted || self.policy() == FlushPolicy::EveryCommit,
        };
        match goal {
            Goal::Noted(lsn) if writer.sealed >= lsn => writer.write_note(),
            _ => writer.flush(&self.ring, sync, || self.grant_room()),
        }
    }

    /// Waits until the record at `position`, which is reserved, has been copied.
    fn await_published(&self, position: u64) {
        let mut spins = 0;
        while self.ring.published(position, 1) == position {
            invariant!(position < self.ring.tail(), "1: somebody waits for log never appended");
            spins += 1;
            if spins < COPY_SPINS {
                std::hint::spin_loop();
            } else {
                runtime::yield_now();
            }
        }
    }

    /// Publishes what a leader has achieved, gives the writer back and wakes.
    fn finish(&self, writer: Box<Writer>, result: io::Result<()>) {
        if let Err(error) = &result {
            self.set_poison(&format!("writing the log failed: {error}"), true);
        } else {
            self.written.store(writer.sealed, Ordering::Release);
            self.durable.store(writer.durable, Ordering::Release);
            self.noted.store(writer.noted, Ordering::Release);
            self.remaining_file_bytes.store(writer.remaining_file_bytes(), Ordering::Relaxed);
        }
        let sealed = writer.sealed;
        let mut state = self.flush.lock();
        state.writer = Some(writer);
        let mut satisfied = 1;
        let is_poisoned = self.poison.get().is_some();
        state.waiters.retain(|waiter| {
            let is_done = is_poisoned || self.is_reached(waiter.goal);
            if is_done {
                waiter.unparker.unpark();
                satisfied += 1;
            }
            !is_done
        });
        // Invariant 2: the next leader.
        let successor =
            if state.waiters.is_empty() { None } else { Some(state.waiters.remove(0).unparker) };
        drop(state);
        count_group(satisfied);
        match successor {
            Some(successor) => successor.unpark(),
            None if self.room_waiters.load(Ordering::SeqCst) > 0 && self.ring.tail() > sealed => {
                self.wake_first_room_waiter();
            }
            None => {}
        }
    }

    /// Invariant 4.
    fn set_poison(&self, detail: &str, tell: bool) {
        if self.poison.set(Arc::from(detail)).is_ok() && tell {
            (self.options.on_fatal)(detail);
        }
        for waiter in self.room.lock().iter() {
            waiter.unparker.unpark();
        }
    }
}

/// Poisons the log if the leader does not come back: the writer is lost with it.
struct LeaderGuard<'a> {
    wal: &'a Wal,
    is_finished: bool,
}

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.wal.set_poison("the flush leader panicked", false);
            for waiter in self.wal.flush.lock().waiters.drain(..) {
                waiter.unparker.unpark();
            }
        }
    }
}

/// Once a second: makes everything durable (policies 0 and 2, and records of transactions still
/// open), then leaves a note of it.
fn background(wal: &Weak<Wal>) {
    if let Some(wal) = wal.upgrade() {
        *wal.background.lock() = Some(runtime::current_unparker());
    }
    loop {
        let until = runtime::now() + BACKGROUND_PERIOD;
        let is_closing = || wal.upgrade().is_none_or(|wal| wal.closing.load(Ordering::SeqCst));
        while !is_closing() && runtime::now() < until {
            runtime::park(WaitClass::Idle, Some(until));
        }
        let Some(wal) = wal.upgrade() else { return };
        let is_over = wal.closing.load(Ordering::SeqCst);
        if is_over || wal.wait(Goal::Noted(wal.end().get())).is_err() {
            return;
        }
    }
}
