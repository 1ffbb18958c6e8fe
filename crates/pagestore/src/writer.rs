//! Writers that append groups to segments of their own.
//!
//! 1. A writer owns its segment: one group at a time, in order, so a segment's complete groups
//!    are always a prefix of it.
//! 2. The space of a segment's footer is allocated before the group that makes it so long is
//!    written: neither closing a segment nor a start after a crash fails for want of space.
//! 3. A full disk is no failure. A group that cannot be written is withdrawn; the writer closes
//!    its segment and takes one that is allocated already, and if there is none (the reserve of
//!    the collector set aside) the caller is told. Nobody holds on to pages and waits: another
//!    flusher may have room in its segment, and who gives back space must not wait for space.
//! 4. A segment whose header could not be written is what it was before.
//! 5. What the log may still grow by is left to it: no flusher takes space for another segment out
//!    of that. Pages can wait for the collector; a log that stops stops everything.
//! 6. At rest no space is held for what may come ([`SegmentWriter::rest`]), unless free space is so
//!    near its end that a reserve is held: then what there is is kept.

use crate::counters::add;
use crate::disk::{Disk, Stream};
use crate::error::StoreError;
use crate::group::{self, DirectoryEntry, GROUP_ALIGN, GroupHeader};
use crate::segment::{BLOCK_BYTES, SegmentTrailer};
use base::checksum::crc32c;
use base::{Lsn, probe};
use runtime::file::AlignedBuf;

/// Space allocated for a footer at first.
const FIRST_FOOTER_BYTES: u64 = 256 << 10;

/// At rest one of so many parts of a segment is worth giving back, and worth closing it for when it
/// is dead: a store that is written now and then has few segments for that.
const REST_PARTS: u64 = 8;

/// Writes the footer and trailer of a segment. Returns the bytes to be written and their offset
/// within the segment.
pub(crate) fn encode_footer(
    uuid: [u8; 16],
    number: u32,
    seq: u64,
    segment_bytes: u64,
    group_count: u32,
    footer: &[u8],
) -> (AlignedBuf, u64) {
    let padded = footer.len().next_multiple_of(BLOCK_BYTES);
    let mut bytes = AlignedBuf::zeroed(padded + BLOCK_BYTES);
    let offset = segment_bytes - bytes.len() as u64;
    bytes[..footer.len()].copy_from_slice(footer);
    let trailer = SegmentTrailer {
        uuid,
        number,
        seq,
        group_count,
        footer_offset: offset as u32,
        footer_bytes: footer.len() as u32,
        footer_crc: crc32c(footer),
    };
    trailer.encode(&mut bytes[padded..]);
    (bytes, offset)
}

/// Space that a segment of this size has for its footer at first.
fn first_footer_bytes(segment_bytes: u64) -> u64 {
    let block = BLOCK_BYTES as u64;
    (segment_bytes / 64 / block * block).clamp(2 * block, FIRST_FOOTER_BYTES)
}

/// The segment that a writer fills.
#[derive(Debug)]
struct Current {
    number: u32,
    seq: u64,
    /// Where the next group goes, within the segment.
    position: u64,
    groups: u32,
    /// Bytes of the blobs in them.
    blob_bytes: u64,
    /// Header and directory of every group so far.
    footer: Vec<u8>,
    /// Bytes allocated at the end of the segment (invariant 2).
    footer_space: u64,
}

impl Current {
    /// Bytes at the end of the segment that footer and trailer take with one more group.
    fn end_bytes(&self, entries: usize) -> u64 {
        let footer = self.footer.len() + group::head_bytes(entries);
        (footer.next_multiple_of(BLOCK_BYTES) + BLOCK_BYTES) as u64
    }
}

/// Appends groups of one stream to segments of its own.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    stream: Stream,
    current: Option<Current>,
}

/// Where a group was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenGroup {
    pub(crate) group_seq: u64,
    /// Offset of the group in the segment space.
    pub(crate) offset: u64,
}

impl SegmentWriter {
    pub(crate) fn new(stream: Stream) -> SegmentWriter {
        SegmentWriter { stream, current: None }
    }

    /// What is left of the current segment for a group with so many entries.
    pub(crate) fn bytes_left(&self, disk: &Disk, entries: usize) -> usize {
        let segment_bytes = disk.files.segment_bytes();
        let left = self.current.as_ref().map_or(0, |current| {
            segment_bytes.saturating_sub(current.position + current.end_bytes(entries))
        });
        left as usize / GROUP_ALIGN * GROUP_ALIGN
    }

