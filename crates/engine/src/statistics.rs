//! Estimates for the planner: samples, kept until the table has changed.
//!
//! 1. A statement takes what is kept, unless there is nothing or so much has changed that it would
//!    be misled: more than half of the rows, of a small table a tenth. Then it samples itself. How
//!    old estimates are is counted in changed rows, never in time.
//! 2. A fiber makes anew what was ever asked for when a tenth of the rows has changed, a few pages
//!    at a time ([`round`]).
//!    It rests for a hundred times as long as a table took it, so that it costs no worker more than
//!    a hundredth of its time, however fast the tables change.
//! 3. Estimates of tables that are not small are kept in the dictionary (`saved.rs`): a restart and
//!    a recovery find them. The fiber compares them with the table once it is opened.

mod saved;

use crate::core::Core;
use crate::purge;
use crate::range::Interval;
use crate::table::TableParts;
use base::TreeId;
use btree::{Batch, Tree};
use engine_api::{ColumnStatistics, Statistics, VALUE_BYTES};
use runtime::WaitClass;
use runtime::sync::Mutex;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use types::row::{KeyColumn, KeyPart, RowView};

pub(crate) use saved::{forget, save_all};

/// Leaves sampled per index.
const SAMPLED_LEAVES: usize = 8;
/// Leaves of the clustered tree sampled for its columns.
const COLUMN_LEAVES: u64 = 32;
/// Most rows of that sample.
const COLUMN_ROWS: usize = 4000;
/// A table with fewer rows is sampled as a whole, about as fast as a record of it is read.
const SMALL_ROWS: u64 = 2000;

/// Rule 2: how much longer than its work the background rests.
const REST_FACTOR: u32 = 100;
/// It rests no longer than this.
const REST_MAX: Duration = Duration::from_secs(10);
/// Work that needs no rest: a look that found nothing to do.
const WORK_MIN: Duration = Duration::from_micros(50);

/// Estimates about a table, and when they were made.
#[derive(Clone, Debug)]
pub(crate) struct KeptStatistics {
    /// Changes of the table counted until then.
    pub(crate) changes: u64,
    /// Its trees then: an index that came or went makes all of it old.
    pub(crate) trees: Box<[TreeId]>,
    /// Read from the dictionary: whether the table is still like that is to be looked at.
    pub(crate) is_of_former_run: bool,
    /// Deleted entries were counted that purge was about to remove.
    pub(crate) counts_deleted: bool,
    pub(crate) statistics: Statistics,
}

/// Estimates about the values of the columns.
#[derive(Clone, Debug)]
pub(crate) struct KeptColumns {
    /// Changes of the table counted until then.
    pub(crate) changes: u64,
    pub(crate) rows: u64,
    pub(crate) columns: Arc<[Arc<ColumnStatistics>]>,
}

/// What is known of a table.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    pub(crate) statistics: Mutex<Option<KeptStatistics>>,
    pub(crate) columns: Mutex<Option<KeptColumns>>,
    /// Something that the dictionary does not have.
    pub(crate) is_unsaved: AtomicBool,
    /// The table as it was opened last, for the background.
    open: Mutex<Weak<TableParts>>,
}

/// Rule 2: a tenth of the rows.
fn is_old(changed: u64, rows: u64) -> bool {
    changed > rows / 10
}

/// Rule 1: whether a statement may go by estimates of a table that has changed since.
fn serves(changed: u64, rows: u64) -> bool {
    if rows < SMALL_ROWS { !is_old(changed, rows) } else { changed <= rows / 2 }
}

impl TableParts {
    /// The table is open: the background looks after its estimates from now on.
    pub(crate) fn adopt(self: &Arc<Self>) {
        let estimates = &self.counters.estimates;
        *estimates.open.lock() = Arc::downgrade(self);
        let is_known = estimates.statistics.lock().is_some();
        if !is_known {
            saved::load(self);
        }
    }

    fn has_trees(&self, trees: &[TreeId]) -> bool {
        self.trees.iter().map(Tree::id).eq(trees.iter().copied())
    }

    /// Asks the background for newer estimates.
    fn want_newer(&self, changed: u64, rows: u64) {
        if is_old(changed, rows) {
            self.core.statistics_wanted.set();
        }
    }

    /// Estimates about the values of a column.
    pub(crate) fn column_estimates(&self, column: usize) -> Option<Arc<ColumnStatistics>> {
        let changes = self.counters.all_changes();
        if let Some(kept) = &*self.counters.estimates.columns.lock() {
            let changed = changes.saturating_sub(kept.changes);
            if serves(changed, kept.rows) {
                self.want_newer(changed, kept.rows);
                return kept.columns.get(column).cloned();
            }
        }
        self.refresh_columns(changes).get(column).cloned()
    }

