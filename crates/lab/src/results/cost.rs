//! What operations cost, and what held them up.

use super::Run;
use crate::account::{Counters, Figures, Sample, between};
use serde::{Deserialize, Serialize};

/// What an operation cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Open files at the end; of the process.
    #[serde(default)]
    pub open_files: u64,
    /// Processors that were busy with it.
    pub cores: f64,
    /// Calls that make written data durable, as the server counts them.
    #[serde(default)]
    pub syncs: Option<f64>,
    /// Bytes of its log, as the server counts them.
    #[serde(default)]
    pub log_bytes: Option<f64>,
    /// Bytes over the network in both directions, as the server counts them.
    #[serde(default)]
    pub network_bytes: Option<f64>,
    /// Rows inserted, updated and deleted, as the server counts them.
    #[serde(default)]
    pub rows_changed: Option<f64>,
}

impl Cost {
    /// Of what a process used from second 0 to `end` for so many operations.
    pub(super) fn of(
        samples: &[Sample],
        figures: impl Fn(&Sample) -> Option<Figures>,
        end: f64,
        operations: u64,
    ) -> Option<Self> {
        let known: Vec<(f64, Figures)> =
            samples.iter().filter_map(|s| Some((s.seconds, figures(s)?))).collect();
        let last = known.last()?.1;
        let each = |of: fn(&Figures) -> u64| {
            let points: Vec<(f64, f64)> = known.iter().map(|(at, f)| (*at, of(f) as f64)).collect();
            between(&points, 0.0, end).max(0.0) / operations.max(1) as f64
        };
        let (user_micros, system_micros) = (each(|f| f.user_micros), each(|f| f.system_micros));
        Some(Self {
            user_micros,
            system_micros,
            switches: each(|f| f.switches),
            read_bytes: each(|f| f.read_bytes),
            written_bytes: each(|f| f.written_bytes),
            resident_bytes: last.resident_bytes,
            open_files: last.open_files,
            cores: (user_micros + system_micros) * operations.max(1) as f64 / 1e6 / end.max(1e-9),
            ..Self::default()
        })
    }

    /// Adds what the server itself counted.
    pub(super) fn add_counters(&mut self, counters: &[(f64, Counters)], end: f64, operations: u64) {
        let each = |of: fn(&Counters) -> Option<u64>| {
            let points: Vec<(f64, f64)> =
                counters.iter().filter_map(|(at, c)| Some((*at, of(c)? as f64))).collect();
            (points.len() > 1)
                .then(|| between(&points, 0.0, end).max(0.0) / operations.max(1) as f64)
        };
        self.syncs = each(|c| c.syncs);
        self.log_bytes = each(|c| c.log_bytes);
        self.network_bytes = each(|c| Some(c.received_bytes? + c.sent_bytes?));
        self.rows_changed = each(|c| c.rows_changed);
    }

    /// Processor time, microseconds.
    pub fn cpu_micros(&self) -> f64 {
        self.user_micros + self.system_micros
    }
}

/// What held operations up most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// The driver: the figures are its own.
    Client(String),
    /// Processors, of the server or of the machine.
    Processor(String),
    /// The device.
    Disk(String),
    /// Waits for rows that others have locked.
    Locks(String),
    /// The load that was asked for; there was more to be had.
    Asked(String),
    /// Processors that other work of the machine used.
    Others(String),
    /// None of these: each client waited for its answers.
    Answers(String),
}

/// A driver with one core, above this share of it, has none to spare.
const CLIENT_CORES_MAX: f64 = 0.7;
/// Above these shares something is used up.
const MACHINE_MAX: f64 = 0.92;
const DISK_MAX: f64 = 0.85;
const LOCKS_MAX: f64 = 0.3;
/// Other work with more of the machine's processors than this holds things up by itself.
const OTHERS_MAX: f64 = 0.3;
/// Below this share of what was asked, a server did not keep up.
const KEPT_UP: f64 = 0.98;

