//! Workloads by name, with their options.

use crate::client::{Connection, Failure, Target};
use crate::distribution::access::Kind;
use crate::load::{self, Keys, Loading, Progress, TableForm, Way};
use crate::workload::change::{Change, Changes};
use crate::workload::idle::Idle;
use crate::workload::insert::{self, Insert, Step};
use crate::workload::linkbench::{self, Compatibility, LinkBench, Mix};
use crate::workload::mixed::{self, Mixed};
use crate::workload::storm::{self, Storm, Visit};
use crate::workload::sysbench::{self, Script, Sysbench, Version};
use crate::workload::tpcc::{self, Scale, Tpcc};
use crate::workload::{Beside, Violation, Workload};
use clap::{Args, Parser, ValueEnum};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    Sysbench,
    Linkbench,
    Tpcc,
    /// The insert benchmark.
    Insert,
    /// Connect, one statement, disconnect.
    Storm,
    /// Several of the others side by side, each in a database of its own.
    Mixed,
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
    /// Partitions of the tables by their id, of linkbench those of the links; 0 for none.
    #[arg(long, default_value_t = 0)]
    partitions: u32,
    /// When secondary keys are made: before-load or after-load; each workload has a usual way.
    #[arg(long)]
    index: Option<Keys>,
    /// Connections that are held idle while the workload runs.
    #[arg(long, default_value_t = 0)]
    idle: u32,
    /// A statement beside the clients, SECONDS=STATEMENT; may be given several times.
    #[arg(long)]
    change: Vec<Change>,
    /// sysbench: the script.
    #[arg(long, default_value = "oltp_read_write", value_parser = script)]
    script: Script,
    /// sysbench, insert: tables.
    #[arg(long, default_value_t = 1)]
    tables: u32,
    /// sysbench, insert, storm: rows of each table.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    table_size: u64,
    /// sysbench: rows of a range.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    range_size: u64,
    /// sysbench: uniform, special, gaussian, pareto or zipfian.
    #[arg(long, default_value = "uniform", value_parser = distribution)]
    distribution: Kind,
    /// sysbench: the version whose tables, rows and transactions these are: 1.0, 0.5 or 0.4.
    #[arg(long, default_value = "1.0", value_parser = version)]
    sysbench_version: Version,
    /// linkbench: ids of the graph.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
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
    /// tpcc: warehouses, about 100 MB each.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    warehouses: u64,
    /// tpcc: with the foreign keys of the specification.
    #[arg(long)]
    foreign_keys: bool,
    /// tpcc: with keying and think times.
    #[arg(long)]
    think_times: bool,
    /// insert: the step, l.i1, l.i2, or qr or qp with rows a second such as qr100.
    #[arg(long, default_value = "l.i1", value_parser = step)]
    step: Step,
    /// storm: what a connection is made for: nothing, select or update.
    #[arg(long, default_value = "select", value_parser = visit)]
    visit: Visit,
    /// mixed: NAME=WORKLOAD with flags of its own, its --clients and its --rate; several.
    #[arg(long, value_parser = tenant)]
    tenant: Vec<Tenant>,
}

/// One of the workloads of a mixed one.
#[derive(Clone, Debug)]
struct Tenant {
    name: String,
    words: TenantWords,
}

/// What is said of it behind its name.
#[derive(Clone, Debug)]
struct TenantWords {
    choice: Box<Choice>,
    clients: u32,
    rate: Option<f64>,
}

#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct TenantLine {
    #[command(flatten)]
    choice: Choice,
    #[arg(long, default_value_t = 4)]
    clients: u32,
    #[arg(long)]
    rate: Option<f64>,
}

