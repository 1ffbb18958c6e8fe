//! The segment table: which segment is in which state, how many of its bytes are live, and when
//! its space may be used again.
//!
//! ```text
//!            open_segment            close            live = 0, covered
//! Unused ------------------> Open ---------> Closed -------------------> Unused
//!    ^                                          |                           |
//!    |            punched or cut off            +-- collect: live -> 0      | release
//!    +----------- Released <------------------------------------------------+
//! ```
//!
//! Rules of reuse (amendments 3 and 4):
//! 1. A copy dies when a newer copy of its page is complete in group g, or when its page is freed
//!    by a record ending at l. Its segment remembers the highest such g and l.
//! 2. A closed segment without live bytes is used again only when every group up to its g is
//!    durable by a sync that began after they were complete, and the log is durable up to l.
//! 3. A sync covers the groups below the lowest one still being written; a group that is
//!    withdrawn (disk full) leaves the sequence before it counts as written.
//! 4. The header of a reused segment is durable before its first group is written, and carries
//!    the sync record that justifies the reuse: recovery never trusts less than what reuse relied
//!    on. Before a header vanishes in a hole, the superblock carries a newer record than it did.

use crate::location::Location;
use crate::segment::{BLOCK_BYTES, OPEN_SEGMENTS_MAX, OpenSegment, SyncRecord};
use base::Lsn;
use std::collections::BTreeSet;

/// What a segment is used for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentUse {
    /// Nothing; `released` if its space was given back.
    Unused { released: bool },
    /// A writer appends groups.
    Open,
    /// Full, footer written.
    Closed,
}

/// One segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentState {
    pub(crate) usage: SegmentUse,
    pub(crate) seq: u64,
    pub(crate) groups: u32,
    pub(crate) live_bytes: u64,
    /// Rule 1: highest group that superseded a copy here.
    pub(crate) dead_by_group: u64,
    /// Rule 1: highest end of a record that freed a page with a copy here.
    pub(crate) dead_by_lsn: Lsn,
    /// Collection found damage here: the segment is left alone.
    pub(crate) is_damaged: bool,
    /// Being emptied by the collector or given back: not to be chosen.
    pub(crate) is_collected: bool,
    /// Complete groups known to be durable.
    synced_groups: u32,
    /// Whether the footer is known to be durable; until then the sync record lists the segment.
    footer_synced: bool,
}

impl SegmentState {
    pub(crate) fn unused() -> SegmentState {
        SegmentState {
            usage: SegmentUse::Unused { released: true },
            seq: 0,
            groups: 0,
            live_bytes: 0,
            dead_by_group: 0,
            dead_by_lsn: Lsn::ZERO,
            is_damaged: false,
            is_collected: false,
            synced_groups: 0,
            footer_synced: false,
        }
    }

    /// A segment found by recovery.
    pub(crate) fn recovered(usage: SegmentUse, seq: u64, groups: u32) -> SegmentState {
        SegmentState { usage, seq, groups, ..SegmentState::unused() }
    }
}

/// Why a copy is dead.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Death {
    /// A newer copy is complete in this group.
    Superseded(u64),
    /// The page was freed by a record that ends here.
    Freed(Lsn),
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct SegmentTable {
    pub(crate) segments: Vec<SegmentState>,
    pub(crate) segment_bytes: u64,
    next_segment_seq: u64,
    next_group_seq: u64,
    /// Groups being written.
    writing: BTreeSet<u64>,
    synced_group_seq: u64,
    /// Version of the last sync record that was made.
    record_version: u64,
}

/// What a sync will have made durable once it returns; taken before it begins.
#[derive(Clone, Debug)]
pub(crate) struct SyncPoint {
    pub(crate) group_seq: u64,
    /// Listed segments as they stand: number, sequence, complete groups, footer written.
    listed: Vec<(u32, u64, u32, bool)>,
}

impl SegmentTable {
    pub(crate) fn new(segment_bytes: u64) -> SegmentTable {
        SegmentTable {
            segments: Vec::new(),
            segment_bytes,
            next_segment_seq: 1,
            next_group_seq: 1,
            writing: BTreeSet::new(),
            synced_group_seq: 0,
            record_version: 0,
        }
    }

