//! A segment's first and last block.
//!
//! ```text
//! 4 KiB header block | groups ... | (unused) | footer | 4 KiB trailer block
//! ```
//!
//! Header and trailer fit into one sector of 512 bytes, so a crash leaves the old or the new one,
//! never a mixture; each is written twice in its block (at 0 and 2048), so that one rotten sector
//! loses nothing. The header:
//!
//! ```text
//! offset size field
//!      0    8 magic "GANNSEG1", or "GANNFREE" once the segment's space was given back
//!      8    4 CRC-32C of bytes 12..512
//!     12    2 format version (1)
//!     14    1 stream (0 pages, 1 moved copies, 2 deltas)
//!     15    1 reserved (0)
//!     16   16 UUID of the database
//!     32    4 number of the segment
//!     36    4 recovery epoch
//!     40    8 sequence of the segment: one counter, raised at every opening
//!     48    8 segment size in bytes
//!     56    8 reserved (0)
//!     64      sync record
//! ```
//!
//! The sync record (also in the superblock) says what is known to be durable:
//!
//! ```text
//!      0    8 version: raised for every record that is made, so the highest one knows most
//!      8    8 every group up to this sequence is durable
//!     16    8 segments below this sequence are closed, durable footer included, unless listed
//!     24    4 listed segments
//!     28    4 reserved (0)
//!     32   16 * n: number u32, complete durable groups u32, sequence u64
//! ```
//!
//! The trailer: magic "GANNTRL1", CRC, version, 2 reserved, UUID, number, 4 reserved, sequence as
//! above, then
//!
//! ```text
//!     48    4 groups in the segment
//!     52    4 offset of the footer in the segment
//!     56    4 length of the footer in bytes
//!     60    4 CRC-32C of the footer
//! ```
//!
//! The footer repeats header and directory of every group, one behind the other, without blobs.

use crate::bytes::{put, u16_at, u32_at, u64_at, uuid_at};
use base::checksum::crc32c;

/// Bytes of the header block and of the trailer block.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// Bytes of one copy of header or trailer.
pub(crate) const COPY_BYTES: usize = 512;
/// Where the copies stand in their block.
pub(crate) const COPY_OFFSETS: [usize; 2] = [0, 2048];
/// Open segments that a sync record can list.
pub(crate) const OPEN_SEGMENTS_MAX: usize = 16;
/// Bytes of an encoded sync record.
pub(crate) const SYNC_RECORD_BYTES: usize = LIST_OFFSET + OPEN_SEGMENTS_MAX * 16;
/// Where a sync record lists segments.
const LIST_OFFSET: usize = 32;

const MAGIC_SEGMENT: u64 = u64::from_le_bytes(*b"GANNSEG1");
const MAGIC_FREE: u64 = u64::from_le_bytes(*b"GANNFREE");
const MAGIC_TRAILER: u64 = u64::from_le_bytes(*b"GANNTRL1");
const FORMAT_VERSION: u16 = 1;
const SYNC_RECORD_OFFSET: usize = 64;

/// A segment that was being written when a sync record was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenSegment {
    pub(crate) number: u32,
    pub(crate) groups: u32,
    pub(crate) seq: u64,
}

/// What is known to be durable; see the head of this file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SyncRecord {
    pub(crate) version: u64,
    pub(crate) synced_group_seq: u64,
    pub(crate) next_segment_seq: u64,
    pub(crate) open: Vec<OpenSegment>,
}

impl SyncRecord {
    pub(crate) fn encode(&self, out: &mut [u8]) {
        base::invariant!(self.open.len() <= OPEN_SEGMENTS_MAX, "too many open segments");
        out[..SYNC_RECORD_BYTES].fill(0);
        put(out, 0, &self.version.to_le_bytes());
        put(out, 8, &self.synced_group_seq.to_le_bytes());
        put(out, 16, &self.next_segment_seq.to_le_bytes());
        put(out, 24, &(self.open.len() as u32).to_le_bytes());
        for (open, entry) in self.open.iter().zip(out[LIST_OFFSET..].chunks_exact_mut(16)) {
            put(entry, 0, &open.number.to_le_bytes());
            put(entry, 4, &open.groups.to_le_bytes());
            put(entry, 8, &open.seq.to_le_bytes());
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<SyncRecord> {
        let count = u32_at(bytes, 24) as usize;
        if count > OPEN_SEGMENTS_MAX || bytes.len() < SYNC_RECORD_BYTES {
            return None;
        }
        let open = bytes[LIST_OFFSET..].chunks_exact(16).take(count).map(|entry| OpenSegment {
            number: u32_at(entry, 0),
            groups: u32_at(entry, 4),
            seq: u64_at(entry, 8),
        });
        Some(SyncRecord {
            version: u64_at(bytes, 0),
            synced_group_seq: u64_at(bytes, 8),
            next_segment_seq: u64_at(bytes, 16),
            open: open.collect(),
        })
    }

    /// The record that knows more.
    pub(crate) fn newer(self, other: SyncRecord) -> SyncRecord {
        if other.version > self.version { other } else { self }
    }
}

/// What a segment's header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// The space was given back: what else stands in the segment means nothing.
    pub(crate) is_free: bool,
    pub(crate) stream: u8,
    pub(crate) uuid: [u8; 16],
    pub(crate) number: u32,
    pub(crate) epoch: u32,
    pub(crate) seq: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) sync: SyncRecord,
}

