//! The driver against a server whose every delay is known, in simulated time.

mod fake;

use fake::Behaviour;
use lab::client::Target;
use lab::driver::{
    self, Control, Interval, Load, Measured, OnConflict, Plan, Planned, Tell, Watch,
};
use lab::schedule::{Arrivals, Profile, Schedule};
use lab::statistics::stall::Stalls;
use lab::workload::sysbench::{Options, Script, Sysbench};
use runtime::net::Address;
use runtime::sim::{SimConfig, Simulation};
use runtime::sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);

fn behaviour() -> Behaviour {
    Behaviour::new(MILLISECOND)
}

fn target() -> Target {
    Target {
        address: Address::Tcp(([127, 0, 0, 1], 3306).into()),
        user: "root".into(),
        password: "secret".into(),
        database: "sbtest".into(),
        read_timeout: Duration::from_secs(60),
        tls: lab::client::Tls::Off,
    }
}

fn plan(load: Load, clients: u32) -> Plan {
    Plan {
        clients,
        load,
        warm_up: Duration::from_secs(1),
        measured: Duration::from_secs(20),
        seed: 5,
        ..Plan::new(target())
    }
}

/// Runs point selects; the behaviour is made when the simulated server starts.
fn run(plan: Plan, behaviour: impl FnOnce() -> Behaviour + 'static) -> Measured {
    watched(plan, behaviour, Watch::default)
}

fn watched(
    plan: Plan,
    behaviour: impl FnOnce() -> Behaviour + 'static,
    watch: impl FnOnce() -> Watch + 'static,
) -> Measured {
    let mut simulation = Simulation::new(SimConfig::new(3));
    let outcome = simulation.run(move || {
        let server = fake::serve_at(3306, behaviour());
        let workload = Sysbench::new(Options::new(Script::PointSelect));
        let measured = driver::watched(&workload, plan, watch());
        server.stop();
        measured
    });
    outcome.expect("the simulation ends").expect("the run begins")
}

fn open(rate_per_second: f64) -> Load {
    let rate = Profile::constant(rate_per_second);
    Load::Open { arrivals: Arrivals::Poisson, rate, per_client: false }
}

fn uniform(rate: Profile) -> Load {
    Load::Open { arrivals: Arrivals::Uniform, rate, per_client: false }
}

fn pausing() -> Behaviour {
    let begin = runtime::now();
    let after = |seconds| begin + Duration::from_secs(seconds);
    Behaviour { pause: Some((after(6), after(8))), ..behaviour() }
}

fn completed(measured: &Measured) -> u64 {
    measured.record.completed_per_second().iter().sum()
}

#[test]
fn a_pause_of_two_seconds_is_in_the_latency_of_an_open_load() {
    let measured = run(plan(open(1000.0), 64), pausing);
    // A tenth of the operations were meant to begin in the pause, evenly: of all operations one
    // in a thousand waited for longer than 1.98 s, one in a hundred for longer than 1.8 s.
    let latency = measured.record.latency();
    let quantile = |share: f64| latency.value_at_quantile(share) as f64 / 1e6;
    assert!((quantile(0.999) - 1.98).abs() < 0.02, "p99.9 {}", quantile(0.999));
    assert!((quantile(0.99) - 1.8).abs() < 0.05, "p99 {}", quantile(0.99));
    assert!(quantile(0.5) < 0.003, "median {}", quantile(0.5));
    let service = &measured.record.operations[0].service;
    assert!(service.value_at_quantile(0.99) < 3_000, "64 of 20,000 were sent and had to wait");
    let stalls = Stalls::of(&measured.record.completed_per_second());
    assert!(stalls.empty >= 1 && stalls.longest == 2, "{stalls:?}");
}

#[test]
fn a_closed_load_hides_the_same_pause() {
    let measured = run(plan(Load::Closed, 64), pausing);
    let latency = measured.record.latency();
    assert!(latency.value_at_quantile(0.999) < 3_000, "that is why there is an open load");
    assert!(latency.max() > 1_900_000);
}

