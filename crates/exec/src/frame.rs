//! The row frame: what the expressions of a block read by position.

use crate::query::rows::PackedRows;
use crate::spare;
use engine_api::{RowBatch, RowBuffer, RowRef};
use expr::Columns;
use std::cell::Cell;
use std::sync::Arc;
use types::row::{IndexLayout, RowLayout, RowView};
use types::{SqlError, Value, ValueRef};

/// Where the columns of one table are at the moment.
enum Slot<'p> {
    /// A row of the engine.
    Row { layout: &'p RowLayout, row: RowBuffer },
    /// Number `at` of the rows that a scan gave.
    Batch { layout: BatchLayout<'p>, rows: RowBatch, at: usize },
    /// Row number `at` of a derived table.
    Packed { rows: Arc<PackedRows>, at: usize },
    /// Values: a virtual table.
    Values(Vec<Value>),
    /// The row of NULLs of a left join, or no row yet.
    Null,
}

/// What the rows of a batch are.
#[derive(Clone, Copy)]
pub enum BatchLayout<'p> {
    /// Rows of the table.
    Rows(&'p RowLayout),
    /// Keys of an index, which hold all columns that are read.
    Keys(&'p IndexLayout),
}

impl<'p> BatchLayout<'p> {
    #[inline]
    fn column<'a>(self, row: RowRef<'a>, column: usize) -> ValueRef<'a>
    where
        'p: 'a,
    {
        match self {
            Self::Rows(layout) => RowView::new(layout, row.key, row.payload).get(column),
            Self::Keys(index) => index.column(row.key, column),
        }
    }

    fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::Rows(a), Self::Rows(b)) => std::ptr::eq(a, b),
            (Self::Keys(a), Self::Keys(b)) => std::ptr::eq(a, b),
            _ => false,
        }
    }
}

/// See the head of the file.
pub struct Frame<'p> {
    /// For every position: slot and column.
    places: Vec<(u16, u16)>,
    /// Values of the enclosing block and of subqueries, by position; empty while there are none.
    values: Vec<Value>,
    slots: Vec<Slot<'p>>,
    /// Subqueries without a value; none where all have one.
    failures: Option<Box<Failures>>,
}

/// Subqueries that failed: their error counts only where their value is read.
#[derive(Debug, Default)]
pub struct Failures {
    errors: Vec<(usize, Option<SqlError>)>,
    /// The first position that was read.
    read: Cell<Option<usize>>,
}

impl Failures {
    /// The value at a position is not known, for this reason.
    pub fn note(&mut self, position: usize, error: SqlError) {
        self.forget(position);
        self.errors.push((position, Some(error)));
    }

    /// The value at a position is known.
    pub fn forget(&mut self, position: usize) {
        self.errors.retain(|(known, _)| *known != position);
    }

    /// Somebody reads a position.
    pub fn reads(&self, position: usize) {
        if self.errors.iter().any(|(known, _)| *known == position) {
            self.read.set(self.read.get().or(Some(position)));
        }
    }

    /// The error of what was read, which stays.
    pub fn error(&self) -> Result<(), SqlError> {
        let read = self.read.get();
        let found = self.errors.iter().find(|(known, _)| Some(*known) == read);
        found.and_then(|(_, error)| error.clone()).map_or(Ok(()), Err)
    }

    /// The error of what was read.
    pub fn check(&mut self) -> Result<(), SqlError> {
        let Some(position) = self.read.take() else { return Ok(()) };
        let found = self.errors.iter_mut().find(|(known, _)| *known == position);
        found.and_then(|(_, error)| error.take()).map_or(Ok(()), Err)
    }
}

/// Slot of positions that hold values of their own.
const OWN: u16 = u16::MAX;

impl<'p> Frame<'p> {
    /// A frame of so many positions, none of which belongs to a table yet.
    pub fn new(positions: usize) -> Self {
        let places = (0..positions).map(|position| (OWN, position as u16)).collect();
        Self { places, values: Vec::new(), slots: Vec::new(), failures: None }
    }

    /// Adds a table whose columns begin at `first`; returns its slot.
    pub fn add_table(&mut self, first: usize, columns: usize) -> usize {
        let slot = self.slots.len();
        self.slots.push(Slot::Null);
        for column in 0..columns {
            self.places[first + column] = (slot as u16, column as u16);
        }
        slot
    }

    /// Sets a position of its own.
    pub fn set_value(&mut self, position: usize, value: Value) {
        if self.values.is_empty() {
            self.values.resize(self.places.len(), Value::Null);
        }
        self.values[position] = value;
        if let Some(failures) = &mut self.failures {
            failures.forget(position);
        }
    }

    /// A position of its own has no value: who reads it fails at the next
    /// [`Frame::check_reads`].
    pub fn set_failure(&mut self, position: usize, error: SqlError) {
        self.set_value(position, Value::Null);
        self.failures.get_or_insert_default().note(position, error);
    }

    /// The error of a subquery whose value was read since the last call.
    #[inline]
    pub fn check_reads(&mut self) -> Result<(), SqlError> {
        match &mut self.failures {
            None => Ok(()),
            Some(failures) => failures.check(),
        }
    }

    /// The table has no row: its columns are NULL.
    pub fn set_null(&mut self, slot: usize) {
        self.slots[slot] = Slot::Null;
    }

