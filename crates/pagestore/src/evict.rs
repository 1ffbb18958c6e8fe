//! Free frames: the clock over clean pages, waiting for them, and chunks changing their class.
//!
//! 1. Only clean, unpinned pages are evicted, under their exclusive latch; nobody who needs a
//!    frame ever writes a page. Dirty pages the hand meets cold are handed to the flushers.
//!    What was cold is freed as soon as it is written, unless it was used meanwhile.
//! 2. A page is evicted by making its place its location on disk: readers then miss.

use crate::array::PageEntry;
use crate::counters::add;
use crate::dirty::DirtyPage;
use crate::error::StoreError;
use crate::frames::FrameDescriptor;
use crate::header::{CLASS_MAX, CLASS_MIN, class_bytes};
use crate::location::{Location, Place};
use crate::store::Shared;
use base::{Lsn, PageId, buggify_with, planted, probe};
use runtime::WaitClass;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Cold dirty pages remembered for the flushers.
const COLD_MAX: usize = 512;
/// Frames that the hand passes under one lock.
const SWEEP_STEPS: usize = 512;
/// The reserve of free frames is at most one of so many ...
const RESERVE_PART: usize = 32;
/// ... and lasts for so many ticks of the demand of late ...
const RESERVE_TICKS: usize = 4;
/// ... which is forgotten by one of so many parts a tick.
const DEMAND_DECAY: usize = 64;
/// Frames that the hand passes, at most, for each that is wanted.
const STEPS_PER_FRAME: usize = 16;
/// A frame that cannot be had for this long is an error.
const FRAME_WAIT_MAX: Duration = Duration::from_secs(30);
/// As above, on a full disk.
const FULL_DISK_WAIT_MAX: Duration = Duration::from_secs(1);
/// Between two looks while waiting for a frame.
const FRAME_WAIT_STEP: Duration = Duration::from_millis(10);
/// A class gets chunks of another one that has this many times as many.
const FAIR_RATIO: usize = 4;

/// What the clock hand found.
enum Found {
    Freed,
    Dirty(DirtyPage),
    Kept,
}

/// Takes the page out of its frame unless somebody needs it there. The frame then belongs to the
/// caller; `forget` is called while nobody else can have it yet.
pub(crate) fn evict_page(
    entry: &PageEntry,
    descriptor: &FrameDescriptor,
    pid: PageId,
    frame: u32,
    forget: impl FnOnce(),
) -> bool {
    if !entry.latch.try_exclusive() {
        return false;
    }
    let place = entry.place();
    let evictable = place.is_resident()
        && place.frame() == frame
        && descriptor.pid.load(Ordering::Relaxed) == pid.get()
        && (descriptor.pins.load(Ordering::Acquire) == 0 || planted!("evicted_although_pinned"))
        && !descriptor.is_dirty();
    if !evictable {
        entry.latch.release_unchanged();
        return false;
    }
    let location = Location::from_word(descriptor.location.load(Ordering::Relaxed));
    base::invariant!(!location.is_none() || cfg!(loom), "page {pid} has no copy on disk");
    entry.set_place(Place::on_disk(location));
    forget();
    descriptor.abandon();
    entry.latch.release_exclusive();
    true
}

impl Shared {
    /// A frame from the free list, or one freed by the clock. Never parks.
    pub(crate) fn take_frame(&self, class: u8) -> Option<u32> {
        if let Some(frame) = self.frames.take_free(class) {
            return Some(frame);
        }
        self.evict(class, 1);
        self.frames.take_free(class)
    }

    /// Whether a frame of the class is free or can be freed at once. Never parks.
    pub(crate) fn has_frame(&self, class: u8) -> bool {
        let free = || self.frames.counts(class).free.load(Ordering::Relaxed) > 0;
        free() || {
            self.gather(class, 1, false);
            free()
        }
    }

    /// Size class of a page that has a place.
    pub(crate) fn class_of(&self, pid: PageId) -> Option<u8> {
        let place = self.array.get(pid)?.place();
        match place.is_resident() {
            true => Some(place.class()),
            false => (place != Place::NONE).then(|| place.location().class()),
        }
    }

