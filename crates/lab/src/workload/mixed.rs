//! Several workloads side by side on one server, each in a database of its own and with figures of
//! its own: what tenants do to each other.
//!
//! 1. Operations are named after their tenant.
//! 2. A tenant has its own number of clients, and its own rate if it has one; what is asked for
//!    all clients does not matter.

use super::{Client, Finding, Held, Seat, Which, Workload};
use crate::client::{Failure, Target};
use crate::driver::Operation;
use crate::driver::session::Session;
use crate::schedule::{Arrivals, Profile, Schedule};
use runtime::Instant;
use std::ops::Range;
use std::time::Duration;

/// One of the workloads.
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its database.
    pub database: String,
    /// What it does.
    pub workload: Box<dyn Workload>,
    /// Its clients.
    pub clients: u32,
    /// Operations a second of all its clients together; as many as the server answers without.
    pub rate: Option<f64>,
    /// Decides when they begin.
    pub seed: u64,
}

/// See the module.
pub struct Mixed {
    tenants: Vec<Tenant>,
    /// Names of all operations.
    names: Vec<&'static str>,
}

impl Mixed {
    /// Of these.
    pub fn new(tenants: Vec<Tenant>) -> Self {
        let named = |tenant: &Tenant| {
            let names = tenant.workload.operations().into_iter();
            let names = names.map(|operation| format!("{}: {operation}", tenant.name));
            // Names of operations live as long as the program: here as many as there are tenants.
            names.map(|name| -> &'static str { name.leak() }).collect::<Vec<_>>()
        };
        let names = tenants.iter().flat_map(named).collect();
        Self { tenants, names }
    }

    /// The tenant of a client, the client's number in it, and the tenant's operations.
    fn find(&self, number: u32) -> Option<(&Tenant, u32, Range<usize>)> {
        let mut left = number;
        let mut operation = 0;
        for tenant in &self.tenants {
            let end = operation + tenant.workload.operations().len();
            let clients = tenant.workload.clients(tenant.clients);
            if left < clients {
                return Some((tenant, left, operation..end));
            }
            left -= clients;
            operation = end;
        }
        None
    }
}

impl Workload for Mixed {
    fn operations(&self) -> Vec<&'static str> {
        self.names.clone()
    }

    fn statements(&self) -> Vec<String> {
        Vec::new()
    }

    fn clients(&self, _asked: u32) -> u32 {
        self.tenants.iter().map(|tenant| tenant.workload.clients(tenant.clients)).sum()
    }

    fn seat(&self, number: u32) -> Option<Seat> {
        let (tenant, number, _) = self.find(number)?;
        let mut seat = tenant.workload.seat(number).unwrap_or_else(|| Seat {
            statements: tenant.workload.statements().into(),
            connections: tenant.workload.connections(),
            database: None,
        });
        seat.database.get_or_insert_with(|| tenant.database.clone());
        Some(seat)
    }

    fn client(&self, which: Which) -> Box<dyn Client> {
        let Which { number, turn } = which;
        let (tenant, own, operations) = self.find(number).expect("as many as `clients` says");
        let share = tenant.rate.map(|rate| rate / f64::from(tenant.clients.max(1)));
        let seed = tenant.seed ^ (u64::from(number) + 1) << 40;
        Box::new(Member {
            inner: tenant.workload.client(Which { number: own, turn }),
            first_operation: operations.start,
            schedule: share
                .map(|rate| Schedule::new(Arrivals::Poisson, Profile::constant(rate), seed)),
            database: tenant.database.clone(),
        })
    }

    fn hold(&self, target: &Target) -> Result<Held, Failure> {
        let mut all = Held::default();
        let mut guards = Vec::new();
        for tenant in &self.tenants {
            let target = Target { database: tenant.database.clone(), ..target.clone() };
            let held = tenant.workload.hold(&target)?;
            all.notes.extend(held.notes.into_iter().map(|note| format!("{}: {note}", tenant.name)));
            guards.push(held.guard);
        }
        all.guard = Some(Box::new(guards));
        Ok(all)
    }

    fn findings(&self, operations: &[Operation], measured: Duration) -> Vec<Finding> {
        let mut all = Vec::new();
        let mut rest = operations;
        for tenant in &self.tenants {
            let (own, others) = rest.split_at(tenant.workload.operations().len());
            rest = others;
            all.push(summary(tenant, own, measured));
            let named = tenant.workload.findings(own, measured).into_iter();
            all.extend(named.map(|finding| Finding {
                name: format!("{}: {}", tenant.name, finding.name),
                ..finding
            }));
        }
        all
    }
}

