//! The rows of a query kept to be read any number of times: a derived table. Beyond the budget
//! they lie in a file.

use super::rows::{PackedRows, packed_bytes};
use crate::ExecError;
use crate::context::Exec;
use crate::spill::{Charged, Spill, SpillFile, SpillReader, SpillWriter, block_bytes};
use base::memory::MemoryAccount;
use std::sync::Arc;
use types::ValueRef;

/// See the head of the file.
#[derive(Debug)]
pub enum DerivedRows {
    /// In memory.
    Memory {
        /// The rows.
        rows: Arc<PackedRows>,
        /// Their memory.
        _charged: Charged,
    },
    /// In a file, each record one row.
    Spilled {
        /// The file.
        file: Arc<SpillFile>,
        /// Rows that are not wanted.
        skip: u64,
    },
}

impl DerivedRows {
    /// No rows.
    pub fn empty(charged: Charged) -> Self {
        Self::Memory { rows: Arc::new(PackedRows::default()), _charged: charged }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Memory { rows, .. } if rows.len() == 0)
    }

    /// Calls `each` with some rows after the other until it says that it wants no more.
    pub fn each_part(
        &self,
        exec: &mut Exec<'_>,
        mut each: impl FnMut(&mut Exec<'_>, &Arc<PackedRows>) -> Result<super::Flow, ExecError>,
    ) -> Result<super::Flow, ExecError> {
        let (file, skip) = match self {
            Self::Memory { rows, .. } => return each(exec, rows),
            Self::Spilled { file, skip } => (file, *skip),
        };
        let mut reader = SpillReader::new(file.clone(), exec.memory)?;
        let part_bytes = (exec.spill.budgets().table / 4) as usize;
        let mut charged = Charged::none(exec.memory);
        let mut number = 0;
        let mut has_row = reader.advance()?;
        while has_row {
            let mut part = PackedRows::default();
            while let Some(row) = reader.record().filter(|_| has_row && part.end() < part_bytes) {
                number += 1;
                if number > skip {
                    part.push_packed(row);
                }
                has_row = reader.advance()?;
            }
            charged.clear();
            if !charged.add(part.end() + part.len() * size_of::<usize>()) {
                return Err(super::output::refused());
            }
            if each(exec, &Arc::new(part))?.is_break() {
                return Ok(super::Flow::Break(()));
            }
        }
        Ok(super::Flow::Continue(()))
    }
}

/// Takes the rows of a query one by one.
pub struct RowKeeper {
    rows: PackedRows,
    charged: Charged,
    memory: Arc<MemoryAccount>,
    spill: Arc<Spill>,
    file: Option<SpillWriter>,
    width: usize,
}

impl RowKeeper {
    /// For rows of `width` values.
    pub fn new(exec: &Exec<'_>, width: usize) -> Self {
        exec.spill.count_table();
        Self::of(exec.memory, exec.spill, width)
    }

    fn of(memory: &Arc<MemoryAccount>, spill: &Arc<Spill>, width: usize) -> Self {
        Self {
            rows: PackedRows::default(),
            charged: Charged::none(memory),
            memory: memory.clone(),
            spill: spill.clone(),
            file: None,
            width,
        }
    }

    /// For rows that are known not to fit: they go to a file from the first.
    pub fn in_file(
        memory: &Arc<MemoryAccount>,
        spill: &Arc<Spill>,
        width: usize,
    ) -> Result<Self, ExecError> {
        let mut keeper = Self::of(memory, spill, width);
        keeper.move_to_file(spill.budgets().table)?;
        Ok(keeper)
    }

    /// Keeps a row.
    pub fn push(&mut self, row: &[ValueRef<'_>]) -> Result<(), ExecError> {
        if let Some(file) = &mut self.file {
            return file.push_with(|out| row.iter().for_each(|v| super::rows::push_value(*v, out)));
        }
        let bytes = packed_bytes(row);
        let budget = self.spill.budgets().table;
        if self.charged.bytes() + bytes as u64 > budget || !self.charged.add(bytes) {
            self.move_to_file(budget)?;
            return self.push(row);
        }
        self.rows.push(row);
        Ok(())
    }

    fn move_to_file(&mut self, budget: u64) -> Result<(), ExecError> {
        self.spill.count_disk_table();
        let rows = std::mem::take(&mut self.rows);
        // The rows give their memory before the file asks for its block: both together would
        // pass a limit that was just met.
        self.charged.clear();
        let mut file = SpillWriter::new(&self.spill, &self.memory, block_bytes(budget))?;
        for row in 0..rows.len() {
            file.push(rows.row_bytes(rows.start(row), self.width))?;
        }
        self.file = Some(file);
        Ok(())
    }

    /// The rows.
    pub fn finish(self) -> Result<DerivedRows, ExecError> {
        let Some(file) = self.file else {
            return Ok(DerivedRows::Memory { rows: Arc::new(self.rows), _charged: self.charged });
        };
        Ok(match file.finish()? {
            Some(file) => DerivedRows::Spilled { file: Arc::new(file), skip: 0 },
            None => DerivedRows::empty(Charged::none(&self.memory)),
        })
    }
}