fn tenant(text: &str) -> Result<Tenant, String> {
    let (name, words) = text.split_once('=').ok_or("NAME=WORKLOAD is wanted")?;
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || !is_word {
        return Err(format!("'{name}': a tenant's name is of letters, digits and _"));
    }
    let told = |error: &dyn std::fmt::Display| format!("tenant {name}: {error}");
    let line = TenantLine::try_parse_from(words.split_whitespace()).map_err(|e| told(&e))?;
    if line.choice.workload == Name::Mixed {
        return Err(told(&"a tenant is no mixture itself"));
    }
    line.choice.check().map_err(|error| told(&error))?;
    if line.rate.is_some_and(|rate| rate <= 0.0) {
        return Err(told(&"--rate must be above 0"));
    }
    let TenantLine { choice, clients, rate } = line;
    Ok(Tenant { name: name.into(), words: TenantWords { choice: Box::new(choice), clients, rate } })
}

impl Tenant {
    fn database(&self) -> String {
        format!("lab_{}", self.name)
    }

    fn at_work(&self) -> mixed::Tenant {
        let TenantWords { choice, clients, rate } = &self.words;
        mixed::Tenant {
            name: self.name.clone(),
            database: self.database(),
            workload: choice.workload(),
            clients: *clients,
            rate: *rate,
            seed: choice.seed,
        }
    }
}

fn script(name: &str) -> Result<Script, String> {
    let names = || Script::ALL.map(|(name, _)| name).join(", ");
    Script::of_name(name).ok_or_else(|| format!("there are {}", names()))
}

fn distribution(name: &str) -> Result<Kind, String> {
    Kind::of_name(name)
        .ok_or_else(|| "there are uniform, special, gaussian, pareto and zipfian".into())
}

fn version(name: &str) -> Result<Version, String> {
    Version::of_name(name).ok_or_else(|| "there are 1.0, 0.5 and 0.4".into())
}

fn step(name: &str) -> Result<Step, String> {
    Step::of_name(name).ok_or_else(|| "there are l.i1, l.i2, qr100, qp100 and so on".into())
}

fn visit(name: &str) -> Result<Visit, String> {
    Visit::of_name(name).ok_or_else(|| "there are nothing, select and update".into())
}

