//! Guards: how page bytes are read and changed.
//!
//! 1. Nothing here parks. A guard is dropped before the fiber parks or yields; what must stay in
//!    memory meanwhile is held by a [`Pin`], which is not a latch.
//! 2. An [`OptimisticPage`] reads the frame by relaxed loads of whole aligned words at masked
//!    offsets: never outside the page, never forming a reference to the bytes. What it read
//!    counts only after [`OptimisticPage::validate`].
//! 3. `&[u8]` exists only under a shared or exclusive latch, `&mut [u8]` only under an exclusive
//!    one.
//! 4. Bytes changed under an [`ExclusivePage`] are followed by [`ExclusivePage::mark_dirty`] with
//!    the log record that describes the change, before the guard is dropped.
//!
//! On soundness: an exclusive holder's plain stores may run while an optimistic reader loads the
//! same words. The language has no bytewise atomic copy for the writer's side yet; the reader's
//! side is atomic, is discarded unless the version agrees, and the compiler cannot see both sides
//! in one place, which is what every seqlock in the field relies on.

use crate::array::PageEntry;
use crate::error::Retry;
use crate::header::{self, HEADER_BYTES};
use crate::latch::Version;
use crate::location::Place;
use crate::store::Shared;
use base::{Lsn, PageId};
use std::cmp::Ordering as Compared;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wal::LsnRange;

/// A page read without holding anything; see the head of this file.
#[derive(Clone, Copy)]
pub struct OptimisticPage<'a> {
    shared: &'a Shared,
    entry: &'a PageEntry,
    pid: PageId,
    words: *const AtomicU64,
    /// Page size in bytes minus one.
    mask: usize,
    version: Version,
    place: Place,
}

impl std::fmt::Debug for OptimisticPage<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "OptimisticPage({}, {:?})", self.pid, self.version)
    }
}

impl<'a> OptimisticPage<'a> {
    /// The page as it stands now, unless it is held exclusively or not in memory.
    #[inline]
    pub(crate) fn new(shared: &'a Shared, pid: PageId) -> Result<Self, Retry> {
        let entry = shared.array.get(pid).ok_or(Retry::Miss(pid))?;
        let version = match entry.latch.optimistic() {
            Some(version) => version,
            None => wait_for_version(entry)?,
        };
        let place = entry.place();
        if !place.is_resident() {
            let stable = entry.latch.validate(version);
            return Err(if stable { Retry::Miss(pid) } else { Retry::Restart });
        }
        if !place.is_referenced() {
            entry.exchange(place, place.with_reference());
        }
        let words = shared.frames.address(place.frame()).cast::<AtomicU64>().cast_const();
        Ok(Self { shared, entry, pid, words, mask: place.bytes() - 1, version, place })
    }

    /// Number of the page.
    #[inline]
    pub fn pid(&self) -> PageId {
        self.pid
    }

    /// Size of the page in bytes.
    #[inline]
    pub fn page_bytes(&self) -> usize {
        self.mask + 1
    }

    /// The aligned word number `index`, taken modulo the page's size.
    #[inline]
    fn word(&self, index: usize) -> u64 {
        let index = index & (self.mask >> 3);
        // SAFETY: invariant 2: the masked index lies within the frame, frame memory is never
        // unmapped (frames.rs invariant 1), is 4 KiB aligned, and the load is atomic.
        u64::from_le(unsafe { (*self.words.add(index)).load(Ordering::Relaxed) })
    }

    /// `BYTES` bytes at any offset, as the low end of a word.
    #[inline]
    fn bytes_at<const BYTES: usize>(&self, offset: usize) -> u64 {
        let shift = (offset & 7) * 8;
        let low = self.word(offset >> 3) >> shift;
        if shift + BYTES * 8 <= 64 {
            low
        } else {
            low | self.word((offset >> 3) + 1) << (64 - shift)
        }
    }

