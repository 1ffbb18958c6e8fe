//! How many bytes of pages may be on their way to the device at a time, so that pages never keep
//! commits waiting.
//!
//! The device serves the log and the pages from one queue. How long a synced write of the log takes
//! tells how long that queue is; the window is narrowed at once when it takes too long, and widened
//! step by step while somebody waits for it (additive increase, multiplicative decrease).
//!
//! 1. Too long is more than twice what the log took at best of late ([`BASE_PERIODS`] periods), and
//!    more than [`SLACK`] longer: the best of late is what the device does with little else to do.
//! 2. The window never closes: at least [`BYTES_MIN`] are on their way, more when pages must go
//!    (`urgency`, from 0 to 1): commits that wait for the log to be cut off would wait longer.
//! 3. A write larger than the window goes alone.

use runtime::WaitClass;
use runtime::sync::{Mutex, WaitQueue};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Bounds of the window.
const BYTES_MIN: u64 = 256 << 10;
const BYTES_MAX: u64 = 8 << 20;
/// What it is widened by in a period.
const STEP_BYTES: u64 = 128 << 10;
/// A group is handed to the device in pieces of at most this part of the window.
const PIECES_IN_WINDOW: u64 = 4;
const PIECE_BYTES_MIN: u64 = 64 << 10;
/// How often the window changes.
const PERIOD: Duration = Duration::from_millis(100);
/// Fewer writes of the log in a period say nothing.
const WRITES_MIN: u64 = 4;
/// Periods in which the best is looked for.
const BASE_PERIODS: usize = 300;
/// Invariant 1.
const SLACK: Duration = Duration::from_micros(300);

/// Bytes on their way, and how many there may be.
#[derive(Debug)]
pub(crate) struct WriteWindow {
    limit: AtomicU64,
    in_flight: AtomicU64,
    waiters: WaitQueue,
    /// Somebody has waited in this period.
    was_short: AtomicBool,
    latency: Mutex<Latency>,
}

/// What the log's writes took.
#[derive(Debug, Default)]
struct Latency {
    since: Duration,
    /// Writes and nanoseconds at the last look.
    seen: (u64, u64),
    /// Means of the last periods, nanoseconds.
    means: Vec<u64>,
    next: usize,
}

/// A write on its way.
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    window: &'a WriteWindow,
    bytes: u64,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.window.in_flight.fetch_sub(self.bytes, Ordering::SeqCst);
        self.window.waiters.wake_one();
    }
}

impl WriteWindow {
    pub(crate) fn new() -> WriteWindow {
        WriteWindow {
            limit: AtomicU64::new(BYTES_MAX / 4),
            in_flight: AtomicU64::new(0),
            waiters: WaitQueue::new(),
            was_short: AtomicBool::new(false),
            latency: Mutex::default(),
        }
    }

    /// Bytes that may be on their way.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// The longest piece in which a group should be written now, a multiple of 4 KiB.
    pub(crate) fn piece_bytes(&self) -> usize {
        let piece = (self.limit_bytes() / PIECES_IN_WINDOW).max(PIECE_BYTES_MIN);
        piece as usize / 4096 * 4096
    }

    /// Waits until so many bytes may go. Parks.
    pub(crate) fn enter(&self, bytes: usize) -> InFlight<'_> {
        let bytes = bytes as u64;
        if !self.try_enter(bytes) {
            self.was_short.store(true, Ordering::Relaxed);
            let class = WaitClass::FileWrite;
            self.waiters.wait_until_uncancellable(class, None, || self.try_enter(bytes));
        }
        InFlight { window: self, bytes }
    }

    /// Invariant 3.
    fn try_enter(&self, bytes: u64) -> bool {
        let fits =
            |now: u64| (now == 0 || now + bytes <= self.limit_bytes()).then_some(now + bytes);
        self.in_flight.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).is_ok()
    }

    /// Changes the window by what the log's synced writes took since the last call: `writes` and
    /// `nanos` are sums since the start. Called every few milliseconds.
    pub(crate) fn adapt(&self, passed: Duration, (writes, nanos): (u64, u64), urgency: f64) {
        let mut latency = self.latency.lock();
        latency.since += passed;
        if latency.since < PERIOD {
            return;
        }
        latency.since = Duration::ZERO;
        let (seen_writes, seen_nanos) = std::mem::replace(&mut latency.seen, (writes, nanos));
        let count = writes.saturating_sub(seen_writes);
        let mean = (count >= WRITES_MIN).then(|| nanos.saturating_sub(seen_nanos) / count);
        let is_slow = mean.is_some_and(|mean| latency.is_slow(mean));
        mean.into_iter().for_each(|mean| latency.keep(mean));
        drop(latency);
        let least = BYTES_MIN + ((BYTES_MAX - BYTES_MIN) as f64 * urgency.clamp(0.0, 1.0)) as u64;
        let was_short = self.was_short.swap(false, Ordering::Relaxed);
        let limit = match self.limit_bytes() {
            limit if is_slow => limit * 7 / 10,
            limit if was_short => limit + STEP_BYTES,
            limit => limit,
        };
        self.limit.store(limit.clamp(least, BYTES_MAX), Ordering::Relaxed);
        if was_short {
            self.waiters.wake_all();
        }
    }
}

