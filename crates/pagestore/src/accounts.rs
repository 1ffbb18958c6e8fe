//! What segments take in the file system and hold of live copies, summed up.
//!
//! A segment takes all of its space but for what is known to be a hole: what was never written
//! since the space was given back, or was given back while the segment was open (writer.rs,
//! invariant 6). What a start finds counts as whole.

use crate::segment::BLOCK_BYTES;
use crate::segments::{SegmentState, SegmentTable, SegmentUse};

/// See [`SegmentTable::capacity`].
const LEAST_PARTS: u64 = 8;

impl SegmentTable {
    /// What blobs can take of a segment: all but header, footer, trailer, and a share for
    /// directories and padding. Without that, collection of tiny segments would never be content.
    pub(crate) fn usable_bytes(&self) -> u64 {
        self.segment_bytes - 4 * BLOCK_BYTES as u64 - self.segment_bytes / 32
    }

    /// What blobs can take of a closed segment: of one that was closed early what has space, but
    /// not less than a part of it, or many with next to nothing in them would be left alone.
    pub(crate) fn capacity(&self, segment: &SegmentState) -> u64 {
        let usable = self.usable_bytes();
        usable.saturating_sub(segment.hole_bytes).max(usable / LEAST_PARTS)
    }

    /// Live bytes, usable bytes and number of the closed segments that hold something.
    pub(crate) fn utilisation(&self) -> (u64, u64, usize) {
        let closed = self.segments.iter();
        let closed = closed.filter(|segment| {
            segment.usage == SegmentUse::Closed && segment.live_bytes > 0 && !segment.is_damaged
        });
        closed.fold((0, 0, 0), |(live, all, count), segment| {
            (live + segment.live_bytes, all + self.capacity(segment), count + 1)
        })
    }

    /// Bytes of garbage for each live byte, by segment.
    pub(crate) fn garbage_shares(&self) -> Vec<f64> {
        let share = |segment: &SegmentState| {
            let is_closed = segment.usage == SegmentUse::Closed && segment.live_bytes > 0;
            let garbage = self.capacity(segment).saturating_sub(segment.live_bytes);
            if is_closed { garbage as f64 / segment.live_bytes as f64 } else { 0.0 }
        };
        self.segments.iter().map(share).collect()
    }

    /// Sum of live bytes over all segments.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_bytes).sum()
    }

    /// Segments that take space in the file system.
    pub(crate) fn allocated(&self) -> usize {
        self.with_space().count()
    }

    /// Bytes that they take.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.with_space().map(|segment| self.segment_bytes - segment.hole_bytes).sum()
    }

    /// Of these the bytes of open segments, and of segments without live copies.
    pub(crate) fn open_and_free_bytes(&self) -> (u64, u64) {
        let (mut open, mut free) = (0, 0);
        for segment in self.with_space() {
            let bytes = self.segment_bytes - segment.hole_bytes;
            match segment.usage {
                SegmentUse::Open => open += bytes,
                _ if segment.live_bytes == 0 => free += bytes,
                _ => {}
            }
        }
        (open, free)
    }

    fn with_space(&self) -> impl Iterator<Item = &SegmentState> {
        let all = self.segments.iter();
        all.filter(|segment| segment.usage != SegmentUse::Unused { released: true })
    }

    /// Bytes of closed segments that were closed early, which take no space.
    pub(crate) fn closed_hole_bytes(&self) -> u64 {
        let closed = self.segments.iter();
        let closed = closed.filter(|segment| segment.usage == SegmentUse::Closed);
        closed.map(|segment| segment.hole_bytes).sum()
    }
}