impl Limit {
    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Client(_) => "client",
            Self::Processor(_) => "CPU",
            Self::Disk(_) => "disk",
            Self::Locks(_) => "locks",
            Self::Asked(_) => "asked rate",
            Self::Others(_) => "other work on the machine",
            Self::Answers(_) => "latency",
        }
    }

    /// The figures that say so.
    pub fn why(&self) -> &str {
        match self {
            Self::Client(why)
            | Self::Processor(why)
            | Self::Disk(why)
            | Self::Locks(why)
            | Self::Asked(why)
            | Self::Others(why)
            | Self::Answers(why) => why,
        }
    }

    /// Of a run; absent where nothing was accounted.
    pub(super) fn of(run: &Run) -> Option<Self> {
        let client = run.client_cost?;
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        if client.cores > CLIENT_CORES_MAX {
            return Some(Self::Client(format!(
                "the driver used {} of the one processor it has",
                percent(client.cores)
            )));
        }
        if let Some(rate) = run.rate
            && run.throughput() >= rate * KEPT_UP
        {
            return Some(Self::Asked(format!("{rate} operations/s were asked for, and done")));
        }
        let end = run.seconds.len() as f64;
        let machine = machine_busy(&run.samples, end);
        let device = device_busy(&run.samples, end);
        let locks = run.lock_share();
        if let Some(share) = locks.filter(|share| *share > LOCKS_MAX) {
            return Some(Self::Locks(format!(
                "clients waited for locks {} of their time",
                percent(share)
            )));
        }
        if let Some(busy) = machine.filter(|busy| *busy > MACHINE_MAX) {
            if let Some(share) = run.other_share().filter(|share| *share > OTHERS_MAX) {
                return Some(Self::Others(format!(
                    "processes that belong to neither server nor driver used {} of the \
                     processors, of which the machine had none to spare",
                    percent(share)
                )));
            }
            let server =
                run.server_cost.map(|cost| format!("{:.2} of them by the server, ", cost.cores));
            return Some(Self::Processor(format!(
                "the processors of the machine were busy {} of the time, {}{:.2} by the driver",
                percent(busy),
                server.unwrap_or_default(),
                client.cores
            )));
        }
        if let Some(busy) = device.filter(|busy| *busy > DISK_MAX) {
            return Some(Self::Disk(format!("its device was busy {} of the time", percent(busy))));
        }
        let mut told = vec![format!("driver {} of a processor", percent(client.cores))];
        told.extend(machine.map(|busy| format!("machine {} busy", percent(busy))));
        told.extend(device.map(|busy| format!("device {} busy", percent(busy))));
        told.extend(locks.map(|share| format!("locks {}", percent(share))));
        Some(Self::Answers(format!("nothing is used up: {}", told.join(", "))))
    }
}

/// The share of the machine's processors that was busy with something else than server and driver;
/// absent where the server is not on this machine.
pub(super) fn other_share(run: &Run) -> Option<f64> {
    let (server, client) = (run.server_cost?, run.client_cost?);
    let (busy, all) = machine_micros(&run.samples, run.seconds.len() as f64)?;
    let used = (server.cores + client.cores) * run.seconds.len() as f64 * 1e6;
    Some(((busy - used) / all).max(0.0))
}

/// The share of the machine's processors that was busy.
fn machine_busy(samples: &[Sample], end: f64) -> Option<f64> {
    machine_micros(samples, end).map(|(busy, all)| busy / all)
}

/// Time of the machine's processors: busy, and all of it.
fn machine_micros(samples: &[Sample], end: f64) -> Option<(f64, f64)> {
    let known: Vec<_> = samples.iter().filter_map(|s| Some((s.seconds, s.machine?))).collect();
    let sum = |of: fn(&crate::account::Machine) -> u64| {
        let points: Vec<_> = known.iter().map(|(at, m)| (*at, of(m) as f64)).collect();
        between(&points, 0.0, end)
    };
    let (busy, idle) = (sum(|m| m.busy_micros), sum(|m| m.idle_micros));
    (known.len() > 1 && busy + idle > 0.0).then_some((busy, busy + idle))
}

/// The share of the time in which the device had something to do.
fn device_busy(samples: &[Sample], end: f64) -> Option<f64> {
    let points: Vec<_> =
        samples.iter().filter_map(|s| Some((s.seconds, s.device?.busy_millis as f64))).collect();
    (points.len() > 1 && end > 0.0).then(|| between(&points, 0.0, end) / 1000.0 / end)
}
