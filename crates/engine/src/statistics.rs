//! Estimates for the planner: sampled, and kept for a while.

use crate::range::Interval;
use crate::table::TableParts;
use btree::{Batch, Tree};
use engine_api::{ColumnStatistics, Statistics, VALUE_BYTES};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use types::row::{KeyColumn, KeyPart, RowView};

/// Leaves sampled per index.
const SAMPLED_LEAVES: usize = 8;
/// Leaves of the clustered tree sampled for its columns.
const COLUMN_LEAVES: u64 = 32;
/// Most rows of that sample.
const COLUMN_ROWS: usize = 4000;
/// Estimates older than this are made anew when the table has changed.
const KEEP: Duration = Duration::from_secs(10);
/// Estimates of a table that has changed by a tenth are kept at least this long.
const KEEP_AT_LEAST: Duration = Duration::from_millis(100);

/// Estimates and when they were made.
#[derive(Clone, Debug)]
pub(crate) struct KeptStatistics {
    made: runtime::Instant,
    /// Changes of the table counted until then.
    changes: u64,
    statistics: Statistics,
}

impl KeptStatistics {
    fn is_fresh(&self, changes: u64) -> bool {
        let (age, changed) = (self.made.elapsed(), changes - self.changes);
        changed == 0
            || age < KEEP_AT_LEAST
            || (age < KEEP && changed <= (self.statistics.rows / 10).max(2))
    }
}

/// Estimates about the values of the columns.
#[derive(Clone, Debug)]
pub(crate) struct KeptColumns {
    /// Changes of the table counted until then.
    changes: u64,
    rows: u64,
    columns: Arc<[Arc<ColumnStatistics>]>,
}

impl TableParts {
    /// Estimates about the values of a column, made anew when a tenth of the rows has changed.
    pub(crate) fn column_estimates(&self, column: usize) -> Option<Arc<ColumnStatistics>> {
        let changes = self.counters.all_changes();
        if let Some(kept) = &*self.counters.column_statistics.lock()
            && changes - kept.changes <= kept.rows / 10
        {
            return kept.columns.get(column).cloned();
        }
        let (rows, columns) = self.sample_columns();
        let found = columns.get(column).cloned();
        *self.counters.column_statistics.lock() = Some(KeptColumns { changes, rows, columns });
        found
    }

    /// Reads leaves that lie evenly spread over the table: all of a small one.
    fn sample_columns(&self) -> (u64, Arc<[Arc<ColumnStatistics>]>) {
        let layout = self.definition.row_layout();
        let parts = 0..layout.columns().len();
        let parts = parts.map(|at| KeyColumn::new(layout.columns(), &KeyPart::ascending(at)));
        let parts: Vec<Option<KeyColumn>> = parts.collect();
        let mut values: Vec<Vec<(Box<[u8]>, u32)>> = vec![Vec::new(); parts.len()];
        let mut nulls = vec![0usize; parts.len()];
        let found = self.trees[0].statistics().unwrap_or_default();
        let leaves = found.leaf_pages.clamp(1, COLUMN_LEAVES);
        let (mut batch, mut key) = (Batch::new(), Vec::new());
        let mut sampled = 0u64;
        let mut is_whole = leaves == found.leaf_pages.max(1) && found.height <= 2;
        for leaf in 0..leaves {
            let share = (leaf as f64 + 0.5) / leaves as f64;
            if self.trees[0].leaf_at(share, &mut batch).is_err() {
                break;
            }
            let step = (batch.len() * leaves as usize).div_ceil(COLUMN_ROWS).max(1);
            is_whole &= step == 1;
            let live = batch.iter().filter(|row| row.entry.flags & btree::DELETED == 0);
            for row in live.step_by(step) {
                sampled += 1;
                let view = RowView::new(&layout, row.key, row.entry.payload);
                for (at, part) in parts.iter().enumerate() {
                    let value = view.get(at);
                    key.clear();
                    match part {
                        Some(part) if !value.is_null() && part.push(value, &mut key).is_ok() => {
                            key.truncate(VALUE_BYTES);
                            values[at].push((key.as_slice().into(), leaf as u32));
                        }
                        _ => nulls[at] += 1,
                    }
                }
            }
        }
        let rows = if is_whole { sampled } else { found.entries.max(sampled) };
        let columns = values.into_iter().zip(nulls);
        let columns = columns.map(|(values, nulls)| {
            Arc::new(ColumnStatistics::of_sample(values, nulls, rows as f64))
        });
        (rows, columns.collect())
    }

    /// Estimates, at most a few seconds old.
    pub(crate) fn collect_statistics(&self) -> Statistics {
        let changes = self.counters.all_changes();
        if let Some(kept) = &*self.counters.statistics.lock()
            && kept.is_fresh(changes)
        {
            return kept.statistics.clone();
        }
        let statistics = self.sample();
        let made = runtime::now();
        let kept = KeptStatistics { made, changes, statistics: statistics.clone() };
        *self.counters.statistics.lock() = Some(kept);
        statistics
    }

    /// Damaged trees have no estimates; the statement that reads them will say so.
    fn sample(&self) -> Statistics {
        let mut sum = Statistics::default();
        for (position, tree) in self.trees.iter().enumerate() {
            let found = tree.statistics().unwrap_or_default();
            let bytes = (found.leaf_pages + found.inner_pages) * tree.page_bytes() as u64;
            if position == 0 {
                sum.rows = found.entries;
                sum.data_bytes = bytes;
            } else {
                sum.index_bytes += bytes;
            }
            sum.distinct.push(self.distinct(position, tree, found.entries));
        }
        sum
    }

    /// Per number of leading parts: how often neighbours differ, scaled to the whole index.
    fn distinct(&self, position: usize, tree: &Tree, entries: u64) -> Vec<u64> {
        let parts = self.keys.parts(position);
        let (mut changes, mut pairs) = (vec![0u64; parts], 0u64);
        let mut batch = Batch::new();
        for _ in 0..SAMPLED_LEAVES {
            if tree.sample_leaf(&mut batch).is_err() {
                break;
            }
            for at in 1..batch.len() {
                let (before, key) = (batch.get(at - 1).key, batch.get(at).key);
                pairs += 1;
                for (number, count) in changes.iter_mut().enumerate() {
                    let length = self.keys.prefix_bytes(position, number + 1, key);
                    let length = length.unwrap_or(key.len());
                    *count += u64::from(before.get(..length) != Some(&key[..length]));
                }
            }
        }
        let scale = |count: u64| -> u64 {
            let share = if pairs == 0 { 1.0 } else { count as f64 / pairs as f64 };
            (share * entries.saturating_sub(1) as f64) as u64 + u64::from(entries > 0)
        };
        changes.into_iter().map(scale).collect()
    }

    /// Estimated number of keys in a range.
    pub(crate) fn estimate(&self, position: usize, interval: &Interval) -> u64 {
        if interval.empty {
            return 0;
        }
        let high = interval.high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let low = Bound::Included(interval.low.as_slice());
        self.trees[position].estimate_range(low, high).unwrap_or(0)
    }
}
