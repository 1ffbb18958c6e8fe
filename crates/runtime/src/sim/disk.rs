//! The simulated disk: a file system whose cache a crash loses.
//!
//! Invariants:
//! 1. What `sync_data` has returned for survives every crash (unless a fault says otherwise).
//! 2. What was written since survives sector by sector or not at all, in any order.
//! 3. Everything random comes from the disk's own generator, so the disk of one seed behaves the
//!    same whatever else the program draws.

use super::faults::{FaultPlan, Faults, Operation};
use super::image::{FileImage, SECTOR_BYTES, SyncCover};
use super::namespace::{Namespace, NodeNumber, error};
use crate::fs::FileSystemSize;
use base::Random;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a simulated disk is set up.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DiskConfig {
    /// Bytes that files may take together; beyond them ENOSPC. `None`: no limit.
    pub quota_bytes: Option<u64>,
    /// Chances of faults.
    pub faults: Faults,
}

/// What ends a computer or a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrashKind {
    /// The power fails: unsynced sectors are kept, dropped or torn.
    Power,
    /// The process is killed: what was written stays, writes in flight are done in part.
    Process,
}

/// What happened on a disk, counted over all simulations that used it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskStatistics {
    /// `read_at` calls.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Calls that write.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Syncs of files and directories.
    pub syncs: u64,
    /// Faults that happened.
    pub faults: u64,
    /// Power failures.
    pub power_failures: u64,
    /// Process deaths.
    pub process_deaths: u64,
    /// Unsynced sectors that a power failure kept.
    pub kept_sectors: u64,
    /// Unsynced sectors that a power failure dropped.
    pub dropped_sectors: u64,
    /// Writes of several sectors that a power failure kept in part.
    pub torn_writes: u64,
}

struct State {
    namespace: Namespace,
    random: Random,
    faults: FaultPlan,
    quota_bytes: Option<u64>,
    locked: BTreeSet<NodeNumber>,
    statistics: DiskStatistics,
    /// Handles of an earlier life of the computer are refused.
    life: u64,
    is_on: bool,
}

/// A simulated disk; clones are the same disk.
#[derive(Clone)]
pub struct Disk {
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for Disk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Disk({:?})", self.paths())
    }
}

/// A file of the disk, opened in one life of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    node: NodeNumber,
    life: u64,
    path: Arc<str>,
}

/// A write in flight.
pub(crate) struct WriteTicket {
    sequence: Option<u64>,
    error: Option<io::Error>,
}

