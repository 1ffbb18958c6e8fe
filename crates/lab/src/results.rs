//! What was found, as it is kept: `run.json` of a folder of results.

use crate::account::{Figures, PerOperation, Sample};
use crate::driver::{Measured, QUANTILES};
use crate::statistics::stall::Stalls;
use crate::statistics::steady::{Trend, trend};
use crate::workload::Violation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of this form; a reader refuses others.
pub const SCHEMA: u32 = 1;

/// All runs of an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Experiment {
    /// See [`SCHEMA`].
    pub schema: u32,
    /// The words of the command line.
    pub command: Vec<String>,
    /// The workload with its parameters.
    pub workload: String,
    /// Decided everything random.
    pub seed: u64,
    /// The machine: kernel, processors, memory.
    pub machine: BTreeMap<String, String>,
    /// The servers, in the order of their letters.
    pub servers: Vec<Server>,
    /// The runs, in the order in which they ran.
    pub runs: Vec<Run>,
}

/// A server under test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// How it is called in the report.
    pub name: String,
    /// What it calls itself.
    pub version: String,
    /// Its effective variables.
    pub variables: BTreeMap<String, String>,
    /// What its data break after the runs; absent if nobody looked.
    pub violations: Option<Vec<Broken>>,
}

/// A rule that data break.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// What should hold.
    pub rule: String,
    /// How many rows break it.
    pub rows: u64,
}

impl From<&Violation> for Broken {
    fn from(violation: &Violation) -> Self {
        Self { rule: violation.rule.clone(), rows: violation.rows }
    }
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Which of the servers, from 0.
    pub server: usize,
    /// Which round of the cell, from 0.
    pub round: usize,
    /// Clients.
    pub clients: u32,
    /// Operations a second that were asked for; absent in a closed load.
    pub rate: Option<f64>,
    /// By second.
    pub seconds: Vec<Second>,
    /// By operation.
    pub operations: Vec<Operation>,
    /// Latency of all operations, in microseconds, at [`QUANTILES`].
    pub micros: [u64; 5],
    /// Errors by number and SQLSTATE.
    pub errors: Vec<(u16, String, u64)>,
    /// What each operation cost the server.
    pub server_cost: Option<Cost>,
    /// What each operation cost the driver.
    pub client_cost: Option<Cost>,
    /// Why it ended early.
    pub given_up: Option<String>,
}

/// One second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Second {
    /// Operations completed.
    pub completed: u64,
    /// Ended with an error.
    pub failed: u64,
    /// Performed again after conflicts.
    pub retried: u64,
    /// Latency in microseconds at [`QUANTILES`].
    pub micros: [u64; 5],
}

/// One operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// Completed.
    pub completed: u64,
    /// Ended with an error.
    pub failed: u64,
    /// Performed again after conflicts.
    pub retried: u64,
    /// Latency in microseconds at [`QUANTILES`].
    pub micros: [u64; 5],
    /// Service time in microseconds at [`QUANTILES`].
    pub service_micros: [u64; 5],
}

/// What an operation cost.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Processor in user mode, microseconds.
    pub user_micros: f64,
    /// Processor in the kernel, microseconds.
    pub system_micros: f64,
    /// Context switches.
    pub switches: f64,
    /// Bytes read from the device.
    pub read_bytes: f64,
    /// Bytes written to the device.
    pub written_bytes: f64,
    /// Resident memory at the end, bytes; of the process, not of an operation.
    pub resident_bytes: u64,
    /// Share of one processor that was used.
    pub cores: f64,
}

impl Cost {
    /// Between the samples of a process at the begin and the end of the measured time.
    fn between(
        samples: &[Sample],
        of: impl Fn(&Sample) -> Option<Figures>,
        operations: u64,
    ) -> Option<Self> {
        let (first, last) = (samples.first()?, samples.last()?);
        let (before, after) = (of(first)?, of(last)?);
        let each = PerOperation::between(&before, &after, operations);
        let seconds = last.seconds - first.seconds;
        Some(Self {
            user_micros: each.user_micros,
            system_micros: each.system_micros,
            switches: each.switches,
            read_bytes: each.read_bytes,
            written_bytes: each.written_bytes,
            resident_bytes: after.resident_bytes,
            cores: each.cpu_micros() * operations as f64 / 1e6 / seconds.max(1e-9),
        })
    }

    /// Processor time, microseconds.
    pub fn cpu_micros(&self) -> f64 {
        self.user_micros + self.system_micros
    }
}

impl Run {
    /// Of what the driver measured, and the account of the measured time.
    pub fn new(
        (server, round, clients, rate): (usize, usize, u32, Option<f64>),
        measured: &Measured,
        samples: &[Sample],
    ) -> Self {
        let record = &measured.record;
        let at = |latencies: &crate::driver::Latencies| {
            QUANTILES.map(
                |share| if latencies.is_empty() { 0 } else { latencies.value_at_quantile(share) },
            )
        };
        let total: u64 = record.completed_per_second().iter().sum();
        Self {
            server,
            round,
            clients,
            rate,
            seconds: record
                .seconds
                .iter()
                .map(|second| Second {
                    completed: second.completed.iter().sum(),
                    failed: second.failed,
                    retried: second.retried,
                    micros: second.micros,
                })
                .collect(),
            operations: record
                .operations
                .iter()
                .map(|operation| Operation {
                    name: operation.name.to_string(),
                    completed: operation.latency.len(),
                    failed: operation.failed,
                    retried: operation.retried,
                    micros: at(&operation.latency),
                    service_micros: at(&operation.service),
                })
                .collect(),
            micros: at(&record.latency()),
            errors: record.errors.iter().map(|((n, s), count)| (*n, s.clone(), *count)).collect(),
            server_cost: Cost::between(samples, |sample| sample.server, total),
            client_cost: Cost::between(samples, |sample| sample.client, total),
            given_up: measured.given_up.clone(),
        }
    }

    /// Operations completed by second.
    pub fn completed(&self) -> Vec<u64> {
        self.seconds.iter().map(|second| second.completed).collect()
    }

    /// Operations a second.
    pub fn throughput(&self) -> f64 {
        self.completed().iter().sum::<u64>() as f64 / self.seconds.len().max(1) as f64
    }

    /// What the series says about stalls.
    pub fn stalls(&self) -> Stalls {
        Stalls::of(&self.completed())
    }

    /// How the series moved.
    pub fn trend(&self) -> Trend {
        trend(&self.completed())
    }

    /// The driver had no processor to spare, so the figures are its own: above 70 % of one core,
    /// of which it has one.
    pub fn is_client_limited(&self) -> bool {
        self.client_cost.is_some_and(|cost| cost.cores > 0.7)
    }
}

impl Experiment {
    /// Reads what was kept; refuses what another version wrote.
    pub fn read(text: &str) -> Result<Self, String> {
        let found: Self = serde_json::from_str(text).map_err(|e| format!("run.json: {e}"))?;
        if found.schema != SCHEMA {
            return Err(format!("run.json has schema {}, this reads {SCHEMA}", found.schema));
        }
        Ok(found)
    }

    /// As it is kept.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and texts only")
    }

    /// The numbers of clients, in the order of the runs.
    pub fn client_counts(&self) -> Vec<u32> {
        let mut counts: Vec<u32> = self.runs.iter().map(|run| run.clients).collect();
        counts.dedup();
        counts
    }

    /// The runs of a server with so many clients.
    pub fn cell(&self, server: usize, clients: u32) -> Vec<&Run> {
        let wanted = |run: &&Run| run.server == server && run.clients == clients;
        self.runs.iter().filter(wanted).collect()
    }
}
