//! The files of the log: names, preallocation ahead of need, recycling.
//!
//! ```text
//! wal-0000000007.log    a file of the log, or the prepared next one (its header says which)
//! spare-0000000003.log  recycled, waits for reuse
//! new-0000000008.log    being created; removed at the next start
//! ```
//!
//! Invariants:
//! 1. A file is part of the log exactly if its name and its header give the same sequence. The
//!    prepared next file has a zero or an older header until its first batch is written, in one
//!    write together with its header.
//! 2. A file gets its `wal-` name only when all of it is allocated and written once (zeroes or
//!    former log), and the directory is synced before its first batch: a commit never waits for
//!    a file to grow.
//! 3. Only files wholly below the LSN that `recycle_before` was given leave the log, oldest
//!    first. A renaming lost in a crash leaves an old file with its old name, which is harmless.
//! 4. One fiber at a time makes the next file. When `end_preparations` has returned none does, and
//!    none but a leader begins: whoever opens the log again removes what is unfinished and renames
//!    what was prepared, and must be alone with these files.
//! 5. A sequence is given once. A file that the leader has taken is part of the log only when its
//!    first batch is written: one that is made meanwhile is the one behind it, and does not take
//!    its name.

mod making;

use crate::counters::{FILES_RECYCLED, FILES_REMOVED};
use crate::listing::{Listing, LogFile, log_name};
use crate::space_notice::SpaceNotice;
use crate::spares::{Demand, SPARES_MIN, Spare};
use crate::types::WalOptions;
use base::probe;
use making::Preparation;
use runtime::WaitClass;
use runtime::file::File;
use runtime::sync::Mutex;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub(crate) use making::Pace;

/// A full disk is asked for space again after this time.
const RETRY_PERIOD: Duration = Duration::from_millis(100);

/// A file ready to become the next one.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    pub(crate) sequence: u64,
    pub(crate) len: u64,
    /// It was the last spare.
    is_last_spare: bool,
}

#[derive(Debug)]
enum Next {
    None,
    Preparing(Vec<runtime::Unparker>),
    Ready(Prepared),
}

#[derive(Debug, Clone)]
struct LiveFile {
    path: PathBuf,
    sequence: u64,
    first_lsn: u64,
    len: u64,
}

#[derive(Debug)]
struct State {
    /// Oldest first; the last one is being written.
    live: VecDeque<LiveFile>,
    spares: Vec<Spare>,
    demand: Demand,
    next: Next,
    /// The newest sequence that a leader has taken (invariant 5).
    taken: u64,
    /// Nothing is made ahead of need any more (invariant 4).
    is_ending: bool,
}

impl State {
    /// Bytes of all files: those that hold the log, the prepared one, spares.
    fn all_bytes(&self) -> u64 {
        let live: u64 = self.live.iter().map(|file| file.len).sum();
        live + self.next_bytes() + self.spare_bytes()
    }

    fn next_bytes(&self) -> u64 {
        if let Next::Ready(next) = &self.next { next.len } else { 0 }
    }

    fn spare_bytes(&self) -> u64 {
        self.spares.iter().map(|spare| spare.1).sum()
    }

    /// Whether the oldest file holds nothing at or above `lsn`. The current one stays.
    fn has_files_before(&self, lsn: u64) -> bool {
        self.live.get(1).is_some_and(|second| second.first_lsn <= lsn)
    }

    /// Whether a file that the log gives back is kept (spares.rs, invariants 4 to 6).
    fn wants_spare(&self, len: u64, kept_bytes: u64) -> bool {
        // What `make_next` takes when it would like a file twice as long as the current one.
        let is_long = self.live.back().is_none_or(|current| len >= current.len / 2);
        // One more than expected: perhaps the next file is not prepared yet.
        let is_expected = self.spare_bytes() < self.demand.expected_bytes() + len;
        let fits = self.all_bytes() + len <= kept_bytes;
        self.spares.len() < SPARES_MIN || is_long && is_expected && fits
    }

