//! The disk side of a store: files, segment table, superblock, giving space back.
//!
//! 1. Nothing is written at a place that holds a live copy; see segments.rs for when space is
//!    used again.
//! 2. A failed write or sync poisons the store ([`crate::StoreError::Poisoned`]) and calls
//!    `on_fatal`; it is never tried again. A full disk is no failure: what could not be written
//!    is withdrawn and written later (writer.rs).

use crate::counters::{Counters, add};
use crate::error::StoreError;
use crate::files::{DataFiles, WriteError};
use crate::group;
use crate::location::Location;
use crate::options::{OnFatal, StoreOptions};
use crate::segment::{BLOCK_BYTES, SegmentHeader};
use crate::segments::{SegmentState, SegmentTable, SegmentUse};
use crate::superblock::Superblock;
use crate::window::WriteWindow;
pub(crate) use crate::writer::{SegmentWriter, WrittenGroup, encode_footer};
use base::probe;
use runtime::file::AlignedBuf;
use runtime::sync::{FiberMutex, Mutex};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use wal::Wal;

/// How long a writer waits before it tries again on a full disk.
pub(crate) const FULL_DISK_WAIT: Duration = Duration::from_millis(50);
/// What full segments are taken to hold before any was seen, in thousandths.
const FILL_AT_FIRST: u32 = 900;
/// A group holds at least one page of the largest class, stored raw.
pub(crate) const GROUP_BYTES_MIN: usize = 48 << 10;

/// Streams of groups, kept apart because their pages die at different rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stream {
    /// Pages written by flushers.
    Pages = 0,
    /// Copies moved by the collector.
    Moved = 1,
    /// What changed of pages, written by flushers: it is superseded sooner than they are.
    Deltas = 2,
}

/// See the head of this file.
pub(crate) struct Disk {
    pub(crate) dir: PathBuf,
    pub(crate) uuid: [u8; 16],
    pub(crate) epoch: u32,
    pub(crate) files: DataFiles,
    pub(crate) table: Mutex<SegmentTable>,
    pub(crate) group_bytes: usize,
    pub(crate) wal: Arc<Wal>,
    /// How much may be on its way to the device.
    pub(crate) window: WriteWindow,
    /// The last write or allocation found no space.
    pub(crate) is_full: AtomicBool,
    /// The file system says that it has space and has none (reserve.rs, invariant 3).
    pub(crate) distrusts_size: AtomicBool,
    /// There is so little space that nothing should grow (debt.rs).
    pub(crate) is_short: AtomicBool,
    /// What lives takes nearly all the space there is (debt.rs).
    pub(crate) is_at_end: AtomicBool,
    /// By stream, how much of their usable bytes full segments held when they were closed, in
    /// thousandths, smoothed: groups have heads and ends, and segments end between two groups.
    fill_permille: [AtomicU32; 3],
    /// The same of the last segment that was full.
    last_fill_permille: AtomicU32,
    /// Segments for which flushers may take space from the file system until it is looked at again.
    pub(crate) allocatable: AtomicI64,
    /// The file system has half as much space again as the store takes: pages may be written larger
    /// than they will be (catch_up.rs).
    pub(crate) is_roomy: AtomicBool,
    /// A segment took space from the file system since it was looked at.
    pub(crate) has_grown: AtomicBool,
    /// Garbage in percent of its goal (debt.rs).
    pub(crate) debt_percent: AtomicU32,
    pub(crate) is_stopping: AtomicBool,
    pub(crate) counters: Arc<Counters>,
    superblock: FiberMutex<Superblock>,
    syncing: FiberMutex<()>,
    /// Held while a segment is chosen and while files are cut off, so that no segment is opened
    /// in space that is about to vanish.
    pub(crate) choosing: FiberMutex<()>,
    poison: OnceLock<String>,
    on_fatal: OnFatal,
}

