//! Which rows came before: DISTINCT and UNION.
//!
//! 1. Keys of rows are kept in memory up to the budget. From then on a row whose key is not among
//!    them goes to a file, chosen by the key's hash, and is looked at when all rows have come:
//!    file by file, each with a table of its own, which may overflow in its turn.
//! 2. A row that went to a file is decided there: equal rows meet in one file.
//! 3. Where equal rows come one behind the other, only the last key is kept.
//! 4. Where the order of rows must stay, those that go to files carry their number. All of them
//!    come behind those that were given before, so sorting what is left by that number, when all
//!    rows have come, restores the order.
//! 5. Where a row must be decided when it comes, keys that do not fit lie in a table in files
//!    (`spill/key_table.rs`).

use super::Flow;
use super::keys::{KEY_OVERHEAD_BYTES, Keys};
use super::rows::{Values, push_value};
use super::sorter::Sorter;
use crate::ExecError;
use crate::order;
use crate::spill::{Charged, KeyTable, Partitions, Spill, SpillFile, SpillReader};
use base::memory::MemoryAccount;
use plan::physical::SortKey;
use smallvec::SmallVec;
use std::sync::Arc;
use types::{ColumnType, TypeKind, ValueRef};

/// What is known of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It is the first of its kind.
    First,
    /// One like it came before.
    Before,
    /// [`Distinct::drain`] will tell.
    Later,
}

/// In which order rows come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coming {
    /// In any; they may go on in another.
    Any,
    /// In any that must stay.
    Fixed,
    /// In any, and each must be decided at once.
    AtOnce,
    /// In one that must stay; equal rows one behind the other.
    Neighbours,
}

/// See the head of the file.
pub struct Distinct {
    order: Coming,
    /// The key of the row before, where it is all that is kept.
    last: Vec<u8>,
    seen: Keys,
    key: Vec<u8>,
    types: Vec<ColumnType>,
    charged: Charged,
    memory: Arc<MemoryAccount>,
    spill: Arc<Spill>,
    later: Option<Partitions>,
    /// All keys, where rows must be decided at once and the keys do not fit.
    table: Option<Box<KeyTable>>,
    level: u32,
    /// Rows that went to files, where they carry their numbers.
    numbered: u64,
}

/// Memory charged at least at once.
const CHARGE_BYTES: usize = 4096;

impl Distinct {
    /// For rows whose first values, those of `types`, are compared.
    pub fn new(types: Vec<ColumnType>, memory: &Arc<MemoryAccount>, spill: &Arc<Spill>) -> Self {
        Self {
            order: Coming::Any,
            last: Vec::new(),
            seen: Keys::default(),
            key: Vec::new(),
            types,
            charged: Charged::none(memory),
            memory: memory.clone(),
            spill: spill.clone(),
            later: None,
            table: None,
            level: 0,
            numbered: 0,
        }
    }

    /// The same for rows that come in an order.
    pub fn in_order(self, order: Coming) -> Self {
        Self { order, ..self }
    }

