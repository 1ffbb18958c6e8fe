//! Writing dirty pages: copy, compress, wait for the log, write, publish.
//!
//! ```text
//! page (S latch): flush_ticket = t, rec_lsn -> 0, copy to staging     stage
//! compress into a group, all of it or what changed (delta.rs)         pack
//! wait until the log is durable up to the highest page LSN            flush_batch
//! write the groups, one of full copies and one of deltas              Outgoing::write
//! page (S latch): location = new, old copies dead, flush_ticket = 0   publish
//! ```
//!
//! 1. Write-ahead rule: no copy is written before the log that explains it is durable.
//! 2. At most one copy of a page is on its way (`flush_ticket`), so publications of one page are
//!    in the order of its LSNs. No two copies have the same ticket: a batch may meet a page twice
//!    that was freed and made anew in the same frame in between.
//! 3. The page stays resident and dirty until its copy is published; only then may it be evicted.
//! 4. A page that was freed or replaced meanwhile no longer carries the ticket; its copy is dead
//!    from birth.
//! 5. What changed is found under the latch under which the page is copied. A delta is written
//!    only against a base that is published, and holds every chunk that any delta since held.
//! 6. A full copy is the base of later deltas from its publication on, if the page's fingerprints
//!    are those of that copy: taken while it was on its way, or still to be taken.
//! 7. A full copy supersedes the base and the delta, a delta only the former delta. What is in
//!    memory of deltas (recent.rs) is told while the latch is held.
//! 8. The two groups of a batch do not depend on each other: of one that was not written the pages
//!    are dirty as before, whatever became of the other.

use crate::blob::{self, BlobHeader};
use crate::counters::add;
use crate::debt;
use crate::delta::{self, Experience, SinceBase};
use crate::dirty::{Batch, DirtyPage};
use crate::disk::{Disk, GROUP_BYTES_MIN, Stream, WrittenGroup};
use crate::error::{Retry, StoreError};
use crate::group::{self, DirectoryEntry};
use crate::guard::SharedPage;
use crate::header::{self, CLASS_MAX, CLASS_MIN, class_bytes};
use crate::location::Location;
use crate::outgoing::Outgoing;
use crate::packing;
use crate::recent::Remembered;
use crate::segments::Death;
use crate::store::Shared;
use base::{Lsn, PageId, TreeId};
use runtime::file::AlignedBuf;
use std::sync::atomic::Ordering;

/// No group has as many copies.
const COPIES_MAX: u64 = 1 << 16;
/// The end of a segment is used if a page of this class has room there.
const CLASS_LEAST: u8 = 13;
/// Among so many pages of a batch neighbours of a tree come to lie side by side, so that ranges
/// read them together (ahead.rs). Not among all of them: the oldest must not wait for room.
const SORTED_PAGES: usize = 32;
/// A batch has at most this many times the pages that fill a group when stored raw.
const BATCH_GROWTH_MAX: usize = 8;
/// Groups of deltas are shorter than others by this factor: a delta is a small part of its page.
const DELTA_GROUP_PARTS: usize = 4;
/// Deltas that take less are written in the group of the full copies: a group of their own would
/// have as much of directory and padding.
const DELTA_GROUP_LEAST: usize = 16 << 10;

/// A copy on its way to disk.
#[derive(Clone, Copy, Debug)]
struct Staged {
    pid: PageId,
    frame: u32,
    /// What the page's `rec_lsn` was.
    rec_lsn: Lsn,
    ticket: u64,
}

/// What became of a page of a batch.
enum Outcome {
    Staged,
    /// Nothing to write: it was flushed, freed or evicted meanwhile.
    Stale,
    /// Latched, on its way already, or no room in the group: later.
    Later,
}

/// One writer of dirty pages with its buffers.
pub(crate) struct Flusher {
    /// Full copies, and deltas (invariant 8).
    pages: Outgoing<Staged>,
    deltas: Outgoing<Staged>,
    page: Vec<u8>,
    /// Changed chunks of `page`.
    chunks: Vec<u8>,
    /// Copies of this batch so far.
    staged: usize,
    /// How many pages are expected to fill a group, by what those of the last batch took.
    fitting: usize,
}

