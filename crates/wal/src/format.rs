//! Bytes of the log files.
//!
//! A log file is one header block followed by batches; both begin at multiples of the block size,
//! and both are made of sectors that each vouch for themselves (see `sector`): 504 bytes of
//! content, 4 zero bytes, and the checksum of the sector. The content of a file header is the
//! first sector's; the content of a batch runs on from sector to sector.
//!
//! ```text
//! file header                               batch header (64 bytes, then the payload)
//!  0  magic "GNTLOGF2"                       0  magic "GNTBATC2"
//!  8  database uuid, 16 bytes                8  database uuid, 16 bytes
//! 24  format version u32 (2)                24  epoch u32
//! 28  block_bytes u32                       28  chain u32: seal of the batch before
//! 32  sequence u64                          32  start_lsn u64
//! 40  first_lsn u64                         40  durable_lsn u64, when the batch was written
//! 48  epoch u32                             48  payload_len u32
//! 52  chain u32: of the last batch before   52  body_crc u32: of the checksums of all sectors
//! 56  zero to the end of the block              but the first
//!                                           56  reserved u64 (0)
//!                                           64  payload, then zero to the end of the block
//! ```
//!
//! The *seal* of a batch is the checksum of its first sector. That sector holds `body_crc`, so
//! the seal stands for the whole batch. A torn header write leaves the old or the new header.
//! The payload is a sequence of records at multiples of 8 bytes (see `record`); LSNs count
//! payload bytes only.

use crate::record::{RECORD_HEADER_BYTES, RecordError, aligned_len};
use crate::sector::{self, CONTENT_BYTES, SECTOR_BYTES};
use base::checksum::crc32c_append;

const FILE_MAGIC: u64 = u64::from_le_bytes(*b"GNTLOGF2");
/// Files of builds whose sectors did not vouch for themselves begin so.
const FORMER_FILE_MAGIC: u64 = u64::from_le_bytes(*b"GNTLOGF1");
const BATCH_MAGIC: u64 = u64::from_le_bytes(*b"GNTBATC2");
const FORMAT_VERSION: u32 = 2;
/// Bytes of a batch before its payload.
pub(crate) const BATCH_HEADER_BYTES: usize = 64;
/// Smallest and largest block size a file header may name.
pub(crate) const BLOCK_BYTES_RANGE: std::ops::RangeInclusive<usize> = SECTOR_BYTES..=65536;

/// Bytes of the sectors that hold a batch with so much payload.
pub(crate) fn batch_sector_bytes(payload_len: usize) -> usize {
    (BATCH_HEADER_BYTES + payload_len).div_ceil(CONTENT_BYTES) * SECTOR_BYTES
}

/// Bytes that a batch with so much payload takes in its file.
pub(crate) fn batch_file_bytes(payload_len: usize, block_bytes: usize) -> usize {
    batch_sector_bytes(payload_len).div_ceil(block_bytes) * block_bytes
}

/// The places of a batch's payload, in order; the last ones may be longer than what is left.
pub(crate) fn payload_places(batch: &mut [u8]) -> impl Iterator<Item = &mut [u8]> {
    batch.chunks_exact_mut(SECTOR_BYTES).enumerate().map(|(number, sector)| {
        let from = if number == 0 { BATCH_HEADER_BYTES } else { 0 };
        &mut sector[from..CONTENT_BYTES]
    })
}

/// Appends the payload of `batch`, which is `payload_len` bytes long, to `out`.
pub(crate) fn copy_payload(batch: &[u8], payload_len: usize, out: &mut Vec<u8>) {
    let mut left = payload_len;
    out.reserve(left);
    for (number, sector) in batch.chunks_exact(SECTOR_BYTES).enumerate() {
        let from = if number == 0 { BATCH_HEADER_BYTES } else { 0 };
        let part = &sector[from..CONTENT_BYTES];
        let taken = left.min(part.len());
        out.extend_from_slice(&part[..taken]);
        left -= taken;
    }
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from(get_u32(bytes, at)) | u64::from(get_u32(bytes, at + 4)) << 32
}

/// Whether these first bytes of a file are those of a log that this build does not read.
pub(crate) fn is_former_format(bytes: &[u8]) -> bool {
    bytes.len() >= SECTOR_BYTES
        && get_u64(bytes, 0) == FORMER_FILE_MAGIC
        && bytes[64..SECTOR_BYTES].iter().all(|&byte| byte == 0)
}

/// What a file says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) block_bytes: usize,
    pub(crate) sequence: u64,
    /// LSN at which the first batch of the file starts; everything below was durable when the
    /// header was written.
    pub(crate) first_lsn: u64,
    pub(crate) epoch: u32,
    /// Seal of the last batch of the file before.
    pub(crate) chain: u32,
}

