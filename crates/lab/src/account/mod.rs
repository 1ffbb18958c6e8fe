//! What a run used: processors, switches, reads and writes, memory, space; by second, of the
//! server and of the driver.
//!
//! 1. A thread of its own looks, so that looking does not delay clients.
//! 2. Figures are the kernel's (`proc(5)`); those of a process that is not ours or not here are
//!    absent, never 0.
//! 3. Space is what is allocated (`st_blocks`), not what files say of their length: files may have
//!    holes.

mod process;
mod space;

pub use process::{Figures, server_of};
pub use space::{Space, space};

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What is looked at.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The server's process, if it is on this machine.
    pub server: Option<u32>,
    /// Its data directory.
    pub data: Option<PathBuf>,
}

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Since the first look.
    pub seconds: f64,
    /// The server's figures since its start.
    pub server: Option<Figures>,
    /// The driver's.
    pub client: Option<Figures>,
    /// Bytes allocated below the data directory.
    pub allocated_bytes: Option<u64>,
}

/// A running account.
pub struct Account {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Account {
    /// Looks now and then once in `every`.
    pub fn begin(subject: Subject, every: Duration) -> Self {
        let (stop, stopped) = channel();
        let begin = Instant::now();
        let mut samples = vec![look(&subject, Duration::ZERO)];
        let thread = std::thread::spawn(move || {
            loop {
                let next = every * samples.len() as u32;
                let wait = next.saturating_sub(begin.elapsed());
                let is_over = stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
                samples.push(look(&subject, begin.elapsed()));
                if is_over {
                    return samples;
                }
            }
        });
        Self { stop, thread }
    }

    /// Looks a last time; all samples.
    pub fn end(self) -> Vec<Sample> {
        // The thread ends only by this.
        let _received = self.stop.send(());
        self.thread.join().unwrap_or_default()
    }
}

fn look(subject: &Subject, elapsed: Duration) -> Sample {
    Sample {
        seconds: elapsed.as_secs_f64(),
        server: subject.server.and_then(Figures::of),
        client: Figures::of(std::process::id()),
        allocated_bytes: subject.data.as_deref().map(|folder| space(folder).allocated_bytes),
    }
}

/// What one operation cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PerOperation {
    /// Microseconds of processor in user mode.
    pub user_micros: f64,
    /// Microseconds of processor in the kernel.
    pub system_micros: f64,
    /// Context switches, of either kind.
    pub switches: f64,
    /// Bytes read from the device.
    pub read_bytes: f64,
    /// Bytes written to the device.
    pub written_bytes: f64,
}

impl PerOperation {
    /// Of what was used between two moments by so many operations.
    pub fn between(before: &Figures, after: &Figures, operations: u64) -> Self {
        let each = |after: u64, before: u64| {
            after.saturating_sub(before) as f64 / operations.max(1) as f64
        };
        Self {
            user_micros: each(after.user_micros, before.user_micros),
            system_micros: each(after.system_micros, before.system_micros),
            switches: each(after.switches, before.switches),
            read_bytes: each(after.read_bytes, before.read_bytes),
            written_bytes: each(after.written_bytes, before.written_bytes),
        }
    }

    /// Microseconds of processor.
    pub fn cpu_micros(&self) -> f64 {
        self.user_micros + self.system_micros
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_between_two_looks_is_seen() {
        let used = || {
            let figures = Figures::of(std::process::id()).expect("us");
            figures.user_micros + figures.system_micros
        };
        let account = Account::begin(Subject::default(), Duration::from_millis(20));
        let before = used();
        let mut sum = 0u64;
        while used() < before + 50_000 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        let samples = account.end();
        let (first, last) = (samples[0], samples[samples.len() - 1]);
        assert!(samples.len() > 1 && last.seconds > first.seconds);
        assert_eq!((last.server, last.allocated_bytes), (None, None));
        let (before, after) = (first.client.expect("us"), last.client.expect("us"));
        let used = PerOperation::between(&before, &after, 1);
        assert!(used.cpu_micros() > 0.0, "{used:?}");
        assert!(after.resident_bytes > 1 << 20);
    }
}