    /// The table as recovery found it and made it durable; `record` is the sync record it used.
    pub(crate) fn recovered(
        segments: Vec<SegmentState>,
        segment_bytes: u64,
        record: &SyncRecord,
        last_group_seq: u64,
    ) -> SegmentTable {
        let group_seq = last_group_seq.max(record.synced_group_seq);
        let next_segment_seq = segments.iter().map(|segment| segment.seq + 1).max();
        let mut table = SegmentTable {
            segments,
            next_segment_seq: next_segment_seq.unwrap_or(1).max(record.next_segment_seq),
            next_group_seq: group_seq + 1,
            synced_group_seq: group_seq,
            record_version: record.version,
            ..SegmentTable::new(segment_bytes)
        };
        for segment in &mut table.segments {
            segment.footer_synced = segment.usage == SegmentUse::Closed;
        }
        table
    }

    /// Which segment an offset or location lies in.
    pub(crate) fn number_of(&self, offset_bytes: u64) -> usize {
        (offset_bytes / self.segment_bytes) as usize
    }

    /// A copy became the newest of its page.
    pub(crate) fn born(&mut self, location: Location) {
        let number = self.number_of(location.offset_bytes());
        self.segments[number].live_bytes += u64::from(location.length_bytes());
    }

    /// A copy that was the newest of its page is that no longer.
    pub(crate) fn die(&mut self, location: Location, death: Death) {
        let number = self.number_of(location.offset_bytes());
        let segment = &mut self.segments[number];
        let length = u64::from(location.length_bytes());
        base::invariant!(segment.live_bytes >= length, "live bytes of segment {number}");
        segment.live_bytes -= length;
        match death {
            Death::Superseded(group) => segment.dead_by_group = segment.dead_by_group.max(group),
            Death::Freed(lsn) => segment.dead_by_lsn = segment.dead_by_lsn.max(lsn),
        }
    }

    /// Rule 2: whether the segment's space may be used again.
    pub(crate) fn is_reusable(&self, number: usize, durable: Lsn) -> bool {
        let segment = &self.segments[number];
        let covered = segment.dead_by_group <= self.synced_group_seq
            && segment.dead_by_lsn <= durable
            && segment.footer_synced;
        match segment.usage {
            _ if segment.is_collected => false,
            SegmentUse::Unused { .. } => true,
            SegmentUse::Open => false,
            SegmentUse::Closed => {
                segment.live_bytes == 0
                    && !segment.is_damaged
                    && (covered || base::mutant!("reuse_without_sync"))
            }
        }
    }

    /// Whether some dead segment waits for a sync to become reusable.
    pub(crate) fn wants_sync(&self) -> bool {
        self.segments.iter().any(|segment| {
            segment.usage == SegmentUse::Closed
                && segment.live_bytes == 0
                && !segment.is_damaged
                && (segment.dead_by_group > self.synced_group_seq || !segment.footer_synced)
        })
    }

    /// Chooses a segment for a writer and gives it a new sequence. `reserve` reusable segments
    /// are left for others. Returns its number and whether it had a former life.
    pub(crate) fn choose(&mut self, reserve: usize, durable: Lsn) -> (u32, bool) {
        let reusable = |table: &Self, released: bool| {
            let all = 0..table.segments.len();
            let found = all.filter(move |&number| {
                let unused = SegmentUse::Unused { released: true };
                (table.segments[number].usage == unused) == released
                    && table.is_reusable(number, durable)
            });
            found.collect::<Vec<_>>()
        };
        let allocated = reusable(self, false);
        let chosen = if allocated.len() > reserve {
            allocated.first().copied()
        } else {
            reusable(self, true).first().copied()
        };
        let number = chosen.unwrap_or_else(|| {
            self.segments.push(SegmentState::unused());
            self.segments.len() - 1
        });
        let had_life = self.segments[number].seq != 0;
        let seq = self.next_segment_seq;
        self.next_segment_seq += 1;
        self.segments[number] = SegmentState::recovered(SegmentUse::Open, seq, 0);
        (number as u32, had_life)
    }

    /// A group is about to be written; returns its sequence.
    pub(crate) fn begin_group(&mut self) -> u64 {
        let seq = self.next_group_seq;
        self.next_group_seq += 1;
        self.writing.insert(seq);
        seq
    }

    /// The group is completely written.
    pub(crate) fn end_group(&mut self, number: u32, seq: u64) {
        self.writing.remove(&seq);
        self.segments[number as usize].groups += 1;
    }

