//! A run: one subject, one step, one time.

use super::{Cost, Limit};
use crate::account::{Accounts, Counters, Sample, Worn, between};
use crate::driver::{self, Gap, Measured, QUANTILES};
use crate::statistics::stall::Stalls;
use crate::statistics::steady::{Trend, trend};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was varied: runs of one step are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Clients.
    pub clients: u32,
    /// Operations a second that were asked for; absent in a closed load.
    pub rate: Option<f64>,
}

impl Step {
    /// As a title says it.
    pub fn label(&self) -> String {
        let plural = if self.clients == 1 { "" } else { "s" };
        match self.rate {
            None => format!("{} client{plural}", self.clients),
            Some(rate) => format!("{} client{plural}, {rate} operations/s asked", self.clients),
        }
    }
}

/// One run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// Which of the subjects, from 0.
    pub subject: usize,
    /// Which round of the step, from 0.
    pub round: usize,
    /// Clients.
    pub clients: u32,
    /// Operations a second that were asked for; absent in a closed load.
    pub rate: Option<f64>,
    /// How cold the server was when it began; absent for one that went on from before.
    #[serde(default)]
    pub beginning: Option<String>,
    /// What was done when.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// The seconds before the measured time, of which the last ends at 0.
    #[serde(default)]
    pub warm_up: Vec<Second>,
    /// The seconds of the measured time.
    pub seconds: Vec<Second>,
    /// Some of the operations, each one as it was.
    #[serde(default)]
    pub points: Vec<Point>,
    /// Operations completed in each tenth of a second of the measured time.
    #[serde(default)]
    pub tenths: Vec<u32>,
    /// The longest time in which none completed.
    #[serde(default)]
    pub gap: Option<Gap>,
    /// What the device took by itself, if it was asked.
    #[serde(default)]
    pub device: Option<DeviceProbe>,
    /// What the device says of its own wear, or why it says nothing; absent where nobody knows
    /// which device it is.
    #[serde(default)]
    pub wear: Option<Result<Worn, String>>,
    /// What happened besides.
    #[serde(default)]
    pub events: Vec<Event>,
    /// What processes and machine had used, about once a second.
    #[serde(default)]
    pub samples: Vec<Sample>,
    /// What the server had counted, about once a second.
    #[serde(default)]
    pub counters: Vec<(f64, Counters)>,
    /// By operation.
    pub operations: Vec<Operation>,
    /// Latency of all operations, in microseconds, at [`QUANTILES`].
    pub micros: [u64; 5],
    /// Errors by number and SQLSTATE.
    pub errors: Vec<(u16, String, u64)>,
    /// The first text of each error, by number.
    #[serde(default)]
    pub messages: BTreeMap<u16, String>,
    /// Statements sent in the measured time.
    #[serde(default)]
    pub statements: Statements,
    /// What the workload itself says of the run.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// How late the driver itself was, in microseconds at [`QUANTILES`]; absent if it never slept.
    #[serde(default)]
    pub lateness_micros: Option<[u64; 5]>,
    /// What each operation cost the server.
    pub server_cost: Option<Cost>,
    /// What each operation cost the driver.
    pub client_cost: Option<Cost>,
    /// What held operations up.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// Why it ended early.
    pub given_up: Option<String>,
}

/// A stretch of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What was done.
    pub kind: PhaseKind,
    /// Seconds since the measured time began.
    pub begin: f64,
    /// The same.
    pub end: f64,
}

/// See [`Phase`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PhaseKind {
    /// Tables were filled.
    Load,
    /// The server was left alone.
    Settle,
    /// Load that is not counted.
    WarmUp,
    /// Load that is.
    Measure,
    /// Load, or none, after that.
    CoolDown,
}

impl PhaseKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Settle => "settle",
            Self::WarmUp => "warm-up",
            Self::Measure => "measured",
            Self::CoolDown => "cool-down",
        }
    }
}

/// Something that happened during a run: a vertical mark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since the measured time began.
    pub seconds: f64,
    /// What it was.
    pub text: String,
}

impl From<&driver::Mark> for Event {
    fn from(mark: &driver::Mark) -> Self {
        Self { seconds: mark.seconds, text: mark.text.clone() }
    }
}

/// Small synced writes beside a server, on its device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceProbe {
    /// How many there were in the measured time.
    pub writes: u64,
    /// What they took: the median, 99 of 100, the longest.
    pub micros: [u64; 3],
    /// The slow ones: seconds from the begin of the measured time to their own, and what they took.
    #[serde(default)]
    pub slow: Vec<(f64, u64)>,
}

/// What a workload wants of a run: an acceptance, a rate to be kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What is looked at.
    pub name: String,
    /// What was found.
    pub found: String,
    /// What is wanted.
    pub wanted: String,
    /// Whether it was found.
    pub met: bool,
}

/// Statements by what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statements {
    /// Those that show rows.
    pub reads: u64,
    /// Those that change rows.
    pub writes: u64,
    /// BEGIN, COMMIT and all others.
    pub others: u64,
}

/// One second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Operations completed.
    pub completed: u64,
    /// The same by operation; empty where there is only one.
    #[serde(default)]
    pub by_operation: Vec<u64>,
    /// Ended with an error.
    pub failed: u64,
    /// Performed again after conflicts.
    pub retried: u64,
    /// Latency in microseconds at [`QUANTILES`].
    pub micros: [u64; 5],
    /// Connections that were opened again.
    #[serde(default)]
    pub reconnected: u64,
    /// Operations by coarse bucket of their latency, four for every doubling from 1 us on, those
    /// that have any.
    #[serde(default)]
    pub buckets: Vec<(u8, u64)>,
}

