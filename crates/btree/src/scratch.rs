//! Page-sized work buffers, one per worker, so that rebuilding a node allocates nothing.
//!
//! 1. A buffer is taken out of its cell while in use; nested use simply allocates another.
//! 2. No buffer is held across a park: only node code, which never parks, asks for one.

use std::cell::Cell;

thread_local! {
    static SPARE: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
}

/// Runs `work` with a buffer of `length` bytes whose content is arbitrary.
pub fn with<T>(length: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = SPARE.with(Cell::take).unwrap_or_default();
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    let result = work(&mut buffer[..length]);
    SPARE.with(|cell| cell.set(Some(buffer)));
    result
}
