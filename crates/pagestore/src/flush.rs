//! Writing dirty pages: copy, compress, wait for the log, write, publish.
//!
//! ```text
//! page (S latch): flush_ticket = t, rec_lsn -> 0, copy to staging     stage
//! compress into the group
//! wait until the log is durable up to the highest page LSN            flush_batch
//! write the group                                                     SegmentWriter::append
//! page (S latch): location = new, old copy dead, flush_ticket = 0     publish
//! ```
//!
//! 1. Write-ahead rule: no copy is written before the log that explains it is durable.
//! 2. At most one copy of a page is on its way (`flush_ticket`), so publications of one page are
//!    in the order of its LSNs.
//! 3. The page stays resident and dirty until its copy is published; only then may it be evicted.
//! 4. A page that was freed or replaced meanwhile no longer carries the ticket; its copy is dead
//!    from birth.

use crate::blob;
use crate::counters::add;
use crate::dirty::{Batch, DirtyPage};
use crate::disk::{Disk, SegmentWriter, Stream, WrittenGroup};
use crate::error::{Retry, StoreError};
use crate::group::{self, DirectoryEntry, GROUP_ALIGN};
use crate::guard::SharedPage;
use crate::header::{self, CLASS_MAX, class_bytes};
use crate::location::Location;
use crate::packing;
use crate::segments::Death;
use crate::store::Shared;
use base::{Lsn, PageId};
use runtime::file::AlignedBuf;
use std::sync::atomic::Ordering;

/// A copy on its way to disk.
#[derive(Clone, Copy, Debug)]
struct Staged {
    pid: PageId,
    frame: u32,
    /// What the page's `rec_lsn` was.
    rec_lsn: Lsn,
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
    writer: SegmentWriter,
    group: AlignedBuf,
    page: Vec<u8>,
    entries: Vec<DirectoryEntry>,
    staged: Vec<Staged>,
    /// End of what stands in `group`.
    used: usize,
}

impl Flusher {
    pub(crate) fn new() -> Flusher {
        Flusher {
            writer: SegmentWriter::new(Stream::Pages),
            group: AlignedBuf::zeroed(0),
            page: vec![0; class_bytes(CLASS_MAX)],
            entries: Vec::new(),
            staged: Vec::new(),
            used: 0,
        }
    }

    /// Writes what it can of a batch and returns how many pages that were. Parks.
    pub(crate) fn flush_batch(
        &mut self,
        shared: &Shared,
        disk: &Disk,
        batch: &Batch,
    ) -> Result<usize, StoreError> {
        self.entries.clear();
        self.staged.clear();
        self.used = group::blobs_offset(batch.pages.len());
        self.group.resize(disk.group_bytes);
        let mut later = Vec::new();
        for &page in &batch.pages {
            if matches!(self.stage(shared, disk, page, batch.ticket), Outcome::Later) {
                later.push(page);
            }
            runtime::yield_if_due();
        }
        if self.staged.is_empty() {
            shared.dirty.finish(batch, &later, &[]);
            return Ok(0);
        }
        let end = self.used.next_multiple_of(GROUP_ALIGN);
        self.group[self.used..end].fill(0);
        self.group.resize(end);
        let written = self.write(disk);
        let mut unstaged = Vec::new();
        match written {
            Ok(written) => self.publish(shared, disk, batch.ticket, written),
            Err(_) => unstaged = self.unstage(shared, batch.ticket),
        }
        shared.dirty.finish(batch, &later, &unstaged);
        shared.frame_waiters.wake_all();
        written.map(|_| self.staged.len())
    }

    fn write(&mut self, disk: &Disk) -> Result<WrittenGroup, StoreError> {
        let newest = self.entries.iter().map(|entry| entry.page_lsn).max();
        if !base::mutant!("write_page_before_log") {
            let durable = disk.wal.wait_durable(newest.unwrap_or(Lsn::ZERO));
            durable.map_err(|error| disk.fatal(&error.to_string()))?;
        }
        self.writer.append(disk, &mut self.group, &self.entries)
    }

