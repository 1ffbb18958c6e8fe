//! Files of the real twin.

use super::event_loop::FileOperation;
use super::group::errno;
use super::net::real_here;
use crate::clock::monotonic_nanos;
use crate::file::{DIRECT_ALIGNMENT, SECTOR_BYTES};
use crate::park::WaitClass;
use crate::worker::{self, Twin};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes given to the kernel in one operation.
const PIECE_BYTES: usize = 1 << 30;
/// Bytes of zeroes written at a time by `allocate_zeroed`.
const ZEROES_BYTES: usize = 1 << 20;

/// An open file.
#[derive(Debug)]
pub(crate) struct RealFile {
    fd: OwnedFd,
    is_direct: bool,
}

fn call(status: i32) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn to_result(result: i32) -> io::Result<usize> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result as usize) }
}

/// Runs a file operation of the current fiber; the results of its parts.
fn run(operation: FileOperation, class: WaitClass) -> (i32, i32) {
    let worker = worker::current();
    let Twin::Real(real) = &worker.twin else { return (-libc::EBADF, -libc::EBADF) };
    if worker.is_halting() {
        return (-libc::EIO, -libc::EIO);
    }
    if matches!(operation, FileOperation::Read { .. }) {
        real.balance.note_read();
    }
    worker.begin_operation(operation.parts());
    real.event_loop.start_file(worker, operation);
    worker.wait_operation(class, None);
    (worker.operation_result(0), worker.operation_result(1))
}

fn is_again(result: i32) -> bool {
    result == -libc::EINTR || result == -libc::EAGAIN
}

