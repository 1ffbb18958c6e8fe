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
    key: (usize, usize),
    payload: (usize, usize),
    word: u64,
    flags: u8,
}

fn range((start, end): (usize, usize)) -> Range<usize> {
    start..end
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
            key: &self.bytes[range(place.key)],
            entry: EntryRef {
                flags: place.flags,
                word: place.word,
                payload: &self.bytes[range(place.payload)],
            },
        }
    }

    /// Where in [`Batch::bytes_mut`] the key and the payload of entry `index` lie.
    #[inline]
    pub fn place(&self, index: usize) -> (Range<usize>, Range<usize>) {
        let place = &self.places[index];
        (range(place.key), range(place.payload))
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
        self.bytes.reserve(key[0].len() + key[1].len() + payload.len());
        let key = self.push_key(key);
        let payload = self.push_bytes(payload);
        self.push_place(key, payload, flags, word);
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> (usize, usize) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        (start, self.bytes.len())
    }

    #[inline]
    fn push_key(&mut self, key: [&[u8]; 2]) -> (usize, usize) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key[0]);
        self.bytes.extend_from_slice(key[1]);
        (start, self.bytes.len())
    }

    #[inline]
    fn push_place(&mut self, key: (usize, usize), payload: (usize, usize), flags: u8, word: u64) {
        if flags & OVERFLOW != 0 {
            self.unresolved.push(self.places.len());
        }
        self.places.push(Place { key, payload, word, flags: flags & !OVERFLOW });
    }

    /// Copies a whole page into the empty batch; [`Batch::push_of_page`] adds its entries.
    pub(crate) fn copy_page(&mut self, page: &[u8], entries: usize) {
        self.bytes.extend_from_slice(page);
        self.places.reserve(entries);
    }

    /// Adds an entry of the page that was copied: of its key only the prefix may lie elsewhere.
    #[inline]
    pub(crate) fn push_of_page(
        &mut self,
        [prefix, suffix]: [(usize, usize); 2],
        (flags, word): (u8, u64),
        payload: (usize, usize),
    ) {
        // What lies outside of the page is nothing, as `page_read::slice` has it.
        let place = |bytes: &[u8], (offset, length): (usize, usize)| {
            let end = offset.saturating_add(length);
            if end <= bytes.len() { (offset, end) } else { (0, 0) }
        };
        let (suffix, payload) = (place(&self.bytes, suffix), place(&self.bytes, payload));
        let key = match prefix.1 {
            0 => suffix,
            _ => {
                let start = self.bytes.len();
                let prefix = place(&self.bytes, prefix);
                self.bytes.extend_from_within(range(prefix));
                self.bytes.extend_from_within(range(suffix));
                (start, self.bytes.len())
            }
        };
        self.push_place(key, payload, flags, word);
    }

    /// Replaces the payload of entry `index`, which moves to the end of the bytes.
    pub(crate) fn set_payload(&mut self, index: usize, payload: &[u8]) {
        let payload = self.push_bytes(payload);
        self.places[index].payload = payload;
    }

    /// Drops entry `index` and all behind it.
    pub(crate) fn truncate(&mut self, index: usize) {
        self.places.truncate(index);
        self.unresolved.retain(|at| *at < index);
    }
}
