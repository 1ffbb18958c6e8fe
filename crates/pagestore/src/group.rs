//! A group: blobs written together, behind a directory with a checksum.
//!
//! A group starts at a multiple of 4 KiB within its segment:
//!
//! ```text
//! offset size field
//!      0    4 magic "GGRP"
//!      4    4 CRC-32C of bytes 8 up to the end of the directory
//!      8    8 sequence of the segment
//!     16    8 sequence of the group, one counter for the whole store
//!     24    4 index of the group within its segment, from 0
//!     28    4 directory entries
//!     32    4 length of the group in bytes, a multiple of 4096
//!     36    2 bytes of a directory entry (32)
//!     38    2 format version (1)
//!     40    8 highest page_lsn in the group
//!     48    4 recovery epoch of the run that wrote it
//!     52   12 reserved (0)
//!     64      directory, then blobs at multiples of 64, then zeroes
//! ```
//!
//! A directory entry:
//!
//! ```text
//!      0    6 pid
//!      6    1 codec; bit 7 set: a delta
//!      7    1 class
//!      8    8 page_lsn
//!     16    4 the blob's CRC-32C
//!     20    2 offset of the blob in the group, in units of 64 bytes
//!     22    2 length of the blob, in units of 64 bytes
//!     24    4 tree
//!     28    1 page type
//!     29    1 format version of the page's body
//!     30    1 flags; bit 0: deferred, to be compressed anew (catch_up.rs)
//!     31    1 reserved (0)
//! ```
//!
//! A delta has there, instead:
//!
//! ```text
//!     24    8 the full copy that it belongs to: page_lsn of that, the upper half XOR its CRC-32C
//! ```

use crate::blob::{BlobHeader, DELTA_FLAG};
use crate::bytes::{put, u16_at, u32_at, u48_at, u64_at};
use crate::delta::Base;
use crate::header::{self, class_is_valid};
use crate::location::{BLOB_UNIT_BYTES, BLOB_UNITS_MAX};
use base::checksum::crc32c;
use base::{Lsn, PageId, TreeId};

/// First bytes of a group.
const MAGIC: u32 = u32::from_le_bytes(*b"GGRP");
/// Bytes before the directory.
pub(crate) const GROUP_HEADER_BYTES: usize = 64;
/// Bytes of a directory entry.
pub(crate) const ENTRY_BYTES: usize = 32;
/// Groups start and end at multiples of this many bytes.
pub(crate) const GROUP_ALIGN: usize = 4096;
/// Longest group: offsets of blobs have 16 bits.
pub(crate) const GROUP_BYTES_MAX: usize = (1 << 16) * BLOB_UNIT_BYTES as usize;
const FORMAT_VERSION: u16 = 1;
/// Of a full copy, in its directory entry.
const DEFERRED_FLAG: u8 = 1;

/// The fields of a group's header that are not derived from its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) segment_seq: u64,
    pub(crate) group_seq: u64,
    pub(crate) index: u32,
    pub(crate) entry_count: u32,
    pub(crate) total_bytes: u32,
    pub(crate) max_page_lsn: Lsn,
    pub(crate) epoch: u32,
}

/// One blob of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryEntry {
    pub(crate) pid: PageId,
    pub(crate) codec: u8,
    pub(crate) class: u8,
    pub(crate) page_lsn: Lsn,
    pub(crate) crc: u32,
    /// Offset within the group in bytes, a multiple of 64.
    pub(crate) offset_bytes: u32,
    /// Length in bytes, a multiple of 64.
    pub(crate) length_bytes: u32,
    pub(crate) content: Content,
}

/// What a blob holds, as the directory tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// All of a page.
    Full { tree: TreeId, page_type: u8, page_format: u8, is_deferred: bool },
    /// What changed of it since the full copy that this word names ([`crate::delta::Base`]).
    Delta { base: u64 },
}

impl DirectoryEntry {
    /// The entry of a blob of this page at `offset_bytes` within its group. `is_deferred`: of a
    /// full copy, that it is to be compressed anew.
    pub(crate) fn new(
        blob: &BlobHeader,
        offset_bytes: usize,
        page: &[u8],
        is_deferred: bool,
    ) -> Self {
        DirectoryEntry {
            pid: blob.pid,
            codec: blob.codec_byte(),
            class: blob.class,
            page_lsn: blob.page_lsn,
            crc: blob.crc,
            offset_bytes: offset_bytes as u32,
            length_bytes: crate::blob::blob_bytes(blob.payload_bytes as usize) as u32,
            content: match blob.base {
                Some(base) => Content::Delta { base: base.word() },
                None => Content::Full {
                    tree: blob.tree,
                    page_type: header::page_type(page),
                    page_format: header::format_version(page),
                    is_deferred,
                },
            },
        }
    }

    /// The word that names the full copy to which this delta belongs; `None` for a full copy.
    pub(crate) fn base(&self) -> Option<u64> {
        match self.content {
            Content::Full { .. } => None,
            Content::Delta { base } => Some(base),
        }
    }

