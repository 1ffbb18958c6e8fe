//! Entries as callers see them.

use std::ops::Range;

/// Entry flag, owned by the tree's user by agreement: the row is deleted, purge will remove it.
/// The tree itself treats marked entries like any other.
pub const DELETED: u8 = 0x01;
/// Entry flag, owned by the tree: the stored payload is a reference to overflow pages. Callers
/// never see it set and must not set it.
pub const OVERFLOW: u8 = 0x02;

/// A leaf entry seen under the leaf's latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef<'a> {
    /// Flags: [`DELETED`] and six bits of the owner.
    pub flags: u8,
    /// The owner's version word; 0 means visible to everybody by convention.
    pub word: u64,
    /// The payload, also when it is stored in overflow pages.
    pub payload: &'a [u8],
}

/// Receives a copied entry; keep one per session, its buffer is reused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryBuffer {
    /// Flags, as in [`EntryRef::flags`].
    pub flags: u8,
    /// Version word.
    pub word: u64,
    /// Payload.
    pub payload: Vec<u8>,
}

impl EntryBuffer {
    /// An empty buffer.
    pub fn new() -> EntryBuffer {
        EntryBuffer::default()
    }

    /// The entry as a reference.
    pub fn as_entry(&self) -> EntryRef<'_> {
        EntryRef { flags: self.flags, word: self.word, payload: &self.payload }
    }
}

/// Where one entry of a [`Batch`] lies in the batch's bytes.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    payload_at: usize,
    end: usize,
    word: u64,
    flags: u8,
}

/// Entries copied out of a leaf, in the order of the cursor. Reuse one batch for a whole scan.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// Entries whose payload bytes are still an overflow reference.
    pub(crate) unresolved: Vec<usize>,
}

/// One entry of a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchEntry<'a> {
    /// Full key.
    pub key: &'a [u8],
    /// Flags, word and payload.
    pub entry: EntryRef<'a>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Forgets the entries, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.unresolved.clear();
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of keys and payloads held.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Entry at `index`, which must be below [`Batch::len`].
    #[inline]
    pub fn get(&self, index: usize) -> BatchEntry<'_> {
        let place = self.places[index];
        BatchEntry {
            key: &self.bytes[place.start..place.payload_at],
            entry: EntryRef {
                flags: place.flags,
                word: place.word,
                payload: &self.bytes[place.payload_at..place.end],
            },
        }
    }

    /// Where in [`Batch::bytes_mut`] the key and the payload of entry `index` lie.
    #[inline]
    pub fn place(&self, index: usize) -> (Range<usize>, Range<usize>) {
        let place = &self.places[index];
        (place.start..place.payload_at, place.payload_at..place.end)
    }

    /// The memory that the entries lie in; who takes it out clears the batch.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = BatchEntry<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Adds an entry; `key` is given in two parts.
    #[inline]
    pub(crate) fn push(&mut self, key: [&[u8]; 2], flags: u8, word: u64, payload: &[u8]) {
        let start = self.bytes.len();
        self.bytes.reserve(key[0].len() + key[1].len() + payload.len());
        self.bytes.extend_from_slice(key[0]);
        self.bytes.extend_from_slice(key[1]);
        let payload_at = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        let end = self.bytes.len();
        if flags & OVERFLOW != 0 {
            self.unresolved.push(self.places.len());
        }
        self.places.push(Place { start, payload_at, end, word, flags: flags & !OVERFLOW });
    }

    /// Replaces the payload of entry `index`, which moves to the end of the bytes.
    pub(crate) fn set_payload(&mut self, index: usize, payload: &[u8]) {
        let place = self.places[index];
        let start = self.bytes.len();
        self.bytes.extend_from_within(place.start..place.payload_at);
        let payload_at = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        let end = self.bytes.len();
        self.places[index] = Place { start, payload_at, end, ..place };
    }

    /// Drops entry `index` and all behind it.
    pub(crate) fn truncate(&mut self, index: usize) {
        self.places.truncate(index);
        self.unresolved.retain(|at| *at < index);
    }
}
