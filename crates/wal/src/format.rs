//! Bytes of the log files.
//!
//! A log file is one header block followed by batches; both begin at multiples of the block size.
//!
//! ```text
//! file header (one block)                   batch header (64 bytes, then the payload)
//!  0  magic "GNTLOGF1"                       0  magic "GNTBATC1"
//!  8  database uuid, 16 bytes                8  database uuid, 16 bytes
//! 24  format version u32 (1)                24  epoch u32
//! 28  block_bytes u32                       28  chain u32: header_crc of the batch before
//! 32  sequence u64                          32  start_lsn u64
//! 40  first_lsn u64                         40  durable_lsn u64, when the batch was written
//! 48  epoch u32                             48  payload_len u32
//! 52  chain u32: of the last batch before   52  body_crc u32: payload and padding
//! 56  reserved u32 (0)                      56  reserved u32 (0)
//! 60  crc u32: the block without this       60  header_crc u32: bytes 0..60
//! 64  zero to the end of the block          64  payload, then zero to the end of the block
//! ```
//!
//! Everything that matters of a file header lies in its first 512-byte sector, and the rest of
//! the block is zero in every version, so a torn header write leaves the old or the new header.
//! The payload is a sequence of records at multiples of 8 bytes (see `record`); LSNs count
//! payload bytes only.

use crate::record::{RECORD_HEADER_BYTES, RecordError, aligned_len};
use base::checksum::{crc32c, crc32c_append};

const FILE_MAGIC: u64 = u64::from_le_bytes(*b"GNTLOGF1");
const BATCH_MAGIC: u64 = u64::from_le_bytes(*b"GNTBATC1");
const FORMAT_VERSION: u32 = 1;
/// Bytes of a batch before its payload.
pub(crate) const BATCH_HEADER_BYTES: usize = 64;
/// Bytes of a file header that are not padding.
pub(crate) const FILE_HEADER_BYTES: usize = 64;
/// Smallest and largest block size a file header may name.
pub(crate) const BLOCK_BYTES_RANGE: std::ops::RangeInclusive<usize> = 4096..=65536;