    /// Whether it is a full copy that is to be compressed anew.
    pub(crate) fn is_deferred(&self) -> bool {
        matches!(self.content, Content::Full { is_deferred: true, .. })
    }

    /// Whether only what changed of the page is there.
    pub(crate) fn is_delta(&self) -> bool {
        self.base().is_some()
    }

    /// What a delta calls this full copy.
    pub(crate) fn as_base(&self) -> Base {
        Base { lsn: self.page_lsn, crc: self.crc }
    }

    /// Whether the blob that stands there is the one meant.
    pub(crate) fn agrees(&self, blob: &BlobHeader) -> bool {
        self.pid == blob.pid
            && self.page_lsn == blob.page_lsn
            && self.crc == blob.crc
            && self.class == blob.class
            && self.base() == blob.base.map(Base::word)
    }

    fn encode(&self, out: &mut [u8]) {
        out.fill(0);
        put(out, 0, &self.pid.get().to_le_bytes()[..6]);
        put(out, 6, &[self.codec, self.class]);
        put(out, 8, &self.page_lsn.get().to_le_bytes());
        put(out, 16, &self.crc.to_le_bytes());
        let units = |bytes: u32| (u64::from(bytes) / BLOB_UNIT_BYTES) as u16;
        put(out, 20, &units(self.offset_bytes).to_le_bytes());
        put(out, 22, &units(self.length_bytes).to_le_bytes());
        match self.content {
            Content::Full { tree, page_type, page_format, is_deferred } => {
                put(out, 24, &tree.get().to_le_bytes());
                put(out, 28, &[page_type, page_format, u8::from(is_deferred) * DEFERRED_FLAG]);
            }
            Content::Delta { base } => put(out, 24, &base.to_le_bytes()),
        }
    }

    fn decode(bytes: &[u8], total_bytes: u32, blobs_start: u64) -> Result<Self, &'static str> {
        let bytes_of = |units: u16| u32::from(units) * BLOB_UNIT_BYTES as u32;
        let entry = DirectoryEntry {
            pid: PageId::new(u48_at(bytes, 0)),
            codec: bytes[6],
            class: bytes[7],
            page_lsn: Lsn::new(u64_at(bytes, 8)),
            crc: u32_at(bytes, 16),
            offset_bytes: bytes_of(u16_at(bytes, 20)),
            length_bytes: bytes_of(u16_at(bytes, 22)),
            content: match bytes[6] & DELTA_FLAG {
                0 => Content::Full {
                    tree: TreeId::new(u32_at(bytes, 24)),
                    page_type: bytes[28],
                    page_format: bytes[29],
                    is_deferred: bytes[30] & DEFERRED_FLAG != 0,
                },
                _ => Content::Delta { base: u64_at(bytes, 24) },
            },
        };
        let end = u64::from(entry.offset_bytes) + u64::from(entry.length_bytes);
        let units = u32::from(u16_at(bytes, 22));
        if units == 0
            || units > BLOB_UNITS_MAX
            || u64::from(entry.offset_bytes) < blobs_start
            || end > u64::from(total_bytes)
            || !class_is_valid(entry.class)
        {
            return Err("directory entry outside its group");
        }
        Ok(entry)
    }
}

/// Bytes of header and directory.
pub(crate) fn head_bytes(entries: usize) -> usize {
    GROUP_HEADER_BYTES + entries * ENTRY_BYTES
}

/// Where blobs may start behind a directory with room for `entries`.
pub(crate) fn blobs_offset(entries: usize) -> usize {
    head_bytes(entries).next_multiple_of(BLOB_UNIT_BYTES as usize)
}

/// Writes header and directory to the start of the group.
pub(crate) fn encode_head(header: &GroupHeader, entries: &[DirectoryEntry], out: &mut [u8]) {
    debug_assert_eq!(header.entry_count as usize, entries.len());
    let end = head_bytes(entries.len());
    out[..GROUP_HEADER_BYTES].fill(0);
    put(out, 0, &MAGIC.to_le_bytes());
    put(out, 8, &header.segment_seq.to_le_bytes());
    put(out, 16, &header.group_seq.to_le_bytes());
    put(out, 24, &header.index.to_le_bytes());
    put(out, 28, &header.entry_count.to_le_bytes());
    put(out, 32, &header.total_bytes.to_le_bytes());
    put(out, 36, &(ENTRY_BYTES as u16).to_le_bytes());
    put(out, 38, &FORMAT_VERSION.to_le_bytes());
    put(out, 40, &header.max_page_lsn.get().to_le_bytes());
    put(out, 48, &header.epoch.to_le_bytes());
    for (number, entry) in entries.iter().enumerate() {
        let start = GROUP_HEADER_BYTES + number * ENTRY_BYTES;
        entry.encode(&mut out[start..start + ENTRY_BYTES]);
    }
    let crc = crc32c(&out[8..end]);
    put(out, 4, &crc.to_le_bytes());
}