/// What a tenant got in all.
fn summary(tenant: &Tenant, own: &[Operation], measured: Duration) -> Finding {
    let completed: u64 = own.iter().map(|operation| operation.latency.len()).sum();
    let mut latency = own.first().map(|operation| operation.latency.clone());
    if let Some(latency) = &mut latency {
        for operation in &own[1..] {
            latency.add(&operation.latency).expect("the same bounds");
        }
    }
    let at = |share| latency.as_ref().map_or(0, |all| all.value_at_quantile(share)) as f64 / 1000.0;
    let rate = completed as f64 / measured.as_secs_f64();
    Finding {
        name: format!("{}: all operations", tenant.name),
        found: format!("{rate:.1} /s, p95 {:.2} ms, p99 {:.2} ms", at(0.95), at(0.99)),
        wanted: tenant.rate.map(|rate| format!("{rate:.1} /s")).unwrap_or_default(),
        met: tenant.rate.is_none_or(|wanted| rate >= least(wanted, measured)),
    }
}

/// What a rate that is kept comes to at least: arrivals are independent, so their number in a time
/// varies by its square root.
fn least(rate: f64, measured: Duration) -> f64 {
    let count = rate * measured.as_secs_f64();
    (count * 0.98 - 3.0 * count.sqrt()) / measured.as_secs_f64()
}

/// A client of a tenant.
struct Member {
    inner: Box<dyn Client>,
    first_operation: usize,
    schedule: Option<Schedule>,
    database: String,
}

impl Client for Member {
    fn next(&mut self) -> usize {
        self.first_operation + self.inner.next()
    }

    fn decided(&self) -> String {
        self.inner.decided()
    }

    fn told(&mut self, target: &Target) {
        self.inner.told(&Target { database: self.database.clone(), ..target.clone() });
    }

    fn wait(&mut self, end: Instant) {
        self.inner.wait(end);
    }

    fn schedule(&self) -> Option<Schedule> {
        self.inner.schedule().or_else(|| self.schedule.clone())
    }

    fn connected(&mut self, sessions: &mut [Session]) -> Result<(), Failure> {
        self.inner.connected(sessions)
    }

    fn pause(&mut self) -> Duration {
        self.inner.pause()
    }

    fn perform(&mut self, sessions: &mut [Session]) -> Result<(), Failure> {
        self.inner.perform(sessions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::sysbench::{Options, Script, Sysbench};
    use crate::workload::tpcc::{self, Scale, Tpcc};

    fn mixed() -> Mixed {
        let scale = Scale { warehouses: 2, districts: 3, customers: 30, items: 100 };
        let options = tpcc::Options { scale, foreign_keys: false, think_times: false, seed: 1 };
        let tenant = |name: &str, workload, clients, rate| Tenant {
            name: name.into(),
            database: format!("lab_{name}"),
            workload,
            clients,
            rate,
            seed: 4,
        };
        let orders: Box<dyn Workload> = Box::new(Tpcc::new(options));
        let points = Box::new(Sysbench::new(Options::new(Script::PointSelect)));
        Mixed::new(vec![tenant("orders", orders, 3, None), tenant("points", points, 2, Some(50.0))])
    }

    #[test]
    fn every_client_has_its_tenants_database_statements_and_operations() {
        let mixed = mixed();
        assert_eq!(mixed.clients(100), 5);
        assert_eq!(mixed.operations()[0], "orders: new_order");
        let (operations, seat) = (mixed.operations(), |number| mixed.seat(number).expect("one"));
        assert_eq!(operations.last(), Some(&"points: oltp_point_select"));
        assert_eq!(seat(2).database.as_deref(), Some("lab_orders"));
        assert_eq!(seat(3).database.as_deref(), Some("lab_points"));
        assert!(seat(3).statements[2].contains("sbtest1"));
        assert_eq!(mixed.client(Which { number: 4, turn: 0 }).next(), operations.len() - 1);
        assert!(mixed.client(Which::default()).next() < operations.len() - 1);
        assert!(mixed.seat(5).is_none());
    }

    #[test]
    fn a_rate_is_kept_when_chance_alone_makes_it_less() {
        let least = |seconds| least(50.0, Duration::from_secs(seconds));
        assert!((38.0..39.0).contains(&least(4)), "{}", least(4));
        assert!((48.0..49.0).contains(&least(1000)), "{}", least(1000));
    }

    #[test]
    fn the_rate_of_a_tenant_is_shared_by_its_clients() {
        let mixed = mixed();
        assert!(mixed.client(Which::default()).schedule().is_none());
        let last = |number| {
            let schedule = mixed.client(Which { number, turn: 0 }).schedule().expect("one");
            schedule.take(10_000).last().expect("one").as_secs_f64()
        };
        for number in [3, 4] {
            assert!((last(number) / 400.0 - 1.0).abs() < 0.03, "10,000 of 25 a second");
        }
        assert_ne!(last(3), last(4));
    }
}
