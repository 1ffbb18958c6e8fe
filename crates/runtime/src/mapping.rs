//! Large mappings: anonymous ones for the buffer pool and its arrays, and memory behind which
//! stands an unnamed file, for what may grow beyond memory.

use crate::worker::{self, Twin};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

/// Zeroed memory straight from the system, given back when dropped. Untouched pages take none.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
    /// The content is in a file: the system may write it out and take the memory.
    has_file: bool,
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
        // Miri knows no overcommitment.
        let reserve = if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | reserve;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let total = length + extra;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), total, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut start = start.cast::<u8>();
        if huge_pages {
            let before = start.addr().next_multiple_of(HUGE_PAGE_BYTES) - start.addr();
            let end = (before + length).next_multiple_of(4096);
            let behind = total.next_multiple_of(4096) - end;
            // SAFETY: both ends lie in the mapping just made and are used by nobody; so is the
            // rest, for which the advice may be refused without harm.
            unsafe {
                unmap(start, before);
                unmap(start.add(end), behind);
                start = start.add(before);
                libc::madvise(start.cast(), length, libc::MADV_HUGEPAGE);
            }
        }
        let start = NonNull::new(start);
        let start = start.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { start, length, has_file: false })
    }

    /// Maps a new file without a name in `directory`, which goes with the mapping or the process.
    /// Its space is allocated now: a full disk is an error here, not a signal later. Blocks the
    /// worker for the time of three system calls. In a simulation it is plain memory.
    pub fn in_file(directory: &Path, length: usize) -> io::Result<Self> {
        if let Twin::Sim(_) = &worker::current().twin {
            return Self::anonymous(length, false);
        }
        let length = length.max(1);
        let file = unnamed_file(directory)?;
        // SAFETY: an open file and a range; the call has no other preconditions.
        let failed = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length as libc::off_t) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (flags, fd) = (libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice; it outlives the descriptor.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast::<u8>());
        let start = start.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { start, length, has_file: true })
    }

    /// Lets go of the memory that a range of a mapping with a file takes; the content stays and
    /// comes back when it is accessed. Nothing happens to other mappings. In pages of 4 KiB.
    pub fn let_go(&self, offset: usize, length: usize) {
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.length));
        assert!(offset.is_multiple_of(4096));
        if self.has_file {
            // SAFETY: within the mapping; of a shared mapping only the page table entries go.
            unsafe { libc::madvise(self.as_ptr().add(offset).cast(), length, libc::MADV_DONTNEED) };
        }
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
        assert!(offset.is_multiple_of(4096) && !self.has_file);
        // SAFETY: within the mapping; by the contract nobody uses it.
        unsafe { libc::madvise(self.as_ptr().add(offset).cast(), length, libc::MADV_DONTNEED) };
    }
}

/// A file that is in no directory.
fn unnamed_file(directory: &Path) -> io::Result<OwnedFd> {
    let open = |path: &Path, flags: libc::c_int| -> io::Result<OwnedFd> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let flags = flags | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: a path ending in zero; the descriptor returned is nobody else's.
        let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    };
    match open(directory, libc::O_TMPFILE) {
        Ok(file) => Ok(file),
        // Some file systems cannot make them: a name for a moment serves as well.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            let path = directory.join(format!("unnamed-{:016x}", crate::random_u64()));
            let file = open(&path, libc::O_CREAT | libc::O_EXCL)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        Err(error) => Err(error),
    }
}

/// # Safety
/// The range is in whole pages of a mapping, and nobody uses it any more.
unsafe fn unmap(start: *mut u8, length: usize) {
    if length > 0 {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(start.cast(), length) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, whose owner is being dropped.
        unsafe { unmap(self.start.as_ptr(), self.length.next_multiple_of(4096)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_a_file_can_be_let_go() {
        let config = crate::Config { workers: 1, ..crate::Config::default() };
        let runtime = crate::Runtime::start(config).expect("a runtime");
        runtime.run(|| {
            let directory = std::env::temp_dir();
            let mapping = Mapping::in_file(&directory, 1 << 20).expect("space");
            // SAFETY: within the mapping, which only this test uses.
            unsafe {
                mapping.as_ptr().write(9);
                mapping.as_ptr().add((1 << 20) - 1).write(7);
                mapping.let_go(0, 1 << 20);
                let ends = (*mapping.as_ptr(), *mapping.as_ptr().add((1 << 20) - 1));
                assert_eq!(ends, (9, 7), "the content is in the file");
            }
            assert!(Mapping::in_file(&directory.join("is not there"), 4096).is_err());
        });
        runtime.shutdown();
    }

    #[test]
    fn zeroed_and_writable() {
        let mapping = Mapping::anonymous((3 << 20) + 5, false).expect("memory");
        // SAFETY: within the mapping, which only this test uses.
        unsafe {
            let last = mapping.as_ptr().add(mapping.len() - 1);
            assert_eq!((*mapping.as_ptr(), *last), (0, 0));
            *last = 7;
            mapping.as_ptr().write(9);
            assert_eq!((*mapping.as_ptr(), *last), (9, 7));
        }
    }

    #[test]
    fn aligned_for_huge_pages_and_zero_again_when_discarded() {
        for huge_pages in [false, true] {
            let mapping = Mapping::anonymous((3 << 20) + 5, huge_pages).expect("memory");
            if huge_pages {
                assert!((mapping.as_ptr() as usize).is_multiple_of(HUGE_PAGE_BYTES));
            }
            // SAFETY: within the mapping, which only this test uses.
            unsafe {
                let last = mapping.as_ptr().add(mapping.len() - 1);
                *last = 7;
                mapping.as_ptr().write(9);
                mapping.discard(0, 4096);
                assert_eq!((*mapping.as_ptr(), *last), (0, 7));
            }
        }
    }
}