impl FileHeader {
    /// Writes the header into `block`, whose length is the block size.
    pub(crate) fn encode(&self, database_uuid: &[u8; 16], block: &mut [u8]) {
        block.fill(0);
        block[0..8].copy_from_slice(&FILE_MAGIC.to_le_bytes());
        block[8..24].copy_from_slice(database_uuid);
        block[24..28].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        block[28..32].copy_from_slice(&(self.block_bytes as u32).to_le_bytes());
        block[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        block[40..48].copy_from_slice(&self.first_lsn.to_le_bytes());
        block[48..52].copy_from_slice(&self.epoch.to_le_bytes());
        block[52..56].copy_from_slice(&self.chain.to_le_bytes());
        sector::seal(&mut block[..SECTOR_BYTES]);
    }

    /// The header in these first bytes of a file, if it is intact and of this database.
    pub(crate) fn decode(bytes: &[u8], database_uuid: &[u8; 16]) -> Option<FileHeader> {
        let first = bytes.get(..SECTOR_BYTES)?;
        let block_bytes = get_u32(first, 28) as usize;
        let is_ours = get_u64(first, 0) == FILE_MAGIC
            && first[8..24] == database_uuid[..]
            && get_u32(first, 24) == FORMAT_VERSION
            && BLOCK_BYTES_RANGE.contains(&block_bytes)
            && block_bytes.is_power_of_two();
        if !is_ours || !sector::is_sealed(first) {
            return None;
        }
        Some(FileHeader {
            block_bytes,
            sequence: get_u64(first, 32),
            first_lsn: get_u64(first, 40),
            epoch: get_u32(first, 48),
            chain: get_u32(first, 52),
        })
    }
}

/// What a batch says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    pub(crate) epoch: u32,
    pub(crate) chain: u32,
    pub(crate) start_lsn: u64,
    pub(crate) durable_lsn: u64,
    pub(crate) payload_len: usize,
    pub(crate) body_crc: u32,
    /// Checksum of the first sector, which the next batch names as its `chain`.
    pub(crate) seal: u32,
}

impl BatchHeader {
    /// Bytes of the batch in the file.
    pub(crate) fn file_bytes(&self, block_bytes: usize) -> usize {
        batch_file_bytes(self.payload_len, block_bytes)
    }

    /// Bytes of the sectors that hold it.
    pub(crate) fn sector_bytes(&self) -> usize {
        batch_sector_bytes(self.payload_len)
    }

    /// LSN behind the batch.
    pub(crate) fn end_lsn(&self) -> u64 {
        self.start_lsn + self.payload_len as u64
    }

    /// Seals the sectors of `batch`, whose payload is in place, and puts the header into the
    /// first one; returns the batch's seal.
    pub(crate) fn seal(&self, database_uuid: &[u8; 16], batch: &mut [u8]) -> u32 {
        let (first, body) = batch[..self.sector_bytes()].split_at_mut(SECTOR_BYTES);
        let mut body_crc = 0;
        for sector in body.chunks_exact_mut(SECTOR_BYTES) {
            body_crc = crc32c_append(body_crc, &sector::seal(sector).to_le_bytes());
        }
        first[0..8].copy_from_slice(&BATCH_MAGIC.to_le_bytes());
        first[8..24].copy_from_slice(database_uuid);
        first[24..28].copy_from_slice(&self.epoch.to_le_bytes());
        first[28..32].copy_from_slice(&self.chain.to_le_bytes());
        first[32..40].copy_from_slice(&self.start_lsn.to_le_bytes());
        first[40..48].copy_from_slice(&self.durable_lsn.to_le_bytes());
        first[48..52].copy_from_slice(&(self.payload_len as u32).to_le_bytes());
        first[52..56].copy_from_slice(&body_crc.to_le_bytes());
        first[56..64].fill(0);
        sector::seal(first)
    }

    /// The batch header in this sector, if it is intact and of this database.
    pub(crate) fn decode(bytes: &[u8], database_uuid: &[u8; 16]) -> Option<BatchHeader> {
        let first = bytes.get(..SECTOR_BYTES)?;
        let is_ours = get_u64(first, 0) == BATCH_MAGIC && first[8..24] == database_uuid[..];
        if !is_ours || !sector::is_sealed(first) {
            return None;
        }
        Some(BatchHeader {
            epoch: get_u32(first, 24),
            chain: get_u32(first, 28),
            start_lsn: get_u64(first, 32),
            durable_lsn: get_u64(first, 40),
            payload_len: get_u32(first, 48) as usize,
            body_crc: get_u32(first, 52),
            seal: sector::seal_of(first),
        })
    }

    /// Whether `batch` has the body this header was sealed with.
    pub(crate) fn body_is_intact(&self, batch: &[u8]) -> bool {
        let Some(body) = batch.get(SECTOR_BYTES..self.sector_bytes()) else { return false };
        let mut body_crc = 0;
        for sector in body.chunks_exact(SECTOR_BYTES) {
            if !sector::is_sealed(sector) {
                return false;
            }
            body_crc = crc32c_append(body_crc, &sector::seal_of(sector).to_le_bytes());
        }
        body_crc == self.body_crc
    }
}

