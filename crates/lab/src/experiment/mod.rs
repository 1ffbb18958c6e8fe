//! Runs in an order that lets servers be compared.
//!
//! 1. A round runs the subjects there and back (A B C C B A), the next the other way: what drifts
//!    meets all alike ([`order`]).
//! 2. Servers are asked the same in their first runs, in their second ones and so on; no run asks
//!    what one before it asked, whose values are in the rows already.
//! 3. What was measured is kept when a run fails, whatever the reason: an experiment always has a
//!    result, which says where and why it ended. A run that gave up is the last one.
//! 4. Loading, settling, warming up and measuring are told apart, and recorded.

pub mod chaos;
mod order;
mod pace;
mod settle;
mod sla;
mod subject;

pub use order::order;
pub use settle::{Settled, settle};
pub use sla::Sla;
pub use subject::{Process, Subject};

use crate::account::{self, Account, Probe, Wearing, data_of, space_of};
use crate::client::{Connection, Failure};
use crate::driver::{self, Interval, Load, Plan, Planned, Stop, Watch};
use crate::machine;
use crate::parity;
use crate::results::{self, Experiment, Loaded, Note, Origin, Phase, PhaseKind, Run, SCHEMA, Step};
use crate::server::Engine;
use crate::workload::{Beside, Workload};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Samples of the measured time are taken once a second.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// What is varied: a number of clients and their load.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Clients.
    pub clients: u32,
    /// When they begin.
    pub load: Load,
}

/// Makes what is done during the runs of a subject.
pub type Events = Arc<dyn Fn(&Subject) -> Vec<Planned> + Send + Sync>;

/// Fills the tables of a subject; `None` for one whose tables are left as they are.
pub type Loader = Arc<dyn Fn(&Subject) -> Option<Result<Loaded, String>> + Send + Sync>;

/// What is to be run.
pub struct Design {
    /// The words of the command line.
    pub command: Vec<String>,
    /// The workload with its parameters, for the report.
    pub description: String,
    /// The servers; ratios are against the first.
    pub subjects: Vec<Subject>,
    /// What is varied.
    pub cells: Vec<Cell>,
    /// Rounds of each cell; several subjects run twice in each.
    pub rounds: usize,
    /// Before each load and run, servers may take so long to become calm.
    pub settle: Duration,
    /// Started servers are started again before each run, with nothing in memory.
    pub cold: bool,
    /// Everything but the target and what is varied.
    pub plan: Plan,
    /// What is done during runs.
    pub events: Events,
    /// What goes on beside the clients.
    pub besides: Vec<Arc<dyn Beside>>,
    /// What is agreed on.
    pub sla: Option<Sla>,
    /// Runs are judged by their stalls and their memory, beside the device.
    pub stalls: bool,
    /// Fills the tables of a subject; absent where they are there.
    pub load: Option<Loader>,
    /// The effective description, in TOML.
    pub spec: Option<String>,
    /// What a reader must know before any figure.
    pub notes: Vec<Note>,
}

impl Design {
    /// A closed load of so many clients, one round, and nothing besides.
    pub fn new(subjects: Vec<Subject>, clients: u32, plan: Plan) -> Self {
        Self {
            command: Vec::new(),
            description: String::new(),
            subjects,
            cells: vec![Cell { clients, load: Load::Closed }],
            rounds: 1,
            settle: Duration::ZERO,
            cold: false,
            plan,
            events: Arc::new(|_| Vec::new()),
            besides: Vec::new(),
            sla: None,
            stalls: false,
            load: None,
            spec: None,
            notes: Vec::new(),
        }
    }
}

/// A run among the others.
#[derive(Clone, Debug)]
pub struct Place {
    /// Name of the subject.
    pub name: String,
    /// Its number.
    pub subject: usize,
    /// Clients.
    pub clients: u32,
    /// Operations a second that are asked for.
    pub rate: Option<f64>,
    /// Round of the cell, from 0.
    pub round: usize,
    /// How many runs the subject had before.
    pub turn: u32,
    /// Runs that ended, and all.
    pub runs: (usize, usize),
    /// Warm-up and measured time of a run.
    pub length: Duration,
}

