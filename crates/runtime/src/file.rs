//! Files: every call parks the fiber until the operation has ended. Not cancellable, because the
//! kernel uses the caller's memory until then.

use crate::overlay::{self, ShadowFile};
use crate::real::RealFile;
use crate::sim::SimFile;
use crate::worker::{self, Twin};
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

/// How to open a file; reading and writing are always allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    create: bool,
    create_new: bool,
    truncate: bool,
    direct: bool,
}

impl OpenOptions {
    /// Opens an existing file, through the kernel's page cache.
    pub const fn new() -> Self {
        Self { create: false, create_new: false, truncate: false, direct: false }
    }

    /// Creates the file when it is missing. It survives a crash only after `fs::sync_dir`.
    pub const fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Creates the file; `AlreadyExists` when it is there.
    pub const fn create_new(mut self, create_new: bool) -> Self {
        self.create_new = create_new;
        self
    }

    /// Empties the file.
    pub const fn truncate(mut self, truncate: bool) -> Self {
        self.truncate = truncate;
        self
    }

    /// Goes past the page cache (`O_DIRECT`): buffers, offsets and lengths must be multiples of
    /// 4 KiB, see [`AlignedBuf`] and [`File::use_device_blocks`]. Where the file system refuses it
    /// (tmpfs) the cache is used.
    pub const fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// Opens.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref();
        if let Some(layer) = overlay::over(path) {
            let file = layer.open(path, self.create, self.truncate, self.create_new)?;
            return Ok(File::new(FileTwin::Shadow(file), self.direct));
        }
        self.open_below(path)
    }

    /// Opens the file itself, though its directory be covered.
    pub(crate) fn open_below(&self, path: &Path) -> io::Result<File> {
        let worker = worker::current();
        let twin = match &worker.twin {
            Twin::Real(_) => {
                let options = *self;
                FileTwin::Real(RealFile::open(
                    path,
                    options.create,
                    options.truncate,
                    options.create_new,
                    options.direct,
                )?)
            }
            Twin::Sim(sim) => FileTwin::Sim(SimFile::open(
                sim,
                worker,
                &path.to_string_lossy(),
                self.create,
                self.truncate,
                self.create_new,
            )?),
        };
        Ok(File::new(twin, self.direct))
    }
}

enum FileTwin {
    Real(RealFile),
    Sim(SimFile),
    Shadow(Arc<ShadowFile>),
}

/// An open file; clones are the same file. Reads and writes are exact: all bytes or an error.
#[derive(Clone)]
pub struct File {
    twin: Arc<FileTwin>,
    /// What addresses, lengths and offsets must be multiples of; 1 for files that are not direct.
    alignment: usize,
}

impl fmt::Debug for File {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.twin {
            FileTwin::Real(file) => write!(formatter, "File({file:?})"),
            FileTwin::Sim(file) => write!(formatter, "File({file:?})"),
            FileTwin::Shadow(file) => write!(formatter, "File({file:?})"),
        }
    }
}

/// What direct files want multiples of, in bytes: every device takes that.
pub const DIRECT_ALIGNMENT: usize = 4096;
/// The smallest part that a device writes as a whole, in bytes.
pub const SECTOR_BYTES: usize = 512;

impl File {
    fn new(twin: FileTwin, is_direct: bool) -> File {
        let alignment = if is_direct { DIRECT_ALIGNMENT } else { 1 };
        File { twin: Arc::new(twin), alignment }
    }

    /// Lets this direct file be read and written in multiples of the smallest block that its
    /// device takes, which is returned: [`SECTOR_BYTES`] to [`DIRECT_ALIGNMENT`]. Memory must be
    /// aligned to it. Clones made before stay as they were.
    pub fn use_device_blocks(&mut self) -> usize {
        let block_bytes = match &*self.twin {
            FileTwin::Real(file) => file.device_block_bytes(),
            FileTwin::Sim(_) | FileTwin::Shadow(_) => SECTOR_BYTES,
        };
        self.alignment = self.alignment.min(block_bytes);
        block_bytes
    }

    fn check_direct(&self, address: *const u8, length: usize, offset: u64) {
        let all = address as usize | length | offset as usize;
        assert!(
            all.is_multiple_of(self.alignment),
            "a direct file wants multiples of {} bytes, not {length} at {offset}",
            self.alignment
        );
    }

    /// Fills the buffer from this offset; `UnexpectedEof` when the file ends before.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let read = self.read_up_to(buffer, offset)?;
        if read < buffer.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Reads from this offset until the buffer is full or the file ends; returns how many bytes.
    pub fn read_up_to(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.check_direct(buffer.as_ptr(), buffer.len(), offset);
        match &*self.twin {
            FileTwin::Real(file) => file.read_at(buffer, offset),
            FileTwin::Sim(file) => file.read_at(buffer, offset),
            FileTwin::Shadow(file) => file.read_at(buffer, offset),
        }
    }

