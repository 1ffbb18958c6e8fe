//! How much is to be collected, how fast, and what writers feel of it.
//!
//! Garbage G is what the closed segments hold beside live copies. Of live bytes L the store may
//! hold G* = L (1 / u - 1) of it, u being the target share of live bytes. While pages are written
//! at W bytes a second, the collector may move
//!
//! ```text
//! v = W * u' / (1 - u') * (1 + 2 (G - G*) / G*), within 0 and 4 times the feed-forward
//! ```
//!
//! bytes a second, u' being the live share of its next victim: the feed-forward reclaims a byte
//! for each byte written, and the rest leads G to G*. There is no threshold at which collection
//! starts or stops at once.
//!
//! 1. While little is written the target is higher and the collector moves at a rate of its own,
//!    so that space is back soon after deletes. Beyond that target a byte gained costs ever more
//!    bytes moved: up to [`REST_UTILISATION`] they are moved once, against what was written since
//!    the start, of which [`REST_SHARE`] may be moved for that.
//! 2. When G grows beyond [`DEBT_FREE`] G* all the same, commits are delayed, smoothly
//!    ([`crate::PageStore::throttle_delay`] takes the longer of both delays).
//! 3. When the disk is short of space, everything that gives some back is collected, at any rate.
//! 4. Short of space means: what the file system can still give would not do for the dirty pages
//!    in memory, the collector's reserve and what the log may grow by. What would grow has to wait
//!    from then on, so that what was acknowledged can be written and deletes go on. From
//!    [`NEAR_FACTOR`] times that on the log is made to follow its cap ahead of the pace.
//! 5. A store is at its end when live copies would fill more than [`END_UTILISATION`] of all the
//!    space there is, once what is dirty in memory is written over what that has on disk. What
//!    would grow is refused then: collection could go on, but it would move ever more for ever
//!    less. Until then it is worth waiting for.

use crate::disk::{Disk, Stream};
use crate::frames::FrameDescriptor;
use crate::location::Location;
use crate::segments::SegmentTable;
use crate::store::{PageStore, Shared};
use base::PageId;
use runtime::Instant;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Target share while little is written (invariant 1).
const IDLE_UTILISATION: f64 = 0.88;
/// Target share at rest, of what full segments hold, as long as there is credit (invariant 1) ...
const REST_UTILISATION: f64 = 0.96;
/// ... which grows by this share of the bytes of pages written.
const REST_SHARE: f64 = 0.5;
/// Invariant 5, of what full segments hold.
const END_UTILISATION: f64 = 0.93;
/// Target share on a disk that is short of space, of what full segments hold: above the share at
/// which nothing may grow, or there would be garbage that nobody collects.
const SHORT_UTILISATION: f64 = 0.96;
/// Target share where a write has found no space: whatever gives something back is collected.
const FULL_UTILISATION: f64 = 0.985;
/// Frames that are looked at, at most, for what their pages have on disk.
const FRAMES_LOOKED_AT: usize = 1 << 16;
/// Space that is looked at often, as a multiple of what is needed.
const NEAR_FACTOR: u64 = 4;
/// Bytes a second that the collector moves while nothing is written.
pub(crate) const IDLE_RATE: f64 = 96e6;
/// As good as nothing is written below this rate.
const IDLE_WRITTEN: f64 = 400e3;
/// The feed-forward is multiplied by this at most.
const FACTOR_MAX: f64 = 4.0;
/// Bytes that may be moved at once after a time in which less was moved than allowed.
const BURST_BYTES: f64 = (16 << 20) as f64;
/// Time over which the rate of writing is smoothed.
const SMOOTHING: f64 = 2.0;
/// Garbage beyond so many times its goal delays commits.
const DEBT_FREE: f64 = 5.0;
/// A commit is never delayed longer than this.
const DELAY_MAX: Duration = Duration::from_millis(10);
/// Stores with fewer closed segments delay nobody.
const DEBT_SEGMENTS_MIN: usize = 16;

