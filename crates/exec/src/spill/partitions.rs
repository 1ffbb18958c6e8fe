//! Records spread over files by a hash of their key, so that equal keys meet in one file.

use super::{Spill, SpillFile, SpillWriter, block_bytes};
use crate::ExecError;
use base::checksum::crc32c;
use base::memory::MemoryAccount;
use std::sync::Arc;

/// Files of one partitioning.
pub const PARTITIONS: usize = 16;
/// Bits of the hash that one level of partitioning takes.
const LEVEL_BITS: u32 = PARTITIONS.trailing_zeros();

/// See the head of the file.
#[derive(Debug)]
pub struct Partitions {
    spill: Arc<Spill>,
    memory: Arc<MemoryAccount>,
    block_bytes: usize,
    level: u32,
    writers: Vec<Option<SpillWriter>>,
}

impl Partitions {
    /// `level` counts how often the records were partitioned before.
    pub fn new(spill: &Arc<Spill>, memory: &Arc<MemoryAccount>, budget: u64, level: u32) -> Self {
        Self {
            spill: spill.clone(),
            memory: memory.clone(),
            block_bytes: block_bytes(budget),
            level,
            writers: (0..PARTITIONS).map(|_| None).collect(),
        }
    }

    /// Which partition a key belongs to.
    pub fn of(&self, key: &[u8]) -> usize {
        // The checksum mixes little when keys differ in few bits.
        let hash = u64::from(crc32c(key)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash.rotate_left((self.level + 1) * LEVEL_BITS) as usize % PARTITIONS
    }

    /// Adds a record to a partition.
    pub fn push_with(
        &mut self,
        partition: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), ExecError> {
        let writer = match &mut self.writers[partition] {
            Some(writer) => writer,
            empty => empty.insert(SpillWriter::new(&self.spill, &self.memory, self.block_bytes)?),
        };
        writer.push_with(write)
    }

    /// How often the records were partitioned before.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// The files, by partition.
    pub fn finish(self) -> Result<Vec<Option<SpillFile>>, ExecError> {
        let files = self.writers.into_iter().map(|writer| match writer {
            Some(writer) => writer.finish(),
            None => Ok(None),
        });
        files.collect()
    }
}