impl Disk {
    pub(crate) fn new(
        options: &StoreOptions,
        superblock: Superblock,
        files: DataFiles,
        table: SegmentTable,
        wal: Arc<Wal>,
        counters: Arc<Counters>,
    ) -> Disk {
        let segment_quarter = (superblock.segment_bytes / 4) as usize / BLOCK_BYTES * BLOCK_BYTES;
        Disk {
            dir: options.dir.clone(),
            uuid: superblock.uuid,
            epoch: superblock.epoch,
            files,
            table: Mutex::new(table),
            group_bytes: options
                .group_bytes
                .next_multiple_of(BLOCK_BYTES)
                .min(group::GROUP_BYTES_MAX)
                .min(segment_quarter)
                .max(GROUP_BYTES_MIN),
            wal,
            window: WriteWindow::new(),
            is_full: AtomicBool::new(false),
            distrusts_size: AtomicBool::new(false),
            is_short: AtomicBool::new(false),
            is_at_end: AtomicBool::new(false),
            fill_permille: [const { AtomicU32::new(FILL_AT_FIRST) }; 3],
            last_fill_permille: AtomicU32::new(FILL_AT_FIRST),
            allocatable: AtomicI64::new(i64::MAX),
            is_roomy: AtomicBool::new(false),
            has_grown: AtomicBool::new(false),
            debt_percent: AtomicU32::new(0),
            is_stopping: AtomicBool::new(false),
            counters,
            superblock: FiberMutex::new(superblock),
            syncing: FiberMutex::new(()),
            choosing: FiberMutex::new(()),
            poison: OnceLock::new(),
            on_fatal: options.on_fatal.clone(),
        }
    }

    /// Stops the store for good.
    pub(crate) fn fatal(&self, reason: &str) -> StoreError {
        if self.poison.set(reason.to_owned()).is_ok() {
            (self.on_fatal)(reason);
        }
        StoreError::Poisoned(reason.to_owned())
    }

    /// An error once the store was stopped.
    pub(crate) fn check_poison(&self) -> Result<(), StoreError> {
        match self.poison.get() {
            Some(reason) => Err(StoreError::Poisoned(reason.clone())),
            None => Ok(()),
        }
    }

    /// Makes every complete group durable; returns the sequence up to which that holds. Parks.
    pub(crate) fn sync_data(&self) -> Result<u64, StoreError> {
        let _alone = self.syncing.lock();
        self.check_poison()?;
        let point = self.table.lock().sync_point();
        self.files.sync().map_err(|reason| self.fatal(&reason))?;
        add(&self.counters.syncs, 1);
        let mut table = self.table.lock();
        table.synced(&point);
        Ok(table.synced_group_seq())
    }

    /// Changes and writes the superblock durably, with what is known to be durable. Parks.
    pub(crate) fn write_superblock(
        &self,
        change: impl FnOnce(&mut Superblock),
    ) -> Result<(), StoreError> {
        let mut superblock = self.superblock.lock();
        self.check_poison()?;
        let mut next = superblock.clone();
        change(&mut next);
        next.sync = self.table.lock().sync_record();
        let written = next.store(&self.dir);
        written.map_err(|error| match error {
            StoreError::Io { file, detail } => self.fatal(&format!("{file}: {detail}")),
            other => other,
        })?;
        *superblock = next;
        Ok(())
    }

    /// The superblock as last written. Parks.
    pub(crate) fn superblock(&self) -> Superblock {
        self.superblock.lock().clone()
    }

    /// Writes blocks; waits and tries again on a full disk until the store stops. Parks.
    pub(crate) fn write_or_wait(
        &self,
        bytes: &[u8],
        offset: u64,
        sync: bool,
    ) -> Result<(), StoreError> {
        while !self.write_once(bytes, offset, sync)? {
            self.wait_for_space()?;
        }
        Ok(())
    }

    /// Writes blocks; `false` if the disk is full. Parks.
    pub(crate) fn write_once(
        &self,
        bytes: &[u8],
        offset: u64,
        sync: bool,
    ) -> Result<bool, StoreError> {
        self.check_poison()?;
        match self.write_paced(bytes, offset, sync) {
            Ok(()) => {
                add(&self.counters.written_bytes, bytes.len() as u64);
                if self.is_full.load(Ordering::Relaxed) {
                    self.is_full.store(false, Ordering::Relaxed);
                }
                Ok(true)
            }
            Err(WriteError::Full) => {
                self.is_full.store(true, Ordering::Relaxed);
                Ok(false)
            }
            Err(WriteError::Failed(reason)) => Err(self.fatal(&reason)),
        }
    }

