//! The flags of `gannet-lab run`, `load` and `verify`, as typed ones and as what was said on the
//! command line.

use super::spec::{Flags, LOAD, RUN, WORKLOAD};
use super::workload::Choice;
use crate::driver::OnConflict;
use crate::experiment::chaos::Event;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::PathBuf;
use toml::{Table, Value};

/// How tables are filled.
#[derive(Clone, Debug, Args)]
pub(super) struct Loaders {
    /// Connections that load at the same time.
    #[arg(long, default_value_t = 8)]
    pub(super) connections: u32,
}

/// How tables are filled before the runs.
#[derive(Clone, Debug, Args)]
pub(super) struct LoadFlags {
    #[command(flatten)]
    pub(super) loaders: Loaders,
    /// Make and fill tables of servers that run already, unless they are there; those that the lab
    /// starts always get them.
    #[arg(long)]
    pub(super) load: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ConflictWord {
    /// Perform the operation again, within its latency.
    Retry,
    /// Count an error, go on with the next one.
    Ignore,
    /// End the run.
    Abort,
}

impl From<ConflictWord> for OnConflict {
    fn from(word: ConflictWord) -> Self {
        match word {
            ConflictWord::Retry => Self::Retry,
            ConflictWord::Ignore => Self::Ignore,
            ConflictWord::Abort => Self::Abort,
        }
    }
}

/// How runs are made.
#[derive(Clone, Debug, Args)]
pub(super) struct RunFlags {
    /// Clients at the same time: several numbers make a sweep, "4..512" doubles.
    #[arg(long, value_delimiter = ',', default_value = "8")]
    pub(super) clients: Vec<String>,
    /// Rounds with each number of clients: A B B A of several servers, one run of a single one.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) rounds: u64,
    /// Seconds of each run that are measured.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) seconds: u64,
    /// Seconds before, that are not.
    #[arg(long, default_value_t = 5)]
    pub(super) warm_up: u64,
    /// Seconds before that, and before each load, at most, for which servers are left alone to
    /// write back.
    #[arg(long, default_value_t = 60)]
    pub(super) settle: u64,
    /// Start servers of the lab again before each run, with nothing in memory.
    #[arg(long)]
    pub(super) cold: bool,
    /// Operations a second of all clients together, by a schedule that does not wait for answers;
    /// several make a sweep. Without it each client begins as soon as it is answered.
    #[arg(long, value_delimiter = ',')]
    pub(super) rate: Vec<f64>,
    /// A rate that changes in a straight line while a run is measured: "1000..5000".
    #[arg(long, conflicts_with_all = ["rate", "steps"])]
    pub(super) ramp: Option<String>,
    /// Rates one after the other within a run, each for the same time: "1000,2000,4000".
    #[arg(long, value_delimiter = ',', conflicts_with = "rate")]
    pub(super) steps: Vec<f64>,
    /// Equal gaps in place of independent arrivals.
    #[arg(long)]
    pub(super) uniform: bool,
    /// Each client has its share of the rate for itself, as LinkBench has it.
    #[arg(long)]
    pub(super) per_client: bool,
    /// What is to be reached, such as "p95=20" (milliseconds); p50, p95, p99, p99.9 and max.
    #[arg(long)]
    pub(super) sla: Option<String>,
    /// Judge stalls and memory: no second below half of the median, no time without a commit
    /// above 250 ms beyond what the device itself took, no memory beyond the pool, 10 %, 64 MiB
    /// and 0.3 % of the data. The exit code is 1 if that is not kept.
    #[arg(long)]
    pub(super) stalls: bool,
    /// What a client does about a deadlock or conflict.
    #[arg(long, value_enum, default_value = "retry")]
    pub(super) on_conflict: ConflictWord,
    /// Errors of the server, conflicts apart, that end a run; 100 for each client if not given.
    #[arg(long)]
    pub(super) errors_max: Option<u64>,
    /// Seconds without any success that end a run; 10, or 120 with events.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) give_up: Option<u64>,
    /// Statements as text; they are prepared otherwise.
    #[arg(long)]
    pub(super) text: bool,
    /// Something done SECONDS after the begin of the measured time, SECONDS=ACTION: kill, crash,
    /// restart, freeze S, pause S, drop SHARE, sql STATEMENT, run COMMAND; may be given several
    /// times.
    #[arg(long)]
    pub(super) at: Vec<Event>,
    /// Kill a started server so many seconds after the begin of the measured time, start it again
    /// and go on.
    #[arg(long)]
    pub(super) crash_at: Option<f64>,
    /// Do not verify the data after the runs.
    #[arg(long)]
    pub(super) no_verify: bool,
    /// Where run.json, report.html and summary.md go.
    #[arg(long, default_value = "lab-results")]
    pub(super) output: PathBuf,
    /// Seconds between two lines of progress; on a terminal figures move without lines if this is
    /// not given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) report_interval: Option<u64>,
    /// Nothing but the summary.
    #[arg(long, conflicts_with = "json")]
    pub(super) quiet: bool,
    /// Progress and result as lines of JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Figures for Prometheus at this address, such as 127.0.0.1:9187.
    #[arg(long)]
    pub(super) prometheus: Option<SocketAddr>,
}

/// What can be in a description, and on the command line.
#[derive(Clone, Debug, Args)]
pub(super) struct Described {
    #[command(flatten)]
    pub(super) choice: Choice,
    #[command(flatten)]
    pub(super) load: LoadFlags,
    #[command(flatten)]
    pub(super) run: RunFlags,
}

impl Described {
    /// From the words of a description.
    pub(super) fn of(words: Vec<String>) -> Result<Self, String> {
        let command = Described::augment_args(Command::new("run").no_binary_name(true));
        let matches = command.try_get_matches_from(words);
        let described = matches.and_then(|matches| Self::from_arg_matches(&matches));
        described.map_err(|error| without_usage(&error.render().to_string()))
    }
}

/// clap's message without the usage of a command that nobody has written.
fn without_usage(text: &str) -> String {
    let text = text.trim_start_matches("error: ");
    let end = text.find("\nUsage:").or_else(|| text.find("\nFor more information"));
    text[..end.unwrap_or(text.len())].trim().to_string()
}

/// The flags of each section.
pub(super) fn flags() -> Flags {
    let empty = || Command::new("section");
    Flags::new([
        (WORKLOAD, Choice::augment_args(empty())),
        (LOAD, LoadFlags::augment_args(empty())),
        (RUN, RunFlags::augment_args(empty())),
    ])
}

/// What a command that loads tables finds in a description.
#[derive(Clone, Debug, Args)]
pub(super) struct Filled {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    loaders: Loaders,
}

/// What belongs to the command line alone.
#[derive(Clone, Debug, Args)]
pub(super) struct Outer {
    #[command(flatten)]
    pub(super) place: Place,
    /// A server that the lab starts, [NAME=]KIND[:PROGRAM] with gannet, mariadb, myrocks or mysql;
    /// may be given several times, and beside --dsn.
    #[arg(long)]
    pub(super) start: Vec<String>,
    /// Show the effective description in TOML, and run nothing.
    #[arg(long)]
    pub(super) print_spec: bool,
    /// Show so many operations of each client as its seed decides them, and run nothing.
    #[arg(long)]
    pub(super) dry_run: Option<u64>,
}

/// Which servers, and how large.
#[derive(Clone, Debug, Args)]
pub(super) struct Place {
    /// A server that runs, several to be compared with the first:
    /// [NAME=]mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE.
    #[arg(long)]
    pub(super) dsn: Vec<String>,
    /// What sizes and times of a recipe are multiplied by; 1 is the size of the published runs.
    #[arg(long)]
    pub(super) scale: Option<f64>,
}

/// A command line about a workload, a recipe or a file: flags of a description (`F`) that were
/// given lie over it; others (`O`) are the command's own.
#[derive(Clone, Debug)]
pub(super) struct Arguments<F = Described, O = Outer> {
    /// The word that is no flag.
    pub(super) what: String,
    /// What was said, as a description.
    pub(super) over: Table,
    pub(super) outer: O,
    flags: PhantomData<F>,
}

impl<F: Args, O: Args> Args for Arguments<F, O> {
    fn augment_args(command: Command) -> Command {
        let command = O::augment_args(F::augment_args(command));
        command.mut_arg("workload", |argument| {
            argument
                .value_parser(clap::value_parser!(String))
                .value_name("WORKLOAD|RECIPE|FILE")
                .help("A workload, a recipe (see `gannet-lab recipes`), or a file such as my.toml")
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<F, O: FromArgMatches> FromArgMatches for Arguments<F, O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut over = Table::new();
        let flags = flags();
        let switches = switches();
        for id in matches.ids().map(clap::Id::as_str) {
            let is_said = matches.value_source(id) == Some(ValueSource::CommandLine);
            let Some(section) = flags.section_of(id).filter(|_| is_said && id != "workload") else {
                continue;
            };
            let raw: Vec<String> = matches
                .get_raw(id)
                .into_iter()
                .flatten()
                .map(|value| value.to_string_lossy().into_owned())
                .collect();
            let value = if switches.iter().any(|switch| switch == id) {
                Value::Boolean(true)
            } else {
                value(raw)
            };
            let table = over.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(table) = table {
                table.insert(id.into(), value);
            }
        }
        let what = matches.get_one::<String>("workload").cloned().unwrap_or_default();
        Ok(Self { what, over, outer: O::from_arg_matches(matches)?, flags: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Flags without a value.
fn switches() -> Vec<String> {
    let command = Described::augment_args(Command::new("run"));
    let has_none = |argument: &&clap::Arg| !argument.get_action().takes_values();
    command.get_arguments().filter(has_none).map(|argument| argument.get_id().to_string()).collect()
}

/// Words as TOML has them; numbers as numbers.
fn value(mut words: Vec<String>) -> Value {
    let one = |word: String| {
        let integer = word.parse().map(Value::Integer);
        let number = || word.parse().ok().filter(|n: &f64| n.is_finite()).map(Value::Float);
        integer.ok().or_else(number).unwrap_or(Value::String(word))
    };
    match words.len() {
        1 => one(words.remove(0)),
        _ => Value::Array(words.into_iter().map(one).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Arguments {
        let command = <Arguments>::augment_args(Command::new("run").no_binary_name(true));
        let matches = command.try_get_matches_from(words).expect("known flags");
        Arguments::from_arg_matches(&matches).expect("read")
    }

    #[test]
    fn only_what_was_said_is_laid_over() {
        let words = ["quick", "--clients", "4,8", "--text", "--table-size=5", "--seed", "7"];
        let arguments = arguments(&words);
        assert_eq!(arguments.what, "quick");
        let wanted = "[run]\nclients=[4,8]\ntext=true\n[workload]\ntable_size=5\nseed=7";
        assert_eq!(arguments.over, wanted.parse().expect("TOML"));
    }

    #[test]
    fn words_of_a_description_are_checked_by_the_same_code() {
        let of = |words: &[&str]| Described::of(words.iter().map(|w| w.to_string()).collect());
        let described = of(&["sysbench", "--clients=4", "--clients=8"]).expect("valid");
        assert_eq!(described.run.clients, ["4", "8"]);
        assert_eq!(described.run.seconds, 60);
        let error = of(&["sysbench", "--seconds=0"]).expect_err("no run");
        assert!(error.contains("--seconds") && !error.contains("Usage"), "{error}");
        let error = of(&["sysbank"]).expect_err("no such workload");
        assert!(error.contains("sysbank") && error.contains("linkbench"), "{error}");
    }
}
