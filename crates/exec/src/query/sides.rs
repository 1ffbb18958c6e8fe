//! EXCEPT and INTERSECT: rows of the left side that the right side has, or has not, each once.
//!
//! 1. All of the right side comes first. Its keys are kept in memory up to the budget; when there
//!    is no room for another, they and all that follows, rows of both sides, go to files chosen by
//!    a hash of the key.
//! 2. EXCEPT also keeps the keys of rows that it gave. Without room for more a row that is not
//!    known goes to a file: the right side has none like it.
//! 3. A file holds what came from the right before what came from the left, and is read as both
//!    sides were; it may overflow in its turn.

use super::Flow;
use super::keys::{KEY_OVERHEAD_BYTES, Keys};
use super::rows::{Values, push_value};
use crate::ExecError;
use crate::context::Exec;
use crate::order;
use crate::spill::{Charged, Partitions, Spill, SpillFile, SpillReader};
use base::memory::MemoryAccount;
use plan::physical::SetOperation;
use smallvec::SmallVec;
use std::sync::Arc;
use types::{ColumnType, ValueRef};

/// Memory charged at least at once.
const CHARGE_BYTES: usize = 4096;
/// First byte of a record: a key of the right side, or a row of the left.
const RIGHT: u8 = 0;
const LEFT: u8 = 1;

/// See the head of the file.
pub struct Sides {
    operation: SetOperation,
    types: Vec<ColumnType>,
    keys: Keys,
    /// For each key, whether a row with it was given.
    given: Vec<bool>,
    key: Vec<u8>,
    charged: Charged,
    later: Option<Partitions>,
    /// The right side is in the files.
    right_waits: bool,
    level: u32,
}

impl Sides {
    /// For rows of these types.
    pub fn new(exec: &Exec<'_>, operation: SetOperation, types: &[ColumnType]) -> Self {
        exec.spill.count_table();
        Self {
            operation,
            types: types.to_vec(),
            keys: Keys::default(),
            given: Vec::new(),
            key: Vec::new(),
            charged: Charged::none(exec.memory),
            later: None,
            right_waits: false,
            level: 0,
        }
    }

    fn set_key(&mut self, row: &[ValueRef<'_>]) {
        self.key.clear();
        for (value, column_type) in row.iter().zip(&self.types) {
            order::push_identity(*value, column_type, &mut self.key);
        }
    }

    /// Whether memory for one more key is there.
    fn has_room(&mut self, spill: &Spill) -> bool {
        let bytes = (self.keys.key_bytes() + self.keys.len() * (KEY_OVERHEAD_BYTES + 1)) as u64;
        let Some(more) = bytes.checked_sub(self.charged.bytes()).filter(|more| *more > 0) else {
            return true;
        };
        bytes <= spill.budgets().table && self.charged.add((more as usize).max(CHARGE_BYTES))
    }

    fn files(&mut self, memory: &Arc<MemoryAccount>, spill: &Arc<Spill>) -> &mut Partitions {
        if self.later.is_none() && self.level == 0 {
            spill.count_disk_table();
        }
        let (budget, level) = (spill.budgets().table, self.level);
        self.later.get_or_insert_with(|| Partitions::new(spill, memory, budget, level))
    }

    /// A row of the right side.
    pub fn add_right(
        &mut self,
        memory: &Arc<MemoryAccount>,
        spill: &Arc<Spill>,
        row: &[ValueRef<'_>],
    ) -> Result<(), ExecError> {
        self.set_key(row);
        self.add_right_key(memory, spill)
    }

    fn add_right_key(
        &mut self,
        memory: &Arc<MemoryAccount>,
        spill: &Arc<Spill>,
    ) -> Result<(), ExecError> {
        if !self.right_waits && self.has_room(spill) {
            if self.keys.insert(&self.key).1 {
                self.given.push(false);
            }
            return Ok(());
        }
        let keys = std::mem::take(&mut self.keys);
        let own = std::mem::take(&mut self.key);
        if !self.right_waits {
            self.right_waits = true;
            self.given.clear();
            self.charged.clear();
        }
        let files = self.files(memory, spill);
        for key in (0..keys.len()).map(|number| keys.key(number)).chain([own.as_slice()]) {
            files.push_with(files.of(key), |out| {
                out.push(RIGHT);
                out.extend_from_slice(key);
            })?;
        }
        self.key = own;
        Ok(())
    }

    /// A row of the left side; whether it is one of the result.
    pub fn add_left(
        &mut self,
        memory: &Arc<MemoryAccount>,
        spill: &Arc<Spill>,
        row: &[ValueRef<'_>],
    ) -> Result<bool, ExecError> {
        self.set_key(row);
        let is_except = self.operation == SetOperation::Except;
        if !self.right_waits {
            match self.keys.find(&self.key) {
                Some(_) if is_except => return Ok(false),
                Some(number) => return Ok(!std::mem::replace(&mut self.given[number], true)),
                None if !is_except => return Ok(false),
                None => {}
            }
            if self.later.is_none() && self.has_room(spill) {
                self.keys.insert(&self.key);
                self.given.push(true);
                return Ok(true);
            }
        }
        let key = std::mem::take(&mut self.key);
        let files = self.files(memory, spill);
        files.push_with(files.of(&key), |out| {
            out.push(LEFT);
            row.iter().for_each(|value| push_value(*value, out));
        })?;
        self.key = key;
        Ok(false)
    }

    /// Decides the rows that could not be decided before; `give` gets those of the result.
    pub fn drain(
        &mut self,
        exec: &mut Exec<'_>,
        mut give: impl FnMut(&[ValueRef<'_>]) -> Result<Flow, ExecError>,
    ) -> Result<Flow, ExecError> {
        let (memory, spill) = (&exec.memory.clone(), &exec.spill.clone());
        let width = self.types.len();
        let mut files: Vec<(SpillFile, u32)> = Vec::new();
        self.take_files(&mut files)?;
        while let Some((file, level)) = files.pop() {
            self.level = level;
            let mut reader = SpillReader::new(Arc::new(file), memory)?;
            while reader.advance()? {
                exec.tick()?;
                let Some((side, rest)) = reader.record().and_then(|it| it.split_first()) else {
                    continue;
                };
                if *side == RIGHT {
                    self.key.clear();
                    self.key.extend_from_slice(rest);
                    self.add_right_key(memory, spill)?;
                    continue;
                }
                let mut values = Values::new(rest);
                let row: SmallVec<[ValueRef<'_>; 8]> =
                    (0..width).map(|_| values.next_value()).collect();
                if self.add_left(memory, spill, &row)? && give(&row)?.is_break() {
                    return Ok(Flow::Break(()));
                }
            }
            drop(reader);
            self.take_files(&mut files)?;
        }
        Ok(Flow::Continue(()))
    }

    /// Forgets what is known and takes the files of what was not decided.
    fn take_files(&mut self, files: &mut Vec<(SpillFile, u32)>) -> Result<(), ExecError> {
        self.keys = Keys::default();
        self.given.clear();
        self.charged.clear();
        self.right_waits = false;
        if let Some(later) = self.later.take() {
            let level = later.level() + 1;
            files.extend(later.finish()?.into_iter().flatten().map(|file| (file, level)));
        }
        Ok(())
    }
}