impl SegmentHeader {
    /// Fills a header block.
    pub(crate) fn encode(&self, block: &mut [u8]) {
        let mut copy = [0; COPY_BYTES];
        let magic = if self.is_free { MAGIC_FREE } else { MAGIC_SEGMENT };
        put(&mut copy, 0, &magic.to_le_bytes());
        put(&mut copy, 12, &FORMAT_VERSION.to_le_bytes());
        put(&mut copy, 14, &[self.stream]);
        put(&mut copy, 16, &self.uuid);
        put(&mut copy, 32, &self.number.to_le_bytes());
        put(&mut copy, 36, &self.epoch.to_le_bytes());
        put(&mut copy, 40, &self.seq.to_le_bytes());
        put(&mut copy, 48, &self.segment_bytes.to_le_bytes());
        self.sync.encode(&mut copy[SYNC_RECORD_OFFSET..]);
        seal(&mut copy, block);
    }

    fn decode(copy: &[u8]) -> Option<SegmentHeader> {
        let magic = u64_at(copy, 0);
        if !is_sealed(copy) || (magic != MAGIC_SEGMENT && magic != MAGIC_FREE) {
            return None;
        }
        Some(SegmentHeader {
            is_free: magic == MAGIC_FREE,
            stream: copy[14],
            uuid: uuid_at(copy, 16),
            number: u32_at(copy, 32),
            epoch: u32_at(copy, 36),
            seq: u64_at(copy, 40),
            segment_bytes: u64_at(copy, 48),
            sync: SyncRecord::decode(&copy[SYNC_RECORD_OFFSET..])?,
        })
    }
}

/// What a segment's trailer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentTrailer {
    pub(crate) uuid: [u8; 16],
    pub(crate) number: u32,
    pub(crate) seq: u64,
    pub(crate) group_count: u32,
    pub(crate) footer_offset: u32,
    pub(crate) footer_bytes: u32,
    pub(crate) footer_crc: u32,
}

impl SegmentTrailer {
    /// Fills a trailer block.
    pub(crate) fn encode(&self, block: &mut [u8]) {
        let mut copy = [0; COPY_BYTES];
        put(&mut copy, 0, &MAGIC_TRAILER.to_le_bytes());
        put(&mut copy, 12, &FORMAT_VERSION.to_le_bytes());
        put(&mut copy, 16, &self.uuid);
        put(&mut copy, 32, &self.number.to_le_bytes());
        put(&mut copy, 40, &self.seq.to_le_bytes());
        put(&mut copy, 48, &self.group_count.to_le_bytes());
        put(&mut copy, 52, &self.footer_offset.to_le_bytes());
        put(&mut copy, 56, &self.footer_bytes.to_le_bytes());
        put(&mut copy, 60, &self.footer_crc.to_le_bytes());
        seal(&mut copy, block);
    }

    fn decode(copy: &[u8]) -> Option<SegmentTrailer> {
        if !is_sealed(copy) || u64_at(copy, 0) != MAGIC_TRAILER {
            return None;
        }
        Some(SegmentTrailer {
            uuid: uuid_at(copy, 16),
            number: u32_at(copy, 32),
            seq: u64_at(copy, 40),
            group_count: u32_at(copy, 48),
            footer_offset: u32_at(copy, 52),
            footer_bytes: u32_at(copy, 56),
            footer_crc: u32_at(copy, 60),
        })
    }
}

fn seal(copy: &mut [u8; COPY_BYTES], block: &mut [u8]) {
    let crc = crc32c(&copy[12..]);
    put(copy, 8, &crc.to_le_bytes());
    block[..BLOCK_BYTES].fill(0);
    for offset in COPY_OFFSETS {
        put(block, offset, copy);
    }
}

fn is_sealed(copy: &[u8]) -> bool {
    copy.len() == COPY_BYTES
        && u16_at(copy, 12) == FORMAT_VERSION
        && crc32c(&copy[12..]) == u32_at(copy, 8)
}

/// What was found in a block with two copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found<T> {
    /// Only zeroes: never written, or given back.
    Nothing,
    /// Neither copy is readable: rot.
    Damaged,
    /// The newest readable copy, and the number of copies that are damaged. (A copy of zeroes is
    /// not: a crash came between the first writes of both.)
    Good(T, usize),
}

