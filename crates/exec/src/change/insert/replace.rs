//! REPLACE: the rows that stand in the way of a new one.

use super::{Given, Inserter};
use crate::ExecError;
use crate::context::{Exec, RowSink};
use engine_api::{DuplicateKey, IndexDefinition, RowBuffer};
use types::Value;

impl Inserter<'_> {
    /// Removes the row that stands in the way; true if it stays, since it is what replaces it.
    pub(super) fn remove(
        &mut self,
        exec: &mut Exec<'_>,
        values: &[Value],
        duplicate: &DuplicateKey,
    ) -> Result<bool, ExecError> {
        let mut row = RowBuffer::default();
        if self.existing(exec, duplicate, &mut row)? {
            if self.is_same(values, duplicate, &row) {
                return Ok(true);
            }
            match self.foreign {
                None => self.table.delete(exec.transaction, &row)?,
                Some(foreign) => foreign.delete(exec, &row)?,
            }
            self.replaced += 1;
            self.affected += 1;
        }
        Ok(false)
    }

    /// Whether the row that stands in the way is the new one, byte by byte. As in MariaDB it is
    /// compared only where its last unique key found it first and nothing refers to the table.
    fn is_same(&self, values: &[Value], duplicate: &DuplicateKey, existing: &RowBuffer) -> bool {
        let definition = self.maker.definition();
        let keys = self.plan.foreign_keys.as_deref();
        let is_referenced = keys.is_some_and(|keys| !keys.tables[0].children.is_empty());
        if existing.payload != self.row.payload
            || !(definition.hidden_row_id || existing.key == self.row.key)
            || is_referenced
        {
            return false;
        }
        // MariaDB has keys with NULL behind the others. A row is in the way of itself in all.
        let can_be_null = |index: &IndexDefinition| {
            index.parts.iter().any(|part| definition.columns[part.column].nullable)
        };
        let rank = |number: usize| {
            let index = &definition.indexes[number];
            (!index.primary, can_be_null(index), number)
        };
        let unique = definition.indexes.iter().enumerate();
        let mut others = unique.filter(|(number, index)| {
            index.unique && !index.parts.is_empty() && *number != duplicate.index
        });
        others.all(|(number, index)| {
            let has_null = index.parts.iter().any(|part| values[part.column].is_null());
            has_null && rank(number) < rank(duplicate.index)
        })
    }

    /// REPLACE of a row by itself: it counts as one that came in.
    pub(super) fn note_replaced_by_itself(
        &mut self,
        exec: &mut Exec<'_>,
        values: &Vec<Value>,
        given: Given,
        sink: &mut dyn RowSink,
    ) -> Result<(), ExecError> {
        self.note_inserted(given)?;
        self.return_row(exec, values, sink)
    }
}