    /// One byte. Offsets beyond the page wrap around: whoever meets one fails to validate.
    #[inline]
    pub fn u8_at(&self, offset: usize) -> u8 {
        self.bytes_at::<1>(offset) as u8
    }

    /// Two bytes, little-endian, at any alignment.
    #[inline]
    pub fn u16_at(&self, offset: usize) -> u16 {
        self.bytes_at::<2>(offset) as u16
    }

    /// Four bytes, little-endian, at any alignment.
    #[inline]
    pub fn u32_at(&self, offset: usize) -> u32 {
        self.bytes_at::<4>(offset) as u32
    }

    /// Six bytes, little-endian: a page number.
    #[inline]
    pub fn u48_at(&self, offset: usize) -> u64 {
        self.bytes_at::<6>(offset) & PageId::MAX.get()
    }

    /// Eight bytes, little-endian, at any alignment.
    #[inline]
    pub fn u64_at(&self, offset: usize) -> u64 {
        self.bytes_at::<8>(offset)
    }

    /// Copies bytes from `offset` on into `out` (at most a page).
    #[inline]
    pub fn copy_bytes(&self, offset: usize, out: &mut [u8]) {
        let mut offset = offset;
        let mut chunks = out.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&self.u64_at(offset).to_le_bytes());
            offset += 8;
        }
        let rest = chunks.into_remainder();
        if !rest.is_empty() {
            let bytes = self.u64_at(offset).to_le_bytes();
            rest.copy_from_slice(&bytes[..rest.len()]);
        }
    }

    /// Appends `length` bytes from `offset` on to `out`; nothing if they leave the page.
    #[inline]
    pub fn append_to(&self, offset: usize, length: usize, out: &mut Vec<u8>) {
        if offset.saturating_add(length) <= self.page_bytes() {
            let start = out.len();
            out.resize(start + length, 0);
            self.copy_bytes(offset, &mut out[start..]);
        }
    }

    /// Compares `length` bytes from `offset` on with `other`, bytewise and then by length. Bytes
    /// that leave the page compare as the empty string.
    #[inline]
    pub fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Compared {
        let length = if offset.saturating_add(length) <= self.page_bytes() { length } else { 0 };
        let common = length.min(other.len());
        let mut position = 0;
        for chunk in other[..common].chunks(8) {
            let mut theirs = [0u8; 8];
            theirs[..chunk.len()].copy_from_slice(chunk);
            let mut ours = self.u64_at(offset + position).to_le_bytes();
            ours[chunk.len()..].fill(0);
            if ours != theirs {
                return u64::from_be_bytes(ours).cmp(&u64::from_be_bytes(theirs));
            }
            position += chunk.len();
        }
        length.cmp(&other.len())
    }

    /// LSN of the page.
    pub fn page_lsn(&self) -> Lsn {
        Lsn::new(self.u64_at(header::PAGE_LSN_OFFSET))
    }

    /// Whether everything read so far belongs to one state of the page.
    #[inline]
    pub fn validate(&self) -> Result<(), Retry> {
        if self.entry.latch.validate(self.version) { Ok(()) } else { Err(Retry::Restart) }
    }

    /// Holds the page exclusively if it did not change since this view was taken.
    #[inline]
    pub fn upgrade(self) -> Result<ExclusivePage<'a>, Retry> {
        if !self.entry.latch.upgrade(self.version) {
            return Err(Retry::Restart);
        }
        Ok(ExclusivePage::under_latch(self.shared, self.entry, self.pid, self.place))
    }
}

/// A short wait for an exclusive holder, who never parks meanwhile.
#[cold]
fn wait_for_version(entry: &PageEntry) -> Result<Version, Retry> {
    for _ in 0..64 {
        std::hint::spin_loop();
        if let Some(version) = entry.latch.optimistic() {
            return Ok(version);
        }
    }
    Err(Retry::Restart)
}

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
        }
        // SAFETY: invariant 3: the latch is held exclusively, so this is the only reference;
        // optimistic readers only do atomic loads (see the note on soundness).
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