/// The record at the start of `payload`: its exact length and its length in the stream.
pub(crate) fn split_record(payload: &[u8]) -> Result<(usize, usize), RecordError> {
    if payload.len() < RECORD_HEADER_BYTES {
        let (needed, available) = (RECORD_HEADER_BYTES, payload.len());
        return Err(RecordError::Truncated { needed, available });
    }
    let len = get_u32(payload, 0) as usize;
    let stream_len = aligned_len(len);
    if len < RECORD_HEADER_BYTES || stream_len > payload.len() {
        return Err(RecordError::Truncated { needed: stream_len, available: payload.len() });
    }
    Ok((len, stream_len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RecordBuilder, RecordKind};
    use base::TrxId;

    const UUID: [u8; 16] = *b"0123456789abcdef";

    fn file_header() -> FileHeader {
        FileHeader { block_bytes: 4096, sequence: 7, first_lsn: 8192, epoch: 3, chain: 0xABCD }
    }

    /// A batch whose payload is one record with so many logical bytes, and the record.
    fn batch(logical: usize) -> (BatchHeader, Vec<u8>, Vec<u8>) {
        let mut record = RecordBuilder::new(RecordKind::Commit, TrxId::new(5));
        record.logical(&vec![0xE5; logical]);
        let mut payload = record.to_bytes();
        payload.resize(record.stream_len(), 0);
        let header = BatchHeader {
            epoch: 3,
            chain: 0xABCD,
            start_lsn: 8192,
            durable_lsn: 8000,
            payload_len: payload.len(),
            body_crc: 0,
            seal: 0,
        };
        let mut bytes = vec![0; header.file_bytes(4096)];
        let mut left = &payload[..];
        for place in payload_places(&mut bytes) {
            let (now, later) = left.split_at(left.len().min(place.len()));
            place[..now.len()].copy_from_slice(now);
            left = later;
        }
        let seal = header.seal(&UUID, &mut bytes);
        let body_crc = get_u32(&bytes, 52);
        (BatchHeader { seal, body_crc, ..header }, bytes, payload)
    }

    #[test]
    fn headers_and_payloads_come_back() {
        let mut block = vec![0xFF; 4096];
        file_header().encode(&UUID, &mut block);
        assert_eq!(FileHeader::decode(&block, &UUID), Some(file_header()));
        assert_eq!(FileHeader::decode(&block, b"another database"), None);
        for logical in [0, 400, 420, 424, 432, 900, 930, 940, 5000, 40_000] {
            let (header, bytes, payload) = batch(logical);
            assert_eq!(BatchHeader::decode(&bytes, &UUID), Some(header));
            assert!(header.body_is_intact(&bytes));
            assert_eq!(BatchHeader::decode(&bytes, b"another database"), None);
            let mut found = Vec::new();
            copy_payload(&bytes, header.payload_len, &mut found);
            assert_eq!(found, payload);
        }
    }

    /// Also by who knows nothing of the batch: a sector is sealed, empty or damaged.
    #[test]
    fn every_flipped_bit_is_seen() {
        let mut block = vec![0; 4096];
        file_header().encode(&UUID, &mut block);
        for bit in 0..SECTOR_BYTES * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode(&block, &UUID), None, "bit {bit}");
            assert!(sector::is_damaged(&block[..SECTOR_BYTES]));
            block[bit / 8] ^= 1 << (bit % 8);
        }
        let (header, mut bytes, _) = batch(1500);
        assert_eq!(header.sector_bytes(), 4 * SECTOR_BYTES);
        for bit in 0..header.sector_bytes() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let intact = BatchHeader::decode(&bytes, &UUID)
                .is_some_and(|header| header.body_is_intact(&bytes));
            let from = bit / 8 / SECTOR_BYTES * SECTOR_BYTES;
            assert!(!intact && sector::is_damaged(&bytes[from..][..SECTOR_BYTES]), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    /// A torn write: whole sectors are of another batch or empty, and none looks damaged.
    #[test]
    fn a_torn_batch_is_not_intact_and_not_damaged() {
        let (header, bytes, _) = batch(1500);
        for number in 1..4 {
            let range = number * SECTOR_BYTES..(number + 1) * SECTOR_BYTES;
            let mut torn = bytes.clone();
            torn[range.clone()].fill(0);
            assert!(!header.body_is_intact(&torn));
            assert!(!torn.chunks_exact(SECTOR_BYTES).any(sector::is_damaged));
        }
        let mut torn = bytes.clone();
        torn[3 * SECTOR_BYTES..4 * SECTOR_BYTES].copy_from_slice(&bytes[SECTOR_BYTES..][..512]);
        assert!(!header.body_is_intact(&torn));
        assert!(!torn.chunks_exact(SECTOR_BYTES).any(sector::is_damaged));
    }

    #[test]
    fn a_record_never_reaches_beyond_its_payload() {
        let (_, _, payload) = batch(0);
        assert_eq!(split_record(&payload), Ok((16, 16)));
        for len in 0..4000u32 {
            let mut changed = payload.to_vec();
            changed[0..4].copy_from_slice(&len.to_le_bytes());
            assert_eq!(split_record(&changed).is_ok(), len == 16);
        }
    }
}
