//! ORDER BY of few rows whose result is columns of one table: batches of a scan are kept as they
//! were read, and their rows go to the client as they are stored (`direct.rs`).

use super::direct::column_of;
use super::distribute::Place;
use super::heads::HeadRule;
use super::ordering::{KeptRows, Key, Order};
use super::output::charge;
use crate::ExecError;
use base::memory::MemoryAccount;
use engine_api::{RowBatch, RowRef};
use plan::physical::{SelectPlan, TableSource};
use std::sync::Arc;
use types::ValueRef;
use types::row::{RowLayout, RowView};

/// With more bytes, rows are packed: what the client does not get need not be kept.
const MOST_BYTES: usize = 64 << 10;

/// See the head of the file.
pub struct StoredSort<'p> {
    /// Positions of keys are columns of the table.
    keys: Vec<Key>,
    /// Columns of the result.
    columns: Vec<usize>,
    rows: StoredRows<'p>,
    places: Vec<Place>,
    /// The heads of the first key are.
    is_exact: bool,
    charged_bytes: usize,
    memory: Arc<MemoryAccount>,
}

/// A place begins at the number of a batch and, in the lower half, that of its row.
struct StoredRows<'p> {
    layout: &'p RowLayout,
    batches: Vec<RowBatch>,
}

impl StoredRows<'_> {
    #[inline]
    fn row(&self, place: &Place) -> RowRef<'_> {
        let (batch, row) = (place.start >> 32, place.start & u32::MAX as usize);
        let row = self.batches.get(batch).and_then(|rows| rows.row(row));
        row.unwrap_or(RowRef { key: &[], payload: &[] })
    }
}

impl KeptRows for StoredRows<'_> {
    fn value(&self, place: &Place, position: usize) -> ValueRef<'_> {
        let row = self.row(place);
        RowView::new(self.layout, row.key, row.payload).get(position)
    }
}

impl<'p> StoredSort<'p> {
    /// For a plan that [`super::direct::stored_columns`] knows and that sorts.
    pub fn new(plan: &'p SelectPlan, memory: &Arc<MemoryAccount>) -> Option<Self> {
        let step = plan.tables.first()?;
        let TableSource::Base(entry) = &step.source else { return None };
        let columns: Option<Vec<usize>> =
            plan.projection.iter().map(|expr| column_of(expr, step)).collect();
        let columns = columns?;
        let key = |key: &plan::physical::SortKey| {
            let column_type = &plan.projection[key.position].result.column_type;
            let rule = HeadRule::new(column_type, key.descending);
            Key { position: columns[key.position], rule }
        };
        Some(Self {
            keys: plan.order_by.iter().map(key).collect(),
            rows: StoredRows { layout: &entry.0.layouts().row, batches: Vec::new() },
            columns,
            places: Vec::new(),
            is_exact: true,
            charged_bytes: 0,
            memory: memory.clone(),
        })
    }

    /// Keeps the selected rows of a batch. False once there are too many rows to be kept so.
    pub fn add(&mut self, rows: RowBatch, selected: &[u32]) -> Result<bool, ExecError> {
        let Some(key) = self.keys.first() else { return Ok(false) };
        let bytes = rows.byte_len() + size_of::<Place>() * selected.len();
        charge(&self.memory, bytes)?;
        self.charged_bytes += bytes;
        let batch = self.rows.batches.len() << 32;
        self.places.reserve(selected.len());
        let layout = self.rows.layout;
        let is_exact = &mut self.is_exact;
        let mut keep = |row: u32, value: ValueRef<'_>| {
            let head = key.rule.head(value);
            *is_exact &= head.is_exact;
            self.places.push(Place { head: head.number, start: batch | row as usize });
        };
        if layout.columns()[key.position].column_type.kind.is_string() {
            let mut texts = Vec::with_capacity(selected.len());
            layout.read_texts(key.position, &rows, selected, &mut texts);
            for (&row, text) in selected.iter().zip(texts) {
                keep(row, text.map_or(ValueRef::Null, ValueRef::Bytes));
            }
        } else {
            for &row in selected {
                let bytes = rows.row(row as usize).unwrap_or(RowRef { key: &[], payload: &[] });
                keep(row, RowView::new(layout, bytes.key, bytes.payload).get(key.position));
            }
        }
        self.rows.batches.push(rows);
        Ok(self.charged_bytes <= MOST_BYTES)
    }

    /// Sorts; `is_unique`: of rows that are equal in their keys the first one stays. Returns how
    /// many rows there are.
    pub fn sort(&mut self, is_unique: bool) -> usize {
        let order = Order { keys: &self.keys, rows: &self.rows, memory: &self.memory };
        order.sort(&mut self.places, self.is_exact);
        if is_unique {
            order.drop_equal(&mut self.places);
        }
        self.places.len()
    }

    /// The stored rows, from number `offset` on.
    pub fn rows(&self, offset: usize) -> impl Iterator<Item = RowRef<'_>> {
        self.places.iter().skip(offset).map(|place| self.rows.row(place))
    }

    /// The values of every row, in the order in which they came if they are not sorted.
    pub fn each_row(
        &self,
        mut give: impl FnMut(&[ValueRef<'_>]) -> Result<(), ExecError>,
    ) -> Result<(), ExecError> {
        let mut values = Vec::with_capacity(self.columns.len());
        for row in self.rows(0) {
            let view = RowView::new(self.rows.layout, row.key, row.payload);
            values.clear();
            values.extend(self.columns.iter().map(|&column| view.get(column)));
            give(&values)?;
        }
        Ok(())
    }
}

impl Drop for StoredSort<'_> {
    fn drop(&mut self) {
        self.memory.release(self.charged_bytes as u64);
    }
}
