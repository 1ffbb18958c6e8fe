//! `gannet-lab trials`: one server beside itself, again and again.
//!
//! 1. Each trial is an experiment as `run` makes it, rounds of A B B A, with the verdict that its
//!    report has. A and B are one process with one set of tables, so whoever is called faster is
//!    called so by chance.
//! 2. Other work on the machine does not void a trial: a verdict has to stand up to it.

use super::Outcome;
use super::one_table::{OneTable, script_of};
use crate::driver::{Plan, Stop};
use crate::experiment::{self, Design, Subject, Watcher};
use crate::progress::Silent;
use crate::report::{Comparison, comparisons};
use crate::server::{Program, start};
use crate::statistics::ratio::{Ratio, Verdict};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    table: OneTable,
    /// Rounds of a comparison; each side runs twice in each.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The script, by sysbench's name.
    #[arg(long, default_value = "oltp_read_write")]
    script: String,
    /// Comparisons.
    #[arg(long, default_value_t = 40)]
    trials: u64,
    /// Seconds of a run that count.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Seconds before them.
    #[arg(long, default_value_t = 1)]
    warm_up: u64,
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
    let (table, script) = (&arguments.table, script_of(&arguments.script)?);
    let description = table.description();
    let program = Program::find(description.kind, description.program.as_deref())?;
    println!("{}; {}, {} clients", program.text, script.name(), table.clients);
    let server = start(&description, "trials", &arguments.output)?;
    let target = server.target();
    let workload = table.fill(script, &target)?;
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
    let plan = Plan {
        warm_up: Duration::from_secs(arguments.warm_up),
        measured: Duration::from_secs(arguments.seconds),
        seed,
        ..Plan::new(subjects[0].target.clone())
    };
    Design {
        command: std::env::args().collect(),
        description: arguments.script.clone(),
        rounds: arguments.rounds,
        ..Design::new(subjects, arguments.table.clients, plan)
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
    use crate::server::Kind;

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
            table: OneTable { start: Kind::Mariadb, program: None, clients: 1, rows: 1 },
            rounds: 1,
            script: "oltp_read_write".into(),
            trials: 1,
            seconds: 1,
            warm_up: 0,
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
