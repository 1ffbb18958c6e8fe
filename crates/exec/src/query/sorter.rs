//! ORDER BY: rows kept until all have come.
//!
//! 1. Rows lie packed in one piece of memory (`rows.rs`); places that point to them are sorted
//!    (`ordering.rs`).
//! 2. With a LIMIT only the best rows so far are kept, and once there are enough the head of the
//!    last one tells what need not be kept at all.
//! 3. A unique sorter, whose keys are all columns that DISTINCT looks at, keeps the first of rows
//!    that are equal: they are neighbours in the end. Before that nothing is dropped.
//! 4. What does not fit into the budget goes to runs, files of sorted rows, which are merged in
//!    the end (`sorter/merge.rs`); of equal rows that of the earlier run comes first.

use super::derived::DerivedRows;
use super::distribute::Place;
use super::heads::{Head, HeadRule};
use super::ordering::{KeptRows, Key, Order};
use super::output::refused;
use super::rows::{PackedRows, Values};
use crate::ExecError;
use crate::spill::{Charged, Spill, SpillFile, SpillWriter, block_bytes};
use base::memory::MemoryAccount;
use merge::Merge;
use plan::physical::SortKey;
pub use reader::Reader;
use smallvec::SmallVec;
use std::sync::Arc;
use types::row::Lane;
use types::{ColumnType, ValueRef};

impl KeptRows for PackedRows {
    fn value(&self, place: &Place, position: usize) -> ValueRef<'_> {
        self.row_at(place.start).value(position)
    }
}

/// See the head of the file.
pub struct Sorter {
    keys: Vec<Key>,
    /// Only so many rows are wanted.
    most: usize,
    width: usize,
    rows: PackedRows,
    places: Vec<Place>,
    /// Rows with a greater head are not wanted.
    cutoff: Option<u64>,
    /// The heads of the first key are.
    is_exact: bool,
    is_unique: bool,
    charged_bytes: usize,
    memory: Arc<MemoryAccount>,
    spill: Arc<Spill>,
    /// Bytes that are kept at most before they become a run.
    room: usize,
    runs: Vec<Arc<SpillFile>>,
    /// Rows that came.
    added: u64,
}

/// A row that is being added: as many values as the sorter's rows have.
pub struct NewRow<'a>(&'a mut PackedRows);

impl NewRow<'_> {
    /// The next value.
    #[inline]
    pub fn push(&mut self, value: ValueRef<'_>) {
        self.0.push_value(value);
    }

    /// The next value, a number in a lane.
    #[inline]
    pub fn push_number(&mut self, lane: Lane, number: Option<i64>) {
        self.0.push_number(lane, number);
    }
}

/// Rows kept before those that LIMIT will not show are forgotten for the first time.
const TRIM_ROWS: usize = 256;
/// Memory charged at least at once.
const CHARGE_BYTES: usize = 4096;
/// Rows whose memory is asked for ahead.
const AHEAD: usize = 16;
/// What fits the core's cache is not asked for ahead.
const CACHED_BYTES: usize = 256 << 10;
/// Less does not become a run: the memory is needed elsewhere, the statement fails.
const RUN_BYTES_MIN: usize = 16 << 10;
/// Runs that are merged at once.
const MERGE_WAYS: usize = 32;

impl Sorter {
    /// Keeps the first `needed` rows of `width` values in the order of `keys`.
    pub fn new(
        keys: &[SortKey],
        types: impl Fn(usize) -> ColumnType,
        width: usize,
        needed: u64,
        memory: &Arc<MemoryAccount>,
        spill: &Arc<Spill>,
    ) -> Self {
        let budget = spill.budgets().sort;
        let key = |key: &SortKey| Key {
            position: key.position,
            rule: HeadRule::new(&types(key.position), key.descending),
        };
        Self {
            keys: keys.iter().map(key).collect(),
            most: usize::try_from(needed).unwrap_or(usize::MAX),
            width,
            rows: PackedRows::default(),
            places: Vec::new(),
            cutoff: None,
            is_exact: true,
            is_unique: false,
            charged_bytes: 0,
            memory: memory.clone(),
            spill: spill.clone(),
            room: usize::try_from(budget).unwrap_or(usize::MAX) - 2 * block_bytes(budget),
            runs: Vec::new(),
            added: 0,
        }
    }

    /// Only the first of rows with equal keys is wanted.
    pub fn set_unique(&mut self) {
        self.is_unique = true;
    }

    /// See [`Sorter::set_unique`].
    pub fn is_unique(&self) -> bool {
        self.is_unique
    }