    /// As [`Shared::take_frame`], waiting for one. Parks.
    pub(crate) fn wait_for_frame(&self, class: u8) -> Result<u32, StoreError> {
        loop {
            if let Some(frame) = self.take_frame(class) {
                return Ok(frame);
            }
            self.reserve(class, 1)?;
        }
    }

    /// Frees clean frames of a class until `count` are free, or two rounds of the hand are done.
    pub(crate) fn evict(&self, class: u8, count: usize) {
        let total = self.frames.counts(class).total.load(Ordering::Relaxed);
        let wanted = count.max((total / 64).clamp(1, 64));
        let mut cold = Vec::new();
        let mut steps = total * 2;
        while steps > 0 && !self.sweep(class, wanted, steps.min(SWEEP_STEPS), &mut cold) {
            steps = steps.saturating_sub(SWEEP_STEPS);
        }
        self.hand_to_flushers(cold);
    }

    /// Moves the hand of a class over so many frames, or until `wanted` are free; returns whether
    /// they are. Cold dirty pages are noted.
    fn sweep(&self, class: u8, wanted: usize, steps: usize, cold: &mut Vec<DirtyPage>) -> bool {
        let counts = self.frames.counts(class);
        let mut frames = self.frames.class(class).lock();
        let per_chunk = self.frames.frames_per_chunk(class);
        let mut steps = if frames.chunks.is_empty() { 0 } else { steps };
        let mut freed = 0;
        while frames.free.len() < wanted && steps > 0 {
            steps -= 1;
            let (chunk_at, within) = frames.hand;
            let chunk_at = chunk_at % frames.chunks.len();
            let chunk = frames.chunks[chunk_at];
            let next = within + 1;
            frames.hand = if next < per_chunk { (chunk_at, next) } else { (chunk_at + 1, 0) };
            let frame = self.frames.frame_at(chunk, class, within.min(per_chunk - 1));
            match self.examine(frame, buggify_with!(0.05)) {
                Found::Freed => {
                    freed += 1;
                    frames.free.push(frame);
                }
                Found::Dirty(page) => cold.push(page),
                Found::Kept => {}
            }
        }
        counts.free.store(frames.free.len(), Ordering::Relaxed);
        let is_enough = frames.free.len() >= wanted;
        drop(frames);
        if freed > 0 {
            counts.evicted.fetch_add(freed, Ordering::Relaxed);
            add(&self.counters.evictions, freed);
            probe!("pagestore_evicted");
        }
        is_enough
    }

    /// Frees as many frames of each class as were taken of late, so that nobody who needs one has
    /// to look for it, and has as many cold dirty pages written. Called every few milliseconds.
    pub(crate) fn keep_reserve(&self) {
        if self.frames.has_unassigned() {
            return;
        }
        for class in CLASS_MIN..=CLASS_MAX {
            let counts = self.frames.counts(class);
            let most = counts.total.load(Ordering::Relaxed) / RESERVE_PART;
            let taken = counts.taken.swap(0, Ordering::Relaxed);
            // The peak of late, so that a burst is met by the reserve that the last one asked for.
            let former = counts.demand.load(Ordering::Relaxed);
            let demand = (taken * RESERVE_TICKS).max(former - former.div_ceil(DEMAND_DECAY));
            counts.demand.store(demand, Ordering::Relaxed);
            let wanted = demand.min(most);
            let free = counts.free.load(Ordering::Relaxed);
            if free >= wanted {
                continue;
            }
            let mut cold = Vec::new();
            let steps = ((wanted - free) * STEPS_PER_FRAME).min(SWEEP_STEPS);
            if !self.sweep(class, wanted, steps, &mut cold) {
                cold.truncate(wanted - free);
                self.hand_to_flushers(cold);
            }
        }
    }

