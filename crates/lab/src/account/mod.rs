//! What a run used: processors, switches, reads and writes, memory, space; by second, of the
//! server, of the driver and of the machine.
//!
//! 1. A thread of its own looks, so that looking does not delay clients. Only what the server
//!    itself counts is asked over a connection, by a fiber, once in the same time.
//! 2. Figures are the kernel's (`proc(5)`, `Documentation/block/stat.rst`); those of a process that
//!    is not ours or not here are absent, never 0.
//! 3. Space is what is allocated (`st_blocks`), not what files say of their length: files may have
//!    holes.
//! 4. Figures are sums since a start. What was used between two moments is their difference,
//!    between two looks by a straight line ([`between`]).

mod counters;
mod machine;
mod probe;
mod process;
mod space;
mod wear;

pub use counters::Counters;
pub use machine::{Device, Machine, device_of};
pub use probe::Probe;
pub use process::{Figures, server_of};
pub use space::{FileKind, FileSpace, Space, SpaceAt, TableSpace, data_of, space, space_of};
pub use wear::{Wear, Wearing, Worn};

use crate::client::{Connection, Target};
use runtime::Instant;
use runtime::sync::Mutex;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is looked at.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The server's process, if it is on this machine.
    pub server: Option<u32>,
    /// Its data directory, if it is readable here.
    pub data: Option<PathBuf>,
    /// Where it is asked what it has counted.
    pub target: Option<Target>,
}

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Since the measured time began.
    pub seconds: f64,
    /// The server's figures since its start.
    pub server: Option<Figures>,
    /// The driver's.
    pub client: Option<Figures>,
    /// The machine's.
    pub machine: Option<Machine>,
    /// Those of the device with the data directory.
    pub device: Option<Device>,
    /// Bytes allocated below the data directory.
    pub allocated_bytes: Option<u64>,
    /// What its files say of their length.
    pub apparent_bytes: Option<u64>,
}

/// What an account has found.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    /// In the order of time.
    pub samples: Vec<Sample>,
    /// What the server had counted at which second.
    pub counters: Vec<(f64, Counters)>,
}

/// A running account.
pub struct Account {
    begin: Instant,
    stop: Sender<()>,
    thread: JoinHandle<Vec<Sample>>,
    asked: Option<Asked>,
}

/// The fiber that asks the server.
struct Asked {
    is_over: Arc<Mutex<bool>>,
    fiber: runtime::JoinHandle<Vec<(Instant, Counters)>>,
}

impl Account {
    /// Looks now and then once in `every`. Call it in a fiber.
    pub fn begin(subject: Subject, every: Duration) -> Self {
        let (stop, stopped) = channel();
        let asked = subject.target.clone().map(|target| Asked::begin(target, every));
        let begin = runtime::now();
        let clock = std::time::Instant::now();
        let mut samples = vec![look(&subject, Duration::ZERO)];
        let thread = std::thread::spawn(move || {
            loop {
                let next = every * samples.len() as u32;
                let wait = next.saturating_sub(clock.elapsed());
                let is_over = stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
                samples.push(look(&subject, clock.elapsed()));
                if is_over {
                    return samples;
                }
            }
        });
        Self { begin, stop, thread, asked }
    }

    /// Looks a last time; all samples, with times since `origin`.
    pub fn end(self, origin: Instant) -> Accounts {
        // The thread ends only by this.
        let _received = self.stop.send(());
        let counters = self.asked.map(Asked::end).unwrap_or_default();
        let mut samples = self.thread.join().unwrap_or_default();
        let shift = seconds_from(origin, self.begin);
        samples.iter_mut().for_each(|sample| sample.seconds += shift);
        let relative = |(at, counters)| (seconds_from(origin, at), counters);
        Accounts { samples, counters: counters.into_iter().map(relative).collect() }
    }
}

