//! Encoded rows on their way from the engine to the expressions.

use std::ops::Range;
use types::row::RowBytes;

/// An encoded row: the clustered key and the payload. Reused from row to row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowBuffer {
    /// Memcmp bytes of the clustered key (of the secondary key in a covering scan).
    pub key: Vec<u8>,
    /// The other columns (empty in a covering scan).
    pub payload: Vec<u8>,
}

/// An encoded row where it lies; the parts are those of [`RowBuffer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRef<'a> {
    /// Memcmp bytes of the key.
    pub key: &'a [u8],
    /// The other columns.
    pub payload: &'a [u8],
}

impl RowBuffer {
    /// The row as a reference.
    pub fn as_row(&self) -> RowRef<'_> {
        RowRef { key: &self.key, payload: &self.payload }
    }
}

impl RowRef<'_> {
    /// No bytes: no row of a table is like that.
    pub const EMPTY: RowRef<'static> = RowRef { key: &[], payload: &[] };

    /// A copy.
    pub fn to_buffer(self) -> RowBuffer {
        RowBuffer { key: self.key.to_vec(), payload: self.payload.to_vec() }
    }
}

/// Some rows of a scan in one piece of memory, which is reused from batch to batch.
#[derive(Clone, Debug, Default)]
pub struct RowBatch {
    bytes: Vec<u8>,
    rows: Vec<Place>,
}

#[derive(Clone, Debug)]
struct Place {
    key: Range<usize>,
    payload: Range<usize>,
}

impl RowBatch {
    /// Number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of keys and payloads held.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory held.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.rows.capacity() * size_of::<Place>()
    }

    /// Row number `index`, if there are so many.
    #[inline]
    pub fn row(&self, index: usize) -> Option<RowRef<'_>> {
        let place = self.rows.get(index)?;
        Some(RowRef {
            key: &self.bytes[place.key.start..place.key.end],
            payload: &self.bytes[place.payload.start..place.payload.end],
        })
    }

    /// Forgets the rows, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// Adds a copy of a row.
    pub fn push(&mut self, row: RowRef<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(row.key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(row.payload);
        self.rows.push(Place { key: start..middle, payload: middle..self.bytes.len() });
    }

    /// So many rows will be added.
    pub fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
    }

    /// Adds a row whose parts lie, or will lie, at these places of [`RowBatch::bytes_mut`].
    #[inline]
    pub fn push_place(&mut self, key: Range<usize>, payload: Range<usize>) {
        self.rows.push(Place { key, payload });
    }

    /// The memory that the rows lie in.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl RowBytes for RowBatch {
    #[inline]
    fn key(&self, row: usize) -> &[u8] {
        let key = self.rows.get(row).and_then(|place| self.bytes.get(place.key.clone()));
        key.unwrap_or(&[])
    }

    #[inline]
    fn payload(&self, row: usize) -> &[u8] {
        let payload = self.rows.get(row).and_then(|place| self.bytes.get(place.payload.clone()));
        payload.unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_where_they_were_put() {
        let mut batch = RowBatch::default();
        for round in 0..2 {
            batch.push(RowRef { key: b"k1", payload: b"one" });
            batch.bytes_mut().extend_from_slice(b"k2two");
            batch.push_place(5..7, 7..10);
            assert_eq!(batch.len(), 2, "{round}");
            assert_eq!(batch.row(0), Some(RowRef { key: b"k1", payload: b"one" }));
            let second = batch.row(1).map(RowRef::to_buffer).expect("there are two");
            assert_eq!(second.as_row(), RowRef { key: b"k2", payload: b"two" });
            assert_eq!(batch.row(2), None);
            batch.clear();
            assert!(batch.is_empty());
        }
    }
}
