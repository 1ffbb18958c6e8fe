//! The store's handle and what every part shares.

use crate::array::TranslationArray;
use crate::background::Background;
use crate::codecs::{Codecs, Compression};
use crate::compression_counts::CountedTrees;
use crate::counters::{Counters, StoreCounters};
use crate::dictionaries::Dictionaries;
use crate::dirty::{DirtyPage, DirtyQueue};
use crate::disk::Disk;
use crate::error::{Retry, StoreError};
use crate::frames::{Frames, PoolFigures};
use crate::governor::Governor;
use crate::guard::{ExclusivePage, Pin, SharedPage, start_page};
use crate::header::class_is_valid;
use crate::load::Loads;
use crate::location::{Location, Place};
use crate::optimistic::OptimisticPage;
use crate::options::{PageCheck, PageOrder, StoreOptions};
use crate::recent::RecentDeltas;
use crate::segments::Death;
use crate::space::{MAP_PAGES, SpaceState};
use base::{Lsn, PageId, TreeId};
use codec::CodecId;
use runtime::sync::{Event, FiberMutex, Mutex, WaitQueue};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// Dirty pages that the clock hand met cold.
    pub(crate) cold: Mutex<Vec<DirtyPage>>,
    pub(crate) space: SpaceState,
    pub(crate) loads: Loads,
    pub(crate) recent_deltas: RecentDeltas,
    pub(crate) codecs: Codecs,
    pub(crate) counted_trees: CountedTrees,
    pub(crate) governor: Governor,
    pub(crate) dictionaries: Dictionaries,
    /// Whether changed pages may be written as deltas.
    pub(crate) writes_deltas: bool,
    pub(crate) page_check: Option<PageCheck>,
    pub(crate) page_order: Option<PageOrder>,
    pub(crate) counters: Arc<Counters>,
    /// Where the store's own records go; absent in a volatile store without a log.
    pub(crate) wal: Option<Arc<Wal>>,
    /// Absent in a volatile store.
    pub(crate) disk: Option<Disk>,
    pub(crate) background: Background,
    /// Set when flushers have something to do.
    pub(crate) flush_work: Event,
    /// Fibers that wait for a free frame, and how many there are.
    pub(crate) frame_waiters: WaitQueue,
    pub(crate) frames_wanted: AtomicUsize,
    /// Held by the one operation that may keep its pins while frames are scarce.
    pub(crate) scarce: FiberMutex<()>,
}

impl PageStore {
    /// A store without files: nothing is ever written or evicted. For tests of the rooms above.
    pub fn volatile(pool_bytes: usize, max_pages: u64) -> Result<PageStore, StoreError> {
        PageStore::volatile_with_log(pool_bytes, max_pages, None)
    }

    /// As [`PageStore::volatile`]; the store's own records go to `wal`, so that their LSNs fit
    /// with those of the caller's.
    pub fn volatile_with_log(
        pool_bytes: usize,
        max_pages: u64,
        wal: Option<Arc<Wal>>,
    ) -> Result<PageStore, StoreError> {
        let options = StoreOptions {
            pool_bytes,
            max_pages,
            huge_pages: false,
            ..StoreOptions::new(std::path::PathBuf::new())
        };
        let array = TranslationArray::new(max_pages.next_multiple_of(MAP_PAGES))?;
        let counters = Arc::new(Counters::default());
        Ok(PageStore { shared: Arc::new(Shared::new(&options, array, counters, wal, None)?) })
    }

    /// The store over what recovery or creation has made ready. Parks.
    pub(crate) fn assemble(
        options: &StoreOptions,
        array: TranslationArray,
        counters: Arc<Counters>,
        disk: Disk,
    ) -> Result<PageStore, StoreError> {
        let wal = Some(disk.wal.clone());
        let shared = Arc::new(Shared::new(options, array, counters, wal, Some(disk))?);
        shared.dictionaries.find(&options.dir)?;
        crate::background::start(&shared, options);
        Ok(PageStore { shared })
    }

    /// What the store has counted since it was opened.
    pub fn counters(&self) -> StoreCounters {
        self.shared.counters.snapshot()
    }

    /// What the memory for pages is used for.
    pub fn pool(&self) -> PoolFigures {
        self.shared.frames.figures()
    }

    /// Pages read so far because they were not in memory: who sees the number grow has reason to
    /// ask for pages early.
    pub fn misses(&self) -> u64 {
        self.shared.counters.misses.load(Ordering::Relaxed)
    }

    /// Changes how a tree's pages are compressed that are written from now on. Pages already on
    /// disk keep their codec. Where it is no change, what was learnt of the tree is kept.
    pub fn set_compression(&self, tree: TreeId, compression: Compression) {
        let is_change = self.shared.codecs.set(tree, compression);
        if self.shared.codecs.of(tree).dictionary_level.is_some() {
            crate::background::start_training(&self.shared);
        }
        if is_change {
            self.shared.governor.forget(tree);
            self.shared.dictionaries.forget(tree);
        }
    }

