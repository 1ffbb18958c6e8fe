//! Guards: how page bytes are read and changed.
//!
//! 1. Nothing here parks. A guard is dropped before the fiber parks or yields; what must stay in
//!    memory meanwhile is held by a [`Pin`], which is not a latch.
//! 2. An [`crate::OptimisticPage`] holds nothing; its rules are in optimistic.rs.
//! 3. `&[u8]` exists only under a shared or exclusive latch, `&mut [u8]` only under an exclusive
//!    one.
//! 4. Bytes changed under an [`ExclusivePage`] are followed by [`ExclusivePage::mark_dirty`] with
//!    the log record that describes the change, before the guard is dropped.

use crate::array::PageEntry;
use crate::error::Retry;
use crate::header::{self, HEADER_BYTES};
use crate::location::Place;
use crate::store::Shared;
use base::{Lsn, PageId};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wal::LsnRange;

/// A page held shared: many readers, no writer.
pub struct SharedPage<'a> {
    shared: &'a Shared,
    entry: &'a PageEntry,
    pid: PageId,
    place: Place,
}

impl std::fmt::Debug for SharedPage<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SharedPage({})", self.pid)
    }
}

impl<'a> SharedPage<'a> {
    pub(crate) fn new(shared: &'a Shared, pid: PageId) -> Result<Self, Retry> {
        let entry = shared.array.get(pid).ok_or(Retry::Miss(pid))?;
        if !entry.latch.shared() {
            return Err(Retry::Restart);
        }
        let place = entry.place();
        if !place.is_resident() {
            entry.latch.release_shared();
            return Err(Retry::Miss(pid));
        }
        if !place.is_referenced() {
            entry.exchange(place, place.with_reference());
        }
        Ok(Self { shared, entry, pid, place })
    }

    /// As [`SharedPage::new`] without leaving a reference mark: for background readers.
    pub(crate) fn unmarked(shared: &'a Shared, pid: PageId) -> Result<Self, Retry> {
        let entry = shared.array.get(pid).ok_or(Retry::Miss(pid))?;
        if !entry.latch.shared() {
            return Err(Retry::Restart);
        }
        let place = entry.place();
        if !place.is_resident() {
            entry.latch.release_shared();
            return Err(Retry::Miss(pid));
        }
        Ok(Self { shared, entry, pid, place })
    }

    /// Number of the page.
    pub fn pid(&self) -> PageId {
        self.pid
    }

    pub(crate) fn frame(&self) -> u32 {
        self.place.frame()
    }

    /// LSN of the page.
    pub fn page_lsn(&self) -> Lsn {
        header::page_lsn(self)
    }

    /// Keeps the page in memory beyond this guard.
    pub fn pin(&self, store: &crate::PageStore) -> Pin {
        Pin::new(store.shared().clone(), self.pid, self.place.frame())
    }
}

impl Deref for SharedPage<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: invariant 3: the latch is held shared, so nobody holds it exclusively and the
        // bytes do not change; the frame is `place.bytes()` long and stays mapped.
        unsafe {
            std::slice::from_raw_parts(
                self.shared.frames.address(self.place.frame()),
                self.place.bytes(),
            )
        }
    }
}

impl Drop for SharedPage<'_> {
    fn drop(&mut self) {
        self.entry.latch.release_shared();
    }
}

/// A page held exclusively: its bytes may be changed.
pub struct ExclusivePage<'a> {
    shared: &'a Shared,
    entry: &'a PageEntry,
    pid: PageId,
    place: Place,
    state: Change,
}

/// What has been done under an exclusive latch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    /// The bytes may have been changed and no record was named yet.
    Unlogged,
    Logged,
    /// The page is new and no record was named yet: dropping it gives it back.
    Fresh,
}

impl std::fmt::Debug for ExclusivePage<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ExclusivePage({})", self.pid)
    }
}

impl<'a> ExclusivePage<'a> {
    pub(crate) fn new(shared: &'a Shared, pid: PageId) -> Result<Self, Retry> {
        let entry = shared.array.get(pid).ok_or(Retry::Miss(pid))?;
        if !entry.latch.exclusive() {
            return Err(Retry::Restart);
        }
        let place = entry.place();
        if !place.is_resident() {
            entry.latch.release_unchanged();
            return Err(Retry::Miss(pid));
        }
        if !place.is_referenced() {
            entry.exchange(place, place.with_reference());
        }
        Ok(Self::under_latch(shared, entry, pid, place))
    }

    /// Wraps a latch that the caller holds exclusively; `place` is resident.
    pub(crate) fn under_latch(
        shared: &'a Shared,
        entry: &'a PageEntry,
        pid: PageId,
        place: Place,
    ) -> Self {
        debug_assert!(place.is_resident());
        Self { shared, entry, pid, place, state: Change::None }
    }

