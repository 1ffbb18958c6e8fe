//! `gannet-lab run`
//!
//! 1. What was measured is written before anything else can fail, and again when it was verified.
//! 2. Ctrl-C ends the experiment with what it has; a second one ends the program.

use super::flags::{Arguments, Described, Outer, RunFlags, flags};
use super::interrupt::{self, Interrupted};
use super::load::told;
use super::subjects::{self, Running};
use super::{Outcome, description};
use crate::client::Connection;
use crate::driver::session::Protocol;
use crate::driver::{ERRORS_MAX, GIVE_UP, Load, Plan, Stop};
use crate::experiment::chaos::{Action, Event};
use crate::experiment::{self, Cell, Design, Loader, Sla, Subject, Watcher};
use crate::load::{self, Way};
use crate::progress::{Dashboard, Json, Lines, Prometheus, Several, Silent};
use crate::report;
use crate::results::{Broken, Experiment, Loaded, Note, Run};
use crate::schedule::{Arrivals, Profile};
use crate::workload::Which;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use toml::Table;

/// [`RunFlags::give_up`] of runs in which something is done to the server.
const GIVE_UP_WITH_EVENTS: Duration = Duration::from_secs(120);
/// Between two lines of progress.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

pub(super) fn run(arguments: Arguments) -> Outcome {
    let parts = parts(&arguments)?;
    if arguments.outer.print_spec {
        for (name, table) in &parts {
            name.iter().for_each(|name| println!("# part {name}"));
            println!("{table}");
        }
        return Ok(());
    }
    if let Some(count) = arguments.outer.dry_run {
        for (_, table) in &parts {
            dry_run(table, count)?.iter().for_each(|line| println!("{line}"));
        }
        return Ok(());
    }
    let interrupted = interrupt::asks();
    let mut running = Running::default();
    let mut outcome = Ok(());
    for (name, table) in &parts {
        let described = Described::of(flags().words(table)?)?;
        let output = match name {
            Some(name) => described.run.output.join(name),
            None => described.run.output.clone(),
        };
        let done = part(&described, table, &output, &mut running, &interrupted);
        outcome = outcome.and(done.map_err(|why| match name {
            Some(name) => format!("{name}: {why}"),
            None => why,
        }));
        if interrupted.stop.is_asked() {
            break;
        }
    }
    outcome.and(running.stop())
}

fn parts(arguments: &Arguments) -> Result<Vec<(Option<String>, Table)>, String> {
    let Outer { place, start, .. } = &arguments.outer;
    description::parts(arguments, place, start)
}

/// Operations as their seed decides them, without a server: client, operation, what was decided.
fn dry_run(table: &Table, count: u64) -> Result<Vec<String>, String> {
    let described = Described::of(flags().words(table)?)?;
    described.choice.check()?;
    let workload = described.choice.workload();
    let names = workload.operations();
    let mut lines = Vec::new();
    for cell in cells(&described.run)? {
        for number in 0..workload.clients(cell.clients) {
            let mut client = workload.client(Which { number, turn: 0 });
            for _ in 0..count {
                let operation = client.next();
                lines.push(format!("{number} {} {}", names[operation], client.decided()));
            }
        }
    }
    Ok(lines)
}

fn part(
    described: &Described,
    table: &Table,
    output: &Path,
    running: &mut Running,
    interrupted: &Interrupted,
) -> Outcome {
    let Described { choice, run, .. } = described;
    choice.check()?;
    let cells = cells(run)?;
    let wanted = subjects::read(table)?;
    let (watcher, dashboard) = watcher(run)?;
    *interrupted.dashboard.lock() = dashboard;
    let subjects = running.start(&wanted, output, &|text| watcher.phase(text))?.to_vec();
    if described.load.load {
        subjects.iter().try_for_each(make_database)?;
    }
    let mut design = design(described, table, (subjects, cells, &running.notes))?;
    design.load = Some(loader(described, &interrupted.stop, &watcher));
    let workload = choice.workload();
    let mut experiment = experiment::run(&*workload, &design, &interrupted.stop, &watcher)?;
    let is_loaded = experiment.subjects.iter().any(|subject| subject.load.is_some());
    if experiment.runs.is_empty()
        && !is_loaded
        && let Some(why) = experiment.ended
    {
        return Err(format!("nothing was measured: {why}"));
    }
    report::write(output, &experiment)?;
    let mut unverified = None;
    if !run.no_verify {
        watcher.phase("verifying");
        unverified = verify(described, &design, &mut experiment);
        report::write(output, &experiment)?;
    }
    let dashboard = interrupted.dashboard.lock().take();
    dashboard.iter().for_each(|dashboard| dashboard.leave());
    tell(run, output, &experiment);
    let broken = experiment.subjects.iter().any(|s| s.violations.iter().any(|v| !v.is_empty()));
    match (broken, experiment.ended.clone(), unverified) {
        (true, ..) => Err("FAILED: the data break rules of the workload".into()),
        (false, Some(why), _) => Err(format!("ended early, what was measured is kept: {why}")),
        (false, None, Some(why)) => Err(format!("not verified: {why}")),
        (false, None, None) if run.stalls => kept(&experiment),
        (false, None, None) => Ok(()),
    }
}