/// Told of what happens.
pub trait Watcher: Send + Sync {
    /// Something that takes its time begins.
    fn phase(&self, text: &str) {
        let _not_shown = text;
    }

    /// How often it wants to be told of a run, if at all.
    fn every(&self) -> Option<Duration> {
        None
    }

    /// A run begins.
    fn begins(&self, place: &Place) {
        let _not_shown = place;
    }

    /// Some seconds of a run are over.
    fn interval(&self, place: &Place, interval: &Interval) {
        let _not_shown = (place, interval);
    }

    /// A run ended.
    fn ended(&self, experiment: &Experiment, run: &Run) {
        let _not_shown = (experiment, run);
    }
}

/// A server as it is now.
pub fn describe(subject: &Subject) -> Result<results::Subject, Failure> {
    let mut connection = Connection::open(&subject.target)?;
    let version = connection.single("SELECT CONCAT(@@version_comment, ' ', @@version)")?;
    let mut variables = BTreeMap::new();
    connection.query("SHOW GLOBAL VARIABLES", |row| {
        let text = |column| row.text(column).map(|t| String::from_utf8_lossy(&t).into_owned());
        if let (Some(name), Some(value)) = (text(0), text(1)) {
            variables.insert(name, value);
        }
        Ok(())
    })?;
    let version = version.unwrap_or_default();
    let name = subject.name.clone();
    let origin = subject.process.as_ref().map(|process| Origin {
        kind: process.kind(),
        command_line: process.command(),
        variant: subject.table_options.clone(),
    });
    Ok(results::Subject { name, origin, version, variables, ..results::Subject::default() })
}

/// Runs everything, as far as it can; fails only when nothing could be begun.
pub fn run(
    workload: &dyn Workload,
    design: &Design,
    stop: &Arc<Stop>,
    watcher: &Arc<dyn Watcher>,
) -> Result<Experiment, String> {
    let mut subjects = Vec::new();
    for subject in &design.subjects {
        let described = describe(subject).map_err(|failure| {
            format!("{}: {}", subject.name, failure.explained(&subject.target))
        })?;
        subjects.push(described);
    }
    let processes: Vec<Option<u32>> = design.subjects.iter().map(Subject::id).collect();
    let data: Vec<PathBuf> = design.subjects.iter().filter_map(Subject::data).collect();
    let mut experiment = Experiment {
        schema: SCHEMA,
        command: design.command.clone(),
        workload: design.description.clone(),
        spec: design.spec.clone(),
        seed: design.plan.seed,
        began_micros: runtime::wall_clock_micros(),
        machine: machine::facts(&data),
        ended: None,
        notes: design.notes.clone(),
        parity: parity::of(&subjects, &processes),
        subjects,
        runs: Vec::new(),
    };
    load(design, &mut experiment, (stop, watcher));
    if experiment.ended.is_none() {
        run_all(workload, design, &mut experiment, (stop, watcher));
    }
    if !experiment.runs.is_empty() {
        look_at_space(design, &mut experiment, "after the runs", (stop, watcher));
    }
    Ok(experiment)
}

/// Fills the tables of all subjects.
fn load(
    design: &Design,
    experiment: &mut Experiment,
    (stop, watcher): (&Arc<Stop>, &Arc<dyn Watcher>),
) {
    let Some(load) = &design.load else { return };
    for (subject, described) in design.subjects.iter().zip(&mut experiment.subjects) {
        // What a server does behind its load is not to hold up the next one.
        become_calm(design, (stop, watcher));
        watcher.phase(&format!("loading {}", subject.name));
        match load(subject) {
            None => {}
            Some(Ok(loaded)) => {
                // What was there before has not been loaded in this time.
                described.load = (loaded.rows > 0).then_some(loaded);
            }
            Some(Err(why)) => {
                experiment.ended = Some(format!("loading {}: {why}", subject.name));
                return;
            }
        }
    }
    look_at_space(design, experiment, "after the load", (stop, watcher));
}