/// Live bytes and garbage of the closed segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) live: u64,
    pub(crate) all: u64,
    pub(crate) segments: usize,
}

impl Load {
    pub(crate) fn of(table: &SegmentTable) -> Load {
        let (live, all, segments) = table.utilisation();
        Load { live, all, segments }
    }

    /// Live share of an average segment: what a victim has at most.
    pub(crate) fn victim_share(&self) -> f64 {
        self.live as f64 / self.all.max(1) as f64
    }

    /// Garbage over the garbage that is aimed at.
    pub(crate) fn debt(&self, target: f64) -> f64 {
        let goal = self.live as f64 * (1.0 / target - 1.0);
        self.all.saturating_sub(self.live) as f64 / goal.max(1.0)
    }
}

/// What the collector may move.
#[derive(Debug)]
pub(crate) struct Pace {
    busy_utilisation: f64,
    /// Bytes of pages written, when it was looked last.
    written: u64,
    at: Instant,
    /// Bytes of pages written a second.
    rate: f64,
    /// Bytes that may be moved.
    allowance: f64,
    /// Bytes that may be moved beyond the idle target (invariant 1).
    credit: f64,
    /// The last victim was chosen on credit.
    is_on_credit: bool,
}

impl Pace {
    pub(crate) fn new(busy_utilisation: f64) -> Pace {
        let at = runtime::now();
        let (rate, allowance, credit, is_on_credit) = (0.0, 0.0, 0.0, false);
        Pace { busy_utilisation, written: 0, at, rate, allowance, credit, is_on_credit }
    }

    /// The share of live bytes to be reached now, if there is `present` of them: none if that will
    /// do. What is moved next is for the sake of this target.
    pub(crate) fn target(&mut self, disk: &Disk, present: f64) -> Option<f64> {
        self.is_on_credit = false;
        let target = if disk.is_full.load(Ordering::Relaxed) {
            FULL_UTILISATION
        } else if wants_space(disk) {
            SHORT_UTILISATION * full_share(disk)
        } else if self.is_idle() {
            self.idle_target(present, disk.last_fill())
        } else {
            self.busy_utilisation
        };
        (present < target).then_some(target)
    }

    /// Invariant 1.
    fn idle_target(&mut self, present: f64, fill: f64) -> f64 {
        let idle = IDLE_UTILISATION.max(self.busy_utilisation);
        let rest = REST_UTILISATION * fill;
        self.is_on_credit = present >= idle && present < rest && self.credit > 0.0;
        if self.is_on_credit { rest } else { idle }
    }

    /// Whether what counts is the work of collection, not space at once.
    pub(crate) fn is_under_load(&self, disk: &Disk) -> bool {
        !self.is_idle() && !wants_space(disk)
    }

    /// Whether little enough is written that the collector works at its own rate.
    pub(crate) fn is_idle(&self) -> bool {
        self.rate < IDLE_WRITTEN
    }

    /// Takes note of what was written; `victim` is the live share of the segment collected.
    pub(crate) fn look(&mut self, shared: &Shared, disk: &Disk, victim: f64) {
        let now = runtime::now();
        let seconds = (now - self.at).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let counters = &shared.counters;
        let written = counters.stored_bytes.load(Ordering::Relaxed)
            + counters.delta_bytes.load(Ordering::Relaxed);
        let grown = written.saturating_sub(self.written) as f64;
        (self.at, self.written) = (now, written);
        let weight = (seconds / SMOOTHING).min(1.0);
        self.rate += (grown / seconds - self.rate) * weight;
        let load = Load::of(&disk.table.lock());
        self.credit = (self.credit + grown * REST_SHARE).min(load.live as f64);
        let debt = load.debt(self.busy_utilisation);
        let share = victim.clamp(0.0, 0.95);
        let factor = (1.0 + 2.0 * (debt - 1.0)).clamp(0.0, FACTOR_MAX);
        let own = if self.is_idle() { IDLE_RATE * seconds } else { 0.0 };
        self.allowance += grown * share / (1.0 - share) * factor + own;
        self.allowance = self.allowance.min(own.max(BURST_BYTES));
    }