impl Latency {
    /// Invariant 1.
    fn is_slow(&self, mean: u64) -> bool {
        let best = self.means.iter().copied().min();
        best.is_some_and(|best| mean > 2 * best && mean > best + SLACK.as_nanos() as u64)
    }

    fn keep(&mut self, mean: u64) {
        if self.means.len() < BASE_PERIODS {
            self.means.push(mean);
        } else {
            let next = self.next % BASE_PERIODS;
            self.means[next] = mean;
            self.next = next + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A period in which each of 100 writes of the log took so many microseconds.
    fn period(window: &WriteWindow, sums: &mut (u64, u64), micros: u64, urgency: f64) {
        sums.0 += 100;
        sums.1 += 100 * micros * 1000;
        window.adapt(PERIOD, *sums, urgency);
    }

    #[test]
    fn a_log_that_waits_narrows_the_window_and_widening_takes_its_time() {
        let (window, mut sums) = (WriteWindow::new(), (0, 0));
        let first = window.limit_bytes();
        for _ in 0..10 {
            window.was_short.store(true, Ordering::Relaxed);
            period(&window, &mut sums, 500, 0.0);
        }
        let widened = window.limit_bytes();
        assert_eq!(widened, first + 10 * STEP_BYTES);
        period(&window, &mut sums, 4000, 0.0);
        assert!(window.limit_bytes() <= widened * 7 / 10);
        for _ in 0..20 {
            period(&window, &mut sums, 4000, 0.0);
        }
        assert_eq!(window.limit_bytes(), BYTES_MIN, "it never closes");
        assert_eq!(window.piece_bytes(), 64 << 10);
        period(&window, &mut sums, 4000, 0.5);
        assert!(window.limit_bytes() > BYTES_MAX / 3, "pages must go");
    }

    #[test]
    fn nobody_waits_so_nothing_is_widened_and_a_slow_device_is_not_a_queue() {
        let (window, mut sums) = (WriteWindow::new(), (0, 0));
        let first = window.limit_bytes();
        for _ in 0..50 {
            period(&window, &mut sums, 9000, 0.0);
        }
        assert_eq!(window.limit_bytes(), first);
        window.adapt(PERIOD, (sums.0 + 1, sums.1 + 1_000_000_000), 0.0);
        assert_eq!(window.limit_bytes(), first, "one write says nothing");
    }

    #[test]
    fn no_more_goes_than_the_window_has_room_for() {
        let simulation = runtime::sim::Simulation::new(runtime::sim::SimConfig::new(3));
        let mut simulation = simulation;
        let ended = simulation.run(|| {
            let window = std::sync::Arc::new(WriteWindow::new());
            let most = std::sync::Arc::new(AtomicU64::new(0));
            let large = window.enter(BYTES_MAX as usize * 2);
            let fibers: Vec<_> = (0..20)
                .map(|number| {
                    let (window, most) = (window.clone(), most.clone());
                    runtime::spawn("writer", move || {
                        for _ in 0..20 {
                            let entered = window.enter(300_000 + number);
                            most.fetch_max(
                                window.in_flight.load(Ordering::SeqCst),
                                Ordering::SeqCst,
                            );
                            runtime::sleep(Duration::from_micros(50));
                            drop(entered);
                        }
                    })
                })
                .collect();
            runtime::sleep(Duration::from_millis(1));
            assert_eq!(most.load(Ordering::SeqCst), 0, "a write larger than the window goes alone");
            drop(large);
            fibers.into_iter().for_each(|fiber| fiber.join().expect("no panic"));
            assert_eq!(window.in_flight.load(Ordering::SeqCst), 0);
            let most = most.load(Ordering::SeqCst);
            assert!((1_500_000..=window.limit_bytes()).contains(&most), "{most}");
        });
        ended.expect("it ends");
    }
}