    /// The group could not be written; nobody counts on it.
    pub(crate) fn withdraw_group(&mut self, seq: u64) {
        self.writing.remove(&seq);
    }

    /// The segment's footer is written.
    pub(crate) fn close(&mut self, number: u32) {
        self.segments[number as usize].usage = SegmentUse::Closed;
    }

    /// Rule 3: what a sync that begins now will cover.
    pub(crate) fn sync_point(&self) -> SyncPoint {
        let group_seq = match self.writing.first() {
            Some(lowest) => lowest - 1,
            None => self.next_group_seq - 1,
        };
        let listed = self.listed().map(|(number, segment)| {
            let is_closed = segment.usage == SegmentUse::Closed;
            (number as u32, segment.seq, segment.groups, is_closed)
        });
        SyncPoint { group_seq, listed: listed.collect() }
    }

    /// Segments that a sync record lists: open ones and closed ones without a durable footer.
    fn listed(&self) -> impl Iterator<Item = (usize, &SegmentState)> {
        self.segments.iter().enumerate().filter(|(_, segment)| match segment.usage {
            SegmentUse::Open => true,
            SegmentUse::Closed => !segment.footer_synced,
            SegmentUse::Unused { .. } => false,
        })
    }

    /// Whether a sync must come before another segment may be opened: the record has room for
    /// so many only.
    pub(crate) fn is_list_full(&self) -> bool {
        self.listed().count() + 1 >= OPEN_SEGMENTS_MAX
    }

    /// The sync that began at `point` has succeeded.
    pub(crate) fn synced(&mut self, point: &SyncPoint) {
        self.synced_group_seq = self.synced_group_seq.max(point.group_seq);
        for &(number, seq, groups, is_closed) in &point.listed {
            if let Some(segment) = self.segments.get_mut(number as usize)
                && segment.seq == seq
            {
                segment.synced_groups = segment.synced_groups.max(groups);
                segment.footer_synced |= is_closed;
            }
        }
    }

    /// Every group up to this one is durable.
    pub(crate) fn synced_group_seq(&self) -> u64 {
        self.synced_group_seq
    }

    /// What may be written into headers and superblock now.
    pub(crate) fn sync_record(&mut self) -> SyncRecord {
        self.record_version += 1;
        let open = self.listed().map(|(number, segment)| OpenSegment {
            number: number as u32,
            groups: segment.synced_groups,
            seq: segment.seq,
        });
        SyncRecord {
            version: self.record_version,
            synced_group_seq: self.synced_group_seq,
            next_segment_seq: self.next_segment_seq,
            open: open.collect(),
        }
    }

    /// Dead segments whose space may be given back, beyond `spare` kept for reuse.
    pub(crate) fn releasable(&self, spare: usize, durable: Lsn) -> Vec<u32> {
        let mut free: Vec<usize> = (0..self.segments.len())
            .filter(|&number| {
                let segment = &self.segments[number];
                segment.usage != SegmentUse::Unused { released: true }
                    && self.is_reusable(number, durable)
            })
            .collect();
        let count = free.len().saturating_sub(spare);
        free.drain(..free.len() - count);
        free.into_iter().map(|number| number as u32).collect()
    }

    /// What blobs can take of a segment: all but header, footer, trailer, and a share for
    /// directories and padding. Without that, collection of tiny segments would never be content.
    pub(crate) fn usable_bytes(&self) -> u64 {
        self.segment_bytes - 4 * BLOCK_BYTES as u64 - self.segment_bytes / 32
    }

    /// Live bytes, usable bytes and number of the closed segments that hold something.
    pub(crate) fn utilisation(&self) -> (u64, u64, usize) {
        let closed = self.segments.iter();
        let closed = closed.filter(|segment| {
            segment.usage == SegmentUse::Closed && segment.live_bytes > 0 && !segment.is_damaged
        });
        closed.fold((0, 0, 0), |(live, all, count), segment| {
            (live + segment.live_bytes, all + self.usable_bytes(), count + 1)
        })
    }

    /// The closed segment with the fewest live bytes, if any has some but less than `most`.
    pub(crate) fn victim(&self, most: u64) -> Option<u32> {
        let candidates = self.segments.iter().enumerate().filter(|(_, segment)| {
            segment.usage == SegmentUse::Closed
                && segment.live_bytes > 0
                && segment.live_bytes < most
                && !segment.is_damaged
                && !segment.is_collected
        });
        candidates.min_by_key(|(_, segment)| segment.live_bytes).map(|(number, _)| number as u32)
    }

