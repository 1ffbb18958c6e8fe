//! Asking for memory ahead: what a connection keeps has left the caches long ago when thousands
//! of others ran in between, and loading it piece by piece, as a run comes by, costs more than the
//! run itself. The backlog says in advance which connections run next.

const LINE_BYTES: usize = 64;

/// Cache lines asked for at most by one call; the caches' queues take no more at once.
const LINES_MAX: usize = 24;

/// Asks for the memory of a value (not of what it points to), so that it is in the cache a little
/// later. Costs a few instructions and changes nothing.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    lines(std::ptr::from_ref(value).cast(), size_of_val(value));
}

/// The same for so many bytes at an address, whatever is there.
#[inline]
pub fn prefetch_bytes(start: *const u8, bytes: usize) {
    lines(start, bytes);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub(crate) fn lines(start: *const u8, bytes: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    if bytes == 0 {
        return;
    }
    let first = start as usize & !(LINE_BYTES - 1);
    let end = (start as usize + bytes).min(first + LINES_MAX * LINE_BYTES);
    let mut line = first;
    while line < end {
        // SAFETY: a hint; no address is wrong for it.
        unsafe { _mm_prefetch(line as *const i8, _MM_HINT_T0) };
        line += LINE_BYTES;
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
pub(crate) fn lines(_start: *const u8, _bytes: usize) {}
