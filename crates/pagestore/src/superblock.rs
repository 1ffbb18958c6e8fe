//! The superblock: where recovery starts.
//!
//! File `superblock` has two slots of two copies of 4 KiB. Write number n goes to both copies of
//! slot n % 2 and is synced before anything relies on it. A copy is eight sectors of 512 bytes:
//!
//! ```text
//! offset size field
//!      0  504 content
//!    504    4 lowest 32 bits of the sequence of this write
//!    508    4 CRC-32C of bytes 0..508
//! ```
//!
//! A write torn by a power failure leaves sectors that are intact, each of one write or another;
//! a sector that is not intact has rotted. The content of all sectors, one behind the other:
//!
//! ```text
//! offset size field
//!      0    8 magic "GANNSUPR"
//!      8    4 CRC-32C of bytes 12..4032
//!     12    4 format version (2)
//!     16    8 sequence of this write
//!     24   16 UUID of the database
//!     40    4 recovery epoch, raised at every start before anything else is written
//!     44    4 flags (bit 0: clean shutdown)
//!     48    8 compatible feature bits: unknown ones may be ignored
//!     56    8 incompatible feature bits: unknown ones forbid opening
//!     64    8 segment size in bytes
//!     72    4 segments per data file
//!     76    4 sector size in bytes that log and groups are padded to (4096)
//!     80    8 redo LSN of the checkpoint
//!     88    8 durable LSN when the checkpoint was made
//!     96    8 first LSN of the oldest active transaction (0: none)
//!    104    8 next transaction id
//!    112    8 next tree id
//!    120    8 undo addresses below this were given out
//!    128  288 sync record (see segment.rs), then reserved up to 512
//!    512    4 length of the engine's own bytes
//!    516      the engine's own bytes, at most 3072; the rest is zero
//! ```
//!
//! 1. At any moment at least one slot holds a complete superblock: a write touches one slot only,
//!    and the next write, to the other slot, begins after its sync.
//! 2. The newest readable copy counts, but not of a slot with a torn one: that write was never
//!    acknowledged, and counting it would send the next write to the only complete slot. So torn
//!    copies are in one slot at most, and it is written next. One rotten copy is served by its
//!    twin and reported by [`crate::check`].
//! 3. A process that was killed may have left a write that only the system's cache has. A start
//!    syncs what it is about to rely on: otherwise its own first write, to the other slot, and a
//!    power failure in the midst of it could take both slots, or bring back a superblock older
//!    than one that log was recycled by.
//! 4. No two writes of which sectors are left have the same sequence: a start goes on behind the
//!    highest that any intact sector has. Otherwise the sectors of two writes that were cut off,
//!    one after the other in one slot, would look like one write that has rotted.

use crate::bytes::{put, u32_at, u64_at, uuid_at};
use crate::error::StoreError;
use crate::segment::SyncRecord;
use base::Lsn;
use base::checksum::crc32c;
use runtime::file::{AlignedBuf, OpenOptions};
use std::path::Path;

/// Name of the file in the data directory.
pub const SUPERBLOCK_FILE: &str = "superblock";
/// Bytes of one copy.
pub const COPY_BYTES: usize = 4096;
/// Copies in a slot.
pub const COPIES_A_SLOT: usize = 2;
/// Copies in the file: two slots.
pub const COPIES: usize = 2 * COPIES_A_SLOT;
/// Most bytes the engine may keep in the superblock.
pub const ENGINE_BYTES_MAX: usize = 3072;

const MAGIC: u64 = u64::from_le_bytes(*b"GANNSUPR");
const FORMAT_VERSION: u32 = 2;
const FLAG_CLEAN: u32 = 1;
const SYNC_OFFSET: usize = 128;
const ENGINE_OFFSET: usize = 512;
const SLOT_BYTES: usize = COPIES_A_SLOT * COPY_BYTES;
const SECTOR_BYTES: usize = 512;
/// Content of a sector: what its sequence and checksum leave.
const SECTOR_CONTENT: usize = SECTOR_BYTES - 8;
/// Content of a copy.
pub(crate) const CONTENT_BYTES: usize = COPY_BYTES / SECTOR_BYTES * SECTOR_CONTENT;

