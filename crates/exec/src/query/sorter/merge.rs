//! Runs of a sort merged: a heap of the runs' next rows.

use crate::ExecError;
use crate::order;
use crate::query::ordering::Key;
use crate::query::rows::Values;
use crate::spill::{SpillFile, SpillReader};
use base::memory::MemoryAccount;
use std::cmp::Ordering;
use std::sync::Arc;

struct Source {
    reader: SpillReader,
    /// That of the first key of its next row.
    head: u64,
}

/// See the head of the file.
pub struct Merge<'k> {
    keys: &'k [Key],
    sources: Vec<Source>,
    /// Numbers of sources; that of the next row first.
    heap: Vec<usize>,
    /// The row given last must be left behind before the next one.
    given: bool,
    /// The row given last, if rows equal to it are dropped.
    last: Option<Vec<u8>>,
}

fn compare(keys: &[Key], a: &[u8], b: &[u8]) -> Ordering {
    for key in keys {
        let (x, y) = (Values::new(a).value(key.position), Values::new(b).value(key.position));
        let order = order::compare(x, y, key.rule.collation);
        let order = if key.rule.descending { order.reverse() } else { order };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

impl Source {
    fn row(&self) -> &[u8] {
        self.reader.record().unwrap_or(&[])
    }

    /// Comes to the next row; false at the end.
    fn advance(&mut self, keys: &[Key]) -> Result<bool, ExecError> {
        if !self.reader.advance()? {
            return Ok(false);
        }
        self.head = keys
            .first()
            .map_or(0, |key| key.rule.head(Values::new(self.row()).value(key.position)).number);
        Ok(true)
    }
}

impl<'k> Merge<'k> {
    /// Of rows equal in their keys `is_unique` leaves the first.
    pub fn new(
        keys: &'k [Key],
        runs: &[Arc<SpillFile>],
        is_unique: bool,
        memory: &Arc<MemoryAccount>,
    ) -> Result<Self, ExecError> {
        let mut merge = Self {
            keys,
            sources: Vec::with_capacity(runs.len()),
            heap: Vec::with_capacity(runs.len()),
            given: false,
            last: is_unique.then(Vec::new),
        };
        for run in runs {
            let reader = SpillReader::new(run.clone(), memory)?;
            let mut source = Source { reader, head: 0 };
            if source.advance(keys)? {
                merge.heap.push(merge.sources.len());
                merge.sources.push(source);
            }
        }
        for at in (0..merge.heap.len()).rev() {
            merge.sift_down(at);
        }
        Ok(merge)
    }

    fn comes_before(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.sources[a], &self.sources[b]);
        let order = x.head.cmp(&y.head).then_with(|| compare(self.keys, x.row(), y.row()));
        order.then(a.cmp(&b)).is_lt()
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut first = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.comes_before(self.heap[child], self.heap[first])
                {
                    first = child;
                }
            }
            if first == at {
                return;
            }
            self.heap.swap(at, first);
            at = first;
        }
    }

    /// Leaves the first row behind.
    fn drop_first(&mut self) -> Result<(), ExecError> {
        let Some(&first) = self.heap.first() else { return Ok(()) };
        if !self.sources[first].advance(self.keys)? {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    /// The next row.
    pub fn next_row(&mut self) -> Result<Option<&[u8]>, ExecError> {
        if std::mem::take(&mut self.given) {
            self.drop_first()?;
        }
        let first = loop {
            let Some(&first) = self.heap.first() else { return Ok(None) };
            let Some(last) = &mut self.last else { break first };
            let row = self.sources[first].row();
            if last.is_empty() || compare(self.keys, last, row).is_ne() {
                last.clear();
                last.extend_from_slice(row);
                break first;
            }
            self.drop_first()?;
        };
        self.given = true;
        Ok(Some(self.sources[first].row()))
    }
}