    /// Writes in pieces that leave room for the log and for readers between them. Parks.
    fn write_paced(&self, bytes: &[u8], offset: u64, sync: bool) -> Result<(), WriteError> {
        let mut done = 0;
        while done < bytes.len() {
            let end = (done + self.window.piece_bytes()).min(bytes.len());
            let in_flight = self.window.enter(end - done);
            let begun = runtime::now();
            self.files.write(&bytes[done..end], offset + done as u64, sync)?;
            add(&self.counters.write_nanos, begun.elapsed().as_nanos() as u64);
            drop(in_flight);
            done = end;
        }
        Ok(())
    }

    fn wait_for_space(&self) -> Result<(), StoreError> {
        probe!("pagestore_disk_full");
        add(&self.counters.disk_full_waits, 1);
        if self.is_stopping.load(Ordering::Relaxed) {
            return Err(StoreError::DiskFull);
        }
        runtime::sleep(FULL_DISK_WAIT);
        self.check_poison()
    }

    /// Allocates space of a segment; `false` if the disk is full. Parks.
    pub(crate) fn allocate(&self, offset: u64, length: u64) -> Result<bool, StoreError> {
        self.check_poison()?;
        match self.files.allocate(offset, length) {
            Ok(()) => Ok(true),
            Err(WriteError::Full) => {
                self.is_full.store(true, Ordering::Relaxed);
                Ok(false)
            }
            Err(WriteError::Failed(reason)) => Err(self.fatal(&reason)),
        }
    }

    /// A segment of this stream was full with so many bytes of blobs.
    pub(crate) fn note_fill(&self, stream: Stream, blob_bytes: u64) {
        let share = blob_bytes * 1000 / self.table.lock().usable_bytes();
        let cell = &self.fill_permille[stream as usize];
        let former = cell.load(Ordering::Relaxed);
        let share = u32::try_from(share.min(1000)).unwrap_or(1000);
        self.last_fill_permille.store(share, Ordering::Relaxed);
        cell.store((3 * former + share) / 4, Ordering::Relaxed);
    }

    /// How much of its usable bytes a segment of this stream takes.
    pub(crate) fn fill(&self, stream: Stream) -> f64 {
        f64::from(self.fill_permille[stream as usize].load(Ordering::Relaxed)) / 1000.0
    }

    /// How much the segment held that was full last, of whatever stream.
    pub(crate) fn last_fill(&self) -> f64 {
        f64::from(self.last_fill_permille.load(Ordering::Relaxed)) / 1000.0
    }

    /// Whether a flusher may open a segment: one whose space is allocated, or another one as long
    /// as enough is left to the log. The disk counts as full otherwise.
    pub(crate) fn may_open(&self) -> bool {
        if self.has_allocated_segment(Stream::Pages) {
            return true;
        }
        self.has_grown.store(true, Ordering::Relaxed);
        if self.allocatable.fetch_sub(1, Ordering::Relaxed) > 0 {
            return true;
        }
        self.allocatable.store(0, Ordering::Relaxed);
        self.is_full.store(true, Ordering::Relaxed);
        self.has_allocated_segment(Stream::Pages)
    }

    /// Whether a writer of this stream would find a segment whose space is allocated.
    pub(crate) fn has_allocated_segment(&self, stream: Stream) -> bool {
        let reserve = self.reserve_left_by(stream);
        self.table.lock().reusable(false, self.wal.durable()).len() > reserve
    }

