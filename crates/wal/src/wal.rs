//! The log as its users see it. Admission is in `room`, waiting and leading in `leading`.
//!
//! Invariants:
//! 1. `durable <= written <= published <= tail`; each only grows.
//! 2. At most one fiber has the writer; whoever gives it back wakes a successor if anybody waits
//!    for something that needs a flush, so no waiter is left behind.
//! 3. A waiter queues itself under the lock under which the writer is given back.
//! 4. After a failed write or sync nothing is reported as durable any more (poison), because the
//!    state of the device is unknown and asking again can lie.
//! 5. `append` neither parks nor fails; `admit` has taken care of room before.
//! 6. Behind a `close`, failed or not, no next file is made as long as nobody appends: the log can
//!    be opened again.

use crate::counters;
use crate::files::LogFiles;
use crate::leading::{FlushState, Goal, background};
use crate::listing;
use crate::record::RecordBuilder;
use crate::ring::Ring;
use crate::room::{Permit, RoomWaiter};
use crate::types::{FIRST_LSN, FlushPolicy, LogEnd, LsnRange, WalError, WalOptions};
use crate::writer::Writer;
use base::{Lsn, invariant};
use runtime::Unparker;
use runtime::sync::Mutex;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// The log. Shared by all fibers.
#[derive(Debug)]
pub struct Wal {
    pub(crate) me: Weak<Wal>,
    pub(crate) options: WalOptions,
    pub(crate) ring: Ring,
    pub(crate) files: Arc<LogFiles>,
    pub(crate) flush: Mutex<FlushState>,
    /// Fibers waiting for room, in order of arrival.
    pub(crate) room: Mutex<VecDeque<RoomWaiter>>,
    pub(crate) room_waiters: AtomicU64,
    pub(crate) durable: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) noted: AtomicU64,
    /// Synced writes of this log, and the nanoseconds they took.
    pub(crate) synced_writes: AtomicU64,
    pub(crate) synced_write_nanos: AtomicU64,
    pub(crate) remaining_file_bytes: AtomicU64,
    /// What the file system could still give when it was looked at last.
    pub(crate) available_bytes: AtomicU64,
    /// What undoing all transactions may log.
    pub(crate) undo_bytes: AtomicU64,
    pub(crate) policy: AtomicU8,
    pub(crate) kicked: AtomicU64,
    pub(crate) kick_running: AtomicBool,
    pub(crate) closing: AtomicBool,
    pub(crate) background: Mutex<Option<Unparker>>,
    pub(crate) poison: OnceLock<Arc<str>>,
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
        let listing = listing::list(dir, &options.database_uuid).map_err(fail)?;
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
        let listing = listing::list(dir, &options.database_uuid).map_err(fail)?;
        let current = listing.logs.iter().find(|log| log.sequence == end.file_sequence);
        let Some(current) = current.cloned() else {
            return Err(open_error(dir, format!("no file number {}", end.file_sequence)));
        };
        let Some(header) = current.header else {
            return Err(open_error(&current.path, "its header is damaged"));
        };
        let files = Arc::new(LogFiles::new(dir, &options));
        files.adopt(listing, end.file_sequence).map_err(fail)?;
        let file = listing::open_file(&current.path).map_err(fail)?;
        let place = (file, current.len);
        let writer = Writer::new(files.clone(), &options, place, header.block_bytes, end, epoch);
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
            synced_writes: AtomicU64::new(0),
            synced_write_nanos: AtomicU64::new(0),
            remaining_file_bytes: AtomicU64::new(writer.remaining_file_bytes()),
            available_bytes: AtomicU64::new(u64::MAX / 2),
            undo_bytes: AtomicU64::new(0),
            flush: Mutex::new(FlushState::new(writer)),
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

    /// Appends a record. Never parks, so it may be called under latches and under the commit
    /// latch. The permit must have room for it (a broken invariant otherwise).
    pub fn append(&self, permit: &Permit<'_>, record: &RecordBuilder) -> LsnRange {
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

    /// Everything below is on the device and synced.
    pub fn durable(&self) -> Lsn {
        Lsn::new(self.durable.load(Ordering::Acquire))
    }

    /// Everything below was handed to the device, perhaps without a sync.
    pub fn written(&self) -> Lsn {
        Lsn::new(self.written.load(Ordering::Acquire))
    }

    /// Batches written and synced in one operation since the log was opened, and the nanoseconds
    /// that took: how long the queue before the device is.
    pub fn synced_writes(&self) -> (u64, u64) {
        let writes = self.synced_writes.load(Ordering::Relaxed);
        (writes, self.synced_write_nanos.load(Ordering::Relaxed))
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

    /// Bytes of files that the log from `lsn` on takes. Every batch fills whole blocks, so commits
    /// that come one at a time take many times the bytes of their records.
    pub fn file_bytes_since(&self, lsn: Lsn) -> u64 {
        let remaining = self.remaining_file_bytes.load(Ordering::Relaxed);
        self.files.bytes_between(lsn.get(), self.ring.tail(), remaining)
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

    /// Counts a commit that was about to append its record at `begun` and that
    /// goes on now.
    pub fn count_commit(&self, begun: runtime::Instant) {
        counters::COMMITS.add(1);
        counters::COMMIT_WAIT_NANOS.add(begun.elapsed().as_nanos() as u64);
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

    /// Whether [`Wal::recycle_before`] would find a file that holds nothing at or above `lsn`.
    pub fn has_files_before(&self, lsn: Lsn) -> bool {
        self.files.has_files_before(lsn.get())
    }

    /// Largest record, and largest permit, in bytes of the stream.
    pub fn max_record_bytes(&self) -> usize {
        self.options.ring_bytes / 2
    }

    /// Makes everything appended so far durable and leaves a note of it in the log, so that rot
    /// of the last batch is noticed. The last act of a clean shutdown before the superblock.
    /// The next file is not made to its end.
    pub fn close(&self) -> Result<Lsn, WalError> {
        self.closing.store(true, Ordering::SeqCst);
        if let Some(background) = self.background.lock().take() {
            background.unpark();
        }
        let end = self.end();
        let noted = self.wait(Goal::Noted(end.get()));
        // Invariant 6; behind the flush, which may need the next file, or have one prepared.
        self.files.end_preparations();
        noted.map(|()| end)
    }

    /// Whether a write or sync has failed; the log accepts nothing more then.
    pub fn check_poison(&self) -> Result<(), WalError> {
        match self.poison.get() {
            None => Ok(()),
            Some(detail) => Err(WalError::Poisoned { detail: detail.clone() }),
        }
    }
}
