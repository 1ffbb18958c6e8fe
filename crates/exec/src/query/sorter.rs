//! ORDER BY: rows kept until all have come.
//!
//! 1. Rows lie packed in one piece of memory (`rows.rs`); places that point to them are sorted
//!    (`ordering.rs`).
//! 2. With a LIMIT only the best rows so far are kept, and once there are enough the head of the
//!    last one tells what need not be kept at all.
//! 3. A unique sorter, whose keys are all columns that DISTINCT looks at, keeps the first of rows
//!    that are equal: they are neighbours in the end. Before that nothing is dropped.

use super::distribute::Place;
use super::heads::{Head, HeadRule};
use super::ordering::{KeptRows, Key, Order};
use super::output::charge;
use super::rows::PackedRows;
use crate::ExecError;
use base::memory::MemoryAccount;
use plan::physical::SortKey;
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

impl Sorter {
    /// Keeps the first `needed` rows of `width` values in the order of `keys`.
    pub fn new(
        keys: &[SortKey],
        types: impl Fn(usize) -> ColumnType,
        width: usize,
        needed: u64,
        memory: &Arc<MemoryAccount>,
    ) -> Self {
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
        let bytes = self.kept_bytes();
        if bytes > self.charged_bytes {
            let more = (bytes - self.charged_bytes).max(CHARGE_BYTES);
            charge(&self.memory, more)?;
            self.charged_bytes += more;
        }
        if !self.is_unique && self.places.len() >= self.most.saturating_mul(2).max(TRIM_ROWS) {
            self.trim();
        }
        Ok(())
    }

    fn kept_bytes(&self) -> usize {
        self.rows.end() + size_of::<Place>() * self.places.len()
    }

    /// Rows whose head (that of the first key, inverted if descending) is greater are not wanted.
    pub fn cutoff(&self) -> Option<u64> {
        self.cutoff
    }

    /// Sorts what is kept; of equal rows a unique sorter keeps the first. Returns how many rows
    /// there are.
    pub fn sort(&mut self) -> usize {
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
        self.sort();
        self.places.truncate(self.most);
        self.keep_places();
        self.cutoff = self.places.last().map(|place| place.head);
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

    /// From now on equal rows are kept from coming by somebody else: gives those kept so far.
    pub fn end_unique<E>(
        &mut self,
        mut give: impl FnMut(&[ValueRef<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sort();
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
    pub fn give<E>(
        &self,
        offset: usize,
        mut give: impl FnMut(&[ValueRef<'_>]) -> Result<bool, E>,
    ) -> Result<(), E> {
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

    /// The rows, which are sorted, from number `offset` on. Their memory stays charged.
    pub fn into_rows(mut self, offset: usize) -> PackedRows {
        let mut rows = std::mem::take(&mut self.rows);
        let wanted = self.places.iter().take(self.most).skip(offset);
        rows.set_order(wanted.map(|place| place.start).collect());
        self.charged_bytes = 0;
        rows
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        self.memory.release(self.charged_bytes as u64);
    }
}

#[cfg(test)]
mod tests;
