//! The fibers behind a store: flushers, the controller that paces them, the collector, and the one
//! that makes dictionaries (training.rs).
//!
//! Every 10 ms the controller looks how far the log is ahead of the pages, and the flushers write
//! what is due by `pace`, together with the cold pages whose frames are needed next (`evict` keeps
//! a reserve of free frames). How much is on its way to the device at a time is up to `window`,
//! how pages are compressed to `governor`. Writers are slowed down smoothly before the log outgrows
//! its cap ([`crate::PageStore::throttle_delay`]); there is no point at which everything stops.
//!
//! As many flushers are at work as there is work for: each that finds more than its batch wakes
//! another one.
//!
//! Without dirty pages the controller sleeps; without dead segments the collector looks twice a
//! second.

use crate::collect::Collector;
use crate::counters::add;
use crate::dirty::DirtyPage;
use crate::disk::{Disk, FULL_DISK_WAIT};
use crate::error::StoreError;
use crate::flush::Flusher;
use crate::frames::ClassCounts;
use crate::governor::Load;
use crate::header::{CLASS_MAX, CLASS_MIN};
use crate::options::StoreOptions;
use crate::pace::{self, Look, Pace};
use crate::store::{PageStore, Shared};
use crate::training;
use base::{Lsn, buggify_with, probe};
use runtime::sync::{Event, Mutex};
use runtime::{Instant, JoinHandle, WaitClass, WaitClass::Idle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How often the controller looks.
const TICK: Duration = Duration::from_millis(10);
/// So many pages make a group worth its write ...
const DUE_PAGES: usize = 64;
/// ... or so many ticks since the last one.
const DUE_TICKS: u32 = 8;
/// Ticks between two looks at the balance of the size classes.
const BALANCE_TICKS: u32 = 100;
/// The queue of dirty pages may have so many entries that are stale, and as many as are not.
const STALE_ENTRIES: usize = 4096;
/// Of its buckets so many are swept in a tick: more than are filled in one by any load.
const SWEPT_BUCKETS: usize = 64;
/// Flushers at most: the sync record lists the two segments of each and the collector's, and has
/// to have room for one more.
pub const FLUSHERS_MAX: usize = 7;
/// Who waits for pages to be written on a full disk gives up when none was for so long.
const FULL_DISK_PATIENCE: Duration = Duration::from_secs(2);
/// A writer that had nothing to write for so long is at rest.
pub(crate) const REST_AFTER: Duration = Duration::from_secs(2);
/// A flusher that could write nothing of a batch waits this long.
const NOTHING_WRITTEN_WAIT: Duration = Duration::from_millis(1);

/// See [`PageStore::pace`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaceFigures {
    /// Log since the oldest change that is not on disk.
    pub checkpoint_age_bytes: u64,
    /// What it may grow to before writers are slowed down.
    pub log_cap_bytes: u64,
    /// Pages in memory with changes that are not on disk.
    pub dirty_pages: u64,
    /// Their bytes.
    pub dirty_bytes: u64,
    /// Bytes of pages that may be on their way to the device at a time.
    pub window_bytes: u64,
    /// Of a thousand pages of trees with a costly codec so many are written with LZ4 now.
    pub fallback_share_permille: u64,
}

/// State of the background fibers.
#[derive(Debug, Default)]
pub(crate) struct Background {
    fibers: Mutex<Vec<JoinHandle<()>>>,
    controller_work: Event,
    pub(crate) collector_work: Event,
    /// Whether redo is over, so that segments may be collected.
    pub(crate) is_recovered: AtomicBool,
    is_stopping: AtomicBool,
    /// What was deferred may be compressed anew.
    catches_up: AtomicBool,
    /// There is a fiber that makes dictionaries.
    trains: AtomicBool,
    /// Pages whose first change is below this are to be written.
    flush_below: AtomicU64,
    /// As above, asked for by name: shutdown, checkpoints that cannot wait.
    forced_below: AtomicU64,
    /// What the log may grow to now.
    pub(crate) log_cap_bytes: AtomicU64,
    /// What it may grow to where there is space.
    pub(crate) log_cap_set: AtomicU64,
    /// The cap in bytes of records ([`pace::record_cap`]), of the last tick.
    pub(crate) record_cap_bytes: AtomicU64,
    /// Of a thousand bytes of the pool so many may be dirty whatever the log says.
    dirty_max_permille: AtomicU64,
}