    /// Nobody names the tree any more: how its pages are compressed, and what that took, is
    /// forgotten. Those that are still written are compressed as the store was opened with.
    pub fn forget_tree(&self, tree: TreeId) {
        self.shared.codecs.set(tree, Compression::Store);
        self.count_compression(tree, None);
    }

    /// Changes the codec and level (0: the codec's default) of all trees with
    /// [`Compression::Compressed`], for pages written from now on.
    pub fn set_compressed(&self, codec: CodecId, level: i32) {
        let is_change = self.shared.codecs.set_compressed(codec, level);
        if codec == CodecId::Zstd {
            crate::background::start_training(&self.shared);
        }
        if is_change {
            self.shared.governor.forget_all();
            self.shared.dictionaries.forget_all();
        }
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

    /// Makes sure that `count` frames of the size class are free, so that as many
    /// [`PageStore::new_page`] calls are likely to succeed. Parks; call before latching anything.
    pub fn reserve_frames(&self, class: u8, count: usize) -> Result<(), StoreError> {
        base::invariant!(class_is_valid(class), "page class {class}");
        self.shared.reserve(class, count)
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
        } else {
            self.shared.drop_copies(pid, place.location(), freed);
        }
        entry.set_place(Place::NONE);
        entry.latch.release_exclusive();
        self.shared.note_discarded(pid);
    }

    /// The page for redo, held exclusively: brought into memory, or with `format_class` a zeroed
    /// page in place of whatever stood under the number. Parks before it latches.
    pub fn redo_page(
        &self,
        pid: PageId,
        format_class: Option<u8>,
    ) -> Result<ExclusivePage<'_>, StoreError> {
        self.shared.array.get(pid).ok_or(StoreError::NoSuchPage(pid))?;
        let mut _pin = None;
        loop {
            let attempt = match format_class {
                Some(class) if class_is_valid(class) => self.format_page(pid, class),
                Some(class) => {
                    let detail = format!("format with size class {class}");
                    return Err(StoreError::Corrupt { pid, detail });
                }
                None => self.exclusive(pid),
            };
            match attempt {
                Ok(page) => return Ok(page),
                Err(Retry::Restart) => runtime::yield_now(),
                Err(Retry::Frames(class)) => self.reserve_frames(class, 1)?,
                Err(Retry::Miss(_)) => _pin = Some(self.load(pid)?),
            }
        }
    }

    /// As [`PageStore::new_page`], replacing a resident page of any class.
    fn format_page(&self, pid: PageId, class: u8) -> Result<ExclusivePage<'_>, Retry> {
        match self.exclusive(pid) {
            Ok(page) => page.vacate(),
            Err(Retry::Miss(_)) => {}
            Err(retry) => return Err(retry),
        }
        self.new_page(pid, class)
    }

    /// Runs an operation until it succeeds: backs off on [`Retry::Restart`], loads on
    /// [`Retry::Miss`] (the page stays pinned for the next tries), waits for frames on
    /// [`Retry::Frames`]. The operation gets the number of tries before this one and should fall
    /// back to latch coupling when it grows. Parks between tries only.
    ///
    /// In a pool so small that pins of many operations fill it, an operation lets go of its own
    /// pins before it waits for a frame; after many tries it runs alone among such operations,
    /// keeping its pins, so one of them always gets through (amendment 22).
    pub fn run_with_retry<T>(
        &self,
        mut operation: impl FnMut(u32) -> Result<T, Retry>,
    ) -> Result<T, StoreError> {
        let mut pins: Vec<Pin> = Vec::new();
        let mut alone = None;
        let mut tries = 0;
        loop {
            match operation(tries) {
                Ok(value) => return Ok(value),
                Err(Retry::Restart) if tries < 4 => std::hint::spin_loop(),
                Err(Retry::Restart) => runtime::yield_now(),
                Err(Retry::Miss(pid)) => {
                    let class = self.shared.class_of(pid);
                    if alone.is_none() && class.is_some_and(|class| !self.shared.has_frame(class)) {
                        pins.clear();
                        if tries > TRIES_BEFORE_ALONE {
                            alone = Some(self.shared.scarce.lock());
                        }
                    }
                    if pins.len() == PINS_HELD {
                        pins.remove(0);
                    }
                    pins.push(self.load(pid)?);
                }
                Err(Retry::Frames(class)) => {
                    if alone.is_none() && !self.shared.has_frame(class) {
                        pins.clear();
                    }
                    self.reserve_frames(class, 1)?;
                }
            }
            tries = tries.saturating_add(1);
        }
    }
}

/// Pins that `run_with_retry` holds at most: deeper than any tree path.
const PINS_HELD: usize = 8;
/// Tries of an operation in a crowded pool before it asks to be alone.
const TRIES_BEFORE_ALONE: u32 = 32;