impl Disk {
    /// An empty disk.
    pub fn new(config: DiskConfig, seed: u64) -> Self {
        let state = State {
            namespace: Namespace::new(),
            random: Random::new(seed ^ 0xD15C),
            faults: FaultPlan::new(config.faults),
            quota_bytes: config.quota_bytes,
            locked: BTreeSet::new(),
            statistics: DiskStatistics::default(),
            life: 1,
            is_on: true,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the disk's life as a crash does and begins the next one. [`super::Simulation::crash`]
    /// calls this; open files are closed.
    pub fn crash(&self, kind: CrashKind) {
        let mut state = self.lock();
        let State { namespace, random, statistics, .. } = &mut *state;
        match kind {
            CrashKind::Power => {
                namespace.power_failure(random);
                for file in namespace.files_mut() {
                    let outcome = file.power_failure(random);
                    statistics.kept_sectors += outcome.kept;
                    statistics.dropped_sectors += outcome.dropped;
                    statistics.torn_writes += outcome.torn_writes;
                }
                statistics.power_failures += 1;
            }
            CrashKind::Process => {
                namespace.process_death();
                namespace.files_mut().for_each(|file| file.process_death(random));
                statistics.process_deaths += 1;
            }
        }
        state.locked.clear();
        state.life += 1;
        state.is_on = true;
    }

    /// From now on every operation fails, until the crash.
    pub(crate) fn power_off(&self) {
        self.lock().is_on = false;
    }

    /// The power is on again after a simulation that was dropped without a crash.
    pub(crate) fn power_on(&self) {
        let is_on = self.lock().is_on;
        if !is_on {
            self.crash(CrashKind::Process);
        }
    }

    /// Sets the chances of faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults.chances = faults;
    }

    /// Lets one operation of this kind on a file whose path contains `path_part` fail with the
    /// error number, after `skip` others that match.
    pub fn fail_once(&self, operation: Operation, path_part: &str, skip: u64, error_number: i32) {
        self.lock().faults.arm(operation, path_part, skip, error_number);
    }

    /// Changes the bytes that files may take.
    pub fn set_quota(&self, quota_bytes: Option<u64>) {
        self.lock().quota_bytes = quota_bytes;
    }

    /// Bytes that files take, in chunks of 4 KiB.
    pub fn used_bytes(&self) -> u64 {
        self.lock().namespace.allocated_bytes()
    }

    /// The quota, and what is left of it.
    pub(crate) fn size(&self) -> FileSystemSize {
        let state = self.lock();
        let total_bytes = state.quota_bytes.unwrap_or(u64::MAX);
        let available_bytes = total_bytes.saturating_sub(state.namespace.allocated_bytes());
        FileSystemSize { total_bytes, available_bytes }
    }

    /// What happened so far.
    pub fn statistics(&self) -> DiskStatistics {
        let state = self.lock();
        DiskStatistics { faults: state.faults.injected, ..state.statistics }
    }

    /// Paths of all files, sorted, each with a leading slash.
    pub fn paths(&self) -> Vec<String> {
        self.lock().namespace.paths()
    }

    /// The content of a file as a read would see it, without faults.
    pub fn content(&self, path: &str) -> Option<Vec<u8>> {
        let mut state = self.lock();
        let node = state.namespace.find(path)?;
        let file = state.namespace.file(node).ok()?;
        let mut content = vec![0; file.length() as usize];
        file.read(0, &mut content);
        Some(content)
    }

    /// Flips one bit of a file for good, as a rotten medium does. False without such a byte.
    pub fn flip_bit(&self, path: &str, offset: u64, bit: u8) -> bool {
        let mut state = self.lock();
        let node = state.namespace.find(path);
        match node.and_then(|node| state.namespace.file(node).ok()) {
            Some(file) if offset < file.length() => {
                file.flip_bit(offset, bit);
                true
            }
            _ => false,
        }
    }

    /// Writes bytes into a file, durably and without faults; for tests that damage files.
    pub fn overwrite(&self, path: &str, offset: u64, bytes: &[u8]) -> bool {
        let mut state = self.lock();
        let node = state.namespace.find(path);
        let Some(file) = node.and_then(|node| state.namespace.file(node).ok()) else {
            return false;
        };
        let sequence = file.begin_write(offset, bytes, false);
        file.end_write(sequence);
        let cover = file.begin_sync(0..u64::MAX);
        file.end_sync(&cover);
        true
    }

    /// Sectors of all files that a power failure could still lose.
    pub fn unsynced_sectors(&self) -> u64 {
        self.lock().namespace.files_mut().map(|file| file.unsynced_sectors()).sum()
    }

    // ---- operations of the running computer ----

    pub(crate) fn open(
        &self,
        path: &str,
        create: bool,
        truncate: bool,
        must_be_new: bool,
    ) -> io::Result<Handle> {
        let mut state = self.lock();
        state.check(Operation::Metadata, path)?;
        let node = match state.namespace.find(path) {
            Some(_) if must_be_new => return Err(error(libc::EEXIST)),
            Some(node) => node,
            None if create || must_be_new => state.namespace.create_file(path)?,
            None => return Err(error(libc::ENOENT)),
        };
        let file = state.namespace.file(node)?;
        if truncate && file.length() > 0 {
            file.set_length(0);
        }
        state.namespace.opened(node);
        Ok(Handle { node, life: state.life, path: path.into() })
    }

    pub(crate) fn close(&self, handle: &Handle) {
        let mut state = self.lock();
        if state.life == handle.life {
            state.namespace.closed(handle.node);
            state.locked.remove(&handle.node);
        }
    }

    pub(crate) fn try_lock(&self, handle: &Handle) -> io::Result<bool> {
        let mut state = self.lock();
        state.check_life(handle)?;
        Ok(state.locked.insert(handle.node))
    }

    /// Reads up to the end of the file; returns how many bytes.
    pub(crate) fn read(&self, handle: &Handle, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.lock();
        state.check_life(handle)?;
        state.check(Operation::Read, &handle.path)?;
        let State { namespace, random, faults, statistics, .. } = &mut *state;
        let file = namespace.file(handle.node)?;
        let length = (file.length().saturating_sub(at)).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..length];
        if length > 0 && faults.happens(faults.chances.bit_rot, random) {
            file.flip_bit(at + random.below(length as u64), random.next_u32() as u8);
        }
        if faults.happens(faults.chances.stale_read, random) {
            file.read_stale(at, buffer);
        } else {
            file.read(at, buffer);
        }
        statistics.reads += 1;
        statistics.read_bytes += length as u64;
        Ok(length)
    }

