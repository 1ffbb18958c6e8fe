//! Keys of which each can be told at once whether it came before, however many there are: for
//! what does not fit into a budget and cannot wait until all has come (`partitions.rs`).
//!
//! 1. Keys lie one behind the other in a file; those that came last are still in memory.
//! 2. A table in another file says where a key may lie. A slot is the key's hash and one more than
//!    its place in the first file, 0 if it is free. A key is in the first slot behind that of its
//!    hash, round the end, that is its own, and in none behind a free one.
//! 3. At most half of the slots are taken; then a table of double size is made. The slot of a hash
//!    is its highest bits, so both tables are gone through in their order.
//! 4. Pages of the table are kept in memory as far as the budget goes; a page that was never
//!    written is free slots.
//! 5. A page, or a key, that is not what was written is an error of the statement.

use super::file::{damaged, failed, open, refused};
use super::{Charged, Spill};
use crate::ExecError;
use base::checksum::crc32c;
use base::memory::MemoryAccount;
use hashbrown::DefaultHashBuilder;
use runtime::file::File;
use std::hash::BuildHasher;
use std::sync::Arc;

const PAGE_BYTES: usize = 4096;
const SLOT_BYTES: usize = 16;
const PAGE_SLOTS: u64 = (PAGE_BYTES / SLOT_BYTES) as u64;
/// Keys that lie in memory until they are written, bytes.
const TAIL_BYTES: usize = 16 << 10;

/// A page in memory.
struct Frame {
    /// Its number; none if the frame is unused.
    page: Option<u64>,
    is_dirty: bool,
    bytes: Box<[u8; PAGE_BYTES]>,
}

/// The table of point 2.
struct Slots {
    file: File,
    spill: Arc<Spill>,
    /// The number of slots is two to the power of it.
    bits: u32,
    frames: Vec<Frame>,
    /// Checksums of pages that were written.
    checksums: Vec<Option<u32>>,
    _charged: Charged,
}

impl Slots {
    fn new(
        spill: &Arc<Spill>,
        memory: &Arc<MemoryAccount>,
        bits: u32,
        most_bytes: u64,
    ) -> Result<Self, ExecError> {
        let pages = 1u64 << (bits - PAGE_SLOTS.trailing_zeros());
        let frames = (most_bytes / PAGE_BYTES as u64).clamp(4, pages.max(4));
        let mut charged = Charged::none(memory);
        if !charged.add(frames as usize * (PAGE_BYTES + size_of::<Frame>())) {
            return Err(refused());
        }
        let frame = || Frame { page: None, is_dirty: false, bytes: Box::new([0; PAGE_BYTES]) };
        Ok(Self {
            file: open(spill)?,
            spill: spill.clone(),
            bits,
            frames: (0..frames).map(|_| frame()).collect(),
            checksums: vec![None; pages as usize],
            _charged: charged,
        })
    }

    fn count(&self) -> u64 {
        1 << self.bits
    }

    fn slot_of(&self, hash: u64) -> u64 {
        hash >> (64 - self.bits)
    }

    /// The frame of a page, with the page in it.
    fn frame(&mut self, page: u64) -> Result<&mut Frame, ExecError> {
        let number = (page % self.frames.len() as u64) as usize;
        if self.frames[number].page != Some(page) {
            self.load(number, page)?;
        }
        Ok(&mut self.frames[number])
    }

    fn load(&mut self, number: usize, page: u64) -> Result<(), ExecError> {
        runtime::yield_if_due();
        let frame = &mut self.frames[number];
        if let Some(old) = frame.page.filter(|_| frame.is_dirty) {
            let written = self.file.write_at(&frame.bytes[..], old * PAGE_BYTES as u64);
            written.map_err(|error| failed(&self.spill, &error))?;
            self.checksums[old as usize] = Some(crc32c(&frame.bytes[..]));
        }
        (frame.page, frame.is_dirty) = (None, false);
        match self.checksums[page as usize] {
            None => frame.bytes.fill(0),
            Some(checksum) => {
                let read = self.file.read_at(&mut frame.bytes[..], page * PAGE_BYTES as u64);
                read.map_err(|error| failed(&self.spill, &error))?;
                if crc32c(&frame.bytes[..]) != checksum {
                    return Err(damaged(&self.spill, page as usize));
                }
            }
        }
        frame.page = Some(page);
        Ok(())
    }

    /// Hash and place in a slot.
    fn slot(&mut self, slot: u64) -> Result<(u64, u64), ExecError> {
        let at = (slot % PAGE_SLOTS) as usize * SLOT_BYTES;
        let bytes = &self.frame(slot / PAGE_SLOTS)?.bytes;
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(number)
        };
        Ok((number(at), number(at + 8)))
    }

    fn set(&mut self, slot: u64, hash: u64, place: u64) -> Result<(), ExecError> {
        let at = (slot % PAGE_SLOTS) as usize * SLOT_BYTES;
        let frame = self.frame(slot / PAGE_SLOTS)?;
        frame.is_dirty = true;
        frame.bytes[at..at + 8].copy_from_slice(&hash.to_le_bytes());
        frame.bytes[at + 8..at + 16].copy_from_slice(&place.to_le_bytes());
        Ok(())
    }

    /// The free slot for a hash that is not there.
    fn free_slot(&mut self, hash: u64) -> Result<u64, ExecError> {
        let mut slot = self.slot_of(hash);
        while self.slot(slot)?.1 != 0 {
            slot = (slot + 1) % self.count();
        }
        Ok(slot)
    }
}

/// See the head of the file.
pub struct KeyTable {
    slots: Slots,
    keys: File,
    /// Bytes of keys in the file; those behind are in `tail`.
    written: u64,
    tail: Vec<u8>,
    /// For a key that is compared.
    found: Vec<u8>,
    count: u64,
    hasher: DefaultHashBuilder,
    spill: Arc<Spill>,
    memory: Arc<MemoryAccount>,
    /// For pages, bytes.
    most_bytes: u64,
    _charged: Charged,
}

