//! One temporary file of records.

use super::{Charged, Spill};
use crate::ExecError;
use base::checksum::crc32c;
use base::memory::MemoryAccount;
use runtime::file::{File, OpenOptions};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use types::{SqlError, codes};

/// The system's numbers for a full disk and a used up quota.
const NO_SPACE: [i32; 2] = [28, 122];
static FILE_NUMBER: AtomicU64 = AtomicU64::new(0);

pub(super) fn failed(spill: &Spill, error: &io::Error) -> ExecError {
    let full = error.raw_os_error().is_some_and(|number| NO_SPACE.contains(&number));
    if full || error.kind() == io::ErrorKind::StorageFull {
        let table = spill.directory().display();
        return SqlError::new(&codes::RECORD_FILE_FULL, &[&table]).into();
    }
    let text = format!("temporary file in '{}': {error}", spill.directory().display());
    SqlError::with_message(&codes::UNKNOWN_ERROR, text).into()
}

pub(super) fn refused() -> ExecError {
    SqlError::new(&codes::OUT_OF_SORTMEMORY, &[]).into()
}

pub(super) fn damaged(spill: &Spill, block: usize) -> ExecError {
    let directory = spill.directory().display();
    let text = format!("temporary file in '{directory}': block {block} is damaged");
    SqlError::with_message(&codes::UNKNOWN_ERROR, text).into()
}

/// A new file, which has no name any more.
pub(super) fn open(spill: &Spill) -> Result<File, ExecError> {
    let number = FILE_NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = spill.directory().join(format!("spill-{}-{number}", std::process::id()));
    let open = || OpenOptions::new().create(true).truncate(true).open(&path);
    let opened = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            runtime::fs::create_dir_all(spill.directory()).and_then(|()| open())
        }
        opened => opened,
    };
    let file = opened.map_err(|error| failed(spill, &error))?;
    runtime::fs::remove_file(&path).map_err(|error| failed(spill, &error))?;
    spill.count_file();
    base::probe!("exec.spilled");
    Ok(file)
}

/// A block in its file.
#[derive(Clone, Copy, Debug)]
struct Block {
    offset: u64,
    bytes: u32,
    checksum: u32,
    /// Number of its first record.
    first_record: u64,
}

/// Records that lie in a file, in the order in which they were written.
#[derive(Debug)]
pub struct SpillFile {
    file: File,
    spill: Arc<Spill>,
    blocks: Vec<Block>,
    bytes: u64,
    records: u64,
}

impl SpillFile {
    fn create(spill: &Arc<Spill>) -> Result<Self, ExecError> {
        let file = open(spill)?;
        Ok(Self { file, spill: spill.clone(), blocks: Vec::new(), bytes: 0, records: 0 })
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Appends a block that ends with record number `records`.
    fn append(&mut self, block: &mut Vec<u8>, records: u64) -> Result<(), ExecError> {
        if block.is_empty() {
            return Ok(());
        }
        let offset = self.bytes;
        let written = self.file.write_at(block, offset);
        written.map_err(|error| failed(&self.spill, &error))?;
        let (bytes, checksum) = (block.len() as u32, crc32c(block));
        self.blocks.push(Block { offset, bytes, checksum, first_record: self.records });
        self.bytes += block.len() as u64;
        self.records = records;
        block.clear();
        Ok(())
    }

    /// The number of the block with a record.
    pub fn block_of(&self, record: u64) -> usize {
        self.blocks.partition_point(|block| block.first_record <= record).saturating_sub(1)
    }

    /// The records of a block that was read.
    pub fn records_of(block: &[u8]) -> impl Iterator<Item = &[u8]> {
        let mut rest = block;
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            let (record, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = behind;
            Some(record)
        })
    }

    /// Reads block `number`; the number of its first record.
    pub fn read_block(&self, number: usize, out: &mut Vec<u8>) -> Result<u64, ExecError> {
        let block = self.blocks[number];
        out.clear();
        out.resize(block.bytes as usize, 0);
        let read = self.file.read_at(out, block.offset);
        read.map_err(|error| failed(&self.spill, &error))?;
        if crc32c(out) != block.checksum {
            return Err(damaged(&self.spill, number));
        }
        Ok(block.first_record)
    }
}

/// Writes records to a file, which is made with the first block.
#[derive(Debug)]
pub struct SpillWriter {
    spill: Arc<Spill>,
    file: Option<SpillFile>,
    block: Vec<u8>,
    block_bytes: usize,
    records: u64,
    charged: Charged,
}

impl SpillWriter {
    /// With blocks of about `block_bytes`, charged to the statement.
    pub fn new(
        spill: &Arc<Spill>,
        memory: &Arc<MemoryAccount>,
        block_bytes: usize,
    ) -> Result<Self, ExecError> {
        let mut charged = Charged::none(memory);
        if !charged.add(block_bytes) {
            return Err(refused());
        }
        let spill = spill.clone();
        Ok(Self { spill, file: None, block: Vec::new(), block_bytes, records: 0, charged })
    }

    /// Records so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Adds a record; `write` appends its bytes.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), ExecError> {
        if self.block.capacity() == 0 {
            self.block.reserve_exact(self.block_bytes);
        }
        let start = self.block.len();
        self.block.extend_from_slice(&[0; 4]);
        write(&mut self.block);
        let length = (self.block.len() - start - 4) as u32;
        self.block[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.records += 1;
        // Half of the block stays for a record that is longer than others.
        if self.block.len() >= self.block_bytes / 2 { self.flush() } else { Ok(()) }
    }

    /// Adds a record.
    pub fn push(&mut self, record: &[u8]) -> Result<(), ExecError> {
        self.push_with(|block| block.extend_from_slice(record))
    }

    fn flush(&mut self) -> Result<(), ExecError> {
        if self.block.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(SpillFile::create(&self.spill)?),
        };
        file.append(&mut self.block, self.records)?;
        self.block.shrink_to(self.block_bytes);
        Ok(())
    }

    /// What was written; none if nothing was.
    pub fn finish(mut self) -> Result<Option<SpillFile>, ExecError> {
        self.flush()?;
        self.charged.clear();
        Ok(self.file)
    }
}

/// Reads the records of a file.
#[derive(Debug)]
pub struct SpillReader {
    file: Arc<SpillFile>,
    block: Vec<u8>,
    next_block: usize,
    at: usize,
    charged: Charged,
}

impl SpillReader {
    /// From the first record on; a block in memory is charged to the statement.
    pub fn new(file: Arc<SpillFile>, memory: &Arc<MemoryAccount>) -> Result<Self, ExecError> {
        let most = file.blocks.iter().map(|block| block.bytes).max().unwrap_or(0);
        let mut charged = Charged::none(memory);
        if !charged.add(most as usize) {
            return Err(refused());
        }
        Ok(Self { file, block: Vec::new(), next_block: 0, at: 0, charged })
    }

    /// Comes to the next record; false at the end.
    pub fn advance(&mut self) -> Result<bool, ExecError> {
        self.at += self.record().map_or(0, |record| record.len() + 4);
        if self.at < self.block.len() {
            return Ok(true);
        }
        if self.next_block >= self.file.blocks.len() {
            self.block.clear();
            self.at = 0;
            self.charged.clear();
            return Ok(false);
        }
        self.file.read_block(self.next_block, &mut self.block)?;
        self.next_block += 1;
        self.at = 0;
        Ok(true)
    }

    /// The record come to.
    pub fn record(&self) -> Option<&[u8]> {
        let (length, rest) = self.block.get(self.at..)?.split_first_chunk::<4>()?;
        rest.get(..u32::from_le_bytes(*length) as usize)
    }
}
