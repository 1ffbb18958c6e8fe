//! `gannet-lab drive`: a client for [`super::calibrate`], which stops it, lets it go on and kills
//! it from outside. It measures nothing itself.

use super::one_table::{options, script_of};
use super::{Outcome, dsn};
use crate::driver::{self, Plan};
use crate::workload::sysbench::Sysbench;
use clap::Args;
use std::time::Duration;

/// Longer than any calibration; nothing it waits for meanwhile is a reason to end.
const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The server, with a database that has the table.
    #[arg(long)]
    dsn: String,
    /// The script, by sysbench's name.
    #[arg(long)]
    script: String,
    /// Rows of the one table.
    #[arg(long)]
    rows: u64,
    /// Clients at the same time.
    #[arg(long)]
    clients: u32,
    /// Threads for them; with more than one, each client holds its own while it waits.
    #[arg(long)]
    threads: u32,
}

impl Arguments {
    pub(super) fn workers(&self) -> usize {
        self.threads.max(1) as usize
    }
}

pub(super) fn run(arguments: Arguments) -> Outcome {
    let target = dsn::parse(&arguments.dsn)?;
    let workload = Sysbench::new(options(script_of(&arguments.script)?, arguments.rows));
    let plan = Plan {
        clients: arguments.clients,
        threads: arguments.threads,
        holds_threads: arguments.threads > 1,
        measured: DAY,
        give_up: DAY,
        ..Plan::new(target.clone())
    };
    let measured = driver::run(&workload, plan).map_err(|failure| failure.explained(&target))?;
    Err(measured.given_up.unwrap_or_else(|| "nobody ended it for a day".into()))
}