/// What the superblock says. Change a copy and hand it to [`Superblock::store`] or
/// [`crate::PageStore::write_superblock`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Number of the write that this came from; raised by every write.
    pub sequence: u64,
    /// Identity of the database.
    pub uuid: [u8; 16],
    /// Recovery epoch (amendment 1).
    pub epoch: u32,
    /// Whether the last shutdown was clean.
    pub is_clean: bool,
    /// Feature bits that older versions may ignore.
    pub compatible: u64,
    /// Feature bits that forbid opening when unknown.
    pub incompatible: u64,
    /// Size of a segment in bytes.
    pub segment_bytes: u64,
    /// Segments in one data file.
    pub segments_per_file: u32,
    /// Sector size in bytes.
    pub sector_bytes: u32,
    /// Redo starts here.
    pub redo_lsn: Lsn,
    /// The log was durable up to here when this was written (amendment 2).
    pub durable_lsn: Lsn,
    /// First record of the oldest transaction that was active (amendment 10); zero if none.
    pub oldest_active_first_lsn: Lsn,
    /// Transaction ids from here on are unused.
    pub next_trx: u64,
    /// Tree ids from here on are unused.
    pub next_tree: u64,
    /// Undo addresses from here on are unused (amendment 15).
    pub next_undo_address: u64,
    /// The engine's own bytes, at most [`ENGINE_BYTES_MAX`].
    pub engine: Vec<u8>,
    pub(crate) sync: SyncRecord,
}

impl Superblock {
    /// Incompatible feature: pages may be written as deltas. Set whenever this version writes a
    /// superblock, because from then on there may be some.
    pub const DELTAS: u64 = 1;
    /// Incompatible feature: pages may need a dictionary. Set before the first one is made.
    pub const DICTIONARIES: u64 = 2;
    /// Incompatible feature: a page may have two full copies with one LSN that are not the same
    /// bytes (newest.rs, invariant 3). Set before the first copy is compressed anew.
    pub const COPIES_ANEW: u64 = 4;
    /// Incompatible feature: deltas may have 128ths of a page. Set as [`Superblock::DELTAS`] is.
    pub const SMALL_CHUNKS: u64 = 8;
    /// Incompatible feature bits that this version knows.
    pub const KNOWN_INCOMPATIBLE: u64 = Self::ALWAYS | Self::DICTIONARIES | Self::COPIES_ANEW;
    /// Incompatible features of every superblock that this version writes.
    const ALWAYS: u64 = Self::DELTAS | Self::SMALL_CHUNKS;

    /// The superblock of a new database, not yet written. Epoch 1.
    pub fn new(uuid: [u8; 16], segment_bytes: u64, segments_per_file: u32) -> Superblock {
        Superblock {
            sequence: 0,
            uuid,
            epoch: 1,
            is_clean: false,
            compatible: 0,
            incompatible: Self::ALWAYS,
            segment_bytes,
            segments_per_file,
            sector_bytes: 4096,
            redo_lsn: Lsn::ZERO,
            durable_lsn: Lsn::ZERO,
            oldest_active_first_lsn: Lsn::ZERO,
            next_trx: 1,
            next_tree: 1,
            next_undo_address: 0,
            engine: Vec::new(),
            sync: SyncRecord::default(),
        }
    }

    /// Reads the superblock of a data directory; `None` if there is none. Parks.
    pub fn load(dir: &Path) -> Result<Option<Superblock>, StoreError> {
        let Some(bytes) = read_file(dir)? else { return Ok(None) };
        let found = newest(&copies_of(&bytes))?;
        Ok(found.map(|found| Superblock { sequence: behind_all(found.sequence, &bytes), ..found }))
    }

