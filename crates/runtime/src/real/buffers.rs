//! Buffers that the kernel picks from when bytes arrive: they come with the completion of the
//! receive, without a system call, and a connection that waits owns none.
//!
//! Invariants:
//! 1. A buffer is the kernel's from when it was given until a completion names it, then ours
//!    until it is given again.
//! 2. The memory is freed after the ring that knows of it, and not while a receive is in flight.

use crate::file::AlignedBuf;
use io_uring::IoUring;
use io_uring::types::BufRingEntry;
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

/// Buffers of one worker; a power of two.
const COUNT: u16 = 256;
/// Bytes of one; longer messages are read on by a system call.
pub(crate) const BUFFER_BYTES: usize = 2048;
/// Bytes of the table that the kernel reads, in front of the buffers.
const TABLE_BYTES: usize = COUNT as usize * size_of::<BufRingEntry>();
/// The number by which receives name these buffers.
pub(crate) const GROUP: u16 = 0;

/// See the head of the file.
pub(crate) struct ReceiveBuffers {
    /// Start of the memory; written through by the kernel, so never borrowed as a whole.
    base: *mut u8,
    tail: Cell<u16>,
    _memory: AlignedBuf,
}

impl ReceiveBuffers {
    /// Makes buffers and gives them to the kernel; an error if it does not know of such.
    pub(crate) fn new(ring: &IoUring) -> io::Result<Self> {
        let mut memory = AlignedBuf::zeroed(TABLE_BYTES + usize::from(COUNT) * BUFFER_BYTES);
        let base = memory.as_mut_ptr();
        // SAFETY: invariant 2; the table is aligned to pages and zeroed.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(base as u64, COUNT, GROUP, 0)?;
        }
        let this = Self { base, tail: Cell::new(0), _memory: memory };
        (0..COUNT).for_each(|number| this.give(number));
        Ok(this)
    }

    fn address(&self, number: u16) -> *mut u8 {
        assert!(number < COUNT, "the kernel names a buffer that it was given");
        // SAFETY: within the memory.
        unsafe { self.base.add(TABLE_BYTES + usize::from(number) * BUFFER_BYTES) }
    }

    /// Gives a buffer to the kernel, again or for the first time.
    pub(crate) fn give(&self, number: u16) {
        let tail = self.tail.get();
        let table: *mut BufRingEntry = self.base.cast();
        // SAFETY: the entry is within the table, and the kernel reads it only after the store of
        // the tail, which lies in a part of the first entry that nothing else here touches.
        unsafe {
            let entry = &mut *table.add(usize::from(tail & (COUNT - 1)));
            entry.set_addr(self.address(number) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(number);
            self.tail.set(tail.wrapping_add(1));
            let place = BufRingEntry::tail(table).cast_mut();
            AtomicU16::from_ptr(place).store(self.tail.get(), Ordering::Release);
        }
    }

    /// What a completed receive put into a buffer.
    pub(crate) fn bytes(&self, number: u16, length: usize) -> &[u8] {
        // SAFETY: invariant 1: the buffer is ours and nobody writes into it.
        unsafe { std::slice::from_raw_parts(self.address(number), length.min(BUFFER_BYTES)) }
    }
}