    /// A spare of at least so many bytes, if more than `kept` are there.
    fn take_spare(&mut self, least_bytes: u64, kept: usize) -> Option<Spare> {
        if self.spares.len() <= kept {
            return None;
        }
        let found = self.spares.iter().position(|spare| spare.1 >= least_bytes);
        found.map(|index| self.spares.swap_remove(index))
    }
}

/// The directory of an open log.
#[derive(Debug)]
pub(crate) struct LogFiles {
    dir: PathBuf,
    /// See [`WalOptions::block_bytes_max`]; lengths of files are multiples of it.
    pub(crate) block_bytes_max: usize,
    max_file_bytes: u64,
    first_file_bytes: u64,
    kept_bytes: u64,
    state: Mutex<State>,
    /// The last preparation failed for lack of space.
    out_of_space: AtomicBool,
    /// Space is so short that a reserve is to be there (spares.rs, invariant 7).
    pub(crate) reserve_wanted: AtomicBool,
    pub(crate) is_making_reserve: AtomicBool,
    retry_at_nanos: AtomicU64,
    pub(crate) space_notice: SpaceNotice,
    /// Numbers of spares are never reused within a life: a name belongs to one file.
    next_spare: AtomicU64,
}

/// Whether this failure means that the device is full.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    // ENOSPC, EDQUOT
    matches!(error.raw_os_error(), Some(28 | 122))
}

impl LogFiles {
    pub(crate) fn new(dir: &Path, options: &WalOptions) -> LogFiles {
        LogFiles {
            dir: dir.to_path_buf(),
            block_bytes_max: options.block_bytes_max(),
            max_file_bytes: options.max_file_bytes,
            first_file_bytes: options.first_file_bytes,
            kept_bytes: options.kept_bytes,
            state: Mutex::new(State {
                live: VecDeque::new(),
                spares: Vec::new(),
                demand: Demand::new(),
                next: Next::None,
                taken: 0,
                is_ending: false,
            }),
            out_of_space: AtomicBool::new(false),
            reserve_wanted: AtomicBool::new(false),
            is_making_reserve: AtomicBool::new(false),
            retry_at_nanos: AtomicU64::new(0),
            space_notice: SpaceNotice::new(options.on_disk_full.clone()),
            next_spare: AtomicU64::new(1),
        }
    }

    /// Takes over what a former run left: `listing` with the end of the log in file `current`.
    /// Files before a gap are spares (invariant 3), so are prepared files.
    pub(crate) fn adopt(&self, listing: Listing, current: u64) -> io::Result<()> {
        for path in &listing.unfinished {
            runtime::fs::remove_file(path)?;
        }
        self.next_spare.fetch_max(listing.next_spare, Ordering::Relaxed);
        let mut live: VecDeque<LiveFile> = VecDeque::new();
        let mut spares = listing.spares;
        for log in listing.logs.iter().rev() {
            let wanted = live.front().map_or(current, |next| next.sequence - 1);
            match &log.header {
                Some(header) if log.sequence == wanted => live.push_front(LiveFile {
                    path: log.path.clone(),
                    sequence: log.sequence,
                    first_lsn: header.first_lsn,
                    len: log.len,
                }),
                _ => spares.push(self.demote(log)?),
            }
        }
        runtime::fs::sync_dir(&self.dir)?;
        let mut state = self.state.lock();
        state.live = live;
        state.spares = spares;
        Ok(())
    }

    /// Gives a file that is not part of the log the name of a spare.
    fn demote(&self, log: &LogFile) -> io::Result<Spare> {
        let path = self.spare_path();
        runtime::fs::rename(&log.path, &path)?;
        Ok((path, log.len))
    }

    /// A name for a spare that no file has.
    pub(crate) fn spare_path(&self) -> PathBuf {
        let number = self.next_spare.fetch_add(1, Ordering::Relaxed);
        self.dir.join(format!("spare-{number:010}.log"))
    }