    /// Whether a group may be moved now.
    pub(crate) fn allows(&self, disk: &Disk) -> bool {
        self.allowance > 0.0 || wants_space(disk)
    }

    /// Whether the last target was one on credit.
    pub(crate) fn is_on_credit(&self) -> bool {
        self.is_on_credit
    }

    pub(crate) fn moved(&mut self, bytes: usize) {
        self.allowance -= bytes as f64;
        if self.is_on_credit {
            self.credit -= bytes as f64;
        }
    }
}

/// What full segments hold, as a share of their usable bytes.
fn full_share(disk: &Disk) -> f64 {
    let streams = [Stream::Pages, Stream::Moved, Stream::Deltas];
    streams.map(|stream| disk.fill(stream)).into_iter().fold(1.0, f64::min)
}

pub(crate) fn wants_space(disk: &Disk) -> bool {
    disk.is_short.load(Ordering::Relaxed) || disk.is_full.load(Ordering::Relaxed)
}

/// Whether nothing should grow that need not: a delta adds to what lives, a full copy does not.
pub(crate) fn must_not_grow(disk: &Disk) -> bool {
    wants_space(disk) || disk.is_at_end.load(Ordering::Relaxed)
}

impl Shared {
    /// Bytes that the dirty pages in memory will take on disk, by what others took.
    fn unwritten_bytes(&self) -> u64 {
        use crate::header::{CLASS_MAX, CLASS_MIN, class_bytes};
        let dirty = |class: u8| {
            let count = self.frames.counts(class).dirty.load(Ordering::Relaxed);
            (count * class_bytes(class)) as u64
        };
        let dirty: u64 = (CLASS_MIN..=CLASS_MAX).map(dirty).sum();
        let raw = self.counters.raw_bytes.load(Ordering::Relaxed);
        let stored = self.counters.stored_bytes.load(Ordering::Relaxed);
        if raw == 0 { dirty } else { (dirty as f64 * stored as f64 / raw as f64) as u64 }
    }

    /// Bytes on disk that dirty pages in memory have and that are dead when those are written;
    /// estimated from a sample where the pool is large.
    fn superseded_bytes(&self) -> u64 {
        let bytes_of = |descriptor: &FrameDescriptor| {
            let pid = PageId::checked(descriptor.pid.load(Ordering::Relaxed))?;
            let word = descriptor.location.load(Ordering::Relaxed);
            let copies = [Location::from_word(word), self.array.delta(pid).location()];
            let present = copies.into_iter().filter(|copy| !copy.is_none());
            Some(present.map(|copy| u64::from(copy.length_bytes())).sum::<u64>())
        };
        let all = self.frames.descriptors();
        // Odd, because frames of larger classes begin at even numbers only.
        let step = (all.len() / FRAMES_LOOKED_AT) | 1;
        let looked_at = all.iter().step_by(step).filter(|descriptor| descriptor.is_dirty());
        looked_at.filter_map(bytes_of).sum::<u64>() * step as u64
    }

