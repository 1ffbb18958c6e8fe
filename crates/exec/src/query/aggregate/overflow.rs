//! Groups beyond the budget: see the head of `aggregate.rs`.

use super::{GroupTarget, Groups, LATER};
use crate::ExecError;
use crate::context::Exec;
use crate::query::deferred::{DeferredValues, Lists};
use crate::query::rows::{Values, push_value};
use crate::query::sorter::Sorter;
use crate::spill::{Partitions, Spill, SpillFile, SpillReader, SpillWriter, block_bytes};
use base::memory::MemoryAccount;
use expr::Columns;
use plan::physical::AggregatePlan;
use smallvec::SmallVec;
use std::sync::Arc;
use types::{Value, ValueRef};

/// The rows whose group is in memory, if not all are: `places` keeps those groups.
pub(super) fn rows_here(places: &mut Vec<u32>, selected: &[u32]) -> Option<Vec<u32>> {
    if !places.contains(&LATER) {
        return None;
    }
    let rows = selected.iter().zip(places.iter()).filter(|(_, place)| **place != LATER);
    let rows = rows.map(|(row, _)| *row).collect();
    places.retain(|place| *place != LATER);
    Some(rows)
}

/// What has become of groups that do not fit.
pub struct Overflow {
    spill: Arc<Spill>,
    memory: Arc<MemoryAccount>,
    rows: Rows,
}

enum Rows {
    /// Rows of groups, in order.
    Finished {
        file: SpillWriter,
        /// There is something to write.
        due: bool,
    },
    /// Rows that wait to be grouped: the values of the keys, then those at `positions`.
    PutOff { files: Option<Partitions>, level: u32, positions: Vec<usize> },
}

impl Overflow {
    /// Whether rows of groups that are not in memory wait.
    pub fn puts_off(&self) -> bool {
        matches!(self.rows, Rows::PutOff { files: Some(_), .. })
    }

    fn begin_files(&mut self) {
        if let Rows::PutOff { files, level, .. } = &mut self.rows {
            let budget = self.spill.budgets().table;
            *files = Some(Partitions::new(&self.spill, &self.memory, budget, *level));
        }
    }
}

/// The positions of the frame that aggregates and the group's row read.
fn read_positions(plan: &AggregatePlan) -> Vec<usize> {
    let mut positions = plan.carried.clone();
    for call in &plan.calls {
        let keys = call.concat.order_by.iter().map(|(key, _)| key);
        for expr in call.arguments.iter().chain(keys) {
            expr.for_each_column(&mut |position| positions.push(position));
        }
    }
    positions.sort_unstable();
    positions.dedup();
    positions
}

/// A row that waited.
struct Waited<'a> {
    positions: &'a [usize],
    values: &'a [ValueRef<'a>],
}

impl Columns for Waited<'_> {
    fn column(&self, position: usize) -> ValueRef<'_> {
        let found = self.positions.binary_search(&position).ok();
        found.and_then(|at| self.values.get(at).copied()).unwrap_or(ValueRef::Null)
    }
}