    /// Writes all bytes at this offset.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.check_direct(bytes.as_ptr(), bytes.len(), offset);
        match &*self.twin {
            FileTwin::Real(file) => file.write_at(bytes, offset),
            FileTwin::Sim(file) => file.write_at(bytes, offset),
            FileTwin::Shadow(file) => file.write_at(bytes, offset),
        }
    }

    /// Makes every write that has returned durable. After an error nothing is known about any of
    /// them: never try again, stop.
    pub fn sync_data(&self) -> io::Result<()> {
        match &*self.twin {
            FileTwin::Real(file) => file.sync_data(),
            FileTwin::Sim(file) => file.sync_data(),
            FileTwin::Shadow(_) => Ok(()),
        }
    }

    /// [`File::write_at`] and [`File::sync_data`] as one linked operation.
    pub fn write_and_sync(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.check_direct(bytes.as_ptr(), bytes.len(), offset);
        match &*self.twin {
            FileTwin::Real(file) => file.write_and_sync(bytes, offset),
            FileTwin::Sim(file) => {
                file.write_at(bytes, offset)?;
                file.sync_data()
            }
            FileTwin::Shadow(file) => file.write_at(bytes, offset),
        }
    }

    /// Writes all bytes at this offset; when it returns they are durable (RWF_DSYNC). It says
    /// nothing about earlier writes: a device may pass this one by its cache. After an error
    /// nothing is known about these bytes: never try again, stop.
    pub fn write_durable(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.check_direct(bytes.as_ptr(), bytes.len(), offset);
        match &*self.twin {
            FileTwin::Real(file) => file.write_durable(bytes, offset),
            FileTwin::Sim(file) => file.write_durable(bytes, offset),
            FileTwin::Shadow(file) => file.write_at(bytes, offset),
        }
    }

    /// Allocates zeroed space, writing the zeroes so that later direct writes need no metadata;
    /// extends the file over it. Only for space that has no content yet. Durable after a sync.
    pub fn allocate_zeroed(&self, offset: u64, length: u64) -> io::Result<()> {
        match &*self.twin {
            FileTwin::Real(file) => file.allocate_zeroed(offset, length),
            FileTwin::Sim(file) => file.allocate_zeroed(offset, length),
            FileTwin::Shadow(file) => {
                file.allocate_zeroed(offset, length);
                Ok(())
            }
        }
    }

    /// Allocates the space of a range, so that writing there will not fail for want of space; what
    /// is there stays, what is new reads as zeroes, and the file reaches over it afterwards. Where
    /// the file system cannot, nothing happens.
    pub fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        match &*self.twin {
            FileTwin::Real(file) => file.allocate(offset, length),
            FileTwin::Sim(file) => file.allocate_zeroed(offset, length),
            FileTwin::Shadow(file) => {
                file.allocate_zeroed(offset, length);
                Ok(())
            }
        }
    }

    /// Cuts off or extends (with a hole) the file.
    pub fn set_len(&self, length: u64) -> io::Result<()> {
        match &*self.twin {
            FileTwin::Real(file) => file.set_len(length),
            FileTwin::Sim(file) => file.set_len(length),
            FileTwin::Shadow(file) => file.set_len(length),
        }
    }

    /// The length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> io::Result<u64> {
        match &*self.twin {
            FileTwin::Real(file) => file.len(),
            FileTwin::Sim(file) => file.len(),
            FileTwin::Shadow(file) => Ok(file.len()),
        }
    }

    /// Gives the space of a range back to the file system; it reads as zeroes afterwards and the
    /// length stays. Where the file system cannot, nothing happens and `Unsupported` is returned.
    pub fn punch_hole(&self, offset: u64, length: u64) -> io::Result<()> {
        match &*self.twin {
            FileTwin::Real(file) => file.punch_hole(offset, length),
            FileTwin::Sim(file) => file.punch_hole(offset, length),
            FileTwin::Shadow(file) => file.punch_hole(offset, length),
        }
    }

    /// Locks the file against other processes (and other openings) until it is closed; false
    /// when somebody else has it.
    pub fn try_lock_exclusive(&self) -> io::Result<bool> {
        match &*self.twin {
            FileTwin::Real(file) => file.try_lock_exclusive(),
            FileTwin::Sim(file) => file.try_lock_exclusive(),
            // The layer belongs to one process.
            FileTwin::Shadow(_) => Ok(true),
        }
    }
}

/// A buffer for direct files: aligned to 4 KiB, zeroed where nothing was written yet.
pub struct AlignedBuf {
    pages: Vec<AlignedPage>,
    length: usize,
}

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct AlignedPage([u8; DIRECT_ALIGNMENT]);

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AlignedBuf({} bytes)", self.length)
    }
}

impl AlignedBuf {
    /// A zeroed buffer of `length` bytes.
    pub fn zeroed(length: usize) -> Self {
        let mut buffer = Self { pages: Vec::new(), length: 0 };
        buffer.resize(length);
        buffer
    }

    /// Changes the length; new bytes are zero, capacity is kept.
    pub fn resize(&mut self, length: usize) {
        // Pages that come are zero; those that were there may have been shorter in use.
        let stale = self.length..length.min(self.pages.len() * DIRECT_ALIGNMENT);
        self.resize_unspecified(length);
        if !stale.is_empty() {
            self[stale].fill(0);
        }
    }

    /// Changes the length for what is to be overwritten: new bytes are any that stood there.
    pub fn resize_unspecified(&mut self, length: usize) {
        let pages = length.div_ceil(DIRECT_ALIGNMENT);
        if pages > self.pages.len() {
            self.pages.resize(pages, AlignedPage([0; DIRECT_ALIGNMENT]));
        }
        self.length = length;
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the pages are contiguous bytes, at least `length` of them.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr().cast(), self.length) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_mut_ptr().cast(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_and_zero_after_shrinking() {
        let mut buffer = AlignedBuf::zeroed(5000);
        assert!((buffer.as_ptr() as usize).is_multiple_of(DIRECT_ALIGNMENT));
        buffer.fill(7);
        buffer.resize(4100);
        buffer.resize(10_000);
        assert!(buffer[..4100].iter().all(|&byte| byte == 7));
        assert!(buffer[4100..].iter().all(|&byte| byte == 0));
        buffer.fill(7);
        buffer.resize_unspecified(0);
        buffer.resize(10_000);
        assert!(buffer.iter().all(|&byte| byte == 0));
    }
}
