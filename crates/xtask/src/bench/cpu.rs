//! CPU time of processes and of the whole machine, from `/proc`.

use std::time::Instant;

/// A tick of the kernel's accounts, in microseconds.
const TICK_MICROS: f64 = 10_000.0;

/// CPU time in microseconds.
#[derive(Clone, Copy, Default)]
pub struct Cpu {
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

impl Cpu {
    /// Of a process so far.
    pub fn of(id: u32) -> Result<Self, String> {
        let path = format!("/proc/{id}/stat");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok());
        let (user, system) = (ticks(11).unwrap_or(0.0), ticks(12).unwrap_or(0.0));
        Ok(Self { user: user * TICK_MICROS, system: system * TICK_MICROS })
    }

    /// Both.
    pub fn total(&self) -> f64 {
        self.user + self.system
    }

    fn since(&self, before: &Self) -> Self {
        Self { user: self.user - before.user, system: self.system - before.system }
    }
}

/// CPU time of everything on the machine, time stolen by other machines included.
fn machine() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/stat").map_err(|e| format!("/proc/stat: {e}"))?;
    let line = text.lines().next().unwrap_or_default();
    let fields: Vec<f64> =
        line.split_whitespace().skip(1).take(8).filter_map(|f| f.parse().ok()).collect();
    let idle: f64 = fields.iter().skip(3).take(2).sum();
    Ok((fields.iter().sum::<f64>() - idle) * TICK_MICROS)
}

/// A moment of a run.
pub struct Sample {
    at: Instant,
    server: Cpu,
    client: Cpu,
    machine: f64,
}

/// What was used between two moments.
pub struct Used {
    /// By the server.
    pub server: Cpu,
    /// By the client.
    pub client: Cpu,
    /// By everything but the server and the client, in percent of one core.
    pub others_percent: f64,
    /// Time that passed.
    pub seconds: f64,
}

impl Sample {
    /// Now.
    pub fn take(server: u32, client: u32) -> Result<Self, String> {
        let (server, client) = (Cpu::of(server)?, Cpu::of(client)?);
        Ok(Self { at: Instant::now(), server, client, machine: machine()? })
    }

    /// What was used since `before`.
    pub fn since(&self, before: &Self) -> Used {
        let server = self.server.since(&before.server);
        let client = self.client.since(&before.client);
        let seconds = (self.at - before.at).as_secs_f64();
        let others = self.machine - before.machine - server.total() - client.total();
        Used { server, client, others_percent: others.max(0.0) / seconds / 10_000.0, seconds }
    }
}

/// Resident memory of a process in kB.
pub fn resident_kb(id: u32) -> Result<f64, String> {
    let path = format!("/proc/{id}/status");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("{path} has no VmRSS"))
}