    /// Writes a group whose blobs stand in `group` where `entries` say; fills in header and
    /// directory. `group.len()` is the group's length, a multiple of 4 KiB. On success the copies
    /// are complete (not yet synced). The caller is told of a full disk. Parks.
    pub(crate) fn append(
        &mut self,
        disk: &Disk,
        group: &mut AlignedBuf,
        entries: &[DirectoryEntry],
    ) -> Result<WrittenGroup, StoreError> {
        let max_page_lsn = entries.iter().map(|entry| entry.page_lsn).max().unwrap_or(Lsn::ZERO);
        base::invariant!(
            base::mutant!("write_page_before_log") || max_page_lsn <= disk.wal.durable(),
            "a page is written before its log"
        );
        loop {
            if self.make_room(disk, group.len(), entries.len())?
                && let Some(written) = self.write(disk, group, entries)?
            {
                return Ok(written);
            }
            // Invariant 3.
            if self.current.is_some() && disk.has_allocated_segment(self.stream) {
                self.close(disk)?;
            } else {
                probe!("pagestore_disk_full");
                add(&disk.counters.disk_full_waits, 1);
                return Err(StoreError::DiskFull);
            }
        }
    }

    /// Whether a group of `least` bytes would find room on a disk that is full.
    pub(crate) fn has_room(&self, disk: &Disk, entries: usize, least: usize) -> bool {
        self.has_room_here(disk, entries, least) || disk.has_allocated_segment(self.stream)
    }

    /// The same of the current segment.
    fn has_room_here(&self, disk: &Disk, entries: usize, least: usize) -> bool {
        self.current.as_ref().is_some_and(|current| {
            self.bytes_left(disk, entries) >= least
                && disk.table.lock().segments[current.number as usize].has_space()
        })
    }

    /// Takes the segment of a writer that has nothing to write for now, if a group of `least` bytes
    /// has room on a full disk there and not here.
    pub(crate) fn borrow(
        &mut self,
        other: &mut SegmentWriter,
        disk: &Disk,
        entries: usize,
        least: usize,
    ) {
        let lacks_room = !self.has_room_here(disk, entries, least);
        if lacks_room && other.has_room_here(disk, entries, least) {
            probe!("pagestore_segment_borrowed");
            std::mem::swap(&mut self.current, &mut other.current);
        }
    }

    /// Writes the group to the current segment, which has room for it; `None` on a full disk.
    fn write(
        &mut self,
        disk: &Disk,
        group: &mut AlignedBuf,
        entries: &[DirectoryEntry],
    ) -> Result<Option<WrittenGroup>, StoreError> {
        let Some(current) = &mut self.current else { return Ok(None) };
        let group_seq = disk.table.lock().begin_group();
        let header = GroupHeader {
            segment_seq: current.seq,
            group_seq,
            index: current.groups,
            entry_count: entries.len() as u32,
            total_bytes: group.len() as u32,
            max_page_lsn: entries.iter().map(|entry| entry.page_lsn).max().unwrap_or(Lsn::ZERO),
            epoch: disk.epoch,
        };
        group::encode_head(&header, entries, group);
        let offset = disk.start_of(current.number) + current.position;
        let outcome = disk.write_once(group, offset, false);
        if !matches!(outcome, Ok(true)) {
            disk.table.lock().withdraw_group(group_seq);
            return outcome.map(|_| None);
        }
        let head = group::head_bytes(entries.len());
        current.footer.extend_from_slice(&group[..head]);
        current.position += group.len() as u64;
        current.groups += 1;
        current.blob_bytes +=
            entries.iter().map(|entry| u64::from(entry.length_bytes)).sum::<u64>();
        disk.table.lock().end_group(current.number, group_seq, group.len() as u64);
        add(&disk.counters.groups, 1);
        Ok(Some(WrittenGroup { group_seq, offset }))
    }

