//! The rows of one partition, by number: in memory, beyond the budget in a file.
//!
//! Functions walk through the rows at a few places, at the present row and at both ends of its
//! frame: so many blocks of the file are in memory, those that were looked at last.

use super::super::row_bytes;
use super::super::rows::{Values, push_value};
use crate::ExecError;
use crate::context::Exec;
use crate::query::output::refused;
use crate::spill::{Charged, Spill, SpillFile, SpillWriter, block_bytes};
use base::memory::MemoryAccount;
use std::sync::Arc;
use types::{Value, ValueRef};

/// Blocks of a file in memory.
const CACHED_BLOCKS: usize = 6;

/// See the head of the file.
pub struct PartitionRows {
    memory: Arc<MemoryAccount>,
    spill: Arc<Spill>,
    /// Values of a row.
    width: usize,
    rows: Vec<Vec<Value>>,
    charged: Charged,
    writer: Option<SpillWriter>,
    file: Option<FileRows>,
    count: usize,
}

/// Rows in a file.
struct FileRows {
    file: SpillFile,
    cache: Vec<CachedBlock>,
    /// Looks at the cache so far.
    looks: u64,
    block: Vec<u8>,
}

struct CachedBlock {
    /// Number of its first row.
    first: usize,
    rows: Vec<Vec<Value>>,
    last_look: u64,
    _charged: Charged,
}

impl PartitionRows {
    /// No rows of `width` values.
    pub fn new(exec: &Exec<'_>, width: usize) -> Self {
        Self {
            memory: exec.memory.clone(),
            spill: exec.spill.clone(),
            width,
            rows: Vec::new(),
            charged: Charged::none(exec.memory),
            writer: None,
            file: None,
            count: 0,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[ValueRef<'_>]) -> Result<(), ExecError> {
        self.count += 1;
        if self.writer.is_none() {
            let owned: Vec<Value> = row.iter().map(|&value| ValueRef::to_owned(value)).collect();
            let bytes = row_bytes(&owned);
            let most = self.spill.budgets().table;
            if self.charged.bytes() + bytes as u64 <= most && self.charged.add(bytes) {
                self.rows.push(owned);
                return Ok(());
            }
            self.move_to_file()?;
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.push_with(|out| row.iter().for_each(|&value| push_value(value, out)))
    }

    fn move_to_file(&mut self) -> Result<(), ExecError> {
        self.spill.count_disk_table();
        // The rows give their memory before the file asks for its block.
        self.charged.clear();
        let block_bytes = block_bytes(self.spill.budgets().table);
        let mut writer = SpillWriter::new(&self.spill, &self.memory, block_bytes)?;
        for row in std::mem::take(&mut self.rows) {
            writer.push_with(|out| row.iter().for_each(|value| push_value(value.as_ref(), out)))?;
        }
        self.writer = Some(writer);
        Ok(())
    }

    /// All rows have come.
    pub fn finish(&mut self) -> Result<(), ExecError> {
        if let Some(writer) = self.writer.take() {
            let rows = |file| FileRows { file, cache: Vec::new(), looks: 0, block: Vec::new() };
            self.file = writer.finish()?.map(rows);
        }
        Ok(())
    }

    /// Row number `at`, which there must be.
    pub fn row(&mut self, at: usize) -> Result<&mut Vec<Value>, ExecError> {
        match &mut self.file {
            None => Ok(&mut self.rows[at]),
            Some(file) => file.row(at, self.width, &self.memory),
        }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.charged.clear();
        self.file = None;
        self.count = 0;
    }
}

impl FileRows {
    fn row(
        &mut self,
        at: usize,
        width: usize,
        memory: &Arc<MemoryAccount>,
    ) -> Result<&mut Vec<Value>, ExecError> {
        self.looks += 1;
        let has = |block: &CachedBlock| at >= block.first && at - block.first < block.rows.len();
        let place = match self.cache.iter().position(has) {
            Some(place) => place,
            None => self.load(at, width, memory)?,
        };
        let block = &mut self.cache[place];
        block.last_look = self.looks;
        Ok(&mut block.rows[at - block.first])
    }

    /// Reads the block with row `at`; its place in the cache.
    fn load(
        &mut self,
        at: usize,
        width: usize,
        memory: &Arc<MemoryAccount>,
    ) -> Result<usize, ExecError> {
        runtime::yield_if_due();
        if self.cache.len() == CACHED_BLOCKS {
            let oldest = self.cache.iter().enumerate().min_by_key(|(_, block)| block.last_look);
            let oldest = oldest.map_or(0, |(place, _)| place);
            self.cache.swap_remove(oldest);
        }
        let number = self.file.block_of(at as u64);
        let first = self.file.read_block(number, &mut self.block)? as usize;
        let rows: Vec<Vec<Value>> = SpillFile::records_of(&self.block)
            .map(|record| {
                let mut values = Values::new(record);
                (0..width).map(|_| ValueRef::to_owned(values.next_value())).collect()
            })
            .collect();
        let mut charged = Charged::none(memory);
        if !charged.add(rows.iter().map(|row| row_bytes(row)).sum()) {
            return Err(refused());
        }
        let last_look = self.looks;
        self.cache.push(CachedBlock { first, rows, last_look, _charged: charged });
        Ok(self.cache.len() - 1)
    }
}
