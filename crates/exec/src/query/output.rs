//! What becomes of the rows of a block: DISTINCT, ORDER BY, LIMIT.
//!
//! Without DISTINCT and ORDER BY a row goes on as it comes, its values still where they were.
//! With ORDER BY and a small LIMIT only the best rows so far are kept. Where ORDER BY has all the
//! columns of DISTINCT, sorting finds equal rows as long as few are kept; a table of their keys is
//! made only for more, since most of many may be equal.

use super::derived::DerivedRows;
use super::distinct::{Coming, Distinct, Seen};
use super::sort_batch::SortBatch;
use super::sort_stored::StoredSort;
use super::sorter::Sorter;
use super::vector::Columns as BatchColumns;
use super::{Flow, Limit, RowTarget};
use crate::ExecError;
use crate::context::{Exec, RowSink, StoredRows};
use crate::spill::{Charged, Spill};
use base::memory::MemoryAccount;
use engine_api::RowBatch;
use expr::{Columns, EvalContext};
use plan::physical::{Access, SelectPlan};
use std::sync::Arc;
use types::{SqlError, ValueRef, codes};

/// The statement may not have more memory.
pub fn refused() -> ExecError {
    SqlError::new(&codes::OUT_OF_SORTMEMORY, &[]).into()
}

/// Charges kept memory to the statement.
pub fn charge(memory: &Arc<MemoryAccount>, bytes: usize) -> Result<(), ExecError> {
    memory.charge(bytes as u64).map_err(|_| refused())
}

/// See the head of the file.
pub struct Output<'p> {
    plan: &'p SelectPlan,
    limit: Limit,
    distinct: Option<Distinct>,
    /// A table of the keys of equal rows did not fit: sorting finds them.
    sorts_out: bool,
    sorter: Option<Sorter>,
    /// What the sorter has not yet got, since the rows are few and can go to the client as they
    /// are stored.
    stored: Option<StoredSort<'p>>,
    /// How the sorter takes batches, made for the first one.
    batch: Option<SortBatch>,
    memory: Arc<MemoryAccount>,
    spill: Arc<Spill>,
    /// Rows that passed everything but LIMIT.
    passed: u64,
}

/// From so many rows on, equal ones are found by a table.
const UNIQUE_ROWS: usize = 1024;

/// Whether rows that DISTINCT takes for equal are neighbours once they are sorted.
pub fn sorts_uniquely(plan: &SelectPlan) -> bool {
    let shown = plan.columns.len();
    let is_key = |position| plan.order_by.iter().any(|key| key.position == position);
    plan.order_by.iter().all(|key| key.position < shown) && (0..shown).all(is_key)
}

fn new_distinct(plan: &SelectPlan, memory: &Arc<MemoryAccount>, spill: &Arc<Spill>) -> Distinct {
    let shown = plan.projection.iter().take(plan.columns.len());
    let types = shown.map(|value| value.result.column_type).collect();
    let distinct = Distinct::new(types, memory, spill);
    match (plan.in_order, plan.equal_are_neighbours) {
        (true, true) => distinct.in_order(Coming::Neighbours),
        (true, false) => distinct.in_order(Coming::Fixed),
        (false, _) => {
            spill.count_table();
            distinct
        }
    }
}

impl<'p> Output<'p> {
    /// For one execution of a block.
    pub fn new(plan: &'p SelectPlan, limit: Limit, exec: &Exec<'_>) -> Self {
        let type_of = |position: usize| plan.projection[position].result.column_type;
        let width = plan.projection.len();
        let mut sorter = (!plan.order_by.is_empty()).then(|| {
            Sorter::new(&plan.order_by, type_of, width, limit.needed(), exec.memory, exec.spill)
        });
        let mut distinct = None;
        if plan.distinct {
            match &mut sorter {
                Some(sorter) if sorts_uniquely(plan) => sorter.set_unique(),
                _ => distinct = Some(new_distinct(plan, exec.memory, exec.spill)),
            }
        }
        Self {
            plan,
            limit,
            distinct,
            sorts_out: false,
            sorter,
            stored: None,
            batch: None,
            memory: exec.memory.clone(),
            spill: exec.spill.clone(),
            passed: 0,
        }
    }

    /// The block is one that `direct::stored_columns` knows: its rows go to a sink that takes them
    /// as they are stored.
    pub fn keep_stored(&mut self) {
        self.stored = StoredSort::new(self.plan, &self.memory);
    }

