//! Which rows came before: DISTINCT and UNION.
//!
//! 1. Keys of rows are kept in memory up to the budget. From then on a row whose key is not among
//!    them goes to a file, chosen by the key's hash, and is looked at when all rows have come:
//!    file by file, each with a table of its own, which may overflow in its turn.
//! 2. A row that went to a file is decided there: equal rows meet in one file.
//! 3. Where equal rows come one behind the other, only the last key is kept.
//! 4. Where the order of rows must stay and equal ones may come at any place, the keys stay in
//!    memory whatever the budget is.

use super::Flow;
use super::keys::{KEY_OVERHEAD_BYTES, Keys};
use super::rows::{Values, push_value};
use crate::ExecError;
use crate::order;
use crate::spill::{Charged, Partitions, Spill, SpillFile, SpillReader};
use base::memory::MemoryAccount;
use smallvec::SmallVec;
use std::sync::Arc;
use types::{ColumnType, ValueRef};

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
    level: u32,
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
            level: 0,
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
        let within = self.order == Coming::Fixed || bytes <= self.spill.budgets().table;
        within && self.charged.add((more as usize).max(CHARGE_BYTES))
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
        if let Some(seen) = self.look(values) {
            return Ok(seen);
        }
        if self.order == Coming::Fixed {
            return Err(super::output::refused());
        }
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
        later.push_with(partition, |out| values.iter().for_each(|v| push_value(*v, out)))?;
        Ok(Seen::Later)
    }

    /// Decides the rows that could not be decided before, which have `width` values; `give` gets
    /// those that are the first of their kind.
    pub fn drain(
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
                if self.see(&row)? == Seen::First && give(&row)?.is_break() {
                    return Ok(Flow::Break(()));
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