    /// Frees the frames of pages that were cold and have been written, unless they were used
    /// since. The hand need not come by again.
    pub(crate) fn free_written(&self, pages: &[DirtyPage]) {
        let mut freed = 0;
        for page in pages {
            let Some(class) = self.class_of(page.pid) else { continue };
            let mut frames = self.frames.class(class).lock();
            // Under the lock of its class a frame does not change to another one.
            if self.frames.serves(page.frame, class)
                && matches!(self.examine(page.frame, false), Found::Freed)
            {
                frames.free.push(page.frame);
                freed += 1;
                let counts = self.frames.counts(class);
                counts.free.store(frames.free.len(), Ordering::Relaxed);
                counts.evicted.fetch_add(1, Ordering::Relaxed);
            }
        }
        if freed > 0 {
            add(&self.counters.evictions, freed);
            probe!("pagestore_freed_when_written");
            self.frame_waiters.wake_all();
        }
    }

    fn hand_to_flushers(&self, mut cold: Vec<DirtyPage>) {
        if !cold.is_empty() {
            let mut known = self.cold.lock();
            cold.truncate(COLD_MAX.saturating_sub(known.len()));
            known.append(&mut cold);
            drop(known);
            self.flush_work.set();
        }
    }

    /// Evicts the page in a frame if it is clean, unpinned, and not referenced since the hand
    /// passed last (unless `force`). The freed frame belongs to the caller.
    fn examine(&self, frame: u32, force: bool) -> Found {
        let descriptor = self.frames.descriptor(frame);
        let pid = descriptor.pid.load(Ordering::Acquire);
        let Some(entry) = PageId::checked(pid).and_then(|pid| self.array.get(pid)) else {
            return Found::Kept;
        };
        let place = entry.place();
        let is_here = |place: Place| place.is_resident() && place.frame() == frame;
        if !is_here(place) || descriptor.pins.load(Ordering::Acquire) != 0 {
            return Found::Kept;
        }
        if place.is_referenced() && !force {
            entry.exchange(place, place.without_reference());
            return Found::Kept;
        }
        if descriptor.is_dirty() {
            let rec_lsn = descriptor.rec_lsn.load(Ordering::Relaxed);
            let on_its_way = descriptor.flush_ticket.load(Ordering::Relaxed) != 0;
            if rec_lsn == 0 || on_its_way {
                return Found::Kept;
            }
            let page = DirtyPage { frame, pid: PageId::new(pid), rec_lsn: Lsn::new(rec_lsn) };
            return Found::Dirty(page);
        }
        let forget = || self.frames.drop_fingerprints(frame);
        if evict_page(entry, descriptor, PageId::new(pid), frame, forget) {
            Found::Freed
        } else {
            Found::Kept
        }
    }

    /// Parks until `count` frames of the class are free.
    pub(crate) fn reserve(&self, class: u8, count: usize) -> Result<(), StoreError> {
        let free = || self.frames.counts(class).free.load(Ordering::Relaxed);
        if free() >= count {
            return Ok(());
        }
        self.gather(class, count, false);
        if free() >= count {
            return Ok(());
        }
        let Some(disk) = &self.disk else {
            return Err(StoreError::PoolExhausted(class_bytes(class)));
        };
        add(&self.counters.frame_waits, 1);
        let start = runtime::now();
        self.frames_wanted.fetch_add(1, Ordering::Relaxed);
        let outcome = loop {
            if let Err(error) = disk.check_poison() {
                break Err(error);
            }
            self.flush_work.set();
            let deadline = Some(runtime::now() + FRAME_WAIT_STEP);
            self.frame_waiters.wait_until_uncancellable(WaitClass::FreeFrame, deadline, || {
                // What is there may be pinned by those who wait here.
                let waited = runtime::now() - start;
                self.gather(class, count, waited > FRAME_WAIT_STEP * 4);
                free() >= count
            });
            if free() >= count {
                break Ok(());
            }
            // Flushers may still get on with what is allocated.
            let is_full = disk.is_full.load(Ordering::Relaxed);
            if is_full && runtime::now() - start > FULL_DISK_WAIT_MAX {
                break Err(StoreError::DiskFull);
            }
            if runtime::now() - start > FRAME_WAIT_MAX {
                break Err(StoreError::PoolExhausted(class_bytes(class)));
            }
        };
        self.frames_wanted.fetch_sub(1, Ordering::Relaxed);
        outcome
    }