    /// As [`ExclusivePage::under_latch`] for a page that was just given its frame.
    pub(crate) fn fresh(
        shared: &'a Shared,
        entry: &'a PageEntry,
        pid: PageId,
        place: Place,
    ) -> Self {
        Self { shared, entry, pid, place, state: Change::Fresh }
    }

    /// Number of the page.
    pub fn pid(&self) -> PageId {
        self.pid
    }

    /// LSN of the page.
    pub fn page_lsn(&self) -> Lsn {
        header::page_lsn(self)
    }

    /// Declares the change made under this latch: sets the page's LSN to the record's end and
    /// puts the page among the dirty ones if it was clean. Amendment 8: the LSN must rise.
    pub fn mark_dirty(&mut self, record: LsnRange) {
        let before = self.page_lsn();
        base::invariant!(
            record.end > before && record.start < record.end,
            "page {} changes under one LSN twice: {before} then {:?}",
            self.pid,
            record
        );
        header::set_page_lsn(self, record.end);
        self.state = Change::Logged;
        self.shared.note_dirty(self.pid, self.place, record.start);
    }

    /// The page was freed by the given record: drops its frame and its copy on disk, whose space
    /// is reused only once the record is durable.
    pub fn discard(mut self, record: LsnRange) {
        self.shared.drop_resident(self.pid, self.place, record.end);
        self.entry.set_place(Place::NONE);
        self.shared.note_discarded(self.pid);
        self.state = Change::Logged;
    }

    /// Empties the frame, because the page is about to be made anew by redo. What is on disk
    /// stays its last copy until then.
    pub(crate) fn vacate(mut self) {
        let former = self.shared.vacate(self.place);
        self.entry.set_place(former);
        self.state = Change::Logged;
    }

    /// Keeps the page in memory beyond this guard.
    pub fn pin(&self, store: &crate::PageStore) -> Pin {
        Pin::new(store.shared().clone(), self.pid, self.place.frame())
    }
}

impl Deref for ExclusivePage<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: as for SharedPage; the latch is held exclusively.
        unsafe {
            std::slice::from_raw_parts(
                self.shared.frames.address(self.place.frame()),
                self.place.bytes(),
            )
        }
    }
}

impl DerefMut for ExclusivePage<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        if self.state == Change::None {
            self.state = Change::Unlogged;
            self.shared.before_change(self.place);
        }
        // SAFETY: invariant 3: the latch is held exclusively, so this is the only reference;
        // optimistic readers only do atomic loads (see optimistic.rs on soundness).
        unsafe {
            std::slice::from_raw_parts_mut(
                self.shared.frames.address(self.place.frame()),
                self.place.bytes(),
            )
        }
    }
}

impl Drop for ExclusivePage<'_> {
    fn drop(&mut self) {
        match self.state {
            Change::None => return self.entry.latch.release_unchanged(),
            Change::Logged => {}
            Change::Fresh => {
                let former = self.shared.vacate(self.place);
                self.entry.set_place(former);
            }
            Change::Unlogged if std::thread::panicking() => {
                // Amendment 24: memory may hold half a change, and only recovery can repair it.
                self.shared.fatal("a panic under a page latch left a change without a record");
                std::process::abort();
            }
            Change::Unlogged => {
                debug_assert!(false, "page {} changed without a log record", self.pid);
            }
        }
        self.entry.latch.release_exclusive();
    }
}

/// Keeps a page's frame from being evicted, across parks too (amendment 22). Not a latch: the
/// page may change, and may even be freed, meanwhile.
pub struct Pin {
    shared: Arc<Shared>,
    pid: PageId,
    frame: u32,
}

impl std::fmt::Debug for Pin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Pin({})", self.pid)
    }
}

impl Pin {
    /// Pins the frame; the caller holds the page's latch or owns the frame.
    pub(crate) fn new(shared: Arc<Shared>, pid: PageId, frame: u32) -> Pin {
        shared.frames.descriptor(frame).pins.fetch_add(1, Ordering::Relaxed);
        Pin { shared, pid, frame }
    }

    /// Number of the page.
    pub fn pid(&self) -> PageId {
        self.pid
    }

    /// Leaves the frame pinned for as long as the store lives.
    pub(crate) fn leave(self) {
        self.shared.pin_forever(self.frame);
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let before = self.shared.frames.descriptor(self.frame).pins.fetch_sub(1, Ordering::Release);
        debug_assert!(before > 0, "a pin counted twice");
    }
}

/// Zeroes a frame and writes the header fields that the store owns.
pub(crate) fn start_page(page: &mut [u8], pid: PageId, class: u8) {
    debug_assert!(page.len() >= HEADER_BYTES);
    page.fill(0);
    header::set_pid(page, pid);
    header::set_class(page, class);
}