impl Flusher {
    pub(crate) fn new() -> Flusher {
        Flusher {
            pages: Outgoing::new(Stream::Pages),
            deltas: Outgoing::new(Stream::Deltas),
            page: vec![0; class_bytes(CLASS_MAX)],
            chunks: Vec::new(),
            staged: 0,
            fitting: 0,
        }
    }

    /// How many pages a batch should have.
    pub(crate) fn batch_pages(&self, disk: &Disk) -> usize {
        let least = (disk.group_bytes / class_bytes(13)).max(1);
        self.fitting.clamp(least, least * BATCH_GROWTH_MAX)
    }

    /// Whether a page would find room on a disk that is full: others may have more.
    pub(crate) fn has_room(&mut self, disk: &Disk) -> bool {
        self.borrow_segment(disk);
        self.pages.writer().has_room(disk, 1, least_group())
    }

    /// While nothing may grow no deltas are written: their segment has room for full copies.
    fn borrow_segment(&mut self, disk: &Disk) {
        if debt::must_not_grow(disk) {
            self.pages.writer().borrow(self.deltas.writer(), disk, 1, least_group());
        }
    }

    /// Writes what it can of a batch and returns how many pages that were. Parks.
    pub(crate) fn flush_batch(
        &mut self,
        shared: &Shared,
        disk: &Disk,
        batch: &Batch,
    ) -> Result<usize, StoreError> {
        self.begin(disk, batch);
        let mut pages = batch.pages.clone();
        for run in pages.chunks_mut(SORTED_PAGES) {
            run.sort_by_cached_key(|page| order_of(shared, page.pid));
        }
        let mut later = self.stage_all(shared, &pages, batch.ticket);
        if self.staged == 0 && !later.is_empty() && self.pages.widen() {
            // No page has room at the end of this segment: at the begin of the next.
            later = self.stage_all(shared, &later, batch.ticket);
        }
        if self.staged == 0 {
            shared.dirty.finish(batch, &later, &[]);
            return Ok(0);
        }
        let filled = self.pages.filled_permille().max(self.deltas.filled_permille());
        self.fitting = self.staged * 1000 / filled.max(1);
        let mut unstaged = Vec::new();
        let written = self.write(shared, disk, &mut unstaged);
        shared.dirty.finish(batch, &later, &unstaged);
        shared.frame_waiters.wake_all();
        written.map(|()| self.staged)
    }

    /// Empty groups with room for the directory of a batch.
    fn begin(&mut self, disk: &Disk, batch: &Batch) {
        self.staged = 0;
        self.borrow_segment(disk);
        let count = batch.pages.len();
        self.pages.begin(disk, count, disk.group_bytes, blob::blob_bytes_max(CLASS_LEAST));
        let bytes_max = (disk.group_bytes / DELTA_GROUP_PARTS).max(GROUP_BYTES_MIN);
        self.deltas.begin(disk, count, bytes_max, blob::blob_bytes_max(CLASS_MAX));
    }

    /// Stages pages while the groups have room; returns those for later ones.
    fn stage_all(&mut self, shared: &Shared, pages: &[DirtyPage], ticket: u64) -> Vec<DirtyPage> {
        let mut later = Vec::new();
        for &page in pages {
            if matches!(self.stage(shared, page, ticket), Outcome::Later) {
                later.push(page);
            }
            runtime::yield_if_due();
        }
        later
    }

    /// Writes both groups once the log is durable, and publishes them. Returns in `unstaged` the
    /// pages of those that could not be written. Parks.
    fn write(
        &mut self,
        shared: &Shared,
        disk: &Disk,
        unstaged: &mut Vec<DirtyPage>,
    ) -> Result<(), StoreError> {
        if cfg!(debug_assertions) {
            try_deltas(shared, disk, &self.deltas);
        }
        let newest = self.pages.newest().max(self.deltas.newest());
        if self.deltas.blob_bytes() < DELTA_GROUP_LEAST && !self.pages.is_empty() {
            self.pages.take_all(&mut self.deltas);
        }
        let mut outcome = Ok(());
        if !base::mutant!("write_page_before_log") {
            let durable = disk.wal.wait_durable(newest);
            outcome = durable.map(drop).map_err(|error| disk.fatal(&error.to_string()));
        }
        for group in [&mut self.pages, &mut self.deltas] {
            if group.is_empty() {
                continue;
            }
            match outcome.and_then(|()| group.write(disk)) {
                Ok((written, _)) => {
                    publish(shared, disk, group, written);
                    outcome = Ok(());
                }
                Err(error) => {
                    unstage(shared, group, unstaged);
                    outcome = Err(error);
                }
            }
        }
        outcome
    }