impl Groups<'_> {
    /// Charges values that DISTINCT and lists keep. From the budget on they go to files, and so do
    /// groups that are new.
    pub(super) fn charge_kept(&mut self, exec: &Exec<'_>, bytes: usize) -> Result<(), ExecError> {
        if bytes == 0 {
            return Ok(());
        }
        let more = self.charged.bytes() + bytes as u64;
        if more <= exec.spill.budgets().table && self.charged.add(bytes) {
            self.kept_bytes += bytes;
            return Ok(());
        }
        self.defer(exec)?;
        if !self.plan.keys.is_empty() {
            self.set_overflow(exec);
        }
        Ok(())
    }

    /// Moves what aggregates keep out of memory.
    fn defer(&mut self, exec: &Exec<'_>) -> Result<(), ExecError> {
        let mut deferred = Box::new(DeferredValues::new(&self.plan.calls, exec));
        // What moves is charged again as it comes.
        self.charged.give_back(std::mem::take(&mut self.kept_bytes));
        for (number, group) in self.groups.iter_mut().enumerate() {
            deferred.take_over(number, &mut group.accumulators)?;
        }
        let packed = self.vectors.iter_mut().flat_map(|vectors| vectors.packed.iter_mut());
        for (number, packed) in packed.enumerate() {
            let (Some(packed), call) = (packed, &self.plan.calls[number]) else { continue };
            packed.take_seen(|group, value| {
                runtime::yield_if_due();
                self.identity.clear();
                call.identity(value, &mut self.identity);
                deferred.mark(group, number, &self.identity)
            })?;
        }
        self.deferred = Some(deferred);
        Ok(())
    }

    /// The accumulators of all groups get what was put off for them; the items of lists.
    pub(super) fn finish_deferred(&mut self, exec: &Exec<'_>) -> Result<Option<Sorter>, ExecError> {
        let Some(deferred) = self.deferred.take() else { return Ok(None) };
        let (groups, calls) = (&mut self.groups, &self.plan.calls);
        deferred.finish(|group, call, value| {
            let accumulator = &mut groups[group].accumulators[call];
            Ok(accumulator.add_value(&calls[call], exec.eval, value)?)
        })
    }

    /// There is no room for another group.
    pub(super) fn set_overflow(&mut self, exec: &Exec<'_>) {
        match &mut self.overflow {
            Some(overflow) => match &mut overflow.rows {
                Rows::Finished { due, .. } => *due = true,
                Rows::PutOff { files: Some(_), .. } => {}
                Rows::PutOff { .. } => overflow.begin_files(),
            },
            None => {
                let (spill, memory) = (exec.spill, exec.memory);
                let rows = match self.plan.sorted {
                    true => {
                        match SpillWriter::new(spill, memory, block_bytes(spill.budgets().table)) {
                            Ok(file) => Rows::Finished { file, due: true },
                            // Not even a block: the next charge will say so.
                            Err(_) => return,
                        }
                    }
                    false => {
                        Rows::PutOff { files: None, level: 0, positions: read_positions(self.plan) }
                    }
                };
                spill.count_disk_table();
                let (spill, memory) = (spill.clone(), memory.clone());
                let mut overflow = Overflow { spill, memory, rows };
                overflow.begin_files();
                self.overflow = Some(Box::new(overflow));
            }
        }
    }

    /// Keeps a row for later.
    pub(super) fn put_off(
        &mut self,
        frame: &dyn Columns,
        keys: &[ValueRef<'_>],
    ) -> Result<(), ExecError> {
        let Some(Rows::PutOff { files: Some(files), positions, .. }) =
            self.overflow.as_mut().map(|overflow| &mut overflow.rows)
        else {
            return Ok(());
        };
        let partition = files.of(&self.identity);
        files.push_with(partition, |out| {
            keys.iter().for_each(|value| push_value(*value, out));
            positions.iter().for_each(|&position| push_value(frame.column(position), out));
        })
    }

    /// Writes groups that are finished, if they do not fit: all but the last, where rows come in
    /// the order of the keys.
    #[inline]
    pub(super) fn write_finished(&mut self, exec: &Exec<'_>) -> Result<(), ExecError> {
        if self.overflow.is_none() { Ok(()) } else { self.write_groups(exec) }
    }

    fn write_groups(&mut self, exec: &Exec<'_>) -> Result<(), ExecError> {
        let Some(overflow) = &mut self.overflow else { return Ok(()) };
        let Rows::Finished { file, due } = &mut overflow.rows else { return Ok(()) };
        // Where values are put off, all groups are written together.
        if self.deferred.is_some() || !std::mem::take(due) {
            return Ok(());
        }
        let vectors = self.vectors.take();
        let packed = vectors.as_ref().map_or(&[][..], |vectors| vectors.packed.as_slice());
        let mut groups = std::mem::take(&mut self.groups);
        let last = groups.pop();
        let number = groups.len();
        for (number, group) in groups.into_iter().enumerate() {
            runtime::yield_if_due();
            let row = group.finish(self.plan, (number, packed), exec, &expr::NoColumns, None)?;
            file.push_with(|out| row.iter().for_each(|value| push_value(value.as_ref(), out)))?;
        }
        self.forget_groups();
        if let Some(mut group) = last {
            group.take_packed(self.plan, number, packed, exec)?;
            self.identity.clear();
            for (key, value) in self.plan.keys.iter().zip(&group.keys) {
                let column_type = &key.result.column_type;
                crate::order::push_identity(value.as_ref(), column_type, &mut self.identity);
            }
            self.places.insert(&self.identity);
            self.groups.push(group);
        }
        Ok(())
    }

    /// Writes all groups, which are finished.
    pub(super) fn write_all(&mut self, exec: &Exec<'_>) -> Result<(), ExecError> {
        if self.overflow.is_none() {
            return Ok(());
        }
        let items = self.finish_deferred(exec)?;
        let mut lists = items.as_ref().map(|items| Lists::new(items, exec)).transpose()?;
        let Some(overflow) = &mut self.overflow else { return Ok(()) };
        let Rows::Finished { file, due } = &mut overflow.rows else { return Ok(()) };
        *due = false;
        let vectors = self.vectors.take();
        let packed = vectors.as_ref().map_or(&[][..], |vectors| vectors.packed.as_slice());
        for (number, group) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            runtime::yield_if_due();
            let frame = &expr::NoColumns;
            let row = group.finish(self.plan, (number, packed), exec, frame, lists.as_mut())?;
            file.push_with(|out| row.iter().for_each(|value| push_value(value.as_ref(), out)))?;
        }
        self.forget_groups();
        Ok(())
    }

    /// Gives the memory of groups back, which are not there any more.
    fn forget_groups(&mut self) {
        self.places = Default::default();
        self.charged.clear();
        self.kept_bytes = 0;
    }

    /// Gives all groups, those that did not fit too.
    pub(super) fn finish_overflow(
        mut self,
        exec: &mut Exec<'_>,
        frame: &dyn Columns,
        target: &mut GroupTarget<'_>,
    ) -> Result<(), ExecError> {
        let Some(overflow) = self.overflow.take() else { return Ok(()) };
        let Overflow { spill, memory, rows } = *overflow;
        match rows {
            Rows::Finished { file, .. } => {
                let width = self.plan.keys.len() + self.plan.calls.len() + self.plan.carried.len();
                if let Some(file) = file.finish()? {
                    let mut reader = SpillReader::new(Arc::new(file), exec.memory)?;
                    while reader.advance()? {
                        exec.tick()?;
                        let mut values = Values::new(reader.record().unwrap_or(&[]));
                        let row: Vec<Value> =
                            (0..width).map(|_| values.next_value().to_owned()).collect();
                        let flow = target(exec, &row)?;
                        exec.eval.reset_arena();
                        if flow.is_break() {
                            return Ok(());
                        }
                    }
                }
                self.finish_groups(exec, frame, target).map(|_| ())
            }
            Rows::PutOff { files, level, positions } => {
                let put_off = Rows::PutOff { files: None, level, positions: positions.clone() };
                self.overflow = Some(Box::new(Overflow { spill, memory, rows: put_off }));
                let first = files.map_or(Ok(Vec::new()), Partitions::finish)?;
                let files = first.into_iter().flatten().map(|file| (file, level + 1)).collect();
                self.finish_files(exec, frame, target, &positions, files)
            }
        }
    }

    fn finish_files(
        &mut self,
        exec: &mut Exec<'_>,
        frame: &dyn Columns,
        target: &mut GroupTarget<'_>,
        positions: &[usize],
        mut files: Vec<(SpillFile, u32)>,
    ) -> Result<(), ExecError> {
        if self.finish_groups(exec, frame, target)?.is_break() {
            return Ok(());
        }
        while let Some((file, level)) = files.pop() {
            self.forget_groups();
            if let Some(overflow) = &mut self.overflow
                && let Rows::PutOff { level: own, .. } = &mut overflow.rows
            {
                *own = level;
            }
            let keys = self.plan.keys.len();
            let mut reader = SpillReader::new(Arc::new(file), exec.memory)?;
            while reader.advance()? {
                exec.tick()?;
                let mut values = Values::new(reader.record().unwrap_or(&[]));
                let row: SmallVec<[ValueRef<'_>; 16]> =
                    (0..keys + positions.len()).map(|_| values.next_value()).collect();
                let waited = Waited { positions, values: &row[keys..] };
                if let Some(place) = self.find_keys(exec, &waited, &row[..keys])? {
                    self.update(exec, &waited, place)?;
                }
                exec.eval.reset_arena();
            }
            drop(reader);
            let more = self.overflow.as_mut().and_then(|overflow| match &mut overflow.rows {
                Rows::PutOff { files, .. } => files.take(),
                Rows::Finished { .. } => None,
            });
            if let Some(more) = more {
                files.extend(more.finish()?.into_iter().flatten().map(|file| (file, level + 1)));
            }
            if self.finish_groups(exec, frame, target)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }
}
