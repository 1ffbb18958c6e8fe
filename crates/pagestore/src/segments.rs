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
//!
//! Some of those that may be used again are the collector's reserve (reserve.rs).

use crate::location::Location;
use crate::segment::{OPEN_SEGMENTS_MAX, OpenSegment, SyncRecord};
use base::Lsn;
use std::collections::BTreeSet;

/// Of a segment that a former run has filled a part lacks, in which no further group had room.
const UNWRITTEN_PARTS: u64 = 4;

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
    /// Bytes of copies written here that wait for being compressed anew (catch_up.rs); those that
    /// have died meanwhile count.
    pub(crate) deferred_bytes: u64,
    /// How many copies were written here as the newest ones of their pages, and of these such as
    /// waited then.
    born_copies: u32,
    deferred_copies: u32,
    /// Rule 1: highest group that superseded a copy here.
    pub(crate) dead_by_group: u64,
    /// Rule 1: highest end of a record that freed a page with a copy here.
    pub(crate) dead_by_lsn: Lsn,
    /// Collection found damage here: the segment is left alone.
    pub(crate) is_damaged: bool,
    /// Being emptied by the collector or given back: not to be chosen.
    pub(crate) is_collected: bool,
    /// All of its space is known to be allocated.
    pub(crate) is_whole: bool,
    /// It was written to its end since it got its space: nearly all of that is allocated.
    pub(crate) is_filled: bool,
    /// Bytes of it that are known not to take space.
    pub(crate) hole_bytes: u64,
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
            deferred_bytes: 0,
            born_copies: 0,
            deferred_copies: 0,
            dead_by_group: 0,
            dead_by_lsn: Lsn::ZERO,
            is_damaged: false,
            is_collected: false,
            is_whole: false,
            is_filled: false,
            hole_bytes: 0,
            synced_groups: 0,
            footer_synced: false,
        }
    }

    /// A segment found by recovery.
    pub(crate) fn recovered(usage: SegmentUse, seq: u64, groups: u32) -> SegmentState {
        SegmentState { usage, seq, groups, ..SegmentState::unused() }
    }

    /// The same with `groups_bytes` of groups.
    pub(crate) fn written(self, groups_bytes: u64, segment_bytes: u64) -> SegmentState {
        let is_filled = groups_bytes >= segment_bytes - segment_bytes / UNWRITTEN_PARTS;
        SegmentState { is_filled, ..self }
    }

    /// A segment in which recovery found nothing.
    pub(crate) fn found_free(has_space: bool) -> SegmentState {
        let usage = SegmentUse::Unused { released: !has_space };
        SegmentState { usage, is_filled: has_space, ..SegmentState::unused() }
    }

    /// Of what waits here for being compressed anew, at most so much is alive.
    pub(crate) fn deferred_live(&self) -> u64 {
        self.deferred_bytes.min(self.live_bytes)
    }

    /// The same, of a segment that can be gone through.
    fn deferred_to_take(&self) -> u64 {
        let is_closed = self.usage == SegmentUse::Closed;
        if is_closed && !self.is_damaged { self.deferred_live() } else { 0 }
    }

    /// Whether what is written here finds its space.
    pub(crate) fn has_space(&self) -> bool {
        self.is_whole || self.is_filled
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
    /// Free space is not so plenty that the reserve may be missing (reserve.rs).
    pub(crate) needs_reserve: bool,
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
            needs_reserve: true,
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
        let segment = &mut self.segments[number];
        segment.live_bytes += u64::from(location.length_bytes());
        segment.born_copies += 1;
    }

    /// A copy that became the newest of its page waits for being compressed anew.
    pub(crate) fn defer(&mut self, location: Location) {
        let number = self.number_of(location.offset_bytes());
        let segment = &mut self.segments[number];
        segment.deferred_bytes += u64::from(location.length_bytes());
        segment.deferred_copies += 1;
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
    /// are left for others. Returns its number and what it was before.
    pub(crate) fn choose(&mut self, reserve: usize, durable: Lsn) -> (u32, SegmentState) {
        let allocated = self.reusable(false, durable);
        // Whole ones are left to the collector as long as there are others.
        let is_partial = |&&number: &&usize| !self.segments[number].is_whole;
        let chosen = if allocated.len() > reserve {
            let partial = allocated.iter().find(is_partial).filter(|_| reserve > 0);
            partial.or(allocated.first()).copied()
        } else {
            self.reusable(true, durable).first().copied()
        };
        let number = chosen.unwrap_or_else(|| {
            self.segments.push(SegmentState::unused());
            self.segments.len() - 1
        });
        let former = self.segments[number];
        let seq = self.next_segment_seq;
        self.next_segment_seq += 1;
        let is_released = former.usage == SegmentUse::Unused { released: true };
        self.segments[number] = SegmentState {
            is_whole: former.is_whole,
            is_filled: former.is_filled,
            hole_bytes: if is_released { self.segment_bytes } else { former.hole_bytes },
            ..SegmentState::recovered(SegmentUse::Open, seq, 0)
        };
        (number as u32, former)
    }

    /// The chosen segment could not be opened: it is what it was before. Its sequence is not used
    /// again.
    pub(crate) fn unchoose(&mut self, number: u32, former: SegmentState) {
        self.segments[number as usize] = former;
    }

    /// Segments that may be used again: those whose space is to be had first, or the others.
    pub(crate) fn reusable(&self, needs_space: bool, durable: Lsn) -> Vec<usize> {
        let all = 0..self.segments.len();
        all.filter(|&number| {
            self.segments[number].has_space() != needs_space && self.is_reusable(number, durable)
        })
        .collect()
    }

    /// The space of an unused segment was given back.
    pub(crate) fn released(&mut self, number: u32) {
        let segment = &mut self.segments[number as usize];
        segment.usage = SegmentUse::Unused { released: true };
        (segment.is_whole, segment.is_filled) = (false, false);
    }

    /// A group is about to be written; returns its sequence.
    pub(crate) fn begin_group(&mut self) -> u64 {
        let seq = self.next_group_seq;
        self.next_group_seq += 1;
        self.writing.insert(seq);
        seq
    }

    /// The group of so many bytes is completely written.
    pub(crate) fn end_group(&mut self, number: u32, seq: u64, bytes: u64) {
        self.writing.remove(&seq);
        self.segments[number as usize].groups += 1;
        self.fill_hole(number, bytes);
    }

    /// So many bytes of the segment that may have taken no space do now.
    pub(crate) fn fill_hole(&mut self, number: u32, bytes: u64) {
        let segment = &mut self.segments[number as usize];
        segment.hole_bytes = segment.hole_bytes.saturating_sub(bytes);
    }

    /// What is not written yet of an open segment, so many bytes, is about to take no space.
    pub(crate) fn punched(&mut self, number: u32, bytes: u64) {
        let segment = &mut self.segments[number as usize];
        (segment.is_whole, segment.is_filled, segment.hole_bytes) = (false, false, bytes);
    }

    /// The group could not be written; nobody counts on it.
    pub(crate) fn withdraw_group(&mut self, seq: u64) {
        self.writing.remove(&seq);
    }

    /// The segment's footer is written; `is_filled` if no further group had room before it.
    pub(crate) fn close(&mut self, number: u32, is_filled: bool) {
        let segment = &mut self.segments[number as usize];
        segment.usage = SegmentUse::Closed;
        if is_filled {
            (segment.is_filled, segment.hole_bytes) = (true, 0);
        }
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
        free.sort_by_key(|&number| !self.segments[number].has_space());
        let count = free.len().saturating_sub(spare);
        free.drain(..free.len() - count);
        free.into_iter().map(|number| number as u32).collect()
    }

    /// The closed segment to be collected, if of any something lives, but less than the share
    /// `most`: the one with the least, or `by_age` the one with the most gain for its cost, gain
    /// being the more worth the longer the rest of the segment has lived
    /// (docs/design/2026-11-22-space.md).
    pub(crate) fn victim(&self, most: f64, by_age: bool) -> Option<u32> {
        let worth = |segment: &SegmentState| {
            let share = (segment.live_bytes as f64 / self.capacity(segment) as f64).min(1.0);
            let age = (self.next_segment_seq - segment.seq) as f64;
            if by_age { (1.0 - share) * age / (1.0 + share) } else { 1.0 - share }
        };
        let candidates = self.segments.iter().enumerate().filter(|(_, segment)| {
            segment.usage == SegmentUse::Closed
                && segment.live_bytes > 0
                && (segment.live_bytes as f64) < self.capacity(segment) as f64 * most
                && !segment.is_damaged
                && !segment.is_collected
        });
        let best = candidates.max_by(|(_, one), (_, other)| worth(one).total_cmp(&worth(other)));
        best.map(|(number, _)| number as u32)
    }

    /// Whether deferred copies of this use of a segment may be compressed now.
    pub(crate) fn has_deferred(&self, number: u32, seq: u64) -> bool {
        let segment = self.segments.get(number as usize);
        segment.is_some_and(|segment| segment.seq == seq && segment.deferred_to_take() > 0)
    }

    /// The closed segment with most of what waits for being compressed anew.
    pub(crate) fn most_deferred(&self) -> Option<u32> {
        let segments = self.segments.iter().map(SegmentState::deferred_to_take).enumerate();
        let (number, bytes) = segments.max_by_key(|&(_, bytes)| bytes)?;
        (bytes > 0).then_some(number as u32)
    }

    /// Whether most that was written around a copy waits for being compressed anew: so does the
    /// copy then, or it was written at the same time as these.
    pub(crate) fn is_among_deferred(&self, location: Location) -> bool {
        let segment = &self.segments[self.number_of(location.offset_bytes())];
        segment.deferred_bytes > 0 && segment.deferred_copies * 2 > segment.born_copies
    }

    /// Bytes that wait for being compressed anew.
    pub(crate) fn deferred_bytes(&self) -> u64 {
        self.segments.iter().map(SegmentState::deferred_live).sum()
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
}

#[cfg(test)]
mod tests;