impl Shared {
    fn new(
        options: &StoreOptions,
        array: TranslationArray,
        counters: Arc<Counters>,
        wal: Option<Arc<Wal>>,
        disk: Option<Disk>,
    ) -> Result<Shared, StoreError> {
        let writes_deltas = options.writes_deltas && disk.is_some();
        let key = if writes_deltas { runtime::random_u64() } else { 0 };
        Ok(Shared {
            array,
            writes_deltas,
            frames: Frames::new(options.pool_bytes, options.huge_pages, key)?,
            dirty: DirtyQueue::new(),
            cold: Mutex::new(Vec::new()),
            space: SpaceState::default(),
            loads: Loads::default(),
            recent_deltas: RecentDeltas::default(),
            codecs: Codecs::new(options.codec),
            counted_trees: CountedTrees::default(),
            governor: Governor::new(options.catch_up_after),
            dictionaries: Dictionaries::new(options.dictionaries, options.pool_bytes),
            page_check: options.page_check,
            page_order: options.page_order,
            counters,
            wal,
            disk,
            background: Background::default(),
            flush_work: Event::new(),
            frame_waiters: WaitQueue::new(),
            frames_wanted: AtomicUsize::new(0),
            scarce: FiberMutex::new(()),
        })
    }

    /// Room in the log for a record of the store's own.
    pub(crate) fn admit(&self, bytes: usize) -> Result<Option<Permit<'_>>, StoreError> {
        let admitted = self.wal.as_ref().map(|wal| wal.admit(bytes)).transpose();
        admitted.map_err(|error| match error {
            wal::WalError::DiskFull => StoreError::DiskFull,
            other => StoreError::Poisoned(other.to_string()),
        })
    }

    /// As [`Shared::admit`], for what must go on while the disk is full.
    pub(crate) fn admit_internal(&self, bytes: usize) -> Result<Option<Permit<'_>>, StoreError> {
        let admitted = self.wal.as_ref().map(|wal| wal.admit_internal(bytes)).transpose();
        admitted.map_err(|error| StoreError::Poisoned(error.to_string()))
    }

    /// Appends a record of the store's own; a volatile store has no log and uses LSN 1.
    pub(crate) fn append(&self, permit: Option<&Permit<'_>>, record: &RecordBuilder) -> LsnRange {
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
            if self.dirty.push(frame, pid, record_start) {
                self.background.wake_controller();
            }
        }
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
        self.drop_copies(pid, location, freed);
    }

    /// Empties a frame without touching what is on disk. Returns where that is. The latch is held
    /// exclusively.
    pub(crate) fn vacate(&self, place: Place) -> Place {
        let descriptor = self.frames.descriptor(place.frame());
        if descriptor.is_dirty() {
            self.frames.counts(place.class()).dirty.fetch_sub(1, Ordering::Relaxed);
        }
        let location = Location::from_word(descriptor.location.load(Ordering::Relaxed));
        self.frames.give_back(place.frame(), place.class());
        Place::on_disk(location)
    }

    /// The page's copy on disk and its delta are dead because the page was freed by the record
    /// ending at `freed`. The latch is held exclusively.
    fn drop_copies(&self, pid: PageId, location: Location, freed: Lsn) {
        let Some(disk) = &self.disk else { return };
        let delta = self.array.delta(pid).replace(Location::NONE);
        if !delta.is_none() {
            self.recent_deltas.forget(&self.frames, pid);
        }
        let mut table = disk.table.lock();
        for copy in [location, delta].into_iter().filter(|copy| !copy.is_none()) {
            table.die(copy, Death::Freed(freed));
        }
    }

    /// Called before the first byte of a page changes under an exclusive latch: if the page is as
    /// its copy on disk or on its way there has it, its fingerprints are taken (chunks.rs).
    #[inline]
    pub(crate) fn before_change(&self, place: Place) {
        let descriptor = self.frames.descriptor(place.frame());
        if descriptor.rec_lsn.load(Ordering::Relaxed) == 0 && descriptor.fingerprints().is_none() {
            self.take_fingerprints(place);
        }
    }

    fn take_fingerprints(&self, place: Place) {
        let frame = place.frame();
        let descriptor = self.frames.descriptor(frame);
        let has_copy = descriptor.base().lsn > Lsn::ZERO;
        let on_its_way = descriptor.flush_ticket.load(Ordering::Relaxed) != 0;
        if self.writes_deltas && (has_copy || on_its_way) {
            let (start, length) = (self.frames.address(frame), place.bytes());
            // SAFETY: the latch is held exclusively and the caller has formed no reference to the
            // bytes yet; the frame is that long and stays mapped.
            let page = unsafe { std::slice::from_raw_parts(start, length) };
            self.frames.take_fingerprints(frame, page);
        }
    }

    /// Stops the store: something happened after which memory or disk cannot be trusted.
    pub(crate) fn fatal(&self, reason: &str) {
        if let Some(disk) = &self.disk {
            disk.fatal(reason);
        }
    }
}