/// One operation as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// When it ended, milliseconds since the measured time began.
    pub millis: u32,
    /// Its latency.
    pub micros: u64,
}

/// One kind of operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// How often each latency was recorded, to three digits, ascending.
    #[serde(default)]
    pub latencies: Vec<(u64, u64)>,
}

fn second(recorded: &driver::Second) -> Second {
    let kinds = &recorded.completed;
    Second {
        completed: kinds.iter().sum(),
        by_operation: if kinds.len() > 1 { kinds.clone() } else { Vec::new() },
        failed: recorded.failed,
        retried: recorded.retried,
        micros: recorded.micros,
        reconnected: recorded.reconnected,
        buckets: recorded.buckets.clone(),
    }
}

impl Run {
    /// Of what the driver measured, and the account of that time.
    pub fn new(
        (subject, round, step): (usize, usize, Step),
        measured: &Measured,
        accounts: Accounts,
    ) -> Self {
        let record = &measured.record;
        let at = |latencies: &driver::Latencies| {
            QUANTILES.map(
                |share| if latencies.is_empty() { 0 } else { latencies.value_at_quantile(share) },
            )
        };
        let total: u64 = record.completed_per_second().iter().sum();
        let end = record.seconds.len() as f64;
        let warm_up: Vec<Second> = record.warm_up.iter().map(second).collect();
        let phase = |kind, begin, end| Phase { kind, begin, end };
        let mut phases = vec![phase(PhaseKind::Measure, 0.0, end)];
        if !warm_up.is_empty() {
            phases.insert(0, phase(PhaseKind::WarmUp, -(warm_up.len() as f64), 0.0));
        }
        let Accounts { samples, counters } = accounts;
        let mut server_cost = Cost::of(&samples, |sample| sample.server, end, total);
        if let Some(cost) = &mut server_cost {
            cost.add_counters(&counters, end, total);
        }
        let mut run = Self {
            subject,
            round,
            clients: step.clients,
            rate: step.rate,
            phases,
            warm_up,
            seconds: record.seconds.iter().map(second).collect(),
            points: record.points.clone(),
            tenths: record.fine.tenths.clone(),
            gap: Some(record.fine.gap),
            findings: measured.findings.clone(),
            messages: record.messages.clone(),
            statements: record.statements,
            events: measured.marks.iter().map(Event::from).collect(),
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
                    latencies: operation
                        .latency
                        .iter_recorded()
                        .map(|v| (v.value_iterated_to(), v.count_since_last_iteration()))
                        .collect(),
                })
                .collect(),
            micros: at(&record.latency()),
            errors: record.errors.iter().map(|((n, s), count)| (*n, s.clone(), *count)).collect(),
            lateness_micros: (!record.lateness.is_empty()).then(|| at(&record.lateness)),
            server_cost,
            client_cost: Cost::of(&samples, |sample| sample.client, end, total),
            given_up: measured.given_up.clone(),
            samples,
            counters,
            ..Self::default()
        };
        run.limit = Limit::of(&run);
        run
    }

    /// What was varied.
    pub fn step(&self) -> Step {
        Step { clients: self.clients, rate: self.rate }
    }

    /// Operations completed by second.
    pub fn completed(&self) -> Vec<u64> {
        self.seconds.iter().map(|second| second.completed).collect()
    }

    /// Nothing was completed in the measured time.
    pub fn is_idle(&self) -> bool {
        self.seconds.iter().all(|second| second.completed == 0)
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
        matches!(self.limit, Some(Limit::Client(_)))
    }

    /// Operations that ended with an error, and those that were performed again.
    pub fn failed_and_retried(&self) -> (u64, u64) {
        let sum = |of: fn(&Operation) -> u64| self.operations.iter().map(of).sum();
        (sum(|operation| operation.failed), sum(|operation| operation.retried))
    }

    /// The share of tries that did not complete, conflicts that were tried again included.
    pub fn abort_ratio(&self) -> f64 {
        let (failed, retried) = self.failed_and_retried();
        let completed: u64 = self.operations.iter().map(|operation| operation.completed).sum();
        (failed + retried) as f64 / (completed + failed + retried).max(1) as f64
    }

    /// The share of the clients' time in which they waited for locks, as the server counts it.
    pub fn lock_share(&self) -> Option<f64> {
        let millis =
            |(at, counters): &(f64, Counters)| Some((*at, counters.lock_wait_millis? as f64));
        let points: Vec<(f64, f64)> = self.counters.iter().filter_map(millis).collect();
        let end = self.seconds.len() as f64;
        let clients = f64::from(self.clients.max(1));
        (points.len() > 1 && end > 0.0)
            .then(|| between(&points, 0.0, end).max(0.0) / 1000.0 / end / clients)
    }

    /// The share of the machine's processors that worked for neither server nor driver; absent
    /// where that is not known.
    pub fn other_share(&self) -> Option<f64> {
        super::cost::other_share(self)
    }

    /// How often each latency was recorded, of all operations together, ascending.
    pub fn latencies(&self) -> Vec<(u64, u64)> {
        let mut all: Vec<(u64, u64)> =
            self.operations.iter().flat_map(|operation| operation.latencies.clone()).collect();
        all.sort_unstable();
        all.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_operations_come_together() {
        let operation = |latencies: &[(u64, u64)]| Operation {
            latencies: latencies.to_vec(),
            completed: 6,
            retried: 2,
            ..Operation::default()
        };
        let operations = vec![operation(&[(5, 1), (9, 2)]), operation(&[(5, 3)])];
        let run = Run { operations, ..Run::default() };
        assert_eq!(run.latencies(), [(5, 4), (9, 2)]);
        assert_eq!(run.abort_ratio(), 0.25);
    }
}