    /// Makes sure that the current segment has room for the group and for a footer that lists it;
    /// `false` if the disk is full.
    fn make_room(
        &mut self,
        disk: &Disk,
        group_bytes: usize,
        entries: usize,
    ) -> Result<bool, StoreError> {
        let segment_bytes = disk.files.segment_bytes();
        let fits = |current: &Current| {
            current.position + group_bytes as u64 + current.end_bytes(entries) <= segment_bytes
        };
        if !self.current.as_ref().is_some_and(fits) {
            if let Some(current) = &self.current {
                disk.note_fill(self.stream, current.blob_bytes);
            }
            self.end(disk, true)?;
            if !self.open(disk)? {
                return Ok(false);
            }
        }
        let Some(current) = &mut self.current else { return Ok(false) };
        let needed = current.end_bytes(entries);
        if needed > current.footer_space {
            let wanted = (2 * needed).min(segment_bytes - current.position);
            let start = disk.start_of(current.number) + segment_bytes - wanted;
            if !disk.allocate(start, wanted)? {
                return Ok(false);
            }
            disk.table.lock().fill_hole(current.number, wanted - current.footer_space);
            current.footer_space = wanted;
        }
        Ok(true)
    }

    /// Opens another segment; its header is durable when this returns. `false` if the disk is
    /// full. Parks.
    fn open(&mut self, disk: &Disk) -> Result<bool, StoreError> {
        while disk.table.lock().is_list_full() {
            disk.sync_data()?;
        }
        if self.stream != Stream::Moved && !disk.may_open() {
            return Ok(false);
        }
        let reserve = disk.reserve_left_by(self.stream);
        let (number, seq, former, record) = {
            let _alone = disk.choosing.lock();
            let mut table = disk.table.lock();
            let (number, former) = table.choose(reserve, disk.wal.durable());
            (number, table.segments[number as usize].seq, former, table.sync_record())
        };
        let mut block = AlignedBuf::zeroed(BLOCK_BYTES);
        disk.header(number, seq, self.stream, false, record).encode(&mut block);
        let start = disk.start_of(number);
        let footer_space = first_footer_bytes(disk.files.segment_bytes());
        let footer_start = start + disk.files.segment_bytes() - footer_space;
        let opened = match disk.allocate(footer_start, footer_space) {
            Ok(true) => disk.write_once(&block, start, true),
            other => other,
        };
        if !matches!(opened, Ok(true)) {
            probe!("pagestore_segment_not_opened");
            disk.table.lock().unchoose(number, former);
            return opened;
        }
        if former.seq != 0 {
            probe!("pagestore_segment_reused");
            add(&disk.counters.segment_reuses, 1);
        }
        let position = BLOCK_BYTES as u64;
        disk.table.lock().fill_hole(number, position + footer_space);
        let footer = Vec::new();
        let (groups, blob_bytes) = (0, 0);
        self.current =
            Some(Current { number, seq, position, groups, blob_bytes, footer, footer_space });
        Ok(true)
    }

    /// Closes the current segment with its footer, though it may have room yet. Parks.
    pub(crate) fn close(&mut self, disk: &Disk) -> Result<(), StoreError> {
        self.end(disk, false)
    }

    /// Nothing was written for a while and nothing is to be: what the segment does not use goes
    /// back to the file system, and a segment in which much has died or waits for being compressed
    /// anew is closed, so that it may be collected. Parks.
    pub(crate) fn rest(&mut self, disk: &Disk) -> Result<(), StoreError> {
        let Some(current) = &self.current else { return Ok(()) };
        let segment_bytes = disk.files.segment_bytes();
        let (state, keeps) = {
            let table = disk.table.lock();
            (table.segments[current.number as usize], table.needs_reserve)
        };
        // Invariant 6.
        if keeps {
            return Ok(());
        }
        let (number, position) = (current.number, current.position);
        let end = segment_bytes - current.footer_space;
        if state.has_space() && end.saturating_sub(position) >= segment_bytes / REST_PARTS {
            disk.punch_rest(number, position..end)?;
        }
        let dead = position.saturating_sub(state.live_bytes);
        if dead.max(state.deferred_live()) >= segment_bytes / REST_PARTS {
            probe!("pagestore_closed_at_rest");
            self.close(disk)?;
        }
        Ok(())
    }

    fn end(&mut self, disk: &Disk, is_filled: bool) -> Result<(), StoreError> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let (bytes, offset) = encode_footer(
            disk.uuid,
            current.number,
            current.seq,
            disk.files.segment_bytes(),
            current.groups,
            &current.footer,
        );
        disk.write_or_wait(&bytes, disk.start_of(current.number) + offset, false)?;
        disk.table.lock().close(current.number, is_filled);
        Ok(())
    }
}