#[test]
fn an_open_load_keeps_its_rate() {
    let measured = run(plan(open(2000.0), 32), behaviour);
    let asked = Schedule::new(Arrivals::Poisson, Profile::constant(2000.0), 5);
    let is_measured = |start: &Duration| *start >= Duration::from_secs(1);
    let starts = asked.take_while(|start| *start < Duration::from_secs(21)).filter(is_measured);
    let asked = starts.count() as f64;
    let achieved = completed(&measured) as f64;
    assert!((achieved / asked - 1.0).abs() < 0.002, "{achieved} of {asked} Poisson arrivals");
    let rate = completed(&run(plan(uniform(Profile::constant(2000.0)), 32), behaviour)) as f64;
    assert!((rate / 20.0 / 2000.0 - 1.0).abs() < 0.002, "{rate}");
}

#[test]
fn ramps_and_steps_are_kept_second_by_second() {
    let ramp = Profile::ramp(100.0, 2100.0, Duration::from_secs(20));
    let measured = run(plan(uniform(ramp), 32), behaviour);
    for (second, count) in measured.record.completed_per_second().into_iter().enumerate() {
        let wanted = 150 + 100 * second as i64;
        assert!((count as i64 - wanted).abs() <= 4, "second {second}: {count}, not {wanted}");
    }
    let warm_up: u64 = measured.record.warm_up.iter().flat_map(|s| &s.completed).sum();
    assert!((98..=100).contains(&warm_up), "the first rate in the warm-up: {warm_up}");
    let steps = Profile::steps(&[500.0, 1000.0], Duration::from_secs(10));
    let counts = run(plan(uniform(steps), 32), behaviour).record.completed_per_second();
    assert!(counts[..10].iter().all(|count| (499..=501).contains(count)), "{counts:?}");
    assert!(counts[11..].iter().all(|count| (999..=1001).contains(count)), "{counts:?}");
}

#[test]
fn clients_with_schedules_of_their_own_do_not_help_each_other() {
    let slow = || Behaviour::new(Duration::from_millis(20));
    let load = |per_client| {
        let rate = Profile::constant(1000.0);
        Load::Open { arrivals: Arrivals::Poisson, rate, per_client }
    };
    // 32 clients of 50 operations a second each at most, 31 are asked of each: together they are
    // never late, each for itself it is behind a neighbour half the time.
    let together = run(plan(load(false), 32), slow);
    let alone = run(plan(load(true), 32), slow);
    let p95 = |measured: &Measured| measured.record.latency().value_at_quantile(0.95);
    assert!(p95(&together) < 25_000, "{}", p95(&together));
    assert!(p95(&alone) > 50_000, "{}", p95(&alone));
    let rate = completed(&alone) as f64 / 20.0;
    assert!((rate / 1000.0 - 1.0).abs() < 0.02, "{rate}");
}

#[test]
fn a_server_that_cannot_keep_up_makes_an_open_load_late() {
    // 10 clients and 1 ms each: 10,000 a second at most; more than that are asked.
    let measured = run(plan(open(20_000.0), 10), behaviour);
    let latency = measured.record.latency();
    assert!(latency.value_at_quantile(0.9) > 5_000_000, "{}", latency.value_at_quantile(0.9));
}

#[test]
fn conflicts_are_retried_within_the_latency_and_counted() {
    let conflicts = || Behaviour { conflict_every: 10, ..behaviour() };
    let measured = run(plan(Load::Closed, 8), conflicts);
    let operation = &measured.record.operations[0];
    assert_eq!(operation.failed, 0);
    assert!(operation.retried * 8 > operation.latency.len() / 10, "{}", operation.retried);
    assert!(operation.latency.max() >= 3_000, "the statement, ROLLBACK, the statement again");
    let failing = Plan { on_conflict: OnConflict::Ignore, ..plan(Load::Closed, 8) };
    let measured = run(failing, conflicts);
    let errors = &measured.record.errors;
    assert!(errors[&(1213, "40001".to_string())] > 1000, "{errors:?}");
    let aborting = Plan { on_conflict: OnConflict::Abort, ..plan(Load::Closed, 8) };
    let given_up = run(aborting, conflicts).given_up.expect("a conflict ends it");
    assert!(given_up.contains("1213"), "{given_up}");
}