/// Makes the database of a server that runs already, if it is not there.
fn make_database(subject: &Subject) -> Outcome {
    if subject.process.is_some() {
        return Ok(());
    }
    let made = load::connect(&subject.target).map(drop);
    made.map_err(|failure| format!("{}: {}", subject.name, failure.explained(&subject.target)))
}

/// What fills the tables of a subject before the runs.
fn loader(described: &Described, stop: &Arc<Stop>, watcher: &Arc<dyn Watcher>) -> Loader {
    let Described { choice, load, .. } = described.clone();
    let (stop, watcher) = (stop.clone(), watcher.clone());
    Arc::new(move |subject: &Subject| {
        if subject.process.is_none() && !load.load {
            return None;
        }
        let begin = runtime::now();
        let connections = load.loaders.connections;
        let way = Way { connections, resume: true, stop: stop.clone() };
        let watcher = watcher.clone();
        let report = told(REPORT_INTERVAL, move |line| watcher.phase(line));
        let loaded = choice.load(&subject.target, &subject.table_options, &way, report);
        Some(match loaded {
            Ok(progress) if !progress.is_whole() => Err("interrupted".into()),
            Ok(progress) => Ok(Loaded {
                seconds: (runtime::now() - begin).as_secs_f64(),
                rows: progress.rows,
                bytes: progress.bytes,
            }),
            Err(failure) => Err(failure.explained(&subject.target)),
        })
    })
}

/// Whether every run was found as it was wanted.
fn kept(experiment: &Experiment) -> Outcome {
    let broken = |run: &Run| {
        let names = run.findings.iter().filter(|f| !f.met).map(|f| f.name.clone());
        let place = format!("{}, {}", experiment.subjects[run.subject].name, run.step().label());
        names.map(|name| format!("{place}: {name}")).collect::<Vec<_>>()
    };
    let broken: Vec<String> = experiment.runs.iter().flat_map(broken).collect();
    if broken.is_empty() { Ok(()) } else { Err(format!("NOT KEPT: {}", broken.join("; "))) }
}

/// What is shown in the end.
fn tell(run: &RunFlags, output: &Path, experiment: &Experiment) {
    let report = output.join("report.html");
    if run.json {
        println!(
            "{}",
            serde_json::json!({"event": "end", "report": report, "ended": experiment.ended})
        );
        return;
    }
    println!("{}", report::text(experiment));
    println!("report: {}", report.display());
}

/// Verifies all servers that answer; the reason if one could not be.
fn verify(described: &Described, design: &Design, experiment: &mut Experiment) -> Option<String> {
    let mut unverified = None;
    for (subject, server) in design.subjects.iter().zip(&mut experiment.subjects) {
        let verified = Connection::open(&subject.target)
            .and_then(|mut connection| described.choice.verify(&mut connection));
        match verified {
            Ok(found) => server.violations = Some(found.iter().map(Broken::from).collect()),
            Err(failure) => {
                let why = failure.explained(&subject.target);
                let text = format!("{} is not verified: {why}", subject.name);
                experiment.notes.push(Note { text, is_grave: true });
                unverified.get_or_insert(format!("{}: {why}", subject.name));
            }
        }
    }
    unverified
}

/// What shows how runs go on, and the dashboard if there is one.
fn watcher(run: &RunFlags) -> Result<(Arc<dyn Watcher>, Option<Arc<Dashboard>>), String> {
    let every = run.report_interval.map(Duration::from_secs);
    let mut dashboard = None;
    let shown: Arc<dyn Watcher> = if run.quiet {
        Arc::new(Silent)
    } else if run.json {
        Arc::new(Json::new(every.unwrap_or(REPORT_INTERVAL)))
    } else if every.is_none() && std::io::stdout().is_terminal() {
        let moving = Arc::new(Dashboard::default());
        dashboard = Some(moving.clone());
        moving
    } else {
        Arc::new(Lines::new(every.unwrap_or(REPORT_INTERVAL)))
    };
    let Some(address) = run.prometheus else { return Ok((shown, dashboard)) };
    let prometheus = Prometheus::listen(address)?;
    if !run.quiet && !run.json {
        shown.phase(&format!("figures at http://{}/metrics", prometheus.address()));
    }
    Ok((Arc::new(Several(vec![shown, Arc::new(prometheus)])), dashboard))
}

