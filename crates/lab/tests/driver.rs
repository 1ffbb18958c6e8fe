//! The driver against a server whose every delay is known, in simulated time.

mod fake;

use fake::Behaviour;
use lab::client::Target;
use lab::driver::session::Protocol;
use lab::driver::{self, Load, Measured, OnConflict, Plan};
use lab::schedule::Arrivals;
use lab::statistics::stall::Stalls;
use lab::workload::sysbench::{Options, Script, Sysbench};
use runtime::net::Address;
use runtime::sim::{SimConfig, Simulation};
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);

fn behaviour() -> Behaviour {
    Behaviour { service: MILLISECOND, pause: None, dies: None, conflict_every: u64::MAX }
}

fn plan(load: Load, clients: u32) -> Plan {
    Plan {
        target: Target {
            address: Address::Tcp(([127, 0, 0, 1], 3306).into()),
            user: "root".into(),
            password: "secret".into(),
            database: "sbtest".into(),
            read_timeout: Duration::from_secs(60),
        },
        protocol: Protocol::Prepared,
        clients,
        load,
        warm_up: Duration::from_secs(1),
        measured: Duration::from_secs(20),
        on_conflict: OnConflict::Retry,
        seed: 5,
    }
}

/// Runs point selects; the behaviour is made when the simulated server starts.
fn run(plan: Plan, behaviour: impl FnOnce() -> Behaviour + 'static) -> Measured {
    let mut simulation = Simulation::new(SimConfig::new(3));
    let outcome = simulation.run(move || {
        let server = fake::serve(behaviour());
        let workload = Sysbench::new(Options::new(Script::PointSelect));
        let measured = driver::run(&workload, plan);
        server.stop();
        measured
    });
    outcome.expect("the simulation ends").expect("the run begins")
}

fn open(rate_per_second: f64) -> Load {
    Load::Open { arrivals: Arrivals::Poisson, rate_per_second }
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
    let rate = completed(&measured) as f64 / 20.0;
    assert!((rate / 2000.0 - 1.0).abs() < 0.01, "{rate} of 2,000 Poisson arrivals in 20 s");
    let uniform = Load::Open { arrivals: Arrivals::Uniform, rate_per_second: 2000.0 };
    let rate = completed(&run(plan(uniform, 32), behaviour)) as f64 / 20.0;
    assert!((rate / 2000.0 - 1.0).abs() < 0.002, "{rate}");
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
    let failing = Plan { on_conflict: OnConflict::Fail, ..plan(Load::Closed, 8) };
    let measured = run(failing, conflicts);
    let errors = &measured.record.errors;
    assert!(errors[&(1213, "40001".to_string())] > 1000, "{errors:?}");
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
