//! The disk side of a store: files, segment table, superblock, and writers that append groups.
//!
//! 1. A writer owns its segment: one group at a time, in order, so a segment's complete groups
//!    are always a prefix of it.
//! 2. Nothing is written at a place that holds a live copy; see segments.rs for when space is
//!    used again.
//! 3. A failed write or sync poisons the store ([`crate::StoreError::Poisoned`]) and calls
//!    `on_fatal`; it is never tried again. A full disk is no failure: the group is withdrawn and
//!    written later.

use crate::counters::{Counters, add};
use crate::error::StoreError;
use crate::files::{DataFiles, WriteError};
use crate::group::{self, DirectoryEntry, GroupHeader};
use crate::location::Location;
use crate::options::{OnFatal, StoreOptions};
use crate::segment::{BLOCK_BYTES, SegmentHeader, SegmentTrailer};
use crate::segments::{SegmentState, SegmentTable, SegmentUse};
use crate::superblock::Superblock;
use crate::window::WriteWindow;
use base::checksum::crc32c;
use base::{Lsn, probe};
use runtime::file::AlignedBuf;
use runtime::sync::{FiberMutex, Mutex};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use wal::Wal;

/// How long a writer waits before it tries again on a full disk.
const FULL_DISK_WAIT: Duration = Duration::from_millis(50);
/// Reusable segments that only moved pages may take, so that collection works on a full disk.
const COLLECTION_RESERVE: usize = 2;

/// A group holds at least one page of the largest class, stored raw.
const GROUP_BYTES_MIN: usize = 48 << 10;

