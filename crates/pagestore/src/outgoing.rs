//! A group while it is filled: copies are put one behind the other, then written as one.
//!
//! 1. The directory lies before the copies, and how long it gets is known only at the end: room is
//!    left for as many entries as there may be, and the copies move down to it before the group is
//!    written.
//! 2. A group is not longer than what is left of its writer's segment, as long as that is worth a
//!    group: no segment ends with much space that nobody uses.

use crate::disk::{Disk, SegmentWriter, Stream, WrittenGroup};
use crate::error::StoreError;
use crate::group::{self, DirectoryEntry, GROUP_ALIGN};
use crate::location::Location;
use base::Lsn;
use runtime::file::AlignedBuf;

/// A group that is filled, and the writer that it goes to; of each copy its owner knows a `T`.
pub(crate) struct Outgoing<T> {
    writer: SegmentWriter,
    bytes: AlignedBuf,
    copies: Vec<(DirectoryEntry, T)>,
    copies_max: usize,
    /// No group is longer.
    bytes_max: usize,
    /// End of what stands in `bytes`.
    used: usize,
}

impl<T: Copy> Outgoing<T> {
    pub(crate) fn new(stream: Stream) -> Outgoing<T> {
        Outgoing {
            writer: SegmentWriter::new(stream),
            bytes: AlignedBuf::zeroed(0),
            copies: Vec::new(),
            copies_max: 0,
            bytes_max: 0,
            used: 0,
        }
    }

    /// Empties the group. It has room for so many copies and bytes, or for what the segment has
    /// room for, if that is at least one copy of `least` bytes.
    pub(crate) fn begin(&mut self, disk: &Disk, copies_max: usize, bytes_max: usize, least: usize) {
        self.copies.clear();
        (self.copies_max, self.bytes_max) = (copies_max, bytes_max);
        self.used = group::blobs_offset(copies_max);
        let left = self.writer.bytes_left(disk, copies_max);
        let limit = if left < self.used + least { bytes_max } else { left.min(bytes_max) };
        self.bytes.resize(limit);
    }

    /// What has no room at the end of the segment goes to the begin of the next; `false` if the
    /// group goes there already, or if something stands in it.
    pub(crate) fn widen(&mut self) -> bool {
        let is_wider = self.copies.is_empty() && self.bytes.len() < self.bytes_max;
        if is_wider {
            self.bytes.resize(self.bytes_max);
        }
        is_wider
    }

    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.copies.len() < self.copies_max && self.used + bytes <= self.bytes.len()
    }

    /// Where the next copy goes.
    pub(crate) fn rest(&mut self) -> &mut [u8] {
        &mut self.bytes[self.used..]
    }

    /// The copy that stands at the start of [`Outgoing::rest`] belongs to the group.
    pub(crate) fn push(&mut self, entry: DirectoryEntry, of_owner: T) {
        let entry = DirectoryEntry { offset_bytes: self.used as u32, ..entry };
        self.used += entry.length_bytes as usize;
        self.copies.push((entry, of_owner));
    }

    /// Puts a copy into the group.
    pub(crate) fn take(&mut self, bytes: &[u8], entry: &DirectoryEntry, of_owner: T) {
        self.rest()[..bytes.len()].copy_from_slice(bytes);
        self.push(*entry, of_owner);
    }

    /// Takes all that stands in another group, if it has room for that.
    pub(crate) fn take_all(&mut self, other: &mut Outgoing<T>) -> bool {
        let bytes = other.blob_bytes();
        let count = self.copies.len() + other.copies.len();
        if count > self.copies_max || self.used + bytes > self.bytes.len() {
            return false;
        }
        for (entry, of_owner) in std::mem::take(&mut other.copies) {
            self.take(other.blob(&entry), &entry, of_owner);
        }
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    pub(crate) fn copies(&self) -> &[(DirectoryEntry, T)] {
        &self.copies
    }

    /// Bytes of the copies.
    pub(crate) fn blob_bytes(&self) -> usize {
        self.copies.iter().map(|(entry, _)| entry.length_bytes as usize).sum()
    }

    /// How much of the longest group this one takes, in thousandths.
    pub(crate) fn filled_permille(&self) -> usize {
        let used = if self.is_empty() { 0 } else { self.used };
        used * 1000 / self.bytes_max.max(1)
    }

    /// The bytes of a copy that stands in the group.
    pub(crate) fn blob(&self, entry: &DirectoryEntry) -> &[u8] {
        let start = entry.offset_bytes as usize;
        &self.bytes[start..start + entry.length_bytes as usize]
    }

    /// The newest page LSN of the copies: the log is to be durable up to there.
    pub(crate) fn newest(&self) -> Lsn {
        self.copies.iter().map(|(entry, _)| entry.page_lsn).max().unwrap_or(Lsn::ZERO)
    }

    /// Writes the group ([`SegmentWriter::append`]); returns where, and how many bytes it took.
    /// Parks.
    pub(crate) fn write(&mut self, disk: &Disk) -> Result<(WrittenGroup, usize), StoreError> {
        self.close_gap();
        let end = self.used.next_multiple_of(GROUP_ALIGN);
        self.bytes[self.used..end].fill(0);
        self.bytes.resize(end);
        let entries: Vec<DirectoryEntry> = self.copies.iter().map(|(entry, _)| *entry).collect();
        let written = self.writer.append(disk, &mut self.bytes, &entries)?;
        Ok((written, end))
    }

    /// Invariant 1.
    fn close_gap(&mut self) {
        let (from, to) =
            (group::blobs_offset(self.copies_max), group::blobs_offset(self.copies.len()));
        self.bytes.copy_within(from..self.used, to);
        let gap = from - to;
        self.used -= gap;
        self.copies_max = self.copies.len();
        for (entry, _) in &mut self.copies {
            entry.offset_bytes -= gap as u32;
        }
    }

    pub(crate) fn writer(&mut self) -> &mut SegmentWriter {
        &mut self.writer
    }
}

impl WrittenGroup {
    /// Where a copy of the group lies.
    pub(crate) fn location_of(&self, entry: &DirectoryEntry) -> Location {
        let offset = self.offset + u64::from(entry.offset_bytes);
        Location::new(offset, entry.length_bytes, entry.class, entry.crc)
    }
}