impl Background {
    /// There is something dirty again.
    pub(crate) fn wake_controller(&self) {
        self.controller_work.set();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn catches_up(&self) -> bool {
        self.catches_up.load(Ordering::Relaxed)
    }

    pub(crate) fn start_catching_up(&self) {
        self.catches_up.store(true, Ordering::Relaxed);
        self.collector_work.set();
    }

    pub(crate) fn log_cap_bytes(&self) -> u64 {
        self.log_cap_bytes.load(Ordering::Relaxed)
    }

    /// What the files may take at the cap: some caps where there is space (pace.rs, invariant 4).
    fn files_max(&self) -> u64 {
        let cap = self.log_cap_bytes();
        let is_set = cap == self.log_cap_set.load(Ordering::Relaxed);
        if is_set { cap.saturating_mul(pace::FILES_MAX) } else { cap }
    }

    /// Finds what the cap means in bytes of records now.
    fn look_at_log(&self, disk: &Disk, oldest: Option<Lsn>, end: u64) -> u64 {
        if let Some(oldest) = oldest {
            let records = end.saturating_sub(oldest.get());
            let files = disk.wal.file_bytes_since(oldest);
            let cap = pace::record_cap(self.log_cap_bytes(), records, files, self.files_max());
            self.record_cap_bytes.store(cap, Ordering::Relaxed);
        }
        self.record_cap_bytes.load(Ordering::Relaxed)
    }

    /// Everything changed below `lsn` is to be written as soon as can be.
    pub(crate) fn hasten(&self, lsn: Lsn) {
        self.forced_below.fetch_max(lsn.get(), Ordering::Relaxed);
    }
}

/// Starts the fibers of a store.
pub(crate) fn start(shared: &Arc<Shared>, options: &StoreOptions) {
    shared.background.log_cap_set.store(options.log_cap_bytes, Ordering::Relaxed);
    shared.background.log_cap_bytes.store(options.log_cap_bytes, Ordering::Relaxed);
    shared.background.record_cap_bytes.store(options.log_cap_bytes, Ordering::Relaxed);
    let permille = (options.dirty_share_max.clamp(0.0, 1.0) * 1000.0) as u64;
    shared.background.dirty_max_permille.store(permille, Ordering::Relaxed);
    let mut fibers = shared.background.fibers.lock();
    for number in 0..options.flushers.clamp(1, FLUSHERS_MAX) {
        let shared = shared.clone();
        fibers.push(runtime::spawn_on(number, "page-flusher", move || run_flusher(&shared)));
    }
    let controlled = shared.clone();
    fibers.push(runtime::spawn("page-pace", move || run_controller(&controlled)));
    let collected = shared.clone();
    let collector = Collector::new(options.target_utilisation, options.spare_segments);
    fibers.push(runtime::spawn("page-collector", move || collector.run(&collected)));
}

/// Starts the fiber that makes dictionaries, once.
pub(crate) fn start_training(shared: &Arc<Shared>) {
    let background = &shared.background;
    if shared.disk.is_some() && !background.trains.swap(true, Ordering::Relaxed) {
        let trained = shared.clone();
        let fiber = runtime::spawn("page-dictionaries", move || training::run(&trained));
        background.fibers.lock().push(fiber);
    }
}

fn run_flusher(shared: &Shared) {
    let Some(disk) = &shared.disk else { return };
    let mut flusher = Flusher::new();
    let mut written = Some(runtime::now());
    while !shared.background.is_stopping() && disk.check_poison().is_ok() {
        let outcome = flush_some(shared, disk, &mut flusher);
        if !matches!(outcome, Ok(None)) {
            written = Some(runtime::now());
        }
        match outcome {
            Ok(Some(0)) => {
                runtime::sleep(NOTHING_WRITTEN_WAIT);
            }
            Ok(Some(_)) => {}
            Err(StoreError::DiskFull) => {
                runtime::sleep(FULL_DISK_WAIT);
                // Another one may have room.
                shared.flush_work.set();
            }
            // Poisoned: the loop's condition sees it.
            Err(_) => runtime::yield_now(),
            Ok(None) => {
                if written.is_some_and(|at| at.elapsed() >= REST_AFTER) {
                    written = None;
                    // Poison is seen by the loop's condition.
                    let _ = flusher.rest(disk);
                }
                shared.flush_work.take(Idle, Some(runtime::now() + TICK * 50));
            }
        }
    }
    // After a failure the segment stays open, as after a crash.
    let _ = flusher.close(disk);
}

/// Writes one batch, if any page is due; returns how many pages were written.
fn flush_some(
    shared: &Shared,
    disk: &Disk,
    flusher: &mut Flusher,
) -> Result<Option<usize>, StoreError> {
    if disk.is_full.load(Ordering::Relaxed) && !flusher.has_room(disk) {
        return Err(StoreError::DiskFull);
    }
    let count = flusher.batch_pages(disk);
    let cold = {
        let mut cold = shared.cold.lock();
        let end = cold.len().min(count);
        cold.drain(..end).collect::<Vec<_>>()
    };
    let below = Lsn::new(shared.due_below());
    let Some(batch) = shared.dirty.take(cold, count, below) else { return Ok(None) };
    if batch.leaves_more {
        shared.flush_work.set();
    }
    let written = flusher.flush_batch(shared, disk, &batch);
    shared.free_written(batch.found());
    if disk.has_grown.swap(false, Ordering::Relaxed) {
        // A fast device fills much between two looks of the collector.
        shared.look_at_space(disk);
    }
    written.map(Some)
}

fn run_controller(shared: &Shared) {
    let Some(disk) = &shared.disk else { return };
    let mut controller = Controller::new(disk);
    while !shared.background.is_stopping() && disk.check_poison().is_ok() {
        if shared.dirty.length() == 0 {
            shared.background.controller_work.take(Idle, None);
        }
        runtime::sleep(TICK);
        controller.tick(shared, disk);
    }
}

/// What the controller knows from tick to tick.
struct Controller {
    pace: Pace,
    at: Instant,
    ticks: u32,
    /// Since the flushers were woken last.
    waited: u32,
}

impl Controller {
    fn new(disk: &Disk) -> Controller {
        let pace = Pace::new(disk.wal.end().get());
        Controller { pace, at: runtime::now(), ticks: 0, waited: 0 }
    }

