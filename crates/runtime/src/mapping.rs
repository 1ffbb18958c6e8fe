//! Large anonymous mappings, for the buffer pool and its arrays.

use std::io;
use std::ptr::NonNull;

/// Zeroed memory straight from the system, given back when dropped. Untouched pages take none.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: plain memory; who may access it when is the business of the user of `as_ptr`.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Huge pages are this big; mappings that want them start at a multiple of it.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

impl Mapping {
    /// Maps at least one page. `huge_pages` asks for transparent huge pages (advice only).
    pub fn anonymous(length: usize, huge_pages: bool) -> io::Result<Self> {
        let length = length.max(1);
        let extra = if huge_pages { HUGE_PAGE_BYTES } else { 0 };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let total = length + extra;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), total, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut first = start as usize;
        if huge_pages {
            let aligned = first.next_multiple_of(HUGE_PAGE_BYTES);
            let page = 4096;
            let end = (aligned + length).next_multiple_of(page);
            unmap(first, aligned - first);
            unmap(end, (first + total).next_multiple_of(page) - end);
            first = aligned;
            // SAFETY: the range is ours; the advice may be refused without harm.
            unsafe { libc::madvise(first as *mut _, length, libc::MADV_HUGEPAGE) };
        }
        let start = NonNull::new(first as *mut u8);
        let start = start.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { start, length })
    }

    /// The first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Never: a mapping has at least one byte.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Gives the memory of a range back to the system; it reads as zero afterwards. The range is
    /// in whole pages of 4 KiB.
    ///
    /// # Safety
    /// Nobody may access the range during the call, or count on its content.
    pub unsafe fn discard(&self, offset: usize, length: usize) {
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.length));
        assert!(offset.is_multiple_of(4096));
        // SAFETY: within the mapping; by the contract nobody uses it.
        unsafe { libc::madvise(self.as_ptr().add(offset).cast(), length, libc::MADV_DONTNEED) };
    }
}

fn unmap(start: usize, length: usize) {
    if length > 0 {
        // SAFETY: the range belongs to the mapping being made or dropped, in whole pages.
        unsafe { libc::munmap(start as *mut _, length) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.start.as_ptr() as usize, self.length.next_multiple_of(4096));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_writable_and_aligned() {
        for huge_pages in [false, true] {
            let mapping = Mapping::anonymous((3 << 20) + 5, huge_pages).expect("memory");
            if huge_pages {
                assert!((mapping.as_ptr() as usize).is_multiple_of(HUGE_PAGE_BYTES));
            }
            // SAFETY: within the mapping, which only this test uses.
            unsafe {
                let last = mapping.as_ptr().add(mapping.len() - 1);
                assert_eq!(*last, 0);
                *last = 7;
                mapping.as_ptr().write(9);
                mapping.discard(0, 4096);
                assert_eq!((*mapping.as_ptr(), *last), (0, 7));
            }
        }
    }
}
