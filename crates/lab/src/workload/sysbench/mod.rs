//! sysbench's OLTP scripts: the same statements, data and distributions, so that results can be
//! laid beside its own.
//!
//! 1. Statements and their order are those of sysbench 1.0.20; a transaction of `oltp_read_write`
//!    with the default counts is 20 of them.
//! 2. The table is drawn for each group of statements (1.0), not once per transaction (0.5).
//! 3. Ids come from one distribution, also the values of `k`.

mod client;
mod load;
mod statements;
mod verify;

pub use load::{Data, Load};
pub use verify::verify;

use crate::distribution::access::{Access, Kind};
use crate::workload::{self, Workload};
use statements::Statements;

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
}

impl Script {
    /// All, with sysbench's names.
    pub const ALL: [(&'static str, Self); 10] = [
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
    ];

    /// By sysbench's name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, script)| *script)
    }

    /// sysbench's name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, script)| *script == self).map_or("", |(name, _)| name)
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
    /// What the rows hold.
    pub data: Data,
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
            data: Data::Random,
            seed: 1,
        }
    }
}

/// See the module.
pub struct Sysbench {
    options: Options,
    access: Access,
}

impl Sysbench {
    /// With these parameters.
    pub fn new(options: Options) -> Self {
        let access = Access::new(options.distribution, 1, options.table_size);
        Self { options, access }
    }
}

impl Workload for Sysbench {
    fn operations(&self) -> Vec<&'static str> {
        vec![self.options.script.name()]
    }

    fn statements(&self) -> Vec<String> {
        Statements { tables: self.options.tables }.texts()
    }

    fn client(&self, number: u32) -> Box<dyn workload::Client> {
        Box::new(client::Client::new(self.options.clone(), self.access.clone(), number))
    }
}
