//! The buffers of a transaction. They grow once and are reused by every row, and by the
//! transactions that follow.

use base::TrxId;
use btree::{EntryBuffer, LeafHint};
use std::ops::{Deref, DerefMut};
use wal::{RecordBuilder, RecordKind};

/// What the buffers of a transaction that waits for its next use may hold.
const IDLE_BYTES: usize = 2 << 10;

/// Buffers that grow once and are reused by every row.
pub(crate) struct Buffers {
    pub(crate) record: RecordBuilder,
    pub(crate) logical: Vec<u8>,
    pub(crate) entry: EntryBuffer,
    pub(crate) older: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) other_key: Vec<u8>,
    /// The leaf of the last row locked or changed: a change after its read needs no search.
    pub(crate) leaf: LeafHint,
}

/// The buffers of a transaction, taken from the engine's and given back at its end. They move as
/// one pointer.
pub(crate) struct BufferLease(Option<Box<Buffers>>);

impl BufferLease {
    pub(crate) fn new(buffers: Box<Buffers>) -> Self {
        Self(Some(buffers))
    }

    /// The buffers, at the end of the transaction.
    pub(crate) fn end(&mut self) -> Option<Box<Buffers>> {
        self.0.take()
    }
}

impl Deref for BufferLease {
    type Target = Buffers;

    #[inline]
    fn deref(&self) -> &Buffers {
        self.0.as_ref().expect("given back only when the transaction is dropped")
    }
}

impl DerefMut for BufferLease {
    #[inline]
    fn deref_mut(&mut self) -> &mut Buffers {
        self.0.as_mut().expect("given back only when the transaction is dropped")
    }
}

impl Buffers {
    /// Not grown by an exceptionally large row.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        const LIMIT: usize = 64 << 10;
        self.entry.payload.capacity() < LIMIT
            && self.older.capacity() < LIMIT
            && self.logical.capacity() < LIMIT
    }

    pub(crate) fn new() -> Self {
        Self {
            record: RecordBuilder::new(RecordKind::Change, TrxId::ZERO),
            logical: Vec::new(),
            entry: EntryBuffer::new(),
            older: Vec::new(),
            key: Vec::new(),
            other_key: Vec::new(),
            leaf: LeafHint::default(),
        }
    }

    /// Gives large buffers back.
    pub(crate) fn trim(&mut self) {
        for buffer in [&mut self.entry.payload, &mut self.older, &mut self.logical] {
            if buffer.capacity() > IDLE_BYTES {
                *buffer = Vec::new();
            }
        }
        self.record.trim(IDLE_BYTES);
    }
}