    /// As [`Superblock::load`], for a start, which goes on to write: what is read is durable
    /// (invariant 3). Parks.
    pub fn load_durably(dir: &Path) -> Result<Option<Superblock>, StoreError> {
        let fail = |error: std::io::Error| StoreError::io(SUPERBLOCK_FILE, &error);
        let path = dir.join(SUPERBLOCK_FILE);
        if !runtime::fs::exists(&path).map_err(fail)? {
            return Ok(None);
        }
        OpenOptions::new()
            .direct(true)
            .open(&path)
            .and_then(|file| file.sync_data())
            .map_err(fail)?;
        Superblock::load(dir)
    }

    /// Writes it durably, raising its sequence. Parks.
    pub fn store(&mut self, dir: &Path) -> Result<(), StoreError> {
        let fail = |error: std::io::Error| StoreError::io(SUPERBLOCK_FILE, &error);
        self.sequence += 1;
        self.incompatible |= Self::ALWAYS;
        let mut slot = AlignedBuf::zeroed(SLOT_BYTES);
        self.encode(&mut slot[..COPY_BYTES])?;
        let (first, second) = slot.split_at_mut(COPY_BYTES);
        second.copy_from_slice(first);
        let path = dir.join(SUPERBLOCK_FILE);
        let is_new = !runtime::fs::exists(&path).map_err(fail)?;
        let file = OpenOptions::new().create(true).direct(true).open(&path).map_err(fail)?;
        if is_new {
            // So that no later write needs space: a full disk is no reason to stop.
            file.allocate_zeroed(0, (COPIES * COPY_BYTES) as u64).map_err(fail)?;
        }
        file.write_and_sync(&slot, self.sequence % 2 * SLOT_BYTES as u64).map_err(fail)?;
        if is_new {
            runtime::fs::sync_dir(dir).map_err(fail)?;
        }
        Ok(())
    }

    fn encode(&self, out: &mut [u8]) -> Result<(), StoreError> {
        if self.engine.len() > ENGINE_BYTES_MAX {
            let detail = format!("{} bytes of the engine in the superblock", self.engine.len());
            return Err(StoreError::Incompatible(detail));
        }
        let mut content = [0; CONTENT_BYTES];
        self.encode_content(&mut content);
        let sectors = out.chunks_exact_mut(SECTOR_BYTES);
        for (sector, content) in sectors.zip(content.chunks_exact(SECTOR_CONTENT)) {
            put(sector, 0, content);
            put(sector, SECTOR_CONTENT, &(self.sequence as u32).to_le_bytes());
            let crc = crc32c(&sector[..SECTOR_BYTES - 4]);
            put(sector, SECTOR_BYTES - 4, &crc.to_le_bytes());
        }
        Ok(())
    }

    fn encode_content(&self, out: &mut [u8; CONTENT_BYTES]) {
        let flags = if self.is_clean { FLAG_CLEAN } else { 0 };
        put(out, 0, &MAGIC.to_le_bytes());
        put(out, 12, &FORMAT_VERSION.to_le_bytes());
        put(out, 16, &self.sequence.to_le_bytes());
        put(out, 24, &self.uuid);
        put(out, 40, &self.epoch.to_le_bytes());
        put(out, 44, &flags.to_le_bytes());
        put(out, 48, &self.compatible.to_le_bytes());
        put(out, 56, &self.incompatible.to_le_bytes());
        put(out, 64, &self.segment_bytes.to_le_bytes());
        put(out, 72, &self.segments_per_file.to_le_bytes());
        put(out, 76, &self.sector_bytes.to_le_bytes());
        put(out, 80, &self.redo_lsn.get().to_le_bytes());
        put(out, 88, &self.durable_lsn.get().to_le_bytes());
        put(out, 96, &self.oldest_active_first_lsn.get().to_le_bytes());
        put(out, 104, &self.next_trx.to_le_bytes());
        put(out, 112, &self.next_tree.to_le_bytes());
        put(out, 120, &self.next_undo_address.to_le_bytes());
        self.sync.encode(&mut out[SYNC_OFFSET..]);
        put(out, ENGINE_OFFSET, &(self.engine.len() as u32).to_le_bytes());
        put(out, ENGINE_OFFSET + 4, &self.engine);
        let crc = crc32c(&out[12..]);
        put(out, 8, &crc.to_le_bytes());
    }

