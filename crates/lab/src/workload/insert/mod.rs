//! An insert benchmark, after M. Callaghan's: tables with an ordered primary key and three
//! secondary keys of random values, filled, indexed, changed, and asked while rows come and go at a
//! fixed rate.
//!
//! 1. The steps are his: `l.i0` fills in the order of the primary key (the load), `l.x` makes the
//!    three secondary keys (the load's end), `l.i1` and `l.i2` insert and delete at the same pace,
//!    50 and 5 rows a transaction, `qr` asks ranges of the secondary keys and `qp` rows by the
//!    primary key, while others insert and delete so many rows a second and table.
//! 2. The rate of the writers of a query step is an agreement: a run that does not reach it is
//!    marked, whatever the queries did ([`crate::workload::Finding`]).
//! 3. A table has one client that inserts and one that deletes, so that at any time its primary
//!    keys are an interval without gaps: inserted at its end, deleted at its begin, whole
//!    transactions each. `verify` checks that, and that rows are as they were inserted.
//! 4. The ids that a client asks for follow the interval: drawn is a share of it, by the seed.
//!
//! His steps last as long as so many rows take; those of a run last as long as it is told.

mod client;
mod load;
mod rows;
mod verify;

pub use load::Load;
pub use verify::verify;

use crate::driver::Operation;
use crate::workload::{self, Finding, Which, Workload};
use client::Role;
use runtime::sync::{Mutex, WaitQueue};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What queries of a step ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Ranges of the secondary keys, all columns in the key.
    Ranges,
    /// Rows by the primary key.
    Points,
}

/// What is done after the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// As many rows are inserted as are deleted.
    Insert {
        /// Rows of a transaction.
        rows: u64,
    },
    /// Queries, beside rows that come and go.
    Query {
        /// What they ask for.
        asked: Asked,
        /// Rows a second and table, inserted, and as many deleted.
        rate: u64,
    },
}

/// Rows of a transaction of the writers of a query step.
const QUERY_STEP_ROWS: u64 = 10;
/// A rate is reached with this share of it: what a run's edges cut off is less.
const REACHED: f64 = 0.98;

impl Step {
    /// By its name: l.i1, l.i2, qr100, qp500 and the like.
    pub fn of_name(name: &str) -> Option<Self> {
        let query = |asked, rate: &str| {
            let rate = rate.parse().ok().filter(|rate| *rate > 0)?;
            Some(Self::Query { asked, rate })
        };
        match name {
            "l.i1" => Some(Self::Insert { rows: 50 }),
            "l.i2" => Some(Self::Insert { rows: 5 }),
            _ => match name.split_at_checked(2)? {
                ("qr", rate) => query(Asked::Ranges, rate),
                ("qp", rate) => query(Asked::Points, rate),
                _ => None,
            },
        }
    }

    /// Rows of a transaction of its writers.
    fn rows(self) -> u64 {
        match self {
            Self::Insert { rows } => rows,
            Self::Query { .. } => QUERY_STEP_ROWS,
        }
    }

    /// Clients of a table.
    fn roles(self) -> &'static [Role] {
        match self {
            Self::Insert { .. } => &[Role::Insert, Role::Delete],
            Self::Query { .. } => &[Role::Query, Role::Insert, Role::Delete],
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insert { rows } => write!(f, "inserts and deletes of {rows} rows"),
            Self::Query { asked: Asked::Ranges, rate } => {
                write!(f, "ranges beside {rate} rows/s in and out")
            }
            Self::Query { asked: Asked::Points, rate } => {
                write!(f, "points beside {rate} rows/s in and out")
            }
        }
    }
}

/// The parameters.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tables `purchases1`...
    pub tables: u32,
    /// Rows of each in the load.
    pub table_size: u64,
    /// What is done after it.
    pub step: Step,
    /// Decides the rows and what clients ask.
    pub seed: u64,
}

/// What the clients of a table know of each other.
#[derive(Debug, Default)]
struct Table {
    /// The lowest id that is there.
    first: AtomicU64,
    /// Above the highest.
    end: AtomicU64,
    /// Transactions of this run.
    inserted: AtomicU64,
    deleted: AtomicU64,
    /// For one that deletes, until something was inserted.
    grown: WaitQueue,
}

/// See the module.
pub struct Insert {
    options: Options,
    /// The tables of the run that is going on.
    tables: Mutex<Arc<[Table]>>,
}

impl Insert {
    /// With these parameters.
    pub fn new(options: Options) -> Self {
        let tables = Mutex::new(tables(&options));
        Self { options, tables }
    }
}

fn tables(options: &Options) -> Arc<[Table]> {
    (0..options.tables).map(|_| Table::default()).collect()
}

impl Workload for Insert {
    fn operations(&self) -> Vec<&'static str> {
        Role::NAMES.to_vec()
    }

    fn statements(&self) -> Vec<String> {
        rows::statements(self.options.tables, self.options.step.rows())
    }

    /// So many tables, each with its writers and one that asks.
    fn clients(&self, asked: u32) -> u32 {
        asked.min(self.options.tables) * self.options.step.roles().len() as u32
    }

    fn client(&self, which: Which) -> Box<dyn workload::Client> {
        let number = which.number;
        let mut shared = self.tables.lock();
        if number == 0 {
            *shared = tables(&self.options);
        }
        let roles = self.options.step.roles();
        let table = number as usize / roles.len();
        let role = roles[number as usize % roles.len()];
        Box::new(client::Client::new(&self.options, shared.clone(), table, role, which))
    }

    fn findings(&self, operations: &[Operation], measured: Duration) -> Vec<Finding> {
        let Step::Query { rate, .. } = self.options.step else { return Vec::new() };
        // Tables that were used, by the transactions that there were.
        let shared = self.tables.lock();
        let used = |table: &&Table| table.inserted.load(Ordering::Relaxed) > 0;
        let tables = shared.iter().filter(used).count().max(1) as u64;
        let wanted = (rate * tables) as f64;
        let finding = |role: Role| {
            let transactions = operations[role as usize].latency.len();
            let found = (transactions * QUERY_STEP_ROWS) as f64 / measured.as_secs_f64();
            Finding {
                name: format!("rate of {}", role.name()),
                found: format!("{found:.1} rows/s"),
                wanted: format!("{wanted:.0} rows/s"),
                met: found >= wanted * REACHED,
            }
        };
        vec![finding(Role::Insert), finding(Role::Delete)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_names() {
        assert_eq!(Step::of_name("l.i1"), Some(Step::Insert { rows: 50 }));
        assert_eq!(Step::of_name("l.i2"), Some(Step::Insert { rows: 5 }));
        let points = Step::Query { asked: Asked::Points, rate: 500 };
        assert_eq!(Step::of_name("qp500"), Some(points));
        let ranges = Step::Query { asked: Asked::Ranges, rate: 100 };
        assert_eq!(Step::of_name("qr100"), Some(ranges));
        for wrong in ["", "q", "qr", "qr0", "qx5", "l.i3", "é1"] {
            assert_eq!(Step::of_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_table_has_one_client_of_each_role() {
        let step = Step::Query { asked: Asked::Ranges, rate: 100 };
        let insert = Insert::new(Options { tables: 4, table_size: 100, step, seed: 1 });
        assert_eq!(insert.clients(2), 6);
        assert_eq!(insert.clients(64), 12, "as many tables as there are");
        let step = Step::Insert { rows: 50 };
        let insert = Insert::new(Options { tables: 4, table_size: 100, step, seed: 1 });
        assert_eq!(insert.clients(64), 8);
    }
}
