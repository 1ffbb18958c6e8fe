//! Memory of undo arenas: from the heap within the budget, from files beyond it.

use crate::spill::{Slot, Spill};
use base::MemoryAccount;
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// There is neither memory nor disk space for more undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the undo of open transactions and of those that open snapshots still see has used up its \
     {limit_bytes} bytes of memory, and the temporary directory takes no more: {}; end long \
     transactions or make room there",
    std::io::Error::from_raw_os_error(*.errno)
)]
pub struct UndoFull {
    /// The memory budget in bytes.
    pub limit_bytes: u64,
    /// What the system said when asked for a file.
    pub errno: i32,
}

/// Memory of a chunk.
pub(crate) struct ChunkMemory {
    pub(crate) start: NonNull<u8>,
    pub(crate) bytes: usize,
    backing: Backing,
}

enum Backing {
    /// Charged to the account while it lives.
    Heap(Arc<MemoryAccount>),
    /// Taken out when it is given back.
    File(Arc<Spill>, Option<Slot>),
}

// SAFETY: the memory is plain bytes owned by this value; access is governed by invariants 2, 4.
unsafe impl Send for ChunkMemory {}
// SAFETY: as above; concurrent readers only read what no longer changes, or atomics.
unsafe impl Sync for ChunkMemory {}

impl ChunkMemory {
    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes.max(64), 64).expect("chunk sizes are far below isize::MAX")
    }

    /// Memory of any content for `bytes`: of the heap if the account allows.
    pub(crate) fn new(
        bytes: usize,
        is_large: bool,
        account: &Arc<MemoryAccount>,
        spill: &Arc<Spill>,
    ) -> Result<Self, UndoFull> {
        if account.charge(bytes as u64).is_ok() {
            // SAFETY: the layout has a non-zero size.
            if let Some(start) = NonNull::new(unsafe { alloc(Self::layout(bytes)) }) {
                return Ok(Self { start, bytes, backing: Backing::Heap(account.clone()) });
            }
            account.release(bytes as u64);
        }
        let slot = if is_large { spill.take_large(bytes) } else { spill.take() };
        let slot = slot.map_err(|error| refused(account, &error))?;
        let start = slot.start();
        Ok(Self { start, bytes, backing: Backing::File(spill.clone(), Some(slot)) })
    }

    /// Whether it is memory of the heap, which is worth keeping for the next chunk.
    pub(crate) fn is_heap(&self) -> bool {
        matches!(self.backing, Backing::Heap(_))
    }

    /// Gives the memory behind a file back to the system; the content stays. False for the heap.
    pub(crate) fn let_go(&self) -> bool {
        match &self.backing {
            Backing::File(_, Some(slot)) => {
                slot.let_go();
                true
            }
            Backing::File(_, None) | Backing::Heap(_) => false,
        }
    }
}

/// The error of a refused file.
pub(crate) fn refused(account: &MemoryAccount, error: &std::io::Error) -> UndoFull {
    UndoFull { limit_bytes: account.limit_bytes(), errno: error.raw_os_error().unwrap_or(0) }
}

impl Drop for ChunkMemory {
    fn drop(&mut self) {
        match &mut self.backing {
            Backing::Heap(account) => {
                account.release(self.bytes as u64);
                // SAFETY: allocated in `new` with this layout and not freed since.
                unsafe { dealloc(self.start.as_ptr(), Self::layout(self.bytes)) };
            }
            Backing::File(spill, slot) => {
                if let Some(slot) = slot.take() {
                    spill.give_back(slot);
                }
            }
        }
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
