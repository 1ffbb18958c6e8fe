//! The collector's reserve: free segments all of whose space is allocated, so that writing there
//! never meets a full disk. They are left to the collector, the last one always: a full store can
//! always be collected.
//!
//! 1. The reserve has to be there before space is short; long before, it is only space that nobody
//!    uses. So it is allocated once the file system can give less than a bound, and given back
//!    when that is plenty again, a quarter more than the bound.
//! 2. The bound is looked at twice a second, and whenever a flusher takes new space. Until then
//!    this store may write its pool and its log, and others what a fast device takes, or one large
//!    file at once ([`PLENTY_BYTES`], [`PLENTY_PARTS`], [`PLENTY_SEGMENTS`]).
//! 3. Where the file system says that it can give more and a write finds no space all the same (a
//!    quota of the user), what it says is not trusted until the next start.
//! 4. Whoever takes more than the bound within one look leaves the store without a reserve: nothing
//!    is lost, but it collects again only when a segment dies whole (DROP, TRUNCATE) or space
//!    comes back.

use crate::disk::{Disk, Stream};
use crate::error::StoreError;
use crate::segment::BLOCK_BYTES;
use crate::segments::{SegmentState, SegmentTable, SegmentUse};
use crate::store::Shared;
use base::{Lsn, probe};
use runtime::file::AlignedBuf;
use runtime::fs::FileSystemSize;
use std::sync::atomic::Ordering;

/// Segments of the reserve: one for the collector alone, one for what deletes have changed and
/// for recoveries on a full disk.
const RESERVE: usize = 2;
/// Less than this is not plenty on any file system: a second's worth of a fast device, or a file
/// of the size that programs make at once.
const PLENTY_BYTES: u64 = 4 << 30;
/// Nor is less than one of so many parts of the file system: on a large one files are large, too.
const PLENTY_PARTS: u64 = 16;
/// Nor is what so many segments take: all writers open some between two looks.
const PLENTY_SEGMENTS: u64 = 64;
/// What is there is given back one of so many parts of the bound above it.
const HYSTERESIS_PARTS: u64 = 4;

/// Whether a reserve has to be there where the file system can give so much and the store itself
/// may write `own` bytes unawares (invariants 1 and 2).
fn is_needed(was_needed: bool, size: FileSystemSize, segment_bytes: u64, own: u64) -> bool {
    let plenty = PLENTY_BYTES
        .max(size.total_bytes / PLENTY_PARTS)
        .max(segment_bytes.saturating_mul(PLENTY_SEGMENTS));
    let bound = plenty.saturating_add(own);
    let margin = if was_needed { bound / HYSTERESIS_PARTS } else { 0 };
    size.available_bytes < bound.saturating_add(margin)
}

impl Shared {
    /// Finds whether the reserve is needed, at what the file system says of itself.
    pub(crate) fn look_at_reserve(&self, disk: &Disk, size: FileSystemSize) -> bool {
        let own = (self.frames.bytes() as u64)
            .saturating_add(self.background.log_cap_set.load(Ordering::Relaxed));
        let mut table = disk.table.lock();
        let was_needed = table.needs_reserve;
        let is_needed = is_needed(was_needed, size, table.segment_bytes, own);
        if !is_needed && !was_needed && disk.is_full.load(Ordering::Relaxed) {
            // Invariant 3.
            disk.distrusts_size.store(true, Ordering::Relaxed);
        }
        table.needs_reserve = is_needed || disk.distrusts_size.load(Ordering::Relaxed);
        if table.needs_reserve && !was_needed {
            probe!("pagestore_reserve_wanted_again");
            self.background.collector_work.set();
        }
        table.needs_reserve
    }
}

impl SegmentTable {
    /// Segments that are to be free and whole: none while there is plenty, nor in a store so small
    /// that they would be a good part of it.
    pub(crate) fn reserve_wanted(&self) -> usize {
        if !self.needs_reserve || self.allocated() < 4 { 0 } else { RESERVE }
    }

    /// Whole segments missing in the reserve.
    pub(crate) fn reserve_missing(&self, durable: Lsn) -> usize {
        let allocated = self.reusable(false, durable);
        let whole = allocated.iter().filter(|&&number| self.segments[number].is_whole).count();
        self.reserve_wanted().saturating_sub(whole)
    }

