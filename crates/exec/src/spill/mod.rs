//! What a statement keeps beyond its memory budget: files in the temporary directory.
//!
//! 1. A file has no name from the moment it is made: it is gone when its last handle is dropped,
//!    at the end of the statement or of the process. Nothing of it is logged or synced.
//! 2. It is a sequence of blocks, each with the checksum of its bytes; a record lies in one block.
//!    A block that is not what was written is an error of the statement.
//! 3. A full disk is an error of the statement (1114), which changes nothing.
//! 4. Blocks in memory are charged like everything that the statement keeps. A refused charge
//!    makes an operator spill what it has; only what spilling itself needs can fail.

mod file;
mod key_table;
mod partitions;

pub use file::{SpillFile, SpillReader, SpillWriter};
pub use key_table::KeyTable;
pub use partitions::Partitions;

use base::memory::MemoryAccount;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The least that an operator gets, bytes: below it blocks of files would take all of it.
pub const BUDGET_BYTES_MIN: u64 = 256 << 10;

/// How much the operators of a session's statements may keep in memory, bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// A sort.
    pub sort: u64,
    /// The hash table of a join.
    pub join: u64,
    /// Groups, distinct rows, rows of a derived table.
    pub table: u64,
}

impl Budgets {
    /// No limits but the memory account's.
    pub const UNLIMITED: Self = Self { sort: u64::MAX, join: u64::MAX, table: u64::MAX };
}

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident),* $(,)?) => {
        /// What statements did, counted since it was last taken.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct WorkCounts {
            $($(#[$doc])* pub $field: u64,)*
        }

        #[derive(Debug, Default)]
        struct Counters {
            $($field: AtomicU64,)*
        }

        impl Counters {
            fn take(&self) -> WorkCounts {
                WorkCounts { $($field: take(&self.$field),)* }
            }
        }
    };
}

counters! {
    /// Times that runs of a sort were merged.
    sort_merge_passes,
    /// Rows that were sorted.
    sort_rows,
    /// Sorts of rows found by a range of an index.
    sort_range,
    /// Sorts of rows found otherwise.
    sort_scan,
    /// Tables of groups, distinct rows or derived rows.
    temporary_tables,
    /// Those of them that did not fit into their budget.
    temporary_disk_tables,
    /// Files.
    temporary_files,
}

fn take(counter: &AtomicU64) -> u64 {
    match counter.load(Ordering::Relaxed) {
        0 => 0,
        _ => counter.swap(0, Ordering::Relaxed),
    }
}

/// A session's temporary space: where files go, how much stays in memory, what was done.
#[derive(Debug)]
pub struct Spill {
    directory: Arc<Path>,
    sort: AtomicU64,
    join: AtomicU64,
    table: AtomicU64,
    /// Something was counted.
    counted: AtomicBool,
    counters: Counters,
}

impl Spill {
    /// For files in a directory, which is made when the first one is needed.
    pub fn new(directory: Arc<Path>, budgets: Budgets) -> Arc<Self> {
        let spill = Self {
            directory,
            sort: AtomicU64::new(0),
            join: AtomicU64::new(0),
            table: AtomicU64::new(0),
            counted: AtomicBool::new(false),
            counters: Counters::default(),
        };
        spill.set_budgets(budgets);
        Arc::new(spill)
    }

    /// Statements from now on have these budgets.
    pub fn set_budgets(&self, budgets: Budgets) {
        self.sort.store(budgets.sort.max(BUDGET_BYTES_MIN), Ordering::Relaxed);
        self.join.store(budgets.join.max(BUDGET_BYTES_MIN), Ordering::Relaxed);
        self.table.store(budgets.table.max(BUDGET_BYTES_MIN), Ordering::Relaxed);
    }

    /// The budgets as they are used.
    pub fn budgets(&self) -> Budgets {
        let of = |budget: &AtomicU64| budget.load(Ordering::Relaxed);
        Budgets { sort: of(&self.sort), join: of(&self.join), table: of(&self.table) }
    }

    /// What was counted since the last call, if anything was.
    pub fn take_counts(&self) -> Option<WorkCounts> {
        if !self.counted.load(Ordering::Relaxed) {
            return None;
        }
        self.counted.store(false, Ordering::Relaxed);
        Some(self.counters.take())
    }

    fn count(&self, counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
        self.counted.store(true, Ordering::Relaxed);
    }

    /// The directory of files.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn count_file(&self) {
        self.count(&self.counters.temporary_files, 1);
    }

    pub(crate) fn count_merge_pass(&self) {
        self.count(&self.counters.sort_merge_passes, 1);
    }

    pub(crate) fn count_table(&self) {
        self.count(&self.counters.temporary_tables, 1);
    }

    pub(crate) fn count_disk_table(&self) {
        self.count(&self.counters.temporary_disk_tables, 1);
    }

    /// A sort of so many rows.
    pub(crate) fn count_sort(&self, rows: u64, of_range: bool) {
        self.count(&self.counters.sort_rows, rows);
        let sorts = if of_range { &self.counters.sort_range } else { &self.counters.sort_scan };
        self.count(sorts, 1);
    }
}

/// The size of blocks for an operator with a budget, bytes.
pub fn block_bytes(budget: u64) -> usize {
    ((budget / 64).clamp(4 << 10, 64 << 10) as usize) & !4095
}

/// Memory that is charged until it is dropped.
#[derive(Debug)]
pub struct Charged {
    memory: Arc<MemoryAccount>,
    bytes: u64,
}

impl Charged {
    /// Nothing yet.
    pub fn none(memory: &Arc<MemoryAccount>) -> Self {
        Self { memory: memory.clone(), bytes: 0 }
    }

    /// Charges more; false, and nothing is charged, if it is refused.
    pub fn add(&mut self, bytes: usize) -> bool {
        let charged = self.memory.charge(bytes as u64).is_ok();
        self.bytes += if charged { bytes as u64 } else { 0 };
        charged
    }

    /// What was charged by somebody else is given back with the rest.
    pub fn take_over(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Gives a part back.
    pub fn give_back(&mut self, bytes: usize) {
        let bytes = self.bytes.min(bytes as u64);
        self.memory.release(bytes);
        self.bytes -= bytes;
    }

    /// Gives all back.
    pub fn clear(&mut self) {
        self.memory.release(std::mem::take(&mut self.bytes));
    }

    /// What is charged.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        self.clear();
    }
}
