//! Memory of undo arenas.

use base::MemoryAccount;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The undo memory budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("undo memory of {limit_bytes} bytes is used up")]
pub struct UndoFull {
    /// The budget in bytes.
    pub limit_bytes: u64,
}

/// Memory of a chunk, charged to the undo account while it lives.
pub(crate) struct ChunkMemory {
    pub(crate) start: NonNull<u8>,
    pub(crate) bytes: usize,
    account: Arc<MemoryAccount>,
}

// SAFETY: the memory is plain bytes owned by this value; access is governed by invariants 2, 4.
unsafe impl Send for ChunkMemory {}
// SAFETY: as above; concurrent readers only read what no longer changes, or atomics.
unsafe impl Sync for ChunkMemory {}

impl ChunkMemory {
    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes.max(64), 64).expect("chunk sizes are far below isize::MAX")
    }

    pub(crate) fn new(bytes: usize, account: &Arc<MemoryAccount>) -> Result<Self, UndoFull> {
        account
            .charge(bytes as u64)
            .map_err(|refusal| UndoFull { limit_bytes: refusal.limit_bytes })?;
        // SAFETY: the layout has a non-zero size.
        let start = NonNull::new(unsafe { alloc_zeroed(Self::layout(bytes)) });
        let Some(start) = start else {
            account.release(bytes as u64);
            return Err(UndoFull { limit_bytes: account.limit_bytes() });
        };
        Ok(Self { start, bytes, account: account.clone() })
    }
}

impl Drop for ChunkMemory {
    fn drop(&mut self) {
        self.account.release(self.bytes as u64);
        // SAFETY: allocated in `new` with this layout and not freed since.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.bytes)) };
    }
}

/// A unit of undo memory; see the invariants of [`crate::undo`].
pub(crate) struct Chunk {
    /// Offset of its first byte, in chunks.
    pub(crate) number: u64,
    pub(crate) memory: ChunkMemory,
    /// Transactions with records here that have not ended (or wait to be purged).
    pub(crate) users: AtomicU32,
    /// Highest timestamp at which one of them ended.
    pub(crate) released_at: AtomicU64,
}