impl RealFile {
    pub(crate) fn open(
        path: &Path,
        create: bool,
        truncate: bool,
        must_be_new: bool,
        direct: bool,
    ) -> io::Result<Self> {
        let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
        let mut flags = libc::O_RDWR | libc::O_CLOEXEC;
        for (wanted, flag) in [
            (create || must_be_new, libc::O_CREAT),
            (must_be_new, libc::O_EXCL),
            (truncate, libc::O_TRUNC),
        ] {
            flags |= if wanted { flag } else { 0 };
        }
        crate::blocking(move || {
            // SAFETY: a valid C string; the new descriptor is ours.
            let open = |flags: i32| unsafe { libc::open(path.as_ptr(), flags, 0o640) };
            let mut is_direct = direct;
            let mut fd = open(flags | if direct { libc::O_DIRECT } else { 0 });
            if fd < 0 && direct && errno() == libc::EINVAL {
                // The check for O_DIRECT comes after the creation.
                is_direct = false;
                fd = open(flags & !libc::O_EXCL);
            }
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: just opened.
            Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, is_direct })
        })
    }

    fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let rest = &mut buffer[done..];
            let operation = FileOperation::Read {
                fd: self.raw(),
                address: rest.as_mut_ptr(),
                length: rest.len().min(PIECE_BYTES) as u32,
                offset: offset + done as u64,
            };
            let result = run(operation, WaitClass::FileRead).0;
            if is_again(result) {
                continue;
            }
            match to_result(result)? {
                0 => break,
                read => done += read,
            }
            // A direct read that is no whole number of blocks has met the end of the file.
            if self.is_direct && !done.is_multiple_of(DIRECT_ALIGNMENT) {
                break;
            }
        }
        Ok(done)
    }

    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write(bytes, offset, false, false)
    }

    pub(crate) fn write_durable(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let begin = monotonic_nanos();
        let waits = real_here().is_ok_and(|(worker, real)| real.may_wait_for_device(worker));
        self.write(bytes, offset, true, waits)?;
        // The fiber may have parked, but a fiber stays on its worker.
        if let Ok((_, real)) = real_here() {
            real.alone.note_write(monotonic_nanos() - begin);
        }
        Ok(())
    }

    /// Writes all; `waits`: by system call, for which the worker waits (see `alone`).
    fn write(&self, bytes: &[u8], offset: u64, durable: bool, waits: bool) -> io::Result<()> {
        let class = if durable { WaitClass::FileSync } else { WaitClass::FileWrite };
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let operation = FileOperation::Write {
                fd: self.raw(),
                address: rest.as_ptr(),
                length: rest.len().min(PIECE_BYTES) as u32,
                offset: offset + done as u64,
                durable,
            };
            let result = match waits {
                // SAFETY: the bytes are borrowed until the call returns.
                true => unsafe { operation.call() }.0,
                false => run(operation, class).0,
            };
            if is_again(result) {
                continue;
            }
            match to_result(result)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => done += written,
            }
        }
        Ok(())
    }

    pub(crate) fn sync_data(&self) -> io::Result<()> {
        let operation = FileOperation::Sync { fd: self.raw() };
        to_result(run(operation, WaitClass::FileSync).0).map(drop)
    }

    pub(crate) fn write_and_sync(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.is_empty() || bytes.len() > PIECE_BYTES {
            self.write_at(bytes, offset)?;
            return self.sync_data();
        }
        let operation = FileOperation::WriteAndSync {
            fd: self.raw(),
            address: bytes.as_ptr(),
            length: bytes.len() as u32,
            offset,
        };
        let (written, synced) = run(operation, WaitClass::FileSync);
        if written == bytes.len() as i32 && synced != -libc::ECANCELED {
            return to_result(synced).map(drop);
        }
        // Written in part or interrupted: the link was cut before the sync.
        let done = if is_again(written) { 0 } else { to_result(written)? };
        self.write_at(&bytes[done..], offset + done as u64)?;
        self.sync_data()
    }

    /// Runs a system call on this descriptor on a helper thread.
    fn on_helper(
        &self,
        f: impl FnOnce(RawFd) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let fd = self.raw();
        crate::blocking(move || f(fd))
    }

    pub(crate) fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.on_helper(move |fd| {
            // SAFETY: no memory is passed.
            let status = unsafe { libc::fallocate(fd, 0, offset as i64, length as i64) };
            match call(status) {
                Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => Err(error),
                _ => Ok(()),
            }
        })
    }

    pub(crate) fn allocate_zeroed(&self, offset: u64, length: u64) -> io::Result<()> {
        self.allocate(offset, length)?;
        // Writing the zeroes turns unwritten extents into written ones once and for all.
        let zeroes = crate::file::AlignedBuf::zeroed(ZEROES_BYTES);
        let mut done = 0;
        while done < length {
            let piece = (length - done).min(ZEROES_BYTES as u64);
            self.write_at(&zeroes[..piece as usize], offset + done)?;
            done += piece;
        }
        Ok(())
    }

    pub(crate) fn set_len(&self, length: u64) -> io::Result<()> {
        // SAFETY: no memory is passed.
        self.on_helper(move |fd| call(unsafe { libc::ftruncate(fd, length as i64) }))
    }

    pub(crate) fn len(&self) -> io::Result<u64> {
        // SAFETY: all-zero is a valid stat; it is valid for writes. This does no disk access.
        unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            call(libc::fstat(self.raw(), &mut stat))?;
            Ok(stat.st_size as u64)
        }
    }

    /// The smallest block that may be read or written directly; what every device takes where the
    /// kernel does not say (before Linux 6.1).
    pub(crate) fn device_block_bytes(&self) -> usize {
        // SAFETY: all-zero is a valid statx; it and the empty path are valid during the call, which
        // does no disk access.
        let told = unsafe {
            let mut told: libc::statx = std::mem::zeroed();
            let (place, wanted) = (c"".as_ptr(), libc::STATX_DIOALIGN);
            libc::statx(self.raw(), place, libc::AT_EMPTY_PATH, wanted, &mut told);
            told
        };
        match told.stx_dio_offset_align as usize {
            0 if self.is_direct => DIRECT_ALIGNMENT,
            told => told.clamp(SECTOR_BYTES, DIRECT_ALIGNMENT).next_power_of_two(),
        }
    }

    pub(crate) fn punch_hole(&self, offset: u64, length: u64) -> io::Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        self.on_helper(move |fd| {
            // SAFETY: no memory is passed.
            call(unsafe { libc::fallocate(fd, mode, offset as i64, length as i64) })
        })
    }

    pub(crate) fn try_lock_exclusive(&self) -> io::Result<bool> {
        // SAFETY: no memory is passed; the call does not block.
        match call(unsafe { libc::flock(self.raw(), libc::LOCK_EX | libc::LOCK_NB) }) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