impl Asked {
    fn begin(target: Target, every: Duration) -> Self {
        let is_over = Arc::new(Mutex::new(false));
        let told = is_over.clone();
        let fiber = runtime::spawn("counters", move || {
            let mut found = Vec::new();
            // A server that does not tell is measured all the same.
            let Ok(mut connection) = Connection::open(&target) else { return found };
            let begin = runtime::now();
            loop {
                let was_last = *told.lock();
                let Ok(counters) = Counters::of(&mut connection) else { return found };
                found.push((runtime::now(), counters));
                if was_last {
                    return found;
                }
                let next = begin + every * found.len() as u32;
                let step = Duration::from_millis(50);
                while runtime::now() < next && !*told.lock() {
                    runtime::sleep(step.min(next - runtime::now()));
                }
            }
        });
        Self { is_over, fiber }
    }

    fn end(self) -> Vec<(Instant, Counters)> {
        *self.is_over.lock() = true;
        self.fiber.join().unwrap_or_default()
    }
}

/// Seconds from one moment to another, which may be before it.
fn seconds_from(origin: Instant, at: Instant) -> f64 {
    if at >= origin { (at - origin).as_secs_f64() } else { -(origin - at).as_secs_f64() }
}

fn look(subject: &Subject, elapsed: Duration) -> Sample {
    let space = subject.data.as_deref().map(space);
    Sample {
        seconds: elapsed.as_secs_f64(),
        server: subject.server.and_then(Figures::of),
        client: Figures::of(std::process::id()),
        machine: Machine::now(),
        device: subject.data.as_deref().and_then(device_of),
        allocated_bytes: space.as_ref().map(|space| space.allocated_bytes),
        apparent_bytes: space.as_ref().map(|space| space.apparent_bytes),
    }
}

/// How much a sum grew from one second to another; `points` are seconds and sums in the order of
/// time. Before the first and after the last of them it did not grow.
pub fn between(points: &[(f64, f64)], begin: f64, end: f64) -> f64 {
    at(points, end) - at(points, begin)
}

fn at(points: &[(f64, f64)], second: f64) -> f64 {
    let after = points.partition_point(|point| point.0 < second);
    match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (Some(before), Some(next)) => {
            let share = (second - before.0) / (next.0 - before.0).max(1e-9);
            before.1 + (next.1 - before.1) * share
        }
        (Some(before), None) => before.1,
        (None, Some(next)) => next.1,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_a_fiber<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
        let config = runtime::Config { workers: 1, ..runtime::Config::default() };
        runtime::Runtime::start(config).expect("threads").run(body)
    }

    #[test]
    fn work_between_two_looks_is_seen() {
        let accounts = in_a_fiber(|| {
            let used = || {
                let figures = Figures::of(std::process::id()).expect("us");
                figures.user_micros + figures.system_micros
            };
            let data = Some(std::env::temp_dir());
            let subject = Subject { data, ..Subject::default() };
            let account = Account::begin(subject, Duration::from_millis(20));
            let before = used();
            let mut sum = 0u64;
            while used() < before + 50_000 {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
            }
            let now = runtime::now();
            account.end(now)
        });
        let samples = &accounts.samples;
        let (first, last) = (samples[0], samples[samples.len() - 1]);
        assert!(samples.len() > 1 && first.seconds < 0.0 && last.seconds >= 0.0);
        assert_eq!((last.server, accounts.counters.len()), (None, 0));
        let cpu = |sample: &Sample| sample.client.expect("us").cpu_micros() as f64;
        let points: Vec<_> = samples.iter().map(|s| (s.seconds, cpu(s))).collect();
        assert!(between(&points, first.seconds, last.seconds) > 0.0);
        let client = last.client.expect("us");
        assert!(client.resident_bytes > 1 << 20 && client.open_files > 2);
        let machine = |sample: &Sample| sample.machine.expect("/proc/stat").busy_micros;
        assert!(machine(&last) >= machine(&first));
        assert!(last.allocated_bytes.is_some());
    }

    #[test]
    fn between_looks_a_straight_line() {
        let points = [(-1.0, 100.0), (1.0, 300.0), (2.0, 300.0)];
        assert_eq!(between(&points, 0.0, 1.5), 100.0);
        assert_eq!(between(&points, -5.0, 9.0), 200.0);
        assert_eq!(between(&[], 0.0, 1.0), 0.0);
    }
}
