//! `bulk_insert`: rows of two numbers at the end of a table. sysbench calls each row an event and
//! sends as many as fit into half a megabyte; here an operation is such a statement.
//!
//! 1. Rows come in blocks, each of one statement: a block is there whole or not at all.
//! 2. Clients that share a table take blocks in turn; with as many tables as clients each has its
//!    own, as in sysbench.

use crate::client::Failure;
use crate::driver::session::Session;
use crate::workload;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of a statement.
pub(super) const ROWS: u64 = 20_000;

/// For each table the question for its last id.
pub(super) fn statements(tables: u32) -> Vec<String> {
    (1..=tables).map(|table| format!("SELECT MAX(id) FROM sbtest{table}")).collect()
}

/// Makes a table anew.
pub(super) fn create(table: u32, behind: &str) -> [String; 2] {
    let create = format!(
        "CREATE TABLE sbtest{table} (id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, \
         PRIMARY KEY (id)) {behind}"
    );
    [format!("DROP TABLE IF EXISTS sbtest{table}"), create]
}

/// What must hold of a table: rules, and queries that find what breaks them.
pub(super) fn rules(table: u32) -> [(&'static str, String); 2] {
    [
        (
            "a statement's rows are there, all or none",
            format!(
                "SELECT (id-1) DIV {ROWS} AS block, COUNT(*) FROM sbtest{table} GROUP BY block \
                 HAVING COUNT(*)<>{ROWS}"
            ),
        ),
        ("k is the id", format!("SELECT id, k FROM sbtest{table} WHERE k<>id")),
    ]
}

/// A client, which has a table.
pub(super) struct Bulk {
    table: u32,
    /// The last id that somebody has taken.
    taken: Arc<AtomicU64>,
    first: u64,
    text: String,
}

impl Bulk {
    pub(super) fn new(table: u32, taken: Arc<AtomicU64>) -> Self {
        Self { table, taken, first: 1, text: String::new() }
    }
}

impl workload::Client for Bulk {
    fn connected(&mut self, sessions: &mut [Session]) -> Result<(), Failure> {
        let mut last = 0;
        sessions[0].execute(self.table as usize, &[], |row| {
            last = row.integer(0).unwrap_or(0) as u64;
            Ok(())
        })?;
        self.taken.fetch_max(last, Ordering::Relaxed);
        Ok(())
    }

    fn decided(&self) -> String {
        format!("sbtest{} from {}", self.table + 1, self.first)
    }

    fn next(&mut self) -> usize {
        self.first = self.taken.fetch_add(ROWS, Ordering::Relaxed) + 1;
        0
    }

    fn perform(&mut self, sessions: &mut [Session]) -> Result<(), Failure> {
        self.text.clear();
        let _infallible = write!(self.text, "INSERT INTO sbtest{} VALUES ", self.table + 1);
        for id in self.first..self.first + ROWS {
            let comma = if id == self.first { "" } else { "," };
            let _infallible = write!(self.text, "{comma}({id},{id})");
        }
        sessions[0].command(&self.text).map(drop)
    }
}