    /// Copies a page and packs it into the group.
    fn stage(&mut self, shared: &Shared, disk: &Disk, dirty: DirtyPage, ticket: u64) -> Outcome {
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
        if self.used + blob::blob_bytes_max(class) > disk.group_bytes {
            return Outcome::Later;
        }
        let free = descriptor.flush_ticket.compare_exchange(
            0,
            ticket,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if free.is_err() {
            return Outcome::Later;
        }
        let rec_lsn = Lsn::new(descriptor.rec_lsn.swap(0, Ordering::Relaxed));
        let bytes = page.len();
        self.page[..bytes].copy_from_slice(&page);
        drop(page);
        let copy = &self.page[..bytes];
        let blob = packing::encode(shared, copy, &mut self.group[self.used..]);
        let page_type = header::page_type(copy);
        let entry = DirectoryEntry::new(&blob, self.used, page_type, header::format_version(copy));
        self.used += entry.length_bytes as usize;
        self.entries.push(entry);
        self.staged.push(Staged { pid: dirty.pid, frame: dirty.frame, rec_lsn });
        add(&shared.counters.raw_bytes, bytes as u64);
        add(&shared.counters.stored_bytes, u64::from(entry.length_bytes));
        add(&shared.counters.compressed_pages, u64::from(blob.codec != codec::CodecId::None));
        Outcome::Staged
    }

    /// The group is complete: its copies are the newest of their pages.
    fn publish(&self, shared: &Shared, disk: &Disk, ticket: u64, written: WrittenGroup) {
        for (staged, entry) in self.staged.iter().zip(&self.entries) {
            let location = Location::new(
                written.offset + u64::from(entry.offset_bytes),
                entry.length_bytes,
                entry.class,
                entry.crc,
            );
            let latch = &shared.array.entry(staged.pid).latch;
            while !latch.shared() {
                runtime::yield_now();
            }
            if carries(shared, staged, ticket) {
                let descriptor = shared.frames.descriptor(staged.frame);
                let former = descriptor.location.swap(location.word(), Ordering::Relaxed);
                let mut table = disk.table.lock();
                table.born(location);
                if former != 0 {
                    let death = Death::Superseded(written.group_seq);
                    table.die(Location::from_word(former), death);
                }
                drop(table);
                if descriptor.rec_lsn.load(Ordering::Relaxed) == 0 {
                    let counts = shared.frames.counts(entry.class);
                    counts.dirty.fetch_sub(1, Ordering::Relaxed);
                }
                descriptor.flush_ticket.store(0, Ordering::Release);
            }
            latch.release_shared();
        }
        add(&shared.counters.flushed_pages, self.staged.len() as u64);
    }

    /// The group was not written: its pages are dirty as before. Returns them for the queue.
    fn unstage(&self, shared: &Shared, ticket: u64) -> Vec<DirtyPage> {
        let mut pages = Vec::with_capacity(self.staged.len());
        for staged in &self.staged {
            let latch = &shared.array.entry(staged.pid).latch;
            while !latch.shared() {
                runtime::yield_now();
            }
            if carries(shared, staged, ticket) {
                let descriptor = shared.frames.descriptor(staged.frame);
                descriptor.rec_lsn.store(staged.rec_lsn.get(), Ordering::Relaxed);
                descriptor.flush_ticket.store(0, Ordering::Release);
                pages.push(DirtyPage {
                    frame: staged.frame,
                    pid: staged.pid,
                    rec_lsn: staged.rec_lsn,
                });
            }
            latch.release_shared();
        }
        pages
    }

    /// Closes the writer's segment.
    pub(crate) fn close(&mut self, disk: &Disk) -> Result<(), StoreError> {
        self.writer.close(disk)
    }
}

/// Whether the page is still in the frame that the copy was taken from, without having been freed
/// meanwhile (invariant 4). The latch is held shared.
fn carries(shared: &Shared, staged: &Staged, ticket: u64) -> bool {
    let place = shared.array.entry(staged.pid).place();
    let descriptor = shared.frames.descriptor(staged.frame);
    place.is_resident()
        && place.frame() == staged.frame
        && descriptor.flush_ticket.load(Ordering::Relaxed) == ticket
}