impl Choice {
    /// What clap cannot see: whether the options fit together.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_mixed = self.workload == Name::Mixed;
        let wrong = match self.workload {
            Name::Mixed if self.tenant.is_empty() => {
                "mixed needs tenants, such as --tenant \"oltp=sysbench --clients 8\""
            }
            Name::Mixed if self.partitions > 0 => "--partitions belongs to the tenants of mixed",
            Name::Tpcc if self.partitions > 0 => {
                "tpcc's tables have no common id to be partitioned by"
            }
            _ if !is_mixed && !self.tenant.is_empty() => "--tenant is for mixed",
            _ if self.tables == 0 => "--tables must be above 0",
            Name::Sysbench if self.sysbench_version == Version::V04 && self.tables > 1 => {
                "version 0.4 of sysbench has one table"
            }
            _ => return Ok(()),
        };
        Err(wrong.into())
    }

    fn sysbench(&self) -> sysbench::Options {
        sysbench::Options {
            tables: self.tables,
            table_size: self.table_size,
            range_size: self.range_size,
            distribution: self.distribution,
            version: self.sysbench_version,
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

    fn insert(&self) -> insert::Options {
        let Self { tables, table_size, step, seed, .. } = *self;
        insert::Options { tables, table_size, step, seed }
    }

    fn storm(&self) -> storm::Options {
        storm::Options { visit: self.visit, table_size: self.table_size, seed: self.seed }
    }

    /// The workload with what is particular about it.
    pub(super) fn describe(&self) -> String {
        let (tables, rows) = (self.tables, self.table_size);
        let mut text = match self.workload {
            Name::Sysbench => {
                let script = self.script.name();
                let version = match self.sysbench_version {
                    Version::V10 => "",
                    Version::V05 => " of 0.5",
                    Version::V04 => " of 0.4",
                };
                let distribution = format!("{:?}", self.distribution).to_lowercase();
                format!("sysbench{version} {script}, {tables} x {rows} rows, {distribution}")
            }
            Name::Linkbench => {
                let (mix, compat) = (format!("{:?}", self.mix), format!("{:?}", self.compat));
                let (mix, compat) = (mix.to_lowercase(), compat.to_lowercase());
                format!("LinkBench, {} ids, {mix} mix, {compat}", self.ids)
            }
            Name::Tpcc => format!("like TPC-C, {} warehouses", self.warehouses),
            Name::Insert => format!("insert benchmark, {}, {tables} x {rows} rows", self.step),
            Name::Storm => {
                let visit = format!("{:?}", self.visit).to_lowercase();
                format!("a storm of connections, each for {visit}")
            }
            Name::Mixed => {
                let of = |tenant: &Tenant| {
                    format!("{}: {}", tenant.name, tenant.words.choice.describe())
                };
                let tenants: Vec<String> = self.tenant.iter().map(of).collect();
                format!("side by side: {}", tenants.join("; "))
            }
        };
        if self.idle > 0 {
            text.push_str(&format!(", {} idle connections", self.idle));
        }
        if !self.change.is_empty() {
            text.push_str(&format!(", {} changes of tables meanwhile", self.change.len()));
        }
        text
    }

    /// The load's clients.
    pub(super) fn workload(&self) -> Box<dyn Workload> {
        let workload: Box<dyn Workload> = match self.workload {
            Name::Sysbench => Box::new(Sysbench::new(self.sysbench())),
            Name::Linkbench => Box::new(LinkBench::new(self.linkbench())),
            Name::Tpcc => Box::new(Tpcc::new(self.tpcc())),
            Name::Insert => Box::new(Insert::new(self.insert())),
            Name::Storm => Box::new(Storm::new(self.storm())),
            Name::Mixed => Box::new(Mixed::new(self.tenant.iter().map(Tenant::at_work).collect())),
        };
        if self.idle > 0 { Box::new(Idle::new(workload, self.idle)) } else { workload }
    }

    /// What goes on beside the clients.
    pub(super) fn besides(&self) -> Vec<Arc<dyn Beside>> {
        match self.change.is_empty() {
            true => Vec::new(),
            false => vec![Arc::new(Changes::new(self.change.clone()))],
        }
    }

    fn form(&self, table_options: &str) -> TableForm {
        let options = format!("{table_options} {}", self.table_options).trim().to_string();
        TableForm { options, partitions: self.partitions, keys: self.index }
    }

    /// Its tables and rows; `None` for a mixture, which has those of its tenants.
    fn loading(&self, table_options: &str) -> Option<Arc<dyn Loading>> {
        let form = self.form(table_options);
        Some(match self.workload {
            Name::Sysbench => Arc::new(sysbench::Load::new(self.sysbench(), form)),
            Name::Linkbench => Arc::new(linkbench::Load::new(self.linkbench(), form)),
            // The specification wants "the current time"; any fixed one does.
            Name::Tpcc => Arc::new(tpcc::Load::new(self.tpcc(), form, "2024-01-01 00:00:00")),
            Name::Insert => Arc::new(insert::Load::new(self.insert(), form)),
            Name::Storm => Arc::new(storm::Load::new(self.storm(), form)),
            Name::Mixed => return None,
        })
    }

    /// Makes and fills its tables, and the database. `table_options` are those of the server's
    /// variant: they come before the ones of the command line.
    pub(super) fn load(
        &self,
        target: &Target,
        table_options: &str,
        way: &Way,
        report: impl Fn(Progress) + Send + Sync + Clone + 'static,
    ) -> Result<Progress, Failure> {
        if let Some(loading) = self.loading(table_options) {
            return load::load(target, loading, way, report);
        }
        let mut all = Progress::default();
        for tenant in &self.tenant {
            let target = Target { database: tenant.database(), ..target.clone() };
            let choice = &tenant.words.choice;
            all = all.and(choice.load(&target, table_options, way, report.clone())?);
            if !all.is_whole() {
                break;
            }
        }
        Ok(all)
    }

    /// What decides the rows of its load.
    pub(super) fn load_description(&self, table_options: &str) -> String {
        let of_tenant = |tenant: &Tenant| tenant.words.choice.load_description(table_options);
        match self.loading(table_options) {
            Some(loading) => loading.description(),
            None => self.tenant.iter().map(of_tenant).collect::<Vec<_>>().join("; "),
        }
    }

    /// Rows that break the rules of its data.
    pub(super) fn verify(&self, connection: &mut Connection) -> Result<Vec<Violation>, Failure> {
        match self.workload {
            Name::Sysbench => sysbench::verify(connection, &self.sysbench()),
            Name::Linkbench => linkbench::verify(connection, &self.linkbench()),
            Name::Tpcc => tpcc::verify(connection, &self.tpcc().scale),
            Name::Insert => insert::verify(connection, &self.insert()),
            Name::Storm => storm::verify(connection, &self.storm()),
            Name::Mixed => {
                let mut all = Vec::new();
                for tenant in &self.tenant {
                    connection.command(&format!("USE {}", tenant.database()))?;
                    let found = tenant.words.choice.verify(connection)?.into_iter();
                    all.extend(found.map(|violation| Violation {
                        rule: format!("{}: {}", tenant.name, violation.rule),
                        ..violation
                    }));
                }
                Ok(all)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    #[command(no_binary_name = true)]
    struct Words {
        #[command(flatten)]
        choice: Choice,
    }

    fn choice(words: &[&str]) -> Result<Choice, String> {
        let words = Words::try_parse_from(words).map_err(|error| error.to_string())?;
        words.choice.check().map(|()| words.choice)
    }

    #[test]
    fn tenants_have_flags_of_their_own() {
        let oltp = "oltp=sysbench --script oltp_write_only --clients 2 --rate 50";
        let mixed = choice(&["mixed", "--tenant", oltp, "--tenant", "graph=linkbench --ids 100"]);
        let mixed = mixed.expect("two tenants");
        assert_eq!(mixed.tenant[0].words.rate, Some(50.0));
        assert_eq!(mixed.tenant[1].words.choice.ids, 100);
        assert_eq!(mixed.workload().clients(77), 2 + 4);
        assert!(mixed.describe().contains("graph: LinkBench, 100 ids"), "{}", mixed.describe());
    }

    #[test]
    fn what_does_not_fit_names_the_fix() {
        let cases: [(&[&str], &str); 8] = [
            (&["mixed"], "--tenant"),
            (&["mixed", "--tenant", "a b=storm"], "letters, digits"),
            (&["mixed", "--tenant", "a=nothing"], "tenant a"),
            (&["tpcc", "--partitions", "4"], "no common id"),
            (&["sysbench", "--script", "oltp"], "oltp_read_write"),
            (&["sysbench", "--sysbench-version", "0.4", "--tables", "2"], "one table"),
            (&["insert", "--step", "l.i7"], "l.i1, l.i2"),
            (&["sysbench", "--change", "ALTER TABLE t"], "SECONDS=STATEMENT"),
        ];
        for (words, wanted) in cases {
            let error = choice(words).expect_err("it does not fit");
            assert!(error.contains(wanted), "{words:?}: {error}");
        }
    }

    #[test]
    fn a_load_is_described_by_what_decides_its_rows() {
        let described = |words: &[&str]| {
            let choice = choice(words).expect("valid");
            choice.load_description("ROW_FORMAT=DYNAMIC")
        };
        let read = described(&["sysbench", "--script", "oltp_read_only", "--idle", "5"]);
        assert_eq!(read, described(&["sysbench", "--script", "oltp_write_only"]));
        assert_ne!(read, described(&["sysbench", "--seed", "2"]));
        let cached = described(&["linkbench", "--mix", "cached"]);
        assert_eq!(cached, described(&["linkbench"]), "the mix is no matter of rows");
        assert_ne!(cached, described(&["linkbench", "--index", "after-load"]));
        let step = described(&["insert", "--step", "qr100"]);
        assert_eq!(step, described(&["insert", "--step", "l.i2"]));
    }
}