#[test]
fn a_server_that_goes_away_ends_the_run_with_what_was_measured() {
    let dying = || {
        let dies = Some(runtime::now() + Duration::from_secs(5));
        Behaviour { dies, ..behaviour() }
    };
    let measured = run(plan(Load::Closed, 4), dying);
    let seconds = measured.record.completed_per_second();
    assert!(seconds[..3].iter().all(|count| *count > 1000), "{seconds:?}");
    assert_eq!(seconds[6..].iter().sum::<u64>(), 0);
    assert!(measured.given_up.is_some_and(|why| why.contains("gone")), "it says why");
}

#[test]
fn a_server_that_an_event_takes_away_is_not_gone() {
    let dying = || {
        let dies = Some(runtime::now() + Duration::from_secs(5));
        Behaviour { dies, ..behaviour() }
    };
    let short = || Plan { measured: Duration::from_secs(8), ..plan(Load::Closed, 4) };
    let restarting = || {
        let action = Arc::new(|control: &Control| {
            runtime::sleep(control.end() - runtime::now());
        });
        Watch { events: vec![Planned { at: Duration::from_secs(3), action }], ..Watch::default() }
    };
    assert!(run(short(), dying).given_up.is_some(), "it is away without an event");
    assert_eq!(watched(short(), dying, restarting).given_up, None);
}

#[test]
fn a_server_that_stops_answering_ends_the_run() {
    let hanging = || {
        let begin = runtime::now();
        let pause = Some((begin + Duration::from_secs(5), begin + Duration::from_secs(10_000)));
        Behaviour { pause, ..behaviour() }
    };
    let measured =
        run(Plan { measured: Duration::from_secs(300), ..plan(Load::Closed, 4) }, hanging);
    let why = measured.given_up.as_deref().expect("it is given up");
    assert!(why.contains("not answered anybody for 20 s"), "{why}");
    assert!(completed(&measured) > 10_000, "what was measured before is kept");
    assert!(measured.record.seconds.len() < 40, "and nothing after the end is shown");
}

/// As after a crash: a listener's queue may be lost in a way that its clients are not told of.
#[test]
fn a_login_that_nobody_answers_does_not_outlast_the_run() {
    let mute = || {
        let is_mute = Some(runtime::now() + Duration::from_secs(3));
        Behaviour { is_mute, ..behaviour() }
    };
    let dropping = || {
        let action = Arc::new(|control: &Control| {
            assert_eq!(control.drop_connections(0.25), 1);
        });
        Watch { events: vec![Planned { at: Duration::from_secs(5), action }], ..Watch::default() }
    };
    let patient = Target { read_timeout: Duration::from_secs(600), ..target() };
    let plan = Plan { target: patient, ..plan(Load::Closed, 4) };
    let mut simulation = Simulation::new(SimConfig::new(3));
    let outcome = simulation.run(move || {
        let server = fake::serve_at(3306, mute());
        let begin = runtime::now();
        let workload = Sysbench::new(Options::new(Script::PointSelect));
        let measured = driver::watched(&workload, plan, dropping());
        server.stop();
        (measured, begin.elapsed())
    });
    let (measured, took) = outcome.expect("the simulation ends");
    assert!(took < Duration::from_secs(25), "a run of 21 s took {took:?}");
    let measured = measured.expect("the run begins");
    assert_eq!(measured.given_up, None, "three of four clients went on");
    assert!(completed(&measured) > 50_000);
}