    /// One try to have `count` frames of the class free: unused chunks, the clock, other classes
    /// (the desperate do not care how many chunks those have).
    fn gather(&self, class: u8, count: usize, is_desperate: bool) {
        let free = || self.frames.counts(class).free.load(Ordering::Relaxed);
        let assign = || {
            let mut frames = self.frames.class(class).lock();
            while frames.free.len() < count && self.frames.assign_chunk(class, &mut frames) {}
        };
        assign();
        if free() < count {
            self.evict(class, count);
        }
        if free() < count {
            let total = self.frames.counts(class).total.load(Ordering::Relaxed);
            self.drain_other_class(class, is_desperate || total < count);
            self.continue_draining();
            assign();
        }
    }

    /// Begins to take a chunk from a class that has many more, or from any if this one is poor.
    fn drain_other_class(&self, class: u8, is_poor: bool) {
        if !self.frames.draining.lock().is_empty() {
            return;
        }
        let chunks = |class: u8| self.frames.class(class).lock().chunks.len();
        let own = chunks(class);
        let others = (CLASS_MIN..=CLASS_MAX).filter(|&other| other != class);
        let mut donors: Vec<_> = others.map(|other| (chunks(other), other)).collect();
        donors.sort_unstable_by(|left, right| right.cmp(left));
        for (chunks, donor) in donors {
            let keep = usize::from(own > 0);
            if (is_poor || chunks > own * FAIR_RATIO)
                && self.frames.start_drain(donor, keep).is_some()
            {
                return;
            }
        }
    }

    /// Moves draining chunks on: evicts what is clean, hands dirty pages to the flushers.
    pub(crate) fn continue_draining(&self) {
        let draining = self.frames.draining.lock().clone();
        for chunk in draining {
            let mut cold = Vec::new();
            for frame in self.frames.occupied(chunk) {
                if let Found::Dirty(page) = self.examine(frame, true) {
                    cold.push(page);
                }
            }
            self.hand_to_flushers(cold);
            let occupied = self.frames.occupied(chunk);
            let pins = |frame: u32| self.frames.descriptor(frame).pins.load(Ordering::Relaxed);
            if occupied.iter().any(|&frame| pins(frame) > 0) {
                // Somebody pinned a page here since, perhaps for good: another chunk will do.
                probe!("pagestore_drain_given_up");
                self.frames.cancel_drain(chunk);
            } else if occupied.is_empty() {
                self.frames.finish_drain(chunk);
                add(&self.counters.rebalanced_chunks, 1);
                probe!("pagestore_chunk_changed_class");
            }
        }
    }

    /// Gives a chunk of the class whose frames are evicted least to the one evicted most, if they
    /// differ much. Called now and then.
    pub(crate) fn balance_classes(&self) {
        let rate = |class: u8| {
            let counts = self.frames.counts(class);
            let total = counts.total.load(Ordering::Relaxed) as u64;
            let evicted = counts.evicted.swap(0, Ordering::Relaxed);
            (total > 0).then(|| (evicted * 1000 / total, class))
        };
        let rates: Vec<_> = (CLASS_MIN..=CLASS_MAX).filter_map(rate).collect();
        let (Some(&(low, donor)), Some(&(high, taker))) = (rates.iter().min(), rates.iter().max())
        else {
            return;
        };
        let differ = high > 50 && high > low * FAIR_RATIO as u64;
        if differ && donor != taker && self.frames.draining.lock().is_empty() {
            self.frames.start_drain(donor, 1);
        }
    }

    /// Bytes of pages in memory whose changes are not on disk.
    pub(crate) fn dirty_bytes(&self) -> usize {
        let dirty_bytes = |class: u8| {
            self.frames.counts(class).dirty.load(Ordering::Relaxed) * class_bytes(class)
        };
        (CLASS_MIN..=CLASS_MAX).map(dirty_bytes).sum()
    }
}