fn copies<T>(block: &[u8], decode: impl Fn(&[u8]) -> Option<T>) -> (Vec<T>, usize, bool) {
    let mut good = Vec::new();
    let (mut damaged, mut all_zero) = (0, true);
    for offset in COPY_OFFSETS {
        let copy = block.get(offset..offset + COPY_BYTES).unwrap_or(&[]);
        all_zero &= copy.iter().all(|&byte| byte == 0);
        match decode(copy) {
            Some(value) => good.push(value),
            None if copy.iter().all(|&byte| byte == 0) => {}
            None => damaged += 1,
        }
    }
    (good, damaged, all_zero)
}

/// Reads a header block. Two differing copies are left by a crash while it was rewritten.
pub(crate) fn read_header(block: &[u8]) -> Found<SegmentHeader> {
    let (good, damaged, all_zero) = copies(block, SegmentHeader::decode);
    match good.into_iter().max_by_key(|header| (header.seq, header.is_free)) {
        Some(header) => Found::Good(header, damaged),
        None if all_zero => Found::Nothing,
        None => Found::Damaged,
    }
}

/// Reads a trailer block.
pub(crate) fn read_trailer(block: &[u8]) -> Found<SegmentTrailer> {
    let (good, damaged, all_zero) = copies(block, SegmentTrailer::decode);
    match good.into_iter().max_by_key(|trailer| trailer.seq) {
        Some(trailer) => Found::Good(trailer, damaged),
        None if all_zero => Found::Nothing,
        None => Found::Damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        let open = |number| OpenSegment { number, groups: number + 4, seq: 90 + u64::from(number) };
        SegmentHeader {
            is_free: false,
            stream: 1,
            uuid: *b"0123456789abcdef",
            number: 12,
            epoch: 3,
            seq: 77,
            segment_bytes: 64 << 20,
            sync: SyncRecord {
                version: 5,
                synced_group_seq: 1000,
                next_segment_seq: 78,
                open: (0..OPEN_SEGMENTS_MAX as u32).map(open).collect(),
            },
        }
    }

    #[test]
    fn header_round_trip_and_rot() {
        let mut block = vec![0; BLOCK_BYTES];
        assert_eq!(read_header(&block), Found::Nothing);
        header().encode(&mut block);
        assert_eq!(read_header(&block), Found::Good(header(), 0));
        for place in 0..COPY_BYTES {
            block[place] ^= 0x10;
            assert_eq!(read_header(&block), Found::Good(header(), 1), "byte {place}");
            block[2048 + place] ^= 0x10;
            assert_eq!(read_header(&block), Found::Damaged, "byte {place} twice");
            block[2048 + place] ^= 0x10;
            block[place] ^= 0x10;
        }
    }

    #[test]
    fn a_crash_between_the_copies_leaves_the_newer() {
        let mut old = vec![0; BLOCK_BYTES];
        header().encode(&mut old);
        for newer in
            [SegmentHeader { seq: 78, ..header() }, SegmentHeader { is_free: true, ..header() }]
        {
            let mut new = vec![0; BLOCK_BYTES];
            newer.encode(&mut new);
            new[2048..].copy_from_slice(&old[2048..]);
            assert_eq!(read_header(&new), Found::Good(newer, 0));
        }
    }

    #[test]
    fn trailer_round_trip_and_rot() {
        let trailer = SegmentTrailer {
            uuid: *b"0123456789abcdef",
            number: 12,
            seq: 77,
            group_count: 40,
            footer_offset: 8192,
            footer_bytes: 4000,
            footer_crc: 0x1234_5678,
        };
        let mut block = vec![0; BLOCK_BYTES];
        assert_eq!(read_trailer(&block), Found::Nothing);
        trailer.encode(&mut block);
        assert_eq!(read_trailer(&block), Found::Good(trailer, 0));
        block[33] ^= 1;
        assert_eq!(read_trailer(&block), Found::Good(trailer, 1));
        block[2048 + 50] ^= 1;
        assert_eq!(read_trailer(&block), Found::Damaged);
        assert_eq!(read_trailer(&[1, 2, 3]), Found::Nothing, "cut off");
    }

    #[test]
    fn the_record_that_knows_more_wins() {
        // The newer one may list less: a footer became durable since.
        let open = vec![OpenSegment { number: 0, groups: 3, seq: 8 }];
        let old = SyncRecord { version: 5, synced_group_seq: 5, next_segment_seq: 9, open };
        let new = SyncRecord { version: 6, open: Vec::new(), ..old.clone() };
        assert_eq!(old.clone().newer(new.clone()), new);
        assert_eq!(new.clone().newer(old), new);
    }
}