    /// Segments that could be made whole for the reserve, taken out of reach meanwhile: free ones,
    /// those that take space already first, or new ones. Empty if the reserve is complete.
    pub(crate) fn begin_reserve(&mut self, durable: Lsn) -> Vec<u32> {
        let missing = self.reserve_missing(durable);
        if missing == 0 {
            return Vec::new();
        }
        let mut candidates = self.reusable(false, durable);
        candidates.retain(|&number| !self.segments[number].is_whole);
        candidates.extend(self.reusable(true, durable));
        while candidates.len() < missing {
            self.segments.push(SegmentState::unused());
            candidates.push(self.segments.len() - 1);
        }
        for &number in &candidates {
            self.segments[number].is_collected = true;
        }
        candidates.into_iter().map(|number| number as u32).collect()
    }

    /// The attempt to make a segment whole has ended.
    pub(crate) fn end_reserve(&mut self, number: u32, is_whole: bool) {
        let segment = &mut self.segments[number as usize];
        segment.is_collected = false;
        if is_whole {
            segment.is_whole = true;
            segment.hole_bytes = 0;
            if segment.usage == (SegmentUse::Unused { released: true }) {
                segment.usage = SegmentUse::Unused { released: false };
            }
        }
    }
}

impl Disk {
    /// Reusable segments that writers of this stream leave to the collector: on a full disk all
    /// but one may be used, so that what deletes have changed can be written.
    pub(crate) fn reserve_left_by(&self, stream: Stream) -> usize {
        let wanted = self.table.lock().reserve_wanted();
        match stream {
            Stream::Moved => 0,
            _ if self.is_full.load(Ordering::Relaxed) => wanted.min(1),
            _ => wanted,
        }
    }

    /// Makes the collector's reserve complete, as far as the disk has space. Parks.
    pub(crate) fn keep_reserve(&self) -> Result<(), StoreError> {
        let candidates = {
            let _alone = self.choosing.lock();
            self.table.lock().begin_reserve(self.wal.durable())
        };
        let mut outcome = Ok(());
        for number in candidates {
            let is_wanted = || self.table.lock().reserve_missing(self.wal.durable()) > 0;
            let mut is_whole = false;
            if outcome.is_ok() && is_wanted() {
                match self.make_whole(number) {
                    Ok(made) => is_whole = made,
                    Err(error) => outcome = Err(error),
                }
            }
            self.table.lock().end_reserve(number, is_whole);
        }
        outcome
    }

    /// Allocates all of a segment that is out of reach, and marks it free, so that the next start
    /// knows what the space is for; `false` if the disk is full.
    fn make_whole(&self, number: u32) -> Result<bool, StoreError> {
        if !self.allocate(self.start_of(number), self.files.segment_bytes())? {
            return Ok(false);
        }
        let (seq, is_marked, record) = {
            let mut table = self.table.lock();
            let segment = table.segments[number as usize];
            // A dead one keeps its header until it is used again.
            (segment.seq, segment.usage == SegmentUse::Closed, table.sync_record())
        };
        if is_marked {
            return Ok(true);
        }
        let mut block = AlignedBuf::zeroed(BLOCK_BYTES);
        self.header(number, seq, Stream::Pages, true, record).encode(&mut block);
        self.write_once(&block, self.start_of(number), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn needed(was_needed: bool, total: u64, available: u64) -> bool {
        let size = FileSystemSize { total_bytes: total, available_bytes: available };
        is_needed(was_needed, size, 16 << 20, GIB)
    }

    #[test]
    fn the_reserve_is_there_before_space_is_short() {
        assert!(needed(false, 4 * GIB, 4 * GIB), "a small file system never has plenty");
        assert!(!needed(false, 20 * GIB, 6 * GIB));
        assert!(needed(false, 20 * GIB, 5 * GIB - 1), "4 GiB, and what the store may write");
        assert!(needed(false, 1600 * GIB, 100 * GIB), "a sixteenth of a large one");
        assert!(!needed(false, 1600 * GIB, 101 * GIB));
        let size = FileSystemSize { total_bytes: u64::MAX, available_bytes: u64::MAX };
        assert!(!is_needed(true, size, 64 << 20, GIB));
    }

    #[test]
    fn what_is_there_goes_only_when_there_is_more_than_the_bound() {
        for (available, before) in [(4 * GIB, true), (6 * GIB, false)] {
            assert_eq!(needed(false, 20 * GIB, available), before);
            assert!(needed(true, 20 * GIB, available));
        }
        assert!(!needed(true, 20 * GIB, 7 * GIB));
    }
}
