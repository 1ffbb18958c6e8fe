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

fn failed(spill: &Spill, error: &io::Error) -> ExecError {
    let full = error.raw_os_error().is_some_and(|number| NO_SPACE.contains(&number));
    if full || error.kind() == io::ErrorKind::StorageFull {
        let table = spill.directory().display();
        return SqlError::new(&codes::RECORD_FILE_FULL, &[&table]).into();
    }
    let text = format!("temporary file in '{}': {error}", spill.directory().display());
    SqlError::with_message(&codes::UNKNOWN_ERROR, text).into()
}

fn refused() -> ExecError {
    SqlError::new(&codes::OUT_OF_SORTMEMORY, &[]).into()
}

/// A block in its file.
#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: u32,
    checksum: u32,
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
        Ok(Self { file, spill: spill.clone(), blocks: Vec::new(), bytes: 0, records: 0 })
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    fn append(&mut self, block: &mut Vec<u8>) -> Result<(), ExecError> {
        if block.is_empty() {
            return Ok(());
        }
        let written = self.file.write_at(block, self.bytes);
        written.map_err(|error| failed(&self.spill, &error))?;
        self.blocks.push(Block { bytes: block.len() as u32, checksum: crc32c(block) });
        self.bytes += block.len() as u64;
        block.clear();
        Ok(())
    }

    /// Reads block `number`, which begins at `offset`.
    fn read(&self, number: usize, offset: u64, out: &mut Vec<u8>) -> Result<(), ExecError> {
        let block = self.blocks[number];
        out.clear();
        out.resize(block.bytes as usize, 0);
        let read = self.file.read_at(out, offset);
        read.map_err(|error| failed(&self.spill, &error))?;
        if crc32c(out) != block.checksum {
            let text = format!(
                "temporary file in '{}': block {number} is damaged",
                self.spill.directory().display()
            );
            return Err(SqlError::with_message(&codes::UNKNOWN_ERROR, text).into());
        }
        Ok(())
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
        file.append(&mut self.block)?;
        self.block.shrink_to(self.block_bytes);
        Ok(())
    }

    /// What was written; none if nothing was.
    pub fn finish(mut self) -> Result<Option<SpillFile>, ExecError> {
        self.flush()?;
        let records = self.records;
        self.charged.clear();
        Ok(self.file.map(|mut file| {
            file.records = records;
            file
        }))
    }
}

/// Reads the records of a file.
#[derive(Debug)]
pub struct SpillReader {
    file: Arc<SpillFile>,
    block: Vec<u8>,
    next_block: usize,
    offset: u64,
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
        Ok(Self { file, block: Vec::new(), next_block: 0, offset: 0, at: 0, charged })
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
        self.offset += self.block.len() as u64;
        self.file.read(self.next_block, self.offset, &mut self.block)?;
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