/// What the data of all subjects take once they are calm, so that none is looked at earlier than
/// others; what cannot be looked at is absent.
fn look_at_space(
    design: &Design,
    experiment: &mut Experiment,
    moment: &str,
    (stop, watcher): (&Arc<Stop>, &Arc<dyn Watcher>),
) {
    become_calm(design, (stop, watcher));
    for (subject, described) in design.subjects.iter().zip(&mut experiment.subjects) {
        let data = subject.data();
        described.spaces.extend(space_of(&subject.target, data.as_deref(), moment).ok());
    }
}

fn run_all(
    workload: &dyn Workload,
    design: &Design,
    experiment: &mut Experiment,
    (stop, watcher): (&Arc<Stop>, &Arc<dyn Watcher>),
) {
    for (subject, cell, round) in runs(design) {
        if stop.is_asked() {
            experiment.ended = Some("interrupted".into());
            return;
        }
        let place = place(design, experiment, (subject, cell, round));
        let described = &experiment.subjects[subject];
        let run = match one(workload, design, (&place, described), cell, (stop, watcher)) {
            Ok(run) => run,
            Err(failure) => {
                let target = &design.subjects[subject].target;
                experiment.ended = Some(at(&place, &failure.explained(target)));
                return;
            }
        };
        let given_up = run.given_up.clone();
        // Of a run that somebody ended in its warm-up nothing is known.
        if !(stop.is_asked() && run.completed().is_empty()) {
            watcher.ended(experiment, &run);
            experiment.runs.push(run);
        }
        if let Some(why) = given_up {
            experiment.ended = Some(at(&place, &why));
            return;
        }
    }
}

/// All runs: subject, cell, round.
fn runs(design: &Design) -> impl Iterator<Item = (usize, &Cell, usize)> {
    let subjects = design.subjects.len();
    design.cells.iter().flat_map(move |cell| {
        (0..design.rounds).flat_map(move |round| {
            order(subjects, round).into_iter().map(move |subject| (subject, cell, round))
        })
    })
}

fn plan(design: &Design, place: &Place, cell: &Cell) -> Plan {
    Plan {
        target: design.subjects[place.subject].target.clone(),
        clients: cell.clients,
        load: cell.load.clone(),
        turn: place.turn,
        ..design.plan.clone()
    }
}

fn place(
    design: &Design,
    experiment: &Experiment,
    (subject, cell, round): (usize, &Cell, usize),
) -> Place {
    let plan = Plan { load: cell.load.clone(), ..design.plan.clone() };
    Place {
        name: design.subjects[subject].name.clone(),
        subject,
        clients: cell.clients,
        rate: plan.rate(),
        round,
        turn: experiment.runs.iter().filter(|run| run.subject == subject).count() as u32,
        runs: (experiment.runs.len(), runs(design).count()),
        length: plan.warm_up + plan.measured,
    }
}

/// A reason with the place of the run.
fn at(place: &Place, why: &str) -> String {
    let rate = place.rate.map(|rate| format!(", {rate} operations/s asked")).unwrap_or_default();
    let (name, clients, round) = (&place.name, place.clients, place.round + 1);
    format!("{name}, {clients} clients{rate}, round {round}: {why}")
}

/// Waits until the servers are calm, as long as they may take for that.
fn become_calm(design: &Design, (stop, watcher): (&Arc<Stop>, &Arc<dyn Watcher>)) {
    if !design.settle.is_zero() {
        watcher.phase("waiting until the servers are calm");
        settle(&design.subjects, design.settle, &|| stop.is_asked());
    }
}