#[test]
fn a_full_disk_ends_the_run_with_what_to_do() {
    let full = || {
        let from = runtime::now() + Duration::from_secs(5);
        Behaviour {
            fails: Some((from, 1114, "HY000", "The table 'sbtest1' is full")),
            ..behaviour()
        }
    };
    let measured = run(plan(Load::Closed, 4), full);
    let why = measured.given_up.clone().expect("it is given up");
    assert!(why.contains("1114") && why.contains("free some space"), "{why}");
    assert!(completed(&measured) > 10_000, "what was measured before is kept");
    assert_eq!(measured.record.messages[&1114], "The table 'sbtest1' is full");
}

#[test]
fn too_many_errors_end_the_run() {
    let failing = || {
        let from = runtime::now() + Duration::from_secs(3);
        Behaviour { fails: Some((from, 1062, "23000", "Duplicate entry")), ..behaviour() }
    };
    let measured = run(Plan { errors_max: 50, ..plan(Load::Closed, 4) }, failing);
    let why = measured.given_up.expect("it is given up");
    assert!(why.contains("more than 50 errors") && why.contains("Duplicate entry"), "{why}");
}

#[test]
fn a_run_that_is_asked_to_stop_keeps_what_it_has() {
    let measured = watched(plan(Load::Closed, 4), behaviour, || {
        let watch = Watch::default();
        let stop = watch.stop.clone();
        drop(runtime::spawn("interrupt", move || {
            runtime::sleep(Duration::from_secs(6));
            stop.ask();
        }));
        watch
    });
    assert_eq!(measured.given_up.as_deref(), Some("interrupted"));
    assert_eq!(measured.record.seconds.len(), 5);
}

#[test]
fn events_drop_connections_pause_clients_and_leave_marks() {
    let events = || Watch {
        events: vec![
            Planned {
                at: Duration::from_secs(3),
                action: Arc::new(|control: &Control| {
                    control.mark(format!("{} connections dropped", control.drop_connections(0.5)));
                }),
            },
            Planned {
                at: Duration::from_secs(8),
                action: Arc::new(|control: &Control| {
                    control.pause(Duration::from_secs(2));
                    control.mark("paused");
                }),
            },
        ],
        ..Watch::default()
    };
    let measured = watched(plan(open(1000.0), 8), behaviour, events);
    let marks: Vec<_> = measured.marks.iter().map(|m| (m.seconds.round(), &m.text[..])).collect();
    assert_eq!(marks, [(3.0, "4 connections dropped"), (8.0, "paused")]);
    assert_eq!(measured.record.reconnected, 4);
    assert_eq!(measured.record.seconds[3].reconnected, 4);
    let seconds = measured.record.completed_per_second();
    assert!(seconds[9] == 0 && seconds[10] > 2500, "paused, then what was due: {seconds:?}");
    let latest = measured.record.latency().max();
    assert!((1_950_000..2_300_000).contains(&latest), "the pause is in the latency: {latest}");
}

#[test]
fn intervals_are_told_with_statements() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = told.clone();
    let watch = move || {
        let tell: Tell = Arc::new(move |interval: &Interval| kept.lock().push(interval.clone()));
        Watch { tell: Some((Duration::from_secs(5), tell)), ..Watch::default() }
    };
    let measured = watched(plan(open(1000.0), 8), behaviour, watch);
    let told = told.lock();
    assert_eq!(told.len(), 4);
    assert_eq!(told.iter().filter(|interval| interval.is_warm_up).count(), 0);
    for interval in &*told {
        let rate = interval.each_second(interval.completed);
        assert!((900.0..1100.0).contains(&rate), "{rate}");
        assert_eq!(interval.statements.reads, interval.completed);
        assert!(interval.latency.value_at_quantile(0.95) >= 1000);
    }
    assert!(measured.record.lateness.max() < 1000, "nothing else runs in a simulation");
}

#[test]
fn a_rate_that_is_low_is_no_silence_of_the_server() {
    let measured = run(
        Plan { measured: Duration::from_secs(600), ..plan(uniform(Profile::constant(0.02)), 2) },
        behaviour,
    );
    assert_eq!(measured.given_up, None);
    assert_eq!(completed(&measured), 12);
}
