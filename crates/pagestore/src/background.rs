//! The fibers behind a store: flushers, the controller that paces them, the collector.
//!
//! Pace (no stalls): every 10 ms the controller looks at the log rate W (bytes per second,
//! smoothed) and the checkpoint age A (log since the oldest change that is not on disk). The
//! oldest LSN is to advance at
//!
//! ```text
//! v = W * (1 + 2 * (A - A*) / A*), within 0 and 4 W        with A* = half the log cap
//! ```
//!
//! and the flushers write exactly the pages below the point so reached, plus those that frames
//! are needed for. Beyond 0.8 of the cap writers are slowed down smoothly
//! ([`crate::PageStore::throttle_delay`]); there is no point at which everything stops.
//!
//! Without dirty pages the controller sleeps; without dead segments the collector looks once a
//! second.

use crate::collect::Collector;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::flush::Flusher;
use crate::header::class_bytes;
use crate::options::StoreOptions;
use crate::store::{PageStore, Shared};
use base::Lsn;
use runtime::sync::{Event, Mutex};
use runtime::{JoinHandle, WaitClass, WaitClass::Idle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How often the controller looks.
const TICK: Duration = Duration::from_millis(10);
/// Ticks without any log after which everything dirty is written.
const IDLE_TICKS: u32 = 200;
/// Ticks between two looks at the balance of the size classes.
const BALANCE_TICKS: u32 = 100;
/// A commit is never delayed longer than this.
const DELAY_MAX: Duration = Duration::from_millis(10);
/// Flushers at most; the sync record lists their segments.
const FLUSHERS_MAX: usize = 8;
/// A flusher that could write nothing of a batch waits this long.
const NOTHING_WRITTEN_WAIT: Duration = Duration::from_millis(1);

/// State of the background fibers.
#[derive(Debug, Default)]
pub(crate) struct Background {
    fibers: Mutex<Vec<JoinHandle<()>>>,
    controller_work: Event,
    pub(crate) collector_work: Event,
    /// Whether redo is over, so that segments may be collected.
    pub(crate) is_recovered: AtomicBool,
    is_stopping: AtomicBool,
    /// Pages whose first change is below this are to be written.
    flush_below: AtomicU64,
    /// As above, asked for by name: shutdown, checkpoints that cannot wait.
    forced_below: AtomicU64,
    log_cap_bytes: AtomicU64,
}

impl Background {
    /// There is something dirty again.
    pub(crate) fn wake_controller(&self) {
        self.controller_work.set();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}

/// Starts the fibers of a store.
pub(crate) fn start(shared: &Arc<Shared>, options: &StoreOptions) {
    shared.background.log_cap_bytes.store(options.log_cap_bytes, Ordering::Relaxed);
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

fn run_flusher(shared: &Shared) {
    let Some(disk) = &shared.disk else { return };
    let mut flusher = Flusher::new();
    while !shared.background.is_stopping() && disk.check_poison().is_ok() {
        match flush_some(shared, disk, &mut flusher) {
            Ok(Some(0)) => {
                runtime::sleep(NOTHING_WRITTEN_WAIT);
            }
            Ok(Some(_)) => {}
            // Poisoned or stopping: the loop's condition sees it.
            Err(_) => runtime::yield_now(),
            Ok(None) => {
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
    let count = (disk.group_bytes / class_bytes(13)).max(1);
    let cold = {
        let mut cold = shared.cold.lock();
        let end = cold.len().min(count);
        cold.drain(..end).collect::<Vec<_>>()
    };
    let mut batch = shared.dirty.adopt(cold);
    if batch.is_none() {
        let background = &shared.background;
        let frames_are_short =
            shared.frames_wanted.load(Ordering::Relaxed) > 0 || shared.is_mostly_dirty();
        let below = if frames_are_short {
            u64::MAX
        } else {
            let forced = background.forced_below.load(Ordering::Relaxed);
            background.flush_below.load(Ordering::Relaxed).max(forced)
        };
        batch = shared.dirty.take_oldest(count, Lsn::new(below));
    }
    match batch {
        Some(batch) => flusher.flush_batch(shared, disk, &batch).map(Some),
        None => Ok(None),
    }
}

/// What the controller knows from tick to tick.
struct Pace {
    end: u64,
    rate_per_tick: f64,
    idle_ticks: u32,
    ticks: u32,
}

fn run_controller(shared: &Shared) {
    let Some(disk) = &shared.disk else { return };
    let end = disk.wal.end().get();
    let mut pace = Pace { end, rate_per_tick: 0.0, idle_ticks: 0, ticks: 0 };
    while !shared.background.is_stopping() && disk.check_poison().is_ok() {
        if shared.dirty.length() == 0 {
            shared.background.controller_work.take(Idle, None);
        }
        runtime::sleep(TICK);
        pace.tick(shared, disk);
    }
}

impl Pace {
    fn tick(&mut self, shared: &Shared, disk: &Disk) {
        let end = disk.wal.end().get();
        let grown = (end - self.end) as f64;
        self.rate_per_tick += (grown - self.rate_per_tick) / 16.0;
        self.idle_ticks = if grown == 0.0 { self.idle_ticks + 1 } else { 0 };
        self.end = end;
        self.ticks += 1;
        if self.ticks % BALANCE_TICKS == 0 {
            shared.balance_classes();
        }
        shared.continue_draining();
        let Some(oldest) = shared.dirty.oldest() else { return };
        let below = &shared.background.flush_below;
        let target = if self.idle_ticks >= IDLE_TICKS {
            end
        } else {
            let goal = shared.background.log_cap_bytes.load(Ordering::Relaxed) as f64 / 2.0;
            let age = end.saturating_sub(oldest.get()) as f64;
            let factor = (1.0 + 2.0 * (age - goal) / goal).clamp(0.0, 4.0);
            let from = below.load(Ordering::Relaxed).max(oldest.get());
            from + (self.rate_per_tick * factor) as u64
        };
        below.fetch_max(target, Ordering::Relaxed);
        if target > oldest.get() || shared.is_mostly_dirty() {
            shared.flush_work.set();
        }
    }
}

impl PageStore {
    /// Log since the oldest change that is not on disk, in bytes.
    pub fn checkpoint_age_bytes(&self) -> u64 {
        let Some(disk) = &self.shared().disk else { return 0 };
        let oldest = self.shared().dirty.oldest();
        oldest.map_or(0, |oldest| disk.wal.end().get().saturating_sub(oldest.get()))
    }

    /// How long a commit should wait before it goes on, so that the log does not outgrow its
    /// cap: zero below 0.8 of the cap, rising smoothly to 10 ms.
    pub fn throttle_delay(&self) -> Duration {
        let cap = self.shared().background.log_cap_bytes.load(Ordering::Relaxed) as f64;
        let over = |age: u64| (age as f64 - 0.8 * cap) / (0.2 * cap);
        let Some(disk) = &self.shared().disk else { return Duration::ZERO };
        // Every commit asks; the floor tells nearly all of them that there is no hurry.
        let at_most = disk.wal.end().get().saturating_sub(self.shared().dirty.floor());
        if over(at_most) <= 0.0 {
            return Duration::ZERO;
        }
        let over = over(self.checkpoint_age_bytes());
        if over <= 0.0 { Duration::ZERO } else { DELAY_MAX.mul_f64((over * over).min(1.0)) }
    }

    /// Writes every page whose first unwritten change is below `lsn` and waits until that is
    /// done. Parks.
    pub fn flush_until(&self, lsn: Lsn) -> Result<(), StoreError> {
        let Some(disk) = &self.shared().disk else { return Ok(()) };
        let shared = self.shared();
        let outcome = loop {
            if shared.dirty.oldest().is_none_or(|oldest| oldest >= lsn) {
                break Ok(());
            }
            if let Err(error) = disk.check_poison() {
                break Err(error);
            }
            if disk.is_full.load(Ordering::Relaxed) {
                break Err(StoreError::DiskFull);
            }
            shared.background.forced_below.fetch_max(lsn.get(), Ordering::Relaxed);
            shared.flush_work.set();
            runtime::park_uncancellable(WaitClass::Other, Some(runtime::now() + TICK / 10));
        };
        shared.background.forced_below.store(0, Ordering::Relaxed);
        outcome
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