    fn refresh_columns(&self, changes: u64) -> Arc<[Arc<ColumnStatistics>]> {
        let (rows, columns) = self.sample_columns();
        let kept = KeptColumns { changes, rows, columns: columns.clone() };
        let estimates = &self.counters.estimates;
        *estimates.columns.lock() = Some(kept);
        estimates.is_unsaved.store(true, Ordering::Relaxed);
        columns
    }

    /// Estimates about the table.
    pub(crate) fn collect_statistics(&self) -> Statistics {
        let changes = self.counters.all_changes();
        if let Some(kept) = &*self.counters.estimates.statistics.lock()
            && self.has_trees(&kept.trees)
        {
            let changed = changes.saturating_sub(kept.changes);
            if serves(changed, kept.statistics.rows) {
                self.want_newer(changed, kept.statistics.rows);
                return kept.statistics.clone();
            }
        }
        self.refresh(changes)
    }

    fn refresh(&self, changes: u64) -> Statistics {
        let counts_deleted = purge::is_pending(&self.core);
        let statistics = self.sample();
        let kept = KeptStatistics {
            changes,
            trees: self.trees.iter().map(Tree::id).collect(),
            is_of_former_run: false,
            counts_deleted,
            statistics: statistics.clone(),
        };
        let estimates = &self.counters.estimates;
        *estimates.statistics.lock() = Some(kept);
        estimates.is_unsaved.store(true, Ordering::Relaxed);
        statistics
    }

    /// A visit of the background: makes anew what has grown old and was ever asked for.
    fn look_after(&self) {
        let changes = self.counters.all_changes();
        let estimates = &self.counters.estimates;
        let old = match &*estimates.statistics.lock() {
            None => None,
            Some(kept) => {
                let is_old = is_old(changes.saturating_sub(kept.changes), kept.statistics.rows)
                    || kept.counts_deleted && !purge::is_pending(&self.core)
                    || !self.has_trees(&kept.trees);
                Some((is_old, kept.is_of_former_run, kept.statistics.rows))
            }
        };
        let Some((mut is_old, is_of_former_run, rows)) = old else { return };
        if is_of_former_run && !is_old {
            // A crash may have taken the newest estimates, not the newest rows.
            let now = self.trees[0].statistics().unwrap_or_default().entries;
            is_old = self::is_old(now.abs_diff(rows), rows);
            if let Some(kept) = &mut *estimates.statistics.lock() {
                kept.is_of_former_run = false;
            }
        }
        if is_old {
            self.refresh(changes);
        }
        let columns = estimates.columns.lock().as_ref().map(|kept| (kept.changes, kept.rows));
        let are_old = columns.is_some_and(|(then, rows)| {
            self::is_old(changes.saturating_sub(then), rows) || is_of_former_run && is_old
        });
        if are_old {
            self.refresh_columns(changes);
        }
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
            runtime::yield_if_due();
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
            let size = (found.leaf_pages, found.entries);
            sum.distinct.push(self.distinct(position, tree, size));
        }
        sum
    }

    /// Per number of leading parts: how often neighbours differ, scaled to the whole index.
    fn distinct(&self, position: usize, tree: &Tree, size: (u64, u64)) -> Vec<u64> {
        let (leaves, entries) = size;
        let parts = self.keys.parts(position);
        let (mut changes, mut pairs) = (vec![0u64; parts], 0u64);
        let mut batch = Batch::new();
        for _ in 0..leaves.clamp(1, SAMPLED_LEAVES as u64) {
            runtime::yield_if_due();
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

/// Looks after the estimates of all open tables.
pub(crate) fn round(core: &Core) {
    for counters in core.counters.all() {
        if core.is_stopping() {
            return;
        }
        let table = counters.estimates.open.lock().upgrade();
        let Some(table) = table else { continue };
        let begin = runtime::now();
        table.look_after();
        saved::save(&table);
        drop(table);
        rest(core, runtime::now() - begin);
    }
}

/// Rests after work that took so long, unless the engine stops.
fn rest(core: &Core, work: Duration) {
    if work < WORK_MIN {
        return runtime::yield_if_due();
    }
    let end = runtime::now() + (work * REST_FACTOR).min(REST_MAX);
    while !core.is_stopping() && runtime::now() < end {
        core.statistics_wanted.take(WaitClass::Idle, Some(end));
    }
    // What was asked for meanwhile is looked at without another call.
    core.statistics_wanted.set();
}
