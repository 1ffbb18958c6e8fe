//! `cargo xtask bench NAME`: Gannet beside MariaDB, or beside the limit.
//!
//! 1. Servers have the same memory, durability and isolation, and take turns: A B, B A, A B.
//! 2. A figure is the median of its runs, printed with the least and the most.
//! 3. A run that other work disturbed (over [`load::OTHERS_PERCENT_MAX`] of a core) is repeated;
//!    the quietest counts.
//! 4. Every benchmark ends with its limits, and fails when one does not hold. `--quick` has little
//!    data, few clients and seconds: it shows that everything runs, and large differences.

mod analytics;
mod before;
mod commit_latency;
mod connections;
mod cpu;
mod hot_row;
mod limit;
mod load;
mod report;
mod starvation;
mod subject;
mod sysbench;

use crate::arguments::Arguments;
use crate::{Outcome, packages};

const FLAGS: &[&str] = &["--quick", "--gannet-only", "--prepared", "--text", "--mysql"];
const OPTIONS: &[&str] =
    &["--seconds", "--warm-up", "--pairs", "--clients", "--before", "--rounds"];

/// What can be run.
pub const USAGE: &str = "usage: cargo xtask bench NAME [--quick] [--seconds S] [--warm-up S]
           [--pairs N] [--clients N,N...]
  sysbench [SCRIPT...] [--prepared | --text] [--mysql | --before BINARY [--rounds N]]
                  CPU per transaction and throughput of sysbench's scripts, beside MariaDB,
                  beside MySQL, or beside an earlier build of the server, in turn within seconds
  limit [point_select | update_non_index] [--before BINARY]
                  beside a server that answers with a constant, up to 4,096 connections
  connections     resident memory of idle and of active connections
  commit-latency  one client: from append to durable, beside the device's write and sync
  hot-row         64 clients update one row
  starvation      point reads beside clients that loop a heavy query
  analytics [QUERY...]
                  scans, aggregates and joins of a million rows";

/// What every benchmark knows.
pub struct Plan {
    /// Little of everything.
    pub is_quick: bool,
    /// Measured seconds of a run.
    pub seconds: f64,
    /// Seconds before them.
    pub warm_up: f64,
    /// Runs of every server in a cell.
    pub pairs: usize,
    /// `sbtest1`...
    pub tables: u32,
    /// Rows of each.
    pub rows: u32,
    /// The words of the command line.
    pub arguments: Arguments,
}

impl Plan {
    fn new(words: &[String]) -> Result<Self, String> {
        let arguments = Arguments::new(words, FLAGS, OPTIONS)?;
        let is_quick = arguments.has("--quick");
        let seconds = arguments.number("--seconds", if is_quick { 1 } else { 10 })? as f64;
        Ok(Self {
            is_quick,
            seconds,
            warm_up: match arguments.number("--warm-up", 0)? {
                0 if is_quick => 0.5,
                0 => 3.0,
                seconds => seconds as f64,
            },
            pairs: arguments.number("--pairs", if is_quick { 1 } else { 3 })?.max(1) as usize,
            tables: if is_quick { 2 } else { 8 },
            rows: if is_quick { 10_000 } else { 100_000 },
            arguments,
        })
    }

    /// The same, for a benchmark that changes some of it.
    pub fn like(&self) -> Self {
        Self { arguments: self.arguments.clone(), ..*self }
    }

    /// Numbers of clients: those of `--clients`, or these.
    pub fn clients(&self, quick: &[u32], full: &[u32]) -> Result<Vec<u32>, String> {
        self.arguments.numbers("--clients", if self.is_quick { quick } else { full })
    }

    /// The names given behind the benchmark's own; none means all.
    pub fn chooses(&self, name: &str) -> bool {
        let names = self.arguments.names();
        names.len() < 2 || names[1..].contains(&name)
    }
}

/// Runs one benchmark.
pub fn run(words: &[String]) -> Outcome {
    if words.iter().any(|word| word == "--help") {
        return Err(USAGE.to_string());
    }
    let plan = Plan::new(words)?;
    let name = plan.arguments.names().first().map(|name| (*name).to_string());
    let benchmark = match name.as_deref() {
        Some("sysbench") => sysbench::run,
        Some("limit") => limit::run,
        Some("connections") => connections::run,
        Some("commit-latency") => commit_latency::run,
        Some("hot-row") => hot_row::run,
        Some("starvation") => starvation::run,
        Some("analytics") => analytics::run,
        _ => return Err(USAGE.to_string()),
    };
    packages::install(&packages::SERVERS)?;
    benchmark(&plan)
}