    /// Reads the content of a copy, for fuzzing.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn from_content(bytes: &[u8; CONTENT_BYTES]) -> Option<Superblock> {
        Superblock::decode_content(bytes)
    }

    /// The content of a copy, for fuzzing.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn to_content(&self) -> [u8; CONTENT_BYTES] {
        let mut bytes = [0; CONTENT_BYTES];
        self.encode_content(&mut bytes);
        bytes
    }

    fn decode_content(bytes: &[u8; CONTENT_BYTES]) -> Option<Superblock> {
        let intact = u64_at(bytes, 0) == MAGIC
            && crc32c(&bytes[12..]) == u32_at(bytes, 8)
            && u32_at(bytes, 12) == FORMAT_VERSION;
        let engine_bytes = u32_at(bytes, ENGINE_OFFSET) as usize;
        if !intact || engine_bytes > ENGINE_BYTES_MAX {
            return None;
        }
        Some(Superblock {
            sequence: u64_at(bytes, 16),
            uuid: uuid_at(bytes, 24),
            epoch: u32_at(bytes, 40),
            is_clean: u32_at(bytes, 44) & FLAG_CLEAN != 0,
            compatible: u64_at(bytes, 48),
            incompatible: u64_at(bytes, 56),
            segment_bytes: u64_at(bytes, 64),
            segments_per_file: u32_at(bytes, 72),
            sector_bytes: u32_at(bytes, 76),
            redo_lsn: Lsn::new(u64_at(bytes, 80)),
            durable_lsn: Lsn::new(u64_at(bytes, 88)),
            oldest_active_first_lsn: Lsn::new(u64_at(bytes, 96)),
            next_trx: u64_at(bytes, 104),
            next_tree: u64_at(bytes, 112),
            next_undo_address: u64_at(bytes, 120),
            engine: bytes[ENGINE_OFFSET + 4..ENGINE_OFFSET + 4 + engine_bytes].to_vec(),
            sync: SyncRecord::decode(&bytes[SYNC_OFFSET..])?,
        })
    }
}

/// The four copies as they stand in the file; `None` if there is no file.
pub(crate) fn read_copies(dir: &Path) -> Result<Option<Vec<CopyState>>, StoreError> {
    Ok(read_file(dir)?.map(|bytes| copies_of(&bytes)))
}

fn copies_of(bytes: &[u8]) -> Vec<CopyState> {
    bytes.chunks_exact(COPY_BYTES).map(CopyState::read).collect()
}

/// The sequence to go on from when the superblock with this one counts (invariant 4). The next
/// write goes to the same slot as without.
fn behind_all(counting: u64, bytes: &[u8]) -> u64 {
    let ahead = |sector: &[u8]| {
        let is_intact = crc32c(&sector[..SECTOR_BYTES - 4]) == u32_at(sector, SECTOR_BYTES - 4);
        let ahead = u32_at(sector, SECTOR_CONTENT).wrapping_sub(counting as u32).cast_signed();
        if is_intact { ahead } else { 0 }
    };
    let most = bytes.chunks_exact(SECTOR_BYTES).map(ahead).max().unwrap_or(0);
    counting + u64::from(most.max(0).cast_unsigned()).next_multiple_of(2)
}

/// The bytes of the file, with zeroes for what it lacks; `None` if there is none.
fn read_file(dir: &Path) -> Result<Option<AlignedBuf>, StoreError> {
    let fail = |error: std::io::Error| StoreError::io(SUPERBLOCK_FILE, &error);
    let path = dir.join(SUPERBLOCK_FILE);
    if !runtime::fs::exists(&path).map_err(fail)? {
        return Ok(None);
    }
    let file = OpenOptions::new().direct(true).open(&path).map_err(fail)?;
    let mut bytes = AlignedBuf::zeroed(COPIES * COPY_BYTES);
    let length = file.read_up_to(&mut bytes, 0).map_err(fail)?;
    bytes[length..].fill(0);
    Ok(Some(bytes))
}

