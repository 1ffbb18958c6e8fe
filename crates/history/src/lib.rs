//! Judges what concurrent clients saw: which anomalies of isolation a history of transactions
//! contains, and which of them a level forbids.
//!
//! The method is that of Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from
//! Experimental Observations" (VLDB 2020), on the definitions of Adya, "Weak Consistency" (1999):
//! 1. Objects are such that a read shows the whole order of their versions: lists to which unique
//!    elements are appended, and registers with a version number and a unique value.
//! 2. From the longest read of each list (the version numbers of each register) follows the order
//!    of versions, from that the dependencies between transactions: write-write, write-read,
//!    read-write, and before in real time.
//! 3. An anomaly is something that a read shows by itself, or a cycle of dependencies. Snapshot
//!    isolation forbids just the cycles without two read-write dependencies in a row (Cerone and
//!    Gotsman, "Analysing Snapshot Isolation", 2016), serializability forbids all.
//! 4. What nobody can know accuses nobody: a transaction whose commit was never answered counts
//!    as committed if somebody saw what it wrote, else as if it had not been. But one whose
//!    elements are missing from the last read of a list was rolled back (by a crash), whoever saw
//!    them: at most levels it is an anomaly to have seen them, READ UNCOMMITTED allows that.

mod anomaly;
mod cycles;
mod dependencies;
mod graph;
mod list_append;
mod register;
mod text;
mod transaction;
mod writers;

pub use anomaly::{Anomaly, Finding, Findings, Level};
pub use transaction::{History, Operation, Outcome, Transaction};

/// Everything that is wrong with a history at some level.
pub fn judge(history: &History) -> Findings {
    let mut findings = Findings::default();
    let settled = list_append::settle(history);
    let history = &settled;
    let lists = list_append::observe(history, &mut findings);
    let registers = register::observe(history, &mut findings);
    let graph = dependencies::graph(history, &[lists, registers], &mut findings);
    cycles::search(history, &graph, &mut findings);
    findings
}