    fn tick(&mut self, shared: &Shared, disk: &Disk) {
        let now = runtime::now();
        let passed = now - self.at;
        self.at = now;
        self.ticks += 1;
        if self.ticks.is_multiple_of(BALANCE_TICKS) || buggify_with!(0.9) {
            shared.balance_classes();
            shared.look_at_deltas();
        }
        shared.continue_draining();
        shared.keep_reserve();
        shared.sweep_dirty();
        let oldest = shared.dirty.oldest();
        let end = disk.wal.end().get();
        let cap = shared.background.look_at_log(disk, oldest, end);
        let oldest = oldest.map(Lsn::get);
        let point = self.pace.tick(&Look { passed, end, oldest, cap });
        shared.background.flush_below.store(point, Ordering::Relaxed);
        self.wake_flushers(shared);

        let over = pace::over(oldest.map_or(0, |oldest| end.saturating_sub(oldest)), cap);
        let wants_frames = shared.frames_wanted.load(Ordering::Relaxed) > 0;
        let urgency = over.max(if wants_frames { 0.5 } else { 0.0 });
        disk.window.adapt(passed, disk.wal.synced_writes(), urgency);
        shared.governor.look_at_cores(now, runtime::pressure);
        shared.governor.look(&Load {
            passed,
            is_behind: over > 0.0 || wants_frames,
            compress_nanos: shared.counters.compress_nanos.load(Ordering::Relaxed),
            write_nanos: shared.counters.write_nanos.load(Ordering::Relaxed),
        });
    }

