//! The rows of a sorter, which are sorted, fetched one by one.

use super::{Merge, Sorter};
use crate::ExecError;
use crate::query::rows::Values;

/// See the head of the file.
pub struct Reader<'s> {
    sorter: &'s Sorter,
    /// If they lie in files.
    merge: Option<Merge<'s>>,
    /// Rows given.
    given: usize,
}

impl Sorter {
    /// Gives the rows from the first.
    pub fn reader(&self) -> Result<Reader<'_>, ExecError> {
        let is_merged = !self.runs.is_empty();
        let merge = is_merged.then(|| self.merge(&self.runs)).transpose()?;
        Ok(Reader { sorter: self, merge, given: 0 })
    }
}

impl Reader<'_> {
    /// The next row.
    pub fn next_row(&mut self) -> Result<Option<Values<'_>>, ExecError> {
        if self.given >= self.sorter.most {
            return Ok(None);
        }
        self.given += 1;
        if let Some(merge) = &mut self.merge {
            return Ok(merge.next_row()?.map(Values::new));
        }
        let place = self.sorter.places.get(self.given - 1);
        Ok(place.map(|place| self.sorter.rows.row_at(place.start)))
    }
}
