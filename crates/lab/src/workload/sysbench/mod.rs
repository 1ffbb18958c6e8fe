//! sysbench's OLTP scripts: the same statements, data and distributions, so that results can be
//! laid beside its own.
//!
//! 1. Statements and their order are those of sysbench 1.0.20; a transaction of `oltp_read_write`
//!    with the default counts is 20 of them.
//! 2. The table is drawn for each group of statements in 1.0, once for a transaction in 0.5; 0.4
//!    has one ([`Version`]).
//! 3. Ids come from one distribution, also the values of `k`.

mod bulk;
mod client;
mod load;
mod statements;
mod verify;

pub use load::Load;
pub use verify::verify;

use crate::distribution::access::{Access, Kind};
use crate::driver::Operation;
use crate::workload::{self, Finding, Which, Workload};
use bulk::Bulk;
use statements::Statements;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Whose tables, rows and transactions these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 1.0 and later.
    V10,
    /// 0.5: numbers are unsigned, the table of a transaction is drawn once.
    V05,
    /// 0.4: one table `sbtest`, whose key is made before its rows; these are constants, extremely
    /// compressible, with one value of `k`; ranges are always whole.
    V04,
}

impl Version {
    /// By the two numbers that it begins with.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "1.0" | "1" => Self::V10,
            "0.5" => Self::V05,
            "0.4" => Self::V04,
            _ => return None,
        })
    }

    /// The name of a table by its number from 1.
    fn table(self, number: u32) -> String {
        if self == Self::V04 { "sbtest".into() } else { format!("sbtest{number}") }
    }

    /// The name of its key on `k`.
    fn key(self, number: u32) -> String {
        if self == Self::V04 { "k".into() } else { format!("k_{number}") }
    }
}

/// Which script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// `oltp_read_only`.
    ReadOnly,
    /// `oltp_read_write`.
    ReadWrite,
    /// `oltp_write_only`.
    WriteOnly,
    /// `oltp_point_select`.
    PointSelect,
    /// `oltp_update_index`.
    UpdateIndex,
    /// `oltp_update_non_index`.
    UpdateNonIndex,
    /// `oltp_insert`.
    Insert,
    /// `oltp_delete`.
    Delete,
    /// `select_random_points`.
    RandomPoints,
    /// `select_random_ranges`.
    RandomRanges,
    /// `bulk_insert`.
    BulkInsert,
}

impl Script {
    /// All, with sysbench's names.
    pub const ALL: [(&'static str, Self); 11] = [
        ("oltp_read_only", Self::ReadOnly),
        ("oltp_read_write", Self::ReadWrite),
        ("oltp_write_only", Self::WriteOnly),
        ("oltp_point_select", Self::PointSelect),
        ("oltp_update_index", Self::UpdateIndex),
        ("oltp_update_non_index", Self::UpdateNonIndex),
        ("oltp_insert", Self::Insert),
        ("oltp_delete", Self::Delete),
        ("select_random_points", Self::RandomPoints),
        ("select_random_ranges", Self::RandomRanges),
        ("bulk_insert", Self::BulkInsert),
    ];

    /// By sysbench's name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, script)| *script)
    }

    /// sysbench's name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, script)| *script == self).map_or("", |(name, _)| name)
    }

    /// The status variable that grows by one with every transaction; none of bulk inserts.
    pub fn counter(self) -> Option<&'static str> {
        Some(match self {
            Self::ReadOnly | Self::ReadWrite | Self::WriteOnly => "Com_commit",
            Self::PointSelect | Self::RandomPoints | Self::RandomRanges => "Com_select",
            Self::UpdateIndex | Self::UpdateNonIndex => "Com_update",
            Self::Insert => "Com_insert",
            Self::Delete => "Com_delete",
            Self::BulkInsert => return None,
        })
    }
}

/// The parameters, with sysbench's names and defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which script.
    pub script: Script,
    /// Tables `sbtest1`...
    pub tables: u32,
    /// Rows of each.
    pub table_size: u64,
    /// Rows of a range.
    pub range_size: u64,
    /// In a transaction.
    pub point_selects: u32,
    /// Of each of the four kinds of ranges, in a transaction.
    pub ranges_each: u32,
    /// In a transaction.
    pub index_updates: u32,
    /// In a transaction.
    pub non_index_updates: u32,
    /// In a transaction.
    pub delete_inserts: u32,
    /// No BEGIN and COMMIT.
    pub skip_transaction: bool,
    /// Which ids.
    pub distribution: Kind,
    /// Whose tables, rows and transactions.
    pub version: Version,
    /// Decides what clients ask.
    pub seed: u64,
}

impl Options {
    /// sysbench's defaults for a script.
    pub fn new(script: Script) -> Self {
        Self {
            script,
            tables: 1,
            table_size: 10_000,
            range_size: 100,
            point_selects: 10,
            ranges_each: 1,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            skip_transaction: false,
            distribution: Kind::Special,
            version: Version::V10,
            seed: 1,
        }
    }
}

/// See the module.
pub struct Sysbench {
    options: Options,
    access: Access,
    /// Of `bulk_insert`: the last id of each table that somebody has taken.
    taken: Vec<Arc<AtomicU64>>,
}

impl Sysbench {
    /// With these parameters.
    pub fn new(options: Options) -> Self {
        let access = Access::new(options.distribution, 1, options.table_size);
        let taken = (0..options.tables).map(|_| Arc::default()).collect();
        Self { options, access, taken }
    }

    fn is_bulk(&self) -> bool {
        self.options.script == Script::BulkInsert
    }
}

impl Workload for Sysbench {
    fn operations(&self) -> Vec<&'static str> {
        vec![self.options.script.name()]
    }

    fn statements(&self) -> Vec<String> {
        let Options { tables, version, .. } = self.options;
        match self.is_bulk() {
            true => bulk::statements(tables),
            false => Statements { tables, version }.texts(),
        }
    }

    fn client(&self, which: Which) -> Box<dyn workload::Client> {
        if self.is_bulk() {
            let table = which.number % self.options.tables;
            return Box::new(Bulk::new(table, self.taken[table as usize].clone()));
        }
        Box::new(client::Client::new(self.options.clone(), self.access.clone(), which))
    }

    fn findings(&self, operations: &[Operation], measured: Duration) -> Vec<Finding> {
        match operations {
            [inserts] if self.is_bulk() => {
                let rows = (inserts.latency.len() * bulk::ROWS) as f64 / measured.as_secs_f64();
                vec![Finding::figure("rows inserted", format!("{rows:.0} a second"))]
            }
            _ => Vec::new(),
        }
    }
}