    /// Wakes a flusher when what is due is worth a group, or has waited for a while.
    fn wake_flushers(&mut self, shared: &Shared) {
        self.waited += 1;
        let below = Lsn::new(shared.due_below());
        let due = shared.dirty.count_below(below, DUE_PAGES);
        if due >= DUE_PAGES || (due > 0 && self.waited >= DUE_TICKS) {
            self.waited = 0;
            shared.flush_work.set();
        }
    }
}

impl Shared {
    /// Changes below this position are to be written now.
    fn due_below(&self) -> u64 {
        let frames_are_short =
            self.frames_wanted.load(Ordering::Relaxed) > 0 || self.is_mostly_dirty();
        if frames_are_short {
            return u64::MAX;
        }
        let forced = self.background.forced_below.load(Ordering::Relaxed);
        self.background.flush_below.load(Ordering::Relaxed).max(forced)
    }

    /// Sweeps a part of the queue if half of it is stale (dirty.rs invariant 1).
    pub(crate) fn sweep_dirty(&self) {
        let counts = (CLASS_MIN..=CLASS_MAX).map(|class| &self.frames.counts(class).dirty);
        let dirty: usize = counts.map(|count| count.load(Ordering::Relaxed)).sum();
        if self.dirty.length() <= 2 * dirty + STALE_ENTRIES && !buggify_with!(0.1) {
            return;
        }
        let rec_lsn = |page: &DirtyPage| &self.frames.descriptor(page.frame).rec_lsn;
        let is_dirty =
            |page: &DirtyPage| rec_lsn(page).load(Ordering::Relaxed) == page.rec_lsn.get();
        for _ in 0..SWEPT_BUCKETS {
            if self.dirty.sweep(is_dirty) {
                probe!("pagestore_dirty_queue_swept");
                break;
            }
            runtime::yield_if_due();
        }
    }

    /// See [`PageStore::hasten_for_space`].
    pub(crate) fn hasten_for_space(&self, disk: &Disk) {
        if self.dirty.length() >= DUE_PAGES {
            self.background.hasten(disk.wal.end());
            self.flush_work.set();
        }
    }

    /// Whether more of the pool is dirty than may be.
    fn is_mostly_dirty(&self) -> bool {
        let permille = self.background.dirty_max_permille.load(Ordering::Relaxed);
        self.dirty_bytes() as u64 * 1000 > self.frames.page_bytes() as u64 * permille
    }
}

impl PageStore {
    /// Log since the oldest change that is not on disk, in bytes.
    pub fn checkpoint_age_bytes(&self) -> u64 {
        let Some(disk) = &self.shared().disk else { return 0 };
        let oldest = self.shared().dirty.oldest();
        oldest.map_or(0, |oldest| disk.wal.end().get().saturating_sub(oldest.get()))
    }

    /// How long a writer that has logged so many bytes should wait before it goes on, so that the
    /// log does not outgrow its cap: zero below 0.8 of the cap, rising smoothly to 10 ms for 4 KiB
    /// at the cap, and on beyond it.
    pub fn throttle_delay(&self, logged_bytes: u64) -> Duration {
        let shared = self.shared();
        let cap = shared.background.record_cap_bytes.load(Ordering::Relaxed);
        let Some(disk) = &shared.disk else { return Duration::ZERO };
        // Every commit asks; the floor tells nearly all of them that there is no hurry.
        let at_most = disk.wal.end().get().saturating_sub(shared.dirty.floor());
        if pace::over(at_most, cap) <= 0.0 {
            return Duration::ZERO;
        }
        let delay = pace::delay(self.checkpoint_age_bytes(), cap, logged_bytes);
        if !delay.is_zero() {
            add(&shared.counters.delays, 1);
            add(&shared.counters.delay_nanos, delay.as_nanos() as u64);
        }
        delay
    }

    /// Changes how much of the pool may be dirty whatever the log says, from 0 to 1.
    pub fn set_dirty_share_max(&self, share: f64) {
        let permille = (share.clamp(0.0, 1.0) * 1000.0) as u64;
        self.shared().background.dirty_max_permille.store(permille, Ordering::Relaxed);
    }

