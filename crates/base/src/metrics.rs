//! The one registry of counters and gauges.
//!
//! A metric is a `static`; it lists itself when first used, or at once by [`Counter::list`]. The
//! server prints [`snapshot`]; SHOW STATUS looks values up by [`value`].
//! Counters are split into shards by thread, so that workers do not share a cache line.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

const SHARDS: usize = 8;

#[derive(Debug)]
#[repr(align(64))]
struct Shard(AtomicU64);

/// A number that only grows, for example rows read.
#[derive(Debug)]
pub struct Counter {
    name: &'static str,
    help: &'static str,
    listed: AtomicBool,
    shards: [Shard; SHARDS],
}

/// A number that goes up and down, for example open connections.
#[derive(Debug)]
pub struct Gauge {
    name: &'static str,
    help: &'static str,
    listed: AtomicBool,
    value: AtomicI64,
}

#[derive(Clone, Copy)]
enum Metric {
    Counter(&'static Counter),
    Gauge(&'static Gauge),
}

static METRICS: Mutex<Vec<Metric>> = Mutex::new(Vec::new());

fn lock() -> std::sync::MutexGuard<'static, Vec<Metric>> {
    METRICS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(0) };
}

/// Chooses the shard of the current thread; the runtime calls it once per worker.
pub fn set_thread_shard(number: usize) {
    SHARD.set(number % SHARDS);
}

impl Counter {
    /// A counter at zero. `name` is lower case with underscores, `help` says the unit.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        let shards = [const { Shard(AtomicU64::new(0)) }; SHARDS];
        Self { name, help, listed: AtomicBool::new(false), shards }
    }

    /// Adds `amount`.
    #[inline]
    pub fn add(&'static self, amount: u64) {
        self.shards[SHARD.get()].0.fetch_add(amount, Ordering::Relaxed);
        if !self.listed.load(Ordering::Relaxed) {
            self.list();
        }
    }

    /// Puts the counter into the registry although it may still be zero.
    #[cold]
    pub fn list(&'static self) {
        if !self.listed.swap(true, Ordering::Relaxed) {
            lock().push(Metric::Counter(self));
        }
    }

    /// The sum over all threads.
    pub fn value(&self) -> u64 {
        self.shards.iter().map(|shard| shard.0.load(Ordering::Relaxed)).sum()
    }
}

impl Gauge {
    /// A gauge at zero. `name` is lower case with underscores, `help` says the unit.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, listed: AtomicBool::new(false), value: AtomicI64::new(0) }
    }

    /// Adds `amount`, which may be negative.
    #[inline]
    pub fn add(&'static self, amount: i64) {
        self.value.fetch_add(amount, Ordering::Relaxed);
        if !self.listed.load(Ordering::Relaxed) {
            self.list();
        }
    }

    /// Sets the value.
    #[inline]
    pub fn set(&'static self, value: i64) {
        self.value.store(value, Ordering::Relaxed);
        if !self.listed.load(Ordering::Relaxed) {
            self.list();
        }
    }

    /// Puts the gauge into the registry although it may never have been set.
    #[cold]
    pub fn list(&'static self) {
        if !self.listed.swap(true, Ordering::Relaxed) {
            lock().push(Metric::Gauge(self));
        }
    }

    /// The present value.
    pub fn value(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }
}

/// One metric as printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Lower case with underscores.
    pub name: &'static str,
    /// What is counted, with the unit.
    pub help: &'static str,
    /// The present value.
    pub value: i64,
    /// True for a number that only grows.
    pub is_counter: bool,
}

/// All listed metrics, by name.
pub fn snapshot() -> Vec<Sample> {
    let mut samples = BTreeMap::new();
    for metric in lock().iter() {
        let (name, help, value, is_counter) = match metric {
            Metric::Counter(it) => (it.name, it.help, it.value() as i64, true),
            Metric::Gauge(it) => (it.name, it.help, it.value(), false),
        };
        let entry = samples.entry(name).or_insert(Sample { name, help, value: 0, is_counter });
        entry.value += value;
    }
    samples.into_values().collect()
}

/// The value of the metric with this name, `None` when none is listed.
pub fn value(name: &str) -> Option<i64> {
    snapshot().iter().find(|sample| sample.name == name).map(|sample| sample.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    static READS: Counter = Counter::new("test_reads", "reads");
    static OPEN: Gauge = Gauge::new("test_open", "connections");

    #[test]
    fn sums_over_threads() {
        let threads: Vec<_> = (0..4)
            .map(|number| {
                std::thread::spawn(move || {
                    set_thread_shard(number);
                    (0..1000).for_each(|_| READS.add(2));
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("the thread does not panic");
        }
        OPEN.add(5);
        OPEN.add(-2);
        assert_eq!(value("test_reads"), Some(8000));
        assert_eq!(value("test_open"), Some(3));
        assert_eq!(value("test_nothing"), None);
    }
}