    fn set_key(&mut self, values: &[ValueRef<'_>]) {
        self.key.clear();
        for (value, column_type) in values.iter().zip(&self.types) {
            order::push_identity(*value, column_type, &mut self.key);
        }
    }

    /// Whether memory for the keys is there.
    fn has_room(&mut self) -> bool {
        let bytes = self.seen.bytes() as u64;
        let Some(more) = bytes.checked_sub(self.charged.bytes()).filter(|more| *more > 0) else {
            return true;
        };
        bytes <= self.spill.budgets().table && self.charged.add((more as usize).max(CHARGE_BYTES))
    }

    /// Whether the row's key is new, if memory for it is there; none if not.
    pub fn look(&mut self, values: &[ValueRef<'_>]) -> Option<Seen> {
        self.set_key(values);
        if self.order == Coming::Neighbours {
            // No key is empty: each value begins with its kind.
            let is_new = self.last != self.key;
            std::mem::swap(&mut self.last, &mut self.key);
            return Some(if is_new { Seen::First } else { Seen::Before });
        }
        if self.later.is_some() || !self.has_room() {
            return self.seen.find(&self.key).map(|_| Seen::Before);
        }
        let (_, is_new) = self.seen.insert(&self.key);
        Some(if is_new { Seen::First } else { Seen::Before })
    }

    /// Looks at a row; one that cannot be decided now is kept.
    pub fn see(&mut self, values: &[ValueRef<'_>]) -> Result<Seen, ExecError> {
        if self.table.is_some() {
            self.set_key(values);
            return self.decide_in_files();
        }
        if let Some(seen) = self.look(values) {
            return Ok(seen);
        }
        match self.order {
            Coming::AtOnce => return self.decide_in_files(),
            Coming::Fixed => {
                self.numbered += 1;
                let mut row: SmallVec<[ValueRef<'_>; 8]> = values.iter().copied().collect();
                row.push(ValueRef::UInt(self.numbered));
                self.keep_for_later(&row)?;
            }
            Coming::Any | Coming::Neighbours => self.keep_for_later(values)?,
        }
        Ok(Seen::Later)
    }

    /// Decides a row, whose key is set, by the table in files.
    fn decide_in_files(&mut self) -> Result<Seen, ExecError> {
        let table = match &mut self.table {
            Some(table) => table,
            none => {
                let seen = std::mem::take(&mut self.seen);
                self.charged.clear();
                let budget = self.spill.budgets().table;
                let mut table = Box::new(KeyTable::new(&self.spill, &self.memory, budget)?);
                for number in 0..seen.len() {
                    table.insert(seen.key(number))?;
                }
                none.insert(table)
            }
        };
        Ok(if table.insert(&self.key)? { Seen::First } else { Seen::Before })
    }

    /// Puts a row, whose key is set, into a file.
    fn keep_for_later(&mut self, values: &[ValueRef<'_>]) -> Result<(), ExecError> {
        let later = match &mut self.later {
            Some(later) => later,
            empty => {
                if self.level == 0 {
                    self.spill.count_disk_table();
                }
                let budget = self.spill.budgets().table;
                empty.insert(Partitions::new(&self.spill, &self.memory, budget, self.level))
            }
        };
        let partition = later.of(&self.key);
        later.push_with(partition, |out| values.iter().for_each(|v| push_value(*v, out)))
    }

    /// Decides the rows that could not be decided before, which have `width` values; `give` gets
    /// those that are the first of their kind.
    pub fn drain(
        &mut self,
        width: usize,
        mut give: impl FnMut(&[ValueRef<'_>]) -> Result<Flow, ExecError>,
    ) -> Result<Flow, ExecError> {
        if self.order != Coming::Fixed || self.later.is_none() {
            return self.drain_files(width, give);
        }
        let number = SortKey { position: width, descending: false };
        let types = |_| ColumnType::integer(TypeKind::BigInt, true);
        let (memory, spill) = (self.memory.clone(), self.spill.clone());
        let mut sorter = Sorter::new(&[number], types, width + 1, u64::MAX, &memory, &spill);
        let _ = self.drain_files(width + 1, |row| sorter.add(row).map(Flow::Continue))?;
        sorter.sort()?;
        let mut flow = Flow::Continue(());
        sorter.give(0, |row| {
            flow = give(&row[..width])?;
            Ok(flow.is_continue())
        })?;
        Ok(flow)
    }

    /// The same in the order in which they are found.
    fn drain_files(
        &mut self,
        width: usize,
        mut give: impl FnMut(&[ValueRef<'_>]) -> Result<Flow, ExecError>,
    ) -> Result<Flow, ExecError> {
        let mut files: Vec<(SpillFile, u32)> = Vec::new();
        self.take_files(&mut files)?;
        while let Some((file, level)) = files.pop() {
            self.level = level;
            let mut reader = SpillReader::new(Arc::new(file), &self.memory)?;
            while reader.advance()? {
                runtime::yield_if_due();
                let mut values = Values::new(reader.record().unwrap_or(&[]));
                let row: SmallVec<[ValueRef<'_>; 8]> =
                    (0..width).map(|_| values.next_value()).collect();
                match self.look(&row) {
                    Some(Seen::First) if give(&row)?.is_break() => {
                        return Ok(Flow::Break(()));
                    }
                    Some(_) => {}
                    None => self.keep_for_later(&row)?,
                }
            }
            drop(reader);
            self.take_files(&mut files)?;
        }
        Ok(Flow::Continue(()))
    }

    /// Forgets what was seen and takes the files of what was not decided.
    fn take_files(&mut self, files: &mut Vec<(SpillFile, u32)>) -> Result<(), ExecError> {
        self.seen = Keys::default();
        self.charged.clear();
        if let Some(later) = self.later.take() {
            let level = later.level() + 1;
            files.extend(later.finish()?.into_iter().flatten().map(|file| (file, level)));
        }
        Ok(())
    }
}

impl Keys {
    /// Memory that the keys take.
    fn bytes(&self) -> usize {
        self.key_bytes() + self.len() * KEY_OVERHEAD_BYTES
    }
}
