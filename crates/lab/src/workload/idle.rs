//! Connections that are held and do nothing while others work: what each costs the server.

use super::{Client, Finding, Held, Seat, Which, Workload};
use crate::account::{Figures, server_of};
use crate::client::{Connection, Failure, Target};
use crate::driver::Operation;
use runtime::net::Address;
use runtime::sync::Mutex;
use std::time::Duration;

/// Fibers that connect at the same time.
const CONNECTING: u32 = 16;

/// A workload beside idle connections.
pub struct Idle {
    inner: Box<dyn Workload>,
    connections: u32,
    /// What those of the run that goes on cost.
    cost: Mutex<String>,
}

impl Idle {
    /// Holds so many while the workload runs.
    pub fn new(inner: Box<dyn Workload>, connections: u32) -> Self {
        Self { inner, connections, cost: Mutex::default() }
    }

    fn open(&self, target: &Target) -> Result<Vec<Connection>, Failure> {
        let share = |part: u32| {
            let (target, count) = (target.clone(), share_of(self.connections, part));
            runtime::spawn("idle", move || {
                (0..count).map(|_| Connection::open(&target)).collect::<Result<Vec<_>, _>>()
            })
        };
        let mut held = Vec::new();
        for fiber in (0..CONNECTING).map(share).collect::<Vec<_>>() {
            let opened = fiber.join().map_err(|panic| std::io::Error::other(panic.to_string()))?;
            held.extend(opened?);
        }
        Ok(held)
    }
}

/// How many of all one of [`CONNECTING`] opens.
fn share_of(connections: u32, part: u32) -> u32 {
    connections / CONNECTING + u32::from(part < connections % CONNECTING)
}

/// The server's process, if it is here.
fn figures(target: &Target) -> Option<Figures> {
    match &target.address {
        Address::Tcp(address) => Figures::of(server_of(address)?),
        Address::Unix(_) => None,
    }
}

/// What so many connections cost between two looks.
fn cost(connections: u32, before: &Figures, after: &Figures) -> String {
    let count = f64::from(connections.max(1));
    let bytes = after.resident_bytes.saturating_sub(before.resident_bytes) as f64;
    let threads = after.threads.saturating_sub(before.threads) as f64;
    format!(
        "{connections}: {:.1} KiB of the server's memory and {:.2} threads each ({:.1} MiB and \
         {threads} threads in all)",
        bytes / count / 1024.0,
        threads / count,
        bytes / 1024.0 / 1024.0
    )
}

impl Workload for Idle {
    fn operations(&self) -> Vec<&'static str> {
        self.inner.operations()
    }

    fn statements(&self) -> Vec<String> {
        self.inner.statements()
    }

    fn connections(&self) -> usize {
        self.inner.connections()
    }

    fn clients(&self, asked: u32) -> u32 {
        self.inner.clients(asked)
    }

    fn seat(&self, number: u32) -> Option<Seat> {
        self.inner.seat(number)
    }

    fn client(&self, which: Which) -> Box<dyn Client> {
        self.inner.client(which)
    }

    fn hold(&self, target: &Target) -> Result<Held, Failure> {
        let Held { guard, notes } = self.inner.hold(target)?;
        let before = figures(target);
        let held = self.open(target)?;
        *self.cost.lock() = match (before, figures(target)) {
            (Some(before), Some(after)) => cost(self.connections, &before, &after),
            _ => format!("{}: the server's process is not to be seen from here", self.connections),
        };
        Ok(Held { guard: Some(Box::new((guard, held))), notes })
    }

    fn findings(&self, operations: &[Operation], measured: Duration) -> Vec<Finding> {
        let mut found = vec![Finding::figure("connections held idle", self.cost.lock().clone())];
        found.extend(self.inner.findings(operations, measured));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_connections_are_shared_out() {
        for connections in [0, 1, 15, 16, 17, 4000] {
            let sum: u32 = (0..CONNECTING).map(|part| share_of(connections, part)).sum();
            assert_eq!(sum, connections);
        }
    }

    #[test]
    fn the_cost_is_each_connections_own() {
        let before = Figures { resident_bytes: 100 << 20, threads: 10, ..Figures::default() };
        let after = Figures { resident_bytes: 110 << 20, threads: 1010, ..before };
        let told = cost(1000, &before, &after);
        assert!(told.contains("10.2 KiB") && told.contains("1.00 threads each"), "{told}");
    }
}