/// Streams of groups, kept apart because their pages die at different rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stream {
    /// Pages written by flushers.
    Pages = 0,
    /// Copies moved by the collector.
    Moved = 1,
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
    pub(crate) is_full: AtomicBool,
    pub(crate) is_stopping: AtomicBool,
    pub(crate) counters: Arc<Counters>,
    superblock: FiberMutex<Superblock>,
    syncing: FiberMutex<()>,
    /// Held while a segment is chosen and while files are cut off, so that no segment is opened
    /// in space that is about to vanish.
    choosing: FiberMutex<()>,
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
    fn write_or_wait(&self, bytes: &[u8], offset: u64, sync: bool) -> Result<(), StoreError> {
        while !self.write_once(bytes, offset, sync)? {
            self.wait_for_space()?;
        }
        Ok(())
    }

    /// Writes blocks; `false` if the disk is full. Parks.
    fn write_once(&self, bytes: &[u8], offset: u64, sync: bool) -> Result<bool, StoreError> {
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
            let segment = &mut table.segments[number as usize];
            segment.is_collected = false;
            if outcome.is_ok() {
                segment.usage = SegmentUse::Unused { released: true };
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
        self.write_superblock(|_| {})?;
        for &number in numbers {
            if let Err(error) = self.files.punch(number)
                && error.kind() != std::io::ErrorKind::Unsupported
            {
                return Err(StoreError::io(&self.files.describe(self.start_of(number)).0, &error));
            }
        }
        Ok(())
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

    fn header(
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

/// Writes the footer and trailer of a segment. Returns the bytes to be written and their offset
/// within the segment.
pub(crate) fn encode_footer(
    uuid: [u8; 16],
    number: u32,
    seq: u64,
    segment_bytes: u64,
    group_count: u32,
    footer: &[u8],
) -> (AlignedBuf, u64) {
    let padded = footer.len().next_multiple_of(BLOCK_BYTES);
    let mut bytes = AlignedBuf::zeroed(padded + BLOCK_BYTES);
    let offset = segment_bytes - bytes.len() as u64;
    bytes[..footer.len()].copy_from_slice(footer);
    let trailer = SegmentTrailer {
        uuid,
        number,
        seq,
        group_count,
        footer_offset: offset as u32,
        footer_bytes: footer.len() as u32,
        footer_crc: crc32c(footer),
    };
    trailer.encode(&mut bytes[padded..]);
    (bytes, offset)
}

/// The segment that a writer fills.
#[derive(Debug)]
struct Current {
    number: u32,
    seq: u64,
    /// Where the next group goes, within the segment.
    position: u64,
    groups: u32,
    /// Header and directory of every group so far.
    footer: Vec<u8>,
}

/// Appends groups of one stream to segments of its own.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    stream: Stream,
    current: Option<Current>,
}

/// Where a group was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenGroup {
    pub(crate) group_seq: u64,
    /// Offset of the group in the segment space.
    pub(crate) offset: u64,
}

impl SegmentWriter {
    pub(crate) fn new(stream: Stream) -> SegmentWriter {
        SegmentWriter { stream, current: None }
    }

    /// Writes a group whose blobs stand in `group` where `entries` say; fills in header and
    /// directory. `group.len()` is the group's length, a multiple of 4 KiB. On success the copies
    /// are complete (not yet synced). Parks.
    pub(crate) fn append(
        &mut self,
        disk: &Disk,
        group: &mut AlignedBuf,
        entries: &[DirectoryEntry],
    ) -> Result<WrittenGroup, StoreError> {
        let max_page_lsn = entries.iter().map(|entry| entry.page_lsn).max().unwrap_or(Lsn::ZERO);
        base::invariant!(
            base::mutant!("write_page_before_log") || max_page_lsn <= disk.wal.durable(),
            "a page is written before its log"
        );
        loop {
            self.make_room(disk, group.len(), entries.len())?;
            let Some(current) = &mut self.current else { continue };
            let group_seq = disk.table.lock().begin_group();
            let header = GroupHeader {
                segment_seq: current.seq,
                group_seq,
                index: current.groups,
                entry_count: entries.len() as u32,
                total_bytes: group.len() as u32,
                max_page_lsn,
                epoch: disk.epoch,
            };
            group::encode_head(&header, entries, group);
            let offset = disk.start_of(current.number) + current.position;
            match disk.write_once(group, offset, false) {
                Ok(true) => {
                    let head = group::head_bytes(entries.len());
                    current.footer.extend_from_slice(&group[..head]);
                    current.position += group.len() as u64;
                    current.groups += 1;
                    disk.table.lock().end_group(current.number, group_seq);
                    add(&disk.counters.groups, 1);
                    return Ok(WrittenGroup { group_seq, offset });
                }
                Ok(false) => {
                    disk.table.lock().withdraw_group(group_seq);
                    disk.wait_for_space()?;
                }
                Err(error) => {
                    disk.table.lock().withdraw_group(group_seq);
                    return Err(error);
                }
            }
        }
    }

    /// Makes sure that the current segment has room for the group and for a footer that lists it.
    fn make_room(
        &mut self,
        disk: &Disk,
        group_bytes: usize,
        entries: usize,
    ) -> Result<(), StoreError> {
        if let Some(current) = &self.current {
            let footer = current.footer.len() + group::head_bytes(entries);
            let end = current.position
                + group_bytes as u64
                + footer.next_multiple_of(BLOCK_BYTES) as u64
                + BLOCK_BYTES as u64;
            if end <= disk.files.segment_bytes() {
                return Ok(());
            }
            self.close(disk)?;
        }
        self.open(disk)
    }

    /// Opens another segment; its header is durable when this returns. Parks.
    fn open(&mut self, disk: &Disk) -> Result<(), StoreError> {
        while disk.table.lock().is_list_full() {
            disk.sync_data()?;
        }
        let reserve = if self.stream == Stream::Moved { 0 } else { COLLECTION_RESERVE };
        let (number, seq, had_life, record) = {
            let _alone = disk.choosing.lock();
            let mut table = disk.table.lock();
            let (number, had_life) = table.choose(reserve, disk.wal.durable());
            (number, table.segments[number as usize].seq, had_life, table.sync_record())
        };
        let mut block = AlignedBuf::zeroed(BLOCK_BYTES);
        disk.header(number, seq, self.stream, false, record).encode(&mut block);
        // On a full disk the same segment is tried again: the record lists it as open.
        disk.write_or_wait(&block, disk.start_of(number), true)?;
        if had_life {
            probe!("pagestore_segment_reused");
            add(&disk.counters.segment_reuses, 1);
        }
        let position = BLOCK_BYTES as u64;
        self.current = Some(Current { number, seq, position, groups: 0, footer: Vec::new() });
        Ok(())
    }

    /// Closes the current segment with its footer. Parks.
    pub(crate) fn close(&mut self, disk: &Disk) -> Result<(), StoreError> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let (bytes, offset) = encode_footer(
            disk.uuid,
            current.number,
            current.seq,
            disk.files.segment_bytes(),
            current.groups,
            &current.footer,
        );
        disk.write_or_wait(&bytes, disk.start_of(current.number) + offset, false)?;
        disk.table.lock().close(current.number);
        Ok(())
    }
}