    /// Whether a sync or giving back could gain anything.
    pub(crate) fn has_dead_segments(&self, spare: usize) -> bool {
        let dead = self.segments.iter().filter(|segment| match segment.usage {
            SegmentUse::Unused { released } => !released,
            SegmentUse::Open => false,
            SegmentUse::Closed => segment.live_bytes == 0 && !segment.is_damaged,
        });
        self.wants_sync() || dead.count() > spare
    }

    /// Sum of live bytes over all segments.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_bytes).sum()
    }

    /// Segments that take space in the file system.
    pub(crate) fn allocated(&self) -> usize {
        let all = self.segments.iter();
        all.filter(|segment| segment.usage != SegmentUse::Unused { released: true }).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 65536;

    fn location(segment: u64, offset: u64) -> Location {
        Location::new(segment * SIZE + offset, 128, 13, 0)
    }

    #[test]
    fn reuse_waits_for_a_covering_sync() {
        let mut table = SegmentTable::new(SIZE);
        let (first, had_life) = table.choose(0, Lsn::ZERO);
        assert_eq!((first, had_life), (0, false));
        let group = table.begin_group();
        table.end_group(first, group);
        table.born(location(0, 4096));
        table.close(first);
        let (second, _) = table.choose(0, Lsn::ZERO);
        assert_eq!(second, 1, "the first still has live bytes");
        let early = table.sync_point();
        let newer = table.begin_group();
        let unfinished = table.sync_point();
        table.end_group(second, newer);
        table.born(location(1, 4096));
        table.die(location(0, 4096), Death::Superseded(newer));
        assert!(!table.is_reusable(0, Lsn::MAX) && table.wants_sync());
        table.synced(&early);
        table.synced(&unfinished);
        assert!(!table.is_reusable(0, Lsn::MAX), "those syncs began too early");
        let point = table.sync_point();
        table.synced(&point);
        assert!(table.is_reusable(0, Lsn::MAX) && !table.wants_sync());
        assert_eq!(table.releasable(0, Lsn::MAX), [0]);
        assert_eq!(table.choose(0, Lsn::MAX), (0, true));
    }

    #[test]
    fn a_lower_group_still_being_written_holds_back_the_sync() {
        let mut table = SegmentTable::new(SIZE);
        let (number, _) = table.choose(0, Lsn::ZERO);
        let slow = table.begin_group();
        let quick = table.begin_group();
        table.end_group(number, quick);
        assert_eq!(table.sync_point().group_seq, slow - 1);
        table.withdraw_group(slow);
        assert_eq!(table.sync_point().group_seq, quick);
    }

    #[test]
    fn freed_pages_wait_for_the_log() {
        let mut table = SegmentTable::new(SIZE);
        let (number, _) = table.choose(0, Lsn::ZERO);
        table.born(location(0, 4096));
        table.close(number);
        table.die(location(0, 4096), Death::Freed(Lsn::new(9000)));
        let point = table.sync_point();
        table.synced(&point);
        assert!(!table.is_reusable(0, Lsn::new(8999)));
        assert!(table.is_reusable(0, Lsn::new(9000)));
    }

    #[test]
    fn a_reserve_is_left_for_moved_pages() {
        let mut table = SegmentTable::new(SIZE);
        let (number, _) = table.choose(0, Lsn::ZERO);
        table.close(number);
        let point = table.sync_point();
        table.synced(&point);
        assert_eq!(table.choose(1, Lsn::MAX).0, 1, "one reusable segment is in reserve");
        assert_eq!(table.choose(0, Lsn::MAX).0, 0);
    }

    #[test]
    fn the_emptiest_segment_is_collected_first() {
        let mut table = SegmentTable::new(SIZE);
        for segment in 0..3u64 {
            let (number, _) = table.choose(0, Lsn::ZERO);
            for blob in 0..=(segment + 1) % 3 {
                table.born(location(segment, 4096 + blob * 128));
            }
            table.close(number);
        }
        assert_eq!(table.victim(SIZE), Some(2));
        assert_eq!(table.victim(100), None);
        assert_eq!(table.utilisation(), (6 * 128, 3 * table.usable_bytes(), 3));
    }
}