    /// The table's row is these values.
    pub fn set_values(&mut self, slot: usize, values: Vec<Value>) {
        self.slots[slot] = Slot::Values(values);
    }

    /// The table's row is number `row` of these.
    pub fn set_packed(&mut self, slot: usize, rows: &Arc<PackedRows>, row: usize) {
        match &mut self.slots[slot] {
            Slot::Packed { rows: own, at } if Arc::ptr_eq(own, rows) => *at = row,
            other => *other = Slot::Packed { rows: rows.clone(), at: row },
        }
    }

    /// The buffer into which a row of the engine is read.
    pub fn row_buffer(&mut self, slot: usize, layout: &'p RowLayout) -> &mut RowBuffer {
        if !matches!(self.slots[slot], Slot::Row { .. }) {
            self.slots[slot] = Slot::Row { layout, row: spare::take_row() };
        }
        match &mut self.slots[slot] {
            Slot::Row { row, .. } => row,
            _ => unreachable!("the slot was just made a row"),
        }
    }

    /// The rows of a scan, into which the next ones are read. The frame has none of them until
    /// [`Frame::stand_at`] says which.
    pub fn batch(&mut self, slot: usize, layout: BatchLayout<'p>) -> &mut RowBatch {
        if !matches!(&self.slots[slot], Slot::Batch { layout: own, .. } if own.is(layout)) {
            self.slots[slot] = Slot::Batch { layout, rows: spare::take_batch(), at: 0 };
        }
        match &mut self.slots[slot] {
            Slot::Batch { rows, .. } => rows,
            _ => unreachable!("the slot was just made a batch"),
        }
    }

    /// Takes the rows of a scan out of a slot, if they are rows of the table.
    pub fn take_rows(&mut self, slot: usize) -> Option<RowBatch> {
        match self.slots.get_mut(slot)? {
            Slot::Batch { layout: BatchLayout::Rows(_), rows, .. } => Some(std::mem::take(rows)),
            _ => None,
        }
    }

    /// The rows of a scan that are in a slot, and what they are.
    pub fn rows(&self, slot: usize) -> Option<(&BatchLayout<'_>, &RowBatch)> {
        match self.slots.get(slot)? {
            Slot::Batch { layout, rows, .. } => Some((layout, rows)),
            _ => None,
        }
    }

    /// The table's row is number `row` of its batch or derived table.
    #[inline]
    pub fn stand_at(&mut self, slot: usize, row: usize) {
        if let Slot::Batch { at, .. } | Slot::Packed { at, .. } = &mut self.slots[slot] {
            *at = row;
        }
    }

    /// The buffer with the table's row, if it was read into one: a point or locking read.
    pub fn row(&self, slot: usize) -> Option<&RowBuffer> {
        match &self.slots[slot] {
            Slot::Row { row, .. } => Some(row),
            Slot::Batch { .. } | Slot::Packed { .. } | Slot::Values(_) | Slot::Null => None,
        }
    }

    /// The row of the engine that the table has now, if it is a whole row.
    pub fn row_ref(&self, slot: usize) -> Option<RowRef<'_>> {
        match &self.slots[slot] {
            Slot::Row { row, .. } => Some(row.as_row()),
            Slot::Batch { layout: BatchLayout::Rows(_), rows, at } => rows.row(*at),
            Slot::Batch { .. } | Slot::Packed { .. } | Slot::Values(_) | Slot::Null => None,
        }
    }

    /// The index, the keys and the number of the key that the table has instead of a row.
    pub fn key_ref(&self, slot: usize) -> Option<(&IndexLayout, &RowBatch, u32)> {
        match &self.slots[slot] {
            Slot::Batch { layout: BatchLayout::Keys(index), rows, at } => {
                Some((index, rows, *at as u32))
            }
            _ => None,
        }
    }

    /// Copies the columns of a table.
    pub fn copy_table(&self, first: usize, columns: usize) -> Vec<Value> {
        (first..first + columns).map(|position| self.column(position).to_owned()).collect()
    }
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            match slot {
                Slot::Batch { rows, .. } => spare::give_batch(std::mem::take(rows)),
                Slot::Row { row, .. } => spare::give_row(std::mem::take(row)),
                Slot::Packed { .. } | Slot::Values(_) | Slot::Null => {}
            }
        }
    }
}

impl Columns for Frame<'_> {
    #[inline]
    fn column(&self, position: usize) -> ValueRef<'_> {
        let Some(&(slot, column)) = self.places.get(position) else { return ValueRef::Null };
        if slot == OWN {
            if let Some(failures) = &self.failures {
                failures.reads(position);
            }
            return self.values.get(position).map_or(ValueRef::Null, Value::as_ref);
        }
        match &self.slots[slot as usize] {
            Slot::Batch { layout, rows, at } => match rows.row(*at) {
                Some(row) => layout.column(row, column as usize),
                None => ValueRef::Null,
            },
            Slot::Row { layout, row } => {
                RowView::new(layout, &row.key, &row.payload).get(column as usize)
            }
            Slot::Packed { rows, at } => rows.value_at(*at, column as usize),
            Slot::Values(values) => {
                values.get(column as usize).map_or(ValueRef::Null, Value::as_ref)
            }
            Slot::Null => ValueRef::Null,
        }
    }
}