    /// Copies a page and packs it into one of the groups.
    fn stage(&mut self, shared: &Shared, dirty: DirtyPage, batch: u64) -> Outcome {
        if !self.have_room(CLASS_MIN) {
            return Outcome::Later;
        }
        let page = match SharedPage::unmarked(shared, dirty.pid) {
            Ok(page) => page,
            Err(Retry::Miss(_)) => return Outcome::Stale,
            Err(_) => return Outcome::Later,
        };
        let descriptor = shared.frames.descriptor(dirty.frame);
        if page.frame() != dirty.frame || descriptor.rec_lsn.load(Ordering::Relaxed) == 0 {
            return Outcome::Stale;
        }
        let class = header::class(&page);
        if !self.have_room(class) {
            return Outcome::Later;
        }
        let ticket = batch * COPIES_MAX + self.staged as u64;
        let free = descriptor.flush_ticket.compare_exchange(
            0,
            ticket,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if free.is_err() {
            return Outcome::Later;
        }
        // Only with the ticket: what could not be written gets its former one back before that.
        let rec_lsn = Lsn::new(descriptor.rec_lsn.load(Ordering::Relaxed));
        if rec_lsn < dirty.rec_lsn {
            // The batch that could not be written is about to say so; this one does not cover it.
            descriptor.flush_ticket.store(0, Ordering::Release);
            return Outcome::Later;
        }
        descriptor.rec_lsn.store(0, Ordering::Relaxed);
        let bytes = page.len();
        self.page[..bytes].copy_from_slice(&page);
        let since = next_delta(shared, dirty.frame, &self.page[..bytes]);
        drop(page);
        let is_delta = since.is_some();
        let former = Location::from_word(descriptor.location.load(Ordering::Relaxed));
        let (blob, is_deferred) = self.pack(shared, bytes, since, former);
        let entry = DirectoryEntry::new(&blob, 0, &self.page[..bytes], is_deferred);
        let group = if is_delta { &mut self.deltas } else { &mut self.pages };
        group.push(entry, Staged { pid: dirty.pid, frame: dirty.frame, rec_lsn, ticket });
        self.staged += 1;
        Outcome::Staged
    }

    /// Whether both groups have room for a page of this class: which of them it goes to is known
    /// only when it is copied.
    fn have_room(&self, class: u8) -> bool {
        let most = blob::blob_bytes_max(class);
        self.pages.has_room(most) && self.deltas.has_room(most)
    }

    /// Compresses the copied page to where it goes: all of it, or what changed since its base.
    /// `former`: its full copy on disk. Returns whether it is to be compressed anew, too.
    fn pack(
        &mut self,
        shared: &Shared,
        bytes: usize,
        since: Option<SinceBase>,
        former: Location,
    ) -> (BlobHeader, bool) {
        let copy = &self.page[..bytes];
        let counters = &shared.counters;
        if let Some(since) = since {
            let target = self.deltas.rest();
            let blob = packing::encode_delta(shared, copy, &since, &mut self.chunks, target);
            let fixed = delta::FIXED_BYTES as u64;
            add(&counters.delta_bytes, blob.stored_bytes());
            add(&counters.delta_packed_bytes, u64::from(blob.payload_bytes).saturating_sub(fixed));
            return (blob, false);
        }
        let (blob, is_deferred) = packing::encode(shared, copy, former, self.pages.rest());
        add(&counters.raw_bytes, bytes as u64);
        add(&counters.stored_bytes, blob.stored_bytes());
        add(&counters.compressed_pages, u64::from(blob.codec != codec::CodecId::None));
        (blob, is_deferred)
    }

    /// Nothing is to be written for a while ([`SegmentWriter::rest`]).
    ///
    /// [`SegmentWriter::rest`]: crate::disk::SegmentWriter::rest
    pub(crate) fn rest(&mut self, disk: &Disk) -> Result<(), StoreError> {
        self.pages.writer().rest(disk)?;
        self.deltas.writer().rest(disk)
    }

    /// Closes the writers' segments.
    pub(crate) fn close(&mut self, disk: &Disk) -> Result<(), StoreError> {
        self.pages.writer().close(disk)?;
        self.deltas.writer().close(disk)
    }
}

/// What a page in memory is sorted by. Not by its number alone: what grows at several places at the
/// same time has numbers in turn, and its leaves would lie so.
fn order_of(shared: &Shared, pid: PageId) -> (Option<TreeId>, u64, PageId) {
    let Ok(page) = SharedPage::unmarked(shared, pid) else { return (None, 0, pid) };
    let order = shared.page_order.map_or(0, |order| order(&page));
    (Some(header::tree(&page)), order, pid)
}

/// Bytes of the smallest group worth a look for room.
fn least_group() -> usize {
    group::blobs_offset(1) + blob::blob_bytes_max(CLASS_LEAST)
}

/// Puts every delta of a group on its base, as a reader will: it must give what was copied. A base
/// or a dictionary that cannot be read is passed over. Parks.
fn try_deltas(shared: &Shared, disk: &Disk, group: &Outgoing<Staged>) {
    let mut page = vec![0; class_bytes(CLASS_MAX)];
    for (entry, staged) in group.copies() {
        let word = shared.frames.descriptor(staged.frame).location.load(Ordering::Relaxed);
        let mut buffer = AlignedBuf::zeroed(0);
        let base = Location::from_word(word);
        if base.is_none() {
            continue;
        }
        let page = &mut page[..class_bytes(entry.class)];
        let read = disk.read_copy(base, &mut buffer).ok().and_then(|bytes| {
            let blob = blob::verify(bytes).ok().filter(|blob| blob.pid == entry.pid)?;
            let dictionary = shared.dictionary_of(&blob).ok()?;
            let decoded = blob::decode(&blob, bytes, dictionary.as_deref(), page);
            decoded.ok().map(|()| blob.as_base())
        });
        if let Some(name) = read.filter(|name| Some(name.word()) == entry.base()) {
            let bytes = group.blob(entry);
            let given = blob::verify(bytes).and_then(|blob| {
                let Ok(dictionary) = shared.dictionary_of(&blob) else { return Ok(None) };
                delta::apply(&blob, bytes, name, dictionary.as_deref(), page).map(Some)
            });
            base::invariant!(given.is_ok(), "a delta of page {}: {given:?}", entry.pid);
        }
    }
}

/// The group is complete: its copies are the newest of their pages.
fn publish(shared: &Shared, disk: &Disk, group: &Outgoing<Staged>, written: WrittenGroup) {
    for (entry, staged) in group.copies() {
        let location = written.location_of(entry);
        let latch = &shared.array.entry(staged.pid).latch;
        while !latch.shared() {
            runtime::yield_now();
        }
        if carries(shared, staged) {
            replace_copies(shared, disk, staged, entry, location, written.group_seq);
            remember(shared, group, entry, location);
            let descriptor = shared.frames.descriptor(staged.frame);
            if descriptor.rec_lsn.load(Ordering::Relaxed) == 0 {
                shared.frames.drop_fingerprints(staged.frame);
                let counts = shared.frames.counts(entry.class);
                counts.dirty.fetch_sub(1, Ordering::Relaxed);
            }
            descriptor.flush_ticket.store(0, Ordering::Release);
        }
        latch.release_shared();
    }
    let deltas = group.copies().iter().filter(|(entry, _)| entry.is_delta());
    add(&shared.counters.delta_pages, deltas.count() as u64);
    add(&shared.counters.flushed_pages, group.copies().len() as u64);
}

/// Keeps a published delta in memory, or forgets the one that a published full copy supersedes.
fn remember(shared: &Shared, group: &Outgoing<Staged>, entry: &DirectoryEntry, location: Location) {
    if base::mutant!("stale_recent_delta") {
        return;
    }
    if entry.is_delta() {
        let written = Remembered::Written(group.blob(entry));
        shared.recent_deltas.remember(&shared.frames, entry.pid, location, &written);
    } else {
        shared.recent_deltas.forget(&shared.frames, entry.pid);
    }
}

/// The group was not written: its pages are dirty as before, and are added to `pages` for the
/// queue.
fn unstage(shared: &Shared, group: &Outgoing<Staged>, pages: &mut Vec<DirtyPage>) {
    for (_, staged) in group.copies() {
        let latch = &shared.array.entry(staged.pid).latch;
        while !latch.shared() {
            runtime::yield_now();
        }
        if carries(shared, staged) {
            let descriptor = shared.frames.descriptor(staged.frame);
            descriptor.rec_lsn.store(staged.rec_lsn.get(), Ordering::Relaxed);
            descriptor.flush_ticket.store(0, Ordering::Release);
            let &Staged { frame, pid, rec_lsn, .. } = staged;
            pages.push(DirtyPage { frame, pid, rec_lsn });
        }
        latch.release_shared();
    }
}

/// Decides under the latch how a page is written, and notes that in its descriptor: as the delta
/// returned, or in full.
fn next_delta(shared: &Shared, frame: u32, page: &[u8]) -> Option<SinceBase> {
    let descriptor = shared.frames.descriptor(frame);
    let former = shared.frames.since_base(frame);
    let changed = shared.frames.changed_chunks(frame, page);
    if let Some(changed) = changed
        && former.base.lsn > Lsn::ZERO
        && !shared.disk.as_ref().is_some_and(debt::must_not_grow)
    {
        let base = Location::from_word(descriptor.location.load(Ordering::Relaxed));
        let since = SinceBase {
            changed: match base::mutant!("delta_without_former") {
                true => changed,
                false => changed | former.changed,
            },
            count: former.count.saturating_add(1),
            ..former
        };
        let (class, stored) = (header::class(page), base.length_bytes());
        let experience = Experience::of(&shared.counters);
        let expected = experience.expected_bytes(class, since.changed, stored);
        if delta::is_worthwhile(expected, since.count, stored) {
            let as_base = delta::bytes_as_base(class, since.changed, stored);
            add(&shared.counters.delta_as_base_bytes, as_base);
            shared.frames.set_since_base(frame, since);
            return Some(since);
        }
    }
    // Fingerprints of what is copied now are taken when it changes (invariant 6).
    shared.frames.drop_fingerprints(frame);
    shared.frames.set_since_base(frame, SinceBase::default());
    None
}

/// Makes what was written the newest full copy of its page or the delta of it, and what it
/// supersedes dead (invariant 7). The latch is held shared, with the flush ticket.
fn replace_copies(
    shared: &Shared,
    disk: &Disk,
    staged: &Staged,
    entry: &DirectoryEntry,
    location: Location,
    group_seq: u64,
) {
    let descriptor = shared.frames.descriptor(staged.frame);
    let delta = shared.array.delta(staged.pid);
    let (former, former_delta) = if entry.is_delta() {
        (Location::NONE, delta.replace(location))
    } else {
        let former = descriptor.location.swap(location.word(), Ordering::Relaxed);
        let is_unchanged = descriptor.rec_lsn.load(Ordering::Relaxed) == 0;
        if is_unchanged || descriptor.fingerprints().is_some() {
            let base = entry.as_base();
            let since = SinceBase { base, ..SinceBase::default() };
            shared.frames.set_since_base(staged.frame, since);
        }
        (Location::from_word(former), delta.replace(Location::NONE))
    };
    let mut table = disk.table.lock();
    table.born(location);
    if entry.is_deferred() {
        table.defer(location);
    }
    if !former.is_none() {
        table.die(former, Death::Superseded(group_seq));
    }
    if !former_delta.is_none() {
        let group_seq = if base::mutant!("delta_reused_unsynced") { 0 } else { group_seq };
        table.die(former_delta, Death::Superseded(group_seq));
    }
}

/// Whether the page is still in the frame that the copy was taken from, without having been freed
/// meanwhile (invariant 4). The latch is held shared.
fn carries(shared: &Shared, staged: &Staged) -> bool {
    let place = shared.array.entry(staged.pid).place();
    let descriptor = shared.frames.descriptor(staged.frame);
    place.is_resident()
        && place.frame() == staged.frame
        && descriptor.flush_ticket.load(Ordering::Relaxed) == staged.ticket
}

#[cfg(test)]
#[path = "flush_tests.rs"]
mod tests;
