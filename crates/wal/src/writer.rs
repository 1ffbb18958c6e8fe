//! The writing end of the log: seals batches and puts them into files. One fiber at a time, the
//! flush leader, owns the writer.
//!
//! Invariants:
//! 1. A block that is durable is not written again before its file is recycled: every batch
//!    begins on a block of its own, so a torn write can only hit log that nobody relies on. A
//!    block is the smallest that the device takes, since a batch is padded to whole ones.
//! 2. Batches are written one after another: a batch is handed to the device only after the
//!    write before it has completed, and a new file only after the old one is synced.
//! 3. The durable LSN in a batch was durable when the batch was sealed.
//! 4. A file counts as part of the log only when its header is durable, whatever the flush
//!    policy: otherwise the files before it could be recycled and a crash would leave no log.
//! 5. A batch is made durable by itself only if nothing before it in its file is unsynced: a
//!    durable write says nothing about other writes.
//! 6. Every sector written is sealed or empty (`sector`).

use crate::counters::{
    self, FILE_BYTES, FILE_SWITCHES, FLUSHES, RECORD_BYTES, SYNCED_WRITE_NANOS, SYNCED_WRITES,
    SYNCS,
};
use crate::files::{LogFiles, Prepared, is_out_of_space};
use crate::format::{
    BatchHeader, FileHeader, batch_file_bytes, batch_sector_bytes, payload_places,
};
use crate::ring::Ring;
use crate::room::SPACE_WAIT_MAX;
use crate::sector::SECTOR_BYTES;
use crate::types::{LogEnd, WalOptions};
use base::{buggify, probe};
use runtime::WaitClass;
use runtime::file::{AlignedBuf, DIRECT_ALIGNMENT, File};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long the leader waits before it asks a full disk for space again.
const SPACE_RETRY: Duration = Duration::from_millis(100);

/// On a full disk a batch takes one of so many parts of the shortest file at most.
const SHORT_BATCH_PARTS: u64 = 4;

/// The size of blocks for a file: what its device takes, but no less than `least`.
fn block_bytes_of(file: &mut File, least: usize) -> usize {
    let device = file.use_device_blocks();
    // A device that wants more; simulations then meet logs whose files have different blocks.
    let device = if buggify!() { DIRECT_ALIGNMENT } else { device };
    device.max(least)
}

/// See the module text.
#[derive(Debug)]
pub(crate) struct Writer {
    files: Arc<LogFiles>,
    database_uuid: [u8; 16],
    /// The least size of blocks.
    block_bytes_min: usize,
    max_batch_bytes: u64,
    file: File,
    /// The size of blocks in the present file.
    block_bytes: usize,
    sequence: u64,
    file_len: u64,
    /// Where the next batch goes.
    offset: u64,
    /// The present file has no header yet: it goes out with the first batch.
    header_pending: bool,
    epoch: u32,
    chain: u32,
    /// Everything below was taken out of the ring.
    pub(crate) sealed: u64,
    /// Everything below is durable.
    pub(crate) durable: u64,
    /// The durable LSN named by the last batch.
    pub(crate) noted: u64,
    /// Synced writes, and the nanoseconds they took.
    pub(crate) synced_writes: (u64, u64),
    /// Something was written since the last sync.
    unsynced: bool,
    buffer: AlignedBuf,
    /// The longest that the buffer was.
    longest: usize,
    /// End of what the last batch has put into the buffer; what follows is zero.
    filled: usize,
}

impl Writer {
    /// Continues the log at `end`, whose file is `file` and has blocks of `block_bytes`: in it, or
    /// in the next one if the device wants longer ones.
    pub(crate) fn new(
        files: Arc<LogFiles>,
        options: &WalOptions,
        (mut file, file_len): (File, u64),
        block_bytes: usize,
        end: LogEnd,
        epoch: u32,
    ) -> Writer {
        let fits = block_bytes_of(&mut file, options.block_bytes_min) <= block_bytes;
        Writer {
            files,
            database_uuid: options.database_uuid,
            block_bytes_min: options.block_bytes_min,
            max_batch_bytes: options.max_batch_bytes as u64,
            file,
            block_bytes,
            sequence: end.file_sequence,
            file_len,
            offset: if fits { end.file_offset } else { file_len },
            header_pending: false,
            epoch,
            chain: end.chain,
            sealed: end.lsn.get(),
            durable: 0,
            noted: 0,
            synced_writes: (0, 0),
            unsynced: true,
            buffer: AlignedBuf::zeroed(0),
            longest: 0,
            filled: 0,
        }
    }

