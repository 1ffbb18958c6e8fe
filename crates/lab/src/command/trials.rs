//! `gannet-lab trials`: one server beside itself, again and again.
//!
//! 1. Each trial is an experiment as `run` makes it, rounds of A B B A, with the verdict that its
//!    report has. A and B are one process with one set of tables, so whoever is called faster is
//!    called so by chance.
//! 2. Other work on the machine does not void a trial: a verdict has to stand up to it.

use super::Outcome;
use crate::distribution::access::Kind as Access;
use crate::driver::{Load, Plan, Stop};
use crate::experiment::{self, Cell, Design, Subject, Watcher};
use crate::load::{self, Way};
use crate::progress::Silent;
use crate::report::{Comparison, comparisons};
use crate::server::{Description, Kind, Program, start};
use crate::statistics::ratio::{Ratio, Verdict};
use crate::workload::sysbench::{Load as Rows, Options, Script, Sysbench};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The server's kind: mariadb, gannet or mysql.
    #[arg(long, default_value = "mariadb")]
    start: Kind,
    /// Its program, if not the one that is installed.
    #[arg(long)]
    program: Option<PathBuf>,
    /// The script, by sysbench's name.
    #[arg(long, default_value = "oltp_read_write")]
    script: String,
    /// Comparisons.
    #[arg(long, default_value_t = 40)]
    trials: u64,
    /// Clients at the same time.
    #[arg(long, default_value_t = 8)]
    clients: u32,
    /// Rounds of a trial.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of a run that count.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Seconds before them.
    #[arg(long, default_value_t = 1)]
    warm_up: u64,
    /// Rows of the one table.
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// Where the server keeps its data while it runs.
    #[arg(long, default_value = "lab-trials")]
    output: PathBuf,
}

/// Comparisons of a server with itself that may tell it apart.
const CHANCE_MAX: f64 = 0.05;

/// How often each figure of the trials told A from B.
#[derive(Debug, Default, PartialEq)]
struct Told {
    throughput: u64,
    latency: u64,
    cpu: u64,
}

impl Told {
    fn add(&mut self, comparison: &Comparison) {
        let told = |ratio: &Ratio| u64::from(ratio.verdict != Verdict::NotDistinguishable);
        self.throughput += told(&comparison.throughput);
        self.latency += told(&comparison.latency);
        self.cpu += comparison.cpu.as_ref().map_or(0, told);
    }
}

pub(super) fn run(arguments: Arguments) -> Outcome {
    super::is_ours_alone(&arguments.output)?;
    let script = Script::of_name(&arguments.script)
        .ok_or_else(|| format!("'{}' is none of sysbench's scripts", arguments.script))?;
    let description =
        Description { program: arguments.program.clone(), ..Description::new(arguments.start) };
    let program = Program::find(description.kind, description.program.as_deref())?;
    println!("{}; {}, {} clients", program.text, script.name(), arguments.clients);
    let server = start(&description, "trials", &arguments.output)?;
    let target = server.target();
    let options = Options {
        table_size: arguments.rows,
        distribution: Access::Uniform,
        ..Options::new(script)
    };
    load::load(&target, Arc::new(Rows::new(options.clone(), "")), &Way::new(2), |_| {})
        .map_err(|failure| failure.explained(&target))?;
    let workload = Sysbench::new(options);
    let subjects = ["A", "B"].map(|name| Subject::running(name, target.clone()));
    let (stop, watcher) = (Arc::new(Stop::default()), Arc::new(Silent) as Arc<dyn Watcher>);
    let mut told = Told::default();
    for trial in 1..=arguments.trials {
        let design = design(&arguments, subjects.to_vec(), trial);
        let experiment = experiment::run(&workload, &design, &stop, &watcher)?;
        if let Some(why) = experiment.ended {
            return Err(format!("trial {trial}: {why}"));
        }
        let all = comparisons(&experiment);
        let comparison = all.first().ok_or(format!("trial {trial} has nothing to compare"))?;
        println!("{trial:4}  throughput {}", said(&comparison.throughput));
        told.add(comparison);
    }
    server.stop()?;
    drop(server);
    // Only the server's log is in it.
    let _left = std::fs::remove_dir_all(&arguments.output);
    judge(&told, arguments.trials)
}

fn design(arguments: &Arguments, subjects: Vec<Subject>, seed: u64) -> Design {
    Design {
        command: std::env::args().collect(),
        description: arguments.script.clone(),
        cells: vec![Cell { clients: arguments.clients, load: Load::Closed }],
        rounds: arguments.rounds,
        settle: Duration::ZERO,
        cold: false,
        plan: Plan {
            warm_up: Duration::from_secs(arguments.warm_up),
            measured: Duration::from_secs(arguments.seconds),
            seed,
            ..Plan::new(subjects[0].target.clone())
        },
        subjects,
        events: Arc::new(|_| Vec::new()),
        besides: Vec::new(),
        sla: None,
        stalls: false,
        load: None,
        spec: None,
        notes: Vec::new(),
    }
}

fn said(ratio: &Ratio) -> String {
    let word = match ratio.verdict {
        Verdict::Higher => "HIGHER",
        Verdict::Lower => "LOWER",
        Verdict::NotDistinguishable => "not distinguishable",
    };
    format!("{:.3} ({:.3}..{:.3})  {word}", ratio.ratio, ratio.low, ratio.high)
}

/// Prints how often A was told from B; the verdict that decides is that on throughput, which is the
/// one in a report's headline.
fn judge(told: &Told, trials: u64) -> Outcome {
    let Told { throughput, latency, cpu } = told;
    println!(
        "of {trials} comparisons of a server with itself, told apart by throughput: {throughput}; \
         by the 95th percentile: {latency}; by the server's processor time: {cpu}"
    );
    match *throughput as f64 <= CHANCE_MAX * trials as f64 {
        true => Ok(()),
        false => Err(format!(
            "a server was told from itself in {throughput} of {trials} comparisons; chance may do \
             so in one of twenty"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn two_of_forty_may_be_told_apart() {
        let told = |throughput| Told { throughput, latency: 40, cpu: 40 };
        assert_eq!(judge(&told(2), 40), Ok(()));
        assert!(judge(&told(3), 40).expect_err("too many").contains("3 of 40"));
    }

    #[test]
    fn a_folder_with_something_in_it_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("gannet-trials-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        let arguments = || Arguments {
            start: Kind::Mariadb,
            program: None,
            script: "oltp_read_write".into(),
            trials: 1,
            clients: 1,
            rounds: 1,
            seconds: 1,
            warm_up: 0,
            rows: 1,
            output: folder.clone(),
        };
        assert_eq!(super::super::is_ours_alone(&folder), Ok(()));
        let kept = folder.join("kept");
        std::fs::write(&kept, "x").expect("room");
        let why = run(arguments()).expect_err("there is something in it");
        assert!(why.contains("--output") && kept.exists(), "{why}");
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }

    /// The second subject of the sample is faster.
    #[test]
    fn what_was_told_apart_is_counted() {
        let mut told = Told::default();
        let all = comparisons(&sample::experiment(2, &[8], 3));
        told.add(&all[0]);
        assert_eq!((told.throughput, said(&all[0].throughput).contains("HIGHER")), (1, true));
        let mut same = all[0];
        same.throughput.verdict = Verdict::NotDistinguishable;
        told.add(&same);
        assert_eq!(told.throughput, 1);
    }
}
