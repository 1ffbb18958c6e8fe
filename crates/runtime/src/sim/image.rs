//! The content of one simulated file: what reads see, what is durable, and every version of every
//! sector in between.
//!
//! Invariants:
//! 1. `current` is what a read returns. `durable` is what certainly survives a power failure.
//! 2. `unsynced` has, for each sector written since its last covering sync, the versions in order
//!    of their sequence numbers. A power failure leaves the durable content or any of the
//!    versions, for each sector on its own.
//! 3. A sync covers the writes to its range that had ended when it began, no others. When it ends,
//!    the newest covered version of each sector is durable and older versions are gone.

use base::{Random, Survival};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// What a device writes at once.
pub(crate) use crate::file::SECTOR_BYTES;

const CHUNK_BYTES: usize = 4096;
const SECTORS_PER_CHUNK: u64 = (CHUNK_BYTES / SECTOR_BYTES) as u64;

type Sector = [u8; SECTOR_BYTES];
type Chunk = [u8; CHUNK_BYTES];

/// A sparse array of bytes; what was never written is zero.
#[derive(Clone, Default)]
pub(crate) struct Image {
    chunks: BTreeMap<u64, Arc<Chunk>>,
}

impl Image {
    fn read(&self, offset: u64, buffer: &mut [u8]) {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let within = (at % CHUNK_BYTES as u64) as usize;
            let length = (CHUNK_BYTES - within).min(buffer.len() - done);
            let part = &mut buffer[done..done + length];
            match self.chunks.get(&(at / CHUNK_BYTES as u64)) {
                Some(chunk) => part.copy_from_slice(&chunk[within..within + length]),
                None => part.fill(0),
            }
            done += length;
        }
    }

    fn sector(&self, sector: u64) -> Sector {
        let mut content = [0; SECTOR_BYTES];
        self.read(sector * SECTOR_BYTES as u64, &mut content);
        content
    }

    fn set_sector(&mut self, sector: u64, content: Option<&Sector>) {
        let key = sector / SECTORS_PER_CHUNK;
        if content.is_none() && !self.chunks.contains_key(&key) {
            return;
        }
        let chunk = self.chunks.entry(key).or_insert_with(zero_chunk);
        let within = (sector % SECTORS_PER_CHUNK) as usize * SECTOR_BYTES;
        let place = &mut Arc::make_mut(chunk)[within..within + SECTOR_BYTES];
        match content {
            Some(content) => place.copy_from_slice(content),
            None => place.fill(0),
        }
    }

    fn allocated_bytes(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK_BYTES as u64
    }
}

fn zero_chunk() -> Arc<Chunk> {
    static ZERO: std::sync::LazyLock<Arc<Chunk>> =
        std::sync::LazyLock::new(|| Arc::new([0; CHUNK_BYTES]));
    ZERO.clone()
}

#[derive(Clone)]
struct Version {
    sequence: u64,
    /// `None`: zeroes (truncated or punched).
    content: Option<Arc<Sector>>,
}

#[derive(Clone, Copy)]
struct LengthVersion {
    sequence: u64,
    length: u64,
}

/// What a sync that has begun covers.
pub(crate) struct SyncCover {
    sectors: RangeInclusive<u64>,
    up_to: u64,
    in_flight: BTreeSet<u64>,
}

impl SyncCover {
    fn covers(&self, sequence: u64) -> bool {
        sequence <= self.up_to && !self.in_flight.contains(&sequence)
    }
}

/// See the head of the file.
#[derive(Clone, Default)]
pub(crate) struct FileImage {
    current: Image,
    length: u64,
    durable: Image,
    durable_length: u64,
    unsynced: BTreeMap<u64, Vec<Version>>,
    unsynced_lengths: Vec<LengthVersion>,
    /// Former contents of overwritten sectors, kept only when stale reads are wanted.
    former: BTreeMap<u64, Arc<Sector>>,
    in_flight: BTreeSet<u64>,
    sequence: u64,
}

/// What a power failure did to one file.
#[derive(Default)]
pub(crate) struct CrashOutcome {
    pub(crate) kept: u64,
    pub(crate) dropped: u64,
    /// Writes of several sectors of which some were kept and some dropped.
    pub(crate) torn_writes: u64,
}