/// Reads a group's header without its checksum: enough to know how long header and directory
/// are. `None` if there is no group of this segment here.
pub(crate) fn peek(bytes: &[u8], segment_seq: u64, index: u32) -> Option<GroupHeader> {
    if bytes.len() < GROUP_HEADER_BYTES || u32_at(bytes, 0) != MAGIC {
        return None;
    }
    let header = GroupHeader {
        segment_seq: u64_at(bytes, 8),
        group_seq: u64_at(bytes, 16),
        index: u32_at(bytes, 24),
        entry_count: u32_at(bytes, 28),
        total_bytes: u32_at(bytes, 32),
        max_page_lsn: Lsn::new(u64_at(bytes, 40)),
        epoch: u32_at(bytes, 48),
    };
    let total = header.total_bytes as usize;
    let plausible = header.segment_seq == segment_seq
        && header.index == index
        && total.is_multiple_of(GROUP_ALIGN)
        && total > 0
        && total <= GROUP_BYTES_MAX
        && header.entry_count as usize <= total / ENTRY_BYTES
        && head_bytes(header.entry_count as usize) <= total
        && u16_at(bytes, 36) as usize == ENTRY_BYTES
        && u16_at(bytes, 38) == FORMAT_VERSION;
    plausible.then_some(header)
}

/// Reads and verifies header and directory at the start of `bytes`.
pub(crate) fn decode_head(
    bytes: &[u8],
    segment_seq: u64,
    index: u32,
) -> Result<(GroupHeader, Vec<DirectoryEntry>), &'static str> {
    let header = peek(bytes, segment_seq, index).ok_or("no group header")?;
    let end = head_bytes(header.entry_count as usize);
    let head = bytes.get(..end).ok_or("directory is cut off")?;
    if crc32c(&head[8..]) != u32_at(head, 4) {
        return Err("directory checksum does not agree");
    }
    let blobs_start = blobs_offset(header.entry_count as usize) as u64;
    let entries = head[GROUP_HEADER_BYTES..].chunks_exact(ENTRY_BYTES);
    let entries = entries
        .map(|entry| DirectoryEntry::decode(entry, header.total_bytes, blobs_start))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((header, entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (GroupHeader, Vec<DirectoryEntry>) {
        let entries: Vec<_> = (0..20u32)
            .map(|number| DirectoryEntry {
                pid: PageId::new(u64::from(number) * 1_000_003),
                codec: 1 | if number % 2 == 0 { 0 } else { DELTA_FLAG },
                class: 13,
                page_lsn: Lsn::new(u64::from(number) + 5000),
                crc: number.wrapping_mul(0x9E37_79B9),
                offset_bytes: blobs_offset(20) as u32 + number * 128,
                length_bytes: 128,
                content: match number % 2 {
                    0 => Content::Full {
                        tree: TreeId::new(number),
                        page_type: 2,
                        page_format: 1,
                        is_deferred: number % 4 == 0,
                    },
                    _ => Content::Delta { base: 4000 + u64::from(number) },
                },
            })
            .collect();
        let header = GroupHeader {
            segment_seq: 7,
            group_seq: 99,
            index: 3,
            entry_count: 20,
            total_bytes: 8192,
            max_page_lsn: Lsn::new(5019),
            epoch: 2,
        };
        (header, entries)
    }

    #[test]
    fn round_trip() {
        let (header, entries) = sample();
        let mut bytes = vec![0xAA; 8192];
        encode_head(&header, &entries, &mut bytes);
        assert_eq!(decode_head(&bytes, 7, 3), Ok((header, entries)));
        assert!(decode_head(&bytes, 8, 3).is_err(), "of another use of the segment");
        assert!(decode_head(&bytes, 7, 4).is_err(), "not in its place");
        assert!(decode_head(&bytes[..500], 7, 3).is_err(), "cut off");
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (header, entries) = sample();
        let mut bytes = vec![0; 8192];
        encode_head(&header, &entries, &mut bytes);
        for place in 0..head_bytes(entries.len()) {
            bytes[place] ^= 1 << (place % 8);
            assert!(decode_head(&bytes, 7, 3).is_err(), "byte {place}");
            bytes[place] ^= 1 << (place % 8);
        }
    }

    #[test]
    fn noise_with_a_right_checksum_never_panics() {
        let (header, entries) = sample();
        let mut random = base::Random::new(4);
        let mut accepted = 0;
        for _ in 0..20_000 {
            let mut bytes = vec![0; 8192];
            encode_head(&header, &entries, &mut bytes);
            for _ in 0..3 {
                let place = 24 + random.index(head_bytes(20) - 24);
                bytes[place] = random.next_u64() as u8;
            }
            let count = u32_at(&bytes, 28).min(254) as usize;
            let crc = crc32c(&bytes[8..head_bytes(count)]);
            put(&mut bytes, 4, &crc.to_le_bytes());
            if let Ok((header, entries)) = decode_head(&bytes, 7, 3) {
                accepted += 1;
                assert!(entries.iter().all(|entry| {
                    entry.offset_bytes + entry.length_bytes <= header.total_bytes
                }));
            }
        }
        assert!(accepted > 0);
    }
}