/// `len` rounded up to whole blocks.
pub(crate) fn round_to_blocks(len: usize, block_bytes: usize) -> usize {
    len.div_ceil(block_bytes) * block_bytes
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from(get_u32(bytes, at)) | u64::from(get_u32(bytes, at + 4)) << 32
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
    /// Checksum of the last batch of the file before.
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
        let crc = Self::checksum(block);
        block[60..64].copy_from_slice(&crc.to_le_bytes());
    }

    fn checksum(block: &[u8]) -> u32 {
        crc32c_append(crc32c(&block[..60]), &block[64..])
    }

    /// The header in these first bytes of a file, if it is intact and of this database.
    pub(crate) fn decode(bytes: &[u8], database_uuid: &[u8; 16]) -> Option<FileHeader> {
        if bytes.len() < FILE_HEADER_BYTES || get_u64(bytes, 0) != FILE_MAGIC {
            return None;
        }
        let block_bytes = get_u32(bytes, 28) as usize;
        let sane = BLOCK_BYTES_RANGE.contains(&block_bytes) && block_bytes.is_power_of_two();
        if !sane || bytes.len() < block_bytes {
            return None;
        }
        if get_u32(bytes, 60) != Self::checksum(&bytes[..block_bytes])
            || bytes[8..24] != database_uuid[..]
            || get_u32(bytes, 24) != FORMAT_VERSION
        {
            return None;
        }
        Some(FileHeader {
            block_bytes,
            sequence: get_u64(bytes, 32),
            first_lsn: get_u64(bytes, 40),
            epoch: get_u32(bytes, 48),
            chain: get_u32(bytes, 52),
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
    /// Checksum of the header, which the next batch names as its `chain`.
    pub(crate) header_crc: u32,
}

impl BatchHeader {
    /// Bytes of the batch in the file.
    pub(crate) fn file_bytes(&self, block_bytes: usize) -> usize {
        round_to_blocks(BATCH_HEADER_BYTES + self.payload_len, block_bytes)
    }

    /// LSN behind the batch.
    pub(crate) fn end_lsn(&self) -> u64 {
        self.start_lsn + self.payload_len as u64
    }

    /// Fills in the header of `batch` (header, payload and padding); returns `header_crc`.
    pub(crate) fn seal(&self, database_uuid: &[u8; 16], batch: &mut [u8]) -> u32 {
        let body_crc = crc32c(&batch[BATCH_HEADER_BYTES..]);
        let header = &mut batch[..BATCH_HEADER_BYTES];
        header[0..8].copy_from_slice(&BATCH_MAGIC.to_le_bytes());
        header[8..24].copy_from_slice(database_uuid);
        header[24..28].copy_from_slice(&self.epoch.to_le_bytes());
        header[28..32].copy_from_slice(&self.chain.to_le_bytes());
        header[32..40].copy_from_slice(&self.start_lsn.to_le_bytes());
        header[40..48].copy_from_slice(&self.durable_lsn.to_le_bytes());
        header[48..52].copy_from_slice(&(self.payload_len as u32).to_le_bytes());
        header[52..56].copy_from_slice(&body_crc.to_le_bytes());
        header[56..60].fill(0);
        let header_crc = crc32c(&header[..60]);
        header[60..64].copy_from_slice(&header_crc.to_le_bytes());
        header_crc
    }

    /// The batch header at the start of `bytes`, if it is intact and of this database.
    pub(crate) fn decode(bytes: &[u8], database_uuid: &[u8; 16]) -> Option<BatchHeader> {
        if bytes.len() < BATCH_HEADER_BYTES
            || get_u64(bytes, 0) != BATCH_MAGIC
            || bytes[8..24] != database_uuid[..]
        {
            return None;
        }
        let header_crc = get_u32(bytes, 60);
        if crc32c(&bytes[..60]) != header_crc {
            return None;
        }
        Some(BatchHeader {
            epoch: get_u32(bytes, 24),
            chain: get_u32(bytes, 28),
            start_lsn: get_u64(bytes, 32),
            durable_lsn: get_u64(bytes, 40),
            payload_len: get_u32(bytes, 48) as usize,
            body_crc: get_u32(bytes, 52),
            header_crc,
        })
    }

    /// Whether `batch`, of `file_bytes` bytes, has the body this header was sealed with.
    pub(crate) fn body_is_intact(&self, batch: &[u8]) -> bool {
        crc32c(&batch[BATCH_HEADER_BYTES..]) == self.body_crc
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

    fn batch() -> (BatchHeader, Vec<u8>) {
        let record = RecordBuilder::new(RecordKind::Commit, TrxId::new(5)).to_bytes();
        let mut header = BatchHeader {
            epoch: 3,
            chain: 0xABCD,
            start_lsn: 8192,
            durable_lsn: 8000,
            payload_len: record.len(),
            body_crc: 0,
            header_crc: 0,
        };
        let mut bytes = vec![0; header.file_bytes(4096)];
        bytes[BATCH_HEADER_BYTES..BATCH_HEADER_BYTES + record.len()].copy_from_slice(&record);
        header.header_crc = header.seal(&UUID, &mut bytes);
        header.body_crc = crc32c(&bytes[BATCH_HEADER_BYTES..]);
        (header, bytes)
    }

    #[test]
    fn headers_come_back() {
        let mut block = vec![0xFF; 4096];
        file_header().encode(&UUID, &mut block);
        assert_eq!(FileHeader::decode(&block, &UUID), Some(file_header()));
        assert_eq!(FileHeader::decode(&block, b"another database"), None);
        let (header, bytes) = batch();
        assert_eq!(BatchHeader::decode(&bytes, &UUID), Some(header));
        assert!(header.body_is_intact(&bytes));
        assert_eq!(BatchHeader::decode(&bytes, b"another database"), None);
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let mut block = vec![0; 4096];
        file_header().encode(&UUID, &mut block);
        for bit in 0..block.len() * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode(&block, &UUID), None, "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
        let (_, mut bytes) = batch();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let intact = BatchHeader::decode(&bytes, &UUID)
                .is_some_and(|header| header.body_is_intact(&bytes));
            assert!(!intact, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_record_never_reaches_beyond_its_payload() {
        let (_, bytes) = batch();
        let payload = &bytes[BATCH_HEADER_BYTES..BATCH_HEADER_BYTES + 16];
        assert_eq!(split_record(payload), Ok((16, 16)));
        for len in 0..4000u32 {
            let mut changed = payload.to_vec();
            changed[0..4].copy_from_slice(&len.to_le_bytes());
            assert_eq!(split_record(&changed).is_ok(), len == 16);
        }
    }
}
