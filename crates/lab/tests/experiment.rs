//! Experiments whose servers fail: what was measured is kept, and it is said what to do.

mod fake;

use fake::Behaviour;
use lab::client::Target;
use lab::driver::{Plan, Stop};
use lab::experiment::{self, Design, Subject, Watcher};
use lab::results::Experiment;
use lab::workload::sysbench::{Options, Script, Sysbench};
use lab::workload::{Client, Which, Workload};
use runtime::net::Address;
use runtime::sim::{SimConfig, Simulation};
use runtime::sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

const PORTS: [u16; 2] = [3306, 3307];

fn subject(name: &str, port: u16) -> Subject {
    let target = Target {
        address: Address::Tcp(([127, 0, 0, 1], port).into()),
        user: "bench".into(),
        password: String::new(),
        database: "sbtest".into(),
        read_timeout: Duration::from_secs(60),
        tls: lab::client::Tls::Off,
    };
    Subject::running(name, target)
}

fn design() -> Design {
    let subjects = vec![subject("A", PORTS[0]), subject("B", PORTS[1])];
    let plan = Plan {
        warm_up: Duration::from_secs(1),
        measured: Duration::from_secs(10),
        ..Plan::new(subjects[0].target.clone())
    };
    Design { rounds: 3, ..Design::new(subjects, 2, plan) }
}

struct Silent;

impl Watcher for Silent {}

fn reads() -> Sysbench {
    Sysbench::new(Options::new(Script::PointSelect))
}

/// Runs A and B; A behaves well, how B behaves is made when it starts.
fn run(
    b: impl FnOnce() -> Option<Behaviour> + 'static,
    stop: Arc<Stop>,
) -> Result<Experiment, String> {
    run_of(reads(), b, stop)
}

fn run_of(
    workload: impl Workload + 'static,
    b: impl FnOnce() -> Option<Behaviour> + 'static,
    stop: Arc<Stop>,
) -> Result<Experiment, String> {
    let mut simulation = Simulation::new(SimConfig::new(7));
    let outcome = simulation.run(move || {
        let mut served = vec![fake::serve_at(PORTS[0], well())];
        served.extend(b().map(|behaviour| fake::serve_at(PORTS[1], behaviour)));
        let watcher: Arc<dyn Watcher> = Arc::new(Silent);
        let outcome = experiment::run(&workload, &design(), &stop, &watcher);
        served.iter().for_each(|handle| handle.stop());
        outcome
    });
    outcome.expect("the simulation ends")
}

fn well() -> Behaviour {
    Behaviour::new(Duration::from_millis(1))
}

fn in_seconds(seconds: u64) -> runtime::Instant {
    runtime::now() + Duration::from_secs(seconds)
}

#[test]
fn all_rounds_run_when_nothing_fails() {
    let experiment = run(|| Some(well()), Arc::default()).expect("it runs");
    assert_eq!(experiment.ended, None);
    let order: Vec<usize> = experiment.runs.iter().map(|run| run.subject).collect();
    assert_eq!(order, [0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0]);
}

/// Reads, and notes which clients were made.
struct Noting(Sysbench, Arc<Mutex<Vec<Which>>>);

impl Workload for Noting {
    fn operations(&self) -> Vec<&'static str> {
        self.0.operations()
    }

    fn statements(&self) -> Vec<String> {
        self.0.statements()
    }

    fn client(&self, which: Which) -> Box<dyn Client> {
        self.1.lock().push(which);
        self.0.client(which)
    }
}

/// An update that is repeated finds its value in the row, and costs a server less than a change.
#[test]
fn both_servers_are_asked_the_same_and_neither_is_asked_it_twice() {
    let noted: Arc<Mutex<Vec<Which>>> = Arc::default();
    let experiment = run_of(Noting(reads(), noted.clone()), || Some(well()), Arc::default());
    assert_eq!(experiment.expect("it runs").runs.len(), 12);
    // There and back: A B B A, B A A B, A B B A.
    let turns = (0..6).flat_map(|turn| [turn; 2]);
    let wanted = turns.flat_map(|turn| [0, 1].map(|number| Which { number, turn }));
    assert_eq!(*noted.lock(), wanted.collect::<Vec<_>>());
}

#[test]
fn a_server_that_dies_ends_the_experiment_and_everything_before_is_kept() {
    // A runs for 11 s, then B, which dies in its second run.
    let dying = || Some(Behaviour { dies: Some(in_seconds(27)), ..well() });
    let experiment = run(dying, Arc::default()).expect("it runs");
    let ended = experiment.ended.expect("it says why");
    assert!(ended.starts_with("B, 2 clients, round 1: the server is gone"), "{ended}");
    assert_eq!(experiment.runs.len(), 3, "the broken run as well");
    assert!(experiment.runs[2].given_up.is_some());
    let broken = &experiment.runs[2].seconds;
    assert!(broken[..3].iter().all(|second| second.completed > 1000), "{broken:?}");
}

#[test]
fn a_server_that_refuses_after_some_runs_ends_it_too() {
    // B is there when it is described, and gone when its first run begins.
    let dying = || Some(Behaviour { dies: Some(in_seconds(5)), ..well() });
    let experiment = run(dying, Arc::default()).expect("it runs");
    let ended = experiment.ended.expect("it says why");
    assert!(ended.starts_with("B, 2 clients, round 1: "), "{ended}");
    assert_eq!(experiment.runs.len(), 1);
}

#[test]
fn a_full_disk_ends_it_with_what_to_do() {
    let full = || {
        let text = "Disk full (/var/tmp); waiting for someone to free some space...";
        Some(Behaviour { fails: Some((in_seconds(16), 1021, "HY000", text)), ..well() })
    };
    let experiment = run(full, Arc::default()).expect("it runs");
    let ended = experiment.ended.expect("it says why");
    assert!(ended.contains("the disk of the server is full: free some space"), "{ended}");
    assert_eq!(experiment.runs.len(), 2);
}

#[test]
fn nothing_begins_without_all_servers_and_the_reason_is_told() {
    let cases: [(Option<(u16, &'static str, &'static str)>, &str); 4] = [
        (None, "B: connection: "),
        (Some((1045, "28000", "Access denied for user 'bench'")), "correct user and password"),
        (Some((1049, "42000", "Unknown database 'sbtest'")), "CREATE DATABASE `sbtest`"),
        (Some((1044, "42000", "Access denied to database")), "GRANT ALL ON `sbtest`.*"),
    ];
    for (refuses, wanted) in cases {
        let behaviour = move || refuses.map(|_| Behaviour { refuses, ..well() });
        let error = run(behaviour, Arc::default()).expect_err("nothing to run");
        assert!(error.starts_with("B: ") && error.contains(wanted), "{error}");
    }
}

#[test]
fn an_experiment_that_is_asked_to_stop_keeps_its_runs() {
    // The third run begins at 22 s and is measured from 23 s on.
    for (millis, kept) in [(25_000, 3), (22_500, 2)] {
        let stop = Arc::new(Stop::default());
        let asked = stop.clone();
        let stopping = move || {
            drop(runtime::spawn("interrupt", move || {
                runtime::sleep(Duration::from_millis(millis));
                asked.ask();
            }));
            Some(well())
        };
        let experiment = run(stopping, stop).expect("it runs");
        assert!(experiment.ended.expect("it says so").ends_with("interrupted"));
        assert_eq!(experiment.runs.len(), kept);
    }
}
