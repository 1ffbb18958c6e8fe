//! Runs in an order that lets servers be compared.
//!
//! 1. With two servers a round is A B B A, the next B A A B: what drifts meets both.
//! 2. All runs of a cell have the same seed: the servers are asked the same.
//! 3. What was measured is kept when a run fails: the report says where it ended.

use crate::account::{Account, Subject, server_of};
use crate::client::{Connection, Failure, Target};
use crate::driver::{self, Load, Plan};
use crate::results::{Experiment, Run, SCHEMA, Server};
use crate::workload::Workload;
use runtime::net::Address;
use std::collections::BTreeMap;
use std::time::Duration;

/// Samples of the measured time are taken once a second.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// What is to be run.
pub struct Design {
    /// The words of the command line.
    pub command: Vec<String>,
    /// The workload with its parameters, for the report.
    pub description: String,
    /// Names and places of the servers: one, or two to be compared.
    pub servers: Vec<(String, Target)>,
    /// Numbers of clients.
    pub clients: Vec<u32>,
    /// Rounds of each cell; two servers run twice in each.
    pub rounds: usize,
    /// Everything but the target and the number of clients.
    pub plan: Plan,
}

/// A server as it is now.
pub fn describe(name: &str, target: &Target) -> Result<Server, Failure> {
    let mut connection = Connection::open(target)?;
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
    Ok(Server { name: name.to_string(), version, variables, violations: None })
}

/// The order of the runs of a round.
fn order(servers: usize, round: usize) -> Vec<usize> {
    let first = round % servers;
    match servers {
        2 => vec![first, 1 - first, 1 - first, first],
        _ => (0..servers).collect(),
    }
}

/// Runs everything; `report` is told of every run that ended.
pub fn run(
    workload: &dyn Workload,
    design: &Design,
    mut report: impl FnMut(&Experiment, &Run),
) -> Result<Experiment, Failure> {
    let servers: Result<Vec<Server>, Failure> =
        design.servers.iter().map(|(name, target)| describe(name, target)).collect();
    let mut experiment = Experiment {
        schema: SCHEMA,
        command: design.command.clone(),
        workload: design.description.clone(),
        seed: design.plan.seed,
        machine: machine(),
        servers: servers?,
        runs: Vec::new(),
    };
    for &clients in &design.clients {
        for round in 0..design.rounds {
            for server in order(design.servers.len(), round) {
                let run = one(workload, design, server, round, clients)?;
                report(&experiment, &run);
                experiment.runs.push(run);
            }
        }
    }
    Ok(experiment)
}

fn one(
    workload: &dyn Workload,
    design: &Design,
    server: usize,
    round: usize,
    clients: u32,
) -> Result<Run, Failure> {
    let target = design.servers[server].1.clone();
    let server_id = match &target.address {
        Address::Tcp(address) => server_of(address),
        Address::Unix(_) => None,
    };
    let plan = Plan { target, clients, ..design.plan.clone() };
    let rate = match plan.load {
        Load::Closed => None,
        Load::Open { rate_per_second, .. } => Some(rate_per_second),
    };
    let warm_up = plan.warm_up;
    // The account is of the measured time alone.
    let account = runtime::spawn("account", move || {
        runtime::sleep(warm_up);
        Account::begin(Subject { server: server_id, data: None }, SAMPLE_EVERY)
    });
    let measured = driver::run(workload, plan);
    let samples = account.join().map(Account::end).unwrap_or_default();
    Ok(Run::new((server, round, clients, rate), &measured?, &samples))
}

/// Kernel, processors and memory.
fn machine() -> BTreeMap<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut found = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| {
        found.extend(value.filter(|v| !v.is_empty()).map(|value| (name.to_string(), value)));
    };
    put("kernel", Some(read("/proc/sys/kernel/osrelease").trim().to_string()));
    let processors = read("/proc/cpuinfo");
    let model =
        processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    put("processor", model.map(|(_, name)| name.to_string()));
    let cores = std::thread::available_parallelism().ok();
    put("cores", cores.map(|count| count.to_string()));
    let memory = read("/proc/meminfo");
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    put("memory", total.map(|text| text.trim().to_string()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_alternate() {
        assert_eq!(order(2, 0), [0, 1, 1, 0]);
        assert_eq!(order(2, 1), [1, 0, 0, 1]);
        assert_eq!(order(1, 3), [0]);
    }
}
