//! Which page numbers are in use, and by which tree (amendment 7).
//!
//! The truth is in pages of the allocation map ([`map_page`]), ordinary logged pages at fixed
//! numbers; a [`mirror`] in memory answers quickly. Two steps, so that nothing waits under a
//! latch and an allocation is atomic with the change that needs it:
//!
//! ```text
//! let reserved = store.space().reserve(tree, class, 2)?;        // may park; memory only
//! ... latch pages, add page ops to the record ...
//! let change = store.space().log_change(reserved.pids(), &freed, &mut record)?;  // latches map
//! let range = wal.append(&permit, &record);
//! ... mark pages dirty; freed_page.discard(range) ...
//! change.mark_dirty(range);                                     // map applied, latch released
//! ```
//!
//! 1. Map pages are latched last and in ascending order, and are always in memory.
//! 2. A reservation that is dropped gives back what no record has allocated.
//! 3. A freed number is handed out again only after both its record was applied and its page was
//!    discarded, so a late discard never hits a new owner.
//! 4. Owners are trees; extents of 256 numbers belong to one tree and size class.

#[cfg(any(test, fuzzing))]
pub(crate) mod map_page;
#[cfg(not(any(test, fuzzing)))]
mod map_page;
mod mirror;
mod usage;

use crate::error::{Retry, StoreError};
use crate::guard::ExclusivePage;
use crate::store::{PageStore, Shared};
use base::{Lsn, PageId, TreeId, TrxId, probe};
pub use map_page::{
    EXTENT_PAGES, MAP_CLASS, MAP_EXTENTS, MAP_PAGES, OP_MAP_CHANGE, OP_MAP_FORMAT, SPACE_TREE,
};
pub(crate) use map_page::{MapEntry, apply, entries, first_of};
use mirror::Mirror;
use runtime::sync::{FiberMutex, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
pub use usage::TreeUsage;
use wal::{LsnRange, RecordBuilder, RecordKind};

/// Map pages whose extents one record of a dropped tree releases at most.
const DROP_MAPS_PER_RECORD: usize = 16;
/// How long a simulation makes the steps of a drop.
const DROP_PAUSE: Duration = Duration::from_millis(5);

/// The mirror and who may grow the map.
#[derive(Debug, Default)]
pub(crate) struct SpaceState {
    pub(crate) mirror: Mutex<Mirror>,
    growing: FiberMutex<()>,
}

/// Page numbers of a store; see the head of this module.
#[derive(Debug, Clone, Copy)]
pub struct Space<'a> {
    store: &'a PageStore,
}

/// Page numbers nobody else gets. Dropping it gives back those that no record has allocated.
pub struct Reservation {
    shared: Arc<Shared>,
    pids: Vec<PageId>,
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Reservation({:?})", self.pids)
    }
}

impl Reservation {
    /// The numbers, all of one tree and class.
    pub fn pids(&self) -> &[PageId] {
        &self.pids
    }

    /// Keeps the numbers reserved beyond this value; they become allocated by a later
    /// [`Space::log_change`] or free at the next start.
    pub fn keep(mut self) {
        self.pids.clear();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.pids.is_empty() {
            let mut mirror = self.shared.space.mirror.lock();
            self.pids.iter().for_each(|&pid| mirror.unreserve(pid));
        }
    }
}

/// Latched map pages whose ops are in the caller's record. Call [`MapChange::mark_dirty`] after
/// the append; dropping it instead undoes nothing on the pages, because nothing was done yet.
#[derive(Debug)]
#[must_use = "the record says that the map changes"]
pub struct MapChange<'a> {
    store: &'a PageStore,
    pages: Vec<(ExclusivePage<'a>, Vec<MapEntry>)>,
    freed: Vec<PageId>,
    applied: bool,
}

impl MapChange<'_> {
    /// Applies the change to the map pages and lets go of them.
    pub fn mark_dirty(mut self, range: LsnRange) {
        self.applied = true;
        let mut mirror = self.store.shared().space.mirror.lock();
        for (page, entries) in &mut self.pages {
            for &entry in entries.iter() {
                let outcome = map_page::apply_entry(page, entry);
                base::invariant!(outcome.is_ok(), "map change {entry:?} does not apply");
                match entry {
                    // Handed out again only when its pages are dropped from memory and mapping.
                    MapEntry::Release { extent, .. } => mirror.unallocate(page.pid(), extent),
                    entry => mirror.applied(page.pid(), entry),
                }
            }
            page.mark_dirty(range);
        }
    }
}

