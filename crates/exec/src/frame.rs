//! The row frame: what the expressions of a block read by position.

use engine_api::RowBuffer;
use expr::Columns;
use std::sync::Arc;
use types::row::{IndexLayout, LayoutError, RowLayout, RowView};
use types::{Value, ValueRef};

/// Where the columns of one table are at the moment.
enum Slot {
    /// A row of the engine.
    Row { layout: Arc<RowLayout>, row: RowBuffer },
    /// Values: a covering scan, a derived or virtual table.
    Values(Vec<Value>),
    /// The row of NULLs of a left join, or no row yet.
    Null,
}

/// See the head of the file.
pub struct Frame {
    /// For every position: slot and column. Slot 0 is `values`.
    places: Vec<(u16, u16)>,
    /// Values of the enclosing block and of subqueries, by position.
    values: Vec<Value>,
    slots: Vec<Slot>,
}

/// Slot of positions that hold values of their own.
const OWN: u16 = u16::MAX;

impl Frame {
    /// A frame of so many positions, none of which belongs to a table yet.
    pub fn new(positions: usize) -> Self {
        let places = (0..positions).map(|position| (OWN, position as u16)).collect();
        Self { places, values: vec![Value::Null; positions], slots: Vec::new() }
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
        self.values[position] = value;
    }

    /// The table has no row: its columns are NULL.
    pub fn set_null(&mut self, slot: usize) {
        self.slots[slot] = Slot::Null;
    }

    /// The table's row is these values.
    pub fn set_values(&mut self, slot: usize, values: Vec<Value>) {
        self.slots[slot] = Slot::Values(values);
    }

    /// The buffer into which a row of the engine is read.
    pub fn row_buffer(&mut self, slot: usize, layout: &Arc<RowLayout>) -> &mut RowBuffer {
        if !matches!(self.slots[slot], Slot::Row { .. }) {
            self.slots[slot] = Slot::Row { layout: layout.clone(), row: RowBuffer::default() };
        }
        match &mut self.slots[slot] {
            Slot::Row { row, .. } => row,
            Slot::Values(_) | Slot::Null => unreachable!("the slot was just made a row"),
        }
    }

    /// The row of the engine that the table has now.
    pub fn row(&self, slot: usize) -> Option<&RowBuffer> {
        match &self.slots[slot] {
            Slot::Row { row, .. } => Some(row),
            Slot::Values(_) | Slot::Null => None,
        }
    }

    /// Reads the columns that an index key holds; the others are NULL.
    pub fn set_index_key(
        &mut self,
        slot: usize,
        columns: usize,
        index: &IndexLayout,
        key: &[u8],
    ) -> Result<(), LayoutError> {
        let mut row = vec![ValueRef::Null; columns];
        index.read_columns(key, &mut row)?;
        if !matches!(&self.slots[slot], Slot::Values(values) if values.len() == columns) {
            self.slots[slot] = Slot::Values(vec![Value::Null; columns]);
        }
        if let Slot::Values(values) = &mut self.slots[slot] {
            for (value, read) in values.iter_mut().zip(row) {
                *value = read.to_owned();
            }
        }
        Ok(())
    }

    /// Copies the columns of a table.
    pub fn copy_table(&self, first: usize, columns: usize) -> Vec<Value> {
        (first..first + columns).map(|position| self.column(position).to_owned()).collect()
    }
}

impl Columns for Frame {
    #[inline]
    fn column(&self, position: usize) -> ValueRef<'_> {
        let Some(&(slot, column)) = self.places.get(position) else { return ValueRef::Null };
        if slot == OWN {
            return self.values[position].as_ref();
        }
        match &self.slots[slot as usize] {
            Slot::Row { layout, row } => {
                RowView::new(layout, &row.key, &row.payload).get(column as usize)
            }
            Slot::Values(values) => {
                values.get(column as usize).map_or(ValueRef::Null, Value::as_ref)
            }
            Slot::Null => ValueRef::Null,
        }
    }
}