impl FileImage {
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.current.allocated_bytes()
    }

    pub(crate) fn unsynced_sectors(&self) -> u64 {
        self.unsynced.len() as u64
    }

    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) {
        self.current.read(offset, buffer);
    }

    /// As `read`, but sectors that have a former content show that.
    pub(crate) fn read_stale(&self, offset: u64, buffer: &mut [u8]) -> bool {
        self.current.read(offset, buffer);
        let mut is_stale = false;
        for (sector, within, part) in sector_parts(offset, buffer.len()) {
            if let Some(former) = self.former.get(&sector) {
                is_stale |= buffer[part.clone()] != former[within.clone()];
                buffer[part].copy_from_slice(&former[within]);
            }
        }
        is_stale
    }

    /// Bytes of new chunks that a write would allocate.
    pub(crate) fn growth_bytes(&self, offset: u64, length: usize) -> u64 {
        if length == 0 {
            return 0;
        }
        let chunk = CHUNK_BYTES as u64;
        let touched = offset / chunk..=(offset + length as u64 - 1) / chunk;
        let missing = touched.filter(|key| !self.current.chunks.contains_key(key)).count();
        missing as u64 * chunk
    }

    /// Begins a write: reads see it from now on, a sync begun before `end_write` does not cover it.
    pub(crate) fn begin_write(&mut self, offset: u64, bytes: &[u8], keep_former: bool) -> u64 {
        self.sequence += 1;
        let sequence = self.sequence;
        for (sector, within, part) in sector_parts(offset, bytes.len()) {
            let mut content = self.current.sector(sector);
            if keep_former {
                self.former.insert(sector, Arc::new(content));
            }
            content[within].copy_from_slice(&bytes[part]);
            self.set_version(sector, sequence, Some(Arc::new(content)));
        }
        if offset + bytes.len() as u64 > self.length {
            self.set_length_version(offset + bytes.len() as u64, sequence);
        }
        self.in_flight.insert(sequence);
        sequence
    }

    pub(crate) fn end_write(&mut self, sequence: u64) {
        self.in_flight.remove(&sequence);
    }

    fn set_version(&mut self, sector: u64, sequence: u64, content: Option<Arc<Sector>>) {
        self.current.set_sector(sector, content.as_deref());
        self.unsynced.entry(sector).or_default().push(Version { sequence, content });
    }

    fn set_length_version(&mut self, length: u64, sequence: u64) {
        self.length = length;
        self.unsynced_lengths.push(LengthVersion { sequence, length });
    }

    /// Makes a range of whole chunks zero and frees them; the edges are written as zeroes.
    pub(crate) fn punch(&mut self, offset: u64, length: u64) {
        self.sequence += 1;
        let end = (offset + length).min(self.length);
        if end > offset {
            self.zero_range(offset, end, self.sequence);
        }
    }

    fn zero_range(&mut self, start: u64, end: u64, sequence: u64) {
        let chunk = CHUNK_BYTES as u64;
        let chunks: Vec<u64> = {
            let touched = start / chunk..=(end - 1) / chunk;
            self.current.chunks.range(touched).map(|(&key, _)| key).collect()
        };
        for key in chunks {
            let (from, to) = (start.max(key * chunk), end.min((key + 1) * chunk));
            for (sector, within, _) in sector_parts(from, (to - from) as usize) {
                let whole = within.len() == SECTOR_BYTES;
                let mut content = self.current.sector(sector);
                content[within].fill(0);
                self.set_version(sector, sequence, (!whole).then(|| Arc::new(content)));
            }
            if to - from == chunk {
                self.current.chunks.remove(&key);
            }
        }
    }

    /// Allocates zeroed space and extends the file over it; what is there stays.
    pub(crate) fn allocate(&mut self, offset: u64, length: u64) {
        self.sequence += 1;
        let chunk = CHUNK_BYTES as u64;
        for key in offset / chunk..(offset + length).div_ceil(chunk) {
            self.current.chunks.entry(key).or_insert_with(zero_chunk);
            self.durable.chunks.entry(key).or_insert_with(zero_chunk);
        }
        if offset + length > self.length {
            self.set_length_version(offset + length, self.sequence);
        }
    }

    pub(crate) fn set_length(&mut self, length: u64) {
        self.sequence += 1;
        if length < self.length {
            self.zero_range(length, self.length, self.sequence);
        }
        self.set_length_version(length, self.sequence);
    }

    /// A sync of these bytes begins (invariant 3).
    pub(crate) fn begin_sync(&self, range: Range<u64>) -> SyncCover {
        let sector = |byte| byte / SECTOR_BYTES as u64;
        let sectors = sector(range.start)..=sector(range.end.saturating_sub(1));
        SyncCover { sectors, up_to: self.sequence, in_flight: self.in_flight.clone() }
    }

    /// A sync ends well.
    pub(crate) fn end_sync(&mut self, cover: &SyncCover) {
        self.finish(cover, &mut |_| true);
    }

    /// A sync fails: what it covered is durable or lost, and no later sync will cover it, as on
    /// kernels that mark pages clean after a failed write-back.
    pub(crate) fn fail_sync(&mut self, cover: &SyncCover, random: &mut Random) {
        self.finish(cover, &mut |_| random.one_in(2));
    }

    fn finish(&mut self, cover: &SyncCover, keeps: &mut dyn FnMut(u64) -> bool) {
        let (durable, current) = (&mut self.durable, &self.current);
        let mut settled_chunk = None;
        self.unsynced.retain(|&sector, versions| {
            if !cover.sectors.contains(&sector) {
                return true;
            }
            let Some(newest) = versions.iter().rposition(|it| cover.covers(it.sequence)) else {
                return true;
            };
            if keeps(sector) {
                durable.set_sector(sector, versions[newest].content.as_deref());
            }
            versions.drain(..=newest);
            settled_chunk = Some(sector / SECTORS_PER_CHUNK).filter(|_| versions.is_empty());
            share_equal_chunk(durable, current, settled_chunk);
            !versions.is_empty()
        });
        let lengths = &mut self.unsynced_lengths;
        if let Some(newest) = lengths.iter().rposition(|it| cover.covers(it.sequence)) {
            self.durable_length = lengths[newest].length;
            lengths.drain(..=newest);
        }
    }

    /// The power fails; what is left becomes both current and durable.
    pub(crate) fn power_failure(&mut self, random: &mut Random) -> CrashOutcome {
        let survival = match random.below(5) {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            2 => Survival::Until(random.below(self.sequence + 1)),
            _ => Survival::Each(random.fraction()),
        };
        let mut outcome = CrashOutcome::default();
        let mut fates: BTreeMap<u64, (bool, bool)> = BTreeMap::new();
        for (&sector, versions) in &self.unsynced {
            let choice = survival.choose(versions, |it| it.sequence, random);
            match choice {
                Some(place) => {
                    self.durable.set_sector(sector, versions[place].content.as_deref());
                    outcome.kept += 1;
                }
                None => outcome.dropped += 1,
            }
            for (place, version) in versions.iter().enumerate() {
                let fate = fates.entry(version.sequence).or_default();
                match choice {
                    Some(chosen) if chosen == place => fate.0 = true,
                    _ => fate.1 = true,
                }
            }
        }
        outcome.torn_writes = fates.values().filter(|fate| fate.0 && fate.1).count() as u64;
        let lengths = &self.unsynced_lengths;
        let chosen = match survival {
            Survival::Nothing => None,
            Survival::Everything => lengths.last(),
            Survival::Until(limit) => lengths.iter().rfind(|it| it.sequence <= limit),
            Survival::Each(_) => lengths.get(random.index(lengths.len() + 1)),
        };
        self.durable_length = chosen.map_or(self.durable_length, |it| it.length);
        self.drop_beyond_durable_length();
        self.restart_from_durable();
        outcome
    }

    /// The process dies but the computer lives: writes that had ended stay in the cache, those in
    /// flight were done in part.
    pub(crate) fn process_death(&mut self, random: &mut Random) {
        let in_flight = std::mem::take(&mut self.in_flight);
        let (current, durable) = (&mut self.current, &self.durable);
        self.unsynced.retain(|&sector, versions| {
            let before = versions.len();
            versions.retain(|it| !in_flight.contains(&it.sequence) || random.one_in(2));
            if versions.len() != before {
                match versions.last() {
                    Some(last) => current.set_sector(sector, last.content.as_deref()),
                    None => current.set_sector(sector, Some(&durable.sector(sector))),
                }
            }
            !versions.is_empty()
        });
    }

    /// Flips one bit for good, wherever the byte is kept; a fault of the medium.
    pub(crate) fn flip_bit(&mut self, offset: u64, bit: u8) {
        let (sector, within) = (offset / SECTOR_BYTES as u64, offset as usize % SECTOR_BYTES);
        for image in [&mut self.current, &mut self.durable] {
            let mut content = image.sector(sector);
            content[within] ^= 1 << (bit % 8);
            image.set_sector(sector, Some(&content));
        }
        for version in self.unsynced.get_mut(&sector).into_iter().flatten() {
            if let Some(content) = &mut version.content {
                Arc::make_mut(content)[within] ^= 1 << (bit % 8);
            }
        }
    }

    fn drop_beyond_durable_length(&mut self) {
        let chunk = CHUNK_BYTES as u64;
        let length = self.durable_length;
        self.durable.chunks.retain(|&key, _| key * chunk < length);
        let last = length / chunk;
        if let Some(content) = self.durable.chunks.get_mut(&last) {
            Arc::make_mut(content)[(length % chunk) as usize..].fill(0);
        }
    }

    fn restart_from_durable(&mut self) {
        self.current = self.durable.clone();
        self.length = self.durable_length;
        self.unsynced.clear();
        self.unsynced_lengths.clear();
        self.former.clear();
        self.in_flight.clear();
    }
}

/// Lets both images share a chunk that is equal in them again, to save memory.
fn share_equal_chunk(durable: &mut Image, current: &Image, key: Option<u64>) {
    let Some(key) = key else { return };
    let is_punched = !current.chunks.contains_key(&key);
    if is_punched && durable.chunks.get(&key).is_some_and(|chunk| **chunk == [0; CHUNK_BYTES]) {
        durable.chunks.remove(&key);
    }
    if let (Some(kept), Some(seen)) = (durable.chunks.get_mut(&key), current.chunks.get(&key))
        && !Arc::ptr_eq(kept, seen)
        && kept == seen
    {
        *kept = seen.clone();
    }
}

/// The sectors of a byte range: number, range within the sector, range within the bytes.
fn sector_parts(
    offset: u64,
    length: usize,
) -> impl Iterator<Item = (u64, std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= length {
            return None;
        }
        let at = offset + done as u64;
        let within = (at % SECTOR_BYTES as u64) as usize;
        let part = (SECTOR_BYTES - within).min(length - done);
        let item = (at / SECTOR_BYTES as u64, within..within + part, done..done + part);
        done += part;
        Some(item)
    })
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