/// Numbers of clients: `8`, `4,8`, `4..512` (doubled).
fn clients(words: &[String]) -> Result<Vec<u32>, String> {
    let wrong = |word: &str| format!("--clients {word}: a number, or a range such as 4..512");
    let number =
        |word: &str| word.trim().parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(|| wrong(word));
    let mut found = Vec::new();
    for word in words {
        match word.split_once("..") {
            None => found.push(number(word)?),
            Some((from, to)) => {
                let (mut next, last) = (number(from)?, number(to)?);
                if next > last {
                    return Err(wrong(word));
                }
                while next < last {
                    found.push(next);
                    next = next.saturating_mul(2);
                }
                found.push(last);
            }
        }
    }
    Ok(found)
}

/// All combinations of clients and rates.
fn cells(run: &RunFlags) -> Result<Vec<Cell>, String> {
    let measured = Duration::from_secs(run.seconds);
    let mut profiles: Vec<Profile> = run.rate.iter().map(|rate| Profile::constant(*rate)).collect();
    if !run.steps.is_empty() {
        if run.seconds < run.steps.len() as u64 {
            return Err("--steps: each step needs a second of --seconds".into());
        }
        profiles = vec![Profile::steps(&run.steps, measured / run.steps.len() as u32)];
    }
    if let Some(ramp) = &run.ramp {
        let ends = ramp.split_once("..").map(|(from, to)| (from.trim().parse(), to.trim().parse()));
        let Some((Ok(from), Ok(to))) = ends else {
            return Err(format!("--ramp {ramp}: two rates such as 1000..5000"));
        };
        profiles = vec![Profile::ramp(from, to, measured)];
    }
    if profiles.iter().any(|profile| !profile.is_valid()) {
        return Err("rates must be above 0".into());
    }
    let arrivals = if run.uniform { Arrivals::Uniform } else { Arrivals::Poisson };
    let open = |rate| Load::Open { arrivals, rate, per_client: run.per_client };
    let loads: Vec<Load> = match profiles.is_empty() {
        true if run.uniform || run.per_client => {
            return Err("--uniform and --per-client are about a --rate, --ramp or --steps".into());
        }
        true => vec![Load::Closed],
        false => profiles.into_iter().map(open).collect(),
    };
    let mut cells = Vec::new();
    for clients in clients(&run.clients)? {
        cells.extend(loads.iter().map(|load| Cell { clients, load: load.clone() }));
    }
    Ok(cells)
}

/// Events of the flags, for these subjects.
fn events(run: &RunFlags, subjects: &[Subject]) -> Result<Vec<Event>, String> {
    let crash = run.crash_at.map(|at| Event { at, action: Action::Crash });
    let events: Vec<Event> = run.at.iter().cloned().chain(crash).collect();
    for event in &events {
        if event.at > run.seconds as f64 {
            return Err(format!("second {} is after the end of a run: raise --seconds", event.at));
        }
        subjects.iter().try_for_each(|subject| event.check(subject))?;
    }
    Ok(events)
}