    /// The current file has become the newest of the log.
    pub(crate) fn began(&self, sequence: u64, first_lsn: u64, len: u64) {
        let path = self.dir.join(log_name(sequence));
        let mut state = self.state.lock();
        state.demand.note_begun(len);
        state.live.push_back(LiveFile { path, sequence, first_lsn, len });
    }

    /// Bytes of the files that hold the log.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.state.lock().live.iter().map(|file| file.len).sum()
    }

    /// Bytes of the files that hold the log from `lsn` to `end`, when the last of them has
    /// `remaining_bytes` left; of the file with `lsn` its part of the stream there.
    pub(crate) fn bytes_between(&self, lsn: u64, end: u64, remaining_bytes: u64) -> u64 {
        let state = self.state.lock();
        let (mut bytes, mut until, mut unused) = (0, end, remaining_bytes);
        for file in state.live.iter().rev() {
            let used = file.len.saturating_sub(unused);
            if file.first_lsn <= lsn {
                let stream = until.saturating_sub(file.first_lsn).max(1);
                let share = u128::from(used) * u128::from(until.saturating_sub(lsn));
                return bytes + (share / u128::from(stream)) as u64;
            }
            bytes += used;
            (until, unused) = (file.first_lsn, 0);
        }
        bytes
    }

    /// Bytes of all files: those that hold the log, the prepared one, spares.
    pub(crate) fn all_bytes(&self) -> u64 {
        self.state.lock().all_bytes()
    }

    /// Bytes of the files that the log can go on in: the prepared one and spares.
    pub(crate) fn bytes_ahead(&self) -> u64 {
        let state = self.state.lock();
        state.next_bytes() + state.spare_bytes()
    }

    /// First LSN the files still hold.
    pub(crate) fn first_lsn(&self) -> u64 {
        self.state.lock().live.front().map_or(0, |file| file.first_lsn)
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether the next file could not be prepared for lack of space.
    pub(crate) fn out_of_space(&self) -> bool {
        self.out_of_space.load(Ordering::Relaxed)
    }

    /// Tries again to prepare the next file, not more often than every [`RETRY_PERIOD`].
    pub(crate) fn retry_next(&self) {
        let now = runtime::now().as_nanos();
        let due = self.retry_at_nanos.load(Ordering::Relaxed);
        if now < due {
            return;
        }
        let next = now + RETRY_PERIOD.as_nanos() as u64;
        let ours =
            self.retry_at_nanos.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        if ours.is_ok() {
            self.prepare(Pace::Soon);
        }
    }

    /// Whether the next file should be prepared now.
    pub(crate) fn wants_next(&self) -> bool {
        matches!(self.state.lock().next, Next::None)
    }

    /// Whether the next file is ready.
    pub(crate) fn has_next(&self) -> bool {
        matches!(self.state.lock().next, Next::Ready(_))
    }

    /// Makes the next file ready unless it is; one fiber does it, others return at once.
    /// A full disk is remembered, other failures are left to [`LogFiles::take_next`].
    pub(crate) fn prepare_next(&self) {
        self.prepare(Pace::Unhurried);
    }

    fn prepare(&self, pace: Pace) {
        if let Some(preparation) = self.begin_preparing(pace) {
            let kept = usize::from(self.wants_reserve());
            let made = self.make_next(0, kept, pace);
            preparation.end(made, pace).ok();
        }
    }

    fn begin_preparing(&self, pace: Pace) -> Option<Preparation<'_>> {
        let mut state = self.state.lock();
        let is_allowed = pace == Pace::Now || !state.is_ending;
        if !is_allowed || !matches!(state.next, Next::None) {
            return None;
        }
        state.next = Next::Preparing(Vec::new());
        Some(Preparation::new(self))
    }

    /// Lets nothing be made ahead of need from now on, and waits until the file that is being made
    /// is given up or ready (invariant 4). That takes a piece of it and a pause at most.
    pub(crate) fn end_preparations(&self) {
        loop {
            let mut state = self.state.lock();
            state.is_ending = true;
            let Next::Preparing(waiters) = &mut state.next else { return };
            probe!("wal.closed_amid_preparation");
            waiters.push(runtime::current_unparker());
            drop(state);
            runtime::park_uncancellable(WaitClass::LogSpace, None);
        }
    }

    /// The next file, with room for at least `need_bytes`; waits for it or makes it.
    pub(crate) fn take_next(&self, need_bytes: u64) -> io::Result<Prepared> {
        loop {
            let mut state = self.state.lock();
            match std::mem::replace(&mut state.next, Next::None) {
                Next::Ready(prepared) if prepared.len >= need_bytes => {
                    state.taken = prepared.sequence;
                    return Ok(prepared);
                }
                Next::Ready(prepared) => {
                    probe!("wal.prepared_file_too_small");
                    state.next = Next::Preparing(Vec::new());
                    drop(state);
                    let _preparation = Preparation::new(self);
                    self.put_aside(prepared)?;
                    continue;
                }
                Next::Preparing(mut waiters) => {
                    probe!("wal.waited_for_next_file");
                    waiters.push(runtime::current_unparker());
                    state.next = Next::Preparing(waiters);
                    drop(state);
                    runtime::park_uncancellable(WaitClass::LogSpace, None);
                    continue;
                }
                Next::None => {}
            }
            drop(state);
            if let Some(preparation) = self.begin_preparing(Pace::Now) {
                let made = self.make_next(need_bytes, 0, Pace::Now);
                preparation.end(made, Pace::Now)?;
            }
        }
    }

    /// Turns a prepared file that is too small into a spare. If that fails it is none: the file
    /// that is made in its place takes its name.
    fn put_aside(&self, prepared: Prepared) -> io::Result<()> {
        let path = self.spare_path();
        drop(prepared.file);
        runtime::fs::rename(&prepared.path, &path)?;
        self.state.lock().spares.push((path, prepared.len));
        Ok(())
    }

    /// Smallest and largest size of a file, bytes.
    pub(crate) fn file_bytes_bounds(&self) -> (u64, u64) {
        (self.first_file_bytes, self.max_file_bytes)
    }

    /// The spares, held for a moment: `change` must not park.
    pub(crate) fn with_spares<R>(&self, change: impl FnOnce(&mut Vec<Spare>) -> R) -> R {
        change(&mut self.state.lock().spares)
    }

    /// What is expected of the spares, and they; `change` must not park.
    pub(crate) fn with_demand<R>(
        &self,
        change: impl FnOnce(&mut Demand, &mut Vec<Spare>) -> R,
    ) -> R {
        let State { demand, spares, .. } = &mut *self.state.lock();
        change(demand, spares)
    }

    /// See [`crate::Wal::has_files_before`].
    pub(crate) fn has_files_before(&self, lsn: u64) -> bool {
        self.state.lock().has_files_before(lsn)
    }

    /// See [`crate::Wal::recycle_before`].
    pub(crate) fn recycle_before(&self, lsn: u64) -> io::Result<()> {
        let mut retired = Vec::new();
        {
            let mut state = self.state.lock();
            while state.has_files_before(lsn) {
                retired.extend(state.live.pop_front());
            }
            if retired.is_empty() {
                return Ok(());
            }
            state.demand.note_retirement();
        }
        for file in retired {
            let is_kept = self.state.lock().wants_spare(file.len, self.kept_bytes);
            if is_kept {
                let path = self.spare_path();
                runtime::fs::rename(&file.path, &path)?;
                self.state.lock().spares.push((path, file.len));
                FILES_RECYCLED.add(1);
                probe!("wal.file_recycled");
            } else {
                runtime::fs::remove_file(&file.path)?;
                FILES_REMOVED.add(1);
                probe!("wal.file_removed");
            }
        }
        runtime::fs::sync_dir(&self.dir)?;
        self.out_of_space.store(false, Ordering::Relaxed);
        self.trim_spares(self.available_bytes())
    }
}
