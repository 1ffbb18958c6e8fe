//! Reading segments back: headers, footers, walks from group to group. Used by recovery, by the
//! collector and by the offline check.

use crate::blob;
use crate::bytes::u32_at;
use crate::error::StoreError;
use crate::files::DataFiles;
use crate::group::{self, DirectoryEntry, GroupHeader};
use crate::location::Location;
use crate::segment::{
    BLOCK_BYTES, Found, SegmentHeader, SegmentTrailer, read_header, read_trailer,
};
use base::checksum::crc32c;
use runtime::file::AlignedBuf;

/// A group as its directory describes it.
#[derive(Clone, Debug)]
pub(crate) struct ScannedGroup {
    /// Offset in the segment space.
    pub(crate) offset: u64,
    pub(crate) header: GroupHeader,
    pub(crate) entries: Vec<DirectoryEntry>,
    /// Header and directory as they stand on disk: what a footer repeats.
    pub(crate) head: Vec<u8>,
}

impl ScannedGroup {
    /// Where one of its blobs is.
    pub(crate) fn location_of(&self, entry: &DirectoryEntry) -> Location {
        let offset = self.offset + u64::from(entry.offset_bytes);
        Location::new(offset, entry.length_bytes, entry.class, entry.crc)
    }
}

/// Why no group was read at a place.
#[derive(Debug)]
pub(crate) enum NoGroup {
    /// What stands there is no group, or not an intact one.
    Ends(&'static str),
    /// Reading failed.
    Store(StoreError),
}

impl From<StoreError> for NoGroup {
    fn from(error: StoreError) -> NoGroup {
        NoGroup::Store(error)
    }
}

/// Reads segments of one store.
pub(crate) struct Scanner<'a> {
    files: &'a DataFiles,
    buffer: AlignedBuf,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(files: &'a DataFiles) -> Scanner<'a> {
        Scanner { files, buffer: AlignedBuf::zeroed(BLOCK_BYTES) }
    }

    fn start_of(&self, number: u32) -> u64 {
        u64::from(number) * self.files.segment_bytes()
    }

    /// The header of a segment. Parks.
    pub(crate) fn header(&mut self, number: u32) -> Result<Found<SegmentHeader>, StoreError> {
        self.buffer.resize(BLOCK_BYTES);
        let start = self.start_of(number);
        self.files.read(&mut self.buffer, start)?;
        Ok(read_header(&self.buffer))
    }

    /// The trailer of a segment. Parks.
    pub(crate) fn trailer(&mut self, number: u32) -> Result<Found<SegmentTrailer>, StoreError> {
        self.buffer.resize(BLOCK_BYTES);
        let end = self.start_of(number) + self.files.segment_bytes();
        self.files.read(&mut self.buffer, end - BLOCK_BYTES as u64)?;
        Ok(read_trailer(&self.buffer))
    }

    /// The groups that a segment's footer lists. `Err(Ends)` if the footer is not intact. Parks.
    pub(crate) fn footer(
        &mut self,
        number: u32,
        trailer: &SegmentTrailer,
    ) -> Result<Vec<ScannedGroup>, NoGroup> {
        let length = trailer.footer_bytes as usize;
        let offset = u64::from(trailer.footer_offset);
        let limit = self.files.segment_bytes() - BLOCK_BYTES as u64;
        let fits = offset.is_multiple_of(BLOCK_BYTES as u64)
            && offset >= BLOCK_BYTES as u64
            && offset + length as u64 <= limit;
        if !fits {
            return Err(NoGroup::Ends("the trailer names a footer outside the segment"));
        }
        self.buffer.resize(length.next_multiple_of(BLOCK_BYTES).max(BLOCK_BYTES));
        let start = self.start_of(number);
        self.files.read(&mut self.buffer, start + offset)?;
        let bytes = &self.buffer[..length];
        if crc32c(bytes) != trailer.footer_crc {
            return Err(NoGroup::Ends("footer checksum does not agree"));
        }
        let mut groups = Vec::with_capacity(trailer.group_count.min(4096) as usize);
        let (mut place, mut position) = (0, BLOCK_BYTES as u64);
        for index in 0..trailer.group_count {
            let rest = bytes.get(place..).unwrap_or(&[]);
            let (header, entries) =
                group::decode_head(rest, trailer.seq, index).map_err(NoGroup::Ends)?;
            let head_bytes = group::head_bytes(entries.len());
            let head = rest[..head_bytes].to_vec();
            place += head_bytes;
            let offset = self.start_of(number) + position;
            position += u64::from(header.total_bytes);
            if position > limit {
                return Err(NoGroup::Ends("the footer lists a group outside the segment"));
            }
            groups.push(ScannedGroup { offset, header, entries, head });
        }
        if place == length { Ok(groups) } else { Err(NoGroup::Ends("footer of another length")) }
    }

    /// The group number `index` of a segment, at `position` within it. Parks.
    pub(crate) fn group(
        &mut self,
        number: u32,
        seq: u64,
        position: u64,
        index: u32,
    ) -> Result<ScannedGroup, NoGroup> {
        let room = self.files.segment_bytes().saturating_sub(position);
        if room < BLOCK_BYTES as u64 {
            return Err(NoGroup::Ends("end of the segment"));
        }
        let offset = self.start_of(number) + position;
        self.buffer.resize(BLOCK_BYTES);
        self.files.read(&mut self.buffer, offset)?;
        let peeked = group::peek(&self.buffer, seq, index);
        let header = peeked.ok_or(NoGroup::Ends("no group header"))?;
        if u64::from(header.total_bytes) > room {
            return Err(NoGroup::Ends("a group that leaves its segment"));
        }
        let head_bytes = group::head_bytes(header.entry_count as usize);
        if head_bytes > BLOCK_BYTES {
            self.buffer.resize(head_bytes.next_multiple_of(BLOCK_BYTES));
            self.files.read(&mut self.buffer, offset)?;
        }
        let (header, entries) =
            group::decode_head(&self.buffer, seq, index).map_err(NoGroup::Ends)?;
        let head = self.buffer[..head_bytes].to_vec();
        Ok(ScannedGroup { offset, header, entries, head })
    }

    /// The bytes of a whole group. Parks.
    pub(crate) fn read_group(&mut self, group: &ScannedGroup) -> Result<&[u8], StoreError> {
        self.buffer.resize(group.header.total_bytes as usize);
        self.files.read(&mut self.buffer, group.offset)?;
        Ok(&self.buffer)
    }

    /// Verifies every blob of a group; `Ends` names the first thing that is wrong. Parks.
    pub(crate) fn verify_blobs(&mut self, group: &ScannedGroup) -> Result<(), NoGroup> {
        let bytes = self.read_group(group)?;
        group.entries.iter().try_for_each(|entry| verify_entry(bytes, entry)).map_err(NoGroup::Ends)
    }
}

/// Verifies one blob within the bytes of its group.
pub(crate) fn verify_entry(group: &[u8], entry: &DirectoryEntry) -> Result<(), &'static str> {
    let start = entry.offset_bytes as usize;
    let bytes = group.get(start..start + entry.length_bytes as usize);
    let bytes = bytes.ok_or("a blob outside its group")?;
    if u32_at(bytes, 0) != entry.crc {
        return Err("a blob and its directory entry do not agree");
    }
    let blob = blob::verify(bytes)?;
    if entry.agrees(&blob) { Ok(()) } else { Err("a blob and its directory entry do not agree") }
}