    /// Creates the first file of a new log and its header, durably.
    pub(crate) fn create(
        files: Arc<LogFiles>,
        options: &WalOptions,
        start: u64,
        epoch: u32,
    ) -> io::Result<Writer> {
        let Prepared { mut file, sequence, len, .. } = files.take_next(0)?;
        let block_bytes = block_bytes_of(&mut file, options.block_bytes_min);
        let header = FileHeader { block_bytes, sequence, first_lsn: start, epoch, chain: 0 };
        let mut block = AlignedBuf::zeroed(block_bytes);
        header.encode(&options.database_uuid, &mut block);
        file.write_and_sync(&block, 0)?;
        files.began(sequence, start, len);
        let end = LogEnd {
            lsn: base::Lsn::new(start),
            file_sequence: sequence,
            file_offset: block_bytes as u64,
            epoch,
            chain: 0,
        };
        Ok(Writer::new(files, options, (file, len), block_bytes, end, epoch))
    }

    /// Writes the published records that are waiting in `ring`, at most one batch of them, and
    /// with `sync` makes everything written so far durable. `took` is called as soon as the
    /// ring's room is free again. Writes nothing if nothing is published.
    pub(crate) fn flush(&mut self, ring: &Ring, sync: bool, took: impl FnOnce()) -> io::Result<()> {
        let end = ring.published(self.sealed, self.batch_bytes_max());
        if end == self.sealed {
            return if sync { self.sync() } else { Ok(()) };
        }
        let payload_len = (end - self.sealed) as usize;
        let batch = self.begin_batch(payload_len)?;
        ring.take(self.sealed, end, payload_places(&mut self.buffer[batch..]));
        took();
        RECORD_BYTES.add(payload_len as u64);
        self.end_batch(batch, payload_len, sync)
    }

    /// How long a batch may be: on a full disk it has to fit into the shortest of files.
    fn batch_bytes_max(&self) -> u64 {
        match self.files.out_of_space() {
            true => self.max_batch_bytes.min(self.files.file_bytes_bounds().0 / SHORT_BATCH_PARTS),
            false => self.max_batch_bytes,
        }
    }

    /// Writes and syncs a batch without records, which only says what is durable.
    pub(crate) fn write_note(&mut self) -> io::Result<()> {
        self.sync()?;
        let batch = self.begin_batch(0)?;
        self.end_batch(batch, 0, true)
    }

