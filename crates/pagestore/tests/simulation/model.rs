//! What the world outside the store knows: page images by LSN, and what was acknowledged.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Whether a page number is allocated from some LSN on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocated {
    Yes,
    No,
    /// A tree is being dropped by records whose LSNs the model does not know.
    Perhaps,
}

#[derive(Default)]
pub struct Model {
    /// Everything up to here was durable in some life.
    pub durable: u64,
    /// Checksum of each page by the LSN that gave it.
    pub images: BTreeMap<u64, BTreeMap<u64, u32>>,
    pub allocated: BTreeMap<u64, BTreeMap<u64, Allocated>>,
    /// Pages that fibers may use now, with tree and class.
    pub live: BTreeMap<u64, (u32, u8)>,
    pub operations: u64,
    pub lives: u64,
    /// Whether the creation of the store has got past its first superblock.
    pub is_created: bool,
    trees: u32,
    /// Whether a start passes over corrupt pages, and which ones it met.
    pub tolerates_corrupt: bool,
    pub corrupt: Vec<u64>,
    /// End of the log at the last clean stop.
    pub stopped_at: u64,
    pub counters: pagestore::StoreCounters,
}

pub type SharedModel = Arc<Mutex<Model>>;

pub fn lock(model: &SharedModel) -> MutexGuard<'_, Model> {
    model.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Model {
    /// A tree nobody has used.
    pub fn next_tree(&mut self) -> u32 {
        self.trees += 1;
        99 + self.trees
    }

    /// A record ending at `lsn` gave the page this content.
    pub fn image(&mut self, pid: u64, lsn: u64, page: &[u8]) {
        self.images.entry(pid).or_default().insert(lsn, base::checksum::crc32c(page));
    }

    pub fn set_allocated(&mut self, pid: u64, lsn: u64, allocated: Allocated) {
        self.allocated.entry(pid).or_default().insert(lsn, allocated);
    }

    /// Checksum that the page has now.
    pub fn current(&self, pid: u64) -> Option<u32> {
        self.images.get(&pid)?.values().next_back().copied()
    }

    pub fn is_allocated(&self, pid: u64) -> Allocated {
        let states = self.allocated.get(&pid);
        states.and_then(|states| states.values().next_back().copied()).unwrap_or(Allocated::No)
    }

    /// The log ended here after a crash: what came later never happened.
    pub fn forget_after(&mut self, end: u64) {
        self.images.values_mut().for_each(|images| drop(images.split_off(&(end + 1))));
        self.allocated.values_mut().for_each(|states| drop(states.split_off(&(end + 1))));
    }

    pub fn add_counters(&mut self, counters: pagestore::StoreCounters) {
        let before = self.counters;
        self.counters = pagestore::StoreCounters {
            misses: before.misses + counters.misses,
            flushed_pages: before.flushed_pages + counters.flushed_pages,
            delta_pages: before.delta_pages + counters.delta_pages,
            delta_reads: before.delta_reads + counters.delta_reads,
            delta_hits: before.delta_hits + counters.delta_hits,
            groups: before.groups + counters.groups,
            evictions: before.evictions + counters.evictions,
            rebalanced_chunks: before.rebalanced_chunks + counters.rebalanced_chunks,
            collections: before.collections + counters.collections,
            moved_pages: before.moved_pages + counters.moved_pages,
            segment_reuses: before.segment_reuses + counters.segment_reuses,
            segments_released: before.segments_released + counters.segments_released,
            syncs: before.syncs + counters.syncs,
            torn_groups: before.torn_groups + counters.torn_groups,
            frame_waits: before.frame_waits + counters.frame_waits,
            disk_full_waits: before.disk_full_waits + counters.disk_full_waits,
            read_retries: before.read_retries + counters.read_retries,
            corrupt_pages: before.corrupt_pages + counters.corrupt_pages,
            ..before
        };
    }
}