/// One copy of the superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyState {
    Empty,
    /// Every sector is intact, but they are of several writes: a power failure came in between.
    Torn,
    Damaged,
    Good(Box<Superblock>),
}

impl CopyState {
    fn read(copy: &[u8]) -> CopyState {
        let mut content = [0; CONTENT_BYTES];
        let mut sequences = Vec::with_capacity(COPY_BYTES / SECTOR_BYTES);
        let sectors = copy.chunks_exact(SECTOR_BYTES);
        for (sector, content) in sectors.zip(content.chunks_exact_mut(SECTOR_CONTENT)) {
            content.copy_from_slice(&sector[..SECTOR_CONTENT]);
            // A sector that was never written is zero.
            let is_written = sector.iter().any(|&byte| byte != 0);
            let crc = crc32c(&sector[..SECTOR_BYTES - 4]);
            if is_written && crc != u32_at(sector, SECTOR_BYTES - 4) {
                return CopyState::Damaged;
            }
            sequences.push(is_written.then(|| u32_at(sector, SECTOR_CONTENT)));
        }
        if sequences.iter().any(|sequence| *sequence != sequences[0]) {
            return CopyState::Torn;
        }
        match Superblock::decode_content(&content) {
            _ if sequences[0].is_none() => CopyState::Empty,
            Some(superblock) => CopyState::Good(Box::new(superblock)),
            None => CopyState::Damaged,
        }
    }
}