    /// Rows that are kept now.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Takes a row.
    pub fn add(&mut self, row: &[ValueRef<'_>]) -> Result<(), ExecError> {
        let first = self.keys.first();
        let head = first
            .map_or(Head { number: 0, is_exact: true }, |key| key.rule.head(row[key.position]));
        self.add_with(head, |new| row.iter().for_each(|value| new.push(*value)))
    }

    /// The position of the first key and how its heads are made.
    pub fn first_key(&self) -> Option<(usize, HeadRule)> {
        self.keys.first().map(|key| (key.position, key.rule))
    }

    /// Room for so many rows of `row_bytes`.
    pub fn expect(&mut self, rows: usize, row_bytes: usize) {
        self.rows.reserve(rows * row_bytes);
        self.places.reserve(rows);
    }

    /// Takes a row whose first key has this head; `values` gives its values, if it is wanted.
    #[inline]
    pub fn add_with(
        &mut self,
        head: Head,
        values: impl FnOnce(&mut NewRow<'_>),
    ) -> Result<(), ExecError> {
        if self.cutoff.is_some_and(|cutoff| head.number > cutoff) {
            return Ok(());
        }
        self.is_exact &= head.is_exact;
        let start = self.rows.end();
        values(&mut NewRow(&mut self.rows));
        self.places.push(Place { head: head.number, start });
        self.added += 1;
        let bytes = self.kept_bytes();
        if bytes > self.charged_bytes {
            self.grow(bytes)?;
        }
        if !self.is_unique && self.places.len() >= self.most.saturating_mul(2).max(TRIM_ROWS) {
            self.trim();
        }
        Ok(())
    }

    /// Charges what is kept, or makes a run of it.
    fn grow(&mut self, bytes: usize) -> Result<(), ExecError> {
        let more = (bytes - self.charged_bytes).max(CHARGE_BYTES);
        // Sorting places needs as much again.
        let needed = bytes + size_of_val(self.places.as_slice());
        if needed <= self.room {
            if self.memory.charge(more as u64).is_ok() {
                self.charged_bytes += more;
                return Ok(());
            }
            if bytes < RUN_BYTES_MIN {
                return Err(refused());
            }
        }
        self.make_run()
    }

    /// Sorts what is kept and moves it to a file.
    fn make_run(&mut self) -> Result<(), ExecError> {
        self.sort_kept();
        if !self.is_unique && self.places.len() >= self.most {
            self.places.truncate(self.most);
            self.set_cutoff();
        }
        let block_bytes = block_bytes(self.spill.budgets().sort);
        // When memory is refused there is none for the file's block either, until rows have left.
        let lent = self.charged_bytes.min(block_bytes);
        self.memory.release(lent as u64);
        self.charged_bytes -= lent;
        let mut run = SpillWriter::new(&self.spill, &self.memory, block_bytes)?;
        let pacer = runtime::Pacer::default();
        for place in &self.places {
            pacer.step();
            run.push(self.rows.row_bytes(place.start, self.width))?;
        }
        self.runs.extend(run.finish()?.map(Arc::new));
        self.places.clear();
        self.rows.clear();
        self.is_exact = true;
        self.memory.release(std::mem::take(&mut self.charged_bytes) as u64);
        Ok(())
    }

    fn kept_bytes(&self) -> usize {
        self.rows.end() + size_of::<Place>() * self.places.len()
    }

    /// Rows whose head (that of the first key, inverted if descending) is greater are not wanted.
    pub fn cutoff(&self) -> Option<u64> {
        self.cutoff
    }

    /// Sorts all rows; of equal rows a unique sorter keeps the first. Returns how many rows there
    /// are, those of a sorter that is not unique perhaps beyond the wanted ones.
    pub fn sort(&mut self) -> Result<usize, ExecError> {
        if self.runs.is_empty() {
            return Ok(self.sort_kept());
        }
        if !self.places.is_empty() {
            self.make_run()?;
        }
        (self.places, self.rows) = (Vec::new(), PackedRows::default());
        while self.runs.len() > MERGE_WAYS || self.is_unique && self.runs.len() > 1 {
            let runs = std::mem::take(&mut self.runs);
            for some in runs.chunks(MERGE_WAYS) {
                let merged = self.merge_to_file(some)?;
                self.runs.extend(merged.map(Arc::new));
            }
        }
        Ok(self.runs.iter().map(|run| run.records() as usize).sum())
    }

    fn merge_to_file(&self, runs: &[Arc<SpillFile>]) -> Result<Option<SpillFile>, ExecError> {
        let block_bytes = block_bytes(self.spill.budgets().sort);
        let mut file = SpillWriter::new(&self.spill, &self.memory, block_bytes)?;
        let mut merge = self.merge(runs)?;
        while let Some(row) = merge.next_row()? {
            runtime::yield_if_due();
            file.push(row)?;
            if !self.is_unique && file.records() >= self.most as u64 {
                break;
            }
        }
        file.finish()
    }

    fn merge(&self, runs: &[Arc<SpillFile>]) -> Result<Merge<'_>, ExecError> {
        self.spill.count_merge_pass();
        Merge::new(&self.keys, runs, self.is_unique, &self.memory)
    }

    /// Rows that came.
    pub fn added(&self) -> u64 {
        self.added
    }

    fn sort_kept(&mut self) -> usize {
        let order = Order { keys: &self.keys, rows: &self.rows, memory: &self.memory };
        order.sort(&mut self.places, self.is_exact);
        if self.is_unique {
            order.drop_equal(&mut self.places);
        }
        self.places.len()
    }

    /// Forgets the rows that LIMIT will not show.
    fn trim(&mut self) {
        if self.places.len() <= self.most {
            return;
        }
        self.sort_kept();
        self.places.truncate(self.most);
        self.keep_places();
        self.set_cutoff();
    }

    /// Nothing behind the last of sorted rows is wanted.
    fn set_cutoff(&mut self) {
        let (Some(place), Some(key)) = (self.places.last(), self.keys.first()) else { return };
        let head = key.rule.head(self.rows.value(place, key.position)).number;
        self.cutoff = Some(self.cutoff.map_or(head, |cutoff| cutoff.min(head)));
    }

    /// Forgets the rows that no place points to.
    fn keep_places(&mut self) {
        let mut kept = PackedRows::default();
        for place in &mut self.places {
            place.start = kept.copy_from(&self.rows, place.start, self.width);
        }
        self.rows = kept;
        // Sorting may have left heads of other keys.
        if let Some(key) = self.keys.first() {
            for place in &mut self.places {
                place.head = key.rule.head(self.rows.value(place, key.position)).number;
            }
        }
        let bytes = self.kept_bytes();
        self.memory.release(self.charged_bytes.saturating_sub(bytes) as u64);
        self.charged_bytes = self.charged_bytes.min(bytes);
    }

    /// From now on equal rows are kept from coming by somebody else: gives those kept so far,
    /// which are all in memory.
    pub fn end_unique<E>(
        &mut self,
        mut give: impl FnMut(&[ValueRef<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sort_kept();
        self.is_unique = false;
        self.keep_places();
        let mut row = Vec::with_capacity(self.width);
        self.places.iter().try_for_each(|place| give(self.row(place, &mut row)))
    }

    fn row<'a, 'b>(&'a self, place: &Place, row: &'b mut Vec<ValueRef<'a>>) -> &'b [ValueRef<'a>] {
        row.clear();
        let mut values = self.rows.row_at(place.start);
        row.extend((0..self.width).map(|_| values.next_value()));
        row
    }

    /// Gives the rows, which are sorted, from number `offset` on, until `give` refuses one.
    pub fn give(
        &self,
        offset: usize,
        mut give: impl FnMut(&[ValueRef<'_>]) -> Result<bool, ExecError>,
    ) -> Result<(), ExecError> {
        if !self.runs.is_empty() {
            return self.give_merged(offset, give);
        }
        let mut row = Vec::with_capacity(self.width);
        let is_large = self.rows.end() > CACHED_BYTES;
        let wanted = &self.places[..self.most.min(self.places.len())];
        for (number, place) in wanted.iter().enumerate().skip(offset) {
            if is_large && number % AHEAD == 0 {
                let ahead = wanted.iter().skip(number + AHEAD).take(AHEAD);
                self.rows.touch(ahead.map(|place| place.start));
            }
            if !give(self.row(place, &mut row))? {
                break;
            }
        }
        Ok(())
    }

    fn give_merged(
        &self,
        offset: usize,
        mut give: impl FnMut(&[ValueRef<'_>]) -> Result<bool, ExecError>,
    ) -> Result<(), ExecError> {
        let mut merge = self.merge(&self.runs)?;
        let mut number = 0;
        while number < self.most {
            let Some(row) = merge.next_row()? else { break };
            number += 1;
            if number <= offset {
                continue;
            }
            let mut values = Values::new(row);
            let row: SmallVec<[ValueRef<'_>; 8]> =
                (0..self.width).map(|_| values.next_value()).collect();
            if !give(&row)? {
                break;
            }
        }
        Ok(())
    }

    /// The rows, which are sorted, from number `offset` on.
    pub fn into_rows(mut self, offset: usize) -> Result<DerivedRows, ExecError> {
        let mut charged = Charged::none(&self.memory);
        if !self.runs.is_empty() {
            let merged = match &self.runs[..] {
                [one] => Some(one.clone()),
                several => self.merge_to_file(several)?.map(Arc::new),
            };
            let Some(file) = merged else { return Ok(DerivedRows::empty(charged)) };
            return Ok(DerivedRows::Spilled { file, skip: offset as u64 });
        }
        let mut rows = std::mem::take(&mut self.rows);
        let wanted = self.places.iter().take(self.most).skip(offset);
        rows.set_order(wanted.map(|place| place.start).collect());
        charged.take_over(std::mem::take(&mut self.charged_bytes));
        Ok(DerivedRows::Memory { rows: Arc::new(rows), _charged: charged })
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        self.memory.release(self.charged_bytes as u64);
    }
}

mod merge;
mod reader;
#[cfg(test)]
mod tests;