fn one(
    workload: &dyn Workload,
    design: &Design,
    (place, described): (&Place, &results::Subject),
    cell: &Cell,
    (stop, watcher): (&Arc<Stop>, &Arc<dyn Watcher>),
) -> Result<Run, Failure> {
    let beginning = if design.cold { cold_start(design, place, watcher)? } else { None };
    let settled = runtime::now();
    become_calm(design, (stop, watcher));
    let settled = (settled, runtime::now());
    let subject = &design.subjects[place.subject];
    let plan = plan(design, place, cell);
    let measured_time = plan.measured;
    watcher.begins(place);
    let mut events = (design.events)(subject);
    events.extend(design.besides.iter().map(|beside| besides(beside, subject)));
    let watch = Watch {
        tell: watcher.every().map(|every| {
            let (watcher, place) = (watcher.clone(), place.clone());
            let tell = move |interval: &Interval| watcher.interval(&place, interval);
            (every, Arc::new(tell) as driver::Tell)
        }),
        stop: stop.clone(),
        events,
    };
    let data = match subject.data() {
        Some(data) => Some(data),
        None => data_of(&mut Connection::open(&subject.target)?, &subject.target)?,
    };
    let target = Some(subject.target.clone());
    let probed = data.as_deref().filter(|_| design.stalls);
    let probe = probed.map(Probe::begin).transpose()?;
    let wearing = data.clone().map(Wearing::begin);
    let looked_at = account::Subject { server: subject.id(), data, target };
    let account = Account::begin(looked_at, SAMPLE_EVERY);
    let measured = driver::watched(workload, plan, watch);
    let device = probe.map(|probe| probe.end(measured_time));
    let begin = measured.as_ref().map_or_else(|_| runtime::now(), |measured| measured.begin);
    let accounts = account.end(begin);
    let wear = wearing.map(Wearing::end);
    let measured = measured?;
    let step = Step { clients: place.clients, rate: place.rate };
    let mut run = Run::new((place.subject, place.round, step), &measured, accounts);
    if !design.settle.is_zero() {
        let [from, to] = [settled.0, settled.1].map(|at| -(begin - at).as_secs_f64());
        run.phases.insert(0, Phase { kind: PhaseKind::Settle, begin: from, end: to });
    }
    run.beginning = beginning;
    run.device = device;
    run.wear = wear;
    if design.stalls {
        run.findings.extend(pace::findings(&run, pool_bytes(described)));
    }
    run.findings.extend(sla::findings(&run, &cell.load, measured_time, design.sla));
    let space: Vec<(f64, u64)> =
        run.samples.iter().filter_map(|s| Some((s.seconds, s.allocated_bytes?))).collect();
    for beside in &design.besides {
        run.findings.extend(beside.findings(&run.completed(), &space));
    }
    Ok(run)
}

/// What a server's buffer pool may take, as it says.
fn pool_bytes(described: &results::Subject) -> Option<u64> {
    let name = Engine::in_effect(&described.variables).variable("innodb_buffer_pool_size")?;
    described.variables.get(name)?.parse().ok()
}

/// Starts the server of a run again with nothing in memory, if the lab has started it.
fn cold_start(
    design: &Design,
    place: &Place,
    watcher: &Arc<dyn Watcher>,
) -> Result<Option<String>, Failure> {
    let Some(process) = &design.subjects[place.subject].process else { return Ok(None) };
    watcher.phase(&format!("starting {} cold", place.name));
    process.cold_start().map(Some).map_err(|why| std::io::Error::other(why).into())
}

/// What goes on beside the clients, as an event of the run.
fn besides(beside: &Arc<dyn Beside>, subject: &Subject) -> Planned {
    let (beside, target) = (beside.clone(), subject.target.clone());
    Planned {
        at: Duration::ZERO,
        action: Arc::new(move |control| {
            beside.run(&target, control.begin(), control.end(), &|text| control.mark(text));
        }),
    }
}