    /// What the controller sees and does at the moment.
    pub fn pace(&self) -> PaceFigures {
        let shared = self.shared();
        let classes = CLASS_MIN..=CLASS_MAX;
        let sum = |of: fn(&ClassCounts) -> usize| -> u64 {
            classes.clone().map(|class| of(shared.frames.counts(class)) as u64).sum()
        };
        PaceFigures {
            checkpoint_age_bytes: self.checkpoint_age_bytes(),
            log_cap_bytes: shared.background.record_cap_bytes.load(Ordering::Relaxed),
            dirty_pages: sum(|counts| counts.dirty.load(Ordering::Relaxed)),
            dirty_bytes: shared.dirty_bytes() as u64,
            window_bytes: shared.disk.as_ref().map_or(0, |disk| disk.window.limit_bytes()),
            fallback_share_permille: shared.governor.share_permille(),
        }
    }

    /// Writes every page whose first unwritten change is below `lsn` and waits until that is
    /// done. Parks.
    pub fn flush_until(&self, lsn: Lsn) -> Result<(), StoreError> {
        let Some(disk) = &self.shared().disk else { return Ok(()) };
        let shared = self.shared();
        let written = || shared.counters.flushed_pages.load(Ordering::Relaxed);
        let (mut last, mut since) = (written(), runtime::now());
        let outcome = loop {
            let oldest = shared.dirty.oldest();
            if oldest.is_none_or(|oldest| oldest >= lsn) {
                break Ok(());
            }
            if written() != last {
                (last, since) = (written(), runtime::now());
            }
            if let Err(error) = disk.check_poison() {
                break Err(error);
            }
            // The collector may give them space yet.
            if disk.is_full.load(Ordering::Relaxed) && since.elapsed() > FULL_DISK_PATIENCE {
                break Err(StoreError::DiskFull);
            }
            self.hasten_flush(lsn);
            runtime::park_uncancellable(WaitClass::Other, Some(runtime::now() + TICK / 10));
        };
        shared.background.forced_below.store(0, Ordering::Relaxed);
        outcome
    }

    /// Asks for every page whose first unwritten change is below `lsn` to be written, and does not
    /// wait for it.
    pub fn hasten_flush(&self, lsn: Lsn) {
        self.shared().background.hasten(lsn);
        self.shared().flush_work.set();
    }

    /// As [`PageStore::hasten_flush`] with everything, for the sake of space, where that is worth a
    /// group: small groups take more than they give.
    pub fn hasten_for_space(&self) {
        let shared = self.shared();
        if let Some(disk) = &shared.disk {
            shared.hasten_for_space(disk);
        }
    }

    /// Stops the background fibers and waits for their end. Dirty pages that were not flushed
    /// ([`PageStore::flush_until`]) stay unwritten, as in a crash. Parks.
    pub fn close(&self) -> Result<(), StoreError> {
        let Some(disk) = &self.shared().disk else { return Ok(()) };
        let background = &self.shared().background;
        background.is_stopping.store(true, Ordering::Relaxed);
        disk.is_stopping.store(true, Ordering::Relaxed);
        let fibers = std::mem::take(&mut *background.fibers.lock());
        for fiber in fibers {
            self.shared().flush_work.set();
            background.controller_work.set();
            background.collector_work.set();
            self.shared().dictionaries.work.set();
            if let Err(panic) = self.join(fiber) {
                return Err(disk.fatal(&panic));
            }
        }
        disk.check_poison()?;
        disk.sync_data()?;
        // What is durable now is noted, so that rot in it can be told from a torn write.
        disk.write_superblock(|_| {})
    }

    /// Joins a fiber, reminding it meanwhile that it is to stop: one `set` wakes one fiber only.
    fn join(&self, fiber: JoinHandle<()>) -> Result<(), String> {
        while !fiber.is_finished() {
            self.shared().flush_work.set();
            runtime::sleep(TICK / 10);
        }
        fiber.join().map_err(|panic| format!("a background fiber panicked: {panic}"))
    }
}
