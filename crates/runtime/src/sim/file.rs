//! Files of the simulated twin: the disk's operations with the time they take.

use super::disk::{Disk, Handle};
use super::driver::SimTwin;
use super::faults::Operation;
use super::namespace::error;
use crate::park::WaitClass;
use crate::worker::{self, Worker};
use std::io;
use std::ops::Range;

const READ_NANOS: u64 = 80_000;
const WRITE_NANOS: u64 = 40_000;
const SYNC_NANOS: u64 = 100_000;
const METADATA_NANOS: u64 = 20_000;
/// One nanosecond per so many bytes, on top.
const BYTES_PER_NANO: u64 = 1;

/// An open file of the simulated disk.
#[derive(Debug)]
pub(crate) struct SimFile {
    disk: Disk,
    handle: Handle,
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.disk.close(&self.handle);
    }
}

fn wait(class: WaitClass, nanos: u64) -> io::Result<&'static SimTwin> {
    let worker = worker::current();
    let sim = worker.sim().ok_or_else(|| error(libc::EBADF))?;
    sim.operation(worker, class, nanos);
    if worker.is_halting() { Err(error(libc::EIO)) } else { Ok(sim) }
}

/// Runs an operation on names after the time it takes.
pub(crate) fn on_names<T>(
    operation: Operation,
    path: &str,
    f: impl FnOnce(&mut super::namespace::Namespace) -> io::Result<T>,
) -> io::Result<T> {
    let (class, nanos) = match operation {
        Operation::Sync => (WaitClass::FileSync, SYNC_NANOS),
        _ => (WaitClass::Helper, METADATA_NANOS),
    };
    wait(class, nanos)?.disk.names(operation, path, f)
}

impl SimFile {
    pub(crate) fn open(
        sim: &SimTwin,
        worker: &Worker,
        path: &str,
        create: bool,
        truncate: bool,
        must_be_new: bool,
    ) -> io::Result<Self> {
        sim.operation(worker, WaitClass::Helper, METADATA_NANOS);
        let disk = sim.disk.clone();
        let handle = disk.open(path, create, truncate, must_be_new)?;
        Ok(Self { disk, handle })
    }

    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let nanos = READ_NANOS + buffer.len() as u64 / BYTES_PER_NANO;
        let sim = wait(WaitClass::FileRead, nanos)?;
        sim.trace(offset ^ (buffer.len() as u64) << 48);
        self.disk.read(&self.handle, offset, buffer)
    }

    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let ticket = self.disk.begin_write(&self.handle, offset, bytes)?;
        let nanos = WRITE_NANOS + bytes.len() as u64 / BYTES_PER_NANO;
        let sim = wait(WaitClass::FileWrite, nanos)?;
        sim.trace(offset ^ u64::from(base::checksum::crc32c(bytes)) << 32);
        self.disk.end_write(&self.handle, ticket)
    }

    pub(crate) fn sync_data(&self) -> io::Result<()> {
        self.sync(0..u64::MAX)
    }

    pub(crate) fn write_durable(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.sync(offset..offset + bytes.len() as u64)
    }

    fn sync(&self, range: Range<u64>) -> io::Result<()> {
        let cover = self.disk.begin_sync(&self.handle, range)?;
        wait(WaitClass::FileSync, SYNC_NANOS)?;
        self.disk.end_sync(&self.handle, &cover)
    }

    pub(crate) fn len(&self) -> io::Result<u64> {
        self.disk.length(&self.handle)
    }

    pub(crate) fn set_len(&self, length: u64) -> io::Result<()> {
        wait(WaitClass::Helper, METADATA_NANOS)?;
        self.disk.set_length(&self.handle, length)
    }

    pub(crate) fn allocate_zeroed(&self, offset: u64, length: u64) -> io::Result<()> {
        wait(WaitClass::Helper, METADATA_NANOS + length / 16)?;
        self.disk.allocate(&self.handle, offset, length)
    }

    pub(crate) fn punch_hole(&self, offset: u64, length: u64) -> io::Result<()> {
        wait(WaitClass::Helper, METADATA_NANOS)?;
        self.disk.punch(&self.handle, offset, length)
    }

    pub(crate) fn try_lock_exclusive(&self) -> io::Result<bool> {
        self.disk.try_lock(&self.handle)
    }
}
