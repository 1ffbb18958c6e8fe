//! A driver that has no processor to spare is found out.

use lab::account::{Account, Subject};
use lab::client::{Failure, Target, Tls};
use lab::driver::session::Session;
use lab::driver::{self, Load, Plan};
use lab::results::{Run, Step};
use lab::schedule::{Arrivals, Profile};
use lab::workload::{Client, Which, Workload};
use runtime::net::Address;
use std::time::{Duration, Instant};

/// Operations that keep the driver's only processor busy and ask no server.
struct Busy(Duration);

struct BusyClient(Duration);

impl Workload for Busy {
    fn operations(&self) -> Vec<&'static str> {
        vec!["busy"]
    }

    fn statements(&self) -> Vec<String> {
        Vec::new()
    }

    fn connections(&self) -> usize {
        0
    }

    fn client(&self, _which: Which) -> Box<dyn Client> {
        Box::new(BusyClient(self.0))
    }
}

impl Client for BusyClient {
    fn next(&mut self) -> usize {
        0
    }

    fn perform(&mut self, _sessions: &mut [Session]) -> Result<(), Failure> {
        let begin = Instant::now();
        while begin.elapsed() < self.0 {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

#[test]
fn a_driver_that_is_overloaded_is_late_or_limited() {
    let config = runtime::Config { workers: 1, ..runtime::Config::default() };
    let runtime = runtime::Runtime::start(config).expect("threads");
    let run = runtime.run(|| {
        // Twice as much as there is: 8 clients are to be busy for 10 ms 200 times a second.
        let target = Target {
            address: Address::Tcp(([127, 0, 0, 1], 9).into()),
            user: "nobody".into(),
            password: String::new(),
            database: String::new(),
            read_timeout: Duration::from_secs(1),
            tls: Tls::Off,
        };
        let rate = Profile::constant(200.0);
        let plan = Plan {
            clients: 8,
            load: Load::Open { arrivals: Arrivals::Poisson, rate, per_client: false },
            measured: Duration::from_secs(2),
            ..Plan::new(target)
        };
        let account = Account::begin(Subject::default(), Duration::from_millis(200));
        let measured = driver::run(&Busy(Duration::from_millis(10)), plan).expect("a run");
        let accounts = account.end(measured.begin);
        Run::new((0, 0, Step { clients: 8, rate: Some(200.0) }), &measured, accounts)
    });
    let lateness = run.lateness_micros.expect("the driver looks how late it is")[2];
    // Where other processes take the processor away the share is lower, and the lateness higher.
    assert!(run.is_client_limited() || lateness > 10_000, "{:?}, {lateness} us", run.limit);
    assert!(lateness > 10_000, "operations of 10 ms hold the others up: {lateness} us");
}