fn design(
    described: &Described,
    table: &Table,
    (subjects, cells, notes): (Vec<Subject>, Vec<Cell>, &[String]),
) -> Result<Design, String> {
    let Described { choice, run, .. } = described.clone();
    let events = events(&run, &subjects)?;
    let first = subjects.first().ok_or("no server")?;
    let most = cells.iter().map(|cell| cell.clients).max().unwrap_or(1);
    let give_up = if events.is_empty() { GIVE_UP } else { GIVE_UP_WITH_EVENTS };
    let sla = run.sla.as_deref().map(str::parse::<Sla>).transpose()?;
    let (seed, description, besides) = (choice.seed, choice.describe(), choice.besides());
    let plan = Plan {
        protocol: if run.text { Protocol::Text } else { Protocol::Prepared },
        warm_up: Duration::from_secs(run.warm_up),
        measured: Duration::from_secs(run.seconds),
        on_conflict: run.on_conflict.into(),
        seed,
        give_up: run.give_up.map_or(give_up, Duration::from_secs),
        errors_max: run.errors_max.unwrap_or(ERRORS_MAX * u64::from(most)),
        ..Plan::new(first.target.clone())
    };
    Ok(Design {
        command: std::env::args().collect(),
        description,
        cells,
        rounds: run.rounds as usize,
        settle: Duration::from_secs(run.settle),
        cold: run.cold,
        plan,
        events: Arc::new(move |subject| {
            events.iter().map(|event| event.planned(subject)).collect()
        }),
        besides,
        sla,
        stalls: run.stalls,
        load: None,
        spec: Some(table.to_string()),
        notes: notes.iter().map(|text| Note { text: text.clone(), is_grave: false }).collect(),
        subjects,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe;
    use clap::{Args, Command, FromArgMatches};

    fn arguments(words: &[&str]) -> Arguments {
        let command = <Arguments>::augment_args(Command::new("run").no_binary_name(true));
        let matches = command.try_get_matches_from(words).expect("known flags");
        Arguments::from_arg_matches(&matches).expect("read")
    }

    fn described(words: &[&str]) -> Vec<Described> {
        let of = |(_, table): &(Option<String>, Table)| {
            Described::of(flags().words(table).expect("keys")).expect("flags")
        };
        parts(&arguments(words)).expect("a description").iter().map(of).collect()
    }

    #[test]
    fn sweeps_are_clients_times_rates() {
        let run = &described(&["sysbench", "--clients=4..20,64", "--rate=10,20"])[0].run;
        let found = cells(run).expect("valid");
        let numbers: Vec<u32> = found.iter().map(|cell| cell.clients).collect();
        assert_eq!(numbers, [4, 4, 8, 8, 16, 16, 20, 20, 64, 64]);
        for wrong in [
            &["sysbench", "--clients=0"][..],
            &["sysbench", "--clients=8..4"],
            &["sysbench", "--rate=0"],
            &["sysbench", "--ramp=5"],
            &["sysbench", "--steps=1,2,3", "--seconds=2"],
            &["sysbench", "--uniform"],
        ] {
            assert!(cells(&described(wrong)[0].run).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_recipe_becomes_flags_and_servers() {
        for recipe in recipe::RECIPES {
            let found = parts(&arguments(&[recipe.name])).expect(recipe.name);
            for (_, table) in &found {
                let words = flags().words(table).expect(recipe.name);
                let described = Described::of(words).expect(recipe.name);
                described.choice.check().expect(recipe.name);
                cells(&described.run).expect(recipe.name);
                assert!(subjects::read(table).expect(recipe.name).len() >= 2, "{}", recipe.name);
            }
        }
    }

    #[test]
    fn the_effective_description_runs_the_same_again() {
        let words = ["quick", "--scale=0.5", "--clients=3", "--dsn=A=mysql://root@127.0.0.1/test"];
        let found = parts(&arguments(&words)).expect("a description");
        let again: Table = found[0].1.to_string().parse().expect("TOML");
        assert_eq!(again, found[0].1);
        assert!(!again.contains_key("scale"), "it is applied");
        assert_eq!(again["run"]["clients"].as_integer(), Some(3));
        assert_eq!(again["subject"][0]["name"].as_str(), Some("A"));
    }

    #[test]
    fn a_seed_decides_all_operations() {
        for words in [
            &["sysbench", "--script=oltp_read_write"][..],
            &["sysbench", "--script=select_random_points"],
            &["linkbench", "--ids=1000", "--degree-max=50"],
            &["tpcc", "--warehouses=2"],
            &["insert", "--step=qr100"],
            &["storm"],
        ] {
            let log = |seed: &str| {
                let words = [words, &["--clients=3", seed]].concat();
                let (_, table) = &parts(&arguments(&words)).expect("a description")[0];
                dry_run(table, 50).expect("operations")
            };
            let first = log("--seed=7");
            assert_eq!(first.len() % 50, 0, "{words:?}");
            assert_eq!(first, log("--seed=7"), "{words:?}");
            assert_ne!(first, log("--seed=8"), "{words:?}: it says what was decided");
        }
    }

    #[test]
    fn what_is_no_workload_and_no_recipe_says_what_there_is() {
        let (_, table) = &parts(&arguments(&["sysbank"])).expect("taken for a workload")[0];
        let error = Described::of(flags().words(table).expect("keys")).expect_err("none");
        assert!(error.contains("sysbank") && error.contains("sysbench"), "{error}");
        let error = parts(&arguments(&["nowhere/my.toml"])).expect_err("no file");
        assert!(error.contains("nowhere/my.toml"), "{error}");
        let error = parts(&arguments(&["sysbench", "--scale=2"])).expect_err("no recipe");
        assert!(error.contains("--scale"), "{error}");
    }
}