    /// Compares what the file system can give with what is needed (invariants 4 and 5). Returns
    /// whether it should be looked at again soon. Parks.
    pub(crate) fn look_at_space(&self, disk: &Disk) -> bool {
        // Where that cannot be told, writes will tell.
        let Ok(size) = runtime::fs::file_system_size(&disk.dir) else { return false };
        let needs_reserve = self.look_at_reserve(disk, size);
        disk.wal.keep_reserve(needs_reserve, size.available_bytes);
        let (segment_bytes, missing, free, live, held) = {
            let table = disk.table.lock();
            let durable = disk.wal.durable();
            let free = table.reusable(false, durable).len();
            let held = (table.allocated() - free) as u64 * table.usable_bytes();
            let held = held.saturating_sub(table.closed_hole_bytes());
            let missing = table.reserve_missing(durable);
            (table.segment_bytes, missing, free, table.live_bytes(), held)
        };
        let free = free.saturating_sub(disk.reserve_left_by(Stream::Pages)) as u64;
        let log_cap = self.fit_log_cap(disk, size.available_bytes);
        let log_growth = disk.wal.growth_bytes(log_cap, size.available_bytes);
        let beyond_log = size.available_bytes.saturating_sub(log_growth) / segment_bytes;
        disk.allocatable.store(i64::try_from(beyond_log).unwrap_or(i64::MAX), Ordering::Relaxed);
        disk.is_roomy.store(beyond_log > held / segment_bytes / 2, Ordering::Relaxed);
        let unwritten = self.unwritten_bytes();
        let kept = (missing as u64 + 1) * segment_bytes + log_growth;
        let has = size.available_bytes.saturating_add(free * segment_bytes);
        let is_short = has < unwritten.saturating_add(kept);
        disk.is_short.store(is_short, Ordering::Relaxed);
        let is_nearly_short = has < unwritten.saturating_add(kept).saturating_mul(NEAR_FACTOR);
        if is_nearly_short {
            // In time: what is written for it takes space before files of the log give any.
            self.shrink_log(disk, size.available_bytes);
        }
        let all = held.saturating_add(has.saturating_sub(kept));
        let most = all as f64 * END_UTILISATION * full_share(disk);
        let is_beyond = |superseded| (live + unwritten).saturating_sub(superseded) as f64 > most;
        // What pages have on disk already is counted only where it matters: it takes a while.
        let is_at_end = is_beyond(0) && is_beyond(self.superseded_bytes());
        disk.is_at_end.store(is_at_end, Ordering::Relaxed);
        if has >= kept && missing == 0 {
            disk.is_full.store(false, Ordering::Relaxed);
        }
        is_nearly_short
    }
}

impl PageStore {
    /// Whether there is so little space that what grows should wait for collection, or be refused
    /// if it does not help ([`PageStore::is_at_its_end`]); see debt.rs.
    pub fn is_short_of_space(&self) -> bool {
        let disk = self.shared().disk.as_ref();
        disk.is_some_and(must_not_grow)
    }

    /// Whether what lives takes nearly all the space there is, so that only deletes help.
    pub fn is_at_its_end(&self) -> bool {
        let disk = self.shared().disk.as_ref();
        disk.is_some_and(|disk| disk.is_at_end.load(Ordering::Relaxed))
    }

    /// Bytes of the segments that hold no live copy and are not free yet: what collection has
    /// still to give back, beyond what the store may keep.
    pub fn collection_debt_bytes(&self) -> u64 {
        let Some(disk) = &self.shared().disk else { return 0 };
        let load = Load::of(&disk.table.lock());
        let goal = load.live as f64 / IDLE_UTILISATION;
        (load.all as f64 - goal).max(0.0) as u64
    }

    /// How long a commit should wait because of garbage (invariant 2).
    pub fn collection_delay(&self) -> Duration {
        let Some(disk) = &self.shared().disk else { return Duration::ZERO };
        let debt = f64::from(disk.debt_percent.load(Ordering::Relaxed)) / 100.0;
        let over = (debt - DEBT_FREE) / DEBT_FREE;
        if over <= 0.0 { Duration::ZERO } else { DELAY_MAX.mul_f64((over * over).min(1.0)) }
    }
}

/// What [`PageStore::collection_delay`] shall go by, in percent of the goal.
pub(crate) fn debt_percent(load: &Load, target: f64) -> u32 {
    if load.segments < DEBT_SEGMENTS_MIN {
        return 0;
    }
    (load.debt(target) * 100.0).min(100_000.0) as u32
}
