//! Workloads by name, with their options.

use crate::client::{Connection, Failure};
use crate::distribution::access::Kind;
use crate::load::Loading;
use crate::workload::linkbench::{self, Compatibility, LinkBench, Mix, Tables};
use crate::workload::sysbench::{self, Data, Script, Sysbench};
use crate::workload::tpcc::{self, Scale, Tpcc};
use crate::workload::{Violation, Workload};
use clap::{Args, ValueEnum};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    Sysbench,
    Linkbench,
    Tpcc,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Compat {
    /// As the program whose results were published.
    Quirks,
    /// As its documentation says.
    Documented,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LinkMix {
    /// 31 % writes.
    Original,
    /// What a cache in front leaves over: 17 % writes.
    Cached,
}

/// Which workload, and how large.
#[derive(Clone, Debug, Args)]
pub(super) struct Choice {
    /// The workload.
    workload: Name,
    /// Decides the rows and what clients ask.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Appended to every CREATE TABLE, such as "PAGE_COMPRESSED=1".
    #[arg(long, default_value = "")]
    table_options: String,
    /// sysbench: the script.
    #[arg(long, default_value = "oltp_read_write", value_parser = script)]
    script: Script,
    /// sysbench: tables.
    #[arg(long, default_value_t = 1)]
    tables: u32,
    /// sysbench: rows of each table.
    #[arg(long, default_value_t = 10_000)]
    table_size: u64,
    /// sysbench: uniform, special, gaussian, pareto or zipfian.
    #[arg(long, default_value = "uniform", value_parser = distribution)]
    distribution: Kind,
    /// sysbench: rows of constants, as version 0.4 made them.
    #[arg(long)]
    constant_data: bool,
    /// linkbench: ids of the graph.
    #[arg(long, default_value_t = 100_000)]
    ids: u64,
    /// linkbench: links of an id at most; the published graph has none, its first id 961,963 links.
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    degree_max: u64,
    /// linkbench: shares of the operations.
    #[arg(long, value_enum, default_value = "original")]
    mix: LinkMix,
    /// linkbench: which of two programs to be.
    #[arg(long, value_enum, default_value = "quirks")]
    compat: Compat,
    /// linkbench: partitions of the links; 0 for none.
    #[arg(long, default_value_t = 0)]
    partitions: u32,
    /// linkbench: make the wide index when the rows are there.
    #[arg(long)]
    index_after_load: bool,
    /// tpcc: warehouses, about 100 MB each.
    #[arg(long, default_value_t = 1)]
    warehouses: u64,
    /// tpcc: with the foreign keys of the specification.
    #[arg(long)]
    foreign_keys: bool,
    /// tpcc: with keying and think times.
    #[arg(long)]
    think_times: bool,
}

fn script(name: &str) -> Result<Script, String> {
    let names = || Script::ALL.map(|(name, _)| name).join(", ");
    Script::of_name(name).ok_or_else(|| format!("there are {}", names()))
}

fn distribution(name: &str) -> Result<Kind, String> {
    Kind::of_name(name)
        .ok_or_else(|| "there are uniform, special, gaussian, pareto and zipfian".into())
}

impl Choice {
    fn sysbench(&self) -> sysbench::Options {
        sysbench::Options {
            tables: self.tables,
            table_size: self.table_size,
            distribution: self.distribution,
            data: if self.constant_data { Data::Constant } else { Data::Random },
            seed: self.seed,
            ..sysbench::Options::new(self.script)
        }
    }

    fn linkbench(&self) -> linkbench::Options {
        linkbench::Options {
            first_id: 1,
            end_id: self.ids + 1,
            link_types: 2,
            degree_max: self.degree_max,
            mix: match self.mix {
                LinkMix::Original => Mix::Original,
                LinkMix::Cached => Mix::Cached,
            },
            compatibility: match self.compat {
                Compat::Quirks => Compatibility::Quirks,
                Compat::Documented => Compatibility::Documented,
            },
            seed: self.seed,
        }
    }

    fn tpcc(&self) -> tpcc::Options {
        tpcc::Options {
            scale: Scale::full(self.warehouses),
            foreign_keys: self.foreign_keys,
            think_times: self.think_times,
            seed: self.seed,
        }
    }

    /// The workload with what is particular about it.
    pub(super) fn describe(&self) -> String {
        match self.workload {
            Name::Sysbench => {
                let (script, tables, rows) = (self.script.name(), self.tables, self.table_size);
                format!("sysbench {script}, {tables} x {rows} rows, {:?}", self.distribution)
            }
            Name::Linkbench => {
                format!("LinkBench, {} ids, {:?} mix, {:?}", self.ids, self.mix, self.compat)
            }
            Name::Tpcc => format!("like TPC-C, {} warehouses", self.warehouses),
        }
    }

    /// The load's clients.
    pub(super) fn workload(&self) -> Box<dyn Workload> {
        match self.workload {
            Name::Sysbench => Box::new(Sysbench::new(self.sysbench())),
            Name::Linkbench => Box::new(LinkBench::new(self.linkbench())),
            Name::Tpcc => Box::new(Tpcc::new(self.tpcc())),
        }
    }

    /// Its tables and rows.
    pub(super) fn loading(&self) -> Arc<dyn Loading> {
        let now_micros = runtime::wall_clock_micros();
        match self.workload {
            Name::Sysbench => Arc::new(sysbench::Load::new(self.sysbench(), &self.table_options)),
            Name::Linkbench => {
                let tables = Tables {
                    partitions: self.partitions,
                    index_after_load: self.index_after_load,
                    options: self.table_options.clone(),
                };
                let now_millis = (now_micros / 1000) as u64;
                Arc::new(linkbench::Load::new(self.linkbench(), tables, now_millis))
            }
            Name::Tpcc => {
                // The specification wants "the current time"; any fixed one does.
                Arc::new(tpcc::Load::new(self.tpcc(), &self.table_options, "2024-01-01 00:00:00"))
            }
        }
    }

    /// Rows that break the rules of its data.
    pub(super) fn verify(&self, connection: &mut Connection) -> Result<Vec<Violation>, Failure> {
        match self.workload {
            Name::Sysbench => sysbench::verify(connection, &self.sysbench()),
            Name::Linkbench => linkbench::verify(connection, &self.linkbench()),
            Name::Tpcc => tpcc::verify(connection, &self.tpcc().scale),
        }
    }
}