    /// Begins a write; ended by [`Disk::end_write`].
    pub(crate) fn begin_write(
        &self,
        handle: &Handle,
        at: u64,
        bytes: &[u8],
    ) -> io::Result<WriteTicket> {
        let mut state = self.lock();
        state.check_life(handle)?;
        let growth = state.namespace.file(handle.node)?.growth_bytes(at, bytes.len());
        state.check_space(growth)?;
        let State { namespace, random, faults, statistics, .. } = &mut *state;
        let file = namespace.file(handle.node)?;
        statistics.writes += 1;
        statistics.written_bytes += bytes.len() as u64;
        let keep_former = faults.chances.stale_read > 0.0;
        if let Some(error) = faults.error(Operation::Write, &handle.path, random) {
            // A device writes sectors whole or not at all.
            let reached = at + random.index(bytes.len() + 1) as u64;
            let done = (reached - reached % SECTOR_BYTES as u64).saturating_sub(at) as usize;
            let sequence = file.begin_write(at, &bytes[..done], keep_former);
            return Ok(WriteTicket { sequence: Some(sequence), error: Some(error) });
        }
        if faults.happens(faults.chances.lost_write, random) {
            return Ok(WriteTicket { sequence: None, error: None });
        }
        let length = bytes.len().max(1) as u64;
        let at = match faults.happens(faults.chances.misdirected_write, random) {
            true if random.one_in(2) && at >= length => at - length,
            true => at + length,
            false => at,
        };
        let sequence = file.begin_write(at, bytes, keep_former);
        Ok(WriteTicket { sequence: Some(sequence), error: None })
    }

    pub(crate) fn end_write(&self, handle: &Handle, ticket: WriteTicket) -> io::Result<()> {
        let mut state = self.lock();
        state.check_life(handle)?;
        if let Some(sequence) = ticket.sequence {
            state.namespace.file(handle.node)?.end_write(sequence);
        }
        ticket.error.map_or(Ok(()), Err)
    }

    pub(crate) fn begin_sync(&self, handle: &Handle, range: Range<u64>) -> io::Result<SyncCover> {
        let mut state = self.lock();
        state.check_life(handle)?;
        state.statistics.syncs += 1;
        Ok(state.namespace.file(handle.node)?.begin_sync(range))
    }

    pub(crate) fn end_sync(&self, handle: &Handle, cover: &SyncCover) -> io::Result<()> {
        let mut state = self.lock();
        state.check_life(handle)?;
        let State { namespace, random, faults, .. } = &mut *state;
        let file = namespace.file(handle.node)?;
        match faults.error(Operation::Sync, &handle.path, random) {
            Some(error) => {
                file.fail_sync(cover, random);
                Err(error)
            }
            None => {
                file.end_sync(cover);
                Ok(())
            }
        }
    }

    pub(crate) fn length(&self, handle: &Handle) -> io::Result<u64> {
        let mut state = self.lock();
        state.check_life(handle)?;
        Ok(state.namespace.file(handle.node)?.length())
    }

    pub(crate) fn allocate(&self, handle: &Handle, at: u64, length: u64) -> io::Result<()> {
        self.change_file(
            handle,
            |file| file.growth_bytes(at, length as usize),
            |file| {
                file.allocate(at, length);
            },
        )
    }

    pub(crate) fn set_length(&self, handle: &Handle, length: u64) -> io::Result<()> {
        self.change_file(handle, |_| 0, |file| file.set_length(length))
    }

    pub(crate) fn punch(&self, handle: &Handle, at: u64, length: u64) -> io::Result<()> {
        self.change_file(handle, |_| 0, |file| file.punch(at, length))
    }

    fn change_file(
        &self,
        handle: &Handle,
        growth: impl FnOnce(&FileImage) -> u64,
        change: impl FnOnce(&mut FileImage),
    ) -> io::Result<()> {
        let mut state = self.lock();
        state.check_life(handle)?;
        state.check(Operation::Metadata, &handle.path)?;
        let growth = growth(state.namespace.file(handle.node)?);
        state.check_space(growth)?;
        change(state.namespace.file(handle.node)?);
        Ok(())
    }

    /// Runs an operation on names.
    pub(crate) fn names<T>(
        &self,
        operation: Operation,
        path: &str,
        f: impl FnOnce(&mut Namespace) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.lock();
        state.check(operation, path)?;
        if operation == Operation::Sync {
            state.statistics.syncs += 1;
        }
        f(&mut state.namespace)
    }
}

impl State {
    fn check(&mut self, operation: Operation, path: &str) -> io::Result<()> {
        if !self.is_on {
            return Err(error(libc::EIO));
        }
        self.faults.error(operation, path, &mut self.random).map_or(Ok(()), Err)
    }

    fn check_life(&self, handle: &Handle) -> io::Result<()> {
        if self.is_on && self.life == handle.life { Ok(()) } else { Err(error(libc::EIO)) }
    }

    fn check_space(&self, growth_bytes: u64) -> io::Result<()> {
        match self.quota_bytes {
            Some(quota) if growth_bytes > 0 => {
                let wanted = self.namespace.allocated_bytes() + growth_bytes;
                if wanted > quota { Err(error(libc::ENOSPC)) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }
}
