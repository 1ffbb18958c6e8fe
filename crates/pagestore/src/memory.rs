//! Big zeroed memory that is never moved or unmapped while the store lives.

/// An anonymous mapping; pages of it cost memory only once touched.
#[derive(Debug)]
pub(crate) struct Region {
    start: *mut u8,
    length_bytes: usize,
}

// SAFETY: the region is plain memory; who may touch which byte is decided by its users (page
// latches for frames, atomics for the translation array).
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Reserves `length_bytes` of zeroes.
    pub(crate) fn new(length_bytes: usize, huge_pages: bool) -> std::io::Result<Region> {
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        if huge_pages {
            // SAFETY: the range was mapped just now; the advice does not change its contents.
            unsafe { libc::madvise(start, length_bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(Region { start: start.cast(), length_bytes })
    }

    #[inline]
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    pub(crate) fn length_bytes(&self) -> usize {
        self.length_bytes
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; all users borrowed from the store are gone.
        unsafe { libc::munmap(self.start.cast(), self.length_bytes) };
    }
}
