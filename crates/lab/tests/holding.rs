//! Clients that hold their threads while they wait, as those of programs with a thread for each do.

mod fake;

use fake::Behaviour;
use lab::client::{Target, Tls};
use lab::driver::{self, Measured, Plan};
use lab::workload::sysbench::{Options, Script, Sysbench};
use runtime::net::Address;
use runtime::{Config, Runtime};
use std::time::Duration;

const CLIENTS: u32 = 2;

fn runtime_of(workers: usize) -> Runtime {
    Runtime::start(Config { workers, ..Config::default() }).expect("threads")
}

/// Two seconds of two clients with a thread each, of a server with threads of its own.
fn run(behaviour: impl FnOnce() -> Behaviour + Send + 'static) -> Measured {
    let port = sqltest::port::free_port().expect("a free port");
    let servers = runtime_of(1);
    let served = servers.run(move || fake::serve_at(port, behaviour()));
    let target = Target {
        address: Address::Tcp(([127, 0, 0, 1], port).into()),
        user: "bench".into(),
        password: String::new(),
        database: "sbtest".into(),
        read_timeout: Duration::from_secs(10),
        tls: Tls::Off,
    };
    let measured = runtime_of(CLIENTS as usize).run(move || {
        let plan = Plan {
            clients: CLIENTS,
            threads: CLIENTS,
            holds_threads: true,
            measured: Duration::from_secs(2),
            ..Plan::new(target)
        };
        let workload = Sysbench::new(Options::new(Script::PointSelect));
        driver::run(&workload, plan).expect("a run")
    });
    servers.run(move || served.stop());
    measured
}

/// The fiber that looks after the clients shares a thread with one that never parks.
#[test]
fn the_driver_looks_after_clients_that_hold_their_threads() {
    let measured = run(|| Behaviour::new(Duration::from_micros(100)));
    let completed: u64 = measured.record.completed_per_second().iter().sum();
    assert!(completed > 200, "{completed}");
    // A hundred looks a second are meant.
    let looks = measured.record.lateness.len();
    assert!(looks > 50, "{looks}");
    assert_eq!(measured.given_up, None);
}

#[test]
fn a_server_that_pauses_lets_the_others_of_the_thread_run() {
    let measured = run(|| {
        let begin = runtime::now() + Duration::from_millis(500);
        let pause = Some((begin, begin + Duration::from_secs(1)));
        Behaviour { pause, ..Behaviour::new(Duration::from_micros(100)) }
    });
    let longest = measured.record.latency().max();
    assert!(longest > 500_000, "{longest} us");
    assert!(measured.record.lateness.len() > 50);
}