impl Drop for MapChange<'_> {
    fn drop(&mut self) {
        if !self.applied {
            let mut mirror = self.store.shared().space.mirror.lock();
            self.freed.iter().for_each(|&pid| mirror.cancel_free(pid));
        }
    }
}

impl PageStore {
    /// Page numbers: reserving, allocating, freeing.
    pub fn space(&self) -> Space<'_> {
        Space { store: self }
    }
}

impl<'a> Space<'a> {
    fn mirror(&self) -> runtime::sync::MutexGuard<'a, Mirror> {
        self.store.shared().space.mirror.lock()
    }

    /// Reserves `count` numbers for pages of `class` in `tree`. May park (the map may have to
    /// grow): call before latching.
    pub fn reserve(
        &self,
        tree: TreeId,
        class: u8,
        count: usize,
    ) -> Result<Reservation, StoreError> {
        base::invariant!(
            tree != TreeId::ZERO && tree != SPACE_TREE && crate::header::class_is_valid(class),
            "pages of class {class} for {tree:?}"
        );
        let mut reservation =
            Reservation { shared: self.store.shared().clone(), pids: Vec::with_capacity(count) };
        loop {
            let mut mirror = self.mirror();
            while reservation.pids.len() < count
                && let Some(pid) = mirror.reserve(tree, class)
            {
                reservation.pids.push(pid);
            }
            drop(mirror);
            if reservation.pids.len() == count {
                return Ok(reservation);
            }
            self.grow()?;
        }
    }

    /// Latches the map pages of all given numbers and adds their ops to the record. Call as the
    /// last step before the append, with the caller's own pages latched. `allocated` come from
    /// reservations. On `Err` nothing was added to the record.
    pub fn log_change(
        &self,
        allocated: &[PageId],
        freed: &[PageId],
        record: &mut RecordBuilder,
    ) -> Result<MapChange<'a>, Retry> {
        let all = allocated.iter().chain(freed);
        let maps: BTreeSet<PageId> = all.map(|&pid| map_page::map_page_of(pid)).collect();
        let mut pages = Vec::with_capacity(maps.len());
        for &map in &maps {
            pages.push((self.store.exclusive(map)?, Vec::new()));
        }
        let mut mirror = self.mirror();
        for (page, entries) in &mut pages {
            for &pid in allocated {
                if map_page::map_page_of(pid) == page.pid() {
                    let owner = mirror.owner(pid);
                    base::invariant!(owner.is_some(), "page {pid} is not in the map");
                    let Some((tree, class)) = owner else { continue };
                    let (extent, bit) = map_page::position_of(pid);
                    let assign = MapEntry::Assign { extent, tree, class };
                    if map_page::owner(page, extent) == TreeId::ZERO && !entries.contains(&assign) {
                        entries.push(assign);
                    }
                    entries.push(MapEntry::Set { extent, bit, tree });
                }
            }
            for &pid in freed {
                if map_page::map_page_of(pid) == page.pid() {
                    let (extent, bit) = map_page::position_of(pid);
                    let tree = map_page::owner(page, extent);
                    entries.push(MapEntry::Clear { extent, bit, tree });
                    mirror.begin_free(pid);
                }
            }
        }
        drop(mirror);
        self.add_ops(&pages, record);
        Ok(MapChange { store: self.store, pages, freed: freed.to_vec(), applied: false })
    }

    fn add_ops(&self, pages: &[(ExclusivePage<'_>, Vec<MapEntry>)], record: &mut RecordBuilder) {
        for (page, entries) in pages {
            record.page_op(page.pid(), OP_MAP_CHANGE, page.page_lsn(), |payload| {
                entries.iter().for_each(|entry| entry.encode(payload));
            });
        }
    }

    /// Makes another map page, or frees extents that became empty.
    fn grow(&self) -> Result<(), StoreError> {
        let _alone = self.store.shared().space.growing.lock();
        if self.mirror().free_extent_count() > 0 || self.release_empty()? {
            return Ok(());
        }
        let pid = self.mirror().map_count() * MAP_PAGES;
        let capacity = self.store.shared().array.capacity();
        if pid + MAP_PAGES > capacity {
            return Err(StoreError::PagesExhausted(capacity));
        }
        let pid = PageId::new(pid);
        let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
        record.page_op(pid, OP_MAP_FORMAT, Lsn::ZERO, |_| {});
        let permit = self.store.shared().admit(record.stream_len())?;
        let pin = loop {
            self.store.reserve_frames(MAP_CLASS, 1)?;
            let mut page = match self.store.new_page(pid, MAP_CLASS) {
                Ok(page) => page,
                Err(_) => {
                    runtime::yield_now();
                    continue;
                }
            };
            map_page::format(&mut page);
            page.mark_dirty(self.store.shared().append(permit.as_ref(), &record));
            self.mirror().add_map(&page);
            break page.pin(self.store);
        };
        keep_forever(pin);
        Ok(())
    }

    /// Releases extents without a used number. Returns whether there were any.
    fn release_empty(&self) -> Result<bool, StoreError> {
        let empty = self.mirror().retire_empty(DROP_MAPS_PER_RECORD * 8);
        if empty.is_empty() {
            return Ok(false);
        }
        let outcome = self.log_release(&empty);
        let mut mirror = self.mirror();
        for &(map, extent, tree) in &empty {
            match outcome {
                Ok(_) => mirror.applied(map, MapEntry::Release { extent, tree }),
                Err(_) => mirror.restore(map, extent),
            }
        }
        outcome.map(|_| true)
    }

    /// Logs and applies the release of extents on their map pages; the mirror follows later.
    fn log_release(&self, extents: &[(PageId, u16, TreeId)]) -> Result<Lsn, StoreError> {
        let mut by_map: BTreeMap<PageId, Vec<MapEntry>> = BTreeMap::new();
        for &(map, extent, tree) in extents {
            by_map.entry(map).or_default().push(MapEntry::Release { extent, tree });
        }
        let shared = self.store.shared();
        // What gives space back must not fail for want of it.
        let permit = shared.admit_internal(64 + by_map.len() * 32 + extents.len() * 8)?;
        let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
        self.store.run_with_retry(|_| {
            let mut pages = Vec::with_capacity(by_map.len());
            for (&map, entries) in &by_map {
                let page = self.store.exclusive(map)?;
                let known = |entry: &MapEntry| match entry {
                    MapEntry::Release { extent, .. } => {
                        map_page::owner(&page, *extent) != TreeId::ZERO
                    }
                    _ => true,
                };
                let entries: Vec<MapEntry> = entries.iter().copied().filter(known).collect();
                if !entries.is_empty() {
                    pages.push((page, entries));
                }
            }
            if pages.is_empty() {
                return Ok(Lsn::ZERO);
            }
            record.reset(RecordKind::Structure, TrxId::ZERO);
            self.add_ops(&pages, &mut record);
            let range = shared.append(permit.as_ref(), &record);
            let freed = Vec::new();
            MapChange { store: self.store, pages, freed, applied: false }.mark_dirty(range);
            Ok(range.end)
        })
    }

    /// Frees every page of a tree: O(extents) in the log, no page is read. In several records if
    /// the tree is large; a crash between them leaves the rest, so the caller repeats it until
    /// its own record of the drop is gone. Nobody may use the tree any more. Where the last start
    /// could not read a map page, what that tells of stays: all else is freed, and the error says
    /// that there may be more. Parks.
    ///
    /// The record comes first, then the pages go from memory and mapping, then the extents may be
    /// handed out again. Only the record is durable; the next start does the rest by it
    /// ([`Space::rebuild`]), so it does not matter where a crash cuts this off.
    pub fn drop_tree(&self, tree: TreeId) -> Result<(), StoreError> {
        let mut extents = self.mirror().extents_of(tree);
        for &(map, extent) in &extents {
            self.mirror().retire(map, extent);
        }
        while !extents.is_empty() {
            let last_map = extents[0].0.get() + DROP_MAPS_PER_RECORD as u64 * MAP_PAGES;
            let count = extents.iter().take_while(|(map, _)| map.get() < last_map).count();
            let part: Vec<_> =
                extents.drain(..count).map(|(map, extent)| (map, extent, tree)).collect();
            self.release_part(&part)?;
        }
        match self.mirror().unreadable_map() {
            None => Ok(()),
            Some(pid) => {
                probe!("pagestore_drop_met_an_unreadable_map");
                let detail = "which pages of the tree it tells of is not known".to_owned();
                Err(StoreError::Corrupt { pid, detail })
            }
        }
    }

    /// Frees extents of a tree that is being dropped, with one record.
    fn release_part(&self, part: &[(PageId, u16, TreeId)]) -> Result<(), StoreError> {
        let freed = self.log_release(part)?;
        if base::buggify!() {
            runtime::sleep(DROP_PAUSE);
        }
        for &(map, extent, tree) in part {
            let first = first_of(map, extent).get();
            for number in first..first + EXTENT_PAGES {
                self.store.discard(PageId::new(number), freed);
            }
            if base::buggify!() {
                runtime::sleep(DROP_PAUSE);
            }
            self.mirror().applied(map, MapEntry::Release { extent, tree });
            runtime::yield_if_due();
        }
        Ok(())
    }

    /// Whether the number is allocated, as the last applied record says.
    pub fn is_allocated(&self, pid: PageId) -> bool {
        self.mirror().is_allocated(pid)
    }

    /// Allocated page numbers of a tree.
    pub fn pages_of(&self, tree: TreeId) -> u64 {
        self.mirror().pages_of(tree)
    }

    /// Trees that own page numbers: for finding leftovers of unfinished drops and builds.
    pub fn trees(&self) -> BTreeSet<TreeId> {
        self.mirror().trees()
    }

    /// Reads one map page, pins it for good and adds it to the mirror.
    fn load_map(&self, pid: PageId, mirror: &mut Mirror) -> Result<(), StoreError> {
        let pin = self.store.load(pid)?;
        let damage = self.store.run_with_retry(|_| {
            let page = self.store.shared_page(pid)?;
            let outcome = map_page::check(&page);
            if outcome.is_ok() {
                mirror.add_map(&page);
            }
            Ok(outcome.err())
        })?;
        match damage {
            Some(detail) => Err(StoreError::Corrupt { pid, detail: detail.to_owned() }),
            None => {
                keep_forever(pin);
                Ok(())
            }
        }
    }

    /// Reads the map pages after redo and drops every page whose number is not allocated.
    /// A map page that is corrupt is contained: its numbers count as allocated, changes of them
    /// are errors, new pages get numbers of other map pages. Returns how many pages were dropped.
    /// Parks.
    pub(crate) fn rebuild(&self) -> Result<u64, StoreError> {
        let shared = self.store.shared();
        let mut mirror = Mirror::default();
        while mirror.map_count() * MAP_PAGES < shared.array.capacity() {
            let pid = PageId::new(mirror.map_count() * MAP_PAGES);
            let place = shared.array.entry(pid).place();
            if place == crate::location::Place::NONE {
                break;
            }
            match self.load_map(pid, &mut mirror) {
                Err(StoreError::Corrupt { .. }) => {
                    probe!("pagestore_unreadable_map");
                    mirror.add_unreadable_map();
                }
                other => other?,
            }
        }
        *self.mirror() = mirror;
        let mut dropped = 0;
        for number in 0..shared.array.high_water() {
            let pid = PageId::new(number);
            let is_used = shared.array.entry(pid).place() != crate::location::Place::NONE;
            if is_used && !self.is_allocated(pid) {
                self.store.discard(pid, Lsn::ZERO);
                dropped += 1;
            }
            runtime::yield_if_due();
        }
        Ok(dropped)
    }
}

/// Map pages stay in memory (invariant 1 of the head): their pin is never released, and without
/// keeping the store alive.
fn keep_forever(pin: crate::guard::Pin) {
    pin.leave();
}

/// Page numbers that an op on a map page frees, for the analysis before redo: records of such a
/// page below the freeing one are skipped (amendment 6). Empty for ops that free nothing.
pub fn freed_by(
    map: PageId,
    op: u8,
    payload: &[u8],
) -> Result<Vec<std::ops::Range<PageId>>, &'static str> {
    let mut freed = Vec::new();
    if op == OP_MAP_CHANGE {
        for entry in entries(payload)? {
            let (first, count) = match entry? {
                MapEntry::Clear { extent, bit, .. } => {
                    (first_of(map, extent).get() + u64::from(bit), 1)
                }
                MapEntry::Release { extent, .. } => (first_of(map, extent).get(), EXTENT_PAGES),
                MapEntry::Assign { .. } | MapEntry::Set { .. } => continue,
            };
            let end = PageId::checked(first + count).ok_or("a map page beyond all numbers")?;
            freed.push(PageId::new(first)..end);
        }
    }
    Ok(freed)
}

impl Shared {
    /// The page was dropped: its number may become free.
    pub(crate) fn note_discarded(&self, pid: PageId) {
        self.space.mirror.lock().discarded(pid);
    }

    /// Counts a pin that nobody will drop.
    pub(crate) fn pin_forever(&self, frame: u32) {
        self.frames.descriptor(frame).pins.fetch_add(1, Ordering::Relaxed);
    }
}
