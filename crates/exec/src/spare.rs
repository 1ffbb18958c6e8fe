//! Buffers that a statement leaves for the next one of the same worker, so that reading rows
//! allocates nothing.
//!
//! 1. A buffer is taken out of its cell while in use; nested use simply allocates another.
//! 2. Its content means nothing. What has grown beyond [`KEEP_BYTES`] is not kept.
//! 3. A worker's cell is looked up anew by every call: the caller may have parked in between.

use engine_api::{RowBatch, RowBuffer};
use std::cell::{Cell, RefCell};

/// Capacity that is kept, of each buffer.
const KEEP_BYTES: usize = 64 << 10;
/// Buffers kept by a worker.
const KEEP_BUFFERS: usize = 4;

/// What a point read needs.
#[derive(Default)]
pub struct PointBuffers {
    /// The key that is looked up.
    pub key: Vec<u8>,
    /// The row found.
    pub row: RowBuffer,
}

thread_local! {
    static POINT: Cell<Option<Box<PointBuffers>>> = const { Cell::new(None) };
    static BATCHES: RefCell<Vec<RowBatch>> = const { RefCell::new(Vec::new()) };
    static ROWS: RefCell<Vec<RowBuffer>> = const { RefCell::new(Vec::new()) };
    static NUMBERS: RefCell<Vec<Vec<u32>>> = const { RefCell::new(Vec::new()) };
}

/// Buffers for a point read.
#[inline(never)]
pub fn take_point() -> Box<PointBuffers> {
    POINT.with(Cell::take).unwrap_or_default()
}

/// They are not needed any more.
#[inline(never)]
pub fn give_point(buffers: Box<PointBuffers>) {
    let row = &buffers.row;
    if row.payload.capacity().max(buffers.key.capacity()).max(row.key.capacity()) <= KEEP_BYTES {
        POINT.with(|cell| cell.set(Some(buffers)));
    }
}

/// A buffer for one row.
#[inline(never)]
pub fn take_row() -> RowBuffer {
    ROWS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// It is not needed any more.
#[inline(never)]
pub fn give_row(row: RowBuffer) {
    let bytes = row.payload.capacity().max(row.key.capacity());
    if bytes > 0 && bytes <= KEEP_BYTES {
        keep(&ROWS, row);
    }
}

/// A batch without rows.
#[inline(never)]
pub fn take_batch() -> RowBatch {
    BATCHES.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// It is not needed any more.
#[inline(never)]
pub fn give_batch(mut batch: RowBatch) {
    batch.clear();
    if batch.capacity_bytes() <= KEEP_BYTES {
        keep(&BATCHES, batch);
    }
}

/// A list without numbers.
#[inline(never)]
pub fn take_numbers() -> Vec<u32> {
    NUMBERS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// It is not needed any more.
#[inline(never)]
pub fn give_numbers(mut numbers: Vec<u32>) {
    numbers.clear();
    if numbers.capacity() > 0 && numbers.capacity() * size_of::<u32>() <= KEEP_BYTES {
        keep(&NUMBERS, numbers);
    }
}

fn keep<T>(cell: &'static std::thread::LocalKey<RefCell<Vec<T>>>, buffer: T) {
    cell.with_borrow_mut(|kept| {
        if kept.len() < KEEP_BUFFERS {
            kept.push(buffer);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine_api::RowRef;

    #[test]
    fn small_buffers_come_back_empty_and_large_ones_do_not() {
        let mut batch = take_batch();
        batch.push(RowRef { key: b"key", payload: b"payload" });
        give_batch(batch);
        let batch = take_batch();
        assert!(batch.is_empty() && batch.capacity_bytes() > 0);
        let mut large = take_batch();
        large.push(RowRef { key: &[], payload: &vec![0; KEEP_BYTES + 1] });
        give_batch(large);
        assert_eq!(take_batch().capacity_bytes(), 0);
        give_numbers(vec![1, 2, 3]);
        let numbers = take_numbers();
        assert!(numbers.is_empty() && numbers.capacity() >= 3);
        give_row(RowBuffer { payload: vec![1; 10], ..RowBuffer::default() });
        assert!(take_row().payload.capacity() >= 10);
        give_row(RowBuffer { payload: vec![1; KEEP_BYTES + 1], ..RowBuffer::default() });
        assert_eq!(take_row().payload.capacity(), 0);
        give_point(Box::new(PointBuffers { key: vec![1; 10], ..PointBuffers::default() }));
        assert!(take_point().key.capacity() >= 10);
        give_point(Box::new(PointBuffers { key: vec![1; KEEP_BYTES + 1], ..Default::default() }));
        assert_eq!(take_point().key.capacity(), 0);
    }
}
