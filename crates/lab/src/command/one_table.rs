//! What `calibrate` and `trials` have in common: a server that the lab starts, with one table of
//! sysbench's.

use crate::client::Target;
use crate::distribution::access::Kind as Access;
use crate::load::{self, Way};
use crate::server::{Description, Kind};
use crate::workload::sysbench::{Load, Options, Script, Sysbench};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;

/// Connections that fill the table.
const LOADING: u32 = 2;

#[derive(Debug, Args)]
pub(super) struct OneTable {
    /// The server's kind: mariadb, gannet or mysql.
    #[arg(long, default_value = "mariadb")]
    pub(super) start: Kind,
    /// Its program, if not the one that is installed.
    #[arg(long)]
    pub(super) program: Option<PathBuf>,
    /// Clients at the same time.
    #[arg(long, default_value_t = 8)]
    pub(super) clients: u32,
    /// Rows of the one table.
    #[arg(long, default_value_t = 100_000)]
    pub(super) rows: u64,
}

impl OneTable {
    /// The server.
    pub(super) fn description(&self) -> Description {
        Description { program: self.program.clone(), ..Description::new(self.start) }
    }

    /// Fills the table, if it is not; the workload of a script on it.
    pub(super) fn fill(&self, script: Script, target: &Target) -> Result<Sysbench, String> {
        let options = options(script, self.rows);
        let rows = Load::new(options.clone(), "");
        load::load(target, Arc::new(rows), &Way::new(LOADING), |_| {})
            .map_err(|failure| failure.explained(target))?;
        Ok(Sysbench::new(options))
    }
}

/// Of a script on the table.
pub(super) fn options(script: Script, rows: u64) -> Options {
    Options { table_size: rows, distribution: Access::Uniform, ..Options::new(script) }
}

/// The script with sysbench's name for it.
pub(super) fn script_of(name: &str) -> Result<Script, String> {
    Script::of_name(name).ok_or_else(|| format!("'{name}' is none of sysbench's scripts"))
}