    /// See [`Output::keep_stored`].
    pub fn keeps_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// Keeps the selected rows of a batch as they are stored.
    pub fn add_stored(&mut self, rows: RowBatch, selected: &[u32]) -> Result<(), ExecError> {
        let Some(stored) = &mut self.stored else { return Ok(()) };
        self.passed += selected.len() as u64;
        if stored.add(rows, selected)? { Ok(()) } else { self.pack_stored() }
    }

    /// From now on rows are packed.
    fn pack_stored(&mut self) -> Result<(), ExecError> {
        if let (Some(stored), Some(sorter)) = (self.stored.take(), &mut self.sorter) {
            stored.each_row(|row| sorter.add(row))?;
            self.look_at_unique()?;
        }
        Ok(())
    }

    /// Projects a frame and passes it on or keeps it.
    pub fn add(
        &mut self,
        exec: &mut Exec<'_>,
        frame: &dyn Columns,
        target: &mut RowTarget<'_>,
    ) -> Result<Flow, ExecError> {
        if self.stored.is_some() {
            self.pack_stored()?;
        }
        if self.passed < self.limit.offset && self.sorter.is_none() && self.distinct.is_none() {
            // OFFSET leaves it out: its values are not computed.
            self.passed += 1;
            return Ok(Flow::Continue(()));
        }
        let eval: &EvalContext = exec.eval;
        let projection = &self.plan.projection;
        let value = |position: usize| projection[position].eval_result(eval, frame);
        let values: &[ValueRef<'_>] =
            eval.arena.alloc_slice_try_fill_with(projection.len(), value)?;
        if !self.is_first(values)? {
            return Ok(Flow::Continue(()));
        }
        if let Some(sorter) = &mut self.sorter {
            self.passed += 1;
            sorter.add(values)?;
            self.look_at_unique()?;
            return Ok(Flow::Continue(()));
        }
        self.pass(eval, values, target)
    }

    /// Whether DISTINCT lets a row pass now.
    fn is_first(&mut self, values: &[ValueRef<'_>]) -> Result<bool, ExecError> {
        let Some(distinct) = &mut self.distinct else { return Ok(true) };
        let Some(sorter) = self.sorter.as_mut().filter(|_| sorts_uniquely(self.plan)) else {
            return Ok(distinct.see(values)? == Seen::First);
        };
        if let Some(seen) = distinct.look(values) {
            return Ok(seen == Seen::First);
        }
        // The table is full: from now on equal rows are found as neighbours.
        self.spill.count_disk_table();
        sorter.set_unique();
        self.sorts_out = true;
        self.distinct = None;
        Ok(true)
    }

    /// A row that is not sorted goes on.
    fn pass(
        &mut self,
        eval: &EvalContext,
        values: &[ValueRef<'_>],
        target: &mut RowTarget<'_>,
    ) -> Result<Flow, ExecError> {
        let shown = self.plan.columns.len();
        self.passed += 1;
        if self.passed > self.limit.offset
            && self.passed <= self.limit.needed()
            && target(eval, &values[..shown])?.is_break()
        {
            return Ok(Flow::Break(()));
        }
        let full = self.passed >= self.limit.needed() && !self.plan.calculate_found_rows;
        Ok(if full { Flow::Break(()) } else { Flow::Continue(()) })
    }

    /// Adds the selected rows of a batch. False if they must be added one by one.
    pub fn add_batch(
        &mut self,
        exec: &Exec<'_>,
        columns: &BatchColumns<'_>,
        selected: &[u32],
    ) -> Result<bool, ExecError> {
        let (None, Some(sorter)) = (&self.distinct, &mut self.sorter) else { return Ok(false) };
        let projection = &self.plan.projection;
        let batch =
            self.batch.get_or_insert_with(|| SortBatch::new(exec, projection, &columns.shape()));
        if !batch.add(columns, selected, sorter)? {
            return Ok(false);
        }
        self.passed += selected.len() as u64;
        self.look_at_unique()?;
        Ok(true)
    }

    /// Once many rows are kept, a table finds those that come again.
    fn look_at_unique(&mut self) -> Result<(), ExecError> {
        let Some(sorter) = &mut self.sorter else { return Ok(()) };
        if !sorter.is_unique() || sorter.len() < UNIQUE_ROWS || self.sorts_out {
            return Ok(());
        }
        let mut distinct = new_distinct(self.plan, &self.memory, &self.spill);
        sorter.end_unique(|row| distinct.look(row).map(|_| ()).ok_or_else(refused))?;
        self.passed = sorter.len() as u64;
        self.distinct = Some(distinct);
        Ok(())
    }

    /// Rows whose first sort key's head is greater need not be added.
    pub fn cutoff(&self) -> Option<u64> {
        self.sorter.as_ref().and_then(Sorter::cutoff)
    }

    /// Sorts the kept rows, if there are any.
    fn sort(&mut self, exec: &Exec<'_>) -> Result<(), ExecError> {
        if let (Some(sorter), Some(distinct)) = (&mut self.sorter, &mut self.distinct) {
            let passed = &mut self.passed;
            let _ = distinct.drain(self.plan.projection.len(), |row| {
                *passed += 1;
                sorter.add(row).map(Flow::Continue)
            })?;
            self.distinct = None;
        }
        if let Some(sorter) = &mut self.sorter {
            exec.cancel.set_phase(crate::phase::SORTING);
            let rows = sorter.sort()?;
            if sorter.is_unique() {
                self.passed = rows as u64;
            }
            exec.spill.count_sort(sorter.added(), reads_range(self.plan));
        }
        Ok(())
    }

    /// The rows that DISTINCT could not decide as they came, of a block that does not sort.
    fn drain(&mut self, exec: &mut Exec<'_>, target: &mut RowTarget<'_>) -> Result<(), ExecError> {
        if self.sorter.is_some() || self.distinct.is_none() {
            return Ok(());
        }
        if self.passed >= self.limit.needed() && !self.plan.calculate_found_rows {
            return Ok(());
        }
        let Some(mut distinct) = self.distinct.take() else { return Ok(()) };
        let _ = distinct.drain(self.plan.projection.len(), |row| {
            exec.tick()?;
            self.pass(exec.eval, row, target)
        })?;
        Ok(())
    }

    fn offset(&self) -> usize {
        usize::try_from(self.limit.offset).unwrap_or(usize::MAX)
    }

    /// Gives the kept rows; returns how many LIMIT hid.
    pub fn finish(
        mut self,
        exec: &mut Exec<'_>,
        target: &mut RowTarget<'_>,
    ) -> Result<u64, ExecError> {
        let shown = self.plan.columns.len();
        self.drain(exec, target)?;
        self.sort(exec)?;
        if let Some(sorter) = &self.sorter {
            exec.cancel.set_phase(crate::phase::SENDING);
            sorter.give(self.offset(), |row| {
                exec.tick()?;
                Ok(target(exec.eval, &row[..shown])?.is_continue())
            })?;
        }
        let after_offset = self.passed.saturating_sub(self.limit.offset);
        let sent = after_offset.min(self.limit.count);
        Ok(if self.plan.calculate_found_rows { self.passed - sent } else { 0 })
    }

    /// The same for a sink that takes rows as they are stored; returns how many it got as well.
    pub fn finish_stored(
        mut self,
        exec: &mut Exec<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<(u64, u64), ExecError> {
        let mut sent = 0;
        let Some(mut stored) = self.stored.take() else {
            let hidden = self.finish(exec, &mut |_, values| {
                sent += 1;
                sink.row(values)?;
                Ok(Flow::Continue(()))
            })?;
            return Ok((sent, hidden));
        };
        exec.cancel.set_phase(crate::phase::SORTING);
        let is_unique = self.sorter.as_ref().is_some_and(Sorter::is_unique);
        exec.spill.count_sort(self.passed, reads_range(self.plan));
        self.passed = stored.sort(is_unique) as u64;
        exec.cancel.set_phase(crate::phase::SENDING);
        let most = usize::try_from(self.limit.count).unwrap_or(usize::MAX);
        for row in stored.rows(self.offset()).take(most) {
            exec.tick()?;
            sink.stored(StoredRows::Row(row))?;
            sent += 1;
        }
        Ok((sent, if self.plan.calculate_found_rows { self.passed - sent } else { 0 }))
    }

    /// The kept rows of a block that sorts, in order.
    pub fn into_rows(mut self, exec: &Exec<'_>) -> Result<DerivedRows, ExecError> {
        self.sort(exec)?;
        let offset = self.offset();
        match self.sorter {
            Some(sorter) => sorter.into_rows(offset),
            None => Ok(DerivedRows::empty(Charged::none(exec.memory))),
        }
    }
}

/// Whether the first table is read by ranges of an index.
fn reads_range(plan: &SelectPlan) -> bool {
    plan.tables.first().is_some_and(|step| matches!(step.access, Access::Ranges { .. }))
}