    /// Makes everything written durable.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if self.unsynced {
            if !base::mutant!("skip_wal_sync") {
                self.file.sync_data()?;
            }
            SYNCS.add(1);
            self.unsynced = false;
        }
        self.durable = self.sealed;
        Ok(())
    }

    /// Finds the place of the next batch and prepares the buffer; returns where in it the batch
    /// goes.
    fn begin_batch(&mut self, payload_len: usize) -> io::Result<usize> {
        let mut len = batch_file_bytes(payload_len, self.block_bytes);
        // Switching early is always allowed; simulations then meet many more file ends.
        let wants_switch = !self.header_pending && self.files.has_next() && buggify!();
        if self.offset + len as u64 > self.file_len || wants_switch {
            self.switch_file(payload_len)?;
            len = batch_file_bytes(payload_len, self.block_bytes);
        }
        let before = if self.header_pending { self.block_bytes } else { 0 };
        if before + len > self.longest {
            // As long as it must be and no longer: growing would double it, and copy what is in it.
            self.longest = before + len;
            self.buffer = AlignedBuf::zeroed(0);
            self.filled = 0;
        }
        self.buffer.resize(before + len);
        if self.header_pending {
            let header = FileHeader {
                block_bytes: self.block_bytes,
                sequence: self.sequence,
                first_lsn: self.sealed,
                epoch: self.epoch,
                chain: self.chain,
            };
            header.encode(&self.database_uuid, &mut self.buffer[..before]);
        }
        // The last sector, which is filled in part, and the padding: only what the batch before
        // has left there.
        let end = before + batch_sector_bytes(payload_len);
        let stale = self.filled.min(self.buffer.len()).max(end);
        self.buffer[end - SECTOR_BYTES..stale].fill(0);
        self.filled = end;
        Ok(before)
    }

    /// Seals the batch in the buffer and writes it.
    fn end_batch(&mut self, batch: usize, payload_len: usize, sync: bool) -> io::Result<()> {
        let header = BatchHeader {
            epoch: self.epoch,
            chain: self.chain,
            start_lsn: self.sealed,
            durable_lsn: self.durable,
            payload_len,
            body_crc: 0,
            seal: 0,
        };
        let chain = header.seal(&self.database_uuid, &mut self.buffer[batch..]);
        let offset = self.offset - batch as u64;
        // Invariant 4: the header of a new file goes out with this batch.
        let sync = sync || self.header_pending;
        if sync && !base::mutant!("skip_wal_sync") {
            let begun = runtime::now();
            // Invariant 5: only what all of the file is synced up to may go on by itself.
            let is_all_synced = !self.unsynced && !self.header_pending;
            if is_all_synced || base::mutant!("durable_write_over_unsynced") {
                self.file.write_durable(&self.buffer, offset)?;
            } else {
                self.file.write_and_sync(&self.buffer, offset)?;
            }
            let nanos = (runtime::now() - begun).as_nanos() as u64;
            SYNCED_WRITES.add(1);
            SYNCED_WRITE_NANOS.add(nanos);
            self.synced_writes.0 += 1;
            self.synced_writes.1 += nanos;
        } else {
            self.file.write_at(&self.buffer, offset)?;
        }
        FLUSHES.add(1);
        FILE_BYTES.add(self.buffer.len() as u64);
        if self.header_pending {
            self.header_pending = false;
            self.files.began(self.sequence, self.sealed, self.file_len);
            counters::LIVE_FILE_BYTES.set(self.files.live_bytes() as i64);
        }
        self.offset = offset + self.buffer.len() as u64;
        self.chain = chain;
        self.noted = self.durable;
        self.sealed += payload_len as u64;
        self.unsynced = !sync;
        if sync {
            SYNCS.add(1);
            self.durable = self.sealed;
        }
        self.prepare_ahead();
        Ok(())
    }

    /// Has the next file prepared when half of the present one is used.
    fn prepare_ahead(&self) {
        if self.offset > self.file_len / 2 && self.files.wants_next() {
            let files = self.files.clone();
            drop(runtime::spawn("wal-prepare", move || files.prepare_next()));
        }
    }

    /// Goes on in the next file, which has room for a batch with so much payload. Waits for space
    /// if the disk is full: what is in the ring was promised to be written.
    fn switch_file(&mut self, payload_len: usize) -> io::Result<()> {
        // Invariant 2.
        self.sync()?;
        let longest = self.files.block_bytes_max;
        let need_bytes = (longest + batch_file_bytes(payload_len, longest)) as u64;
        let begun = runtime::now();
        let next = loop {
            match self.files.take_next(need_bytes) {
                Ok(next) => break next,
                Err(error) if is_out_of_space(&error) => {
                    probe!("wal.leader_waits_for_space");
                    if begun.elapsed() >= SPACE_WAIT_MAX {
                        self.files.tell_of_wait();
                    }
                    let until = runtime::now() + SPACE_RETRY;
                    while runtime::now() < until {
                        runtime::park_uncancellable(WaitClass::LogSpace, Some(until));
                    }
                }
                Err(error) => return Err(error),
            }
        };
        FILE_SWITCHES.add(1);
        probe!("wal.file_switched");
        self.file = next.file;
        self.block_bytes = block_bytes_of(&mut self.file, self.block_bytes_min);
        self.sequence = next.sequence;
        self.file_len = next.len;
        self.offset = self.block_bytes as u64;
        self.header_pending = true;
        Ok(())
    }

    /// Bytes left in the present file.
    pub(crate) fn remaining_file_bytes(&self) -> u64 {
        self.file_len.saturating_sub(self.offset)
    }
}
