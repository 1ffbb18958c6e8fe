//! `gannet-lab run`

use super::Outcome;
use super::dsn;
use super::workload::Choice;
use crate::client::{Connection, Target};
use crate::driver::session::Protocol;
use crate::driver::{Load, OnConflict, Plan};
use crate::experiment::{self, Design};
use crate::report;
use crate::results::{Broken, Experiment, Run};
use crate::schedule::Arrivals;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    choice: Choice,
    /// The server, or two to be compared: [NAME=]mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE.
    #[arg(long, required = true, num_args = 1, value_parser = named)]
    dsn: Vec<(String, Target)>,
    /// Clients at the same time; several numbers, separated by commas, make a sweep.
    #[arg(long, value_delimiter = ',', default_value = "8")]
    clients: Vec<u32>,
    /// Rounds with each number of clients: A B B A of two servers, one run of a single one.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each run that are measured.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seconds before, that are not.
    #[arg(long, default_value_t = 5)]
    warm_up: u64,
    /// Operations a second of all clients together, by a schedule that does not wait for answers;
    /// without it each client begins as soon as it is answered.
    #[arg(long)]
    rate: Option<f64>,
    /// Equal gaps in place of independent arrivals.
    #[arg(long)]
    uniform: bool,
    /// Statements as text; they are prepared otherwise.
    #[arg(long)]
    text: bool,
    /// Where run.json, report.html and summary.md go.
    #[arg(long, default_value = "lab-results")]
    output: PathBuf,
}

/// A DSN with a name before it, or its place as the name.
fn named(text: &str) -> Result<(String, Target), String> {
    match text.split_once("=mysql://") {
        Some((name, rest)) => Ok((name.to_string(), dsn::parse(&format!("mysql://{rest}"))?)),
        None => {
            let target = dsn::parse(text)?;
            Ok((target.address.to_string(), target))
        }
    }
}

pub(super) fn run(arguments: Arguments) -> Outcome {
    if arguments.dsn.len() > 2 {
        return Err("one server, or two to be compared".into());
    }
    let design = design(&arguments)?;
    let workload = arguments.choice.workload();
    let mut experiment =
        experiment::run(&*workload, &design, tell).map_err(|failure| failure.to_string())?;
    for ((_, target), server) in design.servers.iter().zip(&mut experiment.servers) {
        let verified = Connection::open(target)
            .and_then(|mut connection| arguments.choice.verify(&mut connection))
            .map_err(|failure| format!("verifying {}: {failure}", server.name))?;
        server.violations = Some(verified.iter().map(Broken::from).collect());
    }
    write(&arguments.output, &experiment)?;
    print!("{}", report::markdown(&experiment));
    let broken = experiment.servers.iter().any(|s| s.violations.as_deref() != Some(&[]));
    let ended = experiment.runs.iter().find_map(|run| run.given_up.clone());
    match (broken, ended) {
        (true, _) => Err("the data break rules of the workload".into()),
        (false, Some(why)) => Err(format!("a run ended early: {why}")),
        (false, None) => Ok(()),
    }
}

fn design(arguments: &Arguments) -> Result<Design, String> {
    let arrivals = if arguments.uniform { Arrivals::Uniform } else { Arrivals::Poisson };
    let load = match arguments.rate {
        Some(rate) if rate > 0.0 => Load::Open { arrivals, rate_per_second: rate },
        Some(_) => return Err("--rate must be above 0".into()),
        None => Load::Closed,
    };
    let Some((_, target)) = arguments.dsn.first() else { return Err("no server".into()) };
    Ok(Design {
        command: std::env::args().collect(),
        description: arguments.choice.describe(),
        servers: arguments.dsn.clone(),
        clients: arguments.clients.clone(),
        rounds: arguments.rounds.max(1),
        plan: Plan {
            target: target.clone(),
            protocol: if arguments.text { Protocol::Text } else { Protocol::Prepared },
            clients: 0,
            load,
            warm_up: Duration::from_secs(arguments.warm_up),
            measured: Duration::from_secs(arguments.seconds),
            on_conflict: OnConflict::Retry,
            seed: arguments.choice.seed,
        },
    })
}

/// A line for a run that ended.
fn tell(experiment: &Experiment, run: &Run) {
    println!(
        "{}, {} clients, round {}: {:.1} operations/s, p95 {:.2} ms, longest {:.2} ms",
        experiment.servers[run.server].name,
        run.clients,
        run.round + 1,
        run.throughput(),
        run.micros[1] as f64 / 1000.0,
        run.micros[4] as f64 / 1000.0
    );
}

fn write(folder: &Path, experiment: &Experiment) -> Outcome {
    let put = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    put("run.json", experiment.json())?;
    put("report.html", report::html(experiment))?;
    put("summary.md", report::markdown(experiment))
}