/// The newest of the copies. Nothing at all is a database whose creation was cut short.
fn newest(copies: &[CopyState]) -> Result<Option<Superblock>, StoreError> {
    let good = |slot: &[CopyState]| {
        let copies = slot.iter().filter_map(|copy| match copy {
            CopyState::Good(superblock) => Some((**superblock).clone()),
            _ => None,
        });
        let is_whole = !slot.contains(&CopyState::Torn);
        copies.map(|superblock| (is_whole, superblock)).collect::<Vec<_>>()
    };
    let good = copies.chunks_exact(COPIES_A_SLOT).flat_map(good);
    let newest = good.max_by_key(|(is_whole, superblock)| (*is_whole, superblock.sequence));
    let Some((_, found)) = newest else {
        if copies.iter().all(|copy| *copy == CopyState::Empty) {
            return Ok(None);
        }
        return Err(StoreError::Damaged {
            file: SUPERBLOCK_FILE.to_owned(),
            offset: 0,
            detail: "no copy of the superblock is readable".to_owned(),
        });
    };
    let unknown = found.incompatible & !Superblock::KNOWN_INCOMPATIBLE;
    if unknown != 0 {
        return Err(StoreError::Incompatible(format!("feature bits {unknown:#x} are not known")));
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Superblock {
        let mut superblock = Superblock::new(*b"fedcba9876543210", 1 << 20, 16);
        superblock.redo_lsn = Lsn::new(123_456);
        superblock.engine = (0..=255).collect();
        superblock.sync.synced_group_seq = 9;
        superblock
    }

    #[test]
    fn round_trip_and_every_flipped_byte() {
        let mut bytes = vec![0; COPY_BYTES];
        assert_eq!(CopyState::read(&bytes), CopyState::Empty);
        sample().encode(&mut bytes).expect("small enough");
        assert_eq!(CopyState::read(&bytes), CopyState::Good(Box::new(sample())));
        for place in 0..COPY_BYTES {
            bytes[place] ^= 0x40;
            assert_eq!(CopyState::read(&bytes), CopyState::Damaged, "byte {place}");
            bytes[place] ^= 0x40;
        }
    }

    #[test]
    fn a_torn_copy_is_told_from_a_rotten_one() {
        let encoded = |sequence| {
            let mut bytes = vec![0; COPY_BYTES];
            let superblock = Superblock { sequence, ..sample() };
            superblock.encode(&mut bytes).expect("small enough");
            bytes
        };
        let writes = [vec![0; COPY_BYTES], encoded(5), encoded(7)];
        for (former, latter) in [(0, 1), (1, 2), (2, 1)] {
            for mixture in 1..255_u32 {
                let mut bytes = writes[former].clone();
                for sector in (0..8).filter(|sector| mixture >> sector & 1 == 1) {
                    let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                    bytes[range.clone()].copy_from_slice(&writes[latter][range]);
                }
                assert_eq!(CopyState::read(&bytes), CopyState::Torn);
                bytes[mixture as usize * 16 + 9] ^= 1;
                assert_eq!(CopyState::read(&bytes), CopyState::Damaged);
            }
        }
    }

    /// Invariant 4: what a write has left that was cut off is not taken for a part of the next.
    #[test]
    fn the_number_of_a_write_that_was_cut_off_is_not_given_again() {
        let copy = |sequence| {
            let mut bytes = vec![0; COPY_BYTES];
            Superblock { sequence, ..sample() }.encode(&mut bytes).expect("small enough");
            bytes
        };
        let file = |copies: [&[u8]; COPIES]| copies.concat();
        let (four, five) = (copy(4), copy(5));
        assert_eq!(behind_all(5, &file([&four, &four, &five, &five])), 5, "nothing was cut off");
        let mut torn = copy(3);
        torn[SECTOR_BYTES..2 * SECTOR_BYTES].copy_from_slice(&five[SECTOR_BYTES..2 * SECTOR_BYTES]);
        assert_eq!(CopyState::read(&torn), CopyState::Torn);
        let behind = behind_all(4, &file([&four, &four, &torn, &copy(3)]));
        assert_eq!(behind, 6, "the next write is 7, to the slot of 5");
        torn[SECTOR_BYTES + 9] ^= 1;
        assert_eq!(behind_all(4, &file([&four, &four, &torn, &copy(3)])), 4, "a rotten sector");
        let wraps = u64::from(u32::MAX) - 1;
        let (last, next) = (copy(wraps), copy(wraps + 1));
        assert_eq!(behind_all(wraps, &file([&last, &last, &next, &next])), wraps + 2);
    }

    #[test]
    fn too_much_of_the_engine_is_an_error() {
        let mut superblock = sample();
        superblock.engine = vec![1; ENGINE_BYTES_MAX + 1];
        assert!(superblock.encode(&mut [0; COPY_BYTES]).is_err());
    }

    #[test]
    fn the_newest_copy_counts() {
        let copy = |sequence| CopyState::Good(Box::new(Superblock { sequence, ..sample() }));
        let empty = || CopyState::Empty;
        let sequence = |copies: &[CopyState]| newest(copies).map(|it| it.map(|it| it.sequence));
        assert!(matches!(sequence(&[copy(4), copy(4), copy(5), copy(5)]), Ok(Some(5))));
        let torn = [copy(4), copy(4), CopyState::Torn, CopyState::Torn];
        assert!(matches!(sequence(&torn), Ok(Some(4))));
        assert!(matches!(sequence(&[copy(4), copy(4), CopyState::Torn, copy(5)]), Ok(Some(4))));
        let worse = [CopyState::Torn, copy(4), CopyState::Torn, CopyState::Damaged];
        assert!(matches!(sequence(&worse), Ok(Some(4))));
        assert!(matches!(sequence(&[CopyState::Damaged, copy(4), empty(), empty()]), Ok(Some(4))));
        assert!(matches!(sequence(&[empty(), empty(), empty(), empty()]), Ok(None)));
        assert!(sequence(&[CopyState::Damaged, empty(), empty(), empty()]).is_err());
        let foreign = Superblock { incompatible: 1 << 60, ..sample() };
        assert!(sequence(&[CopyState::Good(Box::new(foreign))]).is_err());
    }
}