/// Slots of the first table, as a power of two.
const FIRST_BITS: u32 = 14;

impl KeyTable {
    /// Without keys; `budget` is what it may take of memory.
    pub fn new(
        spill: &Arc<Spill>,
        memory: &Arc<MemoryAccount>,
        budget: u64,
    ) -> Result<Self, ExecError> {
        let mut charged = Charged::none(memory);
        if !charged.add(2 * TAIL_BYTES) {
            return Err(refused());
        }
        // While a table is made anew there are two.
        let most_bytes = budget.saturating_sub(2 * TAIL_BYTES as u64) / 2;
        spill.count_disk_table();
        Ok(Self {
            slots: Slots::new(spill, memory, FIRST_BITS, most_bytes)?,
            keys: open(spill)?,
            written: 0,
            tail: Vec::new(),
            found: Vec::new(),
            count: 0,
            hasher: DefaultHashBuilder::default(),
            spill: spill.clone(),
            memory: memory.clone(),
            most_bytes,
            _charged: charged,
        })
    }

    /// Whether a key came before.
    pub fn contains(&mut self, key: &[u8]) -> Result<bool, ExecError> {
        Ok(self.find(self.hasher.hash_one(key), key)?.is_none())
    }

    /// Adds a key; whether it did not come before.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, ExecError> {
        let hash = self.hasher.hash_one(key);
        let Some(mut slot) = self.find(hash, key)? else { return Ok(false) };
        if 2 * (self.count + 1) > self.slots.count() {
            self.double()?;
            slot = self.slots.free_slot(hash)?;
        }
        let place = self.written + self.tail.len() as u64;
        self.tail.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.tail.extend_from_slice(key);
        if self.tail.len() >= TAIL_BYTES {
            let written = self.keys.write_at(&self.tail, self.written);
            written.map_err(|error| failed(&self.spill, &error))?;
            self.written += self.tail.len() as u64;
            self.tail.clear();
            self.tail.shrink_to(2 * TAIL_BYTES);
        }
        self.slots.set(slot, hash, place + 1)?;
        self.count += 1;
        Ok(true)
    }

    /// The slot where a key would be put; none if it is there.
    fn find(&mut self, hash: u64, key: &[u8]) -> Result<Option<u64>, ExecError> {
        let mut slot = self.slots.slot_of(hash);
        loop {
            let (known, place) = self.slots.slot(slot)?;
            let Some(place) = place.checked_sub(1) else { return Ok(Some(slot)) };
            if known == hash && self.is_at(place, key, hash)? {
                return Ok(None);
            }
            slot = (slot + 1) % self.slots.count();
        }
    }

    /// Whether the key at a place, which has this hash, is `key`.
    fn is_at(&mut self, place: u64, key: &[u8], hash: u64) -> Result<bool, ExecError> {
        if let Some(at) = place.checked_sub(self.written) {
            let rest = &self.tail[at as usize..];
            return Ok(length_of(rest) == key.len() && rest[4..].starts_with(key));
        }
        self.found.clear();
        self.found.resize(4 + key.len(), 0);
        let room = (self.written - place).min(self.found.len() as u64) as usize;
        let read = self.keys.read_at(&mut self.found[..room], place);
        read.map_err(|error| failed(&self.spill, &error))?;
        if length_of(&self.found) == key.len() {
            if &self.found[4..] == key {
                return Ok(true);
            }
            if self.hasher.hash_one(&self.found[4..]) != hash {
                return Err(damaged(&self.spill, (place / PAGE_BYTES as u64) as usize));
            }
        }
        Ok(false)
    }

    /// Makes the table of double size.
    fn double(&mut self) -> Result<(), ExecError> {
        let bits = self.slots.bits + 1;
        let mut doubled = Slots::new(&self.spill, &self.memory, bits, self.most_bytes)?;
        for slot in 0..self.slots.count() {
            let (hash, place) = self.slots.slot(slot)?;
            if place != 0 {
                let free = doubled.free_slot(hash)?;
                doubled.set(free, hash, place)?;
            }
        }
        self.slots = doubled;
        Ok(())
    }
}

fn length_of(bytes: &[u8]) -> usize {
    bytes.first_chunk::<4>().map_or(usize::MAX, |length| u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::Budgets;
    use runtime::sim::{SimConfig, Simulation};

    #[test]
    fn keys_are_known_in_memory_and_in_files() {
        let test = || {
            let directory = Arc::from(std::path::Path::new("/data/tmp"));
            let spill = Spill::new(directory, Budgets::UNLIMITED);
            let memory = MemoryAccount::new(256 << 10);
            let mut table = KeyTable::new(&spill, &memory, 200 << 10).expect("room");
            let key = |number: u32| {
                let mut key = number.to_be_bytes().to_vec();
                key.extend(std::iter::repeat_n(7, number as usize % 60));
                key
            };
            for round in 0..2 {
                for number in 0..40_000 {
                    assert_eq!(table.contains(&key(number)).expect("read"), round == 1);
                    assert_eq!(table.insert(&key(number)).expect("written"), round == 0);
                }
            }
            assert!(!table.contains(&key(40_000)).expect("read"));
            assert!(!table.contains(b"").expect("read"));
            assert!(table.insert(b"").expect("written") && table.contains(b"").expect("read"));
            assert!(memory.high_water_bytes() <= 256 << 10);
            drop(table);
            assert_eq!(memory.used_bytes(), 0);
        };
        Simulation::new(SimConfig::new(1)).run(test).expect("the simulation ends by itself");
    }
}