    /// Gives dead segments back to the file system, beyond `spare` kept for reuse. Parks.
    pub(crate) fn release(&self, spare: usize) -> Result<usize, StoreError> {
        let numbers = {
            let mut table = self.table.lock();
            let numbers = table.releasable(spare, self.wal.durable());
            for &number in &numbers {
                // Out of reach of writers until it is done.
                table.segments[number as usize].is_collected = true;
            }
            numbers
        };
        if numbers.is_empty() {
            return Ok(0);
        }
        let outcome = self.release_all(&numbers);
        let mut table = self.table.lock();
        for &number in &numbers {
            table.segments[number as usize].is_collected = false;
            if outcome.is_ok() {
                table.released(number);
            }
        }
        drop(table);
        outcome?;
        add(&self.counters.segments_released, numbers.len() as u64);
        self.truncate();
        Ok(numbers.len())
    }

    /// Marks the headers free, makes that durable, then punches: a crash in between never leaves
    /// a header that promises groups which are gone. The superblock is written before the holes,
    /// because the sync records in those headers vanish: without a newer one, recovery would rely
    /// on a record that still expects what is given back here.
    fn release_all(&self, numbers: &[u32]) -> Result<(), StoreError> {
        let record = self.table.lock().sync_record();
        let mut block = AlignedBuf::zeroed(BLOCK_BYTES);
        for &number in numbers {
            let seq = self.table.lock().segments[number as usize].seq;
            self.header(number, seq, Stream::Pages, true, record.clone()).encode(&mut block);
            self.write_or_wait(&block, self.start_of(number), false)?;
        }
        self.sync_data()?;
        if !base::mutant!("holes_before_superblock") {
            self.write_superblock(|_| {})?;
        }
        for &number in numbers {
            self.punch(self.start_of(number), self.files.segment_bytes())?;
        }
        Ok(())
    }

    /// Gives space back, where the file system can do that. Parks.
    fn punch(&self, offset: u64, length: u64) -> Result<(), StoreError> {
        match self.files.punch(offset, length) {
            Err(error) if error.kind() != std::io::ErrorKind::Unsupported => {
                Err(StoreError::io(&self.files.describe(offset).0, &error))
            }
            _ => Ok(()),
        }
    }

    /// Gives back what is not written yet of an open segment. Nothing is read there: a walk from
    /// group to group ends where no group of this use of the segment is. Parks.
    pub(crate) fn punch_rest(&self, number: u32, rest: Range<u64>) -> Result<(), StoreError> {
        let length = rest.end - rest.start;
        probe!("pagestore_rest_given_back");
        self.table.lock().punched(number, length);
        self.punch(self.start_of(number) + rest.start, length)
    }

    /// Cuts off the files behind the last segment in use. Parks.
    fn truncate(&self) {
        let _alone = self.choosing.lock();
        let count = {
            let mut table = self.table.lock();
            let in_use = |segment: &SegmentState| {
                segment.usage != SegmentUse::Unused { released: true } || segment.is_collected
            };
            let end = table.segments.iter().rposition(in_use).map_or(0, |last| last + 1);
            table.segments.truncate(end);
            end as u32
        };
        // Only space is at stake; the next release tries again.
        let _ = self.files.truncate(count);
    }

    /// The bytes of a blob, read through `buffer`. Parks.
    pub(crate) fn read_copy<'a>(
        &self,
        copy: Location,
        buffer: &'a mut AlignedBuf,
    ) -> Result<&'a [u8], StoreError> {
        let length = copy.length_bytes() as usize;
        let start = self.files.read_range(buffer, copy.offset_bytes(), length)?;
        Ok(&buffer[start..start + length])
    }

    /// Offset of a segment in the segment space.
    pub(crate) fn start_of(&self, number: u32) -> u64 {
        u64::from(number) * self.files.segment_bytes()
    }

    pub(crate) fn header(
        &self,
        number: u32,
        seq: u64,
        stream: Stream,
        is_free: bool,
        sync: crate::segment::SyncRecord,
    ) -> SegmentHeader {
        SegmentHeader {
            is_free,
            stream: stream as u8,
            uuid: self.uuid,
            number,
            epoch: self.epoch,
            seq,
            segment_bytes: self.files.segment_bytes(),
            sync,
        }
    }
}
