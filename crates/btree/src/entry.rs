//! Entries as callers see them.

use crate::node;
use crate::overflow::Reference;
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

/// Bytes of a key whose prefix and suffix are a word each at most.
const SHORT_KEY_BYTES: usize = 16;

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
    #[inline]
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

    /// Flags and word of entry `index`.
    #[inline]
    pub fn state(&self, index: usize) -> (u8, u64) {
        let place = &self.places[index];
        (place.flags, place.word)
    }

    /// Payload of entry `index`.
    #[inline]
    pub fn payload(&self, index: usize) -> &[u8] {
        &self.bytes[range(self.places[index].payload)]
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

    /// Copies a whole leaf into the empty batch and adds the entries of these slots, at least one,
    /// until their overflow values are `max_bytes`. Of keys only what a prefix takes away is put
    /// together elsewhere.
    pub(crate) fn push_page(
        &mut self,
        page: &[u8],
        slots: impl ExactSizeIterator<Item = usize>,
        max_bytes: usize,
    ) {
        self.bytes.reserve(page.len() + SHORT_KEY_BYTES * (slots.len() + 1));
        self.bytes.extend_from_slice(page);
        self.places.reserve(slots.len());
        let prefix = node::prefix(page);
        let mut short_prefix = [0; SHORT_KEY_BYTES / 2];
        let is_short = prefix.len() <= short_prefix.len();
        if is_short {
            short_prefix[..prefix.len()].copy_from_slice(prefix);
        }
        let short_prefix = u128::from(u64::from_le_bytes(short_prefix));
        let mut value_bytes = 0;
        for index in slots {
            let slot = node::slot(page, index);
            let header = node::leaf_header_of(page, slot);
            // What lies outside of the page is nothing, as `page_read::slice` has it.
            let place = |offset: usize, length: usize| {
                if offset + length <= page.len() { (offset, offset + length) } else { (0, 0) }
            };
            let suffix = place(slot.offset, slot.suffix_len);
            let key = if prefix.is_empty() {
                suffix
            } else {
                let start = self.bytes.len();
                let near = page.get(slot.offset..).and_then(|rest| rest.first_chunk());
                match near.filter(|_| is_short && suffix.1 - suffix.0 <= SHORT_KEY_BYTES / 2) {
                    // Two words are put together without a call; what is too much is cut off.
                    Some(near) => {
                        let suffix_word = u128::from(u64::from_le_bytes(*near));
                        let key = short_prefix | suffix_word << (8 * prefix.len());
                        self.bytes.extend_from_slice(&key.to_le_bytes());
                        self.bytes.truncate(start + prefix.len() + (suffix.1 - suffix.0));
                    }
                    None => {
                        self.bytes.extend_from_slice(prefix);
                        self.bytes.extend_from_slice(&page[range(suffix)]);
                    }
                }
                (start, self.bytes.len())
            };
            let payload = place(header.payload_offset, header.payload_len);
            self.push_place(key, payload, header.flags, header.word);
            if header.flags & OVERFLOW != 0 {
                let bytes = Reference::value_bytes(&page[range(payload)]);
                value_bytes = bytes.saturating_add(value_bytes);
                if value_bytes >= max_bytes {
                    return;
                }
            }
        }
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
