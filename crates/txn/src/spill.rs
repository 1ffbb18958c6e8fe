//! Undo beyond the memory budget: chunks in memory behind which stand unnamed files.
//!
//! 1. A region is one file, mapped as a whole. Its space is allocated before it is used, so a
//!    full disk refuses the change that asks for it and nothing else.
//! 2. Nothing here survives the process and nothing needs to: after a crash only the undo of
//!    transactions without an end matters, and the log has it. So nothing is ever synced.
//! 3. A slot is given out again only when the memory of its last user was dropped, which happens
//!    after every worker has passed a scheduling point.
//! 4. The addresses of a slot do not change while it is used; the system may take its memory at
//!    any time and reads it back when it is accessed. Such an access blocks its worker, not only
//!    its fiber: it happens to those who look at what is older than the budget holds.

use runtime::mapping::Mapping;
use runtime::sync::Mutex;
use std::io;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Chunks of a region.
const REGION_CHUNKS: usize = 256;

static SPILLED: base::metrics::Gauge =
    base::metrics::Gauge::new("undo_spilled_bytes", "undo in files, bytes");

/// Where undo goes that the budget has no room for.
#[derive(Debug)]
pub(crate) struct Spill {
    /// None: there is no such place.
    directory: Option<PathBuf>,
    chunk_bytes: usize,
    free: Mutex<Vec<Slot>>,
    free_count: AtomicUsize,
    used_bytes: AtomicU64,
}

#[derive(Debug)]
struct Region {
    mapping: Mapping,
    slots_in_use: AtomicUsize,
}

/// A chunk's place in a region.
#[derive(Debug)]
pub(crate) struct Slot {
    region: Arc<Region>,
    offset: usize,
    bytes: usize,
}

impl Slot {
    /// Where its memory starts.
    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: `offset` lies within the mapping, so the address is not null.
        unsafe { NonNull::new_unchecked(self.region.mapping.as_ptr().add(self.offset)) }
    }

    /// Gives the memory back to the system; the content stays.
    pub(crate) fn let_go(&self) {
        if self.offset.is_multiple_of(4096) {
            self.region.mapping.let_go(self.offset, self.bytes);
        }
    }
}

impl Spill {
    pub(crate) fn new(directory: Option<PathBuf>, chunk_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            directory,
            chunk_bytes,
            free: Mutex::new(Vec::new()),
            free_count: AtomicUsize::new(0),
            used_bytes: AtomicU64::new(0),
        })
    }

    /// Bytes in use.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Slots that can be had without asking the system.
    pub(crate) fn free_count(&self) -> usize {
        self.free_count.load(Ordering::Relaxed)
    }

    fn map(&self, bytes: usize) -> io::Result<Arc<Region>> {
        let Some(directory) = &self.directory else {
            return Err(io::Error::from_raw_os_error(libc_enospc()));
        };
        base::probe!("txn.undo.region_mapped");
        let mapping = Mapping::in_file(directory, bytes)?;
        Ok(Arc::new(Region { mapping, slots_in_use: AtomicUsize::new(0) }))
    }

    /// Makes a region of free slots. Blocks the worker for a moment: call it without a latch.
    pub(crate) fn grow(&self) -> io::Result<()> {
        let region = self.map(self.chunk_bytes * REGION_CHUNKS)?;
        let slot = |number| Slot {
            region: region.clone(),
            offset: number * self.chunk_bytes,
            bytes: self.chunk_bytes,
        };
        let mut free = self.free.lock();
        free.extend((0..REGION_CHUNKS).rev().map(slot));
        self.free_count.store(free.len(), Ordering::Relaxed);
        Ok(())
    }

    /// A slot of one chunk; a new region only if there is none.
    pub(crate) fn take(&self) -> io::Result<Slot> {
        loop {
            let mut free = self.free.lock();
            if let Some(slot) = free.pop() {
                self.free_count.store(free.len(), Ordering::Relaxed);
                slot.region.slots_in_use.fetch_add(1, Ordering::Relaxed);
                self.count(slot.bytes as i64);
                return Ok(slot);
            }
            drop(free);
            self.grow()?;
        }
    }

    /// A slot of its own for a record that no chunk holds.
    pub(crate) fn take_large(&self, bytes: usize) -> io::Result<Slot> {
        let bytes = bytes.next_multiple_of(4096);
        let region = self.map(bytes)?;
        self.count(bytes as i64);
        Ok(Slot { region, offset: 0, bytes })
    }

    fn count(&self, bytes: i64) {
        self.used_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        SPILLED.set(self.used_bytes() as i64);
    }

    /// Takes a slot back. Regions without users go, except for one.
    pub(crate) fn give_back(&self, slot: Slot) {
        self.count(-(slot.bytes as i64));
        if slot.bytes != self.chunk_bytes {
            return;
        }
        slot.let_go();
        let region = slot.region.clone();
        let mut gone = Vec::new();
        let mut free = self.free.lock();
        free.push(slot);
        let is_unused = region.slots_in_use.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_unused && free.len() > REGION_CHUNKS {
            gone = free.extract_if(.., |other| Arc::ptr_eq(&other.region, &region)).collect();
        }
        self.free_count.store(free.len(), Ordering::Relaxed);
        drop(free);
        // Unmapping takes its time: not under the lock.
        drop(gone);
    }
}

/// "No space left on device", for systems without a place to spill to.
const fn libc_enospc() -> i32 {
    28
}
